"""How sure a share, a mean or an error is after a few repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True)
class Share:
    """`count` of `n` repeats, with Wilson's interval (app:bandpass_thresholds); NaN without repeats."""

    count: int
    n: int
    value: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Spread:
    """A value over n repeats with its interval."""

    value: float
    lo: float
    hi: float
    n: int


def share_of(hits) -> Share:
    """Share of True among the repeats.

    >>> s = share_of([True] * 50 + [False] * 50)
    >>> s.value, round(s.lo, 4), round(s.hi, 4)        # Wilson 1927; R: prop.test(50, 100, correct = FALSE)
    (0.5, 0.4038, 0.5962)
    """
    hits = np.asarray(hits, dtype=bool)
    if not len(hits):
        return Share(0, 0, float("nan"), float("nan"), float("nan"))
    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(LEVEL, method="wilson")
    return Share(int(hits.sum()), len(hits), float(hits.mean()), float(interval.low), float(interval.high))


def mean_of(values) -> Spread:
    """Mean with Student's interval; values that are not numbers are left out.

    >>> m = mean_of([1.0, 2.0, 3.0, float("nan")])
    >>> m.value, m.n, round(m.hi - m.value, 4)         # 4.3027 / sqrt(3)
    (2.0, 3, 2.4841)
    """
    values = _known(values)
    if len(values) < 2:
        value = float(values[0]) if len(values) else float("nan")
        return Spread(value, float("nan"), float("nan"), len(values))
    half = stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Spread(float(values.mean()), float(values.mean() - half), float(values.mean() + half), len(values))


def rms_of(errors) -> Spread:
    """Root mean square with the chi-square interval of a mean square ms with n degrees of freedom.

        sqrt(n ms / chi2_hi) to sqrt(n ms / chi2_lo)

    It holds for normal errors around 0, and is too wide where they have a mean; resampling would cover too little after
    a few repeats.

    >>> r = rms_of([3.0, -3.0, 3.0])
    >>> r.value, round(r.lo, 3), round(r.hi, 3)        # 3 sqrt(3 / 9.348), 3 sqrt(3 / 0.2158)
    (3.0, 1.699, 11.186)
    """
    square = _known(errors) ** 2
    if len(square) < 2:
        value = float(np.sqrt(square[0])) if len(square) else float("nan")
        return Spread(value, float("nan"), float("nan"), len(square))
    lo, hi = np.sqrt(square.sum() / stats.chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], len(square)))
    return Spread(float(np.sqrt(square.mean())), float(lo), float(hi), len(square))


def _known(values) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return values[np.isfinite(values)]
