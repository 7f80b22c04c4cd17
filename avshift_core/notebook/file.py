"""The SQLite file of a notebook: where it lies, its tables, and its errors as sentences.

Several processes, on several machines with a shared folder, may read and write it. It keeps SQLite's rollback journal:
a write-ahead log needs memory that all of them share, and cannot be read in a folder without the right to write. A
write is acknowledged when it is on the disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from avshift_core.notebook.entries import LONGEST_ADDRESS, LONGEST_COMMENT, LONGEST_NAME, STATUSES, NotebookError
from avshift_core.scenario.store.location import locate
from avshift_core.workspace import Workspace, open_workspace

BESIDE = "-notes.sqlite"  # follows the folder of the corpus
FOLDER = "notebooks"  # in the dashboard's own folder, for corpora beside which nothing can be written
APPLICATION, SCHEMA = 0x41565348, 1
BUSY_S = 20.0  # to wait for somebody else's write

_LIST = ", ".join(f"'{status}'" for status in STATUSES)
TABLES = (
    """CREATE TABLE looks (
        number INTEGER PRIMARY KEY, "when" TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,
        target TEXT NOT NULL, latents TEXT NOT NULL, settings TEXT NOT NULL, run TEXT NOT NULL,
        fingerprint TEXT NOT NULL, verdict TEXT NOT NULL, gamma_hat REAL, gamma_lcb REAL, gamma_ucb REAL,
        metrics TEXT NOT NULL, config TEXT NOT NULL, engine TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (kind, run))""",
    f"""CREATE TABLE notes (
        id INTEGER PRIMARY KEY, run TEXT NOT NULL, region INTEGER NOT NULL, version INTEGER NOT NULL,
        name TEXT NOT NULL CHECK (length(name) <= {LONGEST_NAME}),
        comment TEXT NOT NULL CHECK (length(comment) <= {LONGEST_COMMENT}),
        status TEXT NOT NULL CHECK (status IN ({_LIST})), changed TEXT NOT NULL, aside INTEGER NOT NULL,
        UNIQUE (run, region, version))""",
    f"""CREATE TABLE saved (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE CHECK (length(name) <= {LONGEST_NAME}),
        page TEXT NOT NULL, address TEXT NOT NULL CHECK (length(address) <= {LONGEST_ADDRESS}),
        fingerprint TEXT NOT NULL, run TEXT NOT NULL, created TEXT NOT NULL, changed TEXT NOT NULL,
        version INTEGER NOT NULL)""",
)
# REPLACE removes rows without asking the trigger of a removal, so what would replace a row is refused as well.
KEPT = tuple(
    f"CREATE TRIGGER {table}_{event.lower()} BEFORE {event} ON {table} {when} "
    f"BEGIN SELECT RAISE(ABORT, '{table} can only be added to'); END"
    for table, key in (("looks", "number = NEW.number OR (kind = NEW.kind AND run = NEW.run)"),
                       ("notes", "id = NEW.id OR (run = NEW.run AND region = NEW.region AND version = NEW.version)"))
    for event, when in (("UPDATE", ""), ("DELETE", ""), ("INSERT", f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key})"))
)


def path_of(corpus_url: str, workspace: Workspace | None = None) -> Path:
    """Beside the folder of the corpus, or in the dashboard's own folder where nothing can be written there."""
    location = locate(corpus_url)
    place = os.path.realpath(location.root) if location.local else location.absolute
    if location.local:
        beside = Path(f"{place}{BESIDE}")
        if beside.exists() or os.access(beside.parent, os.W_OK):
            return beside
    workspace = workspace or open_workspace()
    slug = re.sub(r"[^A-Za-z0-9]+", "-", place.rstrip("/").rsplit("/", 1)[-1]).strip("-")[:40] or "corpus"
    return workspace.folder.resolve() / FOLDER / f"{slug}-{hashlib.sha256(place.encode()).hexdigest()[:12]}.sqlite"


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """A state of the file that nobody changes meanwhile; None when nothing was ever written."""
    with _errors(path, "read"):
        if not path.exists():
            yield None
            return
        with closing(_connect(path, "rw")) as db:  # what a killed writer left half done is undone by the next reader
            db.execute("PRAGMA query_only = ON")
            db.execute("BEGIN")
            try:
                yield None if _blank(db, path) else db
            except (ValueError, TypeError, IndexError) as error:  # columns or values that no notebook has
                raise sqlite3.DatabaseError(str(error)) from None


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """The only writer; what it has written is there wholly, and on the disk, when the block ends, or not at all."""
    with _errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(_connect(path, "rwc")) as db:
            db.execute("PRAGMA synchronous = EXTRA")
            db.execute("BEGIN IMMEDIATE")
            try:
                if _blank(db, path):
                    _make(db)
                elif (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                    raise sqlite3.DatabaseError(found)
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=BUSY_S, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA trusted_schema = OFF")
    return db


def _blank(db: sqlite3.Connection, path: Path) -> bool:
    """Whether there are no tables yet; what is no notebook, or a newer one, is refused."""
    application, schema = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if application == 0 and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return True
    if application != APPLICATION:
        raise NotebookError(f"{path} is not a notebook of AVShift. Move it elsewhere; it was not touched.")
    if schema > SCHEMA:
        raise NotebookError(f"{path} was written with schema {schema}, and this version reads up to {SCHEMA}. Update "
                            "AVShift to open it; it was not touched.")
    return False


def _make(db: sqlite3.Connection) -> None:
    for statement in (*TABLES, *KEPT, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {SCHEMA}"):
        db.execute(statement)


@contextmanager
def _errors(path: Path, action: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise NotebookError(_sentence(error, path, action)) from None
    except OSError as error:
        raise NotebookError(f"{path} cannot be {action}: {error.strerror or error}. See that the folder is there and "
                            "may be written to.") from None


def _sentence(error: sqlite3.Error, path: Path, action: str) -> str:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # the low byte is the kind of the error
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"{path} is being written by somebody else for more than {BUSY_S:g} s. Try again."
    if code == sqlite3.SQLITE_FULL:
        return (f"{path} cannot be written: no space is left. What was saved before is intact; free some space and try "
                "again.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR):
        return (f"{path} cannot be {action} ({error}). What was saved before is intact; see that the file and its "
                "folder may be written to.")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return f"{path} does not take this: {error}."
    return (f"{path} is damaged ({error}). Restore it from a copy, or move it elsewhere to begin a new one; it was not "
            "touched.")
