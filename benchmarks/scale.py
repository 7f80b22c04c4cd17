"""What a year or a billion scenarios would cost: python benchmarks/scale.py [--scenarios 4000]

Measures on this machine, in one run, what the cost model of docs/scale.md is made of: bytes of a stored scenario by
kind of file, time of one core to encode it, operations of the network for it, time to search all latents for its
neighbours, seconds of an analysis and of moving its clip. Then prints the model for a day, a year and a billion.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.encoder.encode import encode_steps
from avshift_core.encoder.scenes import context_view, scenes_of
from avshift_core.encoder.weights import load_model
from avshift_core.latent.benchmark import manifold_case
from avshift_core.latent.sampling import MOST
from avshift_core.progress import finish
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.analyze import analyze

SIZES = {"a day": 90_000, "a year": 33_000_000, "a billion": 1_000_000_000}
SEARCHED, ANCHORS = 180_000, 20  # rows and queries of the measured search
ANALYSED = 5_000, 20_000  # scenarios a side
GPU_FLOPS = 20e12  # an assumption, not a measurement: a fifth of 100 Tflop/s in single precision
GB, HOUR = 1e9, 3600


@dataclass(frozen=True)
class Constants:
    """Of one scenario, measured.

    Attributes:
        stored: kind of file -> bytes. encode_s: seconds of one core, both views. flop: of the network, both views.
        search_s: seconds to compare one anchor with one row. analysis, clip: (scenarios of both sides, seconds) of a
            comparison, and of all estimates at another clip, twice each.
    """

    stored: dict[str, float]
    encode_s: float
    flop: float
    search_s: float
    analysis: tuple[tuple[int, float], ...]
    clip: tuple[tuple[int, float], ...]


def at(rows: float, measured) -> float:
    """Seconds for so many rows: a fixed part and one that grows with the rows, through both measurements."""
    (n0, t0), (n1, t1) = measured
    return t0 + (t1 - t0) * (rows - n0) / (n1 - n0)


def measure(scenarios: int, folder: Path) -> Constants:
    url, model = str(folder / "demo"), load_model()
    finish(demo_steps(url, FleetConfig(scenarios, 0)))
    start = time.process_time()
    finish(encode_steps(url, model, jobs=1))
    encode_s = (time.process_time() - start) / scenarios
    corpus = open_corpus(url)
    stored: dict[str, float] = {}
    for part in corpus.parts:
        for name, file in part.files.items():
            kind = name.split("/")[0]
            stored[kind] = stored.get(kind, 0.0) + file.bytes / corpus.n
    return Constants(stored, encode_s, operations(corpus, model), search_seconds(), *analysis_seconds())


def operations(corpus, model) -> float:
    """Operations of the network for one scenario in both views, a multiplication and an addition counted as two."""
    from torch import inference_mode
    from torch.utils.flop_counter import FlopCounterMode

    from avshift_core.encoder.model import to_torch

    batch = next(iter(corpus.batches(size=256)))
    scenes, device = scenes_of(batch), next(model.net.parameters()).device
    with inference_mode(), FlopCounterMode(display=False) as counter:
        for shown in (scenes, context_view(scenes, model.config.context_s)):
            model.net(to_torch(shown, device))
    return counter.get_total_flops() / batch.n


def search_seconds() -> float:
    """One anchor against all rows, exactly, as the page of a scenario does."""
    from avshift_core.latent.retrieve import _squares

    X = np.random.default_rng(0).normal(size=(SEARCHED, 64)).astype(np.float32)
    start = time.perf_counter()
    for anchor in X[:ANCHORS]:
        np.argpartition(_squares(X, anchor), 50)
    return (time.perf_counter() - start) / ANCHORS / SEARCHED


def analysis_seconds() -> tuple[tuple[tuple[int, float], ...], ...]:
    """(rows, seconds) of an analysis, and of moving its clip."""
    whole, clip = [], []
    for n in (2_000, *ANALYSED):  # the first loads libraries and does not count
        pair = manifold_case(n, n // 100, seed=1)
        start = time.perf_counter()
        analysis = analyze(pair.P, pair.Q)
        whole.append((2 * n, time.perf_counter() - start))
        start = time.perf_counter()
        for B in range(2, 12):
            analysis.calibrate(float(B))
        clip.append((2 * n, (time.perf_counter() - start) / 10))
    return tuple(whole[1:]), tuple(clip[1:])


def print_model(c: Constants) -> None:
    print("measured, of one scenario")
    for kind, size in c.stored.items():
        print(f"  {kind + ', bytes':<44} {size:>12,.0f}")
    print(f"  {'encode both views, ms of one core':<44} {1000 * c.encode_s:>12.2f}")
    print(f"  {'network, both views, million operations':<44} {c.flop / 1e6:>12,.0f}")
    print(f"  {'exact search, ns for each row of 64 numbers':<44} {1e9 * c.search_s:>12.1f}")
    for rows, seconds in c.analysis:
        print(f"  {f'complete analysis of {rows:,} rows, s':<44} {seconds:>12.1f}")
    for rows, seconds in c.clip:
        print(f"  {f'all estimates of {rows:,} rows at a clip, ms':<44} {1000 * seconds:>12.2f}")
    print("\n" + f"{'model':<46}" + "".join(f"{name:>14}" for name in SIZES))
    total = sum(c.stored.values())
    rows = {
        "stored, GB": lambda n: n * total / GB,
        "   without states, GB": lambda n: n * (total - c.stored.get("states", 0.0)) / GB,
        "latents of one view in memory, GB": lambda n: n * 256 / GB,
        "encode, core-hours": lambda n: n * c.encode_s / HOUR,
        f"encode, GPU-hours at {GPU_FLOPS / 1e12:g} Tflop/s (assumed)": lambda n: n * c.flop / GPU_FLOPS / HOUR,
        "exact search of one anchor, s": lambda n: n * c.search_s,
        "   with 1 % of the rows looked at, s": lambda n: 0.01 * n * c.search_s,
        "analysis of half against half, min": lambda n: at(min(n, 2 * MOST), c.analysis) / 60,
        "moving its clip, engine, ms": lambda n: 1000 * at(min(n, 2 * MOST), c.clip),
    }
    for text, cost in rows.items():
        print(f"  {text:<44}" + "".join(f"{cost(n):>14,.2f}" for n in SIZES.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=int, default=4000, help="of the fleet that is stored and encoded")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_model(measure(arguments.scenarios, Path(folder)))


if __name__ == "__main__":
    main()
