"""The manifest: the one file that says what a corpus holds; everything that it does not list does not exist."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from avshift_core.errors import CorpusError
from avshift_core.scenario.store.query import CohortQuery

NAME = "manifest.json"
KIND = "avshift corpus"
SCHEMA = 1
STATES, META, METRICS, LATENTS = "states", "meta", "metrics", "latents"
FOLDERS = (STATES, META, METRICS, LATENTS)
PATH = re.compile(r"(?:states|meta|metrics|latents/[A-Za-z0-9_-][A-Za-z0-9_.-]*)/day=[^/\\:\0]+/area=[^/\\:\0]+/"
                  r"([0-9a-f]{16})\.parquet")  # nothing that climbs out of the corpus
SKIPPED_KEPT = 1000  # sentences; the count goes on beyond


@dataclass(frozen=True)
class FileEntry:
    """One Parquet file: path below the corpus, size, SHA-256 of its bytes."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """n scenarios of one day and area; row i is the same scenario in every file.

    Attributes:
        files: `states`, `meta`, `metrics`, `latents/<model>` -> file; a table of ready-made latents has no states.
        periods, av_versions: the distinct values, so that a query opens no file in vain.
        metric_set: index into Manifest.metric_sets; column_set: index into Manifest.column_sets.
    """

    id: str
    day: str
    area: str
    n: int
    files: Mapping[str, FileEntry]
    periods: tuple[str, ...]
    av_versions: tuple[str, ...]
    metric_set: int
    column_set: int

    def admits(self, query: CohortQuery) -> bool:
        """False when none of its scenarios can belong to the query."""
        return all(
            not allowed or not set(allowed).isdisjoint(present) for allowed, present in (
                (query.day, (self.day,)), (query.area, (self.area,)), (query.period, self.periods),
                (query.av_version, self.av_versions))
        )


@dataclass(frozen=True)
class Definition:
    """What a metric's values mean; `version` changes when its formula does. M is None where nobody said it."""

    version: int = 0
    unit: str = ""
    M: float | None = None
    needs_hz: bool = False


@dataclass(frozen=True)
class SourceEntry:
    """What an imported piece of a log gave."""

    n: int
    skipped: int = 0


@dataclass(frozen=True)
class Manifest:
    """What a corpus holds.

    Attributes:
        metric_sets: metric name -> definition; one set for all parts that were measured alike.
        column_sets: column name -> Arrow type of the `meta` files.
        models: model of the latents -> their width.
        sources: key of each piece of a log that is wholly in -> what it gave.
        skipped: the first SKIPPED_KEPT sentences about what was left out; n_skipped counts all.
    """

    revision: int = 0
    parts: tuple[Part, ...] = ()
    metric_sets: tuple[Mapping[str, Definition], ...] = ()
    column_sets: tuple[Mapping[str, str], ...] = ()
    models: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, SourceEntry] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    n_skipped: int = 0
    created_by: str = ""

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def files(self) -> dict[str, FileEntry]:
        """Path -> entry of every file of the corpus."""
        return {file.path: file for part in self.parts for file in part.files.values()}

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the hash of every file: changes with any byte of the data."""
        return hashlib.sha256("\n".join(sorted(file.sha256 for file in self.files.values())).encode()).hexdigest()


def to_bytes(manifest: Manifest) -> bytes:
    """The manifest as one line of JSON that ends with a digest of what stands before."""
    body = {
        "kind": KIND, "schema": SCHEMA, **vars(manifest),
        "parts": [{**vars(part), "files": {table: vars(file) for table, file in part.files.items()}}
                  for part in manifest.parts],
        "metric_sets": [{name: vars(d) for name, d in group.items()} for group in manifest.metric_sets],
        "sources": {key: vars(entry) for key, entry in manifest.sources.items()},
    }
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    return text[:-1] + _seal(text[:-1])


def from_bytes(data: bytes, where: str) -> Manifest:
    """JSON -> manifest, or one sentence on why it is none; `where` is what messages call the corpus."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise CorpusError(f"{NAME} of {where} is truncated or damaged: it is not JSON. Restore it from a copy, or "
                          "import again into a new folder.") from None
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise CorpusError(f"{NAME} of {where} is not the manifest of a corpus. Give a folder that an import has "
                          "written.")
    schema = body.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise CorpusError(f"{where} was written with schema {schema}, and this version reads up to {SCHEMA}. Update "
                          "AVShift to open it.")
    body.pop("digest", None)
    start = data.rfind(b',"digest":')
    if start < 0 or data[start:] != _seal(data[:start]):
        raise CorpusError(f"{NAME} of {where} is damaged: its content does not fit its own digest. Restore it from a "
                          "copy, or import again into a new folder.")
    try:
        return _manifest({key: value for key, value in body.items() if key not in ("kind", "schema")})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{NAME} of {where} is damaged: {error}. Restore it from a copy, or import again into a new "
                          "folder.") from None


def _seal(text: bytes) -> bytes:
    return b',"digest":"' + hashlib.sha256(text).hexdigest().encode() + b'"}\n'


def _manifest(body: dict) -> Manifest:
    manifest = Manifest(**{
        **body, "parts": tuple(map(_part, body["parts"])), "skipped": tuple(body["skipped"]),
        "metric_sets": tuple({name: Definition(**d) for name, d in group.items()} for group in body["metric_sets"]),
        "column_sets": tuple(dict(group) for group in body["column_sets"]), "models": dict(body["models"]),
        "sources": {key: SourceEntry(**entry) for key, entry in body["sources"].items()},
    })
    for part in manifest.parts:
        if META not in part.files or METRICS not in part.files:
            raise ValueError(f"part {part.id} lists no {META} or no {METRICS}")
        if not (0 <= part.metric_set < len(manifest.metric_sets) and 0 <= part.column_set < len(manifest.column_sets)):
            raise ValueError(f"part {part.id} points to a definition that is not there")
    if len(manifest.files) != sum(len(part.files) for part in manifest.parts):
        raise ValueError("two parts share a file")
    return manifest


def _part(body: dict) -> Part:
    files = {table: FileEntry(**entry) for table, entry in body["files"].items()}
    for file in files.values():
        match = PATH.fullmatch(file.path)
        if match is None or match[1] != body["id"] or not isinstance(file.bytes, int):
            raise ValueError(f"'{file.path}' is no path of a part inside of the corpus")
    return Part(**{**body, "files": files, "periods": tuple(body["periods"]),
                   "av_versions": tuple(body["av_versions"])})
