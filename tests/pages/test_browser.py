"""The dashboard in a real Chromium: links, cohorts, lasso, playback, slider, jobs, two people, light and dark."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.gate import TITLES
from pages.common.frame import PAGES
from tests.pages.browsing import PATIENCE, Visit
from tests.pages.conftest import ROOT, case_link, fleet_link, versions_link

pytestmark = pytest.mark.browser
SCREENSHOTS = ROOT / "docs" / "screenshots"
PATHS = {title: "" if file == "app.py" else Path(file).stem for title, (file, _, _) in PAGES.items()}
COLD = {title: path for title, path in PATHS.items() if path}
SEEN = {  # what a reader sees when a page is there
    "Overview": "How far apart are P and Q?", "Global test": "Could chance do that?", "Latent map": "scenarios",
    "Regions": "What sets it apart", "Scenario": "scenario", "Calibration": "By every estimator",
    "Versions": "Which traffic to drive next", "Clusters": "cluster", "Monitor": "How much speaks for a change?",
    "Lab": "What the paper prints", "Data & models": "Corpora", "Glossary": "Advantage",
}


def comparison_behind(home, visit: Visit):
    """The engine's own result behind a page: the run stands in the sidebar."""
    run = re.search(r"Run\s+([0-9a-f]{12})", visit.page.get_by_test_id("stSidebar").inner_text())[1]
    found = (home.results.get(path.stem) for path in home.results.folder.glob("comparison-*.avs"))
    return next(c for c in found if c.run == run)


def test_the_first_page_of_a_cold_server_needs_neither_torch_nor_umap(visit, dashboard):
    one = visit("regions", case_link("localized"))  # a deep link is the first thing that this server sees
    expect(one.page.get_by_text(SEEN["Regions"]).first).to_be_visible(timeout=PATIENCE)
    loaded = Path(f"/proc/{dashboard.process.pid}/maps").read_text()
    assert "libtorch" not in loaded and "llvmlite" not in loaded


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("title", PATHS)
def test_every_page_opens_by_its_link_and_is_photographed(visit, title, scheme, home, weeks):
    link = {**weeks, "data": "encoder"}  # the list of corpora would show where these tests run
    if title == "Scenario":
        rows = open_corpus(home.corpora.read()["Two weeks"]).table(link["Q"] + ",category=agent_cutting_in",
                                                                   columns=["scenario_id"])
        link["scenario"] = rows["scenario_id"].iloc[0]
    if title == "Versions":
        link = versions_link()
    one = visit(PATHS[title], link, scheme=scheme)
    expect(one.page.get_by_test_id("stMain").get_by_text(SEEN[title]).first).to_be_visible(timeout=PATIENCE)
    one.settle()
    assert one.page.get_by_test_id("stException").count() == 0
    tops = "all => new Set(all.map(e => Math.round(e.getBoundingClientRect().top))).size"
    assert one.page.locator(".st-key-menu [data-testid=stPageLink]").evaluate_all(tops) == 1, "the menu wraps"
    name = PATHS[title] or "overview"
    one.shoot(SCREENSHOTS / f"{name}_{scheme}.png")
    assert (SCREENSHOTS / f"{name}_{scheme}.png").stat().st_size > 20_000


@pytest.mark.parametrize("title", PATHS)
def test_nothing_is_cut_off_on_a_small_screen(visit, title, weeks):
    one = visit(PATHS[title], versions_link() if title == "Versions" else weeks, width=1024)
    expect(one.page.get_by_test_id("stMain").get_by_text(SEEN[title]).first).to_be_visible(timeout=PATIENCE)
    one.settle()
    main = one.page.get_by_test_id("stMain")
    assert main.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), "the page scrolls sideways"
    for value in one.page.get_by_test_id("stMetricValue").all():
        assert value.evaluate("e => [e, ...e.querySelectorAll('*')].every(x => x.scrollWidth <= x.clientWidth + 1 || "
                              "getComputedStyle(x).display === 'inline')"), value.inner_text()


def test_choosing_another_cohort_and_going_back(visit):
    one = visit("", case_link("localized"))
    expect(one.page.get_by_text(TITLES["localize"]).first).to_be_visible(timeout=PATIENCE)
    side = one.page.get_by_test_id("stSidebar")
    field = side.get_by_test_id("stMultiSelect").filter(has_text="Area").nth(1)
    field.get_by_role("button", name=re.compile("Remove|delete|clear", re.IGNORECASE)).first.click()
    field.locator("input").click()
    one.page.get_by_role("option", name="none").click()
    one.page.keyboard.press("Escape")
    expect(one.page.get_by_text(TITLES["no_shift"]).first).to_be_visible(timeout=PATIENCE)
    assert one.link["Q"] == "period=Q,area=none"
    one.page.go_back()
    one.page.go_back()
    expect(one.page.get_by_text(TITLES["localize"]).first).to_be_visible(timeout=PATIENCE)
    assert one.link["Q"] == "period=Q,area=localized"


def test_the_slider_gives_the_engines_numbers_and_the_link_reopens_the_view(visit, home):
    one = visit("calibration", case_link("localized", metric="ell"))
    shown = one.metric("Calibrated to Q")
    expect(shown).to_be_visible(timeout=PATIENCE)
    one.settle()
    before = shown.inner_text()
    one.page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    for _ in range(3):  # 10 -> 8 -> 6 -> 5
        one.page.keyboard.press("ArrowLeft")
    expect(shown).not_to_have_text(before, timeout=PATIENCE)
    one.page.wait_for_url(lambda url: "B=5" in url)
    one.settle()
    mu = comparison_behind(home, one).analysis.calibrate(5.0, "ell").strata.mu
    assert float(shown.inner_text().rstrip("%\N{NO-BREAK SPACE} ")) == pytest.approx(100 * mu, abs=0.0051)
    calibrated = shown.inner_text()
    again = visit("calibration", one.link)  # a fresh browser
    expect(again.metric("Calibrated to Q")).to_have_text(calibrated, timeout=PATIENCE)
    one.menu("Overview")  # another page keeps it
    # Both pages show this number, so only what the other page alone has tells that a step back has a page to leave.
    expect(one.page.get_by_text(SEEN["Overview"]).first).to_be_visible(timeout=PATIENCE)
    expect(one.metric("Calibrated to Q")).to_have_text(calibrated, timeout=PATIENCE)
    assert one.link["B"] == "5" and one.link["metric"] == "ell"
    one.page.go_back()
    expect(one.page.get_by_text("How much does the clip matter?").first).to_be_visible(timeout=PATIENCE)
    expect(one.metric("Calibrated to Q")).to_have_text(calibrated, timeout=PATIENCE)
    one.page.go_back()  # one step of the slider
    one.page.wait_for_url(lambda url: "calibration" in url and "B=5" not in url)
    expect(shown).not_to_have_text(calibrated, timeout=PATIENCE)
    one.page.go_forward()
    expect(shown).to_have_text(calibrated, timeout=PATIENCE)
    one.page.go_forward()
    expect(one.page.get_by_text(SEEN["Overview"]).first).to_be_visible(timeout=PATIENCE)
    assert one.link["B"] == "5"


def test_a_job_is_cancelled_for_all_who_wait_and_another_session_is_not_disturbed(visit):
    other = visit("", case_link("localized"))
    expect(other.metric("Advantage")).to_be_visible(timeout=PATIENCE)
    link = fleet_link(seed=4, classifier="mlp", repeats=50)  # long enough to be cancelled
    one, twin = visit("", link), visit("", link)
    for tab in (one, twin):  # both see the same job
        expect(tab.page.get_by_role("button", name="Cancel")).to_be_visible(timeout=PATIENCE)
    one.page.get_by_role("button", name="Cancel").click()
    for tab in (one, twin):  # how soon: benchmarks/dashboard.py; other tests may have the cores here
        expect(tab.page.get_by_text("cancelled. Nothing was lost").first).to_be_visible(timeout=PATIENCE)
    other.page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    other.page.keyboard.press("ArrowLeft")
    other.page.wait_for_url(lambda url: "B=8" in url)


def test_a_page_goes_on_when_what_came_between_two_jobs_is_lost(chromium, dashboard):
    """Streamlit drops a whole run's messages but the first when a run of a fragment overtakes them."""
    page = chromium.new_page()
    whole_runs, lost = [], []

    def between(browser) -> None:
        server = browser.connect_to_server()

        def pass_on(data: bytes) -> None:
            message = ForwardMsg.FromString(data)
            if message.HasField("new_session") and not message.metadata.run.fragment_ids:
                whole_runs.append(message)
            elif len(whole_runs) == 2 and not message.metadata.run.fragment_ids:  # the comparison has made room
                lost.append(message)
                return
            browser.send(data)

        server.on_message(pass_on)

    page.route_web_socket("**/_stcore/stream", between)
    page.goto(f"{dashboard.url}/lab?{urlencode(fleet_link(lab='truth', seed=12))}")
    expect(page.get_by_text("Best possible advantage").first).to_be_visible(timeout=PATIENCE)
    assert lost
    page.close()


def test_a_reload_loses_nothing(visit):
    one = visit("", case_link("localized", seed=11))
    expect(one.page.get_by_test_id("stProgress").or_(one.metric("Advantage")).first).to_be_visible(timeout=PATIENCE)
    one.page.reload()
    expect(one.metric("Advantage")).to_be_visible(timeout=PATIENCE)

