"""Does the split of a version comparison hold what it says? `python benchmarks/versions.py`.

Pairs of cohorts in 64 dimensions with clustered drives (latent/benchmark.py): the traffic of three clusters shifts, and
the version that drove Q has another event rate around three clusters, so that all parts are known by formula. Beside it
stands a metric of the same cohorts without any version effect; both are metrics of one comparison. Every pair goes
through the whole of `analyze` and `compare_versions`, with the settings of a user who changes none.
1. ell: error of every part, bias in units of the raw confounding (what the traffic alone makes of the difference), and
   coverage of the 95 % intervals. The bias of the performance part is told by the same fit with every event replaced by
   its exact rate, less the exact effect in the same scenarios: the luck of events and of the draw, which has mean 0,
   is left out, and what remains is what the adjustment missed; `rms` is that of a single pair. `strata`, `weights` and
   `model` are the same by cells alone, with classifier weights but no model, and with a model but no classifier
   weights; `none` adjusts nothing.
2. unchanged: no version effect, the same shift of the traffic: how often "better" or "worse" is said all the same.
Seeds from 10,000 on; settings were chosen on others (`--first 0`).
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.files import check_writable, write_json
from avshift_core.latent.benchmark import METRIC, UNCHANGED, Truth, manifold_case
from avshift_core.parallel import in_order
from avshift_core.shift.analyze import Analysis, analyze
from avshift_core.shift.trust import REFUSE
from avshift_core.shift.version_split import REFERENCES, Split, VersionFit, make_fit, split_of
from avshift_core.shift.versions import BETTER, WORSE, compare_versions, judge
from avshift_core.threads import one_thread

FIRST_SEED = 10_000
EFFECT, NONE = METRIC, UNCHANGED  # the two metrics
SIZE = -0.6  # of the effect: bumps of the event rate around three clusters are this much lower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="pairs of cohorts (default: 200)")
    parser.add_argument("--scenarios", type=int, default=3000, help="scenarios a side (default: 3000)")
    parser.add_argument("--drives", type=int, default=100, help="drives a side (default: 100)")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    parser.add_argument("--json", type=Path, help="write the tables here")
    arguments = parser.parse_args()
    if arguments.json is not None:
        check_writable(arguments.json)
    start = time.perf_counter()
    seeds = range(arguments.first, arguments.first + arguments.pairs)
    rows = []
    try:
        for row in in_order(partial(alone, arguments.scenarios, arguments.drives), seeds, arguments.jobs):
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
        write_json({"schema": 2, "pairs": len(rows), "scenarios": arguments.scenarios, "drives": arguments.drives,
                    "tables": tables}, arguments.json)


def alone(n: int, drives: int, seed: int) -> dict:
    import torch  # noqa: F401  loaded before its threads are counted

    with one_thread():
        return run(n, drives, seed)


def run(n: int, drives: int, seed: int) -> dict:
    """One pair: every part of both metrics with its truth."""
    pair = manifold_case(n, drives, seed=seed, effect=SIZE)
    t = pair.truth
    without = replace(t, mu_B_P=t.mu_P, mu_B_Q=t.mu_Q, rate_B_P=t.rate_P, rate_B_Q=t.rate_Q)
    analysis = analyze(pair.P, pair.Q, seed=seed)
    compared = compare_versions(analysis, versions=("A", "B"))
    refused = compared.probe.status == REFUSE
    return {name: parts_of(analysis, compared.fit, compared.splits[name], truth) | {"refused": refused}
            for name, truth in ((EFFECT, t), (NONE, without))}


def parts_of(analysis: Analysis, fit: VersionFit, split: Split, truth: Truth) -> dict:
    true = {"P": truth.mu_B_P - truth.mu_P, "Q": truth.mu_B_Q - truth.mu_Q}
    true["mean"] = (true["P"] + true["Q"]) / 2
    raw = truth.mu_B_Q - truth.mu_P
    parts = {"raw": (split.raw, raw), "not comparable": (split.not_comparable, 0.0)}
    for ref in REFERENCES:
        parts[f"performance {ref}"] = split.performance[ref], true[ref]
        parts[f"exposure {ref}"] = split.exposure[ref], raw - true[ref]
    return {
        "confounding": raw - true["mean"], "verdict": judge(split), "common": split.in_P / split.n_P,
        "parts": {name: {"error": e.mu - value, "in": e.lo <= value <= e.hi, "se": e.se}
                  for name, (e, value) in parts.items()},
        "missed": missed(analysis, fit, split.metric, truth),
    }


def missed(analysis: Analysis, fit: VersionFit, metric: str, truth: Truth) -> dict[str, float]:
    """What each adjustment leaves in the performance part, with exact rates in the place of events."""
    c, s = analysis.calibrator, fit.support
    zero = {metric: 0 * truth.rate_P}, {metric: 0 * truth.rate_Q}
    quiet = replace(c, ell_P={metric: truth.rate_P}, ell_Q={metric: truth.rate_B_Q})
    modelled, bare = (replace(analysis, calibrator=calibrator)
                      for calibrator in (quiet, replace(quiet, m_P=zero[0], m_Q=zero[1])))
    effect = {"P": (truth.rate_B_P - truth.rate_P)[s.in_P].mean(), "Q": (truth.rate_B_Q - truth.rate_Q)[s.in_Q].mean()}
    effect["mean"] = (effect["P"] + effect["Q"]) / 2

    def performance(of: Analysis, by: VersionFit) -> dict[str, float]:
        found = split_of(of, by, metric).performance
        return {ref: found[ref].mu - effect[ref] for ref in REFERENCES}

    return {
        **{f"performance {ref}": value for ref, value in performance(modelled, fit).items()},
        "none": float(truth.rate_B_Q[s.in_Q].mean() - truth.rate_P[s.in_P].mean() - effect["mean"]),
        "strata": performance(bare, make_fit(analysis, s, *zero, odds=False))["mean"],
        "weights": performance(bare, make_fit(analysis, s, *zero))["mean"],
        "model": performance(modelled, make_fit(analysis, s, fit.m_P, fit.m_Q, odds=False))["mean"],
    }


def table(rows: list[dict]) -> dict:
    confounding = float(np.mean([r["confounding"] for r in rows]))
    parts, bias = [], []
    for name in rows[0]["parts"]:
        error, inside, se = (np.array([r["parts"][name][key] for r in rows]) for key in ("error", "in", "se"))
        parts.append({"part": name, "mean_error": float(error.mean()), "coverage": float(inside.mean()),
                      "rms": float(np.sqrt((error**2).mean())), "mean_se": float(se.mean())})
    for name in rows[0]["missed"]:
        left = np.array([r["missed"][name] for r in rows])
        bias.append({"part": name, "bias": float(left.mean()), "of_confounding": float(left.mean() / confounding),
                     "se": float(left.std(ddof=1) / np.sqrt(len(rows)) / abs(confounding)),
                     "rms": float(np.sqrt((left**2).mean()))})
    said = [r["verdict"] for r in rows]
    return {
        "parts": parts, "bias": bias, "pairs": len(rows),
        **{word: said.count(word) / len(said) for word in (BETTER, WORSE)},
        "confounding": confounding, "common": float(np.mean([r["common"] for r in rows])),
        "refused": float(np.mean([r["refused"] for r in rows])),
    }


def show(found: dict) -> None:
    print(f"{'part':<18} {'mean error':>10} {'coverage':>9} {'rms':>8} {'mean se':>8}")
    for row in found["parts"]:
        print(f"{row['part']:<18} {row['mean_error']:>+10.5f} {row['coverage']:>9.3f} {row['rms']:>8.5f} "
              f"{row['mean_se']:>8.5f}")
    print(f"\n{'missed':<18} {'mean':>10} {'of conf.':>9} {'+-':>8} {'rms':>8}")
    for row in found["bias"]:
        print(f"{row['part']:<18} {row['bias']:>+10.5f} {row['of_confounding']:>+9.3f} {row['se']:>8.3f} "
              f"{row['rms']:>8.5f}")
    print(f"better {found[BETTER]:.3f}, worse {found[WORSE]:.3f} of {found['pairs']}; raw confounding "
          f"{found['confounding']:+.5f}; {found['common']:.1%} of P in common traffic; the probe refuses "
          f"{found['refused']:.3f}", flush=True)


if __name__ == "__main__":
    main()
