import numpy as np
import pytest

from avshift_core.quality.clusters import cut, dealt_rows, design_effect, measure_clusters, shrink

K, DRIVES, N = 12, 80, 8000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng, rng.integers(0, K, N), np.repeat(np.arange(DRIVES), N // DRIVES)


def test_clusters_of_well_separated_groups_are_the_groups():
    rng = np.random.default_rng(1)
    group = np.arange(600) % 6
    found = cut(np.eye(6)[group] * 30 + rng.normal(size=(600, 6)), 6)
    assert len(set(zip(group.tolist(), found.tolist(), strict=True))) == 6


def test_without_structure_the_spread_is_that_of_chance(data):
    rng, cluster, drive = data
    event, second = (rng.random((2, N)) < 0.15).astype(float)
    found = measure_clusters(cluster, event, second, drive)
    assert found.rate_spread.chance == pytest.approx(np.sqrt(0.15 * 0.85 / (N / K)), rel=0.1)  # binomial
    assert found.rate_spread.p_value > 0.05 and found.rate_spread.raw < found.rate_spread.chance_high
    assert found.rate_spread.shrunk < 0.5 * found.rate_spread.raw
    assert abs(found.rates.pearson_mean) < 0.4 and abs(found.phi) < 0.05


def test_built_in_rates_are_found_and_two_sources_agree(data):
    rng, cluster, drive = data
    true = np.linspace(0.02, 0.4, K)
    event, second = (rng.random((2, N)) < true[cluster]).astype(float)
    found = measure_clusters(cluster, event, second, drive)
    assert found.rate_spread.raw == pytest.approx(true.std(ddof=1), rel=0.15)
    assert found.rate_spread.shrunk == pytest.approx(true.std(ddof=1), rel=0.15)
    assert found.rate_spread.p_value == pytest.approx(1 / 500)  # the floor of 499 permutations
    assert found.rates.pearson > 0.95 and found.rates.same_metric > 0.95 and found.rates.spearman_p < 1e-4
    np.testing.assert_allclose(found.rate, np.bincount(cluster, event) / np.bincount(cluster))
    assert sum(found.share) == pytest.approx(1)


def test_shares_agree_by_size_alone_and_the_report_says_so():
    rng = np.random.default_rng(2)
    cluster = rng.choice(K, N, p=np.arange(1, K + 1) / 78)
    event, second = (rng.random((2, N)) < 0.2).astype(float)
    found = measure_clusters(cluster, event, second, np.repeat(np.arange(DRIVES), N // DRIVES))
    assert found.shares.pearson > 0.9 and found.shares.chance > 0.9
    assert abs(found.rates.chance) < 0.3


def test_events_that_gather_in_drives_do_not_pass_for_structure():
    rng = np.random.default_rng(3)
    drive = np.repeat(np.arange(DRIVES), N // DRIVES)
    p_values = []
    for _ in range(6):
        cluster = (rng.integers(0, K, DRIVES)[drive] + (rng.random(N) < 0.3) * rng.integers(0, K, N)) % K
        event = (rng.random(N) < rng.beta(1, 5, DRIVES)[drive]).astype(float)  # no tie between cluster and event
        p_values.append(measure_clusters(cluster, event, 1 - event, drive).rate_spread.p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.34  # a permutation of scenarios gives 1.0 here
    assert design_effect(cluster, event, drive, K) > 3


def test_shrinkage_pulls_small_clusters_to_the_mean():
    rate, count = np.array([0.5, 0.5, 0.1, 0.1]), np.array([4.0, 4000.0, 4000.0, 4000.0])
    found = shrink(rate, count)
    m = rate @ count / count.sum()
    assert abs(found[0] - m) < 0.9 * abs(rate[0] - m)
    assert found[1:] == pytest.approx(rate[1:], abs=0.001)


def test_dealing_keeps_drives_together():
    drive = np.repeat(np.arange(5), 4)
    rows = dealt_rows(drive, np.random.default_rng(0))
    assert sorted(rows) == list(range(20))
    assert (np.diff(drive[rows]) != 0).sum() == 4


def test_no_events_or_few_drives_give_nothing(data):
    _, cluster, drive = data
    assert measure_clusters(cluster, np.zeros(N), np.zeros(N), drive) is None
    assert measure_clusters(cluster, np.full(N, np.nan), np.zeros(N), drive) is None
    assert measure_clusters(cluster, (cluster == 1).astype(float), np.zeros(N), drive // 20) is None


def test_a_tiny_cluster_has_no_rate_and_spoils_nothing():
    rng = np.random.default_rng(4)
    cluster = np.where(np.arange(N) < 5, K, rng.integers(0, K, N))  # cluster K holds five scenarios
    event, second = (rng.random((2, N)) < np.append(np.linspace(0.02, 0.4, K), 0.9)[cluster]).astype(float)
    found = measure_clusters(cluster, event, second, np.repeat(np.arange(DRIVES), N // DRIVES))
    assert np.isnan(found.rate[K]) and np.isfinite(found.rate[:K]).all()
    assert np.isfinite([found.rate_spread.shrunk, found.share_spread.shrunk, *found.shrunk_rate]).all()
