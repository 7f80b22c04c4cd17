"""Stage II as the paper has it (app:local_shift_detection): balls around points, binomial test, suppression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cells import OUTSIDE
from avshift_core.latent.neighbors import nearest
from avshift_core.latent.space import Space
from avshift_core.shift.drives import Pool, adjust_bh

HELD_OUT = 20_000  # the paper's N_te


@dataclass(frozen=True, eq=False)
class PaperRegions:
    """The paper's disjoint R_k.

    Attributes:
        centres: (K, d); radius: (K,) r_i, the distance of the k-th neighbour; both in standardised units.
        s, p_adj: (K,) effect size and adjusted p-value of each centre.
        target_heavy: (K,) direction.
        region_P, region_Q: (n,) region 0..K-1 of each scenario, OUTSIDE if in none.
        n_violations: significant neighbourhoods without support, left out.
    """

    centres: np.ndarray
    radius: np.ndarray
    s: np.ndarray
    p_adj: np.ndarray
    target_heavy: np.ndarray
    region_P: np.ndarray
    region_Q: np.ndarray
    n_violations: int

    @property
    def n_regions(self) -> int:
        return len(self.centres)


def localize_paper(space: Space, sample: Pool, h, config: AnalysisConfig) -> PaperRegions:
    """Test the neighbourhood of every point of a balanced held-out set, keep the strongest that do not overlap.

        h_bar_i = mean of h over the k nearest neighbours                  (eq:smoothed_classifier_score)
        s_i     = |log(h_bar / (1 - h_bar))|                               (eq:local_effect_size)
        p_i     = P(|C - k/2| >= |c_i - k/2|),  C ~ Binomial(k, 1/2)       (eq:local_binomial_pvalue)
        support: m_min <= c_i <= k - m_min; BH at alpha_loc; greedy suppression within lambda r_i   (eq:local_nms)

    The binomial model treats scenarios of one drive as independent: with clustered drives it finds regions that are
    not there.
    """
    rng = np.random.default_rng([config.seed, 4])
    half = min(int(np.bincount(sample.y).min()), HELD_OUT // 2)
    rows = np.concatenate([rng.choice(np.flatnonzero(sample.y == c), half, replace=False) for c in (0, 1)])
    Z, y, k = space.X[rows], sample.y[rows], min(config.n_neighbors, len(rows) - 1)
    distance, index = nearest(Z, k)
    r = distance[:, -1]
    h_bar = np.clip(h[rows][index].mean(axis=1), config.posterior_eps, 1 - config.posterior_eps)
    s = np.abs(np.log(h_bar / (1 - h_bar)))
    c = y[index].sum(axis=1)
    p_value = binomial_p(c, k)
    m_min = int(np.ceil(config.support_eps * k))
    supported = (c >= m_min) & (c <= k - m_min)
    p_adj = np.ones(len(rows))
    p_adj[supported] = adjust_bh(p_value[supported])
    accepted = np.flatnonzero(supported & (p_adj <= config.alpha_loc))
    centres = suppress(Z, accepted[np.argsort(-s[accepted], kind="stable")], r, config.nms_lambda)
    region = assign_balls(space.X, Z[centres], r[centres])
    return PaperRegions(
        Z[centres], r[centres], s[centres], p_adj[centres], h_bar[centres] > 0.5,
        region[sample.y == 0], region[sample.y == 1],
        int((~supported & (adjust_bh(p_value) <= config.alpha_loc)).sum()),
    )


def binomial_p(c, k: int) -> np.ndarray:
    """Two-sided p-value of c target neighbours out of k (eq:local_binomial_pvalue).

    >>> binomial_p(np.array([5, 10]), 10).tolist()         # |C - 5| >= 0 always; both ends: 2 / 2^10
    [1.0, 0.001953125]
    """
    deviation = np.abs(np.asarray(c) - k / 2)
    both_tails = 2 * stats.binom.sf(np.ceil(k / 2 + deviation) - 1, k, 0.5)
    return np.where(deviation == 0, 1.0, np.minimum(both_tails, 1.0))


def suppress(Z, order, radius, nms_lambda: float) -> np.ndarray:
    """Centres that survive when each, strongest first, suppresses all others within lambda * r (eq:local_nms).

    >>> suppress(np.array([[0.0], [0.5], [2.0]]), np.array([0, 1, 2]), np.array([1.0, 1.0, 1.0]), 1.0).tolist()
    [0, 2]
    """
    centres = []
    while len(order):
        centres.append(int(order[0]))
        far = np.linalg.norm(Z[order] - Z[order[0]], axis=1) > nms_lambda * radius[order[0]]
        order = order[far]
    return np.array(centres, dtype=int)


def assign_balls(X, centres, radius) -> np.ndarray:
    """(n,) nearest centre among those whose ball holds the point, OUTSIDE if none does."""
    best, region = np.full(len(X), np.inf), np.full(len(X), OUTSIDE)
    for k, (centre, r) in enumerate(zip(centres, radius, strict=True)):
        distance = np.linalg.norm(X - centre, axis=1)
        closer = (distance <= r) & (distance < best)
        best[closer], region[closer] = distance[closer], k
    return region
