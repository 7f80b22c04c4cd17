"""Both cohorts on the map of their corpus, how far it can be trusted, and smoothed scores."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from avshift_core import archive
from avshift_core.latent.atlas import draw_steps
from avshift_core.latent.principal import pca_axes
from avshift_core.latent.project import measure_faith, project_steps, smooth_steps
from avshift_core.progress import finish

N, GROUPS = 600, 6


def comparison(X, h=None):
    """As much of a comparison as the map needs: P has the first third of the rows."""
    h = np.linspace(0, 1, len(X)) if h is None else h
    ids, n_P = np.array([f"s{i:04d}" for i in range(len(X))]), len(X) // 3
    P, Q = (SimpleNamespace(obs=pd.DataFrame({"scenario_id": ids[rows]}), z=X[rows])
            for rows in (slice(n_P), slice(n_P, None)))
    return SimpleNamespace(analysis=SimpleNamespace(
        P=P, Q=Q, space=SimpleNamespace(X=X), global_test=SimpleNamespace(h_P=h[:n_P], h_Q=h[n_P:])))


@pytest.fixture(scope="module")
def X():
    """Six clouds far apart in 40 dimensions."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(GROUPS, 40))[np.arange(N) % GROUPS] * 4 + rng.normal(size=(N, 40))).astype(np.float32)


@pytest.fixture(scope="module")
def atlas(X):
    """The map of a corpus of which the comparison's last hundred scenarios were not drawn."""
    ids = np.array([f"s{i:04d}" for i in range(N - 100)])
    return finish(draw_steps(ids, X[:-100], np.zeros(N - 100), n=N))


def test_both_cohorts_are_where_the_corpus_has_them(X, atlas, tmp_path):
    projection = finish(project_steps(comparison(X), atlas))
    assert np.array_equal(projection.umap[:-100], atlas.xy) and projection.extent == atlas.extent
    assert projection.placed == pytest.approx(100 / N) and (projection.n_corpus, projection.n_drawn) == (N, N - 100)
    assert projection.umap_faith.kept > projection.pca_faith.kept
    assert 0 < projection.umap_faith.trustworthiness <= 1 and projection.umap_faith.rows == N
    archive.save(projection, tmp_path / "map.avs")
    again = archive.load(tmp_path / "map.avs")
    assert np.array_equal(again.umap, projection.umap) and again.umap_faith == projection.umap_faith


def test_the_smoothed_score_is_the_mean_of_the_neighbours(X):
    """eq:smoothed_classifier_score, with neighbours by sorting all distances in the first 30 components."""
    h = np.linspace(0, 1, N)
    x = PCA(30, svd_solver="full").fit_transform(X.astype(np.float64))
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    smoothed = finish(smooth_steps(comparison(X)))
    assert (smoothed.k, smoothed.recall) == (30, 1)
    assert smoothed.h_bar == pytest.approx(h[np.argsort(distance, axis=1)[:, :30]].mean(axis=1), abs=1e-5)
    assert finish(smooth_steps(comparison(X[:12]))).k == 11


def test_faith_is_one_for_the_space_itself_and_low_for_noise(X):
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(500, 2)).astype(np.float32)
    rows = np.arange(0, 500, 2)
    same = measure_faith(flat, flat * 3, rows)
    assert (same.trustworthiness, same.continuity, same.kept) == (1.0, 1.0, 1.0)
    noise = measure_faith(flat, rng.normal(size=(500, 2)), rows)
    assert noise.kept == pytest.approx(15 / 499, abs=0.02)  # by chance k of the n - 1 others
    assert noise.trustworthiness < 0.6
    scores = pca_axes(X, 2).scores
    assert measure_faith(X, scores, np.arange(N)).trustworthiness == pytest.approx(
        trustworthiness(X, scores, n_neighbors=15), abs=1e-6)
