"""Exact nearest neighbours in latent space."""

from __future__ import annotations

import numpy as np


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
