"""Results of the global test and of calibration as tables, one row a value, for downloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

import pandas as pd

from avshift_core.shift.analyze import Analysis
from avshift_core.shift.breakdown import Contribution, GroupRate
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.curves import Curves, VarianceSplit
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.sensitivity import Sensitivity
from avshift_core.shift.weights import WeightHistogram, Weights

NUMBERS = ("acc", "acc_std", "gamma_hat", "gamma_lcb", "gamma_ucb", "tv_lower", "se", "auc", "statistic", "p_value",
           "p_neighbors", "n_te", "repeats", "icc", "design_effect", "detectable_gamma", "var_test", "var_training")
OBSERVED = ("naive", "target")  # counted, not calibrated
OF_WEIGHTS = ("ess", "ess_drives", "khat", "clipped_mass", "uncovered_mass", "top_drive", "event_drives")


def global_tables(analysis: Analysis, curves: Curves, split: VarianceSplit) -> dict[str, pd.DataFrame]:
    """Everything of the page on the global test."""
    test, r = analysis.global_test, curves.reliability
    numbers = [{"name": name, "value": float(getattr(test, name))} for name in NUMBERS]
    numbers += [{"name": f"variance_{f.name}", "value": getattr(split, f.name)} for f in fields(split)]
    return {
        "global_test": pd.DataFrame(numbers),
        "bounds": pd.DataFrame([asdict(bound) for bound in curves.bounds]),
        "tests": pd.DataFrame([
            {"name": "classifier", "statistic": test.auc, "p_value": test.p_value, "p_asymptotic": None},
            {"name": "neighbours", "statistic": None, "p_value": test.p_neighbors, "p_asymptotic": None},
            *(asdict(reference) for reference in analysis.reference),
        ]),
        "repeats": pd.DataFrame({"repeat": range(1, len(test.acc_repeats) + 1), "acc": test.acc_repeats}),
        "roc": pd.DataFrame({"share_of_P": curves.roc.fpr, "share_of_Q": curves.roc.tpr}),
        "reliability": pd.DataFrame({
            name: getattr(r, name) for name in ("h", "share", "lo", "hi", "n_P", "n_Q", "mass")
        }),
        "permutations": pd.DataFrame({"statistic": test.null}),
    }


def contribution_table(parts: Sequence[Contribution], calibration: Calibration) -> pd.DataFrame:
    """Naive, every step and target; `mu` of the steps add up from the first rate to the last."""
    c = calibration
    rows = [_row("naive", c.naive, step=False)]
    rows += [_row(p.name, p.move, step=True) | {"p": p.p, "q": p.q, "mass": p.mass, "rate": p.rate, "n_P": p.n_P,
                                                "n_Q": p.n_Q} for p in parts]
    rows += [_row("strata", c.strata, step=False), _row("left over", c.residual, step=True),
             _row("target", c.target, step=False)]
    return pd.DataFrame(rows).assign(metric=c.metric, B=c.B)


def category_table(groups: Sequence[GroupRate], column: str, calibration: Calibration) -> pd.DataFrame:
    """One row a level: counts and three rates with their intervals, empty where there is too little."""
    rows = []
    for g in groups:
        row = {column: g.level, "n_P": g.n_P, "n_Q": g.n_Q, "drives_P": g.drives_P, "drives_Q": g.drives_Q}
        for name in ("naive", "calibrated", "target"):
            e = getattr(g, name)
            row |= {f"{name}{end}": None if e is None else getattr(e, part)
                    for end, part in (("", "mu"), ("_lo", "lo"), ("_hi", "hi"))}
        rows.append(row)
    return pd.DataFrame(rows).assign(metric=calibration.metric, B=calibration.B)


def estimates_table(calibration: Calibration, headline: str | None) -> pd.DataFrame:
    """Every estimate of one calibration, and the two differences.

    Args:
        headline: the estimator to show; None where the trust panel withholds all that was calibrated.
    """
    c = calibration
    found = {**c.estimates(), "traffic": c.traffic, "residual": c.residual}
    return pd.DataFrame([
        {"metric": c.metric, "B": c.B, **_row(name, e), "headline": name == headline,
         "withheld": headline is None and name not in OBSERVED} for name, e in found.items() if e is not None])


def sweep_table(swept: Sequence[Calibration]) -> pd.DataFrame:
    """One row a clip and estimate, with what the weights of the clip are worth."""
    return pd.DataFrame([
        {"metric": c.metric, "B": c.B, **_row(name, e), **{k: getattr(c, k) for k in OF_WEIGHTS}}
        for c in swept for name, e in c.estimates().items() if e is not None
    ])


def weight_table(histogram: WeightHistogram, weights: Weights) -> pd.DataFrame:
    """Scenarios of P by weight before the clip, one row a bin; the share that the clip cuts beside it."""
    h = histogram
    return pd.DataFrame({
        "estimator": weights.name, "B": weights.B, "from": h.edges[:-1], "to": h.edges[1:], "share_of_P": h.share,
        "share_of_weight": h.mass, "cut": h.edges[:-1] >= weights.B,
    })


def sensitivity_tables(result: Sensitivity) -> dict[str, pd.DataFrame]:
    """Rows of the four studies, the paper's summary, and the half-widths."""
    return {
        "sensitivity": pd.DataFrame([{**asdict(r), "values": " ".join(f"{v:.6f}" for v in r.values)}
                                     for r in result.rows]),
        "sensitivity_summary": pd.DataFrame([asdict(s) for s in result.summary()]),
        "half_widths": pd.DataFrame([asdict(w) for w in result.widths]),
    }


def _row(name: str, e: Estimate, **more) -> dict:
    return {"name": name, "mu": e.mu, "lo": e.lo, "hi": e.hi, "se": e.se, **more}
