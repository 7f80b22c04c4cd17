"""A comparison on a simulated corpus against its truth: exact weights, the best classifier, the true event rates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd

from avshift_core.errors import AVShiftError
from avshift_core.laboratory.fleet import precision_recall
from avshift_core.latent.benchmark import SHIFTED
from avshift_core.latent.cohort import Cohort
from avshift_core.progress import Progress, within
from avshift_core.quality.contexts import find_truth, whole_truth_steps
from avshift_core.scenario.simulate.truth import Truth
from avshift_core.scenario.store.thresholds import parse_metric
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.drives import clustered_variance
from avshift_core.shift.gate import band
from avshift_core.shift.local import TARGET_HEAVY

Cell = tuple[str, str]
Z = 1.96  # 95 % of a normal distribution lie within
MAKE_ONE = "Make a simulated fleet with 'python -m avshift_core demo --out DIR', or choose the demo, to see it."


@dataclass(frozen=True)
class Untold:
    """The truth of this comparison cannot be told; `reason` says why and what to do."""

    reason: str


@dataclass(frozen=True)
class RateTruth:
    """One metric of P's AV version.

    Attributes:
        mu_P, mu_Q: true mean in the traffic of P and of Q; se_Q: standard error of mu_Q, by drive: the truth, too, is
            counted, over the whole fleet with exact weights.
        exact: P's scenarios with exact weights, the best any weighting can do.
    """

    mu_P: float
    mu_Q: float
    se_Q: float
    exact: float

    @property
    def lo(self) -> float:
        """Lower end of the 95 % interval of mu_Q, not below 0."""
        return max(0.0, self.mu_Q - Z * self.se_Q)

    @property
    def hi(self) -> float:
        return self.mu_Q + Z * self.se_Q


@dataclass(frozen=True)
class RegionTruth:
    """One detected region.

    Attributes:
        w_k, w_true: measured and true mass under Q over that under P.
        share_off: share of its scenarios whose exact ratio is off 1 by more than SHIFTED.
        right_way: whether the true ratio lies on the side that the region claims.
    """

    k: int
    direction: str
    n: int
    w_k: float
    w_true: float
    share_off: float
    right_way: bool


@dataclass(frozen=True, eq=False)
class DemoTruth:
    """What is true of a comparison.

    Attributes:
        source, target: (area, period) of both cohorts.
        gamma_star, gamma_se: advantage of the best classifier of contexts, and its standard error, by drive.
        expected: the verdict that gamma_star would get.
        w, w_Q: (n,) exact ratio dQ/dP at the scenarios of P and of Q.
        precision, recall: of the scenarios in regions against those with a ratio off 1.
        version: AV version of P; rates: metric -> truth; rates_reason: why there are none, "" where there are.
        other_version: AV versions of Q that differ from P's: Q's own rate is then that of another car.
    """

    source: tuple[Cell, ...]
    target: tuple[Cell, ...]
    gamma_star: float
    gamma_se: float
    expected: str
    w: np.ndarray
    w_Q: np.ndarray
    regions: tuple[RegionTruth, ...]
    precision: float
    recall: float
    version: str
    rates: dict[str, RateTruth]
    rates_reason: str
    other_version: tuple[str, ...]

    def table(self, analysis: Analysis, B: float) -> pd.DataFrame:
        """One row a metric and estimator: the estimate, its interval, the truth and the distance from it."""
        rows = []
        for metric, truth in self.rates.items():
            for name, e in analysis.calibrate(B, metric).estimates().items():
                if e is not None:
                    rows.append({"metric": metric, "estimator": name, "mu": e.mu, "lo": e.lo, "hi": e.hi,
                                 "truth": truth.mu_Q, "truth_se": truth.se_Q, "error": e.mu - truth.mu_Q})
        return pd.DataFrame(rows, columns=["metric", "estimator", "mu", "lo", "hi", "truth", "truth_se", "error"])

    def region_table(self) -> pd.DataFrame:
        return pd.DataFrame([asdict(r) for r in self.regions], columns=[f.name for f in fields(RegionTruth)])

    def weight_error(self, w) -> float:
        """Root mean square difference of weights with mean 1 to the exact ones."""
        w = np.asarray(w, dtype=float)
        return float(np.sqrt(((w / w.mean() - self.w) ** 2).mean()))


def truth_steps(analysis: Analysis, url: str) -> Generator[Progress, None, DemoTruth | Untold]:
    """What the truth beside corpus `url` says about an analysis of two of its cohorts."""
    yield Progress("Reading the truth beside the corpus", 0.05)
    try:
        truth = find_truth(url)
    except AVShiftError as error:
        return Untold(str(error))
    if truth is None:
        return Untold(f"No truth lies beside {url}: it is no simulated fleet, and of real traffic nobody knows it. "
                      f"{MAKE_ONE}")
    sides = []
    for label, cohort in (("P", analysis.P), ("Q", analysis.Q)):
        cells = cells_of(cohort)
        reason = why_not(truth, label, cohort, cells)
        if reason:
            return Untold(reason)
        sides.append(cells)
    truth = yield from within(whole_truth_steps(url), 0.1, 0.9, "Simulating ")
    yield Progress("Exact weights of every scenario", 0.9)
    result = _compare(analysis, truth, *sides)
    yield Progress("Done", 1.0)
    return result


def cells_of(cohort: Cohort) -> tuple[Cell, ...]:
    """(area, period) of a cohort's scenarios, sorted."""
    if not {"area", "period"} <= set(cohort.obs.columns):
        return ()
    return tuple(sorted(set(zip(cohort.obs["area"].astype(str), cohort.obs["period"].astype(str), strict=True))))


def why_not(truth: Truth, label: str, cohort: Cohort, cells: Sequence[Cell]) -> str:
    """Why exact weights of a cohort are unknown; "" where they are known."""
    unknown = [cell for cell in cells if cell not in truth.cells]
    if unknown or not cells:
        return f"The truth beside the corpus does not know the scenarios of {label}, '{cohort.name}'. {MAKE_ONE}"
    own, whole = set(cohort.obs["scenario_id"]), set(truth.table["scenario_id"].to_numpy()[truth.rows(cells)])
    if own == whole:
        return ""
    if own - whole:
        return f"The truth beside the corpus does not know scenario '{min(own - whole)}' of {label}. {MAKE_ONE}"
    places = ", ".join(f"{area} {period}" for area, period in cells[:3]) + (" and others" if len(cells) > 3 else "")
    return (f"{label} holds {len(own):,} of the {len(whole):,} scenarios of {places}. Exact weights are known for "
            "whole weeks and areas, not for a part chosen by category, route, hour or otherwise: choose P and Q by "
            "period and area alone.")


def _compare(a: Analysis, truth: Truth, source: Sequence[Cell], target: Sequence[Cell]) -> DemoTruth:
    w = _in_order(truth, source, truth.weights(source, target), a.P)
    w_Q = _in_order(truth, target, 1 / truth.weights(target, source), a.Q)
    distance = np.abs(w - 1)
    gamma_star = truth.gamma_star(source, target)
    off = np.concatenate([distance, np.abs(w_Q - 1)]) > SHIFTED
    found = np.zeros(len(off), dtype=bool)
    if a.local is not None:
        found = np.concatenate([a.local.region_P, a.local.region_Q]) >= 0
    versions = [sorted(set(cohort.obs["av_version"].astype(str))) for cohort in (a.P, a.Q)]
    rates, reason = _rates(a, truth, w, source, target, versions[0])
    return DemoTruth(
        tuple(source), tuple(target), gamma_star, weighted_error(np.ones(a.P.n), distance, a.P.drive) / 4,
        band(gamma_star, a.config), w, w_Q, _regions(a, w, off), **precision_recall(found, off),
        version="+".join(versions[0]), rates=rates, rates_reason=reason,
        other_version=tuple(v for v in versions[1] if v not in versions[0]),
    )


def _in_order(truth: Truth, cells, values, cohort: Cohort) -> np.ndarray:
    """(n,) values at the truth's rows of these cells, in the order of the cohort."""
    names = truth.table["scenario_id"].to_numpy()[truth.rows(cells)]
    place = {name: i for i, name in enumerate(names)}
    ordered = values[[place[name] for name in cohort.obs["scenario_id"]]]
    ordered.setflags(write=False)
    return ordered


def _regions(a: Analysis, w, off) -> tuple[RegionTruth, ...]:
    found = []
    for i, region in enumerate(a.local.regions if a.local is not None else ()):
        of_P, of_Q = a.local.region_P == i, a.local.region_Q == i
        inside = np.concatenate([of_P, of_Q])
        w_true = float(w[of_P].mean())  # E_P[w* | region] = Q(region) / P(region)
        found.append(RegionTruth(
            region.k, region.direction, int(inside.sum()), region.w_k, w_true, float(off[inside].mean()),
            (w_true > 1) == (region.direction == TARGET_HEAVY)))
    return tuple(found)


def _rates(a: Analysis, truth: Truth, w, source, target, versions) -> tuple[dict[str, RateTruth], str]:
    """True rates of every metric that the fleet was simulated with, in the car of P."""
    if len(versions) > 1:
        return {}, (f"P mixes AV versions {', '.join(versions)}, so there is no single car whose true rate could be "
                    "told. Choose one version.")
    suffix = f"@{versions[0]}"
    columns = [name.removesuffix(suffix) for name in truth.table.columns if name.endswith(suffix)]
    of_P, of_Q = (truth.weights(truth.cells, cells) for cells in (source, target))  # all scenarios of the fleet
    drive = np.unique(truth.table["drive_id"].to_numpy(dtype=str), return_inverse=True)[1]
    rates = {}
    for metric in a.metrics:
        try:
            choice = parse_metric(metric, columns, ())
        except AVShiftError:
            continue  # a metric that the simulation did not keep under every version
        value = choice.values(truth.table[f"{choice.column}{suffix}"].to_numpy(dtype=float))
        ell = a.P.ell[metric]
        rates[metric] = RateTruth(weighted_mean(of_P, value), weighted_mean(of_Q, value),
                                  weighted_error(of_Q, value, drive), weighted_mean(w, ell))
    return rates, "" if rates else "None of the metrics of this comparison is known in the truth."


def weighted_mean(w, value) -> float:
    return float(w @ value / w.sum())


def weighted_error(w, value, drive) -> float:
    """Drive-level standard error of the weighted mean."""
    influence = w / w.mean() * (value - weighted_mean(w, value))
    return float(np.sqrt(clustered_variance(influence, drive, int(drive.max()) + 1)))
