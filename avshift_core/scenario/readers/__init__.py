"""Logs of six formats -> scenarios: one entry each, imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from avshift_core.errors import LogError
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.schema import Scenario

MAX_SENTENCE = 800


@dataclass(frozen=True)
class Reader:
    """One format.

    Attributes:
        name: what the CLI calls it.
        sources: path -> the pieces of the log that can be read alone.
        read: one piece -> its scenarios. A bad piece raises LogError; with `skip_bad` it is told to `on_skip` and ends.
        text: one line on what it reads.
    """

    name: str
    sources: Callable[[str | Path], list[Source]]
    read: Callable[[Source, ReadOptions], Iterator[Scenario]]
    text: str


def _reader(name: str, text: str) -> Reader:
    module = f"{__name__}.{name}"

    def sources(path: str | Path) -> list[Source]:
        return import_module(module).sources(path)

    def read(source: Source, options: ReadOptions) -> Iterator[Scenario]:
        try:
            yield from import_module(module).read(source, options)
        except LogError as error:
            options.leave_out(_in_one_line(error))

    return Reader(name, sources, read, text)


def _in_one_line(error: LogError) -> LogError:
    """The same sentence, even where it quotes a cell that holds a whole file."""
    text = " ".join(str(error).split())
    half = MAX_SENTENCE // 2
    return LogError(text if len(text) <= MAX_SENTENCE else f"{text[:half]} ... {text[-half:]}")


READERS = {
    name: _reader(name, text)
    for name, text in {
        "table": "any table with one row per agent and time (Parquet or CSV), with a mapping file",
        "argoverse1": "Argoverse 1 forecasting: CSV files, a folder or a zip archive of them",
        "argoverse2": "Argoverse 2 motion forecasting: folders with a Parquet file and a map JSON",
        "nuplan": "nuPlan: SQLite logs",
        "commonroad": "CommonRoad 2018b and 2020a: XML files, a folder or a zip archive of them",
        "latents": "ready-made latents or features, one row per scenario (Parquet or CSV)",
    }.items()
}


def read_scenarios(format: str, path: str | Path, options: ReadOptions | None = None) -> Iterator[Scenario]:
    """All scenarios of a log, one by one; memory holds one piece at a time."""
    if format not in READERS:
        raise LogError(f"There is no format '{format}'. Choose one of {', '.join(READERS)}.")
    reader, options = READERS[format], options or ReadOptions()
    for source in reader.sources(path):
        yield from reader.read(source, options)
