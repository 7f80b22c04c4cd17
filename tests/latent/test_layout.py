"""The layout by landmarks: who they are, where the others start, and that the picture is as good."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from avshift_core.latent import layout
from avshift_core.latent.layout import choose_landmarks, layout_steps, place
from avshift_core.latent.neighbors import Graph, knn_graph
from avshift_core.latent.principal import pca_axes
from avshift_core.progress import finish


def test_every_stratum_has_its_share_of_the_landmarks():
    stratum = np.random.default_rng(0).choice(4, 10_000, p=[0.6, 0.3, 0.09, 0.01])
    rows = choose_landmarks(stratum, 1000, seed=3)
    assert len(np.unique(rows)) == 1000 and (np.diff(rows) > 0).all()
    assert np.abs(np.bincount(stratum[rows]) - np.bincount(stratum) / 10).max() <= 1
    assert not np.array_equal(rows, choose_landmarks(stratum, 1000, seed=4))
    assert choose_landmarks(stratum[:7], 100, 0).tolist() == list(range(7))


def test_the_others_start_between_the_landmarks_nearest_to_them():
    x = np.array([[0.0], [3.0], [1.0], [50.0]])
    graph = Graph(np.array([[2, 1], [2, 0], [0, 1], [1, 2]]), np.array([[1.0, 3], [2, 3], [1, 2], [47, 49]]), 1.0)
    put = place(x, graph, np.array([0, 1]), np.array([[0.0, 0.0], [6.0, 3.0]]))
    assert put[:2].tolist() == [[0, 0], [6, 3]]
    assert put[2].tolist() == [2, 1]  # weights 1 and 1/2: a third of the way to the second
    assert put[3].tolist() == [6, 3]
    far = Graph(np.array([[2], [2], [3], [2]]), np.ones((4, 1)), 1.0)  # no landmark among the neighbours of 2 and 3
    assert place(x, far, np.array([0, 1]), np.array([[0.0, 0.0], [6.0, 3.0]]))[2:].tolist() == [[0, 0], [6, 3]]


@pytest.mark.slow
def test_landmarks_first_draw_as_true_a_picture(monkeypatch):
    rng = np.random.default_rng(0)
    group = np.arange(3000) % 6
    X = (rng.normal(size=(6, 10))[group] * 4 + rng.normal(size=(3000, 10))).astype(np.float32)
    graph, start = knn_graph(X, 30), pca_axes(X).scores[:, :2]
    whole = finish(layout_steps(X, graph, start, group))
    monkeypatch.setattr(layout, "WHOLE_ROWS", 1000)
    monkeypatch.setattr(layout, "LANDMARKS", 700)
    seen = []
    first, again = finish(layout_steps(X, graph, start, group), seen.append), finish(
        layout_steps(X, graph, start, group))
    assert np.array_equal(first, again) and first.shape == (3000, 2) and np.isfinite(first).all()
    assert [p.share for p in seen] == sorted(p.share for p in seen)
    assert any("landmarks" in p.text for p in seen)
    score = [trustworthiness(X[:1500], xy[:1500], n_neighbors=15) for xy in (whole, first)]
    assert score[1] > score[0] - 0.01
