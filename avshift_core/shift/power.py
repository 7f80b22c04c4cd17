"""What this much data can decide about two versions, and which traffic to drive next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.c2st import POWER
from avshift_core.shift.naming import name_sets
from avshift_core.shift.regions import pooled_attributes
from avshift_core.shift.support import FEW_SCENARIOS, Support
from avshift_core.shift.version_split import REFERENCES, Split, VersionFit, common_of, part_rows

PER = 1_000  # further scenarios that the planner's gains are counted for
GROUPS = 8  # kinds of traffic outside of the regions that are told apart
OF_A, OF_B = "A", "B"


@dataclass(frozen=True)
class Power:
    """What the performance part can decide at this number of drives.

    Attributes:
        se: largest drive-level standard error among P's traffic, Q's and the mean of both, all of which a verdict asks.
        detectable: smallest difference seen with probability 0.8 at two-sided level 1 - config.level.
        observed: the performance part, mean of both; decided: as in Split.
        factor: times as many drives of both cohorts would see differences of the observed sizes with probability 0.8;
            None where no number would: the observed ones are 0, or differ in sign.
        drives_P, drives_Q, n_P, n_Q: drives, and scenarios in common traffic, of each cohort then; None without a
            factor.
    """

    metric: str
    se: float
    detectable: float
    observed: float
    decided: bool
    factor: float | None
    drives_P: int | None
    drives_Q: int | None
    n_P: int | None
    n_Q: int | None


def power_of(split: Split, config: AnalysisConfig) -> Power:
    """Power of the performance part.

        detectable = (t_{1 - alpha/2} + t_{0.8}) max se,     factor = max ((t_{1 - alpha/2} + t_{0.8}) se / observed)^2

    over P's traffic, Q's and the mean of both, with t of as many degrees of freedom as the intervals have: one less
    than the fewer drives of the two. The standard error falls with the square root of the number of drives, when new
    drives are like the old ones.
    """
    mu, se = (np.array([getattr(split.performance[ref], name) for ref in REFERENCES]) for name in ("mu", "se"))
    t = stats.t(max(min(split.drives_P, split.drives_Q), 2) - 1)
    reach = float(t.ppf((1 + config.level) / 2) + t.ppf(POWER))
    factor = None
    if ((mu > 0).all() or (mu < 0).all()) and (se > 0).all():
        factor = float(((reach * se / mu) ** 2).max())
    if factor is not None and factor > 1e6:
        factor = None
    needed = [None if factor is None else ceil(factor * n)
              for n in (split.drives_P, split.drives_Q, split.in_P, split.in_Q)]
    return Power(split.metric, float(se.max()), reach * float(se.max()), split.performance["mean"].mu, split.decided,
                 factor, *needed)


# Which traffic to drive next ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanGroup:
    """A kind of traffic: a region, a group of neighbouring cells, or what only one version met.

    Attributes:
        name: proposed from its attributes. region: "R1", ... or "".
        cells: cells of the latent space.
        common: whether both versions met it; otherwise `lacking` is the version, A or B, that did not.
        n_P, n_Q: scenarios; p, q: their shares of P and of Q.
        needed: further scenarios of the lacking version that would make it comparable, about; 0 where it is.
    """

    name: str
    region: str
    cells: tuple[int, ...]
    common: bool
    lacking: str
    n_P: int
    n_Q: int
    p: float
    q: float
    needed: int


@dataclass(frozen=True)
class PlanRow:
    """What `PER` further scenarios of one kind of traffic, driven by one version, would do for the performance part.

    Attributes:
        group: index of the PlanGroup. version: "A" or "B". n: scenarios of it so far.
        variance_share: share of the performance part's variance that this version's events in this traffic make.
        half_width: of the interval afterwards; gain: by how much it falls.
        effective: gain in effective sample size, as a share: 0.1 is as good as 10 % more drives of everything.
    """

    group: int
    version: str
    n: int
    variance_share: float
    half_width: float
    gain: float
    effective: float


def plan_groups(analysis: Analysis, support: Support) -> tuple[PlanGroup, ...]:
    """Regions, groups of neighbouring cells outside of them, and traffic that only one version met, with names."""
    K, cell = analysis.space.cells.n, analysis.space.cell
    region = np.full(K, -1) if analysis.local is None else analysis.local.region_of_cell
    kind = cut_tree(analysis.space.cells.tree, K, GROUPS)
    of_cell = support.stratum[:K]
    common = support.common[of_cell]
    p, q = support.n_P / support.n_P.sum(), support.n_Q / support.n_Q.sum()
    lacks_A = (q > p)[of_cell]
    key = np.where(common, np.where(region >= 0, GROUPS + region, kind), np.where(lacks_A, -2, -1))
    occupied = np.bincount(cell[cell >= 0], minlength=K) > 0
    groups = [np.flatnonzero((key == k) & occupied) for k in np.unique(key[occupied])]
    masks = [np.isin(cell, cells) for cells in groups]
    names = name_sets(pooled_attributes(analysis), masks, analysis.sample.drive,
                      fallbacks=[f"traffic {i + 1}" for i in range(len(groups))]) if groups else ()
    found = [_group(analysis, support, name, cells, mask, int(key[cells[0]]))
             for name, cells, mask in zip(names, groups, masks, strict=True)]
    return tuple(sorted(found, key=lambda g: -g.p - g.q))


def _group(analysis: Analysis, support: Support, name: str, cells, mask, key: int) -> PlanGroup:
    n_P, n_Q = (int((mask & (analysis.sample.y == c)).sum()) for c in (0, 1))
    lacking = {-2: OF_A, -1: OF_B}.get(key, "")
    strata = np.unique(support.stratum[cells])
    return PlanGroup(
        name, f"R{key - GROUPS + 1}" if key >= GROUPS else "", tuple(cells.tolist()), not lacking, lacking, n_P, n_Q,
        n_P / analysis.P.n, n_Q / analysis.Q.n,
        sum(_needed(support, int(s), lacking, analysis.config) for s in strata) if lacking else 0,
    )


def _needed(support: Support, stratum: int, lacking: str, config: AnalysisConfig) -> int:
    """Further scenarios of one version after which a stratum counts as met by both (shift/support.py)."""
    n, other = (support.n_P, support.n_Q) if lacking == OF_A else (support.n_Q, support.n_P)
    least = max(config.support_eps, 1 / (1 + config.B))
    mass = least / (1 - least) * other[stratum] / other.sum() * n.sum()
    return max(FEW_SCENARIOS, ceil(max(mass, FEW_SCENARIOS)) - int(n[stratum]))  # at least some of another drive


def cut_tree(tree, K: int, groups: int) -> np.ndarray:
    """(K,) group of each cell when the tree's last merges are undone until there are `groups` of them.

    >>> cut_tree(np.array([[0, 1], [2, 3], [4, 5]]), 4, 2).tolist()
    [0, 0, 1, 1]
    """
    node = np.arange(K)
    for number, (a, b) in enumerate(tree[: max(0, K - groups)], start=K):
        node[(node == a) | (node == b)] = number
    return np.unique(node, return_inverse=True)[1]


def plan(analysis: Analysis, fit: VersionFit, groups: Sequence[PlanGroup], metric: str) -> tuple[PlanRow, ...]:
    """Gains of further scenarios, the largest first, for traffic that both versions met.

    The reference traffic stays as it is: scenarios that are driven on purpose count for a version's events there, not
    for how much of such traffic there is. What is left of a version's variance in a group falls as 1 / n.
    """
    everyone = [np.ones(n, dtype=bool) for n in (analysis.P.n, analysis.Q.n)]
    rows = part_rows(analysis, fit, metric, common_of(fit, *everyone), *everyone)["performance_mean"]
    support, c, y = fit.support, analysis.calibrator, analysis.sample.y
    number = np.full(analysis.space.cells.n + 1, len(groups))  # of each cell's group; the last is no group
    for g, group in enumerate(groups):
        if group.common:
            number[list(group.cells)] = g
    of = number[analysis.space.cell]
    sides = {
        OF_A: _Events.of(rows.of_P, support.of_P, of[y == 0], c.drive_P, len(groups)),
        OF_B: _Events.of(rows.of_Q, support.of_Q, of[y == 1], c.drive_Q, len(groups)),
    }
    variance = sum(_variance(value, drive) for value, drive in ((rows.of_P, c.drive_P), (rows.of_Q, c.drive_Q)))
    half = stats.t.ppf((1 + c.level) / 2, max(min(c.n_drives) - 1, 1)) * np.sqrt(variance)
    found = [row for row in gains(sides, variance, float(half), PER) if groups[row.group].common]
    return tuple(sorted(found, key=lambda row: -row.gain))


@dataclass(frozen=True, eq=False)
class _Events:
    """variance: (G,) that one version's events give the estimate, by group; n: (G,) scenarios behind it."""

    variance: np.ndarray
    n: np.ndarray

    @classmethod
    def of(cls, influence, stratum, group, drive, G: int) -> _Events:
        """Influence within strata: what is left is events, not how much traffic of each kind there is."""
        size = np.maximum(np.bincount(stratum), 1)
        centred = influence - (np.bincount(stratum, influence) / size)[stratum]
        own = [group == g for g in range(G)]
        return cls(np.array([_variance(np.where(rows, centred, 0.0), drive) for rows in own]),
                   np.array([int(rows.sum()) for rows in own]))


def gains(sides: Mapping[str, _Events], variance: float, half_width: float, further: int) -> list[PlanRow]:
    """Every group and version.

        V' = V - V_g further / (n_g + further),     half-width' = half-width sqrt(V' / V),     effective = V / V' - 1
    """
    found = []
    for version, events in sides.items():
        for g, (own, n) in enumerate(zip(events.variance, events.n, strict=True)):
            own = min(own, variance)  # groups of a drive that go against each other may have more than all together
            after = max(variance - own * further / (n + further), 1e-300) if n else variance
            ratio = after / variance if variance > 0 else 1.0
            found.append(PlanRow(g, version, int(n), float(own / variance) if variance > 0 else 0.0,
                                 float(half_width * np.sqrt(ratio)), float(half_width * (1 - np.sqrt(ratio))),
                                 float(1 / ratio - 1)))
    return found


def _variance(influence, drive) -> float:
    """Of the mean of influence values that are alike within a drive, as in Influence.variance."""
    sums = np.bincount(drive, influence) / len(influence)
    return float(len(sums) / max(len(sums) - 1, 1) * (sums @ sums))
