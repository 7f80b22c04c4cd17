"""What can happen around the ego: situations, the roads they need, and the context's physical parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

LANE_M = 3.5


@dataclass(frozen=True)
class RoadTemplate:
    """A road seen from the ego's lane, index 0; lanes to the left have positive indices.

    Attributes:
        left, right: lanes in the ego's direction beside its own.
        opposing: lanes of the other direction, left of the others.
        limit_mps: speed limit.
        curvature_1pm: of the lane, positive to the left; between `turn_at_m` and `turn_at_m + turn_m` only, where
            turn_m is finite.
    """

    left: int
    right: int
    opposing: int
    limit_mps: float
    curvature_1pm: float = 0.0
    turn_at_m: float = -1e4
    turn_m: float = 2e4
    crosswalk: bool = False


def lanes_of(road: RoadTemplate) -> list[tuple[int, int]]:
    """(index, direction) of each lane, the ego's first."""
    same = [0, *range(1, road.left + 1), *range(-1, -road.right - 1, -1)]
    return [(i, 1) for i in same] + [(road.left + 1 + i, -1) for i in range(road.opposing)]


ROADS = {
    "highway": RoadTemplate(1, 1, 0, 27.8),
    "highway_curve": RoadTemplate(1, 1, 0, 25.0, curvature_1pm=1 / 700),
    "arterial": RoadTemplate(1, 0, 2, 16.7),
    "arterial_left": RoadTemplate(0, 1, 2, 16.7),
    "arterial_curve": RoadTemplate(1, 0, 2, 16.7, curvature_1pm=-1 / 250),
    "street": RoadTemplate(0, 0, 1, 13.9),
    "street_curve": RoadTemplate(0, 0, 1, 11.1, curvature_1pm=1 / 90),
    "junction": RoadTemplate(0, 0, 1, 13.9, crosswalk=True),
    "left_turn": RoadTemplate(0, 0, 1, 11.1, curvature_1pm=1 / 14, turn_at_m=28.0, turn_m=14 * np.pi / 2),
    "right_turn": RoadTemplate(0, 0, 1, 11.1, curvature_1pm=-1 / 10, turn_at_m=28.0, turn_m=10 * np.pi / 2),
}
ROAD_NAMES = tuple(ROADS)
WIDE = ("highway", "highway_curve", "arterial", "arterial_left", "arterial_curve")
KERB = ("arterial", "arterial_curve", "street", "street_curve")  # the ego drives beside the kerb
SLOW = ("street", "street_curve", "junction", "arterial", "arterial_left")

SITUATIONS = {  # name -> (category, roads it can happen on)
    "free": ("general", ("highway", "highway_curve", "arterial", "street", "street_curve", "junction")),
    "follow": ("ego_lane_keeping", (*WIDE, "street", "street_curve")),
    "queue": ("ego_lane_keeping", (*WIDE, "street", "junction")),
    "work_zone": ("agent_cutting_in", ("highway", "arterial", "arterial_left", "arterial_curve")),
    "cut_in_car": ("agent_cutting_in", WIDE),
    "cut_in_large": ("agent_cutting_in", WIDE),
    "u_turn": ("ego_yielding", ("arterial", "arterial_left")),
    "crossing": ("ego_yielding", ("junction",)),
    "ego_lane_change": ("ego_lane_changing", WIDE),
    "pull_out": ("ego_pulling_out", KERB),
    "pull_over": ("ego_pulling_over", KERB),
    "nudge": ("ego_nudging", KERB),
    "agent_lane_change": ("agent_lane_changing", WIDE),
    "parallel": ("agent_parallel_driving", WIDE),
    "wrong_way": ("agent_wrong_way_driving", ("street", "junction", "arterial_left")),
    "jaywalk": ("agent_jaywalking", SLOW),
    "backing": ("agent_backing_up", ("street", "arterial", "street_curve")),
    "ego_turn": ("general", ("left_turn", "right_turn")),
}
SITUATION_NAMES = tuple(SITUATIONS)
CATEGORY_OF = tuple(category for category, _ in SITUATIONS.values())


@dataclass(frozen=True)
class Parameter:
    """One continuous part of the context: low + (high - low) * Phi(z), z standard normal before any effect."""

    low: float
    high: float
    text: str

    def value(self, z: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) * ndtr(z)


PARAMETERS = {
    "ego_speed": Parameter(0.55, 1.02, "speed the ego wants, as a share of the limit"),
    "density": Parameter(14.0, 29.0, "agents around the ego"),
    "traffic_speed": Parameter(0.55, 1.05, "speed of the traffic, as a share of the limit"),
    "gap": Parameter(0.0, 1.0, "distance to the actor, from the closest to the farthest of its situation"),
    "closing": Parameter(0.0, 1.0, "speed of the actor, from the slowest to the fastest of its situation"),
    "onset_s": Parameter(0.8, 5.0, "when the actor begins"),
    "size": Parameter(0.0, 1.0, "length of the actor, from the shortest to the longest of its kind"),
    "haste": Parameter(0.0, 1.0, "how abruptly the actor moves, and how small a gap it accepts"),
}
PARAMETER_NAMES = tuple(PARAMETERS)


def decode(z: np.ndarray) -> dict[str, np.ndarray]:
    """(n, 8) latent context -> physical values by name."""
    return {name: parameter.value(z[:, d]) for d, (name, parameter) in enumerate(PARAMETERS.items())}
