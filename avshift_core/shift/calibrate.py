"""Calibration: the target's metric from the source's scenarios, by every weighting, with drive-level intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError
from avshift_core.latent.cells import OUTSIDE
from avshift_core.latent.cohort import Rest
from avshift_core.latent.space import Space
from avshift_core.shift.c2st import GlobalTest
from avshift_core.shift.drives import Pool
from avshift_core.shift.estimate import Estimate, Influence, difference
from avshift_core.shift.local import LocalTest
from avshift_core.shift.local_paper import PaperRegions
from avshift_core.shift.rates import design_effect_of_mean, rate_interval
from avshift_core.shift.undrawn import followed
from avshift_core.shift.weighting import entropy_balance, outcome_models, pareto_khat

ESTIMATORS = ("lis_paper", "lis", "ipw", "aipw", "balance", "strata")
HEADLINE = "strata"  # needs no outcome model; error near the best on both benchmarks (benchmarks/README.md)


@dataclass(frozen=True)
class Calibration:
    """All estimates of one metric at one clip B.

    Attributes:
        naive: mean of P. target: mean of Q, where it is known.
        lis_paper, lis: localized importance sampling; None when no regions were looked for.
        ipw, aipw: classifier weights, without and with an outcome model. balance: entropy balancing.
        strata: every cell carries its mass under Q (post-stratification). The default.
        traffic: strata - naive, what the change of traffic explains. residual: target - strata, what it does not.
        ess, ess_drives: effective numbers of scenarios and of drives under the weights of `strata`.
        khat: Pareto tail index of the classifier weights, before the clip.
        clipped_mass, uncovered_mass: mass of Q lost to the clip, and in cells without support in P.
        top_drive: largest share of the weight on one drive.
        event_drives: drives of P in which the metric is above 0.
        sigma2_naive, sigma2_lis: n times the variance of naive and strata, for eq:lis_mse_dominance.
    """

    metric: str
    B: float
    naive: Estimate
    target: Estimate
    lis_paper: Estimate | None
    lis: Estimate | None
    ipw: Estimate
    aipw: Estimate
    balance: Estimate | None
    strata: Estimate
    traffic: Estimate
    residual: Estimate
    ess: float
    ess_drives: float
    khat: float
    clipped_mass: float
    uncovered_mass: float
    top_drive: float
    event_drives: int
    sigma2_naive: float
    sigma2_lis: float

    @property
    def mu_naive(self) -> float:
        return self.naive.mu

    @property
    def mu_target(self) -> float:
        return self.target.mu

    @property
    def mu_lis(self) -> float | None:
        return None if self.lis is None else self.lis.mu

    def estimates(self) -> dict[str, Estimate | None]:
        """Every estimate by its name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name in ("naive", "target", *ESTIMATORS)}


@dataclass(frozen=True, eq=False)
class Strata:
    """A partition of the scenarios in which weights are constant.

    Attributes:
        of_P, of_Q: (n,) stratum 0..S-1 of each scenario.
        q: (S,) mass under Q, on the scenarios `measure_Q`.
        p: (S,) mass under P, on the scenarios `measure_P`, for the clip q / p <= B.
        free: (S,) False where the weight stays 1 (no support in P).
        measure_P, measure_Q: (n,) scenarios behind p and q.
    """

    of_P: np.ndarray
    of_Q: np.ndarray
    q: np.ndarray
    p: np.ndarray
    free: np.ndarray
    measure_P: np.ndarray
    measure_Q: np.ndarray

    def masses(self, B: float) -> tuple[np.ndarray, np.ndarray]:
        """(S,) mass each stratum is given at clip B, and which strata are clipped."""
        clipped = self.q > B * self.p
        given = np.where(clipped, B * self.p, self.q)
        return np.where(self.free, given, self.p), clipped & self.free

    def weights(self, B: float) -> np.ndarray:
        """(n_P,) weights: scenarios of P share the mass of their stratum."""
        count = np.bincount(self.of_P, minlength=len(self.q))
        return (self.masses(B)[0] * len(self.of_P) / np.maximum(count, 1))[self.of_P]


@dataclass(frozen=True, eq=False)
class Calibrator:
    """All that calibration needs and B does not change, so that moving the clip costs milliseconds.

    Where a cohort is a sample, drives that were not drawn (rest_P, rest_Q) count in the observed rates, and calibrated
    ones follow (undrawn.py).
    """

    ell_P: Mapping[str, np.ndarray]
    ell_Q: Mapping[str, np.ndarray]
    m_P: Mapping[str, np.ndarray]
    m_Q: Mapping[str, np.ndarray]
    drive_P: np.ndarray
    drive_Q: np.ndarray
    n_drives: tuple[int, int]
    w_ipw: np.ndarray
    w_balance: Mapping[str, np.ndarray | None]
    cells: Strata
    regions: Strata | None
    paper_P: np.ndarray | None
    paper_Q: np.ndarray | None
    uncovered_mass: float
    khat: float
    level: float
    M: float
    rest_P: Rest | None = None
    rest_Q: Rest | None = None

    def calibrate(self, metric: str, B: float) -> Calibration:
        """Every estimate of one metric at clip B, O(n)."""
        if not B > 0:
            raise ConfigError(f"B is {B:g}; the clip of the weights must be above 0.")
        ell, m_P, m_Q = self.ell_P[metric], self.m_P[metric], self.m_Q[metric]
        naive, target = self._whole_mean(metric, 0), self._whole_mean(metric, 1)
        moved = self._following(metric)
        rate = lambda value, bias=0.0: self._rate(moved(value), bias, value.drives)  # noqa: E731
        w = self.cells.weights(B)
        strata = self._stratified(self.cells, ell, B)
        shown = moved(strata)
        w_ipw = np.minimum(self.w_ipw, B)
        found: dict[str, Estimate | None] = {name: None for name in ESTIMATORS}
        per_drive = np.bincount(self.drive_P, w)
        ess, ess_drives = (float(v.sum() ** 2 / (v @ v)) for v in (w, per_drive))
        found["strata"] = self._counted(shown, ess, ess_drives, 1, metric, strata.drives)
        found["ipw"] = rate(self._weighted(w_ipw, ell, m_P, m_Q))
        found["aipw"] = rate(self._weighted(_rake(w_ipw, self.cells, B), ell, m_P, m_Q, augment=True))
        if self.w_balance[metric] is not None:
            found["balance"] = rate(self._weighted(np.minimum(self.w_balance[metric], B), ell, m_P, m_Q))
        if self.regions is not None:
            lis = self._stratified(self.regions, ell, B)
            found["lis"] = rate(lis, lis.mu - strata.mu)  # what the regions leave, as the cells see it
            found["lis_paper"] = rate(self._paper(ell, B))
        seen_in_P, seen_in_Q = (self._counted(v, *self._size(k), 1 - k, metric) for k, v in enumerate((naive, target)))
        return Calibration(
            metric=metric, B=B, **found, target=seen_in_Q,
            naive=seen_in_P, traffic=self._apart(shown, naive, found["strata"], seen_in_P, strata.drives),
            residual=self._apart(target, shown, seen_in_Q, found["strata"], strata.drives),
            ess=ess, ess_drives=ess_drives, khat=self.khat,
            clipped_mass=float((self.cells.q - self.cells.masses(B)[0])[self.cells.free].clip(0).sum()),
            uncovered_mass=self.uncovered_mass, top_drive=float(per_drive.max() / per_drive.sum()),
            event_drives=_with_some(self.drive_P, ell),
            sigma2_naive=naive.variance * len(ell), sigma2_lis=shown.variance * len(ell),
        )

    def interval(self, value: Influence, bias: float = 0.0, low: float = 0.0, drives: int | None = None) -> Estimate:
        """Value and interval within [low, M].

        Args:
            bias: a systematic part that the standard error does not hold.
            drives: those behind the value, where they are fewer than the cohorts have.
        """
        t = stats.t.ppf((1 + self.level) / 2, max(2, drives or value.drives) - 1)
        half = t * np.sqrt(value.variance + bias**2)
        mu, lo, hi = np.clip([value.mu, value.mu - half, value.mu + half], low, self.M)
        return Estimate(float(mu), float(lo), float(hi), float(np.sqrt(value.variance)))

    def _rate(self, value: Influence, bias: float = 0.0, drives: int | None = None) -> Estimate:
        """A rate with its interval, which for few events reaches farther up than down (Korn and Graubard 1998)."""
        found = self.interval(value, bias, drives=drives)
        if found.se == 0 or not 0 < found.mu < self.M:
            return found
        most, drives = sum(self._size(side)[0] for side in (0, 1)), drives or value.drives
        lo, hi = rate_interval(found.mu / self.M, np.hypot(found.se, bias) / self.M, most, drives, self.level)
        return replace(found, lo=self.M * lo, hi=self.M * hi)

    def _apart(self, a: Influence, b: Influence, seen_a: Estimate, seen_b: Estimate, told: int) -> Estimate:
        """a - b; where one of them shows no spread, by the intervals of both, as if they were independent."""
        if min(a.variance, b.variance) > 0:
            return self.interval(a - b, low=-self.M, drives=min((a - b).drives, told))
        return difference(seen_a, seen_b)

    def undrawn(self, metric: str, B: float) -> Estimate | None:
        """What drives that were not drawn add to `traffic`; None where all were."""
        if self.rest_P is None:
            return None
        strata, drawn = self._stratified(self.cells, self.ell_P[metric], B), self._mean(self.ell_P[metric], 0)
        own = self._following(metric)(strata) - strata - (self._whole_mean(metric, 0) - drawn)
        return self.interval(own, low=-self.M, drives=strata.drives)

    def _counted(
        self, value: Influence, n: float, drives: float, other: int, metric: str, told: int | None = None
    ) -> Estimate:
        """Interval of a rate; where no scenario has the event, or every one, by how many there were.

        Args:
            n, drives: effective numbers behind it; other: the cohort that tells how alike scenarios of a drive are.
            told: drives that its standard error was seen on, where they are fewer than those behind it.
        """
        found = self._rate(value, drives=told)
        if value.variance > 0:
            return found
        drive, ell = ((self.drive_P, self.ell_P), (self.drive_Q, self.ell_Q))[other]
        design = design_effect_of_mean(drive, ell[metric] / self.M)
        lo, hi = rate_interval(value.mu / self.M, 0.0, n, drives, self.level, design)
        return replace(found, lo=self.M * lo, hi=self.M * hi)

    def sums(self, of_P=None, of_Q=None) -> tuple[np.ndarray, np.ndarray]:
        """Influence values -> sums within drives over the number of scenarios."""
        sides = (of_P, self.drive_P, self.n_drives[0]), (of_Q, self.drive_Q, self.n_drives[1])
        return tuple(
            np.zeros(D) if value is None else np.bincount(drive, value, minlength=D) / len(drive)
            for value, drive, D in sides
        )

    def _mean(self, ell, side: int) -> Influence:
        mu = float(ell.mean())
        return Influence(mu, *(self.sums(of_P=ell - mu) if side == 0 else self.sums(of_Q=ell - mu)))

    def _whole_mean(self, metric: str, side: int) -> Influence:
        """Mean of a cohort with all of its drives, also those that were not drawn."""
        ell, rest = (self.ell_P, self.rest_P) if side == 0 else (self.ell_Q, self.rest_Q)
        drawn = self._mean(ell[metric], side)
        if rest is None:
            return drawn
        n, total = len(ell[metric]) + rest.n.sum(), ell[metric].sum() + rest.ell[metric].sum()
        own = ell[metric] - total / n
        counted = (self.sums(of_P=own) if side == 0 else self.sums(of_Q=own))[side] * len(own) / n
        sums = [drawn.source, drawn.target]
        sums[side] = np.concatenate([counted, (rest.ell[metric] - total / n * rest.n) / n])
        return Influence(float(total / n), *sums)

    def _following(self, metric: str) -> Callable[[Influence], Influence]:
        """A calibrated rate of the drawn drives -> the same with what is known of the others."""
        if self.rest_P is None:
            return lambda value: value
        ell = self.ell_P[metric]
        told = min(_with_some(self.drive_P, ell), _with_some(self.drive_P, self.M - ell))
        return partial(followed, drawn=self._mean(ell, 0), whole=self._whole_mean(metric, 0), told=told, M=self.M)

    def _size(self, side: int) -> tuple[float, int]:
        """Scenarios and drives of a cohort, with those that were not drawn."""
        drive, rest = (self.drive_P, self.rest_P) if side == 0 else (self.drive_Q, self.rest_Q)
        more = (0.0, 0) if rest is None else (float(rest.n.sum()), len(rest.n))
        return len(drive) + more[0], self.n_drives[side] + more[1]

    def _weighted(self, w, ell, m_P, m_Q, augment: bool = False) -> Influence:
        """Self-normalised weighted mean, or with `augment` the doubly robust one.

            mu = sum w ell / sum w   [ + mean_Q m - sum w m / sum w ]

        The interval takes the efficient influence function w (ell - m), m_Q - mean m: it counts that the weights,
        too, were learnt from a sample of Q.
        """
        w = w / w.mean()
        mu = float((w * ell).mean())
        if augment:
            mu += float(m_Q.mean() - (w * m_P).mean())
        residual = w * (ell - m_P)
        return Influence(mu, *self.sums(residual - w * residual.mean(), m_Q - m_Q.mean()))

    def _stratified(self, strata: Strata, ell, B: float) -> Influence:
        """sum_k q_k mean_P(ell | stratum k): P's share of a stratum cancels, what counts is Q's.

        This is self-normalised LIS (eq:self_normalized_lis) with outside weight (1 - sum q_k) / (1 - sum p_k).
        """
        S = len(strata.q)
        mass, clipped = strata.masses(B)
        count = np.bincount(strata.of_P, minlength=S)
        within = np.bincount(strata.of_P, ell, minlength=S) / np.maximum(count, 1)
        mass = np.where(count > 0, mass, 0)
        total = mass.sum()
        mu = float(mass @ within / total)
        w = (mass / total * len(ell) / np.maximum(count, 1))[strata.of_P]
        pull = np.where(count > 0, within - mu, 0.0) / total  # of a stratum's mass on mu
        by_Q = strata.free & ~clipped  # its mass is q there, else a multiple of p
        of_P = w * (ell - within[strata.of_P])
        of_P += _measured(np.where(clipped, B, 1.0) * np.where(by_Q, 0.0, pull), strata.of_P, strata.measure_P)
        return Influence(mu, *self.sums(of_P, _measured(np.where(by_Q, pull, 0.0), strata.of_Q, strata.measure_Q)))

    def _paper(self, ell, B: float) -> Influence:
        """w_k = min(q_k / p_k, B), 1 outside (eq:localized_weight), self-normalised; masses where they were chosen."""
        K = int(max(self.paper_P.max(), self.paper_Q.max())) + 2  # the last entry is OUTSIDE
        p = np.bincount(self.paper_P % K, minlength=K) / len(self.paper_P)
        q = np.bincount(self.paper_Q % K, minlength=K) / len(self.paper_Q)
        w_k = np.where(p > 0, np.minimum(q / np.maximum(p, 1e-300), B), 1.0)
        w_k[-1] = 1.0
        w = w_k[self.paper_P % K]
        mu = float(w @ ell / w.sum())
        return Influence(mu, *self.sums(of_P=w / w.mean() * (ell - mu)))


def _with_some(drive, value) -> int:
    """Drives in which the value is not 0 throughout."""
    return int((np.bincount(drive, value) > 0).sum())


def _measured(pull, stratum, measures) -> np.ndarray:
    """(n,) influence of the scenarios that measured the strata's masses, centred."""
    value = pull[stratum] * len(stratum) / measures.sum()
    return np.where(measures, value - value[measures].mean(), 0.0)


def make_calibrator(
    P, Q, space: Space, sample: Pool, test: GlobalTest, local: LocalTest | None, paper: PaperRegions | None,
    metrics, config: AnalysisConfig,
) -> Calibrator:
    """Fit the outcome models and collect weights and strata."""
    m_P, m_Q = outcome_models(P, 0, space, sample, metrics, config) if metrics else ({}, {})
    bare = [] if local is None else [cell for place in local.overlap_violations for cell in place.cells]
    cells = cell_strata(space.cell, space.cells.n, sample.y, config.support_eps, bare)
    regions = _region_strata(local) if local is not None else None
    w_ipw = np.exp(np.clip(test.logit_P, -20, 20))  # h / (1 - h)
    return Calibrator(
        {k: P.ell[k] for k in metrics}, {k: Q.ell[k] for k in metrics}, m_P, m_Q, P.drive, Q.drive,
        (P.n_drives, Q.n_drives), w_ipw,
        {k: entropy_balance(test, m_P[k], m_Q[k]) for k in metrics}, cells, regions,
        None if paper is None else paper.region_P, None if paper is None else paper.region_Q,
        float(cells.q[~cells.free].sum()), pareto_khat(w_ipw), config.level, config.M, P.rest, Q.rest,
    )


def cell_strata(cell, K: int, y, support_eps: float, bare: Sequence[int] = ()) -> Strata:
    """All K cells as strata; a cell with next to nothing of P keeps weight 1. Scenarios in no ball join the last.

    Args:
        bare: cells that the local test has found to be without support.
    """
    of_P, of_Q = (np.where(cell >= 0, cell, K)[y == c] for c in (0, 1))
    p = np.bincount(of_P, minlength=K + 1) / len(of_P)
    q = np.bincount(of_Q, minlength=K + 1) / len(of_Q)
    free = (p > 0) & (p >= support_eps * (p + q))
    free[list(bare)] = False
    return Strata(of_P, of_Q, q, p, free, np.ones(len(of_P), dtype=bool), np.ones(len(of_Q), dtype=bool))


def _region_strata(local: LocalTest) -> Strata:
    """Regions and what lies outside them, with the masses of the measuring drives."""
    K = len(local.regions)
    of_P, of_Q = (np.where(r == OUTSIDE, K, r) for r in (local.region_P, local.region_Q))
    p = np.bincount(of_P[local.measure_P], minlength=K + 1) / local.measure_P.sum()
    q = np.bincount(of_Q[local.measure_Q], minlength=K + 1) / local.measure_Q.sum()
    return Strata(of_P, of_Q, q, p, p > 0, local.measure_P, local.measure_Q)


def _rake(w, cells: Strata, B: float) -> np.ndarray:
    """Scale classifier weights so that every cell with support carries its mass under Q."""
    mass = cells.masses(B)[0] * len(w)
    have = np.bincount(cells.of_P, w, minlength=len(mass))
    return w * (mass / np.maximum(have, 1e-300))[cells.of_P]
