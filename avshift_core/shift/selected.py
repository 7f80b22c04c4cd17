"""Scenarios that somebody has selected: how many of P and of Q, which ones, and how to find them again."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from avshift_core.errors import AVShiftError
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.regions import design_in, mass, shares_of
from avshift_core.shift.representatives import representatives
from avshift_core.words import readable

ID = "scenario_id"
FIRST_COLUMNS = (ID, "category", "period", "area", "av_version", "ego_speed_mps", "actor_type", "route", "day", "hour")
SHOWN_COLUMNS = ("cohort", ID, "category", "period", "area", "av_version", "ego_speed_mps", "h", "region", "event",
                 "drive_id")
EXAMPLES = 3  # scenes a cohort
LONGEST_NAME = 60


@dataclass(frozen=True, eq=False)
class Selected:
    """A set of pooled rows.

    Attributes:
        mask: (n,) bool; rows: (m,) pooled rows, P and Q evenly mixed.
        p, q: share of P and of Q that is selected, with drive-level intervals; ratio: q / p, None as in `ratio_of`.
        rate_P, rate_Q: share of the selected scenarios of each cohort with the event, None where there is none.
        drives: drives with a selected scenario.
    """

    mask: np.ndarray
    rows: np.ndarray
    n_P: int
    n_Q: int
    drives: int
    p: Estimate
    q: Estimate
    ratio: Estimate | None
    rate_P: Estimate | None
    rate_Q: Estimate | None

    @property
    def n(self) -> int:
        return self.n_P + self.n_Q


def select(analysis: Analysis, mask, metric: str | None = None) -> Selected:
    """Count what is in `mask` (n,).

    The intervals count drives; that the place was chosen after looking at the map they cannot know.
    """
    sample, level = analysis.sample, analysis.config.level
    mask = np.asarray(mask, dtype=bool)
    of = [mask & (sample.y == c) for c in (0, 1)]
    shares = shares_of(analysis, mask)
    rates = [None, None]
    if metric is not None:
        event = np.concatenate([analysis.P.ell[metric], analysis.Q.ell[metric]]) > 0
        rates = [mass(event, rows, sample.drive, level, design_in(event, sample, c)) if rows.any() else None
                 for c, rows in enumerate(of)]
    return Selected(mask, _mixed(of), int(of[0].sum()), int(of[1].sum()), len(np.unique(sample.drive[mask])), shares.p,
                    shares.q, shares.ratio, *rates)


def _mixed(of) -> np.ndarray:
    """Rows of both cohorts, each in its order, so that any first part of them has both."""
    rows = [np.flatnonzero(part) for part in of]
    place = np.concatenate([(np.arange(len(r)) + 0.5) / max(len(r), 1) for r in rows])
    return np.concatenate(rows)[np.argsort(place, kind="stable")]


def selected_table(analysis: Analysis, rows, metric: str | None = None) -> pd.DataFrame:
    """Some pooled rows with cohort, ids, score, region, event and every attribute."""
    rows = np.asarray(rows)
    n_P, test = analysis.P.n, analysis.global_test
    in_P = rows < n_P
    order = np.argsort(np.concatenate([np.flatnonzero(in_P), np.flatnonzero(~in_P)]), kind="stable")
    parts = [(analysis.P, rows[in_P], test.h_P), (analysis.Q, rows[~in_P] - n_P, test.h_Q)]
    obs = pd.concat([cohort.obs.iloc[own] for cohort, own, _ in parts], ignore_index=True).iloc[order]
    lead = {"cohort": np.where(in_P, "P", "Q"), "h": _joined([h[own] for _, own, h in parts], order)}
    if analysis.P.has_drives:
        lead["drive_id"] = _joined([c.drive_ids[c.drive[own]] for c, own, _ in parts], order)
    if analysis.local is not None:
        number = _joined([r[own] for r, (_, own, _) in zip(
            (analysis.local.region_P, analysis.local.region_Q), parts, strict=True)], order)
        lead["region"] = np.array([*(f"R{r.k}" for r in analysis.local.regions), ""], dtype=object)[number]
    if metric is not None:
        lead["event"] = _joined([c.ell[metric][own] for c, own, _ in parts], order)
    obs = obs.reset_index(drop=True).drop(columns=[name for name in lead if name in obs])
    first = [name for name in FIRST_COLUMNS if name in obs]
    table = pd.DataFrame(lead)
    return pd.concat([table[["cohort"]], obs[first], table.drop(columns="cohort"), obs.drop(columns=first)], axis=1)


def map_table(analysis: Analysis, axes: tuple[str, str], xy: np.ndarray, metric: str | None = None) -> pd.DataFrame:
    """All pooled rows with their place on a map, xy (n, 2), under the names of its axes."""
    table = selected_table(analysis, np.arange(analysis.sample.n), metric)
    return pd.concat([table[["cohort"]], pd.DataFrame(xy, columns=list(axes)), table.drop(columns="cohort")], axis=1)


def shown_rows(analysis: Analysis, rows, metric: str | None = None) -> pd.DataFrame:
    """The columns of `selected_table` that fit a screen, with words for names."""
    table = selected_table(analysis, rows, metric)
    table = table[[name for name in SHOWN_COLUMNS if name in table]]
    return table.assign(**{name: table[name].map(readable) for name in ("category", "area") if name in table})


def _joined(parts, order) -> np.ndarray:
    return np.concatenate(parts)[order]


def example_ids(analysis: Analysis, selected: Selected, most: int = EXAMPLES) -> dict[str, tuple[str, ...]]:
    """Ids of a few scenarios of each cohort that stand for a selection."""
    found = {}
    for name, cohort, start in (("P", analysis.P, 0), ("Q", analysis.Q, analysis.P.n)):
        rows = np.flatnonzero(selected.mask[start : start + cohort.n]) + start
        chosen = representatives(analysis.space.X, rows, analysis.sample.drive, most)
        found[name] = tuple(str(cohort.obs[ID].iloc[row - start]) for row in chosen) if ID in cohort.obs else ()
    return found


def region_code(analysis: Analysis) -> tuple[np.ndarray, tuple[str, ...]]:
    """(n,) region of each pooled row as index into the titles R1..RK, V1.. (places without support), -1 for none."""
    local = analysis.local
    if local is None:
        return np.full(analysis.sample.n, -1), ()
    code = np.concatenate([local.region_P, local.region_Q])
    for i, bare in enumerate(local.overlap_violations):
        code[np.isin(analysis.space.cell, bare.cells)] = len(local.regions) + i
    return code, (*(f"R{r.k}" for r in local.regions), *(f"V{r.k}" for r in local.overlap_violations))


def halves(analysis: Analysis) -> dict[str, np.ndarray]:
    """Pooled rows of the drives that chose the regions, and of those that confirmed and measured them."""
    measures = np.concatenate([analysis.local.measure_P, analysis.local.measure_Q])
    return {"choose": np.flatnonzero(~measures), "confirm": np.flatnonzero(measures)}


def scenario_of_row(analysis: Analysis, row: int) -> str | None:
    """Id of a pooled row."""
    cohort, own = (analysis.P, row) if row < analysis.P.n else (analysis.Q, row - analysis.P.n)
    return str(cohort.obs[ID].iloc[own]) if ID in cohort.obs and own < cohort.n else None


def row_of_scenario(analysis: Analysis, scenario_id: str) -> int | None:
    """Pooled row of an id."""
    for cohort, start in ((analysis.P, 0), (analysis.Q, analysis.P.n)):
        if ID in cohort.obs:
            found = np.flatnonzero((cohort.obs[ID] == scenario_id).to_numpy())
            if len(found):
                return int(found[0]) + start
    return None


# To keep -----------------------------------------------------------------------------------------------------------


def to_keep(comparison, selected: Selected, lasso: str, title: str = "") -> dict[str, Any]:
    """A selection as JSON: the ids of its scenarios, where it was drawn, and in which run.

    Args:
        lasso: the drawn line as text, "" where there is none; title: what was selected, in words.
    """
    ids = selected_ids(comparison.analysis, selected.mask)
    if not len(ids):
        raise AVShiftError("These scenarios have no ids, so they cannot be found again. Import the table with a column "
                           f"'{ID}'.")
    packed = base64.b64encode(zlib.compress("\n".join(ids).encode())).decode()
    return {"run": comparison.run, "corpus": comparison.corpus_url, "source": comparison.source,
            "target": comparison.target, "lasso": lasso, "title": title, "n_P": selected.n_P, "n_Q": selected.n_Q,
            "kept": datetime.now(UTC).isoformat(timespec="seconds"), "ids": packed}


def selected_ids(analysis: Analysis, mask) -> list[str]:
    found = []
    for cohort, start in ((analysis.P, 0), (analysis.Q, analysis.P.n)):
        if ID in cohort.obs:
            found += cohort.obs[ID][mask[start : start + cohort.n]].astype(str).tolist()
    return found


def kept_mask(analysis: Analysis, entry: Mapping[str, Any]) -> np.ndarray:
    """(n,) pooled rows of a kept selection that are in this comparison."""
    try:
        ids = set(zlib.decompress(base64.b64decode(entry["ids"], validate=True)).decode().split("\n"))
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error):
        raise AVShiftError("The kept selection cannot be read. Remove it and select again.") from None
    return np.concatenate([cohort.obs[ID].astype(str).isin(ids).to_numpy() if ID in cohort.obs
                           else np.zeros(cohort.n, dtype=bool) for cohort in (analysis.P, analysis.Q)])


def name_to_keep(name: str, taken) -> str:
    """A name that can stand in a list and in a link, refused when it cannot."""
    name = " ".join(name.split())
    if not name:
        raise AVShiftError("Give the selection a name.")
    if len(name) > LONGEST_NAME:
        raise AVShiftError(f"The name has {len(name)} letters; at most {LONGEST_NAME} fit into a list. Shorten it.")
    if name in taken:
        raise AVShiftError(f"There is a selection called '{name}' already. Choose another name.")
    return name
