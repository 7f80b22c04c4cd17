"""Synthetic pairs of cohorts with known truth: the paper's three cases on a line, and clusters in 64 dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import integrate, stats

from avshift_core.errors import ConfigError
from avshift_core.latent.cohort import Cohort, make_cohort

METRIC = "ell"
UNCHANGED = "unchanged"  # the same events as the first AV version would have had them, where Q was driven by a second
SHIFTED = 0.2  # the shift of the 64-D clusters is -0.68 or at least +0.8


@dataclass(frozen=True, eq=False)
class Truth:
    """What an estimate is measured against.

    Attributes:
        mu_P, mu_Q: expected metric under P and Q.
        gamma_star: advantage of the best possible classifier, half of the total variation (prop:classifier_tv).
        w, w_Q: (n,) exact density ratio dQ/dP at the scenarios of P and of Q.
        cluster_P, cluster_Q: (n,) number of the shifted cluster a scenario was drawn from, -1 for the others;
            None on the line, where there are none.
        mu_B_P, mu_B_Q: expected metric of a second AV version under P and Q, where Q was driven by one; mu_P and mu_Q
            are those of the first.
        rate_P, rate_Q, rate_B_P, rate_B_Q: (n,) exact event rate at each scenario of P and of Q, by the first version
            and by the second; None on the line.
    """

    mu_P: float
    mu_Q: float
    gamma_star: float
    w: np.ndarray
    w_Q: np.ndarray
    cluster_P: np.ndarray | None = None
    cluster_Q: np.ndarray | None = None
    mu_B_P: float | None = None
    mu_B_Q: float | None = None
    rate_P: np.ndarray | None = None
    rate_Q: np.ndarray | None = None
    rate_B_P: np.ndarray | None = None
    rate_B_Q: np.ndarray | None = None

    @property
    def shifted(self) -> tuple[np.ndarray, np.ndarray]:
        """Scenarios of P and of Q in the shifted set: where the density ratio is off 1 by more than SHIFTED."""
        return np.abs(self.w - 1) > SHIFTED, np.abs(self.w_Q - 1) > SHIFTED


@dataclass(frozen=True, eq=False)
class SyntheticPair:
    P: Cohort
    Q: Cohort
    truth: Truth


# The line ---------------------------------------------------------------------------------------------------------
# Weight, mean and standard deviation of each component (paper, "1D Synthetic Experiment").

SOURCE = ((0.7, 0.0, 1.0), (0.3, 4.0, 0.8))
LINE_TARGETS = {
    "none": SOURCE,
    "localized": (*((0.9 * w, m, s) for w, m, s in SOURCE), (0.1, 2.0, 0.12)),
    "global": ((0.4, -1.0, 1.2), (0.6, 6.0, 1.0)),
}
EVENT_ABOVE = 1.5  # ell(x) = 1{x > 1.5}


def line_density(mixture, x) -> np.ndarray:
    """Density at x of a mixture ((weight, mean, sd), ...)."""
    return sum(w * stats.norm.pdf(x, m, s) for w, m, s in mixture)


def line_case(case: str, n: int = 20_000, seed: int = 0) -> SyntheticPair:
    """One of the paper's cases: `none`, `localized` or `global`; n independent scenarios a side."""
    if case not in LINE_TARGETS:
        raise ConfigError(f"case is {case!r}; choose one of {', '.join(LINE_TARGETS)}.")
    rng = np.random.default_rng(seed)
    target = LINE_TARGETS[case]
    x_P, x_Q = _draw_line(SOURCE, n, rng), _draw_line(target, n, rng)
    mean = lambda mixture: float(sum(w * stats.norm.sf(EVENT_ABOVE, m, s) for w, m, s in mixture))  # noqa: E731
    ratio = lambda x: line_density(target, x) / line_density(SOURCE, x)  # noqa: E731
    truth = Truth(mean(SOURCE), mean(target), _line_total_variation(target) / 2, ratio(x_P), ratio(x_Q))
    cohorts = [
        make_cohort(name, x[:, None], ell={METRIC: x > EVENT_ABOVE}) for name, x in (("P", x_P), ("Q", x_Q))
    ]
    return SyntheticPair(*cohorts, truth)


def _draw_line(mixture, n, rng) -> np.ndarray:
    weight, mean, sd = np.array(mixture).T
    k = rng.choice(len(weight), n, p=weight / weight.sum())
    return rng.normal(mean[k], sd[k])


def _line_total_variation(target) -> float:
    grid = np.linspace(-9, 13, 220_001)  # both tails beyond hold less than 1e-9
    return float(integrate.trapezoid(np.abs(line_density(target, grid) - line_density(SOURCE, grid)), grid) / 2)


# 64 dimensions ----------------------------------------------------------------------------------------------------

N_CLUSTERS = 12
INTRINSIC = 8  # dimensions of the manifold
BETWEEN = 0.6  # share of the manifold's variance between clusters
WAVES = 24  # curved coordinates sin(f u + phase)
BUMP = 1.5  # squared width of the event rate's bumps
BASE_RATE = 0.05
AMPLITUDE = {0: 0.5, 1: 0.3, 2: -0.02, 4: 0.15, 7: 0.25}  # event rate around each cluster's centre
CHANGED = (0, 4, 7)  # clusters in which a second AV version has another event rate
MASS_P = {0: 0.04, 1: 0.05, 2: 0.11}
MASS_Q = {0: 0.075, 1: 0.09, 2: 0.035}  # same total: all other clusters keep their mass


@dataclass(frozen=True, eq=False)
class Manifold:
    """Geometry of one 64-D benchmark: cluster centres, masses, the curved embedding and the event rate.

    u = centre + drive offset + scenario noise, in 8 dimensions; z = (u, waves of u, nuisance noise) rotated in 64.
    Every coordinate of u and of the nuisance has `drive_share` of its variance between drives. The density ratio
    depends on u alone, and within a cluster u is normal whatever the share, so w* and mu are exact.

    Attributes:
        rate_scale, rate_lift: the event rate is rate_lift + rate_scale * (BASE_RATE + bumps).
        amplitude: (N_CLUSTERS,) height of each cluster's bump.
    """

    centres: np.ndarray
    mass_P: np.ndarray
    mass_Q: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    rotation: np.ndarray
    rate_scale: float = 1.0
    rate_lift: float = 0.0
    amplitude: np.ndarray = field(default_factory=lambda: np.array([AMPLITUDE.get(k, 0.0) for k in range(N_CLUSTERS)]))

    def ratio(self, u) -> np.ndarray:
        """w*(z) = dQ/dP, exact."""
        density = np.exp(-_squared_distance(u, self.centres) / (2 * (1 - BETWEEN)))
        return (density @ self.mass_Q) / (density @ self.mass_P)

    def rate(self, u) -> np.ndarray:
        """m(z) = E[ell | z], the same on both sides (eq:conditional_invariance)."""
        bumps = np.exp(-_squared_distance(u, self.centres) / (2 * BUMP))
        return self.rate_lift + self.rate_scale * (BASE_RATE + bumps @ self.amplitude)

    def mean_rate(self, mass) -> float:
        """E[m(u)] for normal clusters, in closed form."""
        wide = BUMP + 1 - BETWEEN
        overlap = (BUMP / wide) ** (INTRINSIC / 2) * np.exp(
            -_squared_distance(self.centres, self.centres) / (2 * wide)
        )
        return float(self.rate_lift + self.rate_scale * (mass @ (BASE_RATE + overlap @ self.amplitude)))

    def with_rate(self, mean: float) -> Manifold:
        """The same geometry with this mean event rate in P, and much contrast, with every rate in [0, 1].

            lift + scale mu_P = mean,   lift >= 0,   lift + scale top <= 1

        Above 1/2 it is the complement of the events of 1 - mean.
        """
        mu, top, rarer = self.mean_rate(self.mass_P), self._top_rate(), min(mean, 1 - mean)
        scale = min(rarer / mu, (1 - rarer) / (top - mu))
        lift = rarer - scale * mu
        return replace(self, rate_scale=scale if mean <= 0.5 else -scale, rate_lift=lift if mean <= 0.5 else 1 - lift)

    def with_effect(self, effect: float) -> Manifold:
        """The same traffic driven by another AV version: around the clusters CHANGED its bumps are 1 + effect high."""
        change = np.where(np.isin(np.arange(N_CLUSTERS), CHANGED), 1 + effect, 1.0)
        return replace(self, amplitude=self.amplitude * change)

    def _top_rate(self) -> float:
        """No rate lies above: where centre j is the nearest, centre k is at least half of their distance away."""
        positive = np.maximum(self.amplitude, 0)
        half_way = np.exp(-_squared_distance(self.centres, self.centres) / (8 * BUMP))
        return float(BASE_RATE + (half_way @ positive).max())


def manifold_case(
    n: int = 20_000, drives: int = 200, drive_share: float = 0.2, shift: bool = True, seed: int = 0,
    event_rate: float | None = None, effect: float = 0.0,
) -> SyntheticPair:
    """Twelve clusters on a curved 8-D manifold in 64-D; three of them change mass between P and Q.

    The geometry is drawn anew for every seed. Drives are of unequal length; their offsets have the same law in P
    and Q, so they are never a shift, only a trap.

    Args:
        event_rate: expected metric under P, above 0 and below 1; about 0.1, and another in every geometry, without it.
        effect: of the AV version that drove Q, as in Manifold.with_effect; P was driven by the first. The metric
            UNCHANGED then has no effect of a version.
    """
    if not 0 <= drive_share <= 1 - BETWEEN:
        raise ConfigError(f"drive_share is {drive_share:g}; it must be from 0 to {1 - BETWEEN:g}.")
    if event_rate is not None and not 0 < event_rate < 1:
        raise ConfigError(f"event_rate is {event_rate:g}; it must lie between 0 and 1, without both ends.")
    rng = np.random.default_rng([seed, 64])
    shape = _draw_manifold(rng, shift)
    if event_rate is not None:
        shape = shape.with_rate(event_rate)
    other = shape.with_effect(effect)
    if effect and (effect < -1 or not 0 <= other.rate_lift + other.rate_scale * other._top_rate() <= 1):
        raise ConfigError(f"effect is {effect:g}; with it rates would leave [0, 1]. Choose one from -1 to 0, or closer "
                          "to 0.")
    side_P = _draw_side(shape, shape.mass_P, n, drives, drive_share, rng)
    side_Q = _draw_side(shape, shape.mass_Q, n, drives, drive_share, rng)
    w = shape.ratio(side_P[1])
    fresh = _draw_side(shape, shape.mass_P, 200_000, 200_000, 0.0, np.random.default_rng([seed, 1]), embed=False)[1]
    gamma_star = float(np.abs(shape.ratio(fresh) - 1).mean() / 4)  # TV = E_P|w* - 1| / 2, standard error below 2e-4
    truth = Truth(
        shape.mean_rate(shape.mass_P), shape.mean_rate(shape.mass_Q), gamma_star, w, shape.ratio(side_Q[1]),
        *(np.where(np.isin(k, list(MASS_P)), k, -1) for k in (side_P[2], side_Q[2])),
        other.mean_rate(shape.mass_P), other.mean_rate(shape.mass_Q),
        *(driven.rate(u) for driven in (shape, other) for u in (side_P[1], side_Q[1])),
    )
    cohorts = []
    for name, (z, u, _, drive), driven in (("P", side_P, shape), ("Q", side_Q, other)):
        luck = rng.random(n)
        ell = {METRIC: luck < driven.rate(u)} | ({UNCHANGED: luck < shape.rate(u)} if effect else {})
        cohorts.append(make_cohort(name, z, drive_id=[f"{name}{d}" for d in drive], ell=ell))
    return SyntheticPair(*cohorts, truth)


def further_drives(
    n: int, drives: int, drive_share: float = 0.2, shift: bool = True, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Latents (2n, 64) and labels (2n,), 1 for Q, of other drives by the law of `manifold_case` with the same seed."""
    shape, rng = _draw_manifold(np.random.default_rng([seed, 64]), shift), np.random.default_rng([seed, 65])
    sides = [_draw_side(shape, mass, n, drives, drive_share, rng)[0] for mass in (shape.mass_P, shape.mass_Q)]
    return np.concatenate(sides), np.repeat([0, 1], n)


def _draw_manifold(rng, shift: bool) -> Manifold:
    candidates = rng.normal(size=(60, INTRINSIC))
    chosen = [0]
    while len(chosen) < N_CLUSTERS:  # farthest first: clusters that nobody would call one
        gap = np.sqrt(_squared_distance(candidates, candidates[chosen])).min(axis=1)
        chosen.append(int(gap.argmax()))
    centres = candidates[rng.permutation(chosen)]
    centres -= centres.mean(axis=0)
    centres *= np.sqrt(BETWEEN / centres.var(axis=0).mean())
    mass_P = rng.uniform(0.06, 0.14, N_CLUSTERS)
    mass_P[: len(MASS_P)] = list(MASS_P.values())
    mass_P[len(MASS_P):] *= (1 - sum(MASS_P.values())) / mass_P[len(MASS_P):].sum()
    mass_Q = mass_P.copy()
    if shift:
        mass_Q[: len(MASS_Q)] = list(MASS_Q.values())
    rotation, _ = np.linalg.qr(rng.normal(size=(64, 64)))
    return Manifold(
        centres, mass_P, mass_Q, 0.8 * rng.normal(size=(INTRINSIC, WAVES)), rng.uniform(0, 2 * np.pi, WAVES), rotation
    )


def _draw_side(shape: Manifold, mass, n, drives, drive_share, rng, embed=True):
    drive = np.sort(rng.choice(drives, n, p=rng.dirichlet(np.full(drives, 8.0)))) if embed else np.arange(n)
    cluster = rng.choice(N_CLUSTERS, n, p=mass)
    scatter = 1 - BETWEEN - drive_share
    u = shape.centres[cluster] + np.sqrt(scatter) * rng.normal(size=(n, INTRINSIC))
    if not embed:
        return None, u, cluster, drive
    u += np.sqrt(drive_share) * rng.normal(size=(drives, INTRINSIC))[drive]
    width = 64 - INTRINSIC - WAVES
    nuisance = np.sqrt(1 - drive_share) * rng.normal(size=(n, width))
    nuisance += np.sqrt(drive_share) * rng.normal(size=(drives, width))[drive]
    waves = 0.3 * np.sin(u @ shape.frequency + shape.phase)
    z = np.hstack([u, waves, 0.2 * nuisance]) @ shape.rotation
    return z, u, cluster, drive


def _squared_distance(a, b) -> np.ndarray:
    return ((a[:, None] - b[None]) ** 2).sum(axis=-1)
