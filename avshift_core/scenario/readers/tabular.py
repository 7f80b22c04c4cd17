"""Tables (Parquet, CSV) and the mapping files (TOML, JSON) that say which column is what."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import LogError
from avshift_core.scenario.readers.source import Source, find_sources
from avshift_core.scenario.schema import CATEGORIES, UNKNOWN

SUFFIXES = (".parquet", ".pq", ".csv")
FIRST_CSV_ROW = 2  # the header is row 1
TABLE_FAULTS = (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, pa.ArrowException)


def table_sources(path: str | Path) -> list[Source]:
    """The Parquet and CSV files of a folder or zip archive, or the one given."""
    path = Path(path)
    if not path.exists():
        raise LogError(f"{path} does not exist. Give a Parquet or CSV file, or a folder or zip archive of them.")
    if path.is_file() and path.suffix.lower() not in (*SUFFIXES, ".zip"):
        raise LogError(f"{path.name} is neither .parquet nor .csv. Convert it to one of the two.")
    found = find_sources(path, SUFFIXES)
    return sorted(found, key=lambda source: (str(source.path), source.member))


def read_mapping(path: Path | None, known: dict[str, Sequence[str] | None]) -> dict[str, dict]:
    """Sections of a mapping file, all of `known`, {} where the file has none.

    Args:
        known: section -> its keys; None where any key is right.
    """
    if path is None:
        return {section: {} for section in known}
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        raw = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:  # decoding errors of JSON, TOML and UTF-8 are ValueErrors
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise LogError(f"The mapping file {path.name} cannot be read: {reason}. Write it as TOML or JSON.") from None
    if not isinstance(raw, dict):
        raise LogError(f"The mapping file {path.name} is a list; sections ({', '.join(known)}) are needed.")
    for section, content in raw.items():
        if section not in known:
            raise LogError(f"The mapping file {path.name} has a section '{section}'; known are {', '.join(known)}.")
        if not isinstance(content, dict):
            raise LogError(f"Section '{section}' of the mapping file {path.name} is {content!r:.40}; it needs keys.")
        keys = known[section]
        wrong = [key for key in content if keys is not None and key not in keys]
        if wrong:
            raise LogError(f"Section '{section}' of the mapping file {path.name} has a key '{wrong[0]}'; known are "
                           f"{', '.join(keys)}.")
    return {section: raw.get(section, {}) for section in known}


def column_names(source: Source) -> list[str]:
    """Names of the columns; a table without rows or with a name twice is refused."""
    try:
        if _is_csv(source):
            with source.open() as file:
                names = [str(name) for name in pd.read_csv(file, nrows=0).columns]
            _check_separator(source, names)
        else:
            with source.open() as file:
                parquet = pq.ParquetFile(file)
                names = [str(name) for name in parquet.schema_arrow.names]
                rows = parquet.metadata.num_rows
            if rows == 0:
                raise LogError(f"{source.label} holds no rows. Choose a file with states.")
    except TABLE_FAULTS as error:
        raise _unreadable(source, error) from None
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise LogError(f"{source.label} has two columns '{twice[0]}'. Rename one of them.")
    return names


def _check_separator(source: Source, names: list[str]) -> None:
    other = next((mark for mark in (";", "\t", "|") if len(names) == 1 and mark in names[0]), None)
    if other:
        mark = "tabs" if other == "\t" else f"'{other}'"
        raise LogError(f"{source.label} is separated by {mark}; commas are needed, and points in numbers. Save it "
                       "again so, or as Parquet.")


def read_frame(source: Source, columns: Sequence[str], text: Sequence[str] = ()) -> pd.DataFrame:
    """The columns of a whole table; those in `text` are kept as written (007 stays 007).

    The index is the row in the file: of a CSV the line, as an editor counts, of Parquet from 0 on.
    """
    try:
        with source.open() as file:
            if _is_csv(source):
                frame = pd.read_csv(file, usecols=list(columns), dtype=dict.fromkeys(text, str), low_memory=False)
            else:
                frame = _to_pandas(pq.ParquetFile(file).read(columns=list(columns)))
    except TABLE_FAULTS as error:
        raise _unreadable(source, error) from None
    if len(frame) == 0:
        raise LogError(f"{source.label} holds no rows. Choose a file with states.")
    frame.index = pd.RangeIndex(len(frame)) + (FIRST_CSV_ROW if _is_csv(source) else 0)
    return frame


def frames_by(source: Source, key: str | None, columns: Sequence[str], text: Sequence[str]) -> Iterator[pd.DataFrame]:
    """One frame for each value of column `key`, in order of appearance; the index is as in `read_frame`.

    A Parquet file whose rows are ordered by `key` is read by row groups, so that memory holds one value at a time.
    """
    if key is None:
        yield read_frame(source, columns, text)
        return
    labels = texts(source, keys := read_frame(source, [key], [c for c in text if c == key]), key)
    missing = np.flatnonzero(labels == "")
    if len(missing):
        raise LogError(f"{source.label}, row {keys.index[missing[0]]}: '{key}' is empty. Fill it in.")
    starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1, [len(labels)]])
    if _is_csv(source) or len(np.unique(labels)) < len(starts) - 1:
        frame = read_frame(source, columns, text)
        codes, values = pd.factorize(labels)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(values)))
        for a, b in zip([0, *ends[:-1]], ends, strict=True):
            yield frame.iloc[order[a:b]]
        return
    try:
        with source.open() as file:
            yield from _row_ranges(pq.ParquetFile(file), list(columns), starts)
    except TABLE_FAULTS as error:
        raise _unreadable(source, error) from None


def _row_ranges(parquet: pq.ParquetFile, columns: list[str], starts: np.ndarray) -> Iterator[pd.DataFrame]:
    """Rows starts[i]:starts[i + 1], from a window of row groups that moves along."""
    sizes = [parquet.metadata.row_group(g).num_rows for g in range(parquet.num_row_groups)]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    held: dict[int, pa.Table] = {}
    for a, b in pairwise(starts):
        first, last = np.searchsorted(edges, a, side="right") - 1, np.searchsorted(edges, b, side="left")
        held = {g: held.get(g) or parquet.read_row_group(g, columns=columns) for g in range(first, last)}
        frame = _to_pandas(pa.concat_tables(held.values()).slice(a - edges[first], b - a))
        frame.index = pd.RangeIndex(a, b)
        yield frame


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    """Without what pandas has written beside the data, which a damaged file turns into anything."""
    table.validate(full=True)  # text that is not UTF-8 would fail wherever it is first looked at
    return table.to_pandas(ignore_metadata=True)


def numbers(source: Source, frame: pd.DataFrame, column: str, needed: bool = False) -> np.ndarray:
    """A column as float64, NaN where it is empty; anything else than a number is refused with its row."""
    series = frame[column]
    try:
        if pd.api.types.is_numeric_dtype(series):
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        values = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = np.flatnonzero(np.isnan(values) & series.notna().to_numpy())
    except (TypeError, ValueError, OverflowError):
        raise LogError(f"Column '{column}' of {source.label} holds something else than numbers.") from None
    if len(wrong):
        row = wrong[0]
        raise LogError(f"{source.label}, row {frame.index[row]}: '{column}' is '{series.iloc[row]!s:.40}', which is no "
                       f"number. {number_advice(needed)}")
    return values


def number_advice(needed: bool) -> str:
    """What to do about a cell without a number; a row without a `needed` one holds nothing."""
    return f"Give a number, or leave {'the row out' if needed else 'it empty'}."


def texts(source: Source, frame: pd.DataFrame, column: str) -> np.ndarray:
    """A column as object array of str, "" where it is empty; 7.0 becomes "7"."""
    try:
        codes, values = pd.factorize(frame[column])
    except TypeError:
        raise LogError(f"Column '{column}' of {source.label} holds lists; one value a row is needed.") from None
    labels = [str(int(v)) if isinstance(v, float | np.floating) and float(v).is_integer() else str(v) for v in values]
    return np.array([*labels, ""], dtype=object)[codes]


def require(source: Source, found: Sequence[str], column: str, advice: str) -> str:
    """`column`, if the table has it."""
    if column not in found:
        raise LogError(f"{source.label} has no column '{column}'; found {', '.join(found) or 'none'}. {advice}")
    return column


def checked_day(where: str, day: str) -> str:
    """ISO date, `unknown` where it is empty; a time behind it is dropped."""
    try:
        return date.fromisoformat(day[:10]).isoformat() if day not in ("", UNKNOWN) else UNKNOWN
    except ValueError:
        raise LogError(f"{where}: the day is '{day:.40}'. Give it as 2026-03-02.") from None


def checked_hour(where: str, hour: float) -> int:
    """0..23, -1 where it is not known (NaN)."""
    if np.isnan(hour) or hour == -1:
        return -1
    if hour not in range(24):
        raise LogError(f"{where}: the hour is {hour:g}. Give 0 to 23.")
    return int(hour)


def checked_category(where: str, category: str) -> str:
    if category not in (*CATEGORIES, ""):
        raise LogError(f"{where}: the category '{category:.40}' is not known. Leave it empty to have it detected, or "
                       f"give one of {', '.join(CATEGORIES)}.")
    return category


def _is_csv(source: Source) -> bool:
    return (source.member or source.path.name).lower().endswith(".csv")


def _unreadable(source: Source, error: Exception) -> LogError:
    if isinstance(error, pd.errors.EmptyDataError):
        return LogError(f"{source.label} is empty. Choose a file with rows.")
    reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return LogError(f"{source.label} cannot be read: {reason}. It may be truncated; write or copy it again.")


