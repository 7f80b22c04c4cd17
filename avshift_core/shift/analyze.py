"""The one entry for pages, CLI, notebooks and tests: two cohorts and a config in, one frozen Analysis out."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cohort import Cohort, check_metric, check_pair
from avshift_core.latent.space import Space, make_space
from avshift_core.progress import Progress, finish, within
from avshift_core.shift.baselines import ReferenceTest, reference_tests
from avshift_core.shift.c2st import GlobalTest, global_test_steps
from avshift_core.shift.calibrate import Calibration, Calibrator, make_calibrator
from avshift_core.shift.drives import Pool, pool
from avshift_core.shift.gate import LOCALIZE, Verdict, verdict
from avshift_core.shift.local import LocalTest, localize
from avshift_core.shift.local_paper import PaperRegions, localize_paper
from avshift_core.shift.trust import Balance, Check, headline, measure_balance, trust_panel


@dataclass(frozen=True, eq=False)
class Analysis:
    """P, Q, the config and the result of every stage.

    `local` and `local_paper` are None when the verdict stopped localization; `calibrations` is empty without metrics.
    """

    P: Cohort
    Q: Cohort
    config: AnalysisConfig
    space: Space
    sample: Pool
    global_test: GlobalTest
    verdict: Verdict
    reference: tuple[ReferenceTest, ...]
    local: LocalTest | None
    local_paper: PaperRegions | None
    calibrator: Calibrator
    calibrations: Mapping[str, Calibration]
    balance: Balance | None
    trust: tuple[Check, ...]
    timings: Mapping[str, float]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.calibrations)

    def calibrate(self, B: float, metric: str | None = None) -> Calibration:
        """Every estimate of a metric at another clip; O(n), nothing is trained."""
        return self.calibrator.calibrate(metric or self.metrics[0], B)

    def recheck(self, B: float, metrics: Sequence[str] | None = None) -> tuple[Check, ...]:
        """The trust panel at another clip; what `balance` measured on weighted data stays that of `config.B`.

        Args:
            metrics: those to check; all when None.
        """
        return self.checks_of(*(self.calibrate(B, name) for name in (self.metrics if metrics is None else metrics)))

    def checks_of(self, *calibrations: Calibration) -> tuple[Check, ...]:
        """The trust panel of calibrations at hand, all at one clip."""
        moved = {calibration.metric: calibration for calibration in calibrations}
        return trust_panel(self.global_test, moved, self.balance, self.P.n, self.config)

    def headline(self, metric: str | None = None, checks: Sequence[Check] | None = None) -> str | None:
        """The estimator to show, None when the trust panel withholds the number."""
        return headline(self.trust if checks is None else checks, metric or self.metrics[0])


def analysis_steps(
    P: Cohort, Q: Cohort, config: AnalysisConfig | None = None, metrics: Sequence[str] | None = None
) -> Generator[Progress, None, Analysis]:
    """The analysis as a generator of its progress; its return value is the Analysis.

    Args:
        metrics: names in `ell` of both cohorts; all common ones when None, only the tests when empty.
    """
    config = config or AnalysisConfig()
    check_pair(P, Q)
    metrics = [k for k in P.ell if k in Q.ell] if metrics is None else list(dict.fromkeys(metrics))
    for name in metrics:
        check_metric(P, Q, name, config.M)
    timings, clock = {}, time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        timings[stage], clock = now - clock, now

    yield Progress("Cutting the latent space into cells", 0.02)
    sample = pool(P, Q)
    space = make_space(P, Q, config.n_cells, config.seed)
    lap("space")
    test = yield from within(
        global_test_steps(space, sample, config, has_drives=P.has_drives), 0.08, 0.65, "Global test: ")
    decision = verdict(test, config)
    lap("global_test")
    yield Progress("Reference tests", 0.65)
    h = np.concatenate([test.h_P, test.h_Q])
    reference = reference_tests(space.X, sample, h, seed=config.seed)
    lap("reference")
    local = paper = None
    if decision.name == LOCALIZE or config.force_localize:
        yield Progress("Local test: where do they differ?", 0.72)
        local = localize(space, sample, h, config)
        lap("local_test")
        yield Progress("Local test as in the paper", 0.75)
        paper = localize_paper(space, sample, h, config)
        lap("local_test_paper")
    yield Progress("Outcome models and weights", 0.85)
    calibrator = make_calibrator(P, Q, space, sample, test, local, paper, metrics, config)
    calibrations = {name: calibrator.calibrate(name, config.B) for name in metrics}
    lap("calibration")
    balance = None
    if metrics:
        yield Progress("Do the weights remove the shift?", 0.93)
        balance = measure_balance(space, sample, calibrator, config)
    trust = trust_panel(test, calibrations, balance, P.n, config)
    lap("trust")
    yield Progress("Done", 1.0)
    return Analysis(
        P, Q, config, space, sample, test, decision, reference, local, paper, calibrator, calibrations, balance, trust,
        {**timings, "total": sum(timings.values())},
    )


def analyze(
    P: Cohort, Q: Cohort, config: AnalysisConfig | None = None, metrics: Sequence[str] | None = None, **changes
) -> Analysis:
    """Run the analysis to its end; `changes` are settings that differ from the config."""
    return finish(analysis_steps(P, Q, replace(config or AnalysisConfig(), **changes), metrics))
