"""Readable attributes of hand-made scenes."""

import numpy as np
import pytest

from avshift_core.scenario.measure.attributes import ATTRIBUTES, compute_attributes
from avshift_core.scenario.measure.categories import detect
from tests.scenario.scenes import CAR, PERSON, along, batch_of, lane_change, scene, times, track

T = times(12)
TRUCK = (12.0, 2.5, 3.5)


def attributes(*scenarios):
    batch = batch_of(*scenarios)
    return compute_attributes(batch, detect(batch))


def lane(offset, limit=13.9, x=(-50, 300)):
    return np.stack([np.linspace(*x, 36), np.full(36, offset)], axis=1), "lane_center", limit


def test_registry_and_columns_agree():
    values = attributes(scene(T, track(T, along(T, 10))), scene(T, track(T, along(T, 5)), [track(T, 9.0, 9.0)]))
    assert list(values) == list(ATTRIBUTES)
    for name, each in ATTRIBUTES.items():
        assert values[name].shape == (2,) and each.text and each.kind in ("number", "category")
        assert (values[name].dtype.kind == "U") == (each.kind == "category")


def test_cut_in_of_a_truck():
    truck = track(T, 30 + along(T, 11), 3.5 - lane_change(T, 5, 4, 3.5), kind="truck", size=TRUCK)
    bystander = track(T, 20 + along(T, 12), -7.0)
    values = attributes(scene(T, track(T, along(T, 12)), [bystander, truck]))
    assert values["cutin_type"][0] == values["actor_type"][0] == "truck"
    assert values["cutin_length_m"][0] == 12
    assert values["cutin_speed_mps"][0] == pytest.approx(11, abs=0.2)
    # at 5 s: 30 - 5 * 1 m/s, less half of 12 and of 4.8
    assert values["cutin_distance_m"][0] == pytest.approx(25 - 8.4, abs=1.0)
    assert (values["actor"][0], values["actor_id"][0]) == (1, "a1")
    assert values["actor_distance_min_m"][0] == pytest.approx(30 - 12 - 8.4, abs=0.1)  # at the end


def test_no_cut_in_is_empty():
    values = attributes(scene(T, track(T, along(T, 12))))
    assert values["cutin_type"][0] == "" and np.isnan(values["cutin_speed_mps"][0])
    assert values["actor"][0] == -1 and values["actor_id"][0] == "" and np.isnan(values["actor_distance_min_m"][0])


def test_speeds_braking_and_standing():
    """10 m/s for 2 s, then -2 m/s2 to a standstill at 7 s, which lasts until 12 s."""
    speed = np.clip(10 - 2 * (T - 2), 0, 10)
    values = attributes(scene(T, track(T, along(T, speed)), acceleration=np.where((T >= 2) & (T < 7), -2.0, 0.0)))
    assert values["ego_speed_start_mps"][0] == pytest.approx(10, abs=0.01)
    assert values["ego_speed_mps"][0] == pytest.approx((20 + 25) / 12, abs=0.1)
    assert values["ego_speed_min_mps"][0] == pytest.approx(0, abs=0.01)
    assert values["brake_max_mps2"][0] == pytest.approx(2, abs=1e-3)
    assert values["decel_onset_s"][0] == pytest.approx(2, abs=0.15)
    assert values["stop_s"][0] == pytest.approx(5, abs=0.3)
    assert np.isnan(attributes(scene(T, track(T, along(T, 9))))["decel_onset_s"][0])


def test_counts():
    agents = [track(T, 29.0 + along(T, 9)), track(T, 45 + along(T, 9)), track(T, 20.0 + along(T, 9), 8.0, size=TRUCK),
              track(T, 10.0, 9.0, kind="pedestrian", size=PERSON), track(T, 5.0, 5.0, valid=False)]
    values = attributes(scene(T, track(T, along(T, 9)), agents))
    assert [values[k][0] for k in ("n_agents", "n_agents_near", "n_pedestrians", "n_large")] == [4, 3, 1, 1]


@pytest.mark.parametrize(("degrees", "expected"), [(10, "straight"), (90, "left"), (-90, "right"), (180, "u_turn"),
                                                   (-180, "u_turn")])
def test_turn_type(degrees, expected):
    phi = np.radians(degrees) * np.clip((T - 3) / 5, 0, 1)
    x, y = np.cumsum(0.5 * np.cos(phi)), np.cumsum(0.5 * np.sin(phi))
    assert attributes(scene(T, track(T, x, y, heading=phi)))["turn_type"][0] == expected


def test_road():
    ego = track(T, along(T, 12))
    cone_line = ([(90, -3), (90, 3)], "work_zone", np.nan)
    crosswalk = ([(70, -5), (70, 5)], "crosswalk", np.nan)
    towards = (lane(3.5)[0][::-1], "lane_center", 13.9)
    scenes = [
        scene(T, ego), scene(T, ego, road=[lane(0)]), scene(T, ego, road=[lane(0), lane(3.5), lane(-3.5)]),
        scene(T, ego, road=[lane(0), towards]), scene(T, ego, road=[lane(0, 27.8), lane(3.5, 27.8)]),
        scene(T, ego, road=[lane(0), crosswalk]), scene(T, ego, road=[lane(0), lane(3.5), cone_line, crosswalk]),
    ]
    values = attributes(*scenes)
    assert values["road_type"].tolist() == [
        "unknown", "single_lane", "multi_lane", "single_lane", "fast_road", "junction", "work_zone"]
    assert values["n_lanes"].tolist() == [0, 1, 3, 1, 2, 1, 2]
    assert values["speed_limit_mps"] == pytest.approx([np.nan, 13.9, 13.9, 13.9, 27.8, 13.9, 13.9], nan_ok=True)


def test_a_batch_without_agents():
    values = attributes(scene(T, track(T, along(T, 9))))
    assert values["n_agents"][0] == 0 and values["actor_type"][0] == ""


def test_a_car_that_is_never_valid_has_no_gap():
    values = attributes(scene(T, track(T, along(T, 9), valid=False), [track(T, 20 + along(T, 9), size=CAR)]))
    assert values["actor"][0] == -1 and np.isnan(values["ego_speed_mps"][0])
