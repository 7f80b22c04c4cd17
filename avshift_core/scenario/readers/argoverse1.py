"""Argoverse 1 forecasting CSV (files, a folder or a zip archive) -> scenarios of about 5 s.

A scene holds positions alone: headings, speeds, sizes and types are derived, and marked so. The clock is anonymised
(all drives begin on 6 January 1980, the first day of GPS time), so day, period and hour are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv

from avshift_core.errors import LogError
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.dense import dense_tracks
from avshift_core.scenario.readers.drives import Passage, name_drives
from avshift_core.scenario.readers.source import ReadOptions, Source, find_sources
from avshift_core.scenario.schema import UNKNOWN, Ids, Scenario

NUMBERS, TEXTS = ("TIMESTAMP", "X", "Y"), ("TRACK_ID", "OBJECT_TYPE", "CITY_NAME")
EGO = "AV"
AREAS = {"MIA": "miami", "PIT": "pittsburgh"}
FIRST_ROW = 2  # the header is row 1
MAX_NUMBER = 1e20  # beyond any clock, even in nanoseconds, and any map


def sources(path: str | Path) -> list[Source]:
    """All scenes below `path`, with the drive that each belongs to (`name_drives`).

    A scene that cannot be read keeps an empty drive; reading it says why.
    """
    found = find_sources(path, ".csv")
    drive = name_drives([_passage(source) for source in found])
    return [Source(s.path, s.member, drive_id) for s, drive_id in zip(found, drive, strict=True)]


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """The one scenario of a scene."""
    scene = _scene(source)
    t_s, step = np.unique(scene.t_s, return_inverse=True)
    tracks = dense_tracks(
        scene.track, step, {"x": scene.x, "y": scene.y}, len(t_s), where=source.label, first_row=FIRST_ROW
    )
    xy = np.stack([tracks.values["x"], tracks.values["y"]], axis=-1)
    is_ego = tracks.track_id == scene.ego
    ids = Ids(scene.name, source.drive_id or scene.name, area=scene.area)
    yield build_scenario(
        where=source.label, ids=options.apply(ids), t_s=t_s, ego_xy=xy[is_ego][0], ego_valid=tracks.valid[is_ego][0],
        agent_id=tracks.track_id[~is_ego], agent_xy=xy[~is_ego], agent_valid=tracks.valid[~is_ego],
    )


@dataclass(frozen=True, eq=False)
class _Scene:
    """Checked rows of one file, in its order.

    Attributes:
        t_s, x, y: (n,) numbers; track: (n,) ids; ego: the track that is the AV.
        name: "miami-123-315969616": city, file and the second of its start, because every split counts from 1.
    """

    t_s: np.ndarray
    x: np.ndarray
    y: np.ndarray
    track: np.ndarray
    ego: str
    area: str
    name: str


def _scene(source: Source) -> _Scene:
    where, columns = source.label, _columns(source)
    t_s = columns["TIMESTAMP"]
    back = np.flatnonzero(np.diff(t_s) < 0)
    if len(back):
        row = int(back[0]) + FIRST_ROW
        raise LogError(f"{where}: time runs backwards, from {t_s[back[0]]:.3f} s in row {row} to "
                       f"{t_s[back[0] + 1]:.3f} s in row {row + 1}. Sort the rows by TIMESTAMP.")
    is_ego = columns["OBJECT_TYPE"] == EGO
    egos, cities = np.unique(columns["TRACK_ID"][is_ego]), np.unique(columns["CITY_NAME"])
    if len(egos) != 1:
        kinds = ", ".join(map(str, np.unique(columns["OBJECT_TYPE"])[:5]))
        raise LogError(f"{where} has {len(egos) or 'no'} track{'s' if len(egos) > 1 else ''} with OBJECT_TYPE {EGO}; "
                       f"one, the ego, is needed. Found types: {kinds}.")
    if (columns["TRACK_ID"][~is_ego] == egos[0]).any():
        raise LogError(f"{where}: track '{egos[0]}' is {EGO} in some rows and something else in others. Give the ego "
                       "one id of its own.")
    if len(cities) != 1:
        raise LogError(f"{where} names {len(cities)} cities ({', '.join(map(str, cities[:3]))}). Split it by city.")
    area = AREAS.get(cities[0], cities[0].lower()) or UNKNOWN
    name = f"{area}-{source.stem}-{int(t_s[0])}"
    return _Scene(t_s, columns["X"], columns["Y"], columns["TRACK_ID"], egos[0], area, name)


def _passage(source: Source) -> Passage | None:
    """Where and when the ego of a scene was, None if the scene cannot be read."""
    try:
        scene = _scene(source)
    except LogError:
        return None
    ego = scene.track == scene.ego
    ids = pd.util.hash_array(pd.unique(scene.track[~ego]))
    return Passage(scene.name, scene.area, scene.t_s[ego], np.column_stack([scene.x[ego], scene.y[ego]]), ids)


def _columns(source: Source) -> dict[str, np.ndarray]:
    """The six columns: numbers as float64, none absurd, texts as str."""
    text = source.read_bytes()
    try:
        text.decode()
        table = _parse(text, pa.float64())
    except UnicodeDecodeError as error:
        raise LogError(f"{source.label} is not a CSV table: byte {error.start} is no UTF-8 text. Copy it "
                       "again.") from None
    except pa.ArrowInvalid as error:
        table = _as_text(text, source.label, error)
    missing = [name for name in (*NUMBERS, *TEXTS) if name not in table.column_names]
    if missing:
        raise LogError(f"{source.label} has no column '{missing[0]}'; found {', '.join(table.column_names[:12])}. "
                       "Rename the column, or read the file as a table with a mapping.")
    if table.num_rows == 0:
        raise LogError(f"{source.label} holds no rows. Leave it out.")
    columns = {name: _numbers(table[name], name, source.label) for name in NUMBERS}
    return columns | {name: table[name].to_numpy().astype(str) for name in TEXTS}


def _parse(text: bytes, number: pa.DataType) -> pa.Table:
    return pacsv.read_csv(
        pa.BufferReader(text), read_options=pacsv.ReadOptions(use_threads=False),
        convert_options=pacsv.ConvertOptions(
            null_values=[""], column_types={name: number for name in NUMBERS} | {name: pa.string() for name in TEXTS}),
    )


def _as_text(text: bytes, where: str, error: pa.ArrowInvalid) -> pa.Table:
    """The table with its numbers as text, so that the wrong one can be named."""
    try:
        return _parse(text, pa.string())
    except pa.ArrowInvalid:
        reason = str(error).splitlines()[0][:200].rstrip(".")
        raise LogError(f"{where} is not a CSV table: {reason}. It may be truncated; copy it again.") from None


def _numbers(column: pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    values = column.to_numpy()
    if values.dtype != np.float64:
        values = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = np.flatnonzero(~(np.abs(values) <= MAX_NUMBER))
    if len(bad):
        given = column[int(bad[0])].as_py()
        raise LogError(f"{where}, row {bad[0] + FIRST_ROW}: {name} is '{'' if given is None else given}'. A plausible "
                       "number is needed; correct the row or leave it out.")
    return values
