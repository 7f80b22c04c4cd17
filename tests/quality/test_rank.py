import numpy as np
import pytest

from avshift_core.quality.rank import measure_rank


def test_equal_directions_count_all_and_copies_count_once():
    z = np.random.default_rng(0).normal(size=(20_000, 6))
    full = measure_rank(z)
    assert full.effective == pytest.approx(6, abs=0.02) and full.participation == pytest.approx(6, abs=0.02)
    assert (full.dimensions, full.constant, full.for_90) == (6, 0, 6)
    assert measure_rank(np.tile(z[:, :2], 3)).effective == pytest.approx(2, abs=0.02)


def test_the_formula_on_two_correlated_dimensions():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 400_000))
    z = np.stack([a, 0.6 * a + 0.8 * b], axis=1)  # correlation 0.6: eigenvalues 1.6 and 0.4, shares 0.8 and 0.2
    found = measure_rank(z)
    assert found.eigenvalues == pytest.approx((0.8, 0.2), abs=0.003)
    assert found.effective == pytest.approx(np.exp(-0.8 * np.log(0.8) - 0.2 * np.log(0.2)), abs=0.01)
    assert found.participation == pytest.approx(1 / (0.64 + 0.04), abs=0.01)


def test_scale_does_not_matter_and_constants_are_named():
    z = np.random.default_rng(2).normal(size=(1000, 3))
    scaled = np.concatenate([z * [1, 1000, 0.001], np.ones((1000, 1))], axis=1)
    assert measure_rank(scaled).effective == pytest.approx(measure_rank(z).effective, rel=1e-4)
    assert (measure_rank(scaled).constant, measure_rank(scaled).dimensions) == (1, 4)


def test_the_rank_of_whitened_latents_tells_nothing():
    z = np.random.default_rng(3).normal(size=(1000, 3))
    assert not measure_rank(z, "whitened").tells
    assert measure_rank(z).tells
