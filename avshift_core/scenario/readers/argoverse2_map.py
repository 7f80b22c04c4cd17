"""The map of an Argoverse 2 scenario (log_map_archive_<id>.json) -> road polylines."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.readers.checks import MAX_COORDINATE_M
from avshift_core.scenario.readers.source import Source

CENTER_POINTS = 10  # of a centre line that is made of its two boundaries, as in the data set's own tools
Polyline = tuple[np.ndarray, str, float]


def read_map(source: Source) -> list[Polyline]:
    """(points (m, 2), kind, NaN) of all lanes, crossings and drivable areas.

    Centre lines are those of lanes for vehicles and buses; a bicycle lane gives its boundaries alone. A boundary that
    two neighbours share is there once. No map of this format holds speed limits.
    """
    try:
        archive = json.loads(source.read_bytes())
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise LogError(f"{source.label} is not a readable map: {reason}. It may be truncated; copy it again.") from None
    unique = {}
    for points, kind in [*_lanes(archive, source.label), *_crossings(archive, source.label),
                         *_areas(archive, source.label)]:
        unique.setdefault((kind, min(points.tobytes(), points[::-1].tobytes())), (points, kind, np.nan))
    return list(unique.values())


def _lanes(archive, where: str) -> Iterator[tuple[np.ndarray, str]]:
    for name, lane in _items(archive, "lane_segments", where):
        left, right = (_points(lane, f"{side}_lane_boundary", f"{where}, lane {name}") for side in ("left", "right"))
        if lane.get("lane_type") != "BIKE":
            if "centerline" in lane:
                yield _points(lane, "centerline", f"{where}, lane {name}"), "lane_center"
            else:
                yield (_evenly(left) + _evenly(right)) / 2, "lane_center"
        yield left, "lane_boundary"
        yield right, "lane_boundary"


def _crossings(archive, where: str) -> Iterator[tuple[np.ndarray, str]]:
    """Each crossing as a closed ring around its two edges, which run side by side."""
    for name, crossing in _items(archive, "pedestrian_crossings", where):
        one, other = (_points(crossing, edge, f"{where}, crossing {name}") for edge in ("edge1", "edge2"))
        yield np.concatenate([one, other[::-1], one[:1]]), "crosswalk"


def _areas(archive, where: str) -> Iterator[tuple[np.ndarray, str]]:
    for name, area in _items(archive, "drivable_areas", where):
        ring = _points(area, "area_boundary", f"{where}, drivable area {name}")
        yield (ring if (ring[0] == ring[-1]).all() else np.concatenate([ring, ring[:1]])), "road_edge"


def _items(archive, key: str, where: str):
    if not isinstance(archive, dict) or not isinstance(archive.get(key, {}), dict):
        raise LogError(f"{where} is no map: '{key}' by id is needed. Copy it again.")
    for name, item in archive.get(key, {}).items():
        if not isinstance(item, dict):
            raise LogError(f"{where}: {key} '{name}' is no object. Copy the map again.")
        yield name, item


def _points(item: dict, key: str, where: str) -> np.ndarray:
    """Points (m, 2) of [{"x": .., "y": ..}, ...], m >= 2."""
    try:
        points = np.array([(float(point["x"]), float(point["y"])) for point in item[key]])
    except (KeyError, TypeError, ValueError):
        raise LogError(f"{where}: {key} is no list of points with x and y. Copy the map again.") from None
    if len(points) < 2 or not (np.abs(points) <= MAX_COORDINATE_M).all():
        raise LogError(f"{where}: {key} needs two points or more, all in metres. Copy the map again.")
    return points


def _evenly(points: np.ndarray) -> np.ndarray:
    """CENTER_POINTS points at even distances along a line."""
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0, way[-1], CENTER_POINTS)
    return np.column_stack([np.interp(at, way, points[:, k]) for k in (0, 1)])
