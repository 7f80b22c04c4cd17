"""Tables with one row per agent and time (Parquet, CSV) -> scenarios, by own column names or a mapping file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path

import numpy as np
import pandas as pd

from avshift_core.errors import LogError
from avshift_core.scenario.readers.build import build_scenario
from avshift_core.scenario.readers.checks import check_duration
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.readers.tabular import (
    checked_category,
    checked_day,
    checked_hour,
    column_names,
    frames_by,
    number_advice,
    numbers,
    read_mapping,
    require,
    table_sources,
    texts,
)
from avshift_core.scenario.readers.units import UNITS, Declared, plain
from avshift_core.scenario.readers.windows import cut_windows
from avshift_core.scenario.schema import AGENT_TYPES, ID_FIELDS, UNKNOWN, Ids, Scenario

STATES = {  # what the mapping file calls it -> our own column name, with its unit
    "time": "t_s", "x": "x_m", "y": "y_m", "heading": "heading_rad", "speed": "speed_mps",
    "acceleration": "acceleration_mps2", "length": "length_m", "width": "width_m", "height": "height_m",
}
LABELS = ("agent_id", "type", "is_ego", "scenario_id", "drive_id", "vehicle_id", "day", "period", "area", "route",
          "av_version", "category")
COLUMNS = {**STATES, **{name: name for name in LABELS}, "hour": "hour"}
NEEDED = ("time", "agent_id", "x", "y")
SYNONYMS = {"vehicle": "car", "van": "car", "cyclist": "bicycle", "motorcyclist": "motorcycle", "riderless_bicycle":
            "static", "background": "static", "unknown": ""}
SECTIONS = {"columns": tuple(COLUMNS), "units": tuple(UNITS), "ego": ("id", "column", "value"), "types": None,
            "options": ("sort",)}
MAX_TIME_S = 1e12  # 30,000 years; seconds since 1970 are at 1.8e9
MAX_CELLS, MAX_CELLS_A_ROW = 1_000_000, 50  # of agents x times; beyond, every agent has a clock of its own
PART_IDS = {"scenario_id": "scenario", "drive_id": "drive"}
YES, NO = ("true", "1", "yes"), ("false", "0", "no", "")


@dataclass(frozen=True)
class TableMapping:
    """Which column of one table is what.

    Attributes:
        columns: name of ours (keys of COLUMNS) -> column of the table, for those that it has.
        units: as declared; time_iso: times are dates with a time.
        ego: ("id", id), ("column", column, value) or ("flag",).
        types: the log's names of agent types in lower case -> ours, "" for unknown.
        sort: rows may come in any order of time.
    """

    columns: dict[str, str]
    units: Declared
    time_iso: bool
    ego: tuple[str, ...]
    types: dict[str, str]
    sort: bool


@dataclass(frozen=True)
class _Rows:
    """Rows of one drive or scenario as arrays of n; `row` is the row in the file (`read_frame`)."""

    row: np.ndarray
    t_s: np.ndarray
    agent: np.ndarray
    values: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    clock: tzinfo | None  # of the dates in the time column, None where it holds seconds

    def take(self, which: np.ndarray) -> _Rows:
        pick = lambda arrays: {name: array[which] for name, array in arrays.items()}  # noqa: E731
        return _Rows(self.row[which], self.t_s[which], self.agent[which], pick(self.values), pick(self.labels),
                     self.clock)


def sources(path: str | Path) -> list[Source]:
    """The Parquet and CSV files of a folder or zip archive, or the one given."""
    return table_sources(path)


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """Scenarios of one table: its own where it has scenario ids, else windows of 10 to 15 s of each drive."""
    mapping = table_mapping(source, options.mapping)
    columns = sorted({*mapping.columns.values(), *mapping.ego[1:2]} if mapping.ego[0] == "column"
                     else set(mapping.columns.values()))
    text = [mapping.columns[name] for name in LABELS if name in mapping.columns]
    key = mapping.columns.get("drive_id") or mapping.columns.get("scenario_id")
    seen: set[str] = set()
    for frame in frames_by(source, key, columns, text):
        try:
            parts = list(_scenario_parts(source, _rows(source, frame, mapping), seen))
        except LogError as error:
            kind = "drive" if "drive_id" in mapping.columns else "scenario"
            options.leave_out(error, f"{kind} '{frame[key].iloc[0]}'" if key else source.label)
            continue
        for part in parts:
            try:
                yield from _scenarios(source, part, mapping, options)
            except LogError as error:
                options.leave_out(error, _called(source, part))


def table_mapping(source: Source, path: Path | None) -> TableMapping:
    """Columns and units of a table, from the mapping file and, for what it does not name, from our own names."""
    raw = read_mapping(path, SECTIONS)
    found = column_names(source)
    named = {name: str(column) for name, column in raw["columns"].items()}
    for name, column in named.items():
        require(source, found, column, f"The mapping file says that it holds {name}; correct it there.")
    columns = {name: named.get(name, own) for name, own in COLUMNS.items() if name in named or own in found}
    for name in NEEDED:
        if name not in columns:
            require(source, found, COLUMNS[name], f"Add it, or name the one that holds it in a mapping file: [columns] "
                    f'{name} = "...", and its unit in [units].')
    units = {kind: str(raw["units"].get(kind, next(iter(known)))) for kind, known in UNITS.items()}
    for kind, unit in units.items():
        if unit not in UNITS[kind]:
            raise LogError(f"The mapping file gives the unit '{unit}' for {kind}; known are {', '.join(UNITS[kind])}.")
    types = {str(name).lower(): str(ours) for name, ours in raw["types"].items()}
    wrong = next((ours for ours in types.values() if ours not in (*AGENT_TYPES, "")), None)
    if wrong is not None:
        raise LogError(f"The mapping file maps a type to '{wrong}'; known are {', '.join(AGENT_TYPES)}.")
    return TableMapping(
        columns, Declared(units, frozenset(named), columns), time_iso=units["time"] == "iso",
        ego=_ego_rule(source, raw["ego"], found, columns), sort=raw["options"].get("sort") is True,
        types={name: name for name in AGENT_TYPES} | SYNONYMS | types,
    )


def _ego_rule(source: Source, ego: dict, found: list[str], columns: dict[str, str]) -> tuple[str, ...]:
    if "id" in ego:
        return ("id", str(ego["id"]))
    if "column" in ego and "value" in ego:
        column = require(source, found, str(ego["column"]), "The mapping file names it in [ego]; correct it there.")
        return ("column", column, str(ego["value"]))
    if "is_ego" in columns:
        return ("flag",)
    raise LogError(f"{source.label} does not tell who the ego is; found {', '.join(found)}. Add a column 'is_ego' "
                   '(true in its rows), or say it in a mapping file: [ego] id = "...", or [ego] column = "..." and '
                   'value = "...".')


def _rows(source: Source, frame: pd.DataFrame, mapping: TableMapping) -> _Rows:
    t_s, clock = _times(source, frame, mapping)
    with np.errstate(over="ignore"):  # inf, which is refused with its row
        values = {name: numbers(source, frame, mapping.columns[name], name in NEEDED) * mapping.units.factor_of(name)
                  for name in STATES if name in mapping.columns and name != "time"}
    if mapping.units.unit("heading") == "compass" and "heading" in values:
        values["heading"] = np.pi / 2 - values["heading"]
    if "hour" in mapping.columns:
        values["hour"] = numbers(source, frame, mapping.columns["hour"])
    labels = {name: texts(source, frame, mapping.columns[name]) for name in LABELS if name in mapping.columns}
    row = frame.index.to_numpy()
    empty = np.flatnonzero(labels["agent_id"] == "")
    if len(empty):
        raise LogError(f"{source.label}, row {row[empty[0]]}: '{mapping.columns['agent_id']}' is empty. Every row "
                       "needs the id of its agent.")
    labels["ego"] = _ego_rows(source, frame, labels, mapping)
    rows = _Rows(row, t_s, pd.factorize(labels["agent_id"])[0], values, labels, clock)
    if not mapping.sort:
        _check_order(source, rows)
    return rows


def _times(source: Source, frame: pd.DataFrame, mapping: TableMapping) -> tuple[np.ndarray, tzinfo | None]:
    """Seconds (n,), and the time zone where the column holds dates."""
    column, clock = mapping.columns["time"], None
    if mapping.time_iso or pd.api.types.is_datetime64_any_dtype(frame[column]):
        try:
            stamps = pd.DatetimeIndex(pd.to_datetime(frame[column], format="ISO8601", errors="coerce")).as_unit("ns")
        except (TypeError, ValueError, OverflowError):
            raise LogError(f"Column '{column}' of {source.label} holds something else than dates with a time, such as "
                           "2026-03-02T14:05:00.1.") from None
        t_s, clock = np.where(stamps.isna(), np.nan, stamps.asi8 / 1e9), stamps.tz or UTC
    else:
        t_s = numbers(source, frame, column, needed=True) * mapping.units.factor_of("time")
    bad = np.flatnonzero(~(np.abs(t_s) <= MAX_TIME_S))
    if len(bad):
        cell = frame[column].iloc[bad[0]]
        fault = mapping.units.time_fault("" if pd.isna(cell) else str(cell), t_s[bad[0]])
        raise LogError(f"{source.label}, row {frame.index[bad[0]]}: '{column}' is {fault}.")
    return np.round(t_s, 6), clock  # 0.1 + 0.2 and 0.3 are one time


def _ego_rows(source: Source, frame: pd.DataFrame, labels: dict, mapping: TableMapping) -> np.ndarray:
    """(n,) bool, the rows that are marked as the ego's."""
    if mapping.ego[0] == "id":
        return labels["agent_id"] == mapping.ego[1]
    if mapping.ego[0] == "column":
        return texts(source, frame, mapping.ego[1]) == mapping.ego[2]
    said = np.array([value.lower() for value in labels["is_ego"]], dtype=object)
    wrong = np.flatnonzero(~np.isin(said, np.array([*YES, *NO], dtype=object)))
    if len(wrong):
        raise LogError(f"{source.label}, row {frame.index[wrong[0]]}: '{mapping.columns['is_ego']}' is "
                       f"'{said[wrong[0]]:.40}'. Give true or false.")
    return np.isin(said, np.array(YES, dtype=object))


def _check_order(source: Source, rows: _Rows) -> None:
    order = np.argsort(rows.agent, kind="stable")
    back = (np.diff(rows.t_s[order]) < 0) & (np.diff(rows.agent[order]) == 0)
    if back.any():
        a, b = order[np.flatnonzero(back)[0] + np.arange(2)]
        raise LogError(f"{source.label}, row {rows.row[b]}: time runs backwards for agent "
                       f"'{rows.labels['agent_id'][b]}', from {plain(rows.t_s[a])} s to {plain(rows.t_s[b])} s. "
                       "If the rows are only out of order, say so in a mapping file: [options] sort = true.")


def _scenario_parts(source: Source, rows: _Rows, seen: set[str]) -> Iterator[_Rows]:
    """Rows of one drive -> those of each of its scenarios, or all of them when there are no scenario ids.

    A scenario id that another drive has `seen` is refused.
    """
    if "scenario_id" not in rows.labels:
        yield rows
        return
    names = rows.labels["scenario_id"]
    if (names == "").any():
        raise LogError(f"{source.label}, row {rows.row[np.flatnonzero(names == '')[0]]}: the scenario id is empty.")
    codes, values = pd.factorize(names)
    twice = next((name for name in values if name in seen), None)
    if twice is not None:
        raise LogError(f"{source.label}: scenario '{twice}' has rows in two drives. Give every scenario one drive.")
    seen.update(values)
    for k in range(len(values)):
        yield rows.take(np.flatnonzero(codes == k))


def _called(source: Source, rows: _Rows) -> str:
    """What messages call these rows: drive 'd1', or the file where it has no ids."""
    return next((f"{kind} '{rows.labels[k][0]}'" for k, kind in PART_IDS.items() if k in rows.labels), source.label)


def _scenarios(source: Source, rows: _Rows, mapping: TableMapping, options: ReadOptions) -> Iterator[Scenario]:
    name = next((rows.labels[k][0] for k in PART_IDS if k in rows.labels), source.stem)
    where = source.label if (called := _called(source, rows)) == source.label else f"{source.label}, {called}"
    ego = np.unique(rows.agent[rows.labels["ego"]])
    if len(ego) != 1:
        ids = sorted({str(i) for i in rows.labels["agent_id"][rows.labels["ego"]]})
        said = f"{len(ids)} egos ({', '.join(ids[:5])})" if ids else "no ego"
        raise LogError(f"{where} has {said}; exactly one is needed. Check how the ego is marked.")
    of_ego = rows.agent == ego[0]
    rows = replace(rows, labels=rows.labels | {"ego": of_ego})
    first, last = rows.t_s[of_ego].min(), rows.t_s[of_ego].max()
    inside = (rows.t_s >= first) & (rows.t_s <= last)
    times = np.unique(rows.t_s[inside])
    check_duration(where, times, mapping.units)
    whole = "scenario_id" in rows.labels
    for window in [slice(0, len(times))] if whole else cut_windows(times, where=where):
        t_s = times[window]
        part = rows.take(np.flatnonzero((rows.t_s >= t_s[0]) & (rows.t_s <= t_s[-1])))
        try:
            scenario_id = name if whole else f"{name}_t{t_s[0]:.1f}"
            ids = _ids(source, part, scenario_id, t_s[0])
            yield _scenario(f"{where}, from {t_s[0]:.1f} s", options.apply(ids), part, ego[0], t_s, mapping)
        except LogError as error:
            options.leave_out(error)


def _scenario(where: str, ids: Ids, rows: _Rows, ego: int, t_s: np.ndarray, mapping: TableMapping) -> Scenario:
    agents, agent = np.unique(rows.agent, return_inverse=True)
    step = np.searchsorted(t_s, rows.t_s)
    _check_rows(where, rows, agent * len(t_s) + step, mapping)
    if len(agents) * len(t_s) > max(MAX_CELLS, MAX_CELLS_A_ROW * len(rows.row)):
        raise LogError(f"{where}: {len(rows.row):,} rows are of {len(agents):,} agents at {len(t_s):,} different "
                       "times. Ego and agents must be logged at the same times; round them to the log's rate.")
    dense = {name: np.full((len(agents), len(t_s)), np.nan) for name in rows.values}
    for name, values in rows.values.items():
        dense[name][agent, step] = values
    there = np.zeros((len(agents), len(t_s)), dtype=bool)
    there[agent, step] = True
    xy = np.stack([dense["x"], dense["y"]], axis=-1)
    size = np.full((len(agents), 3), np.nan)
    for k, name in enumerate(("length", "width", "height")):
        for a in np.flatnonzero(np.isfinite(dense[name]).any(axis=1)) if name in dense else ():
            size[a, k] = np.nanmedian(dense[name][a])
    types = _types(where, rows, agent, len(agents), mapping)
    me = int(np.searchsorted(agents, ego))
    others = np.arange(len(agents)) != me
    first_row = np.unique(agent, return_index=True)[1]
    of = lambda name, which: dense[name][which] if name in dense else None  # noqa: E731
    return build_scenario(
        where=where, ids=ids, t_s=t_s, ego_xy=xy[me], ego_valid=there[me], ego_heading=of("heading", me),
        ego_speed=of("speed", me), ego_acceleration=of("acceleration", me), ego_size=size[me],
        agent_id=rows.labels["agent_id"][first_row][others].astype(str), agent_xy=xy[others],
        agent_valid=there[others], agent_heading=of("heading", others), agent_speed=of("speed", others),
        agent_type=types[others], agent_size=size[others], units=mapping.units,
    )


def _check_rows(where: str, rows: _Rows, cell: np.ndarray, mapping: TableMapping) -> None:
    """Refuse positions that are not there, infinite values, and two rows of one agent at one time."""
    for name, values in rows.values.items():
        bad = np.flatnonzero(np.isinf(values) | (np.isnan(values) & (name in ("x", "y"))))
        if len(bad):
            said = "empty" if np.isnan(values[bad[0]]) else f"{values[bad[0]]:g}"
            raise LogError(f"{where}, row {rows.row[bad[0]]}: '{mapping.columns[name]}' is {said}. "
                           f"{number_advice(name in NEEDED)}")
    order = np.argsort(cell, kind="stable")
    same = np.flatnonzero(np.diff(cell[order]) == 0)
    if len(same):
        a, b = order[same[0]:same[0] + 2]
        raise LogError(f"{where}: rows {rows.row[a]} and {rows.row[b]} are both of agent "
                       f"'{rows.labels['agent_id'][a]}' at {plain(rows.t_s[a])} s. Leave one of them out.")


def _types(where: str, rows: _Rows, agent: np.ndarray, n: int, mapping: TableMapping) -> np.ndarray:
    """(n,) index into AGENT_TYPES, -1 where the log does not tell; the first row of an agent that tells counts."""
    types = np.full(n, -1)
    if "type" not in rows.labels:
        return types
    codes, names = pd.factorize(rows.labels["type"])
    ours = []
    for k, name in enumerate(names):
        kind = mapping.types.get(str(name).lower(), None if name else "")
        if kind is None:
            row = rows.row[np.flatnonzero(codes == k)[0]]
            raise LogError(f"{where}, row {row}: the type '{name:.40}' is not known. Map it in the mapping file, "
                           f"[types] {name:.40} = \"car\"; known are {', '.join(AGENT_TYPES)}.")
        ours.append(AGENT_TYPES.index(kind) if kind else -1)
    told = np.array(ours)[codes]
    rows_that_tell = np.flatnonzero(told >= 0)[::-1]
    types[agent[rows_that_tell]] = told[rows_that_tell]
    return types


def _ids(source: Source, rows: _Rows, scenario_id: str, begin_s: float) -> Ids:
    """Ids of a window, from the first row of the ego in it that fills each of them."""
    ego = np.flatnonzero(rows.labels["ego"])
    label = {name: next((v for v in rows.labels[name][ego] if v), "") for name in ID_FIELDS if name in rows.labels}
    hour = next((h for h in rows.values["hour"][ego] if not np.isnan(h)), np.nan) if "hour" in rows.values else np.nan
    at = f"{source.label}, row {rows.row[0]}"
    day, hour = checked_day(at, label.get("day", "")), checked_hour(at, hour)
    if rows.clock is not None:
        moment = pd.Timestamp(begin_s, unit="s", tz="UTC").tz_convert(rows.clock)
        day, hour = moment.date().isoformat() if day == UNKNOWN else day, moment.hour if hour < 0 else hour
    known = {name: label.get(name) or UNKNOWN for name in ("vehicle_id", "period", "area", "route", "av_version")}
    return Ids(scenario_id, label.get("drive_id") or source.stem, day=day, hour=hour,
               category=checked_category(at, label.get("category", "")), **known)
