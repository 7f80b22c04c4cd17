"""The true parts of the difference of two AV versions: every scenario of a simulated fleet, driven by both of them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import AVShiftError
from avshift_core.laboratory.demo import MAKE_ONE, Untold, cells_of, weighted_error, weighted_mean, why_not
from avshift_core.progress import Progress, within
from avshift_core.quality.contexts import find_truth, whole_truth_steps
from avshift_core.scenario.simulate.truth import Truth
from avshift_core.scenario.store.thresholds import parse_metric
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.version_split import REFERENCES, Split
from avshift_core.shift.versions import version_of


@dataclass(frozen=True)
class PartsTruth:
    """True parts of one metric, from the whole fleet replayed by both versions, with exact weights.

    Attributes:
        performance, exposure: reference -> part. se: standard error of the performance parts, by drive: the truth, too,
            is counted.
    """

    performance: Mapping[str, float]
    exposure: Mapping[str, float]
    se: Mapping[str, float]

    @property
    def raw(self) -> float:
        return self.performance["mean"] + self.exposure["mean"]


@dataclass(frozen=True, eq=False)
class VersionTruth:
    """metric -> its true parts, of those metrics that the fleet was replayed with."""

    version_A: str
    version_B: str
    parts: Mapping[str, PartsTruth]

    def table(self, splits: Mapping[str, Split]) -> pd.DataFrame:
        """One row a metric, part and reference: estimate, interval, truth and the distance from it."""
        rows = []
        for metric, truth in self.parts.items():
            for part in ("exposure", "performance"):
                for ref in REFERENCES:
                    e, true = getattr(splits[metric], part)[ref], getattr(truth, part)[ref]
                    rows.append({"metric": metric, "part": part, "reference": ref, "mu": e.mu, "lo": e.lo, "hi": e.hi,
                                 "truth": true, "error": e.mu - true})
        return pd.DataFrame(rows)


def version_truth_steps(analysis: Analysis, url: str) -> Generator[Progress, None, VersionTruth | Untold]:
    """What the truth beside corpus `url` says about the two versions of an analysis.

    The fleet's truth knows each scenario under every version, and the exact weights of every week, so that

        performance_Q = E_Q[ell_B - ell_A],   exposure_Q = E_Q[ell_A] - E_P[ell_A],   and the same in P's traffic

    All laws of the fleet have the same support, so that nothing is not comparable in truth.
    """
    yield Progress("Reading the truth beside the corpus", 0.05)
    try:
        truth = find_truth(url)
        names = version_of(analysis.P, "P"), version_of(analysis.Q, "Q")
    except AVShiftError as error:
        return Untold(str(error))
    if truth is None:
        return Untold(f"No truth lies beside {url}: it is no simulated fleet, and of real traffic nobody knows it. "
                      f"{MAKE_ONE}")
    cells = [cells_of(cohort) for cohort in (analysis.P, analysis.Q)]
    for label, cohort, own in zip("PQ", (analysis.P, analysis.Q), cells, strict=True):
        if reason := why_not(truth, label, cohort, own):
            return Untold(reason)
    truth = yield from within(whole_truth_steps(url), 0.1, 0.9, "Simulating ")
    yield Progress("True parts of every metric", 0.9)
    parts = _parts(analysis, truth, cells, names)
    yield Progress("Done", 1.0)
    return VersionTruth(*names, parts) if parts else Untold("None of the metrics of this comparison is known in the "
                                                            "truth.")


def _parts(analysis: Analysis, truth: Truth, cells, names) -> dict[str, PartsTruth]:
    of = [truth.weights(truth.cells, own) for own in cells]  # all scenarios of the fleet
    drive = np.unique(truth.table["drive_id"].to_numpy(dtype=str), return_inverse=True)[1]
    suffixes = [f"@{name}" for name in names]
    known = [c.removesuffix(suffixes[0]) for c in truth.table.columns if c.endswith(suffixes[0])]
    found = {}
    for metric in analysis.metrics:
        try:
            choice = parse_metric(metric, known, ())
            A, B = (choice.values(truth.table[f"{choice.column}{s}"].to_numpy(dtype=float)) for s in suffixes)
        except (AVShiftError, KeyError):
            continue  # a metric that the simulation did not keep under every version
        rate = [[weighted_mean(w, value) for w in of] for value in (A, B)]  # [version][traffic]
        performance = {"P": rate[1][0] - rate[0][0], "Q": rate[1][1] - rate[0][1]}
        exposure = {"P": rate[1][1] - rate[1][0], "Q": rate[0][1] - rate[0][0]}
        se = {"P": weighted_error(of[0], B - A, drive), "Q": weighted_error(of[1], B - A, drive)}
        both = (of[0] / of[0].mean() + of[1] / of[1].mean()) / 2
        found[metric] = PartsTruth(
            {**performance, "mean": sum(performance.values()) / 2}, {**exposure, "mean": sum(exposure.values()) / 2},
            {**se, "mean": weighted_error(both, B - A, drive)},
        )
    return found
