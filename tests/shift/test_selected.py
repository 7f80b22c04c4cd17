"""Selected scenarios: counts, tables, and selections that are found again."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import AVShiftError
from avshift_core.latent.cohort import make_cohort
from avshift_core.shift.analyze import analyze
from avshift_core.shift.selected import (
    example_ids,
    halves,
    kept_mask,
    map_table,
    name_to_keep,
    region_code,
    row_of_scenario,
    scenario_of_row,
    select,
    selected_table,
    shown_rows,
    to_keep,
)

N = 400


@pytest.fixture(scope="module")
def analysis():
    rng = np.random.default_rng(0)

    def side(name, n, share):
        z = rng.normal(size=(n, 3)) * 0.4
        far = rng.random(n) < share
        z[far] += [5, 0, 0]
        obs = pd.DataFrame({"scenario_id": [f"{name}-{i}" for i in range(n)], "speed": z[:, 0], "period": name,
                            "category": np.where(far, "agent_cutting_in", "general")})
        drives = [f"{name}{i % 20}" for i in range(n)]
        return make_cohort(name, z, drive_id=drives, ell={"brake": far.astype(float)}, obs=obs)

    return analyze(side("P", N, 0.1), side("Q", 2 * N, 0.3), classifier="cells", repeats=1, folds=2, n_perm=99,
                   force_localize=True)


@pytest.fixture(scope="module")
def far(analysis):
    return np.concatenate([c.z[:, 0] > 2.5 for c in (analysis.P, analysis.Q)])


def test_counts_shares_and_rates_are_those_of_the_rows(analysis, far):
    s = select(analysis, far, "brake")
    assert (s.n_P, s.n_Q) == (far[:N].sum(), far[N:].sum()) and s.n == far.sum()
    assert s.p.mu == pytest.approx(far[:N].mean()) and s.q.mu == pytest.approx(far[N:].mean())
    assert s.ratio.mu == pytest.approx(far[N:].mean() / far[:N].mean())
    assert s.p.lo < s.p.mu < s.p.hi and s.ratio.lo > 1
    assert s.rate_P.mu == s.rate_Q.mu == 1.0  # the event is what put them there
    assert s.drives == len(np.unique(analysis.sample.drive[far]))


def test_any_first_part_of_the_rows_has_both_cohorts_in_proportion(analysis, far):
    s = select(analysis, far)
    assert sorted(s.rows) == np.flatnonzero(far).tolist()
    first = s.rows[: s.n // 2]
    assert abs((first < N).sum() - s.n_P / 2) <= 1
    assert (np.diff(s.rows[s.rows < N]) > 0).all()


def test_nothing_and_everything_can_be_selected(analysis):
    none = select(analysis, np.zeros(3 * N, dtype=bool), "brake")
    assert none.n == 0 and none.ratio is None and none.rate_P is None and len(none.rows) == 0
    assert len(selected_table(analysis, none.rows, "brake")) == 0
    assert example_ids(analysis, none) == {"P": (), "Q": ()}
    every = select(analysis, np.ones(3 * N, dtype=bool), "brake")
    assert every.n == 3 * N and every.p.mu == every.q.mu == 1.0
    assert every.ratio is None  # 1 of 1 in every drive: no spread, so no interval
    only_Q = select(analysis, np.arange(3 * N) >= N)
    assert only_Q.n_P == 0 and only_Q.ratio is None


def test_rows_of_the_table_are_those_of_the_cohorts(analysis):
    rows = np.array([N + 5, 3, N, 399])
    table = selected_table(analysis, rows, "brake")
    assert table["cohort"].tolist() == ["Q", "P", "Q", "P"]
    assert table["scenario_id"].tolist() == ["Q-5", "P-3", "Q-0", "P-399"]
    h = np.concatenate([analysis.global_test.h_P, analysis.global_test.h_Q])
    assert table["h"].tolist() == h[rows].tolist()
    assert table["drive_id"].tolist() == ["Q5", "P3", "Q0", "P19"]
    assert table["event"].tolist() == [analysis.Q.ell["brake"][5], *analysis.P.ell["brake"][[3]],
                                       analysis.Q.ell["brake"][0], analysis.P.ell["brake"][399]]
    code, titles = region_code(analysis)
    assert table["region"].tolist() == [titles[k] if k >= 0 else "" for k in code[rows]]
    assert list(shown_rows(analysis, rows, "brake").columns) == [
        "cohort", "scenario_id", "category", "period", "h", "region", "event", "drive_id"]
    assert set(shown_rows(analysis, rows)["category"]) <= {"Agent cuts in", "General"}


def test_the_whole_map_is_a_table(analysis):
    xy = np.arange(2.0 * analysis.sample.n).reshape(-1, 2)
    table = map_table(analysis, ("PC 1", "PC 2"), xy)
    assert (table[["PC 1", "PC 2"]].to_numpy() == xy).all()  # pooled rows, P's first
    assert (table["cohort"] == np.where(analysis.sample.y == 0, "P", "Q")).all()
    assert table["h"].to_numpy() == pytest.approx(np.concatenate([analysis.global_test.h_P, analysis.global_test.h_Q]))


def test_regions_of_all_rows_and_halves_of_the_drives(analysis, far):
    code, titles = region_code(analysis)
    assert titles[: len(analysis.local.regions)] == tuple(f"R{r.k}" for r in analysis.local.regions)
    r1 = analysis.local.regions[0]
    assert (code == 0).sum() == r1.n_source + r1.n_target and far[code == 0].mean() > 0.9
    parts = halves(analysis)
    assert sorted([*parts["choose"], *parts["confirm"]]) == list(range(3 * N))
    drive = analysis.sample.drive
    assert not set(drive[parts["choose"]]) & set(drive[parts["confirm"]])


def test_ids_and_rows_find_each_other(analysis):
    for row in (0, N - 1, N, 3 * N - 1):
        assert row_of_scenario(analysis, scenario_of_row(analysis, row)) == row
    assert row_of_scenario(analysis, "nobody") is None and scenario_of_row(analysis, 3 * N) is None


def test_a_kept_selection_is_found_again_also_in_another_comparison(analysis, far):
    comparison = SimpleNamespace(analysis=analysis, run="0" * 12, corpus_url="x", source="P", target="Q")
    entry = json.loads(json.dumps(to_keep(comparison, select(analysis, far), "umap.AAAA", "Drawn")))
    assert (kept_mask(analysis, entry) == far).all()
    assert (entry["n_P"], entry["n_Q"], entry["lasso"]) == (far[:N].sum(), far[N:].sum(), "umap.AAAA")
    swapped = SimpleNamespace(P=analysis.Q, Q=analysis.P)
    assert (kept_mask(swapped, entry) == np.concatenate([far[N:], far[:N]])).all()


@pytest.mark.parametrize("entry", [{}, {"ids": 7}, {"ids": "%%%"}, {"ids": "AAAA"}])
def test_a_damaged_kept_selection_is_refused_in_words(analysis, entry):
    with pytest.raises(AVShiftError, match="cannot be read"):
        kept_mask(analysis, entry)


def test_scenarios_without_ids_cannot_be_kept(small_pair):
    P, Q = small_pair
    analysis = analyze(P, Q, classifier="cells", repeats=1, folds=2, n_perm=99)
    selected = select(analysis, np.arange(600) < 50)
    assert example_ids(analysis, selected) == {"P": (), "Q": ()} and scenario_of_row(analysis, 3) is None
    with pytest.raises(AVShiftError, match="no ids"):
        to_keep(SimpleNamespace(analysis=analysis, run="", corpus_url="", source="", target=""), selected, "")
    assert region_code(analysis)[0].tolist() == [-1] * 600 or analysis.local is not None


@pytest.mark.parametrize(("name", "sentence"), [("  ", "Give the selection a name"), ("x" * 61, "at most 60"),
                                                ("Taken", "already")])
def test_names_that_cannot_be_kept_are_refused(name, sentence):
    with pytest.raises(AVShiftError, match=sentence):
        name_to_keep(name, {"Taken"})
    assert name_to_keep("  a   b ", ()) == "a b"
