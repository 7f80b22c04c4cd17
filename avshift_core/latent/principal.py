"""Principal axes of latent space: straight views of it, in a moment for any number of scenarios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHOWN = 4  # principal axes that a map can show
CHUNK = 200_000  # rows of one block of the covariance


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components of (n, d) rows.

    Attributes:
        scores: (n, c) float32; axes: (d, at most c), of length 1; explained: (c,) share of the variance along each.
    """

    scores: np.ndarray
    axes: np.ndarray
    explained: np.ndarray


def pca_axes(X, n_components: int = SHOWN) -> Principal:
    """Scores on the first principal axes, from the (d, d) covariance: quick for any number of rows.

    An axis points to where its largest loading is positive, so that the picture is never mirrored by chance. Scores
    beyond the dimension of X are 0.

    >>> found = pca_axes(np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, -4.0]]), 2)
    >>> found.scores[:, 0].tolist(), found.explained.round(6).tolist()
    ([0.0, 5.0, -5.0], [1.0, 0.0])
    """
    n, d = X.shape
    blocks = [slice(start, start + CHUNK) for start in range(0, n, CHUNK)]
    mean = sum(X[rows].sum(axis=0, dtype=np.float64) for rows in blocks) / n
    covariance = sum(_square(X[rows] - mean) for rows in blocks) / n
    value, vector = np.linalg.eigh(covariance)
    value, vector = value[::-1].clip(0), vector[:, ::-1]
    vector = vector * np.sign(vector[np.abs(vector).argmax(axis=0), np.arange(d)])
    c = min(n_components, d)
    scores, explained = np.zeros((n, n_components), dtype=np.float32), np.zeros(n_components)
    for rows in blocks:
        scores[rows, :c] = (X[rows] - mean) @ vector[:, :c]
    explained[:c] = value[:c] / max(value.sum(), 1e-300)
    found = Principal(scores, np.ascontiguousarray(vector[:, :c]), explained)
    for array in vars(found).values():
        array.setflags(write=False)
    return found


def _square(x) -> np.ndarray:
    return x.T @ x
