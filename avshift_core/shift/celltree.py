"""Unions of cells that hold more of one cohort than of the other, tested drive by drive, at every scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats

from avshift_core.latent.cells import Cells

SHRINK = 1.0  # scenarios added to each side before a ratio is taken


@dataclass(frozen=True, eq=False)
class NodeTest:
    """Masses of nodes under P and Q and the drive-level test of their difference; arrays of one entry a node."""

    p: np.ndarray
    q: np.ndarray
    z: np.ndarray
    p_value: np.ndarray
    count_P: np.ndarray
    count_Q: np.ndarray
    drives: np.ndarray


def cell_counts(cell, drive, n_cells, n_drives, weight=None) -> sparse.csr_array:
    """(n_cells, n_drives) scenarios (or weight) of each drive in each cell; rows outside every cell are left out."""
    inside = cell >= 0
    value = np.ones(int(inside.sum())) if weight is None else np.asarray(weight, dtype=float)[inside]
    return sparse.coo_array((value, (cell[inside], drive[inside])), shape=(n_cells, n_drives)).tocsr()


def test_nodes(counts, size, drive_y, min_ratio: float = 1.0) -> NodeTest:
    """Compare the shares of the drives of P and of Q in every node.

        p = sum_d C_d / sum_d n_d,     Var p = D/(D-1) * sum_d (C_d - p n_d)^2 / (sum_d n_d)^2
        z = (q - r p) / sqrt(r^2 Var p + Var q)  where q > p, and the mirror image where p > q,
            against Student's t with as many drives as take part;  r = min_ratio, 1 for plain inequality

    Args:
        counts: (nodes, G) sparse scenarios of each drive in each node.
        size: (G,) scenarios of each drive; 0 leaves a drive out.
        drive_y: (G,) cohort of each drive.
        min_ratio: masses that differ by less than this factor count as equal.
    """
    side = []
    for label in (0, 1):
        use = np.flatnonzero((drive_y == label) & (size > 0))
        n = size[use].astype(float)
        C = counts[:, use]
        count = np.asarray(C.sum(axis=1)).ravel()
        share = count / n.sum()
        squares = np.asarray(C.multiply(C).sum(axis=1)).ravel()
        spread = squares - 2 * share * (C @ n) + share**2 * (n @ n)
        variance = np.maximum(spread, 0) / n.sum() ** 2 * len(use) / max(len(use) - 1, 1)
        # a drive share of nearly nothing has no spread to speak of: never trust less than Poisson
        variance = np.maximum(variance, np.maximum(share, 1 / n.sum()) / n.sum() * 0.5)
        side.append((share, variance, count, np.diff(C.tocsr().indptr)))
    (p, var_p, count_P, drives_P), (q, var_q, count_Q, drives_Q) = side
    up = (q - min_ratio * p) / np.sqrt(min_ratio**2 * var_p + var_q)
    down = (p - min_ratio * q) / np.sqrt(var_p + min_ratio**2 * var_q)
    z = np.where(q >= p, np.maximum(up, 0), -np.maximum(down, 0))
    drives = drives_P + drives_Q
    p_value = 2 * stats.t.sf(np.abs(z), np.maximum(drives - 2, 1))
    return NodeTest(p, q, z, p_value, count_P, count_Q, drives)


test_nodes.__test__ = False  # not a test of this project, whatever pytest makes of its name


def best_nodes(z, allowed, cells: Cells, penalty: float) -> np.ndarray:
    """Disjoint nodes with the largest sum of z^2 - penalty: a union is kept whole unless its parts say more.

    Args:
        z: (nodes,) test statistics.
        allowed: (nodes,) nodes that may be chosen.
    """
    K = cells.n
    gain = np.where(allowed, np.asarray(z) ** 2 - penalty, 0.0).clip(min=0)
    best, choice = gain.copy(), [[node] if gain[node] > 0 else [] for node in range(len(gain))]
    for node, (a, b) in enumerate(cells.tree, start=K):
        apart = best[a] + best[b]
        if apart >= gain[node]:
            best[node], choice[node] = apart, choice[a] + choice[b]
    return np.array(sorted(choice[-1], key=lambda node: -abs(z[node])), dtype=int)


def scale_penalty(n_nodes: int) -> float:
    """z^2 that the largest of n_nodes pure-noise statistics reaches: 2 log n."""
    return 2 * np.log(max(n_nodes, 2))


def cell_logits(cell, drive, drive_y, cells: Cells, train, test, weight) -> np.ndarray:
    """Held-out log-odds of Q, constant on the unions of cells that the training drives tell apart.

    Elsewhere the log-odds are those of what is left, so that a scenario without evidence does not toss a coin:
    with clustered drives these tosses are what drowns the accuracy of a smooth classifier.
    """
    G = len(drive_y)
    weight = np.array(weight, dtype=float)
    for label in (0, 1):  # counts, not class weights: the test must know how many scenarios there are
        own = train[drive_y[drive[train]] == label]
        weight[own] /= weight[own].mean()
    size = np.bincount(drive[train], weight[train], minlength=G)
    member = sparse.csr_array(cells.members().astype(float))
    counts = member @ cell_counts(cell[train], drive[train], cells.n, G, weight[train])
    tested = test_nodes(counts, size, drive_y)
    allowed = (tested.p + tested.q) < 1.0
    chosen = best_nodes(tested.z, allowed, cells, scale_penalty(len(allowed)))
    total = [size[drive_y == label].sum() for label in (0, 1)]
    rest_p, rest_q = 1 - tested.p[chosen].sum(), 1 - tested.q[chosen].sum()
    logit = np.full(cells.n + 1, np.log((rest_q + SHRINK / total[1]) / (rest_p + SHRINK / total[0])))
    under = cells.members()
    for node in chosen:
        ratio = (tested.q[node] + SHRINK / total[1]) / (tested.p[node] + SHRINK / total[0])
        logit[:-1][under[node]] = np.log(ratio)
    return logit[cell[test]]  # cell -1, outside every ball, takes the last entry
