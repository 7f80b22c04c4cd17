"""What ego and actor mean to do in each situation: where the actor stands, how fast, and when it begins."""

from __future__ import annotations

import numpy as np

from avshift_core.scenario.schema import EGO_SIZE
from avshift_core.scenario.simulate.scene import (
    ACTOR,
    BUS,
    CAR,
    EGO,
    LANES_OF,
    LEFT,
    LIMIT,
    NEVER,
    PEDESTRIAN,
    RIGHT,
    TRUCK,
    ZONE_TO_TAPER_M,
    Scene,
)
from avshift_core.scenario.simulate.situations import LANE_M

KERB_D_M = -2.95  # middle of a car at the kerb, seen from the rightmost lane


# c: parameters of the rows at hand; u: (m, SCENE_NOISE) uniform numbers; fronts: see lay_out.

def _between(low, high, share):
    return low + (high - low) * share


def _side(scene: Scene, rows, u) -> np.ndarray:
    """Lane of the ego's direction beside the ego: +1 left or -1 right, as the road has them."""
    left, right = LEFT[scene.road[rows]] > 0, RIGHT[scene.road[rows]] > 0
    return np.where(left & (~right | (u < 0.5)), 1, -1)


def _actor(scene, rows, *, s=None, d=None, v=None, v0=None):
    for name, value in (("s", s), ("d", d), ("v", v), ("v0", v0)):
        if value is not None:
            getattr(scene, name)[rows, ACTOR] = value


def _reserve(scene, rows, fronts, lane, low, high) -> None:
    """Keep the background of a lane out of [low, high]; lane: index as in lanes_of, one each row."""
    slot = (LANES_OF[scene.road[rows], :, 0] == np.asarray(lane)[:, None]).argmax(axis=1)
    fronts[rows, slot, 0] = np.minimum(low, fronts[rows, slot, 0]) if np.ndim(low) == 0 else low
    fronts[rows, slot, 1] = np.maximum(high, fronts[rows, slot, 1]) if np.ndim(high) == 0 else high


def _size(scene, rows, share, u, *, large: bool) -> None:
    length = _between(7.6, 16.5, share) if large else _between(3.9, 5.3, share)
    scene.length[rows, ACTOR] = length
    scene.width[rows, ACTOR] = 2.5 if large else _between(1.7, 2.0, share)
    scene.height[rows, ACTOR] = 3.4 if large else 1.6
    scene.kind[rows, ACTOR] = np.where(u < 0.3, BUS, TRUCK) if large else CAR


def _ahead(scene, rows, gap) -> np.ndarray:
    """Middle of the actor when `gap` lies between the bumpers."""
    return gap + (EGO_SIZE[0] + scene.length[rows, ACTOR]) / 2


def _lead(scene, rows, c, fronts, gap, v) -> None:
    """The actor drives ahead in the ego's lane."""
    s = _ahead(scene, rows, gap)
    _actor(scene, rows, s=s, v=v, v0=v)
    fronts[rows, 0, 1] = s + scene.length[rows, ACTOR] / 2


def _braking_room(v, brake_mps2) -> np.ndarray:
    """Distance that a vehicle needs to stop at this deceleration, one second after it sees the obstacle."""
    return 4 + v + v**2 / (2 * brake_mps2)


def _free(scene, rows, c, u, fronts) -> None:
    _lead(scene, rows, c, fronts, _between(60, 110, c["gap"]), np.maximum(scene.v[rows, ACTOR], scene.v[rows, EGO]))


def _follow(scene, rows, c, u, fronts) -> None:
    v = np.minimum(scene.v[rows, ACTOR], scene.v[rows, EGO])
    scene.v[rows, EGO] = v
    _size(scene, rows, c["size"], u[:, 2], large=False)
    _lead(scene, rows, c, fronts, 2.5 + v * _between(1.0, 2.4, c["gap"]), v)
    scene.pulse_t0[rows], scene.pulse_s[rows] = c["onset_s"], 1 + 1.5 * c["haste"]
    scene.pulse_a[rows] = -0.4 - 4.6 * c["closing"] ** 3  # now and then the lead brakes hard


def _queue(scene, rows, c, u, fronts) -> None:
    _lead(scene, rows, c, fronts, _braking_room(scene.v[rows, EGO], _between(3.6, 1.3, c["gap"])), 4.0 * c["closing"])


def _cut_in(large: bool):
    def set_up(scene, rows, c, u, fronts) -> None:
        side = _side(scene, rows, u[:, 3])
        _size(scene, rows, c["size"], u[:, 2], large=large)
        v = np.maximum(scene.v[rows, EGO] + _between(-4.0, 3.5, c["closing"]), 3.0)
        s = _enter_ego_lane(scene, rows, c, v)
        _actor(scene, rows, s=s, d=side * LANE_M, v=v, v0=v)
        half = scene.length[rows, ACTOR] / 2
        _reserve(scene, rows, fronts, side, s - half, s + half + 2)
        fronts[rows, 0, 1] = np.maximum(s, 0) + half + 15 + 1.2 * v + 4 * c["onset_s"]

    return set_up


def _enter_ego_lane(scene, rows, c, v) -> np.ndarray:
    """The actor means to cut in at its onset; returns where it has to start, at speed v, to find the gap it accepts."""
    accept_s = _between(0.7, 0.05, c["haste"])
    scene.plan_t0[rows, ACTOR] = c["onset_s"]
    scene.plan_to[rows, ACTOR] = 0
    scene.plan_s[rows, ACTOR] = _between(5.0, 2.2, c["haste"])
    scene.plan_accept_s[rows, ACTOR] = accept_s
    closing = scene.v[rows, EGO] - v
    gap = 1.5 + accept_s * scene.v[rows, EGO] + 1.2 * np.maximum(closing, 0) + _between(0, 17, c["gap"])
    return _ahead(scene, rows, gap) + closing * c["onset_s"]


def _work_zone(scene, rows, c, u, fronts) -> None:
    """A lane beside the ego ends: its traffic merges, and all slow down."""
    side = _side(scene, rows, u[:, 3])
    v = np.maximum(np.minimum(scene.v[rows, EGO], scene.v[rows, ACTOR]), 5.0)
    scene.v[rows, EGO] = np.minimum(scene.v[rows, EGO], v + 2)
    s = _enter_ego_lane(scene, rows, c, v)
    taper = np.maximum(s, 0) + v * (c["onset_s"] + 4.5) + _between(10, 40, u[:, 5])
    _actor(scene, rows, s=s, d=side * LANE_M, v=v, v0=v)
    scene.stop_s[rows, ACTOR] = taper - 4
    half = scene.length[rows, ACTOR] / 2
    _reserve(scene, rows, fronts, side, s - half - 8, np.full(len(rows), NEVER))  # nobody beyond the taper
    fronts[rows, 0, 1] = np.maximum(s, 0) + half + 15 + 1.2 * v + 4 * c["onset_s"]
    scene.zone_from[rows], scene.zone_to[rows] = taper - ZONE_TO_TAPER_M, taper + 120
    scene.zone_v[rows] = np.minimum(0.5 * LIMIT[scene.road[rows]], 11.1)


def _meeting_place(scene, rows, c) -> np.ndarray:
    """Where the ego still has the time that the actor accepts, and a little more, when the actor wants to go."""
    return 8 + scene.v[rows, EGO] * (c["onset_s"] + scene.accept_ego_s[rows] + _between(0.2, 2.2, c["gap"]))


def _u_turn(scene, rows, c, u, fronts) -> None:
    """A vehicle of the other direction turns into the ego's side."""
    left = LEFT[scene.road[rows]]
    start = (left + 2) * LANE_M  # the outer opposing lane: the half circle needs its width
    end = np.where(left > 0, 0.0, -LANE_M)
    scene.turn_radius[rows] = (start - end) / 2
    scene.accept_ego_s[rows] = _between(6.0, 3.4, c["haste"])
    centre = _meeting_place(scene, rows, c)
    scene.turn_centre[rows] = centre
    scene.way[rows, ACTOR] = -1
    v = _between(3.2, 5.5, c["closing"])
    s = centre + v * c["onset_s"]
    _actor(scene, rows, s=s, d=start, v=v, v0=v)
    _thin_oncoming(scene, rows, fronts, centre, c)
    _reserve(scene, rows, fronts, left + 2, centre - 25, s + 8)
    for lane in (1, -1):  # the other lane of the ego's side: passed the place already, or well behind the ego
        have = np.flatnonzero((LEFT if lane > 0 else RIGHT)[scene.road[rows]] > 0)
        if len(have):
            _reserve(scene, rows[have], fronts, np.full(len(have), lane), -70 + 0 * centre[have], centre[have] + 25)
    fronts[rows, 0, 1] = centre + 25


def _crossing(scene, rows, c, u, fronts) -> None:
    """A vehicle crosses the junction from the left or the right."""
    scene.accept_ego_s[rows] = _between(4.6, 2.2, c["haste"])
    place, v = _meeting_place(scene, rows, c), _between(4.0, 9.0, c["closing"])
    way = np.where(u[:, 3] < 0.5, 1, -1)
    scene.cross_v[rows], scene.cross_way[rows] = v, way
    edge = np.where(way > 0, -1.75 - 3.2, LANE_M + 1.75 + 3.2)  # its nose waits behind the nearer edge
    scene.cross_line[rows], scene.cross_end[rows] = edge, way * NEVER
    _actor(scene, rows, s=place, d=edge - way * v * c["onset_s"], v=v, v0=v)
    fronts[rows, 0, 1] = np.maximum(fronts[rows, 0, 1], place + 14)
    _thin_oncoming(scene, rows, fronts, place, c)


def _thin_oncoming(scene, rows, fronts, place, c) -> None:
    """Leave a gap in the traffic of the other direction, for who crosses at `place` or turns there."""
    for lane in (1, 2, 3):
        lanes = LANES_OF[scene.road[rows]]
        have = np.flatnonzero(((lanes[:, :, 0] == lane) & (lanes[:, :, 1] < 0)).any(axis=1))
        if len(have):
            until = place[have] + 25 + 0.9 * LIMIT[scene.road[rows[have]]] * (c["onset_s"][have] + 3)
            _reserve(scene, rows[have], fronts, np.full(len(have), lane), np.full(len(have), -10.0), until)


def _ego_lane_change(scene, rows, c, u, fronts) -> None:
    side = _side(scene, rows, u[:, 3])
    s = -_ahead(scene, rows, _between(9, 45, c["gap"]))
    v = np.maximum(scene.v[rows, EGO] + _between(-2, 4, c["closing"]), 3)
    _actor(scene, rows, s=s, d=side * LANE_M, v=v, v0=v)
    _reserve(scene, rows, fronts, side, s - 4, 18 + 0.8 * scene.v[rows, EGO])
    fronts[rows, 0, 1] = 20 + 1.2 * scene.v[rows, EGO]
    scene.plan_t0[rows, EGO], scene.plan_to[rows, EGO] = c["onset_s"], side * LANE_M
    scene.plan_accept_s[rows, EGO] = 0.6
    scene.plan_s[rows, EGO] = 0  # the policy's own duration


def _pull_out(scene, rows, c, u, fronts) -> None:
    scene.d[rows, EGO], scene.v[rows, EGO] = KERB_D_M, 0
    v = scene.v[rows, ACTOR]
    s = -_ahead(scene, rows, _between(8, 85, c["gap"]))
    _actor(scene, rows, s=s, v=v, v0=v)
    fronts[rows, 0] = np.stack([s - 3, np.full(len(rows), 30.0) + v], axis=1)
    scene.plan_t0[rows, EGO], scene.plan_accept_s[rows, EGO] = c["onset_s"], 2.6
    scene.plan_s[rows, EGO] = 4.5
    scene.stop_s[rows, EGO] = EGO_SIZE[0] / 2 + 0.05  # until the gap is accepted


def _pull_over(scene, rows, c, u, fronts) -> None:
    place = _between(4.5, 7.5, c["gap"]) * np.maximum(scene.v[rows, EGO], 6)
    scene.stop_s[rows, EGO] = place
    scene.plan_t0[rows, EGO], scene.plan_to[rows, EGO], scene.plan_s[rows, EGO] = 0, KERB_D_M, 4.0
    scene.plan_from_s[rows, EGO] = np.maximum(place - 4.2 * scene.v[rows, EGO] - 8, 0)
    s = -_ahead(scene, rows, _between(10, 45, c["closing"]))
    _actor(scene, rows, s=s)
    fronts[rows, 0] = np.stack([s - 3, place + 30], axis=1)


def _nudge(scene, rows, c, u, fronts) -> None:
    """A parked vehicle stands out into the ego's lane."""
    out = _between(0.35, 0.9, c["haste"])
    place = _between(30, 90, c["gap"])
    _size(scene, rows, c["size"], u[:, 2], large=False)
    half_width = scene.width[rows, ACTOR] / 2
    _actor(scene, rows, s=place, d=-LANE_M / 2 + out - half_width, v=0, v0=0)
    scene.plan_t0[rows, EGO], scene.plan_s[rows, EGO] = 0, 3.2
    scene.plan_to[rows, EGO] = out + 0.05
    scene.plan_from_s[rows, EGO] = place - 3.4 * scene.v[rows, EGO] - 9
    scene.back_s[rows] = place + 9
    fronts[rows, 0, 1] = place + 15


def _agent_lane_change(scene, rows, c, u, fronts) -> None:
    """The lead leaves the ego's lane."""
    side = _side(scene, rows, u[:, 3])
    v = np.minimum(scene.v[rows, ACTOR], scene.v[rows, EGO])
    scene.v[rows, EGO] = v
    _size(scene, rows, c["size"], u[:, 2], large=False)
    _lead(scene, rows, c, fronts, 3 + v * _between(0.9, 2.2, c["gap"]), v)
    s = scene.s[rows, ACTOR]
    _reserve(scene, rows, fronts, side, s - 16, s + 25)
    scene.plan_t0[rows, ACTOR], scene.plan_to[rows, ACTOR] = c["onset_s"], side * LANE_M
    scene.plan_s[rows, ACTOR], scene.plan_accept_s[rows, ACTOR] = _between(5, 2.6, c["haste"]), 0.8


def _parallel(scene, rows, c, u, fronts) -> None:
    side = _side(scene, rows, u[:, 3])
    s = _between(-4.5, 4.5, c["gap"])
    v = scene.v[rows, EGO] + _between(-0.8, 0.8, c["closing"])
    _actor(scene, rows, s=s, d=side * LANE_M, v=v, v0=v)
    _reserve(scene, rows, fronts, side, s - 3, s + 18)
    scene.shadows[rows] = True


def _wrong_way(scene, rows, c, u, fronts) -> None:
    scene.way[rows, ACTOR] = -1
    place, v = _between(75, 150, c["gap"]), _between(6.0, 11.5, c["closing"])
    _actor(scene, rows, s=place, v=v, v0=v)
    fronts[rows, 0, 1] = place + 60
    _reserve(scene, rows, fronts, LEFT[scene.road[rows]] + 1, np.full(len(rows), -30.0), place + 35)
    scene.plan_t0[rows, ACTOR], scene.plan_to[rows, ACTOR] = 0, LANE_M
    scene.plan_s[rows, ACTOR] = _between(3.4, 2.2, c["haste"])
    scene.plan_near[rows, ACTOR] = (v + scene.v[rows, EGO]) * _between(4.6, 2.9, c["haste"])


def _jaywalk(scene, rows, c, u, fronts) -> None:
    scene.accept_ego_s[rows] = _between(4.5, 2.3, c["haste"])
    place, v = _meeting_place(scene, rows, c), _between(0.9, 2.6, c["closing"])
    way = np.where(u[:, 3] < 0.6, 1, -1)
    lanes = LANES_OF[scene.road[rows]]
    far = lanes[:, :, 0].max(axis=1) * LANE_M + 1.75 + 0.6
    near = lanes[:, :, 0].min(axis=1) * LANE_M - 1.75 - 0.6
    scene.kind[rows, ACTOR] = PEDESTRIAN
    scene.length[rows, ACTOR] = scene.width[rows, ACTOR] = 0.6
    scene.height[rows, ACTOR] = 1.7
    scene.cross_v[rows], scene.cross_way[rows], scene.cross_t0[rows] = v, way, c["onset_s"]
    scene.cross_line[rows], scene.cross_end[rows] = np.where(way > 0, (near, far), (far, near))
    _actor(scene, rows, s=place, d=scene.cross_line[rows], v=0, v0=0)
    fronts[rows, 0, 1] = np.maximum(fronts[rows, 0, 1], place + 8)
    _thin_oncoming(scene, rows, fronts, place, c)


def _backing(scene, rows, c, u, fronts) -> None:
    _size(scene, rows, c["size"], u[:, 2], large=False)
    room = _braking_room(scene.v[rows, EGO], _between(3.2, 1.2, c["gap"]))
    _lead(scene, rows, c, fronts, room, 0 * room)
    scene.reverse_t0[rows], scene.reverse_s[rows] = c["onset_s"], _between(1.5, 4.5, c["haste"])
    scene.reverse_v[rows] = _between(0.8, 2.6, c["closing"])
    fronts[rows, 0, 1] += 8


def _ego_turn(scene, rows, c, u, fronts) -> None:
    scene.v[rows, EGO] = np.minimum(scene.v[rows, EGO], 9.0)
    _lead(scene, rows, c, fronts, _between(12, 60, c["gap"]), np.minimum(scene.v[rows, ACTOR], 9.0))


SET_UP = {
    "free": _free, "follow": _follow, "queue": _queue, "work_zone": _work_zone, "cut_in_car": _cut_in(False),
    "cut_in_large": _cut_in(True), "u_turn": _u_turn, "crossing": _crossing, "ego_lane_change": _ego_lane_change,
    "pull_out": _pull_out, "pull_over": _pull_over, "nudge": _nudge, "agent_lane_change": _agent_lane_change,
    "parallel": _parallel, "wrong_way": _wrong_way, "jaywalk": _jaywalk, "backing": _backing, "ego_turn": _ego_turn,
}
