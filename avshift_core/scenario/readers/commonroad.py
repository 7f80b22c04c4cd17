"""CommonRoad XML (2018b and 2020a) -> scenarios whose ego is a recorded vehicle near the planning problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.commonroad_xml import SceneFile, Track, parse_scene, road_of
from avshift_core.scenario.readers.source import ReadOptions, Source, find_sources
from avshift_core.scenario.readers.windows import cut_windows
from avshift_core.scenario.schema import AGENT_TYPES, UNKNOWN, Ids, Scenario

BENCHMARK = re.compile(r"(?:C-)?([A-Z]{3}_[A-Za-z0-9]+)-(\d+)(?:_.*)?")  # country_map-number_configuration_prediction
AREAS = {"USA_US101": "us101", "USA_Lanker": "lankershim", "USA_Peach": "peachtree", "DEU_A9": "a9"}
NO_EGO = ("bicycle", "pedestrian", "static", "other")
MIN_EGO_SHARE = 0.8  # of the record; some files let single vehicles run on after the others have ended
SAME_WAY_RAD = np.pi / 4


@dataclass(frozen=True)
class Scene(Source):
    """A file, with the vehicle that a look over all files has chosen as its ego; "" where none is left."""

    ego_id: str = ""


@dataclass(frozen=True)
class _Look:
    """What is kept of a file while all others are looked at: its vehicles by map, id and size, and egos, best first."""

    recording: str
    vehicles: frozenset[tuple]
    egos: tuple[str, ...]


def sources(path: str | Path) -> list[Source]:
    """The .xml files of a folder or zip archive, each with its drive and its ego.

    Files are pieces of one drive when they have the same recording number (USA_Lanker-2_9, USA_Lanker-2_17) or when a
    vehicle, known by map, id and size, appears in both: US-101 is cut into overlapping windows under many numbers. A
    vehicle is the ego of only one file of a drive: two planning problems in the same traffic give two scenarios. A file
    that cannot be parsed keeps its place and is refused by `read`.
    """
    found = find_sources(path, ".xml")
    looks = [_look(source) for source in found]
    taken, scenes = set(), []
    for source, look, drive in zip(found, looks, _shared_drives(looks), strict=True):
        ego = next((ego for ego in look.egos if (drive, ego) not in taken), "") if look else ""
        taken.add((drive, ego))
        scenes.append(Scene(source.path, source.member, drive, ego))
    return scenes


def _look(source: Source) -> _Look | None:
    try:
        file = parse_scene(source)
    except LogError:
        return None
    region, recording = _names(file)
    vehicles = frozenset((region, track.id, *track.size) for track in file.tracks)
    return _Look(recording, vehicles, tuple(track.id for track in _egos(file)))


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """Scenarios of one file: one, or several where it is longer than 15 s."""
    file = parse_scene(source)
    egos = [track for track in _egos(file) if not isinstance(source, Scene) or track.id == source.ego_id]
    if not egos:
        raise LogError(f"{source.label} has no vehicle that could stand for the planning problem, which itself was not "
                       f"driven: one that is recorded for {MIN_EGO_SHARE:.0%} of the time, and is not yet the ego of "
                       "another file of the same traffic. Leave this file out.")
    ego = egos[0]
    # a vehicle may run on alone; what counts is the time in which the ego is there
    t_s = np.arange(ego.step[0], ego.step[-1] + 1) * file.step_s
    windows = cut_windows(t_s, where=source.label)
    for k, window in enumerate(windows):
        ids = _ids(source, file, ego, k if len(windows) > 1 else None)
        try:
            yield _scenario(source, file, ego, ids, t_s, window, options)
        except LogError as error:
            options.leave_out(error)


def _egos(file: SceneFile) -> list[Track]:
    """Vehicles that can stand for the planning problem, best first.

    No file holds the drive that solves its planning problem: the vehicle it starts from was taken out of the traffic.
    The ego is instead the recorded vehicle that comes closest to it: there at the problem's first step and for at least
    80 % of the record, rather one with a heading within 45 degrees of the problem's, and of these the nearest.
    """
    steps = [track.step for track in file.tracks if track.moves]
    if not steps:
        return []
    span = max(s[-1] for s in steps) - min(s[0] for s in steps) + 1
    first, x, y, heading = file.problems[0] if file.problems else (min(s[0] for s in steps), np.nan, np.nan, np.nan)
    ranked = []
    for track in file.tracks:
        at = np.flatnonzero(track.step == first)
        if track.moves and track.type not in NO_EGO and len(at) and len(track.step) >= MIN_EGO_SHARE * span:
            state = track.states[at[0]]
            turned = np.abs(np.angle(np.exp(1j * (state[2] - heading))))
            distance = np.hypot(state[0] - x, state[1] - y)
            ranked.append((not turned <= SAME_WAY_RAD, np.nan_to_num(distance, nan=np.inf), track.id, track))
    return [track for *_, track in sorted(ranked, key=lambda item: item[:3])]


def _shared_drives(looks: list[_Look | None]) -> list[str]:
    """Name of the drive of each file: the first recording of those that are joined by shared vehicles."""
    parent = list(range(len(looks)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict = {}
    for i, look in enumerate(looks):
        for mark in (look.recording, *look.vehicles) if look else ():
            parent[root(i)] = root(first.setdefault(mark, i))
    names: dict[int, list[str]] = {}
    for i, look in enumerate(looks):
        names.setdefault(root(i), []).append(look.recording if look else "")
    return [min(names[root(i)], key=_natural) for i in range(len(looks))]


def _natural(name: str) -> list:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def _names(file: SceneFile) -> tuple[str, str]:
    """Country and map, and with the recording number: USA_Lanker-2_17_T-1 -> USA_Lanker, USA_Lanker-2."""
    match = BENCHMARK.fullmatch(file.benchmark)
    return (match[1], f"{match[1]}-{match[2]}") if match else (UNKNOWN, file.benchmark)


def _ids(source: Source, file: SceneFile, ego: Track, window: int | None) -> Ids:
    """The `date` of a file is the day of its conversion, so the day of the recording is unknown."""
    region, recording = _names(file)
    return Ids(
        scenario_id=file.benchmark if window is None else f"{file.benchmark}_w{window:02d}",
        drive_id=source.drive_id or recording, vehicle_id=f"{region}/{ego.id}", area=AREAS.get(region, region.lower()),
    )


def _scenario(source, file: SceneFile, ego: Track, ids: Ids, t_s, window: slice, options: ReadOptions) -> Scenario:
    t = t_s[window]
    first = ego.step[0] + window.start
    others = [track for track in file.tracks if track is not ego]
    dense = np.stack([_dense(track, first, len(t)) for track in (ego, *others)])
    there = np.isfinite(dense[:, :, :2]).all(axis=-1)
    present = np.flatnonzero(there[1:].any(axis=1))
    agents = dense[1:][present]
    size = np.array([(*others[i].size, np.nan) for i in present]).reshape(-1, 3)
    return build_scenario(
        where=source.label, ids=options.apply(ids), t_s=t - t[0], ego_xy=dense[0, :, :2], ego_valid=there[0],
        ego_heading=dense[0, :, 2], ego_speed=dense[0, :, 3], ego_acceleration=dense[0, :, 4],
        ego_size=np.array([*ego.size, np.nan]),
        agent_id=np.array([others[i].id for i in present], dtype=str), agent_xy=agents[..., :2],
        agent_valid=there[1:][present], agent_heading=agents[..., 2], agent_speed=agents[..., 3], agent_size=size,
        agent_type=np.array([AGENT_TYPES.index(others[i].type) if others[i].type else -1 for i in present], dtype=int),
        road=road_of(source, file),
    )


def _dense(track: Track, first: int, length: int) -> np.ndarray:
    """States (length, 5) from step `first` on; a static obstacle is there all the time."""
    dense = np.full((length, 5), np.nan)
    if not track.moves:
        dense[:] = track.states[0]
        dense[:, 3] = 0.0
        return dense
    index = track.step - first
    inside = (index >= 0) & (index < length)
    dense[index[inside]] = track.states[inside]
    return dense
