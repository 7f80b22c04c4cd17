"""The start page in every verdict, and what a reader sees after one move."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError
from avshift_core.latent.benchmark import line_case
from avshift_core.plots.metrics import LABELS
from avshift_core.shift.analyze import analyze
from avshift_core.shift.gate import TITLES
from pages.common import parts
from pages.common.cached import Run

APP = Path(__file__).parents[1] / "app.py"
QUICK = {"classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}
VERDICTS = {"none": "no_shift", "localized": "localize", "global": "global_shift"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small networks on a busy machine: several threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def open_page(case: str, **settings) -> AppTest:
    """The page behind a link: everything comes from the URL."""
    page = AppTest.from_file(str(APP), default_timeout=300)
    for name, value in {"case": case, "n": 2000, **QUICK, **settings}.items():
        page.query_params[name] = str(value).lower() if isinstance(value, bool) else str(value)
    page.run()
    assert not page.exception
    return page


def metrics(page: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def text(elements) -> str:
    return "\n".join(e.value for e in elements)


def rate(shown: str) -> float:
    return float(shown.removesuffix("%")) / 100


@pytest.fixture(scope="module")
def localized():
    pair = line_case("localized", 2000, 0)
    return analyze(pair.P, pair.Q, AnalysisConfig(**QUICK))


@pytest.mark.parametrize("case", VERDICTS)
def test_every_verdict_has_its_badge_its_numbers_and_its_charts(case):
    page = open_page(case)
    assert f" {TITLES[VERDICTS[case]]}]" in page.main.markdown[0].value  # the badge comes first
    assert list(metrics(page)) == [
        "Advantage", "Observed rate (P)", "Calibrated to Q", "Target rate (Q)", "Effective sample"
    ]
    assert all(m.help for m in page.metric)
    assert len(page.get("plotly_chart")) == 3
    assert ("Localization stopped on purpose" in text(page.info)) == (case != "localized")
    sidebar = text(page.sidebar.caption)
    assert re.search(r"P `[0-9a-f]{8}`", sidebar) and "2,000 scenarios" in sidebar and "seed 0" in sidebar


def test_numbers_on_the_page_are_those_of_the_engine(localized):
    shown = metrics(open_page("localized"))
    calibration = localized.calibrate(10.0)
    assert shown["Advantage"] == f"{localized.global_test.gamma_hat:.3f}"
    assert rate(shown["Observed rate (P)"]) == pytest.approx(calibration.naive.mu, abs=5.1e-5)
    assert rate(shown["Target rate (Q)"]) == pytest.approx(calibration.target.mu, abs=5.1e-5)
    assert localized.headline() == "strata"
    assert rate(shown["Calibrated to Q"]) == pytest.approx(calibration.strata.mu, abs=5.1e-5)


def test_moving_the_clip_moves_the_numbers(localized):
    page = open_page("localized")
    before = metrics(page)
    page.select_slider(key="B").set_value(5.0).run()
    after = metrics(page)
    assert rate(after["Calibrated to Q"]) == pytest.approx(localized.calibrate(5.0).strata.mu, abs=5.1e-5)
    assert after["Calibrated to Q"] != before["Calibrated to Q"]
    assert after["Effective sample"] != before["Effective sample"]
    assert after["Advantage"] == before["Advantage"]
    page.select_slider(key="B").set_value(0.5).run()  # half of Q is lost to the clip
    assert metrics(page)["Calibrated to Q"] == "withheld"
    assert "Lost to the clip" in text(page.error)


def test_a_global_shift_withholds_the_headline_and_says_why():
    page = open_page("global")
    assert metrics(page)["Calibrated to Q"] == "withheld"
    assert "withheld" in text(page.error) and "Not covered by P" in text(page.error)
    assert ":red-badge[:material/block: refuse]" in text(page.markdown)
    assert "(headline)" not in text(page.markdown)


def test_an_interval_across_two_bands_is_undecided(localized):
    edge = round(localized.global_test.gamma_hat, 3)  # inside the interval
    assert "undecided" in text(open_page("localized", gamma_large=edge).markdown)
    assert "undecided" not in text(open_page("localized").markdown)


def test_regions_looked_for_and_not_found_are_a_result():
    page = open_page("none", force_localize=True)
    assert "Regions were looked for and none was found" in text(page.info)


def test_what_an_analyst_can_cause_is_shown_as_a_sentence():
    page = open_page("localized")
    page.number_input(key="gamma_small").set_value(0.3)
    page.button[0].click().run()
    assert not page.exception
    assert text(page.error) == (
        "gamma_small is 0.3 and gamma_large 0.1; the band needs gamma_small below gamma_large."
    )
    assert not page.metric


def test_every_setting_has_a_widget_with_its_help():
    page = open_page("localized")
    widgets = [*page.number_input, *page.selectbox, *page.toggle, *page.select_slider]
    by_key = {w.key: w for w in widgets}
    for setting in fields(AnalysisConfig):
        assert setting.name in by_key, setting.name
        assert setting.name == "seed" or setting.metadata["help"] in by_key[setting.name].help


def test_every_check_and_estimator_is_named_in_plain_words(localized):
    assert {c.check for c in localized.trust} <= set(parts.CHECKS)
    assert set(parts.SENTENCES) == set(LABELS)
    assert {r.name for r in localized.reference} <= set(parts.TESTS)


def test_a_run_left_half_way_goes_on_and_an_error_stays(localized):
    pair, config = line_case("localized", 2000, 0), AnalysisConfig(**QUICK)
    run = Run(pair, config)
    shares = [run.advance().share for _ in range(3)]
    while (step := run.advance()) is not None:  # the next visitor
        shares.append(step.share)
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert run.analysis.global_test.gamma_hat == localized.global_test.gamma_hat
    broken = Run(pair, AnalysisConfig(**QUICK, M=0.5))  # the metric is 0 or 1
    for _ in range(2):
        with pytest.raises(AVShiftError, match=r"0\.5"):
            broken.advance()


def test_the_page_computes_nothing():
    source = APP.read_text()
    assert not re.search(r"^\s*(import|from) (numpy|pandas|scipy|torch|sklearn)", source, re.MULTILINE)
