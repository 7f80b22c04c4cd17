"""The regions as a reader wants them: shares with intervals, a name, a profile, scenes that stand for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from avshift_core.latent.cells import OUTSIDE
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.attributes import Attributes, read_attributes
from avshift_core.shift.breakdown import contributions
from avshift_core.shift.differences import Difference
from avshift_core.shift.drives import Pool
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.local import TARGET_HEAVY, LocalTest, Region
from avshift_core.shift.naming import name_sets
from avshift_core.shift.profile import profile
from avshift_core.shift.rates import design_effect_of_mean, rate_interval
from avshift_core.shift.representatives import representatives

COLUMNS = ["region", "name", "more_in", "violation", "n_P", "n_Q", "drives", "p_k", "p_k_lo", "p_k_hi", "q_k", "q_k_lo",
           "q_k_hi", "ratio", "ratio_lo", "ratio_hi", "weight", "B", "effect", "p_adj", "contribution",
           "contribution_lo", "contribution_hi", "metric"]
NO_SPREAD = 1e-12  # a standard error below is rounding: every drive has the same share


@dataclass(frozen=True)
class Shares:
    """Masses of a set under P and Q with drive-level intervals; ratio: q / p, None where there is none."""

    p: Estimate
    q: Estimate
    ratio: Estimate | None


@dataclass(frozen=True, eq=False)
class RegionFacts:
    """One region, or one place without support, described.

    Attributes:
        title: "R1", or "V1" for an overlap violation; name: proposed from its attributes, with how much more of it
            one cohort has.
        p, q, ratio: as in `Shares`; of the drives that confirmed a region, of all drives for a violation.
        n_drives: drives with a scenario there.
        differences: its profile against all other scenarios, the largest difference first.
        scenes_P, scenes_Q: rows of each cohort that stand for it.
    """

    title: str
    name: str
    region: Region
    p: Estimate
    q: Estimate
    ratio: Estimate | None
    differences: tuple[Difference, ...]
    scenes_P: tuple[int, ...]
    scenes_Q: tuple[int, ...]

    @property
    def more_in(self) -> str:
        return "Q" if self.region.direction == TARGET_HEAVY else "P"

    def weight(self, B: float) -> float:
        """min(q_k / p_k, B), eq:localized_weight; 1 where P has nothing there."""
        return min(self.region.w_k, B)


@dataclass(frozen=True, eq=False)
class DescribedRegions:
    """R1..RK and the places without support; both empty where no regions were looked for."""

    regions: tuple[RegionFacts, ...]
    violations: tuple[RegionFacts, ...]


def pooled_attributes(analysis: Analysis) -> Attributes:
    """The attributes of P's rows and then Q's, as in `analysis.space.X`.

    Columns with one value in P and one in Q are what the cohorts were chosen by: they say how a region leans, not what
    it is, and are left out.
    """
    P, Q = analysis.P.obs, analysis.Q.obs
    common = [column for column in P.columns if column in Q.columns]
    chosen_by = [str(column) for column in common if _constant(P[column]) and _constant(Q[column])]
    return read_attributes(pd.concat([P[common], Q[common]], ignore_index=True), chosen_by)


def _constant(values: pd.Series | pd.DataFrame) -> bool:
    try:
        return values.ndim == 1 and bool((values == values.iloc[0]).all())
    except (TypeError, ValueError):  # lists and the like: read_attributes deals with them
        return False


def describe_regions(analysis: Analysis, attributes: Attributes | None = None) -> DescribedRegions:
    """Names, profiles, intervals and scenes of all regions of an analysis.

    Args:
        attributes: of `pooled_attributes`, where they are at hand.
    """
    local = analysis.local
    if local is None:
        return DescribedRegions((), ())
    attributes = attributes or pooled_attributes(analysis)
    number = np.concatenate([local.region_P, local.region_Q])
    inside = [number == k for k in range(len(local.regions))]
    bare = [np.isin(analysis.space.cell, region.cells) for region in local.overlap_violations]
    everywhere = np.ones(len(number), dtype=bool)
    return DescribedRegions(
        _facts(analysis, attributes, "R", local.regions, inside, _measured(local)),
        _facts(analysis, attributes, "V", local.overlap_violations, bare, everywhere),
    )


def region_table(described: DescribedRegions, analysis: Analysis, metric: str | None, B: float) -> pd.DataFrame:
    """One row a region at clip B, the violations last; `contribution` is empty for these and without a metric."""
    moves = {} if metric is None or not described.regions else {
        c.name: c.move for c in contributions(analysis, metric, B)}
    rows = []
    for facts in (*described.regions, *described.violations):
        r, move = facts.region, moves.get(facts.title)
        rows.append({
            "region": facts.title, "name": facts.name, "more_in": facts.more_in, "violation": facts.title[0] == "V",
            "n_P": r.n_source, "n_Q": r.n_target, "drives": r.n_drives,
            "p_k": facts.p.mu, "p_k_lo": facts.p.lo, "p_k_hi": facts.p.hi,
            "q_k": facts.q.mu, "q_k_lo": facts.q.lo, "q_k_hi": facts.q.hi,
            **_estimate("ratio", facts.ratio), "weight": 1.0 if facts.title[0] == "V" else facts.weight(B), "B": B,
            "effect": r.score, "p_adj": r.p_adj, **_estimate("contribution", move), "metric": metric or "",
        })
    return pd.DataFrame(rows, columns=COLUMNS)


def region_scenarios(analysis: Analysis, facts: RegionFacts) -> pd.DataFrame:
    """All scenarios of a region: cohort, ids and attributes."""
    inside = np.isin(analysis.space.cell, facts.region.cells)
    parts = [cohort.obs[inside[start:start + cohort.n]].assign(cohort=name)
             for name, cohort, start in (("P", analysis.P, 0), ("Q", analysis.Q, analysis.P.n))]
    table = pd.concat(parts, ignore_index=True)
    return table[["cohort", *(column for column in table.columns if column != "cohort")]]


def _facts(analysis: Analysis, attributes, letter: str, regions, inside, measures) -> tuple[RegionFacts, ...]:
    sample, X = analysis.sample, analysis.space.X
    profiles = [profile(attributes, rows, sample.drive) for rows in inside]
    titles = [f"{letter}{region.k}" for region in regions]
    names = name_sets(attributes, inside, sample.drive, masses=[(r.p_k, r.q_k) for r in regions],
                      fallbacks=[f"region {title}" for title in titles], differences=profiles)
    found = []
    for region, title, name, rows, differences in zip(regions, titles, names, inside, profiles, strict=True):
        scenes = [representatives(X, np.flatnonzero(rows & (sample.y == c)), sample.drive) for c in (0, 1)]
        s = shares_of(analysis, rows, measures)
        found.append(RegionFacts(title, name, region, s.p, s.q, s.ratio, differences, scenes[0],
                                 tuple(row - analysis.P.n for row in scenes[1])))
    return tuple(found)


def region_shares(analysis: Analysis) -> tuple[Shares, ...]:
    """How much of P and of Q lies in each region R1..RK, on the drives that confirmed it."""
    local = analysis.local
    if local is None:
        return ()
    number = np.concatenate([local.region_P, local.region_Q])
    return tuple(shares_of(analysis, number == k, _measured(local)) for k in range(len(local.regions)))


def in_regions(analysis: Analysis) -> Shares:
    """How much of P and of Q lies in any region, on the drives that confirmed them; regions have to be there."""
    local = analysis.local
    number = np.concatenate([local.region_P, local.region_Q])
    return shares_of(analysis, number != OUTSIDE, _measured(local))


def shares_of(analysis: Analysis, inside: np.ndarray, measures: np.ndarray | None = None) -> Shares:
    """How much of P and of Q lies in a set of pooled rows.

    Args:
        inside: (n,) bool; measures: (n,) rows that count, all without it.
    """
    sample, level = analysis.sample, analysis.config.level
    measures = np.ones(sample.n, dtype=bool) if measures is None else measures
    p, q = (mass(inside, measures & (sample.y == c), sample.drive, level, design_in(inside, sample, c)) for c in (0, 1))
    return Shares(p, q, ratio_of(p, q, fewer_drives(sample, measures), level))


def _measured(local: LocalTest) -> np.ndarray:
    return np.concatenate([local.measure_P, local.measure_Q])


def mass(inside, measures, drive, level: float = 0.95, design: float = 1.0) -> Estimate:
    """Share of the scenarios of some drives that lie inside.

        p = sum_d C_d / sum_d n_d,     Var p = D/(D-1) * sum_d (C_d - p n_d)^2 / (sum_d n_d)^2

    with the interval of Korn and Graubard, which holds for small shares.

    Args:
        inside, measures: (n,) bool: rows of the set, and rows that count; drive: (n,) drives 0..G-1.
        design: design effect for where no or every row that counts lies inside, such as `design_in`.
    """
    rows = np.flatnonzero(measures)
    if not len(rows):
        return Estimate(0.0, 0.0, 1.0, 0.0)
    n = np.bincount(drive[rows])
    C = np.bincount(drive[rows], inside[rows], minlength=len(n))
    p, D = float(C.sum() / n.sum()), int((n > 0).sum())
    se = float(np.sqrt(D / max(D - 1, 1) * ((C - p * n) ** 2).sum())) / n.sum()
    lo, hi = rate_interval(p, se, len(rows), D, level, design)
    return Estimate(p, min(lo, p), max(hi, p), se)


def design_in(event, sample: Pool, c: int) -> float:
    """Design effect of a share (n,) bool in all of cohort c; of the other cohort where c has none of it, or all."""
    own = sample.y == c
    rows = own if 0 < event[own].mean() < 1 else ~own
    return design_effect_of_mean(sample.drive[rows], event[rows])


def fewer_drives(sample: Pool, measures=None) -> int:
    """Drives of the cohort that has fewer; of the rows in `measures` (n,) where given."""
    counts = np.ones(sample.n, dtype=bool) if measures is None else measures
    return min(len(np.unique(sample.drive[counts & (sample.y == c)])) for c in (0, 1))


def ratio_of(p: Estimate, q: Estimate, drives: int, level: float = 0.95) -> Estimate | None:
    """q / p with an interval symmetric in its logarithm; None where one of them is 0, or without a standard error.

        Var log(q / p) = Var q / q^2 + Var p / p^2

    Args:
        drives: of the cohort that has fewer, for Student's t.

    >>> r = ratio_of(Estimate(0.1, 0, 1, 0.01), Estimate(0.2, 0, 1, 0.02), 11)
    >>> [round(x, 3) for x in (r.mu, r.lo, r.hi)]        # 2 exp(-+ 2.228 sqrt(0.1^2 + 0.1^2))
    [2.0, 1.459, 2.741]
    """
    if p.mu <= 0 or q.mu <= 0 or drives < 2:
        return None
    ratio, se = q.mu / p.mu, float(np.hypot(p.se / p.mu, q.se / q.mu))
    if se < NO_SPREAD:
        return None
    reach = float(np.exp(stats.t.ppf((1 + level) / 2, drives - 1) * se))
    return Estimate(ratio, ratio / reach, ratio * reach, ratio * se)


def _estimate(name: str, value: Estimate | None) -> dict[str, float]:
    mu, lo, hi = (np.nan,) * 3 if value is None else (value.mu, value.lo, value.hi)
    return {name: mu, f"{name}_lo": lo, f"{name}_hi": hi}
