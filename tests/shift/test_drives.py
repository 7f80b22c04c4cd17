import numpy as np
import pytest

from avshift_core.latent.cohort import make_cohort
from avshift_core.shift.drives import (
    clustered_variance,
    folds_by_drive,
    intraclass_correlation,
    permuted_labels,
    pool,
)


def test_folds_keep_drives_whole_and_spread_both_cohorts(small_pair):
    sample = pool(*small_pair)
    fold = folds_by_drive(sample, 5, np.random.default_rng(0))
    for drive in range(sample.n_drives):
        assert len(set(fold[sample.drive == drive])) == 1
    for label in (0, 1):
        assert np.bincount(fold[sample.y == label]).tolist() == [60] * 5  # 15 drives of 20 in 5 folds


def test_a_drive_in_both_cohorts_is_never_trained_and_tested_on():
    ids = [f"d{i % 12}" for i in range(240)]
    P, Q = (make_cohort(n, np.random.default_rng(s).normal(size=(240, 2)), drive_id=ids)
            for n, s in (("P", 0), ("Q", 1)))
    fold = folds_by_drive(pool(P, Q), 4, np.random.default_rng(0))
    by_id = {}
    for name, k in zip(ids + ids, fold, strict=True):
        by_id.setdefault(name, set()).add(int(k))
    assert all(len(folds) == 1 for folds in by_id.values())


def test_clustered_variance_of_equal_drives_is_that_of_their_means():
    rng = np.random.default_rng(0)
    value = (rng.normal(size=(40, 1)) + rng.normal(size=(40, 25))).ravel()
    drive = np.repeat(np.arange(40), 25)
    means = value.reshape(40, 25).mean(axis=1)
    assert clustered_variance(value - value.mean(), drive, 40) == pytest.approx(means.var(ddof=1) / 40)


def test_intraclass_correlation_recovers_a_known_share():
    rng = np.random.default_rng(1)
    x = np.sqrt(0.3) * rng.normal(size=(2000, 1, 4)) + np.sqrt(0.7) * rng.normal(size=(2000, 10, 4))
    found = intraclass_correlation(x.reshape(-1, 4), np.repeat(np.arange(2000), 10), 2000)
    assert found == pytest.approx(0.3, abs=0.02)


def test_permutations_keep_the_number_of_drives():
    labels = permuted_labels(np.repeat([0, 1], [7, 5]), 50, np.random.default_rng(0))
    assert (labels.sum(axis=1) == 5).all()
    assert len({tuple(row) for row in labels}) > 40
