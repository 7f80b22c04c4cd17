"""How sure a share, a mean or an error is after a few repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
DRAWS = 4000  # of the bootstrap; its own noise is then below a twentieth of the interval


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


def rms_of(errors, seed: int = 0) -> Spread:
    """Root mean square with the percentile interval of resampled repeats.

    >>> rms_of([3.0, -3.0, 3.0])
    Spread(value=3.0, lo=3.0, hi=3.0, n=3)
    """
    square = _known(errors) ** 2
    if len(square) < 2:
        value = float(np.sqrt(square[0])) if len(square) else float("nan")
        return Spread(value, float("nan"), float("nan"), len(square))
    drawn = np.random.default_rng(seed).choice(square, (DRAWS, len(square))).mean(axis=1)
    lo, hi = np.sqrt(np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    return Spread(float(np.sqrt(square.mean())), float(lo), float(hi), len(square))


def _known(values) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return values[np.isfinite(values)]
