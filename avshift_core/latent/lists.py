"""An inverted file (Sivic and Zisserman 2003): rows in lists around centres, of which a search opens the nearest.

    lists = make_lists(X, seed=0)
    reach = probes_for(lists, k=10, aim=0.99, seed=0)     # how many lists to open, and the recall on other rows
    index, distance = all_nearest(lists, k=10, probes=reach.probes)

A search may miss a neighbour that lies in a list which it did not open. Nothing is compiled: the work is products of
matrices, a block of rows against a list at a time, on all cores, and the answer does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from avshift_core.latent.cells import nearest_centre
from avshift_core.latent.neighbors import nearest_of
from avshift_core.threads import one_thread, threads_allowed

MOST_LISTS, ROWS_A_LIST = 2048, 50  # the second: rows by which a centre is found
CHOOSING = MEASURED = 300  # rows by which the number of opened lists is chosen; others on which its recall is counted
BLOCK = 4096  # rows that are searched for at a time
AT_ONCE = 4_000_000  # distances in memory at a time, of one thread
FIRST = 4  # lists around a row's own, by which most others are passed over
ROUNDING = 1e-5  # of single precision, in squares of a row's length


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows, list after list.

    Attributes:
        X: (n, d) float32; order: (n,) which row each of them was.
        centre: (L, d); start: (L + 1,) first row of each list, and the end.
    """

    X: np.ndarray
    order: np.ndarray
    centre: np.ndarray
    start: np.ndarray

    def opened(self, x, probes: int) -> np.ndarray:
        """(m, probes) the lists whose centres are nearest to each row of x (m, d), in no order."""
        distance = (self.centre**2).sum(axis=1) - 2 * x @ self.centre.T  # less what is the same for all centres
        return np.argpartition(distance, probes - 1, axis=1)[:, :probes]

    def rows(self, lists) -> np.ndarray:
        """Rows of X that stand in these lists."""
        return np.concatenate([np.arange(self.start[i], self.start[i + 1]) for i in lists])


@dataclass(frozen=True)
class Reach:
    """How far a search has to look.

    Attributes:
        probes: lists that it opens; recall: share of the true neighbours that it finds then, on `anchors` rows that
            did not choose `probes`.
    """

    probes: int
    recall: float
    anchors: int


def make_lists(X, seed: int) -> Lists:
    """Sort rows (n, d) into about sqrt(n) lists: finding the lists then costs no more than looking through them."""
    from sklearn.cluster import MiniBatchKMeans

    X = np.asarray(X, dtype=np.float32)
    wanted = int(np.clip(np.sqrt(len(X)), 1, MOST_LISTS))
    rows = np.sort(np.random.default_rng([seed, 26]).permutation(len(X))[: wanted * ROWS_A_LIST])
    wanted = min(wanted, len(np.unique(X[rows], axis=0)))
    with one_thread():  # sums have the same last digit on any number of cores
        fit = MiniBatchKMeans(wanted, batch_size=4096, n_init=1, max_iter=5, random_state=seed).fit(X[rows])
        of_list, _ = nearest_centre(X, fit.cluster_centers_.astype(np.float32))
    size = np.bincount(of_list, minlength=wanted)
    centre = fit.cluster_centers_.astype(np.float32)[size > 0]
    order = np.argsort(of_list, kind="stable")
    return Lists(X[order], order, centre, np.concatenate([[0], np.cumsum(size[size > 0])]))


def probes_for(lists: Lists, k: int, aim: float, seed: int) -> Reach:
    """Fewest lists with which half of the anchors find the share `aim` of their k nearest.

    A true neighbour is found when its list is opened, so the rank of its list among the centres tells all.
    """
    X, centre = lists.X, lists.centre
    rows = np.sort(np.random.default_rng([seed, 27]).permutation(len(X))[: CHOOSING + MEASURED])
    near = nearest_of(X, rows, min(k, len(X) - 1))[0]
    of_list = np.searchsorted(lists.start, near, side="right") - 1
    distance = (centre**2).sum(axis=1) - 2 * X[rows] @ centre.T
    rank = np.argsort(np.argsort(distance, axis=1), axis=1)
    needed = np.take_along_axis(rank, of_list, axis=1) + 1
    choose, measure = needed[::2], needed[1::2]
    probes = int(np.quantile(choose, aim, method="inverted_cdf"))
    return Reach(probes, float((measure <= probes).mean()), len(measure))


def all_nearest(lists: Lists, k: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest other rows of every row that are in its `probes` nearest lists, nearest first.

    Returns:
        index (n, k) int32, distance (n, k) float32, rows numbered as they came to make_lists.
    """
    n = len(lists.X)
    index, distance = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)
    square = np.einsum("ij,ij->i", lists.X, lists.X)
    around = lists.opened(lists.centre, min(FIRST, len(lists.centre)))

    def search(first: int) -> None:
        block = _Block(lists, square, first, min(first + BLOCK, n), k)
        found, away = block.nearest(probes, around)
        rows = lists.order[block.first : block.end]
        index[rows], distance[rows] = lists.order[found], away

    threads = threads_allowed()
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(search, range(0, n, BLOCK)))
    return index, distance


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows `first` to `end` of the lists, and the search for their neighbours."""

    lists: Lists
    square: np.ndarray
    first: int
    end: int
    k: int

    def nearest(self, probes: int, around) -> tuple[np.ndarray, np.ndarray]:
        """Rows (m, k) of the lists, and their distances (m, k)."""
        m, k = self.end - self.first, self.k
        row, found, away = self._candidates(probes, self._farthest(around))
        order = np.argsort(row, kind="stable")  # by counting: numpy does so with 16 bits
        found, away = found[order], away[order]
        count = np.bincount(row, minlength=m)
        place = np.arange(count.max(initial=k))
        at = np.minimum((np.cumsum(count) - count)[:, None] + np.minimum(place, count[:, None] - 1), len(found) - 1)
        candidate = found[at]
        away = np.where((place < count[:, None]) & (candidate != np.arange(self.first, self.end)[:, None]),
                        away[at], np.inf)
        best = np.argpartition(away, k - 1, axis=1)[:, :k]
        few = np.flatnonzero(~np.isfinite(np.take_along_axis(away, best, axis=1)).all(axis=1))
        index = np.take_along_axis(candidate, best, axis=1)
        if len(few):  # lists that hold fewer than k rows: all distances
            index[few] = nearest_of(self.lists.X, self.first + few, k)[0]
        return _by_distance(self.lists.X, self.first, index)

    def _farthest(self, around) -> np.ndarray:
        """(m,) a distance within which there are k others, by the lists around a row's own; in the units of _products.
        """
        lists, bound = self.lists, np.full(self.end - self.first, np.inf, dtype=np.float32)
        own = np.searchsorted(lists.start, np.arange(self.first, self.end), side="right") - 1
        for c in np.unique(own):
            near, members = lists.rows(around[c]), np.flatnonzero(own == c)
            if len(near) > self.k:
                for some, products in self._products(members, near):
                    bound[some] = np.partition(products, self.k, axis=1)[:, self.k]
        return bound + ROUNDING * (1 + self.square[self.first : self.end])

    def _candidates(self, probes: int, bound) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row of the block, row of the lists and distance of all pairs within the bound, list after list."""
        lists, opened = self.lists, self.lists.opened(self.lists.X[self.first : self.end], probes)
        order = np.argsort(opened.ravel().astype(np.uint16), kind="stable")
        who, ends = order // probes, np.cumsum(np.bincount(opened.ravel(), minlength=len(lists.centre)))
        pairs = []
        for c, members in enumerate(np.split(who, ends[:-1])):
            for some, products in self._products(members, slice(lists.start[c], lists.start[c + 1])):
                hit = np.flatnonzero(products <= bound[some, None])
                if len(hit) > 4 * self.k * len(some):  # twins: no more of a list than could count
                    nearest = np.argpartition(products, self.k, axis=1)[:, : self.k + 1]
                    hit = (nearest + products.shape[1] * np.arange(len(some))[:, None]).ravel()
                row, column = np.divmod(hit, products.shape[1])
                pairs.append((some[row].astype(np.uint16), (lists.start[c] + column).astype(np.int32),
                              products.ravel()[hit]))
        return tuple(np.concatenate(column) for column in zip(*pairs, strict=True))

    def _products(self, members, others) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some of the members at a time, and their squared distances to other rows, less the members' own squares."""
        X = self.lists.X[others]
        step = max(1, AT_ONCE // max(len(X), 1))
        for first in range(0, len(members), step):
            some = members[first : first + step]
            products = self.lists.X[self.first + some] @ (-2 * X.T)
            products += self.square[others]
            yield some, products


def _by_distance(X, first: int, index) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours (m, k) of the rows from `first` on in the order of their distances, and these."""
    away = X[index]
    away -= X[first : first + len(index), None]
    away = np.sqrt(np.einsum("mkd,mkd->mk", away, away))
    order = np.argsort(away, axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(away, order, axis=1)
