"""Two cohorts on the map of their corpus, how far it can be trusted, and scores smoothed over neighbours.

    projection = finish(project_steps(comparison, atlas))   # places, and how much of the neighbours they keep
    smoothed = finish(smooth_steps(comparison))             # h_bar
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from avshift_core.latent.atlas import N_COMPONENTS, Atlas
from avshift_core.latent.layout import N_NEIGHBORS
from avshift_core.latent.neighbors import knn_graph, nearest_of
from avshift_core.latent.principal import pca_axes
from avshift_core.progress import Progress

SCENARIO = "scenario_id"
K_SMOOTH = 30  # neighbours behind h_bar: the noise of single scores, over sqrt(30)
SAMPLE_ROWS = 2_000  # on which the picture is compared with the space


@dataclass(frozen=True)
class Faith:
    """How far a picture can be trusted, on a sample of the scenarios.

    Attributes:
        trustworthiness: 1 when neighbours in the picture are neighbours in the space (Venna and Kaski 2001).
        continuity: 1 when neighbours in the space are neighbours in the picture.
        kept: share of a scenario's k nearest neighbours in the space, among all scenarios, that are among its k
            nearest in the picture.
        k: neighbours; rows: size of the sample.
    """

    trustworthiness: float
    continuity: float
    kept: float
    k: int
    rows: int


@dataclass(frozen=True, eq=False)
class Projection:
    """Both cohorts on the map of the corpus, P's rows first.

    Attributes:
        umap: (n, 2) float32; extent: x0, x1, y0, y1 of the corpus' map, the same in every comparison.
        umap_faith, pca_faith: of `umap`, and of the first two principal axes of both cohorts.
        n_corpus, n_drawn: scenarios of the corpus, and those that the map was drawn from.
        placed: share of these scenarios that were not drawn, but placed between their nearest.
        recall, landmarks: as in Atlas.
    """

    umap: np.ndarray
    extent: tuple[float, float, float, float]
    umap_faith: Faith
    pca_faith: Faith
    n_corpus: int
    n_drawn: int
    placed: float
    recall: float
    landmarks: bool


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Scores over neighbourhoods, P's rows first.

    Attributes:
        h_bar: (n,) float32 mean held-out h over the k nearest scenarios of both cohorts in their first principal
            components, the scenario itself not among them (eq:smoothed_classifier_score).
        recall: share of the true neighbours that the search has found; 1 up to 40,000 scenarios.
    """

    h_bar: np.ndarray
    k: int
    recall: float


def project_steps(comparison, atlas: Atlas, seed: int = 0) -> Generator[Progress, None, Projection]:
    """Both cohorts of a comparison where the map of their corpus has them.

    Args:
        comparison: its `analysis` holds the cohorts and their space.
    """
    analysis = comparison.analysis
    X, cohorts = analysis.space.X, (analysis.P, analysis.Q)
    yield Progress(f"Placing {len(X):,} scenarios", 0.05)
    umap = np.concatenate([atlas.places(c.obs[SCENARIO], c.z) for c in cohorts])
    umap.setflags(write=False)
    drawn = np.concatenate([atlas.drawn(c.obs[SCENARIO]) for c in cohorts])
    yield Progress("How much of the neighbours does the map keep?", 0.5)
    rows = np.sort(np.random.default_rng([seed, 21]).permutation(len(X))[:SAMPLE_ROWS])
    near = nearest_of(X, rows, min(N_NEIGHBORS, len(X) - 1))[0]
    faiths = [measure_faith(X, xy, rows, near) for xy in (umap, pca_axes(X, 2).scores)]
    yield Progress("Done", 1.0)
    return Projection(umap, atlas.extent, *faiths, atlas.n, len(atlas.xy), float(1 - drawn.mean()), atlas.recall,
                      atlas.landmarks)


def smooth_steps(comparison, seed: int = 0) -> Generator[Progress, None, Smoothed]:
    """Mean held-out score of every scenario's neighbours.

    Args:
        comparison: its `analysis` holds the space and the held-out h.
    """
    X, test = comparison.analysis.space.X, comparison.analysis.global_test
    n, d = X.shape
    yield Progress(f"Principal axes of {n:,} scenarios", 0.02)
    x = pca_axes(X, min(N_COMPONENTS, d)).scores
    yield Progress("Nearest neighbours of every scenario", 0.1)
    k = min(K_SMOOTH, n - 1)
    graph = knn_graph(x, k, seed)
    h_bar = np.concatenate([test.h_P, test.h_Q])[graph.index].mean(axis=1).astype(np.float32)
    h_bar.setflags(write=False)
    yield Progress("Done", 1.0)
    return Smoothed(h_bar, k, graph.recall)


def measure_faith(X, xy, rows, near=None) -> Faith:
    """What of the space X (n, d) can be read off its picture xy (n, 2), on the sample `rows`."""
    from sklearn.manifold import trustworthiness

    near = nearest_of(X, rows, min(N_NEIGHBORS, len(X) - 1))[0] if near is None else near
    k = near.shape[1]
    seen = nearest_of(xy, rows, k)[0]
    kept = float((near[:, :, None] == seen[:, None, :]).any(axis=2).mean())
    k_in = max(1, min(k, (len(rows) - 1) // 2))
    return Faith(
        float(trustworthiness(X[rows], xy[rows], n_neighbors=k_in)),
        float(trustworthiness(xy[rows], X[rows], n_neighbors=k_in)), kept, k, len(rows),
    )
