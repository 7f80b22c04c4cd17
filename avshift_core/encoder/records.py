"""The scenes of a corpus in one flat file: read at random, a batch at a time, whatever the size of the corpus."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from avshift_core.encoder.scenes import MAX_AGENTS, STEPS, Scenes, can_be_encoded, pack, packed_size, ragged, unpack
from avshift_core.encoder.targets import N_EXTRA, NUMBERS, extra_of, read_columns
from avshift_core.errors import ModelError
from avshift_core.progress import Progress
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import ALL, Corpus
from avshift_core.scenario.store.manifest import STATES
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.scenario.view import tensor_view

CHUNK = 512  # scenarios that are prepared at a time
SPREAD = 997  # makes of one draw a second one, so that which drives are taken says nothing of which are held out


@dataclass(frozen=True, eq=False)
class Records:
    """Scenes on disk. About 6 kB a scenario there, and 29 bytes in memory.

    Attributes:
        query: which scenarios of the corpus these are.
        part, row: (n,) which of the corpus' parts, and which row of the query in it, a scene is.
        offset: (n,) first number of each scene in the file; counts: (n, 3) agents, tokens, lines.
        held_out: (n,) scenes of drives that training does not see.
        n_drives, n_held_out: how many drives there are, and how many of them are held out.
        mean, std: (k,) of NUMBERS over the training scenes.
    """

    path: Path
    query: CohortQuery
    part: np.ndarray
    row: np.ndarray
    offset: np.ndarray
    counts: np.ndarray
    held_out: np.ndarray
    n_drives: int
    n_held_out: int
    mean: np.ndarray
    std: np.ndarray

    @property
    def n(self) -> int:
        return len(self.offset)

    def names(self, corpus: Corpus, rows: np.ndarray) -> list[str]:
        """Ids of some scenes, quoted."""
        tables = (corpus.table(self.query, columns=["scenario_id"], part=corpus.parts[self.part[row]].id)
                  for row in rows)
        return [f"'{table['scenario_id'].iloc[self.row[row]]}'" for table, row in zip(tables, rows, strict=True)]

    def read(self, rows: np.ndarray) -> tuple[Scenes, np.ndarray]:
        """Scenes of these rows, in their order, and their extra numbers (n, N_EXTRA)."""
        size = packed_size(self.counts[rows], N_EXTRA)
        data, place = np.empty(int(size.sum()), np.float32), 0
        with open(self.path, "rb", buffering=0) as file:
            for row, count in zip(rows.tolist(), size.tolist(), strict=True):
                got = os.preadv(file.fileno(), [memoryview(data[place:place + count]).cast("B")],
                                4 * int(self.offset[row]))
                if got != 4 * count:
                    raise ModelError(f"{self.path} was cut short while training read it. Start the training again.")
                place += count
        return unpack(data, self.counts[rows], N_EXTRA)


def prepare_steps(
    corpus: Corpus, path: Path, valid_share: float, *, query: CohortQuery = ALL, most: int | None = None
) -> Generator[Progress, None, Records]:
    """Write the scenes of a query to `path`.

    Whether a drive is held out depends on its id alone, so that any two models agree on it.

    Args:
        most: of the scenarios at the most; then an even share of each part's drives.
    """
    parts = {number: part for number, part in enumerate(corpus.parts) if STATES in part.files and part.admits(query)}
    total, done = sum(part.n for part in parts.values()), 0
    try:
        with open(path, "wb") as file:
            draft = _Draft(file, query)
            for number, part in parts.items():
                table = read_columns(corpus, query, part.id)
                _check_drives(corpus, table)
                draw = table["drive_id"].map(_draw).to_numpy()
                chosen = np.ones(len(table), bool) if most is None else draw * SPREAD % 1 < most / total
                draft.add(corpus, number, table, chosen, draw < valid_share)
                done += part.n
                yield Progress(f"Reading {done:,} scenarios", done / total)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ModelError(f"{path} could not be written: {error.strerror or error}. Free some space (about 6 kB a "
                         "scenario), or choose another folder for --out.") from None
    return draft.finish(path)


class _Draft:
    """The file while it is written, and what is known of its scenes so far."""

    def __init__(self, file, query: CohortQuery) -> None:
        self.file, self.query, self.end = file, query, 0
        self.columns: dict[str, list[np.ndarray]] = {
            name: [] for name in ("part", "row", "offset", "counts", "held_out")}
        self.drives: dict[str, bool] = {}
        self.moments = np.zeros((3, len(NUMBERS)))  # count, sum and sum of squares

    def add(self, corpus: Corpus, part: int, table, chosen: np.ndarray, held_out: np.ndarray) -> None:
        """The chosen scenes of one part; table, chosen and held_out in its order."""
        self.drives.update(zip(table["drive_id"][chosen], held_out[chosen], strict=True))
        first = 0
        for batch in corpus.batches(self.query, size=CHUNK, part=corpus.parts[part].id):
            rows = slice(first, first + batch.n)
            first += batch.n
            view = tensor_view(batch, STEPS, MAX_AGENTS)
            extra = extra_of(table.iloc[rows], view)
            scenes = ragged(view)
            data, counts = pack(scenes, extra)
            keep = chosen[rows] & can_be_encoded(scenes)
            size = packed_size(counts, N_EXTRA)
            data[np.repeat(keep, size)].tofile(self.file)
            size = size[keep]
            added = {"part": np.full(len(size), part, np.int32), "row": rows.start + np.flatnonzero(keep),
                     "offset": self.end + np.cumsum(size) - size, "counts": counts[keep].astype(np.int32),
                     "held_out": held_out[rows][keep]}
            for name, column in self.columns.items():
                column.append(added[name])
            self.end += int(size.sum())
            seen = extra[keep & ~held_out[rows], :len(NUMBERS)].astype(np.float64)
            self.moments += np.stack([(~np.isnan(seen)).sum(0), np.nansum(seen, 0), np.nansum(seen**2, 0)])

    def finish(self, path: Path) -> Records:
        n, total, squares = self.moments
        mean = total / np.maximum(n, 1)
        std = np.where(n > 1, np.sqrt(np.maximum(squares / np.maximum(n, 1) - mean**2, 1e-6)), 1)
        columns = {name: np.concatenate(column) for name, column in self.columns.items()}
        return Records(path, self.query, **columns, n_drives=len(self.drives), n_held_out=sum(self.drives.values()),
                       mean=mean.astype(np.float32), std=std.astype(np.float32))


def _draw(drive_id: str) -> float:
    """A number in [0, 1) that belongs to a drive's id."""
    return int.from_bytes(hashlib.sha256(drive_id.encode()).digest()[:6], "big") / 2**48


def _check_drives(corpus: Corpus, table) -> None:
    if (table["drive_id"] == UNKNOWN).any():
        raise ModelError(f"{corpus.url} has scenarios without a drive id, so no drives can be held out and a training "
                         "could not be judged. Import the logs again with a drive column.")
