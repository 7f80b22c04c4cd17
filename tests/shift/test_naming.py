"""Proposed names: on hand-made tables, on tables nobody has words for, and on what the demo fleet has built in."""

import numpy as np
import pandas as pd
import pytest

from avshift_core.scenario.simulate.demo import make_block
from avshift_core.scenario.simulate.fleet import FleetConfig, blocks
from avshift_core.scenario.simulate.situations import SITUATION_NAMES
from avshift_core.shift.attributes import read_attributes
from avshift_core.shift.naming import LONGEST, name_set, name_sets, ratio_words, threshold

N = 1200


def fleet_table(seed=0, inside=0.2):
    """Everyday driving, and inside some cut-ins by lorries of 8 to 14 m; cars that cut in have 4 to 5 m."""
    rng = np.random.default_rng(seed)
    mask = np.arange(N) < inside * N
    category = np.where(mask, "agent_cutting_in", rng.choice(["agent_cutting_in", "general", "ego_yielding"], N,
                                                             p=[0.2, 0.5, 0.3]))
    cuts = category == "agent_cutting_in"
    length = np.where(mask, rng.uniform(8, 14, N), rng.uniform(4, 5, N))
    kind = np.where(mask, rng.choice(["truck", "bus"], N), "car")
    table = pd.DataFrame({
        "scenario_id": [f"s{i}" for i in range(N)], "category": category, "cutin_type": np.where(cuts, kind, ""),
        "cutin_length_m": np.where(cuts, length, np.nan), "ego_speed_mps": rng.normal(10, 2, N),
    })
    return read_attributes(table), mask, np.arange(N) % 60


def test_the_name_of_the_issue():
    table, mask, drive = fleet_table()
    name = name_set(table, mask, drive, p=0.031, q=0.01)
    assert name == "cut-ins by vehicles over 8 m, 3.1 x in P"


def test_a_type_that_prevails_is_named():
    _, mask, drive = fleet_table()
    frame = pd.DataFrame({"category": np.where(mask, "agent_cutting_in", "general"),
                          "cutin_type": np.where(mask, "bus", "")})
    assert name_set(read_attributes(frame), mask, drive) == "cut-ins"  # all cut-ins are by buses: nothing to add
    frame["cutin_type"] = np.where(mask, "bus", np.where(np.arange(N) % 3 == 0, "car", ""))
    assert name_set(read_attributes(frame), mask, drive, p=0.0, q=0.1) == "cut-ins by buses, only in Q"


def test_where_and_how_fast():
    rng = np.random.default_rng(1)
    mask = np.arange(N) < 200
    frame = pd.DataFrame({
        "category": np.where(mask, "ego_yielding", "general"), "actor_type": np.where(mask, "pedestrian", "car"),
        "road_type": np.where(mask, "junction", rng.choice(["fast_road", "multi_lane"], N)),
        "ego_speed_mps": np.where(mask, rng.uniform(2, 5, N), rng.uniform(6, 20, N)),
    })
    name = name_set(read_attributes(frame), mask, np.arange(N) % 50)
    assert name == "yielding to pedestrians at junctions, ego under 5 m/s"


def test_words_that_few_scenarios_meet_together_are_not_joined():
    rng = np.random.default_rng(1)
    mask, i = np.arange(N) < 200, np.arange(N)
    kind = np.where(mask, np.where(i < 130, "ego_yielding", "ego_nudging"), "general")  # 65 %
    road = np.where(mask, np.where(i >= 70, "junction", "multi_lane"), rng.choice(["fast_road", "multi_lane"], N))
    frame = pd.DataFrame({"category": kind, "road_type": road})
    assert name_set(read_attributes(frame), mask, i % 50) == "yielding"  # both: rows 70 to 129 of 200
    frame["road_type"] = np.where(mask, np.where(i < 130, "junction", "multi_lane"), road)
    assert name_set(read_attributes(frame), mask, i % 50) == "yielding at junctions"
    speed = np.where(mask, rng.uniform(2, 5, N), rng.uniform(6, 20, N))
    frame["ego_speed_mps"] = np.where(mask & (i % 3 == 0), np.nan, speed)  # not known: not met
    assert name_set(read_attributes(frame), mask, i % 50) == "yielding at junctions"
    assert name_set(read_attributes(frame.assign(ego_speed_mps=speed)), mask, i % 50).endswith("ego under 5 m/s")


def test_turns_of_the_ego_say_more_than_everyday_driving():
    mask = np.arange(N) < 200
    frame = pd.DataFrame({"category": np.where(mask, "general", "ego_lane_keeping"),
                          "turn_type": np.where(mask, "u_turn", "straight"), "road_type": np.where(
                              mask, "multi_lane", "fast_road")})
    assert name_set(read_attributes(frame), mask, np.arange(N) % 50) == "U-turns of the ego on multi-lane roads"


def test_columns_nobody_has_words_for():
    rng = np.random.default_rng(2)
    mask = np.arange(N) < 300
    frame = pd.DataFrame({"weather": np.where(mask, "heavy rain", rng.choice(["dry", "snow"], N)),
                          "tyre_age": np.where(mask, rng.uniform(30, 60, N), rng.uniform(0, 25, N))})
    name = name_set(read_attributes(frame), mask, np.arange(N) % 50, p=0.25, q=0.5)
    assert name.startswith("scenarios, ") and "weather heavy rain" in name and "tyre age over" in name
    assert name.endswith(", 2.0 x in Q")


@pytest.mark.parametrize("frame", [pd.DataFrame(index=range(N)), pd.DataFrame({"scenario_id": np.arange(N)}),
                                   pd.DataFrame({"noise": np.random.default_rng(0).normal(size=N)})])
def test_without_any_attribute_there_is_still_a_name(frame):
    table, mask = read_attributes(frame), np.arange(N) < 100
    assert name_set(table, mask, np.arange(N) % 50, fallback="region R3") == "region R3"
    assert name_set(table, mask, np.arange(N) % 50, p=0.1, q=0.24, fallback="region R3") == "region R3, 2.4 x in Q"


def test_sets_that_would_be_called_the_same_are_told_apart():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"category": np.where(np.arange(N) < 600, "ego_yielding", "general"),
                          "actor_distance_min_m": np.where(np.arange(N) < 300, rng.uniform(1, 5, N),
                                                           rng.uniform(10, 30, N))})
    masks = [np.arange(N) < 300, (np.arange(N) >= 300) & (np.arange(N) < 600)]
    first, second = name_sets(read_attributes(frame), masks, np.arange(N) % 50)
    assert first == "yielding, gap under 5 m" and second.startswith("yielding") and first != second
    same = pd.DataFrame({"category": frame["category"]})
    assert name_sets(read_attributes(same), masks, np.arange(N) % 50) == ("yielding (1)", "yielding (2)")


def test_names_fit_a_line_and_are_the_same_every_time():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({
        "category": rng.choice(["a_very_long_category_name_of_another_fleet", "general"], N),
        "a column with quite a long name": rng.choice(["and a long level of it that nobody can read", "b", "c"], N),
        "road_type": rng.choice(["multi_lane", "single_lane", "junction"], N),
    })
    frame["x" * 80] = np.where(frame["road_type"] == "junction", 5.0, 1.0) + rng.random(N)
    table = read_attributes(frame)
    masks = [((frame["road_type"] == road) & (frame["category"] == kind)).to_numpy()
             for road in ("multi_lane", "single_lane", "junction") for kind in frame["category"].unique()]
    names = name_sets(table, masks, np.arange(N) % 50, masses=[(0.001, 0.0999)] * 6)
    assert names == name_sets(table, masks, np.arange(N) % 50, masses=[(0.001, 0.0999)] * 6)
    assert all(0 < len(name) <= LONGEST for name in names) and len(set(names)) == 6


def test_ratio_words_beyond_the_usual():
    assert ratio_words(0.0, 0.0) == "as often in P as in Q" and ratio_words(0.5, 0.001) == "over 99 x in P"
    assert ratio_words(0.01, 0.12) == "12 x in Q"


def test_a_threshold_is_round_and_separates():
    rng = np.random.default_rng(5)
    # the best is 7 by symmetry; up to 7.6 at most 0.04 less lie on their side; 5 and 10 are rounder, but far worse
    assert threshold(rng.normal(9.0, 1, 2000), rng.normal(5.0, 1, 2000)) in (7.0, 7.5)
    assert threshold(rng.normal(5.0, 1, 2000), rng.normal(9.0, 1, 2000)) in (6.5, 7.0)
    assert threshold(rng.normal(5.0, 1, 500), rng.normal(5.1, 1, 500)) is None
    assert threshold([], [1.0]) is None and threshold([2.0, 2.0], [2.0]) is None
    assert threshold(np.full(9, np.nan), [1.0]) is None


@pytest.fixture(scope="module")
def demo():
    """Attributes and true situations of some scenarios of the demo's weeks with something new."""
    config = FleetConfig(scenarios=16 * 500)
    tables, situations = [], []
    for block in blocks(config):
        area, period = config.cells[block.cell]
        if area == "harbor" and period in ("2026-W12", "2026-W13", "2026-W15"):
            made = make_block(config, block)
            for part in made.measured:
                ids = pd.DataFrame({name: [getattr(i, name) for i in part.batch.ids]
                                    for name in ("scenario_id", "drive_id")})
                tables.append(ids.assign(**part.attributes, category=[i.category for i in part.batch.ids]))
            order = {name: k for k, name in enumerate(made.facts["scenario_id"])}
            names = pd.concat(tables[-len(made.measured):])["scenario_id"]
            situations.append(made.contexts.situation[[order[name] for name in names]])
    table = pd.concat(tables, ignore_index=True)
    return read_attributes(table), np.concatenate(situations), table["drive_id"].to_numpy()


@pytest.mark.parametrize(("situation", "words"), [
    ("cut_in_large", ("cut-ins by ", ("trucks", "buses", "vehicles over"))),
    ("work_zone", ("in work zones", ("cut-ins",))),
    ("jaywalk", ("jaywalking", ("jaywalking",))),
    ("u_turn", ("yielding", ("on multi-lane roads",))),  # another agent's: the log has no attribute for it
    ("queue", ("lane keeping", ("ego ", "dense"))),
])
def test_what_the_demo_has_built_in_is_named(demo, situation, words):
    table, situations, drive = demo
    name = name_set(table, situations == SITUATION_NAMES.index(situation), drive, p=0.01, q=0.034)
    assert words[0] in name and any(word in name for word in words[1]), name
    assert name.endswith(", 3.4 x in Q") and len(name) <= LONGEST
