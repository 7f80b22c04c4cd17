"""Reference two-sample statistics beside the classifier test: KS, MMD-RFF and Wasserstein-1, permuted by drive."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from avshift_core.shift.drives import Pool, permutation_p, permuted_labels, thin_drives

N_FEATURES = 128  # random Fourier features (paper, "MMD-RFF")
N_PROJECTIONS = 32  # sliced Wasserstein beyond one dimension
N_PERM = 199  # permutations of each of them
VALUES = 200_000  # KS and W1 sort and permute a sample of at most this many rows times dimensions


@dataclass(frozen=True)
class ReferenceTest:
    """`p_asymptotic` is the closed-form p-value where there is one; it assumes independent scenarios."""

    name: str
    statistic: float
    p_value: float
    p_asymptotic: float | None = None


def reference_tests(X, sample: Pool, h, *, n_perm: int = N_PERM, seed: int = 0) -> tuple[ReferenceTest, ...]:
    """KS (largest over the dimensions, and on h), MMD and W1, each with a permutation p-value by drive.

    p-values of all of them reach their floor 1 / (n_perm + 1) on any clear shift: they say that there is one, not how
    large it is.
    """
    rng = np.random.default_rng([seed, 6])
    rows = thin_drives(sample, max(2000, VALUES // X.shape[1]), rng)
    labels = permuted_labels(sample.drive_y, n_perm, rng)
    label = np.vstack([sample.drive_y, labels])[:, sample.drive[rows]].astype(bool)  # observed first
    tests = [
        _ranked("ks", X[rows], label, _ks),
        _ranked("ks_h", np.asarray(h)[rows, None], label, _ks),
        _mmd(X[rows], replace(sample, y=sample.y[rows], drive=sample.drive[rows]), labels, rng),
        _ranked("w1", _projections(X[rows], rng), label, _w1),
    ]
    return tuple(tests)


def _ranked(name, X, label, statistic) -> ReferenceTest:
    """A statistic of the two cumulative distributions along each column."""
    values = np.zeros((len(label), X.shape[1]))
    for j, x in enumerate(np.asarray(X, dtype=np.float64).T):
        order = np.argsort(x, kind="stable")
        gap = np.diff(x[order])
        for i, is_Q in enumerate(label):
            q = np.cumsum(is_Q[order])
            n_Q = q[-1]
            p = np.arange(1, len(x) + 1) - q
            values[i, j] = statistic(np.abs(q / n_Q - p / (len(x) - n_Q))[:-1], gap)
    combined = values.max(axis=1) if statistic is _ks else values.mean(axis=1)
    asymptotic = None
    if statistic is _ks and X.shape[1] == 1:
        asymptotic = float(stats.ks_2samp(X[label[0], 0], X[~label[0], 0], method="asymp").pvalue)
    return ReferenceTest(name, float(combined[0]), permutation_p(combined[0], combined[1:]), asymptotic)


def _ks(distance, gap) -> float:
    return float(distance[gap > 0].max(initial=0.0))  # ties count once


def _w1(distance, gap) -> float:
    """W1 = integral of |F_P - F_Q|; for equal numbers the mean |x_(i) - y_(i)| of the paper."""
    return float(distance @ gap)


def _projections(X, rng) -> np.ndarray:
    if X.shape[1] == 1:
        return X
    direction = rng.normal(size=(X.shape[1], N_PROJECTIONS))
    return X @ (direction / np.linalg.norm(direction, axis=0))


def _mmd(X, sample: Pool, labels, rng) -> ReferenceTest:
    """Squared distance of the cohorts' mean random Fourier features; median bandwidth on a sub-sample."""
    some = X[rng.choice(len(X), min(1000, len(X)), replace=False)].astype(np.float64)
    squared = ((some[:, None] - some[None]) ** 2).sum(axis=-1) if X.shape[1] == 1 else _squared(some)
    sigma = np.sqrt(np.median(squared[np.triu_indices(len(some), 1)]) / 2) or 1.0
    direction = rng.normal(size=(X.shape[1], N_FEATURES)) / sigma
    angle = X @ direction + rng.uniform(0, 2 * np.pi, N_FEATURES)
    feature = np.sqrt(2 / N_FEATURES) * np.cos(angle)
    per_drive = np.stack([np.bincount(sample.drive, f, minlength=sample.n_drives) for f in feature.T], axis=1)
    size = sample.drive_size

    def distance(label):
        n_Q = label @ size
        sum_Q = label @ per_drive
        difference = sum_Q / n_Q[:, None] - (per_drive.sum(axis=0) - sum_Q) / (sample.n - n_Q)[:, None]
        return (difference**2).sum(axis=1)

    observed = float(distance(sample.drive_y[None].astype(float))[0])
    return ReferenceTest("mmd", observed, permutation_p(observed, distance(labels.astype(float))))


def _squared(a) -> np.ndarray:
    norm = (a**2).sum(axis=1)
    return np.maximum(norm[:, None] + norm[None] - 2 * a @ a.T, 0)
