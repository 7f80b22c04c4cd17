"""ROC, reliability and bounds: against scikit-learn, a known posterior, brute force and a bootstrap of drives."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc

from avshift_core.shift.analyze import analyze
from avshift_core.shift.c2st import CROSS_FIT_INFLATION
from avshift_core.shift.curves import (
    compared_bounds,
    held_out_curves,
    reliability_curve,
    saturation,
    score_histogram,
    variance_split,
)
from avshift_core.shift.roc import GRID, mean_roc, roc_points


def scores(rng, n_P=3000, n_Q=1500, m=0.5):
    """P ~ N(-m, 1), Q ~ N(m, 1) on a line: the log-odds of Q at equal sizes are exactly 2 m x."""
    return 2 * m * (rng.normal(-m, 1, n_P)), 2 * m * rng.normal(m, 1, n_Q)


def test_the_curve_of_a_model_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    P, Q = np.round(rng.normal(0, 1, 70), 1), np.round(rng.normal(0.7, 1, 50), 1)  # with ties
    of_P, of_Q = roc_points(P, Q)
    label, score = np.repeat([0, 1], [70, 50]), np.concatenate([P, Q])
    fpr, tpr, _ = sklearn_roc(label, score, drop_intermediate=False)
    assert of_P == pytest.approx(fpr) and of_Q == pytest.approx(tpr)
    mean = mean_roc(score[None], np.zeros((1, 120), dtype=int), label)  # one fold: the curve itself
    assert np.trapezoid(mean, GRID) == pytest.approx(roc_auc_score(label, score), abs=3e-3)
    assert mean[-1] == 1 and (np.diff(mean) >= 0).all()


def test_offsets_between_folds_do_not_matter():
    rng = np.random.default_rng(1)
    P, Q = scores(rng, 4000, 4000)
    score, label = np.concatenate([P, Q]), np.repeat([0, 1], 4000)
    fold = rng.integers(0, 5, 8000)
    area = np.trapezoid(mean_roc((score + 10 * fold)[None], fold[None], label), GRID)
    assert area == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.015)  # P(N(1, 2) > 0)
    assert roc_auc_score(label, score + 10 * fold) < 0.6  # pooled, it is the curve of the offsets


def test_the_area_is_that_of_the_test_and_its_interval_counts_drives(clustered_analysis):
    test, found = clustered_analysis.global_test, held_out_curves(clustered_analysis).roc
    assert np.trapezoid(found.tpr, found.fpr) == pytest.approx(test.auc, abs=5e-3)
    se = (test.auc - 0.5) / test.statistic * CROSS_FIT_INFLATION
    assert (found.hi - found.lo) / 2 == pytest.approx(stats.t.ppf(0.975, 59) * se)  # 60 drives a side
    assert found.lo < test.auc < found.hi


def test_a_true_posterior_is_reliable_whatever_the_sizes_of_the_cohorts():
    inside = total = 0
    for seed in range(40):
        P, Q = scores(np.random.default_rng(seed))  # twice as many of P
        found = reliability_curve(P, Q, np.arange(len(P)), np.arange(len(Q)), bins=10)
        assert found.n_P.sum() == len(P) and found.n_Q.sum() == len(Q)
        assert found.mass == pytest.approx(np.full(10, 0.1), abs=0.002)
        inside += ((found.lo <= found.h) & (found.h <= found.hi)).sum()  # in a bin of exact log-odds share = mean h
        total += 10
    assert inside / total >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / total)
    assert found.error < 0.04  # the mean of |error| of a share of 450 is 0.8 sqrt(0.25 / 450) = 0.019


def test_reliability_by_hand():
    # Two bins at 1/2: P has 3 of 4 below, Q 1 of 2. Shares of Q: below (1/2) / (3/4 + 1/2) = 0.4, above 2/3.
    logit = lambda h: np.log(np.array(h) / (1 - np.array(h)))  # noqa: E731
    found = reliability_curve(logit([0.2, 0.2, 0.2, 0.8]), logit([0.2, 0.8]), np.arange(4), np.arange(2), bins=2)
    assert found.share == pytest.approx([0.4, 2 / 3]) and found.h == pytest.approx([0.2, 0.8])
    assert found.mass == pytest.approx([5 / 8, 3 / 8])
    assert found.error == pytest.approx(5 / 8 * 0.2 + 3 / 8 * (0.8 - 2 / 3))


def test_the_error_by_chance_is_that_of_a_score_that_means_what_it_says():
    # drives of ten scenarios at one place: ten times fewer count, and the error by chance knows it
    for size in (1, 10):
        errors, by_chance = [], []
        for seed in range(60):
            P, Q = (np.repeat(side, size) for side in scores(np.random.default_rng(seed), 3000 // size, 1500 // size))
            found = reliability_curve(P, Q, np.arange(3000) // size, np.arange(1500) // size, bins=10)
            errors.append(found.error)
            by_chance.append(found.by_chance)
        assert np.mean(by_chance) == pytest.approx(np.mean(errors), rel=0.15)


def test_a_score_that_exaggerates_has_a_larger_error():
    P, Q = scores(np.random.default_rng(5))
    rows = np.arange(len(P)), np.arange(len(Q))
    assert reliability_curve(3 * P, 3 * Q, *rows).error > 0.1 > reliability_curve(P, Q, *rows).error


def test_scores_that_lie_close_share_a_bin():
    # Four fifths of both cohorts at 0.470 to 0.474, the rest spread: quantiles alone would cut the heap into 16 bins
    rng = np.random.default_rng(7)
    h = np.concatenate([rng.uniform(0.470, 0.474, 800), rng.uniform(0.5, 0.9, 200)])
    logit = np.log(h / (1 - h))
    found = reliability_curve(logit, logit, np.arange(1000), np.arange(1000))
    assert found.mass[0] == pytest.approx(0.8, abs=0.05) and len(found.h) >= 4
    assert (np.diff(found.h) > 0.01).all()


def test_a_constant_score_is_one_bin():
    found = reliability_curve(np.zeros(50), np.zeros(40), np.arange(50), np.arange(40))
    assert found.share.tolist() == [0.5] and found.h.tolist() == [0.5] and found.error == 0
    histogram = score_histogram(np.zeros(50), np.zeros(40))
    assert histogram.P.sum() == histogram.Q.sum() == 1


def test_the_histogram_holds_every_scenario():
    P, Q = scores(np.random.default_rng(6))
    found = score_histogram(P, Q)
    assert found.P.sum() == pytest.approx(1) and found.Q.sum() == pytest.approx(1)
    assert len(found.edges) == len(found.P) + 1


@pytest.mark.parametrize("bound", ["drive", "wilson", "hoeffding"])
def test_the_bound_in_use_is_the_verdicts(small_pair, bound):
    analysis = analyze(*small_pair, classifier="logistic", repeats=2, n_perm=19, bound=bound)
    found = {b.name: b for b in compared_bounds(analysis)}
    assert [name for name, b in found.items() if b.used] == [bound]
    test = analysis.global_test
    assert (found[bound].gamma_lcb, found[bound].gamma_ucb) == pytest.approx((test.gamma_lcb, test.gamma_ucb))
    assert found["wilson"].gamma_lcb == pytest.approx(test.gamma_lcb_wilson)
    assert found["hoeffding"].gamma_lcb == pytest.approx(test.gamma_lcb_hoeffding)


def test_the_observed_statistic_is_the_one_behind_the_p_value(clustered_analysis):
    test = clustered_analysis.global_test
    assert test.p_value == (1 + (test.null >= test.statistic).sum()) / (1 + len(test.null))
    assert np.sign(test.statistic) == np.sign(test.auc - 0.5)


def test_the_variance_split_adds_up(clustered_analysis):
    test = clustered_analysis.global_test
    split = variance_split(test)
    assert split.total == pytest.approx(test.se**2)
    assert split.training == test.var_training
    assert split.binomial + split.drives == pytest.approx(test.var_test)
    assert split.cross_fit == pytest.approx((CROSS_FIT_INFLATION**2 - 1) * test.var_test)
    even = variance_split(replace(test, design_effect=0.5))
    assert even.drives == 0 and even.total == pytest.approx(test.se**2)


def test_curves_of_an_analysis(clustered_analysis):
    found = held_out_curves(clustered_analysis)
    assert found.reliability.n_P.sum() == clustered_analysis.P.n
    assert found.scores.Q.sum() == pytest.approx(1)
    assert sum(bound.used for bound in found.bounds) == 1


def test_p_saturates_with_the_number_of_scenarios(clustered_analysis):
    test, found = clustered_analysis.global_test, saturation(clustered_analysis)
    assert found.gamma == (0.005, 0.01, 0.1) and found.n_te == test.n_te
    assert (np.diff(found.p, axis=1) <= 0).all() and (np.diff(found.p, axis=0) <= 0).all()
    # Source: a binomial test of 52.5 % right of 10,000, normal approximation: p = 1 - Phi(0.025 / 0.005) at deff 1
    alone = replace(clustered_analysis, global_test=replace(test, design_effect=1.0),
                    config=replace(clustered_analysis.config, gamma_small=0.05))
    p = np.interp(np.log(10_000), np.log(found.n), saturation(alone).p[0])
    assert p == pytest.approx(stats.norm.sf(5.0), rel=0.01)
