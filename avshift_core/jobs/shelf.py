"""The shelf of corpora that the dashboard offers: what may be put there, under which name, and where imports go."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from avshift_core.errors import AVShiftError, CorpusError, LogError
from avshift_core.files import write_whole
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.workspace import Workspace

LONGEST_NAME = 60
MAX_UPLOAD_MB = 200  # of a table; larger ones are imported by path, which does not pass through the browser
NAME = re.compile(r"[\w .,&()+-]+")


@dataclass(frozen=True)
class TablePeek:
    """What a table of latents holds.

    Attributes:
        n, d: scenarios and numbers of a latent. n_drives: 0 when there is no drive column.
        known: ids that the table tells. numeric: other columns that could be metrics. other: all remaining ones.
    """

    n: int
    d: int
    n_drives: int
    known: tuple[str, ...]
    numeric: tuple[str, ...]
    other: tuple[str, ...]


def check_name(name: str, taken: Collection[str] = ()) -> str:
    """A name for a corpus without what no list should show; refused when it is taken."""
    name = " ".join(name.split())
    if not name:
        raise CorpusError("The corpus has no name yet; give it one, such as 'Harbor, spring'.")
    if len(name) > LONGEST_NAME or not NAME.fullmatch(name):
        raise CorpusError(f"'{name[:LONGEST_NAME]}' is no name for a corpus: use at most {LONGEST_NAME} letters, "
                          "digits, spaces and . , & ( ) + - _.")
    if name in taken:
        raise CorpusError(f"There is a corpus called '{name}' already; choose another name, or remove that one from "
                          "the list first.")
    return name


def corpus_folder(workspace: Workspace, name: str, source: str) -> str:
    """Where an import goes: the corpus of that name on the shelf, or a folder of the dashboard.

    The folder is the same for the same name and source, so that an import that was stopped goes on; what lies there
    from another source is never mixed in.
    """
    known = workspace.corpora.read().get(name)
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "corpus"
    own = hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()[:8]
    return str(known or (workspace.folder / "corpora" / f"{slug}-{own}").resolve())


def add_corpus(workspace: Workspace, name: str, url: str, taken: Collection[str] = ()) -> str:
    """Put a corpus on the shelf and return its name; it has to open."""
    url = url.strip()
    is_path = url and "://" not in url and "::" not in url
    corpus = open_corpus(os.path.abspath(os.path.expanduser(url)) if is_path else url)
    name = check_name(name or Path(url.rstrip("/")).name, {*taken, *workspace.corpora.read()})
    workspace.corpora.update(lambda old: {**old, name: corpus.url})
    return name


def remove_corpus(workspace: Workspace, name: str) -> None:
    """Take a corpus off the shelf; its files stay."""
    workspace.corpora.update(lambda old: {key: url for key, url in old.items() if key != name})


def check_source(path: str) -> str:
    """A path to import from; refused when nothing is there."""
    path = path.strip()
    if not path:
        raise LogError("There is no path yet; give the file, folder or zip archive of the logs on this machine.")
    full = os.path.abspath(os.path.expanduser(path))
    if not os.path.exists(full):
        raise LogError(f"{path} does not exist on this machine. Give the file, folder or zip archive of the logs.")
    return full


def peek_table(path: str | Path) -> TablePeek:
    """Look at a table of latents before it is imported; refused with a sentence when it is none."""
    from avshift_core.scenario.readers.latents import read_table

    try:
        table = read_table(path)
    except AVShiftError:
        raise
    except (ValueError, OSError, RecursionError, MemoryError) as error:  # what parsers raise on damaged files
        raise LogError(f"{Path(path).name} cannot be read as a table: {str(error).splitlines()[0][:200]}. Give a "
                       "Parquet or CSV file with one row per scenario.") from None
    numeric = tuple(str(c) for c in table.attributes.columns if _is_number(table.attributes[c]))
    known = tuple(name for name in ID_FIELDS if (table.ids[name].astype(str) != UNKNOWN).any()
                  and name not in ("scenario_id", "category", "hour"))
    return TablePeek(
        table.n, table.z.shape[1], table.ids["drive_id"].nunique() if table.has_drives else 0, known, numeric,
        tuple(str(c) for c in table.attributes.columns if str(c) not in numeric))


def _is_number(column) -> bool:
    if column.dtype == bool or not np.issubdtype(np.asarray(column.head(1)).dtype, np.number):
        return column.dtype == bool
    return bool(np.isfinite(column.to_numpy(dtype=float)).all())


def uploads_size(workspace: Workspace) -> int:
    """Bytes of uploaded files; a corpus made of them is elsewhere and does not need them any more."""
    return sum(path.stat().st_size for path in (workspace.folder / "uploads").rglob("*") if path.is_file())


def clear_uploads(workspace: Workspace) -> None:
    """Remove all uploaded files; what cannot be removed now stays for the next time."""
    for folder in (workspace.folder / "uploads").iterdir():
        shutil.rmtree(folder, ignore_errors=True)


def write_mapping(beside: str | Path, metrics: Sequence[str]) -> str:
    """A mapping file that names these columns as metrics, beside an upload; "" without metrics."""
    if not metrics:
        return ""
    path = Path(beside).with_suffix(".mapping.json")
    text = json.dumps({"metrics": {"columns": list(metrics)}}, indent=2)
    write_whole(path, lambda draft: Path(draft).write_text(text, encoding="utf-8"))
    return str(path)
