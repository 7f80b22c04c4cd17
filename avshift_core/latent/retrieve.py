"""Scenarios like this one: exact nearest neighbours of one anchor in the standardised latent space of a comparison.

    anchor = find_anchor(P, Q, space, "harbor-2026-W10-0042-000")
    usual = typical_distances(P, Q, space)                       # once a comparison
    found = neighbours(P, Q, space, anchor, k=10, among="Q", usual=usual)
    found.table()
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError, ConfigError
from avshift_core.latent.cohort import Cohort
from avshift_core.latent.space import Space

SCENARIO = "scenario_id"
ALL, COHORTS = "all", ("P", "Q")
MAX_K = 50
CHUNK = 4096  # rows: their differences stay in the processor's cache
SPARE = 16  # candidates beyond k, for the order of single precision is not that of double
SAMPLED = 48  # anchors of each cohort behind the usual distances: their median is then good to about 10 %
FAR_SHARE = 0.95  # a neighbour is far when it lies beyond this share of the usual ones of its rank


@dataclass(frozen=True, eq=False)
class Anchor:
    """The scenario whose neighbours are wanted.

    Attributes:
        row: among the pooled rows, P first; -1 for a scenario of neither cohort.
        cohort: "P", "Q" or "".
        drive_id: "" where drives are not known.
        x: (d,) in the space of the comparison.
    """

    scenario_id: str
    row: int
    cohort: str
    drive_id: str
    x: np.ndarray


@dataclass(frozen=True, eq=False)
class Usual:
    """Distances that are usual in a comparison, from a sample of its own scenarios.

    Attributes:
        cohort: (m,) cohort of each sampled scenario.
        distance: (own drive left out?, among P or Q, m, MAX_K) from each of them to its nearest, nearest first; inf
            where there are fewer.
    """

    cohort: np.ndarray
    distance: np.ndarray

    def of(self, cohort: str, among: str, other_drives: bool) -> np.ndarray:
        """(m, MAX_K) for anchors of a cohort ("" for any) and neighbours among ALL, "P" or "Q"."""
        chosen = self.distance[int(other_drives)][:, (self.cohort == cohort) | (cohort == "")]
        if among == ALL:
            return np.sort(np.concatenate(list(chosen), axis=1), axis=1)[:, :MAX_K]
        return chosen[COHORTS.index(among)]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest scenarios, nearest first; (k,) each, read-only.

    Attributes:
        row: among the pooled rows; cohort: "P" or "Q"; distance: in standardised latent units.
        ratio: distance over the median one of the same rank in this comparison; NaN without `usual`.
        far: beyond 95 % of these.
    """

    anchor: Anchor
    among: str
    other_drives: bool
    scenario_id: np.ndarray
    row: np.ndarray
    cohort: np.ndarray
    distance: np.ndarray
    ratio: np.ndarray
    far: np.ndarray

    @property
    def k(self) -> int:
        return len(self.row)

    def table(self) -> pd.DataFrame:
        """One row a neighbour."""
        return pd.DataFrame({
            "rank": np.arange(1, self.k + 1), SCENARIO: self.scenario_id, "cohort": self.cohort,
            "distance": self.distance, "times_usual": self.ratio, "far": self.far,
        })


def find_anchor(P: Cohort, Q: Cohort, space: Space, scenario_id: str) -> Anchor | None:
    """The scenario of P or Q with this id, None if it is in neither."""
    start = 0
    for cohort, name in ((P, "P"), (Q, "Q")):
        if SCENARIO in cohort.obs:
            found = np.flatnonzero(cohort.obs[SCENARIO] == scenario_id)
            if len(found):
                i = int(found[0])
                drive = str(cohort.drive_ids[cohort.drive[i]]) if cohort.has_drives else ""
                return Anchor(scenario_id, start + i, name, drive, space.X[start + i])
        start += cohort.n
    return None


def anchor_of(space: Space, scenario_id: str, z, drive_id: str = "") -> Anchor:
    """A scenario of neither cohort, by its own raw latent z (d0,)."""
    z = np.asarray(z, dtype=np.float64).ravel()
    if len(z) != len(space.mean):
        raise CohortError(f"The latent of '{scenario_id}' has {len(z)} dimensions and those of the comparison "
                          f"{len(space.mean)}; encode both with the same model.")
    return Anchor(scenario_id, -1, "", drive_id, space.standardise(z[None])[0])


def neighbours(
    P: Cohort, Q: Cohort, space: Space, anchor: Anchor, k: int = 10, *, among: str = ALL, other_drives: bool = False,
    usual: Usual | None = None,
) -> Neighbours:
    """The k scenarios nearest to the anchor, exact, never the anchor itself.

    Args:
        among: ALL, "P" or "Q".
        other_drives: leave out the anchor's own drive, whose scenarios are alike for their time and place.
        usual: what `ratio` and `far` compare with.
    """
    _check(k, among)
    X, first, last = space.X, P.n * (among == "Q"), P.n + Q.n * (among != "P")
    left_out = _left_out(P, Q, anchor, other_drives)
    left_out = left_out[(left_out >= first) & (left_out < last)] - first
    square = _squares(X[first:last], anchor.x)
    square[left_out] = np.inf
    k = min(k, len(square) - len(left_out))
    if k <= 0:
        raise CohortError(f"No scenario of {'P or Q' if among == ALL else among} is left to compare "
                          f"'{anchor.scenario_id}' with. Allow the other cohort, or the same drive.")
    spare = min(k + SPARE, len(square) - len(left_out))
    row = first + np.argpartition(square, spare - 1)[:spare]
    distance = np.sqrt(((X[row].astype(np.float64) - anchor.x.astype(np.float64)) ** 2).sum(axis=1))
    order = np.lexsort([row, distance])[:k]
    row, distance = row[order], distance[order]
    ratio, far = _compared(distance, usual.of(anchor.cohort, among, other_drives) if usual is not None else None)
    found = (_ids(P, Q, row), row, np.where(row < P.n, *COHORTS), distance, ratio, far)
    for array in found:
        array.setflags(write=False)
    return Neighbours(anchor, among, other_drives, *found)


def typical_distances(P: Cohort, Q: Cohort, space: Space, seed: int = 0) -> Usual:
    """Distances from SAMPLED scenarios of each cohort to their MAX_K nearest in P and in Q.

    About 5 ms a sampled scenario at 180,000.
    """
    rng, X = np.random.default_rng([seed, 21]), space.X
    rows = np.concatenate([np.sort(rng.permutation(c.n)[:SAMPLED]) + start for c, start in ((P, 0), (Q, P.n))])
    out = np.full((2, 2, len(rows), MAX_K), np.inf)
    sides = (slice(0, P.n), slice(P.n, P.n + Q.n))
    for j, row in enumerate(rows):
        anchor = _anchor_at(P, Q, X, int(row))
        square = _squares(X, X[row])
        square[row] = np.inf
        for other_drives in (0, 1):
            if other_drives:
                square[_own_drive(P, Q, anchor)] = np.inf
            for side, part in enumerate(sides):
                values = square[part]
                some = min(MAX_K, len(values))
                out[other_drives, side, j, :some] = np.sqrt(np.sort(np.partition(values, some - 1)[:some]))
    out.setflags(write=False)
    return Usual(np.where(rows < P.n, *COHORTS), out)


def _check(k: int, among: str) -> None:
    if not 1 <= k <= MAX_K:
        raise ConfigError(f"{k} neighbours cannot be listed; choose 1 to {MAX_K}.")
    if among not in (ALL, *COHORTS):
        raise ConfigError(f"'{among}' is no cohort. Choose {ALL}, P or Q.")


def _squares(X: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) squared distances, by differences: no two large numbers are subtracted."""
    out = np.empty(len(X), np.float32)
    for start in range(0, len(X), CHUNK):
        d = X[start:start + CHUNK] - x
        np.einsum("ij,ij->i", d, d, out=out[start:start + CHUNK])
    return out


def _left_out(P: Cohort, Q: Cohort, anchor: Anchor, other_drives: bool) -> np.ndarray:
    """Pooled rows that are no candidates: the anchor, and with it its drive."""
    itself = np.array([anchor.row] if anchor.row >= 0 else [], dtype=np.int64)
    return np.union1d(itself, _own_drive(P, Q, anchor)) if other_drives else itself


def _own_drive(P: Cohort, Q: Cohort, anchor: Anchor) -> np.ndarray:
    """Pooled rows of the anchor's drive, in both cohorts."""
    rows, start = [], 0
    for cohort in (P, Q):
        if cohort.has_drives and anchor.drive_id:
            at = int(np.searchsorted(cohort.drive_ids, anchor.drive_id))  # drive ids are sorted
            if at < cohort.n_drives and cohort.drive_ids[at] == anchor.drive_id:
                rows.append(start + np.flatnonzero(cohort.drive == at))
        start += cohort.n
    return np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)


def _anchor_at(P: Cohort, Q: Cohort, X: np.ndarray, row: int) -> Anchor:
    cohort, i = (P, row) if row < P.n else (Q, row - P.n)
    drive = str(cohort.drive_ids[cohort.drive[i]]) if cohort.has_drives else ""
    return Anchor("", row, COHORTS[row >= P.n], drive, X[row])


def _ids(P: Cohort, Q: Cohort, row: np.ndarray) -> np.ndarray:
    """Ids of pooled rows; "" in a table without ids."""
    out = np.full(len(row), "", dtype=object)
    for cohort, start in ((P, 0), (Q, P.n)):
        here = (row >= start) & (row < start + cohort.n)
        if SCENARIO in cohort.obs and here.any():
            out[here] = cohort.obs[SCENARIO].iloc[row[here] - start].astype(str)
    return out.astype(str)


def _compared(distance: np.ndarray, usual: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(k,) distance over the median usual one of its rank, and whether it lies beyond FAR_SHARE of these."""
    if usual is None or not len(usual):
        return np.full(len(distance), np.nan), np.zeros(len(distance), bool)
    of_rank = usual[:, :len(distance)]
    median, limit = np.median(of_rank, axis=0), np.quantile(of_rank, FAR_SHARE, axis=0, method="lower")
    told = np.isfinite(median) & (median > 0)
    return np.where(told, distance / np.where(told, median, 1), np.nan), np.isfinite(limit) & (distance > limit)
