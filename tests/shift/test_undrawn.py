"""Cohorts that are samples of their drives: what the others say of observed and of calibrated rates."""

from dataclasses import replace

import numpy as np
import pytest

from avshift_core.latent.cohort import Rest
from avshift_core.shift.calibrate import Calibrator
from avshift_core.shift.estimate import Influence
from avshift_core.shift.undrawn import ENOUGH, followed
from tests.shift.test_calibrate import calibrator

IN_P, IN_Q, TIMES = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 3.0])


def split_in_two(whole: Calibrator, ell, of_P, drive, drawn: int) -> Calibrator:
    """The same source cohort, of whose drives only the first `drawn` are at hand and the others known by their sums."""
    here = drive < drawn
    n, total = np.bincount(drive), np.bincount(drive, ell)
    sample = calibrator(ell[here], of_P[here], whole.cells.of_Q, whole.ell_Q["ell"], drive[here], whole.drive_Q)
    return replace(sample, rest_P=Rest(n[drawn:].astype(float), {"ell": total[drawn:]}))


def fleet(rng, drives, rate=0.1, m=20):
    """Drives of unequal rate, `rate` on average, times TIMES by stratum; Q has twice as much of the last as P."""
    drive = np.repeat(np.arange(drives), m)
    of_P, of_Q = (rng.choice(3, drives * m, p=p) for p in (IN_P, IN_Q))
    own = np.clip((rate * rng.gamma(4, 0.25, drives))[drive] * TIMES[of_P], 0, 1)
    return drive, of_P, of_Q, (rng.random(drives * m) < own) * 1.0


def samples(seed, runs, drives, drawn, rate):
    rng = np.random.default_rng(seed)
    for _ in range(runs):  # rates above 1, which are cut, have a probability below 0.001
        drive, of_P, of_Q, ell = fleet(rng, drives, rate)
        yield split_in_two(calibrator(ell, of_P, of_Q, ell, drive, drive), ell, of_P, drive, drawn)


def alone(sample: Calibrator):
    """What the drawn drives say by themselves."""
    return replace(sample, rest_P=None).calibrate("ell", 10)


def test_observed_rates_count_drives_that_were_not_drawn():
    drive, of_P, of_Q, ell = fleet(np.random.default_rng(1), 200)
    whole = calibrator(ell, of_P, of_Q, ell[::-1], drive, drive)
    sample = split_in_two(whole, ell, of_P, drive, 50)
    full, part = whole.calibrate("ell", 10), sample.calibrate("ell", 10)
    assert (part.naive.mu, part.naive.se) == pytest.approx((full.naive.mu, full.naive.se))
    assert (part.target.mu, part.target.se) == (full.target.mu, full.target.se)
    for name in ("strata", "ipw", "aipw", "lis", "lis_paper"):
        assert getattr(part, name) != getattr(alone(sample), name), name
    assert part.naive.mu + part.traffic.mu + part.residual.mu == pytest.approx(part.target.mu)
    assert part.strata.se < alone(sample).strata.se


def test_a_calibrated_rate_moves_by_the_slope_between_drives():
    """Q lies in stratum 0, where drives have rate 0.1 or 0.3; in stratum 1 they have 0.3 or 0.7, so 0.2 or 0.5 in all.

    The slope is (0.3 - 0.1) / (0.5 - 0.2) = 2/3, and no drive is off the line, so that only all drives' noise is left.
    """
    drive = np.repeat(np.arange(60), 20)
    of_P, high = np.tile(np.repeat([0, 1], 10), 60), drive % 2 == 0
    rate = np.where(of_P == 0, np.where(high, 0.3, 0.1), np.where(high, 0.7, 0.3))
    ell = (np.tile(np.arange(10), 120) < np.rint(10 * rate)) * 1.0
    sample = split_in_two(calibrator(ell, of_P, np.zeros(1200, int), ell, drive, drive), ell, of_P, drive, 31)
    found = sample.calibrate("ell", 10)  # 16 of the 31 have the higher rates
    assert found.naive.mu == pytest.approx(0.35)
    assert alone(sample).strata.mu == pytest.approx((15 * 0.1 + 16 * 0.3) / 31)
    assert found.strata.mu == pytest.approx(0.2)
    assert found.strata.se == pytest.approx(found.naive.se * 2 / 3)


def test_a_drive_counts_by_its_distance_from_the_slope_of_the_others():
    """Where next to none were drawn, each leaves u - b v with the slope b of all but itself."""
    rng = np.random.default_rng(6)
    v = rng.normal(size=ENOUGH)
    v[0] = 5.0  # makes most of the slope
    u = 0.5 * v + rng.normal(size=ENOUGH)
    drawn, value = (Influence(0.2, source, np.zeros(1)) for source in (v, u))
    found = followed(value, drawn, Influence(0.2, np.zeros(100_000), np.zeros(1)), ENOUGH, 1.0)
    others = [np.delete(u, d) @ np.delete(v, d) / (np.delete(v, d) @ np.delete(v, d)) for d in range(ENOUGH)]
    assert found.source[:ENOUGH] == pytest.approx(u - np.array(others) * v, rel=1e-3)


def test_without_enough_drives_to_tell_a_slope_the_drawn_ones_speak_alone():
    ell, of_P = np.zeros(1200), np.tile(np.repeat([0, 1], 10), 60)
    drive = np.repeat(np.arange(60), 20)
    for events, moved in ((ENOUGH - 1, False), (ENOUGH, True)):
        ell[:] = np.arange(1200) % 20 == 0
        ell[events * 20 : 800] = 0  # in the first `events` of the 40 drawn drives, and in all others
        whole = calibrator(ell, of_P, np.zeros(1200, int), ell, drive, drive)
        sample = split_in_two(whole, ell, of_P, drive, 40)
        found = sample.calibrate("ell", 10)
        assert found.naive.mu == pytest.approx((events + 20) / 1200) and found.event_drives == events
        by_themselves = alone(sample).strata
        assert ((found.strata.mu, found.strata.se) != (by_themselves.mu, by_themselves.se)) == moved


def test_where_no_drawn_drive_has_an_event_nothing_is_certain():
    drive, of_P = np.repeat(np.arange(100), 20), np.tile(np.repeat([0, 1], 10), 100)
    ell = (drive >= 70) & (np.arange(2000) % 20 == 0)  # 30 of the drives that were not drawn
    sample = split_in_two(calibrator(ell, of_P, of_P, ell, drive, drive), ell * 1.0, of_P, drive, 50)
    found = sample.calibrate("ell", 10)
    assert found.naive.mu == 0.015 and found.strata.mu == 0
    assert found.strata.hi == alone(sample).strata.hi > 0
    assert found.traffic.lo < found.traffic.mu == -0.015 < found.traffic.hi


def test_a_rate_that_would_be_negative_moves_in_proportion():
    """Half of the drawn drives have events, the others have none; nearly all of them lie where Q does not."""
    drive, of_P = np.repeat(np.arange(500), 20), np.tile(np.repeat([0, 1], 10), 500)
    place = np.arange(10_000) % 20
    ell = (drive < 50) & (drive % 2 == 0) & ((place == 10) | ((place == 0) & (drive < 4)))
    whole = calibrator(ell, of_P, np.zeros(10_000, int), np.zeros(10_000), drive, drive)
    sample = split_in_two(whole, ell * 1.0, of_P, drive, 50)
    found, drawn = sample.calibrate("ell", 10), alone(sample)
    assert 0 < found.strata.mu <= drawn.strata.mu
    assert found.naive.mu + found.traffic.mu == pytest.approx(found.strata.mu)


def test_the_noise_that_is_checked_is_that_of_the_numbers_shown():
    (sample,) = samples(4, 1, 300, 60, 0.1)
    part = sample.calibrate("ell", 10)
    assert part.sigma2_lis / part.sigma2_naive == pytest.approx((part.strata.se / part.naive.se) ** 2)


def test_all_drives_drawn_is_no_sample():
    drive, of_P, of_Q, ell = fleet(np.random.default_rng(2), 40, 0.3)
    whole = calibrator(ell, of_P, of_Q, ell, drive, drive)
    none = replace(whole, rest_P=Rest(np.zeros(0), {"ell": np.zeros(0)}))
    a, b = whole.calibrate("ell", 10), none.calibrate("ell", 10)
    assert min(a.event_drives, 40) >= ENOUGH
    assert b.strata.mu == pytest.approx(a.strata.mu) and b.strata.se == pytest.approx(a.strata.se)


@pytest.mark.slow
@pytest.mark.parametrize(("drives", "drawn", "rate", "events"), [
    (600, 60, 0.005, (3, 8)), (600, 60, 0.02, (10, 25)), (600, 60, 0.1, (45, 60)), (1500, 200, 0.02, (50, 75)),
])
def test_intervals_of_a_sample_hold_the_truth(drives, drawn, rate, events):
    """The rate of Q is rate * IN_Q @ TIMES, and what the drives that were not drawn add is 0 on average."""
    truth, runs, held, step, seen = rate * IN_Q @ TIMES, 400, 0, 0, []
    for sample in samples(5, runs, drives, drawn, rate):
        found, own = sample.calibrate("ell", 10), sample.undrawn("ell", 10)
        held += found.strata.lo <= truth <= found.strata.hi
        step += own.lo <= 0 <= own.hi
        seen.append(found.event_drives)
    assert events[0] <= np.mean(seen) <= events[1]
    assert held / runs >= 0.92 and step / runs >= 0.90  # standard errors 0.011 and 0.015
