"""The page of one scenario: ways to it, what it says, its neighbours, and the pair that is played."""

import base64
import json

import numpy as np
import pytest
from playwright.sync_api import expect

from avshift_core.comparison import LABELS
from avshift_core.latent.corpora import choose_latents
from avshift_core.latent.inverted import index_steps
from avshift_core.latent.retrieve import find_anchor, neighbours
from avshift_core.progress import finish
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.standing import region_rows, scenario_ids, standing
from tests.pages.browsing import PATIENCE
from tests.pages.conftest import case_link, fleet_link, run_through, words
from tests.pages.test_overview import analysis_of

PAGE = "pages/scenario.py"


@pytest.fixture(scope="module")
def fleet(home):
    return open_corpus(home.demo)


@pytest.fixture(scope="module")
def some_id(fleet):
    """A cut-in of P of the fleet's comparison."""
    query = f"{fleet_link()['P']},category=agent_cutting_in"
    return str(fleet.table(query, columns=["scenario_id"])["scenario_id"].iloc[0])


def played(page) -> list[dict]:
    """Scenes that the player was given; [] without a player."""
    def under(block):
        for child in block.children.values():
            if hasattr(child, "children"):
                yield from under(child)
            else:
                yield child
    found = [e.proto for e in under(page.main) if getattr(e.proto, "component_name", "") == "avshift_player"]
    return json.loads(found[0].json)["scenes"] if found else []


def plain(page) -> str:
    return words(page).replace("\\", "")


def shown(page) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def value(page, name) -> str:
    """What the link says."""
    found = page.query_params[name]
    return found[-1] if isinstance(found, list) else found


def button(page, text):
    return next(b for b in page.button if b.label.startswith(text))


def test_without_a_scenario_there_are_ways_to_one(open_page, home):
    page = open_page(PAGE, fleet_link())
    assert "Choose a scenario" in plain(page) and not played(page)
    button(page, "Random scenario").click().run()
    drawn = value(page, "scenario")
    analysis = analysis_of(home, page)
    assert find_anchor(analysis.P, analysis.Q, analysis.space, drawn) is not None
    assert [scene["id"] for scene in played(page)] == [drawn]


def test_an_id_can_be_entered(open_page, some_id):
    page = open_page(PAGE, fleet_link())
    page.text_input(key="enter_id").set_value(f" {some_id} ").run()
    assert [scene["id"] for scene in played(page)] == [some_id]


def test_a_region_offers_what_is_typical_of_it(open_page, home):
    page = open_page(PAGE, case_link("localized", region=1))
    analysis = analysis_of(home, page)
    assert "Typical scenarios of R1" in plain(page) and "have no states" in plain(page)  # so there are no pictures
    inside = set(scenario_ids(analysis, region_rows(analysis, 1)))
    button(page, "Random scenario of R1").click().run()
    assert value(page, "scenario") in inside and "in region R1" in plain(page)
    assert "Typical" not in plain(open_page(PAGE, case_link("localized", region=99)))  # nobody knows it


def test_what_is_told_of_a_scenario_is_what_the_engine_has(open_page, home, fleet, some_id):
    page = open_page(PAGE, fleet_link(scenario=some_id, B=2, metric="ttc_min_s<3"))
    analysis = analysis_of(home, page)
    anchor = find_anchor(analysis.P, analysis.Q, analysis.space, some_id)
    place = standing(analysis, anchor, 2.0)
    row = fleet.table(metrics=list(METRICS), ids=[some_id]).iloc[0]
    ttc = "≥ 10 s" if row["ttc_min_s"] >= 10 else f"{row['ttc_min_s']:.2f} s"
    assert shown(page) == {
        "Smallest time to collision": ttc, "Smallest gap": f"{row['gap_min_m']:.2f} m",
        "Time to collision": "yes" if row["ttc_min_s"] < 3 else "no", "Looks like Q": f"{place.h:.2f}",
        "Weight at clip 2": f"{place.w:.2f}"}
    assert all(m.help for m in page.metric)
    assert "Agent cuts in · Harbor" in plain(page) and f"A scenario of {anchor.cohort}" in plain(page)
    for name in ("drive_id", "route", "av_version", "day", "scenario_id"):
        assert str(row[name]) in plain(page)
    table = page.table[0].value
    assert len(table) == len(METRICS) and LABELS["hard_brake"] in table.to_string()


def test_what_is_played_is_the_scenario(open_page, fleet, some_id):
    (scene,) = played(open_page(PAGE, fleet_link(scenario=some_id)))
    (states,) = fleet.scenarios([some_id])
    assert scene["T"] == states.n_steps and scene["A"] == states.n_agents and scene["tag"] == "P"
    ms = np.frombuffer(base64.b64decode(scene["t_ms"]), "<i4")
    assert np.allclose(ms / 1000, states.t_s - states.t_s[0], atol=1e-3)
    row = fleet.table(columns=["actor", "actor_id"], ids=[some_id]).iloc[0]
    assert states.agent_id[scene["actor"]] == row["actor_id"] and scene["actor_name"] == "cuts in"


@pytest.mark.parametrize(("link", "among", "k"), [
    ({}, "all", 10), ({"k": 5, "other": 1}, "Q", 5), ({"k": 50}, "all", 50), ({"k": 7}, "all", 10)])
def test_neighbours_are_those_of_the_engine(open_page, home, some_id, link, among, k):
    page = open_page(PAGE, fleet_link(scenario=some_id, **link))
    analysis = analysis_of(home, page)
    anchor = find_anchor(analysis.P, analysis.Q, analysis.space, some_id)
    found = neighbours(analysis.P, analysis.Q, analysis.space, anchor, k, among=among)
    table = page.dataframe[0].value
    assert table["scenario_id"].tolist() == found.scenario_id.tolist()
    assert np.allclose(table["distance"], found.distance) and table["cohort"].tolist() == found.cohort.tolist()


def test_the_whole_corpus_can_be_searched(open_page, home, fleet, some_id):
    page = open_page(PAGE, fleet_link(scenario=some_id, whole=1, drives=1))
    latents, drive = choose_latents(fleet, view="context"), fleet.table(ids=[some_id])["drive_id"].iloc[0]
    index = finish(index_steps(fleet.url, fleet.fingerprint, latents))
    _, z = fleet.table(latents=latents, ids=[some_id])
    found = index.search(z[0], 10, scenario_id=some_id, drive_id=drive)
    near = page.dataframe[0].value
    assert near["scenario_id"].tolist() == found.scenario_id.tolist()
    assert np.allclose(near["distance"], found.distance, atol=1e-3)
    assert set(near["cohort"]) <= {"P", "Q", "neither"} and "neither" in set(near["cohort"])
    told = fleet.table(columns=["scenario_id", "drive_id", "period"], ids=found.scenario_id.tolist())
    assert drive not in set(told["drive_id"])
    assert dict(zip(near["scenario_id"], near["period"], strict=True)) == dict(
        zip(told["scenario_id"], told["period"], strict=True))
    assert f"Among **{fleet.n:,} scenarios** of the corpus" in words(page)
    assert "Of the 10 nearest it finds" in words(page)


def test_the_nearest_of_q_is_played_beside_and_can_become_the_anchor(open_page, home, some_id):
    page = open_page(PAGE, fleet_link(scenario=some_id))
    analysis = analysis_of(home, page)
    anchor = find_anchor(analysis.P, analysis.Q, analysis.space, some_id)
    nearest = str(neighbours(analysis.P, analysis.Q, analysis.space, anchor, 1, among="Q").scenario_id[0])
    button(page, "Nearest of Q").click().run()
    assert [(s["id"], s["tag"]) for s in played(page)] == [(some_id, "P"), (nearest, "Q")]
    table = page.dataframe[0].value
    assert table.loc[table["beside"] == "▶", "scenario_id"].tolist() in ([nearest], [])
    again = open_page(PAGE, fleet_link(scenario=some_id, beside=nearest))  # the link is the view
    assert [s["id"] for s in played(again)] == [some_id, nearest]
    button(page, "Make the right one the anchor").click().run()
    assert [s["id"] for s in played(page)] == [nearest] and "A scenario of Q" in plain(page)
    assert shown(page)["Weight at clip 10"] == "none"


def test_a_scenario_of_neither_cohort_is_placed_by_its_own_latent(open_page, fleet):
    other = str(fleet.table("period=2026-W13,area=old_town", columns=["scenario_id"])["scenario_id"].iloc[0])
    page = open_page(PAGE, fleet_link(scenario=other))
    assert "neither of the two cohorts" in plain(page) and len(page.dataframe[0].value) == 10
    assert [(s["id"], s["tag"]) for s in played(page)] == [(other, "")]
    assert "Looks like Q" not in shown(page)


def test_latents_without_states_cannot_be_played_and_still_have_neighbours(open_page):
    page = open_page(PAGE, case_link("localized", scenario="localized-Q-00007", beside="localized-P-00001"))
    assert "without states" in page.info[0].value and not played(page)
    table = page.dataframe[0].value
    assert len(table) == 10 and table["scenario_id"].str.startswith("localized-").all()
    assert "Random scenario" in [b.label for b in page.button]


@pytest.mark.parametrize("name", ["nobody", "<script>alert(1)</script>", "x" * 5000, "' OR ''='"])
def test_an_unknown_id_is_a_sentence_and_a_way_on(open_page, name):
    page = open_page(PAGE, fleet_link(scenario=name))
    assert len(page.error) == 1 and "has no scenario '" in page.error[0].value and not played(page)
    button(page, "Random scenario").click().run()
    assert not page.error and len(played(page)) == 1


def test_an_unknown_scenario_beside_leaves_the_anchor(open_page, some_id):
    page = open_page(PAGE, fleet_link(scenario=some_id, beside="nobody"))
    assert "has no scenario 'nobody'" in page.warning[-1].value and [s["id"] for s in played(page)] == [some_id]
    button(page, "Forget it").click().run()
    assert "beside" not in page.query_params


@pytest.mark.parametrize("case", ["none", "global"])
def test_a_verdict_without_regions_says_so(open_page, case):
    page = open_page(PAGE, case_link(case, scenario=f"{case}-P-00003"))
    assert "No regions were looked for" in plain(page)
    run_through(page)


@pytest.mark.browser
def test_a_picked_neighbour_is_played_beside_in_a_browser(visit, some_id):
    one = visit("scenario", fleet_link(scenario=some_id), height=2200)
    root = one.page.locator(".avs-player[data-time]")
    expect(root).to_be_visible(timeout=PATIENCE)
    one.settle()
    table = one.page.get_by_test_id("stDataFrame").bounding_box()
    one.page.mouse.click(table["x"] + 15, table["y"] + 35 + 17)  # the box of the first row
    expect(one.page.locator("figure.scene")).to_have_count(2, timeout=PATIENCE)
    one.page.wait_for_url(lambda url: "beside=" in url)
    one.page.locator("[data-do='play']").click()
    expect(root).to_have_attribute("data-playing", "true")
    one.page.wait_for_timeout(700)
    clocks = root.evaluate("e => [...e.querySelectorAll('figure.scene')].map(f => f.dataset.time)")
    assert clocks[0] == clocks[1] and float(clocks[0]) > 0.2
    one.page.go_back()
    expect(one.page.locator("figure.scene")).to_have_count(1, timeout=PATIENCE)
