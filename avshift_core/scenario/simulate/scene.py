"""Contexts -> the first moment of each scene: who stands where, how fast, and what each means to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.schema import AGENT_TYPES, EGO_SIZE
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.roads import lanes_of
from avshift_core.scenario.simulate.situations import LANE_M, ROAD_NAMES, ROADS, SITUATION_NAMES, decode

EGO, ACTOR = 0, 1
SLOTS = 30  # vehicles of the background at most; with ego and actor at most 32, see find_leaders
SCENE_NOISE, SLOT_NOISE = 12, 6
N_NOISE = SCENE_NOISE + SLOT_NOISE * SLOTS
CAR, TRUCK, BUS = (AGENT_TYPES.index(name) for name in ("car", "truck", "bus"))
BICYCLE, PEDESTRIAN, STATIC = (AGENT_TYPES.index(name) for name in ("bicycle", "pedestrian", "static"))
KERB_D_M = -2.95  # middle of a car at the kerb, seen from the rightmost lane
STANDSTILL_M = 2.0
LANES = 5
CONES = 5  # of a work zone's taper
WANDERING = ("free", "follow", "cut_in_car", "cut_in_large", "agent_lane_change", "parallel")
NEVER = np.float32(1e6)

_TABLE = np.zeros((len(ROAD_NAMES), LANES, 2), np.int64)  # lane index and direction, the ego's lane first
_COUNT = np.array([len(lanes_of(road)) for road in ROADS.values()])
for _j, _road in enumerate(ROADS.values()):
    _TABLE[_j, :_COUNT[_j]] = lanes_of(_road)
LIMIT = np.array([road.limit_mps for road in ROADS.values()])
LEFT = np.array([road.left for road in ROADS.values()])
RIGHT = np.array([road.right for road in ROADS.values()])


@dataclass(eq=False)
class Scene:
    """n scenes of N = 2 + background vehicles in road coordinates; index 0 is the ego, 1 the actor.

    Arrays are (N, n) unless said otherwise; the set-up functions below fill them in as (n, N).
    """

    road: np.ndarray  # (n,) index into ROAD_NAMES
    used: np.ndarray
    s: np.ndarray
    d: np.ndarray
    v: np.ndarray
    way: np.ndarray  # +1 along the ego's direction, -1 against it
    length: np.ndarray
    width: np.ndarray
    height: np.ndarray
    kind: np.ndarray  # index into AGENT_TYPES
    v0: np.ndarray  # desired speed
    headway: np.ndarray
    stop_s: np.ndarray  # where it must stop, NEVER if nowhere
    wanders: np.ndarray  # may change lanes by itself
    # Lateral plans of ego and actor, (2, n): begin after t0, beyond from_s, within `near` of each other, gaps accepted.
    plan_t0: np.ndarray
    plan_from_s: np.ndarray
    plan_near: np.ndarray
    plan_to: np.ndarray
    plan_s: np.ndarray  # duration
    plan_accept_s: np.ndarray  # time gap to the follower it accepts; negative: it does not look
    back_s: np.ndarray  # (n,) the ego returns to its lane beyond this point (nudging)
    # What only the actor does, (n,).
    cross_v: np.ndarray  # crosses the road at this speed, 0 if not
    cross_way: np.ndarray  # +1 from right to left
    cross_line: np.ndarray  # waits here (d) until the gap is accepted
    cross_end: np.ndarray  # stops here on the other side
    cross_t0: np.ndarray
    turn_centre: np.ndarray  # U-turn: centre of the half circle along the road, NEVER if none
    turn_radius: np.ndarray
    accept_ego_s: np.ndarray  # time to the ego's arrival that crossing and U-turning actors accept
    pulse_t0: np.ndarray  # brakes by pulse_a from here on for pulse_s
    pulse_s: np.ndarray
    pulse_a: np.ndarray
    reverse_t0: np.ndarray  # backs up at reverse_v for reverse_s
    reverse_s: np.ndarray
    reverse_v: np.ndarray
    shadows: np.ndarray  # keeps beside the ego
    # Speed zone of all vehicles in the ego's direction, (n,).
    zone_from: np.ndarray
    zone_to: np.ndarray
    zone_v: np.ndarray
    n_steps: np.ndarray  # (n,) length of the scenario at 10 Hz
    heading: np.ndarray  # (n,) direction of the road in the world


def lay_out(contexts: Contexts) -> Scene:
    """The first moment of each context's scene."""
    c = decode(contexts.z)
    n, road = contexts.n, contexts.road.astype(np.int64)
    N = 2 + int(np.floor(c["density"]).max()) - 1
    scene = _empty(n, N, road, contexts.noise)
    u = contexts.noise[:, :SCENE_NOISE].astype(float)
    scene.v[:, EGO] = scene.v0[:, EGO] = c["ego_speed"] * LIMIT[road]
    scene.v[:, ACTOR] = scene.v0[:, ACTOR] = c["traffic_speed"] * LIMIT[road]
    fronts = np.zeros((n, LANES, 2))  # where the next vehicle of a lane goes: behind and ahead
    fronts[:, 1:] = (40 * u[:, 4, None] - 20)[:, :, None]
    fronts[:, 0] = [-EGO_SIZE[0] / 2, EGO_SIZE[0] / 2]
    for k, name in enumerate(SITUATION_NAMES):
        rows = np.flatnonzero(contexts.situation == k)
        if len(rows):
            SET_UP[name](scene, rows, {key: value[rows] for key, value in c.items()}, u[rows], fronts)
    _background(scene, contexts, c, fronts)
    return _vehicles_first(scene)


def _vehicles_first(scene: Scene) -> Scene:
    """(n, N) -> (N, n), float32: the dynamics run along the scenes, which is the long side."""
    for name, value in vars(scene).items():
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        setattr(scene, name, np.ascontiguousarray(value.T))
    return scene


def _empty(n: int, N: int, road, noise) -> Scene:
    grid = lambda value: np.full((n, N), value, dtype=float)  # noqa: E731
    pair = lambda value: np.full((n, 2), value, dtype=float)  # noqa: E731
    line = lambda value: np.full(n, value, dtype=float)  # noqa: E731
    used = np.zeros((n, N), bool)
    used[:, :2] = True
    return Scene(
        road, used, grid(0), grid(0), grid(0), grid(1), grid(4.6), grid(1.85), grid(1.6), np.full((n, N), CAR),
        grid(15), grid(1.3), grid(NEVER), np.zeros((n, N), bool),
        pair(NEVER), pair(-NEVER), pair(NEVER), pair(0), pair(4), pair(-1), line(NEVER),
        line(0), line(1), line(0), line(NEVER), line(0), line(NEVER), line(5), line(3), line(NEVER), line(0), line(0),
        line(NEVER), line(0), line(0), np.zeros(n, bool), line(NEVER), line(NEVER), line(NEVER),
        (101 + np.floor(noise[:, 0].astype(float) * 50)).astype(int), 2 * np.pi * noise[:, 1].astype(float),
    )


# Situations -------------------------------------------------------------------------------------------------------
# Each places the actor and says what ego and actor mean to do. c: parameters of these rows; u: (m, SCENE_NOISE).

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
    slot = (_TABLE[scene.road[rows], :, 0] == np.asarray(lane)[:, None]).argmax(axis=1)
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
    scene.zone_from[rows], scene.zone_to[rows] = taper - 25, taper + 120
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
        lanes = _TABLE[scene.road[rows]]
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
    lanes = _TABLE[scene.road[rows]]
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


# Background -------------------------------------------------------------------------------------------------------

def _background(scene: Scene, contexts: Contexts, c, fronts) -> None:
    """Fill the lanes ahead and behind with traffic near its equilibrium, a few parked cars and people on foot."""
    n, N = scene.s.shape
    rows = np.arange(n)
    limit, queue = LIMIT[scene.road], contexts.situation == SITUATION_NAMES.index("queue")
    noise = contexts.noise[:, SCENE_NOISE:].reshape(n, SLOTS, SLOT_NOISE).astype(float)
    closed = scene.zone_from < NEVER
    wander = np.isin(contexts.situation, [SITUATION_NAMES.index(name) for name in WANDERING])
    walks = np.isin(scene.road, [ROAD_NAMES.index(r) for r in ("street", "street_curve", "junction")])
    walks &= contexts.situation != SITUATION_NAMES.index("crossing")
    tight = np.array([road.turn_m < 1e3 for road in ROADS.values()])[scene.road]  # no place for lorries
    pavement = np.zeros(n)  # people on foot keep to a track of their own each
    low = _TABLE[scene.road][:, :, 0].min(axis=1) * LANE_M
    for a in range(2, N):
        u = noise[:, a - 2]
        used = a - 1 < np.floor(c["density"])
        slot = np.minimum((u[:, 0] * _COUNT[scene.road]).astype(int), _COUNT[scene.road] - 1)
        lane, way = np.moveaxis(_TABLE[scene.road, slot], -1, 0)
        large = (u[:, 4] < 0.09) & ~tight
        length = np.where(large, 8 + 60 * u[:, 4], 4.1 + 1.1 * u[:, 4])
        v = limit * np.where(way > 0, c["traffic_speed"] * (1 + 0.06 * lane), 0.9) * (0.95 + 0.1 * u[:, 5])
        v = np.where(queue & (lane == 0), np.minimum(v, scene.v[:, ACTOR]), v)
        headway = 1.0 + 0.8 * u[:, 3]
        space = (STANDSTILL_M + v * headway) * (1.08 + 0.8 * u[:, 2] ** 2) + length / 2
        ahead = u[:, 1] < np.where(way > 0, 0.62, 0.8)
        # A place beyond a closed lane, or too far away to be seen, falls back to the other end.
        ahead &= fronts[rows, slot, 1] < 120
        s = np.where(ahead, fronts[rows, slot, 1] + space, fronts[rows, slot, 0] - space)
        v = np.where((lane == 0) & ~ahead, np.minimum(v, scene.v[:, EGO] + 1), v)
        foot = walks & (u[:, 0] > 0.86)
        used &= foot | (np.abs(s) < 160)
        scene.used[:, a], scene.wanders[:, a] = used, ~foot & (way > 0) & (u[:, 5] < 0.5) & wander
        scene.s[:, a] = np.where(foot, -30 + 110 * u[:, 2], s)
        scene.d[:, a] = np.where(foot, low - 5.0 - pavement, lane * LANE_M)
        pavement += 0.8 * (foot & used)
        scene.v[:, a] = scene.v0[:, a] = np.where(foot, 0.9 + 0.7 * u[:, 5], v)
        scene.v0[:, a] = np.where(foot, scene.v[:, a], np.maximum(v * 1.04, 0.5))
        scene.way[:, a] = np.where(foot, np.where(u[:, 4] < 0.5, 1, -1), way)
        scene.headway[:, a] = headway
        scene.length[:, a] = np.where(foot, 0.6, length)
        scene.width[:, a] = np.where(foot, 0.6, np.where(large, 2.5, 1.7 + 0.25 * u[:, 4]))
        scene.height[:, a] = np.where(foot, 1.7, np.where(large, 3.3, 1.6))
        scene.kind[:, a] = np.where(foot, PEDESTRIAN, np.where(large, TRUCK, CAR))
        if a < 2 + CONES:
            _cone(scene, np.flatnonzero(closed), a)
        placed = used & ~foot & ~(closed & (a < 2 + CONES))
        fronts[rows, slot, 0] = np.where(placed & ~ahead, s - length / 2, fronts[rows, slot, 0])
        fronts[rows, slot, 1] = np.where(placed & ahead, s + length / 2, fronts[rows, slot, 1])
    scene.s[~scene.used], scene.d[~scene.used] = -440.0, 60.0  # out of everybody's way
    scene.v[~scene.used] = scene.v0[~scene.used] = 0


def _cone(scene: Scene, rows, a: int) -> None:
    """Cone number a - 2 of the taper that closes the actor's lane."""
    i = a - 2
    side = np.sign(scene.d[rows, ACTOR])
    scene.used[rows, a], scene.wanders[rows, a], scene.kind[rows, a] = True, False, STATIC
    scene.s[rows, a] = scene.zone_from[rows] + 25 + 8 * i
    scene.d[rows, a] = side * (1.5 * LANE_M - i / (CONES - 1) * (LANE_M - 0.3))
    scene.v[rows, a] = scene.v0[rows, a] = 0
    scene.way[rows, a] = 1
    scene.length[rows, a] = scene.width[rows, a] = 0.4
    scene.height[rows, a] = 0.75
