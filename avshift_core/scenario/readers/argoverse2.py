"""Argoverse 2 motion forecasting (scenario_<id>.parquet beside log_map_archive_<id>.json) -> scenarios of 11 s.

Sizes are not in the log and are derived. The clock is anonymised as in Argoverse 1: day, period and hour are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import LogError
from avshift_core.scenario.readers.argoverse2_map import read_map
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.dense import dense_tracks
from avshift_core.scenario.readers.source import ReadOptions, Source, find_sources
from avshift_core.scenario.schema import AGENT_TYPES, UNKNOWN, Ids, Scenario

PREFIX, MAP_PREFIX = "scenario_", "log_map_archive_"
EGO = "AV"
STATES = ("position_x", "position_y", "heading", "velocity_x", "velocity_y")
CLOCK = ("start_timestamp", "end_timestamp", "num_timestamps")
NUMBERS, TEXTS = ("timestep", *STATES, *CLOCK), ("track_id", "object_type", "scenario_id", "city")
NS_PER_S = 1e9
MAX_NUMBER = 1e20  # beyond any clock in nanoseconds and any map
EDGE_STATES, EDGE_MPS2 = 3, 10.0
TYPES = {  # a riderless bicycle is parked; "unknown" and names of later releases are told from size and motion
    "vehicle": "car", "bus": "bus", "motorcyclist": "motorcycle", "cyclist": "bicycle", "pedestrian": "pedestrian",
    "static": "static", "background": "static", "construction": "static", "riderless_bicycle": "static",
}


def sources(path: str | Path) -> list[Source]:
    """All scenarios below `path`."""
    found = [source for source in find_sources(path, ".parquet") if source.stem.startswith(PREFIX)]
    if not found:
        raise LogError(f"{path} holds no {PREFIX}<id>.parquet file. Give the folder of one scenario, or of many.")
    return found


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """The one scenario of a file; its road is empty where the map is missing."""
    columns = _columns(source)
    where = source.label
    timestep = _timesteps(columns, where)
    present, step = np.unique(timestep, return_inverse=True)
    tracks = dense_tracks(columns["track_id"], step, {name: columns[name] for name in STATES}, len(present),
                          where=where, first_row=0)
    is_ego = tracks.track_id == EGO
    if not is_ego.any():
        raise LogError(f"{where} has no track '{EGO}', the ego; found {', '.join(map(str, tracks.track_id[:5]))} ...")
    xy = np.stack([tracks.values["position_x"], tracks.values["position_y"]], axis=-1)
    speed = np.hypot(tracks.values["velocity_x"], tracks.values["velocity_y"])
    first_row = tracks.row[np.arange(len(xy)), tracks.valid.argmax(axis=1)]
    agent_type = np.array([_type(name) for name in columns["object_type"][first_row]])
    agents, t_s = ~is_ego, present * _step_s(columns, where)
    ego_speed = _without_edges(t_s, speed[is_ego][0], tracks.valid[is_ego][0])
    yield build_scenario(
        where=where, ids=options.apply(_ids(columns, where)), t_s=t_s,
        ego_xy=xy[is_ego][0], ego_valid=tracks.valid[is_ego][0], ego_heading=tracks.values["heading"][is_ego][0],
        ego_speed=ego_speed, agent_id=tracks.track_id[agents], agent_xy=xy[agents],
        agent_valid=tracks.valid[agents], agent_heading=tracks.values["heading"][agents], agent_speed=speed[agents],
        agent_type=agent_type[agents], road=_road(source),
        derived=("ego_speed",) if (ego_speed != speed[is_ego][0])[tracks.valid[is_ego][0]].any() else (),
    )


def _columns(source: Source) -> dict[str, np.ndarray]:
    """Columns by name: numbers as float64, none absurd, texts as str; `slice_id` where there is one."""
    where = source.label
    try:
        table = pq.read_table(pa.BufferReader(source.read_bytes()), use_threads=False)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise LogError(f"{where} is not a readable Parquet file: {reason}. It may be truncated; copy it "
                       "again.") from None
    missing = [name for name in (*NUMBERS, *TEXTS) if name not in table.column_names]
    if missing:
        raise LogError(f"{where} has no column '{missing[0]}'; found {', '.join(table.column_names[:20])}. Rename the "
                       "column, or read the file as a table with a mapping.")
    if table.num_rows == 0:
        raise LogError(f"{where} holds no rows. Leave it out.")
    columns = {name: _numbers(table[name], name, where) for name in NUMBERS}
    texts = [*TEXTS, *(["slice_id"] if "slice_id" in table.column_names else [])]
    return columns | {name: _texts(table[name], name, where) for name in texts}


def _numbers(column: pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise LogError(f"{where}: column '{name}' holds {column.type}; numbers are needed (row 0: '{column[0]}').")
    values = column.to_numpy().astype(np.float64)
    bad = np.flatnonzero(~(np.abs(values) <= MAX_NUMBER))
    if len(bad):
        raise LogError(f"{where}, row {bad[0]}: {name} is {values[bad[0]]}. A plausible number is needed; correct "
                       "the row or leave it out.")
    return values


def _texts(column: pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    """Texts (n,), "" for null; ids that were written as numbers count as texts."""
    try:
        return column.cast(pa.string()).fill_null("").to_numpy().astype(str)
    except (pa.ArrowException, ValueError):
        raise LogError(f"{where}: column '{name}' holds {column.type} that is no text. Write it again as "
                       "text.") from None


def _only(columns: dict[str, np.ndarray], name: str, where: str):
    """The one value that all rows share."""
    values = np.unique(columns[name])
    if len(values) != 1:
        raise LogError(f"{where} has {len(values)} values of '{name}' ({values[0]}, {values[1]}, ...); a file holds "
                       "one scenario. Split it.")
    return values[0]


def _timesteps(columns: dict[str, np.ndarray], where: str) -> np.ndarray:
    n, timestep = _only(columns, "num_timestamps", where), columns["timestep"]
    bad = np.flatnonzero((timestep < 0) | (timestep >= n) | (timestep != np.round(timestep)))
    if len(bad):
        raise LogError(f"{where}, row {bad[0]}: timestep is {timestep[bad[0]]:g}; whole numbers from 0 to {n - 1:g} "
                       "(num_timestamps - 1) are needed.")
    return timestep.astype(np.int64)


def _step_s(columns: dict[str, np.ndarray], where: str) -> float:
    """Seconds between two timesteps."""
    start, end, n = (float(_only(columns, name, where)) for name in CLOCK)
    if n < 2 or end <= start:
        raise LogError(f"{where}: time runs from {start:.0f} to {end:.0f} ns in {n:g} timestamps; at least 2, and an "
                       "end after the start, are needed.")
    return (end - start) / (n - 1) / NS_PER_S


def _without_edges(t_s: np.ndarray, speed: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Speeds (T,) of the ego without the breaks at both ends of the record.

    The AV's first two and last velocities are differences over the edge, down to 0 for a car at 11 m/s, and its
    positions are smoothed with a window that shrinks there. Up to three states on each side take the speed of the next
    one inside, as far as that one could not be reached with 10 m/s2; all others are as in the log.
    """
    steps, speed = np.flatnonzero(valid), speed.copy()
    for order in (steps, steps[::-1]):
        edge = order[:EDGE_STATES + 1]
        jump = np.abs(np.diff(speed[edge])) > EDGE_MPS2 * np.abs(np.diff(t_s[edge]))
        if jump.any():
            last = int(np.flatnonzero(jump)[-1])
            speed[edge[:last + 1]] = speed[edge[last + 1]]
    return speed


def _ids(columns: dict[str, np.ndarray], where: str) -> Ids:
    scenario_id, city = _only(columns, "scenario_id", where), _only(columns, "city", where)
    slice_id = _only(columns, "slice_id", where) if "slice_id" in columns else ""
    if not scenario_id:
        raise LogError(f"{where}: scenario_id is empty. Give the scenario an id.")
    return Ids(str(scenario_id), str(slice_id or scenario_id), area=str(city).lower() or UNKNOWN)


def _type(name: str) -> int:
    return AGENT_TYPES.index(TYPES[name]) if name in TYPES else -1


def _road(source: Source) -> list[tuple[np.ndarray, str, float]]:
    name = f"{MAP_PREFIX}{source.stem.removeprefix(PREFIX)}.json"
    if source.member:
        beside = Source(source.path, str(PurePosixPath(source.member).with_name(name)))
    else:
        beside = Source(source.path.with_name(name))
    return read_map(beside) if beside.exists() else []
