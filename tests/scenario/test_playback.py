"""What is sent to the browser: taken apart here as player.js does it, it is the scenario again."""

import base64
import json

import numpy as np
import pytest

from avshift_core.scenario.measure.series import NOBODY, series_of
from avshift_core.scenario.playback import ANGLE, NONE, message_of, playback
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS
from tests.scenario.scenes import along, moved, scene, times, track

LANE = (np.array([[-20.0, 0], [0, 0], [60, 0]]), "lane_center", 13.9)
EDGE = (np.array([[-20.0, 3], [60, 3]]), "road_edge", np.nan)


def opened(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def states_of(message, values, mask, count):
    """(count, 3) metres and radians, NaN where not valid."""
    out = np.full((count, 3), np.nan)
    valid = np.unpackbits(opened(message[mask], np.uint8), bitorder="little")[:count].astype(bool)
    out[valid] = opened(message[values], "<i2").reshape(-1, 3) * [message["unit_m"], message["unit_m"], 1 / ANGLE]
    return out


def busy(turn=0.0, dx=0.0, dy=0.0):
    """An ego at 10 m/s, a lorry that comes into sight after 1 s, and a pedestrian; somewhere in the plane."""
    t = times(3.0)
    x = along(t, 10.0)
    lorry = track(t, x + 20, 3.5, kind="truck", size=(12.0, 2.5, 3.5), valid=t >= 1)
    walker = track(t, np.full_like(t, 30.0), along(t, 1.2) - 4, kind="pedestrian", size=(0.6, 0.6, 1.8))
    return moved(scene(t, track(t, x), [lorry, walker], [LANE, EDGE]), dx, dy, turn)


@pytest.mark.parametrize(("turn", "dx", "dy"), [(0.0, 0.0, 0.0), (2.5, 300.0, -5000.0), (-1.0, 1e4, 2e4)])
def test_the_browser_gets_the_scene_seen_from_the_ego_at_its_start(turn, dx, dy):
    message = playback(busy(turn, dx, dy)).message()
    t, T = times(3.0), message["T"]
    assert np.allclose(opened(message["t_ms"], "<i4") / 1000, t) and message["A"] == 2
    fine = 0.006 + 1e-6 * np.hypot(dx, dy)  # half a unit, and what float32 loses far from its origin
    ego = states_of(message, "ego", "ego_valid", T)
    assert np.allclose(ego[:, 0], along(t, 10.0), atol=fine) and np.allclose(ego[:, 1:], 0, atol=fine)
    agents = states_of(message, "agents", "agents_valid", 2 * T).reshape(2, T, 3)
    assert np.isnan(agents[0, :, 0]).tolist() == (t < 1).tolist()
    assert np.allclose(agents[0, t >= 1, :2], np.stack([along(t, 10.0) + 20, 3.5 + 0 * t], axis=1)[t >= 1], atol=fine)
    assert np.allclose(agents[1, :, 2], np.pi / 2, atol=1e-3)
    road = opened(message["road"]["xy"], "<i2").reshape(-1, 2) * message["unit_m"]
    assert message["road"]["kind"] == ["lane_center", "road_edge"] and message["road"]["start"] == [0, 3, 5]
    assert np.allclose(road[3:], EDGE[0], atol=fine)
    assert [AGENT_TYPES[k] for k in message["kind"]] == ["truck", "pedestrian"]
    assert message["size_cm"][2:4] == [1200, 250]


def test_the_strips_are_the_series():
    one = busy()
    series, message = series_of(one), playback(one).message()
    sent = {name: opened(text, "<i2") for name, text in message["series"].items()}
    assert np.allclose(sent["speed"] / 100, series.speed_mps, atol=0.006)
    for name, values, unit in (("gap", series.gap_m, 100), ("leader_gap", series.leader_gap_m, 100),
                               ("ttc", series.ttc_s, 1000)):
        told = np.isfinite(values)
        assert (sent[name] == NONE).tolist() == (~told).tolist()
        assert np.allclose(sent[name][told] / unit, values[told], atol=0.006)
    assert np.array_equal(sent["ttc_agent"], series.ttc_agent)


def test_a_long_scene_gets_a_coarser_unit_and_far_road_is_cut_off():
    t = times(60.0)
    x = along(t, 30.0)  # 1.8 km
    far = np.stack([np.linspace(0, 5000, 51), np.zeros(51)], axis=1)
    there_and_back = np.concatenate([far[:10], far[40:], far[:10]])
    one = scene(t, track(t, x), road=[(far, "lane_center", np.nan), (there_and_back, "road_edge", np.nan)])
    message = playback(one).message()
    assert np.allclose(states_of(message, "ego", "ego_valid", len(t))[:, 0], x, atol=message["unit_m"])
    assert 1900 / 32767 <= message["unit_m"] < 0.06  # 1.8 km and a margin of 100 m in 15 bits
    road = opened(message["road"]["xy"], "<i2").reshape(-1, 2) * message["unit_m"]
    start = message["road"]["start"]
    assert message["road"]["kind"] == ["lane_center", "road_edge", "road_edge"]  # one falls in two, none is bent
    assert road[:, 0].max() == pytest.approx(1900, abs=1) and np.allclose(road[:, 1], 0)
    assert [road[start[j], 0] for j in range(3)] == [0, 0, 0]


def test_128_agents_and_150_steps_stay_small():
    rng, t = np.random.default_rng(0), np.arange(150) / 10
    agents = [track(t, along(t, rng.uniform(0, 20)) + rng.uniform(-80, 80), rng.uniform(-80, 80)) for _ in range(128)]
    road = [(rng.uniform(-100, 100, (20, 2)), ROAD_KINDS[k % 6], np.nan) for k in range(150)]
    one = playback(scene(t, track(t, along(t, 10.0)), agents, road))
    assert len(json.dumps(message_of([one]))) < 300_000
    assert len(json.dumps(message_of([one, one]))) < 600_000


def test_two_scenes_share_their_scales():
    t = times(5.0)
    slow, fast = busy(), scene(t, track(t, along(t, 24.0)))
    message = message_of([playback(slow, tag="P"), playback(fast, tag="Q", title="<b>two</b>")])
    assert message["duration_ms"] == 5000 and [s["tag"] for s in message["scenes"]] == ["P", "Q"]
    assert message["speed_top_mps"] == 30 and message["gap_top_m"] >= 10
    assert message["ttc_top_s"] == 10 and message["ttc_alarm_s"] == 1.5
    assert message["scenes"][1]["title"] == "<b>two</b>"  # as it is: the player sets it as text
    assert message_of([playback(slow)])["speed_top_mps"] == 10


def test_an_actor_that_does_not_exist_is_nobody():
    assert playback(busy(), actor=1).actor == 1
    assert playback(busy(), actor=2).actor == NOBODY and playback(busy(), actor=-1).actor == NOBODY


def test_an_ego_that_is_seen_late_starts_the_frame():
    t = times(2.0)
    x = along(t, 10.0)
    message = playback(scene(t, track(t, x, valid=t >= 0.5), [track(t, x, 4.0)])).message()
    ego = states_of(message, "ego", "ego_valid", len(t))
    assert np.isnan(ego[:5]).all() and ego[5].tolist() == [0, 0, 0]
    assert states_of(message, "agents", "agents_valid", len(t))[0, :2].tolist() == pytest.approx([-5, 4], abs=0.01)
