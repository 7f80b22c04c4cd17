"""What sets some scenarios apart from the others, and what differs between two cohorts, attribute by attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError
from avshift_core.shift.attributes import Attributes, read_attributes
from avshift_core.shift.differences import NUMBER, Difference, Entry, entries, interval, share_ratio

SAME = 0.01  # shares that differ by less say the same


def profile(table: pd.DataFrame | Attributes, mask, drive) -> tuple[Difference, ...]:
    """Every attribute of the rows in `mask` against the other rows, the largest difference first.

        smd = (m_in - m_out) / sqrt((s_in^2 + s_out^2) / 2)

    Intervals come from the influence of every drive on the whole ratio, so that a drive with rows on both sides counts
    once; Student's t with as many drives as the side with fewer has. Where neither side varies, the standard deviation
    of both together stands below.

    Args:
        table: one row a scenario, any columns; or what `read_attributes` made of it, for many profiles of one table.
        mask: (n,) bool.
        drive: (n,) any labels of the drives.

    Returns:
        Empty where one side has no rows.
    """
    attributes = table if isinstance(table, Attributes) else read_attributes(table)
    found = [entry.found for entry in entries(attributes, np.asarray(mask, dtype=bool), drive)]
    return tuple(sorted(found, key=lambda d: -abs(d.smd)))


def attribute_differences(P_obs, Q_obs, drive_P, drive_Q, weights=None) -> tuple[Difference, ...]:
    """What differs between two cohorts: Q is inside, P outside, so that a positive smd means more in Q.

    Columns with one value in P and one in Q are what the cohorts were chosen by, and left out.

    Args:
        P_obs, Q_obs: tables with the attributes; columns that only one of them has are left out.
        drive_P, drive_Q: (n,) drives.
        weights: (n_P,) weights of P's scenarios, such as those of a calibration; `after` then holds the differences
            that are left, over the standard deviation before weighting (as in Austin 2009), weights taken as given.
    """
    common = [column for column in P_obs.columns if column in Q_obs.columns]
    table = pd.concat([P_obs[common], Q_obs[common]], ignore_index=True)
    return cohort_differences(read_attributes(table), *pooled(drive_P, drive_Q), weights)


def cohort_differences(attributes: Attributes, y, drive, weights=None) -> tuple[Difference, ...]:
    """As attribute_differences, on attributes of the pooled rows.

    Args:
        y: (n,) 0 for P, 1 for Q; drive: (n,) in which no drive is in both; weights: (n_P,) or None.
    """
    return weighing(attributes, y, drive).differences(weights)


def pooled(drive_P, drive_Q) -> tuple[np.ndarray, np.ndarray]:
    """(n,) cohorts and (n,) drives of both, P first; a drive that is in both becomes two."""
    a, b = (np.unique(np.asarray(d), return_inverse=True)[1] for d in (drive_P, drive_Q))
    return np.repeat([0, 1], [len(a), len(b)]), np.concatenate([a, b + (a.max() + 1 if len(a) else 0)])


def weighing(attributes: Attributes, y, drive) -> Weighing:
    """The differences of two cohorts, ready for any weights of P.

    Args:
        y: (n,) 0 for P, 1 for Q; drive: (n,) in which no drive is in both.
    """
    inside = np.asarray(y) == 1
    found = list(entries(attributes, inside, drive))
    chosen = {e.found.column for e in found if {e.found.inside, e.found.outside} == {0.0, 1.0}}
    found = sorted((e for e in found if e.found.column not in chosen), key=lambda e: -abs(e.found.smd))
    number = np.unique(np.asarray(drive)[~inside], return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    rows = np.flatnonzero(~inside)[order]
    start = np.flatnonzero(np.diff(number[order], prepend=-1))
    values = tuple(e.centred(rows) for e in found)
    return Weighing(tuple(e.found for e in found), values, tuple(found), order, start)


@dataclass(frozen=True, eq=False)
class Weighing:
    """Differences of two cohorts before weighting, and all that those after it need.

    Attributes:
        before: without weights, the largest first.
        order: (n_P,) P's rows sorted by drive; start: (D,) first of each drive among them.
    """

    before: tuple[Difference, ...]
    _values: tuple[tuple[np.ndarray, np.ndarray | None], ...]
    _entries: tuple
    order: np.ndarray
    start: np.ndarray

    def differences(self, weights=None) -> tuple[Difference, ...]:
        """`before`, each with its `after` under weights (n_P,) of P."""
        if weights is None:
            return self.before
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != self.order.shape:
            raise CohortError(f"{len(weights):,} weights were given for {len(self.order):,} scenarios of P; one each "
                              "is needed.")
        w = weights[self.order]
        all_rows = np.add.reduceat(w, self.start)
        return tuple(replace(e.found, after=self._after(e, *v, w, all_rows))
                     for e, v in zip(self._entries, self._values, strict=True))

    def _after(self, entry: Entry, x, has, w, all_rows) -> Difference:
        """Hajek's ratio of weighted sums on P's side, over the standard deviation before weighting."""
        found, moments = entry.found, entry.moments
        if has is None:
            sums, wx = all_rows, np.add.reduceat(w * x, self.start)
        else:
            sums, wx = np.add.reduceat(w * has, self.start), np.add.reduceat(w * x, self.start)
        total = max(float(sums.sum()), 1e-300)
        mean = float(wx.sum()) / total
        influence = np.concatenate([(wx - mean * sums) / total, moments.of_mean[:, 1]]) / moments.sd
        smd, lo, hi = interval((moments.mean[1] - mean) / moments.sd, influence, moments.n)
        outside = mean + entry.shift
        ratio = share_ratio(found.kind, found.inside, outside)
        return replace(found, outside=outside, smd=smd, lo=lo, hi=hi, ratio=ratio)


def telling(differences: Sequence[Difference], most: int = 12) -> tuple[Difference, ...]:
    """The largest differences, without those that say the same again: two levels a column, and no presence that is
    one of the levels."""
    kept: list[Difference] = []
    for d in sorted(differences, key=lambda d: (not d.clear, -abs(d.smd))):
        told = sum(k.column == d.column and k.kind == d.kind for k in kept)
        same = any(k.kind != NUMBER and abs(k.inside - d.inside) < SAME and abs(k.outside - d.outside) < SAME
                   for k in kept) and d.kind != NUMBER
        if told < 2 and not same:
            kept.append(d)
    return tuple(kept[:most])


def as_table(differences: tuple[Difference, ...]) -> pd.DataFrame:
    """One row a difference, for a download."""
    names = [name for name in Difference.__dataclass_fields__ if name != "after"]
    rows = [{name: getattr(d, name) for name in names} | ({} if d.after is None else {
        "smd_after": d.after.smd, "lo_after": d.after.lo, "hi_after": d.after.hi}) for d in differences]
    return pd.DataFrame(rows, columns=None if rows else names)
