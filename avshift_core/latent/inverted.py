"""Scenarios like this one anywhere in a corpus: latents in lists around centres, of which a search opens the nearest.

    index = finish(index_steps("fleet", corpus.fingerprint, latents))
    found = index.search(z, k=10, scenario_id="harbor-2026-W10-0042-000", drive_id="harbor-2026-W10-0042")
    found.scenario_id, found.distance, index.reach.recall

How many lists to open is chosen on some scenarios of the corpus, and the recall is measured on others.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import CorpusError
from avshift_core.latent.lists import Lists, Reach, make_lists, probes_for
from avshift_core.latent.whole import DRIVE, SCENARIO, spread, whole_steps
from avshift_core.progress import Progress, within
from avshift_core.scenario.store.corpus import open_corpus

MOST = 4_000_000  # scenarios: a gigabyte of latents in 64 dimensions
AIM, K_RECALL = 0.99, 10  # share of the nearest that a search should find


@dataclass(frozen=True, eq=False)
class Found:
    """The nearest scenarios, nearest first.

    Attributes:
        scenario_id: (k,); distance: (k,) in standard deviations of the corpus' latents.
        looked_at: share of the corpus that the search has looked at.
    """

    scenario_id: np.ndarray
    distance: np.ndarray
    looked_at: float


@dataclass(frozen=True, eq=False)
class Inverted:
    """The latents of a corpus, list after list.

    Attributes:
        obs: scenario_id and drive_id in the order of the lists; lists: of the standardised latents.
        mean, scale: (d,) of the raw ones.
        reach: lists that a search opens, and the share of the K_RECALL true nearest that it finds.
    """

    obs: pd.DataFrame
    lists: Lists
    mean: np.ndarray
    scale: np.ndarray
    reach: Reach

    def search(self, z, k: int, *, scenario_id: str = "", drive_id: str = "") -> Found:
        """The k scenarios nearest to a raw latent z (d,).

        Args:
            scenario_id: of the anchor, which is left out; drive_id: a drive that is left out too.
        """
        z = np.asarray(z, dtype=np.float64).ravel()
        if len(z) != len(self.mean):
            raise CorpusError(f"The latent of '{scenario_id}' has {len(z)} dimensions and those of the corpus "
                              f"{len(self.mean)}; encode both with the same model.")
        x = ((z - self.mean) / self.scale).astype(np.float32)
        rows = self.lists.rows(self.lists.opened(x[None], self.reach.probes)[0])
        told = self.obs.iloc[rows]
        left_out = told[SCENARIO].eq(scenario_id) | (told[DRIVE].eq(drive_id) if drive_id else False)
        rows = rows[~left_out.to_numpy()]
        distance = np.linalg.norm(self.lists.X[rows] - (z - self.mean) / self.scale, axis=1)
        order = np.argsort(distance, kind="stable")[:k]
        return Found(self.obs[SCENARIO].to_numpy(dtype=str)[rows[order]], distance[order], len(told) / len(self.obs))


def index_steps(url: str, fingerprint: str, latents: str, seed: int = 0) -> Generator[Progress, None, Inverted]:
    """Sort the latents of a corpus into lists, and find out how many of them a search has to open."""
    corpus = open_corpus(url, fingerprint=fingerprint)
    n = corpus.models.get(latents, 0)
    if n > MOST:
        raise CorpusError(f"{url} has {n:,} scenarios, and at most {MOST:,} can be searched at once. Search among P "
                          "and Q, or split the corpus.")
    everything = yield from within(whole_steps(corpus, latents), 0.0, 0.3)
    mean, scale = spread(everything.z)
    yield Progress(f"Sorting {len(everything.z):,} scenarios into lists", 0.3)
    lists = make_lists(((everything.z - mean) / scale).astype(np.float32), seed)
    yield Progress("How many lists does a search have to open?", 0.7)
    reach = probes_for(lists, K_RECALL, AIM, seed)
    for array in (*vars(lists).values(), mean, scale):
        array.setflags(write=False)
    yield Progress("Done", 1.0)
    return Inverted(everything.obs.iloc[lists.order].reset_index(drop=True), lists, mean, scale, reach)
