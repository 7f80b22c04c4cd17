"""Principal axes: those of scikit-learn, whatever the order and the blocks."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from avshift_core.latent import principal
from avshift_core.latent.principal import pca_axes

N = 600


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(6, 40))[np.arange(N) % 6] * 4 + rng.normal(size=(N, 40))).astype(np.float32)


def test_principal_axes_are_those_of_scikit_learn_up_to_sign(X):
    found, reference = pca_axes(X, 4), PCA(4, svd_solver="full").fit(X.astype(np.float64))
    expected = reference.transform(X)
    sign = np.sign((expected * found.scores).sum(axis=0))
    assert np.abs(found.scores - expected * sign).max() < 1e-4
    assert found.explained == pytest.approx(reference.explained_variance_ratio_, rel=1e-6)
    assert np.abs(found.axes * sign - reference.components_.T).max() < 1e-5
    assert not found.scores.flags.writeable


def test_they_do_not_turn_with_the_order_of_the_rows_and_blocks_change_nothing(X, monkeypatch):
    found = pca_axes(X)
    order = np.random.default_rng(1).permutation(N)
    assert np.abs(pca_axes(X[order]).scores - found.scores[order]).max() < 1e-4
    monkeypatch.setattr(principal, "CHUNK", 128)
    assert np.abs(pca_axes(X).scores - found.scores).max() < 1e-4


def test_axes_beyond_the_dimension_are_empty():
    found = pca_axes(np.random.default_rng(0).normal(size=(50, 1)))
    assert found.scores.shape == (50, 4) and (found.scores[:, 1:] == 0).all() and found.axes.shape == (1, 1)
    assert found.explained.tolist() == [1, 0, 0, 0]
