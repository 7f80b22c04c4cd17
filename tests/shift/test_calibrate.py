
import numpy as np
import pytest
from scipy import stats

from avshift_core.errors import ConfigError
from avshift_core.shift.calibrate import Calibrator, Strata, cell_strata
from avshift_core.shift.weighting import pareto_khat


def calibrator(ell_P, of_P, of_Q, ell_Q=None, drive_P=None, drive_Q=None, w=None):
    """A calibrator with given strata, outcome model 0 and classifier weights w."""
    n_P, n_Q = len(ell_P), len(of_Q)
    S = max(max(of_P), max(of_Q)) + 1
    of_P, of_Q = np.array(of_P), np.array(of_Q)
    p, q = np.bincount(of_P, minlength=S) / n_P, np.bincount(of_Q, minlength=S) / n_Q
    strata = Strata(of_P, of_Q, q, p, p > 0, np.ones(n_P, dtype=bool), np.ones(n_Q, dtype=bool))
    drive_P = np.arange(n_P) if drive_P is None else np.array(drive_P)
    drive_Q = np.arange(n_Q) if drive_Q is None else np.array(drive_Q)
    return Calibrator(
        {"ell": np.array(ell_P, float)}, {"ell": np.zeros(n_Q) if ell_Q is None else np.array(ell_Q, float)},
        {"ell": np.zeros(n_P)}, {"ell": np.zeros(n_Q)}, drive_P, drive_Q, (drive_P.max() + 1, drive_Q.max() + 1),
        np.ones(n_P) if w is None else np.array(w, float), {"ell": None}, strata, strata,
        np.where(of_P == S - 1, -1, of_P), np.where(of_Q == S - 1, -1, of_Q), 0.0, 0.0, 0.95, 1.0,
    )


def test_lis_and_its_paper_variant_by_hand():
    # stratum 0 is the region, 1 the outside: p = 1/4, q = 1/2, ell = 1 in the region only.
    # ours: q * 1 + (1 - q) * 0 = 0.5; paper: w = 2 inside, 1 outside: 2 / (2 + 3) = 0.4
    c = calibrator([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]).calibrate("ell", 10)
    assert c.mu_naive == 0.25
    assert c.mu_lis == pytest.approx(0.5)
    assert c.strata.mu == pytest.approx(0.5)
    assert c.lis_paper.mu == pytest.approx(0.4)


def test_the_clip_bounds_the_weight_and_reports_the_loss():
    # q / p = 2, clip 1.5: the region is given 0.375 instead of 0.5; 0.375 / (0.375 + 0.5) after normalisation
    c = calibrator([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]).calibrate("ell", 1.5)
    assert c.strata.mu == pytest.approx(0.375 / 0.875)
    assert c.clipped_mass == pytest.approx(0.125)


def test_limit_of_the_papers_case():
    # METHOD section 4: perfect region and infinite data, region = bump: the paper's weights tend to 0.4039, ours to
    # 0.4118. Region |x - 2| < 0.36 (3 sd), masses by integration.
    from scipy import integrate

    from avshift_core.latent.benchmark import EVENT_ABOVE, LINE_TARGETS, SOURCE, line_density

    grid = np.linspace(-8, 10, 400_001)
    p, q = (line_density(m, grid) for m in (SOURCE, LINE_TARGETS["localized"]))
    inside, event = np.abs(grid - 2) < 0.36, grid > EVENT_ABOVE
    mass = lambda f, where: integrate.trapezoid(f * where, grid)  # noqa: E731
    n = 1_000_000
    counts = np.round(n * np.array([mass(p, inside), mass(p, ~inside & event), mass(p, ~inside & ~event)])).astype(int)
    of_P = np.repeat([0, 1, 1], counts)
    ell = np.repeat([1, 1, 0], counts)
    q_in = round(n * mass(q, inside))
    c = calibrator(ell, of_P, np.repeat([0, 1], [q_in, n - q_in])).calibrate("ell", 1e9)
    assert c.lis_paper.mu == pytest.approx(0.4039, abs=4e-4)
    assert c.lis.mu == pytest.approx(0.4118, abs=4e-4)


def test_equal_weights_give_the_mean_back():
    rng = np.random.default_rng(0)
    ell, strata = rng.random(500), rng.integers(0, 5, 500)
    c = calibrator(ell, strata, strata).calibrate("ell", 10)
    for name in ("lis", "strata", "ipw", "aipw", "lis_paper"):
        assert getattr(c, name).mu == pytest.approx(ell.mean()), name
    assert c.ess == pytest.approx(500)


def test_intervals_against_a_drive_bootstrap():
    """The influence-function error of the stratified estimate is that of resampling whole drives."""
    rng = np.random.default_rng(0)
    D, m = 60, 30
    offset = rng.normal(size=(2, D, 1))
    x_P, x_Q = (offset[i] + rng.normal(size=(D, m)) + 0.3 * i for i in (0, 1))
    strata = lambda x: np.clip(np.floor(x + 3), 0, 5).astype(int)  # noqa: E731
    event = rng.random((D, m)) < 1 / (1 + np.exp(-x_P))
    drive = np.repeat(np.arange(D), m)
    whole = calibrator(event.ravel(), strata(x_P).ravel(), strata(x_Q).ravel(), drive_P=drive, drive_Q=drive)
    se = whole.calibrate("ell", 1e9).strata.se
    draws = []
    for _ in range(400):
        i, j = rng.integers(D, size=D), rng.integers(D, size=D)
        again = calibrator(event[i].ravel(), strata(x_P[i]).ravel(), strata(x_Q[j]).ravel())
        draws.append(again.calibrate("ell", 1e9).strata.mu)
    assert se == pytest.approx(np.std(draws), rel=0.2)


def test_a_clip_that_levels_all_weights_gives_the_naive_interval():
    # every stratum clipped: weights are equal, so estimate and error are those of the mean
    rng = np.random.default_rng(0)
    ell, of_P, of_Q = rng.random(400), rng.integers(0, 4, 400), rng.integers(0, 3, 400)
    c = calibrator(ell, of_P, of_Q).calibrate("ell", 1e-3)
    clipped = calibrator(ell, np.clip(of_P, 0, 2), of_Q).calibrate("ell", 1e-3)
    assert clipped.strata.mu == pytest.approx(clipped.naive.mu)
    assert clipped.strata.se == pytest.approx(clipped.naive.se)
    assert c.naive.mu == clipped.naive.mu


def test_intervals_stay_in_the_range_of_the_metric():
    c = calibrator([1, *[0] * 29], [0] * 30, [0] * 30).calibrate("ell", 10)
    # 1 of 30 independent ones: mu (1 - mu) / se^2 = 29 effective, times (t_59 / t_29)^2 (Korn and Graubard 1998)
    n = 29 * (stats.t.ppf(0.975, 59) / stats.t.ppf(0.975, 29)) ** 2
    assert c.naive.lo == pytest.approx(stats.beta.ppf(0.025, n / 30, n - n / 30 + 1))
    assert c.naive.hi == pytest.approx(stats.beta.ppf(0.975, n / 30 + 1, n - n / 30))
    assert c.event_drives == 1


def test_more_events_never_lower_the_upper_end():
    ends = [calibrator(np.arange(4000) < k, np.zeros(4000, int), np.zeros(400, int), drive_P=np.arange(4000) // 10,
                       ell_Q=np.arange(400) % 4 == 0).calibrate("ell", 10).naive.hi for k in (0, 10, 20, 50)]
    assert ends == sorted(ends)


def test_what_is_left_over_knows_that_no_event_in_P_is_no_certainty():
    # 0 of 400 against 4 of 400, independent: Fisher's exact test says p = 0.12 (R: fisher.test)
    c = calibrator(np.zeros(400), np.zeros(400, int), np.zeros(400, int), ell_Q=np.arange(400) < 4).calibrate("ell", 10)
    assert c.residual.mu == pytest.approx(0.01) and c.residual.lo < 0 < c.residual.hi
    assert c.traffic.lo < 0 < c.traffic.hi


def test_without_an_event_the_interval_counts_scenarios():
    # 200 scenarios, no event: Clopper-Pearson's upper end is 1 - 0.025^(1 / 200) = 0.01828 with independent scenarios
    c = calibrator(np.zeros(200), np.arange(200) % 2, [0, 1] * 100, ell_Q=np.arange(200) % 4 == 0).calibrate("ell", 10)
    assert (c.naive.mu, c.naive.lo) == (0.0, 0.0) and c.naive.hi == pytest.approx(0.01828, rel=0.01)
    assert c.strata.hi == pytest.approx(c.naive.hi)  # equal weights lose nothing
    assert 0.18 < c.target.lo < 0.25 < c.target.hi < 0.32  # where there are events, as before
    # weights 2 and 2/3 on a quarter and three quarters: 200 / (4 / 4 + 4 / 9 * 3 / 4) = 150 effective scenarios
    c = calibrator(np.zeros(200), [0] * 50 + [1] * 150, [0, 1] * 100, ell_Q=np.arange(200) % 4 == 0)
    c = c.calibrate("ell", 10)
    assert c.ess == pytest.approx(150) and c.strata.hi == pytest.approx(1 - 0.025 ** (1 / 150), rel=0.01)
    # Q in drives of ten that all have the event or none: ten times fewer count
    drive = np.repeat(np.arange(20), 10)
    alike = calibrator(np.zeros(200), np.arange(200) % 2, [0, 1] * 100, ell_Q=drive % 4 == 0, drive_P=drive,
                       drive_Q=drive).calibrate("ell", 10)
    assert alike.naive.hi > 1 - 0.025 ** (1 / 20)


def test_what_is_left_over_counts_the_scenarios_of_a_q_without_events():
    # 4 of 400 in P, none of 100 in Q: such a Q says nothing against a rate of 1 %
    c = calibrator(np.arange(400) % 100 == 0, np.arange(400) % 2, [0, 1] * 50).calibrate("ell", 10)
    assert c.target.mu == 0 and c.residual.mu == pytest.approx(-0.01) and c.residual.lo < -0.01
    assert c.residual.hi == pytest.approx(-0.01 + np.hypot(c.target.hi, 0.01 - c.strata.lo)) and c.residual.hi > 0


def test_differences_have_their_own_interval(line_analysis):
    c = line_analysis.calibrate(10)
    assert c.traffic.mu == pytest.approx(c.strata.mu - c.naive.mu)
    assert c.residual.mu == pytest.approx(c.target.mu - c.strata.mu)
    assert c.traffic.se < np.hypot(c.strata.se, c.naive.se)  # they share the scenarios of P


def test_calibrated_values_approach_the_truth(line_analysis, line):
    # n = 3,000: four standard errors of the mean of Q are 0.036; naive is 0.065 off
    c = line_analysis.calibrate(10)
    for name in ("lis", "ipw", "aipw", "balance", "strata"):
        assert getattr(c, name).mu == pytest.approx(line.truth.mu_Q, abs=0.036), name
    assert c.naive.mu == pytest.approx(line.truth.mu_P, abs=0.036)


def test_a_cell_that_the_local_test_found_bare_is_never_weighted():
    cell, y = np.array([0, 0, 1, 1, 0, 1, 1, 1]), np.repeat([0, 1], 4)
    assert cell_strata(cell, 2, y, 0.05).free.tolist() == [True, True, False]  # the last holds nobody
    found = cell_strata(cell, 2, y, 0.05, bare=[1])
    assert found.free.tolist() == [True, False, False] and found.weights(10).tolist() == [0.5, 0.5, 1.0, 1.0]


def test_clip_must_be_positive(line_analysis):
    for B in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="must be above 0"):
            line_analysis.calibrate(B)


def test_tail_index():
    rng = np.random.default_rng(0)
    assert pareto_khat(1 + rng.pareto(2.0, 20_000)) == pytest.approx(0.5, abs=0.15)  # tail index 1/2
    assert pareto_khat(rng.random(20_000)) < 0
    assert pareto_khat(np.ones(1000)) == 0
