"""Physics of the closed loop, checked in the plane on what the fleet records."""

import numpy as np
import pytest

from avshift_core.scenario.measure.interaction import interact
from avshift_core.scenario.measure.metrics import DISCOMFORT_THRESHOLD, HARD_BRAKE_MPS2, compute_metrics
from avshift_core.scenario.schema import AGENT_TYPES, CATEGORIES
from avshift_core.scenario.simulate.dynamics import simulate_motion
from avshift_core.scenario.simulate.fleet import simulate
from avshift_core.scenario.simulate.following import idm
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.layout import lay_out
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.simulate.scene import ACTOR, EGO, N_NOISE
from avshift_core.scenario.simulate.situations import SITUATION_NAMES

DT = 0.1
EGO_BRAKE, EGO_ACCELERATE = 8.0, 1.4 + 1e-3  # stated bounds: emergency braking, and the policy's acceleration
AGENT_BRAKE, AGENT_ACCELERATE = 10.7, 3.0  # 8 along the lane, and what ending a lateral move adds; 2 on foot
SPEED_MAX = 40.0


def everybody(batch):
    """States (n, 1 + A, T, 4), masks and sizes of the ego and its agents."""
    states = np.concatenate([batch.ego[:, None, :, :4], batch.agents], axis=1)
    valid = np.concatenate([batch.ego_valid[:, None], batch.agents_valid], axis=1)
    size = np.concatenate([batch.ego_size[:, None], batch.agent_size], axis=1)
    return states, valid, size


def overlapping(states, size, valid):
    """(n, A, A) boxes that overlap at one moment, by projecting all corners on all sides."""
    along, across = size[..., 0] / 2, size[..., 1] / 2
    cos, sin = np.cos(states[..., 2]), np.sin(states[..., 2])
    ends = [(a * along, b * across) for a in (-1, 1) for b in (-1, 1)]
    x = np.stack([states[..., 0] + u * cos - v * sin for u, v in ends], axis=-1)  # (n, A, 4)
    y = np.stack([states[..., 1] + u * sin + v * cos for u, v in ends], axis=-1)
    found = valid[:, :, None] & valid[:, None, :] & ~np.eye(valid.shape[1], dtype=bool)
    for ax, ay in ((cos, sin), (-sin, cos)):
        own = x * ax[..., None] + y * ay[..., None]
        other = x[:, None] * ax[:, :, None, None] + y[:, None] * ay[:, :, None, None]  # corners of j on sides of i
        apart = (own.max(-1)[:, :, None] < other.min(-1)) | (other.max(-1) < own.min(-1)[:, :, None])
        found &= ~apart & ~apart.transpose(0, 2, 1)
    return found


def test_nobody_jumps(runs):
    for rows, batch, _ in (piece for area in runs for piece in area):
        states, valid, _ = everybody(batch)
        both = valid[..., 1:] & valid[..., :-1]
        way = np.hypot(*np.moveaxis(np.diff(states[..., :2], axis=2), -1, 0))
        expected = (states[..., 1:, 3] + states[..., :-1, 3]) / 2 * DT
        assert np.abs(way - expected)[both].max() < 0.08, len(rows)


def test_speeds_accelerations_and_turning_stay_in_their_bounds(runs):
    for _, batch, _ in (piece for area in runs for piece in area):
        states, valid, _ = everybody(batch)
        both = valid[..., 1:] & valid[..., :-1]
        assert states[..., 3][valid].min() >= 0 and states[..., 3][valid].max() < SPEED_MAX
        acceleration = np.diff(states[..., 3], axis=2) / DT
        assert acceleration[:, 1:][both[:, 1:]].min() > -AGENT_BRAKE
        assert acceleration[:, 1:][both[:, 1:]].max() < AGENT_ACCELERATE
        own = batch.ego[..., 4][batch.ego_valid]
        assert own.min() >= -EGO_BRAKE - 1e-3 and own.max() <= EGO_ACCELERATE
        turn = np.diff(states[..., 2], axis=2)
        turn = np.abs((turn + np.pi) % (2 * np.pi) - np.pi) / DT
        assert turn[both].max() < 1.3  # rad/s: 5.5 m/s on a half circle of 5.25 m is 1.05


def test_the_egos_acceleration_is_the_change_of_its_speed(runs):
    for _, batch, collided in runs[0]:
        both = batch.ego_valid[:, 1:] & batch.ego_valid[:, :-1] & ~collided[:, None]
        change = np.diff(batch.ego[..., 3], axis=1) / DT
        straight = both & (np.abs(np.diff(batch.ego[..., 2], axis=1)) < 1e-4)
        assert np.abs(change - batch.ego[:, :-1, 4])[straight].max() < 0.1


def test_boxes_overlap_only_where_a_collision_is_recorded(runs):
    scenes = found = 0
    for _, batch, collided in (piece for area in runs for piece in area):
        states, valid, size = everybody(batch)
        for t in range(0, states.shape[2], 5):
            pairs = overlapping(states[:, :, t], size, valid[:, :, t])
            assert not pairs[~collided].any()
        scenes, found = scenes + batch.n, found + collided.sum()
    assert found / scenes < 0.02


def test_idm_keeps_its_equilibrium_gap():
    """At the equilibrium gap the acceleration is 0, closer it brakes: (s0 + v T) / sqrt(1 - (v / v0)^4)."""
    v, v0, headway, standstill = 12.0, 20.0, 1.4, 2.0
    gap = (standstill + v * headway) / np.sqrt(1 - (v / v0) ** 4)
    assert idm(v, v0, headway, gap, v) == pytest.approx(0, abs=1e-6)
    assert idm(v, v0, headway, gap - 1, v) < 0 < idm(v, v0, headway, gap + 1, v)


def test_the_ego_settles_at_the_equilibrium_gap():
    """The ego behind a lead at constant speed, long enough: in closed loop, with its delay and jerk limits."""
    follow = SITUATION_NAMES.index("follow")
    z = np.zeros((1, 8))
    z[0] = [1.0, -2.0, -1.0, 0.5, -8.0, 8.0, 0.0, 0.0]  # faster ego, few others, steady lead
    scene = lay_out(Contexts(np.array([follow]), np.array([2]), z, np.full((1, N_NOISE), 0.5, np.float32)))
    scene.used[2:] = False
    scene.s[2:], scene.d[2:] = -440, 60
    scene.pulse_a[:] = 0
    scene.n_steps[:] = 900
    policy = POLICIES["v4.1"]
    motion = simulate_motion(scene, policy)
    v, v0 = motion.speed[-1, EGO, 0], scene.v0[EGO, 0]
    gap = motion.s[-1, ACTOR, 0] - motion.s[-1, EGO, 0] - (scene.length[EGO, 0] + scene.length[ACTOR, 0]) / 2
    expected = (policy.standstill_m + v * policy.headway_s) / np.sqrt(1 - (v / v0) ** 4)
    assert motion.speed[-1, ACTOR, 0] == pytest.approx(v, abs=0.05)
    assert gap == pytest.approx(expected, rel=0.02)


def energy(batch):
    """Sum of the squared speeds of everybody in each scenario, and all its states."""
    found = {}
    for k, item in enumerate(batch.ids):
        scene = batch.scenario(k)
        states = np.concatenate([scene.ego[None, :, :4], scene.agents])
        found[item.scenario_id] = float((states[..., 3].astype(float) ** 2).sum()), states.tobytes()
    return found


def test_the_same_context_gives_the_same_run_in_any_company(contexts, runs):
    drawn, ids = contexts[0]
    outcome = lambda pieces: {item.scenario_id: (item.category, bool(touched)) for _, batch, collided in pieces  # noqa: E731
                              for item, touched in zip(batch.ids, collided, strict=True)}
    whole = {k: e for _, batch, _ in runs[0] for k, e in energy(batch).items()}
    rows = np.arange(0, drawn.n, 37)
    again = list(simulate(drawn.take(rows), tuple(ids[i] for i in rows), POLICIES["v4.1"]))
    alone = {k: e for _, batch, _ in again for k, e in energy(batch).items()}
    assert len(alone) == len(rows)
    assert all(whole[k] == e for k, e in alone.items())  # to the last bit
    assert outcome(again).items() <= outcome(runs[0]).items()


def first_moment(batch):
    """(scenario, agent) -> what it is and where it stands in the first step, for everybody seen then; and the road."""
    people = {(item.scenario_id, name): (*batch.agents[k, a, 0], *batch.agent_size[k, a], batch.agent_type[k, a])
              for k, item in enumerate(batch.ids) for a, name in enumerate(batch.agent_id[k, :batch.n_agents[k]])
              if batch.agents_valid[k, a, 0]}
    return people, {item.scenario_id: batch.road[k].xy.tobytes() for k, item in enumerate(batch.ids)}


def test_another_version_meets_the_same_traffic_and_drives_otherwise(contexts, runs):
    drawn, ids = contexts[0]
    other = list(simulate(drawn, ids, POLICIES["v4.2"]))
    moved = 0
    for (rows, first, _), (rows_too, second, _) in zip(runs[0], other, strict=True):
        np.testing.assert_array_equal(rows, rows_too)
        np.testing.assert_array_equal(first.n_steps, second.n_steps)
        np.testing.assert_array_equal(first.ego[:, 0, :4], second.ego[:, 0, :4])
        assert first_moment(first) == first_moment(second)
        last = np.arange(first.n), first.n_steps - 1
        moved += (np.abs(first.ego[last][:, :2] - second.ego[last][:, :2]).max(axis=1) > 0.05).sum()
    assert 0.3 * drawn.n < moved


@pytest.mark.parametrize("version", list(POLICIES))
def test_no_threshold_lies_on_a_limit_of_the_policy(contexts, version):
    """Where many scenarios lie at a threshold to a thousandth, a rate is decided by rounding."""
    near = total = 0
    for _, batch, _ in simulate(*contexts[0], POLICIES[version]):
        interaction = interact(batch)
        hardest = interaction.motion.acceleration_mps2.min(axis=1)
        score = compute_metrics(batch, interaction)["comfort_score"]
        near += ((np.abs(hardest - HARD_BRAKE_MPS2) < 1e-3) | (np.abs(score - DISCOMFORT_THRESHOLD) < 1e-3)).sum()
        total += batch.n
    assert near < 0.01 * total


def test_what_a_category_promises_happens(contexts, runs):
    """Reversing cars go backwards, pulling out begins at rest, pulling over ends slower, people walk."""
    seen = dict.fromkeys(CATEGORIES, 0)
    for _, batch, _ in (piece for area in runs for piece in area):
        for k, item in enumerate(batch.ids):
            if not item.category:
                continue
            seen[item.category] += 1
            scene = batch.scenario(k)
            if item.category == "ego_pulling_over":
                assert scene.ego[-1, 3] < 0.65 * scene.ego[0, 3]
            if item.category == "ego_pulling_out":
                assert scene.ego[0, 3] == 0 and scene.ego[-1, 3] > 1
            if item.category == "agent_backing_up":
                assert _goes_backwards(scene)
            if item.category == "agent_jaywalking":
                assert (scene.agent_type == AGENT_TYPES.index("pedestrian")).any()
    assert min(seen.values()) >= 20, seen


def _goes_backwards(scene):
    step = np.diff(scene.agents[..., :2], axis=1)
    ahead = step[..., 0] * np.cos(scene.agents[:, :-1, 2]) + step[..., 1] * np.sin(scene.agents[:, :-1, 2])
    return (ahead < -0.02)[scene.agents_valid[:, 1:] & scene.agents_valid[:, :-1]].any()
