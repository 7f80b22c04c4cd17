"""What a second worker brings: `python benchmarks/cluster.py`.

A demo corpus is encoded on Dask clusters of this machine with one worker and with two, in turn, each a process of one
thread; workers are warm, as on a cluster that stands. The latents of all runs, and of one without a cluster, are
compared byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.encoder.encode import encode_steps
from avshift_core.encoder.weights import load_model
from avshift_core.progress import finish
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.store.corpus import open_corpus

SEED, AIM = 10_000, 1.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=8_000, metavar="N", help="of the corpus (default: 8000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="K", help="of each number of workers (default: 3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        demo = str(Path(folder) / "demo")
        finish(demo_steps(demo, FleetConfig(arguments.scenarios, seed=SEED), every_version=False))
        _, hashes = encode(demo, jobs=1)  # it loads libraries
        here = [encode(demo, jobs=1)[0] for _ in range(arguments.rounds)]
        seconds = measure(demo, arguments.rounds, hashes)
    tell(arguments.scenarios, here, seconds)


def measure(demo: str, rounds: int, hashes: str) -> dict[int, list[float]]:
    """Seconds of every round by number of workers; both clusters are in the same state, and take turns."""
    from distributed import LocalCluster

    seconds: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        start = partial(LocalCluster, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL)
        clusters = {workers: stack.enter_context(start(n_workers=workers)) for workers in seconds}
        for k in range(rounds + 1):
            for workers, cluster in clusters.items():
                elapsed, found = encode(demo, scheduler=cluster.scheduler_address)
                if found != hashes:
                    sys.exit(f"With {workers} workers the latents differ.")
                if k:  # the first round loads libraries
                    seconds[workers].append(elapsed)
    return seconds


def encode(demo: str, **where) -> tuple[float, str]:
    """Seconds, and the hash of all latents, of a copy of the corpus."""
    copy = f"{demo}-copy"
    shutil.copytree(demo, copy)
    try:
        began = time.perf_counter()
        finish(encode_steps(copy, load_model(), **where))
        elapsed = time.perf_counter() - began
        files = [part.files for part in open_corpus(copy, verify=True).parts]
        names = [f"{table} {file.sha256}" for each in files for table, file in sorted(each.items())]
        return elapsed, hashlib.sha256("\n".join(names).encode()).hexdigest()
    finally:
        shutil.rmtree(copy)


def tell(scenarios: int, here: list[float], seconds: dict[int, list[float]]) -> None:
    print(f"encode, both views, {scenarios:,} scenarios, {os.cpu_count()} cores; median of {len(here)} rounds\n")
    print("| where | s | from | to | scenarios a second |\n| --- | --- | --- | --- | --- |")
    for name, rounds in (("this process", here), ("one Dask worker", seconds[1]), ("two Dask workers", seconds[2])):
        print(f"| {name} | {median(rounds):.1f} | {min(rounds):.1f} | {max(rounds):.1f} | "
              f"{scenarios / median(rounds):,.0f} |")
    ratio = median(seconds[1]) / median(seconds[2])
    print(f"\nTwo workers over one: {ratio:.2f} times (aim {AIM}); latents identical, byte for byte.")


if __name__ == "__main__":
    main()
