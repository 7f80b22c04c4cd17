"""A version comparison as plain values for JSON, as tables for downloads, and in words for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from avshift_core.shift.analyze import Analysis
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.power import OF_A, PER, PlanGroup, PlanRow, Power, plan, power_of
from avshift_core.shift.version_split import RATES, REFERENCES, Split, split_by, split_by_region
from avshift_core.shift.versions import FEW, NOISE, TURNS, UNTRUSTED, VersionComparison

SCHEMA = 1
COLUMN = "category"


def to_version_report(analysis: Analysis, found: VersionComparison) -> dict:
    """Everything about two versions as plain values."""
    support = found.fit.support
    share_P, share_Q = support.shares
    return {
        "versions": {"A": found.version_A, "B": found.version_B, "view": found.view},
        "common_support": {"share_P": share_P, "share_Q": share_Q, "strata": int((support.n_P + support.n_Q > 0).sum()),
                           "common": int(support.common.sum())},
        "independence_assumed": found.independence_assumed,
        "leakage_probe": None if found.probe is None else asdict(found.probe),
        "cautions": list(found.cautions),
        "metrics": {metric: _metric(analysis, found, metric) for metric in found.splits},
        "traffic": [asdict(group) for group in found.groups],
    }


def _metric(analysis: Analysis, found: VersionComparison, metric: str) -> dict:
    groups = {"by_region": split_by_region(analysis, found.fit, metric)}
    if COLUMN in analysis.P.obs and COLUMN in analysis.Q.obs:
        groups[f"by_{COLUMN}"] = split_by(analysis, found.fit, metric, COLUMN)
    split = found.splits[metric]
    return {
        "verdict": found.verdict(metric), **_split(split), "power": asdict(power_of(split, analysis.config)),
        **{name: [{"group": s.group, "verdict": found.verdict(metric, s), **_split(s)} for s in splits]
           for name, splits in groups.items()},
        "collection": {"per": PER, "rows": [asdict(row) for row in plan(analysis, found.fit, found.groups, metric)]},
    }


def _split(split: Split) -> dict:
    return {
        "raw": asdict(split.raw), "not_comparable": asdict(split.not_comparable),
        **{part: {ref: asdict(getattr(split, part)[ref]) for ref in REFERENCES}
           for part in ("exposure", "performance")},
        **{key: asdict(getattr(split, key)) for key in RATES},
        **{key: getattr(split, key) for key in ("n_P", "n_Q", "in_P", "in_Q", "drives_P", "drives_Q", "events_P",
                                                "events_Q")},
    }


# Words ----------------------------------------------------------------------------------------------------------------


def conclusion(found: VersionComparison, split: Split, event: str, unit: str = "pp") -> str:
    """What to believe about B, in one or two sentences.

    Args:
        event: the metric in words. unit: "pp" for rates, which are shown in percentage points; "" for other metrics.
    """
    verdict, A, B = found.verdict(split.metric, split), found.version_A, found.version_B
    amount = signed(split.performance["mean"], unit)
    if verdict == UNTRUSTED:
        return (f"Whether {B} is better than {A} in “{event}” cannot be told: the latents tell the versions apart "
                "where the traffic is the same, so the split is not to be trusted.")
    if verdict == FEW:
        return (f"Too little to tell: in the traffic that both met, the rarer of “{event}” and its absence was seen in "
                f"{split.events_P:,} drives of {A} and {split.events_Q:,} of {B}.")
    if found.same_version:
        seen = "and no difference is seen" if verdict == NOISE else "but a difference is seen"
        return f"{A} against itself: the performance part should be zero, {seen} ({amount}) in “{event}”."
    if verdict == NOISE:
        part = split.performance["mean"]
        where = "which may be chance" if part.lo <= 0 <= part.hi else \
            "but in the traffic of P or of Q alone it may be chance"
        return f"Inside noise: {B} against {A} in the same traffic makes {amount} in “{event}”, {where}."
    if verdict == TURNS:
        each = " and ".join(f"{signed(split.performance[ref], unit)} in that of {ref}" for ref in ("P", "Q"))
        return f"Whether {B} is better than {A} in “{event}” depends on the traffic: {each}."
    return f"{B} is {verdict} than {A} in “{event}”: {amount} in the same traffic."


def signed(e: Estimate, unit: str = "pp") -> str:
    """
    >>> signed(Estimate(-0.0336, -0.05, -0.01, 0.01))
    '-3.36 (-5.00 to -1.00) pp'
    """
    scale, digits = (100, 2) if unit == "pp" else (1, 4)
    text = f"{scale * e.mu:+.{digits}f} ({scale * e.lo:+.{digits}f} to {scale * e.hi:+.{digits}f})"
    return f"{text} {unit}".rstrip()


def power_words(power: Power, found: VersionComparison, unit: str = "pp") -> str:
    """What this much data could have seen, and what would decide it."""
    if (verdict := found.verdict(power.metric)) in (FEW, UNTRUSTED):
        return f"What this much data could decide is not told: the verdict is “{verdict}”."
    scale, digits = (100, 2) if unit == "pp" else (1, 4)
    least = f"{scale * power.detectable:.{digits}f} {unit}".rstrip()
    first = f"With these drives a difference of {least} between the versions is seen with probability 0.8."
    if power.decided:
        return f"{first} The observed difference is decided."
    if verdict == TURNS:
        return f"{first} In P's traffic and in Q's the difference is decided, to opposite sides."
    if power.factor is None:
        return (f"{first} The observed difference is next to zero, or turns with the traffic: if the true one does, no "
                "amount of data would call it better or worse.")
    return (f"{first} If the true differences are as large as the observed ones, about {power.drives_P:,} drives "
            f"({power.n_P:,} scenarios in common traffic) of {found.version_A} and {power.drives_Q:,} ({power.n_Q:,}) "
            f"of {found.version_B} would decide it with probability 0.8, {power.factor:.1f} times what there is.")


def plan_words(row: PlanRow, groups: Sequence[PlanGroup], found: VersionComparison, unit: str = "pp") -> str:
    """One line of the collection plan."""
    scale, digits = (100, 2) if unit == "pp" else (1, 4)
    version = found.version_A if row.version == OF_A else found.version_B
    return (f"{version}, {groups[row.group].name}: interval narrower by {scale * row.gain:.{digits}f} {unit}".rstrip()
            + f" on each side, as good as {row.effective:.0%} more of everything")


def summary(analysis: Analysis, found: VersionComparison) -> str:
    """What a reader of the terminal needs."""
    share_P, share_Q = found.fit.support.shares
    lines = [f"{found.version_A} on {analysis.P.name} ({analysis.P.n:,} scenarios) -> {found.version_B} on "
             f"{analysis.Q.name} ({analysis.Q.n:,} scenarios)",
             f"{share_P:.1%} of P and {share_Q:.1%} of Q lie in traffic that both met."]
    lines += [f"caution: {sentence}" for sentence in found.cautions]
    if found.probe is not None:
        lines.append(f"leakage probe, {found.probe.status}: {found.probe.sentence}")
    unit = "pp" if analysis.config.M == 1 else ""
    for metric, split in found.splits.items():
        lines.append(f"{metric}: {conclusion(found, split, metric, unit)}")
        lines.append(f"  {'raw difference':<16} {signed(split.raw, unit)}")
        lines.append(f"  {'not comparable':<16} {signed(split.not_comparable, unit)}")
        for ref, name in (("P", "P's traffic"), ("Q", "Q's traffic"), ("mean", "mean of both")):
            lines.append(f"  {name + ':':<16} exposure {signed(split.exposure[ref], unit)}, performance "
                         f"{signed(split.performance[ref], unit)}")
        lines.append(f"  {power_words(power_of(split, analysis.config), found, unit)}")
        for row in plan(analysis, found.fit, found.groups, metric)[:3]:
            lines.append(f"  {PER:,} more of {plan_words(row, found.groups, found, unit)}")
    return "\n".join(lines)


# Tables ---------------------------------------------------------------------------------------------------------------


def plan_table(rows: Sequence[PlanRow], found: VersionComparison, metric: str) -> pd.DataFrame:
    """The collection plan, one row a kind of traffic and version, and what only one version met."""
    name = {"A": found.version_A, "B": found.version_B}
    table = [{"metric": metric, "traffic": found.groups[r.group].name, "region": found.groups[r.group].region,
              "version": name[r.version], "further": PER, "n": r.n, "variance_share": r.variance_share,
              "half_width_after": r.half_width, "half_width_gain": r.gain, "effective_gain": r.effective,
              "comparable": True, "needed": 0} for r in rows]
    table += [{"metric": metric, "traffic": g.name, "region": g.region, "version": name[g.lacking],
               "n": g.n_P if g.lacking == OF_A else g.n_Q, "comparable": False, "needed": g.needed}
              for g in found.groups if not g.common]
    return pd.DataFrame(table)


def verdict_table(found: VersionComparison) -> pd.DataFrame:
    """One row a metric: verdict and the performance part, mean of both references."""
    return pd.DataFrame([
        {"metric": metric, "verdict": found.verdict(metric), "raw": s.raw.mu, "not_comparable": s.not_comparable.mu,
         "exposure": s.exposure["mean"].mu, "performance": s.performance["mean"].mu, "lo": s.performance["mean"].lo,
         "hi": s.performance["mean"].hi, "se": s.performance["mean"].se} for metric, s in found.splits.items()])
