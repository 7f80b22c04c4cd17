"""The trust panel: what must hold before a calibrated number may be shown, each with a threshold and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.shift.c2st import Advantage, GlobalTest, advantage, cross_fit
from avshift_core.shift.calibrate import ESTIMATORS, HEADLINE, Calibration, Calibrator, cell_strata
from avshift_core.shift.drives import Pool, folds_by_drive

OK, CAUTION, REFUSE = "ok", "caution", "refuse"


@dataclass(frozen=True)
class Check:
    """One line of the panel. `metric` is None when it concerns every metric; `threshold` is where caution begins."""

    check: str
    value: float
    threshold: float
    status: str
    text: str
    metric: str | None = None


@dataclass(frozen=True)
class Balance:
    """What the weights of `strata` leave: largest standardised mean difference, and the test on weighted data."""

    smd_before: float
    smd_after: float
    residual: Advantage


def measure_balance(space, sample: Pool, calibrator: Calibrator, config: AnalysisConfig) -> Balance:
    """Standardised mean differences, and the classifier test of weighted P against Q.

    The test has two folds by drive, each with the weights of its own scenarios: weights of the whole sample would make
    one fold lack what the other has too much of, and hide what is left.
    """
    w = calibrator.cells.weights(config.B)
    X_P, X_Q = space.X[sample.y == 0], space.X[sample.y == 1]
    mean_Q = X_Q.mean(axis=0, dtype=float)
    difference = lambda mean: float(np.abs(mean - mean_Q).max())  # noqa: E731  X has unit variance
    fold = folds_by_drive(sample, 2, np.random.default_rng([config.seed, 10]))
    extra = np.ones(sample.n)
    for k in (0, 1):
        rows = np.flatnonzero(fold == k)
        part = cell_strata(space.cell[rows], space.cells.n, sample.y[rows], config.support_eps)
        extra[rows[sample.y[rows] == 0]] = np.maximum(part.weights(config.B), 1e-6)
    fit = cross_fit(space, sample, config, repeats=1, folds=2, seed=config.seed + 1, extra=extra, fold=fold)
    return Balance(
        difference(X_P.mean(axis=0, dtype=float)), difference(w @ X_P / w.sum()),
        advantage(fit, sample, config, extra=extra)[0],
    )


def trust_panel(
    test: GlobalTest, calibrations: Mapping[str, Calibration], balance: Balance, n_P: int, config: AnalysisConfig
) -> tuple[Check, ...]:
    """Every check, first those of the comparison, then those of each metric."""
    checks = [_same_cohorts(test, config), _drives_known(test)]
    if not calibrations:
        return tuple(checks)
    c = next(iter(calibrations.values()))
    unit = "scenario" if test.independence_assumed else "drive"
    checks += [
        _low("ess", c.ess / n_P, 0.3, 0.05,
             f"The weighted scenarios count as {c.ess:,.0f} of {n_P:,}.",
             "Few scenarios carry the estimate; widen P or lower the clip."),
        _low("ess_drives", c.ess_drives, 20, 8,
             f"The weighted {unit}s count as {c.ess_drives:,.0f}.",
             f"Too few {unit}s carry the estimate; widen P."),
        _high("khat", c.khat, 0.7, np.inf,
              f"Tail index of the classifier weights {c.khat:.2f}.",
              "A few of them dominate: read ipw and aipw with care; strata does not use them."),
        _high("clipped_mass", c.clipped_mass, 0.01, 0.05,
              f"{c.clipped_mass:.2%} of Q is lost to the clip.",
              "The estimate leans towards P; raise the clip."),
        _high("uncovered_mass", c.uncovered_mass, 0.01, 0.05,
              f"{c.uncovered_mass:.2%} of Q lies where P has next to nothing.",
              "No weight can speak for it; collect such scenarios in P, or narrow Q."),
        _high("top_drive", c.top_drive, 0.1, 0.3,
              f"One {unit} carries {c.top_drive:.1%} of the weight.",
              f"Look at that {unit}, or widen P."),
        _high("smd_after", balance.smd_after, 0.1, 0.25,
              f"Largest standardised mean difference {balance.smd_before:.3f} before, {balance.smd_after:.3f} after.",
              "The weights leave a difference behind."),
        _high("weighted_c2st", balance.residual.gamma_lcb, config.gamma_small,
              max(2 * config.gamma_small, test.gamma_lcb / 2),
              f"On the weighted data the classifier's advantage is {balance.residual.gamma_hat:.3f} "
              f"(lower bound {balance.residual.gamma_lcb:.3f}).",
              "The weights leave a shift behind."),
    ]
    for name, calibration in calibrations.items():
        checks += [_events(name, calibration, unit), mse_gain(name, calibration, n_P), _agreement(name, calibration)]
    return tuple(checks)


def headline(checks, metric: str) -> str | None:
    """The estimator to show for a metric, None when a check refuses it."""
    refused = any(c.status == REFUSE for c in checks if c.metric in (None, metric))
    return None if refused else HEADLINE


def _grade(bad_from: bool, worse_from: bool) -> str:
    return REFUSE if worse_from else CAUTION if bad_from else OK


def _low(check, value, caution, refuse, fact, advice) -> Check:
    status = _grade(value < caution, value < refuse)
    return Check(check, float(value), caution, status, fact if status == OK else f"{fact} {advice}")


def _high(check, value, caution, refuse, fact, advice) -> Check:
    status = _grade(value > caution, value > refuse)
    return Check(check, float(value), caution, status, fact if status == OK else f"{fact} {advice}")


def _same_cohorts(test: GlobalTest, config: AnalysisConfig) -> Check:
    worst = max(test.aa_source.gamma_lcb, test.aa_target.gamma_lcb)
    return _high(
        "aa_placebo", worst, config.gamma_small / 2, config.gamma_small,
        f"Two halves of P differ by an advantage of {test.aa_source.gamma_hat:.3f}, two halves of Q by "
        f"{test.aa_target.gamma_hat:.3f} (largest lower bound {worst:.3f}).",
        "A cohort differs from itself, so the verdict is not to be trusted: check the drive ids.",
    )


def _drives_known(test: GlobalTest) -> Check:
    if test.independence_assumed:
        return Check("drives", 0.0, 1.0, CAUTION,
                     "No drive ids: independence is assumed; bounds are too tight if scenarios of a drive are alike.")
    fact = (f"Bounds count drives: {test.icc:.1%} of the latent variance lies between drives, design effect "
            f"{test.design_effect:.1f}.")
    if test.shared_drives:
        return Check("drives", 1.0, 1.0, CAUTION, f"{fact} {test.shared_drives:,} drives are in both cohorts; "
                     "intervals treat their two parts as independent.")
    return Check("drives", 1.0, 1.0, OK, fact)


def _events(name: str, c: Calibration, unit: str) -> Check:
    """An interval of a rate rests on the drives that saw an event; of none it would be [0, 0]."""
    return replace(
        _low("events", c.event_drives, 10, 5, f"{name} is above 0 in {c.event_drives:,} {unit}s of P.",
             "Too few for an interval; widen P."),
        metric=name,
    )


def mse_terms(c: Calibration, n_P: int) -> tuple[float, float]:
    """Both sides of eq:lis_mse_dominance with plug-in values: the squared bias removed and the variance added.

    The square of an estimate is too large by its variance, which is taken off.
    """
    return c.traffic.mu**2 - c.traffic.se**2, (c.sigma2_lis - c.sigma2_naive) / n_P


def mse_gain(name: str, c: Calibration, n_P: int) -> Check:
    """eq:lis_mse_dominance with plug-in values: the squared bias removed against the variance added."""
    removed, added = mse_terms(c, n_P)
    gain = removed - max(added, 0.0)
    fact = f"Calibration moves {name} by {c.traffic.mu:+.4f} and changes its variance by a factor " \
           f"{c.sigma2_lis / max(c.sigma2_naive, 1e-300):.1f}."
    noisy = c.traffic.lo <= 0 <= c.traffic.hi
    if noisy:
        return Check("mse_gain", gain, 0.0, OK,
                     f"{fact} The move is within its own error: naive and calibrated cannot be told apart.", name)
    status = _grade(gain < 0, False)
    return Check("mse_gain", gain, 0.0, status,
                 fact if status == OK else f"{fact} It adds more noise than it removes bias.", name)


def _agreement(name: str, c: Calibration) -> Check:
    """Largest distance of another estimator from the headline, in standard errors of the two."""
    chosen = getattr(c, HEADLINE)
    apart = (HEADLINE, "lis", "lis_paper")  # regions leave on purpose what they do not cover
    others = {k: getattr(c, k) for k in ESTIMATORS if k not in apart and getattr(c, k) is not None}
    distance = {k: abs(e.mu - chosen.mu) / max(np.hypot(e.se, chosen.se), 1e-12) for k, e in others.items()}
    far = max(distance, key=distance.get)
    check = _high("agreement", distance[far], 2.0, 4.0,
                  f"{far} is farthest from {HEADLINE} for {name}: {others[far].mu:.4f} against {chosen.mu:.4f}.",
                  "The estimators disagree; the overlap or a model is at fault.")
    return replace(check, metric=name)
