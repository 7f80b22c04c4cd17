from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cells import OUTSIDE
from avshift_core.latent.space import make_space
from avshift_core.shift.celltree import best_nodes, cell_counts, test_nodes
from avshift_core.shift.drives import pool
from avshift_core.shift.local import choose_drives, grow, localize
from avshift_core.shift.local_paper import assign_balls, binomial_p, localize_paper


def test_node_test_by_hand():
    # four drives of 10 a side, one node: counts 1, 2, 1, 2 in P and 5, 6, 5, 6 in Q: p = 0.15, q = 0.55
    counts = sparse.csr_array(np.array([[1, 2, 1, 2, 5, 6, 5, 6.0]]))
    found = test_nodes(counts, np.full(8, 10), np.repeat([0, 1], 4))
    assert (found.p[0], found.q[0]) == (0.15, 0.55)
    spread = 4 / 3 * 4 * 0.25 / 40**2  # each drive is 0.5 off; Poisson's floor is larger: max(var, p / n / 2)
    variance = max(spread, 0.15 / 40 / 2) + max(spread, 0.55 / 40 / 2)
    assert found.z[0] == pytest.approx(0.4 / np.sqrt(variance))


def test_swapping_cohorts_turns_the_sign():
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(3.0, size=(6, 20)).astype(float))
    size, y = np.full(20, 30), np.repeat([0, 1], 10)
    a, b = test_nodes(counts, size, y, 1.1), test_nodes(counts, size, 1 - y, 1.1)
    np.testing.assert_allclose(a.z, -b.z)
    np.testing.assert_allclose(a.p, b.q)


def test_best_nodes_splits_a_union_whose_parts_say_more():
    class Tree:
        n, tree = 3, np.array([[0, 1], [2, 3]])

    z = np.array([5.0, 5.0, 0.0, 6.0, 4.0])  # 25 + 25 > 36
    assert sorted(best_nodes(z, np.ones(5, dtype=bool), Tree, 8.0)) == [0, 1]
    z[3] = 8.0  # 64 - 8 > 2 * (25 - 8)
    assert best_nodes(z, np.ones(5, dtype=bool), Tree, 8.0).tolist() == [3]


def test_grow_takes_only_borders_that_lean_the_same_way():
    touching = np.array([[0, 9, 9, 1], [9, 0, 0, 1], [9, 0, 0, 1], [1, 1, 1, 90.0]])
    grown = grow(np.array([[True, False, False, False]]), np.array([1.0]), np.array([5, 2, -2, 3.0]),
                 np.ones(4, dtype=bool), touching)
    assert grown.tolist() == [[True, True, False, False]]


def test_the_bump_on_the_line_is_found(line_analysis, line):
    regions = line_analysis.local.regions
    assert regions[0].direction == "target_heavy"
    inside = line.P.z[line_analysis.local.region_P == 0]
    assert 1.5 < inside.min() < 2.0 < inside.max() < 2.6  # N(2, 0.12) holds all of it within 4 sd


def test_region_of_agrees_with_the_assignment(clustered_analysis, clustered):
    local = clustered_analysis.local
    np.testing.assert_array_equal(local.region_of(clustered.P.z), local.region_P)
    np.testing.assert_array_equal(local.region_of(clustered.Q.z), local.region_Q)
    assert local.region_of(np.full((1, 64), 1e6)).tolist() == [OUTSIDE]


def test_masses_come_from_drives_that_did_not_choose(clustered_analysis):
    local, sample = clustered_analysis.local, clustered_analysis.sample
    chooses = choose_drives(sample, clustered_analysis.config.choose_share, np.random.default_rng([0, 3]))
    measures = ~chooses[sample.drive]
    np.testing.assert_array_equal(local.measure_P, measures[sample.y == 0])
    for k, region in enumerate(local.regions):
        assert region.p_k == pytest.approx((local.region_P[local.measure_P] == k).mean())
        assert region.q_k == pytest.approx((local.region_Q[local.measure_Q] == k).mean())


def test_order_of_rows_changes_nothing_in_the_counts(clustered):
    sample = pool(clustered.P, clustered.Q)
    cell = np.random.default_rng(0).integers(0, 5, sample.n)
    order = np.random.default_rng(1).permutation(sample.n)
    a = cell_counts(cell, sample.drive, 5, sample.n_drives)
    b = cell_counts(cell[order], sample.drive[order], 5, sample.n_drives)
    assert (a != b).nnz == 0


def test_places_without_source_are_violations_not_regions(small_pair):
    from avshift_core.latent.cohort import make_cohort

    P, Q = small_pair
    z = Q.z.copy()
    z[::3] = 12 + 0.1 * z[::3]  # a third of Q where P has nothing
    Q = make_cohort("Q", z, drive_id=Q.drive)
    space, sample = make_space(P, Q, 12, 0), pool(P, Q)
    found = localize(space, sample, np.full(sample.n, 0.5), AnalysisConfig())
    assert found.overlap_violations
    assert found.overlap_violations[0].q_k == pytest.approx(1 / 3, abs=0.05)
    violating = np.flatnonzero(Q.z[:, 0] > 6)
    assert (found.region_Q[violating] == OUTSIDE).all()


def test_binomial_p_value_against_scipy():
    from scipy import stats

    for c, k in ((3, 20), (15, 20), (7, 11), (50, 100)):
        assert binomial_p(np.array([c]), k)[0] == pytest.approx(stats.binomtest(c, k).pvalue)


def test_balls_assign_to_the_nearest_centre():
    X = np.array([[0.0], [0.9], [1.1], [5.0]])
    assert assign_balls(X, np.array([[0.0], [2.0]]), np.array([1.5, 1.5])).tolist() == [0, 0, 1, OUTSIDE]


def test_the_paper_finds_the_bump_too(line, line_analysis):
    paper = line_analysis.local_paper
    assert paper.n_regions >= 1
    space = line_analysis.space
    strongest = paper.centres[0, 0] * space.scale[0] + space.mean[0]
    assert strongest == pytest.approx(2.0, abs=0.3)
    assert paper.target_heavy[0]


def test_the_paper_drops_unsupported_neighbourhoods(line_analysis):
    config = replace(line_analysis.config, support_eps=0.0, n_neighbors=30)
    strict = replace(config, support_eps=0.05)
    h = np.r_[line_analysis.global_test.h_P, line_analysis.global_test.h_Q]
    free, held = (localize_paper(line_analysis.space, line_analysis.sample, h, c) for c in (config, strict))
    assert free.n_violations <= held.n_violations


def test_a_drive_of_both_cohorts_does_not_choose_and_measure():
    from avshift_core.latent.cohort import make_cohort

    ids = [f"d{i % 12}" for i in range(240)]
    rng = np.random.default_rng(0)
    P, Q = (make_cohort(name, rng.normal(size=(240, 2)), drive_id=ids) for name in "PQ")
    sample = pool(P, Q)
    chooses = choose_drives(sample, 0.5, np.random.default_rng(0))
    for key in np.unique(sample.fold_key):
        assert len(set(chooses[sample.fold_key == key])) == 1
