"""Neighbours: exact ones by hand, and the graph of all of them against all distances."""

import numpy as np
import pytest

from avshift_core.latent.neighbors import cross_drive_neighbors, knn_graph, nearest, nearest_of


def test_a_point_is_not_its_own_neighbour():
    X = np.array([[0.0], [1.0], [3.0], [3.5]])
    distance, index = nearest(X, 1)
    assert index.ravel().tolist() == [1, 0, 3, 2]
    assert distance.ravel().tolist() == [1, 1, 0.5, 0.5]


def test_neighbours_of_the_own_drive_do_not_count():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    drive = np.array([0, 0, 1, 1, 0])
    row, neighbour = cross_drive_neighbors(X, drive, 1)
    assert dict(zip(row.tolist(), neighbour.tolist(), strict=True)) == {0: 2, 1: 2, 2: 1, 3: 4, 4: 3}


def test_a_row_is_never_its_own_neighbour_even_among_twins():
    X = np.zeros((40, 2), dtype=np.float32)  # all alike: any other row is as near as the row itself
    rows = np.array([3, 39])
    found, distance = nearest_of(X, rows, 5)
    assert found.shape == (2, 5) and not (found == rows[:, None]).any()
    assert (distance == 0).all()


def test_a_small_graph_is_exact():
    X = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    graph = knn_graph(X, 7)
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    assert np.array_equal(graph.index, np.argsort(distance, axis=1)[:, :7]) and graph.recall == 1
    assert graph.distance == pytest.approx(np.sort(distance, axis=1)[:, :7], abs=1e-4)


@pytest.mark.slow
def test_a_large_graph_says_how_much_it_has_found():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(6, 40))[np.arange(3000) % 6] * 4 + rng.normal(size=(3000, 40))).astype(np.float32)
    X[:40] = X[0]  # twins
    exact = knn_graph(X, 10)
    graph, again = (knn_graph(X, 10, exact_rows=100) for _ in range(2))
    assert np.array_equal(graph.index, again.index)
    assert graph.index.shape == (3000, 10) and not (graph.index == np.arange(3000)[:, None]).any()
    assert (np.diff(graph.distance, axis=1) >= 0).all()
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(graph.index[40:], exact.index[40:], strict=True)])
    assert shared > 0.9 and graph.recall == pytest.approx(shared, abs=0.02)
