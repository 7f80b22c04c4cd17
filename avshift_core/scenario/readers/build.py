"""States of a log -> Scenario: checked, moved to the ego, and completed with what the log does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.measure.geometry import wrap
from avshift_core.scenario.readers import checks
from avshift_core.scenario.readers.derive import (
    acceleration_of,
    default_sizes,
    guess_types,
    heading_in_traffic,
    heading_of,
    velocity_of,
)
from avshift_core.scenario.readers.units import Declared
from avshift_core.scenario.schema import DERIVABLE, EGO_SIZE, Ids, Road, Scenario, make_road

ROAD_REACH_M = 120.0  # of the ego's path; beyond, no sensor of the logs at hand sees an agent
WHO = {"the ego": slice(0, 1), "the agents": slice(1, None)}


def build_scenario(
    *, where: str, ids: Ids, t_s, ego_xy, ego_valid=None, ego_heading=None, ego_speed=None, ego_acceleration=None,
    ego_size=None, agent_id, agent_xy, agent_valid, agent_heading=None, agent_speed=None, agent_type=None,
    agent_size=None, road: Sequence[tuple[np.ndarray, str, float]] = (), derived: Sequence[str] = (),
    units: Declared = checks.AS_WRITTEN,
) -> Scenario:
    """Check and freeze one scenario; the origin moves to the ego's first valid position.

    What is None, NaN in a valid state (heading, speed, acceleration, size; a size of 0 too) or -1 (type) is derived,
    and named in `derived`; positions must be there. Agents without a valid state are not part of the scenario.

    Args:
        where: what messages call it, "scenes.zip:12.csv".
        t_s: (T,) seconds, from any start.
        ego_xy: (T, 2) m in the log's coordinates; agent_xy: (A, T, 2); anything where they are not valid.
        agent_type: (A,) index into AGENT_TYPES, -1 where unknown.
        agent_size: (A, 3) m; ego_size: (3,) m.
        road: (points (m, 2) in the log's coordinates, kind, speed limit in m/s or NaN); kept within 120 m of the ego.
        derived: names of DERIVABLE that the reader itself has derived.
        units: what the analyst has declared, for advice in messages; values come converted.
    """
    tracks = _tracks(where, t_s, ego_xy, ego_valid, agent_id, agent_xy, agent_valid, units)
    lacking = set(derived)
    heading = _headings(where, tracks, ego_heading, agent_heading, lacking, units)
    speed = _speeds(where, tracks, ego_speed, agent_speed, lacking, units)
    acceleration = _acceleration(where, tracks, speed[0], ego_acceleration, lacking)
    types = _types(where, tracks, agent_type, ego_size, agent_size, lacking, units)
    size = _sizes(tracks, types, ego_size, agent_size, lacking)
    states = np.concatenate([tracks.xy, wrap(heading)[..., None], speed[..., None]], axis=2)
    ego_valid, agents_valid = tracks.valid[0], tracks.valid[1:]
    path = tracks.xy[0][ego_valid]
    return Scenario(
        ids=ids, t_s=_frozen(tracks.t_s), ego=_masked(np.column_stack([states[0], acceleration]), ego_valid),
        ego_valid=_frozen(ego_valid), ego_size=_frozen(size[0].astype(np.float32)),
        agents=_masked(states[1:], agents_valid), agents_valid=_frozen(agents_valid),
        agent_id=_frozen(tracks.agent_id), agent_type=_frozen(types), agent_size=_frozen(size[1:].astype(np.float32)),
        road=near_road(where, road, tracks.origin, path), origin_m=_frozen(tracks.origin),
        derived=tuple(name for name in DERIVABLE if name in lacking),
    )


@dataclass(frozen=True, eq=False)
class _Tracks:
    """Ego (row 0) and agents that pass the checks, relative to the origin; 0 where they are not valid.

    Attributes:
        t_s: (T,) from 0; xy: (1 + A, T, 2); valid: (1 + A, T); velocity: (1 + A, T, 2) and speed (1 + A, T) from both.
        agent_id: (A,); kept: mask of the log's agents that have a valid state; origin: (2,) of the log's coordinates.
    """

    t_s: np.ndarray
    xy: np.ndarray
    valid: np.ndarray
    velocity: np.ndarray
    speed: np.ndarray
    agent_id: np.ndarray
    kept: np.ndarray
    origin: np.ndarray


def _tracks(where, t_s, ego_xy, ego_valid, agent_id, agent_xy, agent_valid, units) -> _Tracks:
    t_s, ego_xy = np.array(t_s, dtype=np.float64), np.asarray(ego_xy, dtype=np.float64)
    T = len(t_s)
    checks.check_times(where, t_s)
    checks.check_duration(where, t_s, units)
    t_s -= t_s[0]
    ego_valid = np.isfinite(ego_xy).all(axis=1) if ego_valid is None else np.array(ego_valid, dtype=bool)
    agent_valid = np.asarray(agent_valid, dtype=bool).reshape(-1, T)
    kept = agent_valid.any(axis=1)
    agent_valid, agent_id = agent_valid[kept], np.asarray(agent_id, dtype=str).reshape(-1)[kept]
    agent_xy = np.asarray(agent_xy, dtype=np.float64).reshape(-1, T, 2)[kept]
    checks.check_states(where, ego_xy, ego_valid, agent_id, agent_xy, agent_valid)
    origin = ego_xy[ego_valid][0].copy()
    valid = np.concatenate([ego_valid[None], agent_valid])
    xy = np.where(valid[..., None], np.concatenate([ego_xy[None], agent_xy]) - origin, 0.0)
    velocity = velocity_of(t_s, xy, valid)
    speed = np.hypot(velocity[..., 0], velocity[..., 1])
    checks.check_motion(where, t_s, xy, valid, speed, units)
    checks.check_distances(where, agent_id, xy, valid)
    return _Tracks(t_s, xy, valid, velocity, speed, agent_id, kept, origin)


def near_road(where: str, road, origin: np.ndarray, path_xy: np.ndarray) -> Road:
    """Road within 120 m of the ego's path (m, 2), relative to `origin`; long polylines are cut to that part."""
    moved = []
    for points, kind, limit in road:
        points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        bad = np.flatnonzero(~(np.abs(points) <= checks.MAX_COORDINATE_M).all(axis=1))
        if len(bad):
            raise LogError(f"{where}: point {bad[0]} of a {kind.replace('_', ' ')} of the road is "
                           f"({points[bad[0], 0]:g}, {points[bad[0], 1]:g}). Give metres, or leave that line out.")
        if len(points) >= 2:
            moved.append((points - origin, kind, limit))
    if not moved:
        return make_road([])
    centers = path_xy[_every(path_xy, ROAD_REACH_M / 12)]
    tails, heads = (np.concatenate([p[cut] for p, _, _ in moved]) for cut in (slice(None, -1), slice(1, None)))
    near = _distance(centers, tails, heads) <= ROAD_REACH_M
    kept, start = [], 0
    for points, kind, limit in moved:
        inside = np.flatnonzero(near[start:start + len(points) - 1])
        start += len(points) - 1
        if len(inside):
            kept.append((points[inside[0]:inside[-1] + 2], kind, limit))
    return make_road(kept)


def _every(path_xy: np.ndarray, step_m: float) -> np.ndarray:
    """Indices of path points about `step_m` apart."""
    way = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path_xy, axis=0).T))])
    return np.unique(np.searchsorted(way, np.arange(0, way[-1] + step_m, step_m)).clip(max=len(way) - 1))


def _distance(points: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Distance (s,) of each segment from the nearest of `points`."""
    along = heads - tails
    square = np.maximum((along**2).sum(axis=1), 1e-12)
    nearest = np.full(len(tails), np.inf)
    for point in points:
        share = np.clip(((point - tails) * along).sum(axis=1) / square, 0, 1)
        nearest = np.minimum(nearest, np.hypot(*(tails + share[:, None] * along - point).T))
    return nearest


def _headings(where: str, tracks: _Tracks, ego_heading, agent_heading, lacking: set[str], units) -> np.ndarray:
    """Headings (1 + A, T)."""
    given = _given_states(tracks, ego_heading, agent_heading)
    for who, rows in WHO.items():
        checks.check_headings(where, who, tracks.t_s, given[rows], tracks.velocity[rows], tracks.valid[rows], units)
    derived = heading_of(tracks.t_s, tracks.xy, tracks.valid, tracks.velocity)
    if np.isnan(derived[0]).all() and np.isnan(given[0][tracks.valid[0]]).any():
        known = given[0][tracks.valid[0] & ~np.isnan(given[0])]
        seen = tracks.valid[1:] & tracks.valid[0]
        derived[0] = known[0] if len(known) else heading_in_traffic(
            tracks.xy[0], tracks.xy[1:], tracks.velocity[1:], seen)
    ego = _complete(given[:1], derived[:1], tracks.valid[:1], "ego_heading", lacking)
    # an agent that never moves: most stand along the ego's road, and any fixed direction would tell the map's north
    derived = np.where(np.isnan(derived), ego, derived)
    return np.concatenate([ego, _complete(given[1:], derived[1:], tracks.valid[1:], "agent_heading", lacking)])


def _speeds(where: str, tracks: _Tracks, ego_speed, agent_speed, lacking: set[str], units) -> np.ndarray:
    """Speeds (1 + A, T)."""
    given = _given_states(tracks, ego_speed, agent_speed)
    for who, rows in WHO.items():
        checks.check_speeds(where, who, tracks.t_s, given[rows], tracks.speed[rows], tracks.valid[rows], units)
    return np.concatenate([
        _complete(given[:1], tracks.speed[:1], tracks.valid[:1], "ego_speed", lacking),
        _complete(given[1:], tracks.speed[1:], tracks.valid[1:], "agent_speed", lacking),
    ])


def _acceleration(where: str, tracks: _Tracks, speed, ego_acceleration, lacking: set[str]) -> np.ndarray:
    """Acceleration (T,) of the ego."""
    valid = tracks.valid[0]
    given = _given(ego_acceleration, valid.shape)
    acceleration = _complete(given, acceleration_of(tracks.t_s, speed, valid), valid, "ego_acceleration", lacking)
    checks.check_acceleration(where, acceleration, valid)
    return acceleration


def _types(where: str, tracks: _Tracks, agent_type, ego_size, agent_size, lacking: set[str], units) -> np.ndarray:
    """Types (A,)."""
    types = np.full(len(tracks.kept), -1) if agent_type is None else np.asarray(agent_type).reshape(-1)
    types = types[tracks.kept].astype(np.int8)
    ego, agents = _given_sizes(tracks, ego_size, agent_size)
    checks.check_sizes(where, "the ego", ego, np.zeros(1, dtype=np.int8), units)
    checks.check_sizes(where, "the agents", agents, types, units)
    unknown = types < 0
    if unknown.any():
        lacking.add("agent_type")
        guessed = guess_types(tracks.t_s, tracks.xy[1:], tracks.valid[1:], tracks.speed[1:], agents)
        types = np.where(unknown, guessed, types)
    return types


def _sizes(tracks: _Tracks, types, ego_size, agent_size, lacking: set[str]) -> np.ndarray:
    """Sizes (1 + A, 3); a height alone is filled without a mark, since nothing is computed from it."""
    ego, agents = _given_sizes(tracks, ego_size, agent_size)
    counts = np.array([True, True, False])
    return np.concatenate([
        _complete(ego, np.array([EGO_SIZE]), counts, "ego_size", lacking),
        _complete(agents, default_sizes(types), counts, "agent_size", lacking),
    ])


def _given_states(tracks: _Tracks, ego, agents) -> np.ndarray:
    """What the log holds of ego and agents, (1 + A, T), NaN where it holds nothing."""
    T = len(tracks.t_s)
    return np.concatenate([_given(ego, (1, T)), _given(agents, (len(tracks.kept), T))[tracks.kept]])


def _given_sizes(tracks: _Tracks, ego_size, agent_size) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of the log, (1, 3) and (A, 3), NaN where it holds none; many logs write 0 for that."""
    sizes = _given(ego_size, (1, 3)), _given(agent_size, (len(tracks.kept), 3))[tracks.kept]
    ego, agents = (np.where(size == 0, np.nan, size) for size in sizes)
    return ego, agents


def _given(values, shape: tuple[int, int]) -> np.ndarray:
    return np.full(shape, np.nan) if values is None else np.asarray(values, dtype=np.float64).reshape(shape)


def _complete(given, derived, valid, name: str, lacking: set[str]) -> np.ndarray:
    """Given values, and derived ones where a valid state has none; `name` joins `lacking` if there was any."""
    missing = np.isnan(given)
    if (missing & valid).any():
        lacking.add(name)
    return np.where(missing, derived, given)


def _masked(states: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return _frozen(np.where(valid[..., None], states, 0.0).astype(np.float32))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
