"""Where a corpus lies: a local folder or any fsspec URL; files are read and written whole, by one writer at a time."""

from __future__ import annotations

import errno
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import filelock
import fsspec

from avshift_core.errors import CorpusError

LOCK = ".lock"
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
ANSWER_S = 30.0  # until a store gives a first sign of life
SYNC_ALL = 32  # files; beyond, one sync of everything is several times quicker than one of each and its folders


@dataclass(frozen=True)
class Location:
    """The root of a corpus.

    Attributes:
        url: what the user gave; messages call the corpus so.
        root: path of the root for `fs`.
        fs: the fsspec file system, None for a local folder.
    """

    url: str
    root: str
    fs: fsspec.AbstractFileSystem | None = None

    @property
    def local(self) -> bool:
        return self.fs is None

    @property
    def absolute(self) -> str:
        """The same place for a process that works in another folder, or on a machine that shares this one."""
        return self.root if self.local else self.url

    def path(self, name: str) -> str:
        """What DuckDB and pyarrow open: a path, or a URL of the registered file system."""
        joined = f"{self.root.rstrip('/')}/{name}"
        return joined if self.local else self.fs.unstrip_protocol(joined)

    def exists(self) -> bool:
        with self._errors("be looked up"):
            return os.path.lexists(self.root) if self.local else self.fs.exists(self.root)

    def check(self) -> None:
        """Refuse a file where a folder belongs, and a store that says nothing: its own patience may be many minutes.

        One that does not let its folders be listed says something, and its files may still be read.
        """
        if not self.local:
            with self._errors("be looked up"), suppress(PermissionError):
                _within(ANSWER_S, lambda: self.fs.exists(self.root))
        elif os.path.isfile(self.root):
            raise CorpusError(f"{self.url} is a file; give a folder.")

    def read(self, name: str) -> bytes | None:
        """All bytes of a file; None when it is not there."""
        with self._errors(f"be read ({name})"):
            try:
                return Path(self.path(name)).read_bytes() if self.local else self.fs.cat_file(self.path(name))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, name: str, data: bytes) -> None:
        """Put a file in its place, whole; on a local disk it outlives a power failure only after `sync`."""
        with self._errors(f"be written ({name})"):
            if self.local:
                _write_local(Path(self.path(name)), data)
            else:
                self.fs.makedirs(self.path(name).rsplit("/", 1)[0], exist_ok=True)
                self.fs.pipe_file(self.path(name), data)

    def replace(self, name: str, data: bytes) -> None:
        """Exchange a file for a new one: whatever happens, the old or the new is there, whole."""
        with self._errors(f"be written ({name})"):
            if self.local:
                _write_local(Path(self.path(name)), data, sync=True)
                _sync(self.root)
            else:
                self.fs.pipe_file(self.path(name), data)

    def sync(self, names: Iterable[str]) -> None:
        """Make written files durable, and the folders that lead to them; object stores need nothing.

        All at once after many writes: the disk then works through them together.
        """
        if not self.local:
            return
        root, files = Path(self.root), [Path(self.path(name)) for name in names]
        folders = {folder for file in files for folder in file.parents if folder.is_relative_to(root)}
        with self._errors("be written"):
            if len(files) > SYNC_ALL:
                os.sync()
                return
            for path in [*files, *sorted(folders, reverse=True), root.parent]:
                _sync(path)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and folders that they leave empty; what cannot be removed now is left to the next writer."""
        for name in names:
            with suppress(OSError):
                if not self.local:
                    self.fs.rm_file(self.path(name))
                    continue
                os.unlink(self.path(name))
                for folder in Path(name).parents[:-1]:
                    os.rmdir(self.path(str(folder)))

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Name -> bytes of those files that are there."""
        if not self.local:
            found = self.list()
            return {name: found[name] for name in names if name in found}
        sizes, root = {}, self.path("")
        for name in names:
            try:
                sizes[name] = os.stat(root + name).st_size
            except OSError:
                continue
        return sizes

    def list(self) -> dict[str, int]:
        """Name -> bytes of all files below the root."""
        with self._errors("be listed"):
            if not self.local:
                start = len(self.root.rstrip("/")) + 1
                found = self.fs.find(self.root, detail=True)
                return {path[start:]: info["size"] for path, info in found.items()}
            root = Path(self.root)
            return {str(Path(folder, file).relative_to(root)): os.lstat(Path(folder, file)).st_size
                    for folder, _, files in os.walk(root) for file in files}

    def state(self, name: str) -> tuple:
        """Changes when the file does, as far as the file system tells; FileNotFoundError when it is gone."""
        if self.local:
            stat = os.stat(self.path(name))
            return stat.st_size, stat.st_mtime_ns, stat.st_ino
        with self._errors(f"be read ({name})", FileNotFoundError):
            info = self.fs.info(self.path(name))
        return tuple(str(info.get(key)) for key in ("size", "ETag", "mtime", "LastModified", "created"))

    @contextmanager
    def _errors(self, action: str, *expected: type[Exception]) -> Iterator[None]:
        """What goes wrong as one sentence, but for what the caller expects."""
        try:
            yield
        except expected:
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise CorpusError(f"{self.url} cannot {action}: no space is left. What was committed before is intact; "
                                  "free some space and try again.") from None
            if isinstance(error, TimeoutError):
                raise CorpusError(f"{self.url} cannot {action}: it did not answer in time. What was committed before "
                                  "is intact; try again, or look whether the store can be reached.") from None
            advice = " Choose another folder, or change its permissions." if error.errno in UNWRITABLE else ""
            raise CorpusError(f"{self.url} cannot {action}: {_reason(error)}.{advice}") from None
        except Exception as error:  # each file system has its own
            if self.local:
                raise
            raise CorpusError(f"{self.url} cannot {action}: {_reason(error)}.") from None


def locate(url: str | Path) -> Location:
    """Path, `file://` or any other fsspec URL -> where the corpus lies; nothing is opened yet."""
    text = str(url)
    if not text.strip():
        raise CorpusError("The folder of the corpus is empty text; give a folder or a URL.")
    if "://" not in text and "::" not in text:
        return Location(text, os.path.abspath(os.path.expanduser(text)))
    try:
        fs, root = fsspec.url_to_fs(text)
    except (ValueError, ImportError) as error:
        raise CorpusError(f"{text} cannot be opened: {error}. Give a folder or a URL that fsspec knows.") from None
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    return Location(text, root) if "file" in protocols else Location(text, root, fs)


@contextmanager
def only_writer(location: Location) -> Iterator[None]:
    """Hold the corpus' lock; the second writer of a local corpus gets one sentence at once.

    Object stores have no locks: there the manifest's revision is compared before a commit instead.
    """
    location.check()
    if not location.local:
        yield
        return
    path = Path(location.root, LOCK)
    new = [folder for folder in path.parents if not folder.exists()]
    with location._errors("be written"):
        os.makedirs(location.root, exist_ok=True)
        lock = filelock.FileLock(path, blocking=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise CorpusError(f"Another import is writing {location.url}{_holder(path)}. Wait until it is done, or "
                              "stop it.") from None
    try:
        with suppress(OSError):
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        with suppress(OSError):
            if new and os.listdir(location.root) == [LOCK]:  # nothing came of it: leave no trace
                path.unlink()
                for folder in new:
                    os.rmdir(folder)
        lock.release()


def _within(seconds: float, call: Callable[[], object]) -> None:
    """Do something, and raise TimeoutError when it takes longer; it is then left to itself."""
    answer: Future = Future()

    def ask() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    answer.result(seconds)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _holder(lock: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return f" ({text})" if (text := lock.read_text().strip()) else ""
    return ""


def _sync(path: str | Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_local(path: Path, data: bytes, sync: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(draft, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
