"""Cohorts beyond what one machine compares in minutes: some of their drives, drawn at random, stand for all.

Bounds and intervals count drives, so those of the drawn ones already say how much less is known than from all of them:
nothing has to be added for the drawing. Of the other drives the sums of the metrics are read, for which no latent is
needed: observed rates are those of all drives, and calibrated ones move with them (shift/calibrate.py). Intervals are
about the traffic that such drives are drawn from, not about these drives alone: no correction for a finite number.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from avshift_core.errors import CohortError
from avshift_core.latent.cohort import Cohort, Rest, with_rest
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery

DRIVE = "drive_id"
MOST = 500_000  # scenarios of a cohort; two of them are about a million rows
FEWEST_DRIVES = 50  # below, the drives are too long for a sample of them to stand for all


@dataclass(frozen=True)
class Drawn:
    """A sample of a cohort's drives, and what it was drawn from."""

    n: int
    n_all: int
    drives: int
    drives_all: int

    def caution(self, name: str) -> str:
        return (f"'{name}' is a sample of {self.drives:,} of its {self.drives_all:,} drives, drawn at random: "
                f"{self.n:,} of {self.n_all:,} scenarios. Bounds, regions and weights are those of the sample; the "
                "observed rate is that of all drives.")


def draw_drives(
    corpus: Corpus, query: CohortQuery, name: str, most: int = MOST, seed: int = 0
) -> tuple[CohortQuery, Drawn | None]:
    """The query itself while it has at most `most` scenarios, else one for drives drawn from it.

    The number of drives is fixed beforehand, so that about `most` scenarios are expected and every drive, short or
    long, has the same chance. The same corpus, query and seed give the same sample.
    """
    sizes = corpus.sums(query, by=[DRIVE])
    n_all = int(sizes["n"].sum())
    if n_all <= most:
        return query, None
    if (sizes[DRIVE] == UNKNOWN).any():
        raise CohortError(f"Cohort '{name}' has {n_all:,} scenarios; beyond {most:,} a sample is drawn by drive, and "
                          "some have no drive id. Narrow the query, or import them with drive ids.")
    sizes = sizes.sort_values(DRIVE, ignore_index=True)
    own = zlib.crc32(str(query).encode())  # else two weeks of as many drives would be drawn at the same places
    order = np.random.default_rng([seed, 24, own]).permutation(len(sizes))
    kept = order[: len(sizes) * most // n_all]
    if len(kept) < FEWEST_DRIVES:
        raise CohortError(f"Cohort '{name}' has {n_all:,} scenarios in {len(sizes):,} drives; {most:,} scenarios would "
                          f"be {len(kept):,} drives, and fewer than {FEWEST_DRIVES} do not stand for all. Narrow the "
                          "query.")
    chosen = sizes.iloc[kept]
    drawn = Drawn(int(chosen["n"].sum()), n_all, len(kept), len(sizes))
    return replace(query, **{DRIVE: tuple(chosen[DRIVE])}), drawn


def with_all_drives(cohort: Cohort, corpus: Corpus, query: CohortQuery) -> Cohort:
    """A drawn cohort, with the sums of its metrics in those drives of the query that were not drawn."""
    sums = corpus.drive_sums(query, list(cohort.ell))
    sums = sums[~sums.index.isin(cohort.drive_ids)].astype(float)
    return with_rest(cohort, Rest(sums["n"].to_numpy(), {name: sums[name].to_numpy() for name in cohort.ell}))
