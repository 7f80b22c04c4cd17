"""Would another training have told the same story? Neighbours, clusters and regions of models of different seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cohort import Cohort
from avshift_core.quality.drivewise import neighbours
from avshift_core.shift.analyze import Analysis, analyze
from avshift_core.shift.local import SOURCE_HEAVY, TARGET_HEAVY

K = 50
ROWS = 5_000  # of the sample in which neighbours are compared; the overlap is that of this density


@dataclass(frozen=True)
class Between:
    """Over pairs of models, which share models; std is not a number when there is one pair."""

    mean: float
    std: float
    chance: float


@dataclass(frozen=True)
class Stability:
    """Attributes:
        models: ids; pair: the cohorts that regions were looked for in, None where there was none.
        overlap: share of the 50 nearest neighbours (of other drives) that two models have in common.
        rand: adjusted Rand index of the clusters; 0 is chance.
        regions, target_heavy, source_heavy: Jaccard index of the scenarios inside of mismatch regions, of all and of
            one direction; None where no model found one.
        verdicts: of each model on that pair; region_share: share of the scenarios inside of regions, by model.
    """

    models: tuple[str, ...]
    overlap: Between
    rand: Between
    pair: str | None = None
    regions: Between | None = None
    target_heavy: Between | None = None
    source_heavy: Between | None = None
    verdicts: tuple[str, ...] = ()
    region_share: tuple[float, ...] = ()


def overlap(one, other) -> float:
    """Mean share of common neighbours of (n, k) and (n, k).

    >>> overlap(np.array([[1, 2]]), np.array([[2, 3]]))
    0.5
    """
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)
    return float((both[:, 1:] == both[:, :-1]).sum(axis=1).mean() / one.shape[1])


def jaccard(one, other) -> float:
    """Common members over all members of two (n,) sets; NaN when both are empty.

    >>> jaccard(np.array([1, 1, 0, 0], bool), np.array([0, 1, 1, 0], bool))
    0.3333333333333333
    """
    union = int((one | other).sum())
    return float((one & other).sum() / union) if union else np.nan


def chance_jaccard(one, other) -> float:
    """Of two random sets of these sizes: ab / (a + b - ab) with shares a and b."""
    a, b = float(np.mean(one)), float(np.mean(other))
    return a * b / (a + b - a * b) if a + b > 0 else np.nan


def measure_stability(models: Sequence[str], points: Sequence[np.ndarray], clusters: Sequence[np.ndarray], drive, *,
                      pair: str = "", analyses: Sequence[Analysis] = (), seed: int = 0) -> Stability:
    """
    Args:
        points: of each model, (n, d) standardised latents of the same scenarios; clusters: (n,) of each model.
        pair, analyses: one pair of cohorts, by each model, with forced localization; the same scenarios in each.
    """
    from sklearn.metrics import adjusted_rand_score

    rows = thin(drive, ROWS, seed)
    near = [neighbours(x[rows], K, drive[rows]) for x in points]
    k = near[0].shape[1]
    pairs = list(combinations(range(len(models)), 2))
    found = Stability(
        tuple(models), _over([overlap(near[i], near[j]) for i, j in pairs], [k / len(rows)]),
        _over([adjusted_rand_score(clusters[i], clusters[j]) for i, j in pairs], [0.0]),
    )
    if not analyses:
        return found
    inside = {lean: [_inside(a, lean) for a in analyses] for lean in (None, TARGET_HEAVY, SOURCE_HEAVY)}
    spreads = [_over([jaccard(s[i], s[j]) for i, j in pairs], [chance_jaccard(s[i], s[j]) for i, j in pairs])
               for s in inside.values()]
    return Stability(
        found.models, found.overlap, found.rand, pair, *spreads,
        tuple(a.verdict.name for a in analyses), tuple(float(s.mean()) for s in inside[None]),
    )


def regions_of(P: Cohort, Q: Cohort, config: AnalysisConfig) -> Analysis:
    """The pair of cohorts of one model, with regions whatever the verdict."""
    return analyze(P, Q, config, metrics=[], force_localize=True)


def thin(drive, most: int, seed: int) -> np.ndarray:
    """Rows of whole drives, about `most` in all."""
    rng = np.random.default_rng([seed, 18])
    size = np.bincount(drive)
    order = rng.permutation(len(size))
    kept = order[np.cumsum(size[order]) <= max(most, size[order[0]])]
    return np.flatnonzero(np.isin(drive, kept))


def _inside(analysis: Analysis, lean: str | None) -> np.ndarray:
    """(n_P + n_Q,) whether a scenario lies in a region, or in one of this direction."""
    index = np.concatenate([analysis.local.region_P, analysis.local.region_Q])
    chosen = np.array([lean in (None, r.direction) for r in analysis.local.regions] + [False])
    return chosen[index]


def _over(values, chance) -> Between | None:
    values = [v for v in values if np.isfinite(v)]
    if not values:
        return None
    return Between(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan"),
                  float(np.nanmean(chance)))
