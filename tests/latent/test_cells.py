import numpy as np

from avshift_core.latent.cells import OUTSIDE, partition
from avshift_core.latent.space import make_space


def test_every_seen_scenario_has_a_cell_and_a_far_one_has_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    cells = partition(X, np.arange(2000) % 2, 16, seed=0)
    assert (cells.assign(X) >= 0).all()
    assert cells.assign(np.full((1, 5), 100.0, dtype=np.float32)).tolist() == [OUTSIDE]


def test_the_partition_does_not_see_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    y = np.arange(2000) % 2
    other = rng.permutation(y)  # equal numbers: all rows take part in both fits
    np.testing.assert_array_equal(partition(X, y, 16, seed=0).centres, partition(X, other, 16, seed=0).centres)


def test_members_of_the_root_are_all_cells():
    X = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    cells = partition(X, np.arange(1000) % 2, 8, seed=0)
    under = cells.members()
    assert under.shape == (15, 8)
    assert under[-1].all()
    assert (under[:8] == np.eye(8, dtype=bool)).all()


def test_constant_dimensions_are_left_out(small_pair):
    from avshift_core.latent.cohort import make_cohort

    P, Q = (make_cohort(c.name, np.c_[c.z, np.full(c.n, 7.0)], drive_id=c.drive) for c in small_pair)
    space = make_space(P, Q, 8, 0)
    assert space.X.shape[1] == 3
    np.testing.assert_allclose(space.standardise(P.z), space.X[: P.n], atol=1e-5)


def test_duplicated_points_make_fewer_cells():
    X = np.repeat(np.arange(3.0, dtype=np.float32), 200)[:, None]
    cells = partition(X, np.arange(600) % 2, 64, seed=0)
    assert cells.n == 3


def test_no_gap_between_neighbouring_cells():
    X = np.random.default_rng(0).normal(size=(600, 1)).astype(np.float32)
    cells = partition(X, np.arange(600) % 2, 10, seed=0)
    between = np.linspace(X.min(), X.max(), 5001, dtype=np.float32)[:, None]
    assert (cells.assign(between) >= 0).all()


def test_the_smaller_cohort_sets_the_number_of_cells():
    X = np.random.default_rng(0).normal(size=(6300, 2)).astype(np.float32)
    assert partition(X, np.repeat([0, 1], [300, 6000]), 256, seed=0).n == 10  # 2 * 300 / 60
