"""The page on the global test in every verdict: the engine's numbers, figures with words, studies on demand."""

import pytest

from avshift_core.shift.gate import TITLES
from tests.pages.conftest import CASES, case_link, fleet_link, words
from tests.pages.test_overview import analysis_of, metrics

PAGE = "pages/global_test.py"
FIGURES = {"band", "bounds", "repeats", "variance", "roc", "reliability", "permutations", "tests", "saturation",
           "differences"}


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_its_badge_numbers_and_figures(open_page, home, case):
    page = open_page(PAGE, case_link(case))
    assert f" {TITLES[CASES[case]]}]" in words(page)
    assert all(m.help for m in page.metric)
    charts = page.get("plotly_chart")
    assert len(charts) == len(FIGURES) and all(chart.proto.alt for chart in charts)
    test, shown = analysis_of(home, page).global_test, metrics(page)
    assert shown["Advantage"] == f"{test.gamma_hat:.3f}" and shown["Held-out accuracy"] == f"{test.acc:.1%}"
    assert shown["Total variation"] == f"≥ {2 * test.gamma_lcb:.1%}"
    assert shown["p, classifier"] == f"{test.p_value:.3g}" and shown["Scenarios held out"] == f"{test.n_te:,}"


def test_what_differs_is_ranked_and_the_rest_is_not_hidden(open_page):
    page = open_page(PAGE, fleet_link())
    assert "attributes shown" in words(page)
    table = next(t.value for t in page.dataframe if "Attribute" in t.value.columns)
    assert len(table) > 16 and table["Difference"].abs().is_monotonic_decreasing


def test_studies_start_only_when_asked(open_page):
    page = open_page(PAGE, case_link("localized"))
    assert [b.label for b in page.main.button if "configurations" in b.label] == ["Run the 26 configurations"]
    assert "takes a few minutes" in words(page)
