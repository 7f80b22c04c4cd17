"""This project beside its peers, on the same data with the same threads: `python benchmarks/peers.py TOPIC`.

Topics: global, local, calibration, knn, map; growth runs several of them over sizes and prints log-log slopes. Data
are synthetic pairs, for knn and map also an encoded corpus. Every contender works in a process of its own, a peer's in
an environment of its own that is installed at first use from benchmarks/requirements into benchmarks/.venvs. Counted is
the work alone, after imports and a warm-up on a small pair, which is `start s`; memory is the process' largest. Quality
stands beside it, so that nobody is fast by being wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT, CONTENDERS = HERE.parent, HERE / "contenders"
sys.path[:0] = [str(ROOT), str(CONTENDERS)]

from environments import python_of  # noqa: E402
from measure import K_NEAREST  # noqa: E402

from avshift_core.latent.benchmark import METRIC, further_drives, manifold_case  # noqa: E402
from avshift_core.latent.corpora import choose_latents  # noqa: E402
from avshift_core.latent.whole import whole_steps  # noqa: E402
from avshift_core.progress import finish  # noqa: E402
from avshift_core.scenario.store.corpus import open_corpus  # noqa: E402

TOPICS = {"global": "global_shift", "local": "local_shift", "calibration": "calibration", "knn": "knn", "map": "map"}
GROWTH = 5_000, 20_000, 90_000, 180_000
WITHOUT_TRUTH = "knn", "map"  # topics that can be run on the latents of a corpus
FIRST_SEED = 10_000  # settings were chosen on others
DRIVE_SHARE = 0.2
NULL_ROWS = 3_000  # most rows a side of a pair without shift
KNN_ROWS = 1_000
NEW_ROWS = 20_000  # a side, of other drives, on which the models of all tests are scored
WARM_ROWS, WARM_DRIVES = 400, 20
THREAD_SETTINGS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topic", choices=(*TOPICS, "growth"))
    parser.add_argument("--rows", type=int, nargs="+", help=f"scenarios a side; 20000, for growth {GROWTH}")
    parser.add_argument("--of", nargs="+", choices=TOPICS, default=list(TOPICS), help="topics that growth runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="peers with one of these in their name")
    parser.add_argument("--seeds", type=int, default=1, help="pairs; seconds are the median, quality the mean")
    parser.add_argument("--first", type=int, default=FIRST_SEED, metavar="SEED", help="of the first pair")
    parser.add_argument("--nulls", type=int, default=5, help="pairs without shift, for false alarms")
    parser.add_argument("--drive-share", type=float, default=DRIVE_SHARE, metavar="X",
                        help=f"share of the latent variance between drives ({DRIVE_SHARE:g}); 0 is independent rows")
    parser.add_argument("--corpus", metavar="DIR", help=f"an encoded corpus in the place of pairs, for "
                                                        f"{' and '.join(WITHOUT_TRUTH)}")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=1800, metavar="S", help="a run is stopped after so many seconds")
    arguments = parser.parse_args()
    if arguments.corpus and arguments.topic not in WITHOUT_TRUTH:
        parser.error(f"--corpus goes with {' and '.join(WITHOUT_TRUTH)}: the truth of a corpus is not known")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that no contender outlives the command
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments.threads, arguments.limit, arguments.only, arguments.first,
                      arguments.drive_share)
        if arguments.corpus:
            compare_on_corpus(bench, arguments.topic, arguments.corpus)
            return
        if arguments.topic == "growth":
            for topic in arguments.of:
                growth(bench, topic, arguments.rows or GROWTH, arguments.seeds)
            return
        for rows in arguments.rows or [20_000]:
            compare(bench, arguments.topic, rows, arguments.seeds, arguments.nulls)


# Data ----------------------------------------------------------------------------------------------------------------


def write_pair(
    path: Path, rows: int, drives: int, seed: int, shift: bool = True, drive_share: float = DRIVE_SHARE
) -> Path:
    """A synthetic pair as measure.Data reads it, with the exact neighbours of some rows."""
    pair = manifold_case(rows, drives, drive_share, shift, seed)
    np.savez(
        path, y=np.repeat([0, 1], rows), drive=np.concatenate([pair.P.drive, pair.Q.drive + pair.P.n_drives]),
        ell=np.concatenate([pair.P.ell[METRIC], pair.Q.ell[METRIC]]), w=np.concatenate([pair.truth.w, pair.truth.w_Q]),
        shifted=np.concatenate(pair.truth.shifted), mu_Q=pair.truth.mu_Q, gamma_star=pair.truth.gamma_star,
        **_latents(np.concatenate([pair.P.z, pair.Q.z]), seed,
                   *further_drives(NEW_ROWS, NEW_ROWS // 100, drive_share, shift, seed)),
    )
    return path


def write_corpus(path: Path, url: str) -> Path:
    """The latents of a corpus, of which there is no truth but the exact neighbours of some rows."""
    corpus = open_corpus(url)
    whole = finish(whole_steps(corpus, choose_latents(corpus)))
    n, unknown, drive = len(whole.z), np.nan, np.unique(whole.obs["drive_id"], return_inverse=True)[1]
    np.savez(
        path, y=(np.arange(n) >= n // 2).astype(int), drive=drive, ell=np.full(n, unknown), w=np.full(n, unknown),
        shifted=np.zeros(n, bool), mu_Q=unknown, gamma_star=unknown, **_latents(whole.z, 0, whole.z[:0], []),
    )
    return path


def _latents(z, seed: int, z_new, y_new) -> dict[str, np.ndarray]:
    X, X_new = (((rows - z.mean(axis=0)) / z.std(axis=0)).astype(np.float32) for rows in (z, z_new))
    sample = np.sort(np.random.default_rng(seed).permutation(len(X))[:KNN_ROWS])
    return {"z": z, "X": X, "X_new": X_new, "y_new": y_new, "sample": sample, "near": _exact_nearest(X, sample)}


def _exact_nearest(X, sample) -> np.ndarray:
    X = X.astype(np.float64)
    length, near = (X**2).sum(axis=1), []
    for rows in np.array_split(sample, max(1, len(sample) * len(X) // 20_000_000)):
        distance = length - 2 * X[rows] @ X.T
        distance[np.arange(len(rows)), rows] = np.inf
        near.append(np.argpartition(distance, K_NEAREST, axis=1)[:, :K_NEAREST])
    return np.concatenate(near)


# Runs ----------------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Where data lies and how contenders are run; `missing` says why an environment is not to be had."""

    folder: Path
    threads: int
    limit: float
    only: list[str]
    first: int
    drive_share: float
    pythons: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)

    def contenders(self, module) -> list:
        """The product comes first: it is what the others are compared with."""
        first, *others = module.CONTENDERS
        wanted = [c for c in others if not self.only or any(text.lower() in c.name.lower() for text in self.only)]
        return [first, *(c for c in wanted if self._ready(c))]

    def _ready(self, contender) -> bool:
        name = contender.environment
        if name and name not in self.pythons and name not in self.missing:
            try:
                self.pythons[name] = python_of(name)
            except OSError as error:
                self.missing[name] = str(error)
        if name in self.missing:
            print(f"{contender.name}: missing, its environment could not be installed: {self.missing[name]}")
        return name not in self.missing

    def pair(self, rows: int, seed: int, shift: bool = True) -> Path:
        path = self.folder / f"{rows}-{'shift' if shift else 'none'}-{seed}.npz"
        return path if path.exists() else write_pair(path, rows, max(rows // 100, 10), seed, shift, self.drive_share)

    def run(self, module, contender, pair: Path) -> dict:
        """seconds, mb and rows of quality; without seconds and with a reason when it did not come to an end."""
        warm_up = self.folder / "warm-up.npz"
        warm_up.exists() or write_pair(warm_up, WARM_ROWS, WARM_DRIVES, 0)
        settings = {name: str(self.threads) for name in THREAD_SETTINGS} | {"PYTHONWARNINGS": "ignore"}
        if contender.environment is None:
            settings["PYTHONPATH"] = str(ROOT)
        print(f"{contender.name} on {pair.stem} ...", file=sys.stderr, flush=True)
        python = self.pythons.get(contender.environment, sys.executable)
        command = [python, module.__file__, contender.name, str(warm_up), str(pair)]
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self.limit, env=inherited | settings, check=True)
        except subprocess.TimeoutExpired:
            return {"reason": f"stopped after {self.limit:g} s"}
        except subprocess.CalledProcessError as error:
            last = [line for line in error.stderr.splitlines() if line.strip()][-1:]
            return {"reason": f"failed: {' '.join(last)[:110] or f'exit code {error.returncode}'}"}
        return json.loads(done.stdout.splitlines()[-1])


def compare(bench: Bench, topic: str, rows: int, seeds: int, nulls: int) -> None:
    """One table: every contender of a topic at one size."""
    module = importlib.import_module(TOPICS[topic])
    print(f"\n{topic}: {rows:,} + {rows:,} scenarios in {2 * max(rows // 100, 10):,} drives with {bench.drive_share:g} "
          f"of the variance, 64 dimensions, {bench.threads} threads; pairs: {seeds}, from seed {bench.first}"
          + (f"; without shift: {nulls}" if module.NULLS and nulls else ""))
    pairs = [bench.pair(rows, bench.first + k) for k in range(seeds)]
    _print_comparison(bench, module, pairs, partial(_false_alarms, bench, module, rows=rows, nulls=nulls))


def compare_on_corpus(bench: Bench, topic: str, url: str) -> None:
    """The same on the latents of a corpus."""
    module = importlib.import_module(TOPICS[topic])
    path = write_corpus(bench.folder / "corpus.npz", url)
    with np.load(path) as arrays:
        print(f"\n{topic}: latents of {len(arrays['z']):,} scenarios of {Path(url).name}, {bench.threads} threads")
    _print_comparison(bench, module, [path], lambda contender, names: dict.fromkeys(names, [""] * len(module.NULLS)))


def _print_comparison(bench: Bench, module, pairs: list[Path], alarms_of) -> None:
    paired = getattr(module, "PAIRED", {})
    titles = ["contender", "s", "ratio", "start s", "peak MB", *module.COLUMNS.values(), *paired.values(),
              *module.NULLS.values(), "note"]
    lines, own_seconds, own = [], None, None
    for contender in bench.contenders(module):
        runs = [bench.run(module, contender, pair) for pair in pairs]
        bad = next((run["reason"] for run in runs if "reason" in run), None)
        if bad:
            lines.append([contender.name, *[""] * (len(titles) - 2), bad])
            continue
        seconds = float(np.median([run["seconds"] for run in runs]))
        own_seconds, own = own_seconds or seconds, own or [next(iter(run["rows"].values())) for run in runs]
        start = float(np.median([run["first"] for run in runs]))
        cost = [*map(_number, (seconds, seconds / own_seconds, start)), f"{max(run['mb'] for run in runs):,.0f}"]
        alarms = alarms_of(contender, runs[0]["rows"])
        for name in runs[0]["rows"]:
            judged = [_mean(key, [run["rows"][name][key] for run in runs]) for key in module.COLUMNS]
            full_name = f"{contender.name} {name}".strip()
            apart = [_difference([run["rows"][name][key] for run in runs], [row[key] for row in own]) for key in paired]
            lines.append([full_name, *cost, *judged, *apart, *alarms[name], contender.note])
    _print_table(titles, lines)


def _false_alarms(bench: Bench, module, contender, names, *, rows: int, nulls: int) -> dict[str, list[str]]:
    if not module.NULLS or not contender.on_nulls:
        return {name: [""] * len(module.NULLS) for name in names}
    pairs = [bench.pair(min(rows, NULL_ROWS), bench.first + k, shift=False) for k in range(nulls)]
    found = [run["rows"] for run in (bench.run(module, contender, pair) for pair in pairs) if "rows" in run]
    return {name: [_mean(key, [judged[name][key] for judged in found]) for key in module.NULLS] for name in names}


def growth(bench: Bench, topic: str, sizes, seeds: int) -> None:
    """Seconds, the median over the pairs, and memory over sizes; who is too slow at one size is not asked at the next.
    """
    module, sizes = importlib.import_module(TOPICS[topic]), sorted(sizes)
    print(f"\ngrowth of {topic}: scenarios a side, {bench.threads} threads, pairs: {seeds}; the slope is that of log s "
          "on log rows, over all sizes and between the last two")
    titles = ["contender", *(f"{size:,}: s" for size in sizes), "slope", "last slope",
              *(f"{size:,}: MB" for size in sizes), "note"]
    lines = []
    for contender in bench.contenders(module):
        seconds, memory, bad = [], [], None
        for size in sizes:
            runs = [bench.run(module, contender, bench.pair(size, bench.first + k)) for k in range(seeds)]
            bad = next((run["reason"] for run in runs if "reason" in run), None)
            if bad:
                break
            seconds.append(float(np.median([run["seconds"] for run in runs])))
            memory.append(f"{max(run['mb'] for run in runs):,.0f}")
        empty = [""] * (len(sizes) - len(seconds))
        slopes = _slope(sizes, seconds), _slope(sizes[: len(seconds)][-2:], seconds[-2:])
        lines.append([contender.name, *map(_number, seconds), *empty, *map(_number, slopes), *memory, *empty,
                      bad or contender.note])
    _print_table(titles, lines)


def _slope(sizes, seconds) -> float | None:
    return np.polyfit(np.log(sizes[: len(seconds)]), np.log(seconds), 1)[0] if len(seconds) > 1 else None


# Table ---------------------------------------------------------------------------------------------------------------


def _mean(key: str, values: list) -> str:
    """Mean of a column over the pairs: root mean square of errors, a count of yes and no."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    if isinstance(values[0], bool):
        return f"{sum(values)} of {len(values)}"
    return _number(np.sqrt(np.mean(np.square(values))) if key == "error" else np.mean(values))


def _difference(values: list, own: list) -> str:
    """Mean difference over the pairs, with its standard error."""
    if None in (*values, *own) or values == own:
        return ""
    apart = np.subtract(values, own)
    error = f" +- {apart.std(ddof=1) / len(apart) ** 0.5:.4f}" if len(apart) > 1 else ""
    return f"{apart.mean():+.4f}{error}"


def _number(value) -> str:
    if value is None:
        return "-"
    size = abs(value)
    if 0 < size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4f}" if size < 1 else f"{value:.2f}" if size < 10 else f"{value:,.1f}"


def _print_table(titles: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in (titles, *lines)) for column in range(len(titles))]
    for row in (titles, ["-" * width for width in widths], *lines):
        cells = [cell.ljust(width) if column in (0, len(row) - 1) else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
