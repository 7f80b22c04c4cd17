"""The dashboard's own folder: results, uploads, and small lists that all visitors share.

    workspace = Workspace("build/dashboard")
    workspace.results.get(key), workspace.corpora.read(), workspace.filters.update(lambda old: ...)
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from avshift_core.archive import ArchiveError, load, save
from avshift_core.errors import AVShiftError
from avshift_core.files import plain, write_whole

HOME, DEMO = "AVSHIFT_HOME", "demo"
MAX_BYTES = 4 * 2**30  # of kept results; the least recently used go beyond it
LOCK_S = 10.0


class WorkspaceError(AVShiftError):
    """The dashboard's own folder cannot be used."""


@dataclass(frozen=True)
class Workspace:
    """One folder for all sessions of a server; several servers may share it."""

    folder: Path

    def __post_init__(self) -> None:
        for name in ("results", "uploads", "logs"):
            try:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise WorkspaceError(f"{self.folder / name} cannot be made: {error.strerror or error}. Set {HOME} to a "
                                     "folder that can be written to.") from None
            if not os.access(self.folder / name, os.W_OK):
                raise WorkspaceError(f"{self.folder / name} cannot be written to. Set {HOME} to a folder that can be; "
                                     "what is kept here stays as it is.")

    @cached_property
    def results(self) -> Results:
        return Results(self.folder / "results")

    @cached_property
    def corpora(self) -> SharedList:
        """Name -> folder or URL of the corpora that the dashboard offers, beside the demo."""
        return SharedList(self.folder / "corpora.json")

    @cached_property
    def filters(self) -> SharedList:
        """Name -> query of saved cohorts."""
        return SharedList(self.folder / "filters.json")

    @cached_property
    def selections(self) -> SharedList:
        """Name -> what was selected on a map."""
        return SharedList(self.folder / "selections.json")

    @property
    def demo(self) -> str:
        return str(self.folder / DEMO)

    def save_upload(self, name: str, data: bytes) -> Path:
        """Keep an uploaded file under a name that is safe, whatever it was called."""
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", Path(name).name).strip("._") or "upload"
        path = Path(tempfile.mkdtemp(prefix="", dir=self.folder / "uploads")) / stem[-80:]
        write_whole(path, lambda draft: Path(draft).write_bytes(data))
        return path


def open_workspace() -> Workspace:
    """The workspace of this server: AVSHIFT_HOME, or build/dashboard."""
    return Workspace(Path(os.environ.get(HOME, "build/dashboard")))


class SharedList:
    """A small JSON object on disk, name -> value; several people may change it at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        try:
            value = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise WorkspaceError(f"{self.path} cannot be read. Restore it from a copy, or remove it to start with an "
                                 "empty list.") from None
        return value if isinstance(value, dict) else {}

    def update(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the list by change(list), while nobody else does."""
        try:
            with FileLock(f"{self.path}.lock", timeout=LOCK_S):
                value = change(self.read())
                text = json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n"
                write_whole(self.path, lambda draft: Path(draft).write_text(text, encoding="utf-8"))
                return value
        except Timeout:
            raise WorkspaceError(f"{self.path} is being written by somebody else for more than {LOCK_S:g} s. Try "
                                 "again.") from None
        except OSError as error:
            raise WorkspaceError(f"{self.path} cannot be written: {error.strerror or error}. Free some space, or set "
                                 f"{HOME} to another folder.") from None


class Results:
    """Archives by key, the least recently used of which go when there are too many bytes."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder, self.max_bytes = folder, max_bytes

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.avs"

    def has(self, key: str) -> bool:
        return self.path(key).is_file()

    def get(self, key: str) -> Any:
        """The result; a damaged one is removed, so that it is computed again."""
        path = self.path(key)
        try:
            value = load(path)
        except ArchiveError:
            path.unlink(missing_ok=True)
            raise
        with suppress(OSError):  # a disk that has become read-only can still be read
            os.utime(path)
        return value

    def put(self, key: str, value: Any) -> None:
        save(value, self.path(key))
        self.tidy(keep=key)

    def size(self) -> int:
        return sum(size for _, size, _ in self._files())

    def count(self) -> int:
        return len(self._files())

    def tidy(self, keep: str = "") -> None:
        """Remove the oldest until the rest fits."""
        total = self.size()
        for _, size, path in sorted(self._files()):
            if total <= self.max_bytes:
                return
            if path != self.path(keep):
                path.unlink(missing_ok=True)
                total -= size

    def clear(self) -> None:
        for _, _, path in self._files():
            path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        for path in self.folder.glob("*.avs"):
            try:
                state = path.stat()
            except FileNotFoundError:  # another process tidied up
                continue
            found.append((state.st_mtime, state.st_size, path))
        return found
