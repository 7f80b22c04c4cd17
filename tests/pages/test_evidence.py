"""The evidence pack from the dashboard: a button, a job, two files; scenes as pictures where there are states."""

import json
from types import SimpleNamespace

import pytest

from avshift_core.evidence.places import read_scenes
from avshift_core.evidence.scenes import scene
from avshift_core.scenario.store.corpus import open_corpus
from tests.pages.conftest import case_link, run_through

BUTTON, FILES = "Evidence pack (HTML)", {"Evidence pack (HTML)", "Facts (JSON)"}


def taken(page, home):
    """Press the button, wait, and read the pack that is kept."""
    before = {path.stem for path in (home.folder / "results").glob("evidence-*.avs")}
    assert not FILES & {b.label for b in page.get("download_button")}
    next(b for b in page.button if b.label == BUTTON).click()
    run_through(page)
    assert {b.label for b in page.get("download_button")} >= FILES
    key, = {path.stem for path in (home.folder / "results").glob("evidence-*.avs")} - before
    return home.results.get(key)


@pytest.mark.parametrize("file, B", [("app.py", 10.0), ("pages/calibration.py", 2.0)])
def test_the_button_makes_the_pack_of_this_metric_and_clip(open_page, home, file, B):
    link = case_link("localized", metric="ttc_min_s<3", **({} if B == 10 else {"B": f"{B:g}"}))
    page = open_page(file, link)
    pack = taken(page, home)
    facts = json.loads(pack.json)
    assert facts["metric"]["name"] == "ttc_min_s<3" and facts["metric"]["B"] == B
    assert facts["run"] in pack.html and pack.run == facts["run"] in "".join(str(c.value) for c in page.sidebar.caption)
    again = open_page(file, link)  # it is kept: no second job
    assert {b.label for b in again.get("download_button")} >= FILES


def test_scenes_of_the_corpus_become_pictures(home):
    fleet = open_corpus(home.demo)
    sides = {"P": "period=2026-W10,area=harbor", "Q": "period=2026-W12,area=old_town"}
    ids = {side: fleet.table(query, columns=["scenario_id"])["scenario_id"].iloc[[5, 50]].tolist()
           for side, query in sides.items()}
    comparison = SimpleNamespace(corpus_url=home.demo, source=sides["P"], target=sides["Q"])
    places = {"regions": [{"scenes": {"P": ids["P"], "Q": ids["Q"][:1]}}], "without_support": [
        {"scenes": {"P": [], "Q": ids["Q"][1:]}}]}
    found = read_scenes(comparison, places)
    assert set(found.by_id) == {*ids["P"], *ids["Q"]} and found.reason == ""
    for name, scenario in found.by_id.items():
        drawn = scene(scenario, name)
        assert 'class="way ego"' in drawn and 'class="body ego"' in drawn and "road" in drawn and len(drawn) < 60_000
    gone = read_scenes(SimpleNamespace(corpus_url=f"{home.demo}-gone", source="", target=""), places)
    assert gone.by_id == {} and "does not exist" in gone.reason
