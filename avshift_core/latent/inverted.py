"""Scenarios like this one anywhere in a corpus: latents in lists around centres, of which a search opens the nearest.

    index = finish(index_steps("fleet", corpus.fingerprint, latents))
    found = index.search(z, k=10, scenario_id="harbor-2026-W10-0042-000", drive_id="harbor-2026-W10-0042")
    found.scenario_id, found.distance, index.recall

An inverted file (Sivic and Zisserman 2003) is not exact: it may miss a neighbour that lies in a list which was not
opened. How many lists to open is chosen on some scenarios of the corpus, and the recall is then measured on others.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import CorpusError
from avshift_core.latent.cells import nearest_centre
from avshift_core.latent.neighbors import nearest_of
from avshift_core.latent.whole import DRIVE, SCENARIO, spread, whole_steps
from avshift_core.progress import Progress, within
from avshift_core.scenario.store.corpus import open_corpus

MOST = 4_000_000  # scenarios: a gigabyte of latents in 64 dimensions
MOST_LISTS, FIT_ROWS = 4096, 100_000
AIM, K_RECALL, ANCHORS = 0.99, 10, 300  # of the neighbours that a search should find; half of the anchors choose


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
        obs: scenario_id and drive_id in the order of the lists; X: (n, d) float32 standardised latents.
        mean, scale: (d,) of the raw ones.
        centre: (L, d); start: (L + 1,) first row of each list, and the end.
        probes: lists that a search opens.
        recall: share of the K_RECALL true nearest that it finds, on `anchors` scenarios that did not choose `probes`.
    """

    obs: pd.DataFrame
    X: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    centre: np.ndarray
    start: np.ndarray
    probes: int
    recall: float
    anchors: int

    def search(self, z, k: int, *, scenario_id: str = "", drive_id: str = "") -> Found:
        """The k scenarios nearest to a raw latent z (d,).

        Args:
            scenario_id: of the anchor, which is left out; drive_id: a drive that is left out too.
        """
        z = np.asarray(z, dtype=np.float64).ravel()
        if len(z) != len(self.mean):
            raise CorpusError(f"The latent of '{scenario_id}' has {len(z)} dimensions and those of the corpus "
                              f"{len(self.mean)}; encode both with the same model.")
        rows = self._opened(((z - self.mean) / self.scale).astype(np.float32), self.probes)
        told = self.obs.iloc[rows]
        left_out = told[SCENARIO].eq(scenario_id) | (told[DRIVE].eq(drive_id) if drive_id else False)
        rows = rows[~left_out.to_numpy()]
        distance = np.linalg.norm(self.X[rows] - (z - self.mean) / self.scale, axis=1)
        order = np.argsort(distance, kind="stable")[:k]
        return Found(self.obs[SCENARIO].to_numpy(dtype=str)[rows[order]], distance[order], len(told) / len(self.X))

    def _opened(self, x: np.ndarray, probes: int) -> np.ndarray:
        """Rows of the lists whose centres are nearest to x (d,)."""
        near = np.argsort(((self.centre - x) ** 2).sum(axis=1), kind="stable")[:probes]
        return np.concatenate([np.arange(self.start[i], self.start[i + 1]) for i in near])


def index_steps(url: str, fingerprint: str, latents: str, seed: int = 0) -> Generator[Progress, None, Inverted]:
    """Sort the latents of a corpus into lists, and find out how many of them a search has to open."""
    corpus = open_corpus(url, fingerprint=fingerprint)
    n = corpus.models.get(latents, 0)
    if n > MOST:
        raise CorpusError(f"{url} has {n:,} scenarios, and at most {MOST:,} can be searched at once. Search among P "
                          "and Q, or split the corpus.")
    everything = yield from within(whole_steps(corpus, latents), 0.0, 0.3)
    mean, scale = spread(everything.z)
    X = ((everything.z - mean) / scale).astype(np.float32)
    yield Progress("Centres of the lists", 0.3)
    centre = _centres(X, seed)
    yield Progress(f"Sorting into {len(centre):,} lists", 0.6)
    of_list, _ = nearest_centre(X, centre)
    order = np.argsort(of_list, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(of_list, minlength=len(centre)))])
    X, obs = X[order], everything.obs.iloc[order].reset_index(drop=True)
    yield Progress("How many lists does a search have to open?", 0.7)
    index = Inverted(obs, X, mean, scale, centre, start, len(centre), 1.0, 0)
    probes, recall, anchors = _measure(index, seed)
    for array in (X, mean, scale, centre, start):
        array.setflags(write=False)
    yield Progress("Done", 1.0)
    return Inverted(obs, X, mean, scale, centre, start, probes, recall, anchors)


def _centres(X, seed: int) -> np.ndarray:
    """About 2 sqrt(n) of them: to find the nearest list then costs no more than to look through it."""
    from sklearn.cluster import MiniBatchKMeans

    rows = np.sort(np.random.default_rng([seed, 26]).permutation(len(X))[:FIT_ROWS])
    lists = int(min(MOST_LISTS, max(1, 2 * np.sqrt(len(X))), len(np.unique(X[rows], axis=0))))
    fit = MiniBatchKMeans(lists, batch_size=4096, n_init=1, max_iter=10, random_state=seed).fit(X[rows])
    return fit.cluster_centers_.astype(np.float32)


def _measure(index: Inverted, seed: int) -> tuple[int, float, int]:
    """Fewest lists with which half of the anchors reach AIM, the recall of the others, and how many these are.

    A true neighbour is found when its list is opened, so the rank of its list among the centres tells all.
    """
    X, centre = index.X, index.centre
    rows = np.sort(np.random.default_rng([seed, 27]).permutation(len(X))[:ANCHORS])
    near = nearest_of(X, rows, min(K_RECALL, len(X) - 1))[0]
    of_list = np.searchsorted(index.start, near, side="right") - 1
    distance = (centre**2).sum(axis=1) - 2 * X[rows] @ centre.T  # less what is the same for all centres
    rank = np.argsort(np.argsort(distance, axis=1), axis=1)
    needed = np.take_along_axis(rank, of_list, axis=1) + 1
    choose, measure = needed[::2], needed[1::2]
    probes = int(np.quantile(choose, AIM, method="inverted_cdf"))
    return probes, float((measure <= probes).mean()), len(measure)
