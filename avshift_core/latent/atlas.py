"""The map of a whole corpus: a scenario has one place on it, whatever it is compared with.

    atlas = finish(atlas_steps("fleet", corpus.fingerprint, latents))
    xy = atlas.places(cohort.obs["scenario_id"], cohort.z)
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from avshift_core.latent.layout import N_NEIGHBORS, WHOLE_ROWS, choose_landmarks, layout_steps
from avshift_core.latent.neighbors import knn_graph, nearest
from avshift_core.latent.outline import extent_of
from avshift_core.latent.principal import pca_axes
from avshift_core.latent.whole import SCENARIO, spread, whole_steps
from avshift_core.progress import Progress, within
from avshift_core.scenario.store.corpus import open_corpus

N_COMPONENTS = 30  # the paper's: PCA to 30 dimensions, then UMAP
MOST = 200_000  # scenarios that are drawn; of a larger corpus some, of every part its share
ANCHORS = 20_000  # of the drawn ones, by which the others are placed
K_PLACE = 5  # anchors that a scenario is placed between
READ_SHARE, GRAPH_SHARE = 0.1, 0.25  # of the whole for reading, and of the rest until the neighbours are known


@dataclass(frozen=True, eq=False)
class Atlas:
    """The scenarios of a corpus on a map, and what places further ones.

    Attributes:
        scenario_id: (m,) drawn scenarios, sorted; xy: (m, 2) float32 their places.
        n: scenarios of the corpus that have these latents.
        mean, scale: (d,) of the latents; axes: (d, c) principal axes of the standardised ones; explained: share of the
            variance along all of these.
        anchor: (a,) rows of xy; anchor_x: (a, c) their principal components.
        recall: share of the true neighbours that the search behind the map has found; 1 up to 40,000 scenarios.
        landmarks: whether some of the scenarios were drawn first.
    """

    scenario_id: np.ndarray
    xy: np.ndarray
    n: int
    mean: np.ndarray
    scale: np.ndarray
    axes: np.ndarray
    explained: float
    anchor: np.ndarray
    anchor_x: np.ndarray
    recall: float
    landmarks: bool
    seed: int

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """x0, x1, y0, y1 of the square that every map of this corpus shows."""
        return extent_of(self.xy)

    def drawn(self, scenario_id) -> np.ndarray:
        """(n,) whether these scenarios were drawn; the others stand between those nearest to them."""
        return self._rows(scenario_id) >= 0

    def places(self, scenario_id, z) -> np.ndarray:
        """(n, 2) float32: where scenarios stand, by their ids (n,) and latents (n, d).

        Who was not drawn stands at the mean of its K_PLACE nearest anchors, the nearer one counting more, by
        1 / distance.
        """
        row = self._rows(scenario_id)
        xy = self.xy[row]
        other = np.flatnonzero(row < 0)
        if len(other):
            x = (((np.asarray(z)[other] - self.mean) / self.scale) @ self.axes).astype(np.float32)
            distance, index = nearest(self.anchor_x, min(K_PLACE, len(self.anchor)), x)
            weight = 1 / np.maximum(distance, 1e-6)
            towards = self.xy[self.anchor[index]]
            xy[other] = (weight[:, :, None] * towards).sum(axis=1) / weight.sum(axis=1)[:, None]
        return xy

    def _rows(self, scenario_id) -> np.ndarray:
        """(n,) rows of these scenarios, -1 for those that were not drawn."""
        wanted = np.asarray(scenario_id, dtype=str)
        at = np.minimum(np.searchsorted(self.scenario_id, wanted), len(self.scenario_id) - 1)
        return np.where(self.scenario_id[at] == wanted, at, -1)


def atlas_steps(url: str, fingerprint: str, latents: str, seed: int = 0) -> Generator[Progress, None, Atlas]:
    """PCA, then UMAP of the principal components, of all scenarios of a corpus that have these latents.

    The same corpus and seed give the same map.
    """
    corpus = open_corpus(url, fingerprint=fingerprint)
    all_of_it = yield from within(whole_steps(corpus, latents, most=MOST, seed=seed), 0.0, READ_SHARE)
    ids = all_of_it.obs[SCENARIO].to_numpy(dtype=str)
    order = np.argsort(ids, kind="stable")
    drawing = draw_steps(ids[order], all_of_it.z[order], all_of_it.part[order], all_of_it.n_all, seed)
    return (yield from within(drawing, READ_SHARE, 1.0))


def draw_steps(scenario_id, z, part, n: int, seed: int = 0) -> Generator[Progress, None, Atlas]:
    """The map of scenarios at hand.

    Args:
        scenario_id: (m,) sorted; z: (m, d) latents; part: (m,) labels of which landmarks are drawn alike.
        n: scenarios that these stand for.
    """
    mean, scale = spread(z)
    yield Progress(f"Principal axes of {len(z):,} scenarios", 0.0)
    found = pca_axes(((z - mean) / scale).astype(np.float32), max(2, min(N_COMPONENTS, z.shape[1])))
    axes, x = found.axes, np.ascontiguousarray(found.scores[:, : found.axes.shape[1]])
    yield Progress("Nearest neighbours of every scenario", 0.02)
    graph = knn_graph(x, min(N_NEIGHBORS, len(x) - 1), seed)
    xy = yield from within(layout_steps(x, graph, found.scores[:, :2], part, seed=seed), GRAPH_SHARE, 1.0)
    anchor = choose_landmarks(part, ANCHORS, seed)
    atlas = Atlas(scenario_id, xy, n, mean, scale, axes, float(found.explained.sum()), anchor, x[anchor], graph.recall,
                  len(x) > WHOLE_ROWS, seed)
    for value in vars(atlas).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return atlas
