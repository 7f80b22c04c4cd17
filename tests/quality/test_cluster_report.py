"""Clusters of a comparison: the partition, P against Q, events, groups."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from avshift_core import archive
from avshift_core.errors import ConfigError
from avshift_core.latent.cohort import make_cohort
from avshift_core.progress import finish
from avshift_core.quality.cluster_report import (
    cluster_event_steps,
    cluster_rates,
    cluster_steps,
    cluster_table,
    cut_space,
    group_centres,
    on_axes,
)
from avshift_core.shift.drives import pool

KINDS = ("agent_cutting_in", "ego_yielding", "general", "ego_lane_keeping", "agent_jaywalking", "ego_nudging")
SHARES = np.array([[0.30, 0.25, 0.20, 0.13, 0.08, 0.04], [0.15, 0.25, 0.20, 0.13, 0.23, 0.04]])  # of P and of Q
RATES = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.0])  # of the event, and of the second one


def cohort(name, share, rng, n=3000, drives=60):
    kind = rng.choice(6, n, p=share)
    centres = 12 * np.eye(6)
    z = centres[kind] + rng.normal(size=(n, 6))
    obs = pd.DataFrame({"scenario_id": [f"{name}{i}" for i in range(n)], "category": np.array(KINDS)[kind]})
    ell = {event: (rng.random(n) < RATES[kind]).astype(float) for event in ("brake", "near")}
    return make_cohort(name, z, drive_id=[f"{name}{i % drives}" for i in range(n)], ell=ell, obs=obs)


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    P, Q = (cohort(name, share, rng) for name, share in zip("PQ", SHARES, strict=True))
    X = np.concatenate([P.z, Q.z])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return SimpleNamespace(analysis=SimpleNamespace(P=P, Q=Q, space=SimpleNamespace(X=X), sample=pool(P, Q),
                                                    config=SimpleNamespace(level=0.95)))


@pytest.fixture(scope="module")
def partition(comparison):
    return finish(cluster_steps(comparison, n_clusters=6))


@pytest.fixture(scope="module")
def kind_of(comparison, partition):
    """Kind of each cluster."""
    obs = pd.concat([comparison.analysis.P.obs, comparison.analysis.Q.obs], ignore_index=True)
    return [KINDS.index(obs["category"][partition.cluster == k].mode()[0]) for k in range(6)]


def test_clusters_are_the_kinds_numbered_by_size_and_named(partition, kind_of):
    assert sorted(kind_of) == list(range(6))
    assert list(partition.size) == sorted(partition.size, reverse=True) and sum(partition.size) == 6000
    assert dict(zip(kind_of, partition.names, strict=True))[0] == "cut-ins"
    assert len(set(partition.names)) == 6


def test_shares_of_P_and_Q_and_which_differ(partition, kind_of):
    for k, kind in enumerate(kind_of):
        p, q, ratio = partition.share_P[k], partition.share_Q[k], partition.ratio[k]
        assert p.lo <= SHARES[0, kind] <= p.hi and q.lo <= SHARES[1, kind] <= q.hi
        assert ratio.mu == pytest.approx(q.mu / p.mu) and ratio.lo < ratio.mu < ratio.hi
        assert (partition.p_adj[k] < 0.001) == (kind in (0, 4)), kind  # the only ones with another share
        assert (partition.n_P[k], partition.n_Q[k]) == (round(3000 * p.mu), round(3000 * q.mu))


def test_a_group_holds_what_its_clusters_hold(partition):
    for g, shares in enumerate(partition.group_shares):
        own = np.flatnonzero(partition.group == g)
        assert shares.p.mu == pytest.approx(sum(partition.share_P[k].mu for k in own))
        assert shares.q.mu == pytest.approx(sum(partition.share_Q[k].mu for k in own))
        assert shares.p.lo <= shares.p.mu <= shares.p.hi and shares.p.lo < shares.p.hi


def test_scenes_of_a_cluster_are_of_its_kind(comparison, partition, kind_of):
    for k, kind in enumerate(kind_of):
        scenes = (comparison.analysis.P, partition.scenes_P[k]), (comparison.analysis.Q, partition.scenes_Q[k])
        for side, rows in scenes:
            assert 3 <= len(rows) <= 6 and set(side.obs["category"].iloc[list(rows)]) == {KINDS[kind]}


def test_events_are_counted_with_intervals_and_the_sources_agree(comparison, partition, kind_of):
    events = finish(cluster_event_steps(comparison, "brake", "near", n_clusters=6))
    both = np.concatenate([comparison.analysis.P.ell["brake"], comparison.analysis.Q.ell["brake"]])
    for k, kind in enumerate(kind_of):
        assert events.rate[k].mu == pytest.approx(both[partition.cluster == k].mean())
        assert events.rate[k].lo - 1e-9 <= RATES[kind] <= events.rate[k].hi
        assert events.measured.rate[k] == pytest.approx(events.rate[k].mu)
    assert events.measured.rates.pearson_mean > 0.9 > 0.5 > abs(events.measured.rates.chance)
    table = cluster_table(partition, events)
    assert table["rate"].tolist() == [e.mu for e in events.rate] and table["cluster"].tolist() == list(range(1, 7))
    assert table["share_of_events"].sum() == pytest.approx(1)


def test_an_event_that_never_happens_has_no_spread_but_a_reason(comparison):
    analysis = comparison.analysis
    never = {side: {**getattr(analysis, side).ell, "never": np.zeros(3000)} for side in "PQ"}
    other = SimpleNamespace(analysis=SimpleNamespace(**{**vars(analysis), **{
        side: SimpleNamespace(ell=never[side], obs=getattr(analysis, side).obs, n=3000) for side in "PQ"}}))
    events = finish(cluster_event_steps(other, "never", "brake", n_clusters=6))
    assert events.measured is None and "never or always happens" in events.reason
    assert events.rate[0].mu == 0.0 and events.rate[0].hi > 0
    with pytest.raises(ConfigError, match="no event 'speeding'"):
        finish(cluster_event_steps(comparison, "speeding", "brake", n_clusters=6))


def test_a_cluster_without_events_knows_that_they_come_by_drive(comparison):
    analysis, half = comparison.analysis, np.repeat([0, 1], 3000)
    by_drive, by_row = analysis.sample.drive % 4 == 0, np.random.default_rng(1).random(6000) < 0.25
    alike, apart = (cluster_rates(half, 2, np.where(half == 0, 0.0, v), analysis)[0] for v in (by_drive, by_row))
    assert alike.mu == apart.mu == 0 and alike.hi > 5 * apart.hi


def test_results_can_be_kept(comparison, partition, tmp_path):
    events = finish(cluster_event_steps(comparison, "brake", "near", n_clusters=6))
    for value in (partition, events):
        archive.save(value, tmp_path / "kept")
        again = archive.load(tmp_path / "kept")
        assert type(again) is type(value)
    pd.testing.assert_frame_equal(cluster_table(partition, events), cluster_table(partition, again))


def test_how_many_clusters_there_may_be():
    X = np.random.default_rng(0).normal(size=(300, 3))
    for wanted in (4, 61):
        with pytest.raises(ConfigError, match=f"{wanted} clusters were asked for; choose from 5 to 60"):
            cut_space(X, wanted, 0)
    few = np.repeat(np.arange(3.0), 50)[:, None]
    cluster, centres = cut_space(few, 10, 0)  # three different points cannot fill ten clusters
    assert len(centres) == 3 and np.bincount(cluster).tolist() == [50, 50, 50]


def test_a_large_space_is_cut_like_its_sample():
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 5, 50_000)
    X = 20 * np.eye(5)[kind] + rng.normal(size=(50_000, 5))
    cluster, centres = cut_space(X, 5, 0)
    assert len(set(zip(kind.tolist(), cluster.tolist(), strict=True))) == 5
    assert np.linalg.norm(centres, axis=1) == pytest.approx(20, abs=0.2)


def test_groups_join_what_lies_close():
    rng = np.random.default_rng(2)
    far = np.repeat(50 * np.eye(4), 5, axis=0) + rng.normal(size=(20, 4))
    group = group_centres(far, np.arange(20, 0, -1))
    assert group.max() + 1 == 5  # a quarter of twenty
    assert all(len(set(np.arange(20)[group == g] // 5)) == 1 for g in range(5))  # none across two places
    assert group_centres(far[:2], np.ones(2)).tolist() == [0, 0]


def test_axes_are_those_of_the_largest_spread():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3)) * [1.0, 9.0, 4.0]
    place = on_axes(X, np.array([[0.0, 10.0, 0.0], [0.0, 0.0, 10.0], [10.0, 0.0, 0.0]]))
    assert place[0] == pytest.approx([10, 0], abs=0.7) and place[1] == pytest.approx([0, 10], abs=0.7)
    assert place[2] == pytest.approx([0, 0], abs=0.7)
    assert on_axes(X[:, :1], X[:2, :1]).shape == (2, 2)
