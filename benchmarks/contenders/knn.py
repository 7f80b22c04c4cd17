"""The 50 nearest other rows of every row, in 64 dimensions."""

from __future__ import annotations

import engine
import numpy as np
from measure import K_NEAREST, Contender, Data, measure, threads

COLUMNS = {"recall": f"recall@{K_NEAREST}"}
NULLS: dict[str, str] = {}
LISTS = 1024


def quality(data: Data, index) -> dict:
    hit = (np.asarray(index)[data.sample][:, :, None] == data.near[:, None, :]).any(axis=2)
    return {"": {"recall": hit.sum() / data.near.size}}


def _others(index) -> np.ndarray:
    """Neighbours without the row itself; the last is left out where the row was not among them."""
    other = index != np.arange(len(index))[:, None]
    other[other.all(axis=1), -1] = False
    return index[other].reshape(len(index), -1)


def ours(data: Data) -> np.ndarray:
    return engine.nearest(data, K_NEAREST)


def sklearn_brute(data: Data) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=K_NEAREST, algorithm="brute").fit(data.X).kneighbors(return_distance=False)


def pynndescent(data: Data) -> np.ndarray:
    from pynndescent import NNDescent

    graph = NNDescent(data.X, n_neighbors=K_NEAREST + 1, random_state=0, n_jobs=threads())
    return _others(graph.neighbor_graph[0])


def faiss_exact(data: Data) -> np.ndarray:
    import faiss

    return _search_faiss(faiss.IndexFlatL2(data.X.shape[1]), data.X)


def faiss_ivf_32(data: Data) -> np.ndarray:
    return _faiss_ivf(data, 32)


def faiss_ivf_64(data: Data) -> np.ndarray:
    return _faiss_ivf(data, 64)


def faiss_ivf_96(data: Data) -> np.ndarray:
    return _faiss_ivf(data, 96)


def faiss_ivf_root(data: Data) -> np.ndarray:
    return _faiss_ivf(data, 32, int(len(data.X) ** 0.5))


def _faiss_ivf(data: Data, probes: int, lists: int = LISTS) -> np.ndarray:
    import faiss

    d = data.X.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, lists if len(data.X) > LISTS else 16)
    index.train(data.X)
    index.nprobe = probes
    return _search_faiss(index, data.X)


def faiss_hnsw(data: Data) -> np.ndarray:
    import faiss

    index = faiss.IndexHNSWFlat(data.X.shape[1], 32)
    index.hnsw.efSearch = 2 * K_NEAREST
    return _search_faiss(index, data.X)


def _search_faiss(index, X) -> np.ndarray:
    index.add(X)
    return _others(index.search(X, K_NEAREST + 1)[1])


def usearch(data: Data) -> np.ndarray:
    from usearch.index import Index

    index = Index(ndim=data.X.shape[1], metric="l2sq", dtype="f32", expansion_search=2 * K_NEAREST)
    index.add(np.arange(len(data.X)), data.X, threads=threads())
    return _others(index.search(data.X, K_NEAREST + 1, threads=threads()).keys.astype(np.int64))


CONTENDERS = (
    Contender("AVShift", ours),
    Contender("scikit-learn brute", sklearn_brute, "plain"),
    Contender("pynndescent", pynndescent, "plain"),
    Contender("faiss exact", faiss_exact, "plain"),
    Contender("faiss IVF1024, 32 probes", faiss_ivf_32, "plain"),
    Contender("faiss IVF1024, 64 probes", faiss_ivf_64, "plain"),
    Contender("faiss IVF1024, 96 probes", faiss_ivf_96, "plain"),
    Contender("faiss IVF, sqrt(n) lists, 32 probes", faiss_ivf_root, "plain", note="as many lists as ours"),
    Contender("faiss HNSW32", faiss_hnsw, "plain", note=f"efSearch {2 * K_NEAREST}"),
    Contender("usearch", usearch, "plain", note=f"f32, expansion_search {2 * K_NEAREST}"),
)

if __name__ == "__main__":
    measure(CONTENDERS, quality)
