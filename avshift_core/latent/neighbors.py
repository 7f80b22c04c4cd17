"""Nearest neighbours in latent space: exact ones, and the graph of all of them, exact where that is affordable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EXACT_ROWS = 40_000  # beyond, lists take a fraction of the time: `python benchmarks/peers.py knn`
AIM = 0.995  # share of the true neighbours to find beyond


@dataclass(frozen=True, eq=False)
class Graph:
    """The k nearest other rows of every row, nearest first.

    Attributes:
        index: (n, k) int32; distance: (n, k) float32.
        recall: share of the true neighbours that are there, on a sample of the rows; 1 when all distances were taken.
    """

    index: np.ndarray
    distance: np.ndarray
    recall: float


def knn_graph(X, k: int, seed: int = 0, exact_rows: int = EXACT_ROWS) -> Graph:
    """Neighbours of all rows: by all distances up to `exact_rows`, else by those in the nearest lists (lists.py).

    The same seed gives the same graph, on any number of cores.
    """
    if len(X) <= exact_rows:
        distance, index = nearest(X, k)
        return Graph(index.astype(np.int32), distance.astype(np.float32), 1.0)
    from avshift_core.latent.lists import all_nearest, make_lists, probes_for

    lists = make_lists(X - np.mean(X, axis=0, dtype=np.float64), seed)  # small numbers, so that little is rounded off
    reach = probes_for(lists, k, AIM, seed)
    return Graph(*all_nearest(lists, k, reach.probes), reach.recall)


def nearest_of(X, rows, k: int) -> tuple[np.ndarray, np.ndarray]:
    """index (m, k), distance (m, k) of the nearest other rows of X for each of `rows`."""
    distance, index = nearest(X, min(k + 1, len(X)), X[rows])
    other = index != np.asarray(rows)[:, None]
    other[other.all(axis=1), -1] = False  # a row with many twins is not among its own neighbours
    return index[other].reshape(len(rows), -1), distance[other].reshape(len(rows), -1)


def nearest(X, k: int, query=None) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest rows of X for each row of `query`; without a query of X itself, each row without itself.

    Returns:
        distance (m, k), index (m, k), nearest first.
    """
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=k, algorithm="kd_tree" if X.shape[1] <= 3 else "brute").fit(X)
    return model.kneighbors(query)


def cross_drive_neighbors(X, drive, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (row, neighbour) of the k nearest rows that belong to another drive.

    A drive that fills the neighbourhood leaves fewer than k; no row has more.
    """
    _, index = nearest(X, min(2 * k, len(X) - 1))
    other = drive[index] != drive[:, None]
    keep = other & (np.cumsum(other, axis=1) <= k)
    row, column = np.nonzero(keep)
    return row, index[row, column]
