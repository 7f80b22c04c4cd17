"""The sections on rates: the chosen event in full, then all others in one table."""

from __future__ import annotations

from collections.abc import Mapping

from avshift_core.evidence import charts
from avshift_core.evidence.markup import EMPTY, Column, Safe, figure, join, paragraphs, table, tag
from avshift_core.evidence.numbers import SPACE, count, decimal, points, rate, signed, span
from avshift_core.words import readable

SYMBOLS = {"ok": "✓", "caution": "!", "refuse": "✕"}
GROUPS = {"category": "Category", "road_type": "Type of road", "area": "Area"}
NO_SENSITIVITY = join([
    "The studies were not run for this pack. They train the global test again with other classifiers, class ratios, "
    "sizes and capacities. Start them on the page Global test, or run ", tag(
        "code", "python -m avshift_core sensitivity --json FILE"), " on the same cohorts and give the file to ",
    tag("code", "report --sensitivity FILE"), ".",
])


def parts(facts: Mapping) -> list[tuple[str, str, Safe]]:
    """(anchor, title, content) of the sections on rates."""
    metric = facts["metric"]
    last = [("metrics", "Every event", _every(facts)), ("sensitivity", "Sensitivity of the global test",
                                                        _sensitivity(facts["sensitivity"]))]
    if metric is None:
        none = tag("p", "No event varies in these cohorts, so there is no rate to calibrate and no check of one.",
                   class_="note")
        return [("rates", "The rate", none), ("clip", "The clip", none), ("trust", "Can the number be trusted?", none),
                *last]
    return [
        ("rates", f"The rate: {metric['event']}", _rates(facts)), ("clip", "How much does the clip matter?",
                                                                   _clip(metric)),
        ("trust", "Can the calibrated number be trusted?", _trust(facts)),
        ("balance", "Do the weights make P look like Q?", _balance(metric)), *last,
    ]


def _rates(facts: Mapping) -> Safe:
    metric = facts["metric"]
    definition = metric["definition"]
    rows = [(tag("b", e["label"], " (headline)") if name == metric["headline"] else e["label"],
             "–" if e["value"] is None else rate(e["value"]["mu"]), "–" if e["value"] is None else span(e["value"]),
             e["sentence"] if e["value"] is not None else f"Not available: {e['missing']}. {e['sentence']}")
            for name, e in metric["estimates"].items()]
    return join([
        tag("p", f"Event: {metric['event']}. {definition['sentence']} Unit: {metric['unit']}. Definition version "
            f"{definition['version']}.", class_="lead"),
        _withheld(metric),
        figure(charts.estimates(metric, facts["threshold"]), f"Rates in the traffic of Q at clip {metric['B']:g}, with "
               f"{metric['level']:.0%} intervals by drive. Circle: observed in P; square: observed in Q; diamond: the "
               "headline. “Region by region (paper)” is the paper's estimator, the diamond is the default."),
        table([Column("Estimate"), Column("Rate", True), Column("Interval", True), Column("What it does", wide=True)],
              rows),
        tag("h3", "From P to Q, step by step"),
        figure(charts.steps(metric), "What each region and everything elsewhere adds to P's rate, in percentage "
               "points; the steps add up to the calibrated rate exactly. Bars: intervals of each step by drive. “Left "
               "over” is what the traffic does not explain; “not drawn”, where P is a sample, what its other drives "
               "add. Steps are measured on all drives, also on those that chose the regions, and lean too large."),
        EMPTY if metric["headline"] is None else
        tag("p", f"Traffic explains {points(metric['traffic'])}; left over are {points(metric['residual'])}."),
        _groups(metric["groups"], metric["headline"] is None),
    ])


def _withheld(metric: Mapping) -> Safe:
    if metric["headline"] is not None:
        return EMPTY
    names = ", ".join(f"“{title}”" for title in metric["withheld_by"])
    return tag("p", tag("b", "The calibrated rate is withheld "), f"because of {names}. Calibrated values below are "
               "for inspection only and must not be quoted.", class_="note review lead")


def _groups(groups: Mapping | None, withheld: bool) -> Safe:
    if groups is None:
        return EMPTY
    few = "too few"
    rows = [(readable(g["level"]), f"{g['n_P']:,}", f"{g['n_Q']:,}", *(_two(g[name], few) for name in (
        "naive", "calibrated", "target"))) for g in groups["rows"]]
    title = GROUPS[groups["column"]]
    return join([tag("h3", f"By {title.lower()}"), table(
        [Column(title), Column("Scenarios of P", True), Column("of Q", True), Column("Observed in P", True),
         Column(f"Calibrated to Q{' (withheld)' if withheld else ''}", True), Column("Observed in Q", True)], rows)])


def _clip(metric: Mapping) -> Safe:
    chosen = [row for row in metric["sweep"] if row["B"] in (1.0, 2.0, 5.0, 10.0, 20.0, metric["B"])]
    rows = [(f"{row['B']:g}{' (chosen)' if row['B'] == metric['B'] else ''}", _two(row["strata"]), _two(row["lis"]),
             _two(row["lis_paper"]), f"{row['effective_share']:.0%}", f"{row['clipped_mass']:.2%}") for row in chosen]
    return join([
        _withheld(metric),
        figure(charts.clips(metric), "The clip is the largest weight that a scenario of P may get. Low: steady, but "
               "leaning towards P. High: closer to Q, but a few scenarios may dominate. Where the line is flat, the "
               "choice does not matter. Shaded: interval of the headline."),
        table([Column("Clip"), Column("Cell by cell", True), Column("Region by region", True),
               Column("Region by region (paper)", True), Column("Effective share of P", True),
               Column("Share of Q lost", True)], rows),
    ])


def _trust(facts: Mapping) -> Safe:
    metric = facts["metric"]
    rows = [(tag("span", f"{SYMBOLS[c['status']]} {c['status']}", class_=f"badge {c['status']}"), tag("b", c["title"]),
             c["sentence"]) for c in metric["trust"]]
    numbers = {status: sum(c["status"] == status for c in metric["trust"]) for status in SYMBOLS}
    told = ", ".join(f"{n} {status}" for status, n in numbers.items() if n)
    return join([
        tag("p", f"{count(len(rows), 'check')}: {told}. A check that refuses withholds the calibrated number."),
        table([Column("State"), Column("Check"), Column("What it says", wide=True)], rows),
        tag("p", f"Squared bias removed {decimal(1e4 * metric['bias_removed'])}, variance added "
            f"{decimal(1e4 * metric['variance_added'])} (squared percentage points): calibration has the smaller mean "
            "squared error when the first is above the second.", class_="soft"),
    ])


def _balance(metric: Mapping) -> Safe:
    found = metric["balance"]
    if not found["rows"]:
        return tag("p", "These cohorts have no attributes that people can read, only latents.", class_="note")
    return join([figure(charts.balance(found["rows"]), (
        f"Standardised differences of the attributes, {len(found['rows'])} of {found['all']} shown, the largest "
        f"before weighting; after it {count(found['beyond'], 'attribute')} of all beyond 0.1 (green band). Intervals "
        "by drive, weights taken as given. Measured values are among them; another AV version may rightly change "
        "these."))])


def _every(facts: Mapping) -> Safe:
    rows = []
    for m in facts["metrics"]:
        shown = m["headline"] is not None
        rows.append((m["event"], _two(m["naive"]), _two(m["strata"]) if shown else "withheld",
                     (_two(m["lis_paper"]) if m["lis_paper"] else "–") if shown else "withheld", _two(m["target"]),
                     _move(m["traffic"]) if shown else "withheld", _move(m["residual"]) if shown else "withheld"))
    left = [f"{name}: {why}" for name, why in facts["left_out"].items()]
    return join([
        table([Column("Event"), Column(f"Observed in{SPACE}P", True), Column(f"Calibrated to{SPACE}Q", True),
               Column("The paper's way", True), Column(f"Observed in{SPACE}Q", True), Column("Traffic, points", True),
               Column("Left over, points", True)], rows, "Every event at the same clip; intervals hold for each alone.",
              "every") if rows else EMPTY,
        join([tag("h3", "Left out"), paragraphs(left)]) if left else EMPTY,
    ])


def _sensitivity(found: Mapping | None) -> Safe:
    if found is None:
        return tag("p", NO_SENSITIVITY, class_="note")
    summary = table([Column("Study"), Column("Configurations", True), Column("Mean accuracy", True),
                     Column("Standard deviation", True)],
                    [(s["study"], f"{s['configs']}", f"{s['acc']:.4f}", f"{s['acc_std']:.4f}")
                     for s in found["summary"]],
                    "Held-out accuracy over all configurations and seeds; 0.5 is chance.")
    rows = table([Column("Study"), Column("Setting", wide=True), Column("Accuracy", True), Column("Spread", True),
                  Column("Advantage", True)],
                 [(r["study"], r["setting"], f"{r['acc']:.4f}", f"{r['acc_std']:.4f}", f"{r['gamma_hat']:.4f}")
                  for r in found["rows"]])
    return join([summary, rows])


def _two(e: Mapping | None, missing: str = "–") -> Safe:
    return join([missing]) if e is None else join([rate(e["mu"]), tag("small", span(e))])


def _move(e: Mapping) -> Safe:
    return join([signed(100 * e["mu"]), tag("small", f"{signed(100 * e['lo'])} to {signed(100 * e['hi'])}")])
