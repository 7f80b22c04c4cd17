"""Pictures of latent space: principal axes at once, UMAP as a long job, and how far each can be trusted.

    axes = pca_axes(analysis.space.X)                       # in a moment
    projection = finish(project_steps(comparison))          # umap, pca, h_bar, and how much of the neighbours is kept
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from threading import Thread

import numpy as np

from avshift_core.latent.neighbors import nearest
from avshift_core.progress import Progress

N_COMPONENTS = 30  # the paper's: PCA to 30 dimensions, then UMAP
SHOWN = 4  # principal axes that a map can show
N_NEIGHBORS, MIN_DIST = 15, 0.1  # umap-learn's own defaults
K_SMOOTH = 30  # neighbours behind h_bar: twice umap's, from the same graph; halves the noise of single scores again
EXACT_ROWS = 60_000  # up to here all distances take less time than compiling the approximate search
FEW_ROWS = 10_000  # umap-learn's own limit: 500 epochs below, 200 above
SAMPLE_ROWS = 2_000  # on which the picture is compared with the space
CHUNK = 200_000  # rows of one block of the covariance
LOOK_S = 0.2  # between two looks at the layout's progress


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
        exact: whether the neighbours are the exact ones; beyond 60,000 rows a search finds nearly all.
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
    exact: bool


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
    """PCA, then UMAP of the principal components, of both cohorts together; the same seed gives the same map.

    Args:
        comparison: its `analysis` holds the space and the held-out h.
    """
    X, test = comparison.analysis.space.X, comparison.analysis.global_test
    n, d = X.shape
    yield Progress(f"Principal axes of {n:,} scenarios", 0.01)
    axes = pca_axes(X, max(SHOWN, min(n_components, d)))
    x, pca = axes.scores[:, : min(n_components, d)], axes.scores[:, :SHOWN]
    yield Progress("Nearest neighbours of every scenario", 0.04)
    k_smooth, k_map = min(K_SMOOTH, n - 1), min(n_neighbors, n - 1)
    distance, index = _neighbors(x, max(k_smooth, k_map - 1), seed)
    h_bar = np.concatenate([test.h_P, test.h_Q])[index[:, :k_smooth]].mean(axis=1).astype(np.float32)
    umap = yield from _layout(x, distance[:, : k_map - 1], index[:, : k_map - 1], pca[:, :2], min_dist, seed)
    yield Progress("How much of the neighbours does the map keep?", 0.94)
    rows = np.sort(np.random.default_rng([seed, 21]).permutation(n)[:SAMPLE_ROWS])
    near = nearest_of(X, rows, k_map)
    faiths = [measure_faith(X, xy, rows, near) for xy in (umap, pca[:, :2])]
    yield Progress("Done", 1.0)
    return _frozen(Projection(
        umap, pca, axes.explained[:SHOWN], float(axes.explained[: x.shape[1]].sum()), h_bar, *faiths, x.shape[1],
        n_neighbors, k_smooth, seed, n <= EXACT_ROWS,
    ))


def _neighbors(x, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """distance (n, k), index (n, k) of the nearest other rows."""
    if len(x) <= EXACT_ROWS:
        return nearest(x, k)
    from pynndescent import NNDescent

    index, distance = NNDescent(x, n_neighbors=k + 1, random_state=seed, n_jobs=1).neighbor_graph
    self_first = index == np.arange(len(x))[:, None]  # a twin may stand before the row itself
    self_first[~self_first.any(axis=1), -1] = True
    return distance[~self_first].reshape(-1, k), index[~self_first].reshape(-1, k)


def _layout(x, distance, index, start, min_dist: float, seed: int) -> Generator[Progress, None, np.ndarray]:
    """(n, 2) UMAP of a graph of neighbours, from the principal axes on, epoch by epoch."""
    yield Progress("Preparing the layout", 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn says that tensorflow is not installed
        from umap.umap_ import find_ab_params, fuzzy_simplicial_set, simplicial_set_embedding
    n, epochs = len(x), 500 if len(x) <= FEW_ROWS else 200
    random = np.random.RandomState(seed)  # the kind that umap-learn asks for
    own = np.arange(n)[:, None]
    graph = fuzzy_simplicial_set(
        x, distance.shape[1] + 1, random, "euclidean", knn_indices=np.hstack([own, index]).astype(np.int32),
        knn_dists=np.hstack([np.zeros_like(own), distance]).astype(np.float32),
    )[0]
    a, b = find_ab_params(1.0, min_dist)
    scale = max(float(np.abs(start).max()), 1e-12)
    init = (start / scale * 10 + random.normal(scale=1e-4, size=start.shape)).astype(np.float32)  # as umap's own "pca"
    bar, made = _Epochs(epochs), []

    def draw() -> None:
        try:
            made.append(simplicial_set_embedding(
                x, graph, 2, 1.0, a, b, 1.0, 5, epochs, init, random, "euclidean", {}, False, {}, False,
                parallel=False, tqdm_kwds={"file": bar, "disable": False, "mininterval": 0, "bar_format": "{n}"},
            )[0])
        except Exception as error:
            made.append(error)

    thread = Thread(target=draw, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
        yield Progress(f"Drawing the map, {bar.done:,} of {epochs} rounds", 0.35 + 0.58 * bar.done / epochs)
    if isinstance(made[0], Exception):
        raise made[0]
    return np.ascontiguousarray(made[0] - made[0].mean(axis=0), dtype=np.float32)


class _Epochs(io.StringIO):
    """Where umap-learn writes its bar: remembers the last number written."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.done, self.most = 0, most

    def write(self, text: str) -> int:
        if text.strip().isdigit():
            self.done = min(int(text), self.most)
        return len(text)


def nearest_of(X, rows, k: int) -> np.ndarray:
    """(m, k) nearest other rows of X for each of `rows`."""
    _, index = nearest(X, min(k + 1, len(X)), X[rows])
    other = index != rows[:, None]
    other[other.all(axis=1), -1] = False  # a row with many twins is not among its own neighbours
    return index[other].reshape(len(rows), -1)


def measure_faith(X, xy, rows, near=None) -> Faith:
    """What of the space X (n, d) can be read off its picture xy (n, 2), on the sample `rows`."""
    from sklearn.manifold import trustworthiness

    near = nearest_of(X, rows, min(N_NEIGHBORS, len(X) - 1)) if near is None else near
    k = near.shape[1]
    seen = nearest_of(xy, rows, k)
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
