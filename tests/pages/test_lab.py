"""The lab in all its parts: the paper's cases, fleets of one's own size, and the truth of a comparison."""

import re

import pytest

from avshift_core.jobs.kinds import job_key
from avshift_core.laboratory.demo import DemoTruth
from avshift_core.laboratory.fleet import fleet_steps
from avshift_core.laboratory.line import line_steps
from avshift_core.progress import finish
from avshift_core.scenario.simulate.truth import read_truth
from avshift_core.shift.calibrate import HEADLINE
from avshift_core.shift.gate import TITLES
from tests.pages.conftest import QUICK, case_link, run_through, words

LINE = {"lab_n": "2000", **{name: str(value) for name, value in QUICK.items()}}
WEEKS = {"lab": "truth", "P": "period=2026-W11,area=harbor", "Q": "period=2026-W12,area=harbor",
         **{name: str(value) for name, value in QUICK.items()}}
SETUP = {"n": 400, "drives": 20, "event_rate": 0.1, "drive_share": 0.2, "shift": True, "repeats": 4}
OWN = {"lab": "fleet", "like": "own", "fleet_n": "400", "fleet_drives": "20", "repeats": "4"}


@pytest.fixture(scope="module")
def cases():
    return finish(line_steps(2000, config=QUICK))


@pytest.fixture
def fleets(home):
    """Four fleets, kept where the page looks for them; quicker settings than the page's own."""
    check = finish(fleet_steps(**SETUP, config=QUICK, jobs=1))
    home.results.put(job_key("fleet_check", SETUP), check)
    yield check
    home.results.path(job_key("fleet_check", SETUP)).unlink()


def table(page, column: str) -> dict[str, str]:
    """Rows of the first table: what stands under `column`."""
    frame = page.table[0].value
    return dict(zip(frame.iloc[:, 0], frame[column], strict=True))


def shown(estimate) -> str:
    return f"{estimate.mu:.4f} ({estimate.lo:.4f} to {estimate.hi:.4f})"


def test_the_papers_cases_stand_beside_ours(open_page, cases):
    page = open_page("pages/lab.py", LINE)
    assert "All three verdicts are right." in words(page)
    paper, here = (table(page, f"One kind more frequent: {which}") for which in ("paper", "here"))
    assert (paper["Accuracy"], paper["Rate observed in P"]) == ("0.531", "0.3466")
    assert paper["Rate observed in Q"] == "0.4097"
    assert paper["Calibrated, regions as in the paper"] == "0.3915"  # the text below fig:syn_local_diff
    run = cases.run("localized")
    assert here["Accuracy"] == f"**{run.analysis.global_test.acc:.3f}**"
    assert here["Calibrated, cell by cell"] == shown(run.analysis.calibrate(10.0).strata)
    assert here["True rate of Q"] == "**0.4118**"  # numerical integration, METHOD section 5
    assert table(page, "Same traffic: paper")["p, classifier"] == "0.58"
    assert table(page, "Everything changed: here")["Calibrated, cell by cell"] == "withheld"
    assert len(page.get("plotly_chart")) == 2


def test_the_clip_moves_the_table_and_the_case_changes_the_picture(open_page, cases):
    page = open_page("pages/lab.py", LINE)
    page.select_slider(key="url_B").set_value(3.0).run()
    here = table(page, "One kind more frequent: here")
    assert here["Calibrated, cell by cell"] == shown(cases.run("localized").analysis.calibrate(3.0).strata)
    page.get("button_group")[-1].set_value("global").run()
    assert (page.query_params["case"], page.query_params["B"]) == ("global", "3")
    assert "Localization stopped on purpose" in words(page) and "withheld" in words(page)


def test_the_papers_cases_open_without_a_corpus(open_page):
    page = open_page("pages/lab.py", {**LINE, "corpus": "no such corpus"})
    assert "All three verdicts are right." in words(page) and not page.error


def test_a_setting_that_is_none_is_a_sentence(open_page):
    page = open_page("pages/lab.py", {**LINE, "gamma_small": "lots"})
    assert "gamma\\_small" in page.error[0].value and "no value for it" in page.error[0].value.replace("\\", "")
    page = open_page("pages/lab.py", {"lab": "fleet", "like": "own", "fleet_n": "250", "fleet_drives": "300"})
    assert "drives is 300; it must be from 10 to 250." in page.error[0].value.replace("\\", "")


def test_an_unknown_part_or_number_counts_as_the_default(open_page):
    page = open_page("pages/lab.py", {**LINE, "lab": "nowhere", "case": "<script>", "lab_seed": "minus one"})
    assert "All three verdicts are right." in words(page) and "script" not in words(page)


def test_fleets_tell_how_far_off_the_numbers_are(open_page, fleets):
    page = open_page("pages/lab.py", OWN)
    shown = {m.label: m.value for m in page.metric}
    right, rms = fleets.verdicts["right"], fleets.check(HEADLINE).rms.value
    assert shown["Verdict right"] == f"{right.count} of 4" and all(m.help for m in page.metric)
    assert shown["Calibrated rate, off by"] == f"{100 * rms:.2f} pp"
    assert shown["Observed rate, off by"] == f"{100 * fleets.check('naive').rms.value:.2f} pp"
    assert f"With 400 scenarios in 20 drives the verdict is right in {right.count} of 4 fleets" in words(page)
    assert len(page.get("plotly_chart")) == 5


def test_fleets_wait_for_a_click(open_page):
    page = open_page("pages/lab.py", {**OWN, "fleet_n": "90000", "fleet_drives": "900", "repeats": "40"})
    assert [b.label for b in page.button if b.label == "Draw the fleets"] and not page.metric
    assert re.search(r"take about \d\d+ minutes", words(page))


def test_a_fleet_is_as_large_as_the_comparison(open_page):
    page = open_page("pages/lab.py", {**case_link("localized", metric="ell"), "lab": "fleet"})
    # 2,000 scenarios a side in 100 drives; 35.3 % of P have the event (the naive rate of the overview)
    assert "**2,000** scenarios a side · **100** drives · **35.30" in words(page)


@pytest.mark.slow
def test_fleets_are_drawn_by_a_job(open_page, home):
    link = {**OWN, "fleet_n": "250", "shifted": "0"}
    page = open_page("pages/lab.py", link)
    next(b for b in page.button if b.label == "Draw the fleets").click()
    run_through(page)
    key = job_key("fleet_check", {**SETUP, "n": 250, "shift": False})
    check = home.results.get(key)
    assert check.repeats == 4 and (check.runs["expected"] == "no_shift").all()
    assert f"and a shift is claimed in {check.verdicts['wrong'].count}" in words(page)


def test_truth_of_the_comparison_on_the_demo(open_page, home):
    page = open_page("pages/lab.py", {**WEEKS, "metric": "hard_brake"})
    told = next(found for path in home.results.folder.glob("demo_truth-*.avs")
                if isinstance(found := home.results.get(path.stem), DemoTruth)
                and found.target == (("harbor", "2026-W12"),))
    truth = read_truth(home.demo)
    true_rate = truth.mean("hard_brake", "v4.1", ("harbor", "2026-W12"))
    shown = {m.label: m.value for m in page.metric}
    assert float(shown["True rate in Q"].removesuffix("%")) == pytest.approx(100 * true_rate, abs=0.0051)
    gamma_star = truth.gamma_star([("harbor", "2026-W11")], [("harbor", "2026-W12")])
    assert shown["Best possible advantage"] == f"{gamma_star:.3f}" == f"{told.gamma_star:.3f}"
    assert TITLES[told.expected] in words(page) or "is right" in words(page)
    assert len(page.get("plotly_chart")) == 2 and all(m.help for m in page.metric)
    page.select_slider(key="url_B").set_value(1.0).run()  # no weight above 1: the estimate leans towards P
    moved = {m.label: m.value for m in page.metric}
    assert moved["Calibrated, off by"] != shown["Calibrated, off by"]
    assert moved["True rate in Q"] == shown["True rate in Q"]


def test_a_corpus_without_truth_says_so(open_page):
    page = open_page("pages/lab.py", {**case_link("localized"), "lab": "truth"})
    assert "no simulated fleet" in page.info[0].value and "demo" in page.info[0].value


def test_a_part_of_a_week_says_what_to_choose(open_page):
    cohorts = {side: f"period={week},area=harbor|old_town,route=ring|arterials|quays"
               for side, week in (("P", "2026-W11"), ("Q", "2026-W12"))}
    page = open_page("pages/lab.py", {**WEEKS, **cohorts})
    assert "by period and area alone" in page.info[0].value.replace("\\", "")


def test_two_cars_in_p_have_no_single_rate(open_page):
    page = open_page("pages/lab.py", {**WEEKS, "P": "period=2026-W11|2026-W16,area=harbor", "view": "context"})
    assert "mixes AV versions" in words(page)
    assert "True rate in Q" not in {m.label for m in page.metric}
