"""Statistics that know that scenarios of one drive are alike: means, shares, permutations, folds by drive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, eq=False)
class Pool:
    """P and Q in one sample, P first.

    Attributes:
        y: (n,) 0 for P, 1 for Q.
        drive: (n,) drive 0..G-1; a drive id that occurs in both cohorts is two drives here.
        drive_y: (G,) cohort of each drive.
        fold_key: (G,) equal for the two halves of a drive id that occurs in both cohorts: they share a fold.
    """

    y: np.ndarray
    drive: np.ndarray
    drive_y: np.ndarray
    fold_key: np.ndarray

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def n_drives(self) -> int:
        return len(self.drive_y)

    @property
    def drive_size(self) -> np.ndarray:
        return np.bincount(self.drive, minlength=self.n_drives)


def pool(P, Q) -> Pool:
    """The two cohorts' labels and drives as one sample."""
    y = np.repeat([0, 1], [P.n, Q.n])
    drive = np.concatenate([P.drive, Q.drive + P.n_drives])
    drive_y = np.repeat([0, 1], [P.n_drives, Q.n_drives])
    if P.has_drives:
        key = np.unique(np.concatenate([P.drive_ids, Q.drive_ids]), return_inverse=True)[1]
    else:
        key = np.arange(P.n_drives + Q.n_drives)
    return Pool(y, drive, drive_y, key)


def folds_by_drive(sample: Pool, n_folds: int, rng: np.random.Generator, by_row: bool = False) -> np.ndarray:
    """(n,) fold of each scenario; drives stay whole (rows, where `by_row`), and each cohort is spread evenly."""
    unit_y, unit = (sample.y, np.arange(sample.n)) if by_row else (sample.drive_y, sample.drive)
    fold = np.empty(len(unit_y), dtype=int)
    for label in (0, 1):
        members = np.flatnonzero(unit_y == label)
        fold[members] = rng.permutation(len(members)) % n_folds
    if not by_row:  # the same drive on both sides: Q's part follows P's
        of_P = dict(zip(sample.fold_key[unit_y == 0], fold[unit_y == 0], strict=True))
        for d in np.flatnonzero(unit_y == 1):
            fold[d] = of_P.get(sample.fold_key[d], fold[d])
    return fold[unit]


def clustered_variance(influence, drive, n_drives) -> float:
    """Variance of the mean of centred influence values of scenarios that are alike within a drive.

        V = D/(D-1) * sum_d S_d^2 / n^2,     S_d = sum of the values of drive d

    >>> clustered_variance(np.array([-0.5, -0.5, 0.5, 0.5]), np.array([0, 0, 1, 1]), 2)       # 2 * (1 + 1) / 16
    0.25
    """
    sums = np.bincount(drive, influence, minlength=n_drives)
    present = int((np.bincount(drive, minlength=n_drives) > 0).sum())
    return float(present / max(present - 1, 1) * (sums @ sums) / len(influence) ** 2)


def intraclass_correlation(X, drive, n_drives) -> float:
    """Share of the variance of X (n, d) between drives: one-way analysis of variance, summed over the dimensions."""
    size = np.bincount(drive, minlength=n_drives).astype(float)
    occupied = size > 0
    D, n = int(occupied.sum()), len(X)
    if D < 2 or n == D:
        return 0.0
    between = within = 0.0
    n0 = (n - (size**2).sum() / n) / (D - 1)  # the effective drive length of unequal drives
    for x in np.asarray(X, dtype=np.float64).T:
        total = np.bincount(drive, x, minlength=n_drives)
        mean = total[occupied] / size[occupied]
        ss_between = float(size[occupied] @ (mean - x.mean()) ** 2)
        ms_within = (float(((x - x.mean()) ** 2).sum()) - ss_between) / (n - D)
        between += (ss_between / (D - 1) - ms_within) / n0
        within += ms_within
    return float(np.clip(between / (between + within), 0, 1)) if between + within > 0 else 0.0


def thin_drives(sample: Pool, most: int, rng) -> np.ndarray:
    """Rows with equally many of each long drive, at most about `most` in all.

    Dealing out whole drives again is fair only when the drives of both cohorts are about equally long.
    """
    size = sample.drive_size
    longest = min(np.median(size[(sample.drive_y == label) & (size > 0)]) for label in (0, 1))
    order = rng.permutation(sample.n)
    order = order[np.argsort(sample.drive[order], kind="stable")]
    place = np.arange(sample.n) - np.repeat(np.cumsum(size) - size, size)  # of a row within its shuffled drive
    fewer = max(1, int(longest))
    while fewer > 1 and np.minimum(size, fewer).sum() > most:
        fewer -= max(1, fewer // 10)
    rows = np.sort(order[place < fewer])
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def permuted_labels(drive_y, n_perm, rng) -> np.ndarray:
    """(n_perm, G) cohort of each drive after dealing the cohorts out to the drives again."""
    return rng.permuted(np.tile(np.asarray(drive_y, dtype=np.int8), (n_perm, 1)), axis=1)


def permutation_p(observed: float, null) -> float:
    """One-sided p-value, never below 1 / (n_perm + 1).

    >>> permutation_p(3.0, np.array([0.0, 1.0, 2.0]))
    0.25
    """
    return float((1 + np.sum(~(np.asarray(null) < observed))) / (1 + len(null)))  # not-a-number counts against us


def adjust_bh(p) -> np.ndarray:
    """Benjamini-Hochberg adjusted p-values.

    >>> adjust_bh(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return stats.false_discovery_control(p) if len(p) else np.asarray(p, dtype=float)
