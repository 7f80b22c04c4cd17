"""Regions described: masses with intervals, names, scenes; and scenarios that stand for others."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from avshift_core.shift.breakdown import contributions
from avshift_core.shift.drives import Pool
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.regions import (
    describe_regions,
    design_in,
    fewer_drives,
    in_regions,
    mass,
    pooled_attributes,
    ratio_of,
    region_scenarios,
    region_shares,
    region_table,
)
from avshift_core.shift.representatives import representatives


@pytest.fixture(scope="module")
def described(line_analysis):
    return describe_regions(line_analysis)


def test_masses_are_those_of_the_local_test_and_the_truth_lies_in_their_intervals(line_analysis, described):
    local = line_analysis.local
    assert len(described.regions) == len(local.regions) >= 1
    for facts, region in zip(described.regions, local.regions, strict=True):
        assert (facts.p.mu, facts.q.mu) == pytest.approx((region.p_k, region.q_k))
        assert facts.p.lo <= region.p_k <= facts.p.hi and facts.q.lo <= region.q_k <= facts.q.hi
        # localized Q = 0.9 P + 0.1 N(2, 0.12); P = 0.7 N(0, 1) + 0.3 N(4, 0.8): the true masses of the region
        inside = np.sort(np.concatenate([line_analysis.P.z[local.region_P == facts.region.k - 1, 0],
                                         line_analysis.Q.z[local.region_Q == facts.region.k - 1, 0]]))
        low, high = inside[0], inside[-1]
        p = sum(w * np.diff(stats.norm.cdf([low, high], m, s))[0] for w, m, s in ((0.7, 0, 1), (0.3, 4, 0.8)))
        q = 0.9 * p + 0.1 * np.diff(stats.norm.cdf([low, high], 2, 0.12))[0]
        assert facts.p.lo - 0.02 <= p <= facts.p.hi + 0.02 and facts.q.lo - 0.02 <= q <= facts.q.hi + 0.02
        assert facts.more_in == "Q" and facts.title == f"R{facts.region.k}"


def test_a_table_without_attributes_still_names_its_regions(described):
    assert described.regions[0].name.startswith("region R1, ") and described.regions[0].name.endswith(" x in Q")
    assert described.regions[0].differences == ()


def test_the_table_has_weights_at_the_clip_and_contributions(line_analysis, described):
    metric = line_analysis.metrics[0]
    table = region_table(described, line_analysis, metric, 1.2)
    region = line_analysis.local.regions[0]
    assert table.loc[0, "weight"] == min(region.q_k / region.p_k, 1.2) == 1.2
    assert region_table(described, line_analysis, metric, 20.0).loc[0, "weight"] == pytest.approx(region.w_k)
    moves = {c.name: c.move.mu for c in contributions(line_analysis, metric, 1.2)}
    assert table.loc[0, "contribution"] == pytest.approx(moves["R1"])
    assert region_table(described, line_analysis, None, 1.2)["contribution"].isna().all()


def test_what_the_cohorts_were_chosen_by_is_no_attribute_of_a_region(line_analysis):
    P, Q = line_analysis.P, line_analysis.Q
    extra = {"kind": ["a", "b"] * (P.n // 2), "lists": [[1]] * P.n}
    analysis = replace(line_analysis, P=replace(P, obs=pd.DataFrame({"area": "harbor", **extra}, index=range(P.n))),
                       Q=replace(Q, obs=pd.DataFrame({"area": "old_town", **extra}, index=range(Q.n))))
    assert [a.column for a in pooled_attributes(analysis).categories] == ["kind"]


def test_scenarios_of_a_region_are_those_of_its_cells(line_analysis, described):
    facts, local = described.regions[0], line_analysis.local
    table = region_scenarios(line_analysis, facts)
    assert table["cohort"].value_counts().to_dict() == {
        "P": int((local.region_P == 0).sum()), "Q": int((local.region_Q == 0).sum())}


def test_shares_of_the_regions_with_and_without_their_description(line_analysis, described):
    shares, local = region_shares(line_analysis), line_analysis.local
    assert [(s.p, s.q, s.ratio) for s in shares] == [(f.p, f.q, f.ratio) for f in described.regions]
    whole = in_regions(line_analysis)
    assert whole.p.mu == pytest.approx(sum(s.p.mu for s in shares)) and whole.p.lo < whole.p.mu < whole.p.hi
    assert whole.q.mu == pytest.approx((local.region_Q >= 0)[local.measure_Q].mean())


def test_scenes_lie_in_their_region(line_analysis, described):
    for facts in described.regions:
        k = facts.region.k - 1
        assert 3 <= len(facts.scenes_P) <= 6 and 3 <= len(facts.scenes_Q) <= 6
        assert all(line_analysis.local.region_P[row] == k for row in facts.scenes_P)
        assert all(line_analysis.local.region_Q[row] == k for row in facts.scenes_Q)


def test_without_a_local_test_there_is_nothing_to_describe(line_analysis):
    stopped = replace(line_analysis, local=None, local_paper=None)
    empty = describe_regions(stopped)
    assert empty.regions == empty.violations == region_shares(stopped) == ()
    assert list(region_table(empty, stopped, None, 10.0).columns)[:2] == ["region", "name"]


def test_a_mass_by_hand():
    """Drives of 2, 2 and 4 scenarios with 1, 0 and 2 inside: 3/8; sum (C - p n)^2 = (1/4)^2 + (3/4)^2 + (1/2)^2."""
    drive = np.repeat([0, 1, 2], [2, 2, 4])
    inside = np.array([1, 0, 0, 0, 1, 1, 0, 0], dtype=bool)
    found = mass(inside, np.ones(8, bool), drive)
    assert found.mu == 3 / 8 and found.se == pytest.approx(np.sqrt(3 / 2 * (1 / 16 + 9 / 16 + 4 / 16)) / 8)
    assert found.lo < 3 / 8 < found.hi
    assert mass(inside, drive < 2, drive).mu == 1 / 4 and mass(inside, np.zeros(8, bool), drive).hi == 1.0


def test_intervals_of_masses_and_ratios_hold_where_drives_are_alike():
    rng, runs, hits, ratios = np.random.default_rng(0), 300, 0, 0
    drive = np.repeat(np.arange(60), 15)
    for _ in range(runs):
        shares = [rng.beta(2 * m, 2 * (1 - m) * 9, size=60)[drive] for m in (0.2, 0.4)]  # means below
        p, q = (mass(rng.random(900) < share, np.ones(900, bool), drive) for share in shares)
        true = [2 * m / (2 * m + 2 * (1 - m) * 9) for m in (0.2, 0.4)]
        hits += p.lo <= true[0] <= p.hi
        ratio = ratio_of(p, q, 60)
        ratios += ratio.lo <= true[1] / true[0] <= ratio.hi
    assert 0.91 <= hits / runs <= 0.995 and 0.9 <= ratios / runs <= 0.99
    assert ratio_of(mass(np.zeros(900, bool), np.ones(900, bool), drive), p, 60) is None


def test_a_ratio_has_no_interval_without_spread_and_a_wide_one_with_few_drives():
    drive, whole = np.repeat(np.arange(8), 10), np.ones(80, bool)
    same = mass(np.arange(80) % 10 < 3, whole, drive)  # 3 of 10 in every drive
    assert same.se < 1e-12 and ratio_of(same, same, 8) is None
    p, q = Estimate(0.1, 0, 1, 0.01), Estimate(0.2, 0, 1, 0.02)
    assert ratio_of(p, q, 1) is None
    assert ratio_of(p, q, 4).hi == pytest.approx(2 * np.exp(3.18245 * np.sqrt(0.02)), rel=1e-5)  # t of 3, 97.5 %


def test_a_share_of_nothing_knows_that_drives_are_alike():
    drive, y = np.repeat(np.arange(60), 10), np.repeat([0, 1], 300)
    sample = Pool(y, drive, np.repeat([0, 1], 30), np.arange(60))
    inside = np.isin(drive, [30, 31, 32])  # whole drives of Q, none of P
    assert design_in(inside, sample, 1) == design_in(inside, sample, 0) == pytest.approx(10 * 30 / 29)
    plain, wide = (mass(inside, y == 0, drive, 0.95, design) for design in (1.0, design_in(inside, sample, 0)))
    # no event in 30 * 29 / 30 independent scenarios, and fewer for 30 drives: above 1 - 0.025^(1/29)
    assert plain.mu == wide.mu == 0 and plain.hi < 0.02 and 0.11 < 1 - 0.025 ** (1 / 29) < wide.hi < 0.15
    assert fewer_drives(sample) == 30 and fewer_drives(sample, drive >= 20) == 10


def test_representatives_come_from_the_middle_one_a_drive():
    rng = np.random.default_rng(1)
    X, drive = rng.normal(size=(500, 8)), np.arange(500) // 10
    rows = np.arange(100, 300)
    found = representatives(X, rows, drive)
    distance = np.linalg.norm(X[rows] - X[rows].mean(axis=0), axis=1)
    assert len(found) == 6 and set(found) <= set(rows.tolist()) and len({drive[r] for r in found}) == 6
    assert found[0] == rows[distance.argmin()]
    assert all(distance[r - 100] <= np.median(distance) for r in found)
    apart = np.linalg.norm(X[list(found)][:, None] - X[list(found)][None], axis=2)[np.triu_indices(6, 1)].min()
    nearest = rows[np.argsort(distance)[:6]]
    assert apart > np.linalg.norm(X[nearest][:, None] - X[nearest][None], axis=2)[np.triu_indices(6, 1)].min()


def test_representatives_of_little():
    X = np.arange(12.0).reshape(-1, 1)
    assert representatives(X, [], np.arange(12)) == ()
    assert representatives(X, [3], np.arange(12)) == (3,)
    assert len(representatives(X, np.arange(12), np.zeros(12))) == 1
    assert representatives(pd.DataFrame(X).to_numpy(), np.arange(12), np.arange(12) % 2, most=4)[0] in (5, 6)
    many = np.zeros((20_000, 2))
    assert len(representatives(many, np.arange(20_000), np.arange(20_000))) == 6
