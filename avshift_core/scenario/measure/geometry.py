"""Rectangles and paths in the plane: gaps, overlap and time to collision of boxes, positions along a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PATH_NODES = 64  # a U-turn of 80 m gets a node every 1.3 m
PROJECTION_ROUNDS = 3  # each finds the node next to the point as seen from the node before
EXTENSION_M, EXTENSION_POINTS = 30.0, 10  # beyond, even a steady bend says little about where the ego would go
LAST_BEND_M = 10.0  # two seconds in town: long enough to average the noise of the heading
MAX_BEND_PER_M = 0.25  # no car turns tighter than 4 m; more is noise of a heading at a standstill


@dataclass(frozen=True)
class Boxes:
    """Pairs of rectangles seen from the first one, whose centre is (0, 0) and whose heading is 0; arrays of one shape.

    Attributes:
        x, y: centre of the second, m.
        cos, sin: of its heading relative to the first.
        half_length, half_width: of the first, m.
        other_half_length, other_half_width: of the second, m.
    """

    x: np.ndarray
    y: np.ndarray
    cos: np.ndarray
    sin: np.ndarray
    half_length: np.ndarray
    half_width: np.ndarray
    other_half_length: np.ndarray
    other_half_width: np.ndarray


def separating_axes(boxes: Boxes, x: np.ndarray, y: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Vector (x, y) along the four side directions of both boxes, and the reach of both boxes along each.

    Two rectangles are apart exactly when, along one of these, the centres are further apart than the reach.
    """
    c, s = np.abs(boxes.cos), np.abs(boxes.sin)
    along = [x, y, boxes.cos * x + boxes.sin * y, boxes.cos * y - boxes.sin * x]
    reach = [
        boxes.half_length + boxes.other_half_length * c + boxes.other_half_width * s,
        boxes.half_width + boxes.other_half_length * s + boxes.other_half_width * c,
        boxes.other_half_length + boxes.half_length * c + boxes.half_width * s,
        boxes.other_half_width + boxes.half_length * s + boxes.half_width * c,
    ]
    return along, reach


def overlap(boxes: Boxes) -> np.ndarray:
    """True where the rectangles touch or overlap."""
    along, reach = separating_axes(boxes, boxes.x, boxes.y)
    return np.logical_and.reduce([np.abs(p) <= r for p, r in zip(along, reach, strict=True)])


def distance(boxes: Boxes) -> np.ndarray:
    """Exact distance between the rectangles in m, 0 where they overlap.

    Between convex polygons that are apart, the shortest way starts at a corner of one of them.

    >>> one = np.ones(1)
    >>> float(distance(Boxes(5 * one, 6 * one, one, 0 * one, one, one, one, one))[0])  # 3 m and 4 m between sides
    5.0
    """
    best = np.full(np.shape(boxes.x), np.inf, dtype=np.float32)
    x_back, y_back = -(boxes.cos * boxes.x + boxes.sin * boxes.y), boxes.sin * boxes.x - boxes.cos * boxes.y
    for length_sign in (-1, 1):
        for width_sign in (-1, 1):
            u, v = length_sign * boxes.other_half_length, width_sign * boxes.other_half_width
            dx = np.abs(boxes.x + boxes.cos * u - boxes.sin * v) - boxes.half_length
            dy = np.abs(boxes.y + boxes.sin * u + boxes.cos * v) - boxes.half_width
            best = np.minimum(best, np.maximum(dx, 0) ** 2 + np.maximum(dy, 0) ** 2)
            u, v = length_sign * boxes.half_length, width_sign * boxes.half_width
            dx = np.abs(x_back + boxes.cos * u + boxes.sin * v) - boxes.other_half_length
            dy = np.abs(y_back - boxes.sin * u + boxes.cos * v) - boxes.other_half_width
            best = np.minimum(best, np.maximum(dx, 0) ** 2 + np.maximum(dy, 0) ** 2)
    return np.where(overlap(boxes), np.float32(0), np.sqrt(best))


def time_to_overlap(boxes: Boxes, vx: np.ndarray, vy: np.ndarray) -> np.ndarray:
    """Exact time in s until the rectangles overlap when the second moves on with relative velocity (vx, vy) and
    neither turns; 0 where they overlap now, inf where they never will.

    They overlap while the centres are within reach along all four separating axes: an intersection of four intervals.
    """
    along, reach = separating_axes(boxes, boxes.x, boxes.y)
    speed, _ = separating_axes(boxes, vx, vy)
    begin, end = np.zeros_like(boxes.x), np.full_like(boxes.x, np.inf)
    for p, q, r in zip(along, speed, reach, strict=True):
        moving = np.abs(q) > 1e-6
        q = np.where(moving, q, 1)
        near, far = (-np.sign(q) * r - p) / q, (np.sign(q) * r - p) / q
        inside = np.abs(p) <= r
        begin = np.maximum(begin, np.where(moving, near, np.where(inside, 0, np.inf)))
        end = np.minimum(end, np.where(moving, far, np.inf))
    return np.where(begin <= end, begin, np.inf)


def wrap(angle_rad: np.ndarray) -> np.ndarray:
    """Angles -> [-pi, pi].

    >>> float(wrap(np.array(2 * np.pi + 0.5)).round(6))
    0.5
    """
    return angle_rad - 2 * np.pi * np.rint(angle_rad / (2 * np.pi))


def last_at_or_before(times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(n, k) index of the last entry of each row of `times` (n, T), increasing, that is <= `wanted` (n, k); 0 if none.

    >>> last_at_or_before(np.array([[0.0, 1, 2], [0, 5, 5]]), np.array([[1.5], [4]])).tolist()
    [[1], [0]]
    """
    n, T = times.shape
    if n == 0 or T == 0:
        return np.zeros(wanted.shape, dtype=np.intp)
    low = min(times.min(), wanted.min(initial=np.inf))
    width = max(times.max(), wanted.max(initial=-np.inf)) - low + 1.0
    offset = np.arange(n)[:, None] * width - low
    found = np.searchsorted((times + offset).ravel(), (wanted + offset).ravel(), side="right").reshape(wanted.shape)
    return np.clip(found - 1 - T * np.arange(n)[:, None], 0, T - 1)


def fill_forward(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(n, T, ...) values, where invalid that of the last valid step before (or of the first valid one)."""
    T = valid.shape[1]
    if T == 0:
        return values
    source = np.maximum.accumulate(np.where(valid, np.arange(T), -1), axis=1)
    source = np.where(source < 0, valid.argmax(axis=1)[:, None], source)
    return values[np.arange(len(values))[:, None], source]


@dataclass(frozen=True)
class EgoPath:
    """Where each ego drove, as points at equal distances along its way. After its end the path goes on for EXTENSION_M
    with the curvature of its last metres, then straight; before its start it is straight.

    Attributes:
        s_m: (n, T) distance driven up to each step; driving backwards does not count.
        driven_m: (n,) all of it.
        nodes: (n, PATH_NODES, 4) float32 points x, y and the cos, sin of the direction there.
        bend_per_m: (n, PATH_NODES) curvature, 0 at both ends.
        spacing_m: (n,) distance between points.
        turn_rad: (n,) largest difference between two headings on the way.
    """

    s_m: np.ndarray
    driven_m: np.ndarray
    nodes: np.ndarray
    bend_per_m: np.ndarray
    spacing_m: np.ndarray
    turn_rad: np.ndarray


def ego_path(ego: np.ndarray, valid: np.ndarray, heading_rad: np.ndarray) -> EgoPath:
    """Path of ego (n, T, 5) with unwrapped headings (n, T), held where invalid."""
    n, T = valid.shape
    xy = fill_forward(ego[..., :2], valid).astype(np.float64)
    step = np.diff(xy, axis=1)
    ahead = step[..., 0] * np.cos(heading_rad[:, :-1]) + step[..., 1] * np.sin(heading_rad[:, :-1])
    driven = np.where(ahead > 0, np.hypot(step[..., 0], step[..., 1]), 0)
    s = np.concatenate([np.zeros((n, 1)), np.cumsum(driven, axis=1)], axis=1)[:, :T]
    turn_rad = np.ptp(heading_rad, axis=1).astype(np.float32)
    s_driven, xy, s, heading_rad = s, *_extended(xy, s, heading_rad)
    spacing = s[:, -1:] / (PATH_NODES - 1)
    wanted = spacing * np.arange(PATH_NODES)
    left = np.minimum(last_at_or_before(s, wanted), s.shape[1] - 2)
    right = left + 1
    at = lambda a, i: np.take_along_axis(a, i, axis=1)  # noqa: E731
    s_left = at(s, left)
    part = np.clip((wanted - s_left) / np.maximum(at(s, right) - s_left, 1e-9), 0, 1)
    mix = lambda a: at(a, left) * (1 - part) + at(a, right) * part  # noqa: E731
    heading = mix(heading_rad)
    bend = np.zeros((n, PATH_NODES), np.float32)
    bend[:, 1:-1] = (heading[:, 2:] - heading[:, :-2]) / (2 * spacing)
    nodes = np.stack([mix(xy[..., 0]), mix(xy[..., 1]), np.cos(heading), np.sin(heading)], axis=-1)
    return EgoPath(s_driven.astype(np.float32), s_driven[:, -1].astype(np.float32), nodes.astype(np.float32),
                   np.clip(bend, -MAX_BEND_PER_M, MAX_BEND_PER_M), spacing[:, 0].astype(np.float32), turn_rad)


def _extended(xy, s, heading):
    """The path and EXTENSION_M more of it, with the mean curvature of its last LAST_BEND_M."""
    before = last_at_or_before(s, s[:, -1:] - LAST_BEND_M)
    way = s[:, -1:] - np.take_along_axis(s, before, axis=1)
    bend = (heading[:, -1:] - np.take_along_axis(heading, before, axis=1)) / np.maximum(way, LAST_BEND_M)
    bend = np.where(way < LAST_BEND_M / 2, 0, np.clip(bend, -MAX_BEND_PER_M, MAX_BEND_PER_M))
    u = np.linspace(0, EXTENSION_M, EXTENSION_POINTS + 1)[1:]
    direction, step = heading[:, -1:] + bend * u, u[0]
    middle = direction - bend * step / 2
    more = xy[:, -1:] + step * np.cumsum(np.stack([np.cos(middle), np.sin(middle)], axis=-1), axis=1)
    return (np.concatenate([xy, more], axis=1), np.concatenate([s, s[:, -1:] + u], axis=1),
            np.concatenate([heading, direction], axis=1))


def along_path(path: EgoPath, row: np.ndarray, x: np.ndarray, y: np.ndarray, guess_m: np.ndarray,
               rounds: int = PROJECTION_ROUNDS):
    """Points in the frame of the path: distance along it, offset to its left (m), and cos, sin of its direction there.

    The path is taken as an arc about the node that is next to the point.

    Args:
        row: (k,) which path; x, y: (k,) points; guess_m: (k,) about where along the path they are.
    """
    nodes, spacing = path.nodes.reshape(-1, 4), path.spacing_m[row]
    per_m, base = 1 / spacing, row * PATH_NODES
    ahead, node = guess_m, np.float32(0)
    for _ in range(rounds):
        node = np.clip(node + np.rint(ahead * per_m), 0, PATH_NODES - 1)
        here = nodes.take(base + node.astype(np.int32), axis=0)
        dx, dy, cos, sin = x - here[:, 0], y - here[:, 1], here[:, 2], here[:, 3]
        ahead, aside = cos * dx + sin * dy, cos * dy - sin * dx
    bend = path.bend_per_m.ravel().take(base + node.astype(np.int32))
    ahead = ahead / np.maximum(1 - bend * aside, np.float32(0.3))
    turn = bend * ahead
    return (node * spacing + ahead, aside - turn * ahead / 2, cos - turn * sin, sin + turn * cos)
