"""Metrics against closed forms, and their general properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.errors import ConfigError
from avshift_core.scenario.measure.geometry import Boxes, distance, time_to_overlap
from avshift_core.scenario.measure.interaction import interact
from avshift_core.scenario.measure.metrics import (
    COMFORT_BOUNDS,
    METRICS,
    comfort_ratios,
    compute_metrics,
    discomfort,
    exceedance,
    low_rate,
    rate_per_hour,
    rate_per_km,
)
from avshift_core.scenario.measure.motion import FILTER_HALF_S, TimeFilter
from tests.scenario.scenes import CAR, PERSON, along, batch_of, bent, moved, scene, times, track

T = times(10)


def metric(name, *scenarios):
    return compute_metrics(batch_of(*scenarios))[name]


def closing_cars(t=T, ego_mps=20.0, lead_mps=10.0, gap_m=150.0):
    """A leader at constant speed; the bumper gap falls from gap_m at 10 m/s."""
    return scene(t, track(t, along(t, ego_mps)), [track(t, CAR[0] + gap_m + along(t, lead_mps))])


def test_two_cars_at_constant_closing_speed():
    values = compute_metrics(batch_of(closing_cars()))
    gap = 150 - 10 * 10.0  # left after 10 s
    assert values["ttc_min_s"][0] == pytest.approx(gap / 10, rel=1e-4)
    assert values["drac_mps2"][0] == pytest.approx(10**2 / (2 * gap), rel=1e-4)
    assert values["thw_min_s"][0] == pytest.approx(gap / 20, rel=1e-4)
    assert values["gap_min_m"][0] == pytest.approx(gap, rel=1e-4)
    assert values["collision"][0] == 0


@pytest.mark.parametrize("radius", [80.0, 400.0])
def test_leader_is_found_around_the_bend(radius):
    """The way along the path is what the closed form speaks of; a straight corridor would lose the leader."""
    t = times(9)
    values = compute_metrics(batch_of(bent(closing_cars(t, 12.0, 8.0, 50.0), radius)))
    gap = 50 - 4 * 9.0  # between arc lengths; the chord of the boxes themselves is a little shorter
    assert values["thw_min_s"][0] == pytest.approx(gap / 12, rel=0.02)
    assert values["drac_mps2"][0] == pytest.approx(4**2 / (2 * gap), rel=0.03)


def test_a_car_in_the_next_lane_is_no_leader():
    values = compute_metrics(batch_of(scene(T, track(T, along(T, 15)), [track(T, 30 + along(T, 10), 3.5)])))
    assert values["drac_mps2"][0] == 0
    assert values["thw_min_s"][0] == METRICS["thw_min_s"].M
    assert values["gap_min_m"][0] == pytest.approx(3.5 - 1.9, abs=1e-4)


def test_nobody_on_a_collision_course():
    for name in ("ttc_min_s", "thw_min_s", "gap_min_m"):
        assert metric(name, scene(T, track(T, along(T, 15))))[0] == METRICS[name].M


def test_ttc_sees_who_crosses():
    """Ego at 10 m/s, pedestrian (0.6 m square) from 20 m to the right at 2 m/s towards x = 100. Front bumper and walker
    meet: the walker's side reaches the ego's (y = -1.25) after 9.375 s, when the ego's front is at 96.15 of 99.7 m: so
    contact along x comes at 9.73 s = (100 - 0.3 - 2.4) / 10. At the last step, 5 s, TTC is 4.73 s."""
    t = times(5)
    walker = track(t, 100.0, -20 + along(t, 2.0), kind="pedestrian", size=PERSON)
    assert metric("ttc_min_s", scene(t, track(t, along(t, 10)), [walker]))[0] == pytest.approx(4.73, abs=1e-3)


def test_reversing_agent_moves_the_way_its_positions_do():
    """A car with heading 0 backs towards a standing ego at 2 m/s from a gap of 20 m; after 5 s TTC is 10 m / 2 m/s."""
    t = times(5)
    backing = track(t, CAR[0] + 20 - along(t, 2.0), heading=0.0)
    assert metric("ttc_min_s", scene(t, track(t, np.zeros_like(t)), [backing]))[0] == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize("kind", ["static", "pedestrian"])
def test_cones_and_people_count(kind):
    values = compute_metrics(batch_of(scene(T, track(T, along(T, 5)), [track(T, 70.0, 1.0, kind=kind, size=PERSON)])))
    assert values["gap_min_m"][0] == pytest.approx(70 - 50 - 2.4 - 0.3, abs=1e-3)
    assert values["ttc_min_s"][0] == pytest.approx((70 - 50 - 2.4 - 0.3) / 5, abs=1e-3)
    assert values["thw_min_s"][0] == pytest.approx((70 - 50 - 2.4 - 0.3) / 5, abs=1e-3)


def test_collision_of_turned_boxes():
    """At right angles, the other's front (half length 2.4) reaches the ego's side (half width 0.95) below 3.35 m."""
    at = lambda y: scene(T, track(T, 0.0), [track(T, 0.0, y, heading=np.pi / 2)])  # noqa: E731
    assert metric("collision", at(3.34), at(3.36)).tolist() == [1, 0]
    assert metric("gap_min_m", at(3.34), at(3.36)) == pytest.approx([0, 0.01], abs=1e-4)


def test_hard_brake_needs_less_than_minus_three():
    def brakes(rate):
        speed = 20 - rate * np.clip(T - 2, 0, 4)
        return scene(T, track(T, along(T, speed)))
    assert metric("hard_brake", brakes(2.9), brakes(3.2)).tolist() == [0, 1]


def test_sinusoidal_jerk():
    """a = A sin(w t). A least-squares parabola over +-h has the slope A w cos(w t) 3 (sin u - u cos u) / u^3, u = w h
    (the regression slope of a sine); the steps are fine enough to integrate."""
    A, w = 2.0, 1.5
    t = times(12, 40)
    u = w * FILTER_HALF_S
    expected = A * w * 3 * (np.sin(u) - u * np.cos(u)) / u**3
    value = metric("jerk_max_mps3", scene(t, track(t, along(t, 15)), acceleration=A * np.sin(w * t)))
    assert value[0] == pytest.approx(expected, rel=0.01)
    assert expected > 0.94 * A * w  # the filter costs 6 % of the jerk of a four-second wave


def circle(radius, speed, hz=10.0):
    t = times(10, hz)
    phi = along(t, speed) / radius
    return scene(t, track(t, radius * np.sin(phi), radius * (1 - np.cos(phi)), heading=phi), acceleration=0.0)


@pytest.mark.parametrize("hz", [10.0, 20.0])
def test_lateral_acceleration_on_a_circle(hz):
    assert metric("lateral_acceleration_max_mps2", circle(40.0, 12.0, hz))[0] == pytest.approx(144 / 40, rel=0.01)


def test_comfort_score_is_the_largest_ratio():
    interaction = interact(batch_of(circle(10.0, 7.0)))
    ratios = comfort_ratios(interaction.motion)
    assert ratios["lateral_acceleration_mps2"][0] == pytest.approx(4.9 / 4.89, rel=0.01)  # v^2 / R = 4.9
    assert ratios["yaw_rate_radps"][0] == pytest.approx(0.7 / 0.95, rel=0.01)
    assert metric("comfort_score", circle(10.0, 7.0))[0] == pytest.approx(4.9 / 4.89, rel=0.01)
    assert metric("comfort_bound_exceeded", circle(10.0, 6.9), circle(10.0, 7.1)).tolist() == [0, 1]


def test_comfort_bounds_are_nuplans():
    """nuplan-devkit, docs/metrics_description.md, section Comfort."""
    assert COMFORT_BOUNDS == {
        "acceleration_min_mps2": -4.05, "acceleration_max_mps2": 2.40, "lateral_acceleration_mps2": 4.89,
        "yaw_rate_radps": 0.95, "yaw_acceleration_radps2": 1.93, "jerk_mps3": 4.13, "jerk_magnitude_mps3": 8.37,
    }


@pytest.mark.parametrize("hz", [5.0, 10.0, 20.0])
def test_the_filter_reproduces_parabolas_on_uneven_times(hz):
    rng = np.random.default_rng(0)
    t = np.sort(times(10, hz) + rng.uniform(-0.3, 0.3, len(times(10, hz))) / hz)[None]
    y = 3 - 2 * t + 0.7 * t**2
    fit = TimeFilter.of(t, np.ones(t.shape, bool))
    slope, bend = fit.derivatives(y)
    inner = (t >= t[:, :1] + FILTER_HALF_S) & (t <= t[:, -1:] - FILTER_HALF_S)
    assert slope[inner] == pytest.approx((-2 + 1.4 * t)[inner], abs=1e-6)
    assert bend == pytest.approx(np.full(t.shape, 1.4), abs=1e-5)


def test_the_filter_never_averages_across_invalid_steps():
    """Left of the hole the signal is 0, right of it 100: a window across would see a slope."""
    t = times(10)[None]
    valid = np.ones(t.shape, bool)
    valid[:, 50:52] = False
    slope, _ = TimeFilter.of(t, valid).derivatives(np.where(np.arange(101) < 50, 0.0, 100.0)[None])
    assert np.abs(slope).max() < 1e-6


def test_one_step_noise_in_acceleration_is_no_hard_brake():
    acceleration = np.zeros(len(T))
    acceleration[40] = -8.0
    assert metric("hard_brake", scene(T, track(T, along(T, 15)), acceleration=acceleration))[0] == 0


def test_low_rate_misses_half_of_the_events():
    """A leader 8 m ahead brakes at 6 m/s2 for 0.5 s and picks up again after another 0.1 s; the ego answers 0.2 s later
    with 4 m/s2 for 0.4 s. The closing speed is above 2 m/s for half a second: a 10 Hz log sees every event, a log at
    1 Hz sees it or not depending on its phase, of which 34 are tried."""
    def event(phase):
        t = np.arange(0, 12.01, 0.01)
        lead = 15 - 6 * np.clip(t - 5 - phase, 0, 0.5) + 6 * np.clip(t - 5.6 - phase, 0, 0.5)
        acceleration = -4.0 * ((t > 5.2 + phase) & (t < 5.6 + phase))
        ego = 15 + np.concatenate([[0], np.cumsum(np.diff(t) * acceleration[1:])])
        return t, lead, ego, acceleration

    def danger(step):
        """Per phase: DRAC, jerk and 1 / TTC, all higher when worse."""
        found = {"drac_mps2": [], "jerk_max_mps3": [], "ttc_min_s": []}
        for phase in np.linspace(0, 0.99, 34):
            t, lead, ego, acceleration = event(phase)
            keep = slice(None, None, step)
            leader = track(t[keep], CAR[0] + 8 + along(t, lead)[keep])
            one = scene(t[keep], track(t[keep], along(t, ego)[keep]), [leader], acceleration=acceleration[keep])
            one.ego[:, 3], one.agents[0, :, 3] = ego[keep], lead[keep]
            values = compute_metrics(batch_of(one))
            for name in found:
                value = values[name][0]
                found[name].append(1 / value if name == "ttc_min_s" else value)
        return {name: np.array(values) for name, values in found.items()}

    at_10, at_1 = danger(10), danger(100)
    for name in at_10:
        assert METRICS[name].needs_hz
        assert at_10[name].min() > 0.7 * at_10[name].max(), name  # 10 Hz sees all
        assert (at_1[name] > 0.7 * at_10[name].max()).mean() < 0.5, name


def test_low_rate_is_below_five_hertz():
    scenarios = [scene(times(10, hz), track(times(10, hz), along(times(10, hz), 9))) for hz in (1, 4, 5, 10, 20)]
    assert low_rate(batch_of(*scenarios)).tolist() == [True, True, False, False, False]


def test_exposure():
    """10 s at 15 m/s; half of the steps without an ego leave 5 s."""
    valid = np.arange(len(T)) <= 50
    whole, half = scene(T, track(T, along(T, 15))), scene(T, track(T, along(T, 15), valid=valid))
    assert metric("duration_s", whole, half) == pytest.approx([10, 5])
    assert metric("distance_km", whole, half) == pytest.approx([0.15, 0.075], rel=1e-3)
    assert rate_per_km(np.array([1, 1]), metric("distance_km", whole, half)) == pytest.approx(2 / 0.225, rel=1e-3)
    assert rate_per_hour(np.array([1, 0]), metric("duration_s", whole, half)) == pytest.approx(240)
    assert np.isnan(rate_per_km(np.array([1.0]), np.array([0.0])))


def test_threshold_of_discomfort_moves():
    score = np.array([0.5, 1.0, 1.1, 3.0])
    assert discomfort(score).tolist() == [0, 0, 1, 1]
    assert discomfort(score, 0.8).tolist() == [0, 1, 1, 1]
    assert exceedance(score, "<", 1.1).tolist() == [1, 1, 0, 0]
    with pytest.raises(ConfigError, match="no direction"):
        exceedance(score, ">=", 1)
    with pytest.raises(ConfigError, match="finite"):
        exceedance(score, ">", np.nan)


def test_each_metric_states_its_definition():
    for name, each in METRICS.items():
        assert each.name == name and each.version >= 1 and each.text.endswith(".") and each.M > 0


finite = st.floats(-60, 60)


@st.composite
def traffic(draw):
    """Any scene: agents that turn, jump in and out, of any size; an ego that is missing in part; uneven times."""
    seed, n_agents = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 5))
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.03, draw(st.sampled_from([0.06, 0.2, 1.5])), draw(st.integers(1, 60))))

    def one(kind="car"):
        v, w = rng.uniform(-3, 25), rng.normal(0, 0.3)
        heading = rng.uniform(-np.pi, np.pi) + w * t
        x, y = rng.uniform(-50, 50, 2)
        states = np.stack([x + v * t * np.cos(heading), y + v * t * np.sin(heading), heading,
                           np.full(len(t), abs(v))], axis=1)
        return {"states": states, "kind": kind, "size": rng.uniform(0.3, 12, 3), "valid": rng.random(len(t)) < 0.8}
    kinds = ("car", "pedestrian", "static", "bus", "other")
    return scene(t, one(), [one(kinds[rng.integers(5)]) for _ in range(n_agents)],
                 acceleration=rng.normal(0, 3, len(t)))


@settings(max_examples=60, deadline=None)
@given(traffic(), finite, finite, st.floats(-np.pi, np.pi))
def test_values_lie_in_their_range_wherever_the_world_is(one, dx, dy, turn):
    here, there = compute_metrics(batch_of(one)), compute_metrics(batch_of(moved(one, dx, dy, turn)))
    for name, each in METRICS.items():
        assert np.isfinite(here[name]).all() and 0 <= here[name][0] <= each.M
    for name in ("gap_min_m", "duration_s", "distance_km", "jerk_max_mps3"):
        assert there[name][0] == pytest.approx(here[name][0], rel=1e-3, abs=2e-3), name


def every_pair_step(one):
    """Boxes of all pair-steps at which both are valid, and the relative velocity: no pruning."""
    a, t = np.nonzero(one.agents_valid & one.ego_valid)
    ego, other = one.ego[t].astype(float), one.agents[a, t].astype(float)
    c, s = np.cos(ego[:, 2]), np.sin(ego[:, 2])
    dx, dy, turn = *(other - ego[:, :4]).T[:2], other[:, 2] - ego[:, 2]
    sides = [np.full(len(t), side / 2) for side in one.ego_size[:2]] + [one.agent_size[a, k] / 2.0 for k in (0, 1)]
    boxes = Boxes(c * dx + s * dy, c * dy - s * dx, np.cos(turn), np.sin(turn), *sides)
    return boxes, other[:, 3] * boxes.cos - ego[:, 3], other[:, 3] * boxes.sin


@settings(max_examples=80, deadline=None)
@given(traffic())
def test_pruning_loses_no_gap_and_no_collision_course(one):
    one = type(one)(**{**vars(one), "derived": ("agent_heading",)})  # speeds are then taken as they are
    boxes, vx, vy = every_pair_step(one)
    values = compute_metrics(batch_of(one))
    gap = min(distance(boxes).min(initial=np.inf), METRICS["gap_min_m"].M)
    assert values["gap_min_m"][0] == pytest.approx(gap, abs=2e-3)
    # Half a width of 1 mm decides whether boxes that graze each other meet: the answer lies between both.
    earliest, ttc = (time_to_overlap(Boxes(
        boxes.x, boxes.y, boxes.cos, boxes.sin, boxes.half_length + more, boxes.half_width + more,
        boxes.other_half_length, boxes.other_half_width), vx, vy).min(initial=np.inf) for more in (1e-3, -1e-3))
    found = values["ttc_min_s"][0]
    assert min(earliest, 10.0) - 0.01 <= found <= min(ttc, 10.0) + 0.01


@pytest.mark.parametrize("turn", [0.7, 2.5, -3.0])
def test_a_turned_world_changes_no_metric(turn):
    scenes = [closing_cars(), bent(closing_cars(times(9), 12.0, 8.0, 50.0), 80.0), circle(40.0, 12.0)]
    here = compute_metrics(batch_of(*scenes))
    there = compute_metrics(batch_of(*(moved(one, 300.0, -200.0, turn) for one in scenes)))
    for name in METRICS:
        assert there[name] == pytest.approx(here[name], rel=2e-3, abs=2e-3), name


def test_padding_and_company_change_nothing():
    """Values of a scenario are the same alone and in a batch with longer and fuller ones."""
    short, full = closing_cars(times(6)), closing_cars()
    crowd = scene(T, track(T, along(T, 10)), [track(T, 20 + 7 * k + along(T, 9), 3.5) for k in range(6)])
    together = compute_metrics(batch_of(short, crowd, full))
    for name in METRICS:
        assert together[name][0] == pytest.approx(metric(name, short)[0], rel=1e-5), name
