import numpy as np
import pytest

from avshift_core.errors import ConfigError
from avshift_core.latent.benchmark import METRIC, UNCHANGED, further_drives, line_case, manifold_case
from avshift_core.shift.drives import intraclass_correlation


@pytest.mark.parametrize(
    ("case", "mu_Q", "best_accuracy"),
    [("none", 0.346498, 0.5), ("localized", 0.411846, 0.548167), ("global", 0.607442, 0.788871)],
)
def test_truth_on_the_line(case, mu_Q, best_accuracy):
    # numerical integration, METHOD section 5
    truth = line_case(case, n=300).truth
    assert truth.mu_P == pytest.approx(0.346498, abs=1e-6)
    assert truth.mu_Q == pytest.approx(mu_Q, abs=1e-6)
    assert 0.5 + truth.gamma_star == pytest.approx(best_accuracy, abs=1e-6)


def test_exact_weights_speak_for_the_target():
    # E_P[w* ell] = mu_Q (thm:latent_calibration); four standard errors of the weighted mean of 200,000 draws
    pair = line_case("localized", n=200_000)
    value = pair.truth.w * pair.P.ell[METRIC]
    assert value.mean() == pytest.approx(pair.truth.mu_Q, abs=4 * value.std() / np.sqrt(len(value)))


def test_manifold_truth_agrees_with_its_draws():
    pair = manifold_case(60_000, 3000, drive_share=0.0, seed=4)
    truth, ell = pair.truth, pair.P.ell[METRIC]
    se = np.sqrt(0.15 * 0.85 / pair.P.n)  # rates are below 0.15
    assert ell.mean() == pytest.approx(truth.mu_P, abs=4 * se)
    assert pair.Q.ell[METRIC].mean() == pytest.approx(truth.mu_Q, abs=4 * se)
    assert truth.w.mean() == pytest.approx(1, abs=4 * truth.w.std() / np.sqrt(pair.P.n))
    assert (truth.w @ ell) / truth.w.sum() == pytest.approx(truth.mu_Q, abs=6 * se)
    # the best rule says Q where w* > 1: its accuracy is 1/2 + gamma_star
    accuracy = ((truth.w <= 1).mean() + (truth.w_Q > 1).mean()) / 2
    assert accuracy - 0.5 == pytest.approx(truth.gamma_star, abs=4 * np.sqrt(0.25 / 120_000))
    assert 0.03 < truth.gamma_star < 0.05


def test_drive_share_is_what_was_dialled():
    for share in (0.0, 0.2):
        P = manifold_case(20_000, 400, share, seed=1).P
        assert intraclass_correlation(P.z, P.drive, P.n_drives) == pytest.approx(share, abs=0.03)


def test_no_shift_means_equal_masses():
    truth = manifold_case(500, 20, shift=False).truth
    assert truth.gamma_star == pytest.approx(0, abs=1e-12)
    assert truth.mu_P == truth.mu_Q


def test_unknown_case():
    with pytest.raises(ConfigError, match="choose one of none, localized, global"):
        line_case("wild")


def test_a_second_version_has_its_own_rates_and_leaves_all_else():
    plain, driven = (manifold_case(40_000, 2000, drive_share=0.0, seed=4, effect=effect) for effect in (0.0, -0.6))
    np.testing.assert_array_equal(plain.Q.z, driven.Q.z)
    np.testing.assert_array_equal(plain.P.ell[METRIC], driven.P.ell[METRIC])
    np.testing.assert_array_equal(plain.Q.ell[METRIC], driven.Q.ell[UNCHANGED])
    truth, se = driven.truth, np.sqrt(0.15 * 0.85 / 40_000)
    assert (truth.mu_P, truth.mu_Q) == (plain.truth.mu_P, plain.truth.mu_Q)
    assert truth.mu_B_Q < truth.mu_Q - 0.01  # the bumps around three clusters are 60 % lower
    assert driven.Q.ell[METRIC].mean() == pytest.approx(truth.mu_B_Q, abs=4 * se)
    assert truth.mu_B_P == pytest.approx((driven.Q.ell[METRIC] / truth.w_Q).mean(), abs=6 * se)
    with pytest.raises(ConfigError, match="rates would leave"):
        manifold_case(300, 20, effect=-1.5)


def test_further_drives_follow_the_same_law():
    pair = manifold_case(n=4000, drives=400, drive_share=0.0, seed=3)
    z, y = further_drives(4000, 400, 0.0, seed=3)
    for side, own in ((pair.P.z, z[y == 0]), (pair.Q.z, z[y == 1])):
        apart = np.abs(side.mean(axis=0) - own.mean(axis=0)) / side.std(axis=0)
        assert apart.max() < 5 * np.sqrt(2 / 4000)  # five standard errors, 64 dimensions
        assert not np.isin(own[:, 0], side[:, 0]).any()
