"""A log as pieces that can be read alone: files, or members of a zip archive; and how the analyst wants them read."""

from __future__ import annotations

import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from avshift_core.errors import LogError
from avshift_core.scenario.readers.units import listed
from avshift_core.scenario.schema import UNKNOWN, Ids, iso_week

MAX_MEMBER_BYTES = 2 * 1024**3  # a larger member is no log of a few seconds but a bomb
MAX_RATIO = 500  # deflate of repetitive CSV reaches 20 to 50; bombs are beyond 1,000
MAX_OPEN_ARCHIVES = 8  # kept open between members: opening one of 2,000 members takes 20 ms
ZIP_FAULTS = (  # what zipfile and its decompressors raise on damaged archives
    OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, struct.error,
    zlib.error, lzma.LZMAError,
)


@dataclass(frozen=True)
class ReadOptions:
    """How a log is read.

    Attributes:
        area, period, version: said by the analyst for all scenarios; "" leaves what the log says.
        mapping: file that tells which column is what (format `table`).
        skip_bad: go on after a bad piece instead of raising.
        on_skip: called with one sentence for each thing left out.
    """

    area: str = ""
    period: str = ""
    version: str = ""
    mapping: Path | None = None
    skip_bad: bool = False
    on_skip: Callable[[str], None] | None = None

    def apply(self, ids: Ids) -> Ids:
        """Ids with what the analyst said; the period without it is the ISO week of the day.

        >>> ReadOptions(area="harbor").apply(Ids("s", "d", day="2026-03-02", area="unknown")).period
        '2026-W10'
        """
        period = self.period or (ids.period if ids.period != UNKNOWN else iso_week(ids.day))
        return replace(ids, area=self.area or ids.area, period=period, av_version=self.version or ids.av_version)

    def leave_out(self, error: LogError, what: str = "") -> None:
        """Tell that something (`what`: drive 'd1') is left out; raise it unless the analyst asked to go on."""
        if not self.skip_bad:
            raise error from None
        if self.on_skip is not None:
            self.on_skip(f"{error} All of {what} is left out." if what else str(error))


@dataclass(frozen=True)
class Source:
    """One piece of a log.

    Attributes:
        path: a file, or the zip archive that holds `member`.
        member: name inside the archive, "" for a plain file.
        drive_id: drive that a look over all pieces has found, "" where the piece itself tells.
    """

    path: Path
    member: str = ""
    drive_id: str = ""

    @property
    def label(self) -> str:
        """What messages call it: `scenes.zip:12.csv`."""
        return f"{self.path.name}:{self.member}" if self.member else self.path.name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.member).stem if self.member else self.path.stem

    @property
    def key(self) -> str:
        """Tells this piece, in this state, from every other: an import that was stopped skips what it has done."""
        try:
            if self.member:
                info = _open_zip(self.path).getinfo(self.member)
                return f"{self.label}:{info.file_size}:{info.CRC:08x}"
            stat = self.path.stat()
        except (KeyError, OSError) as error:
            raise self._unreadable(error) from None
        return f"{self.path.resolve().parent.name}/{self.label}:{stat.st_size}:{stat.st_mtime_ns}"

    def exists(self) -> bool:
        return self.member in _open_zip(self.path).NameToInfo if self.member else self.path.is_file()

    def open(self) -> BinaryIO:
        try:
            if not self.member:
                return self.path.open("rb")
            return io.BytesIO(_open_zip(self.path).read(self.member))
        except (KeyError, *ZIP_FAULTS) as error:
            raise self._unreadable(error) from None

    def read_bytes(self) -> bytes:
        """All bytes of the piece."""
        with self.open() as file:
            try:
                return file.read()
            except OSError as error:
                raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> LogError:
        return LogError(f"{self.label} cannot be read: {_reason(error)}. Copy it again.")


def find_sources(path: str | Path, suffix: str | tuple[str, ...]) -> list[Source]:
    """All files with this suffix, or one of these: the file itself, those below a folder, or in a zip archive."""
    path, called = Path(path), suffix if isinstance(suffix, str) else listed(suffix)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("._"))
        found = [Source(file) for file in files if file.name.lower().endswith(suffix)]
        found += [s for file in files if file.suffix.lower() == ".zip" for s in _members(file, suffix)]
    elif path.is_file() and path.suffix.lower() == ".zip":
        found = _members(path, suffix)
    elif path.is_file() and path.name.lower().endswith(suffix):
        found = [Source(path)]
    elif path.is_file():
        raise LogError(f"{path.name} is neither a {called} file nor a zip archive of them.")
    else:
        raise LogError(f"{path} does not exist. Give a {called} file, a folder or a zip archive of them.")
    if not found:
        raise LogError(f"{path} holds no {called} file. Give the folder or archive that does.")
    return found


def _reason(error: Exception) -> str:
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        stat = path.stat()
        return _archive(path, stat.st_size, stat.st_mtime_ns, os.getpid())
    except ZIP_FAULTS as error:
        raise LogError(f"{path.name} is not a readable zip archive: {_reason(error)}. Copy it again.") from None


@lru_cache(maxsize=MAX_OPEN_ARCHIVES)
def _archive(path: Path, size: int, mtime_ns: int, process: int) -> zipfile.ZipFile:
    """Open archive; a changed file is another one, and so is that of a forked process, whose seeks would interfere."""
    return zipfile.ZipFile(path)


def _members(path: Path, suffix: str) -> list[Source]:
    """Members with this suffix. Nothing is ever extracted, but a name that climbs out tells of a forged archive."""
    infos = [info for info in _open_zip(path).infolist() if not info.filename.startswith("__MACOSX/")]
    for info in infos:
        parts = PurePosixPath(info.filename.replace("\\", "/")).parts
        if ".." in parts or info.filename.startswith(("/", "\\")) or (parts and parts[0].endswith(":")):
            raise LogError(f"{path.name} holds the name '{info.filename}', which points outside of the archive. "
                           "Do not trust it; ask for a clean copy.")
        if info.file_size > MAX_MEMBER_BYTES or info.file_size > MAX_RATIO * max(info.compress_size, 1024):
            raise LogError(f"{path.name}:{info.filename} would unpack to {info.file_size:,} bytes from "
                           f"{info.compress_size:,}. Unpack it yourself if it is what you expect.")
        if info.flag_bits & 0x1:
            raise LogError(f"{path.name}:{info.filename} is encrypted. Unpack the archive with its password first.")
    names = [i.filename for i in infos if not i.is_dir() and i.filename.lower().endswith(suffix)]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise LogError(f"{path.name} holds '{twice[0]}' twice, of which only one could be read. Pack it again.")
    return [Source(path, name) for name in sorted(names)]
