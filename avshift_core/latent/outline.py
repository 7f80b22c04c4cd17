"""Shapes on a map of latent space: what lies inside a drawn line, where P and Q differ, where regions lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DENSITY_BINS, DENSITY_BLUR = 96, 1.6  # cells across the map, and the width of the blur in cells
OUTLINE_BINS, OUTLINE_BLUR = 144, 1.8
HELD = 0.9  # share of a region's scenarios that its outline holds
SMALL_PIECE = 0.04  # a ring with a smaller share of the region's scenarios is not drawn
MARGIN = 0.04  # of the width, around the outermost scenarios


@dataclass(frozen=True, eq=False)
class Density:
    """Where on the map there is more of Q than of P.

    Attributes:
        grid: (bins, bins) float32 q - p in units of the largest difference, rows from the bottom up.
        extent: x0, x1, y0, y1 of the grid.
        peak: the largest difference, as a share of a cohort in one cell.
    """

    grid: np.ndarray
    extent: tuple[float, float, float, float]
    peak: float


@dataclass(frozen=True, eq=False)
class Outline:
    """Where on the map the scenarios of one region lie; other scenarios may lie there too.

    Attributes:
        name: what is written beside it ("R1").
        rings: closed lines, (m, 2) each without the first point again; a region may be several pieces.
        labels: x, y where its scenarios are densest, in each ring.
        held: share of the region's scenarios inside the rings.
    """

    name: str
    rings: tuple[np.ndarray, ...]
    labels: tuple[tuple[float, float], ...]
    held: float


def inside(xy, polygon) -> np.ndarray:
    """(n,) which points lie inside a closed line; where it crosses itself, by the even-odd rule.

    Args:
        xy: (n, 2); polygon: (m, 2) corners, the last is joined to the first.

    >>> inside(np.array([[0.5, 0.5], [2.0, 0.5]]), [(0, 0), (1, 0), (1, 1), (0, 1)]).tolist()
    [True, False]
    """
    xy, polygon = np.asarray(xy), np.asarray(polygon, dtype=np.float64)
    found = np.zeros(len(xy), dtype=bool)
    if len(polygon) < 3 or not np.isfinite(polygon).all():
        return found
    (x0, y0), (x1, y1) = polygon.min(axis=0), polygon.max(axis=0)
    near = np.flatnonzero((xy[:, 0] >= x0) & (xy[:, 0] <= x1) & (xy[:, 1] >= y0) & (xy[:, 1] <= y1))
    near = near[np.argsort(xy[near, 1])]  # an edge then meets one slice of the points
    x, y = xy[near].astype(np.float64).T
    odd = np.zeros(len(near), dtype=bool)
    for (xa, ya), (xb, yb) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        first, last = np.searchsorted(y, sorted((ya, yb)))  # lower <= y < upper: a corner counts once
        if first < last:
            odd[first:last] ^= x[first:last] < xa + (y[first:last] - ya) * ((xb - xa) / (yb - ya))
    found[near] = odd
    return found


def extent_of(xy) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 of a square around all points, with a margin: one unit is as long across as up."""
    low, high = xy.min(axis=0).astype(float), xy.max(axis=0).astype(float)
    middle, half = (low + high) / 2, max(float((high - low).max()), 1e-9) * (0.5 + MARGIN)
    return (float(middle[0] - half), float(middle[0] + half), float(middle[1] - half), float(middle[1] + half))


def density_difference(xy, y, bins: int = DENSITY_BINS, blur: float = DENSITY_BLUR) -> Density:
    """Smoothed density of Q less that of P, each cohort with mass 1.

    Args:
        xy: (n, 2); y: (n,) 0 for P, 1 for Q.
    """
    extent = extent_of(xy)
    cell = _cells(xy, extent, bins)
    p, q = (_smoothed(cell[y == c], bins, blur) / max(int((y == c).sum()), 1) for c in (0, 1))
    difference = q - p
    peak = float(np.abs(difference).max())
    grid = (difference / max(peak, 1e-300)).astype(np.float32)
    grid.setflags(write=False)
    return Density(grid, extent, peak)


def outlines(
    xy, label, names, bins: int = OUTLINE_BINS, blur: float = OUTLINE_BLUR, lines: bool = True
) -> tuple[Outline, ...]:
    """The line around the densest HELD of each region's points.

    Args:
        xy: (n, 2); label: (n,) index into `names`, anything else for points of no region.
        names: what to write beside each region; one without points is left out.
        lines: False for the names alone.
    """
    extent = extent_of(xy)
    cell = _cells(xy, extent, bins)
    step = (extent[1] - extent[0]) / bins
    found = []
    for k, name in enumerate(names):
        own = label == k
        if not own.any():
            continue
        density = _smoothed(cell[own], bins, blur)
        at, points = density.ravel()[cell[own]], xy[own]
        level = min(float(np.quantile(at, 1 - HELD)), float(at.max()) / 2)  # half: the blurred border of a solid shape
        rings = _rings(density, level, extent, step) if lines else []
        within = [inside(points, ring) for ring in rings]
        kept = [i for i, part in enumerate(within) if part.mean() >= SMALL_PIECE]
        held = float(np.logical_or.reduce([within[i] for i in kept]).mean()) if kept else 0.0
        pieces = [within[i] for i in kept] or [np.ones(len(points), dtype=bool)]
        labels = tuple(tuple(points[np.where(part, at, -1).argmax()].tolist()) for part in pieces)
        found.append(Outline(name, tuple(rings[i] for i in kept), labels, held))
    return tuple(found)


def _rings(density, level: float, extent, step: float) -> list[np.ndarray]:
    """Contours in the map's own units."""
    low = np.array([extent[0], extent[2]])
    return [low + (ring[:, ::-1] + 0.5) * step for ring in contour(density, level)]


def contour(grid, level: float) -> list[np.ndarray]:
    """Closed lines around where a grid is above a level, by marching squares.

    Returns:
        rings (m, 2) as row, column; interpolated between cells, beyond the grid's border the level is not reached.

    >>> [ring.tolist() for ring in contour(np.array([[2.0]]), 1.0)]
    [[[0.0, -0.5], [-0.5, 0.0], [0.0, 0.5], [0.5, 0.0]]]
    """
    g = np.pad(np.asarray(grid, dtype=np.float64), 1)
    above = g > level
    mixed = above[:-1, :-1].astype(int) + above[:-1, 1:] + above[1:, 1:] + above[1:, :-1]
    follows = {}
    for i, j in zip(*np.nonzero((mixed > 0) & (mixed < 4)), strict=True):
        follows |= _segments(above, int(i), int(j))
    rings = []
    while follows:
        start, edge = next(iter(follows.items()))
        del follows[start]
        ring = [start]
        while edge != start:
            ring.append(edge)
            edge = follows.pop(edge)
        rings.append(np.array([_crossing(g, level, *e) for e in ring]) - 1)
    return rings


def _segments(above, i: int, j: int) -> dict[tuple, tuple]:
    """Pieces of the line within one square: edge it leaves by walking around -> edge it comes back by.

    The neighbour walks the shared edge the other way, so there the next piece begins. Two high corners across a
    square stay apart.
    """
    corners = ((i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j))
    edges = [(min(a, b), max(a, b)) for a, b in zip(corners, (*corners[1:], corners[0]), strict=True)]
    high = [bool(above[c]) for c in corners]
    leaves = [e for e in range(4) if high[e] and not high[(e + 1) % 4]]
    enters = [e for e in range(4) if not high[e] and high[(e + 1) % 4]]
    return {edges[out]: edges[max(enters, key=lambda e, out=out: (e - out) % 4)] for out in leaves}


def _crossing(g, level: float, a, b) -> tuple[float, float]:
    part = (level - g[a]) / (g[b] - g[a])
    return (a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1]))


def _cells(xy, extent, bins: int) -> np.ndarray:
    """(n,) flat cell of each point, row by row from the bottom."""
    x0, x1, y0, y1 = extent
    column = ((xy[:, 0] - x0) * (bins / (x1 - x0))).astype(np.int64).clip(0, bins - 1)
    row = ((xy[:, 1] - y0) * (bins / (y1 - y0))).astype(np.int64).clip(0, bins - 1)
    return row * bins + column


def _smoothed(cell, bins: int, blur: float) -> np.ndarray:
    from scipy.ndimage import gaussian_filter

    count = np.bincount(cell, minlength=bins * bins).reshape(bins, bins).astype(np.float64)
    return gaussian_filter(count, blur, mode="constant")
