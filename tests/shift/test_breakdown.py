"""Contributions add up, rates by category are those of the rows, and their intervals cover what they should."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from avshift_core.errors import CohortError
from avshift_core.latent.cohort import Rest
from avshift_core.shift import breakdown
from avshift_core.shift.breakdown import (
    ELSEWHERE,
    MISSING,
    UNDRAWN,
    by_category,
    contributions,
    mse_condition,
    rate_interval,
    sweep,
)
from tests.shift.test_calibrate import calibrator


def made(ell_P, of_P, of_Q, regions=None, level_P=None, level_Q=None, **more):
    """An analysis as far as a breakdown reads it; `regions` is the region's index of every cell but the last."""
    made = calibrator(ell_P, of_P, of_Q, **more)
    side = lambda drive, level: SimpleNamespace(  # noqa: E731
        n=len(drive), drive=drive, n_drives=int(drive.max()) + 1, name="it",
        obs=pd.DataFrame({} if level is None else {"category": level}),
    )
    return SimpleNamespace(
        calibrator=made, P=side(made.drive_P, level_P), Q=side(made.drive_Q, level_Q),
        local=None if regions is None else SimpleNamespace(region_of_cell=np.array(regions)),
        calibrate=lambda B, metric: made.calibrate(metric, B),
    )


def test_contributions_by_hand():
    # Stratum 0 is R1: p = 1/4, q = 1/2, rate 1; the rest has rate 0; mu_naive = 1/4.
    # R1: (1/2 - 1/4) (1 - 1/4) = 3/16; elsewhere: (1/2 - 3/4) (0 - 1/4) = 1/16; together strata - naive = 1/2 - 1/4
    one, rest = contributions(made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], regions=[0]), "ell", 10)
    assert (one.k, one.name, rest.k) == (1, "R1", ELSEWHERE)
    assert one.move.mu == pytest.approx(3 / 16) and rest.move.mu == pytest.approx(1 / 16)
    assert (one.p, one.q, one.mass, one.rate, one.n_P, one.n_Q) == (0.25, 0.5, 0.5, 1.0, 1, 2)
    # clip 1.5: R1 is given 0.375, the rest 0.5; normalised 3/7 and 4/7
    one, rest = contributions(made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], regions=[0]), "ell", 1.5)
    assert one.mass == pytest.approx(3 / 7)
    assert one.move.mu == pytest.approx((3 / 7 - 1 / 4) * 3 / 4)


def test_without_a_local_test_everything_is_elsewhere():
    (all_,) = contributions(made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]), "ell", 10)
    assert all_.k == ELSEWHERE and all_.move.mu == pytest.approx(0.25) and all_.p == all_.q == 1


@given(st.integers(0, 10_000), st.floats(0.2, 20))
def test_contributions_add_up_to_what_the_traffic_explains(seed, B):
    rng = np.random.default_rng(seed)
    of_P, of_Q = rng.integers(0, 6, 80), rng.integers(0, 7, 60)  # stratum 6 has nothing of P
    a = made(rng.random(80), of_P, of_Q, regions=[0, 0, 1, -1, -1, 2])
    parts = contributions(a, "ell", B)
    c = a.calibrate(B, "ell")
    assert [part.name for part in parts] == ["R1", "R2", "R3", "elsewhere"]
    assert sum(part.move.mu for part in parts) == pytest.approx(c.strata.mu - c.naive.mu, abs=1e-12)
    assert sum(part.mass for part in parts) == pytest.approx(1) == sum(part.p for part in parts)
    assert sum(part.n_P for part in parts) == 80 and sum(part.n_Q for part in parts) == 60


def clustered(rng, drives=12, m=9):
    """Drives with their own mixture of four strata, and events that depend on stratum and drive."""
    n = drives * m
    drive = np.repeat(np.arange(drives), m)
    strata = [np.clip(np.round(rng.normal(1 + 0.4 * i, 1, n) + rng.normal(size=drives)[drive]), 0, 3).astype(int)
              for i in (0, 1)]
    event = rng.random(n) < 0.1 + 0.2 * strata[0]
    return event, *strata, drive


def test_intervals_of_contributions_leave_out_one_drive_at_a_time():
    # Source: the same contributions from a calibrator without the drive's rows, one by one
    event, of_P, of_Q, drive = clustered(np.random.default_rng(1))
    a = made(event, of_P, of_Q, regions=[-1, 0, -1, 1][:3], drive_P=drive, drive_Q=drive)
    found = contributions(a, "ell", 1.7)
    without = np.zeros((2, 12, len(found)))
    for side in (0, 1):
        for d in range(12):
            keep_P, keep_Q = (drive != d) | (side == 1), (drive != d) | (side == 0)
            part = made(event[keep_P], of_P[keep_P], of_Q[keep_Q], regions=[-1, 0, -1, 1][:3])
            without[side, d] = [c.move.mu for c in contributions(part, "ell", 1.7)]
    variance = (11 / 12 * ((without - without.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)).sum(axis=0)
    half = stats.t.ppf(0.975, 11) * np.sqrt(variance)
    for c, v, h in zip(found, variance, half, strict=True):
        assert c.move.se == pytest.approx(np.sqrt(v))
        assert (c.move.lo, c.move.hi) == pytest.approx((c.move.mu - h, c.move.mu + h))


def test_the_jackknife_agrees_with_the_influence_function(clustered_analysis):
    # The sum of all contributions is `traffic`, whose error the calibrator has in closed form
    a = clustered_analysis
    everything = SimpleNamespace(calibrator=a.calibrator, local=None)
    (whole,) = contributions(everything, "ell", 10)
    traffic = a.calibrate(10).traffic
    assert whole.move.mu == pytest.approx(traffic.mu, abs=1e-12)
    assert whole.move.se == pytest.approx(traffic.se, rel=0.1)


def test_many_drives_are_left_out_in_groups(monkeypatch):
    # 400 drives, in 100 groups of four: the same variance within its own error, sqrt(2 / 100) = 14 %
    event, of_P, of_Q, drive = clustered(np.random.default_rng(2), drives=400, m=6)
    a = made(event, of_P, of_Q, drive_P=drive, drive_Q=drive)
    (one_by_one,) = contributions(a, "ell", 10)
    monkeypatch.setattr(breakdown, "LEFT_OUT", 100)
    (grouped,) = contributions(a, "ell", 10)
    assert grouped.move.mu == one_by_one.move.mu
    assert grouped.move.se == pytest.approx(one_by_one.move.se, rel=0.4)
    assert grouped.move.se != one_by_one.move.se


# A population in which drives differ, with everything known: three strata, two levels within each.
SHARES_P, SHARES_Q = np.array([0.6, 0.3, 0.1]), np.array([0.4, 0.3, 0.3])
LEVEL_B = np.array([0.2, 0.5, 0.8])  # share of level "b" in each stratum, the same in P and Q
RATE = np.array([[0.03, 0.1], [0.1, 0.2], [0.3, 0.4]])  # of stratum and level


def draw(shares, rng, drives=40, m=15):
    """Each drive has shares ~ Dirichlet(8 shares), so that their mean is `shares`."""
    drive = np.repeat(np.arange(drives), m)
    stratum = np.concatenate([rng.choice(3, m, p=rng.dirichlet(8 * shares)) for _ in range(drives)])
    level = (rng.random(drives * m) < LEVEL_B[stratum]).astype(int)
    return drive, stratum, level, rng.random(drives * m) < RATE[stratum, level]


def pair(seed):
    rng = np.random.default_rng(seed)
    drive, of_P, level_P, event = draw(SHARES_P, rng)
    drive_Q, of_Q, level_Q, event_Q = draw(SHARES_Q, rng)
    name = np.array(["a", "b"])
    return made(event, of_P, of_Q, ell_Q=event_Q, regions=[-1, -1], drive_P=drive, drive_Q=drive_Q,
                level_P=name[level_P], level_Q=name[level_Q]), (of_P, of_Q)


def test_intervals_of_contributions_cover_the_truth():
    m = RATE[:, 0] * (1 - LEVEL_B) + RATE[:, 1] * LEVEL_B
    C = (SHARES_Q - SHARES_P) * (m - SHARES_P @ m)
    truth = [C[2], C[0] + C[1]]  # stratum 2 is R1
    inside = np.zeros(2)
    for seed in range(200):
        a, _ = pair(seed)
        a.local.region_of_cell = np.array([-1, -1, 0])[: len(a.calibrator.cells.q)]
        inside += [c.move.lo <= t <= c.move.hi for c, t in zip(contributions(a, "ell", 50), truth, strict=True)]
    assert (inside >= 200 * 0.95 - 3 * np.sqrt(200 * 0.95 * 0.05)).all(), inside  # three standard errors


def test_intervals_by_category_cover_the_truth():
    shares = {"a": 1 - LEVEL_B, "b": LEVEL_B}
    inside, total = {}, 200
    for seed in range(total):
        a, _ = pair(seed)
        for group in by_category(a, "ell", 50):
            within, column = shares[group.level], {"a": 0, "b": 1}[group.level]
            for name, mass in (("naive", SHARES_P), ("calibrated", SHARES_Q), ("target", SHARES_Q)):
                truth = mass * within @ RATE[:, column] / (mass @ within)
                e = getattr(group, name)
                inside[group.level, name] = inside.get((group.level, name), 0) + (e.lo <= truth <= e.hi)
    assert len(inside) == 6
    assert min(inside.values()) >= total * 0.95 - 3 * np.sqrt(total * 0.95 * 0.05), inside


def test_rates_by_category_by_hand(monkeypatch):
    monkeypatch.setattr(breakdown, "FEW_SCENARIOS", 1)
    monkeypatch.setattr(breakdown, "FEW_DRIVES", 1)
    # Strata: p = (1/4, 3/4), q = (1/2, 1/2), so weights 2 and 2/3. Level b of P: one scenario of each stratum,
    # events 1 and 0: naive 1/2, calibrated 2 / (2 + 2/3) = 3/4. Level a: two scenarios of stratum 1, one event.
    a = made([1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1], ell_Q=[1, 1, 0, 1], level_P=["b", "b", "a", "a"],
             level_Q=["b", "b", "a", "a"])
    other, b = by_category(a, "ell", 10)
    assert (b.level, b.n_P, b.n_Q, b.drives_P, b.drives_Q) == ("b", 2, 2, 2, 2)
    assert (b.naive.mu, b.calibrated.mu, b.target.mu) == pytest.approx((1 / 2, 3 / 4, 1))
    assert (other.naive.mu, other.calibrated.mu, other.target.mu) == pytest.approx((1 / 2, 1 / 2, 1 / 2))


def test_the_error_by_category_leaves_out_one_drive_at_a_time(monkeypatch):
    monkeypatch.setattr(breakdown, "FEW_SCENARIOS", 1)
    event, of_P, of_Q, drive = clustered(np.random.default_rng(3))
    rng = np.random.default_rng(4)
    level_P, level_Q = rng.choice(["x", "y"], len(drive)), rng.choice(["x", "y"], len(drive))
    whole = {g.level: g for g in by_category(
        made(event, of_P, of_Q, drive_P=drive, drive_Q=drive, level_P=level_P, level_Q=level_Q), "ell", 1.5)}
    values = {"x": np.zeros((2, 12)), "y": np.zeros((2, 12))}
    for side in (0, 1):
        for d in range(12):
            keep_P, keep_Q = (drive != d) | (side == 1), (drive != d) | (side == 0)
            part = made(event[keep_P], of_P[keep_P], of_Q[keep_Q], level_P=level_P[keep_P], level_Q=level_Q[keep_Q])
            for g in by_category(part, "ell", 1.5):
                values[g.level][side, d] = g.calibrated.mu
    for level, v in values.items():
        variance = 11 / 12 * ((v - v.mean(axis=1, keepdims=True)) ** 2).sum()
        assert whole[level].calibrated.se == pytest.approx(np.sqrt(variance))


def test_small_groups_have_counts_and_no_rate():
    drive = np.repeat(np.arange(5), 8)
    level = np.where(np.arange(40) < 9, "nine", np.where(drive >= 3, "two drives", "enough"))
    a = made(np.ones(40), np.zeros(40, int), np.zeros(40, int), drive_P=drive, drive_Q=drive, level_P=level,
             level_Q=["enough"] * 40)
    found = {g.level: g for g in by_category(a, "ell", 10)}
    assert found["nine"].naive is None and found["nine"].calibrated is None and found["nine"].n_P == 9
    assert found["two drives"].naive is None and found["two drives"].drives_P == 2
    assert found["enough"].target.mu == 0 and found["enough"].naive is None  # 15 scenarios in two drives
    assert all(g.small for g in found.values())


def test_missing_levels_are_a_group_of_their_own_and_missing_columns_a_sentence():
    a = made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], level_P=["b", None, "b", "b"], level_Q=["b"] * 4)
    assert [g.level for g in by_category(a, "ell", 10)] == ["b", MISSING]
    with pytest.raises(CohortError, match="no column 'road'; found category"):
        by_category(a, "ell", 10, column="road")


def test_an_interval_of_independent_scenarios_is_that_of_clopper_and_pearson():
    exact = stats.binomtest(7, 60).proportion_ci(0.9, method="exact")
    found = rate_interval(7 / 60, np.sqrt(7 / 60 * 53 / 60 / 60), 60, 10**9, 0.9)
    assert found == pytest.approx((exact.low, exact.high), rel=0.03)  # t with 59 degrees of freedom against the normal


def test_an_interval_without_events_is_not_empty():
    # Source: with no event in n independent scenarios the upper end is 1 - (alpha/2)^(1/n) (Clopper and Pearson)
    low, high = rate_interval(0.0, 0.0, 50, 10**9, 0.95)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 50), rel=1e-3))
    assert rate_interval(1.0, 0.0, 50, 10**9, 0.95)[0] == pytest.approx(0.025 ** (1 / 50), rel=1e-3)
    assert rate_interval(0.0, 0.0, 50, 10**9, 0.95, design=2.0)[1] > high  # scenarios of a drive are alike
    assert rate_interval(0.0, 0.0, 50, 4, 0.95)[1] > high  # few drives


def test_a_sweep_is_the_calibration_at_every_clip(line_analysis):
    found = sweep(line_analysis, "ell", (0.5, 10.0))
    assert [c.B for c in found] == [0.5, 10.0]
    assert found[1] == line_analysis.calibrate(10.0)
    assert found[0].clipped_mass > found[1].clipped_mass


def test_the_mse_condition_by_hand(line_analysis):
    c = line_analysis.calibrate(10.0)
    found = mse_condition(c, line_analysis.P.n)
    assert found.removed == pytest.approx((c.strata.mu - c.naive.mu) ** 2 - c.traffic.se**2)
    assert found.added == pytest.approx(c.strata.se**2 - c.naive.se**2)  # sigma^2 / n is the variance
    assert found.holds == (found.removed > found.added)
    assert found.holds and found.status == "ok" and found.sentence.startswith("Calibration moves ell by")


def test_the_steps_of_a_sample_add_up_to_its_move(clustered_analysis):
    """What drives that were not drawn add is a step of its own; the others are those of the drawn drives."""
    a, metric = clustered_analysis, clustered_analysis.metrics[0]
    ell = {name: values[:40] for name, values in a.P.ell.items()}
    rest = Rest(np.full(40, 20.0), {name: 20 * values for name, values in ell.items()})
    drawn = replace(a, calibrator=replace(a.calibrator, rest_P=rest))
    found, whole = drawn.calibrate(5.0, metric), a.calibrate(5.0, metric)
    assert found.traffic.mu != whole.traffic.mu
    *steps, last = contributions(drawn, metric, 5.0)
    assert steps == list(contributions(a, metric, 5.0)) and last.k == UNDRAWN and last.move.se > 0
    assert sum(c.move.mu for c in steps) == pytest.approx(whole.traffic.mu)
    assert last.move.mu == pytest.approx(found.traffic.mu - whole.traffic.mu)
