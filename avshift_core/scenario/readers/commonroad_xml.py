"""CommonRoad XML, 2018b and 2020a: obstacles, planning problems and lanelets of one file."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from avshift_core.errors import LogError
from avshift_core.scenario.readers.derive import TRUCK_LENGTH_M
from avshift_core.scenario.readers.source import Source

OBSTACLES = ("obstacle", "dynamicObstacle", "staticObstacle")  # the first is 2018b's, with a role
TYPES = {
    "car": "car", "taxi": "car", "parkedVehicle": "car", "priorityVehicle": "car", "truck": "truck", "bus": "bus",
    "motorcycle": "motorcycle", "bicycle": "bicycle", "pedestrian": "pedestrian", "constructionZone": "static",
    "roadBoundary": "static", "building": "static", "pillar": "static", "median_strip": "static", "train": "other",
}
STATE_TAGS = ("orientation", "velocity", "acceleration")
SPEED_SIGNS = ("R2-1", "274", "274.1", "maxSpeed", "MAX_SPEED")  # MUTCD, StVO; the additional value is in m/s
MAX_LIMIT_MPS = 60.0  # 216 km/h; 80 and more are km/h
MAX_STEPS = 100_000  # 2.8 hours at 10 Hz: a larger time step is a typing error, and would fill the memory


@dataclass(frozen=True)
class Track:
    """One obstacle: times (n,) as steps, states (n, 5) x, y, heading, speed, acceleration, length and width."""

    id: str
    type: str
    moves: bool
    step: np.ndarray
    states: np.ndarray
    size: tuple[float, float]


@dataclass(frozen=True)
class SceneFile:
    benchmark: str
    step_s: float
    tracks: tuple[Track, ...]
    problems: tuple[tuple[int, float, float, float], ...]  # first step, x, y, heading of each planning problem
    root: Element


def parse_scene(source: Source) -> SceneFile:
    try:
        root = fromstring(source.read_bytes(), forbid_dtd=True)
    except DefusedXmlException as error:
        raise LogError(f"{source.label} declares a document type or entities ({type(error).__name__}), which can make "
                       "a reader load other files or fill the memory. CommonRoad files have none; do not trust "
                       "it.") from None
    except (ParseError, ValueError, LookupError, RecursionError) as error:
        raise LogError(f"{source.label} is not readable XML: {error}. It may be truncated; copy it again.") from None
    if root.tag != "commonRoad":
        raise LogError(f"{source.label} begins with <{root.tag}>; a CommonRoad file begins with <commonRoad>.")
    step_s = _float(source, root.get("timeStepSize"), "timeStepSize")
    if not 0 < step_s <= 10:
        raise LogError(f"{source.label} has a timeStepSize of {step_s:g} s; between 0 and 10 s is needed.")
    tracks = tuple(_track(source, item) for item in root if item.tag in OBSTACLES)
    ids = [track.id for track in tracks]
    if not any(track.moves for track in tracks):
        raise LogError(f"{source.label} holds no moving vehicle, so none can be the ego. Leave this file out.")
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise LogError(f"{source.label} holds two obstacles with the id {twice}; ids must differ.")
    problems = tuple(_problem(source, state) for state in root.findall("planningProblem/initialState"))
    return SceneFile(root.get("benchmarkID") or source.stem, step_s, tracks, problems, root)


def _track(source: Source, item: Element) -> Track:
    name = f"{source.label}, {item.tag} {item.get('id', '?')}"
    states = [state for state in (item.find("initialState"), *item.findall("trajectory/state")) if state is not None]
    if not states:
        raise LogError(f"{name} has no state.")
    step = np.array([_step(name, state) for state in states])
    if (np.diff(step) <= 0).any():
        i = int(np.flatnonzero(np.diff(step) <= 0)[0])
        raise LogError(f"{name}: time runs backwards or stands still, from step {step[i]} to step {step[i + 1]}.")
    values = np.array([(*_position(name, state), *(_value(name, state, tag) for tag in STATE_TAGS))
                       for state in states])
    moves = item.tag == "dynamicObstacle" or (item.tag == "obstacle" and (item.findtext("role") or "") != "static")
    kind, size = TYPES.get((item.findtext("type") or "").strip(), ""), _size(name, item)
    if kind == "car" and size[0] > TRUCK_LENGTH_M:  # converted NGSIM calls everything a car
        kind = ""
    return Track(item.get("id", "?"), kind, moves, step, values, size)


def _step(name: str, state: Element) -> int:
    value = _value(name, state, "time")
    if not (np.isfinite(value) and abs(value) <= MAX_STEPS and value == int(value)):
        raise LogError(f"{name}: a state has the time {value}; a whole number of steps below {MAX_STEPS:,} is needed.")
    return int(value)


def _position(name: str, state: Element) -> tuple[float, float]:
    """The point, or the centre of the region in which the vehicle is said to be."""
    position = state.find("position")
    for tag in ("point", "rectangle/center", "circle/center"):
        point = position.find(tag) if position is not None else None
        if point is not None:
            return _float(name, point.findtext("x"), "x"), _float(name, point.findtext("y"), "y")
    if position is not None and position.find("polygon") is not None:
        return tuple(_points(name, position.find("polygon")).mean(axis=0))
    raise LogError(f"{name}: a state has no position (point, rectangle, circle or polygon).")


def _value(name: str, state: Element, tag: str) -> float:
    """Exact value, or the middle of its interval; NaN where the state has none."""
    item = state.find(tag)
    if item is None:
        return np.nan
    if item.find("exact") is not None:
        return _float(name, item.findtext("exact"), tag)
    return (_float(name, item.findtext("intervalStart"), tag) + _float(name, item.findtext("intervalEnd"), tag)) / 2


def _problem(source: Source, state: Element) -> tuple[int, float, float, float]:
    name = f"{source.label}, planning problem"
    return _step(name, state), *_position(name, state), _value(name, state, "orientation")


def _size(name: str, item: Element) -> tuple[float, float]:
    """Length and width; of a polygon along its own axes, which are the vehicle's."""
    shape = item.find("shape")
    rectangle, circle, polygon = (shape.find(tag) if shape is not None else None
                                  for tag in ("rectangle", "circle", "polygon"))
    if rectangle is not None:
        return tuple(_float(name, rectangle.findtext(tag), tag) for tag in ("length", "width"))
    if circle is not None:
        diameter = 2 * _float(name, circle.findtext("radius"), "radius")
        return diameter, diameter
    if polygon is not None:
        return tuple(float(extent) for extent in np.ptp(_points(name, polygon), axis=0))
    return np.nan, np.nan


def _points(name: str, item: Element | None) -> np.ndarray:
    points = [] if item is None else item.findall("point")
    if not points:
        raise LogError(f"{name}: a polygon or bound has no points.")
    return np.array([(_float(name, p.findtext("x"), "x"), _float(name, p.findtext("y"), "y")) for p in points])


def _float(name: object, text: str | None, what: str) -> float:
    label = name.label if isinstance(name, Source) else name
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise LogError(f"{label}: {what} is {text!r:.40}; a number is needed.")
    return value


def road_of(source: Source, file: SceneFile) -> list[tuple[np.ndarray, str, float]]:
    """Centre lines, bounds and stop lines of all lanelets; the centre is the mean of the two bounds."""
    limits = {}
    for sign in file.root.findall("trafficSign"):
        for element in sign.findall("trafficSignElement"):
            if (element.findtext("trafficSignID") or "").strip() in SPEED_SIGNS:
                limits[sign.get("id")] = _float(source, element.findtext("additionalValue"), "additionalValue")
    road = []
    for lanelet in file.root.findall("lanelet"):
        name = f"{source.label}, lanelet {lanelet.get('id', '?')}"
        left, right = (_points(name, lanelet.find(tag)) for tag in ("leftBound", "rightBound"))
        own = [limits[ref] for ref in (s.get("ref") for s in lanelet.findall("trafficSignRef")) if ref in limits]
        if lanelet.findtext("speedLimit"):
            own.append(_float(name, lanelet.findtext("speedLimit"), "speedLimit"))
        limit = min(own, default=np.nan)
        if limit <= 0 or limit > MAX_LIMIT_MPS:
            raise LogError(f"{name} has a speed limit of {limit:g}; m/s are needed, so at most {MAX_LIMIT_MPS:g}.")
        n = max(len(left), len(right))
        road.append(((_resampled(left, n) + _resampled(right, n)) / 2, "lane_center", limit))
        road += [(left, "lane_boundary", limit), (right, "lane_boundary", limit)]
        for stop in lanelet.findall("stopLine"):  # without points it lies at the end of the lanelet
            line = _points(name, stop) if stop.findall("point") else np.stack([left[-1], right[-1]])
            road.append((line, "stop_line", np.nan))
    return road


def _resampled(points: np.ndarray, n: int) -> np.ndarray:
    """(n, 2) points at even shares of the length; as they are when there are n already."""
    if len(points) == n:
        return points
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0, along[-1], n)
    return np.stack([np.interp(at, along, points[:, i]) for i in range(2)], axis=-1)
