"""The encoder's view: frame, steps, masks, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.errors import ConfigError
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS
from avshift_core.scenario.view import ROAD_POINTS, TensorView, tensor_view
from tests.scenario.scenes import CAR, PERSON, along, batch_of, moved, scene, times, track

T = times(12)
LANE = ([(-40.0, 0.0), (10.0, 0.0), (200.0, 0.0)], "lane_center", 13.9)
EDGE = ([(-40.0, 4.0), (200.0, 4.0)], "road_edge", np.nan)
FAR = ([(500.0, 0.0), (700.0, 0.0)], "lane_center", 13.9)


def traffic(t=T):
    phi = 0.05 * t
    ego = track(t, along(t, 10) * np.cos(phi / 2), along(t, 10) * np.sin(phi / 2))
    agents = [track(t, 30 + along(t, 9), 3.0), track(t, 12.0, -6.0, heading=1.0, kind="pedestrian", size=PERSON),
              track(t, -20 + along(t, 11), -3.5, valid=(t > 3) & (t < 8))]
    return scene(t, ego, agents, [LANE, EDGE, FAR])


def same(a: TensorView, b: TensorView, but=(), tolerance=1e-4):
    for name in TensorView.__dataclass_fields__:
        if name not in but:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=tolerance, err_msg=name)


def test_values_by_hand():
    """Constant speeds along a heading of 90 degrees: the leader stays 30 m ahead and 2 m to the left."""
    t = times(14)
    ego = track(t, 5.0, 7 + along(t, 10))
    leader = track(t, 3.0, 37 + along(t, 10))
    view = tensor_view(batch_of(scene(t, ego, [leader])))
    assert view.ego.shape == (1, 15, 6) and view.agents.shape == (1, 1, 15, 5)
    assert view.dt_s[0] == pytest.approx(1.0)
    np.testing.assert_allclose(view.ego[0, :, 0], 10 * np.arange(15), atol=1e-3)
    np.testing.assert_allclose(view.ego[0, :, 1:5], np.tile([0, 1, 0, 10], (15, 1)), atol=1e-3)
    np.testing.assert_allclose(view.agents[0, 0, :, 0], 30 + 10 * np.arange(15), atol=1e-3)
    np.testing.assert_allclose(view.agents[0, 0, :, 1], 2, atol=1e-3)
    assert view.agents_valid.all() and view.ego_valid.all()
    assert view.agent_type[0, 0] == AGENT_TYPES.index("car")
    np.testing.assert_allclose(view.agent_size[0, 0], CAR)


@settings(max_examples=25, deadline=None)
@given(st.floats(-500, 500), st.floats(-500, 500), st.floats(-np.pi, np.pi))
def test_turning_and_moving_the_world_changes_nothing(dx, dy, turn):
    """float32 places hold 3e-5 m at 500 m, so distances agree to about 1e-4 m."""
    same(tensor_view(batch_of(traffic())), tensor_view(batch_of(moved(traffic(), dx, dy, turn))), tolerance=3e-4)


def test_turning_the_world_near_its_origin_is_exact_to_1e_4():
    same(tensor_view(batch_of(traffic())), tensor_view(batch_of(moved(traffic(), 3.0, -2.0, 2.0))), tolerance=1e-4)


def test_no_place_or_time_is_in_the_view():
    batch = batch_of(traffic())
    later = batch_of(type(traffic())(**{**vars(traffic()), "t_s": T + 1000.0, "origin_m": np.array([1e6, 2e6])}))
    same(tensor_view(batch), tensor_view(later))


def test_permuting_agents_permutes_them():
    one = traffic()
    order = np.array([2, 0, 1])
    other = type(one)(**{**vars(one), **{k: getattr(one, k)[order] for k in
                                         ("agents", "agents_valid", "agent_id", "agent_type", "agent_size")}})
    a, b = tensor_view(batch_of(one)), tensor_view(batch_of(other))
    same(a, b, but=("agent_index",))
    assert order[b.agent_index[0]].tolist() == a.agent_index[0].tolist()


def test_an_added_invalid_agent_changes_nothing():
    t, one = T, traffic()
    ghost = track(t, 1.0, 1.0, valid=False)
    agents = [track(t, 30 + along(t, 9), 3.0), track(t, 12.0, -6.0, heading=1.0, kind="pedestrian", size=PERSON),
              track(t, -20 + along(t, 11), -3.5, valid=(t > 3) & (t < 8)), ghost]
    phi = 0.05 * t
    ego = track(t, along(t, 10) * np.cos(phi / 2), along(t, 10) * np.sin(phi / 2))
    a, b = tensor_view(batch_of(one)), tensor_view(batch_of(scene(t, ego, agents, [LANE, EDGE, FAR])))
    assert b.agents.shape[1] == 4 and not b.agent_valid[0, 3] and b.agent_index[0, 3] == -1
    assert not b.agents[0, 3].any() and (a.n_cut == b.n_cut).all()
    np.testing.assert_array_equal(a.agents, b.agents[:, :3])
    np.testing.assert_array_equal(a.road, b.road)


def test_uneven_timestamps_are_honoured():
    """x = 10 t whatever the spacing of the states, also with 5 s in 50 states and 7 s in 10."""
    t = np.concatenate([np.linspace(0, 5, 50), np.linspace(5.7, 12, 10)])
    view = tensor_view(batch_of(scene(t, track(t, 10 * t))))
    np.testing.assert_allclose(view.ego[0, :, 0], 10 * np.linspace(0, 12, 15), atol=1e-3)
    assert view.dt_s[0] == pytest.approx(12 / 14)


def test_a_shorter_scenario_in_the_batch_keeps_its_own_duration():
    short, long = traffic(times(5)), traffic()
    view = tensor_view(batch_of(short, long))
    assert view.dt_s == pytest.approx([5 / 14, 12 / 14])
    alone = tensor_view(batch_of(short))
    np.testing.assert_allclose(view.ego[0], alone.ego[0], atol=1e-6)
    np.testing.assert_allclose(view.agents[0], alone.agents[0], atol=1e-6)


def test_valid_only_between_two_valid_states_that_are_near_in_time():
    valid = (T <= 4.95) | (T >= 7.05)  # steps of the view are at 12/14 = 0.857 s: 5.14, 6.0 and 6.86 fall in the hole
    view = tensor_view(batch_of(scene(T, track(T, 10 * T), [track(T, 10 * T, 4.0, valid=valid)])))
    inside = [k for k in range(15) if 4.95 < 12 / 14 * k < 7.05]
    assert view.agents_valid[0, 0].tolist() == [k not in inside for k in range(15)]
    assert not view.agents[0, 0, inside].any()
    sparse = np.array([0.0, 1, 2, 6, 7, 8, 9, 10, 11, 12])  # 4 s without a state
    view = tensor_view(batch_of(scene(sparse, track(sparse, 10 * sparse))))
    assert view.ego_valid[0].tolist() == [not 2 < 12 / 14 * k < 6 for k in range(15)]


def test_headings_take_the_short_way():
    """From 170 to 190 degrees: between them lie 180, not 0."""
    t = np.array([0.0, 1.0])
    ego = track(t, 0.0, heading=np.zeros(2))
    agent = track(t, 5.0, heading=np.array([np.radians(170), np.radians(-170)]))
    view = tensor_view(batch_of(scene(t, ego, [agent], acceleration=0.0)), steps=3)
    np.testing.assert_allclose(view.agents[0, 0, 1, 2:4], [-1, 0], atol=1e-6)


def test_300_agents():
    t = times(10, 2)
    agents = [track(t, 10.0 + k, 5.0) for k in range(300)][::-1]
    batch = batch_of(scene(t, track(t, 0.0), agents))
    view = tensor_view(batch)
    assert view.agents.shape[1] == 128 and view.n_cut[0] == 172
    assert view.agent_index[0].tolist() == list(range(299, 171, -1))  # the nearest ones stand last in the log
    view = tensor_view(batch, actor=np.array([7]))  # 292 m away
    assert view.n_cut[0] == 172 and 7 in view.agent_index[0]


def test_road_is_cut_spread_and_sorted():
    view = tensor_view(batch_of(traffic()))
    assert view.road_valid[0].sum() == 2  # the third line begins 500 m away
    assert view.road_kind[0, :2].tolist() == [ROAD_KINDS.index("lane_center"), ROAD_KINDS.index("road_edge")]
    assert view.road_limit_mps[0, 0] == pytest.approx(13.9) and view.road_limit_known[0, :2].tolist() == [True, False]
    # from x = -40 to where the line leaves 120 m, in the frame of an ego that heads 0 at (0, 0)
    one = tensor_view(batch_of(scene(T, track(T, along(T, 10)), road=[LANE, EDGE])))
    np.testing.assert_allclose(one.road[0, 0, :, 0], np.linspace(-40, 120, ROAD_POINTS), atol=1e-3)
    np.testing.assert_allclose(one.road[0, 1, :, 1], 4, atol=1e-4)


def test_no_road_and_no_agents():
    view = tensor_view(batch_of(scene(T, track(T, along(T, 10)))))
    assert view.agents.shape == (1, 0, 15, 5) and not view.road_valid.any() and view.n_cut[0] == 0


def test_a_view_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="at least 2 steps"):
        tensor_view(batch_of(traffic()), steps=1)
