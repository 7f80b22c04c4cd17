"""Folds, intervals and ranking that keep drives whole: scenarios of one drive are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BOOTSTRAPS = 200  # the ends of a 95 % interval move by less than a tenth of its width when there are more
LEVEL = 0.95
FOLDS = 5
MIN_DRIVES = 10  # below, neither five folds nor a bootstrap of drives mean anything
CHUNK = 1_000  # rows of one block of distances


@dataclass(frozen=True)
class Estimate:
    """A number and its interval from resampled drives."""

    value: float
    lo: float
    hi: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.lo:.3f}, {self.hi:.3f}]"


def drive_numbers(drive_id) -> np.ndarray:
    """(n,) drives as 0..G-1.

    >>> drive_numbers(["b", "a", "b"]).tolist()
    [1, 0, 1]
    """
    return np.unique(np.asarray(drive_id, dtype=str), return_inverse=True)[1]


def deal_folds(drive, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each row; drives stay whole and every fold has about as many of them."""
    rng = np.random.default_rng([seed, 11])
    G = int(drive.max()) + 1
    return (rng.permutation(G) % folds)[drive]


def resample_drives(n_drives: int, seed: int, times: int = BOOTSTRAPS) -> np.ndarray:
    """(1 + times, G) how often each drive is drawn; the first row is the data themselves."""
    rng = np.random.default_rng([seed, 12])
    drawn = rng.multinomial(n_drives, np.full(n_drives, 1 / n_drives), size=times)
    return np.concatenate([np.ones((1, n_drives), dtype=drawn.dtype), drawn]).astype(np.float64)


def estimate(values) -> Estimate:
    """Of the data (first value) and of the resampled drives (the others); those that are not defined are left out."""
    values = np.asarray(values, dtype=float)
    drawn = values[1:][np.isfinite(values[1:])]
    if not len(drawn):
        return Estimate(float(values[0]), np.nan, np.nan)
    lo, hi = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(values[0]), float(lo), float(hi))


def ratio_of_sums(top, bottom, drive, draws) -> np.ndarray:
    """(1 + times,) sum of `top` over sum of `bottom` in each draw of drives; a mean where bottom is 1."""
    G = draws.shape[1]
    sums = [draws @ np.bincount(drive, np.broadcast_to(v, drive.shape), minlength=G) for v in (top, bottom)]
    return np.divide(sums[0], sums[1], out=np.full(len(draws), np.nan), where=sums[1] > 0)


def auc_of_draws(score, y, fold, drive, draws) -> np.ndarray:
    """(1 + times,) area under the ROC curve over pairs of the same fold, in each draw of drives.

    Pairs across folds are left out because the models of two folds have different offsets. Ties count half.

    >>> auc_of_draws(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]), np.zeros(4, int), np.arange(4),
    ...              np.ones((1, 4))).tolist()
    [0.75]
    """
    won, pairs = np.zeros(len(draws)), np.zeros(len(draws))
    for k in np.unique(fold):
        rows = np.flatnonzero(fold == k)
        rows = rows[np.argsort(score[rows], kind="stable")]
        first = np.flatnonzero(np.diff(score[rows], prepend=-np.inf))  # of each group of equal scores
        weight = draws[:, drive[rows]]
        positive = np.add.reduceat(weight * (y[rows] == 1), first, axis=1)
        negative = np.add.reduceat(weight * (y[rows] != 1), first, axis=1)
        won += (positive * (np.cumsum(negative, axis=1) - negative / 2)).sum(axis=1)
        pairs += positive.sum(axis=1) * negative.sum(axis=1)
    return np.divide(won, pairs, out=np.full(len(draws), np.nan), where=pairs > 0)


def standardise(x) -> np.ndarray:
    """(n, d) float32 with mean 0 and standard deviation 1; dimensions that do not vary are left out."""
    x = np.asarray(x, dtype=np.float64)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    kept = scale > 1e-7 * np.maximum(1.0, np.abs(mean))
    return ((x - mean)[:, kept] / scale[kept]).astype(np.float32)


def neighbours(x, k: int, drive=None) -> np.ndarray:
    """(n, k) nearest other rows, exact, nearest first; with `drive` only those of other drives.

    Where fewer than k rows are allowed the rest is -1.
    """
    x = np.asarray(x, dtype=np.float32)
    n, norm = len(x), (np.asarray(x, dtype=np.float32) ** 2).sum(axis=1)
    k = min(k, n - 1)
    found = np.empty((n, k), dtype=np.int64)
    for start in range(0, n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, n))
        far = norm - 2 * (x[rows] @ x.T)
        if drive is None:
            far[np.arange(len(rows)), rows] = np.inf
        else:
            far[drive[rows][:, None] == drive[None, :]] = np.inf
        near = np.argpartition(far, k - 1, axis=1)[:, :k]
        distance = np.take_along_axis(far, near, axis=1)
        order = np.argsort(distance, axis=1, kind="stable")
        near, distance = np.take_along_axis(near, order, axis=1), np.take_along_axis(distance, order, axis=1)
        found[rows] = np.where(np.isfinite(distance), near, -1)
    return found
