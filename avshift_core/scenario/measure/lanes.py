"""The road of many scenarios at once: its segments, the lane under a point, and the ego's shift across its lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.geometry import PATH_NODES, EgoPath
from avshift_core.scenario.schema import ROAD_KINDS, Road

LANE_CENTER = ROAD_KINDS.index("lane_center")
LANE_SAMPLES = 12
LANE_NODES = np.rint(np.linspace(0, PATH_NODES - 1, LANE_SAMPLES)).astype(int)  # where the lane is looked up
MAX_LANE_OFFSET_M = 4.0  # from the lane a car at the kerb still belongs to; further away there is none
LANE_JUMP_M = 1.5  # lanes are at least 2.5 m apart; what a bend does between two samples stays below
SAME_DIRECTION_COS = 0.7  # within 45 degrees
MAX_BASELINE_ERROR_M = 1.0  # without a road: a shift is only trusted where a bend of the road cannot feign more
LANE_COVER = 0.8  # share of the samples that must have a lane for the road to be the baseline
MAX_TURN_RAD = 0.6  # 35 degrees: beyond, the ego may turn from one road into another, and no sample may be missing


@dataclass(frozen=True)
class Segments:
    """Straight pieces of all polylines of all roads, one behind the other.

    Attributes:
        start: (n + 1,) first piece of each scenario, and their number.
        x, y: (k,) first point; dx, dy: (k,) to the second; length: (k,), m.
        kind: (k,) index into ROAD_KINDS; line: (k,) number of the polyline; limit_mps: (k,), NaN where unknown.
    """

    start: np.ndarray
    x: np.ndarray
    y: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    length: np.ndarray
    kind: np.ndarray
    line: np.ndarray
    limit_mps: np.ndarray

    def chosen(self, mask: np.ndarray) -> Segments:
        """The pieces where mask (k,) is True."""
        count = np.concatenate([[0], np.cumsum(mask)])
        return Segments(count[self.start], *(getattr(self, name)[mask] for name in
                        ("x", "y", "dx", "dy", "length", "kind", "line", "limit_mps")))


def road_segments(roads: tuple[Road, ...]) -> Segments:
    """All roads of a batch, flat."""
    points = np.array([len(road.xy) for road in roads], dtype=np.int64)
    xy = np.concatenate([road.xy for road in roads] or [np.zeros((0, 2), np.float32)])
    kind = np.concatenate([road.kind for road in roads] or [np.zeros(0, np.int8)])
    limit = np.concatenate([road.speed_limit_mps for road in roads] or [np.zeros(0, np.float32)])
    sizes = np.concatenate([np.diff(road.start) for road in roads] or [np.zeros(0, np.int64)]).astype(np.int64)
    line = np.repeat(np.arange(len(kind)), sizes)
    step = np.diff(xy, axis=0)
    length = np.hypot(step[:, 0], step[:, 1])
    inner = np.flatnonzero((line[1:] == line[:-1]) & (length > 1e-3)) if len(line) > 1 else np.zeros(0, np.int64)
    row_end = np.cumsum(points)
    start = np.searchsorted(inner, np.concatenate([[0], row_end]))
    return Segments(start, xy[inner, 0], xy[inner, 1], step[inner, 0], step[inner, 1], length[inner],
                    kind[line[inner]], line[inner], limit[line[inner]])


def nearest(segments: Segments, row: np.ndarray, x: np.ndarray, y: np.ndarray, cos=None, sin=None):
    """Nearest piece of the point's own scenario: (k,) distance in m (inf where none), and (k,) piece (-1).

    Args:
        row: (k,) scenario of each point; x, y: (k,) points.
        cos, sin: (k,) direction; then only pieces within 45 degrees of it count.
    """
    many = np.diff(segments.start)[row]
    point = np.repeat(np.arange(len(row)), many)
    first = np.cumsum(many) - many
    piece = np.arange(len(point)) - np.repeat(first - segments.start[row], many)
    dx, dy, length = segments.dx.take(piece), segments.dy.take(piece), segments.length.take(piece)
    px, py = x.take(point) - segments.x.take(piece), y.take(point) - segments.y.take(piece)
    part = np.clip((px * dx + py * dy) / (length * length), 0, 1)
    px, py = px - part * dx, py - part * dy
    square = px * px + py * py
    if cos is not None:
        square[cos.take(point) * dx + sin.take(point) * dy < SAME_DIRECTION_COS * length] = np.inf
    best, found = np.full(len(row), np.inf), np.full(len(row), -1)
    some = many > 0
    if some.any():
        best[some] = np.minimum.reduceat(square, first[some])
        hit = np.flatnonzero(square == best.take(point))[::-1]
        found[point[hit]] = piece[hit]
    found[np.isinf(best)] = -1
    return np.sqrt(best), found


@dataclass(frozen=True)
class Shift:
    """How far the ego has moved to the left across its first lane.

    Attributes:
        nodes_m: (n, PATH_NODES) at the points of its path, 0 at the first.
        mapped: (n,) whether lanes are the baseline.
        known: (n,) False where the road bends and there is no lane to compare with; nodes_m is 0 there.
        lane: (n, LANE_SAMPLES) lane piece under the ego along its path, -1 where none.
    """

    nodes_m: np.ndarray
    mapped: np.ndarray
    known: np.ndarray
    lane: np.ndarray

    def at(self, path: EgoPath, s_m: np.ndarray) -> np.ndarray:
        """Shift of the ego where it has come s_m (n, ...) along its path; constant beyond both ends."""
        shape = (-1,) + (1,) * (s_m.ndim - 1)
        node = np.clip(s_m / path.spacing_m.reshape(shape), 0, PATH_NODES - 1)
        left = np.minimum(node.astype(np.int32), PATH_NODES - 2)
        flat, values = left + PATH_NODES * np.arange(len(s_m), dtype=np.int32).reshape(shape), self.nodes_m.ravel()
        low = values.take(flat)
        return low + (node - left) * (values.take(flat + 1) - low)


def ego_shift(segments: Segments, path: EgoPath) -> Shift:
    """Integrate the ego's way across the direction of its lane.

    Where lanes are mapped, they are the baseline. Elsewhere it is the heading that turns evenly from the first to the
    last one, which is exact on straight roads and on arcs; for any other bend the error is at most length x turn / 4,
    and a shift is only given where that stays below MAX_BASELINE_ERROR_M.
    """
    x, y, cos, sin = (path.nodes[..., k].astype(np.float64) for k in range(4))
    length, row = path.driven_m, np.arange(len(x))
    end = np.minimum((length / path.spacing_m).astype(int), PATH_NODES - 1)
    driven = np.arange(PATH_NODES - 1) < end[:, None]  # what lies beyond is only where it might have gone on
    dx, dy = np.diff(x, axis=1) * driven, np.diff(y, axis=1) * driven
    mid_cos, mid_sin = (cos[:, 1:] + cos[:, :-1]) / 2, (sin[:, 1:] + sin[:, :-1]) / 2
    slip = (mid_cos * dy - mid_sin * dx).sum(axis=1) / np.maximum(length, 1e-3)  # a log's heading may be askew
    first = np.arctan2(sin[:, 0], cos[:, 0])
    end_cos, end_sin = cos[row, end], sin[row, end]
    turn = np.arctan2(end_sin * cos[:, 0] - end_cos * sin[:, 0], end_cos * cos[:, 0] + end_sin * sin[:, 0])
    lane, offset, direction = _lane_under(segments, path)
    cover = ((lane >= 0) | (end[:, None] < LANE_NODES)).mean(axis=1)
    mapped = (cover >= LANE_COVER) & ((path.turn_rad < MAX_TURN_RAD) | (cover == 1))
    even = ~mapped & (length * np.abs(turn) / 4 <= MAX_BASELINE_ERROR_M) & (path.turn_rad < 1.0)
    shift = np.zeros(x.shape)
    if mapped.any():
        shift[mapped] = _shift_on_lanes(lane[mapped] >= 0, offset[mapped], direction[mapped], dx[mapped], dy[mapped])
    if even.any():
        middle = (np.arange(PATH_NODES - 1) + 0.5) / np.maximum(end[even], 1)[:, None]
        angle = (first + np.clip(slip, -0.1, 0.1))[even, None] + turn[even, None] * middle
        shift[even] = _integrate(angle, dx[even], dy[even])
    shift = np.take_along_axis(shift, np.minimum(np.arange(PATH_NODES), end[:, None]), axis=1)
    return Shift(shift.astype(np.float32), mapped, even | mapped, lane)


def _integrate(angle, dx, dy):
    across = np.cumsum(np.cos(angle) * dy - np.sin(angle) * dx, axis=1)
    return np.concatenate([np.zeros((len(dx), 1)), across], axis=1)


def _lane_under(segments: Segments, path: EgoPath):
    """(n, LANE_SAMPLES) lane piece under the ego along its path (-1 where none), offset to its left, its direction."""
    n = len(path.nodes)
    lanes = segments.kind == LANE_CENTER
    if not lanes.any():
        return np.full((n, LANE_SAMPLES), -1), np.zeros((n, LANE_SAMPLES)), np.zeros((n, LANE_SAMPLES))
    only = segments.chosen(lanes)
    x, y, cos, sin = path.nodes[:, LANE_NODES].reshape(-1, 4).T
    distance, piece = nearest(only, np.repeat(np.arange(n), LANE_SAMPLES), x, y, cos, sin)
    piece = np.where(distance <= MAX_LANE_OFFSET_M, piece, -1)
    at = lambda a: a.take(piece, mode="clip")  # noqa: E731
    dx, dy = at(only.dx), at(only.dy)
    offset = (dx * (y - at(only.y)) - dy * (x - at(only.x))) / at(only.length)
    lane = np.where(piece >= 0, np.flatnonzero(lanes).take(piece, mode="clip"), -1)
    return tuple(a.reshape(n, LANE_SAMPLES) for a in (lane, offset, np.arctan2(dy, dx)))


def _shift_on_lanes(there, offset, direction, dx, dy):
    """(n, PATH_NODES) shift from offsets to the lane; where the lane under the ego becomes another one, the offset
    jumps by the distance of the lanes, and the lane's direction bridges the jump."""
    held = np.maximum.accumulate(np.where(there, np.arange(LANE_SAMPLES), -1), axis=1)
    held = np.where(held < 0, there.argmax(axis=1)[:, None], held)
    direction = np.unwrap(np.take_along_axis(direction, held, axis=1), axis=1)
    node = np.arange(PATH_NODES - 1) + 0.5
    left = np.searchsorted(LANE_NODES, node, side="right") - 1
    part = (node - LANE_NODES[left]) / (LANE_NODES[left + 1] - LANE_NODES[left])
    shift = _integrate(direction[:, left] * (1 - part) + direction[:, left + 1] * part, dx, dy)
    bridge, change = np.diff(shift[:, LANE_NODES], axis=1), np.diff(offset, axis=1)
    same = there[:, 1:] & there[:, :-1] & (np.abs(change - bridge) < LANE_JUMP_M)
    error = np.cumsum(np.where(same, change - bridge, 0), axis=1)
    error = np.concatenate([np.zeros((len(error), 1)), error], axis=1)
    shift[:, 1:] += error[:, left] * (1 - part) + error[:, left + 1] * part
    return shift
