"""How often the neighbour test speaks without a shift: `python benchmarks/neighbour_test.py [--pairs 1000]`.

Pairs of clustered drives with the same law in P and Q, drawn anew each; drives are as long in P as in Q. Only the
p-value of the share of same-cohort neighbours is computed. A test that keeps its level falls to 0.05 or below in 5 % of
the pairs. With --seconds: how long the neighbours take that a comparison of 90,000 + 90,000 asks for.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.config import AnalysisConfig
from avshift_core.latent.benchmark import manifold_case
from avshift_core.latent.neighbors import cross_drive_neighbors, knn_graph, nearest
from avshift_core.latent.space import make_space
from avshift_core.parallel import in_order
from avshift_core.shift.c2st import NEIGHBOR_K, NEIGHBOR_ROWS, _neighbor_test
from avshift_core.shift.drives import permuted_labels, pool
from avshift_core.shift.local_paper import HELD_OUT

ROWS, DRIVES, PERMUTATIONS, LEVEL = 1_000, 50, 199, 0.05
FIRST_SEED = 20_000  # of no other table
CASES = 0.0, 0.05, 0.2  # drive share of variance


def p_value(share: float, seed: int) -> float:
    pair = manifold_case(ROWS, DRIVES, share, False, seed)
    sample, rng = pool(pair.P, pair.Q), np.random.default_rng(seed)
    labels = permuted_labels(sample.drive_y, PERMUTATIONS, rng)
    return _neighbor_test(make_space(pair.P, pair.Q, 16, 0).X, sample, labels, rng)


def seconds() -> None:
    """Of each who asks, on a pair of 90,000 a side; the second of two runs, when libraries are loaded."""
    pair = manifold_case(90_000, 900, seed=1)
    X, rng = make_space(pair.P, pair.Q, 16, 0).X, np.random.default_rng(0)
    drive = pool(pair.P, pair.Q).drive
    few, held_out = (np.sort(rng.permutation(len(X))[:n]) for n in (NEIGHBOR_ROWS, HELD_OUT))
    asked = {
        f"neighbour test, {NEIGHBOR_ROWS:,} rows": lambda: cross_drive_neighbors(X[few], drive[few], NEIGHBOR_K),
        f"the paper's regions, {HELD_OUT:,} rows": lambda: nearest(X[held_out], AnalysisConfig().n_neighbors),
        f"all neighbours, {len(X):,} rows": lambda: knn_graph(X, NEIGHBOR_K),
    }
    print("| neighbours | s |\n| --- | --- |")
    for what, ask in asked.items():
        for _ in range(2):
            began = time.perf_counter()
            ask()
            took = time.perf_counter() - began
        print(f"| {what} | {took:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1000, help="for each drive share (default: 1000)")
    parser.add_argument("--seconds", action="store_true", help="time of the neighbours instead")
    arguments = parser.parse_args()
    if arguments.seconds:
        seconds()
        return
    pairs = arguments.pairs
    print(f"{pairs:,} pairs without shift of {ROWS:,} a side in {DRIVES} drives, {PERMUTATIONS} permutations\n")
    print(f"| drive share of variance | p <= {LEVEL} | 95 % interval |\n| --- | --- | --- |")
    for number, share in enumerate(CASES):
        seeds = FIRST_SEED + pairs * number + np.arange(pairs)
        found = sum(p <= LEVEL for p in in_order(partial(p_value, share), seeds.tolist(), ready=pairs))
        low, high = binomtest(found, pairs).proportion_ci(method="wilson")
        print(f"| {share:g} | {found / pairs:.3f} | {low:.3f} to {high:.3f} |", flush=True)


if __name__ == "__main__":
    main()
