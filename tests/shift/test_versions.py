"""Two AV versions: exact sums, intervals, refusals, verdicts, the leakage probe and the benchmark's truth."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avshift_core import archive
from avshift_core.config import AnalysisConfig
from avshift_core.errors import CohortError
from avshift_core.latent.benchmark import METRIC, manifold_case
from avshift_core.latent.cohort import make_cohort
from avshift_core.shift.analyze import analyze
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.power import power_of
from avshift_core.shift.support import Support, join_small
from avshift_core.shift.trust import OK, REFUSE
from avshift_core.shift.version_report import conclusion, summary, to_version_report
from avshift_core.shift.version_split import REFERENCES, VersionFit, make_fit, parts_table, split_by, split_of
from avshift_core.shift.versions import (
    BETTER,
    FEW,
    NOISE,
    TURNS,
    UNTRUSTED,
    WORSE,
    check_view,
    compare_versions,
    judge,
    version_of,
)
from tests.shift.test_calibrate import calibrator

QUICK = {"classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}


def by_hand(ell_P, of_P, ell_Q, of_Q, common, drive_P=None, drive_Q=None, logit=None):
    """Analysis and fit with given strata, without models; even weights within strata unless a logit is given."""
    c = calibrator(ell_P, of_P, of_Q, ell_Q=ell_Q, drive_P=drive_P, drive_Q=drive_Q)
    of_P, of_Q, S = np.array(of_P), np.array(of_Q), len(common)
    n_P, n_Q = np.bincount(of_P, minlength=S), np.bincount(of_Q, minlength=S)
    support = Support(np.arange(S), of_P, of_Q, n_P, n_Q, n_P, n_Q, np.array(common))
    logits = (np.zeros(len(of_P)), np.zeros(len(of_Q))) if logit is None else logit
    analysis = SimpleNamespace(
        calibrator=c, config=SimpleNamespace(B=10.0, level=0.95),
        global_test=SimpleNamespace(logit_P=logits[0], logit_Q=logits[1]))
    none = {"ell": np.zeros(len(of_P))}, {"ell": np.zeros(len(of_Q))}
    return analysis, make_fit(analysis, support, *none, odds=logit is not None)


def test_every_part_by_hand():
    # strata 0 and 1 are common, 2 was met by Q alone.
    # A: stratum 0 of 2 at 1/2, stratum 1 of 2 at 0; B: stratum 0 of 1 at 0, stratum 1 of 3 at 1/3, stratum 2 of 1 at 1
    analysis, fit = by_hand([1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0, 1], [0, 1, 1, 1, 2], [True, True, False])
    s = split_of(analysis, fit, "ell")
    assert s.raw.mu == pytest.approx(2 / 5 - 1 / 4)
    assert s.not_comparable.mu == pytest.approx(2 / 5 - 1 / 4)  # mu_B(Q) 2/5, mu_B(Q_in) 1/4; all of P is common
    assert s.A_on_Q.mu == pytest.approx(1 / 4 * 1 / 2)  # Q_in's shares 1/4 and 3/4
    assert s.B_on_P.mu == pytest.approx(1 / 2 * 1 / 3)  # P_in's shares 1/2 and 1/2
    assert s.performance["Q"].mu == pytest.approx(1 / 4 - 1 / 8)
    assert s.exposure["Q"].mu == pytest.approx(1 / 8 - 1 / 4)
    assert s.performance["P"].mu == pytest.approx(1 / 6 - 1 / 4)
    assert s.exposure["P"].mu == pytest.approx(1 / 4 - 1 / 6)
    assert s.performance["mean"].mu == pytest.approx((1 / 8 - 1 / 12) / 2)
    assert (s.in_P, s.in_Q, s.n_Q) == (4, 4, 5)


def random_case(seed, drives=12):
    rng = np.random.default_rng(seed)
    n_P, n_Q, S = 120, 150, 4
    of_P, of_Q = rng.integers(0, S, n_P), rng.integers(0, S, n_Q)
    common = np.array([True, True, rng.random() < 0.5, False])
    return by_hand(
        (rng.random(n_P) < 0.4) * 1.0, of_P, (rng.random(n_Q) < 0.3) * 1.0, of_Q, common,
        np.sort(rng.integers(0, drives, n_P)), np.sort(rng.integers(0, drives, n_Q)),
        logit=(rng.normal(size=n_P), rng.normal(size=n_Q))), rng


@given(st.integers(0, 10_000))
def test_the_parts_add_up_exactly_whatever_the_group(seed):
    (analysis, fit), rng = random_case(seed)
    for group in (None, (rng.random(120) < 0.5, rng.random(150) < 0.5)):
        s = split_of(analysis, fit, "ell", *(group or (None, None)))
        for ref in REFERENCES:
            total = s.not_comparable.mu + s.exposure[ref].mu + s.performance[ref].mu
            assert total == pytest.approx(s.raw.mu, abs=1e-12)


@given(st.integers(0, 10_000))
def test_exchanging_the_cohorts_turns_every_part_around(seed):
    (analysis, fit), _ = random_case(seed)
    c, s = analysis.calibrator, fit.support
    turned, other = by_hand(c.ell_Q["ell"], s.of_Q, c.ell_P["ell"], s.of_P, s.common, c.drive_Q, c.drive_P,
                            logit=(-analysis.global_test.logit_Q, -analysis.global_test.logit_P))
    there, back = split_of(analysis, fit, "ell"), split_of(turned, other, "ell")
    for one, two in ((there.raw, back.raw), (there.not_comparable, back.not_comparable),
                     (there.performance["P"], back.performance["Q"]), (there.exposure["Q"], back.exposure["P"]),
                     (there.performance["mean"], back.performance["mean"])):
        assert one.mu == pytest.approx(-two.mu, abs=1e-12)
        assert one.se == pytest.approx(two.se, abs=1e-12)


def test_intervals_against_a_drive_bootstrap():
    """The influence-function error of every part is that of resampling whole drives, weights made again."""
    rng = np.random.default_rng(1)
    D, m = 80, 30
    offset = rng.normal(size=(2, D, 1))
    x = [offset[i] + rng.normal(size=(D, m)) + 0.4 * i for i in (0, 1)]
    strata = lambda v: np.clip(np.floor(v + 3), 0, 5).astype(int)  # noqa: E731
    event = [rng.random((D, m)) < 1 / (1 + np.exp(1 - x[i] + 0.5 * i)) for i in (0, 1)]
    drive, common = np.repeat(np.arange(D), m), [False, True, True, True, True, False]

    def parts(i, j):
        analysis, fit = by_hand(event[0][i].ravel() * 1.0, strata(x[0][i]).ravel(), event[1][j].ravel() * 1.0,
                                strata(x[1][j]).ravel(), common, drive, drive)
        s = split_of(analysis, fit, "ell", x[0][i].ravel() > -1, x[1][j].ravel() > -1)
        return [s.raw, s.not_comparable, s.performance["P"], s.exposure["Q"], s.performance["mean"]]

    draws = [[e.mu for e in parts(rng.integers(D, size=D), rng.integers(D, size=D))] for _ in range(250)]
    own = [e.se for e in parts(np.arange(D), np.arange(D))]
    assert own == pytest.approx(np.std(draws, axis=0), rel=0.25)


def test_intervals_of_a_group_of_drives_with_models_and_odds():
    """A group that only some drives have, an outcome model that is off, and weights by odds: against the bootstrap."""
    rng = np.random.default_rng(2)
    D, m = 80, 30
    x = [rng.normal(size=(D, 1)) + rng.normal(size=(D, m)) + 0.4 * i for i in (0, 1)]
    event = [rng.random((D, m)) < 1 / (1 + np.exp(1 - x[i] + 0.5 * i)) for i in (0, 1)]
    group = [np.repeat(rng.random(D) < 0.5, m).reshape(D, m) for _ in (0, 1)]
    drive = np.repeat(np.arange(D), m)
    strata = lambda v: np.clip(np.floor(v / 2 + 2), 0, 3).astype(int)  # noqa: E731

    def parts(i, j):
        u, v = x[0][i].ravel(), x[1][j].ravel()
        analysis, fit = by_hand(event[0][i].ravel() * 1.0, strata(u), event[1][j].ravel() * 1.0, strata(v), [True] * 4,
                                drive, drive, logit=(0.3 * u, 0.3 * v))
        models = [{"ell": 0.2 + 0.1 * np.tanh(w)} for w in (u, v)]
        analysis.calibrator = replace(analysis.calibrator, m_P=models[0], m_Q=models[1])
        fit = replace(fit, m_P=models[0], m_Q=models[1])
        s = split_of(analysis, fit, "ell", group[0][i].ravel(), group[1][j].ravel())
        return [s.raw, s.performance["P"], s.performance["Q"], s.exposure["P"], s.performance["mean"]]

    draws = [[e.mu for e in parts(rng.integers(D, size=D), rng.integers(D, size=D))] for _ in range(400)]
    own = [e.se for e in parts(np.arange(D), np.arange(D))]
    assert own == pytest.approx(np.std(draws, axis=0), rel=0.15)  # standard error of a spread of 400: 0.035


def test_a_group_is_given_its_own_traffic():
    # no version effect, rate 0.8 in stratum 0 and 0.2 in 1. The group is half of P in both strata; of Q all of
    # stratum 0 and none of 1 but one scenario: within the group, P has 1/2 and Q 100/101 of stratum 0.
    n = 100
    ell = lambda k: (np.arange(n) < (80, 20)[k] * n // 100) * 1.0  # noqa: E731
    values, of = np.concatenate([ell(0), ell(1)]), np.repeat([0, 1], n)
    analysis, fit = by_hand(values, of, values, of, [True, True])
    group_P, group_Q = np.arange(2 * n) % 2 == 0, np.concatenate([np.ones(n, bool), np.arange(n) == n - 1])
    s = split_of(analysis, fit, "ell", group_P, group_Q)
    assert s.A_on_Q.mu == pytest.approx((0.8 * 100 + 0.2) / 101)
    assert s.performance["Q"].mu == pytest.approx((80 + 0) / 101 - (80 + 0.2) / 101)  # nothing but the one's luck


def test_strata_that_a_group_has_in_one_cohort_alone_are_not_comparable():
    analysis, fit = by_hand([1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 1, 1], [True, True])
    s = split_of(analysis, fit, "ell", np.array([1, 1, 0, 0], bool), np.array([1, 1, 1, 1], bool))
    assert (s.in_P, s.in_Q) == (2, 2)
    assert s.not_comparable.mu == pytest.approx((1 / 4 - 1 / 2) - 0)
    assert s.not_comparable.mu + s.exposure["mean"].mu + s.performance["mean"].mu == pytest.approx(s.raw.mu)


def test_small_cells_join_the_one_they_touch_most_and_lonely_ones_stay():
    touching = np.zeros((4, 4))
    touching[1, 2] = touching[2, 1] = 9
    touching[1, 0] = 2
    assert join_small(np.array([40, 10, 50, 5]), touching, 30).tolist() == [0, 2, 2, 3]
    assert join_small(np.array([10, 10, 10]), np.ones((3, 3)), 30).tolist().count(0) in (0, 3)  # all in one


# Verdicts and refusals ------------------------------------------------------------------------------------------------


def a_split(lo, hi, metric="hard_brake", events=(20, 20)):
    e = Estimate((lo + hi) / 2, lo, hi, (hi - lo) / 4)
    three = dict.fromkeys(REFERENCES, e)
    analysis, fit = by_hand([1, 0], [0, 0], [1, 0], [0, 0], [True])
    return replace(split_of(analysis, fit, "ell"), metric=metric, performance=three, events_P=events[0],
                   events_Q=events[1])


@pytest.mark.parametrize(("lo", "hi", "metric", "verdict"), [
    (0.01, 0.03, "hard_brake", WORSE), (-0.03, -0.01, "hard_brake", BETTER), (-0.01, 0.03, "hard_brake", NOISE),
    (0.01, 0.03, "ttc_min_s", BETTER), (0.01, 0.03, "ttc_min_s<1.5", WORSE), (0.01, 0.03, "ttc_min_s>1.5", BETTER),
])
def test_the_verdict_follows_the_interval_and_what_is_bad(lo, hi, metric, verdict):
    assert judge(a_split(lo, hi, metric)) == verdict


@pytest.mark.parametrize(("P", "Q"), [((-0.001, 0.03), (0.01, 0.03)), ((0.01, 0.03), (-0.001, 0.03))])
def test_no_verdict_hangs_on_whose_traffic_is_the_reference(P, Q):
    one, other = (a_split(*ends).performance["P"] for ends in (P, Q))
    split = a_split(0.001, 0.03)
    split = replace(split, performance={**split.performance, "P": one, "Q": other})
    assert judge(split) == NOISE and not power_of(split, AnalysisConfig()).decided
    assert "in the traffic of P or of Q alone" in conclusion(
        SimpleNamespace(version_A="v1", version_B="v2", same_version=False, verdict=lambda *_: NOISE), split, "braking")


def test_better_here_and_worse_there_is_no_noise():
    split = a_split(-0.01, 0.03)
    split = replace(split, performance={**split.performance, "P": Estimate(-0.02, -0.03, -0.01, 0.005),
                                        "Q": Estimate(0.03, 0.01, 0.05, 0.01)})
    assert judge(split) == TURNS
    said = conclusion(SimpleNamespace(version_A="v1", version_B="v2", same_version=False, verdict=lambda *_: TURNS),
                      split, "braking")
    assert "depends on the traffic: -2.00 (-3.00 to -1.00) pp in that of P and +3.00 (+1.00 to +5.00) pp in that of Q" \
        in said


def test_few_events_and_distrust_come_first():
    assert judge(a_split(0.01, 0.03, events=(4, 900))) == FEW
    assert judge(a_split(0.01, 0.03), trusted=False) == UNTRUSTED


@pytest.mark.parametrize(("view", "words"), [("full", "The full view holds the AV's own reaction"),
                                             (None, "imported, and nobody knows")])
def test_other_views_are_refused_with_the_reason(view, words):
    with pytest.raises(CohortError, match=words) as error:
        check_view(view)
    assert "what the version itself caused" in str(error.value) and "--view context" in str(error.value)
    check_view("context")


@pytest.mark.parametrize(("versions", "words"), [
    (["v1"] * 8 + ["v2"] * 2, r"mixes AV versions v1 \(8 scenarios\), v2 \(2 scenarios\)"),
    (["v1"] * 9 + ["unknown"], "unknown AV version"),
])
def test_cohorts_of_several_or_unknown_versions_are_refused(versions, words):
    cohort = make_cohort("W11", np.zeros((10, 2)), obs=pd.DataFrame({"av_version": versions}))
    with pytest.raises(CohortError, match=words):
        version_of(cohort, "P")


def test_a_cohort_without_versions_is_refused():
    with pytest.raises(CohortError, match="no column 'av_version'"):
        version_of(make_cohort("W11", np.zeros((10, 2))), "P")


# On analyses ----------------------------------------------------------------------------------------------------------


def sides(n=700, drives=35, move=0.3, effect=0.0, leak=0.0, seed=0, obs=True, has_drives=True, d=4):
    """Two cohorts of normal latents, Q's traffic moved; B's events change by `effect`; `leak` marks Q in one number."""
    rng = np.random.default_rng(seed)
    found = []
    for side, name in enumerate("PQ"):
        x = rng.normal(size=(n, d))
        x[:, 0] += move * side
        rate = 0.15 + 0.25 / (1 + np.exp(-2 * x[:, 0])) + effect * side
        z = np.hstack([x, rng.normal(size=(n, 1)) + leak * side])
        table = pd.DataFrame({
            "av_version": f"v{side + 1}", "scenario_id": [f"{name}{i}" for i in range(n)],
            "category": np.where(x[:, 0] > 0, "cut-in", "general")}) if obs else None
        found.append(make_cohort(name, z, drive_id=[f"{name}{i % drives}" for i in range(n)] if has_drives else None,
                                 ell={"ell": rng.random(n) < rate}, obs=table))
    return found


@pytest.fixture(scope="module")
def compared():
    P, Q = sides(2000, 60, effect=-0.12)
    analysis = analyze(P, Q, **QUICK, force_localize=True)
    return analysis, compare_versions(analysis)


def test_a_better_version_is_called_better(compared):
    analysis, found = compared
    split = found.splits["ell"]
    part = split.performance["mean"]
    assert found.verdict("ell") == BETTER and part.lo < -0.12 < part.hi  # the effect is -0.12 everywhere
    assert (found.version_A, found.version_B) == ("v1", "v2")
    assert found.probe.status == OK
    assert split.exposure["mean"].mu > 0  # Q's traffic has more events
    assert "v2 is better than v1" in conclusion(found, split, "discomfort")
    assert "v2 is better" in summary(analysis, found)


def test_the_comparison_can_be_kept_and_reported(compared, tmp_path):
    analysis, found = compared
    archive.save(found, tmp_path / "v.zip")
    again = archive.load(tmp_path / "v.zip")
    assert again.splits == found.splits and again.groups == found.groups and again.probe == found.probe
    assert split_of(analysis, again.fit, "ell") == found.splits["ell"]
    report = to_version_report(analysis, found)
    own = report["metrics"]["ell"]
    assert own["verdict"] == BETTER and own["performance"]["mean"]["mu"] == found.splits["ell"].performance["mean"].mu
    assert {g["group"] for g in own["by_category"]} == {"cut-in", "general"}
    assert parts_table([found.splits["ell"]])["part"].nunique() == 14


def test_groups_hold_the_effect_and_add_up(compared):
    analysis, found = compared
    groups = split_by(analysis, found.fit, "ell", "category")
    assert {g.group for g in groups} == {"cut-in", "general"}
    for g in groups:
        assert g.performance["mean"].lo < -0.12 < g.performance["mean"].hi
        assert g.raw.mu == pytest.approx(g.not_comparable.mu + g.exposure["Q"].mu + g.performance["Q"].mu)
    with pytest.raises(CohortError, match="no column 'colour'"):
        split_by(analysis, found.fit, "ell", "colour")


def test_without_drive_ids_it_is_marked():
    analysis = analyze(*sides(has_drives=False), **QUICK)
    found = compare_versions(analysis, probe=False)
    assert found.independence_assumed and any("independence is assumed" in c for c in found.cautions)


def test_no_common_traffic_is_refused():
    analysis = analyze(*sides(move=40.0), **QUICK)
    with pytest.raises(CohortError, match="no traffic in common"):
        compare_versions(analysis)


def test_scenarios_in_both_cohorts_are_refused():
    P, Q = sides()
    Q = replace(Q, obs=Q.obs.assign(scenario_id=["P0", *Q.obs["scenario_id"][1:]]))
    with pytest.raises(CohortError, match=r"1 scenarios in common \(the first: 'P0'\)"):
        compare_versions(analyze(P, Q, **QUICK))


def test_without_a_common_metric_it_is_refused():
    P, Q = sides()
    analysis = analyze(P, replace(Q, ell={"other": Q.ell["ell"]}), **QUICK)
    with pytest.raises(CohortError, match="missing in one of them"):
        compare_versions(analysis)


def test_traffic_of_one_version_alone_is_set_apart():
    # a fifth of Q lies far from everything that P met, with an event in each scenario
    P, Q = sides(1000, 40)
    far = np.arange(Q.n) % 5 == 0
    z, ell = Q.z.copy(), Q.ell["ell"].copy()
    z[far, 1] += 30
    ell[far] = 1
    Q = make_cohort("Q", z, drive_id=Q.drive_ids[Q.drive], ell={"ell": ell}, obs=Q.obs)
    found = compare_versions(analyze(P, Q, **QUICK), probe=False)
    split = found.splits["ell"]
    assert found.fit.support.shares[1] == pytest.approx(0.8, abs=0.01)
    assert split.not_comparable.mu == pytest.approx(Q.ell["ell"].mean() - ell[~far].mean(), abs=0.01)
    assert split.performance["mean"].lo < 0 < split.performance["mean"].hi
    lacking = [g for g in found.groups if not g.common]
    assert [g.lacking for g in lacking] == ["A"] and lacking[0].needed > 0


def test_the_probe_finds_a_version_that_is_written_in_the_latents():
    # 12 numbers and few scenarios: the cells cannot follow the one number that marks the version
    analysis = analyze(*sides(1500, 50, leak=1.0, d=12), **{**QUICK, "classifier": "logistic", "n_cells": 12})
    found = compare_versions(analysis)
    assert found.probe.status == REFUSE and found.probe.matched.gamma_lcb > found.probe.threshold
    assert max(found.probe.control_P.gamma_lcb, found.probe.control_Q.gamma_lcb) < found.probe.threshold
    assert found.verdict("ell") == UNTRUSTED and "cannot be told" in conclusion(found, found.splits["ell"], "events")


def test_adjusting_for_the_reaction_erases_the_effect():
    """Why other views are refused: with the AV's own braking among the latents its effect looks like traffic."""
    rng = np.random.default_rng(3)
    full, context = [], []
    for side, name in enumerate("PQ"):
        x = rng.normal(size=(3000, 2))
        brake = rng.random(3000) < 0.5 - 0.25 * side  # B brakes half as often; events follow from braking alone
        ell, drive = {"ell": brake & (rng.random(3000) < 0.6)}, [f"{name}{i % 60}" for i in range(3000)]
        full.append(make_cohort(name, np.column_stack([x, 3 * brake]), drive_id=drive, ell=ell))
        context.append(make_cohort(name, x, drive_id=drive, ell=ell))
    truth = -0.25 * 0.6
    seen, erased = (compare_versions(analyze(*pair, **QUICK), versions=("A", "B"), probe=False).splits["ell"]
                    .performance["mean"] for pair in (context, full))
    assert seen.lo < truth < seen.hi and seen.hi < 0
    assert abs(erased.mu) < abs(truth) / 5


@pytest.mark.slow
def test_the_true_parts_are_held_in_64_dimensions():
    pair = manifold_case(6000, 120, seed=7, effect=-0.6)
    found = compare_versions(analyze(pair.P, pair.Q, classifier="mlp", repeats=1, n_perm=99), versions=("A", "B"),
                             probe=False)
    s, t = found.splits[METRIC], pair.truth
    for ref, true in (("P", t.mu_B_P - t.mu_P), ("Q", t.mu_B_Q - t.mu_Q)):
        assert s.performance[ref].lo < true < s.performance[ref].hi
    assert isinstance(found.fit, VersionFit)
