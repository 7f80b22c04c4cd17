"""An estimate with its interval, and with what every drive does to it: differences and sums follow from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A metric with its interval; `se` is its drive-level standard error."""

    mu: float
    lo: float
    hi: float
    se: float


@dataclass(frozen=True, eq=False)
class Influence:
    """An estimate with the sum of its influence values in every drive: differences and intervals follow from it."""

    mu: float
    source: np.ndarray
    target: np.ndarray

    def __sub__(self, other: Influence) -> Influence:
        return Influence(self.mu - other.mu, *(_joined(a, -b) for a, b in self._with(other)))

    def __add__(self, other: Influence) -> Influence:
        return Influence(self.mu + other.mu, *(_joined(a, b) for a, b in self._with(other)))

    def times(self, factor: float) -> Influence:
        return Influence(factor * self.mu, factor * self.source, factor * self.target)

    def _with(self, other: Influence) -> tuple:
        return (self.source, other.source), (self.target, other.target)

    @property
    def drives(self) -> int:
        """Drives behind it, of the cohort that has fewer; a cohort that does not move it does not count."""
        counted = [len(s) for s in (self.source, self.target) if s.any()]
        return max(2, min(counted or (len(self.source), len(self.target))))

    @property
    def variance(self) -> float:
        return sum(len(s) / max(len(s) - 1, 1) * float(s @ s) for s in (self.source, self.target))


def _joined(a, b) -> np.ndarray:
    """a + b; drives that only one of them counts come last, and add nothing to the other.

    >>> _joined(np.array([1.0, 2.0]), np.array([10.0, 10.0, 10.0]))
    array([11., 12., 10.])
    """
    if len(a) == len(b):
        return a + b
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b with an interval made of theirs (Zou and Donner 2008), for where a standard error does not tell.

    >>> d = difference(Estimate(0.0, 0.0, 0.04, 0.0), Estimate(0.05, 0.02, 0.08, 0.015))
    >>> [round(x, 3) for x in (d.mu, d.lo, d.hi)]        # -0.05 - 0.03, -0.05 + sqrt(0.04^2 + 0.03^2)
    [-0.05, -0.08, 0.0]
    """
    mu = a.mu - b.mu
    return Estimate(mu, mu - float(np.hypot(a.mu - a.lo, b.hi - b.mu)), mu + float(np.hypot(a.hi - a.mu, b.mu - b.lo)),
                    float(np.hypot(a.se, b.se)))
