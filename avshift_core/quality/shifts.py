"""Does the latent space keep the shifts that are there? The engine's own test on z and on the true contexts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np
import pandas as pd

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cohort import Cohort, check_pair
from avshift_core.latent.space import make_space
from avshift_core.quality.contexts import same_law
from avshift_core.quality.drivewise import Estimate, estimate, ratio_of_sums, resample_drives
from avshift_core.scenario.simulate.truth import Truth
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.shift.c2st import GlobalTest, global_test
from avshift_core.shift.drives import pool
from avshift_core.shift.gate import verdict

KEPT = 0.8  # of the advantage on the contexts, what the latents have to reach
SAME_LAW = 1e-6  # advantage of the best classifier below which two laws are one
SMALLEST = 0.01  # of the contexts' advantage, for a ratio; gamma_small of the paper
AREA_WEEKS = 2  # weeks in which two areas are compared


@dataclass(frozen=True)
class Pair:
    """Two cohorts to compare."""

    name: str
    source: CohortQuery
    target: CohortQuery

    @property
    def cells(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """(area, period) of both, as the truth of a simulated fleet knows them."""
        return tuple(list(product(q.area, q.period)) for q in (self.source, self.target))


@dataclass(frozen=True)
class ShiftKept:
    """One pair.

    Attributes:
        gamma_z, gamma_contexts: advantage of the classifier over chance, with the engine's bounds, each one-sided at
            5 %, so 90 % together; None without truth.
        gamma_star: of the best classifier of contexts there can be; None without truth.
        detectable: smallest advantage on z that would have been called a shift with probability 0.8.
        verdict_z, verdict_contexts: no_shift, localize or global_shift.
        view: which latents.
        drawn_z, drawn_contexts: accuracy less 1/2 in each draw of drives, the data's own first.
    """

    name: str
    view: str
    n_source: int
    n_target: int
    gamma_z: Estimate
    verdict_z: str
    detectable: float = 0.0
    gamma_contexts: Estimate | None = None
    verdict_contexts: str | None = None
    gamma_star: float | None = None
    drawn_z: tuple[float, ...] = field(default=(), repr=False)
    drawn_contexts: tuple[float, ...] = field(default=(), repr=False)

    @property
    def is_same(self) -> bool:
        """Whether nothing is there to be found."""
        return self.gamma_star is not None and self.gamma_star < SAME_LAW

    @property
    def ratio(self) -> float | None:
        """Advantage on z over that on the contexts, where these show any."""
        if self.gamma_contexts is None or self.is_same or self.gamma_contexts.value < SMALLEST:
            return None
        return self.gamma_z.value / self.gamma_contexts.value


def pairs_of(cells: pd.DataFrame) -> list[Pair]:
    """Pairs to compare, each under one AV version: every week of an area with the next, and two areas in a few weeks.

    Args:
        cells: rows with `area`, `period`, `av_version`, in any order.
    """
    cells = cells[["area", "period", "av_version"]].astype(str).drop_duplicates()
    pairs, several = [], cells.groupby(["area", "period"]).size().max() > 1
    named = lambda text, version: f"{text} {version}" if several else text  # noqa: E731
    for (area, version), rows in cells.groupby(["area", "av_version"], sort=True):
        periods = sorted(rows["period"])
        pairs += [
            Pair(named(f"{area} {a} -> {b}", version),
                 *(CohortQuery(period=p, area=area, av_version=version) for p in (a, b)))
            for a, b in pairwise(periods)
        ]
    weeks = [(period, version, sorted(rows["area"])) for (period, version), rows in
             cells.groupby(["period", "av_version"], sort=True) if len(rows) > 1]
    return pairs + [
        Pair(named(f"{period} {areas[0]} -> {areas[1]}", version),
             *(CohortQuery(period=period, area=area, av_version=version) for area in areas[:2]))
        for period, version, areas in weeks[:AREA_WEEKS]
    ]


def version_pair(cells: pd.DataFrame, truth: Truth) -> Pair | None:
    """The last week of an older AV version and the first of a newer one that met the same traffic, all areas."""
    known = cells[["area", "period", "av_version"]].astype(str).drop_duplicates()
    weeks = known.groupby(["period", "av_version"])["area"].agg(lambda areas: tuple(sorted(areas))).reset_index()
    rows = list(weeks.sort_values("period").itertuples(index=False))
    found = [(a, b) for b in rows for a in rows if a.period < b.period and a.av_version != b.av_version
             and a.area == b.area and same_law(truth, a.period, b.period)]
    if not found:
        return None
    a, b = max(found, key=lambda pair: (-rows.index(pair[1]), rows.index(pair[0])))
    return Pair(f"{a.period} {a.av_version} -> {b.period} {b.av_version}",
                *(CohortQuery(period=r.period, area=r.area, av_version=r.av_version) for r in (a, b)))


def c2st(P: Cohort, Q: Cohort, config: AnalysisConfig) -> tuple[GlobalTest, str]:
    """Stage I of the analysis alone, and its verdict."""
    check_pair(P, Q)
    test = global_test(make_space(P, Q, config.n_cells, config.seed), pool(P, Q), config, has_drives=P.has_drives)
    return test, verdict(test, config).name


def shift_kept(name: str, z: tuple[Cohort, Cohort], contexts: tuple[Cohort, Cohort] | None, gamma_star: float | None,
               config: AnalysisConfig, view: str = "full") -> ShiftKept:
    """One pair of cohorts on their latents and, where they are known, on their true contexts, row by row the same.

    Args:
        z, contexts: source and target.
    """
    test, decision = c2st(*z, config)
    found = ShiftKept(name, view, z[0].n, z[1].n, _bounds(test), decision, test.detectable_gamma,
                      drawn_z=_drawn(z, test, config.seed))
    if contexts is None:
        return found
    test, decision = c2st(*contexts, config)
    return replace(found, gamma_contexts=_bounds(test), verdict_contexts=decision, gamma_star=gamma_star,
                   drawn_contexts=_drawn(contexts, test, config.seed))


def kept_over_all(shifts: Sequence[ShiftKept], least: float) -> Estimate | None:
    """Summed advantage on z over that on the contexts, over the pairs whose true advantage is `least` or more.

    Pairs are chosen by the truth: choosing those in which the contexts' estimate came out high would favour the
    contexts. Advantages below zero count as they are. The drives are resampled; a cohort that is in two pairs is
    resampled the same way in both.
    """
    real = [s for s in shifts if s.gamma_star is not None and s.gamma_star >= least]
    if not real:
        return None
    top, bottom = (np.sum([getattr(s, f"drawn_{side}") for s in real], axis=0) for side in ("z", "contexts"))
    return estimate(np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0))


def _bounds(test: GlobalTest) -> Estimate:
    return Estimate(test.gamma_hat, test.gamma_lcb, test.gamma_ucb)


def _drawn(cohorts, test: GlobalTest, seed: int) -> tuple[float, ...]:
    """Held-out accuracy less 1/2, of the data and in each draw of drives."""
    both = []
    for cohort, right in zip(cohorts, (test.logit_P < 0, test.logit_Q >= 0), strict=True):
        draws = resample_drives(cohort.n_drives, seed + zlib.crc32(cohort.name.encode()))
        both.append(ratio_of_sums(right.astype(float), 1.0, cohort.drive, draws))
    accuracy = sum(both) / 2
    return tuple((accuracy - accuracy[0] + test.acc - 0.5).tolist())  # around the mean of the repeats
