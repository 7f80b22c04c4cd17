"""The closed loop: everybody sees, wants and moves, ten times a second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.simulate import manoeuvres
from avshift_core.scenario.simulate.following import (
    AGENT_FORESIGHT_S,
    BRAKE_MAX,
    DT,
    WATCHED,
    EgoInLoop,
    SlowStretch,
    find_leaders,
    idm,
    to_leaders,
)
from avshift_core.scenario.simulate.policy import EgoPolicy
from avshift_core.scenario.simulate.roads import curvature_at
from avshift_core.scenario.simulate.scene import ACTOR, EGO, NEVER, PEDESTRIAN, Scene

LOOK_EVERY = 5  # steps between two looks of the other drivers at who is in their way; the ego looks at every step
DECIDE_EVERY = 2  # steps between two looks at the gap one wants to use
# Below this speed, which grows with a vehicle's length, a lateral move takes as much longer: cars do not slip sideways,
# and the tail of a lorry does not swing into the next lane.
SLIP_MPS, SLIP_1PS = np.float32(4.0), np.float32(0.9)
WANDER_EVERY = 25  # steps between two looks at the neighbouring lane


@dataclass(frozen=True, eq=False)
class Motion:
    """What happened, (T, N, n): road coordinates, speed, heading against the lane.

    acceleration: (T, n) of the ego. collided: (N, n) who touched somebody in time. acted: (n,) whether ego and actor
    did what the situation is about: they wait for a gap, which does not always come.
    """

    s: np.ndarray
    d: np.ndarray
    speed: np.ndarray
    psi: np.ndarray
    acceleration: np.ndarray
    collided: np.ndarray
    acted: np.ndarray


class State:
    """What changes from step to step; arrays (N, n) unless they belong to the actor alone."""

    def __init__(self, scene: Scene) -> None:
        N, n = scene.s.shape
        self.s, self.d, self.v = scene.s.copy(), scene.d.copy(), scene.v.copy()
        self.way, self.way_sign, self.v0 = scene.way.copy(), scene.way.astype(np.int32), scene.v0.copy()
        self.vd, self.acc = np.zeros((2, N, n), np.float32)
        self.psi = np.where(self.way > 0, np.float32(0), np.float32(np.pi))
        # Lateral moves: from `start` to `target`, `progress` 1 when none is under way.
        self.progress, self.rate = np.ones((N, n), np.float32), np.zeros((N, n), np.float32)
        self.start, self.target = self.d.copy(), self.d.copy()
        self.begun, self.went_back = np.zeros((2, n), bool), np.zeros(n, bool)
        self.stop_s = scene.stop_s[:2].copy()
        self.slip = np.maximum(SLIP_MPS, SLIP_1PS * scene.length)
        self.watched = np.where(scene.kind == PEDESTRIAN, WATCHED, np.float32(1))
        self.offset = self.s[ACTOR] - self.s[EGO]
        self.touched, self.collided, self.acted = np.zeros((N, n), bool), np.zeros((N, n), bool), np.zeros(n, bool)
        # Actors that cross, turn round or back up.
        self.crossing, self.turning, self.reversing = (np.flatnonzero(x) for x in (
            scene.cross_v > 0, scene.turn_centre < NEVER, scene.reverse_t0 < NEVER))
        self.accepted, self.turned, self.angle = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, np.float32)
        self.vd_crossing = np.where(scene.kind[ACTOR] == PEDESTRIAN, 0, scene.cross_v * scene.cross_way)
        self.v_turning = self.v[ACTOR].copy()
        self.psi[ACTOR, self.crossing] = np.pi / 2 * scene.cross_way[self.crossing]
        self.cos, self.half_s, self.half_d = np.empty((3, N, n), np.float32)
        self.face(scene, slice(None), slice(None), self.psi)
        self.v[ACTOR, self.crossing] = self.v0[ACTOR, self.crossing] = 0
        self.vd[ACTOR, self.crossing] = self.vd_crossing[self.crossing]
        self.watched[ACTOR, self.turning] = WATCHED

    def speed(self) -> np.ndarray:
        """(N, n) speed over ground; v is along the lane, but along the half circle for who turns round."""
        speed = np.abs(self.v)
        who, rows = np.nonzero(self.vd)
        speed[who, rows] = np.hypot(self.v[who, rows], self.vd[who, rows])
        turning = self.turning[(self.angle[self.turning] > 0) & ~self.turned[self.turning]]
        speed[ACTOR, turning] = self.v[ACTOR, turning]
        return speed

    def face(self, scene: Scene, who, rows, psi) -> None:
        """Turn vehicles to heading psi: half_s and half_d are the half sides of the box around them along the road."""
        cos, sin = np.cos(psi), np.abs(np.sin(psi))
        length, width = scene.length[who, rows], scene.width[who, rows]
        self.psi[who, rows], self.cos[who, rows] = psi, cos
        self.half_s[who, rows] = (length * np.abs(cos) + width * sin) / 2
        self.half_d[who, rows] = (length * sin + width * np.abs(cos)) / 2


def simulate_motion(scene: Scene, policy: EgoPolicy) -> Motion:
    """Run the scenes under one ego policy, to the longest of their lengths."""
    state, T = State(scene), int(scene.n_steps.max())
    ego, stretch = EgoInLoop(policy, scene.s.shape[1]), SlowStretch(scene, policy)
    record = np.empty((4, T, *scene.s.shape), np.float32)
    acceleration = np.empty((T, scene.s.shape[1]), np.float32)
    stands = state.v0 == 0
    unmoved = stands | (scene.kind == PEDESTRIAN)
    for step in range(T):
        t = step * DT
        decide = step % DECIDE_EVERY == 0
        if step % LOOK_EVERY == 0:
            lead = find_leaders(state, AGENT_FORESIGHT_S)
        lead[EGO] = find_leaders(state, policy.foresight_s, slice(EGO, EGO + 1))
        if decide:
            manoeuvres.begin_plans(scene, state, t, policy)
        leaders = to_leaders(scene, state, lead)
        v0 = stretch.desired(state)
        acc = idm(state.v, v0, scene.headway, leaders.gap, leaders.v)
        manoeuvres.actor_wishes(scene, state, acc, t)
        acc[unmoved], acc[EGO] = 0, ego.accelerate(state, leaders, v0[EGO])
        state.touched |= leaders.touches
        state.collided |= leaders.touches & (step < scene.n_steps)
        np.copyto(acc, np.maximum(-BRAKE_MAX, -state.v / DT), where=state.touched & ~unmoved)
        state.acc = acc
        record[0, step], record[1, step], record[3, step] = state.s, state.d, state.psi
        record[2, step] = state.speed()
        acceleration[step] = acc[EGO]
        if step % WANDER_EVERY == WANDER_EVERY // 2:
            manoeuvres.wander(scene, state)
        _move(scene, state, stands)
        manoeuvres.reverse(scene, state, t)
        manoeuvres.cross(scene, state, t, decide)
        manoeuvres.turn_round(scene, state, decide)
        if decide:
            manoeuvres.note_acts(scene, state, step)
    return Motion(*record, acceleration, state.collided, state.acted)


def _move(scene: Scene, state: State, stands) -> None:
    """One step of everybody that follows its lane: speed, place, lateral move and heading."""
    v = np.maximum(state.v + state.acc * DT, 0)
    v[stands] = state.v[stands]
    mean = (state.v + v) / 2
    mean[stands] = 0
    bend = 1 - curvature_at(scene.road, state.s) * state.d  # lanes inside of a bend are shorter
    state.s += state.way * mean * DT / np.clip(bend, 0.3, 3)
    state.v = v
    state.vd.fill(0)
    who, rows = np.nonzero(state.progress < 1)
    before, start, rate = state.d[who, rows], state.start[who, rows], state.rate[who, rows]
    v, way, across = v[who, rows], state.way[who, rows], state.target[who, rows] - start
    slip = state.slip[who, rows]
    tau = np.minimum(state.progress[who, rows] + rate * np.minimum(v / slip, 1), 1)
    d = start + across * (tau * tau * tau * (10 - 15 * tau + 6 * tau * tau))
    state.d[who, rows], state.progress[who, rows] = d, tau
    state.vd[who, rows] = np.where(tau < 1, (d - before) / DT, 0)
    lateral = across * 30 * (tau * (1 - tau)) ** 2 * rate / DT
    state.face(scene, who, rows, np.arctan2(lateral, np.maximum(v, slip) * way))
