"""The fleet with known truth, as large as yours: how often is the verdict right, and how far are the numbers off?

Every repeat draws its own geometry in 64-D (latent/benchmark.py manifold_case) and runs the whole analysis on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError
from avshift_core.laboratory.shares import Share, Spread, mean_of, rms_of, share_of
from avshift_core.latent.benchmark import BETWEEN, METRIC, SyntheticPair, manifold_case
from avshift_core.latent.cohort import MIN_DRIVES, MIN_SCENARIOS
from avshift_core.parallel import in_order
from avshift_core.progress import Progress
from avshift_core.shift.analyze import Analysis, analyze
from avshift_core.shift.calibrate import ESTIMATORS, HEADLINE
from avshift_core.shift.gate import NO_SHIFT, band
from avshift_core.threads import one_thread

FIRST_SEED = 20_000  # far from the seeds that settings were chosen on and from those of `benchmark`
EXACT = "exact"  # estimate by the exact weights: what no estimator can beat by much
NAMES = ("naive", *ESTIMATORS[::-1], EXACT, "target")
MOST, MOST_REPEATS = 90_000, 200
FIXED_S, SCENARIO_S = 5.0, 0.0012  # of `seconds` in `runs`: 4 to 8 s at n = 2,000 and 24 to 29 s at 20,000, one core


@dataclass(frozen=True)
class Setup:
    """What the fleet is like.

    Attributes:
        n, drives: scenarios and drives of each side. event_rate: expected metric under P.
        drive_share: share of the latent variance between drives. shift: False draws Q like P.
    """

    n: int = 5000
    drives: int = 100
    event_rate: float = 0.1
    drive_share: float = 0.2
    shift: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (("n", MIN_SCENARIOS, MOST), ("drives", MIN_DRIVES, self.n),
                                ("event_rate", 0.001, 0.999), ("drive_share", 0.0, 1 - BETWEEN)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} is {value:,g}; it must be from {low:,g} to {high:,g}.")


@dataclass(frozen=True)
class EstimatorCheck:
    """One estimator over the repeats: signed and root mean square distance from the true rate of Q.

    Attributes:
        coverage: how often the interval held the true rate of Q; None for the exact weights, which have no interval.
        half_width: mean half-width of the interval. n: repeats in which there was an estimate.
    """

    name: str
    bias: Spread
    rms: Spread
    coverage: Share | None
    half_width: float
    n: int


@dataclass(frozen=True, eq=False)
class FleetCheck:
    """All repeats of one set-up.

    Attributes:
        runs: one row a repeat: seed, verdict, expected, right, decided, gamma_hat, gamma_lcb, gamma_ucb, gamma_star,
            regions, precision, recall, shown (whether the trust panel showed the number), mu_P, mu_Q, seconds.
        estimates: one row a repeat and estimator: seed, estimator, mu, lo, hi, truth, error.
    """

    setup: Setup
    level: float
    runs: pd.DataFrame
    estimates: pd.DataFrame

    @property
    def repeats(self) -> int:
        return len(self.runs)

    @property
    def verdicts(self) -> dict[str, Share]:
        """Right, missed (no shift was said where one is) and wrong: every repeat is one of them."""
        right = self.runs["right"].to_numpy(dtype=bool)
        missed = ~right & (self.runs["verdict"] == NO_SHIFT).to_numpy()
        return {"right": share_of(right), "missed": share_of(missed), "wrong": share_of(~right & ~missed)}

    @property
    def undecided(self) -> Share:
        """How often the interval reached into the next band."""
        return share_of(~self.runs["decided"].to_numpy(dtype=bool))

    @property
    def shown(self) -> Share:
        """How often the trust panel let the calibrated number be shown."""
        return share_of(self.runs["shown"])

    @property
    def regions(self) -> dict[str, Spread]:
        """Precision over the repeats with a region, recall over all: 0 where none was found."""
        return {name: mean_of(self.runs[name]) for name in ("precision", "recall")}

    @property
    def gain(self) -> Spread:
        """Squared error of the observed rate minus that of the headline, fleet by fleet: above 0 calibration pays."""
        error = self.estimates.pivot(index="seed", columns="estimator", values="error")
        return mean_of(error["naive"] ** 2 - error[HEADLINE] ** 2)

    @cached_property
    def checks(self) -> tuple[EstimatorCheck, ...]:
        """Every estimator that gave a number in at least one repeat, in the order of NAMES."""
        by_name = dict(list(self.estimates.groupby("estimator")))
        return tuple(_check(name, by_name[name]) for name in NAMES if name in by_name)

    def check(self, name: str) -> EstimatorCheck | None:
        return next((c for c in self.checks if c.name == name), None)

    def table(self) -> pd.DataFrame:
        """One row an estimator, for export."""
        return pd.DataFrame([
            {"estimator": c.name, "repeats": c.n, "bias": c.bias.value, "bias_lo": c.bias.lo, "bias_hi": c.bias.hi,
             "rms": c.rms.value, "rms_lo": c.rms.lo, "rms_hi": c.rms.hi, "half_width": c.half_width,
             "coverage": None if c.coverage is None else c.coverage.value,
             "coverage_lo": None if c.coverage is None else c.coverage.lo,
             "coverage_hi": None if c.coverage is None else c.coverage.hi} for c in self.checks])


def fleet_steps(
    n: int = 5000, drives: int = 100, event_rate: float = 0.1, drive_share: float = 0.2, shift: bool = True,
    repeats: int = 10, seed: int = 0, config: Mapping | None = None, jobs: int | None = None,
    scheduler: str | None = None,
) -> Generator[Progress, None, FleetCheck]:
    """Draw and analyse `repeats` fleets, a few at a time.

    Args:
        n, drives, event_rate, drive_share, shift: as in Setup.
        seed: moves all repeats to other fleets. config: settings that differ from the defaults.
        jobs: processes; None is one for each core. scheduler: as in `in_order`.
    """
    setup = Setup(n, drives, event_rate, drive_share, shift)
    if not 2 <= repeats <= MOST_REPEATS:
        raise ConfigError(f"repeats is {repeats}; from 2 to {MOST_REPEATS} are possible.")
    settings = AnalysisConfig(**(config or {}))
    seeds = [FIRST_SEED + 1000 * seed + i for i in range(repeats)]
    yield Progress(f"Drawing and analysing the first of {repeats} fleets", 0.0)
    runs, estimates = [], []
    work = partial(_run, setup, settings, jobs != 1 or scheduler is not None)
    for i, (run, rows) in enumerate(in_order(work, seeds, jobs, scheduler=scheduler)):
        runs.append(run)
        estimates += rows
        yield Progress(f"{i + 1} of {repeats} fleets analysed", (i + 1) / repeats)
    return FleetCheck(setup, settings.level, pd.DataFrame(runs), pd.DataFrame(estimates))


def expected_minutes(n: int, repeats: int) -> float:
    """About how long it takes: for each repeat a fixed part and one that grows with n, on one core."""
    return repeats * (FIXED_S + n * SCENARIO_S) / (os.cpu_count() or 1) / 60


def setup_of(analysis: Analysis, metric: str) -> Setup:
    """A fleet like two cohorts that were compared: the smaller one's size, P's drives, rate and drive share."""
    smaller = min((analysis.P, analysis.Q), key=lambda cohort: cohort.n)
    n = int(np.clip(smaller.n, MIN_SCENARIOS, MOST))
    drives = min(analysis.P.n_drives, analysis.Q.n_drives) if analysis.P.has_drives else n
    return Setup(n, int(np.clip(drives, MIN_DRIVES, n)), float(np.clip(analysis.P.ell[metric].mean(), 0.001, 0.999)),
                 float(np.clip(round(analysis.global_test.icc, 3), 0, 1 - BETWEEN)))


def _run(setup: Setup, config: AnalysisConfig, alone: bool, seed: int) -> tuple[dict, list[dict]]:
    """One repeat: the work of one process."""
    with one_thread() if alone else nullcontext():
        begin = time.perf_counter()
        pair = manifold_case(seed=seed, **asdict(setup))
        analysis = analyze(pair.P, pair.Q, config, seed=seed)
        return ({"seed": seed, **_facts(analysis, pair, config), "seconds": time.perf_counter() - begin},
                [{"seed": seed, **row} for row in _estimates(analysis, pair)])


def _facts(a: Analysis, pair: SyntheticPair, config: AnalysisConfig) -> dict:
    test, truth = a.global_test, pair.truth
    expected = band(truth.gamma_star, config)
    found, shifted = np.zeros(a.sample.n, dtype=bool), np.concatenate(truth.shifted)
    if a.local is not None:
        found = np.concatenate([a.local.region_P, a.local.region_Q]) >= 0
    return {
        "verdict": a.verdict.name, "expected": expected, "right": a.verdict.name == expected,
        "decided": a.verdict.decided, "gamma_hat": test.gamma_hat, "gamma_lcb": test.gamma_lcb,
        "gamma_ucb": test.gamma_ucb, "gamma_star": truth.gamma_star,
        "regions": 0 if a.local is None else a.local.n_regions, **precision_recall(found, shifted),
        "shown": a.headline() is not None, "mu_P": truth.mu_P, "mu_Q": truth.mu_Q,
    }


def precision_recall(found, shifted) -> dict[str, float]:
    """Share of the found that are truly shifted, and of the truly shifted that are found; NaN of nothing.

    >>> precision_recall(np.array([True, True, False, False]), np.array([True, False, True, False]))
    {'precision': 0.5, 'recall': 0.5}
    """
    both = float((found & shifted).sum())
    over = lambda total: both / float(total) if total else float("nan")  # noqa: E731
    return {"precision": over(found.sum()), "recall": over(shifted.sum())}


def _estimates(a: Analysis, pair: SyntheticPair) -> list[dict]:
    """Every estimate of Q's rate; the observed rate of P is one too, and how wrong it is stands beside the others."""
    truth, ell = pair.truth, a.P.ell[METRIC]
    rows = [{"estimator": name, "mu": e.mu, "lo": e.lo, "hi": e.hi}
            for name, e in a.calibrate(a.config.B).estimates().items() if e is not None]
    rows.append({"estimator": EXACT, "mu": float(truth.w @ ell / truth.w.sum()), "lo": np.nan, "hi": np.nan})
    return [{**row, "truth": truth.mu_Q, "error": row["mu"] - truth.mu_Q} for row in rows]


def _check(name: str, rows: pd.DataFrame) -> EstimatorCheck:
    inside = (rows["lo"] <= rows["truth"]) & (rows["truth"] <= rows["hi"])
    return EstimatorCheck(
        name, mean_of(rows["error"]), rms_of(rows["error"]), None if name == EXACT else share_of(inside),
        float((rows["hi"] - rows["lo"]).mean() / 2), len(rows),
    )
