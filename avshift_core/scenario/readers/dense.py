"""Long tables, one row per agent and time, -> dense arrays with a validity mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import LogError

MAX_STATES = 50_000_000  # agents x steps; 0.4 GB a column. More is a log with a wrong track or time column


@dataclass(frozen=True, eq=False)
class DenseTracks:
    """A tracks over T steps.

    Attributes:
        track_id: (A,) labels, in the order in which they first appear.
        valid: (A, T).
        row: (A, T) row of the table, -1 where there is none.
        values: column -> (A, T), NaN (or the type's zero, for other than floats) where there is no row.
    """

    track_id: np.ndarray
    valid: np.ndarray
    row: np.ndarray
    values: Mapping[str, np.ndarray]


def dense_tracks(
    track, step, columns: Mapping[str, np.ndarray], n_steps: int, *, where: str = "The table", first_row: int = 1,
) -> DenseTracks:
    """Dense tracks of n rows.

    Args:
        track: (n,) label of the agent of each row.
        step: (n,) index 0..n_steps-1 of its time.
        columns: name -> (n,) values.
        first_row: what messages call the table's first row; 2 for a CSV file, whose header is row 1.

    >>> tracks = dense_tracks(["a", "b", "a"], [0, 1, 1], {"x_m": np.array([1.0, 2.0, 3.0])}, 2)
    >>> tracks.track_id.tolist(), tracks.values["x_m"].tolist()
    (['a', 'b'], [[1.0, 3.0], [nan, 2.0]])
    """
    code, track_id = pd.factorize(np.asarray(track))
    step = np.asarray(step, dtype=np.int64)
    if (code < 0).any():
        raise LogError(f"{where}: row {int(np.argmax(code < 0)) + first_row} has no track id. Give every row one.")
    A = len(track_id)
    if A * n_steps > MAX_STATES:
        raise LogError(f"{where} has {A:,} agents over {n_steps:,} times, too many for one record. Check that the "
                       "columns of agent and time are the right ones, and split it by drive.")
    row = np.full(A * n_steps, -1, dtype=np.int64)
    cell = code * n_steps + step
    row[cell] = np.arange(len(cell))
    again = np.flatnonzero(row[cell] != np.arange(len(cell)))
    if len(again):
        first = int(again[0])
        second = first + 1 + int(np.argmax(cell[first + 1:] == cell[first]))
        raise LogError(f"{where}: rows {first + first_row} and {second + first_row} hold agent "
                       f"'{track_id[code[first]]}' at the same time. Leave one of them out.")
    values = {}
    for name, column in columns.items():
        column = np.asarray(column)
        dense = np.full(A * n_steps, np.nan if column.dtype.kind == "f" else np.zeros((), column.dtype), column.dtype)
        dense[cell] = column
        values[name] = dense.reshape(A, n_steps)
    row = row.reshape(A, n_steps)
    return DenseTracks(np.asarray(track_id), row >= 0, row, values)
