"""Colours of a map: every scenario has the one its value says, and what mixes is neutral where it should be."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from avshift_core.latent.pack import MISSING, MOST_WEIGHT, TOP_LEVEL
from avshift_core.plots.map_colours import (
    COMMON,
    PALETTE,
    _ticks,
    around,
    colour_options,
    colouring,
    even_weights,
    named,
    trimmed,
    words_of,
)
from avshift_core.scenario.schema import CATEGORIES
from avshift_core.shift.attributes import read_attributes


@pytest.fixture(scope="module")
def compared(line_analysis):
    n = line_analysis.sample.n
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "category": np.array(CATEGORIES)[np.arange(n) % 13],
        "speed": np.where(np.arange(n) % 10, rng.normal(size=n), np.nan), "av_version": "v1",
        "weather <b>": np.where(rng.random(n) < 0.3, "rain", "dry")})
    comparison = SimpleNamespace(analysis=line_analysis, metrics=line_analysis.metrics, phrase=lambda metric: "Brake")
    return comparison, read_attributes(table)


def test_what_can_be_coloured_by_is_what_there_is(compared):
    comparison, attributes = compared
    options = colour_options(comparison, attributes)
    assert set(COMMON) - set(options) == {"av_version"}  # it has one value only
    assert options["a.speed"] == "speed" and "a.weather <b>" in options and "a.category" not in options
    stopped = SimpleNamespace(analysis=SimpleNamespace(local=None), metrics=())
    assert not {"region", "event"} & set(colour_options(stopped, attributes))


@pytest.mark.parametrize("key", ["cohort", "category", "h", "region", "weight", "event", "a.speed", "a.weather <b>"])
def test_every_colouring_has_a_code_a_row_and_a_colour_a_code(compared, key):
    comparison, attributes = compared
    found = colouring(key, comparison, attributes, B=5.0, metric=comparison.metrics[0])
    assert found.code.dtype == np.uint8 and len(found.code) == comparison.analysis.sample.n
    head = found.head()
    for theme in ("light", "dark"):
        assert all(len(hue) == 7 and int(hue[1:], 16) >= 0 for hue in head[theme])
    if head["kind"] == "categories":
        known = found.code[found.code != MISSING]
        assert known.max() < len(head["names"]) == len(head["light"]) == len(head["dark"]) == len(head["weight"])
        assert list(head["counts"]) == np.bincount(known, minlength=len(head["names"])).tolist()
    else:
        assert found.missing == (found.code == MISSING).sum()
        assert all(-0.01 <= level <= TOP_LEVEL + 0.01 for level, _ in head["ticks"]) and len(head["ticks"]) >= 2


def test_cohorts_have_their_colours_and_weigh_the_same(compared):
    comparison, attributes = compared
    found = colouring("cohort", comparison, attributes, B=5.0, metric=None)
    assert found.light == ("#0072B2", "#D55E00") and found.code.tolist() == comparison.analysis.sample.y.tolist()
    assert found.names[0].startswith("P · ") and found.names[1].startswith("Q · ")


SIZES = [(7500, 5000), (5000, 7500), (1000, 1001), (90_000, 4000), (10, 100_000), (0, 5)]


@pytest.mark.parametrize(("n_P", "n_Q"), SIZES)
def test_mixed_colours_are_neutral_where_both_have_the_same_share(n_P, n_Q):
    w_P, w_Q = even_weights(n_P, n_Q)
    assert 1 <= w_P <= MOST_WEIGHT and 1 <= w_Q <= MOST_WEIGHT
    ratio = max(n_P, 1) / max(n_Q, 1)
    if 1 / MOST_WEIGHT <= ratio <= MOST_WEIGHT:
        assert w_Q / w_P == pytest.approx(ratio, rel=0.06)
    assert even_weights(n_Q, n_P) == (w_Q, w_P)


def test_a_category_has_one_colour_in_every_comparison():
    few = named("Category", ("agent_cutting_in", "general"), ("Agent cuts in", "General"), np.array([0, 0, 1]))
    many = named("Category", CATEGORIES, CATEGORIES, np.arange(13))
    assert few.light[few.names.index("Agent cuts in")] == many.light[many.names.index("agent_cutting_in")]
    assert len(set(many.light)) == 13  # no colour twice


def test_more_levels_than_colours_share_one_grey_and_none_is_lost():
    levels = tuple(f"route {k}" for k in range(30))
    code = np.repeat(np.arange(30), np.arange(30, 0, -1))
    found = named("Route", levels, levels, code)
    assert len(found.names) == len(PALETTE) + 1 and found.names[-1] == "18 others"
    assert sum(found.counts) == len(code) and found.names[0] == "route 0"
    assert found.code[code == 29].tolist() == [len(PALETTE)]


def test_scales_run_from_the_first_to_the_last_percent():
    values = np.arange(1001.0)
    found = trimmed("x", "m", values)
    assert (found.low, found.high) == (10.0, 990.0)  # 1 % and 99 % of 0..1000
    assert found.code[[0, 10, 500, 990, 1000]].tolist() == [0, 0, 127, 254, 254]
    assert "2.0 %" in found.note  # 20 of 1001 lie beyond
    holes = np.where(values % 2, values, np.nan)
    assert trimmed("x", "m", holes).missing == 501 and trimmed("x", "m", holes).code[0] == MISSING
    same = trimmed("x", "", np.full(10, 3.0))
    assert same.low < 3 < same.high


def test_a_rare_value_is_not_trimmed_away():
    values = np.zeros(1000)
    values[0] = 5.0
    found = trimmed("x", "", values)
    assert (found.low, found.high, found.code[0], found.code[1]) == (0.0, 5.0, 254, 0)


def test_scores_have_their_neutral_middle_at_one_half():
    found = around("h", np.array([0.1, 0.5, 0.6]), 0.5)
    assert found.code[1] == TOP_LEVEL / 2 and found.low + found.high == pytest.approx(1.0)
    assert found.light[1] == "#C9C9C9" and found.light[0] == "#0072B2"


def test_weights_are_those_of_the_calibrator_on_a_logarithmic_scale(compared):
    comparison, attributes = compared
    analysis = comparison.analysis
    found = colouring("weight", comparison, attributes, B=2.0, metric=None)
    w = analysis.calibrator.cells.weights(2.0)
    shown = 2 ** (found.low + found.code[: analysis.P.n] / TOP_LEVEL * (found.high - found.low))
    inside = (np.log2(np.maximum(w, 1e-6)) > found.low) & (np.log2(np.maximum(w, 1e-6)) < found.high)
    assert np.abs(np.log2(shown[inside] / w[inside])).max() <= (found.high - found.low) / TOP_LEVEL
    assert (found.code[analysis.P.n:] == MISSING).all() and found.missing == analysis.Q.n
    assert "1" in [text for _, text in found.ticks]


def test_hints_name_cohort_and_category(compared):
    comparison, attributes = compared
    cohort, category = words_of(comparison, attributes)
    assert cohort.names[1].startswith("Q · ") and category.names[category.code[8]] == "Agent cuts in"


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 7.9), (1e-4, 3e-4), (0.0, 123456.0), (99.2, 99.7)])
def test_ticks_are_round_and_inside(low, high):
    ticks = _ticks(low, high)
    assert 2 <= len(ticks) <= 11
    for level, text in ticks:
        value = float(text.replace(",", ""))
        assert low - 1e-9 <= value <= high + 1e-9
        assert level == pytest.approx((value - low) / (high - low) * TOP_LEVEL, abs=0.5)
