import numpy as np
import pytest

from avshift_core.encoder.output import effective_rank, output_scale


def test_whitened_and_standardised_output():
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4)) + 3
    for output in ("standardised", "whitened"):
        mean, scale = output_scale(raw, output)
        z = (raw - mean) @ scale
        covariance = np.cov(z, rowvar=False)
        assert np.allclose(np.diag(covariance), 1, atol=0.02)
        assert (np.abs(covariance - np.eye(4)).max() < 1e-6) == (output == "whitened")


def test_effective_rank_counts_directions():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, 10))
    assert effective_rank(flat) <= 3 + 1e-6
    assert effective_rank(rng.normal(size=(20_000, 10))) == pytest.approx(10, abs=0.02)
