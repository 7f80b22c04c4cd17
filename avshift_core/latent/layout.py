"""The layout of a map: UMAP of a graph of neighbours; of many scenarios by landmarks first, then all of them a little.

    xy = finish(layout_steps(x, graph, start, stratum, seed=0))

Most of UMAP's rounds are spent on finding the large shape, for which a part of the scenarios is enough. The others
start where their nearest landmarks lie, and a few rounds of all of them bring out the small shape. One thread draws:
the same graph and seed give the same map.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from threading import Thread

import numpy as np

from avshift_core.latent.neighbors import Graph, nearest
from avshift_core.progress import Progress, within

N_NEIGHBORS, MIN_DIST = 15, 0.1  # umap-learn's own defaults
FEW_ROWS = 10_000  # umap-learn's own limit: 500 rounds below, 200 above
WHOLE_ROWS = 40_000  # beyond it landmarks come first
LANDMARKS = 20_000
LAST_ROUNDS, LAST_RATE = 40, 0.5  # of all scenarios, from where the landmarks have put them
LOOK_S = 0.2  # between two looks at the progress


def layout_steps(
    x, graph: Graph, start, stratum, *, n_neighbors: int = N_NEIGHBORS, min_dist: float = MIN_DIST, seed: int = 0
) -> Generator[Progress, None, np.ndarray]:
    """(n, 2) float32 picture of x (n, d).

    Args:
        graph: nearest neighbours of every row of x, at least n_neighbors - 1 of them where there are as many.
        start: (n, 2) where to start from, such as the principal axes.
        stratum: (n,) labels; landmarks are drawn from all of them alike.
    """
    n, random = len(x), np.random.RandomState(seed)  # the kind that umap-learn asks for
    k = min(n_neighbors, n) - 1
    whole = Graph(graph.index[:, :k], graph.distance[:, :k], graph.recall)
    if n <= WHOLE_ROWS:
        drawing = Drawing(x, whole, _scaled(start, random), 500 if n <= FEW_ROWS else 200, 1.0)
        xy = yield from drawing.steps(min_dist, random, "Drawing the map")
        return _centred(xy)
    rows = choose_landmarks(stratum, LANDMARKS, seed)
    yield Progress(f"Neighbours of {len(rows):,} landmarks", 0.0)
    distance, index = nearest(x[rows], k)
    drawing = Drawing(x[rows], Graph(index, distance, 1.0), _scaled(start[rows], random), 200, 1.0)
    landmarks = yield from within(drawing.steps(min_dist, random, "Drawing the landmarks"), 0.05, 0.6)
    yield Progress("Placing the others", 0.6)
    init = place(x, graph, rows, landmarks)
    drawing = Drawing(x, whole, init, LAST_ROUNDS, LAST_RATE)
    xy = yield from within(drawing.steps(min_dist, random, "Drawing all scenarios"), 0.62, 1.0)
    return _centred(xy)


def choose_landmarks(stratum, count: int, seed: int) -> np.ndarray:
    """Rows drawn at random, of every stratum its share to within one row.

    >>> stratum = np.repeat([0, 1], [900, 100])
    >>> np.bincount(stratum[choose_landmarks(stratum, 50, seed=0)]).tolist()
    [45, 5]
    """
    n, rng = len(stratum), np.random.default_rng([seed, 22])
    count = min(count, n)
    order = np.lexsort([rng.random(n), stratum])
    return np.sort(order[(np.arange(count) * (n / count) + rng.random() * (n / count - 1)).astype(int)])


def place(x, graph: Graph, rows, landmarks) -> np.ndarray:
    """(n, 2): landmarks where they are, every other row at the mean of the landmarks among its neighbours.

    The nearer one counts more, by 1 / distance. Who has no landmark among its neighbours starts at the nearest.
    """
    n = len(x)
    position = np.full((n, 2), np.nan, np.float32)
    position[rows] = landmarks
    known = np.zeros(n, dtype=bool)
    known[rows] = True
    out = position.copy()
    weight = known[graph.index] / np.maximum(graph.distance, 1e-6)
    total = weight.sum(axis=1)
    near = ~known & (total > 0)
    towards = np.nan_to_num(position)[graph.index[near]]  # (m, k, 2)
    out[near] = (weight[near, :, None] * towards).sum(axis=1) / total[near, None]
    alone = np.flatnonzero(~known & (total == 0))
    if len(alone):
        out[alone] = landmarks[nearest(x[rows], 1, x[alone])[1][:, 0]]
    return out


@dataclass(frozen=True, eq=False)
class Drawing:
    """UMAP's rounds over one graph, from `init` (n, 2) on; `rate` is how far the first round may move a point."""

    x: np.ndarray
    graph: Graph
    init: np.ndarray
    rounds: int
    rate: float

    def steps(self, min_dist: float, random, title: str) -> Generator[Progress, None, np.ndarray]:
        yield Progress("Preparing the layout", 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # umap-learn says that tensorflow is not installed
            from umap.layouts import optimize_layout_euclidean
            from umap.umap_ import find_ab_params, fuzzy_simplicial_set, make_epochs_per_sample
        own = np.arange(len(self.x))[:, None]
        fuzzy = fuzzy_simplicial_set(
            self.x, self.graph.index.shape[1] + 1, random, "euclidean",
            knn_indices=np.hstack([own, self.graph.index]).astype(np.int32),
            knn_dists=np.hstack([np.zeros_like(own), self.graph.distance]).astype(np.float32),
        )[0].tocoo()
        fuzzy.sum_duplicates()
        fuzzy.data[fuzzy.data < fuzzy.data.max() / self.rounds] = 0.0  # would not be drawn in any round
        fuzzy.eliminate_zeros()
        a, b = find_ab_params(1.0, min_dist)
        xy = np.array(self.init, dtype=np.float32, order="C")
        seed = random.randint(-(2**31) + 1, 2**31 - 1, 3).astype(np.int64)
        bar, made = _Rounds(self.rounds), []

        def draw() -> None:
            try:
                made.append(optimize_layout_euclidean(
                    xy, xy, fuzzy.row, fuzzy.col, self.rounds, len(xy), make_epochs_per_sample(fuzzy.data, self.rounds),
                    a, b, seed, 1.0, self.rate, 5.0, parallel=False, move_other=True,
                    tqdm_kwds={"file": bar, "disable": False, "mininterval": 0, "bar_format": "{n}"},
                ))
            except Exception as error:
                made.append(error)

        thread = Thread(target=draw, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
            yield Progress(f"{title}, {bar.done:,} of {self.rounds} rounds", 0.1 + 0.9 * bar.done / self.rounds)
        if isinstance(made[0], Exception):
            raise made[0]
        return made[0]


class _Rounds(io.StringIO):
    """Where umap-learn writes its bar: remembers the last number written."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.done, self.most = 0, most

    def write(self, text: str) -> int:
        if text.strip().isdigit():
            self.done = min(int(text), self.most)
        return len(text)


def _scaled(start, random) -> np.ndarray:
    """Where umap-learn starts from: each axis from 0 to 10, with a little noise, so that no two are in one place."""
    low, high = start.min(axis=0), start.max(axis=0)
    return (start - low) / np.maximum(high - low, 1e-12) * 10 + random.normal(scale=1e-4, size=start.shape)


def _centred(xy) -> np.ndarray:
    return np.ascontiguousarray(xy - xy.mean(axis=0), dtype=np.float32)
