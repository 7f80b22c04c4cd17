"""Scenarios of whole drives with their latents, attributes and metrics; and pairs of cohorts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.latent.cohort import Cohort, make_cohort
from avshift_core.quality.contexts import true_contexts
from avshift_core.quality.drivewise import drive_numbers
from avshift_core.quality.probes import METRICS
from avshift_core.quality.shifts import Pair
from avshift_core.scenario.simulate.truth import Truth
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery

COHORT = 5_000  # scenarios of one side of a pair at most: no verdict of this report needs more


@dataclass(frozen=True, eq=False)
class Sample:
    """Attributes:
        query: the drives that were chosen; table: one row a scenario; z: (n, d); drive: (n,) as 0..G-1.
        n_corpus: scenarios of the whole corpus.
    """

    query: CohortQuery
    table: pd.DataFrame
    z: np.ndarray
    drive: np.ndarray
    n_corpus: int

    @property
    def n(self) -> int:
        return len(self.z)

    @property
    def n_drives(self) -> int:
        return int(self.drive.max()) + 1


def choose_drives(corpus: Corpus, most: int, seed: int, query: CohortQuery | None = None) -> CohortQuery:
    """Drives drawn at random until the next one would make more than `most` scenarios; all where there are no more."""
    query = query or CohortQuery()
    count = corpus.sums(query, by=["drive_id"]).set_index("drive_id")["n"]
    if count.sum() <= most:
        return query
    order = np.random.default_rng([seed, 19]).permutation(len(count))
    size = count.to_numpy()[order]
    kept = order[: max(1, int(np.searchsorted(np.cumsum(size), most, side="right")))]
    chosen = {name: getattr(query, name) for name in query.__dataclass_fields__}
    return CohortQuery(**{**chosen, "drive_id": tuple(count.index[kept])})


def read_sample(corpus: Corpus, latents: str, *, most: int, seed: int, events=()) -> Sample:
    """At most about `most` scenarios, with every attribute and metric that probes and clusters ask for.

    Args:
        latents: name of the latents in the corpus; events: more metrics, such as `ttc_min_s<1.5`.
    """
    query = choose_drives(corpus, most, seed)
    measured = [name for name in METRICS if name in corpus.metric_columns]
    known = [text for text in events if text.split("<")[0].split(">")[0] in corpus.metric_columns]
    table, z = corpus.table(query, metrics=list(dict.fromkeys([*measured, *known])), latents=latents)
    return Sample(query, table, z, drive_numbers(table["drive_id"]), corpus.n)


@dataclass(frozen=True, eq=False)
class CohortPair:
    """Source and target: latents, and true contexts of the same rows where there is a truth."""

    z: tuple[Cohort, Cohort]
    contexts: tuple[Cohort, Cohort] | None
    gamma_star: float | None


def read_pair(corpus: Corpus, pair: Pair, latents: str, truth: Truth | None, seed: int) -> CohortPair:
    """Both cohorts of a pair, from the whole corpus and not only from the sample: a verdict needs every drive."""
    z, contexts = [], []
    for query in (pair.source, pair.target):
        chosen = choose_drives(corpus, COHORT, seed, query)
        table, latent = corpus.table(chosen, columns=["scenario_id", "drive_id"], latents=latents)
        z.append(make_cohort(str(query), latent, drive_id=table["drive_id"]))
        if truth is not None:
            contexts.append(make_cohort(str(query), true_contexts(truth, table["scenario_id"]),
                                        drive_id=table["drive_id"]))
    if truth is None:
        return CohortPair(tuple(z), None, None)
    return CohortPair(tuple(z), tuple(contexts), truth.gamma_star(*pair.cells))
