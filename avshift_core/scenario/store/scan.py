"""DuckDB over the Parquet files of some parts: rows of `meta` and `metrics` side by side, and sums by group.

Names of columns are checked against the manifest and quoted; paths and values go in as parameters.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pandas as pd

from avshift_core.errors import CorpusError
from avshift_core.scenario.store.location import Location
from avshift_core.scenario.store.manifest import META, METRICS, Part
from avshift_core.scenario.store.query import CohortQuery

FILES = "read_parquet(?, union_by_name=true, hive_partitioning=false)"  # area=... of the path is not the true name
ROW = "m.file_index = k.file_index AND m.file_row_number = k.file_row_number"


_connections: dict[int, duckdb.DuckDBPyConnection] = {}  # one a file system; starting DuckDB takes longer than a query
atexit.register(_connections.clear)  # before the interpreter takes DuckDB apart
_lock = threading.Lock()


def cursor(location: Location) -> duckdb.DuckDBPyConnection:
    """A connection for one query, safe beside others in other threads."""
    with _lock:
        if id(location.fs) not in _connections:
            _connections[id(location.fs)] = duckdb.connect()
            if not location.local:
                _connections[id(location.fs)].register_filesystem(location.fs)  # keeps it, and so its id, alive
        return _connections[id(location.fs)].cursor()


@dataclass(frozen=True)
class Scan:
    """Parts that are read together.

    Attributes:
        connection: a DuckDB cursor that knows the corpus' file system.
        meta, metrics: the columns that these parts have.
    """

    connection: duckdb.DuckDBPyConnection
    location: Location
    parts: Sequence[Part]
    meta: frozenset[str]
    metrics: frozenset[str]

    def rows(self, query: CohortQuery, attributes: Sequence[str], metrics: Sequence[str],
             ids: Sequence[str] | None = None) -> pd.DataFrame:
        """One row a scenario, in order: `part` (index into parts), `row`, `a:<attribute>`, `m:<metric>`.

        A column that these parts do not have is all missing.
        """
        chosen = [f"m.{_quoted(name)} AS {_quoted('a:' + name)}" for name in attributes if name in self.meta]
        chosen += [f"k.{_quoted(name)} AS {_quoted('m:' + name)}" for name in metrics if name in self.metrics]
        source, values = self._source(bool(metrics), query, ids)
        columns = ", ".join(["m.file_index AS part", "m.file_row_number AS row", *chosen])
        frame = self._run(f"SELECT {columns} FROM {source} ORDER BY part, row", values)
        for name in [f"a:{a}" for a in attributes] + [f"m:{m}" for m in metrics]:
            if name not in frame:
                frame[name] = pd.Series(float("nan"), index=frame.index)
        return frame

    def sums(self, query: CohortQuery, by: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
        """One row a group: the columns of `by`, `n`, and for each metric the `sum:` and `count:` of its finite values.

        `km:` and `h:` are the exposure of the scenarios that have the metric.
        """
        keys = [f"m.{_quoted(name)} AS {_quoted(name)}" for name in by]
        sums = [part for name in metrics if name in self.metrics for part in _sums(name)]
        source, values = self._source(bool(metrics), query, None)
        group = f"GROUP BY {', '.join(str(i + 1) for i in range(len(by)))} ORDER BY ALL" if by else ""
        return self._run(f"SELECT {', '.join([*keys, 'count(*) AS n', *sums])} FROM {source} {group}", values)

    def _source(self, joined: bool, query: CohortQuery, ids: Sequence[str] | None) -> tuple[str, list]:
        tables = [META, METRICS] if joined else [META]
        values: list = [[self.location.path(part.files[table].path) for part in self.parts] for table in tables]
        source = f"{FILES} m JOIN {FILES} k ON {ROW}" if joined else f"{FILES} m"
        allowed = query.chosen() | ({} if ids is None else {"scenario_id": ids})
        conditions = [f"m.{_quoted(name)} IN (SELECT unnest(?))" for name in allowed]
        values += [list(value) for value in allowed.values()]
        return source + (f" WHERE {' AND '.join(conditions)}" if conditions else ""), values

    def _run(self, sql: str, values: list) -> pd.DataFrame:
        try:
            return self.connection.execute(sql, values).df()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise CorpusError(f"{self.location.url} cannot be read: {reason}. A file may have changed while it was "
                              "read; open the corpus again.") from None


def _sums(name: str) -> list[str]:
    value = f"k.{_quoted(name)}::DOUBLE"
    wanted = {"sum": f"sum({value})", "count": f"count({value})", "km": "sum(k.distance_km)", "h": "sum(k.duration_h)"}
    return [f"{sql} FILTER (WHERE isfinite({value})) AS {_quoted(f'{key}:{name}')}" for key, sql in wanted.items()]


def _quoted(name: str) -> str:
    """
    >>> _quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
