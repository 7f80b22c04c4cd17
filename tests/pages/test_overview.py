"""The overview in every verdict, in empty and error states, and what a reader sees after one move."""

import gc
import re
from dataclasses import fields

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from avshift_core.config import AnalysisConfig
from avshift_core.plots.metrics import LABELS
from avshift_core.shift.gate import TITLES
from avshift_core.workspace import HOME
from pages.common import parts
from tests.pages.conftest import APP, CASES, N, case_link, fleet_link, run_through, words


def metrics(page) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def rate(shown: str) -> float:
    return float(shown.removesuffix("%")) / 100


def analysis_of(home, page):
    """The engine's own result behind a page: the run stands in the sidebar."""
    run = re.search(r"Run `([0-9a-f]{12})`", words(page))[1]
    for path in home.results.folder.glob("comparison-*.avs"):
        found = home.results.get(path.stem)
        if found.run == run:
            return found.analysis
    raise AssertionError(f"no comparison of run {run} is kept")


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_its_badge_its_numbers_and_its_charts(open_page, case):
    page = open_page(link=case_link(case))
    assert f" {TITLES[CASES[case]]}]" in words(page)
    assert list(metrics(page)) == [
        "Advantage", "Observed rate (P)", "Calibrated to Q", "Observed rate (Q)", "Effective sample"]
    assert all(m.help for m in page.metric)
    assert ("Localization stopped on purpose" in words(page)) == (case != "localized")
    assert f"{N:,} scenarios · 100 drives" in words(page) and "seed 0" in words(page)


def test_numbers_on_the_page_are_those_of_the_engine(open_page, home):
    page = open_page(link=case_link("localized", metric="ell"))
    analysis, shown = analysis_of(home, page), metrics(page)
    calibration = analysis.calibrate(10.0, "ell")
    assert shown["Advantage"] == f"{analysis.global_test.gamma_hat:.3f}"
    assert rate(shown["Observed rate (P)"]) == pytest.approx(calibration.naive.mu, abs=5.1e-5)
    assert rate(shown["Observed rate (Q)"]) == pytest.approx(calibration.target.mu, abs=5.1e-5)
    assert rate(shown["Calibrated to Q"]) == pytest.approx(calibration.strata.mu, abs=5.1e-5)


def test_moving_the_clip_moves_the_numbers_and_the_link(open_page, home):
    page = open_page(link=case_link("localized", metric="ell"))
    before, analysis = metrics(page), analysis_of(home, page)
    page.select_slider(key="url_B").set_value(5.0).run()
    after = metrics(page)
    assert rate(after["Calibrated to Q"]) == pytest.approx(analysis.calibrate(5.0, "ell").strata.mu, abs=5.1e-5)
    assert after["Calibrated to Q"] != before["Calibrated to Q"] and after["Advantage"] == before["Advantage"]
    assert page.query_params["B"] == "5"
    page.select_slider(key="url_B").set_value(0.5).run()  # half of Q is lost to the clip
    assert metrics(page)["Calibrated to Q"] == "withheld" and "Lost to the clip" in words(page)


def test_imports_are_out_of_the_collectors_way(open_page):
    """Streamlit collects after every run; over all libraries that took longer than a look at a progress bar."""
    open_page(link=case_link("localized"))
    assert gc.get_freeze_count() > 4 * len(gc.get_objects())


def test_the_link_is_the_view(open_page):
    page = open_page(link=case_link("localized", metric="ttc_min_s<3", B="5"))
    assert page.select_slider(key="url_B").value == 5.0
    assert page.sidebar.selectbox(key="family").value == "ttc_min_s"
    assert page.sidebar.select_slider(key="url_metric").value == "ttc_min_s<3"
    assert "below 3 s" in words(page)


def test_every_whole_run_tells_the_browser_what_widgets_show(open_page):
    page = open_page(link=case_link("localized", B="5"))
    for _ in range(2):  # the run before may have been cut short before the browser heard of it
        assert page.select_slider(key="url_B").proto.set_value
        assert all(widget.proto.set_value for widget in page.sidebar.multiselect)
        page.run()
    assert page.query_params["B"] == "5"


def test_car_or_traffic_stands_below_the_headline(open_page, home):
    page = open_page(link=case_link("localized", metric="ell"))
    c = analysis_of(home, page).calibrate(10.0, "ell")
    assert f"The traffic explains **{100 * c.traffic.mu:+.2f}**" in words(page)
    assert f"**{100 * c.residual.mu:+.2f}**" in words(page) and "are left over" in words(page)


def test_what_a_link_asks_for_in_vain_is_shown(open_page):
    page = open_page(link=case_link("localized", B="abc"))
    assert any("B='abc', which is no place of the slider. Shown: clip 10." in w.value for w in page.sidebar.warning)
    page = open_page(link={**case_link("localized"), "P": "period=nope"})
    assert ["nope"] in [widget.value for widget in page.sidebar.multiselect]
    assert page.error


def test_swapping_swaps(open_page):
    page = open_page(link=case_link("localized"))
    next(b for b in page.sidebar.button if b.label == "Swap P and Q").click()
    run_through(page)
    assert (page.query_params["P"], page.query_params["Q"]) == ("period=Q,area=localized", "period=P,area=localized")


def test_choosing_another_cohort(open_page):
    page = open_page(link=case_link("localized"))
    page.sidebar.multiselect(key="cohort_Q_area").set_value(["none"])
    run_through(page)
    assert page.query_params["Q"] == "period=Q,area=none" and f" {TITLES['no_shift']}]" in words(page)


def test_a_saved_filter_can_be_taken_by_anybody(open_page, home):
    page = open_page(link=case_link("localized"))
    page.sidebar.text_input(key="save_as_P").set_value("My *P* <b>").run()
    assert home.filters.read()["My *P* <b>"] == "period=P,area=localized"
    other = open_page(link=case_link("global"))
    other.sidebar.selectbox(key="saved_P").set_value("My *P* <b>")
    run_through(other)
    assert other.query_params["P"] == "period=P,area=localized"


def test_a_global_shift_withholds_the_headline_and_says_why(open_page):
    page = open_page(link=case_link("global", metric="ell"))
    assert metrics(page)["Calibrated to Q"] == "withheld" and "refuse" in words(page)


def test_versions_that_differ_are_told_before_anything_is_computed(open_page):
    page = open_page(link=fleet_link(view="full"))
    assert any("AV versions differ (v4.1, v4.2)" in w.value.replace("\\", "") for w in page.warning)


@pytest.mark.parametrize(("link", "sentence"), [
    ({"corpus": "Atlantis"}, "no corpus called 'Atlantis'"),
    ({"P": "period=2026-W99"}, "has 0 scenarios; at least 200 are needed"),
    ({"P": "colour=blue"}, "'colour' is no key of a cohort"),
    ({"P": "period=2026-W10", "Q": "period=2026-W10"}, "P and Q are the same cohort"),
    ({"gamma_small": "lots"}, "gamma_small='lots', which is no value"),
    ({"gamma_small": "0.3"}, "gamma_small below gamma_large"),
    ({"folds": "1e99"}, "folds"),
    ({"classifier": "<script>alert(1)</script>"}, "choose one of auto, mlp"),
])
def test_a_link_that_cannot_be_followed_is_a_sentence(open_page, link, sentence):
    page = open_page(link=link)
    assert len(page.error) == 1 and sentence in page.error[0].value.replace("\\", "")
    assert not page.metric


def test_values_of_a_link_that_nobody_knows_fall_back(open_page):
    page = open_page(link=case_link("localized", metric="speeding<script>", B="7e9", view="sideways"))
    assert metrics(page)["Advantage"] and page.select_slider(key="url_B").value == 10.0
    assert any("no metric 'speeding<script>'" in w.value for w in page.sidebar.warning)


def test_a_corpus_that_vanished_is_a_sentence(open_page, home):
    home.corpora.update(lambda old: {**old, "Gone": str(home.folder / "gone")})
    page = open_page(link={"corpus": "Gone"})
    assert "does not exist" in page.error[0].value
    home.corpora.update(lambda old: {name: url for name, url in old.items() if name != "Gone"})


def test_every_setting_has_a_widget_with_its_help_and_takes_effect(open_page, home):
    page = open_page(link=case_link("localized"))
    widgets = {w.key: w for w in [*page.number_input, *page.selectbox, *page.toggle]}
    for setting in fields(AnalysisConfig):
        if setting.name not in ("B", "M"):  # B is the slider; events lie in [0, 1]
            assert setting.metadata["help"] in widgets[f"setting_{setting.name}"].help
    page.number_input(key="setting_gamma_large").set_value(0.02)
    next(b for b in page.button if b.label == "Apply and run again").click()
    run_through(page)
    assert page.query_params["gamma_large"] == "0.02" and analysis_of(home, page).config.gamma_large == 0.02


def test_every_check_and_estimator_is_named_in_plain_words(line_analysis):
    assert {c.check for c in line_analysis.trust} <= set(parts.CHECKS)
    assert set(parts.SENTENCES) == set(LABELS)
    assert {r.name for r in line_analysis.reference} <= set(parts.TESTS)


def test_a_home_that_cannot_be_used_is_one_sentence(home, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(HOME, str(tmp_path / "file" / "home"))
    st.cache_resource.clear()
    page = AppTest.from_file(str(APP), default_timeout=60).run()
    said = page.error[0].value.replace("\\", "")
    assert not page.exception and "cannot be made: Not a directory" in said and f"Set {HOME} to a folder" in said
    st.cache_resource.clear()
