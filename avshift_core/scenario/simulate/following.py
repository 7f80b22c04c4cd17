"""Seeing and following: who is in whose way, the intelligent driver model, and the ego's policy in the loop.

IDM: Treiber, Hennecke and Helbing (2000), "Congested traffic states in empirical observations and microscopic
simulations".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from avshift_core.scenario.simulate.policy import EgoPolicy
from avshift_core.scenario.simulate.roads import RAMP_M
from avshift_core.scenario.simulate.scene import EGO, NEVER, STANDSTILL_M, Scene
from avshift_core.scenario.simulate.situations import ROADS

DT = np.float32(0.1)
ACCELERATE, BRAKE, BRAKE_MAX = np.float32(1.5), np.float32(2.0), np.float32(8.0)
FREE_BRAKE = np.float32(2.5)  # hardest braking without a leader, towards a lower desired speed
SIDE_M = np.float32(0.3)  # lateral clearance below which somebody counts as in the way
TOUCH_M = np.float32(0.1)  # closer than this is contact
AGENT_FORESIGHT_S = np.float32(1.0)
WATCHED = np.float32(2.2)  # people on foot and who turns round are watched so many times as far ahead
SEEN_LATERAL_MPS = np.float32(8.0)  # faster lateral motion is continued at this speed only
AGENT_TURN_MPS2 = 2.0  # lateral acceleration agents take a bend with
FAR = np.float32(1e4)
NOBODY = np.int32(2**31 - 1)

_BEND = np.array([[r.turn_at_m, r.turn_at_m + r.turn_m + RAMP_M, abs(r.curvature_1pm)] if r.turn_m < 1e3
                  else [NEVER, NEVER, 1.0] for r in ROADS.values()])


class Leaders(NamedTuple):
    """(N, n) gap to and speed of the nearest one in each vehicle's way, and who touches somebody."""

    gap: np.ndarray
    v: np.ndarray
    touches: np.ndarray


def find_leaders(state, foresight_s: float, who: slice = slice(None)) -> np.ndarray:
    """(M, n) index of the nearest one in the way of each of these M vehicles, its own index if there is none.

    A vehicle claims the strip from where it is to where it is changing to; others are seen in the strip from where
    they are to where their lateral motion takes them within the foresight.
    """
    index = np.arange(len(state.s), dtype=np.int32)
    d, half_d, own = state.d[who], state.half_d[who], index[who]
    goal = np.where(state.progress[who] < 1, state.target[who], d)
    low, high = np.minimum(d, goal) - half_d - SIDE_M, np.maximum(d, goal) + half_d + SIDE_M
    later = state.d + np.clip(state.vd, -SEEN_LATERAL_MPS, SEEN_LATERAL_MPS) * (np.float32(foresight_s) * state.watched)
    seen_low, seen_high = np.minimum(state.d, later) - state.half_d, np.maximum(state.d, later) + state.half_d
    elsewhere = low[None] >= seen_high[:, None]  # (N, M, n): the first is not in the way of the second
    elsewhere |= seen_low[:, None] >= high[None]
    elsewhere[own, np.arange(len(own))] = True
    # Distances to the near end of others in millimetres, with the index in five bits below them: one minimum gives the
    # nearest and who it is.
    place, half = ((x * np.float32(1000)).astype(np.int32) << 5 for x in (state.s, state.half_s))
    key = place[:, None] - place[None, who]
    key *= state.way_sign[None, who]
    elsewhere |= key <= 0  # behind
    key -= half[:, None]
    key |= index[:, None, None]
    np.copyto(key, NOBODY, where=elsewhere)
    nearest = key.min(axis=0)
    return np.where(nearest == NOBODY, own[:, None], nearest & 31)


def to_leaders(scene: Scene, state, lead: np.ndarray) -> Leaders:
    """Gaps to the leaders as everybody stands now."""
    flat = lead * lead.shape[1] + np.arange(lead.shape[1])
    ahead = (state.s.take(flat) - state.s) * state.way
    gap = np.where(ahead > 0, ahead - state.half_s - state.half_s.take(flat), FAR)  # nobody ahead, or passed by now
    along = (state.v * state.cos).take(flat) * state.way
    touches = gap < TOUCH_M
    if touches.any():
        touches &= np.abs(state.d.take(flat) - state.d) < state.half_d + state.half_d.take(flat) + TOUCH_M
        touches &= scene.used
        who, where = np.nonzero(touches)
        touches[lead[who, where], where] = True
    return Leaders(gap, along, touches)


def idm(v, v0, headway, gap, v_lead, *, accelerate=ACCELERATE, brake=BRAKE, standstill=STANDSTILL_M) -> np.ndarray:
    """Acceleration of the intelligent driver model, from -BRAKE_MAX to `accelerate`.

    In equilibrium the gap is (standstill + v headway) / sqrt(1 - (v / v0)^4).
    """
    wish = standstill + np.maximum(v * headway + v * (v - v_lead) / (2 * np.sqrt(accelerate * brake)), 0)
    ratio = v / v0
    free = np.maximum(accelerate * (1 - (ratio * ratio) ** 2), -FREE_BRAKE)
    ratio = wish / np.maximum(gap, np.float32(0.2))
    return np.clip(free - accelerate * ratio * ratio, -BRAKE_MAX, accelerate)


class SlowStretch:
    """A work zone or a bend ahead, which all vehicles of the ego's direction slow down for in time."""

    def __init__(self, scene: Scene, policy: EgoPolicy) -> None:
        begin, end, curvature = _BEND[scene.road].T
        bends = begin < NEVER
        lateral = np.full((len(scene.s), 1), AGENT_TURN_MPS2)
        lateral[EGO] = policy.turn_lateral_mps2
        speed = np.where(bends, np.sqrt(lateral / curvature), scene.zone_v)
        self.begin = np.where(bends, begin, scene.zone_from).astype(np.float32)
        self.end = np.where(bends, end, scene.zone_to).astype(np.float32)
        self.rows = np.flatnonzero(self.begin < NEVER)
        self.begin, self.end = self.begin[self.rows], self.end[self.rows]
        self.speed_squared = (speed[:, self.rows] ** 2).astype(np.float32)

    def desired(self, state) -> np.ndarray:
        """(N, n) desired speed, lowered so that braking at 1 m/s2 is enough."""
        v0, s = np.maximum(state.v0, np.float32(0.1)), state.s[:, self.rows]
        allowed = np.sqrt(self.speed_squared + 2 * np.maximum(self.begin - s, 0))
        np.copyto(allowed, FAR, where=(s > self.end) | (state.way[:, self.rows] < 0))
        v0[:, self.rows] = np.minimum(v0[:, self.rows], allowed)
        return v0


class EgoInLoop:
    """The policy: it sees, waits for its delay, and changes its acceleration within its jerk limits."""

    def __init__(self, policy: EgoPolicy, n: int) -> None:
        self.policy, self.acceleration = policy, np.zeros(n, np.float32)
        self.pending: list[tuple[np.ndarray, np.ndarray]] = []

    def accelerate(self, state, leaders: Leaders, v0) -> np.ndarray:
        """(n,) acceleration of the ego now; v0 (n,) its desired speed."""
        p = self.policy
        v, gap, v_lead = state.v[EGO], leaders.gap[EGO], leaders.v[EGO]
        stop = state.stop_s[EGO] - state.s[EGO] - state.half_s[EGO]
        limits = {"accelerate": p.accelerate_mps2, "brake": p.brake_mps2}
        wish = np.minimum(idm(v, v0, p.headway_s, gap, v_lead, standstill=p.standstill_m, **limits),
                          idm(v, v0, 0.5, stop, 0, standstill=0.3, **limits))
        closing = np.maximum(v - v_lead, 0)
        urgent = (closing**2 > 2 * p.emergency_mps2 * np.maximum(gap - 0.5, 0.1)) & (gap < FAR / 2)
        wish = np.where(urgent, wish, np.maximum(wish, -p.comfort_brake_mps2)).astype(np.float32)
        if not self.pending:  # a scene begins in the middle of a drive: what it sees first it has long been answering
            self.pending = [(wish, urgent)] * round(p.delay_s / float(DT))
            self.acceleration = np.maximum(wish, -p.comfort_brake_mps2).astype(np.float32)
        self.pending.append((wish, urgent))
        wish, urgent = self.pending.pop(0)
        step = np.where(urgent, p.emergency_jerk_mps3, p.comfort_jerk_mps3) * DT
        wanted = self.acceleration + np.clip(wish - self.acceleration, -step, step)
        softest = -v / np.where(urgent, DT, np.float32(0.9))  # come to rest without a jolt
        self.acceleration = np.maximum(wanted, softest).astype(np.float32)
        return self.acceleration
