"""The pack: the engine's numbers, in every verdict; the same bytes again; and data that never becomes markup."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError
from avshift_core.evidence.facts import KIND, OF_LOOK
from avshift_core.evidence.pack import pack_steps
from avshift_core.evidence.sentences import _indicator
from avshift_core.jobs.kinds import steps_of
from avshift_core.progress import finish
from avshift_core.report import config_from_report
from avshift_core.shift.gate import TITLES
from avshift_core.shift.sensitivity import Row, Sensitivity, Width
from avshift_core.workspace import Workspace
from tests.evidence.conftest import MADE, pack_of
from tests.pages.conftest import CASES, QUICK

SECTIONS = ["question", "cohorts", "verdict", "map", "regions", "rates", "clip", "trust", "balance", "metrics",
            "sensitivity", "limits", "ledger", "review", "origin"]
TAGS = {"html", "head", "meta", "title", "style", "body", "p", "h1", "h2", "h3", "span", "div", "b", "nav", "ol", "ul",
        "li", "a", "section", "article", "figure", "figcaption", "svg", "line", "rect", "text", "polygon", "polyline",
        "circle", "path", "image", "g", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "code"}
HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(2)> & {{x}} `$(id)`"


class Reader(HTMLParser):
    """Every tag, attribute and word of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids, self.words = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(pack):
    return Reader(pack.html), json.loads(pack.json)


def rate(value):
    return f"{100 * value:.2f}\N{NO-BREAK SPACE}%"


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_every_section_and_the_engines_numbers(cases, packs, case):
    page, facts = read(packs[case])
    assert page.ids == SECTIONS and TITLES[CASES[case]] in page.text
    analysis = cases[case].analysis
    c = analysis.calibrate(10.0, "ell")
    assert facts["kind"] == KIND and facts["run"] == cases[case].run
    for name in ("naive", "target", "strata", "ipw"):
        assert facts["metric"]["estimates"][name]["value"] == pytest.approx(vars(getattr(c, name)))
        assert rate(getattr(c, name).mu).replace("\N{NO-BREAK SPACE}", " ") in page.text
    moves = sum(part["move"]["mu"] for part in facts["metric"]["contributions"])
    assert moves == pytest.approx(c.strata.mu - c.naive.mu, abs=1e-12)  # the steps add up
    assert [row["name"] for row in facts["metrics"]] == list(cases[case].metrics)
    assert facts["verdict"]["gamma_lcb"] == analysis.global_test.gamma_lcb
    assert facts["source"]["n"] == 2000 and facts["source"]["drives"] == 100
    assert (facts["source"]["first_day"], facts["target"]["last_day"]) == ("2026-03-02", "2026-03-09")


def test_regions_are_named_measured_and_explained(cases, packs):
    page, facts = read(packs["localized"])
    analysis = cases["localized"].analysis
    regions = facts["places"]["regions"]
    assert [r["region"] for r in regions] == [f"R{r.k}" for r in analysis.local.regions] and regions
    by_name = {part["name"]: part for part in facts["metric"]["contributions"]}
    for r, found in zip(regions, analysis.local.regions, strict=True):
        assert f"{r['region']} · {r['name']}" in page.text
        assert r["p"]["mu"] == pytest.approx(found.p_k) and r["q"]["mu"] == pytest.approx(found.q_k)
        assert r["contribution"] == by_name[r["region"]]["move"] and len(r["scenes"]["P"]) == 3
    assert "have no states" in page.text  # ready-made latents: no pictures, and why
    assert "Standardised difference" in page.text and page.tags.count("figure") == 6


def test_a_global_shift_stops_localization_and_withholds_the_number(packs):
    page, facts = read(packs["global"])
    assert facts["places"]["regions"] == [] and not facts["places"]["looked_for"]
    assert "Localization stopped on purpose" in page.text and "force_localize" in page.text
    assert facts["metric"]["headline"] is None and facts["metric"]["withheld_by"]
    assert "The calibrated rate is withheld" in page.text and "must not be quoted" in page.text
    keys = page.text[page.text.index("Advantage over chance"):page.text.index("1. The question")]
    assert "withheld" in keys and rate(facts["metric"]["estimates"]["strata"]["value"]["mu"])[:5] not in keys


def test_the_same_again_but_for_one_line(cases, packs):
    again = pack_of(cases["localized"], "ell")
    assert (again.html, again.json) == (packs["localized"].html, packs["localized"].json)
    later = pack_of(cases["localized"], "ell", made="2027-01-01 00:00 UTC")
    for first, second in ((again.html, later.html), (again.json, later.json)):
        different = [a for a, b in zip(first.splitlines(), second.splitlines(), strict=True) if a != b]
        assert len(different) == 1 and MADE in different[0]
    clock = finish(pack_steps(cases["localized"], "ell"))  # dated by itself
    assert re.search(r"Made \d{4}-\d\d-\d\d \d\d:\d\d UTC", clock.html)


def test_another_clip_and_metric_are_another_pack(cases, packs):
    facts = json.loads(pack_of(cases["localized"], "ttc_min_s<3", 2.0).json)
    c = cases["localized"].analysis.calibrate(2.0, "ttc_min_s<3")
    assert facts["metric"]["event"] == "Time to collision below 3 s" and facts["metric"]["B"] == 2.0
    assert facts["metric"]["estimates"]["strata"]["value"]["mu"] == pytest.approx(c.strata.mu)
    assert {row["B"] for row in facts["metric"]["sweep"]} >= {2.0, 10.0}
    assert facts["config"]["B"] == 10.0 and json.loads(packs["localized"].json)["run"] == facts["run"]


def test_it_runs_nothing_and_asks_nobody(packs):
    page = Reader(packs["localized"].html)
    assert set(page.tags) <= TAGS
    assert ("http-equiv", "Content-Security-Policy") in page.attributes
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "style", "srcset")]
    links = [value for name, value in page.attributes if name == "href"]
    assert links and all(value.startswith(("#", "data:image/png;base64,")) for value in links)
    assert {value[1:] for value in links if value[0] == "#"} <= set(page.ids)
    style = packs["localized"].html.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style and "@import" not in style


def test_hostile_words_are_shown_as_words(cases):
    c = cases["localized"]
    analysis = replace(c.analysis, P=replace(c.analysis.P, name=HOSTILE), Q=replace(
        c.analysis.Q, obs=c.analysis.Q.obs.assign(category=HOSTILE, road_type="</style><script>"), name="</title>"))
    families = tuple(replace(f, label=HOSTILE) for f in c.families)
    looks = [{**dict.fromkeys(OF_LOOK, HOSTILE), "gamma_hat": 0.1, "gamma_lcb": 0.1, "gamma_ucb": 0.1}]
    notes = [{"region": 1, "name": HOSTILE, "comment": HOSTILE, "status": HOSTILE, "changed": HOSTILE}]
    hostile = replace(c, analysis=analysis, families=families, source=HOSTILE, corpus_url=HOSTILE, cautions=(HOSTILE,),
                      left_out={HOSTILE: HOSTILE})
    pack = pack_of(hostile, "ell", looks=looks, notes=notes)
    page = Reader(pack.html)
    assert set(page.tags) <= TAGS and "<script" not in pack.html and "<img" not in pack.html
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") > 10 and json.loads(pack.json)["source"]["name"] == HOSTILE


def test_without_drives_and_without_an_event(bare):
    page, facts = read(pack_of(bare))
    assert facts["metric"] is None and facts["metrics"] == [] and facts["source"]["drives"] is None
    assert "independence is assumed" in page.text and "No event varies" in page.text
    assert {"discomfort"} <= set(facts["left_out"]) and "0 in every scenario" in page.text
    assert [key for key in SECTIONS if key != "balance"] == page.ids
    assert facts["source"]["km"] is None and "not recorded" in page.text
    with pytest.raises(AVShiftError, match=r"'discomfort' cannot be shown: .* 0 in every scenario"):
        pack_of(bare, "discomfort")


def test_what_was_not_given_is_said(packs):
    page, facts = read(packs["localized"])
    assert facts["ledger"] is None and facts["notes"] is None and facts["sensitivity"] is None
    for sentence in ("No ledger was given", "No notes of reviewers were given", "The studies were not run",
                     "No threshold was given"):
        assert sentence in page.text


def test_looks_notes_and_studies_are_shown(cases):
    c = cases["localized"]
    look = {"when": "2026-03-01T10:00:00Z", "kind": "comparison", "source": c.source, "target": c.target, "run": "abc",
            "verdict": "localize", "gamma_hat": 0.05, "gamma_lcb": 0.03, "gamma_ucb": 0.07}
    looks = [SimpleNamespace(**{**look, "when": f"day {i}"}) for i in range(60)]
    looks.append(SimpleNamespace(**{**look, "source": c.target, "target": "area=none"}))
    notes = {1: SimpleNamespace(region=1, name="the bulge", comment="look at the junction", status="accepted",
                                changed="2026-03-02")}
    row = Row("classifier family", "knn", 0.61, 0.01, 0.11, 5, (0.6, 0.62))
    studies = Sensitivity((row,), (Width(250, 0.1, 0.06),))
    page, facts = read(pack_of(c, "ell", looks=looks, notes=notes, sensitivity=studies))
    assert facts["ledger"]["looks"] == 61 and facts["ledger"]["of_these_cohorts"] == 60
    assert len(facts["ledger"]["listed"]) == 40 and "The last 40 of 61." in page.text and "day 30" in page.text
    assert "at most 100%" in page.text  # 61 times 5 % is above 1
    assert "R1 · the bulge" in page.text and "look at the junction" in page.text
    assert f"Proposed name: {facts['places']['regions'][0]['name']}" in page.text
    assert "classifier family" in page.text and "0.6100" in page.text  # mean of 0.60 and 0.62


def test_a_threshold_holds_is_violated_or_stays_open(cases):
    c = cases["localized"]
    value = c.analysis.calibrate(10.0, "ell").strata
    for threshold, state in ((value.hi, "holds"), (value.mu, "undecided"), (value.lo * 0.9, "violated")):
        found = json.loads(pack_of(c, "ell", threshold=threshold).json)["words"]["indicator"]
        assert (found["state"], found["threshold"]) == (state, threshold)
    withheld = json.loads(pack_of(cases["global"], "ell", threshold=1.0).json)["words"]["indicator"]
    assert withheld["state"] == "withheld"
    with pytest.raises(AVShiftError, match="it is a rate, so give a number from 0 to 1"):
        pack_of(c, "ell", threshold=5)


def test_a_given_map_is_drawn_and_another_ones_is_refused(cases, packs):
    c = cases["localized"]
    n = c.analysis.sample.n
    xy = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    facts = json.loads(pack_of(c, "ell", projection=SimpleNamespace(umap=xy)).json)
    assert facts["map"]["title"] == "UMAP" and (facts["map"]["n_P"], facts["map"]["n_Q"]) == (2000, 2000)
    assert json.loads(packs["localized"].json)["map"]["title"] == "Principal axes 1 and 2"
    with pytest.raises(AVShiftError, match=r"shape \(7, 2\) for 4,000 scenarios"):
        pack_of(c, "ell", projection=SimpleNamespace(umap=xy[:7]))


def test_an_unknown_metric_names_those_there_are(cases):
    with pytest.raises(AVShiftError, match=r"no event 'crash' in this comparison; found .*ell"):
        pack_of(cases["none"], "crash")


def test_the_settings_come_back_from_the_facts(packs, tmp_path):
    (tmp_path / "pack.json").write_text(packs["localized"].json)
    assert config_from_report(tmp_path / "pack.json") == AnalysisConfig(**QUICK)


def test_as_a_job_it_takes_what_is_kept(cases, tmp_path):
    workspace = Workspace(tmp_path)
    studies = Sensitivity((Row("classifier family", "knn", 0.61, 0.01, 0.11, 5, (0.6, 0.62)),), ())
    workspace.results.put("comparison-1", cases["localized"])
    workspace.results.put("sensitivity-1", studies)
    order = {"comparison": "comparison-1", "sensitivity": "sensitivity-1", "metric": "ell", "B": 10.0, "made": MADE}
    pack = finish(steps_of("evidence", order, workspace))
    assert pack == pack_of(cases["localized"], "ell", sensitivity=studies)  # stored and read again: the same bytes
    workspace.results.put("evidence-1", pack)
    assert workspace.results.get("evidence-1") == pack


@pytest.mark.parametrize(("calibrated", "observed", "state"), [
    ((0.025, 0.035), (0.020, 0.030), "holds"), ((0.025, 0.035), (0.045, 0.055), "violated in Q"),
    ((0.025, 0.035), (0.035, 0.045), "undecided in Q"), ((0.035, 0.045), (0.045, 0.055), "violated in Q"),
    ((0.035, 0.045), (0.035, 0.045), "undecided"), ((0.045, 0.055), (0.020, 0.030), "violated")])
def test_a_claim_cannot_hold_against_what_q_itself_has_shown(calibrated, observed, state):
    values = {name: {"value": {"mu": (lo + hi) / 2, "lo": lo, "hi": hi}}
              for name, (lo, hi) in (("strata", calibrated), ("target", observed))}
    facts = {"metric": {"event": "x", "headline": "strata", "estimates": values}, "threshold": 0.04}
    assert _indicator(facts)["state"] == state
