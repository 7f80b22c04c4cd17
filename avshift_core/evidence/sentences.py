"""What the pack says in words: question, estimand, conclusion, limits, and where a reviewer finds what."""

from __future__ import annotations

from collections.abc import Mapping

from avshift_core.evidence.numbers import count, points, rate, span
from avshift_core.shift.gate import GLOBAL_SHIFT, LOCALIZE, NO_SHIFT

RAVE = ("Scanlon et al. (2024), RAVE Checklist: Recommendations for Overcoming Challenges in Retrospective Safety "
        "Studies of Automated Driving Systems, arXiv:2408.07758. Fifteen recommendations under three headings.")
UL4600 = ("ANSI/UL 4600, Standard for Safety for the Evaluation of Autonomous Products, chapter 16; the three parts as "
          "in P. Koopman, A More Precise Definition for ANSI/UL 4600 Safety Performance Indicators (2021).")
CROSSWALK = (  # heading of the checklist -> what bears on it: (question of a reviewer, anchor of a section, answer)
    ("Quality and validity", (
        ("Were like things compared?", "metrics", "One definition and version of the event on both sides; cohorts "
         "measured by two versions are refused."),
        ("Was the exposure made comparable?", "rates", "The rate of P is re-weighted to the traffic of Q; the observed "
         "rates stand beside it."),
        ("What could not be made comparable?", "trust", "Traffic that P never met is counted and never weighted; what "
         "the weights leave behind is tested."),
        ("Is the uncertainty honest?", "verdict", "Bounds and intervals count drives where there are drive ids and no "
         "other bound was asked for; each cohort is also tested against itself."),
        ("Does the result hang on one choice?", "clip", "Every way of weighting over every clip, and, where it "
         "was run, the test with other classifiers and sizes."),
    )),
    ("Transparency", (
        ("Which data?", "cohorts", "Queries, counts, drives, days, distance and hours; fingerprints over every byte."),
        ("Which software and settings?", "origin", "Run, code, model, every setting with its default, seeds and "
         "library versions."),
        ("How often was there a look?", "ledger", "Every comparison of this corpus, where a ledger is kept."),
        ("What was left out?", "metrics", "Events that could not be compared, with the reason."),
    )),
    ("Interpretation", (
        ("What exactly is claimed?", "question", "The quantity in words and as a formula, and a sentence on what it "
         "is not."),
        ("What does it not adjust for?", "limits", "Assumptions and limits, those of this comparison first."),
        ("May the number be read at all?", "trust", "Every check has a threshold; a red one withholds the number."),
        ("Where does the difference come from?", "regions", "Regions with examples and with what each adds to the "
         "difference."),
    )),
)
LONGEST = 70  # characters of a cohort in the title
NOT_THE_CAR = {
    "full": "The latents show the whole scenario, the AV's own reaction included. Between two AV versions they would "
            "adjust away what the version itself changed; compare versions by the context view.",
    "context": "The latents show only what the AV did not cause, up to 2 s of the others' motion: traffic that begins "
               "later is not adjusted for.",
    None: "The latents were imported: whether they hold the AV's own reaction is not known here.",
}


def words(facts: Mapping) -> dict:
    """All sentences of a pack, from its other facts."""
    return {
        "title": " against ".join(_names(facts)), "question": _question(facts),
        "estimand": _estimand(facts), "conclusion": _conclusion(facts), "limits": _limits(facts),
        "looks": _looks(facts), "indicator": _indicator(facts), "sources": {"rave": RAVE, "ul4600": UL4600},
        "crosswalk": [{"heading": heading, "rows": [dict(zip(("asks", "section", "answer"), row, strict=True))
                                                    for row in rows]} for heading, rows in CROSSWALK],
    }


def _names(facts: Mapping) -> tuple[str, str]:
    """What both cohorts are called; where that is the same name, the values that they were chosen by."""
    P, Q = facts["source"], facts["target"]
    if P["name"] != Q["name"]:
        return P["name"], Q["name"]
    return _values(P["query"]), _values(Q["query"])


def _values(query: str) -> str:
    """The values of a query, as many as a title has room for.

    >>> _values("period=2026-W10|2026-W11,area=harbor")
    '2026-W10 + 2026-W11, harbor'
    """
    words = ", ".join(" + ".join(part.partition("=")[2].split("|")) for part in query.split(","))
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1].rstrip()}…"


def _question(facts: Mapping) -> list[str]:
    (P, Q), metric = _names(facts), facts["metric"]
    if metric is None:
        return [f"Did the AV meet other traffic in Q ({Q}) than in P ({P}), and where do they differ?"]
    return [f"The rate of “{metric['event']}” was observed in P ({P}). Q ({Q}) is the traffic that the rate is wanted "
            "for. Is the rate of P also right for the traffic of Q, and if not, what would it have been there?",
            "If Q was driven too, its own rate is known: then the difference between the two observed rates is split "
            "into what the change of traffic explains and what is left over, the car or what the latents do not see."]


def _estimand(facts: Mapping) -> dict:
    metric = facts["metric"]
    if metric is None:
        return {"formula": "", "words": "No event varies in these cohorts, so there is no rate to calibrate.",
                "is_not": ""}
    return {
        "formula": "θ = E over z from Q of  E[ event | z, as driven in P ]",
        "words": f"The share of scenarios with “{metric['event']}” if scenarios came as often as in Q, and the AV and "
                 "everything that the latents do not show behaved in each kind of scenario as in P.",
        "is_not": "It is no rate per kilometre, no forecast of other weeks or places, and it does not say how severe "
                  "an event was.",
    }


def _conclusion(facts: Mapping) -> list[str]:
    verdict, metric = facts["verdict"], facts["metric"]
    found = [_where(facts)]
    if not verdict["decided"]:
        found.append("The verdict is not settled: the interval of the advantage reaches into the next band.")
    if metric is None:
        return [*found, "No event varies in these cohorts: there is no rate to calibrate."]
    event, naive, target = metric["event"], metric["estimates"]["naive"], metric["estimates"]["target"]
    observed = (f"“{event}” was observed in {rate(naive['value']['mu'])} of P's scenarios ({span(naive['value'])}) and "
                f"in {rate(target['value']['mu'])} of Q's ({span(target['value'])}).")
    if metric["headline"] is None:
        names = ", ".join(f"“{title}”" for title in metric["withheld_by"])
        return [*found, observed, f"The calibrated rate is withheld, because of {names}."]
    value = metric["estimates"][metric["headline"]]["value"]
    left = metric["residual"]
    inside = left["lo"] <= 0 <= left["hi"]
    return [
        *found, observed,
        f"Calibrated to the traffic of Q, P's rate is {rate(value['mu'])} ({span(value)}). The traffic explains "
        f"{points(metric['traffic'])}.",
        f"Left over are {points(left)}: " + (
            "within what chance gives." if inside else
            "another AV version, what the latents do not show, or traffic that cells, clip and missing overlap leave."),
    ]


def _where(facts: Mapping) -> str:
    verdict, regions = facts["verdict"], facts["places"]["regions"]
    if verdict["verdict"] == NO_SHIFT:
        upto = f"{verdict['gamma_ucb']:.3f}"
        return f"No classifier that was trained tells P from Q by more than {upto}." if verdict["decided"] else \
            f"No shift between P and Q could be shown; an advantage up to {upto} is not excluded."
    if verdict["verdict"] == LOCALIZE:
        return f"Q differs from P in {count(len(regions), 'region')} of latent space." if regions else \
            "Q differs moderately from P, but in no region that could be confirmed."
    return "Q differs strongly from P, by more than regions are looked for."


def _limits(facts: Mapping) -> list[str]:
    """What bears on this comparison first, then what bears on all."""
    metric, verdict = facts["metric"], facts["verdict"]
    found = [*facts["cautions"]]
    if facts["source"]["drives"] is None:
        found.append("There are no drive ids: scenarios count as independent, and every interval is too narrow if "
                     "those of one drive are alike.")
    if verdict["verdict"] == GLOBAL_SHIFT:
        found.append("The cohorts differ strongly: weights between them are large, and rest on few scenarios.")
    if metric is not None and metric["uncovered_mass"] > 0:
        found.append(f"{rate(metric['uncovered_mass'])} of Q lies where P has next to nothing. It keeps weight 1: no "
                     "weight can speak for it.")
    found.append(NOT_THE_CAR[facts["corpus"]["view"]])
    if metric is not None:
        found += [
            "The calibrated rate assumes that two scenarios with the same latent have the same chance of an event in P "
            "and in Q. What the latents do not hold, such as weather, light, the sensors' state or the road surface "
            "where no column records it, is not adjusted for; it stays in what is left over.",
            "Weights are equal within a cell of latent space: a change of the mix inside a cell is not corrected.",
            f"One event and one clip were chosen for this pack, among {count(len(facts['metrics']), 'event')}: "
            f"intervals hold for each at {facts['config']['level']:.0%}, not for all at once.",
        ]
    return [
        *found,
        "The advantage is that of the classifiers that were trained: a lower bound of what could be seen, not the "
        "distance itself.",
        "Regions are places that some drives proposed and other drives confirmed. Their names are proposals from "
        "attributes, and describe most of their scenarios, not all.",
        "A scenario is what the log's trigger cut out. Traffic that never triggered is in neither cohort.",
    ]


def _looks(facts: Mapping) -> str:
    ledger = facts["ledger"]
    if ledger is None:
        return "No ledger was given: how often this corpus was looked at is not known here."
    alpha, n = facts["config"]["alpha"], ledger["looks"]
    told = (f"{count(n, 'comparison')} of this corpus in its ledger, {ledger['of_these_cohorts']:,} of them of these "
            "two cohorts; the monitor and sensitivity studies are not counted.")
    if ledger["other_levels"]:
        return (f"{told} {count(ledger['other_levels'], 'comparison')} had another level, bound, split or threshold, "
                "so there is no bound on how likely one of them was a false alarm.")
    if facts["verdict"]["independence_assumed"]:
        return f"{told} Without drive ids there is no bound on how likely one of them was a false alarm."
    return (f"{told} If there were no shift at all, the chance that at least one of {n:,} tests at level {alpha:g} "
            f"says so by mistake would be at most {min(1.0, n * alpha):.0%}.")


def _indicator(facts: Mapping) -> dict:
    """A metric with a threshold that a claim rests on, and whether it holds."""
    metric, threshold = facts["metric"], facts["threshold"]
    if metric is None:
        return {"metric": None, "threshold": threshold, "claim": None, "state": "no metric",
                "sentence": "No event varies in these cohorts: there is no indicator."}
    what = f"Share of scenarios with “{metric['event']}” in the traffic of Q"
    if threshold is None:
        return {"metric": what, "threshold": None, "claim": None, "state": "no threshold",
                "sentence": "No threshold was given, so this is a metric and not yet an indicator: a safety case has "
                            "to say which rate would make its claim false."}
    claim = f"In the traffic of Q, driven as in P, the rate is at most {rate(threshold)}."
    seen = metric["estimates"]["target"]["value"]
    if metric["headline"] is None:
        state, sentence = "withheld", "The calibrated rate is withheld, so it cannot support the claim."
    else:
        value = metric["estimates"][metric["headline"]]["value"]
        state = "holds" if value["hi"] <= threshold else "violated" if value["lo"] > threshold else "undecided"
        if state != "violated" and seen["lo"] > threshold:  # what Q itself has shown counts too
            state = "violated in Q"
        elif state == "holds" and seen["hi"] > threshold:
            state = "undecided in Q"
        sentence = {
            "holds": f"The whole interval ({span(value)}) lies at or below the threshold.",
            "violated": f"The whole interval ({span(value)}) lies above the threshold.",
            "undecided": f"The interval ({span(value)}) holds the threshold: the data does not decide it.",
            "violated in Q": f"The interval of what was observed in Q ({span(seen)}) lies above the threshold, "
                             f"whatever P would have shown there ({span(value)}).",
            "undecided in Q": f"The interval of what was observed in Q ({span(seen)}) reaches above the threshold; "
                              f"that of P in the traffic of Q is {span(value)}.",
        }[state]
    return {"metric": what, "threshold": threshold, "claim": claim, "state": state, "sentence": sentence}
