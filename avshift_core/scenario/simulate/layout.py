"""Contexts -> the first moment of each scene: the actor of its situation, and the traffic around."""

from __future__ import annotations

import numpy as np

from avshift_core.scenario.schema import EGO_SIZE
from avshift_core.scenario.simulate.actors import SET_UP
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.scene import (
    ACTOR,
    CAR,
    EGO,
    LANE_COUNT,
    LANES,
    LANES_OF,
    LIMIT,
    NEVER,
    PEDESTRIAN,
    SCENE_NOISE,
    SLOT_NOISE,
    SLOTS,
    STANDSTILL_M,
    STATIC,
    TRUCK,
    ZONE_TO_TAPER_M,
    Scene,
    empty_scene,
)
from avshift_core.scenario.simulate.situations import LANE_M, ROAD_NAMES, ROADS, SITUATION_NAMES, decode

CONES = 5  # of a work zone's taper
WANDERING = ("free", "follow", "cut_in_car", "cut_in_large", "agent_lane_change", "parallel")


def lay_out(contexts: Contexts) -> Scene:
    """The first moment of each context's scene."""
    c = decode(contexts.z)
    n, road = contexts.n, contexts.road.astype(np.int64)
    N = 2 + int(np.floor(c["density"]).max()) - 1
    u = contexts.noise[:, :SCENE_NOISE].astype(float)
    scene = empty_scene(road, N, (101 + np.floor(50 * u[:, 0])).astype(int), 2 * np.pi * u[:, 1])
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
    low = LANES_OF[scene.road][:, :, 0].min(axis=1) * LANE_M
    for a in range(2, N):
        u = noise[:, a - 2]
        used = a - 1 < np.floor(c["density"])
        slot = np.minimum((u[:, 0] * LANE_COUNT[scene.road]).astype(int), LANE_COUNT[scene.road] - 1)
        lane, way = np.moveaxis(LANES_OF[scene.road, slot], -1, 0)
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
    scene.s[rows, a] = scene.zone_from[rows] + ZONE_TO_TAPER_M + 8 * i
    scene.d[rows, a] = side * (1.5 * LANE_M - i / (CONES - 1) * (LANE_M - 0.3))
    scene.v[rows, a] = scene.v0[rows, a] = 0
    scene.way[rows, a] = 1
    scene.length[rows, a] = scene.width[rows, a] = 0.4
    scene.height[rows, a] = 0.75
