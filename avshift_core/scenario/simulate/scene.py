"""A scene: who stands where on which road, how fast, and what ego and actor mean to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.schema import AGENT_TYPES
from avshift_core.scenario.simulate.situations import ROAD_NAMES, ROADS, lanes_of

EGO, ACTOR = 0, 1
SLOTS = 30  # vehicles of the background at most; with ego and actor at most 32, see find_leaders
SCENE_NOISE, SLOT_NOISE = 12, 6
N_NOISE = SCENE_NOISE + SLOT_NOISE * SLOTS
CAR, TRUCK, BUS = (AGENT_TYPES.index(name) for name in ("car", "truck", "bus"))
PEDESTRIAN, STATIC = (AGENT_TYPES.index(name) for name in ("pedestrian", "static"))
STANDSTILL_M = 2.0
LANES = 5
NEVER = np.float32(1e6)
ZONE_TO_TAPER_M = 25.0  # a work zone's lower speed holds from here before its taper

LANES_OF = np.zeros((len(ROAD_NAMES), LANES, 2), np.int64)  # lane index and direction, the ego's lane first
LANE_COUNT = np.array([len(lanes_of(road)) for road in ROADS.values()])
for _j, _road in enumerate(ROADS.values()):
    LANES_OF[_j, :LANE_COUNT[_j]] = lanes_of(_road)
LIMIT = np.array([road.limit_mps for road in ROADS.values()])
LEFT = np.array([road.left for road in ROADS.values()])
RIGHT = np.array([road.right for road in ROADS.values()])


@dataclass(eq=False)
class Scene:
    """n scenes of N = 2 + background vehicles in road coordinates; index 0 is the ego, 1 the actor.

    Arrays are (N, n) unless said otherwise; they are filled in as (n, N), see layout.py.
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


def empty_scene(road: np.ndarray, N: int, n_steps: np.ndarray, heading: np.ndarray) -> Scene:
    """Scenes on these roads (n,) in which everybody would drive on for ever; arrays still (n, N)."""
    n = len(road)
    used = np.zeros((n, N), bool)
    used[:, :2] = True
    everybody = {"s": 0, "d": 0, "v": 0, "way": 1, "length": 4.6, "width": 1.85, "height": 1.6, "v0": 15,
                 "headway": 1.3, "stop_s": NEVER}
    plans = {"plan_t0": NEVER, "plan_from_s": -NEVER, "plan_near": NEVER, "plan_to": 0, "plan_s": 4,
             "plan_accept_s": -1}
    once = {"back_s": NEVER, "cross_v": 0, "cross_way": 1, "cross_line": 0, "cross_end": NEVER, "cross_t0": 0,
            "turn_centre": NEVER, "turn_radius": 5, "accept_ego_s": 3, "pulse_t0": NEVER, "pulse_s": 0, "pulse_a": 0,
            "reverse_t0": NEVER, "reverse_s": 0, "reverse_v": 0, "zone_from": NEVER, "zone_to": NEVER, "zone_v": NEVER}
    fill = lambda values, *shape: {name: np.full(shape, value, float) for name, value in values.items()}  # noqa: E731
    return Scene(road=road, used=used, kind=np.full((n, N), CAR), wanders=np.zeros((n, N), bool),
                 shadows=np.zeros(n, bool), n_steps=n_steps, heading=heading,
                 **fill(everybody, n, N), **fill(plans, n, 2), **fill(once, n))
