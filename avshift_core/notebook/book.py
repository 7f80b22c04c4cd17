"""The notebook of a corpus. Every method may be called by any thread of any process at any time."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from avshift_core.notebook.entries import (
    ASIDE,
    LONGEST_ADDRESS,
    MERGED,
    NONE,
    SAME,
    SAVED,
    STATUSES,
    TEXTS,
    Count,
    Look,
    NotebookError,
    RegionNote,
    SavedView,
    Written,
    line,
    lines,
    now,
)
from avshift_core.notebook.file import path_of, reading, writing
from avshift_core.workspace import Workspace

LOOK = tuple(field.name for field in fields(Look))
GAMMAS = ("gamma_hat", "gamma_lcb", "gamma_ucb")
VIEW = tuple(field.name for field in fields(SavedView))
MOST_SAVED = 1000  # views; a list that nobody reads needs no more


def open_notebook(corpus_url: str, workspace: Workspace | None = None) -> Notebook:
    """The notebook of a corpus; nothing is made before something is written.

    Args:
        workspace: whose folder holds it where nothing can be written beside the corpus; that of this server without it.
    """
    return Notebook(path_of(corpus_url, workspace))


@dataclass(frozen=True)
class Notebook:
    """Ledger, notes on regions and saved views in one SQLite file."""

    path: Path

    # The ledger ------------------------------------------------------------------------------------------------------

    def record(self, look: Look) -> Look:
        """Add a look to the ledger, and return it as it stands there; the same run again is the look there was."""
        if (known := self._look(look)) is not None:
            return known
        look = _sound(look)
        with writing(self.path) as db:
            if (known := _find(db, look)) is not None:
                return known
            last = db.execute("SELECT number, digest FROM looks ORDER BY number DESC LIMIT 1").fetchone()
            before = (0, "") if last is None else tuple(last)
            look = replace(look, number=before[0] + 1, digest=look.sealed_after(before[1]))
            _insert(db, "looks", {name: getattr(look, name) for name in LOOK})
        return look

    def looks(self) -> tuple[Look, ...]:
        """Every look at the corpus, the first one first."""
        with reading(self.path) as db:
            rows = () if db is None else db.execute(f"SELECT {_names(LOOK)} FROM looks ORDER BY number")
            return tuple(map(_look_of, rows))

    def count(self, source: str, target: str) -> Count:
        """How many looks there were."""
        with reading(self.path) as db:
            if db is None:
                return Count(0, 0)
            same = "(source = ? AND target = ?) OR (source = ? AND target = ?)"
            return Count(*db.execute(f"SELECT count(*), count(*) FILTER (WHERE {same}) FROM looks",
                                     (source, target, target, source)).fetchone())

    def broken_at(self) -> int | None:
        """The first look whose digest does not fit, because somebody changed the file by hand; None when all fit."""
        digest = ""
        for place, look in enumerate(self.looks(), 1):
            digest = look.sealed_after(digest)
            if (look.number, look.digest) != (place, digest):
                return place
        return None

    def _look(self, look: Look) -> Look | None:
        with reading(self.path) as db:
            return None if db is None else _find(db, look)

    # Notes on regions ------------------------------------------------------------------------------------------------

    def region_notes(self, run: str) -> dict[int, RegionNote]:
        """Region -> what its note says now; regions without one are not in it."""
        with reading(self.path) as db:
            rows = () if db is None else db.execute(
                "SELECT * FROM notes WHERE run = ? AND NOT aside ORDER BY version", (run,))
            return {note.region: note for note in map(_note_of, rows)}

    def earlier_notes(self, run: str, source: str, target: str) -> tuple[tuple[str, RegionNote], ...]:
        """(run, note) of other runs that compared the same two cohorts, the newest first."""
        with reading(self.path) as db:
            rows = () if db is None else db.execute(
                "SELECT * FROM notes WHERE NOT aside AND run != ? AND run IN (SELECT run FROM looks WHERE source = ? "
                "AND target = ?) ORDER BY version", (run, source, target))
            last = {(str(row["run"]), note.region): note for row in rows for note in (_note_of(row),)}
        said = [(of, note) for (of, _), note in last.items() if note.texts != RegionNote(0).texts]
        return tuple(sorted(said, key=lambda found: found[1].changed, reverse=True))

    def history(self, run: str, region: int) -> tuple[RegionNote, ...]:
        """All that was ever written about a region, the newest first."""
        with reading(self.path) as db:
            rows = () if db is None else db.execute(
                "SELECT * FROM notes WHERE run = ? AND region = ? ORDER BY version DESC", (run, region))
            return tuple(map(_note_of, rows))

    def write_note(
        self, run: str, region: int, *, name: str = "", comment: str = "", status: str = NONE, seen: int = 0
    ) -> Written:
        """Write what a note is to say. Nothing that anybody wrote is lost, whoever writes at the same time.

        Args:
            seen: version of the note that the writer had before them, 0 for none. When it has changed since, words that
                only one of both has changed are merged; otherwise this text is kept aside, in the history.
        """
        if status not in STATUSES:
            raise NotebookError(f"'{status!s:.40}' is no status of a region; choose one of {', '.join(STATUSES)}.")
        mine = RegionNote(int(region), line("name", name), lines("comment", comment), status, now())
        with writing(self.path) as db:
            rows = db.execute("SELECT * FROM notes WHERE run = ? AND region = ? ORDER BY version",
                              (run, mine.region)).fetchall()
            every = [RegionNote(mine.region), *map(_note_of, rows)]
            current = next(note for note in reversed(every) if not note.aside)
            base = next((note for note in every if note.version == seen), every[0])
            outcome, texts = _joined(mine, current, base)
            if outcome == SAME:
                return Written(SAME, current, mine)
            written = replace(mine, **dict(zip(TEXTS, texts, strict=True)), version=every[-1].version + 1,
                              aside=outcome == ASIDE)
            _insert(db, "notes", {"run": run, **vars(written)})
        return Written(outcome, current if outcome == ASIDE else written, mine)

    # Saved views -----------------------------------------------------------------------------------------------------

    def saved(self) -> tuple[SavedView, ...]:
        """All saved views, by name."""
        with reading(self.path) as db:
            rows = () if db is None else db.execute(
                f"SELECT {_names(VIEW)} FROM saved ORDER BY name COLLATE NOCASE, id LIMIT ?", (MOST_SAVED,))
            return tuple(map(_view_of, rows))

    def save_view(self, name: str, page: str, address: str, *, fingerprint: str, run: str) -> SavedView:
        """Keep a view under a name that no other has."""
        name, at = _given(name), now()
        if len(address) > LONGEST_ADDRESS:
            raise NotebookError(f"The address of this view has {len(address):,} characters, and at most "
                                f"{LONGEST_ADDRESS:,} are kept. Select less on the map, or choose fewer values.")
        with writing(self.path) as db:
            _check_free(db, name)
            if db.execute("SELECT count(*) FROM saved").fetchone()[0] >= MOST_SAVED:
                raise NotebookError(f"{MOST_SAVED:,} views are saved already. Remove some that nobody needs.")
            view = SavedView(0, name, page, address, fingerprint, run, at, at, 1)
            row = _insert(db, "saved", {key: value for key, value in vars(view).items() if key != "id"})
        return replace(view, id=row)

    def rename_view(self, view: SavedView, name: str) -> None:
        """Give a view another name; refused when somebody else has changed it meanwhile."""
        name = _given(name)
        with writing(self.path) as db:
            _check_unchanged(db, view)
            _check_free(db, name, view.id)
            db.execute("UPDATE saved SET name = ?, changed = ?, version = version + 1 WHERE id = ?",
                       (name, now(), view.id))

    def remove_view(self, view: SavedView) -> None:
        """Forget a view; refused when somebody else has changed it meanwhile."""
        with writing(self.path) as db:
            _check_unchanged(db, view)
            db.execute("DELETE FROM saved WHERE id = ?", (view.id,))


def _joined(mine: RegionNote, current: RegionNote, base: RegionNote) -> tuple[str, tuple[str, ...]]:
    """What becomes of a text that was written with `base` at hand while the note says `current`."""
    if mine.texts == current.texts:
        return SAME, mine.texts
    if current.version == base.version:
        return SAVED, mine.texts
    both = zip(mine.texts, current.texts, base.texts, strict=True)
    if any(new != old and theirs not in (old, new) for new, theirs, old in both):
        return ASIDE, mine.texts
    joined = tuple(theirs if new == old else new for new, theirs, old in zip(
        mine.texts, current.texts, base.texts, strict=True))
    return (SAME if joined == current.texts else MERGED), joined


def _sound(look: Look) -> Look:
    """As it can be kept: no lone halves of characters, no numbers that are none."""
    kept = {}
    for name in LOOK:
        value = getattr(look, name)
        if isinstance(value, str):
            kept[name] = value.encode("utf-8", "replace").decode()
        elif isinstance(value, float) and not math.isfinite(value):
            kept[name] = None
    return replace(look, **kept)


def _find(db: sqlite3.Connection, look: Look) -> Look | None:
    row = db.execute(f"SELECT {_names(LOOK)} FROM looks WHERE kind = ? AND run = ?", (look.kind, look.run)).fetchone()
    return None if row is None else _look_of(row)


# Rows of a file that somebody may have changed by hand: `reading` takes what does not fit for damage.


def _look_of(row: sqlite3.Row) -> Look:
    numbers = {name: None if row[name] is None else float(row[name]) for name in GAMMAS}
    return Look(**{**{name: str(row[name]) for name in LOOK}, **numbers, "number": int(row["number"])})


def _note_of(row: sqlite3.Row) -> RegionNote:
    status = row["status"] if row["status"] in STATUSES else NONE
    return RegionNote(int(row["region"]), str(row["name"]), str(row["comment"]), status, str(row["changed"]),
                      int(row["version"]), bool(row["aside"]))


def _view_of(row: sqlite3.Row) -> SavedView:
    numbers = {name: int(row[name]) for name in ("id", "version")}
    return SavedView(**{**{name: str(row[name]) for name in VIEW}, **numbers})


def _given(name: str) -> str:
    name = line("name", name)
    if not name:
        raise NotebookError("The view has no name yet; give it one, such as 'Harbor: lorries in W12'.")
    return name


def _check_free(db: sqlite3.Connection, name: str, but: int = 0) -> None:
    if db.execute("SELECT 1 FROM saved WHERE name = ? AND id != ?", (name, but)).fetchone():
        raise NotebookError(f"There is a saved view called '{name}' already; choose another name.")


def _check_unchanged(db: sqlite3.Connection, view: SavedView) -> None:
    row = db.execute("SELECT name, version FROM saved WHERE id = ?", (view.id,)).fetchone()
    if row is None:
        raise NotebookError(f"The saved view '{view.name}' was removed meanwhile.")
    if row["version"] != view.version:
        raise NotebookError(f"The saved view '{view.name}' was changed meanwhile: it is called '{row['name']}' now. "
                            "Look again.")


def _insert(db: sqlite3.Connection, table: str, values: dict) -> int:
    """Column names are the code's own; values are bound."""
    marks = ", ".join("?" * len(values))
    return db.execute(f"INSERT INTO {table} ({_names(values)}) VALUES ({marks})", tuple(values.values())).lastrowid


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)
