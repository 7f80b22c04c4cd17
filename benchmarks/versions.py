"""Does the split of a version comparison hold what it says? `python benchmarks/versions.py`.

Pairs of cohorts in 64 dimensions with clustered drives (latent/benchmark.py): the traffic of three clusters shifts, and
the version that drove Q has another event rate around three clusters, so that all parts are known by formula. Beside it
stands a metric of the same cohorts without any version effect; both share one fit, as all metrics of a comparison do.
1. ell: bias of every part in units of the raw confounding (what the traffic alone makes of the difference), coverage
   of the 95 % intervals. The bias of a performance part is also told without the noise of the raw difference, which is
   unbiased: raw less true raw, less the error of the exposure part. `strata`, `weights` and `model` are the performance
   part by cells alone, with classifier weights but no model, and with a model but no classifier weights.
2. unchanged: no version effect, the same shift of the traffic: how often "better" or "worse" is said all the same.
Only what the split rests on is computed: cells, one cross-fit of the classifier, outcome models of both versions; with
`--whole` the whole analysis and the leakage probe, too.
Seeds from 10,000 on; settings were chosen on others (`--first 0`).
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.config import AnalysisConfig
from avshift_core.files import check_writable, write_json
from avshift_core.latent.benchmark import METRIC, UNCHANGED, manifold_case
from avshift_core.latent.space import make_space
from avshift_core.parallel import in_order
from avshift_core.shift.analyze import analyze
from avshift_core.shift.c2st import cross_fit
from avshift_core.shift.calibrate import Calibrator, outcome_models
from avshift_core.shift.drives import pool
from avshift_core.shift.support import common_support
from avshift_core.shift.trust import REFUSE
from avshift_core.shift.version_split import REFERENCES, make_fit, split_of
from avshift_core.shift.versions import BETTER, WORSE, compare_versions, judge
from avshift_core.threads import one_thread

FIRST_SEED = 10_000
QUICK = {"classifier": "mlp", "repeats": 1, "folds": 3, "n_perm": 99}
EFFECT, NONE = METRIC, UNCHANGED  # the two metrics
SIZE = -0.6  # of the effect: bumps of the event rate around three clusters are this much lower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="pairs of cohorts (default: 200)")
    parser.add_argument("--scenarios", type=int, default=3000, help="scenarios a side (default: 3000)")
    parser.add_argument("--drives", type=int, default=100, help="drives a side (default: 100)")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help=argparse.SUPPRESS)
    parser.add_argument("--whole", action="store_true", help="the whole analysis of each pair, with the leakage probe")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    parser.add_argument("--json", type=Path, help="write the tables here")
    arguments = parser.parse_args()
    if arguments.json is not None:
        check_writable(arguments.json)
    start = time.perf_counter()
    seeds = range(arguments.first, arguments.first + arguments.pairs)
    work = partial(alone, arguments.scenarios, arguments.drives, arguments.whole)
    rows = []
    try:
        for row in in_order(work, seeds, arguments.jobs):
            rows.append(row)
    except KeyboardInterrupt:
        print(f"stopped after {len(rows)} pairs; the tables are of these")
        if len(rows) < 2:
            return
    tables = {name: table([row[name] for row in rows]) for name in (EFFECT, NONE)}
    print(f"{len(rows)} pairs of {arguments.scenarios:,} a side in {arguments.drives} drives, "
          f"{time.perf_counter() - start:.0f} s")
    for name, found in tables.items():
        print(f"\n{name}")
        show(found)
    if arguments.json is not None:
        write_json({"schema": 1, "pairs": len(rows), "scenarios": arguments.scenarios, "drives": arguments.drives,
                    "tables": tables}, arguments.json)


def alone(n: int, drives: int, whole: bool, seed: int) -> dict:
    import torch  # noqa: F401  loaded before its threads are counted

    with one_thread():
        return run(n, drives, whole, seed)


def run(n: int, drives: int, whole: bool, seed: int) -> dict:
    """One pair: every part of both metrics with its truth."""
    pair = manifold_case(n, drives, seed=seed, effect=SIZE)
    P, Q, t = pair.P, pair.Q, pair.truth
    without = replace(t, mu_B_P=t.mu_P, mu_B_Q=t.mu_Q)
    refused = None
    if whole:
        analysis = analyze(P, Q, seed=seed, **QUICK)
        compared = compare_versions(analysis, versions=("A", "B"))
        fit, refused = compared.fit, compared.probe.status == REFUSE
    else:
        analysis, fit = core(P, Q, AnalysisConfig(seed=seed, **QUICK))
    return {name: parts_of(analysis, fit, name, truth, refused)
            for name, truth in ((EFFECT, t), (NONE, without))}


def core(P, Q, config: AnalysisConfig):
    """What the split rests on, and no more of an analysis."""
    space, sample = make_space(P, Q, config.n_cells, config.seed), pool(P, Q)
    logit = cross_fit(space, sample, config, repeats=1, folds=config.folds, seed=config.seed).logits.mean(axis=0)
    models = [outcome_models(cohort, label, space, sample, (EFFECT, NONE), config)
              for label, cohort in ((0, P), (1, Q))]
    nothing = dict.fromkeys(("w_ipw", "w_balance", "cells", "regions", "paper_P", "paper_Q", "uncovered_mass", "khat"))
    calibrator = Calibrator(ell_P=P.ell, ell_Q=Q.ell, m_P=models[0][0], m_Q=models[0][1], drive_P=P.drive,
                            drive_Q=Q.drive, n_drives=(P.n_drives, Q.n_drives), level=config.level, M=1.0, **nothing)
    test = SimpleNamespace(logit_P=logit[sample.y == 0], logit_Q=logit[sample.y == 1])
    analysis = SimpleNamespace(config=config, calibrator=calibrator, global_test=test)
    return analysis, make_fit(analysis, common_support(space, sample, config), *models[1])


def parts_of(analysis, fit, metric: str, truth, refused: bool | None) -> dict:
    split = split_of(analysis, fit, metric)
    true = {"P": truth.mu_B_P - truth.mu_P, "Q": truth.mu_B_Q - truth.mu_Q}
    true["mean"] = (true["P"] + true["Q"]) / 2
    raw = truth.mu_B_Q - truth.mu_P
    parts = {"raw": (split.raw, raw), "not comparable": (split.not_comparable, 0.0)}
    for ref in REFERENCES:
        parts[f"performance {ref}"] = split.performance[ref], true[ref]
        parts[f"exposure {ref}"] = split.exposure[ref], raw - true[ref]
    for name, other in variants(analysis, fit, metric).items():
        parts[name] = other, true["mean"]
    return {
        "confounding": raw - true["mean"], "verdict": judge(split), "common": split.in_P / split.n_P,
        "refused": refused, "raw_error": split.raw.mu - raw,
        "parts": {name: {"error": e.mu - value, "in": e.lo <= value <= e.hi, "se": e.se}
                  for name, (e, value) in parts.items()},
    }


def variants(analysis, fit, metric: str) -> dict:
    """The performance part, mean of both references, by other weightings of the same fit."""
    c = analysis.calibrator
    none_P, none_Q = ({metric: np.zeros(len(m[metric]))} for m in (c.m_P, c.m_Q))
    with_model = SimpleNamespace(config=analysis.config, global_test=analysis.global_test, calibrator=c)
    bare = SimpleNamespace(config=analysis.config, global_test=analysis.global_test,
                           calibrator=replace(c, m_P=none_P, m_Q=none_Q))

    def pick(a, m_P, m_Q, odds: bool):
        return split_of(a, make_fit(a, fit.support, m_P, m_Q, odds=odds), metric).performance["mean"]

    return {"strata": pick(bare, none_P, none_Q, False), "weights": pick(bare, none_P, none_Q, True),
            "model": pick(with_model, fit.m_P, fit.m_Q, False)}


def table(rows: list[dict]) -> list[dict]:
    confounding = float(np.mean([r["confounding"] for r in rows]))
    noise = np.array([r["raw_error"] for r in rows])
    found = []
    for name in rows[0]["parts"]:
        error, inside, se = (np.array([r["parts"][name][key] for r in rows]) for key in ("error", "in", "se"))
        of_version = name not in ("raw", "not comparable") and not name.startswith("exposure")
        clean = error - noise if of_version else error  # the raw difference is unbiased, its noise is not bias
        found.append({
            "part": name, "bias": float(error.mean()), "bias_clean": float(clean.mean()),
            "clean_se": float(clean.std(ddof=1) / np.sqrt(len(rows))),
            "of_confounding": float(abs(clean.mean()) / confounding), "coverage": float(inside.mean()),
            "rms": float(np.sqrt((error**2).mean())), "mean_se": float(se.mean()),
        })
    said = [r["verdict"] for r in rows]
    return [*found, {
        "part": "verdicts", "pairs": len(rows), **{word: said.count(word) / len(said) for word in (BETTER, WORSE)},
        "confounding": confounding, "common": float(np.mean([r["common"] for r in rows])),
        "refused": None if rows[0]["refused"] is None else float(np.mean([r["refused"] for r in rows])),
    }]


def show(found: list[dict]) -> None:
    print(f"{'part':<18} {'bias':>9} {'clean':>9} {'+-':>8} {'of conf.':>8} {'coverage':>9} {'rms':>8} {'mean se':>8}")
    for row in found[:-1]:
        print(f"{row['part']:<18} {row['bias']:>+9.5f} {row['bias_clean']:>+9.5f} {row['clean_se']:>8.5f} "
              f"{row['of_confounding']:>8.3f} {row['coverage']:>9.3f} {row['rms']:>8.5f} {row['mean_se']:>8.5f}")
    last = found[-1]
    refused = "" if last["refused"] is None else f"; the probe refuses {last['refused']:.3f}"
    print(f"better {last[BETTER]:.3f}, worse {last[WORSE]:.3f} of {last['pairs']}; raw confounding "
          f"{last['confounding']:+.5f}; {last['common']:.1%} of P in common traffic{refused}", flush=True)


if __name__ == "__main__":
    main()
