"""Logs -> corpus: read piece by piece, measured in batches, committed every few seconds; nothing is done twice."""

from __future__ import annotations

import hashlib
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from avshift_core.errors import CorpusError, LogError
from avshift_core.parallel import check_jobs
from avshift_core.progress import Progress, finish
from avshift_core.scenario.measure.batch import measure
from avshift_core.scenario.readers import READERS
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.reading import Said, piece_key, read_ahead
from avshift_core.scenario.schema import UNKNOWN, Scenario, pad
from avshift_core.scenario.store.summary import count
from avshift_core.scenario.store.writer import CorpusWriter, create_or_open

BATCH_CELLS = 2_000_000  # agents x steps of a padded batch: 32 MB of states, a few hundred with what metrics need
COMMIT_SCENARIOS, COMMIT_S = 1000, 5.0  # what a kill may cost; more often makes more and smaller files
FIRST_COMMIT_S = 2.0  # looking through the logs has taken its time already
LATENTS = "latents"
MAPPED = ("table", LATENTS)  # formats that take a mapping file
NEW, IN, OTHERWISE = "new", "in", "otherwise"


@dataclass(frozen=True)
class ImportResult:
    """What an import has added.

    Attributes:
        n: scenarios added; n_done_before: pieces of the logs whose scenarios were in the corpus already.
        skipped: one sentence for each thing left out (with skip_bad).
    """

    n: int
    n_sources: int
    n_done_before: int
    skipped: tuple[str, ...]


def import_steps(
    format: str, paths: Sequence[str | Path], url: str | Path, options: ReadOptions | None = None, *,
    commit_scenarios: int = COMMIT_SCENARIOS, commit_s: float = COMMIT_S, jobs: int | None = 1,
    scheduler: str | None = None,
) -> Generator[Progress, None, ImportResult]:
    """Import logs into a corpus, step by step; the last value is what was added.

    Every commit holds whole pieces of the logs, so that an import that was stopped, however hard, does the others when
    it is run again. A scenario without a category gets the one that is detected.

    Args:
        jobs, scheduler: as in `in_order`, for the reading of the pieces; all else is done here, in the same order.
    """
    if format not in READERS:
        raise LogError(f"There is no format '{format}'. Choose one of {', '.join(READERS)}.")
    options = options or ReadOptions()
    _check_options(format, options)
    check_jobs(jobs, scheduler)
    sources = [source for path in paths for source in READERS[format].sources(path)]
    with create_or_open(url) as writer, ExitStack() as stack:
        job = _Job(format, options, writer)
        if format != LATENTS and (jobs != 1 or scheduler is not None):
            job.planned = job.plan(sources)
            job.ahead = stack.enter_context(closing(read_ahead(format, job.planned, options, jobs, scheduler)))
        last = time.monotonic()
        for i, source in enumerate(sources):
            job.take(source)
            wait_s = commit_s if writer.manifest.n else min(commit_s, FIRST_COMMIT_S)
            if writer.pending + len(job.held) >= commit_scenarios or time.monotonic() - last >= wait_s:
                job.commit()
                last = time.monotonic()
            yield Progress(f"{source.label}: {count(job.n + len(job.held), 'scenario')}", (i + 1) / len(sources))
        job.flush()
        if job.n == job.done_before == 0:
            raise _nothing(len(sources), [*job.skipped, *(s for left in job.finished.values() for s in left)])
        job.commit()
        return ImportResult(job.n, len(sources), job.done_before, tuple(job.skipped))


def import_logs(format: str, paths: Sequence[str | Path], url: str | Path, options: ReadOptions | None = None
                ) -> ImportResult:
    """All steps of an import at once."""
    return finish(import_steps(format, paths, url, options))


def _check_options(format: str, options: ReadOptions) -> None:
    if options.mapping is not None and format in READERS.keys() - MAPPED:
        raise LogError(f"Format '{format}' takes no mapping file; its columns are fixed. Leave --mapping out, or read "
                       "the log as 'table'.")
    if match := re.fullmatch(r"(\d{4})-?[Ww](\d{1,2})", options.period):
        try:
            date.fromisocalendar(int(match[1]), int(match[2]), 1)
        except ValueError:
            raise LogError(f"--period {options.period} is no ISO week of {match[1]}; weeks run from {match[1]}-W01 to "
                           "W52 or W53.") from None


def _nothing(n_sources: int, skipped: Sequence[str]) -> LogError:
    whose, reason = ("The file", "it is empty.") if n_sources == 1 else (f"None of the {n_sources:,} files",
                                                                        "they are empty.")
    return LogError(f"{whose} gave {'no' if n_sources == 1 else 'a'} scenario: {skipped[0] if skipped else reason}")


@dataclass
class _Job:
    """One import under way.

    Attributes:
        held: (scenario, key, label) that wait for a batch.
        finished: key of each piece that was read to its end since the last commit -> what was left out of it.
        taken: keys of all pieces that this import has read.
        before: sorted keys of the pieces that were in the corpus when it began.
        planned: pieces that others read, with their keys; ahead: what was said about them, in that order.
    """

    format: str
    options: ReadOptions
    writer: CorpusWriter
    n: int = 0
    done_before: int = 0
    skipped: list[str] = field(default_factory=list)
    held: list[tuple[Scenario, str, str]] = field(default_factory=list)
    finished: dict[str, list[str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    cells: tuple[int, int] = (0, 0)
    planned: Mapping[Source, str] = field(default_factory=dict)
    ahead: Iterator[tuple[Source, list[Said]]] | None = None
    before: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.before = sorted(self.writer.manifest.sources)

    def plan(self, sources: Sequence[Source]) -> dict[Source, str]:
        """Pieces that `take` will read, with their keys; what else there is to say of any is left to it."""
        found: dict[str, Source] = {}
        for source in sources:
            with suppress(LogError):
                key = piece_key(self.format, source, self.options)
                if key not in found and self._state(source, key) == NEW:
                    found[key] = source
        return {source: key for key, source in found.items()}

    def take(self, source: Source) -> None:
        """Read one piece, unless it is in the corpus already."""
        key = piece_key(self.format, source, self.options)
        if key in self.taken or self._is_in(source, key):
            self.done_before += 1
            return
        self.taken.add(key)
        left_out = self.finished.setdefault(key, [])

        def on_skip(sentence: str) -> None:
            left_out.append(sentence)
            self._told(sentence)

        options = replace(self.options, on_skip=on_skip)
        if self.format == LATENTS:
            self._take_table(source, key, options)
            return
        is_ahead = self.planned.get(source) == key
        for scenario in self._read(source, on_skip) if is_ahead else READERS[self.format].read(source, options):
            self._hold(scenario, key, source.label)

    def _read(self, source: Source, on_skip: Callable[[str], None]) -> Iterator[Scenario]:
        """Scenarios of a piece that others have read; what is raised or left out on the way is so here."""
        for said in next(said for piece, said in self.ahead if piece == source):
            if isinstance(said, LogError):
                raise said
            if isinstance(said, str):
                on_skip(said)
            else:
                yield said

    def _state(self, source: Source, key: str) -> str:
        """Whether a piece is in the corpus, perhaps as something else was said of it; one that gave nothing is new."""
        known = self.writer.manifest.sources
        if key in known and known[key].n:
            return IN
        state = f"{self.format}|{source.key}|"
        return OTHERWISE if any(other.startswith(state) and known[other].n for other in self._earlier(source)) else NEW

    def _is_in(self, source: Source, key: str) -> bool:
        """Whether the scenarios of a piece are in the corpus; one that gave none before is read again."""
        state = self._state(source, key)
        if state == OTHERWISE:
            sentence = (f"{source.label} is in the corpus already, with another --area, --period, --version or "
                        "--mapping. A new corpus is needed to change them.")
            if not self.options.skip_bad:
                raise CorpusError(sentence)
            self._tell(sentence)
        if state == NEW:
            for other in self._earlier(source):
                if self.writer.manifest.sources[other].skipped:
                    self.writer.forget(other, source.label)
        return state != NEW

    def _earlier(self, source: Source) -> list[str]:
        """Keys of all states in which a piece was taken before, whatever was said of it."""
        prefix = f"{self.format}|{source.key.rsplit(':', 2)[0]}:"  # without its size and time, or checksum
        first, found = bisect_left(self.before, prefix), []
        while first < len(self.before) and self.before[first].startswith(prefix):
            found.append(self.before[first])
            first += 1
        return [key for key in found if key in self.writer.manifest.sources]

    def _hold(self, scenario: Scenario, key: str, label: str) -> None:
        A, T = max(self.cells[0], scenario.n_agents), max(self.cells[1], scenario.n_steps)
        if self.held and A * T * (len(self.held) + 1) > BATCH_CELLS:
            self.flush()
            A, T = scenario.n_agents, scenario.n_steps
        self.cells = A, T
        self.held.append((scenario, key, label))

    def flush(self) -> None:
        """Held scenarios -> categories, attributes, metrics -> the writer's buffer."""
        held = self._without_duplicates()
        self.held, self.cells = [], (0, 0)
        if not held:
            return
        measured = measure(pad([scenario for scenario, _, _ in held]))
        self.writer.add(measured.batch, measured.attributes, measured.metrics, source=[key for _, key, _ in held],
                        label=[label for _, _, label in held])
        self.n += len(held)

    def commit(self) -> None:
        """Make it last; a corpus does not begin with what was left out alone."""
        self.flush()
        if not (self.writer.pending or self.writer.manifest.n):
            return
        for key, sentences in self.finished.items():
            self.writer.skip(key, sentences)
            self.skipped += sentences
        self.finished = {}
        self.writer.commit()

    def _without_duplicates(self) -> list[tuple[Scenario, str, str]]:
        """Held scenarios that are new; the writer refuses a duplicate, unless the analyst asked to go on."""
        if not self.options.skip_bad:
            return self.held
        names, labels = [s.ids.scenario_id for s, _, _ in self.held], [label for _, _, label in self.held]
        duplicates = self.writer.duplicates(names, labels)
        for i, holder in duplicates.items():
            sentence = f"{labels[i]}: scenario '{names[i]}' is in the corpus already, from {holder}."
            self._leave_out(self.held[i][1], sentence)
        return [item for i, item in enumerate(self.held) if i not in duplicates]

    def _leave_out(self, key: str, sentence: str) -> None:
        self.finished[key].append(sentence)
        self._told(sentence)

    def _tell(self, sentence: str) -> None:
        """Say what the corpus itself need not keep."""
        self.skipped.append(sentence)
        self._told(sentence)

    def _told(self, sentence: str) -> None:
        if self.options.on_skip is not None:
            self.options.on_skip(sentence)

    def _take_table(self, source: Source, key: str, options: ReadOptions) -> None:
        from avshift_core.scenario.readers.latents import read_table

        try:
            table = read_table(source, options)
        except LogError as error:
            options.leave_out(error)
            return
        ids = table.ids.assign(category=table.ids["category"].replace("", UNKNOWN))
        scale = [source.label] if table.standardized else []  # each table has its own scale then
        model = "table-" + hashlib.sha256("\n".join([*table.features, *scale]).encode()).hexdigest()[:12]
        self.writer.add_table(ids, table.attributes, table.metrics, table.z, model=model, source=key,
                              label=source.label)
        self.n += table.n
