"""Neighbours of one scenario against plain numpy, and what is told of their distance."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avshift_core.errors import CohortError, ConfigError
from avshift_core.latent.cohort import make_cohort
from avshift_core.latent.retrieve import MAX_K, anchor_of, find_anchor, neighbours, typical_distances
from avshift_core.latent.space import make_space

N, D, DRIVES = 400, 8, 20


def cohort(name, seed, move=0.0, n=N, drives=True):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, D)) * np.arange(1, D + 1) + move
    return make_cohort(name, z, drive_id=[f"d{i % DRIVES + (seed % 2) * 10:03d}" for i in range(n)] if drives else None,
                       obs=pd.DataFrame({"scenario_id": [f"{name}-{i}" for i in range(n)]}))


@pytest.fixture(scope="module")
def pair():
    """Drives d010..d019 are in both cohorts."""
    P, Q = cohort("P", 0), cohort("Q", 1, 0.5)
    return P, Q, make_space(P, Q, 20, 0)


def brute(P, Q, x, k, keep):
    """Rows of the k nearest by numpy, of all kept ones."""
    z = np.concatenate([P.z, Q.z]).astype(np.float64)
    mean = (P.z.mean(axis=0, dtype=float) + Q.z.mean(axis=0, dtype=float)) / 2
    scale = np.sqrt((((P.z - mean) ** 2).mean(axis=0) + ((Q.z - mean) ** 2).mean(axis=0)) / 2)
    distance = np.linalg.norm((z - mean) / scale - x, axis=1)
    rows = np.flatnonzero(keep)
    rows = rows[np.argsort(distance[rows], kind="stable")][:k]
    return rows, distance[rows]


@pytest.mark.parametrize("among", ["all", "P", "Q"])
@pytest.mark.parametrize("other_drives", [False, True])
@pytest.mark.parametrize("scenario_id", ["P-17", "Q-0", "Q-399"])
def test_they_are_those_of_plain_numpy(pair, among, other_drives, scenario_id):
    P, Q, space = pair
    anchor = find_anchor(P, Q, space, scenario_id)
    found = neighbours(P, Q, space, anchor, 20, among=among, other_drives=other_drives)
    keep = np.arange(2 * N) != anchor.row
    if among != "all":
        keep &= np.repeat(["P", "Q"], N) == among
    drive = np.concatenate([P.drive_ids[P.drive], Q.drive_ids[Q.drive]])
    if other_drives:
        keep &= drive != drive[anchor.row]
    rows, distance = brute(P, Q, anchor.x, 20, keep)
    assert found.row.tolist() == rows.tolist() and np.allclose(found.distance, distance, rtol=1e-5)
    assert found.cohort.tolist() == np.repeat(["P", "Q"], N)[rows].tolist()
    names = [f"P-{i}" for i in range(N)] + [f"Q-{i}" for i in range(N)]
    assert found.scenario_id.tolist() == [names[r] for r in rows]
    assert scenario_id not in found.scenario_id and found.table()["rank"].tolist() == list(range(1, 21))


@given(st.integers(0, 2 * N - 1), st.integers(1, MAX_K))
def test_nearest_first_without_the_anchor_and_without_twins(row, k):
    P, Q = cohort("P", 2), cohort("Q", 3)
    space = make_space(P, Q, 20, 0)
    found = neighbours(P, Q, space, find_anchor(P, Q, space, f"{'PQ'[row >= N]}-{row % N}"), k)
    assert found.k == k == len(set(found.row.tolist())) and row not in found.row
    assert (np.diff(found.distance) >= 0).all()


def test_a_twin_comes_first_with_distance_0_and_ties_by_row():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(N, D))
    z[5] = z[9] = z[3]
    P = make_cohort("P", z, obs=pd.DataFrame({"scenario_id": [f"P-{i}" for i in range(N)]}))
    Q = cohort("Q", 5, drives=False)
    space = make_space(P, Q, 20, 0)
    found = neighbours(P, Q, space, find_anchor(P, Q, space, "P-5"), 5)
    assert found.scenario_id[:2].tolist() == ["P-3", "P-9"] and found.distance[:2].tolist() == [0, 0]


def test_a_scenario_of_neither_cohort_is_placed_by_its_own_latent(pair):
    P, Q, space = pair
    assert find_anchor(P, Q, space, "somebody else") is None
    anchor = anchor_of(space, "other", Q.z[7], "d999")
    found = neighbours(P, Q, space, anchor, 3)
    assert found.scenario_id[0] == "Q-7" and found.distance[0] == pytest.approx(0, abs=1e-5)
    assert anchor.row == -1 and anchor.cohort == ""
    with pytest.raises(CohortError, match="has 3 dimensions and those of the comparison 8"):
        anchor_of(space, "other", [1, 2, 3])


def test_usual_distances_are_those_of_a_sample_by_plain_numpy(pair):
    P, Q, space = pair
    usual = typical_distances(P, Q, space)
    assert (usual.cohort == "P").sum() == (usual.cohort == "Q").sum() == 48
    X = space.X.astype(np.float64)
    all_distances = np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1:]  # without itself
    of_P = usual.of("P", "all", False)
    assert of_P.shape == (48, MAX_K)
    for row in of_P[:10]:  # each is the list of one scenario of P
        assert np.isclose(all_distances[:N, :MAX_K], row, atol=1e-4).all(axis=1).any()
    assert (usual.of("P", "all", True) >= of_P - 1e-9).all()  # fewer candidates are never nearer
    assert (usual.of("P", "Q", False) >= of_P - 1e-9).all()


def test_far_is_said_of_what_is_far_and_of_nothing_else(pair):
    P, Q, space = pair
    usual = typical_distances(P, Q, space)
    shares = [neighbours(P, Q, space, find_anchor(P, Q, space, f"P-{i}"), 1, usual=usual).far[0] for i in range(200)]
    assert np.mean(shares) < 0.15  # 5 % of all, known from 48
    ratio = [neighbours(P, Q, space, find_anchor(P, Q, space, f"P-{i}"), 1, usual=usual).ratio[0] for i in range(200)]
    assert np.median(ratio) == pytest.approx(1, abs=0.1)
    lost = anchor_of(space, "lost", P.z.mean(axis=0) + 40 * P.z.std(axis=0))
    found = neighbours(P, Q, space, lost, 10, usual=usual)
    assert found.far.all() and (found.ratio > 10).all()
    bare = neighbours(P, Q, space, lost, 10)
    assert np.isnan(bare.ratio).all() and not bare.far.any()


def test_what_cannot_be_is_a_sentence(pair):
    P, Q, space = pair
    anchor = find_anchor(P, Q, space, "P-0")
    with pytest.raises(ConfigError, match="0 neighbours cannot be listed; choose 1 to 50"):
        neighbours(P, Q, space, anchor, 0)
    with pytest.raises(ConfigError, match="'R' is no cohort"):
        neighbours(P, Q, space, anchor, 5, among="R")


def test_fewer_than_k_are_all_there_are():
    P, Q = cohort("P", 6, n=30), cohort("Q", 7, n=30)
    space = make_space(P, Q, 2, 0)
    assert neighbours(P, Q, space, find_anchor(P, Q, space, "P-3"), 50, among="P").k == 29


def test_without_ids_and_drives_rows_are_told():
    rng = np.random.default_rng(8)
    P, Q = (make_cohort(name, rng.normal(size=(N, D))) for name in "PQ")
    space = make_space(P, Q, 20, 0)
    found = neighbours(P, Q, space, anchor_of(space, "", P.z[2]), 2, other_drives=True)
    assert found.row[0] == 2 and found.scenario_id.tolist() == ["", ""]
