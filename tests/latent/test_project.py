"""Principal axes, the map as a job, and how far it can be trusted."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from avshift_core import archive
from avshift_core.latent import project
from avshift_core.latent.neighbors import nearest
from avshift_core.latent.project import measure_faith, pca_axes, project_steps
from avshift_core.progress import finish

N, GROUPS = 600, 6


def comparison(X, h=None):
    """As much of a comparison as the map needs."""
    h = np.linspace(0, 1, len(X)) if h is None else h
    half = len(X) // 2
    return SimpleNamespace(analysis=SimpleNamespace(
        space=SimpleNamespace(X=X), global_test=SimpleNamespace(h_P=h[:half], h_Q=h[half:]), local=None))


@pytest.fixture(scope="module")
def clouds():
    """Six clouds far apart in 40 dimensions, the latents of groups 0..5 in turn."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % GROUPS
    X = rng.normal(size=(GROUPS, 40))[group] * 4 + rng.normal(size=(N, 40))
    return X.astype(np.float32), group


@pytest.fixture(scope="module")
def drawn(clouds):
    seen = []
    return finish(project_steps(comparison(clouds[0])), seen.append), seen


def test_principal_axes_are_those_of_scikit_learn_up_to_sign(clouds):
    X, _ = clouds
    axes, reference = pca_axes(X, 4), PCA(4, svd_solver="full").fit(X.astype(np.float64))
    expected = reference.transform(X)
    sign = np.sign((expected * axes.scores).sum(axis=0))
    assert np.abs(axes.scores - expected * sign).max() < 1e-4
    assert axes.explained == pytest.approx(reference.explained_variance_ratio_, rel=1e-6)
    assert not axes.scores.flags.writeable


def test_principal_axes_do_not_turn_with_the_order_of_the_rows_and_blocks_change_nothing(clouds, monkeypatch):
    X, _ = clouds
    axes = pca_axes(X)
    order = np.random.default_rng(1).permutation(N)
    assert np.abs(pca_axes(X[order]).scores - axes.scores[order]).max() < 1e-4
    monkeypatch.setattr(project, "CHUNK", 128)
    assert np.abs(pca_axes(X).scores - axes.scores).max() < 1e-4


def test_axes_beyond_the_dimension_are_empty():
    axes = pca_axes(np.random.default_rng(0).normal(size=(50, 1)))
    assert axes.scores.shape == (50, 4) and (axes.scores[:, 1:] == 0).all()
    assert axes.explained.tolist() == [1, 0, 0, 0]


def test_the_map_keeps_the_clouds_apart(clouds, drawn):
    _, group = clouds
    projection, _ = drawn
    assert projection.umap.shape == (N, 2) and projection.umap.dtype == np.float32
    assert np.isfinite(projection.umap).all()
    _, index = nearest(projection.umap, 5)
    assert (group[index] == group[:, None]).all()
    assert projection.recall == 1 and not projection.landmarks
    assert projection.n_components == 30 and 0.7 < projection.explained_all < 1


def test_the_same_seed_gives_the_same_map_and_another_one_another(clouds, drawn):
    X, _ = clouds
    again, other = finish(project_steps(comparison(X))), finish(project_steps(comparison(X), seed=1))
    assert np.array_equal(again.umap, drawn[0].umap) and np.array_equal(again.h_bar, drawn[0].h_bar)
    assert not np.array_equal(other.umap, drawn[0].umap)


def test_progress_goes_up_and_tells_the_rounds(drawn):
    shares = [p.share for p in drawn[1]]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert any("of 500 rounds" in p.text and not p.text.startswith("Drawing the map, 0 ") for p in drawn[1])


def test_the_smoothed_score_is_the_mean_of_the_neighbours(clouds, drawn):
    """eq:smoothed_classifier_score, with neighbours by sorting all distances in the components UMAP is made of."""
    X, _ = clouds
    h = np.linspace(0, 1, N)
    x = PCA(30, svd_solver="full").fit_transform(X.astype(np.float64))
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    order = np.argsort(distance, axis=1)[:, : drawn[0].k_smooth]
    assert drawn[0].k_smooth == 30
    assert drawn[0].h_bar == pytest.approx(h[order].mean(axis=1), abs=1e-5)


def test_a_result_can_be_kept(drawn, tmp_path):
    archive.save(drawn[0], tmp_path / "map.avs")
    again = archive.load(tmp_path / "map.avs")
    assert np.array_equal(again.umap, drawn[0].umap) and again.umap_faith == drawn[0].umap_faith


def test_faith_is_one_for_the_space_itself_and_low_for_noise(clouds):
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(500, 2)).astype(np.float32)
    rows = np.arange(0, 500, 2)
    same = measure_faith(flat, flat * 3, rows)
    assert (same.trustworthiness, same.continuity, same.kept) == (1.0, 1.0, 1.0)
    noise = measure_faith(flat, rng.normal(size=(500, 2)), rows)
    assert noise.kept == pytest.approx(15 / 499, abs=0.02)  # by chance k of the n - 1 others
    assert noise.trustworthiness < 0.6
    X, _ = clouds
    axes = pca_axes(X)
    assert measure_faith(X, axes.scores[:, :2], np.arange(N)).trustworthiness == pytest.approx(
        trustworthiness(X, axes.scores[:, :2], n_neighbors=15), abs=1e-6)


def test_umap_keeps_more_neighbours_than_two_straight_axes(drawn):
    projection, _ = drawn
    assert projection.umap_faith.kept > projection.pca_faith.kept
    assert 0 < projection.umap_faith.trustworthiness <= 1 and projection.umap_faith.rows == N


@pytest.mark.parametrize(("n", "d"), [(12, 3), (200, 1), (60, 64)])
def test_small_and_flat_spaces_have_a_map_too(n, d):
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    X[: n // 4] = X[0]  # twins
    projection = finish(project_steps(comparison(X)))
    assert projection.umap.shape == (n, 2) and np.isfinite(projection.umap).all()
    assert projection.n_components == min(d, 30) and projection.k_smooth == min(30, n - 1)
