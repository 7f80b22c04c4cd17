"""Ranks are independent and uniform when nothing changes, and bets on them are fair: by enumeration, not by example."""

from collections import Counter
from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from avshift_core.shift import eprocess
from avshift_core.shift.eprocess import Units, log_wealth, rank_p_values, tie_breaker, units_of


def ranks_of(order, scores, n, spread, u=0.5):
    """Cells 0..i of the ranks of the drives in this order; drive i is ranked by its own score function scores[i]."""
    order = list(order)
    found = []
    for i in range(1, len(order)):
        units = Units(n[order[: i + 1]], scores[i][order[: i + 1]], spread[order[: i + 1]])
        found.append(rank_p_values(units, np.full(i + 1, u), i)[0])
    return found


@pytest.mark.parametrize("changing", [False, True])
def test_every_vector_of_ranks_is_equally_likely_also_when_the_score_changes(changing):
    """Over all orders of five drives each of the 2 * 3 * 4 * 5 vectors occurs once: exactly uniform, independent."""
    rng = np.random.default_rng(3)
    n, spread = rng.integers(1, 40, 5).astype(float), rng.random(5)
    one = rng.normal(size=5)
    scores = [rng.normal(size=5) if changing else one for _ in range(5)]
    seen = Counter(tuple(int(p * (i + 2)) for i, p in enumerate(ranks_of(order, scores, n, spread)))
                   for order in permutations(range(5)))
    assert len(seen) == factorial(5) and set(seen.values()) == {1}


def test_ties_are_broken_by_chance():
    """Two equal drives, one apart: by hand, over the orders and U, p of the last is uniform."""
    mean = np.array([1.0, 1.0, 2.0])
    found = []
    for order in permutations(range(3)):
        units = Units(np.ones(3), mean[list(order)], np.zeros(3))
        found += [rank_p_values(units, np.full(3, u), 2)[0] for u in (np.arange(60) + 0.5) / 60]
    assert np.histogram(found, bins=6, range=(0, 1))[0].tolist() == [60] * 6
    same = Units(np.array([3.0, 8, 5]), np.full(3, 0.1), np.zeros(3))  # nothing but ties: p is U itself
    assert rank_p_values(same, np.array([0.3, 0.6, 0.9]), 0) == pytest.approx([0.3, 0.6, 0.9])


def test_a_high_drive_has_a_small_p():
    units = Units(np.full(5, 10.0), np.array([0.1, 0.2, 0.3, 0.9, 0.0]), np.full(5, 0.5))
    assert rank_p_values(units, np.full(5, 1.0), 3) == pytest.approx([1 / 4, 1.0])  # above all four; below all five


def test_short_drives_are_no_further_off_than_long_ones():
    """When only the length changes, ranks by the mean itself would pile up in the middle; ours stay uniform."""
    rng = np.random.default_rng(0)
    n = np.repeat([3, 100], [300, 300])
    unit = np.repeat(np.arange(600), n)
    value = (0.3 * rng.normal(size=600))[unit] + rng.normal(size=len(unit))
    units = units_of(value, unit, 600)
    p = rank_p_values(units, rng.random(600), 300)
    assert stats.kstest(p, "uniform").pvalue > 0.01
    plain = np.array([(units.mean[:i] > units.mean[i]).mean() for i in range(300, 600)])
    assert stats.kstest(plain, "uniform").pvalue < 1e-3


def test_units_by_hand():
    units = units_of(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 2)
    assert (units.n.tolist(), units.mean.tolist(), units.spread.tolist()) == ([2, 1], [2, 5], [2, 0])


@pytest.mark.parametrize("two_sided", [False, True])
def test_power_bets_are_fair(two_sided):
    """Each bet integrates to 1 over (0, 1); quad knows the end points' singularities."""
    for k in range(len(eprocess.POWERS) * (1 + two_sided)):
        whole, _ = integrate.quad(lambda p, k=k: eprocess._power_bets(np.array([p]), two_sided)[0, k], 0, 1, limit=400)
        assert whole == pytest.approx(1, abs=1e-4)


def test_the_wealth_is_a_martingale_by_enumeration(monkeypatch):
    """Bets that are constant in each of eight cells: the mean over all 8^4 sequences of cells is the expectation."""
    def cell_means(p, two_sided):
        edges = np.arange(9) / 8  # the mean of e p^(e-1) over a cell is 8 (b^e - a^e)
        means = np.stack([8 * np.diff(edges**e) for e in (0.25, 0.5, 0.75)], axis=1)
        return means[(p * 8).astype(int)]

    monkeypatch.setattr(eprocess, "_power_bets", cell_means)
    middles = (np.arange(8) + 0.5) / 8
    wealth = np.array([np.exp(log_wealth(list(p), two_sided=False)) for p in product(middles, repeat=4)])
    assert wealth.mean(axis=0) == pytest.approx(np.ones(4))
    for first in middles:  # and given the first, it stays what it was
        rows = wealth[[p[0] == first for p in product(middles, repeat=4)]]
        assert rows.mean(axis=0) == pytest.approx(np.full(4, rows[0, 0]))


@given(st.lists(st.floats(1e-9, 1.0), min_size=2, max_size=60), st.integers(1, 60), st.booleans())
def test_a_longer_history_leaves_the_earlier_wealth_as_it_is(p, k, two_sided):
    k = min(k, len(p))
    assert log_wealth(p[:k], two_sided=two_sided).tolist() == log_wealth(p, two_sided=two_sided)[:k].tolist()


def test_a_clear_change_makes_rich_on_either_side_and_fair_ranks_do_not():
    rng = np.random.default_rng(1)
    low, fair = rng.random(60) * 0.3, rng.random(3000)
    assert log_wealth(low, two_sided=False)[-1] > np.log(1000) < log_wealth(1 - low, two_sided=True)[-1]
    assert log_wealth(1 - low, two_sided=False)[0] < 0
    assert -3.5 < log_wealth(fair, two_sided=True)[-1] < 0  # years without a change cost little
    late = log_wealth(np.concatenate([fair, low]), two_sided=True)
    assert late.max() > np.log(1000) > late[:3000].max()


@pytest.mark.slow
def test_ville():
    """At most 5 % of 400 fair histories of 250 drives ever reach 20, but for one chance in 10,000."""
    rng = np.random.default_rng(7)
    ever = sum(log_wealth(rng.random(250), two_sided=True).max() >= np.log(20) for _ in range(400))
    assert stats.binomtest(ever, 400, 0.05, "greater").pvalue > 1e-4


def test_why_the_mean_of_two_streams_is_not_used():
    """Three drives, two scores: when the scores agree on the first two drives, the third is surely the lowest."""
    first, second = np.array([0.0, 1.0, 2.0]), np.array([2.0, 0.0, 1.0])
    ranks = {order: [ranks_of(order, [s] * 3, np.ones(3), np.zeros(3)) for s in (first, second)]
             for order in permutations(range(3))}
    assert Counter(int(a[1] * 3) for a, _ in ranks.values()) == {0: 2, 1: 2, 2: 2}  # alone, the score is uniform
    agree = [int(a[1] * 3) for a, b in ranks.values() if a[0] == b[0]]
    assert agree == [2, 2]


def test_tie_breakers_are_uniform_and_go_by_name():
    u = [tie_breaker(0, "traffic", f"drive-{i}") for i in range(2000)]
    assert min(u) > 0 and max(u) <= 1 and stats.kstest(u, "uniform").pvalue > 0.01
    assert tie_breaker(0, "a", "bc") != tie_breaker(0, "ab", "c")
