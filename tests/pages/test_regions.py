"""Regions in every verdict, with and without states, and what a reader sees after one move."""

import numpy as np
import pandas as pd
import pytest

from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN
from avshift_core.scenario.store.writer import create_or_open
from avshift_core.shift.regions import describe_regions
from pages.common.text import percent
from tests.pages.conftest import case_link, fleet_link, run_through, words
from tests.pages.test_overview import analysis_of

PAGE = "pages/regions.py"
EVIL = "<script>alert(1)</script> [x](http://evil.example) $a$"


@pytest.fixture(scope="session")
def bare(home):
    """A corpus in which a third of Q lies where P has nothing, with script in what it calls it."""
    url, rng, n = str(home.folder.parent / "bare"), np.random.default_rng(0), 600
    with create_or_open(url) as writer:
        for side, day in (("P", "2026-03-02"), ("Q", "2026-03-09")):
            away = (np.arange(n) % 3 == 0) & (side == "Q")
            z = rng.normal(size=(n, 3)) + np.where(away, 15.0, 0.0)[:, None]
            ids = pd.DataFrame({name: np.full(n, UNKNOWN, dtype=object) for name in ID_FIELDS})
            ids["scenario_id"] = [f"{side}{i}" for i in range(n)]
            ids["drive_id"] = [f"{side}{i // 20}" for i in range(n)]
            ids["day"], ids["period"], ids["hour"] = day, side, -1
            ids["category"] = np.where(away, EVIL, "general")
            writer.add_table(ids, pd.DataFrame({"x": z[:, 0]}), {"ell": (rng.random(n) < 0.3) * 1.0},
                             z.astype(np.float32), model="bare", source=side)
    home.corpora.update(lambda old: {**old, "Bare": url})
    return {**case_link("x", force_localize=1, n_cells=20), "corpus": "Bare", "P": "period=P", "Q": "period=Q"}


def plain(page) -> str:
    return words(page).replace("\\", "")


def table(page, place=0):
    return page.dataframe[place].value


def test_regions_are_named_counted_and_compared_with_the_paper(open_page, home):
    page = open_page(PAGE, case_link("localized", metric="ell"))
    analysis = analysis_of(home, page)
    described = describe_regions(analysis)
    assert f"Q differs from P in {len(described.regions)} region" in plain(page)
    assert described.regions[0].name in plain(page)
    assert f"finds {analysis.local_paper.n_regions:,} region" in plain(page)
    shown = table(page)
    assert shown["Name"].tolist() == [f.name for f in described.regions]
    first = described.regions[0]
    assert shown.loc[0, "Share of P"] == (
        f"{100 * first.p.mu:.1f} % ({100 * first.p.lo:.1f} to {100 * first.p.hi:.1f})")
    assert shown.loc[0, "Weight"] == f"{first.weight(10.0):.2f}"
    assert "What sets it apart from all other scenarios" in plain(page)
    assert f"None that is statistically clear; {percent(analysis.calibrator.uncovered_mass)} of Q" in plain(page)


def test_the_table_follows_clip_and_metric(open_page):
    at = {B: table(open_page(PAGE, case_link("localized", metric="ell", B=B))) for B in (10, 1)}
    assert at[1].loc[0, "Weight"] == "1.00" != at[10].loc[0, "Weight"]
    assert at[1].loc[0, "Moves the rate"] != at[10].loc[0, "Moves the rate"]
    other = open_page(PAGE, case_link("localized", metric="ttc_min_s<3"))
    assert "Metric: Time to collision below 3 s; weights at clip 10." in plain(other)
    assert table(other).loc[0, "Moves the rate"] != at[10].loc[0, "Moves the rate"]


@pytest.mark.parametrize(("case", "sentence"), [
    ("none", "No shift to locate"), ("global", "Q differs from P strongly (at least "),
])
def test_a_stop_is_a_result_with_a_way_on(open_page, case, sentence):
    page = open_page(PAGE, case_link(case))
    assert sentence in plain(page) and "Localization stopped on purpose" in plain(page) and "Next step" in plain(page)
    assert not page.dataframe and "What differs between P and Q as a whole" in plain(page)
    next(b for b in page.button if b.label == "Look for regions all the same").click()
    run_through(page)
    assert page.query_params["force_localize"] == "1"
    assert "because you asked for it" in plain(page) and "Localization stopped" not in plain(page)


def test_without_states_there_are_no_pictures_but_links(open_page):
    page = open_page(PAGE, case_link("localized"))
    assert "No pictures: " in plain(page)
    links = [link.proto for link in page.get("page_link") if "scenario=" in link.proto.query_string]
    assert 6 <= len(links) <= 12 and all("corpus=Cases" in link.query_string for link in links)


@pytest.mark.parametrize("region", ["99", "0", "-1", "<b>", "1e99"])
def test_a_region_that_is_not_there_falls_back_to_the_first(open_page, region):
    page = open_page(PAGE, case_link("localized", region=region))
    assert "**R1: " in plain(page)


def test_the_fleet_shows_its_work_zones_and_its_scenes(open_page, home):
    """Week 13 has a work zone, twelve times as much of it as other weeks: the name of the strongest region says so."""
    page = open_page(PAGE, fleet_link(P="period=2026-W10|2026-W11|2026-W12", Q="period=2026-W13",
                                      view="full", n_cells=20))  # few cells, because the fleet is small
    described = describe_regions(analysis_of(home, page))
    name = described.regions[0].name
    assert "in work zones" in name and name.endswith(("x in Q", "only in Q")) and name in plain(page)
    assert "No pictures" not in plain(page)
    pictures = [c for c in page.get("plotly_chart") if "scene_" in str(c.proto.id)]
    assert 4 <= len(pictures) <= 12


def test_places_without_support_stand_apart_and_text_of_data_is_text(open_page, home, bare):
    page = open_page(PAGE, bare)
    described = describe_regions(analysis_of(home, page))
    (place,) = described.violations
    assert place.q.mu == pytest.approx(1 / 3, abs=0.02) and place.p.mu == 0 and place.ratio is None
    assert place.name.endswith("only in Q") and "alert" in place.name
    shown = page.dataframe[-1].value
    assert shown.loc[0, "Q / P"] == "cannot be told" and "Weight" not in shown and "**33" in words(page)
    assert "stays uncorrected" in plain(page) and "No scenario of P lies here." in plain(page)
    assert "<script>" not in words(page).replace("\\<script\\>", "") and "[x](http" not in words(page)
    scenario = {i: plain(open_page("pages/scenario.py", {**bare, "scenario": f"Q{i}"})) for i in (0, 1)}
    assert "P has next to nothing like it: it is never weighted" in scenario[0]
    assert "outside of all regions: no difference was confirmed here" in scenario[1]
