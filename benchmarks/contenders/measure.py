"""What every contender shares: the pair of cohorts, the clock and the memory. Needs numpy alone, to run anywhere."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

K_NEAREST = 50


@dataclass(frozen=True, eq=False)
class Data:
    """Two cohorts with their truth, P's rows first.

    Attributes:
        z: (2n, 64) latents as they come; X: the same in units of the standard deviation, float32.
        y: (2n,) 1 for Q; drive: (2n,) number of the drive; ell: (2n,) metric.
        w: (2n,) exact density ratio dQ/dP; shifted: (2n,) rows of the shifted set; mu_Q: expected metric under Q.
        gamma_star: advantage of the best possible classifier.
        X_new, y_new: rows of other drives from the same law, in the units of X; none where there is no law.
        sample: rows to look at for neighbours; near: (m, 50) the exact ones of each.
        tiny: whether this is only the warm-up.
    """

    z: np.ndarray
    X: np.ndarray
    y: np.ndarray
    drive: np.ndarray
    ell: np.ndarray
    w: np.ndarray
    shifted: np.ndarray
    mu_Q: np.ndarray
    gamma_star: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    sample: np.ndarray
    near: np.ndarray
    tiny: bool = False

    @property
    def P(self) -> np.ndarray:
        return self.X[self.y == 0]

    @property
    def Q(self) -> np.ndarray:
        return self.X[self.y == 1]


@dataclass(frozen=True)
class Contender:
    """Work to be timed; `run(data)` gives what the topic's `quality` judges. No `environment` means the product's."""

    name: str
    run: Callable[[Data], object]
    environment: str | None = None
    note: str = ""
    on_nulls: bool = True


def threads() -> int:
    return int(os.environ["OMP_NUM_THREADS"])


def measure(contenders: Sequence[Contender], quality: Callable[[Data, object], dict]) -> None:
    """Run one contender on one pair, as the command line says, and print what was measured as the last line.

    The small pair comes first: `seconds` are without imports and compiling, `first` is the time of that pair, most of
    which they take.
    """
    name, warm_up, pair = sys.argv[1:]
    work = next(contender.run for contender in contenders if contender.name == name)
    start = time.perf_counter()
    work(_load(warm_up, tiny=True))
    first = time.perf_counter() - start
    data = _load(pair)
    start = time.perf_counter()
    result = work(data)
    seconds, mb = time.perf_counter() - start, _peak_mb()
    print()
    print(json.dumps({"seconds": seconds, "first": first, "mb": mb, "rows": quality(data, result)}, default=float))


def _load(path: str, tiny: bool = False) -> Data:
    with np.load(path) as arrays:
        return Data(**arrays, tiny=tiny)


def _peak_mb() -> float:
    """Largest resident memory; getrusage would give a child its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
