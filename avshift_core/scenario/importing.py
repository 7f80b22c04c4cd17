"""Logs -> corpus: read piece by piece, measured in batches, committed every few seconds; nothing is done twice."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from avshift_core.errors import LogError
from avshift_core.progress import Progress, finish
from avshift_core.scenario.measure.batch import measure
from avshift_core.scenario.readers import READERS
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.schema import UNKNOWN, Scenario, pad
from avshift_core.scenario.store.writer import CorpusWriter, create_or_open

BATCH_CELLS = 2_000_000  # agents x steps of a padded batch: 32 MB of states, a few hundred with what metrics need
COMMIT_SCENARIOS, COMMIT_S = 5000, 10.0  # what a kill may cost; more often makes more and smaller files
LATENTS = "latents"


@dataclass(frozen=True)
class ImportResult:
    """What an import has added.

    Attributes:
        n: scenarios added; n_done_before: pieces of the logs that were in the corpus already.
        skipped: one sentence for each thing left out (with skip_bad).
    """

    n: int
    n_sources: int
    n_done_before: int
    skipped: tuple[str, ...]


def import_steps(
    format: str, paths: Sequence[str | Path], url: str | Path, options: ReadOptions | None = None, *,
    commit_scenarios: int = COMMIT_SCENARIOS, commit_s: float = COMMIT_S,
) -> Generator[Progress, None, ImportResult]:
    """Import logs into a corpus, step by step; the last value is what was added.

    Every commit holds whole pieces of the logs, so that an import that was stopped, however hard, does the others when
    it is run again. A scenario without a category gets the one that is detected.
    """
    if format not in READERS:
        raise LogError(f"There is no format '{format}'. Choose one of {', '.join(READERS)}.")
    options = options or ReadOptions()
    sources = [source for path in paths for source in READERS[format].sources(path)]
    with create_or_open(url) as writer:
        job = _Job(format, options, writer)
        last = time.monotonic()
        for i, source in enumerate(sources):
            job.take(source)
            if writer.pending + len(job.held) >= commit_scenarios or time.monotonic() - last >= commit_s:
                job.commit()
                last = time.monotonic()
            yield Progress(f"{source.label}: {job.n + len(job.held):,} scenarios", (i + 1) / len(sources))
        job.commit()
        if job.n == job.done_before == 0:
            reason = job.skipped[0] if job.skipped else "they are empty"
            raise LogError(f"None of the {len(sources):,} files gave a scenario: {reason}")
        return ImportResult(job.n, len(sources), job.done_before, tuple(job.skipped))


def import_logs(format: str, paths: Sequence[str | Path], url: str | Path, options: ReadOptions | None = None
                ) -> ImportResult:
    """All steps of an import at once."""
    return finish(import_steps(format, paths, url, options))


@dataclass
class _Job:
    """One import under way.

    Attributes:
        held: (scenario, key, label) that wait for a batch.
        finished: key of each piece that was read to its end since the last commit -> what was left out of it.
    """

    format: str
    options: ReadOptions
    writer: CorpusWriter
    n: int = 0
    done_before: int = 0
    skipped: list[str] = field(default_factory=list)
    held: list[tuple[Scenario, str, str]] = field(default_factory=list)
    finished: dict[str, list[str]] = field(default_factory=dict)
    cells: tuple[int, int] = (0, 0)

    def take(self, source: Source) -> None:
        """Read one piece, unless it is in the corpus already."""
        key = self._key(source)
        if self.writer.done(key) or key in self.finished:
            self.done_before += 1
            return
        left_out = self.finished.setdefault(key, [])

        def on_skip(sentence: str) -> None:
            left_out.append(sentence)
            if self.options.on_skip is not None:
                self.options.on_skip(sentence)

        options = replace(self.options, on_skip=on_skip)
        if self.format == LATENTS:
            self._take_table(source, key, options)
            return
        for scenario in READERS[self.format].read(source, options):
            self._hold(scenario, key, source.label)

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
        self.flush()
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

    def _key(self, source: Source) -> str:
        """The piece in its state, and what the analyst said about it."""
        said = [self.options.area, self.options.period, self.options.version]
        try:
            if self.options.mapping is not None:
                said.append(hashlib.sha256(Path(self.options.mapping).read_bytes()).hexdigest()[:12])
            return "|".join([self.format, source.key, *said])
        except OSError as error:
            raise LogError(f"{error.filename or source.label} cannot be read: {error.strerror or error}.") from None
