"""The scale of z, and how many directions of it are in use."""

from __future__ import annotations

import numpy as np


def output_scale(raw: np.ndarray, output: str) -> tuple[np.ndarray, np.ndarray]:
    """(k,) mean and (k, k) matrix that standardise, or whiten, latents raw (n, k).

    Directions with next to no variance are not blown up: none counts for less than a hundredth of the mean one.
    """
    mean, covariance = raw.mean(axis=0), np.cov(raw, rowvar=False)
    floor = 0.01 * np.trace(covariance) / len(covariance)
    if output == "standardised":
        return mean, np.diag(1 / np.sqrt(np.maximum(np.diag(covariance), floor)))
    variance, axes = np.linalg.eigh(covariance)
    return mean, axes / np.sqrt(np.maximum(variance, floor))


def effective_rank(z: np.ndarray) -> float:
    """exp of the entropy of the shares of variance along the principal axes: how many directions z really uses.

    >>> round(effective_rank(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])), 6)
    2.0
    """
    share = np.linalg.eigvalsh(np.cov(np.asarray(z, np.float64), rowvar=False))
    share = np.clip(share, 1e-12, None) / np.clip(share, 1e-12, None).sum()
    return float(np.exp(-(share * np.log(share)).sum()))
