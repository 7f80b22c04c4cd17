import numpy as np
import pytest
from scipy import stats

from avshift_core.shift.baselines import reference_tests
from avshift_core.shift.drives import Pool


def one_dimension(p, q):
    y = np.repeat([0, 1], [len(p), len(q)])
    sample = Pool(y, np.arange(len(y)), y, np.arange(len(y)))
    X = np.r_[p, q][:, None]
    return {t.name: t for t in reference_tests(X, sample, X[:, 0])}


def test_statistics_against_scipy():
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=400), rng.normal(0.3, 1.2, size=500)
    found = one_dimension(p, q)
    assert found["ks"].statistic == pytest.approx(stats.ks_2samp(p, q).statistic)
    assert found["ks"].p_asymptotic == pytest.approx(stats.ks_2samp(p, q, method="asymp").pvalue)
    assert found["w1"].statistic == pytest.approx(stats.wasserstein_distance(p, q))


def test_a_clear_shift_reaches_the_floor_and_no_shift_does_not():
    rng = np.random.default_rng(1)
    moved = one_dimension(rng.normal(size=500), rng.normal(1, 1, size=500))
    same = one_dimension(rng.normal(size=500), rng.normal(size=500))
    for name in ("ks", "mmd", "w1"):
        assert moved[name].p_value == pytest.approx(1 / 200)  # 199 permutations
        assert same[name].p_value > 0.01


def test_drives_are_permuted_whole():
    """All scenarios of a drive alike, no shift: permuting rows would always reject, permuting drives does not."""
    rng = np.random.default_rng(2)
    drive = np.repeat(np.arange(40), 50)
    X = rng.normal(size=40)[drive][:, None] + 0.01 * rng.normal(size=(2000, 1))
    y = (drive >= 20).astype(int)
    found = reference_tests(X, Pool(y, drive, np.repeat([0, 1], 20), np.arange(40)), X[:, 0])
    assert stats.ks_2samp(X[y == 0, 0], X[y == 1, 0]).pvalue < 1e-6
    assert min(t.p_value for t in found) > 0.02
