"""Traffic that both cohorts met: cells, small ones joined, with enough scenarios and drives of P and of Q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import Space
from avshift_core.shift.celltree import cell_counts
from avshift_core.shift.drives import Pool

LEAST = 30  # scenarios of both cohorts in a stratum; fewer tell nothing about who was there, and join a neighbour
FEW_SCENARIOS, FEW_DRIVES = 5, 3  # a cohort with less in a stratum was not there to speak of


@dataclass(frozen=True, eq=False)
class Support:
    """Strata of the latent space, and which of them both cohorts met.

    Attributes:
        stratum: (K + 1,) stratum of each cell; the last entry is for what lies in no cell.
        of_P, of_Q: (n,) stratum of each scenario.
        n_P, n_Q, drives_P, drives_Q: (S,) scenarios and drives of each stratum.
        common: (S,) strata in which both cohorts have enough.
    """

    stratum: np.ndarray
    of_P: np.ndarray
    of_Q: np.ndarray
    n_P: np.ndarray
    n_Q: np.ndarray
    drives_P: np.ndarray
    drives_Q: np.ndarray
    common: np.ndarray

    @property
    def in_P(self) -> np.ndarray:
        """(n_P,) scenarios of P in common traffic."""
        return self.common[self.of_P]

    @property
    def in_Q(self) -> np.ndarray:
        return self.common[self.of_Q]

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of P and of Q in common traffic."""
        return float(self.in_P.mean()), float(self.in_Q.mean())


def common_support(space: Space, sample: Pool, config: AnalysisConfig) -> Support:
    """Strata that both cohorts met.

    In a common stratum each cohort has at least 5 scenarios of 3 drives, and neither has more than B times the mass of
    the other: no scenario needs a weight above the clip to speak for the other cohort. The rule looks at who was there,
    never at a metric.
    """
    K = space.cells.n
    cell = np.where(space.cell >= 0, space.cell, K)
    total = np.bincount(cell, minlength=K + 1)
    label = np.append(join_small(total[:K], space.touching, LEAST), K)
    _, stratum = np.unique(label, return_inverse=True)
    S, of = int(stratum.max()) + 1, stratum[cell]
    counts = cell_counts(of, sample.drive, S, sample.n_drives)
    side = [counts[:, np.flatnonzero(sample.drive_y == c)] for c in (0, 1)]
    n_P, n_Q = (np.asarray(c.sum(axis=1)).ravel().astype(int) for c in side)
    drives_P, drives_Q = (np.diff(c.tocsr().indptr) for c in side)
    p, q = n_P / max(n_P.sum(), 1), n_Q / max(n_Q.sum(), 1)
    least = max(config.support_eps, 1 / (1 + config.B))
    common = (np.minimum(n_P, n_Q) >= FEW_SCENARIOS) & (np.minimum(drives_P, drives_Q) >= FEW_DRIVES)
    common &= np.minimum(p, q) >= least * (p + q)
    for array in (stratum, of, n_P, n_Q, drives_P, drives_Q, common):
        array.setflags(write=False)
    return Support(stratum, of[sample.y == 0], of[sample.y == 1], n_P, n_Q, drives_P, drives_Q, common)


def join_small(count, touching, least: int) -> np.ndarray:
    """(K,) label of each cell after the smallest have joined the cell that they touch most, one by one.

    >>> touching = np.array([[0, 5, 1], [5, 0, 0], [1, 0, 0]])
    >>> join_small(np.array([50, 3, 40]), touching, 30).tolist()
    [0, 0, 2]
    """
    count = np.asarray(count, dtype=float).copy()
    label, touch = np.arange(len(count)), np.asarray(touching, dtype=float) + np.asarray(touching, dtype=float).T
    np.fill_diagonal(touch, 0)
    while len(count) and count.min() < least:
        small = int(count.argmin())
        host = int(touch[small].argmax())
        if touch[small, host] > 0:
            label[label == small] = host
            count[host] += count[small]
            touch[host] += touch[small]
            touch[:, host] += touch[:, small]
            touch[host, host] = 0
        touch[small], touch[:, small], count[small] = 0, 0, np.inf
    return label
