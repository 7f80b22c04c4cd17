"""The synthetic tables, measured where the truth is known: verdicts, regions, errors, coverage and speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.files import check_writable, write_json
from avshift_core.latent.benchmark import METRIC, Truth, line_case, manifold_case
from avshift_core.parallel import check_jobs, in_order
from avshift_core.shift.analyze import Analysis, analyze
from avshift_core.shift.c2st import advantage, cross_fit
from avshift_core.shift.gate import NO_SHIFT, band
from avshift_core.threads import one_thread

FIRST_SEED = 10_000  # far from every seed that tests and examples use
EXPECTED = {"none": "no_shift", "localized": "localize", "global": "global_shift"}
SHARES = (0.0, 0.05, 0.2)  # drive share of variance
Table = list[dict]
Run = Callable[[Callable[..., dict], Sequence[tuple]], Table]  # (run, arguments of each) -> what each gave


def run_benchmark(
    seeds: int, only: Sequence[str] | None, jobs: int | None, json: Path | None, scheduler: str | None = None
) -> dict[str, Table]:
    """Measure, print and write the tables; `only` names some of them."""
    check_jobs(jobs, scheduler)
    map_over = partial(_map, jobs=jobs, scheduler=scheduler)
    if json is not None:
        check_writable(json)
    tables = {}
    for name, make in TABLES.items():
        if only and name not in only:
            continue
        start = time.perf_counter()
        tables[name] = make(seeds, map_over)
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)\n{_format(tables[name])}", flush=True)
    if json is not None:
        write_json({"schema": 1, "seeds": seeds, "tables": tables}, json)
    return tables


# One run each, in a process of its own ------------------------------------------------------------------------------


def line_run(case: str, seed: int) -> dict:
    """One of the paper's cases, 20,000 a side; the paper's own classifier (kNN, random halves) beside ours."""
    pair = line_case(case, seed=seed)
    a = analyze(pair.P, pair.Q, seed=seed, force_localize=case == "localized")
    knn = AnalysisConfig.paper(classifier="knn", repeats=1, seed=seed)
    p = {t.name: t.p_asymptotic if t.name == "ks" else t.p_value for t in a.reference}
    return {
        "case": case, "correct": a.verdict.name == EXPECTED[case], "acc": a.global_test.acc,
        "gamma_hat": a.global_test.gamma_hat, "gamma_star": pair.truth.gamma_star,
        "acc_paper": advantage(cross_fit(a.space, a.sample, knn, repeats=1, folds=2, seed=seed), a.sample, knn)[0].acc,
        "p_c2st": a.global_test.p_value, "p_ks": p["ks"], "p_mmd": p["mmd"], "p_w1": p["w1"],
        "seconds": a.timings["total"], **_errors(a, pair.truth),
    }


def manifold_run(seed: int) -> dict:
    """64-D, three shifted clusters, 20,000 a side in 200 drives with 20 % of the variance between drives."""
    pair = manifold_case(seed=seed)
    a = analyze(pair.P, pair.Q, seed=seed)
    shifted = np.concatenate(pair.truth.shifted)
    cluster = np.concatenate([pair.truth.cluster_P, pair.truth.cluster_Q])
    row = {"verdict": a.verdict.name, "gamma_hat": a.global_test.gamma_hat, "gamma_star": pair.truth.gamma_star,
           "p_c2st": a.global_test.p_value, "p_neighbors": a.global_test.p_neighbors, "headline": a.headline(),
           "regions": 0, "pure": np.nan, "precision": np.nan, "recall": 0.0,
           "paper_regions": np.nan, "paper_precision": np.nan, "paper_recall": np.nan,
           "seconds": a.timings["total"], **_errors(a, pair.truth)}
    if a.local is not None:
        region = np.concatenate([a.local.region_P, a.local.region_Q])
        mostly = [max((cluster[region == r] == k).mean() for k in range(3)) for r in range(len(a.local.regions))]
        row |= {"regions": len(mostly), "pure": float(np.mean(np.array(mostly) > 0.5)) if mostly else np.nan}
        row |= _points(region >= 0, shifted)
        paper = np.concatenate([a.local_paper.region_P, a.local_paper.region_Q]) >= 0
        row |= {"paper_regions": a.local_paper.n_regions} | _points(paper, shifted, "paper_")
    return row


def null_run(share: float, seed: int) -> dict:
    """No shift, 3,000 a side in 100 drives: what is claimed all the same, by us and by the paper's variant."""
    pair = manifold_case(3_000, 100, share, shift=False, seed=seed)
    a = analyze(pair.P, pair.Q, metrics=[], seed=seed, force_localize=True)
    paper = AnalysisConfig.paper(seed=seed)
    fit = cross_fit(a.space, a.sample, paper, repeats=paper.repeats, folds=paper.folds, seed=seed)
    return {
        "drive_share": share, "shift": a.verdict.name != NO_SHIFT,
        "region": a.verdict.name == "localize" and bool(a.local.regions), "region_forced": bool(a.local.regions),
        "p_c2st": a.global_test.p_value <= 0.05, "p_neighbors": a.global_test.p_neighbors <= 0.05,
        "aa_false": max(a.global_test.aa_source.gamma_lcb, a.global_test.aa_target.gamma_lcb) >= paper.gamma_small,
        "paper_shift": band(advantage(fit, a.sample, paper)[0].gamma_lcb, paper) != NO_SHIFT,
        "paper_region_forced": a.local_paper.n_regions > 0,
    }


def coverage_run(seed: int) -> dict:
    """64-D, 6,000 a side in 120 clustered drives: does each interval hold the truth?"""
    pair = manifold_case(6_000, 120, seed=seed)
    a = analyze(pair.P, pair.Q, seed=seed, force_localize=True)
    truth = {name: pair.truth.mu_P if name == "naive" else pair.truth.mu_Q for name in a.calibrate(10).estimates()}
    return {
        name: None if e is None else {"in": bool(e.lo <= truth[name] <= e.hi), "error": e.mu - truth[name], "se": e.se}
        for name, e in a.calibrate(a.config.B).estimates().items()
    }


def _points(found, shifted, prefix="") -> dict:
    return {f"{prefix}precision": float(shifted[found].mean()) if found.any() else np.nan,
            f"{prefix}recall": float(found[shifted].mean())}


def _errors(a: Analysis, truth: Truth) -> dict:
    """Error of every estimate, and of the exact weights."""
    ell = a.P.ell[METRIC]
    errors = {"error_exact": float(truth.w @ ell / truth.w.sum()) - truth.mu_Q}
    for name, estimate in a.calibrations[METRIC].estimates().items():
        errors[f"error_{name}"] = np.nan if estimate is None else estimate.mu - truth.mu_Q
    return errors


# Tables over many runs ----------------------------------------------------------------------------------------------


def line_table(seeds: int, map_over: Run) -> Table:
    tasks = [(case, FIRST_SEED + s) for case in EXPECTED for s in range(seeds)]
    rows = map_over(line_run, tasks)
    table = []
    for case in EXPECTED:
        of = [r for r in rows if r["case"] == case]
        mean = lambda key, of=of: float(np.mean([r[key] for r in of]))  # noqa: E731
        entry = {"case": case, "runs": len(of), "correct": sum(r["correct"] for r in of), "acc": mean("acc"),
                 "acc_paper": mean("acc_paper"), "gamma_hat": mean("gamma_hat"), "gamma_star": mean("gamma_star"),
                 "of_best": mean("gamma_hat") / mean("gamma_star") if case != "none" else np.nan,
                 "p_c2st": _median(of, "p_c2st"), "p_ks": _median(of, "p_ks"), "p_mmd": _median(of, "p_mmd"),
                 "p_w1": _median(of, "p_w1"), "seconds": mean("seconds")}
        entry |= {f"mae_{k[6:]}": float(np.mean(np.abs([r[k] for r in of]))) for k in of[0] if k.startswith("error_")}
        table.append(entry)
    return table


def manifold_table(seeds: int, map_over: Run) -> Table:
    rows = map_over(manifold_run, [(FIRST_SEED + s,) for s in range(seeds)])
    mean = lambda key: float(np.nanmean([r[key] for r in rows]))  # noqa: E731
    entry = {"runs": len(rows), "localize": sum(r["verdict"] == "localize" for r in rows),
             "headline_shown": sum(r["headline"] is not None for r in rows), "gamma_hat": mean("gamma_hat"),
             "gamma_star": mean("gamma_star"), "regions": mean("regions"),
             "regions_least": min(r["regions"] for r in rows), "regions_most": max(r["regions"] for r in rows),
             "pure": mean("pure"), "precision": mean("precision"), "recall": mean("recall"),
             "fdp": 1 - mean("precision"), "paper_regions": mean("paper_regions"),
             "paper_precision": mean("paper_precision"), "paper_recall": mean("paper_recall"),
             "seconds": mean("seconds")}
    names = [key for key in rows[0] if key.startswith("error_")]
    rms = {key[6:]: float(np.sqrt(np.nanmean(np.square([r[key] for r in rows])))) for key in names}
    entry |= {f"rms_{name}": value for name, value in rms.items()}
    entry["strata_over_exact"] = rms["strata"] / rms["exact"]
    return [entry]


def null_table(seeds: int, map_over: Run) -> Table:
    tasks = [(share, FIRST_SEED + s) for share in SHARES for s in range(5 * seeds)]
    rows = map_over(null_run, tasks)
    table = []
    for share in SHARES:
        of = [r for r in rows if r["drive_share"] == share]
        table.append({"drive_share": share, "runs": len(of)}
                     | {key: float(np.mean([r[key] for r in of])) for key in of[0] if key != "drive_share"})
    return table


def coverage_table(seeds: int, map_over: Run) -> Table:
    rows = map_over(coverage_run, [(FIRST_SEED + s,) for s in range(10 * seeds)])
    table = []
    for name in rows[0]:
        of = [r[name] for r in rows if r[name] is not None]
        error = np.array([r["error"] for r in of])
        table.append({"estimate": name, "runs": len(of), "coverage": float(np.mean([r["in"] for r in of])),
                      "bias": float(error.mean()), "rms": float(np.sqrt((error**2).mean())),
                      "mean_se": float(np.mean([r["se"] for r in of]))})
    return table


def speed_table(seeds: int, map_over: Run) -> Table:
    """90,000 a side in 64-D: a full analysis against moving the clip, in one process."""
    pair = manifold_case(90_000, 900, seed=FIRST_SEED)
    start = time.perf_counter()
    a = analyze(pair.P, pair.Q)
    full = time.perf_counter() - start
    clips = np.geomspace(0.5, 20, 50)
    start = time.perf_counter()
    for B in clips:
        a.calibrate(float(B))
    move = (time.perf_counter() - start) / len(clips)
    return [{"scenarios": 180_000, "analyze_s": full, "calibrate_ms": 1000 * move, "ratio": full / move,
             **{f"{k}_s": v for k, v in a.timings.items() if k != "total"}}]


TABLES: dict[str, Callable[[int, Run], Table]] = {
    "line": line_table, "manifold": manifold_table, "null": null_table, "coverage": coverage_table,
    "speed": speed_table,
}


def _median(rows, key) -> float:
    return float(np.median([r[key] for r in rows]))


def _map(run, tasks, jobs: int | None, scheduler: str | None) -> Table:
    """Run the tasks in processes of one thread each, so that two runs do not fight for the same cores."""
    from tqdm import tqdm

    answers = in_order(partial(_alone, run), tasks, jobs, ready=len(tasks), scheduler=scheduler)
    return list(tqdm(answers, total=len(tasks), desc=run.__name__, leave=False, disable=None))


def _alone(run, task: tuple) -> dict:
    import torch  # noqa: F401  loaded before its threads are counted

    with one_thread():
        return run(*task)


def _format(table: Table) -> str:
    """Columns that all rows share as a table; one wide row as a list."""
    text = lambda v: f"{v:.4g}" if isinstance(v, float) else str(v)  # noqa: E731
    if len(table) == 1:
        return "\n".join(f"  {key:<20} {text(value)}" for key, value in table[0].items())
    width = {key: max(len(key), *(len(text(row[key])) for row in table)) for key in table[0]}
    lines = ["  ".join(key.rjust(width[key]) for key in table[0])]
    lines += ["  ".join(text(row[key]).rjust(width[key]) for key in row) for row in table]
    return "\n".join(lines)
