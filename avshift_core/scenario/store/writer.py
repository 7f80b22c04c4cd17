"""Writing a corpus: scenarios are buffered by day and area, parts are written whole, and the manifest is the commit."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core import __version__
from avshift_core.errors import CorpusError
from avshift_core.scenario.measure.metrics import METRICS as KNOWN
from avshift_core.scenario.schema import ScenarioBatch
from avshift_core.scenario.store.columns import FIXED_POINT, ROW_GROUP, parquet_bytes, states_table
from avshift_core.scenario.store.location import LOCK, Location, locate, only_writer
from avshift_core.scenario.store.manifest import (
    FOLDERS,
    LATENTS,
    META,
    METRICS,
    NAME,
    SKIPPED_KEPT,
    STATES,
    Definition,
    FileEntry,
    Manifest,
    Part,
    SourceEntry,
    from_bytes,
    to_bytes,
)
from avshift_core.scenario.store.rows import meta_table, metrics_table, plain_meta_table, plain_metrics_table

BUFFER_BYTES = 192 * 1024**2  # Arrow bytes held before parts are written; about 6,000 scenarios of 16 agents
MAX_NAME = 120  # bytes of a folder name; file systems allow 255
Group = tuple[str, str, int, int, tuple[str, ...]]  # day, area, metric set, column set, names of the tables


@contextmanager
def create_or_open(url) -> Iterator[CorpusWriter]:
    """The one writer of a corpus; commits on the way out, and leaves the last commit as it is when anything fails."""
    location = locate(url)
    with only_writer(location):
        writer = CorpusWriter(location)
        try:
            yield writer
            writer.commit()
        except BaseException:
            writer.abort()
            raise


class CorpusWriter:
    """Adds scenarios, and latents of scenarios, to a corpus. Nothing is visible before `commit`.

    Attributes:
        manifest: the state of the last commit.
        pending: how many scenarios were added since.
    """

    def __init__(self, location: Location) -> None:
        self.location, self.manifest, self.pending = location, Manifest(created_by=__version__), 0
        data = location.read(NAME)
        files = location.list() if location.exists() else {}
        if data is not None:
            self.manifest = from_bytes(data, location.url)
        else:
            _check_free(location.url, files)
        known = self.manifest.files
        self.location.remove(name for name in files if name not in known and _is_ours(name))
        self._known: np.ndarray | None = None  # sorted hashes of the committed scenario ids
        self._begun = False  # whether the first manifest is ours
        self._reset()

    def _reset(self) -> None:
        self._buffers: dict[Group, list[dict[str, pa.Table]]] = {}
        self._bytes: dict[Group, int] = {}
        self._parts: list[Part] = []
        self._encoded: dict[str, Part] = {}
        self._written: list[str] = []
        self._sources: dict[str, SourceEntry] = {}
        self._skipped: list[str] = []
        self._forgotten: dict[str, str] = {}
        self._recent: dict[int, str] = {}
        self._models: dict[str, int] = {}
        self._metric_sets, self._column_sets = list(self.manifest.metric_sets), list(self.manifest.column_sets)
        self.pending = 0

    def done(self, source: str) -> bool:
        """Whether this piece of a log is wholly in the corpus already."""
        return source in self.manifest.sources

    def add(
        self, batch: ScenarioBatch, attributes: Mapping[str, np.ndarray], metrics: Mapping[str, np.ndarray], *,
        source: str | Sequence[str] = "", label: str | Sequence[str] | None = None,
    ) -> None:
        """Buffer a batch.

        Args:
            attributes, metrics: name -> (n,) values; metrics that measure/metrics.py does not define get version 0.
            source: key of the piece of a log, one for all or one each; it counts as done with the next commit.
            label: what messages call it; the key without it.
        """
        keys = _each(source, batch.n)
        labels = keys if label is None else _each(label, batch.n)
        ids = [item.scenario_id for item in batch.ids]
        self._claim(ids, labels)
        tables = {STATES: states_table(batch), META: meta_table(batch, attributes, labels),
                  METRICS: metrics_table(batch, metrics)}
        self._buffer(tables, metrics, keys)

    def add_table(
        self, ids: pd.DataFrame, attributes: pd.DataFrame, metrics: Mapping[str, np.ndarray], z: np.ndarray, *,
        model: str, source: str, label: str | None = None,
    ) -> None:
        """Buffer scenarios that come without states: ids (n rows, columns of ID_FIELDS), latents z (n, d)."""
        self._claim(ids["scenario_id"].tolist(), _each(label or source, len(ids)))
        tables = {META: plain_meta_table(ids, attributes, _each(label or source, len(ids))),
                  METRICS: plain_metrics_table(ids, metrics),
                  f"{LATENTS}/{self._model(model, z)}": _latent_table(ids["scenario_id"], z)}
        self._buffer(tables, metrics, _each(source, len(ids)))

    def write_latents(self, model: str, part: str, z: np.ndarray) -> None:
        """Latents (n, d) of a committed part, in its row order; visible with the next commit."""
        committed = {p.id: p for p in self.manifest.parts}
        if part not in committed:
            raise CorpusError(f"{self.location.url} has no part '{part}'; commit scenarios before you encode them.")
        old = self._encoded.get(part, committed[part])
        name = f"{LATENTS}/{self._model(model, z)}"
        if len(z) != old.n:
            raise CorpusError(f"Part '{part}' holds {old.n:,} scenarios and {len(z):,} latents were given; one each.")
        if name in old.files:
            raise CorpusError(f"Part '{part}' has latents of model '{model}' already.")
        ids = pq.read_table(pa.BufferReader(self._bytes_of(old.files[META])), columns=["scenario_id"])["scenario_id"]
        file = self._write(old.id, old.day, old.area, name, _latent_table(ids.to_pylist(), z))
        self._encoded[part] = replace(old, files={**old.files, name: file})

    def skip(self, source: str, sentences: Sequence[str]) -> None:
        """Note what was left out of a piece of a log; with no sentence it is just done."""
        entry = self._sources.get(source, SourceEntry(0))
        self._sources[source] = replace(entry, skipped=entry.skipped + len(sentences))
        self._skipped += sentences

    def forget(self, source: str, label: str) -> None:
        """Drop what was noted as left out of an earlier state of a piece; its sentences begin with its label."""
        self._forgotten[source] = label

    def duplicates(self, ids: Sequence[str], labels: Sequence[str]) -> dict[int, str]:
        """Position of each id that is in the corpus, or earlier in `ids`, already -> what holds it."""
        hashes = _hashes(ids)
        if self._known is None:
            self._known = np.sort(np.concatenate([_hashes(self._ids_of(part)) for part in self.manifest.parts]
                                                 or [np.zeros(0, np.uint64)]))
        place = np.minimum(np.searchsorted(self._known, hashes), max(len(self._known) - 1, 0))
        committed = self._known[place] == hashes if len(self._known) else np.zeros(len(hashes), bool)
        found, seen = {}, {}
        for i, value in enumerate(hashes.tolist()):
            holder = seen.get(value) or self._recent.get(value) or (committed[i] and self._source_of(ids[i]))
            if holder:
                found[i] = holder
            else:
                seen[value] = labels[i] or "this import"
        return found

    def commit(self) -> None:
        """Write what is buffered, then the manifest; from then on all of it is the corpus."""
        for group in list(self._buffers):
            self._flush(group)
        if not (self._parts or self._encoded or self._sources):
            return
        current = self.location.read(NAME)
        revision = from_bytes(current, self.location.url).revision if current is not None else 0
        if revision != self.manifest.revision:
            raise CorpusError(f"Another import has written {self.location.url} (revision {revision}; this one began at "
                              f"{self.manifest.revision}). Run the same command again to add to it.")
        old = _without(self.manifest, self._forgotten)
        sources = dict(old.sources)
        for key, entry in self._sources.items():
            before = sources.get(key, SourceEntry(0))
            sources[key] = SourceEntry(before.n + entry.n, before.skipped + entry.skipped)
        new = replace(
            old, revision=old.revision + 1, created_by=__version__,
            parts=(*(self._encoded.get(part.id, part) for part in old.parts), *self._parts),
            metric_sets=tuple(self._metric_sets), column_sets=tuple(self._column_sets), sources=sources,
            models={**old.models, **self._models}, skipped=(*old.skipped, *self._skipped)[:SKIPPED_KEPT],
            n_skipped=old.n_skipped + len(self._skipped),
        )
        self.location.sync(self._written)
        self.location.replace(NAME, to_bytes(new))
        if self._known is not None:
            recent = np.sort(np.fromiter(self._recent, np.uint64, len(self._recent)))
            self._known = np.sort(np.concatenate([self._known, recent]), kind="stable")  # merges the two sorted runs
        self.manifest = new
        self._reset()

    def abort(self) -> None:
        """Remove the files that no commit lists; after an interrupt only the manifest knows which was the last."""
        try:
            data = self.location.read(NAME)
            current = Manifest() if data is None else from_bytes(data, self.location.url)
        except CorpusError:
            return  # the next writer removes them
        known = current.files
        self.location.remove(name for name in self._written if name not in known)
        if self._begun and current.revision == 0 and not self.location.sizes(self._written):
            self.location.remove([NAME])
        self._reset()

    # Buffers and parts ---------------------------------------------------------------------------------------------

    def _claim(self, ids: Sequence[str], labels: Sequence[str]) -> None:
        found = self.duplicates(ids, labels)
        if found:
            i, holder = next(iter(found.items()))
            raise CorpusError(f"Scenario '{ids[i]}' of {labels[i] or 'this import'} is in the corpus already, from "
                              f"{holder}. Give each scenario one id, import into another folder, or leave it out with "
                              "--skip-bad.")
        self._recent.update(zip(_hashes(ids).tolist(), (label or "this import" for label in labels), strict=True))

    def _buffer(self, tables: dict[str, pa.Table], metrics: Mapping, keys: Sequence[str]) -> None:
        meta = tables[META]
        metric_set = _position(self._metric_sets, {name: _definition(name) for name in metrics})
        column_set = _position(self._column_sets, {field.name: str(field.type) for field in meta.schema})
        places = pd.DataFrame({"day": meta["day"].to_pylist(), "area": meta["area"].to_pylist()})
        for (day, area), rows in places.groupby(["day", "area"], sort=False).indices.items():
            group = (day, area, metric_set, column_set, tuple(tables))
            chosen = {name: _rows(table, rows) for name, table in tables.items()}
            self._buffers.setdefault(group, []).append(chosen)
            self._bytes[group] = self._bytes.get(group, 0) + sum(table.nbytes for table in chosen.values())
        for key, count in Counter(filter(None, keys)).items():
            entry = self._sources.get(key, SourceEntry(0))
            self._sources[key] = replace(entry, n=entry.n + count)
        self.pending += len(places)
        while sum(self._bytes.values()) > BUFFER_BYTES:
            self._flush(max(self._bytes, key=self._bytes.get))

    def _flush(self, group: Group) -> None:
        day, area, metric_set, column_set, names = group
        tables = {name: pa.concat_tables([chunk[name] for chunk in self._buffers[group]]) for name in names}
        distinct = lambda column: tuple(sorted(tables[META][column].unique().to_pylist()))  # noqa: E731
        identity = uuid.uuid4().hex[:16]
        files = {name: self._write(identity, day, area, name, table) for name, table in tables.items()}
        self._parts.append(Part(identity, day, area, tables[META].num_rows, files, distinct("period"),
                                distinct("av_version"), metric_set, column_set))
        del self._buffers[group], self._bytes[group]

    def _begin(self) -> None:
        """Write a first, empty manifest: parts without any manifest are then always those of one that was lost."""
        if self.manifest.revision == 0 and not self._begun and self.location.read(NAME) is None:
            self._begun = True
            self.location.replace(NAME, to_bytes(self.manifest))

    def _write(self, part: str, day: str, area: str, table: str, rows: pa.Table) -> FileEntry:
        numbers = FIXED_POINT if table == STATES else ("z",) if table.startswith(LATENTS) else ()
        data = parquet_bytes(rows, numbers, ROW_GROUP if table == STATES else None)
        path = f"{table}/day={_folder(day)}/area={_folder(area)}/{part}.parquet"
        self._begin()
        self._written.append(path)
        self.location.write(path, data)
        return FileEntry(path, len(data), hashlib.sha256(data).hexdigest())

    def _model(self, model: str, z: np.ndarray) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}", model):
            raise CorpusError(f"'{model}' cannot name a model; use letters, digits, '-', '_' and '.'.")
        width = self.manifest.models.get(model, self._models.get(model, z.shape[1]))
        if width != z.shape[1]:
            raise CorpusError(f"Latents of '{model}' have {width} numbers a scenario in {self.location.url}, and these "
                              f"have {z.shape[1]}. Use one model, or another folder.")
        if not np.isfinite(z).all():
            raise CorpusError(f"Latents of '{model}' hold NaN or infinite values; encode again, or drop these rows.")
        self._models[model] = width
        return model

    # What is in it already -----------------------------------------------------------------------------------------

    def _bytes_of(self, file: FileEntry) -> bytes:
        data = self.location.read(file.path)
        if data is None or len(data) != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
            raise CorpusError(f"{file.path} of {self.location.url} is missing or damaged. Restore it from a copy, or "
                              "import again into a new folder.")
        return data

    def _ids_of(self, part: Part) -> list[str]:
        table = pq.read_table(pa.BufferReader(self._bytes_of(part.files[META])), columns=["scenario_id"])
        return table["scenario_id"].to_pylist()

    def _source_of(self, scenario_id: str) -> str | None:
        for part in self.manifest.parts:
            table = pq.read_table(pa.BufferReader(self._bytes_of(part.files[META])), columns=["scenario_id", "source"])
            ids = table["scenario_id"].to_pylist()
            if scenario_id in ids:
                return table["source"][ids.index(scenario_id)].as_py() or "an earlier import"
        return None


def _each(value: str | Sequence[str], n: int) -> list[str]:
    return [value] * n if isinstance(value, str) else list(value)


def _hashes(ids: Sequence[str]) -> np.ndarray:
    """(n,) uint64; eight bytes an id, so that a million of them stay small."""
    return pd.util.hash_array(np.array(ids, dtype=object), categorize=False)


def _rows(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Some rows, without a copy where they stand together."""
    together = rows[-1] - rows[0] + 1 == len(rows)
    return table.slice(rows[0], len(rows)) if together else table.take(rows)


def _latent_table(ids: Sequence[str], z: np.ndarray) -> pa.Table:
    flat = pa.array(np.ascontiguousarray(z, dtype=np.float32).ravel())
    return pa.table({"scenario_id": pa.array(list(ids)), "z": pa.FixedSizeListArray.from_arrays(flat, z.shape[1])})


def _definition(name: str) -> Definition:
    metric = KNOWN.get(name)
    return Definition() if metric is None else Definition(metric.version, metric.unit, metric.M, metric.needs_hz)


def _position(known: list, value: dict) -> int:
    if value not in known:
        known.append(value)
    return known.index(value)


def _folder(name: str) -> str:
    """A name from a log as one safe path component; the true name stays in the data.

    >>> _folder("Harbor/East: 2"), _folder("..")
    ('Harbor%2FEast%3A%202', '%2E%2E')
    """
    safe = quote(name, safe="").replace(".", "%2E") if name.strip(".") == "" else quote(name, safe="")
    return safe if len(safe) <= MAX_NAME else f"{safe[:MAX_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _without(manifest: Manifest, forgotten: Mapping[str, str]) -> Manifest:
    """The manifest without what it says was left out of these pieces (key -> label)."""
    sources, skipped, n_skipped = dict(manifest.sources), list(manifest.skipped), manifest.n_skipped
    for key, label in forgotten.items():
        entry = sources.pop(key)
        if entry.n:
            sources[key] = replace(entry, skipped=0)
        n_skipped -= entry.skipped
        for sentence in [s for s in skipped if s.startswith(label)][:entry.skipped]:
            skipped.remove(sentence)
    return replace(manifest, sources=sources, skipped=tuple(skipped), n_skipped=n_skipped)


def _check_free(url: str, files: Iterable[str]) -> None:
    """A folder without a manifest may hold the lock and drafts of a killed import, and nothing else."""
    others = [name for name in files if name != LOCK and not _is_draft(name)]
    if any(name.split("/")[0] in FOLDERS for name in others):
        raise CorpusError(f"{url} holds parts of a corpus but no {NAME}. Restore {NAME} from a copy, or choose a new "
                          "folder; nothing was touched.")
    if others:
        raise CorpusError(f"{url} holds files but no corpus. Choose an empty or a new folder.")


def _is_draft(name: str) -> bool:
    name = name.rsplit("/", 1)[-1]
    return re.fullmatch(r"\.(manifest\.json|[0-9a-f]{16}\.parquet)\.[0-9a-f]{8}\.tmp", name) is not None


def _is_ours(name: str) -> bool:
    """A part, or the draft of one or of the manifest; nothing else is ever removed."""
    part = re.fullmatch(r"[0-9a-f]{16}\.parquet", name.rsplit("/", 1)[-1]) and name.split("/")[0] in FOLDERS
    return bool(part) or _is_draft(name)
