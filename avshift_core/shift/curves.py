"""The held-out classifier as curves: ROC, reliability, score by cohort; and the bounds on its advantage compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from avshift_core.shift.analyze import Analysis
from avshift_core.shift.c2st import CROSS_FIT_INFLATION, hoeffding_lower, sigmoid, wilson_lower
from avshift_core.shift.drives import clustered_variance
from avshift_core.shift.roc import GRID

BINS, NARROWEST = 20, 0.02  # of the reliability curve: equal mass, but none narrower than this
SCORE_BINS = 50
SMALLEST_P = 1e-12
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Roc:
    """fpr: (m,) share of P at or above a threshold of the score, tpr: (m,) share of Q there.

    auc: area under the curve; lo, hi: its drive-level interval, NaN where the area is exactly that of a coin.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    auc: float
    lo: float
    hi: float


@dataclass(frozen=True, eq=False)
class Reliability:
    """What the score says against what there is, both cohorts counted as equally large.

    Attributes:
        h: (b,) mean score of each bin. share: (b,) share of Q in it, with drive-level interval lo, hi (NaN where a
            bin holds one cohort only).
        n_P, n_Q: (b,) scenarios. mass: (b,) share of the bin in the two cohorts, equally counted.
        error: expected calibration error, the mean of |share - h| by mass. by_chance: what a score that means exactly
            what it says would show with as many drives.
    """

    h: np.ndarray
    share: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    n_P: np.ndarray
    n_Q: np.ndarray
    mass: np.ndarray
    error: float
    by_chance: float


@dataclass(frozen=True, eq=False)
class Scores:
    """Histogram of the score h: edges (b + 1,), and the share of each cohort in every bin (b,)."""

    edges: np.ndarray
    P: np.ndarray
    Q: np.ndarray


@dataclass(frozen=True)
class Bound:
    """One way to bound the advantage; `used` is the one behind the verdict."""

    name: str
    gamma_lcb: float
    gamma_ucb: float
    used: bool


@dataclass(frozen=True, eq=False)
class Curves:
    """All of the held-out classifier that is drawn."""

    roc: Roc
    reliability: Reliability
    scores: Scores
    bounds: tuple[Bound, ...]
    saturation: Saturation


def held_out_curves(analysis: Analysis) -> Curves:
    """Every curve of the global test of an analysis; O(n log n)."""
    test, P, Q = analysis.global_test, analysis.P, analysis.Q
    return Curves(
        roc_curve(analysis), reliability_curve(test.logit_P, test.logit_Q, P.drive, Q.drive),
        score_histogram(test.logit_P, test.logit_Q), compared_bounds(analysis), saturation(analysis),
    )


def roc_curve(analysis: Analysis) -> Roc:
    """The mean ROC curve of the held-out folds, and the area under it with its interval.

    The error of the area is the one that `statistic` divides by, widened as all bounds are for the cross-fit.
    """
    test = analysis.global_test
    se = CROSS_FIT_INFLATION * (test.auc - 0.5) / test.statistic if test.statistic else float("nan")
    half = stats.t.ppf((1 + LEVEL) / 2, max(min(analysis.calibrator.n_drives) - 1, 1)) * se
    low, high = np.clip([test.auc - half, test.auc + half], 0, 1).tolist()
    return Roc(GRID, test.roc_tpr, test.auc, low, high)


def reliability_curve(
    logit_P, logit_Q, drive_P, drive_Q, bins: int = BINS, narrowest: float = NARROWEST
) -> Reliability:
    """Share of Q among scenarios of about the same score, in bins of equal mass or, where scores lie close, wider ones.

        share_b = q_b / (p_b + q_b),     p_b, q_b shares of the cohorts in bin b

    so that the cohorts' sizes do not matter, as they do not for the score. The interval is that of log(q_b / p_b) by
    drive.
    """
    h_P, h_Q = sigmoid(logit_P), sigmoid(logit_Q)
    h = np.concatenate([h_P, h_Q])
    weight = np.repeat([0.5 / len(h_P), 0.5 / len(h_Q)], [len(h_P), len(h_Q)])
    order = np.argsort(h, kind="stable")
    upto = np.cumsum(weight[order])
    inner = h[order][np.searchsorted(upto, np.arange(1, bins) / bins)]
    above = h[order][np.searchsorted(h[order], inner, side="right").clip(max=len(h) - 1)]  # ties stay together
    edges = _apart(np.unique((inner + above) / 2), h.min(), h.max(), narrowest)
    b_P, b_Q = np.searchsorted(edges, h_P), np.searchsorted(edges, h_Q)
    B = len(edges) + 1
    n_P, n_Q = np.bincount(b_P, minlength=B), np.bincount(b_Q, minlength=B)
    p, q = n_P / len(h_P), n_Q / len(h_Q)
    mass = (p + q) / 2
    mean = (np.bincount(b_P, h_P, B) / len(h_P) + np.bincount(b_Q, h_Q, B) / len(h_Q)) / np.maximum(2 * mass, 1e-300)
    share = q / np.maximum(2 * mass, 1e-300)
    lo, hi, se = _share_interval(p, q, b_P, b_Q, drive_P, drive_Q)
    keep = mass > 0
    return Reliability(mean[keep], share[keep], lo[keep], hi[keep], n_P[keep], n_Q[keep], mass[keep],
                       float(mass @ np.abs(share - mean)), float(mass @ se) * np.sqrt(2 / np.pi))  # E|N(0, 1)|


def score_histogram(logit_P, logit_Q, bins: int = SCORE_BINS) -> Scores:
    """Share of each cohort by score, in bins of equal width over the scores there are."""
    h_P, h_Q = sigmoid(logit_P), sigmoid(logit_Q)
    low, high = min(h_P.min(), h_Q.min()), max(h_P.max(), h_Q.max())
    room = 0.0 if high - low > NARROWEST else NARROWEST  # scores that hardly differ keep a readable axis
    edges = np.linspace(low - room, high + room, bins + 1)
    return Scores(edges, *(np.histogram(h, edges)[0] / len(h) for h in (h_P, h_Q)))


def compared_bounds(analysis: Analysis) -> tuple[Bound, ...]:
    """Bounds on the advantage side by side: by drive, Wilson's and Hoeffding's (both as in the paper).

    The last two hold for independent scenarios only; those of one drive are not.
    """
    test, config = analysis.global_test, analysis.config
    found = {"drive": drive_bounds(analysis)}
    for name, lower in (("wilson", wilson_lower), ("hoeffding", hoeffding_lower)):
        found[name] = lower(test.acc, test.n_te, config.alpha), 1 - lower(1 - test.acc, test.n_te, config.alpha)
    return tuple(
        Bound(name, max(0.0, low - 0.5), max(0.0, high - 0.5), name == config.bound)
        for name, (low, high) in found.items()
    )


def drive_bounds(analysis: Analysis) -> tuple[float, float]:
    """One-sided drive-level bounds of the accuracy, as in shift/c2st.py `advantage`, whichever bound is in use."""
    test, config, sample = analysis.global_test, analysis.config, analysis.sample
    fewest = int(np.bincount(sample.drive_y).min())
    units = int(np.bincount(sample.y).min()) if config.split_by == "row" else fewest
    folds = max(2, min(config.folds, units // 2))
    t = stats.t.ppf(1 - config.alpha, max(fewest - folds, 1))
    return test.acc - t * test.se, test.acc + t * max(test.se, float(np.sqrt(1 / (4 * test.n_te))))


@dataclass(frozen=True)
class VarianceSplit:
    """Variance of the accuracy by origin (eq:c2st_variance_decomposition).

    Attributes:
        binomial: what `n_te` independent scenarios would give. drives: what is more because scenarios of a drive are
            alike. cross_fit: the allowance for folds that are used in both roles. training: repeats of the training.
    """

    binomial: float
    drives: float
    cross_fit: float
    training: float

    @property
    def total(self) -> float:
        return self.binomial + self.drives + self.cross_fit + self.training


def variance_split(test) -> VarianceSplit:
    """The parts of `GlobalTest.se` squared. None is below 0: where drives vary less than independent scenarios would,
    all of the test part stands under `binomial`.
    """
    binomial = test.var_test / max(test.design_effect, 1.0)
    return VarianceSplit(
        float(binomial), float(test.var_test - binomial), float((CROSS_FIT_INFLATION**2 - 1) * test.var_test),
        float(test.var_training),
    )




@dataclass(frozen=True, eq=False)
class Saturation:
    """p-values of a test of the accuracy against chance, by the number of scenarios held out and the true advantage.

    n: (m,); gamma: (g,) advantages; p: (g, m), none below SMALLEST_P. n_te: where this comparison stands.
    """

    n: np.ndarray
    gamma: tuple[float, ...]
    p: np.ndarray
    n_te: int


def saturation(analysis: Analysis) -> Saturation:
    """How p falls with the number of scenarios whatever the size of the shift, at the design effect of this comparison.

        p = 1 - Phi(gamma / sqrt(design effect / (4 n)))

    Advantages: half of gamma_small, too little to matter; both edges of the band.
    """
    test, config = analysis.global_test, analysis.config
    n = np.geomspace(100, 1e6, 81)
    gamma = (config.gamma_small / 2, config.gamma_small, config.gamma_large)
    z = np.multiply.outer(gamma, np.sqrt(4 * n / max(test.design_effect, 1.0)))
    return Saturation(n, gamma, np.maximum(stats.norm.sf(z), SMALLEST_P), test.n_te)


def _apart(edges, low: float, high: float, width: float) -> np.ndarray:
    """Those of the edges that leave no bin narrower than `width` between low and high.

    >>> _apart(np.array([0.405, 0.42, 0.43, 0.59]), 0.4, 0.6, 0.02).tolist()
    [0.42]
    """
    kept = [low]
    for edge in edges:
        if edge - kept[-1] >= width - 1e-12 and high - edge >= width - 1e-12:
            kept.append(float(edge))
    return np.array(kept[1:])


def _share_interval(p, q, b_P, b_Q, drive_P, drive_Q) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of the interval of every bin's share, and its standard error, 0 where only one cohort is there."""
    B = len(p)
    lo, hi, se = np.full(B, np.nan), np.full(B, np.nan), np.zeros(B)
    D_P, D_Q = int(np.max(drive_P)) + 1, int(np.max(drive_Q)) + 1
    t = stats.t.ppf((1 + LEVEL) / 2, max(min(D_P, D_Q) - 1, 1))
    for b in np.flatnonzero((p > 0) & (q > 0)):
        variance = clustered_variance((b_P == b) - p[b], drive_P, D_P) / p[b] ** 2
        variance += clustered_variance((b_Q == b) - q[b], drive_Q, D_Q) / q[b] ** 2
        centre, half = np.log(q[b] / p[b]), t * np.sqrt(variance)
        lo[b], hi[b] = sigmoid(centre - half), sigmoid(centre + half)
        se[b] = q[b] * p[b] / (p[b] + q[b]) ** 2 * np.sqrt(variance)
    return lo, hi, se
