"""Tables for downloads: nothing is lost, steps add up, empty groups are empty cells."""

import numpy as np
import pytest

from avshift_core.shift.breakdown import contributions, sweep
from avshift_core.shift.curves import held_out_curves, variance_split
from avshift_core.shift.tables import (
    category_table,
    contribution_table,
    estimates_table,
    global_tables,
    sweep_table,
    weight_table,
)
from avshift_core.shift.weights import raw_weights, weight_histogram, weights_of
from tests.shift.test_breakdown import by_category, made


def test_steps_of_the_table_lead_from_the_first_rate_to_the_last(line_analysis):
    c = line_analysis.calibrate(10.0)
    table = contribution_table(contributions(line_analysis, "ell", 10.0), c)
    assert table["name"].tolist() == ["naive", "R1", "elsewhere", "strata", "left over", "target"]
    steps = table.loc[table["step"], "mu"].sum()
    assert table["mu"].iloc[0] + steps == pytest.approx(table["mu"].iloc[-1])
    assert set(table["B"]) == {10.0} and set(table["metric"]) == {"ell"}


def test_small_groups_are_empty_cells():
    drive = np.repeat(np.arange(4), 5)
    level = np.where(np.arange(20) < 15, "many", "few")  # five scenarios of one drive
    a = made(np.arange(20) % 2, np.zeros(20, int), np.zeros(20, int), drive_P=drive, drive_Q=drive, level_P=level,
             level_Q=level)
    table = category_table(by_category(a, "ell", 10), "category", a.calibrate(10, "ell")).set_index("category")
    assert np.isnan(table.loc["few", "naive"]) and table.loc["few", "n_P"] == 5
    assert table.loc["many", "naive"] == pytest.approx(7 / 15)
    assert table.loc["many", "naive_lo"] < 7 / 15 < table.loc["many", "naive_hi"]


def test_every_estimate_and_clip_is_there(line_analysis):
    c = line_analysis.calibrate(10.0)
    table = estimates_table(c, "strata").set_index("name")
    assert list(table.index[table["headline"]]) == ["strata"] and not table["withheld"].any()
    refused = estimates_table(c, None).set_index("name")
    assert not refused["headline"].any() and list(refused.index[~refused["withheld"]]) == ["naive", "target"]
    assert table.loc["strata", "mu"] == c.strata.mu and table.loc["traffic", "lo"] == c.traffic.lo
    swept = sweep_table(sweep(line_analysis, "ell", (1.0, 10.0)))
    assert len(swept) == 2 * (len(table) - 2) and set(swept["B"]) == {1.0, 10.0}


def test_global_tables_are_those_of_the_test(line_analysis):
    test, curves = line_analysis.global_test, held_out_curves(line_analysis)
    tables = global_tables(line_analysis, curves, variance_split(test))
    numbers = tables["global_test"].set_index("name")["value"]
    assert numbers["gamma_lcb"] == test.gamma_lcb and numbers["tv_lower"] == 2 * test.gamma_lcb
    assert numbers[[f"variance_{part}" for part in ("binomial", "drives", "cross_fit", "training")]].sum() == (
        pytest.approx(test.se**2))
    assert tables["tests"]["name"].tolist() == ["classifier", "neighbours", "ks", "ks_h", "mmd", "w1"]
    assert len(tables["permutations"]) == line_analysis.config.n_perm
    assert tables["roc"].iloc[-1].tolist() == [1, 1]


def test_the_weights_table_marks_what_is_cut(line_analysis):
    weights = weights_of(line_analysis, "ipw", 2.0)
    table = weight_table(weight_histogram(raw_weights(line_analysis, "ipw")), weights)
    assert table["share_of_P"].sum() == pytest.approx(1)
    assert table.loc[table["cut"], "from"].min() >= 2.0 > table.loc[~table["cut"], "from"].max()
