"""The lab: how far from the truth, told rightly. Numbers by hand, from scipy, or from the engine's own truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from avshift_core.archive import load, save
from avshift_core.errors import ConfigError
from avshift_core.laboratory.demo import DemoTruth, Untold, cells_of, truth_steps
from avshift_core.laboratory.fleet import (
    EXACT,
    NAMES,
    FleetCheck,
    Setup,
    expected_minutes,
    fleet_steps,
    precision_recall,
    setup_of,
)
from avshift_core.laboratory.line import CASES, PAPER, line_steps
from avshift_core.laboratory.shares import mean_of, rms_of, share_of
from avshift_core.latent.benchmark import METRIC, Manifold, _draw_manifold, manifold_case
from avshift_core.latent.cohort import make_cohort
from avshift_core.plots import laboratory as figures
from avshift_core.progress import finish
from avshift_core.scenario.simulate import truth as simulated
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.simulate.truth import read_truth
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.analyze import analyze

QUICK = {"classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}


# Events at the rate that was asked for --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.002, 0.1, 0.3, 0.5, 0.8, 0.998])
def test_the_event_rate_is_what_was_dialled_and_stays_a_rate(rate):
    shape = _draw_manifold(np.random.default_rng([3, 64]), shift=True).with_rate(rate)
    assert shape.mean_rate(shape.mass_P) == pytest.approx(rate, abs=1e-12)
    # rates at the centres, between them and far away: the bumps are largest near a centre
    rng = np.random.default_rng(0)
    points = np.concatenate([shape.centres, rng.normal(size=(20_000, 8)), (shape.centres[:4] + shape.centres[4:8]) / 2])
    value = shape.rate(points)
    assert value.min() >= 0 and value.max() <= 1
    # E_P[m] by drawing from the clusters of P: four standard errors
    k = rng.choice(12, 200_000, p=shape.mass_P)
    drawn = shape.rate(shape.centres[k] + np.sqrt(0.4) * rng.normal(size=(200_000, 8)))
    assert drawn.mean() == pytest.approx(rate, abs=4 * drawn.std() / np.sqrt(len(drawn)))


def test_without_a_rate_nothing_changes():
    pair = manifold_case(500, 20, seed=5)
    assert isinstance(_draw_manifold(np.random.default_rng(0), True), Manifold)
    assert _draw_manifold(np.random.default_rng(0), True).rate_scale == 1
    same = manifold_case(500, 20, seed=5, event_rate=pair.truth.mu_P)  # its own rate: the same events
    assert same.truth.mu_Q == pytest.approx(pair.truth.mu_Q, abs=1e-12)
    assert same.P.fingerprint == pair.P.fingerprint and same.Q.fingerprint == pair.Q.fingerprint


def test_exact_weights_speak_for_the_target_at_another_rate():
    pair = manifold_case(60_000, 3000, drive_share=0.0, seed=4, event_rate=0.02)
    ell, w = pair.P.ell[METRIC], pair.truth.w
    se = np.std(w * (ell - pair.truth.mu_Q)) / np.sqrt(len(ell))
    assert w @ ell / w.sum() == pytest.approx(pair.truth.mu_Q, abs=4 * se)
    assert pair.truth.mu_P == pytest.approx(0.02, abs=1e-12) and pair.truth.mu_Q > 0.0205


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 2.0])
def test_an_event_rate_that_is_none(rate):
    with pytest.raises(ConfigError, match=r"event_rate is .* between 0 and 1"):
        manifold_case(300, 20, event_rate=rate)


# Shares, means and errors over repeats --------------------------------------------------------------------------------


def test_share_is_wilsons():
    s = share_of([True] * 9 + [False])
    # Wilson by hand: centre (0.9 + z^2/20) / (1 + z^2/10), z = 1.959964
    z = stats.norm.ppf(0.975)
    centre, half = (0.9 + z**2 / 20) / (1 + z**2 / 10), z * np.sqrt(0.9 * 0.1 / 10 + z**2 / 400) / (1 + z**2 / 10)
    assert (s.count, s.n, s.value) == (9, 10, 0.9)
    assert (s.lo, s.hi) == (pytest.approx(centre - half), pytest.approx(centre + half))
    assert share_of([]).n == 0 and np.isnan(share_of([]).value)


def test_mean_and_rms_leave_out_what_is_no_number():
    values = [0.1, -0.3, 0.2, np.nan]
    m = mean_of(values)
    low, high = stats.t.interval(0.95, 2, np.mean(values[:3]), stats.sem(values[:3]))
    assert (m.n, m.value) == (3, pytest.approx(0.0, abs=1e-12))
    assert (m.lo, m.hi) == (pytest.approx(low), pytest.approx(high))
    r = rms_of(values)
    assert r.value == pytest.approx(np.sqrt((0.01 + 0.09 + 0.04) / 3))
    # 0.14 / 9.3484 and 0.14 / 0.21580: quantiles of chi-square with 3 degrees of freedom, from a printed table
    assert (r.lo, r.hi) == pytest.approx((np.sqrt(0.14 / 9.3484), np.sqrt(0.14 / 0.2158)), rel=1e-4)
    assert np.isnan(mean_of([0.5]).lo) and np.isnan(rms_of([]).value)


def test_the_interval_of_an_rms_covers_after_a_few_fleets():
    rng, runs = np.random.default_rng(0), 1000
    found = [rms_of(rng.normal(size=4)) for _ in range(runs)]
    assert 0.93 <= np.mean([r.lo <= 1 <= r.hi for r in found]) <= 0.97


def test_precision_and_recall_by_hand():
    found, shifted = np.array([1, 1, 1, 0, 0, 0], bool), np.array([1, 0, 0, 1, 0, 0], bool)
    assert precision_recall(found, shifted) == {"precision": pytest.approx(1 / 3), "recall": 0.5}
    nothing = precision_recall(np.zeros(6, bool), shifted)
    assert np.isnan(nothing["precision"]) and nothing["recall"] == 0


# The line -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab") / "line.avs"
    save(finish(line_steps(2000, seed=0, config=QUICK)), path)
    return load(path)  # as a page reads it


def test_all_three_cases_get_their_verdict(cases):
    assert [run.case for run in cases.runs] == list(CASES) == list(PAPER)
    assert all(run.right for run in cases.runs)
    best = {run.case: 0.5 + run.truth.gamma_star for run in cases.runs}  # numerical integration, METHOD section 5
    assert best == {"none": 0.5, "localized": pytest.approx(0.548167, abs=1e-6),
                    "global": pytest.approx(0.788871, abs=1e-6)}
    assert all(0.4 < run.acc_knn < best[run.case] + 0.03 for run in cases.runs)


def test_the_papers_figures_are_the_papers():
    # tab:synthetic_twosample, and the text below fig:syn_local_diff; errors 0.0631 and 0.0182 are its own differences
    localized = PAPER["localized"]
    assert [case.acc for case in PAPER.values()] == [0.499, 0.531, 0.649]
    assert localized.target - localized.naive == pytest.approx(0.0631, abs=1e-9)
    assert localized.target - localized.lis == pytest.approx(0.0182, abs=1e-9)
    assert localized.p_c2st == pytest.approx(1 / 81, abs=5e-4) and localized.p_mmd == pytest.approx(1 / 61, abs=5e-4)


def test_table_of_the_cases(cases):
    table = cases.table(10.0)
    assert list(table["source"]) == ["paper", "here"] * 3
    here = table[table["source"] == "here"].set_index("case")
    run = cases.run("localized")
    assert here.loc["localized", "strata"] == run.analysis.calibrate(10.0).strata.mu
    assert here.loc["localized", "truth"] == pytest.approx(0.411846, abs=1e-6)
    # calibrated is nearer to the truth than observed: 4 of 5 points of the gap are the traffic's
    assert abs(here.loc["localized", "strata"] - 0.411846) < abs(here.loc["localized", "naive"] - 0.411846) / 2
    assert np.isnan(table.loc[table["case"] == "none", "lis"].astype(float)).all()  # no regions were looked for
    assert cases.table(0.7).loc[3, "strata"] != table.loc[3, "strata"]  # the clip moves it


def test_progress_rises_to_the_end():
    shares = [step.share for step in line_steps(300, cases=("none",), config=QUICK)]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] <= 1


def test_a_line_too_short_or_too_long_is_refused():
    with pytest.raises(ConfigError, match="200 to 100,000"):
        finish(line_steps(100))
    with pytest.raises(ConfigError, match="gamma_small"):
        finish(line_steps(300, config={"gamma_small": 2.0}))


# Fleets ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    path = tmp_path_factory.mktemp("lab") / "fleet.avs"
    save(finish(fleet_steps(1500, 40, 0.1, 0.1, repeats=3, config=QUICK, jobs=1)), path)
    return load(path)


def test_every_fleet_and_every_estimate_is_there(check):
    assert check.repeats == 3 and check.runs["seed"].is_unique
    assert (check.runs["expected"] == "localize").all()  # gamma_star is near 0.037, between 0.01 and 0.1
    assert check.runs["gamma_star"].between(0.03, 0.05).all()
    assert check.runs["mu_P"].to_numpy() == pytest.approx(0.1, abs=1e-12)
    names = {c.name for c in check.checks}
    assert {"naive", "strata", "ipw", "aipw", EXACT, "target"} <= names <= set(NAMES)
    assert sum(share.count for share in check.verdicts.values()) == 3


def test_a_fleet_is_the_engines_own_analysis(check):
    seed = int(check.runs["seed"][0])
    pair = manifold_case(1500, 40, 0.1, seed=seed, event_rate=0.1)
    analysis = analyze(pair.P, pair.Q, seed=seed, **QUICK)
    rows = check.estimates[check.estimates["seed"] == seed].set_index("estimator")
    strata = analysis.calibrate(analysis.config.B).strata
    assert rows.loc["strata", "mu"] == strata.mu and rows.loc["strata", "hi"] == strata.hi
    assert rows.loc["strata", "error"] == strata.mu - pair.truth.mu_Q
    ell, w = pair.P.ell[METRIC], pair.truth.w
    assert rows.loc[EXACT, "mu"] == pytest.approx(np.average(ell, weights=w))
    assert check.runs["gamma_hat"][0] == analysis.global_test.gamma_hat


def test_errors_and_coverage_by_hand():
    estimates = pd.DataFrame({
        "seed": [1, 1, 2, 2, 3, 3], "estimator": ["naive", EXACT] * 3, "mu": [0.10, 0.12, 0.11, 0.13, 0.12, 0.11],
        "lo": [0.08, np.nan, 0.10, np.nan, 0.119, np.nan], "hi": [0.12, np.nan, 0.12, np.nan, 0.121, np.nan],
        "truth": [0.12, 0.12, 0.13, 0.13, 0.12, 0.12], "error": [-0.02, 0.0, -0.02, 0.0, 0.0, -0.01]})
    runs = pd.DataFrame({
        "seed": [1, 2, 3], "verdict": ["localize", "no_shift", "global_shift"], "right": [True, False, False],
        "decided": [True, False, True], "shown": [True, True, False], "precision": [0.8, np.nan, 0.6],
        "recall": [0.5, 0.0, 0.1], "gamma_hat": 0.03, "gamma_lcb": 0.02, "gamma_ucb": 0.04, "gamma_star": 0.03})
    check = FleetCheck(Setup(), 0.95, runs, estimates)
    assert {name: share.count for name, share in check.verdicts.items()} == {"right": 1, "missed": 1, "wrong": 1}
    naive, exact = check.checks
    assert naive.bias.value == pytest.approx(-0.04 / 3)
    assert naive.rms.value == pytest.approx(np.sqrt(0.0008 / 3))
    assert (naive.coverage.count, naive.coverage.n) == (2, 3)  # 0.12 is in [0.08, 0.12], 0.13 is not in [0.10, 0.12]
    assert exact.coverage is None and exact.rms.value == pytest.approx(0.01 / np.sqrt(3))
    assert check.regions["precision"].value == pytest.approx(0.7) and check.regions["precision"].n == 2
    assert check.regions["recall"].value == pytest.approx(0.2)
    assert check.undecided.count == 1 and check.shown.count == 2
    assert check.table().set_index("estimator").loc["naive", "coverage"] == pytest.approx(2 / 3)


def test_calibration_pays_when_it_does_fleet_by_fleet():
    def check(headline_errors):
        rows = [{"seed": s, "estimator": name, "error": e} for name, errors in
                (("naive", (0.02, -0.03, 0.04)), ("strata", headline_errors)) for s, e in enumerate(errors)]
        return FleetCheck(Setup(), 0.95, pd.DataFrame(), pd.DataFrame(rows))

    gain = check((0.01, 0.01, 0.01)).gain  # 0.0003, 0.0008, 0.0015: their mean, and Student's interval
    low, high = stats.t.interval(0.95, 2, 0.0026 / 3, stats.sem([0.0003, 0.0008, 0.0015]))
    assert (gain.value, gain.lo, gain.hi) == (pytest.approx(0.0026 / 3), pytest.approx(low), pytest.approx(high))
    assert low < 0 < high  # three fleets do not tell
    assert check((0.06, 0.065, 0.07)).gain.hi < 0  # worse in every fleet, by about as much


def test_fleets_without_a_shift_deserve_no_shift():
    check = finish(fleet_steps(300, 20, 0.2, 0.0, shift=False, repeats=2, config=QUICK, jobs=1))
    assert (check.runs["expected"] == "no_shift").all() and (check.runs["gamma_star"] < 1e-12).all()
    assert check.runs["mu_Q"].to_numpy() == pytest.approx(0.2, abs=1e-12)
    assert check.runs["recall"].isna().all()  # nothing is shifted, so nothing can be found


@pytest.mark.parametrize(("settings", "words"), [
    ({"n": 100}, "n is 100"), ({"drives": 5}, "drives is 5"), ({"n": 300, "drives": 400}, "from 10 to 300"),
    ({"event_rate": 0.0}, "event_rate"), ({"drive_share": 0.9}, "drive_share"), ({"repeats": 1}, "repeats is 1"),
])
def test_a_fleet_that_cannot_be_drawn(settings, words):
    with pytest.raises(ConfigError, match=words):
        next(fleet_steps(**settings))


def test_a_fleet_like_the_comparison(clustered_analysis):
    a = clustered_analysis
    setup = setup_of(a, METRIC)
    assert (setup.n, setup.drives) == (3000, 60)
    assert setup.event_rate == a.P.ell[METRIC].mean()
    assert setup.drive_share == pytest.approx(a.global_test.icc, abs=5e-4)
    assert expected_minutes(20_000, 10) > 3 * expected_minutes(2000, 10)


# A simulated corpus ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """4,800 scenarios, 300 in each week and area, of 12 drives each."""
    url = str(tmp_path_factory.mktemp("fleet") / "demo")
    finish(demo_steps(url, FleetConfig(scenarios=4800, seed=21), jobs=1))
    return url


def cohort(url, name, rows, metric="hard_brake"):
    """A cohort of the corpus whose latents are the true parameters of the contexts: nothing to encode."""
    truth = read_truth(url).table.set_index("scenario_id")
    ids = rows["scenario_id"]
    z = truth.loc[ids, [c for c in truth.columns if c.startswith("z_")]].to_numpy()
    lorry = (truth.loc[ids, "situation"] == "cut_in_large").to_numpy(float)[:, None]
    return make_cohort(name, np.hstack([z, 3 * lorry]), drive_id=rows["drive_id"].to_numpy(),
                       ell={metric: rows[metric].to_numpy()}, obs=rows.drop(columns=[metric, "drive_id"]))


def pair_of(url, source, target, metric="hard_brake"):
    corpus = open_corpus(url)
    return [cohort(url, name, corpus.table(query, metrics=[metric]), metric)
            for name, query in (("P", source), ("Q", target))]


@pytest.fixture(scope="module")
def lorries(fleet):
    """Harbor before and during the week of lorries."""
    P, Q = pair_of(fleet, "period=2026-W11,area=harbor", "period=2026-W12,area=harbor")
    return analyze(P, Q, force_localize=True, **QUICK)


def test_truth_of_a_comparison(fleet, lorries, tmp_path):
    save(finish(truth_steps(lorries, fleet)), tmp_path / "truth.avs")
    told, truth = load(tmp_path / "truth.avs"), read_truth(fleet)
    cells = [("harbor", "2026-W11")], [("harbor", "2026-W12")]
    assert isinstance(told, DemoTruth) and (told.source, told.target) == tuple(map(tuple, cells))
    assert told.gamma_star == truth.gamma_star(*cells)
    distance, D = pd.Series(np.abs(told.w - 1)), lorries.P.n_drives
    by_drive = (distance - distance.mean()).groupby(lorries.P.drive).sum()
    assert told.gamma_se == pytest.approx(np.sqrt(D / (D - 1) * (by_drive**2).sum()) / len(distance) / 4)
    assert told.w.mean() == pytest.approx(1, abs=4 * told.w.std() / np.sqrt(len(told.w)))  # E_P[w*] = 1
    assert (1 / told.w_Q).mean() == pytest.approx(1, abs=0.2)  # E_Q[1 / w*] = 1
    rate = told.rates["hard_brake"]
    assert told.version == "v4.1" and told.other_version == ()
    assert rate.mu_Q == pytest.approx(truth.mean("hard_brake", "v4.1", cells[1][0]), abs=1e-12)
    assert rate.mu_P == pytest.approx(truth.mean("hard_brake", "v4.1", cells[0][0]), abs=1e-12)
    assert rate.exact == pytest.approx(np.average(lorries.P.ell["hard_brake"], weights=told.w))
    assert 0 < rate.se_Q < 0.05 and rate.lo < rate.mu_Q < rate.hi
    assert told.weight_error(told.w / told.w.mean()) < told.weight_error(np.ones(len(told.w)))


def test_weights_are_those_of_the_scenarios_in_the_cohorts_order(fleet, lorries):
    """Lorries are 3.4 times as likely in the target week: their exact ratio is the largest there is."""
    told = finish(truth_steps(lorries, fleet))
    situation = read_truth(fleet).table.set_index("scenario_id")["situation"]
    lorry = (situation.loc[lorries.P.obs["scenario_id"]] == "cut_in_large").to_numpy()
    assert told.w[lorry].min() > told.w[~lorry].max()
    assert 2 < told.w[lorry].mean() < 3.4  # odds of all situations are normalised again


def test_regions_are_judged_by_exact_ratios(fleet, lorries):
    told = finish(truth_steps(lorries, fleet))
    off = np.concatenate([np.abs(told.w - 1), np.abs(told.w_Q - 1)]) > 0.2
    inside = np.concatenate([lorries.local.region_P, lorries.local.region_Q]) >= 0
    assert len(told.regions) == len(lorries.local.regions)
    if inside.any():
        assert told.precision == pytest.approx(off[inside].mean())
        first = told.regions[0]
        assert first.w_true == pytest.approx(told.w[lorries.local.region_P == 0].mean())
        assert first.right_way == ((first.w_true > 1) == (first.direction == "target_heavy"))
    assert told.recall == pytest.approx(inside[off].mean())
    table = told.table(lorries, 10.0)
    assert set(table["estimator"]) >= {"naive", "strata", "target"} and (table["metric"] == "hard_brake").all()
    np.testing.assert_allclose(table["error"], table["mu"] - told.rates["hard_brake"].mu_Q)
    assert len(told.region_table()) == len(told.regions)


def test_an_exceedance_has_its_truth_too(fleet):
    P, Q = pair_of(fleet, "period=2026-W11,area=harbor", "period=2026-W12,area=harbor", "ttc_min_s<2")
    analysis = analyze(P, Q, **QUICK)
    told = finish(truth_steps(analysis, fleet))
    truth = read_truth(fleet)
    below = (truth.table["ttc_min_s@v4.1"] < 2).to_numpy(float)
    assert told.rates["ttc_min_s<2"].mu_Q == pytest.approx(
        replace(truth, table=truth.table.assign(**{"below@v4.1": below})).mean("below", "v4.1", ("harbor", "2026-W12")))


def test_another_car_in_q_is_named(fleet):
    P, Q = pair_of(fleet, "period=2026-W11,area=harbor", "period=2026-W16,area=harbor")
    told = finish(truth_steps(analyze(P, Q, **QUICK), fleet))
    assert told.other_version == ("v4.2",) and told.version == "v4.1"
    assert told.gamma_star == pytest.approx(0, abs=1e-9) and told.expected == "no_shift"  # the same traffic


def test_a_mixture_of_cars_in_p_has_no_rate(fleet):
    P, Q = pair_of(fleet, "period=2026-W11|2026-W16,area=harbor", "period=2026-W12,area=harbor")
    told = finish(truth_steps(analyze(P, Q, **QUICK), fleet))
    assert not told.rates and "mixes AV versions v4.1, v4.2" in told.rates_reason
    assert told.gamma_star > 0.01


def test_a_part_of_a_week_cannot_be_told(fleet, lorries):
    keep = np.arange(lorries.P.n) % 2 == 0
    half = replace(lorries, P=replace(lorries.P, obs=lorries.P.obs[keep].reset_index(drop=True)))
    told = finish(truth_steps(half, fleet))
    assert isinstance(told, Untold)
    assert told.reason.startswith("P holds 150 of the 300 scenarios of harbor 2026-W11.")
    assert "period and area alone" in told.reason


def test_what_is_no_fleet_is_said(fleet, lorries, tmp_path):
    told = finish(truth_steps(lorries, str(tmp_path / "elsewhere")))
    assert isinstance(told, Untold) and "no simulated fleet" in told.reason
    foreign = replace(lorries, Q=replace(lorries.Q, obs=lorries.Q.obs.assign(area="mars")))
    assert "does not know the scenarios of Q" in finish(truth_steps(foreign, fleet)).reason
    renamed = lorries.P.obs.assign(scenario_id=["new", *lorries.P.obs["scenario_id"][1:]])
    other = replace(lorries, P=replace(lorries.P, obs=renamed))
    assert "does not know scenario 'new' of P" in finish(truth_steps(other, fleet)).reason
    assert cells_of(replace(lorries.P, obs=pd.DataFrame(index=range(300)))) == ()


def test_a_truth_that_cannot_be_read_is_said(fleet, lorries, monkeypatch):
    monkeypatch.setattr(simulated, "plan_of", lambda config: {})
    assert "another version" in finish(truth_steps(lorries, fleet)).reason


# Figures --------------------------------------------------------------------------------------------------------------


def test_figures_show_what_was_measured(check, fleet, lorries):
    errors = figures.errors_figure(check)
    by_name = {(t.name, t.xaxis): t for t in errors.data}
    assert by_name["Cell by cell", "x2"].x[0] == pytest.approx(100 * check.check("strata").rms.value)
    assert by_name["Observed in P", "x"].x[0] == pytest.approx(100 * check.check("naive").bias.value)
    coverage = {t.name: t.x[0] for t in figures.coverage_figure(check).data}
    assert coverage["Cell by cell"] == pytest.approx(100 * check.check("strata").coverage.value)
    assert "Exact weights" not in coverage
    bars = figures.verdicts_figure(check.verdicts).data
    assert sum(bar.x[0] for bar in bars) == 3
    dots = figures.regions_figure(check).data
    assert len([t for t in dots if t.name == "one repeat"]) == 2
    assert list(figures.advantages_figure(check).data[0].y) == list(check.runs["gamma_hat"])
    told = finish(truth_steps(lorries, fleet))
    drawn = figures.truth_figure(lorries.calibrate(10.0).estimates(), told.rates["hard_brake"], None)
    assert drawn.layout.shapes[1].x0 == pytest.approx(100 * told.rates["hard_brake"].mu_Q)
    assert next(t for t in drawn.data if t.name == "Cell by cell").marker.symbol == "diamond-open"  # withheld
    assert len(figures.weights_figure(told, lorries.calibrator.cells.weights(10.0), most=100).data[0].x) == 100
