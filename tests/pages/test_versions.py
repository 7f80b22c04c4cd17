"""The page on versions: the engine's numbers in either traffic, why other views are refused, the truth of the fleet."""

import pytest

from avshift_core.shift.versions import BETTER, FEW, NOISE, UNTRUSTED, WORSE
from tests.pages.conftest import case_link, fleet_link, versions_link, words
from tests.pages.test_overview import metrics

PAGE = "pages/versions.py"
NUMBERS = ["Raw difference", "Not comparable", "Exposure", "Performance", "Detectable", "Common traffic"]


def test_the_conclusion_the_numbers_and_the_figures(open_page):
    page = open_page(PAGE, versions_link())
    text = words(page)
    assert "v4\\.2" in text or "v4.2" in text
    assert any(f" {verdict}]" in text for verdict in (BETTER, WORSE, NOISE, FEW, UNTRUSTED))
    assert list(metrics(page)) == NUMBERS and all(m.help for m in page.metric)
    charts = page.get("plotly_chart")
    assert len(charts) >= 6 and all(chart.proto.alt for chart in charts)
    assert "Can the version be read from the context?" in text and "Which traffic to drive next" in text
    labels = [button.label for button in page.get("download_button")]
    assert {"CSV", "Parquet", "Report (JSON)"} <= set(labels)


def test_the_reference_is_in_the_address_and_moves_the_parts(open_page):
    shown = {ref: metrics(open_page(PAGE, versions_link(reference=ref))) for ref in ("P", "Q", "mean")}
    raw = {values["Raw difference"] for values in shown.values()}
    assert len(raw) == 1
    number = lambda ref, name: float(shown[ref][name].removesuffix(" pp"))  # noqa: E731
    for ref in shown:
        total = number(ref, "Not comparable") + number(ref, "Exposure") + number(ref, "Performance")
        assert total == pytest.approx(number(ref, "Raw difference"), abs=0.02)  # each is rounded to 0.01
    both = (number("P", "Performance") + number("Q", "Performance")) / 2
    assert number("mean", "Performance") == pytest.approx(both, abs=0.011)


def test_the_whole_scenario_is_refused_with_a_click_to_the_context(open_page):
    page = open_page(PAGE, {**versions_link(), "view": "full"})
    text = words(page).replace("\\", "")
    assert "The full view holds the AV's own reaction" in text and "what the version itself caused" in text
    assert not page.metric
    next(b for b in page.button if b.label == "Compare by the context only").click().run()
    assert page.query_params["view"] in ("context", ["context"])


def test_imported_latents_are_refused_without_a_click(open_page):
    page = open_page(PAGE, case_link("none"))
    assert "nobody knows" in words(page) and not [b for b in page.button if "context" in b.label]


def test_mixed_versions_are_named_with_their_counts(open_page):
    text = words(open_page(PAGE, fleet_link())).replace("\\", "")
    assert "P, '2026-W10+2026-W11+2026-W16 harbor', mixes AV versions v4.1 (" in text and "v4.2 (" in text


def test_a_version_against_itself_should_show_nothing(open_page):
    text = words(open_page(PAGE, {**versions_link(), "Q": "period=2026-W12|2026-W13,area=harbor"})).replace("\\", "")
    assert "A/A" in text and "performance part should be zero" in text


def test_the_truth_of_the_fleet_stands_beside_the_estimate(open_page):
    page = open_page(PAGE, versions_link(truth=1))
    text = words(page).replace("\\", "")
    assert "True performance **" in text and "the truth. The raw difference is" in text
