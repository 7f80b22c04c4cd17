"""Rates counted on scenarios that are alike within a drive: their intervals and design effects."""

from __future__ import annotations

from scipy import special

from avshift_core.shift.drives import clustered_variance


def rate_interval(mu: float, se: float, n: int, drives: int, level: float, design: float = 1.0) -> tuple[float, float]:
    """Interval of a rate in [0, 1] from scenarios that are alike within a drive (Korn and Graubard 1998).

    Clopper and Pearson's, with the effective number of scenarios mu (1 - mu) / se^2, less for few drives. Where there
    is no event, or nothing else, the standard error says nothing: `design`, the design effect elsewhere, does.

    >>> [round(x, 4) for x in rate_interval(0.1, (0.1 * 0.9 / 100) ** 0.5, 100, 10**9, 0.95)]   # R: binom.test(10, 100)
    [0.049, 0.1762]
    """
    tail = (1 - level) / 2
    effective = mu * (1 - mu) / se**2 if 0 < mu < 1 and se > 0 else n / design
    effective *= (special.stdtrit(max(n - 1, 1), 1 - tail) / special.stdtrit(max(drives - 1, 1), 1 - tail)) ** 2
    effective = min(effective, n)
    events = mu * effective
    low = special.betaincinv(events, effective - events + 1, tail) if mu > 0 else 0.0
    high = special.betaincinv(events + 1, effective - events, 1 - tail) if mu < 1 else 1.0
    return float(low), float(high)


def design_effect_of_mean(drive, ell) -> float:
    """Variance of the mean of values in [0, 1] over that of independent scenarios, at least 1.

    >>> import numpy as np
    >>> design_effect_of_mean(np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 0.0, 0.0]))      # 2 * (1 + 1) / 16 * 4 / 0.25
    4.0
    """
    mu = ell.mean()
    variance = clustered_variance(ell - mu, drive, int(drive.max()) + 1)
    return float(max(1.0, len(ell) * variance / max(mu * (1 - mu), 1e-300)))
