"""Where one scenario stands in a comparison: cohort, region, posterior and weight; and its neighbours as a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError
from avshift_core.latent.inverted import Found
from avshift_core.latent.retrieve import SCENARIO, Anchor, Neighbours
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.representatives import representatives
from avshift_core.shift.weights import NO_CLIP

TOLD = ("category", "period", "area", "av_version", "route", "day", "hour")  # of each neighbour, where it is known


@dataclass(frozen=True)
class Standing:
    """
    Attributes:
        cohort: "P", "Q" or "" for neither; where cohorts are samples, also for what was not drawn.
        region: number k of its region R_k, 0 outside of all; None when no regions were looked for.
        h: held-out posterior of belonging to Q, None for a scenario of neither cohort.
        w: weight at the clip, the headline's (cells carry their mass under Q); None for all but those of P.
        clipped: the clip has cut it.
        bare: it lies in an overlap violation: Q has scenarios there and P next to none.
    """

    cohort: str
    region: int | None
    h: float | None
    w: float | None
    clipped: bool
    bare: bool


def standing(analysis: Analysis, anchor: Anchor, B: float) -> Standing:
    """Of a scenario at clip B."""
    local, test, row = analysis.local, analysis.global_test, anchor.row
    region, bare = None, False
    if local is not None:
        cell = int(analysis.space.cell[row]) if row >= 0 else int(analysis.space.cells.assign(anchor.x[None])[0])
        region = 1 + int(local.region_of_cell[cell]) if cell >= 0 else 0
        bare = any(cell in place.cells for place in local.overlap_violations)
    h = w = None
    clipped = False
    if anchor.cohort == "P":
        w, raw = (float(analysis.calibrator.cells.weights(clip)[row]) for clip in (B, NO_CLIP))
        h, clipped = float(test.h_P[row]), w < raw * (1 - 1e-9)
    elif anchor.cohort == "Q":
        h = float(test.h_Q[row - analysis.P.n])
    return Standing(anchor.cohort, region, h, w, clipped, bare)


def neighbour_table(analysis: Analysis, found: Neighbours, metric: str = "") -> pd.DataFrame:
    """Neighbours with what is known of each.

    Columns: rank, scenario_id, cohort, distance, times_usual, far, event (0 or 1 of the metric, where one is given),
    drive_id, and those of TOLD that both cohorts have.
    """
    table = found.table()
    sides = [(found.cohort == "P", analysis.P, 0), (found.cohort == "Q", analysis.Q, analysis.P.n)]
    if metric:
        table["event"] = _filled(sides, found.row, lambda cohort: cohort.ell[metric], np.nan)
    if analysis.P.has_drives:
        table["drive_id"] = _filled(sides, found.row, lambda cohort: cohort.drive_ids[cohort.drive], "")
    for name in TOLD:
        if name in analysis.P.obs and name in analysis.Q.obs:
            table[name] = _filled(sides, found.row, lambda cohort, name=name: cohort.obs[name].to_numpy(), "")
    return table


def found_table(analysis: Analysis, found: Found, told: pd.DataFrame) -> pd.DataFrame:
    """The nearest scenarios of a corpus, one row each.

    Args:
        told: what the corpus says of them, with the column scenario_id.

    Columns: rank, scenario_id, cohort (P, Q, or neither, or not drawn), distance, and those of `told`.
    """
    other = "not drawn, or neither" if is_sample(analysis) else "neither"
    sides = {name: set(cohort.obs[SCENARIO]) for name, cohort in (("P", analysis.P), ("Q", analysis.Q))}
    cohort = [next((name for name, ids in sides.items() if i in ids), other) for i in found.scenario_id]
    table = pd.DataFrame({"rank": np.arange(1, len(cohort) + 1), SCENARIO: found.scenario_id, "cohort": cohort,
                          "distance": found.distance})
    return table.merge(told, on=SCENARIO, how="left")


def is_sample(analysis: Analysis) -> bool:
    """Whether P or Q is a sample of its drives: then it does not hold all of its scenarios."""
    return analysis.P.rest is not None or analysis.Q.rest is not None


def random_scenario(analysis: Analysis, seed: int, region: int = 0) -> str:
    """Any scenario of P and Q, or of region R_k."""
    rows = region_rows(analysis, region) if region else np.arange(analysis.sample.n)
    return scenario_ids(analysis, [int(np.random.default_rng(seed).choice(rows))])[0]


def region_rows(analysis: Analysis, k: int) -> np.ndarray:
    """Pooled rows in region R_k."""
    if analysis.local is None or not 1 <= k <= len(analysis.local.regions):
        known = 0 if analysis.local is None else len(analysis.local.regions)
        raise CohortError(f"There is no region R{k} in this comparison; it has {known}. Choose another one, or none.")
    return np.flatnonzero(np.concatenate([analysis.local.region_P, analysis.local.region_Q]) == k - 1)


def region_examples(analysis: Analysis, k: int, each: int = 3) -> dict[str, tuple[str, ...]]:
    """Cohort -> ids of a few scenarios that stand for those of region R_k."""
    rows, X, drive = region_rows(analysis, k), analysis.space.X, analysis.sample.drive
    sides = {"P": rows[rows < analysis.P.n], "Q": rows[rows >= analysis.P.n]}
    return {name: scenario_ids(analysis, representatives(X, own, drive, most=each)) for name, own in sides.items()}


def scenario_ids(analysis: Analysis, rows) -> tuple[str, ...]:
    """Ids of pooled rows; "" where the cohort has none."""
    found = []
    for row in rows:
        cohort, i = (analysis.P, row) if row < analysis.P.n else (analysis.Q, row - analysis.P.n)
        found.append(str(cohort.obs[SCENARIO].iloc[i]) if SCENARIO in cohort.obs else "")
    return tuple(found)


def _filled(sides, row: np.ndarray, values, empty) -> np.ndarray:
    """(k,) values of pooled rows, each from its own cohort."""
    out = np.full(len(row), empty, dtype=object)
    for own, cohort, start in sides:
        if own.any():
            out[own] = np.asarray(values(cohort))[row[own] - start]
    return np.array(out.tolist())
