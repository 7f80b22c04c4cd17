import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from avshift_core.quality.drivewise import (
    auc_of_draws,
    deal_folds,
    estimate,
    neighbours,
    ratio_of_sums,
    resample_drives,
    standardise,
)


def test_folds_keep_drives_whole_and_are_about_equal():
    drive = np.repeat(np.arange(23), 7)
    fold = deal_folds(drive, 5, seed=1)
    assert all(len(set(fold[drive == d])) == 1 for d in range(23))
    assert sorted(np.bincount(fold[::7])) == [4, 4, 5, 5, 5]  # 23 drives in 5 folds


def test_the_interval_of_a_mean_is_as_wide_as_theory_says():
    rng = np.random.default_rng(0)
    level = rng.normal(size=400)
    drive = np.repeat(np.arange(400), 10)
    y = level[drive]  # scenarios of one drive are equal: n = 400, not 4000
    e = estimate(ratio_of_sums(y, 1.0, drive, resample_drives(400, 0, times=1000)))
    assert e.value == pytest.approx(y.mean())
    assert e.hi - e.lo == pytest.approx(2 * 1.96 * level.std() / np.sqrt(400), rel=0.1)


def test_auc_agrees_with_sklearn_with_ties_folds_and_weights():
    rng = np.random.default_rng(1)
    y, score, drive = rng.integers(0, 2, 300), rng.integers(0, 20, 300) / 20, rng.integers(0, 30, 300)
    fold, draws = np.zeros(300, int), resample_drives(30, 2, times=3)
    found = auc_of_draws(score, y, fold, drive, draws)
    expected = [roc_auc_score(y, score, sample_weight=w[drive]) for w in draws]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_auc_does_not_compare_scores_of_different_folds():
    y, score = np.array([0, 1, 0, 1]), np.array([0.1, 0.2, 10.1, 10.2])  # right within folds, offset between them
    assert auc_of_draws(score, y, np.array([0, 0, 1, 1]), np.arange(4), np.ones((1, 4)))[0] == 1.0
    assert auc_of_draws(score, y, np.zeros(4, int), np.arange(4), np.ones((1, 4)))[0] == 0.75


def test_neighbours_are_the_exact_ones_of_other_drives():
    rng = np.random.default_rng(2)
    x, drive = rng.normal(size=(1500, 5)).astype(np.float32), rng.integers(0, 9, 1500)
    near = neighbours(x, 4, drive)
    for d in range(9):
        own, rest = np.flatnonzero(drive == d), np.flatnonzero(drive != d)
        index = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(x[rest]).kneighbors(x[own])[1]
        assert (near[own] == rest[index]).mean() > 0.999  # equal but for rounding of nearly equal distances
    with_own = neighbours(x, 4)
    assert (with_own != np.arange(1500)[:, None]).all()


def test_where_too_few_rows_are_allowed_the_rest_is_marked():
    near = neighbours(np.arange(6.0)[:, None], 4, np.array([0, 0, 0, 0, 1, 1]))
    assert (near[:4, 2:] == -1).all() and set(near[0, :2]) == {4, 5}
    assert (near[4:] >= 0).all()


def test_standardise_drops_constants():
    x = standardise(np.stack([np.arange(10.0), np.full(10, 3.0)], axis=1))
    assert x.shape == (10, 1)
    assert x.mean() == pytest.approx(0, abs=1e-6) and x.std() == pytest.approx(1, abs=1e-6)
