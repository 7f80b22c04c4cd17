"""nuPlan SQLite logs -> scenarios of 10 to 15 s, with the standard library's sqlite3."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.derive import TRUCK_LENGTH_M
from avshift_core.scenario.readers.source import ReadOptions, Source, find_sources
from avshift_core.scenario.readers.windows import cut_windows
from avshift_core.scenario.schema import AGENT_TYPES, UNKNOWN, Ids, Scenario

# The Chrysler Pacifica of nuplan-devkit, get_pacifica_parameters: front 4.049 m and rear 1.127 m from the rear axle.
EGO_SIZE_M = (5.176, 2.297, 1.777)
REAR_AXLE_TO_CENTER_M = 4.049 - 5.176 / 2  # poses are of the rear axle (devkit: build_from_rear_axle), boxes of centres
TYPES = {  # category.name; `vehicle` is split by length, see _type
    "bicycle": "bicycle", "pedestrian": "pedestrian", "traffic_cone": "static", "barrier": "static",
    "czone_sign": "static", "generic_object": "static",
}
# Names of log files and timestamps agree in UTC; these are the four cities of the data set.
ZONES = {"us-pa": "America/New_York", "us-ma": "America/New_York", "us-nv": "America/Los_Angeles",
         "sg": "Asia/Singapore"}
YIELDING = ("waiting_for_pedestrian_to_cross", "stopping_at_crosswalk", "stationary_at_crosswalk", "crossed_by_bike",
            "crossed_by_vehicle", "stopping_at_stop_sign_")
# (category, beginnings of tag types, share of the window's frames that must carry one), the first that fits counts.
# Lane changes and yielding are moments; following a lane is a state, which must fill half of the window. All other
# types (turns, speeds, "near ..." and "on ...") have no counterpart: the category stays open and is detected.
TAG_RULES = (
    ("ego_lane_changing", ("changing_lane",), 0.0),
    ("ego_yielding", YIELDING, 0.0),
    ("ego_lane_keeping", ("following_lane_",), 0.5),
)
COLUMNS = {
    "log": ("token", "vehicle_name", "logfile", "location"),
    "lidar_pc": ("token", "ego_pose_token", "timestamp"),
    "ego_pose": ("token", "log_token", "x", "y", "qw", "qx", "qy", "qz", "vx", "vy", "acceleration_x"),
    "lidar_box": ("lidar_pc_token", "track_token", "x", "y", "yaw", "vx", "vy"),
    "track": ("token", "category_token", "length", "width", "height"),
    "category": ("token", "name"),
    "scenario_tag": ("lidar_pc_token", "type"),
}
US_PER_S = 1e6
YEARS = (2000, 2100)


@dataclass(frozen=True)
class _Drive:
    """One log as arrays: T frames, B boxes sorted by frame, K tracks."""

    name: str
    vehicle: str
    location: str
    timestamp_us: np.ndarray  # (T,)
    ego: np.ndarray  # (T, 9): x, y, qw, qx, qy, qz, vx, vy, acceleration_x
    box_frame: np.ndarray  # (B,)
    box_track: np.ndarray  # (B,)
    box: np.ndarray  # (B, 5): x, y, yaw, vx, vy
    track_id: np.ndarray  # (K,)
    track_category: np.ndarray  # (K,)
    track_size: np.ndarray  # (K, 3)
    tags: dict[int, set[str]]  # frame -> tag types


def sources(path: str | Path) -> list[Source]:
    """The .db files of a folder or zip archive, or the one given."""
    return find_sources(path, ".db")


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """Scenarios of one log file, in order of time; no window crosses from one log into another."""
    with _connect(source) as connection:
        drives = _drives(source, connection)
    for drive in drives:
        t_s = (drive.timestamp_us - drive.timestamp_us[0]) / US_PER_S
        for k, window in enumerate(cut_windows(t_s, where=source.label)):
            try:
                yield _scenario(source, drive, k, window, options)
            except LogError as error:
                options.leave_out(error)


@contextmanager
def _connect(source: Source) -> Iterator[sqlite3.Connection]:
    """Read-only and immutable, so that no journal is written beside the log; a zip member is read from memory."""
    connection = None
    try:
        if source.member:
            connection = sqlite3.connect(":memory:")
            connection.deserialize(source.read_bytes())
        else:
            if source.path.stat().st_size == 0:
                raise LogError(f"{source.label} is empty. Copy it again.")
            connection = sqlite3.connect(f"{source.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        yield connection
    except (sqlite3.Error, OSError, UnicodeError, OverflowError, MemoryError) as error:
        raise LogError(f"{source.label} cannot be read as an SQLite log: {error}. It may be truncated; copy it "
                       "again.") from None
    finally:
        if connection is not None:
            connection.close()


def _rows(source: Source, connection: sqlite3.Connection, table: str) -> list[tuple]:
    """All rows of a table with the columns of COLUMNS; tables are joined here, since a damaged index hides rows."""
    present = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    if not present:
        found = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        raise LogError(f"{source.label} has no table '{table}'; found {', '.join(sorted(found)) or 'none'}. "
                       "A nuPlan log is needed.")
    missing = [column for column in COLUMNS[table] if column not in present]
    if missing:
        raise LogError(f"Table {table} of {source.label} has no column '{missing[0]}'; found {', '.join(present)}.")
    return connection.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table}").fetchall()


def _numbers(source: Source, table: str, rows: list[tuple], first: int) -> np.ndarray:
    """Columns of `rows` from `first` on, as (n, k) float64; NULL is NaN."""
    width = len(COLUMNS[table]) - first
    try:
        return np.array([row[first:] for row in rows], dtype=np.float64).reshape(len(rows), width)
    except (TypeError, ValueError, OverflowError):
        for i, row in enumerate(rows):
            for column, value in zip(COLUMNS[table][first:], row[first:], strict=True):
                if not isinstance(value, int | float | None):
                    raise LogError(f"{source.label}, table {table}, row {i}: {column} is {value!r:.40}, which is no "
                                   "number. Copy the log again.") from None
        raise LogError(f"Table {table} of {source.label} holds a number that is too large. Copy it again.") from None


def _drives(source: Source, connection: sqlite3.Connection) -> list[_Drive]:
    rows = {table: _rows(source, connection, table) for table in COLUMNS}
    for table in ("log", "lidar_pc", "ego_pose"):
        if not rows[table]:
            raise LogError(f"Table {table} of {source.label} is empty; there is nothing to read.")
    timestamp = _numbers(source, "lidar_pc", rows["lidar_pc"], 2)[:, 0]
    bad = np.flatnonzero(~np.isfinite(timestamp))
    if len(bad):
        raise LogError(f"{source.label}, table lidar_pc, row {bad[0]}: no timestamp. Give microseconds since 1970.")
    order = np.argsort(timestamp, kind="stable")
    pose_row = {row[0]: i for i, row in enumerate(rows["ego_pose"])}
    pose = np.vstack([_numbers(source, "ego_pose", rows["ego_pose"], 2), np.full((1, 9), np.nan)])
    pose_of = np.array([pose_row.get(rows["lidar_pc"][i][1], -1) for i in order])
    log_of = [rows["ego_pose"][i][1] if i >= 0 else None for i in pose_of]
    drives = []
    for log in rows["log"]:
        mine = np.array([len(rows["log"]) == 1 or token == log[0] for token in log_of])
        if mine.any():
            frames = order[mine]
            drives.append(_drive(source, rows, log, frames, timestamp[frames], pose[pose_of[mine]]))
    return drives


def _drive(source: Source, rows: dict, log: tuple, frames: np.ndarray, timestamp_us, ego) -> _Drive:
    frame_of = {rows["lidar_pc"][i][0]: t for t, i in enumerate(frames)}
    track_of = {row[0]: k for k, row in enumerate(rows["track"])}
    category = dict(rows["category"])
    at = [(frame_of.get(row[0], -1), track_of.get(row[1], -1)) for row in rows["lidar_box"]]
    at = np.array(at, dtype=int).reshape(-1, 2)
    kept = np.flatnonzero((at >= 0).all(axis=1))
    kept = kept[np.lexsort((at[kept, 1], at[kept, 0]))]
    same = np.flatnonzero((np.diff(at[kept], axis=0) == 0).all(axis=1))
    if len(same):
        a, b = sorted(kept[same[0]:same[0] + 2])
        raise LogError(f"{source.label}, table lidar_box: rows {a} and {b} are of the same track at the same time. "
                       "Leave one of them out.")
    tags: dict[int, set[str]] = {}
    for token, kind in rows["scenario_tag"]:
        if token in frame_of:
            tags.setdefault(frame_of[token], set()).add(str(kind))
    text = [value if isinstance(value, str) and value else None for value in log[1:]]
    return _Drive(
        name=text[1] or source.stem, vehicle=text[0] or UNKNOWN, location=text[2] or UNKNOWN,
        timestamp_us=timestamp_us, ego=ego, box_frame=at[kept, 0], box_track=at[kept, 1],
        box=_numbers(source, "lidar_box", rows["lidar_box"], 2)[kept],
        track_id=np.array([_id(row[0]) for row in rows["track"]], dtype=str),
        track_category=np.array([str(category.get(row[1], "")) for row in rows["track"]], dtype=str),
        track_size=_numbers(source, "track", rows["track"], 2), tags=tags,
    )


def _id(token: object) -> str:
    return token.hex() if isinstance(token, bytes) else str(token)


def _scenario(source: Source, drive: _Drive, k: int, window: slice, options: ReadOptions) -> Scenario:
    t_s = (drive.timestamp_us[window] - drive.timestamp_us[window.start]) / US_PER_S
    where, ego = f"{source.label}, window {k}", drive.ego[window]
    heading = _yaw(where, ego[:, 2:6])
    ego_xy = ego[:, :2] + REAR_AXLE_TO_CENTER_M * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    first, last = np.searchsorted(drive.box_frame, [window.start, window.stop])
    tracks, agent = np.unique(drive.box_track[first:last], return_inverse=True)
    states = np.full((len(tracks), len(t_s), 5), np.nan)
    there = np.zeros(states.shape[:2], dtype=bool)
    states[agent, drive.box_frame[first:last] - window.start] = drive.box[first:last]
    there[agent, drive.box_frame[first:last] - window.start] = True
    size, category = drive.track_size[tracks], drive.track_category[tracks]
    return build_scenario(
        where=where, ids=options.apply(_ids(source, drive, k, window)), t_s=t_s, ego_xy=ego_xy,
        ego_valid=~np.isnan(ego_xy).any(axis=1), ego_heading=heading, ego_speed=_length(ego[:, 6:8]),
        ego_acceleration=ego[:, 8], ego_size=np.array(EGO_SIZE_M), agent_id=drive.track_id[tracks],
        agent_xy=states[..., :2], agent_valid=there, agent_heading=states[..., 2],
        agent_speed=_length(states[..., 3:5]), agent_size=size,
        agent_type=np.array([_type(c, s[0]) for c, s in zip(category, size, strict=True)], dtype=int),
        derived=("agent_type",) if "vehicle" in category else (),
    )


def _yaw(where: str, quaternion: np.ndarray) -> np.ndarray:
    """Heading (T,) of unit quaternions (T, 4) w, x, y, z; NaN where there is no pose."""
    missing = np.isnan(quaternion).all(axis=1)
    bad = np.flatnonzero(~missing & ~(np.abs(_length(quaternion) - 1) < 0.01))
    if len(bad):
        raise LogError(f"{where}: the ego's quaternion at step {bad[0]} is {quaternion[bad[0]].tolist()}; its length "
                       "must be 1. Leave that pose out.")
    w, x, y, z = quaternion.T
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2))


def _length(vectors: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # inf, which is refused by name
        return np.sqrt((vectors**2).sum(axis=-1))


def _type(category: str, length_m: float) -> int:
    """nuPlan's `vehicle` is anything with four wheels or more: long ones count as trucks, buses cannot be told."""
    if category == "vehicle":
        return AGENT_TYPES.index("truck" if length_m > TRUCK_LENGTH_M else "car")
    return AGENT_TYPES.index(TYPES.get(category, "other"))


def _ids(source: Source, drive: _Drive, k: int, window: slice) -> Ids:
    """A file is a piece of a drive, named by its seconds: ..._veh-45_00781_00843 belongs to drive ..._veh-45."""
    begin_s = drive.timestamp_us[window.start] / US_PER_S
    try:
        zone = next((name for start, name in ZONES.items() if drive.location.startswith(start)), "UTC")
        start = datetime.fromtimestamp(begin_s, UTC).astimezone(ZoneInfo(zone))
    except ZoneInfoNotFoundError:
        start = datetime.fromtimestamp(begin_s, UTC)
    except (OverflowError, ValueError, OSError):
        start = datetime.min
    if not YEARS[0] <= start.year < YEARS[1]:
        raise LogError(f"{source.label}, window {k}: the timestamp {drive.timestamp_us[window.start]:.0f} is not in "
                       "microseconds since 1970.")
    return Ids(
        scenario_id=f"{drive.name}_w{k:02d}", drive_id=re.sub(r"_\d{5}_\d{5}$", "", drive.name),
        vehicle_id=drive.vehicle, day=start.date().isoformat(), hour=start.hour, area=drive.location,
        category=_category(drive.tags, window),
    )


def _category(tags: dict[int, set[str]], window: slice) -> str:
    """First category of TAG_RULES that the window's tags carry; "" where none does."""
    frames = [tags.get(t, set()) for t in range(window.start, window.stop)]
    for category, beginnings, least in TAG_RULES:
        share = sum(any(tag.startswith(beginnings) for tag in found) for found in frames) / max(len(frames), 1)
        if share > 0 and share >= least:
            return category
    return ""
