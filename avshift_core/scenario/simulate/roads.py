"""Roads of the fleet: lanes along a centre curve, from road coordinates (s, d) to the plane, and as polylines."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from avshift_core.scenario.schema import Road, extend_road, make_road
from avshift_core.scenario.simulate.scene import ACTOR, NEVER, PEDESTRIAN, ZONE_TO_TAPER_M, Scene
from avshift_core.scenario.simulate.situations import LANE_M, ROAD_NAMES, ROADS, lanes_of

FROM_M, TO_M, STEP_M = -450.0, 900.0, 0.1
RAMP_M = 6.0  # curvature grows over this length, as on a built road
SHOULDER_M = 1.75 + 2.6  # from the middle of the rightmost lane to the road's edge: half a lane and a parking strip
CROSS_STREET_M = 45.0  # how far a crossing street is drawn to both sides
DRAW_BACK_M, DRAW_S = 80.0, 15.0  # drawn from behind the start to as far as one gets in a scenario, and as far again

_BENT = np.array([road.curvature_1pm != 0 for road in ROADS.values()])


def is_bent(road: np.ndarray) -> np.ndarray:
    """Which of these roads are not straight."""
    return _BENT[road]


@lru_cache(maxsize=1)
def centre_curves() -> tuple[np.ndarray, np.ndarray]:
    """(J, G, 5) x, y, heading, its cosine and sine, and (J, G) curvature of each road's lane 0, every STEP_M."""
    s = np.arange(FROM_M, TO_M, STEP_M)
    curves, curvatures = [], []
    for road in ROADS.values():
        inside = np.minimum(s - road.turn_at_m, road.turn_at_m + road.turn_m + RAMP_M - s) / RAMP_M
        curvature = road.curvature_1pm * np.clip(inside, 0, 1)
        heading = np.cumsum(curvature) * STEP_M
        x, y = np.cumsum(np.cos(heading)) * STEP_M, np.cumsum(np.sin(heading)) * STEP_M
        zero = np.searchsorted(s, 0.0)
        c, q = np.cos(heading[zero]), np.sin(heading[zero])
        x, y, heading = x - x[zero], y - y[zero], heading - heading[zero]
        curves.append(np.stack([c * x + q * y, -q * x + c * y, heading, np.cos(heading), np.sin(heading)], axis=1))
        curvatures.append(curvature)
    return np.array(curves, np.float32), np.array(curvatures, np.float32)


def grid_index(s: np.ndarray) -> np.ndarray:
    """Nearest point of the curves' grid."""
    return np.clip((s - (FROM_M - STEP_M / 2)) * (1 / STEP_M), 0, (TO_M - FROM_M) / STEP_M - 2).astype(np.int32)


def curvature_at(road: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Curvature of the ego lane; road (n,), s (N, n)."""
    bent = np.flatnonzero(is_bent(road))
    curvature = np.zeros(s.shape, np.float32)
    curvature[:, bent] = centre_curves()[1][road[bent], grid_index(s[:, bent])]
    return curvature


def to_plane(road: np.ndarray, s: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Road coordinates -> x, y, heading of the lane; road broadcasts against s and d."""
    index = grid_index(s)
    x, y, heading, cos, sin = np.moveaxis(centre_curves()[0][road, index], -1, 0)
    ahead = s - (FROM_M + index * STEP_M).astype(np.float32)
    return x + ahead * cos - d * sin, y + ahead * sin + d * cos, heading


@lru_cache(maxsize=len(ROAD_NAMES))
def template_road(j: int) -> Road:
    """Road j in its own plane."""
    road = ROADS[ROAD_NAMES[j]]
    step = 2.5 if road.turn_m < 1e3 else 10.0 if road.curvature_1pm else 30.0
    s = np.arange(-DRAW_BACK_M, DRAW_BACK_M + DRAW_S * road.limit_mps, step)
    line = lambda s, d: np.stack(to_plane(np.full(1, j), s, np.broadcast_to(d, s.shape))[:2], axis=1)  # noqa: E731
    lanes = lanes_of(road)
    low, high = min(i for i, _ in lanes), max(i for i, _ in lanes)
    lines = [(line(s, i * LANE_M)[::way], "lane_center", road.limit_mps) for i, way in lanes]
    lines += [(line(s, (i + 0.5) * LANE_M), "lane_boundary", np.nan) for i in range(low, high)]
    right, left = low * LANE_M - SHOULDER_M, (high + 0.5) * LANE_M
    lines += [(line(s, right), "road_edge", np.nan), (line(s, left), "road_edge", np.nan)]
    if road.crosswalk:
        corners = np.array([[48, right], [48, left], [52, left], [52, right], [48, right]])
        lines.append((line(corners[:, 0], corners[:, 1]), "crosswalk", np.nan))
    return make_road(lines)


def scene_roads(scene: Scene) -> tuple[Road, ...]:
    """Roads of n scenes in their worlds; with the taper where a lane ends, and the street that a vehicle crosses on."""
    cos, sin = np.cos(scene.heading), np.sin(scene.heading)
    rotation = np.stack([cos, sin, -sin, cos], axis=1).reshape(-1, 2, 2)
    roads: list[Road | None] = [None] * len(scene.road)
    for j in np.unique(scene.road):
        rows, template = np.flatnonzero(scene.road == j), template_road(int(j))
        turned = np.einsum("mi,nij->nmj", template.xy, rotation[rows]).astype(np.float32)
        for i, xy in zip(rows, turned, strict=True):
            roads[i] = replace(template, xy=xy)

    def add(i: int, s: np.ndarray, d: np.ndarray, kind: str) -> None:
        xy = np.stack(to_plane(scene.road[i:i + 1], s, d)[:2], axis=1) @ rotation[i]
        roads[i] = extend_road(roads[i], xy, kind)

    for i in np.flatnonzero(scene.zone_from < NEVER):
        side, taper = np.sign(scene.d[ACTOR, i]), scene.zone_from[i] + ZONE_TO_TAPER_M
        add(i, taper + np.array([0.0, 32.0, 100.0]), side * np.array([1.5 * LANE_M, 2.05, 2.05]), "work_zone")
    for i in np.flatnonzero((scene.cross_v > 0) & (scene.kind[ACTOR] != PEDESTRIAN)):
        d = scene.cross_way[i] * np.linspace(-CROSS_STREET_M, CROSS_STREET_M, 7)
        add(i, np.full(7, scene.s[ACTOR, i]), d, "lane_center")
    return tuple(roads)
