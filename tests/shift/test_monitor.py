"""The monitor on histories whose truth is known: what trains is never ranked, a week more changes nothing before it."""

import numpy as np
import pytest
from scipy import stats

from avshift_core.archive import load, save
from avshift_core.errors import CohortError, ConfigError
from avshift_core.latent.history import make_history
from avshift_core.progress import finish
from avshift_core.shift import monitor as module
from avshift_core.shift.eprocess import log_wealth
from avshift_core.shift.monitor import TRAFFIC, MonitorConfig, least_reference, monitor_steps, trains
from avshift_core.shift.rates import rate_interval
from avshift_core.shift.scoring import train_and_score

QUICK = MonitorConfig(classifier="logistic")


def history(weeks=4, *, drives=30, per=6, reference=2, move=0.0, rate=None, start=0, seed=0, name=""):
    """Latents in three dimensions with drive effects; from watched week `start` on moved, and with another event rate.

    Every week has random numbers of its own, so that a longer history begins like a shorter one.
    """
    z, ell, week, drive = [], [], [], []
    for k in range(reference + weeks):
        rng = np.random.default_rng([seed, k])
        later = k >= reference + start
        effect = np.repeat(0.5 * rng.normal(size=(drives, 3)), per, axis=0)
        z.append(effect + rng.normal(size=(drives * per, 3)) + [move * later, 0, 0])
        ell.append((rng.random(drives * per) < (rate if rate is not None and later else 0.3)) * 1.0)
        week += [k] * (drives * per)
        drive += [f"{name}{seed}-{k}-{d:03d}" for d in range(drives) for _ in range(per)]
    return make_history([f"W{k:02d}" for k in range(reference + weeks)], reference, week, drive, z=np.concatenate(z),
                        ell={"event": np.concatenate(ell)})


def run(h, config=QUICK, **more):
    return finish(monitor_steps(h, config, **more))


@pytest.mark.parametrize("classifier", ["logistic", "cells", "auto"])
def test_a_week_more_leaves_the_earlier_ones_as_they_are(classifier):
    config = MonitorConfig(classifier=classifier)
    short, long_ = (run(history(weeks, move=0.7, start=1), config) for weeks in (1, 2))
    assert [w.period for w in long_.weeks[:3]] == [w.period for w in short.weeks]
    for a, b in zip(short.streams, long_.streams, strict=True):
        n = len(a.week)
        assert n < len(b.week) and a.name == b.name and a.rates == b.rates[:3]
        for field in ("week", "p_value", "log_wealth"):
            assert getattr(a, field).tolist() == getattr(b, field)[:n].tolist()


def test_what_trains_is_never_ranked_and_never_of_a_later_week(monkeypatch):
    h, calls = history(3), []
    row_of = {h.z[i].tobytes(): i for i in range(len(h.z))}

    def spy(kind, z, y, unit, z_test, **more):
        calls.append(([row_of[r.tobytes()] for r in z], [row_of[r.tobytes()] for r in z_test], y))
        return train_and_score(kind, z, y, unit, z_test, **more)

    monkeypatch.setattr(module, "train_and_score", spy)
    run(h)
    training = trains(h, QUICK)
    assert 0.3 < training.mean() < 0.7 and len(calls) == 3
    for t, (learned, scored, y) in enumerate(calls, start=2):
        assert training[h.unit[learned]].all() and not training[h.unit[scored]].any()
        assert h.week[learned].max() == h.week[scored].max() == t
        assert (y == (h.week[learned] >= 2)).all()


def test_the_newest_week_has_half_the_say(monkeypatch):
    weights = []
    monkeypatch.setattr(module, "train_and_score", lambda kind, z, y, unit, z_test, weight, seed: (
        weights.append((y, weight)), np.zeros(len(z_test)))[1])
    h = history(3)
    run(h)
    assert (weights[0][1] == 1).all()
    y, weight = weights[2]
    later = h.week[trains(h, QUICK)[h.unit]][y == 1]
    assert weight[y == 1][later == 4].sum() == pytest.approx(0.5) == pytest.approx(weight[y == 1][later < 4].sum())


def test_a_change_is_found_where_it_is_and_nowhere_else():
    m = run(history(4, drives=60, move=1.2, start=2))
    assert m.threshold == 2 / 0.05  # two streams at 0.05
    assert m.alarms == {TRAFFIC: 4} and m.first_alarm == 4 and m.weeks[4].period == "W04"
    traffic, event = m.streams
    assert traffic.largest >= np.log(40) > event.largest
    assert m.p_anytime(traffic) == pytest.approx(2 * np.exp(-traffic.largest)) and m.p_anytime(event) <= 1
    assert traffic.at_end_of(1) == 0.0 and traffic.at_end_of(5) == traffic.log_wealth[-1]
    assert not run(history(4, drives=60)).alarms


@pytest.mark.parametrize("rate", [0.12, 0.55])
def test_a_rate_may_fall_or_rise(rate):
    m = run(history(3, drives=60, rate=rate, start=1), traffic=False)
    assert m.threshold == 20 and list(m.alarms) == ["event"] and m.first_alarm == 3
    assert m.streams[0].ranked == (60,) * 5  # nothing is trained: every drive is ranked
    assert m.streams[0].rates[4].mu == pytest.approx(rate, abs=0.08)


def test_rates_have_their_intervals():
    value = np.tile([1.0, 0, 0, 0], 60)  # four scenarios in each of sixty drives, one of them with the event
    h = make_history(("a", "b"), 1, np.repeat([0, 1], 120), np.repeat(np.arange(60), 4).astype(str), ell={"e": value})
    first = run(h, traffic=False).streams[0].rates[0]
    assert (first.mu, first.lo, first.hi) == (0.25, *rate_interval(0.25, 0.0, 120, 30, 0.95, 1.0))
    h = make_history(("a", "b"), 1, np.repeat([0, 1], 120), np.repeat(np.arange(60), 4).astype(str),
                     ell={"e": 10 + np.arange(240.0)})
    first = run(h, traffic=False).streams[0].rates[0]
    means = 10 + np.arange(120.0).reshape(30, 4).mean(axis=1)  # Student's interval of thirty drive means
    assert (first.lo, first.hi) == pytest.approx(stats.t.interval(0.95, 29, means.mean(), stats.sem(means)))


def test_a_week_without_drives_to_train_on_is_no_evidence(monkeypatch):
    h = history(2)
    monkeypatch.setattr(module, "trains", lambda h, config: (h.unit_week < 2) & (np.arange(h.n_units) % 2 == 0))
    p = run(h).streams[0].p_value
    assert len(p) == 60 and stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.slow
def test_ranks_are_uniform_and_independent_with_scores_that_change_every_week():
    p = np.concatenate([run(history(4, seed=s)).streams[0].p_value for s in range(20)])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert stats.pearsonr(p[:-1], p[1:]).pvalue > 0.01


def test_days_train_and_are_ranked_in_turn():
    h = make_history(("a", "b", "c"), 2, np.repeat(np.arange(3), 70), np.repeat(np.arange(21), 10).astype(str),
                     z=np.random.default_rng(0).normal(size=(210, 2)))
    assert trains(h, MonitorConfig(unit="day")).tolist() == [True, False] * 10 + [True]
    m = run(h, MonitorConfig(classifier="logistic", unit="day"))
    assert m.streams[0].ranked == (3, 4, 3)


def test_results_can_be_kept(tmp_path):
    m = run(history(2))
    save(m, tmp_path / "m.avs")
    kept = load(tmp_path / "m.avs")
    assert kept.config == m.config and kept.weeks == m.weeks and kept.alarms == m.alarms
    assert all((a.p_value == b.p_value).all() for a, b in zip(m.streams, kept.streams, strict=True))


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, float("nan")])
def test_alpha_is_a_chance(alpha):
    with pytest.raises(ConfigError, match="must lie between 0 and 1"):
        MonitorConfig(alpha=alpha)


@pytest.mark.parametrize(("settings", "sentence"), [
    ({"seed": -1}, "seed is -1"), ({"unit": "hour"}, "unit is 'hour'; choose one of drive, day"),
    ({"classifier": "oracle"}, "classifier is 'oracle'"),
])
def test_settings_outside_of_their_range(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        MonitorConfig(**settings)


def test_too_short_a_reference_says_how_many_are_needed():
    h = history(2, drives=6, reference=1)
    with pytest.raises(CohortError, match=r"The reference has 6 drives \(\d to train on and \d to rank\); at least 5 "
                       r"of each are needed\. Even if everything changed.* from \d+ ranked ones on\. Choose a longer"):
        run(h)
    with pytest.raises(CohortError, match="The reference has 4 drives; at least 5 of them"):
        run(history(2, drives=4, reference=1), traffic=False)
    with pytest.raises(ConfigError, match="nothing to watch"):
        run(make_history(("a", "b"), 1, [0, 1], ["x", "y"]), traffic=False)


def test_the_least_reference_is_the_least():
    rng, least = np.random.default_rng(0), least_reference(20, 40, two_sided=False)
    j, found = np.arange(1, 21), []
    for m in (least // 2, 2 * least):  # twenty drives beyond m others, at random places among each other
        ever = [log_wealth(rng.random(20) * j / (m + j), two_sided=False).max() >= np.log(40) for _ in range(100)]
        found.append(np.mean(ever))
    assert 5 <= least <= 30 and found[0] < 0.5 < found[1]
    assert least_reference(20, 4000, two_sided=False) > least > least_reference(60, 40, two_sided=False)
    assert least_reference(1, 1e9, two_sided=False) is None
