import numpy as np
import pandas as pd
import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cohort import make_cohort
from avshift_core.quality.drivewise import Estimate
from avshift_core.quality.shifts import ShiftKept, kept_over_all, pairs_of, shift_kept, version_pair
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.simulate.truth import Truth, plan_of

QUICK = AnalysisConfig(classifier="cells", repeats=1, n_perm=19)
CELLS = pd.DataFrame([(area, period, version) for period, (_, version) in FleetConfig().weeks.items()
                      for area in ("harbor", "old_town")], columns=["area", "period", "av_version"])


def sides(move, seed=0, n=1500, drives=50):
    rng = np.random.default_rng(seed)
    drive = np.arange(n) % drives
    return tuple(make_cohort(name, rng.normal(size=(n, 3)) + np.array([shift, 0, 0]),
                             drive_id=[f"{name}{d}" for d in drive]) for name, shift in (("P", 0.0), ("Q", move)))


def test_pairs_of_the_demo_fleet():
    names = [pair.name for pair in pairs_of(CELLS)]
    assert len(names) == 2 * (5 + 1) + 2  # six weeks of one version and two of the other, in two areas; two of areas
    assert "harbor 2026-W10 -> 2026-W11" in names and "harbor 2026-W15 -> 2026-W16" not in names
    assert names[-2:] == ["2026-W10 harbor -> old_town", "2026-W11 harbor -> old_town"]
    assert pairs_of(CELLS)[0].cells == ([("harbor", "2026-W10")], [("harbor", "2026-W11")])


def test_one_week_of_one_area_has_no_pair():
    assert pairs_of(CELLS[:1]) == []


def test_versions_are_compared_in_the_same_traffic():
    truth = Truth((), pd.DataFrame(), np.zeros((0, 0)), plan_of(FleetConfig()))
    pair = version_pair(CELLS, truth)
    assert pair.name == "2026-W11 v4.1 -> 2026-W16 v4.2"  # W10, W11 and W16 are weeks as usual; W11 is the last
    assert pair.source.area == ("harbor", "old_town")
    assert version_pair(CELLS[CELLS["av_version"] == "v4.1"], truth) is None


def test_the_same_space_keeps_all_of_it():
    pair = sides(1.0)
    found = shift_kept("P -> Q", pair, pair, 0.19, QUICK)
    assert found.ratio == 1 and found.verdict_z == found.verdict_contexts
    assert found.gamma_z.lo > 0.1
    whole = kept_over_all([found], 0.01)
    assert whole.value == whole.lo == whole.hi == 1


def test_noise_keeps_nothing_and_is_told_so():
    context, noise = sides(1.0), sides(0.0, seed=3)
    found = shift_kept("P -> Q", noise, context, 0.19, QUICK, view="context")
    assert (found.verdict_z, found.view) == ("no_shift", "context")
    kept = kept_over_all([found], 0.01)
    assert kept.hi < 0.4 and kept.lo < 0.1


def test_without_truth_the_latents_alone_are_told():
    found = shift_kept("P -> Q", sides(1.0), None, None, QUICK)
    assert found.gamma_contexts is None and found.ratio is None and not found.is_same
    assert kept_over_all([found], 0.01) is None


def kept(z, contexts, star):
    return ShiftKept("p", "full", 1, 1, Estimate(max(z, 0), 0, 1), "localize", 0.03, Estimate(max(contexts, 0), 0, 1),
                     "localize", star, (z, z), (contexts, contexts))


def test_pairs_are_chosen_by_the_truth_and_summed():
    shifts = [kept(0.04, 0.05, 0.05), kept(-0.01, 0.02, 0.03), kept(0.5, 0.0, 0.0), kept(0.2, 0.1, 0.005)]
    assert kept_over_all(shifts, 0.01).value == pytest.approx(0.03 / 0.07)  # the first two; -0.01 counts as it is
    assert [s.is_same for s in shifts] == [False, False, True, False]
    assert shifts[2].ratio is None
