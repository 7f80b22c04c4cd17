"""What the pack says of metrics, as plain values: every estimate, the clip, what it is made of, how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict

from avshift_core.comparison import Comparison
from avshift_core.glossary import entry_of
from avshift_core.plots.metrics import LABELS
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.breakdown import by_category, contributions, mse_condition, sweep
from avshift_core.shift.calibrate import ESTIMATORS, Calibration
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.profile import telling, weighing
from avshift_core.shift.trust import OK, REFUSE, Check
from avshift_core.shift.weights import weights_of

CLIPS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0)
ATTRIBUTES = 20  # of the love plot, the largest differences
GROUPED = ("category", "road_type", "area")  # the first that varies is shown
AT_CONFIG_CLIP = ("smd_after", "weighted_c2st")  # measured on the weights of the comparison's own clip
SHOWN = ("naive", "strata", "lis", "lis_paper", "target")  # of every metric; the chosen one has all


def estimate(value: Estimate | None) -> dict | None:
    return None if value is None else asdict(value)


def metric_facts(comparison: Comparison, metric: str, B: float, attributes: Attributes) -> dict:
    """The chosen metric in full."""
    analysis = comparison.analysis
    c = analysis.calibrate(B, metric)
    checks = analysis.checks_of(c)
    headline = analysis.headline(metric, checks)
    condition = mse_condition(c, analysis.P.n)
    return {
        "name": metric, "event": comparison.phrase(metric), "definition": _definition(comparison, metric),
        "unit": "share of the scenarios with the event", "B": B, "level": analysis.config.level, "headline": headline,
        "estimates": {name: _told(comparison, name, c) for name in LABELS},
        "traffic": estimate(c.traffic), "residual": estimate(c.residual),
        **{name: getattr(c, name) for name in ("ess", "ess_drives", "khat", "clipped_mass", "uncovered_mass",
                                               "top_drive", "event_drives")},
        "bias_removed": condition.removed, "variance_added": condition.added,
        "trust": [_check(comparison, check, metric, B) for check in _worst_first(checks)],
        "withheld_by": [check_title(check) for check in checks if check.status == REFUSE],
        "contributions": [{**asdict(part)} for part in contributions(analysis, metric, B)],
        "sweep": _sweep(analysis, metric, B),
        "balance": _balance(comparison, attributes, B),
        "groups": _groups(comparison, metric, B, attributes),
    }


def every_metric(comparison: Comparison, B: float) -> list[dict]:
    """One row an event: observed, calibrated and target, each with its interval; None where it is withheld."""
    analysis, rows = comparison.analysis, []
    for metric in comparison.metrics:
        c = analysis.calibrate(B, metric)
        checks = analysis.checks_of(c)
        headline = analysis.headline(metric, checks)
        rows.append({
            "name": metric, "event": comparison.phrase(metric), "headline": headline,
            **{name: estimate(getattr(c, name)) for name in SHOWN},
            "traffic": estimate(c.traffic), "residual": estimate(c.residual),
            "withheld_by": [check_title(check) for check in checks if check.status == REFUSE],
        })
    return rows


def check_title(check: Check) -> str:
    """What a reader calls a check."""
    entry = entry_of(f"check:{check.check}")
    return check.check if entry is None else entry.term


def in_words(comparison: Comparison, sentence: str, metric: str) -> str:
    """A sentence of the engine with the metric and the estimators as people call them."""
    words = {**{name: LABELS[name] for name in ESTIMATORS}, metric: comparison.phrase(metric)}
    found = "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True))
    return re.sub(rf"(?<!\w)({found})(?!\w)", lambda m: f"“{words[m[0]]}”", sentence)


def _told(comparison: Comparison, name: str, c: Calibration) -> dict:
    found = c.estimates()[name]
    entry = entry_of(f"estimator:{name}")
    missing = "no regions were looked for" if name.startswith("lis") else "no such weights exist"
    return {"label": LABELS[name], "sentence": entry.sentence if entry else "", "value": estimate(found),
            "missing": None if found is not None else missing}


def _definition(comparison: Comparison, metric: str) -> dict:
    """What the values mean: of a metric of ours its own sentence, of others what the import said."""
    column, known = comparison.family(metric).column, comparison.definitions[metric]
    ours = METRICS.get(column)
    return {"column": column, "sentence": ours.text if ours else "As imported; the log does not define it.",
            "version": known.version}


def _check(comparison: Comparison, check: Check, metric: str, B: float) -> dict:
    own = comparison.analysis.config.B
    note = f" Measured at clip {own:g}." if check.check in AT_CONFIG_CLIP and own != B else ""
    return {"check": check.check, "title": check_title(check), "status": check.status, "value": check.value,
            "caution_from": check.threshold, "sentence": in_words(comparison, check.text, metric) + note}


def _worst_first(checks: Sequence[Check]) -> list[Check]:
    return sorted(checks, key=lambda check: (check.status != REFUSE, check.status == OK))


def _sweep(analysis, metric: str, B: float) -> list[dict]:
    """Every estimate over the clips, the chosen one among them."""
    return [{"B": c.B, **{name: estimate(value) for name, value in c.estimates().items()},
             "effective_share": c.ess / analysis.P.n, "clipped_mass": c.clipped_mass}
            for c in sweep(analysis, metric, sorted({*CLIPS, B}))]


def _balance(comparison: Comparison, attributes: Attributes, B: float) -> dict:
    """Standardised differences before and after weighting; `rows` are the largest before."""
    analysis = comparison.analysis
    found = weighing(attributes, analysis.sample.y, analysis.sample.drive).differences(
        weights_of(analysis, "strata", B).w)
    rows = [{"label": d.label, "P": d.text(d.outside), "Q": d.text(d.inside), "before": d.smd, "after": d.after.smd,
             "after_lo": d.after.lo, "after_hi": d.after.hi} for d in telling(found, ATTRIBUTES)]
    return {"rows": rows, "all": len(found), "beyond": sum(abs(d.after.smd) > 0.1 for d in found)}


def _groups(comparison: Comparison, metric: str, B: float, attributes: Attributes) -> dict | None:
    """Rates within the levels of one attribute, None where none varies."""
    column = next((name for name in GROUPED if attributes.category(name) is not None), None)
    if column is None:
        return None
    rows = [{"level": g.level, "n_P": g.n_P, "n_Q": g.n_Q, "drives_P": g.drives_P, "drives_Q": g.drives_Q,
             **{name: estimate(getattr(g, name)) for name in ("naive", "calibrated", "target")}}
            for g in by_category(comparison.analysis, metric, B, column)]
    return {"column": column, "rows": rows}
