"""What the calibrated number is made of: contributions of the regions, rates by category, the sweep of the clip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from avshift_core.errors import CohortError
from avshift_core.latent.cells import OUTSIDE
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.calibrate import Calibration, Calibrator
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.rates import design_effect_of_mean, rate_interval
from avshift_core.shift.trust import mse_gain, mse_terms

ELSEWHERE, UNDRAWN = 0, -1  # numbers of what lies in no region, and of drives that were not drawn
LEFT_OUT = 600  # drives are left out one by one up to this many, beyond in as many random groups
FEW_SCENARIOS, FEW_DRIVES = 10, 3  # a rate on fewer is no number
MISSING = "not known"


@dataclass(frozen=True)
class Contribution:
    """Part of `strata - naive` that one region, or what lies in none (k = ELSEWHERE), gives.

    Where P is a sample of its drives, the others move both rates, and not by the same (k = UNDRAWN): they have no place
    in latent space, and no mass.

    Attributes:
        move: sum over its strata s of (mass_s - p_s) (m_s - mu_naive), with its drive-level interval.
        p, q: its shares of the scenarios of P and of Q. mass: the share it carries in the estimate, after the clip.
        rate: mean of the metric among the scenarios of P there, None without any.
        n_P, n_Q: its scenarios.
    """

    k: int
    name: str
    move: Estimate
    p: float
    q: float
    mass: float
    rate: float | None
    n_P: int
    n_Q: int


@dataclass(frozen=True)
class GroupRate:
    """Rates of one level of an attribute; None where there are fewer than 10 scenarios or 3 drives.

    Attributes:
        naive: mean of P in the level. calibrated: the same under the weights of `strata`. target: mean of Q.
        n_P, n_Q, drives_P, drives_Q: scenarios and drives of the level.
    """

    level: str
    naive: Estimate | None
    calibrated: Estimate | None
    target: Estimate | None
    n_P: int
    n_Q: int
    drives_P: int
    drives_Q: int

    @property
    def small(self) -> bool:
        """Whether one of the cohorts has too little of it for a number."""
        return self.naive is None or self.target is None


@dataclass(frozen=True)
class MseCondition:
    """eq:lis_mse_dominance with plug-in values; it holds when `removed` is above `added`.

    Attributes:
        removed: estimate of the squared bias of the naive mean. added: variance of the estimate minus that of the
        naive mean; below 0 where the estimate varies less.
        gain, status, sentence: as in the trust panel.
    """

    removed: float
    added: float
    gain: float
    status: str
    sentence: str

    @property
    def holds(self) -> bool:
        return self.removed > self.added


@dataclass(frozen=True, eq=False)
class Tables:
    """Counts by stratum and by what is left out: one drive, or a group of drives, a column.

    Attributes:
        n, event, n_Q: (S,) scenarios of P, sum of the metric over them, scenarios of Q.
        n_out, event_out, n_Q_out: (S, D) the same in each column.
        group_P, group_Q: (n,) column of each scenario.
    """

    n: np.ndarray
    event: np.ndarray
    n_Q: np.ndarray
    n_out: np.ndarray
    event_out: np.ndarray
    n_Q_out: np.ndarray
    group_P: np.ndarray
    group_Q: np.ndarray


def contributions(analysis: Analysis, metric: str, B: float) -> tuple[Contribution, ...]:
    """How R1..RK and what lies outside move the metric from naive to calibrated, at clip B.

        C_g = sum_{s in g} (mass_s - p_s) (m_s - mu_naive),      sum_g C_g = strata - naive

    mass_s is the clipped, normalised mass of stratum s, m_s the mean of the metric among P there. Centring at mu_naive
    changes no sum, because both masses add up to 1; it makes a region that grows count by how much its rate differs
    from the mean. Without a local test everything is "elsewhere". Intervals leave out one drive of P or of Q at a time,
    and clip again. Where P is a sample of its drives, naive is that of the drawn ones here, and what the others add is
    a step of its own.
    """
    calibrator = analysis.calibrator
    strata, table = calibrator.cells, leave_out_tables(calibrator, metric)
    of_stratum = _regions_of_strata(analysis, len(strata.q))
    K = int(of_stratum.max())
    member = (np.arange(K + 1)[:, None] == of_stratum).astype(float)  # (K + 1, S), row 0 elsewhere
    free = strata.free[:, None]

    def moves(n, event, n_Q):  # (S, D) each -> (K + 1, D)
        mass, p = given_masses(n, n_Q, free, B)
        return member @ ((mass - p) * (event / np.maximum(n, 1) - event.sum(axis=0) / n.sum(axis=0)))

    n, event, n_Q = (x[:, None] for x in (table.n, table.event, table.n_Q))
    move = moves(n, event, n_Q)[:, 0]
    variance = _jackknife(moves(n - table.n_out, event - table.event_out, n_Q))
    variance += _jackknife(moves(n, event, n_Q - table.n_Q_out))
    half = stats.t.ppf((1 + calibrator.level) / 2, min(calibrator.n_drives) - 1) * np.sqrt(variance)
    M = calibrator.M
    mass, p = (member @ x[:, 0] for x in given_masses(n, n_Q, free, B))
    count, count_Q, events = member @ table.n, member @ table.n_Q, member @ table.event
    parts = tuple(
        Contribution(
            g, f"R{g}" if g else "elsewhere",
            Estimate(float(move[g]), *np.clip([move[g] - half[g], move[g] + half[g]], -M, M).tolist(),
                     float(np.sqrt(variance[g]))),
            float(p[g]), float(count_Q[g] / table.n_Q.sum()), float(mass[g]),
            float(events[g] / count[g]) if count[g] else None, int(count[g]), int(count_Q[g]),
        )
        for g in (*range(1, K + 1), ELSEWHERE)
    )
    undrawn = calibrator.undrawn(metric, B)
    return parts if undrawn is None else (*parts, Contribution(UNDRAWN, "not drawn", undrawn, 0, 0, 0, None, 0, 0))


def by_category(analysis: Analysis, metric: str, B: float, column: str = "category") -> tuple[GroupRate, ...]:
    """Rates of the metric in each level of an attribute, the largest level first.

        calibrated_g = sum_{i in g} w_i ell_i / sum_{i in g} w_i,     w of `strata`

    Intervals are drive-level: the spread when one drive of P or of Q is left out, weights made again, in the form for
    rates of Korn and Graubard. They hold for each level by itself, not for all of them at once.
    """
    calibrator, P, Q = analysis.calibrator, analysis.P, analysis.Q
    strata, table = calibrator.cells, leave_out_tables(calibrator, metric)
    code, levels = _levels(P, Q, column)
    of_P, of_Q, G, S = code[: P.n], code[P.n :], len(levels), len(strata.q)
    ell_P, ell_Q = calibrator.ell_P[metric], calibrator.ell_Q[metric]
    D, D_Q = table.n_out.shape[1], table.n_Q_out.shape[1]
    n, n_Q, free = table.n[:, None], table.n_Q[:, None], strata.free[:, None]
    count, event = (_cross(of_P, strata.of_P, G, S, value) for value in (None, ell_P))

    def weights(n, n_Q):  # (S, D) of one scenario in each stratum
        return given_masses(n, n_Q, free, B)[0] / np.maximum(n, 1)

    w, w_Q = weights(n - table.n_out, n_Q), weights(n, n_Q - table.n_Q_out)
    own = w[strata.of_P, table.group_P]
    without = lambda total, value: total - _cross(of_P, table.group_P, G, D, value)  # noqa: E731
    naive = without(_cross(of_P, None, G, 1, ell_P), ell_P), without(_cross(of_P, None, G, 1, None), None)
    target = [_cross(of_Q, None, G, 1, v) - _cross(of_Q, table.group_Q, G, D_Q, v) for v in (ell_Q, None)]
    spread = {
        "naive": _jackknife(_ratio(*naive)),
        "calibrated": _jackknife(_ratio(without(event @ w, own * ell_P), without(count @ w, own)))
        + _jackknife(_ratio(event @ w_Q, count @ w_Q)),
        "target": _jackknife(_ratio(*target)),
    }
    w = weights(n, n_Q)
    value = {
        "naive": _ratio(event.sum(axis=1), count.sum(axis=1)), "calibrated": _ratio(event @ w, count @ w)[:, 0],
        "target": _ratio(np.bincount(of_Q, ell_Q, G), np.bincount(of_Q, minlength=G)),
    }
    return tuple(sorted(_group_rates(analysis, metric, levels, of_P, of_Q, value, spread),
                        key=lambda g: (-g.n_P - g.n_Q, g.level)))


def sweep(analysis: Analysis, metric: str, clips: Sequence[float]) -> tuple[Calibration, ...]:
    """Every estimate of a metric over a grid of clips; O(n) each."""
    return tuple(analysis.calibrate(B, metric) for B in clips)


def mse_condition(c: Calibration, n_P: int) -> MseCondition:
    """Whether calibration removes more squared bias than it adds variance, at one clip."""
    removed, added = mse_terms(c, n_P)
    check = mse_gain(c.metric, c, n_P)
    return MseCondition(removed, added, check.value, check.status, check.text)


def leave_out_tables(calibrator: Calibrator, metric: str) -> Tables:
    """Counts by stratum and by drive; beyond LEFT_OUT drives by random group of drives."""
    strata = calibrator.cells
    S, ell = len(strata.q), calibrator.ell_P[metric]
    group_P, D = _columns(calibrator.drive_P, calibrator.n_drives[0])
    group_Q, D_Q = _columns(calibrator.drive_Q, calibrator.n_drives[1])
    n_out, event_out = (_cross(strata.of_P, group_P, S, D, value) for value in (None, ell))
    n_Q_out = _cross(strata.of_Q, group_Q, S, D_Q, None)
    return Tables(
        n_out.sum(axis=1), event_out.sum(axis=1), n_Q_out.sum(axis=1), n_out, event_out, n_Q_out, group_P, group_Q
    )


def given_masses(n, n_Q, free, B: float) -> tuple[np.ndarray, np.ndarray]:
    """(S, D) share of the estimate that each stratum carries, and its share of P.

    The rule of Strata.masses, for other counts; a stratum that lost its last scenario of P has nothing to carry. Which
    strata are free stays: that jumps, and no jackknife holds for a jump.

    >>> mass, p = given_masses(np.array([[1.0], [3.0]]), np.array([[2.0], [2.0]]), np.array([[True], [True]]), 10)
    >>> mass[:, 0].tolist(), p[:, 0].tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """
    p, q = n / n.sum(axis=0), n_Q / n_Q.sum(axis=0)
    mass = np.where(free, np.minimum(q, B * p), p) * (n > 0)
    return mass / mass.sum(axis=0), p


def _group_rates(analysis: Analysis, metric: str, levels, of_P, of_Q, value, spread):
    calibrator, P, Q = analysis.calibrator, analysis.P, analysis.Q
    M = calibrator.M
    sides = {
        "naive": (of_P, P.drive, P.n_drives, calibrator.ell_P[metric]),
        "target": (of_Q, Q.drive, Q.n_drives, calibrator.ell_Q[metric]),
    }
    sides["calibrated"] = sides["naive"]
    design = {name: design_effect_of_mean(drive, ell / M) for name, (_, drive, _, ell) in sides.items()}
    n = {name: np.bincount(of, minlength=len(levels)) for name, (of, *_) in sides.items()}
    drives = {
        name: (_cross(of, drive, len(levels), D, None) > 0).sum(axis=1) for name, (of, drive, D, _) in sides.items()
    }

    def estimate(name: str, g: int) -> Estimate | None:
        few = n[name][g] < FEW_SCENARIOS or drives[name][g] < FEW_DRIVES
        if few or not np.isfinite(value[name][g] + spread[name][g]):
            return None
        mu, se = float(value[name][g]), float(np.sqrt(spread[name][g]))
        low, high = rate_interval(mu / M, se / M, int(n[name][g]), int(drives[name][g]), calibrator.level, design[name])
        return Estimate(mu, min(M * low, mu), max(M * high, mu), se)

    for g, level in enumerate(levels):
        yield GroupRate(
            level, *(estimate(name, g) for name in ("naive", "calibrated", "target")), int(n["naive"][g]),
            int(n["target"][g]), int(drives["naive"][g]), int(drives["target"][g]),
        )


def _regions_of_strata(analysis: Analysis, S: int) -> np.ndarray:
    """(S,) number of the region of each stratum, ELSEWHERE if in none; the last stratum holds what is in no cell."""
    number = np.full(S, ELSEWHERE)
    if analysis.local is not None:
        region = analysis.local.region_of_cell
        number[: len(region)] = np.where(region == OUTSIDE, ELSEWHERE, region + 1)
    return number


def _levels(P, Q, column: str) -> tuple[np.ndarray, list[str]]:
    """(n_P + n_Q,) level of each scenario, and the levels' names."""
    for cohort in (P, Q):
        if column not in cohort.obs:
            raise CohortError(f"Cohort '{cohort.name}' has no column '{column}'; found "
                              f"{', '.join(map(str, cohort.obs.columns)) or 'none'}. Choose one of them.")
    both = pd.concat([P.obs[column], Q.obs[column]], ignore_index=True)
    code, levels = pd.factorize(both, sort=False)
    names = [str(level) for level in levels]
    if (code < 0).any():
        code, names = np.where(code < 0, len(names), code), [*names, MISSING]
    return code, names


def _columns(drive, D: int) -> tuple[np.ndarray, int]:
    if D <= LEFT_OUT:
        return drive, D
    return (np.random.default_rng(0).permutation(D) % LEFT_OUT)[drive], LEFT_OUT


def _cross(row, column, R: int, C: int, value) -> np.ndarray:
    """(R, C) sums of `value`, or counts without it."""
    flat = row if column is None else row * C + column
    return np.bincount(flat, value, minlength=R * C).reshape(R, C).astype(float)


def _ratio(sums, counts) -> np.ndarray:
    """sums / counts, not-a-number where nothing is counted."""
    return np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 1e-12)


def _jackknife(left_out) -> np.ndarray:
    """(G,) variance of an estimate from its values (G, D) with each of the D drives left out.

        V = (D - 1) / D * sum_d (theta_(d) - mean theta)^2

    >>> _jackknife(np.array([[1.0, 2.0, 3.0]])).round(3).tolist()      # 2/3 * 2
    [1.333]
    """
    D = left_out.shape[1]
    return (D - 1) / D * ((left_out - left_out.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
