"""The difference of two AV versions, split into what their traffic and what the versions themselves make of it.

With mu_A(P) the mean of the metric of version A on cohort P, P_in and Q_in the scenarios in traffic that both cohorts
met, and mu_A(Q_in) that of A re-weighted to Q_in's traffic,

    mu_B(Q) - mu_A(P) = not comparable + exposure + performance                       (in the manner of Nopo 2008)

    not comparable    = (mu_B(Q) - mu_B(Q_in)) - (mu_A(P) - mu_A(P_in))
    exposure_Q        = mu_A(Q_in) - mu_A(P_in)         performance_Q = mu_B(Q_in) - mu_A(Q_in)       in Q's traffic
    exposure_P        = mu_B(Q_in) - mu_B(P_in)         performance_P = mu_B(P_in) - mu_A(P_in)       in P's traffic

and the mean of both. The sums are exact; every part, sum and mean has its drive-level interval from one set of
influence values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.estimate import Estimate, Influence
from avshift_core.shift.support import Support

REFERENCES = ("P", "Q", "mean")  # whose traffic the versions are compared in; the mean of both is the headline
RATES = ("A_P", "B_Q", "A_in", "B_in", "A_on_Q", "B_on_P")
MIN_GROUP, MIN_GROUP_DRIVES = 20, 5  # scenarios and drives of each version in common traffic behind a group's numbers


@dataclass(frozen=True, eq=False)
class VersionFit:
    """What the split needs beyond the analysis, for all metrics at once.

    Attributes:
        w_P: (n_P,) weights that give P_in the traffic of Q_in, mean 1 there and 0 elsewhere; w_Q: the other way round.
        m_P, m_Q: metric -> (n,) what B would show, predicted from the latent; A's predictions are the calibrator's.
    """

    support: Support
    w_P: np.ndarray
    w_Q: np.ndarray
    m_P: Mapping[str, np.ndarray]
    m_Q: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Split:
    """The parts of mu_B(Q) - mu_A(P) for one metric, of all scenarios or of a group of them.

    Attributes:
        group: "" for all scenarios.
        raw: mu_B(Q) - mu_A(P).
        exposure, performance: reference -> its part; references are "P", "Q" and "mean".
        A_P, B_Q: what was observed. A_in, B_in: the same in common traffic.
        A_on_Q: A re-weighted to the traffic of Q_in; B_on_P: B re-weighted to that of P_in.
        n_P, n_Q: scenarios; in_P, in_Q: those in common traffic; drives_P, drives_Q: drives in common traffic.
        events_P, events_Q: drives with the metric above 0, or below M where these are fewer, in common traffic.
    """

    metric: str
    group: str
    raw: Estimate
    not_comparable: Estimate
    exposure: Mapping[str, Estimate]
    performance: Mapping[str, Estimate]
    A_P: Estimate
    B_Q: Estimate
    A_in: Estimate
    B_in: Estimate
    A_on_Q: Estimate
    B_on_P: Estimate
    n_P: int
    n_Q: int
    in_P: int
    in_Q: int
    drives_P: int
    drives_Q: int
    events_P: int
    events_Q: int

    @property
    def decided(self) -> bool:
        """Whether the performance part is off 0, to the same side, in P's traffic, in Q's and on the mean of both."""
        found = [self.performance[ref] for ref in REFERENCES]
        return all(e.lo > 0 for e in found) or all(e.hi < 0 for e in found)

    @property
    def turns(self) -> bool:
        """Whether the performance part is off 0 in P's traffic to one side, and in Q's to the other."""
        one, other = self.performance["P"], self.performance["Q"]
        return (one.lo > 0 and other.hi < 0) or (one.hi < 0 and other.lo > 0)


def make_fit(analysis: Analysis, support: Support, m_P, m_Q, odds: bool = True) -> VersionFit:
    """Weights between the common traffic of P and Q, both ways.

    Scenarios of a stratum share the mass that it has in the other cohort; within the stratum they do so by the
    classifier's odds, clipped at B both ways, or evenly without `odds`.
    """
    test, B = analysis.global_test, analysis.config.B
    base = [np.clip(np.exp(np.clip(logit, -20, 20)), 1 / B, B) if odds else np.ones(len(logit))
            for logit in (test.logit_P, -test.logit_Q)]
    weights = _raked(support, *base, support.in_P, support.in_Q)
    return VersionFit(support, *weights, *({k: v.astype(np.float32) for k, v in m.items()} for m in (m_P, m_Q)))


def _raked(support: Support, base_P, base_Q, in_P, in_Q) -> tuple[np.ndarray, np.ndarray]:
    """Weights of mean 1 within in_P, in proportion to base_P in every stratum, that give it the strata of in_Q; and
    the other way round."""
    found, S = [], len(support.common)
    for base, of, inside, other, other_inside in ((base_P, support.of_P, in_P, support.of_Q, in_Q),
                                                  (base_Q, support.of_Q, in_Q, support.of_P, in_P)):
        base = np.where(inside, base, 0.0)
        mass = np.bincount(other[other_inside], minlength=S) / max(other_inside.sum(), 1)
        w = base * (mass * inside.sum() / np.maximum(np.bincount(of, base, minlength=S), 1e-300))[of]
        w.setflags(write=False)
        found.append(w)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Common:
    """Scenarios of a group in traffic that both cohorts met, and their weights as in VersionFit."""

    in_P: np.ndarray
    in_Q: np.ndarray
    w_P: np.ndarray
    w_Q: np.ndarray


def common_of(fit: VersionFit, group_P, group_Q) -> Common:
    """Common traffic within a group: strata in which both cohorts have scenarios of it, with masses of the group."""
    s, S = fit.support, len(fit.support.common)
    in_P, in_Q = s.in_P & group_P, s.in_Q & group_Q
    met = (np.bincount(s.of_P[in_P], minlength=S) > 0) & (np.bincount(s.of_Q[in_Q], minlength=S) > 0)
    in_P, in_Q = in_P & met[s.of_P], in_Q & met[s.of_Q]
    return Common(in_P, in_Q, *_raked(s, fit.w_P, fit.w_Q, in_P, in_Q))


@dataclass(frozen=True, eq=False)
class Rows:
    """An estimate with the influence of every scenario of P and of Q on it."""

    mu: float
    of_P: np.ndarray
    of_Q: np.ndarray

    def __sub__(self, other: Rows) -> Rows:
        return Rows(self.mu - other.mu, self.of_P - other.of_P, self.of_Q - other.of_Q)

    def half(self, other: Rows) -> Rows:
        """The mean of two."""
        return Rows((self.mu + other.mu) / 2, (self.of_P + other.of_P) / 2, (self.of_Q + other.of_Q) / 2)


def split_of(analysis: Analysis, fit: VersionFit, metric: str, group_P=None, group_Q=None, name: str = "") -> Split:
    """The parts of one metric; O(n), nothing is trained.

    Args:
        group_P, group_Q: (n,) bool scenarios of each cohort to look at; all when None.
        name: what the group is called.
    """
    c = analysis.calibrator
    group_P, group_Q = (np.ones(n, dtype=bool) if group is None else np.asarray(group, dtype=bool)
                        for n, group in ((len(c.drive_P), group_P), (len(c.drive_Q), group_Q)))
    common = common_of(fit, group_P, group_Q)
    in_P, in_Q = common.in_P, common.in_Q
    drives = [len(np.unique(drive[inside])) for drive, inside in ((c.drive_P, in_P), (c.drive_Q, in_Q))]
    rows = part_rows(analysis, fit, metric, common, group_P, group_Q)

    present = [np.unique(drive[group]) for drive, group in ((c.drive_P, group_P), (c.drive_Q, group_Q))]

    def estimate(value: Rows, low: float) -> Estimate:
        sums = c.sums(value.of_P, value.of_Q)
        own = (s[rows] if len(rows) else s for s, rows in zip(sums, present, strict=True))  # others do not move it
        return c.interval(Influence(value.mu, *own), low=low, drives=min(drives))

    found = {key: estimate(value, 0.0 if key in RATES else -c.M) for key, value in rows.items()}
    events = [_telling_drives(drive[inside], ell[metric][inside], c.M) for drive, inside, ell in (
        (c.drive_P, in_P, c.ell_P), (c.drive_Q, in_Q, c.ell_Q))]
    return Split(
        metric, name, found["raw"], found["not_comparable"],
        *({ref: found[f"{part}_{ref}"] for ref in REFERENCES} for part in ("exposure", "performance")),
        *(found[key] for key in RATES), int(group_P.sum()), int(group_Q.sum()), int(in_P.sum()), int(in_Q.sum()),
        *drives, *events,
    )


def _telling_drives(drive, ell, M: float) -> int:
    """Drives with the rarer of an event and none: a rate near 1 rests on those without one."""
    return min(len(np.unique(drive[ell > 0])), len(np.unique(drive[ell < M])))


def part_rows(
    analysis: Analysis, fit: VersionFit, metric: str, common: Common, group_P, group_Q
) -> dict[str, Rows]:
    """Every part and rate of a split, with the influence of every scenario."""
    c, s = analysis.calibrator, fit.support
    ell_P, ell_Q, none_P, none_Q = c.ell_P[metric], c.ell_Q[metric], np.zeros(len(c.drive_P)), np.zeros(len(c.drive_Q))
    side_P = _Side(ell_P, c.m_P[metric], fit.m_P[metric], s.of_P, common.in_P, common.w_P)
    side_Q = _Side(ell_Q, fit.m_Q[metric], c.m_Q[metric], s.of_Q, common.in_Q, common.w_Q)
    A_P, A_in = (Rows(*_mean(ell_P, rows), none_Q) for rows in (group_P, common.in_P))
    B_Q, B_in = (Rows(mu, none_P, of_Q) for mu, of_Q in (_mean(ell_Q, rows) for rows in (group_Q, common.in_Q)))
    A_on_Q = Rows(*_carried(side_P, side_Q, len(s.common)))
    mu, of_Q, of_P = _carried(side_Q, side_P, len(s.common))
    B_on_P = Rows(mu, of_P, of_Q)
    parts = {
        "A_P": A_P, "B_Q": B_Q, "A_in": A_in, "B_in": B_in, "A_on_Q": A_on_Q, "B_on_P": B_on_P,
        "raw": B_Q - A_P, "not_comparable": (B_Q - B_in) - (A_P - A_in),
        "exposure_P": B_in - B_on_P, "performance_P": B_on_P - A_in,
        "exposure_Q": A_on_Q - A_in, "performance_Q": B_in - A_on_Q,
    }
    return parts | {f"{part}_mean": parts[f"{part}_P"].half(parts[f"{part}_Q"]) for part in ("exposure", "performance")}


@dataclass(frozen=True, eq=False)
class _Side:
    """One cohort: its metric, its own version's prediction and the other version's, stratum, common traffic, weight."""

    ell: np.ndarray
    m_own: np.ndarray
    m_other: np.ndarray
    of: np.ndarray
    inside: np.ndarray
    w: np.ndarray


def _mean(ell, rows) -> tuple[float, np.ndarray]:
    """Mean over some rows, and the influence of every row on it; not-a-number over none."""
    if not rows.any():
        return float("nan"), np.zeros(len(ell))
    mu = float(ell[rows].mean())
    return mu, np.where(rows, ell - mu, 0.0) / rows.mean()


def _carried(own: _Side, other: _Side, S: int) -> tuple[float, np.ndarray, np.ndarray]:
    """A version's mean carried over to the other cohort's traffic, with its influence on own and other rows.

        mu = mean_{other} m + sum_{own} w (ell - m) / sum_{own} w,       over the common traffic of both

    m is the version's own prediction. In stratum k the weights add up to the other cohort's share q_k of it, so mu
    moves with q_k by the weighted mean e_k of e = ell - m - r, where r is the weighted mean residual. Hence the
    influence w (e - e_k) of own rows, and m - mean m, plus e_k less its mean, of the other rows.
    """
    if not own.inside.any() or not other.inside.any():
        return float("nan"), np.zeros(len(own.ell)), np.zeros(len(other.ell))
    residual = own.ell - own.m_own
    r = float(own.w @ residual / own.w.sum())
    e = np.where(own.inside, residual - r, 0.0)
    within = np.bincount(own.of, own.w * e, minlength=S) / np.maximum(np.bincount(own.of, own.w, minlength=S), 1e-300)
    of_own = own.w * (e - within[own.of]) / own.inside.mean()
    mu_m, of_m = _mean(other.m_other, other.inside)
    pull = within[other.of]
    of_other = of_m + np.where(other.inside, pull - pull[other.inside].mean(), 0.0) / other.inside.mean()
    return mu_m + r, of_own, of_other


def split_by(analysis: Analysis, fit: VersionFit, metric: str, column: str = "category") -> tuple[Split, ...]:
    """The split within every level of an attribute, the largest first; groups that are too small are left out."""
    P, Q = analysis.P.obs, analysis.Q.obs
    for cohort in (analysis.P, analysis.Q):
        if column not in cohort.obs:
            raise CohortError(f"Cohort '{cohort.name}' has no column '{column}'. Choose another.")
    levels = pd.concat([P[column], Q[column]]).astype(str).value_counts().index
    groups = [(level, (P[column].astype(str) == level).to_numpy(), (Q[column].astype(str) == level).to_numpy())
              for level in levels]
    return _group_splits(analysis, fit, metric, groups)


def split_by_region(analysis: Analysis, fit: VersionFit, metric: str) -> tuple[Split, ...]:
    """The split within R1..RK and in what lies in none; () where no regions were looked for or found."""
    local = analysis.local
    if local is None or not local.regions:
        return ()
    groups = [(f"R{k + 1}", local.region_P == k, local.region_Q == k) for k in range(len(local.regions))]
    return _group_splits(analysis, fit, metric, [*groups, ("elsewhere", local.region_P < 0, local.region_Q < 0)])


def _group_splits(analysis: Analysis, fit: VersionFit, metric: str, groups: Sequence) -> tuple[Split, ...]:
    splits = (split_of(analysis, fit, metric, of_P, of_Q, name) for name, of_P, of_Q in groups)
    return tuple(s for s in splits if min(s.in_P, s.in_Q) >= MIN_GROUP and min(s.drives_P, s.drives_Q) >=
                 MIN_GROUP_DRIVES)


def parts_table(splits: Sequence[Split]) -> pd.DataFrame:
    """One row a group, metric and part: value, interval and standard error."""
    rows = []
    for split in splits:
        parts = {"raw": split.raw, "not_comparable": split.not_comparable}
        for ref in REFERENCES:
            parts |= {f"exposure_{ref}": split.exposure[ref], f"performance_{ref}": split.performance[ref]}
        parts |= {key: getattr(split, key) for key in RATES}
        counts = {f.name: getattr(split, f.name) for f in fields(split) if f.type == "int"}
        rows += [{"metric": split.metric, "group": split.group, "part": name, "mu": e.mu, "lo": e.lo, "hi": e.hi,
                  "se": e.se, **counts} for name, e in parts.items()]
    return pd.DataFrame(rows)
