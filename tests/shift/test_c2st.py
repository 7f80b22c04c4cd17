import numpy as np
import pytest
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import make_space
from avshift_core.shift.c2st import (
    CROSS_FIT_INFLATION,
    CrossFit,
    advantage,
    cross_fit,
    hoeffding_lower,
    wilson_lower,
)
from avshift_core.shift.drives import Pool, folds_by_drive, pool


def rows_as_drives(n):
    y = np.repeat([0, 1], n)
    return Pool(y, np.arange(2 * n), y, np.arange(2 * n))


def test_bounds_against_scipy_and_by_hand():
    exact = stats.binomtest(1096, 2000).proportion_ci(0.9, method="wilson").low  # two-sided 90 % = one-sided 95 %
    assert wilson_lower(0.548, 2000, 0.05) == pytest.approx(exact, abs=1e-12)
    assert hoeffding_lower(0.6, 200, np.exp(-1)) == pytest.approx(0.6 - np.sqrt(1 / 400))  # log(1/alpha) = 1


def test_advantage_of_a_known_confusion_table():
    # P: 60 of 100 right, Q: 70 of 100 right, one fold: balanced accuracy 0.65
    sample = rows_as_drives(100)
    logits = np.r_[np.repeat([-1.0, 1.0], [60, 40]), np.repeat([1.0, -1.0], [70, 30])]
    result, _, var_test, var_training, effect = advantage(
        CrossFit(logits[None], np.zeros((1, 200), dtype=int)), sample, AnalysisConfig()
    )
    assert result.acc == pytest.approx(0.65)
    assert result.gamma_hat == pytest.approx(0.15)
    by_hand = (0.6 * 0.4 / 99 + 0.7 * 0.3 / 99) / 4
    assert var_test == pytest.approx(by_hand)
    assert var_training == 0
    assert effect == pytest.approx(100 / 99)
    assert result.gamma_lcb == pytest.approx(0.15 - stats.t.ppf(0.95, 99) * np.sqrt(2 * by_hand))  # cross-fit: 2


def test_a_classifier_that_answers_the_same_everywhere_has_no_advantage_whatever_the_fold_sizes():
    rng = np.random.default_rng(0)
    drive = np.sort(rng.choice(30, 600))
    sample = Pool(np.repeat([0, 1], 300), np.r_[drive[:300], drive[300:] + 30], np.repeat([0, 1], [30, 30])[: 60],
                  np.arange(60))
    fold = folds_by_drive(sample, 2, rng)
    result = advantage(CrossFit(np.where(fold == 0, 1.0, -1.0)[None], fold[None]), sample, AnalysisConfig())[0]
    assert result.acc == pytest.approx(0.5)
    assert result.gamma_lcb == 0


def test_drives_widen_the_bound():
    # every drive is right or wrong as a whole: 20 drives of 50 count as 20, not as 1,000
    right = np.repeat(np.r_[np.ones(12), -np.ones(8), np.ones(13), -np.ones(7)], 50)
    y = np.repeat([0, 1], 1000)
    sample = Pool(y, np.repeat(np.arange(40), 50), np.repeat([0, 1], 20), np.arange(40))
    fit = CrossFit((right * (2 * y - 1))[None], np.zeros((1, 2000), dtype=int))
    clustered = advantage(fit, sample, AnalysisConfig())
    wilson = advantage(fit, sample, AnalysisConfig(bound="wilson"))
    assert clustered[0].acc == wilson[0].acc == pytest.approx(0.625)
    assert clustered[0].gamma_lcb < 0.02 < 0.1 < wilson[0].gamma_lcb
    assert clustered[4] == pytest.approx(50, rel=0.1)


def test_swapping_the_cohorts_keeps_the_advantage(line):
    config = AnalysisConfig(classifier="cells", repeats=1)
    found = []
    for P, Q in ((line.P, line.Q), (line.Q, line.P)):
        space, sample = make_space(P, Q, 32, 0), pool(P, Q)
        found.append(advantage(cross_fit(space, sample, config, repeats=1, folds=5, seed=0), sample, config)[0].acc)
    assert found[0] == pytest.approx(found[1], abs=0.015)


@pytest.mark.parametrize("kind", ["auto", "mlp", "cells", "logistic", "boosting", "forest", "svm", "knn"])
def test_every_classifier_family_sees_a_clear_shift(small_pair, kind):
    P, Q = small_pair
    sample, space = pool(P, Q), make_space(P, Q, 16, 0)
    config = AnalysisConfig(classifier=kind)
    moved = space.X + 2.0 * sample.y[:, None]
    from dataclasses import replace

    space = replace(space, X=moved.astype(np.float32), cell=(moved[:, 0] > 1).astype(int))
    acc = advantage(cross_fit(space, sample, config, repeats=1, folds=3, seed=0), sample, config)[0].acc
    assert acc > 0.75


def test_no_model_scores_a_drive_that_it_saw(small_pair):
    """Latents that only name their drive: a model that saw the drive knows its label, another one does not."""
    P, Q = small_pair
    space, sample = make_space(P, Q, 16, 0), pool(P, Q)
    from dataclasses import replace

    signature = np.random.default_rng(3).normal(size=(sample.n_drives, 12))[sample.drive] * 5
    space = replace(space, X=signature.astype(np.float32))
    by_drive = AnalysisConfig(classifier="mlp")
    by_row = AnalysisConfig(classifier="mlp", split_by="row")
    fit = lambda c: cross_fit(space, sample, c, repeats=1, folds=5, seed=0)  # noqa: E731
    assert advantage(fit(by_row), sample, by_row)[0].acc > 0.9
    assert advantage(fit(by_drive), sample, by_drive)[0].acc < 0.7


def test_cross_fit_inflation_of_a_linear_score():
    """Under P = Q the cross-fitted statistic of the mean-difference classifier varies sqrt(2) more than its labels'
    permutation shows: each pair of folds is used twice. 4,000 draws, K = 5."""
    rng = np.random.default_rng(0)
    K, draws = 5, 4000
    delta = rng.normal(size=(draws, K, 8))  # fold differences of P and Q means, independent under P = Q
    rest = delta.sum(axis=1, keepdims=True) - delta
    total = (delta * rest).sum(axis=(1, 2))
    flips = rng.choice([-1.0, 1.0], size=(draws, K))  # permuting held-out labels flips delta, not the trained rest
    permuted = ((flips[..., None] * delta) * rest).sum(axis=(1, 2))
    assert total.std() / permuted.std() == pytest.approx(CROSS_FIT_INFLATION, abs=0.05)


def uneven(seed, shift=0.0):
    """P: 20 drives of 20, Q: 20 drives of 100; drives differ, the cohorts (but for `shift`) do not."""
    rng = np.random.default_rng(seed)
    drive = np.repeat(np.arange(40), np.repeat([20, 100], 20))
    y = (drive >= 20).astype(int)
    X = rng.normal(size=(40, 3))[drive] + rng.normal(size=(len(drive), 3)) + shift * y[:, None]
    return X.astype(np.float32), Pool(y, drive, np.repeat([0, 1], 20), np.arange(40))


def test_p_values_are_honest_when_drives_of_one_cohort_are_longer():
    """Of 20 null runs at level 0.05, five or more happen with probability 0.003."""
    from avshift_core.shift.baselines import reference_tests
    from avshift_core.shift.c2st import _neighbor_test, _rank_test
    from avshift_core.shift.drives import permutation_p, permuted_labels

    p = []
    for seed in range(20):
        X, sample = uneven(seed)
        rng = np.random.default_rng(seed)
        labels = permuted_labels(sample.drive_y, 199, rng)
        fit = CrossFit(X[:, :1].T, np.zeros((1, sample.n), dtype=int))  # a score that was trained on nothing
        _, statistic, null = _rank_test(fit, sample, labels)
        tests = {t.name: t.p_value for t in reference_tests(X, sample, X[:, 0], seed=seed)}
        p.append([permutation_p(statistic, null / CROSS_FIT_INFLATION), _neighbor_test(X, sample, labels, rng),
                  tests["ks"], tests["mmd"], tests["w1"]])
    assert ((np.array(p) <= 0.05).sum(axis=0) < 5).all()


def test_the_neighbour_test_sees_a_shift_between_uneven_cohorts():
    from avshift_core.shift.c2st import _neighbor_test
    from avshift_core.shift.drives import permuted_labels

    X, sample = uneven(1, shift=1.5)
    rng = np.random.default_rng(0)
    assert _neighbor_test(X, sample, permuted_labels(sample.drive_y, 199, rng), rng) <= 0.01


def test_as_many_folds_as_drives_do_not_make_the_bound_certain(small_pair):
    sample, space = pool(*small_pair), make_space(*small_pair, 16, 0)
    fit = cross_fit(space, sample, AnalysisConfig(classifier="logistic"), repeats=1, folds=20, seed=0)
    assert fit.fold.max() + 1 == 7  # 15 drives a side: two a fold
    assert advantage(fit, sample, AnalysisConfig())[2] > 1e-5
