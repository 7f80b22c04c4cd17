import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.errors import LogError
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.derive import local_slope
from avshift_core.scenario.schema import AGENT_TYPES, DERIVABLE, EGO_SIZE, Ids

T = 101
TIMES = np.arange(T) / 10
CAR = AGENT_TYPES.index("car")


def line(speed=10.0, x=0.0, y=0.0, direction=0.0, t=TIMES):
    """(T, 2) positions at constant speed."""
    return np.column_stack([x + speed * t * np.cos(direction), y + speed * t * np.sin(direction)])


def build(**changes):
    """An ego at 10 m/s along x and a car 20 m ahead of it, far away from the origin of the map."""
    far = np.array([5000.0, -3000.0])
    agents = changes.pop("agents", [line(x=20.0)])
    states = {
        "where": "drive.csv", "ids": Ids("s", "d"), "t_s": TIMES + 1e6, "ego_xy": line() + far,
        "agent_id": [f"a{i}" for i in range(len(agents))], "agent_xy": np.array(agents).reshape(-1, T, 2) + far,
        "agent_valid": np.ones((len(agents), T), bool),
    }
    return build_scenario(**states | changes)


def test_origin_moves_to_the_ego_and_all_is_derived_and_marked():
    s = build()
    np.testing.assert_allclose(s.origin_m, [5000, -3000])
    np.testing.assert_allclose(s.t_s, TIMES, atol=1e-6)
    np.testing.assert_allclose(s.ego[:, :2], line(), atol=1e-3)
    np.testing.assert_allclose(s.ego[:, 2:], [[0, 10, 0]] * T, atol=1e-3)
    np.testing.assert_allclose(s.agents[0, 0], [20, 0, 0, 10], atol=1e-3)
    assert s.derived == DERIVABLE
    assert AGENT_TYPES[s.agent_type[0]] == "car"
    np.testing.assert_allclose(s.ego_size, EGO_SIZE)


def test_what_the_log_holds_is_kept_and_not_marked():
    s = build(
        ego_heading=np.full(T, 0.02), ego_speed=np.full(T, 10.1), ego_acceleration=np.full(T, 0.3),
        ego_size=[5.2, 2.1, 1.9], agent_heading=np.full((1, T), -0.02), agent_speed=np.full((1, T), 9.9),
        agent_type=[AGENT_TYPES.index("bus")], agent_size=[[12, 2.5, 3]],
    )
    assert s.derived == ()
    np.testing.assert_allclose(s.ego[:, 2:], [[0.02, 10.1, 0.3]] * T, rtol=1e-6)
    np.testing.assert_allclose(s.agents[0, :, 2:], [[-0.02, 9.9]] * T, rtol=1e-6)
    np.testing.assert_allclose(s.agent_size, [[12, 2.5, 3]])


def test_what_is_missing_in_part_is_filled_and_marked():
    speed = np.full(T, 10.2)
    speed[40] = np.nan
    s = build(ego_speed=speed, agent_size=[[4.4, np.nan, 0]], agent_type=[CAR])
    assert s.ego[40, 3] == pytest.approx(10.0, abs=1e-3) and s.ego[41, 3] == pytest.approx(10.2)
    np.testing.assert_allclose(s.agent_size[0], [4.4, 1.95, 1.7])  # nuScenes' mean car where the log has none
    assert {"ego_speed", "agent_size"} < set(s.derived) and "agent_type" not in s.derived


def test_a_missing_height_alone_is_filled_without_a_mark():
    s = build(ego_size=[4.8, 1.8, np.nan], agent_size=[[4.4, 1.8, np.nan]], agent_type=[CAR])
    np.testing.assert_allclose([s.ego_size, s.agent_size[0]], [[4.8, 1.8, 1.7], [4.4, 1.8, 1.7]])
    assert "ego_size" not in s.derived and "agent_size" not in s.derived
    assert "ego_size" in build(ego_size=[4.8, np.nan, 1.7]).derived


def test_noisy_but_right_speeds_and_headings_are_taken():
    """Tracks as bad as the worst of the real ones: a third of the speeds near 0, headings with an sd of 12 degrees."""
    rng = np.random.default_rng(5)
    speed = np.where(rng.random(T) < 0.33, 0.1, rng.normal(10, 2, T))
    heading = rng.normal(0.03, 0.2, T)
    s = build(agent_speed=speed[None], agent_heading=heading[None])
    np.testing.assert_allclose(s.agents[0, :, 2:], np.column_stack([heading, speed]), atol=1e-5)
    assert build(ego_speed=np.full(T, 11.5)).ego[0, 3] == 11.5  # 15 % is within what sensors differ by
    wide = rng.uniform(6, 20, T)  # median 1.3, but anything between 0.6 and 2
    assert build(ego_speed=wide).ego[5, 3] == pytest.approx(wide[5])


def test_a_turn_and_a_vehicle_that_backs_up_are_taken():
    """A circle of 8 m at 4 m/s: the middle of the car slips by 1.4 m / 8 m, 10 degrees; and a car in reverse."""
    angle = 0.5 * TIMES
    circle = 8 * np.column_stack([np.cos(angle), np.sin(angle)])
    build(ego_xy=circle, ego_heading=angle + np.pi / 2 - 0.2, agents=[])
    assert build(ego_heading=np.full(T, np.pi)).ego[5, 2] == pytest.approx(np.pi, abs=1e-3)


def test_arrays_are_read_only_and_zero_where_not_valid():
    valid = np.ones((1, T), bool)
    valid[0, 30:50] = False
    xy = np.array([line(x=20.0)])
    xy[0, 30:50] = np.nan
    s = build(agents=xy, agent_valid=valid)
    assert (s.agents[0, 30:50] == 0).all() and s.agents_valid.sum() == T - 20
    assert s.agents[0, 29, 3] == pytest.approx(10, abs=1e-3)
    for array in (s.t_s, s.ego, s.ego_valid, s.ego_size, s.agents, s.agents_valid, s.agent_id, s.agent_type,
                  s.agent_size, s.origin_m, s.road.xy):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array[...]


def test_ego_missing_in_part_is_masked():
    valid = np.ones(T, bool)
    valid[:10] = valid[50:60] = False
    s = build(ego_valid=valid)
    np.testing.assert_allclose(s.origin_m, [5010, -3000])   # its first valid position, at 1 s
    np.testing.assert_array_equal(s.ego_valid, valid)
    assert (s.ego[~valid] == 0).all() and np.allclose(s.ego[valid][:, 3], 10, atol=1e-3)


def test_no_agents_and_more_than_128():
    assert build(agents=[]).agents.shape == (0, T, 4)
    assert build(agents=[line(x=5.0 * i) for i in range(200)]).n_agents == 200


def test_agents_without_a_valid_state_are_not_part_of_it():
    valid = np.ones((2, T), bool)
    valid[0] = False
    s = build(agents=[line(), line(x=9)], agent_valid=valid, agent_speed=[np.zeros(T), np.full(T, 10.5)])
    assert s.agent_id.tolist() == ["a1"] and s.agents[0, 5, 3] == 10.5


def test_heading_is_kept_through_standstill_and_filled_back_at_the_start():
    """By hand: an agent stands for 2 s, drives along (1, 1) for 3 s, stands for 2 s, and drives along -y."""
    still = np.zeros((20, 2))
    path = np.cumsum(np.concatenate([still, np.full((30, 2), 0.5), still, np.tile([0.0, -0.8], (31, 1))]), axis=0)
    noise = np.random.default_rng(0).normal(scale=0.02, size=path.shape)
    s = build(agents=[path + noise])
    heading = s.agents[0, :, 2]
    np.testing.assert_allclose(heading[:15], np.pi / 4, atol=0.15)
    np.testing.assert_allclose(heading[56:64], np.pi / 4, atol=0.15)
    np.testing.assert_allclose(heading[80:], -np.pi / 2, atol=0.1)
    assert s.agents[0, 5:12, 3].max() < 0.2


def test_heading_of_a_circle():
    """A circle of 20 m at 8 m/s turns by 0.4 rad/s: heading is 90 degrees ahead of the radius."""
    angle = 0.4 * TIMES
    s = build(agents=[20 * np.column_stack([np.cos(angle), np.sin(angle)])])
    off = np.angle(np.exp(1j * (s.agents[0, :, 2] - angle - np.pi / 2)))
    assert np.abs(off[6:-6]).max() < 0.01 and np.abs(off).max() < 0.12    # one-sided windows at both ends
    np.testing.assert_allclose(s.agents[0, 6:-6, 3], 8, rtol=0.01)


def test_an_agent_that_never_moves_stands_along_the_ego():
    turned = line(direction=0.7)
    s = build(ego_xy=turned, agents=[np.full((T, 2), 5.0)])
    np.testing.assert_allclose(s.agents[0, :, 2], 0.7, atol=1e-3)


def test_a_creeping_car_points_where_it_went():
    """0.1 m in 10 s is far below standstill, but straight; noise of the same size is not."""
    creep = line(speed=0.01, direction=2.0)
    s = build(agents=[creep, np.random.default_rng(1).normal(scale=0.05, size=(T, 2))])
    np.testing.assert_allclose(s.agents[0, :, 2], 2.0, atol=1e-3)
    np.testing.assert_allclose(s.agents[1, :, 2], s.ego[:, 2], atol=1e-6)


def test_a_standing_ego_takes_its_heading_from_traffic():
    """Right-hand traffic along 0.5 rad: cars that come towards the ego on its left, and one that passes it."""
    along, left = np.array([np.cos(0.5), np.sin(0.5)]), np.array([-np.sin(0.5), np.cos(0.5)])
    cars = [s * TIMES[:, None] * along + x * along + y * left for s, x, y in [(-9, 40, 4), (-8, 60, 4), (10, -50, 3)]]
    for some in (cars, cars[:1], cars[2:]):
        s = build(ego_xy=np.zeros((T, 2)), agents=some, agent_xy=np.array(some))
        np.testing.assert_allclose(s.ego[:, 2], 0.5, atol=np.radians(2.5))    # candidates are 5 degrees apart
        np.testing.assert_allclose(s.ego[:, 3], 0, atol=1e-6)


def test_a_standing_ego_alone_points_along_x():
    assert (build(ego_xy=np.zeros((T, 2)), agents=[]).ego[:, 2] == 0).all()


@pytest.mark.parametrize("rate", [1.0, 2.0, 5.0, 10.0, 20.0, 100.0])
def test_speed_and_acceleration_at_every_rate(rate):
    """x = 5 t + t^2: speed 5 + 2 t, acceleration 2."""
    t = np.arange(0, 10.01, 1 / rate)
    s = build_scenario(where="w", ids=Ids("s", "d"), t_s=t, ego_xy=np.column_stack([5 * t + t**2, 0 * t]), agent_id=[],
                       agent_xy=[], agent_valid=[])
    inside = (t > 1.6) & (t < 8.4)
    np.testing.assert_allclose(s.ego[inside, 3], 5 + 2 * t[inside], rtol=1e-3)
    np.testing.assert_allclose(s.ego[(t > 3.1) & (t < 6.9), 4], 2, rtol=1e-3)


def test_uneven_times_do_not_bend_the_speed():
    rng = np.random.default_rng(3)
    t = np.sort(TIMES + rng.uniform(-0.045, 0.045, T))
    s = build(t_s=t, ego_xy=line(t=t), agents=[], agent_valid=np.zeros((0, T), bool))
    np.testing.assert_allclose(s.ego[:, 3], 10, rtol=1e-3)


def test_the_filter_is_what_its_text_says():
    """At 10 Hz: half of a sine of 1 Hz, 94 % of 0.3 Hz, and noise of sd 1 m -> 1.4 m/s, measured on the sine itself."""
    t = np.arange(0, 60, 0.1)
    for frequency, gain in ((1.0, 0.49), (0.3, 0.94)):
        truth = 2 * np.pi * frequency * np.cos(2 * np.pi * frequency * t)
        slope = local_slope(t, np.sin(2 * np.pi * frequency * t)[None, :, None], np.ones((1, 600), bool))[0, :, 0]
        inside = slice(20, -20)
        assert slope[inside] @ truth[inside] / (truth[inside] @ truth[inside]) == pytest.approx(gain, abs=0.01)
    noise = np.random.default_rng(0).normal(size=(50, 600, 1))
    assert local_slope(t, noise, np.ones((50, 600), bool))[:, 20:-20].std() == pytest.approx(1.4, abs=0.05)


def test_types_by_size_and_by_motion():
    """By the documented rules: lengths of a person, a bicycle, a motorcycle (fast), a car, a truck; then by motion."""
    sizes = [[0.6] * 3, [1.8, 0.6, 1.5], [2.1, 0.8, 1.5], [4.5, 1.9, 1.5], [9, 2.5, 3], *[[np.nan] * 3] * 4]
    speeds = [1.3, 5, 15, 0, 8, 9, 1.3, 3, 0]
    s = build(agents=[line(speed=v, y=3.0 * i) for i, v in enumerate(speeds)], agent_size=sizes)
    assert [AGENT_TYPES[k] for k in s.agent_type] == [
        "pedestrian", "bicycle", "motorcycle", "car", "truck", "car", "pedestrian", "other", "other"]


def test_a_single_state_stands():
    valid = np.zeros((1, T), bool)
    valid[0, 7] = True
    s = build(agent_valid=valid)
    np.testing.assert_allclose(s.agents[0, 7], [27, 0, 0, 0], atol=1e-3)
    assert AGENT_TYPES[s.agent_type[0]] == "other"


def test_road_is_moved_and_cut_to_what_is_near():
    """The ego drives from x = 5000 to 5100: of a lane in pieces of 50 m, those that touch 4880 to 5220 stay."""
    lane = np.column_stack([np.arange(0, 10_001, 50.0), np.full(201, -3003.0)])
    s = build(road=[(lane, "lane_center", 13.9), (lane + np.array([0, 500]), "road_edge", np.nan),
                    (np.array([[4000.0, -3010], [6000, -3010]]), "lane_boundary", np.nan)])
    assert s.road.n == 2 and s.road.speed_limit_mps[0] == np.float32(13.9)
    np.testing.assert_allclose(s.road.polyline(0)[[0, -1]], [[-150, -3], [250, -3]])
    np.testing.assert_allclose(s.road.polyline(1), [[-1000, -10], [1000, -10]])    # sparse, but passes by


WRONG = [
    ({"t_s": np.r_[TIMES[:50], TIMES[49:-1]]}, r"steps 49 and 50 have the same time, 4\.900000 s"),
    ({"t_s": np.r_[TIMES[:50], TIMES[40:-10]]}, r"time runs backwards, from 4\.9.* s at step 49 to 4\.0.* s"),
    ({"t_s": np.r_[np.nan, TIMES[1:]]}, "the time of step 0 is nan"),
    ({"t_s": TIMES * 1e3}, "100 s apart.*times seem to be in milliseconds"),
    ({"t_s": TIMES * 1e6}, "100,000 s apart.*times seem to be in microseconds"),
    ({"t_s": TIMES * 1e9}, "100,000,000 s apart.*times seem to be in nanoseconds"),
    ({"t_s": TIMES / 60}, r"lasts 0\.167 s; at least 1 s"),
    ({"t_s": TIMES / 11}, r" lasts 0\.909 s; at least 1 s are needed"),
    ({"t_s": np.r_[TIMES[:-1], 1e7]}, "lasts 10,000,000 s; at most 3,600 s"),
    ({"ego_xy": np.full((T, 2), np.nan)}, "the ego has 0 valid states; at least 2"),
    ({"ego_valid": np.arange(T) == 3}, "the ego has 1 valid states"),
    ({"ego_xy": line() * 1e15}, "the ego's position at step 1 is"),
    ({"ego_xy": np.where(np.arange(T)[:, None] == 8, np.inf, line()), "ego_valid": np.ones(T, bool)},
     r"the ego's position at step 8 is \(inf, inf\)"),
    ({"agents": [np.where(np.arange(T)[:, None] == 8, np.nan, line())]},
     r"position of agent 'a0' at step 8 is \(nan, nan\)"),
    ({"agents": [line(), line(y=4)], "agent_id": ["7", "7"]}, "agent '7' stands there twice"),
    ({"agents": [line(x=-5e6)]}, "agent 'a0' is 5,000 km away"),
    ({"ego_xy": np.r_[line()[:50], line(x=900)[50:]]}, "the ego jumps by 901 m between steps 49 and 50"),
    ({"ego_xy": line(speed=30 / 0.3048)}, r"the ego moves at 98 m/s; positions seem to be in feet"),
    ({"ego_xy": line(speed=1000)}, r"the ego moves at 1,000 m/s; positions seem to be in centimetres"),
    ({"ego_xy": line(speed=30_000)}, r"the ego moves at 30,000 m/s; positions seem to be in millimetres"),
    ({"ego_xy": line(speed=0), "agents": [line(speed=1500)]}, "most agents move at 1,500 m/s; .*centimetres"),
    ({"ego_speed": np.full(T, 36.0)}, r"speeds of the ego are 3\.6 times .* in km/h.*divide by 3\.6"),
    ({"ego_speed": np.full(T, 22.4)}, r"speeds of the ego are 2\.24 times .* in mph"),
    ({"ego_speed": np.full(T, 32.8)}, r"speeds of the ego are 3\.28 times .* in ft/s"),
    ({"ego_speed": np.full(T, 19.4)}, "in knots"),
    ({"agent_speed": np.full((1, T), 36.0)}, "speeds of the agents are 3.6 times .* in km/h"),
    ({"ego_speed": np.full(T, 3.048)}, "positions are in feet"),
    ({"ego_speed": np.full(T, 0.1)}, "positions are in centimetres"),
    ({"ego_speed": np.full(T, 16.09)}, r"1\.609 times .* speeds in km/h were taken for mph"),
    ({"agent_speed": np.full((1, T), 6.214)}, r"of the agents are 0\.6214 times .* in mph were taken for km/h"),
    ({"ego_speed": np.full(T, 13.0)}, r"1\.3 times what positions and times give; check the units"),
    ({"ego_speed": np.full(T, 50.0)}, "5 times what positions and times give; check the units"),
    ({"ego_xy": line(speed=1e-5), "ego_speed": np.full(T, 10.0)}, "1e[+]06 times .* check the units"),
    ({"ego_speed": np.where(np.arange(T) == 5, np.inf, 10.0)}, "a speed of the ego is infinite"),
    ({"ego_speed": np.where(np.arange(T) == 5, 9999.0, 10.0)}, "a speed of the ego is 9,999 m/s"),
    ({"ego_heading": np.where(np.arange(T) == 5, np.inf, 0.0)}, "a heading of the ego is infinite"),
    ({"ego_xy": line(direction=1.0), "ego_heading": np.full(T, 57.3)}, r"reach 57\.3, .*seem to be in degrees"),
    ({"ego_xy": line(direction=0.09), "ego_heading": np.full(T, 5.16)}, "which they do if they are in degrees"),
    ({"agents": [line(direction=0.09)], "agent_heading": np.full((1, T), 5.16)}, "of the agents .* in degrees"),
    ({"ego_xy": line(direction=0.4), "ego_heading": np.full(T, np.pi / 2 - 0.4)}, "clockwise from north"),
    # a course of 37 degrees is 53 degrees counter-clockwise from east: 16 degrees off
    ({"ego_xy": line(direction=np.radians(53)), "ego_heading": np.full(T, np.radians(37))}, "clockwise from north"),
    ({"ego_xy": line(direction=0.01), "ego_heading": np.full(T, 1.56)}, "clockwise from north"),
    ({"agents": [line(direction=0.2), line(direction=1.2, y=9.0)], "agent_heading": [[0.5] * T, [1.5] * T]},
     r"headings of the agents are [+]17 degrees off the direction of motion, all the time"),  # 0.3 rad
    ({"agents": [line(direction=1.0), line(direction=1.0, x=9.0)], "agent_heading": np.full((2, T), 1.0 - np.pi)},
     "180 degrees off the direction"),
    ({"ego_acceleration": np.full(T, np.inf)}, "the ego's acceleration at step 0 is inf"),
    ({"agent_size": [[15.1, 6.2, 5]], "agent_type": [CAR]},
     r"cars among the agents are \(median\) 15.1 long and 6.2 wide; sizes seem to be in feet"),
    ({"agent_size": [[15.1, np.nan, np.nan]]}, r"15\.1 long; sizes seem to be in feet"),
    ({"agent_size": [[460, 190, 150]], "agent_type": [CAR]}, "seem to be in centimetres"),
    ({"agent_size": [[181, 75, 60]], "agent_type": [CAR]}, "seem to be in inches"),
    ({"ego_size": [4600, 1900, 1500]}, "the ego is 4600 long and 1900 wide; sizes seem to be in millimetres"),
    ({"agent_size": [[-4.6, 1.9, 1.5]]}, "a size of the agents is -4.6"),
    ({"agent_size": [[4.6, np.inf, 1.5]]}, "a size of the agents is inf"),
    ({"agent_size": [[460, 2.5, 3]], "agent_type": [AGENT_TYPES.index("truck")]}, "a size of the agents is 460 m"),
    ({"road": [(np.array([[0, np.nan], [1, 1]]), "lane_center", np.nan)]},
     r"point 0 of a lane center of the road is \(0, nan\)"),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=[s for _, s in WRONG])
def test_wrong_states_are_named(changes, sentence):
    with pytest.raises(LogError, match=r"^drive\.csv.*" + sentence):
        build(**changes)


def test_two_states_are_too_few_for_one_second():
    with pytest.raises(LogError, match=r"holds 1 time step; at least 2"):
        build_scenario(where="w", ids=Ids("s", "d"), t_s=[0.0], ego_xy=[[0, 0]], agent_id=[], agent_xy=[],
                       agent_valid=[])


RIGHT = [
    ("a long bus", {"agent_size": [[18, 2.5, 3]], "agent_type": [AGENT_TYPES.index("bus")]}),
    ("a truck as ego", {"ego_size": [16.5, 2.55, 4]}),
    ("heading that counts on after a full turn", {"ego_heading": np.full(T, 8 * np.pi)}),
    ("heading in 0..2 pi", {"ego_xy": line(direction=-0.3), "ego_heading": np.full(T, 2 * np.pi - 0.3)}),
    ("a car that backs up", {"ego_heading": np.full(T, np.pi), "ego_speed": np.full(T, -10.0)}),
    ("backing up with a heading that is small in degrees", {"ego_heading": np.full(T, 3.1)}),
    ("a standing car with any heading", {"ego_xy": np.zeros((T, 2)), "ego_heading": np.full(T, 2.2)}),
    ("a race car", {"ego_xy": line(speed=70)}),
    ("speeds that lag behind", {"ego_speed": np.full(T, 8.5)}),
    ("one agent that jumps", {"agents": [line(), line(y=4), np.r_[line()[:50], line(x=900)[50:]]]}),
]


@pytest.mark.parametrize("changes", [c for _, c in RIGHT], ids=[name for name, _ in RIGHT])
def test_unusual_but_right_states_pass(changes):
    assert build(**changes).n_steps == T


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(-np.pi, np.pi), st.floats(-1e5, 1e5))
def test_moving_and_turning_the_map_moves_and_turns_nothing_else(seed, turn, shift):
    rng = np.random.default_rng(seed)
    speed = rng.uniform(0, 15, size=(6, 1, 1)) * rng.integers(0, 2, size=(6, 1, 1))
    direction = rng.uniform(-np.pi, np.pi, size=(6, 1)) + rng.uniform(-0.1, 0.1, size=(6, 1)) * TIMES
    steps = speed * np.stack([np.cos(direction), np.sin(direction)], axis=-1) / 10
    xy = rng.uniform(-50, 50, size=(6, 1, 2)) + np.cumsum(steps, axis=1)
    valid = rng.uniform(size=(6, T)) < 0.8
    valid[0, :20] = True
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    a, b = (build_scenario(where="w", ids=Ids("s", "d"), t_s=TIMES, ego_xy=p[0], ego_valid=valid[0], agent_xy=p[1:],
                           agent_valid=valid[1:], agent_id=list("abcde")) for p in (xy, xy @ rotation.T + shift))
    np.testing.assert_allclose(b.ego[:, :2], a.ego[:, :2] @ rotation.T, atol=1e-2)
    np.testing.assert_allclose(b.agents[..., 3], a.agents[..., 3], atol=1e-2)
    np.testing.assert_array_equal(b.agent_type, a.agent_type)
    if speed[0] > 1:
        off = np.angle(np.exp(1j * (b.ego[:, 2] - a.ego[:, 2] - turn)))[a.ego_valid]
        assert np.abs(off).max() < 1e-2
