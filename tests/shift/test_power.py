"""What the data can decide, and what further scenarios would do: formulas against hand and simulation."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.power import PER, PlanGroup, cut_tree, plan, power_of
from avshift_core.shift.version_report import plan_table, power_words
from avshift_core.shift.version_split import REFERENCES, split_of
from tests.shift.test_versions import by_hand


def split_with(part: Estimate):
    analysis, fit = by_hand([1, 0], [0, 0], [1, 0], [0, 0], [True])
    return replace(split_of(analysis, fit, "ell"), performance=dict.fromkeys(REFERENCES, part), drives_P=50,
                   drives_Q=80, in_P=1000, in_Q=2000)


def said(verdict):
    """As much of a comparison of versions as the words need."""
    return SimpleNamespace(version_A="v1", version_B="v2", verdict=lambda metric: verdict)


def test_power_by_hand():
    # 50 and 80 drives: t_0.975 + t_0.8 with 49 degrees of freedom = 2.00958 + 0.84902 = 2.85859
    power = power_of(split_with(Estimate(-0.01, -0.0296, 0.0096, 0.01)), AnalysisConfig())
    assert power.detectable == pytest.approx(0.0285859, abs=1e-6)
    assert power.factor == pytest.approx(2.85859**2, rel=1e-5)
    assert (power.drives_P, power.drives_Q, power.n_P, power.n_Q) == (409, 654, 8172, 16344)  # rounded up
    assert not power.decided
    assert "about 409 drives (8,172 scenarios in common traffic) of v1" in power_words(power, said("inside noise"))
    for verdict in ("too few events", "not to be trusted"):
        assert "not told" in power_words(power, said(verdict)) and "drives" not in power_words(power, said(verdict))


def test_what_would_decide_it_asks_all_references():
    # the smallest in units of its error counts: 2.85859 * 0.009 / 0.015 in P's traffic
    split = split_with(Estimate(0.03, 0.014, 0.046, 0.008))
    split = replace(split, performance={"P": Estimate(0.015, -0.003, 0.033, 0.009), "mean": split.performance["mean"],
                                        "Q": Estimate(0.045, 0.027, 0.063, 0.009)})
    power = power_of(split, AnalysisConfig())
    assert power.factor == pytest.approx((2.85859 * 0.009 / 0.015) ** 2, rel=1e-5) and not power.decided
    assert power.detectable == pytest.approx(2.85859 * 0.009, rel=1e-5)
    turned = replace(split, performance={**split.performance, "P": Estimate(-0.02, -0.03, -0.01, 0.005)})
    assert power_of(turned, AnalysisConfig()).factor is None
    assert "opposite sides" in power_words(power_of(turned, AnalysisConfig()), said("depends on the traffic"))


@pytest.mark.parametrize("drives", [6, 10, 50, 1000])
def test_the_detectable_difference_is_seen_with_probability_08(drives):
    """By the noncentral t distribution of the ratio that the verdict looks at."""
    split = replace(split_with(Estimate(0.02, -0.01, 0.05, 0.015)), drives_P=drives, drives_Q=2 * drives)
    power = power_of(split, AnalysisConfig())
    limit = stats.t.ppf(0.975, drives - 1)
    seen = stats.nct.sf(limit, drives - 1, power.detectable / power.se)  # the other tail is below 1e-4
    assert seen == pytest.approx(0.8, abs=0.02)


def test_a_difference_of_zero_is_never_decided():
    power = power_of(split_with(Estimate(0.0, -0.02, 0.02, 0.01)), AnalysisConfig())
    assert power.factor is None and power.n_P is None
    assert "no amount of data" in power_words(power, said("inside noise"))


def test_the_tree_is_cut_from_the_top():
    tree = np.array([[0, 1], [2, 3], [4, 5]])
    assert cut_tree(tree, 4, 1).tolist() == [0, 0, 0, 0]
    assert cut_tree(tree, 4, 3).tolist() == [2, 2, 0, 1]
    assert len(set(cut_tree(tree, 4, 9))) == 4


RATES = ([0.1, 0.5, 0.3], [0.2, 0.4, 0.3])  # of A and B in three kinds of traffic
SHARES = ([0.3, 0.1, 0.6], [0.2, 0.5, 0.3])
LENGTH = 5  # scenarios of a drive, all of one kind, with a common lean to events


def drive_events(rng, kind, version):
    """(drives, LENGTH) events; half of the drives lean by 0.1 to more, half to less."""
    rate = np.array(RATES[version])[kind] + rng.choice([-0.1, 0.1], len(kind))
    return rng.random((len(kind), LENGTH)) < rate[:, None]


def draw(rng, drives=(300, 240)):
    """Kinds (drives,) and events (drives, LENGTH) of both cohorts."""
    kinds = [rng.choice(3, D, p=SHARES[side]) for side, D in enumerate(drives)]
    return kinds, [drive_events(rng, kind, side) for side, kind in enumerate(kinds)]


def estimate(kinds, events, extra=None):
    """Mean of both references without models: sum_k (p_k + q_k) / 2 (B_k - A_k); `extra` joins A in kind 1 only."""
    share = [np.bincount(k, minlength=3) / len(k) for k in kinds]
    rate = [np.array([e[k == kind].mean() for kind in range(3)]) for k, e in zip(kinds, events, strict=True)]
    if extra is not None:
        rate[0][1] = np.concatenate([events[0][kinds[0] == 1], extra]).mean()
    return (share[0] + share[1]) / 2 @ (rate[1] - rate[0])


def planned(kinds, events):
    """The planner on one draw."""
    of = [np.repeat(k, LENGTH) for k in kinds]
    drive = [np.repeat(np.arange(len(k)), LENGTH) for k in kinds]
    analysis, fit = by_hand(events[0].ravel() * 1.0, of[0], events[1].ravel() * 1.0, of[1], [True] * 3, *drive)
    analysis.space = SimpleNamespace(cells=SimpleNamespace(n=3), cell=np.concatenate(of))
    analysis.sample = SimpleNamespace(y=np.repeat([0, 1], [len(o) for o in of]))
    analysis.P, analysis.Q = (SimpleNamespace(n=len(o)) for o in of)
    groups = tuple(PlanGroup(f"kind {k}", "", (k,), True, "", 0, 0, 0, 0, 0) for k in range(3))
    return analysis, fit, groups, plan(analysis, fit, groups, "ell")


def test_the_plan_against_simulation():
    """1,000 further scenarios of kind 1 by A: the planner's narrower interval is what happens to the estimate."""
    rng = np.random.default_rng(0)
    now, after, told = [], [], []
    for i in range(1500):
        kinds, events = draw(rng)
        further = drive_events(rng, np.ones(PER // LENGTH, dtype=int), 0)
        now.append(estimate(kinds, events))
        after.append(estimate(kinds, events, further))
        if i < 20:
            analysis, fit, _, rows = planned(kinds, events)
            split = split_of(analysis, fit, "ell")
            assert split.performance["mean"].mu == pytest.approx(now[-1], abs=1e-12)
            row = next(r for r in rows if r.group == 1 and r.version == "A")
            half = (split.performance["mean"].hi - split.performance["mean"].lo) / 2
            assert row.half_width + row.gain == pytest.approx(half, rel=1e-6)
            told.append((row.half_width / half) ** 2)
    happened = np.var(after) / np.var(now)
    assert happened < 0.8 and np.mean(told) == pytest.approx(happened, abs=0.06)  # four standard errors of the ratio


def test_the_plan_is_ordered_and_leaves_out_what_is_not_comparable():
    kinds, events = draw(np.random.default_rng(1))
    analysis, fit, groups, rows = planned(kinds, events)
    assert [r.gain for r in rows] == sorted((r.gain for r in rows), reverse=True)
    assert sum(r.variance_share for r in rows) < 1 and all(r.effective >= 0 for r in rows)
    lonely = (*groups[:2], replace(groups[2], common=False, lacking="B", needed=12))
    kept = plan(analysis, fit, lonely, "ell")
    assert {r.group for r in kept} == {0, 1}
    found = SimpleNamespace(version_A="v1", version_B="v2", groups=lonely)
    table = plan_table(kept, found, "ell")
    assert len(table) == 5 and table.loc[~table["comparable"], "version"].tolist() == ["v2"]
