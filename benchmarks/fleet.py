"""What the simulated fleet costs and whether its truth is true: `python benchmarks/fleet.py`.

1. Scenarios a second of one core (process time): the closed loop alone, and with everything that a demo corpus needs
   (both AV versions, detection, attributes, metrics, truth, writing). Peak memory of fleets of growing size.
2. Detection against the fleet's own categories, where the ego or the actor did what the situation is about.
3. With `--demo DIR` (a fleet of `python -m avshift_core demo --seed 10000 --out DIR`): exact weights on every pair of
   weeks, in units of the Monte-Carlo error: drives, days and vehicles are what is independent in the demo.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.progress import finish
from avshift_core.scenario.measure.categories import detect
from avshift_core.scenario.schema import CATEGORIES
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import AREAS, BLOCK, WEEKS, FleetConfig, blocks, draw, simulate
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.simulate.situations import decode
from avshift_core.scenario.simulate.truth import read_truth

SEED = 10_000  # the fleet was built on seeds below
CHANGED = ("cut_in_large", "work_zone", "u_turn", "jaywalk")  # situations whose odds the weeks change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", metavar="DIR", help="a finished demo fleet, for the table of exact weights")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        print(json.dumps(make(arguments.make)))
        return
    if arguments.demo:
        weights(arguments.demo)
        return
    speed()
    print(f"\n{'scenarios':>10} {'s':>7} {'a second':>9} {'peak MB':>8}   whole corpus and truth, one process")
    for n in (2 * BLOCK, 4 * BLOCK, 8 * BLOCK):
        command = [sys.executable, __file__, "--make", str(n)]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        print(f"{n:>10,} {row['s']:>7.1f} {n / row['s']:>9,.0f} {row['mb']:>8,.0f}", flush=True)
    detection()


def speed() -> None:
    """The closed loop alone, the fastest of three runs of a week of each area."""
    print(f"{'area':<10} {'scenarios':>9} {'agents':>7} {'simulated':>9} {'a second of one core':>21}")
    config = FleetConfig(scenarios=16 * 2500, seed=SEED)
    for block in blocks(config)[:2]:
        contexts, ids = draw(config, block)
        best, agents = np.inf, 0
        for _ in range(3):
            start = time.process_time()
            agents = sum(int(batch.n_agents.sum()) for _, batch, _ in simulate(contexts, ids, POLICIES["v4.1"]))
            best = min(best, time.process_time() - start)
        simulated = np.floor(decode(contexts.z)["density"]).mean()
        print(f"{config.cells[block.cell][0]:<10} {contexts.n:>9,} {agents / contexts.n:>7.1f} {simulated:>9.1f} "
              f"{contexts.n / best:>21,.0f}", flush=True)


def make(n: int) -> dict:
    """A corpus of n scenarios of one area in two weeks, in this process; its blocks are full: memory can be seen."""
    config = FleetConfig(n, SEED, areas={"harbor": AREAS["harbor"]}, weeks=dict(itertools.islice(WEEKS.items(), 2)))
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        finish(demo_steps(f"{folder}/corpus", config, jobs=1))
        seconds = time.process_time() - start
    return {"s": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def detection() -> None:
    """Recall and precision of the category rules on scenes whose category is known."""
    config = FleetConfig(scenarios=16 * 1500, seed=SEED)
    told, found = [], []
    for block in blocks(config)[:6]:
        for _, batch, _ in simulate(*draw(config, block), POLICIES["v4.1"]):
            known = [i for i, item in enumerate(batch.ids) if item.category]
            told += [CATEGORIES.index(batch.ids[i].category) for i in known]
            found += detect(batch).category[known].tolist()
    told, found = np.array(told), np.array(found)
    print(f"\n{'category':<26} {'n':>6} {'recall':>7} {'precision':>9}")
    recalls = []
    for k, name in enumerate(CATEGORIES):
        right = ((told == k) & (found == k)).sum()
        recalls.append(right / (told == k).sum())
        print(f"{name:<26} {(told == k).sum():>6,} {recalls[-1]:>7.2f} {right / max((found == k).sum(), 1):>9.2f}")
    print(f"{'mean':<26} {len(told):>6,} {np.mean(recalls):>7.2f}")


def weights(url: str) -> None:
    """Exact weights on all ordered pairs of weeks: is the weighted source the target, within the noise?"""
    truth = read_truth(url)
    drawn = truth.table[["drive_id", "day", "vehicle_id"]]
    print(f"{'metric':<14} {'area':<10} {'pairs':>5} {'rms score':>9} {'largest':>8} {'naive rms':>9} {'largest':>8}")
    values = {name: truth.table[f"{name}@v4.1"].to_numpy() for name in ("discomfort", "hard_brake", "comfort_score")}
    values |= {name: (truth.table["situation"] == name).to_numpy(float) for name in CHANGED}
    for (metric, value), area in itertools.product(values.items(), AREAS):
        exact, naive = [], []
        for p, q in itertools.permutations(WEEKS, 2):
            P, Q = truth.rows([(area, p)]), truth.rows([(area, q)])
            for scores, w in ((exact, truth.weights([(area, p)], [(area, q)])), (naive, np.ones(len(P)))):
                scores.append(_score(value, drawn, P, w, Q))
        rms, most = ([f(np.abs(s)) for s in (exact, naive)] for f in (lambda s: np.sqrt((s**2).mean()), np.max))
        print(f"{metric:<14} {area:<10} {len(exact):>5} {rms[0]:>9.2f} {most[0]:>8.2f} {rms[1]:>9.2f} {most[1]:>8.2f}")


def _score(value: np.ndarray, drawn: pd.DataFrame, P: np.ndarray, w: np.ndarray, Q: np.ndarray) -> float:
    """Weighted mean of P minus mean of Q, over its standard error by two ways of clustering.

    Variance by day plus by vehicle minus by both (Cameron, Gelbach and Miller 2011, "Robust inference with multiway
    clustering"); never below that of drives alone.
    """
    mean, target = value[P] @ w / w.sum(), value[Q].mean()
    influence = np.concatenate([w * (value[P] - mean) / w.sum(), -(value[Q] - target) / len(Q)])
    rows = drawn.iloc[np.concatenate([P, Q])].assign(influence=influence)
    by = lambda *keys: (rows.groupby(list(keys))["influence"].sum() ** 2).sum()  # noqa: E731
    variance = max(by("day") + by("vehicle_id") - by("day", "vehicle_id"), by("drive_id"))
    return (mean - target) / np.sqrt(variance)


if __name__ == "__main__":
    main()
