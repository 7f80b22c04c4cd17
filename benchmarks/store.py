"""How fast two cohorts are cut out of a corpus, against reading it whole with pandas: `python benchmarks/store.py`.

Makes corpora of ids, six metrics and 64-D latents in a temporary folder, a year of days in four areas, then measures in
one run, each in a process of its own: the corpus (open, check hashes, two weeks of one area each with metadata, metrics
and latents), the same process asking again, pandas and DuckDB on the corpus' own files, and pandas on one flat Parquet
file. The last is the kindest baseline: nothing to list, nothing to join. All read from the page cache. Then the states
of a fleet of 16 agents and 125 steps are written and read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.scenario.schema import Ids, ScenarioBatch, iso_week, make_road
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from avshift_core.scenario.store.query import CohortQuery

AREAS, WEEKS, WIDTH, MODEL = ("harbor", "hill", "mall", "ring"), 52, 64, "bench"
P, Q = (CohortQuery(period=f"2026-W{week}", area="harbor") for week in (10, 11))
METRICS = ("ttc_min_s", "drac_mps2", "hard_brake", "comfort_score", "duration_s", "distance_km")
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the largest corpus")
    parser.add_argument("--measure", nargs=2, metavar=("HOW", "DIR"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(MEASURES[arguments.measure[0]](Path(arguments.measure[1]))))
        return
    sizes = sorted({max(arguments.rows // 100, 1000), max(arguments.rows // 10, 1000), arguments.rows})
    print(f"{'rows':>10} {'MB':>6} {'parts':>6} {'write s':>8} | {'corpus s':>9} {'again s':>8} {'pandas s':>9} "
          f"{'duckdb s':>9} {'flat s':>7} | {'ratio':>6} {'to flat':>7} | {'corpus MB':>9} {'pandas MB':>9}")
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _row(rows, Path(folder))
    _states()


def _row(rows: int, folder: Path) -> None:
    start = time.perf_counter()
    write_corpus(folder, rows)
    seconds = time.perf_counter() - start
    write_flat(folder)
    size = sum(file.stat().st_size for file in (folder / "corpus").rglob("*") if file.is_file())
    best = {how: _measure(how, folder) for how in MEASURES}
    found = {how: (m["n"], round(m["check"], 3)) for how, m in best.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"the ways do not agree: {found}")
    corpus, pandas, duckdb, flat = (best[how] for how in MEASURES)
    print(f"{rows:>10,} {size / 1e6:>6.0f} {corpus['parts']:>6,} {seconds:>8.1f} | {corpus['s']:>9.3f} "
          f"{corpus['again_s']:>8.3f} {pandas['s']:>9.2f} {duckdb['s']:>9.2f} {flat['s']:>7.2f} | "
          f"{pandas['s'] / corpus['s']:>6.0f} {flat['s'] / corpus['s']:>7.0f} | "
          f"{corpus['mb']:>9.0f} {pandas['mb']:>9.0f}", flush=True)


def _measure(how: str, folder: Path) -> dict:
    """The fastest of some fresh processes; start-up and imports are not counted."""
    command = [sys.executable, __file__, "--measure", how, str(folder)]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(REPEATS)]
    return min(map(json.loads, outputs), key=lambda run: run["s"])


# Data ----------------------------------------------------------------------------------------------------------------


def write_corpus(folder: Path, rows: int) -> None:
    """A year of scenarios, week by week as imports would come; days and areas alike."""
    first, rng = date(2025, 12, 29), np.random.default_rng(0)  # the Monday of 2026-W01
    edges = np.linspace(0, rows, WEEKS + 1).astype(int)
    with create_or_open(folder / "corpus") as writer:
        for week in range(WEEKS):
            number = np.arange(edges[week], edges[week + 1])
            days = [(first + timedelta(weeks=week, days=d)).isoformat() for d in range(7)]
            n = len(number)
            ids = pd.DataFrame({
                "scenario_id": [f"s{i:08d}" for i in number], "drive_id": [f"d{i // 40}" for i in number],
                "vehicle_id": [f"car{i % 20}" for i in number], "day": np.array(days)[number % 7],
                "period": iso_week(days[0]), "hour": number % 24, "area": np.array(AREAS)[number // 7 % 4],
                "route": [f"r{i % 9}" for i in number], "av_version": "v1", "category": "general",
            })
            attributes = pd.DataFrame(rng.random((n, 8)), columns=[f"attribute_{k}" for k in range(8)])
            metrics = dict(zip(METRICS, rng.random((len(METRICS), n)), strict=True))
            z = rng.normal(size=(n, WIDTH)).astype(np.float32)
            writer.add_table(ids, attributes, metrics, z, model=MODEL, source=f"week-{week}")
            writer.commit()


def write_flat(folder: Path) -> None:
    """The same rows as one Parquet file with a column for each number."""
    frame, z = open_corpus(folder / "corpus").table(metrics=METRICS, latents=MODEL)
    columns = pd.DataFrame(z, columns=[f"z_{k}" for k in range(WIDTH)])
    pd.concat([frame, columns], axis=1).to_parquet(folder / "flat.parquet", compression="zstd", index=False)


# Ways to cut two cohorts ---------------------------------------------------------------------------------------------


def by_corpus(folder: Path) -> dict:
    def cut():
        corpus = open_corpus(folder / "corpus")
        return corpus, [corpus.table(query, metrics=METRICS, latents=MODEL) for query in (P, Q)]

    start = time.perf_counter()
    corpus, cohorts = cut()
    first = time.perf_counter()
    cut()
    return {"again_s": time.perf_counter() - first, "parts": len(corpus.parts),
            **_result(first - start, [(frame["ttc_min_s"], z) for frame, z in cohorts])}


def by_pandas(folder: Path) -> dict:
    """The corpus' own files: each table whole, joined by id, filtered."""
    start = time.perf_counter()
    root = folder / "corpus"
    names = ("meta", "metrics", f"latents/{MODEL}")
    meta, metrics, z = (pd.read_parquet(root / name, partitioning=None) for name in names)
    frame = meta.merge(metrics, on="scenario_id").merge(z, on="scenario_id")
    cohorts = [frame[(frame["period"] == q.period[0]) & (frame["area"] == q.area[0])] for q in (P, Q)]
    values = [(c["ttc_min_s"], np.stack(c["z"].to_list())) for c in cohorts]
    return _result(time.perf_counter() - start, values)


def by_duckdb(folder: Path) -> dict:
    """The corpus' own files: filtered and joined in one query for each cohort, without the manifest."""
    import duckdb

    start = time.perf_counter()
    tables = {"meta": "meta", "metrics": "metrics", "latents": f"latents/{MODEL}"}
    files = {name: str(folder / "corpus" / table / "**" / "*.parquet") for name, table in tables.items()}
    query = """SELECT m.*, n.* EXCLUDE (scenario_id), l.z FROM read_parquet($meta) m
               JOIN read_parquet($metrics) n USING (scenario_id) JOIN read_parquet($latents) l USING (scenario_id)
               WHERE m.period = $period AND m.area = $area"""
    values = []
    for q in (P, Q):
        found = duckdb.execute(query, {**files, "period": q.period[0], "area": q.area[0]}).fetchnumpy()
        values.append((found["ttc_min_s"], np.stack(found["z"])))
    return _result(time.perf_counter() - start, values)


def by_flat(folder: Path) -> dict:
    start = time.perf_counter()
    frame = pd.read_parquet(folder / "flat.parquet")
    cohorts = [frame[(frame["period"] == q.period[0]) & (frame["area"] == q.area[0])] for q in (P, Q)]
    values = [(c["ttc_min_s"], c[[f"z_{k}" for k in range(WIDTH)]].to_numpy()) for c in cohorts]
    return _result(time.perf_counter() - start, values)


def _result(seconds: float, values) -> dict:
    return {"s": seconds, "n": sum(len(ell) for ell, _ in values), "mb": _peak_mb(),
            "check": float(sum(ell.sum() + z.sum(dtype=np.float64) for ell, z in values))}


def _peak_mb() -> float:
    """Largest resident memory; getrusage would give a child its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


MEASURES = {"corpus": by_corpus, "pandas": by_pandas, "duckdb": by_duckdb, "flat": by_flat}


# States --------------------------------------------------------------------------------------------------------------


def fleet(n: int, seed: int, agents: int = 16, steps: int = 125) -> ScenarioBatch:
    """Smooth motion of any kind, seen in part: what states cost to store depends on little else."""
    rng, t = np.random.default_rng(seed), np.arange(steps)

    def motion(count: int) -> np.ndarray:
        speed = 8 + rng.normal(size=(n, count, 1)) * 5 + rng.normal(size=(n, count, steps)).cumsum(-1) * 0.05
        speed = np.maximum(speed, 0)
        heading = rng.uniform(-3, 3, (n, count, 1)) + rng.normal(size=(n, count, steps)).cumsum(-1) * 0.003
        x, y = (start + np.cumsum(speed * turn(heading), -1) * 0.1
                for start, turn in zip(rng.uniform(-60, 60, (2, n, count, 1)), (np.cos, np.sin), strict=True))
        return np.stack([x, y, heading, speed], -1).astype(np.float32)

    valid = (t >= rng.integers(0, 40, (n, agents, 1))) & (t < rng.integers(90, steps + 1, (n, agents, 1)))
    ego = motion(1)[:, 0]
    road = make_road([(np.column_stack([np.linspace(-50, 150, 21), np.full(21, y)]), "lane_center", 13.9)
                      for y in (0, 3.5, 7)])
    ids = tuple(Ids(f"f{seed}-{i}", f"d{i // 50}", "car", "2026-03-02", "2026-W10", 9, "harbor", "r1", "v1", "general")
                for i in range(n))
    return ScenarioBatch(
        ids, np.full(n, steps, np.int32), np.full(n, agents, np.int32), np.tile(t * 0.1, (n, 1)),
        np.concatenate([ego, np.gradient(ego[..., 3:], 0.1, axis=1)], -1), np.ones((n, steps), bool),
        np.tile(np.float32([4.9, 1.9, 1.7]), (n, 1)), motion(agents) * valid[..., None], valid,
        np.tile(t[:agents].astype(str), (n, 1)), np.zeros((n, agents), np.int8),
        np.tile(np.float32([4.5, 1.8, 1.5]), (n, agents, 1)), (road,) * n, np.zeros((n, 2)), ((),) * n,
    )


def _states(batches: int = 8, n: int = 1000) -> None:
    first = fleet(n, 0)
    fleets = [replace(first, ids=tuple(replace(ids, scenario_id=f"{k}-{ids.scenario_id}") for ids in first.ids))
              for k in range(batches)]
    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        with create_or_open(folder) as writer:
            for seed, batch in enumerate(fleets):
                writer.add(batch, {}, {"duration_s": np.full(n, 12.4)}, source=str(seed))
        written, cpu = time.perf_counter() - start, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(folder).rglob("states/**/*.parquet"))
        corpus = open_corpus(folder)
        start = time.perf_counter()
        count = sum(batch.n for batch in corpus.batches(size=1000))
        read = time.perf_counter() - start
        start = time.perf_counter()
        corpus.scenarios([fleets[3].ids[500].scenario_id])
        one = time.perf_counter() - start
    print(f"\nstates of 16 agents x 125 steps: {count / written:,.0f} scenarios/s written ({count / cpu:,.0f} a second "
          f"of one core), {count / read:,.0f} scenarios/s read, {size / count / 1000:.1f} kB each, one alone in "
          f"{1000 * one:.0f} ms; peak memory of this process {_peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
