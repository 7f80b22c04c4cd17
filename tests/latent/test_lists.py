"""Lists around centres: every row in one of them, all neighbours found when all are opened, and no more claimed."""

import numpy as np
import pytest

from avshift_core.latent import lists as module
from avshift_core.latent.lists import all_nearest, make_lists, probes_for
from avshift_core.latent.neighbors import nearest, nearest_of
from avshift_core.threads import one_thread, threads_allowed


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(9, 20))[np.arange(5000) % 9] * 2 + rng.normal(size=(5000, 20))).astype(np.float32)


@pytest.fixture(scope="module")
def lists(X):
    return make_lists(X, seed=0)


def test_every_row_is_in_the_list_of_its_nearest_centre(X, lists):
    assert np.array_equal(np.sort(lists.order), np.arange(len(X))) and np.array_equal(lists.X, X[lists.order])
    own = np.searchsorted(lists.start, np.arange(len(X)), side="right") - 1
    away = np.linalg.norm(lists.X[:, None] - lists.centre[None], axis=2)
    assert len(lists.centre) == 70 and np.array_equal(own, away.argmin(axis=1))  # floor(sqrt(5000))


def test_all_lists_opened_give_the_neighbours_by_all_distances(X, lists):
    index, distance = all_nearest(lists, 12, len(lists.centre))
    true, found = nearest(X, 12)
    assert distance == pytest.approx(true, abs=1e-4)
    assert (index == found).mean() > 0.999  # two that are equally far may change places
    assert np.linalg.norm(X[index[7]] - X[7], axis=1) == pytest.approx(distance[7], abs=1e-5)


def test_what_is_found_in_some_lists_is_what_they_hold(X, lists):
    """Row by row: the nearest among the members of the opened lists, by all distances to these."""
    probes, k = 6, 10
    index, _ = all_nearest(lists, k, probes)
    for at in (0, 1234, 4095, 4096, 4999):  # both sides of the border between two blocks
        rows = lists.rows(lists.opened(lists.X[at : at + 1], probes)[0])
        rows = rows[rows != at]
        nearest_rows = rows[np.argsort(np.linalg.norm(lists.X[rows] - lists.X[at], axis=1))[:k]]
        assert index[lists.order[at]].tolist() == lists.order[nearest_rows].tolist()


def test_the_recall_is_that_of_the_search(X, lists):
    reach = probes_for(lists, 10, 0.9, seed=0)
    assert 0.85 < reach.recall < 0.95 and 1 < reach.probes < len(lists.centre)
    index, _ = all_nearest(lists, 10, reach.probes)
    true = nearest(X, 10)[1]
    shared = np.mean([len(np.intersect1d(a, b)) for a, b in zip(index, true, strict=True)]) / 10
    assert shared == pytest.approx(reach.recall, abs=0.02)  # 3,000 neighbours of 300 anchors: 0.9 to within 0.01
    assert probes_for(lists, 10, 1.0, seed=0).probes > reach.probes


def test_the_answer_does_not_depend_on_the_number_of_threads(X, lists):
    with one_thread():
        assert threads_allowed() == 1
        alone = make_lists(X, seed=0)
        found = all_nearest(alone, 5, 8)
    assert np.array_equal(alone.X, lists.X)
    assert all(np.array_equal(a, b) for a, b in zip(found, all_nearest(lists, 5, 8), strict=True))


@pytest.mark.parametrize("at_once", [module.AT_ONCE, 7_000])
def test_twins_are_neighbours_of_each_other_and_nobody_is_its_own(monkeypatch, X, at_once):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    twins = np.concatenate([np.tile(X[0], (2000, 1)), X[:1000]])
    lists = make_lists(twins, seed=1)
    index, distance = all_nearest(lists, 15, 3)
    assert (index != np.arange(3000)[:, None]).all()
    assert all(len(set(row)) == 15 for row in index.tolist())
    assert (distance[:2001] == 0).all() and (distance[2001:, 0] > 0).all()


def test_lists_with_too_few_rows_fall_back_on_all_distances():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(900, 4)), 50 + rng.normal(size=(3, 4))]).astype(np.float32)
    lists = make_lists(X, seed=0)
    index, _ = all_nearest(lists, 20, 1)
    assert np.array_equal(np.sort(index[900:]), np.sort(nearest_of(X, np.arange(900, 903), 20)[0]))


def test_all_rows_alike():
    index, distance = all_nearest(make_lists(np.ones((50, 3)), seed=0), 4, 1)
    assert (distance == 0).all() and (index != np.arange(50)[:, None]).all()
