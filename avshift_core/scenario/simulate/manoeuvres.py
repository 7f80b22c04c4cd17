"""What vehicles do besides following: lane changes with gap acceptance, crossing, U-turns, reversing, wandering.

MOBIL: Kesting, Treiber and Helbing (2007), "General lane-changing model MOBIL for car-following models".
"""

from __future__ import annotations

import numpy as np

from avshift_core.scenario.simulate.following import DT, FAR, SIDE_M, idm
from avshift_core.scenario.simulate.policy import EgoPolicy
from avshift_core.scenario.simulate.scene import ACTOR, EGO, LEFT, LIMIT, NEVER, PEDESTRIAN, RIGHT, STATIC, Scene
from avshift_core.scenario.simulate.situations import LANE_M

POLITE_BRAKE_MPS2, GAIN_MPS2 = 2.0, 0.4  # MOBIL: braking it may impose on the follower, acceleration it must win
WANDER_S = 4.0
OTHERS_ACCEPT_S = 3.5  # time to the arrival of anybody but the ego that crossing actors wait for
TURN_MPS = 4.2  # speed in a U-turn


def actor_wishes(scene: Scene, state, acc, t) -> None:
    """Besides following, the actor brakes, shadows the ego, or stops where its lane ends."""
    a, v, way = acc[ACTOR], state.v[ACTOR], state.way[ACTOR]
    pulse = (t >= scene.pulse_t0) & (t < scene.pulse_t0 + scene.pulse_s)
    np.minimum(a, scene.pulse_a, out=a, where=pulse)
    must_stop = state.stop_s[ACTOR] < NEVER
    stop = np.where(must_stop, (state.stop_s[ACTOR] - state.s[ACTOR]) * way - state.half_s[ACTOR], FAR)
    np.minimum(a, idm(v, np.maximum(state.v0[ACTOR], 0.1), 0.5, stop, 0, standstill=0.5), out=a, where=must_stop)
    drift = state.offset - (state.s[ACTOR] - state.s[EGO])
    state.v0[ACTOR] = np.where(scene.shadows, np.clip(state.v[EGO] + 0.3 * drift, 0.5, 40), state.v0[ACTOR])


def begin_plans(scene: Scene, state, t, policy: EgoPolicy) -> None:
    """Start the lateral plans of ego and actor when their time has come and the gaps are accepted."""
    apart = np.abs(state.s[ACTOR] - state.s[EGO])
    for i in (EGO, ACTOR):
        due = ((t >= scene.plan_t0[i]) & (state.s[i] >= scene.plan_from_s[i]) & ~state.begun[i]
               & (apart <= scene.plan_near[i]))
        if not due.any():
            continue
        rows = np.flatnonzero(due)
        looks = scene.plan_accept_s[i, rows] >= 0
        rows = rows[~looks | _gaps_accepted(scene, state, rows, i)]
        if i == ACTOR:  # cutting in means ahead of the ego
            enters = (scene.plan_to[ACTOR, rows] == 0) & (state.way[ACTOR, rows] > 0)
            rows = rows[~enters | (state.s[ACTOR, rows] > state.s[EGO, rows])]
        duration = scene.plan_s[i, rows]
        if i == EGO:
            duration = np.where(duration > 0, duration, np.float32(policy.lane_change_s))
            state.stop_s[EGO, rows[(state.d[EGO, rows] < -2) & (scene.plan_to[EGO, rows] == 0)]] = NEVER  # off the kerb
        else:
            state.stop_s[ACTOR, rows] = NEVER
        start_move(state, rows, i, scene.plan_to[i, rows], duration)
        state.begun[i, rows] = True
    back = np.flatnonzero((state.s[EGO] > scene.back_s) & ~state.went_back)
    start_move(state, back, EGO, 0, scene.plan_s[EGO, back])
    state.went_back[back] = True


def start_move(state, rows, i, target, duration_s) -> None:
    """Begin a lateral move of vehicle i (one, or one a row) in these rows."""
    state.start[i, rows], state.target[i, rows] = state.d[i, rows], target
    state.progress[i, rows], state.rate[i, rows] = 0, DT / duration_s


def _gaps_accepted(scene: Scene, state, rows, i) -> np.ndarray:
    """May vehicle i of these rows move over: is there enough room to the next ones ahead and behind, there?"""
    to, accept_s = scene.plan_to[i, rows], scene.plan_accept_s[i, rows]
    way, v = state.way[i, rows], state.v[i, rows]
    ahead = (state.s[:, rows] - state.s[i, rows]) * way
    width = state.half_d[:, rows] + state.half_d[i, rows] + SIDE_M
    there = scene.used[:, rows] & (np.abs(state.d[:, rows] - to) < width)
    there[i] = False
    room = np.abs(ahead) - state.half_s[:, rows] - state.half_s[i, rows]
    along = state.v[:, rows] * state.cos[:, rows] * way
    need = np.where(ahead < 0, 1 + accept_s * along + 1.2 * np.maximum(along - v, 0),
                    1.5 + 0.25 * v + 1.5 * np.maximum(v - along, 0))
    return ~(there & (room < need)).any(axis=0)


def wander(scene: Scene, state) -> None:
    """Background vehicles move to a faster lane (MOBIL), one a scene at a time, never in near the ego."""
    rows = np.flatnonzero(((LEFT + RIGHT)[scene.road] > 0) & scene.wanders.any(axis=0))
    if not len(rows):
        return
    s, d, v, half_s, half_d, progress = (x[:, rows] for x in (
        state.s, state.d, state.v, state.half_s, state.half_d, state.progress))
    left, right = LEFT[scene.road[rows]], RIGHT[scene.road[rows]]
    goal = d + LANE_M * np.where(d > 0.5, -1, np.where((d < -0.5) | (left > 0), 1, -1))
    on_road = (goal < left * LANE_M + 1) & (goal > -right * LANE_M - 1)
    target = np.where(progress < 1, state.target[:, rows], d)
    from_ego = s - s[EGO]
    near_ego = (np.abs(goal - target[EGO]) < LANE_M / 2) & (from_ego > -25) & (from_ego < 70)
    may = scene.wanders[:, rows] & on_road & ~near_ego & (progress >= 1) & (v > 3)
    width = half_d[:, None] + half_d[None] + SIDE_M  # (N, N, m): first the one there, second the one that wanders
    there = goal[None] > np.minimum(d, target)[:, None] - width
    there &= goal[None] < np.maximum(d, target)[:, None] + width
    there &= scene.used[:, None, rows] & ~np.eye(len(s), dtype=bool)[:, :, None]
    ahead = s[:, None] - s[None]
    room = np.abs(ahead) - half_s[:, None] - half_s[None]
    front, rear = np.where(there & (ahead > 0), room, FAR), np.where(there & (ahead <= 0), room, FAR)
    lead, follow = front.argmin(axis=0), rear.argmin(axis=0)
    front, rear = front.min(axis=0), rear.min(axis=0)
    v0 = np.maximum(state.v0[:, rows], 0.1)
    v_lead, v_follow, v0_follow = (np.take_along_axis(x, i, axis=0) for x, i in ((v, lead), (v, follow), (v0, follow)))
    gain = idm(v, v0, scene.headway[:, rows], front, v_lead) - state.acc[:, rows]
    may &= (gain > GAIN_MPS2) & (idm(v_follow, v0_follow, 1.3, rear, v) > -POLITE_BRAKE_MPS2) & (front > 6) & (rear > 6)
    scenes = np.flatnonzero(may.any(axis=0))
    who = may[:, scenes].argmax(axis=0)
    start_move(state, rows[scenes], who, goal[who, scenes], WANDER_S)


def reverse(scene: Scene, state, t) -> None:
    """Actors that back up, as long as there is room behind them."""
    rows = state.reversing
    if not len(rows):
        return
    room = state.s[ACTOR, rows] - state.s[EGO, rows] - (scene.length[ACTOR, rows] + scene.length[EGO, rows]) / 2
    active = (t >= scene.reverse_t0[rows]) & (t < scene.reverse_t0[rows] + scene.reverse_s[rows]) & (room > 4)
    wish = np.where(active, -scene.reverse_v[rows], 0)
    before = state.v[ACTOR, rows]
    state.v[ACTOR, rows] = before + np.clip(wish - before, -1.2 * DT, 2.5 * DT)
    state.s[ACTOR, rows] += (before + state.v[ACTOR, rows]) / 2 * DT


def cross(scene: Scene, state, t, decide: bool) -> None:
    """Actors that cross the road: they wait at the line until the gap is accepted, then go."""
    rows = state.crossing
    if not len(rows):
        return
    way, walks = scene.cross_way[rows], scene.kind[ACTOR, rows] == PEDESTRIAN
    to_line = (scene.cross_line[rows] - state.d[ACTOR, rows]) * way
    v = np.abs(state.vd_crossing[rows])
    if decide:
        near = (to_line < v * v / 5 + 2) & (t >= scene.cross_t0[rows])
        state.accepted[rows] |= near & _clear(scene, state, rows, state.s[ACTOR, rows], state.half_s[ACTOR, rows] + 1)
    allowed = np.sqrt(5 * np.maximum(to_line, 0))  # stops at the line, braking at 2.5 m/s2
    wish = np.where(state.accepted[rows], scene.cross_v[rows], np.minimum(scene.cross_v[rows], allowed))
    across = (state.d[ACTOR, rows] - scene.cross_end[rows]) * way >= 0
    wish = np.where(across | walks & ~state.accepted[rows], 0, wish)
    v = np.maximum(v + np.clip(wish - v, -4 * DT, 2 * DT), 0)
    state.vd_crossing[rows] = state.vd[ACTOR, rows] = v * way
    state.d[ACTOR, rows] += v * way * DT


def note_acts(scene: Scene, state, step: int) -> None:
    """Mark the scenes in which ego and actor have done, in time and ahead of the ego, what the situation is about."""
    planned = scene.plan_t0 < NEVER
    done = (~planned | state.begun & (state.progress[:2] > 0.6)).all(axis=0)
    ahead = state.s[ACTOR] > state.s[EGO]
    in_lane = ahead & (np.abs(state.d[ACTOR]) < LANE_M / 2)
    done[state.crossing] = (in_lane & state.accepted)[state.crossing]
    done[state.turning] = (ahead & (state.angle > np.pi / 2))[state.turning]
    done[state.reversing] = state.v[ACTOR, state.reversing] < -0.5
    state.acted |= done & (step < scene.n_steps)


def turn_round(scene: Scene, state, decide: bool) -> None:
    """Actors of the other direction that turn into the ego's: a half circle once the gap is accepted."""
    rows = state.turning[~state.turned[state.turning]]
    if not len(rows):
        return
    centre, radius = scene.turn_centre[rows], scene.turn_radius[rows]
    v, to_turn = state.v[ACTOR, rows], state.s[ACTOR, rows] - centre
    before = state.angle[rows] == 0
    allowed = np.where(before & ~state.accepted[rows], np.sqrt(8 * np.maximum(to_turn, 0)), FAR)
    state.v[ACTOR, rows] = np.minimum(v, allowed)  # stops where the turn begins, braking at 4 m/s2
    if decide:
        near = to_turn < v * v / 8 + 2
        state.accepted[rows] |= near & _clear(scene, state, rows, centre, radius + 2.5)
    round_ = state.accepted[rows] & (state.s[ACTOR, rows] <= centre) | (state.angle[rows] > 0)
    rows, centre, radius = rows[round_], centre[round_], radius[round_]
    v = np.where(state.angle[rows] > 0, state.v_turning[rows], state.v[ACTOR, rows])
    v = v + np.clip(TURN_MPS - v, -2 * DT, 1.2 * DT)
    first = np.maximum(centre - state.s[ACTOR, rows], 0.01) / radius  # what the last step went beyond the beginning
    angle = np.where(state.angle[rows] > 0, state.angle[rows] + v * DT / radius, first)
    beyond, angle = np.maximum(angle - np.pi, 0) * radius, np.minimum(angle, np.float32(np.pi))
    state.v_turning[rows] = state.v[ACTOR, rows] = v
    state.angle[rows] = angle
    state.s[ACTOR, rows] = centre - radius * np.sin(angle) + beyond
    state.d[ACTOR, rows] = scene.d[ACTOR, rows] - radius + radius * np.cos(angle)
    state.vd[ACTOR, rows] = -v * np.sin(angle)
    state.face(scene, ACTOR, rows, np.pi + angle)
    done = rows[angle >= np.pi]
    state.turned[done] = True
    state.way[ACTOR, done] = state.way_sign[ACTOR, done] = 1
    state.vd[ACTOR, done] = 0
    state.face(scene, ACTOR, done, np.zeros(len(done), np.float32))
    state.v0[ACTOR, done] = 0.8 * LIMIT[scene.road[done]]


def _clear(scene: Scene, state, rows, place, zone) -> np.ndarray:
    """(rows,) will nobody arrive at `place` too soon, or stand there?"""
    distance = (place - state.s[:, rows]) * state.way[:, rows] - state.half_s[:, rows] - zone
    passed = distance < -2 * (state.half_s[:, rows] + zone)
    walks = scene.kind[ACTOR, rows] == PEDESTRIAN
    need = np.broadcast_to(np.where(walks, OTHERS_ACCEPT_S / 2, OTHERS_ACCEPT_S), distance.shape).copy()
    need[EGO] = scene.accept_ego_s[rows]
    soon = ~passed & (distance < need * np.maximum(state.v[:, rows], 0.3)) & scene.used[:, rows]
    soon &= (scene.kind[:, rows] != PEDESTRIAN) & (scene.kind[:, rows] != STATIC)
    soon &= np.abs(state.d[:, rows] - state.d[ACTOR, rows]) > LANE_M / 2  # who follows the actor waits for it
    return ~soon.any(axis=0)
