"""The page on calibration in every verdict: the engine's numbers at every clip, and why a number is withheld."""

import pytest

from avshift_core.shift.breakdown import contributions
from avshift_core.shift.gate import TITLES
from tests.pages.conftest import CASES, case_link, fleet_link, words
from tests.pages.test_overview import analysis_of, metrics, rate

PAGE = "pages/calibration.py"
NUMBERS = ["Observed rate (P)", "Calibrated to Q", "Observed rate (Q)", "Traffic explains", "Left over",
           "Effective scenarios"]


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_its_badge_numbers_and_figures(open_page, home, case):
    page = open_page(PAGE, case_link(case, metric="ell"))
    assert f" {TITLES[CASES[case]]}]" in words(page)
    assert list(metrics(page)) == NUMBERS and all(m.help for m in page.metric)
    charts = page.get("plotly_chart")
    assert len(charts) == 6 and all(chart.proto.alt for chart in charts)
    c = analysis_of(home, page).calibrate(10.0, "ell")
    assert rate(metrics(page)["Observed rate (P)"]) == pytest.approx(c.naive.mu, abs=5.1e-5)
    assert rate(metrics(page)["Observed rate (Q)"]) == pytest.approx(c.target.mu, abs=5.1e-5)
    options = [list(g.options) for g in page.main.get("button_group") if "Cell by cell" in g.options]
    assert ("Region by region" in options[0]) == (case == "localized")
    assert ("No regions were looked for" in words(page)) == (case != "localized")


def test_a_withheld_number_says_why(open_page):
    page = open_page(PAGE, case_link("global", metric="ell"))
    shown = metrics(page)
    assert shown["Calibrated to Q"] == shown["Traffic explains"] == shown["Left over"] == "withheld"
    assert "withheld because of" in words(page) and "Not covered by P" in words(page)


def test_moving_the_clip_moves_every_number(open_page, home):
    page = open_page(PAGE, case_link("localized", metric="ell"))
    before, analysis = metrics(page), analysis_of(home, page)
    page.select_slider(key="url_B").set_value(2.0).run()
    after, c = metrics(page), analysis.calibrate(2.0, "ell")
    assert page.query_params["B"] == "2" and "clip 2" in words(page)
    assert after["Effective scenarios"] == f"{c.ess:,.0f}" != before["Effective scenarios"]
    page.select_slider(key="url_B").set_value(5.0).run()
    c = analysis.calibrate(5.0, "ell")
    assert rate(metrics(page)["Calibrated to Q"]) == pytest.approx(c.strata.mu, abs=5.1e-5)
    assert metrics(page)["Traffic explains"] == f"{100 * c.traffic.mu:+.2f} pp"
    told = next(chart.proto.alt for chart in page.get("plotly_chart") if "observed in P by" in chart.proto.alt)
    for step in contributions(analysis, "ell", 5.0):
        assert f"{step.name} {100 * step.move.mu:+.2f}" in told


def test_weights_and_groups_are_chosen_by_the_link(open_page):
    page = open_page(PAGE, case_link("localized", metric="ell", weights="ipw", by="road_type"))
    assert "The weights and their clip** · classifier weights" in words(page)
    table = next(t.value for t in page.dataframe if "Scenarios P" in t.value.columns)
    assert table.columns[0] == "Type of road" and set(table.iloc[:, 0]) == {"town", "rural"}


def test_a_threshold_is_named_in_words_and_never_by_its_column(open_page):
    page = open_page(PAGE, case_link("localized", metric="ttc_min_s<3"))
    assert "“Time to collision below 3 s” is above 0 in" in words(page).replace("\\", "")
    assert "ttc_min_s" not in "\n".join(str(e.value) for e in page.main.markdown)


def test_categories_of_the_fleet_mark_small_groups(open_page, home):
    page = open_page(PAGE, fleet_link(metric="hard_brake"))
    table = next(t.value for t in page.dataframe if "Scenarios P" in t.value.columns)
    few = (table["Scenarios P"] < 10) | (table["Drives P"] < 3)
    assert len(table) > 5 and ((table["Observed in P"] == "too few") == few).all()
