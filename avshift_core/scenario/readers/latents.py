"""Tables of ready-made latents or features, one row per scenario (Parquet, CSV) -> LatentTable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from avshift_core.errors import LogError
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.readers.tabular import (
    checked_category,
    checked_day,
    checked_hour,
    column_names,
    numbers,
    read_frame,
    read_mapping,
    require,
    table_sources,
    texts,
)
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN, Scenario, iso_week

DEFAULT_LATENT = "z"
SECTIONS = {"columns": ID_FIELDS, "features": ("columns", "prefix", "standardize"), "metrics": ("columns",)}


@dataclass(frozen=True, eq=False)
class LatentTable:
    """Scenarios of which only latents or features are known.

    Attributes:
        name: the file's stem.
        ids: (n, ID_FIELDS) table of ids; `drive_id` is "unknown" in every row when there are no drives.
        z: (n, d) float32 latents, finite.
        features: (d,) names of the columns of z.
        metrics: metric name -> (n,) float64, finite.
        attributes: all other columns, one row a scenario.
        has_drives: False when the table has no drive column, and rows must be taken as independent.
        standardized: True when each feature was moved to mean 0 and scaled to standard deviation 1 over this table.
        skipped: rows left out because a latent or metric is not a finite number.
    """

    name: str
    ids: pd.DataFrame
    z: np.ndarray
    features: tuple[str, ...]
    metrics: dict[str, np.ndarray]
    attributes: pd.DataFrame
    has_drives: bool
    standardized: bool = False
    skipped: int = 0

    @property
    def n(self) -> int:
        return len(self.z)


def sources(path: str | Path) -> list[Source]:
    """The Parquet and CSV files of a folder or zip archive, or the one given."""
    return table_sources(path)


def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
    """No scenario can be made of latents: there are no states in them. `read_table` gives what there is."""
    raise LogError(f"{source.label} holds latents and no states, so it cannot be read as scenarios.")
    yield


def read_table(path: str | Path | Source, options: ReadOptions | None = None) -> LatentTable:
    """One table of latents or features.

    Without a mapping file the latent is the list column `z` or the columns `z_0`, `z_1`, ...; ids have their own names
    (`scenario_id`, `drive_id`, `area`, ...), and everything else is an attribute. Features stay as they are, unless the
    mapping says `[features] standardize = true`.
    """
    options = options or ReadOptions()
    source = path if isinstance(path, Source) else _only(path)
    raw = read_mapping(options.mapping, SECTIONS)
    found = column_names(source)
    columns = _id_columns(source, found, raw["columns"])
    frame = read_frame(source, found, text=[column for name, column in columns.items() if name != "hour"])
    z, features, used = _features(source, frame, raw["features"])
    names = [require(source, found, str(name), "The mapping file names it as a metric; correct it there.")
             for name in _list(raw["metrics"], "metrics")]
    metrics = {name: numbers(source, frame, name) for name in names}
    good = _finite_rows(source, frame.index, z, features, metrics, options)
    standardize = raw["features"].get("standardize") is True
    ids = _ids(source, frame, columns, options)[good].reset_index(drop=True)
    rest = frame.drop(columns=[*{*columns.values(), *used, *names}])[good].reset_index(drop=True)
    z = _frozen((_standardized(z[good]) if standardize else z[good]).astype(np.float32))
    return LatentTable(
        source.stem, ids, z, features, {name: _frozen(value[good]) for name, value in metrics.items()},
        rest, "drive_id" in columns, standardize, int((~good).sum()),
    )


def _only(path: str | Path) -> Source:
    found = sources(path)
    if len(found) > 1:
        raise LogError(f"{Path(path).name} holds {len(found)} tables; give them one by one.")
    return found[0]


def _id_columns(source: Source, found: list[str], named: dict) -> dict[str, str]:
    for name, column in named.items():
        require(source, found, str(column), f"The mapping file says that it holds {name}; correct it there.")
    return {name: str(named.get(name, name)) for name in ID_FIELDS if name in named or name in found}


def _list(section: dict, name: str) -> list:
    columns = section.get("columns", [])
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise LogError(f"The mapping file gives {columns!r:.60} as [{name}] columns; a list of names is needed.")
    if len(set(columns)) < len(columns):
        raise LogError(f"The mapping file names a column twice in [{name}] columns.")
    return columns


def _features(source: Source, frame: pd.DataFrame, section: dict) -> tuple[np.ndarray, tuple[str, ...], list[str]]:
    """Latents (n, d) float64, their names, and the columns that hold them."""
    found = [str(column) for column in frame.columns]
    columns = _list(section, "features")
    for column in columns:
        require(source, found, column, "The mapping file names it as a feature; correct it there.")
    prefix = str(section.get("prefix", DEFAULT_LATENT))
    if not columns and prefix in found:
        z = _list_column(source, frame[prefix], prefix)
        return z, tuple(f"{prefix}_{k}" for k in range(z.shape[1])), [prefix]
    if not columns:
        numbered = {int(m[1]): c for c in found if (m := re.fullmatch(re.escape(prefix) + r"_([0-9]{1,6})", c))}
        columns = [numbered[k] for k in sorted(numbered)]
    if not columns:
        raise LogError(f"{source.label} has no column '{prefix}' and no columns '{prefix}_0', '{prefix}_1', ...; found "
                       f"{', '.join(found)}. Rename the latent's columns like that, or, for an import of logs, name "
                       "them in a mapping file: [features] columns = [\"...\"].")
    return np.stack([numbers(source, frame, column) for column in columns], axis=1), tuple(columns), columns


def _list_column(source: Source, column: pd.Series, name: str) -> np.ndarray:
    """Rows of one list column as (n, d); CSV keeps lists as text: "[0.1, 0.2]"."""
    rows = []
    for i, value in zip(column.index, column.tolist(), strict=True):
        try:
            row = np.asarray(json.loads(value) if isinstance(value, str) else value, dtype=np.float64)
        except (TypeError, ValueError, RecursionError):
            row = np.zeros(0)
        if row.ndim != 1 or not len(row) or (rows and len(row) != len(rows[0])):
            need = f"; {len(rows[0])} as in the first row are needed" if rows else ""
            raise LogError(f"{source.label}, row {i}: '{name}' is {value!r:.40}, which is no list of numbers{need}.")
        rows.append(row)
    return np.stack(rows)


def _finite_rows(source: Source, index, z: np.ndarray, features, metrics: dict, options: ReadOptions) -> np.ndarray:
    """(n,) bool; a row that is not finite raises, or is left out and counted."""
    values = np.column_stack([z, *metrics.values()])
    good = np.isfinite(values).all(axis=1)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        k = int(np.flatnonzero(~np.isfinite(values[row]))[0])
        options.leave_out(LogError(
            f"{source.label}, row {index[row]}: '{[*features, *metrics][k]}' is {values[row, k]:g}. "
            f"{int((~good).sum()):,} of {len(good):,} rows are not finite; fill them in, or leave them out."))
    if not good.any():
        raise LogError(f"{source.label} has no row in which all features and metrics are finite numbers.")
    return good


def _standardized(z: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1 in each column; a constant column becomes 0."""
    sd = z.std(axis=0)
    return (z - z.mean(axis=0)) / np.where(sd > 0, sd, 1.0)


def _ids(source: Source, frame: pd.DataFrame, columns: dict[str, str], options: ReadOptions) -> pd.DataFrame:
    """All ID_FIELDS; scenarios without an id are called by file and row."""
    n = len(frame)
    ids = {name: np.full(n, "" if name == "category" else UNKNOWN, dtype=object) for name in ID_FIELDS}
    ids["scenario_id"] = np.array([f"{source.stem}_{i:07d}" for i in range(n)], dtype=object)
    for name, column in columns.items():
        if name != "hour":
            text = texts(source, frame, column)
            empty = np.flatnonzero(text == "")
            if name in ("scenario_id", "drive_id") and len(empty):
                raise LogError(f"{source.label}, row {frame.index[empty[0]]}: '{column}' is empty. Fill it in, or "
                               "leave the column out.")
            ids[name] = np.where(text == "", ids[name], text)
    codes, names = pd.factorize(ids["scenario_id"])
    if len(names) < n:
        row = int(np.flatnonzero(pd.Series(codes).duplicated())[0])
        raise LogError(f"{source.label}, row {frame.index[row]}: scenario '{ids['scenario_id'][row]}' stands there "
                       "twice. Give every scenario one row.")
    ids["day"] = _each(source, frame.index, ids["day"], checked_day)
    ids["category"] = _each(source, frame.index, ids["category"], checked_category)
    hours = numbers(source, frame, columns["hour"]) if "hour" in columns else np.full(n, np.nan)
    ids["hour"] = _each(source, frame.index, hours, checked_hour).astype(np.int64)
    weeks = _each(source, frame.index, ids["day"], lambda _, day: iso_week(day))
    ids["period"] = np.where(ids["period"] == UNKNOWN, weeks, ids["period"])
    for name, said in (("area", options.area), ("period", options.period), ("av_version", options.version)):
        if said:
            ids[name] = np.full(n, said, dtype=object)
    return pd.DataFrame(ids, columns=list(ID_FIELDS))


def _each(source: Source, index: pd.Index, values: np.ndarray, check) -> np.ndarray:
    """`check(where, value)` of every value, called once for each that differs."""
    codes, different = pd.factorize(values, use_na_sentinel=False)
    first = np.unique(codes, return_index=True)[1]
    checked = [check(f"{source.label}, row {index[i]}", value) for i, value in zip(first, different, strict=True)]
    return np.array(checked, dtype=object)[codes]


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
