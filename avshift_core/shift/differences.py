"""Standardised differences between two sides of a table, with intervals that count drives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from avshift_core.errors import CohortError
from avshift_core.shift.attributes import Attributes, Category, Number

LEVEL = 0.95
MOST_DRIVES = 10_000  # more are joined at random into this many groups, which are as independent and quicker
NUMBER, SHARE, PRESENCE = "number", "share", "presence"


@dataclass(frozen=True)
class Difference:
    """One attribute, inside against outside.

    Attributes:
        column: of the table; level: of a category, as stored; None for numbers and for "has one".
        kind: NUMBER (means), SHARE (of a level) or PRESENCE (share with a value).
        label, unit: for people; unit "%" for shares, whose values are from 0 to 1 all the same.
        inside, outside: mean (of the known values) or share.
        smd: standardised mean difference, inside minus outside; lo, hi: its drive-level 95 % interval, NaN where one
            side has fewer than two drives.
        ratio: inside / outside for shares; None for numbers and where the share outside is 0.
        n_inside, n_outside: rows with a value; missing_inside, missing_outside: without one.
        after: the same with weights on the outside, where weights were given.
    """

    column: str
    level: str | None
    kind: str
    label: str
    unit: str
    inside: float
    outside: float
    smd: float
    lo: float
    hi: float
    ratio: float | None
    n_inside: int
    n_outside: int
    missing_inside: int
    missing_outside: int
    after: Difference | None = None

    @property
    def clear(self) -> bool:
        """True where the interval does not reach 0."""
        return self.lo > 0 or self.hi < 0

    def text(self, value: float) -> str:
        """A mean or a share of this attribute, with its unit."""
        return number_text(value, self.unit)


def number_text(value: float, unit: str) -> str:
    """Three digits and the unit.

    >>> number_text(0.0312, "%"), number_text(0.5, "%"), number_text(12.345, "m"), number_text(1234.5, ""), number_text(0.0004, "%")
    ('3.1\\xa0%', '50\\xa0%', '12.3\\xa0m', '1,234', '<0.1\\xa0%')
    """  # noqa: E501
    if unit == "%":
        text = f"{100 * value:.1f}" if value < 0.0995 and value > 0 else f"{100 * value:.0f}"
        text = "<0.1" if 0 < value < 0.0005 else text
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


@dataclass(frozen=True, eq=False)
class Entry:
    """A difference with what it was made from; values: (n,) numbers or indicators; shift: taken off for the sums."""

    found: Difference
    moments: Moments
    values: np.ndarray
    shift: float

    def centred(self, rows) -> tuple[np.ndarray, np.ndarray | None]:
        """Values of some rows less the shift, 0 where there is none; and where there is one, None for everywhere."""
        x = self.values[rows]
        if self.found.kind != NUMBER:
            return x.astype(np.float32), None
        has = np.isfinite(x)
        return np.where(has, x - self.shift, 0.0), None if has.all() else has


def entries(attributes: Attributes, mask, drive) -> Iterator[Entry]:
    drive = np.asarray(drive)
    if len(mask) != attributes.n or len(drive) != attributes.n:
        raise CohortError(f"A profile of {attributes.n:,} rows was asked for with {len(mask):,} marks and "
                          f"{len(drive):,} drives; one each is needed.")
    if not 0 < mask.sum() < len(mask):
        return
    sides = _Sides(mask, drive)
    for a in attributes.numbers:
        entry = sides.number(a)
        if entry is not None:
            yield entry
    for a in attributes.categories:
        sums = sides.levels(a)
        shares = [sides.share(a.column, level, SHARE, f"{a.label}: {text}", sums[..., k], a.code == k)
                  for k, (level, text) in enumerate(zip(a.levels, a.texts, strict=True))]
        yield from _told_once(a, shares)
    for a in attributes.presences:
        yield sides.share(a.column, None, PRESENCE, a.label, sides.sums(sides.group[a.has]), a.has)


def _told_once(a: Category, shares: list[Entry]) -> list[Entry]:
    """Of two levels that mirror each other one: "yes", or the one that there is more of inside."""
    if len(shares) != 2 or (a.code < 0).any():
        return shares
    return shares[1:] if a.levels == ("no", "yes") or shares[1].found.smd > 0 else shares[:1]


class _Sides:
    """Rows sorted into (drive, side); outside is side 0, inside side 1."""

    def __init__(self, mask, drive) -> None:
        number = np.unique(drive, return_inverse=True)[1] % MOST_DRIVES
        self.G = int(number.max()) + 1
        self.group = number * 2 + mask
        self.size = self.sums(self.group)
        self.rows = self.size.sum(axis=0)

    def sums(self, group, values=None) -> np.ndarray:
        """(G, 2) sums of values, or counts, over the rows of each drive on each side."""
        return np.bincount(group, values, minlength=2 * self.G).reshape(self.G, 2).astype(float)

    def levels(self, a: Category) -> np.ndarray:
        """(G, 2, L) rows of each level."""
        L, has = len(a.levels), a.code >= 0
        place = self.group[has] * L + a.code[has]
        return np.bincount(place, minlength=2 * self.G * L).reshape(self.G, 2, L).astype(float)

    def number(self, a: Number) -> Entry | None:
        """None where a side has no value."""
        has = np.isfinite(a.values)
        group, x = (self.group, a.values) if has.all() else (self.group[has], a.values[has])
        n = self.size if has.all() else self.sums(group)
        if n.sum(axis=0).min() == 0:
            return None
        shift = float(x.mean())  # sums of squares of centred values keep their digits
        x = x - shift
        moments = Moments(n, self.sums(group, x), self.sums(group, x * x))
        return self._entry(moments, a.values, shift, (a.column, None, NUMBER, a.label, a.unit))

    def share(self, column, level, kind, label, sums, values) -> Entry:
        return self._entry(Moments(self.size, sums, None), values, 0.0, (column, level, kind, label, "%"))

    def _entry(self, moments: Moments, values, shift: float, names) -> Entry:
        mean = moments.mean + shift
        outside, inside = np.where(np.abs(mean) < 1e-9 * moments.sd, 0.0, mean).tolist()  # no "-0.0" from rounding
        n = moments.total
        found = Difference(*names, inside, outside, *moments.standardised(), share_ratio(names[2], inside, outside),
                           int(n[1]), int(n[0]), int(self.rows[1] - n[1]), int(self.rows[0] - n[0]))
        return Entry(found, moments, values, shift)


class Moments:
    """Means, pooled standard deviation and the influence of drives, from sums of (drive, side).

    Arguments: n, x, x2 (G, 2) counts, sums and sums of squares (None for shares, whose squares are themselves).
    """

    def __init__(self, n, x, x2) -> None:
        self.n, self.total = n, n.sum(axis=0)
        self.mean = m = x.sum(axis=0) / self.total
        square = x if x2 is None else x2
        variance = np.maximum(square.sum(axis=0) / self.total - m**2, 0)
        bessel = 1 if x2 is None else self.total / np.maximum(self.total - 1, 1)
        self.sd = float(np.sqrt((variance * bessel).mean()))
        self.varies = self.sd > 1e-12
        if not self.varies:
            part = self.total / self.total.sum()
            self.sd = float(np.sqrt(part.prod()) * abs(m[1] - m[0])) or 1.0
        self.of_mean = (x - m * n) / self.total
        self.of_variance = (square - 2 * m * x + (m**2 - variance) * n) / self.total

    def standardised(self) -> tuple[float, float, float]:
        """smd with its interval; the delta method moves the mean and the standard deviation together."""
        smd = (self.mean[1] - self.mean[0]) / self.sd
        influence = (self.of_mean[:, 1] - self.of_mean[:, 0]) / self.sd
        if self.varies:
            influence = influence - smd / (4 * self.sd**2) * self.of_variance.sum(axis=1)
        return interval(smd, influence, self.n)


def interval(smd: float, influence, n) -> tuple[float, float, float]:
    """Student's t interval with D/(D-1) sum_d S_d^2 as variance."""
    drives = (n > 0).sum(axis=0)
    if drives.min() < 2:
        return float(smd), np.nan, np.nan
    D = int((n > 0).any(axis=1).sum())
    half = stats.t.ppf((1 + LEVEL) / 2, int(drives.min()) - 1) * np.sqrt(D / (D - 1) * float(influence @ influence))
    return float(smd), float(smd - half), float(smd + half)


def share_ratio(kind: str, inside: float, outside: float) -> float | None:
    return None if kind == NUMBER or outside <= 0 else inside / outside
