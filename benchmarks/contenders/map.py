"""A map of both cohorts in two dimensions."""

from __future__ import annotations

import engine
import numpy as np
from measure import K_NEAREST, Contender, Data, measure, threads

COLUMNS = {"trustworthiness": "trustworthiness", "continuity": "continuity", "kept": f"of {K_NEAREST} nearest kept"}
NULLS: dict[str, str] = {}
SAMPLE_ROWS, K = 2_000, 15


def quality(data: Data, xy) -> dict:
    from sklearn.manifold import trustworthiness

    xy = np.asarray(xy)
    rows = np.random.default_rng(0).permutation(len(xy))[:SAMPLE_ROWS]
    X, seen = data.X[rows], xy[rows]
    return {"": {"trustworthiness": trustworthiness(X, seen, n_neighbors=K),
                 "continuity": trustworthiness(seen, X, n_neighbors=K), "kept": _kept(data, xy)}}


def _kept(data: Data, xy) -> float:
    """Share of the exact nearest rows, among all of them, that are among as many nearest on the map."""
    kept = []
    for row, near in zip(data.sample, data.near, strict=True):
        distance = ((xy - xy[row]) ** 2).sum(axis=1)
        distance[row] = np.inf
        kept.append(np.isin(np.argpartition(distance, K_NEAREST)[:K_NEAREST], near).mean())
    return float(np.mean(kept))


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
