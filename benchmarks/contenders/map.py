"""A map of both cohorts in two dimensions."""

from __future__ import annotations

import engine
import numpy as np
from measure import Contender, Data, measure, threads

COLUMNS = {"trustworthiness": "trustworthiness"}
NULLS: dict[str, str] = {}
SAMPLE_ROWS, K = 2_000, 15


def quality(data: Data, xy) -> dict:
    from sklearn.manifold import trustworthiness

    rows = np.random.default_rng(0).permutation(len(xy))[:SAMPLE_ROWS]
    return {"": {"trustworthiness": trustworthiness(data.X[rows], np.asarray(xy)[rows], n_neighbors=K)}}


def ours(data: Data) -> np.ndarray:
    return engine.layout(data)


def umap_seeded(data: Data) -> np.ndarray:
    return _umap(data, random_state=0, n_jobs=1)


def umap_parallel(data: Data) -> np.ndarray:
    return _umap(data, n_jobs=threads())


def _umap(data: Data, **settings) -> np.ndarray:
    from umap import UMAP

    if data.tiny:
        UMAP(force_approximation_algorithm=True, n_epochs=2, **settings).fit(data.X)
    return UMAP(**settings).fit_transform(data.X)


CONTENDERS = (
    Contender("AVShift", ours, note="PCA to 30, UMAP with seed"),
    Contender("umap-learn, seeded", umap_seeded, "plain", "64-D, its defaults; a seed allows it one thread"),
    Contender("umap-learn, no seed", umap_parallel, "plain", "64-D, its defaults; another map each time"),
)

if __name__ == "__main__":
    measure(CONTENDERS, quality)
