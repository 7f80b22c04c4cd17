"""Reading a corpus: cohorts through DuckDB over only those files that a query admits, and states as streams of batches.

    with create_or_open("fleet") as writer:                     # the one writer; commits on the way out
        writer.add(batch, attributes, metrics, source="log-1")
    corpus = open_corpus("fleet")
    obs, z = corpus.table(CohortQuery.parse("period=2026-W10,area=harbor"), metrics=["ttc_min_s<1.5"], latents=model)
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import CorpusError
from avshift_core.scenario.schema import Scenario, ScenarioBatch
from avshift_core.scenario.store.columns import batch_of
from avshift_core.scenario.store.location import Location, locate
from avshift_core.scenario.store.manifest import (
    LATENTS,
    META,
    METRICS,
    NAME,
    STATES,
    FileEntry,
    Manifest,
    Part,
    from_bytes,
)
from avshift_core.scenario.store.query import CohortQuery, as_query
from avshift_core.scenario.store.rows import EXPOSURE
from avshift_core.scenario.store.scan import Scan, cursor
from avshift_core.scenario.store.thresholds import parse_metric
from avshift_core.scenario.store.writer import CorpusWriter, create_or_open

__all__ = ["Corpus", "CorpusWriter", "create_or_open", "open_corpus", "open_shared"]
ALL = CohortQuery()
SHOWN = 12  # values that a message lists
_verified: set[tuple] = set()  # (path, state, SHA-256) of the files that this process has hashed


def open_corpus(url, *, verify: bool = False, fingerprint: str = "") -> Corpus:
    """Open a corpus for reading: the manifest is read, and every file must be there in its full size.

    Hashes are checked for the files that are read, once a process; with `verify` for all of them now. With a
    `fingerprint` another revision than that one is refused, because the data has changed.
    """
    location = locate(url)
    location.check()
    data = location.read(NAME)
    if data is None:
        if not location.exists():
            raise CorpusError(f"{location.url} does not exist. Give the folder of a corpus, or make one by an import.")
        raise CorpusError(f"{location.url} is not a corpus: it has no {NAME}. Give one that an import has written.")
    manifest = from_bytes(data, location.url)
    if fingerprint and manifest.fingerprint != fingerprint:
        raise CorpusError(f"{location.url} has changed since this was asked for. Open it again.")
    files = manifest.files
    sizes = location.sizes(files)
    for path, file in files.items():
        if path not in sizes:
            raise CorpusError(f"{path} of {location.url} is missing. Restore it from a copy, or import again into a "
                              "new folder.")
        if sizes[path] != file.bytes:
            raise CorpusError(f"{path} of {location.url} has {sizes[path]:,} bytes and should have {file.bytes:,}: it "
                              "is truncated or changed. Restore it from a copy, or import again into a new folder.")
    corpus = Corpus(location, manifest)
    if verify:
        corpus.verify(files.values())
    return corpus


def open_shared(url: str, parts: Iterable[str] = ()) -> Corpus:
    """Open, in a process that may run elsewhere, the corpus that the work is about: with these parts, by their ids."""
    try:
        corpus = open_corpus(url)
    except CorpusError as error:
        raise _not_shared(url, str(error)) from None
    if missing := sorted(set(parts) - {part.id for part in corpus.parts}):
        raise _not_shared(url, f"What is there has no part '{missing[0]}'.")
    return corpus


def _not_shared(url: str, reason: str) -> CorpusError:
    return CorpusError(f"{url} is not the same corpus on {socket.gethostname()}, where a part of the work was to be "
                       f"done: {reason} Keep it in a folder, at one path, or at a URL that all workers can read.")


class Corpus:
    """A corpus at one revision; what is imported later is seen by opening it again."""

    def __init__(self, location: Location, manifest: Manifest) -> None:
        self.location, self.manifest = location, manifest

    @property
    def url(self) -> str:
        return self.location.url

    @property
    def n(self) -> int:
        return self.manifest.n

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.manifest.parts

    @property
    def cohort_columns(self) -> tuple[str, ...]:
        """Ids and attributes: all that can be chosen, coloured and named by."""
        return tuple(dict.fromkeys(name for group in self.manifest.column_sets for name in group))

    @property
    def metric_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for group in self.manifest.metric_sets for name in group))

    @property
    def models(self) -> dict[str, int]:
        """Models of the latents -> how many scenarios have them."""
        return {model: sum(part.n for part in self.parts if f"{LATENTS}/{model}" in part.files)
                for model in self.manifest.models}

    def table(
        self, query: CohortQuery | str = ALL, columns: Sequence[str] | None = None, metrics: Sequence[str] | str = (),
        latents: str | None = None, part: str | None = None, ids: Sequence[str] | str | None = None,
    ) -> pd.DataFrame | tuple[pd.DataFrame, np.ndarray]:
        """The scenarios of a query, one row each, in the order of the corpus.

        Args:
            query: also as text, such as `period=2026-W10,area=harbor`.
            columns: some of `cohort_columns`; all of them without it.
            metrics: names of metrics, numeric columns of `cohort_columns`, or exceedances such as `ttc_min_s<1.5` and
                `discomfort>1.3`, which give 0 and 1; each becomes a column of that name, beside `low_rate`,
                `distance_km` and `duration_h`.
            latents: a model; the answer is then (table, z (n, d) float32).
            part: id of a part; only its scenarios, in its order.
            ids: only these of the query's scenarios.
        """
        query, metrics = as_query(query), _names("metrics", metrics)
        columns = list(self.cohort_columns) if columns is None else _names("columns", columns)
        choices = {text: parse_metric(text, self.metric_columns, self.cohort_columns) for text in metrics}
        attributes = dict.fromkeys([*columns, *(c.column for c in choices.values() if not c.measured)])
        measured = dict.fromkeys(c.column for c in choices.values() if c.measured)
        self._check_columns(columns)
        parts = self._admitted(query, part)
        self._check_versions(parts, measured)
        rows = self._scan(parts, [META, METRICS] if metrics else [META]).rows(
            query, list(attributes), list(dict.fromkeys([*measured, *EXPOSURE])) if metrics else [],
            None if ids is None else _names("ids", ids))
        if rows.empty:
            raise self._nothing(query) if ids is None else self._unknown(_names("ids", ids), query)
        frame = pd.DataFrame({name: rows[f"a:{name}"] for name in columns}, index=rows.index)
        for text, choice in choices.items():
            frame[text] = choice.values(_numbers(rows[f"{'m' if choice.measured else 'a'}:{choice.column}"], text))
        for name in EXPOSURE if metrics else ():
            frame[name] = rows[f"m:{name}"]
        return frame if latents is None else (frame, self._latents(parts, latents, rows["part"], rows["row"]))

    def part_of(self, scenario_id: str, query: CohortQuery | str = ALL) -> Part:
        """The part that holds a scenario; `query` narrows where it is looked for."""
        parts = self._admitted(query := as_query(query))
        rows = self._scan(parts, [META]).rows(query, [], [], [scenario_id])
        if rows.empty:
            raise self._unknown([scenario_id], query)
        return parts[int(rows["part"].iloc[0])]

    def scenarios(self, ids: Sequence[str] | str, query: CohortQuery | str = ALL) -> list[Scenario]:
        """These scenarios with their states, in the order asked for; `query` narrows where they are looked for."""
        ids, query = _names("ids", ids), as_query(query)
        parts = self._admitted(query)
        rows = self._scan(parts, [META]).rows(query, ["scenario_id"], [], ids)
        missing = set(ids) - set(rows["a:scenario_id"])
        if missing:
            raise self._unknown(missing, query)
        found = {s.ids.scenario_id: s for table in self._states(parts, rows) for s in _scenarios(table)}
        return [found[name] for name in ids]

    def batches(
        self, query: CohortQuery | str = ALL, size: int = 1024, part: str | None = None
    ) -> Iterator[ScenarioBatch]:
        """States of a query's scenarios, or of one part's, in batches of `size` (the last is smaller), in order.

        Memory stays that of one batch and one part's file, however large the corpus is.
        """
        if size < 1:
            raise CorpusError(f"A batch of {size} scenarios cannot be; give a size of 1 or more.")
        query = as_query(query)
        parts = self._admitted(query, part)
        rows = self._scan(parts, [META]).rows(query, [], [])
        if rows.empty:
            raise self._nothing(query)
        held: list[pa.Table] = []
        for table in self._states(parts, rows):
            held.append(table)
            while sum(t.num_rows for t in held) >= size:
                joined = pa.concat_tables(held)
                yield batch_of(joined.slice(0, size))
                held = [joined.slice(size)]
        if sum(t.num_rows for t in held):
            yield batch_of(pa.concat_tables(held))

    def distinct(self, column: str, query: CohortQuery | str = ALL) -> list:
        """Sorted values of a column of `cohort_columns`."""
        return self.sums(query, by=[column])[column].dropna().tolist()

    def sums(
        self, query: CohortQuery | str = ALL, by: Sequence[str] | str = (), metrics: Sequence[str] | str = ()
    ) -> pd.DataFrame:
        """Counts, and sums of metrics over scenarios, kilometres and hours, by group; columns as in Scan.sums."""
        query, by, metrics = as_query(query), _names("by", by), _names("metrics", metrics)
        self._check_columns(by)
        parts = self._admitted(query)
        return self._scan(parts, [META, METRICS] if metrics else [META]).sums(query, by, metrics)

    def drive_sums(self, query: CohortQuery | str = ALL, metrics: Sequence[str] | str = ()) -> pd.DataFrame:
        """Scenarios `n` and sums of metrics of every drive, by drive_id; part by part, for a corpus of any size.

        Args:
            metrics: as in `table`. Where a value is missing, the sum of its drive is, too.
        """
        query, metrics, found = as_query(query), _names("metrics", metrics), []
        for part in self._admitted(query):
            if self._scan([part], [META]).sums(query, (), ())["n"].iloc[0]:
                rows = self.table(query, ["drive_id"], metrics, part=part.id)[["drive_id", *metrics]].assign(n=1)
                found.append(rows.groupby("drive_id").sum(skipna=False))
        if not found:
            raise self._nothing(query)
        return pd.concat(found).groupby(level=0).sum(skipna=False)

    def summary(self) -> dict:
        """What `corpus DIR` prints and writes."""
        from avshift_core.scenario.store.summary import summarize

        return summarize(self)

    def verify(self, files: Iterable[FileEntry]) -> None:
        """Compare files with their hashes, once a process and state of the file."""
        for file in files:
            self._verify(file)

    # Files and parts -----------------------------------------------------------------------------------------------

    def _admitted(self, query: CohortQuery, only: str | None = None) -> list[Part]:
        """Parts that may hold scenarios of a query; with `only` that one."""
        parts = [part for part in self.parts if part.admits(query)]
        if not parts:
            raise self._nothing(query)
        if only is None:
            return parts
        parts = [part for part in parts if part.id == only]
        if not parts:
            raise CorpusError(f"{self.url} has no part '{only}'{_of(query)}.")
        return parts

    def _scan(self, parts: Sequence[Part], tables: Sequence[str]) -> Scan:
        self.verify(part.files[table] for part in parts for table in tables)
        columns = {name for i in {part.column_set for part in parts} for name in self.manifest.column_sets[i]}
        metrics = {name for i in {part.metric_set for part in parts} for name in self.manifest.metric_sets[i]}
        return Scan(cursor(self.location), self.location, parts, frozenset(columns), frozenset(metrics.union(EXPOSURE)))

    def _verify(self, file: FileEntry) -> None:
        try:
            key = (self.location.path(file.path), self.location.state(file.path), file.sha256)
        except OSError:
            raise _changed(file, self.url) from None
        if key in _verified:
            return
        data = self.location.read(file.path)
        if data is None or hashlib.sha256(data).hexdigest() != file.sha256:
            raise _changed(file, self.url)
        _verified.add(key)

    def _file(self, file: FileEntry) -> pq.ParquetFile:
        self.verify([file])
        try:
            path = self.location.path(file.path)
            return pq.ParquetFile(path if self.location.local else pa.BufferReader(self.location.read(file.path)))
        except (OSError, pa.ArrowException, TypeError):
            raise _changed(file, self.url) from None

    def _states(self, parts: Sequence[Part], rows: pd.DataFrame) -> Iterator[pa.Table]:
        """`states` of these rows (columns part, row), one table a row group."""
        for index, chosen in rows.groupby("part", sort=True)["row"]:
            part, wanted, first = parts[int(index)], chosen.to_numpy(), 0
            if STATES not in part.files:
                raise CorpusError(f"{part.n:,} scenarios of {part.area} on {part.day} come from a table of latents and "
                                  "have no states. Choose others, or import their logs.")
            with self._file(part.files[STATES]) as file:
                for group in range(file.num_row_groups):
                    last = first + file.metadata.row_group(group).num_rows
                    inside = wanted[(wanted >= first) & (wanted < last)] - first
                    if len(inside):
                        table = file.read_row_group(group)
                        yield table if len(inside) == last - first else table.take(inside)
                    first = last

    def _latents(self, parts: Sequence[Part], model: str, part: pd.Series, row: pd.Series) -> np.ndarray:
        if not isinstance(model, str) or model not in self.manifest.models:
            raise CorpusError(f"{self.url} has no latents of model '{model}'; found "
                              f"{', '.join(self.manifest.models) or 'none'}. Encode it first.")
        z, part, row = np.empty((len(part), self.manifest.models[model]), np.float32), part.to_numpy(), row.to_numpy()
        for index in np.unique(part):
            file = parts[int(index)].files.get(f"{LATENTS}/{model}")
            if file is None:
                raise CorpusError(f"{self.models[model]:,} of {self.n:,} scenarios have latents of model '{model}', "
                                  "but not all that are asked for. Encode the others too.")
            with self._file(file) as open_file:
                flat = open_file.read(columns=["z"])["z"].combine_chunks().flatten().to_numpy()
            here = part == index
            z[here] = flat.reshape(-1, z.shape[1])[row[here]]
        return z

    # Checks --------------------------------------------------------------------------------------------------------

    def _check_columns(self, columns: Sequence[str]) -> None:
        for name in columns:
            if name not in self.cohort_columns:
                raise CorpusError(f"{self.url} has no column '{name}'; found {', '.join(self.cohort_columns)}.")

    def _check_versions(self, parts: Sequence[Part], metrics: Iterable[str]) -> None:
        sets = [self.manifest.metric_sets[i] for i in sorted({part.metric_set for part in parts})]
        for name in metrics:
            versions = sorted({group[name].version for group in sets if name in group})
            if not versions:
                raise CorpusError(f"Metric '{name}' was not measured in these scenarios. Choose others, or import them "
                                  "again.")
            if len(versions) > 1:
                raise CorpusError(f"Metric '{name}' was measured by versions {', '.join(map(str, versions))} of its "
                                  "definition in these scenarios; they cannot be compared. Import all of them again.")

    def _unknown(self, ids: Iterable[str], query: CohortQuery) -> CorpusError:
        return CorpusError(f"{self.url} has no scenario '{min(ids, default='')}'{_of(query)}.")

    def _nothing(self, query: CohortQuery) -> CorpusError:
        if not self.n:
            return CorpusError(f"{self.url} holds no scenarios. Import some first.")
        have = {name: self.distinct(name) for name in query.chosen()}
        failed = [name for name, allowed in query.chosen().items() if set(allowed).isdisjoint(have[name])]
        known = "; ".join(f"{name} {_listed(have[name])}" for name in failed or have)
        return CorpusError(f"No scenario of {self.url} has {query}. It holds {known}"
                           f"{'' if failed else ', but not these together'}.")


def _changed(file: FileEntry, url: str) -> CorpusError:
    return CorpusError(f"{file.path} of {url} does not have the content that was written (wrong SHA-256). Restore it "
                       "from a copy, or import again into a new folder.")


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
        raise CorpusError(f"'{name}' is not a number in every scenario, so it cannot be a metric. Choose another.")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _names(what: str, value) -> list[str]:
    """One name or several -> list."""
    if isinstance(value, str):
        return [value]
    names = list(value) if isinstance(value, Iterable) else [value]
    for name in names:
        if not isinstance(name, str):
            raise CorpusError(f"'{what}' holds {name!r:.60}; give names as text, such as ['name'].")
    return [str(name) for name in names]


def _listed(values: Sequence) -> str:
    return ", ".join(map(str, values[:SHOWN])) + (f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else "")


def _of(query: CohortQuery) -> str:
    return f" with {query}" if query != ALL else ""


def _scenarios(table: pa.Table) -> Iterator[Scenario]:
    batch = batch_of(table)
    return (batch.scenario(i) for i in range(batch.n))
