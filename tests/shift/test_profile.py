"""Standardised differences: by hand, against leaving out drives, and how often their intervals hold."""

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import CohortError
from avshift_core.shift.attributes import read_attributes
from avshift_core.shift.profile import as_table, attribute_differences, profile, telling


def by_name(differences):
    return {(d.column, d.level, d.kind): d for d in differences}


def one(table, mask, drive=None):
    (found,) = profile(pd.DataFrame(table), mask, np.arange(len(mask)) if drive is None else drive)
    return found


def clustered(rng, drives=40, rows=10, share=0.5):
    """Values with half of their variance between drives, and rows drawn at random as inside: no true difference."""
    drive = np.repeat(np.arange(drives), rows)
    x = np.sqrt(share) * rng.normal(size=drives)[drive] + np.sqrt(1 - share) * rng.normal(size=drives * rows)
    return x, drive


def test_a_number_by_hand():
    d = one({"speed": [1.0, 3.0, 5.0, 7.0]}, [True, True, False, False])
    assert (d.inside, d.outside, d.unit, d.ratio) == (2.0, 6.0, "", None)
    assert d.smd == pytest.approx(-4 / np.sqrt(2))  # (2 - 6) / sqrt((2 + 2) / 2): both sides have variance 2
    # every row a drive with influence (x - m) / 2 / sqrt(2) = +-0.3536 (no row moves the variance): the sum of squares
    # is 0.5, times 4/3 for four drives; t with one degree of freedom 12.706
    assert (d.hi - d.lo) / 2 == pytest.approx(12.7062 * np.sqrt(0.5 * 4 / 3), rel=1e-4) and not d.clear


def test_a_level_by_hand():
    table = {"road_type": ["work_zone", "work_zone", "junction", "fast_road", "work_zone", "junction", "junction", "x"]}
    found = by_name(profile(pd.DataFrame(table), [True] * 4 + [False] * 4, np.arange(8)))
    d = found["road_type", "work_zone", "share"]
    assert (d.inside, d.outside, d.ratio, d.unit) == (0.5, 0.25, 2.0, "%")
    assert d.smd == pytest.approx(0.25 / np.sqrt((0.5 * 0.5 + 0.25 * 0.75) / 2))
    assert d.label == "Type of road: work zone" and len(found) == 4
    assert found["road_type", "fast_road", "share"].ratio is None  # none outside


def test_labels_and_units_are_those_of_the_attributes():
    table = pd.DataFrame({"ego_speed_mps": [1.0, 2, 3, 4], "category": ["agent_cutting_in", "general"] * 2,
                          "hour": [3, 8, 13, 18]})
    found = by_name(profile(table, [True, False, True, False], np.arange(4)))
    assert (found["ego_speed_mps", None, "number"].label, found["ego_speed_mps", None, "number"].unit) == (
        "Ego speed, mean", "m/s")
    assert found["category", "agent_cutting_in", "share"].label == "Category: Agent cuts in"
    assert {level for column, level, _ in found if column == "hour"} == {
        "night, 22 to 6", "morning, 6 to 10", "midday, 10 to 16", "evening, 16 to 22"}


def test_missing_values_are_counted_and_become_an_attribute():
    table = pd.DataFrame({"cutin_length_m": [8.0, 10.0, np.nan, 4.0, np.nan, np.nan, 6.0, np.inf],
                          "cutin_type": ["truck", "bus", "", "car", "", None, "truck", ""]})
    found = by_name(profile(table, [True] * 4 + [False] * 4, np.arange(8)))
    d = found["cutin_length_m", None, "number"]
    assert (d.inside, d.outside) == (pytest.approx(22 / 3), 6.0)
    assert (d.n_inside, d.missing_inside, d.n_outside, d.missing_outside) == (3, 1, 1, 3)
    has = found["cutin_length_m", None, "presence"]  # both columns have a value in the same rows: told once
    assert (has.inside, has.outside, has.label) == (0.75, 0.25, "An agent cuts in")
    assert sum(kind == "presence" for *_, kind in found) == 1
    assert found["cutin_type", "truck", "share"].inside == 0.25  # of all scenarios, not of those with a cut-in


def test_two_levels_that_mirror_each_other_are_told_once():
    yes = one({"wet": [True, False, False, False]}, [True, True, False, False])
    assert (yes.level, yes.inside, yes.outside) == ("yes", 0.5, 0.0)
    more = one({"side": ["left", "right", "left", "left"]}, [True, True, False, False])
    assert more.level == "right" and more.smd > 0


def test_ids_constants_and_what_cannot_be_read_are_left_out():
    n = 300
    table = pd.DataFrame({
        "scenario_id": [f"s{i}" for i in range(n)], "drive_id": ["d"] * n, "vehicle_id": ["v", "w"] * 150,
        "actor_id": ["a", "b"] * 150, "day": ["2026-03-02", "2026-03-03"] * 150, "period": ["a", "b"] * 150,
        "rate_hz": 10 + 1e-14 * np.arange(n), "constant": 3, "same": "x", "empty": np.nan,
        "note": [f"free text {i}" for i in range(n)], "when": pd.date_range("2026-01-01", periods=n),
        "lists": [[1]] * n, "complex": np.full(n, 1j),
    })
    assert profile(table, np.arange(n) < 50, np.arange(n)) == ()


def test_any_table_is_read():
    table = pd.DataFrame({
        "whole": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"), "flag": pd.array([True, None, False] * 2, "boolean"),
        "kind": pd.Categorical(["a", "b", "a", "b", "c", "a"]), "mixed": [1, "one", 2.5, None, True, "one"],
        7: np.arange(6), "inf": [np.inf, 1, 2, 3, -np.inf, 4],
    })
    table = pd.concat([table, pd.DataFrame({"kind": ["p", "q", "p", "q", "p", "q"]})], axis=1)  # the same name twice
    found = profile(table, [True, True, False, False, False, True], ["a", "a", "b", "b", "c", "c"])
    assert {"whole", "flag", "kind", "mixed", "7", "inf"} == {d.column for d in found}
    assert all(np.isfinite([d.smd, d.inside, d.outside]).all() for d in found)


def test_sides_that_do_not_vary_differ_by_the_spread_of_both():
    d = one({"x": [1.0, 1.0, 0.0, 0.0]}, [True, True, False, False])
    assert d.smd == pytest.approx(2.0)  # 1 over the standard deviation 0.5 of 1, 1, 0, 0


def test_an_empty_side_has_no_profile_and_one_drive_no_interval():
    table = pd.DataFrame({"x": np.arange(6.0)})
    assert profile(table, np.zeros(6, bool), np.arange(6)) == () == profile(table, np.ones(6, bool), np.arange(6))
    (d,) = profile(table, [True, True, False, False, False, False], [0, 0, 1, 1, 2, 2])
    assert np.isfinite(d.smd) and np.isnan(d.lo) and not d.clear
    assert profile(pd.DataFrame(index=range(4)), [True, False] * 2, np.arange(4)) == ()


def test_rows_and_drives_must_match():
    with pytest.raises(CohortError, match="6 rows was asked for with 5 marks"):
        profile(pd.DataFrame({"x": np.arange(6.0)}), np.ones(5, bool), np.arange(6))


def test_the_order_of_rows_changes_nothing_and_swapping_sides_turns_the_sign():
    rng = np.random.default_rng(0)
    x, drive = clustered(rng)
    table, mask = pd.DataFrame({"x": x, "k": np.where(x > 0.3, "a", "b")}), rng.random(400) < 0.3
    order = rng.permutation(400)
    first, again = profile(table, mask, drive), profile(table.iloc[order], mask[order], drive[order])
    other = profile(table, ~mask, drive)
    for d, e, f in zip(first, again, other, strict=True):
        assert (d.smd, d.lo, d.hi) == pytest.approx((e.smd, e.lo, e.hi), rel=1e-9)
        assert abs(d.smd) == pytest.approx(abs(f.smd)) and (d.kind == "share" or d.smd == pytest.approx(-f.smd))


@pytest.mark.parametrize("column", ["x", "k"])
def test_the_standard_error_is_that_of_leaving_out_drives(column):
    """The jackknife over drives, an independent estimate of the same variance."""
    rng = np.random.default_rng(1)
    x, drive = clustered(rng, drives=150)
    mask = rng.random(len(x)) < 0.1 + 0.5 * (x > 1)  # a large difference, in which the spread matters too
    table = pd.DataFrame({"x": x, "k": np.where(x > 0.8, "a", "b")})[[column]]
    (d,) = profile(table, mask, drive)
    without = [profile(table[drive != g], mask[drive != g], drive[drive != g])[0].smd for g in range(150)]
    jackknife = np.sqrt(149 / 150 * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert (d.hi - d.lo) / 2 / 1.976 == pytest.approx(jackknife, rel=0.05)  # t of 149 drives; 0.4 and more apart


def test_intervals_hold_where_drives_are_alike():
    """Nominal 95 %; as if rows were independent they would hold in about two thirds (inside: whole drives)."""
    rng, hits, naive, runs = np.random.default_rng(2), 0, 0, 300
    for _ in range(runs):
        x, drive = clustered(rng)
        mask = (rng.permutation(40) < 12)[drive]
        table = pd.DataFrame({"x": x})
        hits += (lambda d: d.lo <= 0 <= d.hi)(profile(table, mask, drive)[0])
        naive += (lambda d: d.lo <= 0 <= d.hi)(profile(table, mask, np.arange(400))[0])
    assert 0.91 <= hits / runs <= 0.99
    assert naive / runs < 0.8


def test_intervals_hold_for_the_difference_that_is_there():
    """Inside has mean 1 and standard deviation 1 within every drive, outside 0 and 1: the true value is 1."""
    rng, hits, runs = np.random.default_rng(3), 0, 300
    for _ in range(runs):
        drive = np.repeat(np.arange(60), 10)
        mask = rng.random(600) < 0.2
        x = mask + np.sqrt(0.3) * rng.normal(size=60)[drive] + np.sqrt(0.7) * rng.normal(size=600)
        d = profile(pd.DataFrame({"x": x}), mask, drive)[0]
        hits += d.lo <= 1 <= d.hi
    assert 0.91 <= hits / runs <= 0.985


def test_very_many_drives_are_joined_without_changing_the_answer():
    rng = np.random.default_rng(4)
    x, mask = rng.normal(size=30_000), rng.random(30_000) < 0.1
    (d,) = profile(pd.DataFrame({"x": x}), mask, np.arange(30_000))
    exact = 1.96 * np.sqrt(1 / mask.sum() + 1 / (~mask).sum())
    assert (d.hi - d.lo) / 2 == pytest.approx(exact, rel=0.05)


def test_what_differs_between_cohorts_before_and_after_weighting():
    """P has 1 truck in 4, Q 2 in 4; weight 3 on P's truck gives 3/6."""
    P = pd.DataFrame({"type": ["truck", "car", "car", "van"], "area": "harbor", "only_P": [1, 2, 3, 4.0]})
    Q = pd.DataFrame({"type": ["truck", "truck", "car", "car"], "area": "old_town"})
    found = by_name(attribute_differences(P, Q, [0, 1, 2, 3], [0, 1, 2, 3], weights=[3.0, 1, 1, 1]))
    d = found["type", "truck", "share"]
    assert (d.inside, d.outside, d.ratio) == (0.5, 0.25, 2.0)
    sd = np.sqrt((0.25 + 0.1875) / 2)
    assert d.smd == pytest.approx(0.25 / sd) and d.after.smd == pytest.approx(0.0) and d.after.outside == 0.5
    assert found["type", "car", "share"].after.smd == pytest.approx((0.5 - 2 / 6) / np.sqrt((0.25 + 0.25) / 2))
    assert {column for column, *_ in found} == {"type"}  # the area is what they were chosen by


def test_weights_of_one_change_nothing_and_the_largest_difference_comes_first():
    rng = np.random.default_rng(5)
    P, Q = (pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200) + move, "c": rng.choice(["x", "y", "z"],
            200), "d": np.where(rng.random(200) < 0.4, np.nan, rng.normal(size=200))}) for move in (0.0, 0.7))
    drive = np.arange(200) // 5
    found = attribute_differences(P, Q, drive, drive, weights=np.ones(200))
    assert found[0].column == "b" and found[0].smd > 0  # more in Q is positive
    assert [abs(d.smd) for d in found] == sorted((abs(d.smd) for d in found), reverse=True)
    for d in found:
        assert (d.after.smd, d.after.outside) == pytest.approx((d.smd, d.outside))
    halves = attribute_differences(P, Q, drive, drive, weights=np.full(200, 0.5))
    assert [d.after.lo for d in halves] == pytest.approx([d.after.lo for d in found])  # scale of weights is nothing
    with pytest.raises(CohortError, match="3 weights were given for 200"):
        attribute_differences(P, Q, drive, drive, weights=np.ones(3))


def test_weighted_intervals_hold_in_the_demo_of_a_known_shift():
    """P over-represents level a by a known factor; the true weights leave no difference in x, which follows it."""
    rng, hits, runs = np.random.default_rng(6), 0, 200
    for _ in range(runs):
        a_P, a_Q = rng.random(400) < 0.8, rng.random(400) < 0.4
        drive = np.repeat(np.arange(40), 10)
        P, Q = (pd.DataFrame({"x": a + np.sqrt(0.3) * rng.normal(size=40)[drive] + rng.normal(size=400)})
                for a in (a_P, a_Q))
        d = attribute_differences(P, Q, drive, drive, weights=np.where(a_P, 0.5, 3.0))[0]
        hits += d.after.lo <= 0 <= d.after.hi
    assert 0.9 <= hits / runs <= 0.99


def test_a_figure_gets_what_tells_most_without_repeats():
    rng = np.random.default_rng(7)
    n, mask = 400, np.arange(400) < 100
    table = pd.DataFrame({
        "category": np.where(mask, "agent_cutting_in", rng.choice(["a", "b", "c"], n)),
        "cutin_length_m": np.where(mask, 9.0 + rng.random(n), np.nan), "noise": rng.normal(size=n),
    })
    shown = telling(profile(table, mask, np.arange(n) // 4), most=3)
    assert shown[0].label == "Category: Agent cuts in"
    assert "An agent cuts in" not in [d.label for d in shown]  # the same rows as the category
    assert sum(d.column == "category" for d in shown) <= 2


def test_a_profile_as_a_table():
    table = as_table(profile(pd.DataFrame({"x": [1.0, 3.0, 5.0, 7.0]}), [True, True, False, False], np.arange(4)))
    assert table.loc[0, ["label", "inside", "outside"]].tolist() == ["x", 2.0, 6.0]
    assert list(as_table(())) == [c for c in table.columns]


def test_attributes_of_some_rows():
    table = pd.DataFrame({"x": [1.0, np.nan, 3.0], "k": ["a", "b", "c"]})
    taken = read_attributes(table).take(np.array([2, 0]))
    assert taken.n == 2 and taken.number("x").values.tolist() == [3.0, 1.0]
    assert [taken.category("k").levels[c] for c in taken.category("k").code] == ["c", "a"]
