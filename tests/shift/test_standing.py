"""Where a scenario stands: its region, posterior and weight are those of the analysis."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import CohortError
from avshift_core.latent.benchmark import manifold_case
from avshift_core.latent.cohort import Rest, with_rest
from avshift_core.latent.inverted import Found
from avshift_core.latent.retrieve import anchor_of, find_anchor, neighbours
from avshift_core.shift.analyze import analyze
from avshift_core.shift.standing import (
    found_table,
    neighbour_table,
    random_scenario,
    region_examples,
    region_rows,
    scenario_ids,
    standing,
)


@pytest.fixture(scope="module")
def analysis():
    pair = manifold_case(3000, 60, seed=2)

    def named(cohort, name):
        ids = [f"{name}-{i}" for i in range(cohort.n)]
        category = np.where(cohort.z[:, 0] > 0, "a", "b")
        return replace(cohort, obs=pd.DataFrame({"scenario_id": ids, "category": category}))

    return analyze(named(pair.P, "P"), named(pair.Q, "Q"), repeats=1, force_localize=True)


def anchor(analysis, name):
    return find_anchor(analysis.P, analysis.Q, analysis.space, name)


def test_scenarios_of_p_and_q(analysis):
    assert analysis.local.regions
    for i in (0, 5, 2999):
        of_P = standing(analysis, anchor(analysis, f"P-{i}"), 2.0)
        assert of_P.cohort == "P" and of_P.h == analysis.global_test.h_P[i]
        assert of_P.region == 1 + analysis.local.region_P[i]
        assert of_P.w == pytest.approx(analysis.calibrator.cells.weights(2.0)[i])
        of_Q = standing(analysis, anchor(analysis, f"Q-{i}"), 2.0)
        assert (of_Q.cohort, of_Q.w, of_Q.h) == ("Q", None, analysis.global_test.h_Q[i])
        assert of_Q.region == 1 + analysis.local.region_Q[i]


def test_the_clip_cuts_a_weight_and_says_so(analysis):
    raw = analysis.calibrator.cells.weights(1e12)
    i = int(raw.argmax())
    high = standing(analysis, anchor(analysis, f"P-{i}"), 100.0)
    low = standing(analysis, anchor(analysis, f"P-{i}"), raw[i] / 2)
    assert not high.clipped and high.w == pytest.approx(raw[i])
    assert low.clipped and low.w < high.w


def test_a_scenario_of_neither_cohort_still_has_a_region(analysis):
    i = int(np.flatnonzero(analysis.local.region_Q >= 0)[0])
    found = standing(analysis, anchor_of(analysis.space, "x", analysis.Q.z[i]), 10.0)
    assert (found.cohort, found.h, found.w) == ("", None, None)
    assert found.region == 1 + analysis.local.region_Q[i]
    far = anchor_of(analysis.space, "x", analysis.Q.z[i] + 1e3)
    assert standing(analysis, far, 10.0).region == 0


def test_without_a_local_test_there_is_no_region(line):
    found = analyze(line.P, line.Q, repeats=1, gamma_small=0.4, gamma_large=0.45)
    assert found.local is None
    place = standing(found, anchor_of(found.space, "x", line.P.z[0]), 10.0)
    assert place.region is None
    with pytest.raises(CohortError, match="no region R1 in this comparison; it has 0"):
        region_rows(found, 1)


def test_neighbours_as_a_table(analysis):
    metric = analysis.metrics[0]
    near = neighbours(analysis.P, analysis.Q, analysis.space, anchor(analysis, "P-3"), 20)
    table = neighbour_table(analysis, near, metric)
    ell = np.concatenate([analysis.P.ell[metric], analysis.Q.ell[metric]])
    assert table["event"].tolist() == ell[near.row].tolist()
    assert table["scenario_id"].tolist() == list(scenario_ids(analysis, near.row))
    drives = np.concatenate([c.drive_ids[c.drive] for c in (analysis.P, analysis.Q)])
    assert table["drive_id"].tolist() == drives[near.row].tolist()
    category = np.concatenate([c.obs["category"] for c in (analysis.P, analysis.Q)])
    assert table["category"].tolist() == category[near.row].tolist() and "period" not in table
    assert "event" not in neighbour_table(analysis, near)


def test_what_was_not_drawn_is_not_said_to_belong_to_neither(analysis):
    found = Found(np.array(["P-3", "other"]), np.array([0.1, 0.2]), 0.5)
    told = pd.DataFrame({"scenario_id": ["P-3", "other"], "category": ["a", "b"]})
    drawn = replace(analysis, P=with_rest(analysis.P, Rest(np.ones(5), {m: np.zeros(5) for m in analysis.metrics})))
    assert found_table(analysis, found, told)["cohort"].tolist() == ["P", "neither"]
    assert found_table(drawn, found, told)["cohort"].tolist() == ["P", "not drawn, or neither"]


def test_a_random_scenario_is_any_and_stays_in_its_region(analysis):
    drawn = {random_scenario(analysis, seed) for seed in range(200)}
    assert len(drawn) > 190 and {name[0] for name in drawn} == {"P", "Q"}
    inside = set(scenario_ids(analysis, region_rows(analysis, 1)))
    assert {random_scenario(analysis, seed, 1) for seed in range(50)} <= inside
    assert random_scenario(analysis, 7) == random_scenario(analysis, 7)
    with pytest.raises(CohortError, match="no region R99"):
        random_scenario(analysis, 0, 99)


def test_examples_of_a_region_lie_in_it(analysis):
    inside = set(scenario_ids(analysis, region_rows(analysis, 1)))
    found = region_examples(analysis, 1)
    assert set(found) == {"P", "Q"} and all(name.startswith(side) for side, ids in found.items() for name in ids)
    assert 1 <= len(found["Q"]) <= 3 and {name for ids in found.values() for name in ids} <= inside
