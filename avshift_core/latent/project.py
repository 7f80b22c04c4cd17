"""Pictures of latent space: principal axes at once, UMAP as a long job, and how far each can be trusted.

    axes = pca_axes(analysis.space.X)                       # in a moment
    projection = finish(project_steps(comparison))          # umap, pca, h_bar, and how much of the neighbours is kept
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from avshift_core.latent.layout import MIN_DIST, N_NEIGHBORS, WHOLE_ROWS, layout_steps
from avshift_core.latent.neighbors import knn_graph, nearest_of
from avshift_core.progress import Progress, within

N_COMPONENTS = 30  # the paper's: PCA to 30 dimensions, then UMAP
SHOWN = 4  # principal axes that a map can show
K_SMOOTH = 30  # neighbours behind h_bar: twice umap's, from the same graph; halves the noise of single scores again
SAMPLE_ROWS = 2_000  # on which the picture is compared with the space
CHUNK = 200_000  # rows of one block of the covariance


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal components: scores (n, c) float32, and explained (c,), the share of the variance along each."""

    scores: np.ndarray
    explained: np.ndarray


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
    """A map of both cohorts, P's rows first.

    Attributes:
        umap: (n, 2) float32, of the first `n_components` principal components.
        pca: (n, 4) float32 scores on the first principal axes, zeros beyond the dimension of the space.
        explained: (4,) share of the variance along each; explained_all: along all that UMAP was given.
        h_bar: (n,) float32 mean held-out h over the `k_smooth` nearest neighbours in these components, the scenario
            itself not among them (eq:smoothed_classifier_score).
        umap_faith, pca_faith: of `umap`, and of the first two principal axes.
        recall: share of the true neighbours that the search behind h_bar and umap has found; 1 up to 100,000 rows.
        landmarks: whether umap was drawn by landmarks first.
    """

    umap: np.ndarray
    pca: np.ndarray
    explained: np.ndarray
    explained_all: float
    h_bar: np.ndarray
    umap_faith: Faith
    pca_faith: Faith
    n_components: int
    n_neighbors: int
    k_smooth: int
    seed: int
    recall: float
    landmarks: bool


def pca_axes(X, n_components: int = SHOWN) -> Axes:
    """Scores on the first principal axes, from the (d, d) covariance: quick for any number of rows.

    An axis points to where its largest loading is positive, so that the picture is never mirrored by chance. Axes
    beyond the dimension of X are 0.

    >>> axes = pca_axes(np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, -4.0]]), 2)
    >>> axes.scores[:, 0].tolist(), axes.explained.round(6).tolist()
    ([0.0, 5.0, -5.0], [1.0, 0.0])
    """
    n, d = X.shape
    blocks = [slice(start, start + CHUNK) for start in range(0, n, CHUNK)]
    mean = sum(X[rows].sum(axis=0, dtype=np.float64) for rows in blocks) / n
    covariance = sum(_square(X[rows] - mean) for rows in blocks) / n
    value, vector = np.linalg.eigh(covariance)
    value, vector = value[::-1].clip(0), vector[:, ::-1]
    vector = vector * np.sign(vector[np.abs(vector).argmax(axis=0), np.arange(d)])
    c = min(n_components, d)
    scores, explained = np.zeros((n, n_components), dtype=np.float32), np.zeros(n_components)
    for rows in blocks:
        scores[rows, :c] = (X[rows] - mean) @ vector[:, :c]
    explained[:c] = value[:c] / max(value.sum(), 1e-300)
    return _frozen(Axes(scores, explained))


def _square(x) -> np.ndarray:
    return x.T @ x


def project_steps(
    comparison, *, n_components: int = N_COMPONENTS, n_neighbors: int = N_NEIGHBORS, min_dist: float = MIN_DIST,
    seed: int = 0,
) -> Generator[Progress, None, Projection]:
    """PCA, then UMAP of the principal components, of both cohorts together.

    The same seed gives the same map, beyond 100,000 rows on the same number of cores.

    Args:
        comparison: its `analysis` holds the space and the held-out h.
    """
    analysis = comparison.analysis
    X, test = analysis.space.X, analysis.global_test
    n, d = X.shape
    yield Progress(f"Principal axes of {n:,} scenarios", 0.01)
    axes = pca_axes(X, max(SHOWN, min(n_components, d)))
    x, pca = axes.scores[:, : min(n_components, d)], axes.scores[:, :SHOWN]
    yield Progress("Nearest neighbours of every scenario", 0.04)
    k_smooth, k_map = min(K_SMOOTH, n - 1), min(n_neighbors, n - 1)
    graph = knn_graph(x, max(k_smooth, k_map - 1), seed)
    h_bar = np.concatenate([test.h_P, test.h_Q])[graph.index[:, :k_smooth]].mean(axis=1).astype(np.float32)
    drawing = layout_steps(x, graph, pca[:, :2], _stratum(analysis), n_neighbors=n_neighbors, min_dist=min_dist,
                           seed=seed)
    umap = yield from within(drawing, 0.3, 0.94)
    yield Progress("How much of the neighbours does the map keep?", 0.94)
    rows = np.sort(np.random.default_rng([seed, 21]).permutation(n)[:SAMPLE_ROWS])
    near = nearest_of(X, rows, k_map)[0]
    faiths = [measure_faith(X, xy, rows, near) for xy in (umap, pca[:, :2])]
    yield Progress("Done", 1.0)
    return _frozen(Projection(
        umap, pca, axes.explained[:SHOWN], float(axes.explained[: x.shape[1]].sum()), h_bar, *faiths, x.shape[1],
        n_neighbors, k_smooth, seed, graph.recall, n > WHOLE_ROWS,
    ))


def _stratum(analysis) -> np.ndarray:
    """(n,) a label for each cohort and region, so that landmarks stand for all of them."""
    n_P, n_Q = len(analysis.global_test.h_P), len(analysis.global_test.h_Q)
    if analysis.local is None:
        return np.repeat([0, 1], [n_P, n_Q])
    return np.concatenate([2 * analysis.local.region_P, 2 * analysis.local.region_Q + 1])


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


def _frozen(result):
    for value in vars(result).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return result
