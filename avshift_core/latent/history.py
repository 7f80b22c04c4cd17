"""A corpus as it grew: the scenarios of a reference period, then those of every week after it, in time order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError
from avshift_core.latent.corpora import metric_definitions
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery, as_query

DRIVE, DAY = "drive", "day"
UNITS = {DRIVE: "drive_id", DAY: "day"}  # what is ranked as a whole -> the column that tells it
IDS = ("scenario_id", "drive_id", "day", "period", "av_version")
MOST = 1_000_000  # scenarios that are read at once: 256 MB of 64-D latents


@dataclass(frozen=True, eq=False)
class History:
    """Scenarios in time order: week by week, within a week unit by unit.

    A later week only adds rows at the end: what is computed from the rows of the first weeks stays as it is.

    Attributes:
        periods: weeks in time order, the first `n_reference` of which are the reference.
        z: (n, d) latents, None where nobody asked for them.
        ell: metric -> (n,) values, all finite.
        unit: (n,) unit of each scenario, 0.. in time order; a drive in two weeks is two units.
        unit_ids, unit_week: (units,) the drive (or day) of each unit, and its week as an index into `periods`.
        drives, versions: of each week, how many drives it has and which AV versions.
        cautions: what is no error and yet bears on the result.
    """

    periods: tuple[str, ...]
    n_reference: int
    z: np.ndarray | None
    ell: Mapping[str, np.ndarray]
    unit: np.ndarray
    unit_ids: np.ndarray
    unit_week: np.ndarray
    drives: tuple[int, ...]
    versions: tuple[tuple[str, ...], ...]
    cautions: tuple[str, ...] = ()

    @property
    def n_units(self) -> int:
        return len(self.unit_ids)

    @property
    def week(self) -> np.ndarray:
        """(n,) week of each scenario."""
        return self.unit_week[self.unit]


def make_history(
    periods: Sequence[str], n_reference: int, week, unit_id, *, z=None, ell: Mapping | None = None, drive=None,
    version=None, cautions: Sequence[str] = (),
) -> History:
    """Rows that are in time order already -> History.

    Args:
        week: (n,) index into `periods`, not falling; unit_id: (n,) names, those of a unit one after the other.
        drive, version: (n,) drive ids where they are not the units, and AV versions.

    >>> h = make_history(("W1", "W2"), 1, [0, 0, 1], ["a", "a", "b"])
    >>> h.unit.tolist(), h.unit_ids.tolist(), h.unit_week.tolist()
    ([0, 0, 1], ['a', 'b'], [0, 1])
    """
    week, unit_id = np.asarray(week), np.asarray(unit_id, dtype=str)
    new = np.ones(len(week), dtype=bool)
    new[1:] = (unit_id[1:] != unit_id[:-1]) | (week[1:] != week[:-1])
    names = pd.DataFrame({"week": week, "drive": unit_id if drive is None else np.asarray(drive, dtype=str),
                          "version": UNKNOWN if version is None else np.asarray(version, dtype=str)})
    drives = names.groupby("week")["drive"].nunique()
    versions = names.groupby("week")["version"].unique()
    weeks = range(len(periods))
    return History(
        tuple(periods), n_reference, z, dict(ell or {}), np.cumsum(new) - 1, unit_id[new], week[new],
        tuple(int(drives.get(k, 0)) for k in weeks), tuple(tuple(sorted(versions[k])) for k in weeks), tuple(cautions),
    )


def read_history(
    corpus: Corpus, reference: CohortQuery | str, where: CohortQuery | str = "", *, metrics: Sequence[str] = (),
    latents: str | None = None, unit: str = DRIVE, most: int = MOST,
) -> History:
    """The reference and all weeks after it.

    Args:
        reference: periods, such as `period=2026-W10|2026-W11`.
        where: which scenarios of every week, such as `area=harbor`; with periods, only these weeks.
        metrics: as in Corpus.table.
        latents: one of `corpus.models`, where latents are wanted.
    """
    reference, where = as_query(reference), as_query(where)
    if not reference.period:
        raise CohortError("No reference is chosen. Name the weeks that later ones are held against, such as "
                          "period=2026-W10|2026-W11.")
    if len(reference.chosen()) > 1:
        raise CohortError(f"The reference is '{reference}'; it is chosen by period alone, such as period=2026-W10. "
                          "Whatever else narrows the scenarios, such as area=harbor, belongs to the filter.")
    periods, cautions = _periods(corpus, reference, where)
    query = replace(where, period=periods)
    sizes = corpus.sums(query)
    if int(sizes["n"].iloc[0]) > most:
        raise CohortError(f"These weeks have {int(sizes['n'].iloc[0]):,} scenarios; at most {most:,} are read at once. "
                          "Narrow the filter to an area, or to fewer weeks.")
    metric_definitions(corpus, [query], metrics)
    found = corpus.table(query, columns=IDS, metrics=metrics, latents=latents)
    table, z = found if latents is not None else (found, None)
    _check_drives(table)
    if UNITS[unit] == "day":  # a drive over midnight belongs to the day it began: else it would train and be ranked
        table = table.assign(day=table.groupby(["period", "drive_id"])["day"].transform("min"))
    place = table["period"].map({period: k for k, period in enumerate(periods)})
    first = table.groupby(["period", UNITS[unit]])["day"].transform("min")
    order = np.lexsort((table["scenario_id"], table[UNITS[unit]].astype(str), first, place))
    table, place = table.iloc[order], place.to_numpy()[order]
    _check_metrics(table, metrics, periods)
    shared = table.groupby("drive_id")["period"].nunique()
    if (shared > 1).any():
        cautions.append(f"{int((shared > 1).sum()):,} drives have scenarios in more than one week; each part counts as "
                        "a drive of its own.")
    return make_history(
        periods, len(reference.period), place, table[UNITS[unit]], z=None if z is None else z[order],
        ell={name: table[name].to_numpy() for name in metrics}, drive=table["drive_id"], version=table["av_version"],
        cautions=cautions,
    )


def _periods(corpus: Corpus, reference: CohortQuery, where: CohortQuery) -> tuple[tuple[str, ...], list[str]]:
    """The periods of the reference and those after it, in time order, and what was left out."""
    days = corpus.sums(replace(where, period=()), by=["period", "day"])
    unknown = days[(days["period"] == UNKNOWN) | (days["day"] == UNKNOWN)]
    if len(unknown):
        raise CohortError(f"{int(unknown['n'].sum()):,} of {int(days['n'].sum()):,} scenarios have no date or no "
                          "period, so nobody knows what came first. Import them with their dates, or choose others.")
    first, last = (getattr(days.groupby("period")["day"], f)() for f in ("min", "max"))
    ordered = sorted(first.index, key=lambda period: (first[period], period))
    for before, after in pairwise(ordered):
        if first[after] <= last[before]:
            raise CohortError(f"Periods '{before}' (to {last[before]}) and '{after}' (from {first[after]}) overlap in "
                              "time, so neither came first. Choose one of them with a filter, or import with weeks.")
    missing = [period for period in reference.period if period not in ordered]
    if missing:
        raise CohortError(f"No scenario of {corpus.url} with this filter is of the reference period '{missing[0]}'. It "
                          f"holds {', '.join(ordered)}.")
    end = max(ordered.index(period) for period in reference.period)
    early = [period for period in ordered[:end] if period not in reference.period]
    asked = [period for period in early if period in where.period]
    if asked:
        raise CohortError(f"{', '.join(asked)} is not after the reference, which ends with {ordered[end]}; a monitor "
                          "looks at what came later. Choose an earlier reference, or leave it out.")
    later = [period for period in ordered[end + 1:] if not where.period or period in where.period]
    if not later:
        raise CohortError(f"There is no week after the reference, which ends with {ordered[end]}. Choose an earlier "
                          "reference, or come back when the next week is imported.")
    cautions = [f"{', '.join(early)} came before the end of the reference without being part of it, and is left out."
                ] if early and not where.period else []
    kept = [period for period in ordered[:end + 1] if period in reference.period]
    return (*kept, *later), cautions


def _check_drives(table: pd.DataFrame) -> None:
    unknown = int((table["drive_id"] == UNKNOWN).sum())
    if unknown:
        raise CohortError(f"{unknown:,} of {len(table):,} scenarios have no drive id. Scenarios of one drive are "
                          "alike, so a monitor counts drives: import them with drive ids, or narrow the filter to "
                          "those that have one.")


def _check_metrics(table: pd.DataFrame, metrics: Sequence[str], periods: Sequence[str]) -> None:
    for name in metrics:
        bad = table.loc[~np.isfinite(table[name].to_numpy(dtype=float)), "period"].value_counts()
        if len(bad):
            all_of = table["period"].value_counts()
            listed = ", ".join(f"{bad[p]:,} of {all_of[p]:,} in {p}" for p in periods if p in bad)
            raise CohortError(f"Metric '{name}' is missing in scenarios of some weeks ({listed}). Leave the metric "
                              "out, or import these weeks again with it.")
