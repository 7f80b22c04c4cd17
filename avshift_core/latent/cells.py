"""A label-free partition of latent space into cells, and the tree of their unions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OUTSIDE = -1
FIT_ROWS = 20_000  # centres move by less than a cell when fitted on more
CHUNK = 20_000  # rows of one distance block
MIN_CELL = 60  # scenarios a cell holds on average of two equal cohorts, so that its masses can be measured


@dataclass(frozen=True, eq=False)
class Cells:
    """Balls around K centres; where balls overlap, the nearest centre wins.

    Attributes:
        centres: (K, d) in standardised latent units.
        radius: (K,) distance of the farthest scenario that was assigned to the centre, or half way to the farthest
            cell it touches, whichever is larger: no gap is left between neighbours.
        tree: (K-1, 2) children of node K, K+1, ...; nodes below K are the cells themselves.
    """

    centres: np.ndarray
    radius: np.ndarray
    tree: np.ndarray

    @property
    def n(self) -> int:
        return len(self.centres)

    def assign(self, X) -> np.ndarray:
        """(m,) cell of each row of X, OUTSIDE beyond every ball."""
        cell, distance = nearest_centre(X, self.centres)
        return np.where(distance <= self.radius[cell] * (1 + 1e-5), cell, OUTSIDE)

    def borders(self, X) -> np.ndarray:
        """(K, K) rows of X nearest to centre a and second nearest to centre b: how two cells touch."""
        K, touch = self.n, np.zeros((self.n, self.n))
        if K < 2:
            return touch
        norm = (self.centres**2).sum(axis=1)
        for start in range(0, len(X), CHUNK):
            two = np.argpartition(norm - 2 * (X[start : start + CHUNK] @ self.centres.T), 1, axis=1)[:, :2]
            np.add.at(touch, (two[:, 0], two[:, 1]), 1)
        return touch

    def members(self) -> np.ndarray:
        """(2K-1, K) bool: cells under each node of the tree."""
        K = self.n
        under = np.zeros((2 * K - 1, K), dtype=bool)
        under[:K] = np.eye(K, dtype=bool)
        for node, (a, b) in enumerate(self.tree, start=K):
            under[node] = under[a] | under[b]
        return under


def partition(X, y, n_cells: int, seed: int) -> Cells:
    """k-means on both cohorts in equal numbers, without their labels; average-linkage tree over the centres.

    Because no label takes part, the cells' masses under P and Q are honest estimates; only choosing some of the
    cells is a selection.
    """
    from scipy.cluster.hierarchy import average
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    fewest = int(np.bincount(y, minlength=2).min())
    smaller = min(fewest, FIT_ROWS // 2)
    rows = np.sort(np.concatenate([rng.choice(np.flatnonzero(y == c), smaller, replace=False) for c in (0, 1)]))
    distinct = len(np.unique(X[rows], axis=0))
    K = int(max(2, min(n_cells, 2 * fewest // MIN_CELL, distinct)))
    centres = KMeans(K, n_init=1, max_iter=20, random_state=seed).fit(X[rows]).cluster_centers_.astype(np.float32)
    cell, distance = nearest_centre(X, centres)
    occupied = np.unique(cell)
    centres = centres[occupied]
    radius = np.zeros(len(occupied), dtype=np.float32)
    np.maximum.at(radius, np.searchsorted(occupied, cell), distance)
    cells = Cells(centres, radius, np.zeros((0, 2), dtype=int))
    touches = cells.borders(X)
    half_way = np.linalg.norm(centres[:, None] - centres[None], axis=-1) / 2
    radius = np.maximum(radius, np.where(touches + touches.T > 0, half_way, 0).max(axis=1)).astype(np.float32)
    tree = average(centres)[:, :2].astype(int) if len(occupied) > 1 else np.zeros((0, 2), dtype=int)
    return Cells(centres, radius, tree)


def nearest_centre(X, centres) -> tuple[np.ndarray, np.ndarray]:
    cell, distance = np.empty(len(X), dtype=int), np.empty(len(X), dtype=np.float32)
    norm = (centres**2).sum(axis=1)
    for start in range(0, len(X), CHUNK):
        x = np.asarray(X[start : start + CHUNK], dtype=np.float32)
        d2 = norm - 2 * (x @ centres.T)
        best = d2.argmin(axis=1)
        cell[start : start + CHUNK] = best
        distance[start : start + CHUNK] = np.linalg.norm(x - centres[best], axis=1)
    return cell, distance
