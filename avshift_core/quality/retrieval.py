"""Do neighbours in latent space look alike? Neighbours from other drives only, against two baselines and chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.quality.drivewise import Estimate, estimate, neighbours, ratio_of_sums, resample_drives
from avshift_core.quality.probes import IDS
from avshift_core.scenario.measure.attributes import ATTRIBUTES

K = 10
ANCHORS, SHOWN = 3, 5  # scenarios that are drawn with their neighbours, and how many of these
NUMBERS = tuple(name for name, a in ATTRIBUTES.items() if a.kind == "number" and name not in IDS)
RANDOM_PAIRS = 10  # a scenario, for the distance of pairs that have nothing to do with each other


@dataclass(frozen=True)
class CategoryPrecision:
    """Of the scenarios of one category: share of their neighbours that have it too."""

    category: str
    n: int
    precision: Estimate
    chance: float


@dataclass(frozen=True)
class Retrieval:
    """Of one space.

    Attributes:
        precision: share of the ten nearest scenarios of other drives that have the same category; all scenarios count
            the same. macro: mean over the categories. chance: of neighbours drawn at random.
        attributes: name -> mean absolute difference to the neighbours over that of random pairs; 0 is the same value,
            1 no better than chance.
    """

    space: str
    k: int
    precision: Estimate
    macro: float
    chance: float
    categories: tuple[CategoryPrecision, ...]
    attributes: Mapping[str, float]


def measure_retrieval(space: str, near, table: pd.DataFrame, drive, *, seed: int = 0) -> Retrieval:
    """
    Args:
        near: (n, k) neighbours from other drives in the space, -1 where there are fewer.
        table: with `category`, and numeric attributes.
    """
    category = table["category"].to_numpy(dtype=str)
    known = category != ""
    there = (near >= 0) & known[near]
    same = ((category[near] == category[:, None]) & there).sum(axis=1)
    draws = resample_drives(int(drive.max()) + 1, seed)
    count, chance = np.where(known, there.sum(axis=1), 0), chance_of_categories(category, drive)
    parts = []
    for name in np.unique(category[known]):
        own = category == name
        precision = estimate(ratio_of_sums(same * own, count * own, drive, draws))
        parts.append(CategoryPrecision(str(name), int(own.sum()), precision, float(chance[own].mean())))
    return Retrieval(
        space, near.shape[1], estimate(ratio_of_sums(same * known, count, drive, draws)),
        float(np.mean([p.precision.value for p in parts])), float(chance[known].mean()), tuple(parts),
        attribute_distances(near, table, drive, seed),
    )


def nearest_ten(x, drive) -> np.ndarray:
    """(n, 10) nearest scenarios of other drives, of points x (n, d) as distances are taken in their space."""
    return neighbours(x, K, drive)


def examples(near, table: pd.DataFrame, seed: int) -> tuple[tuple[str, ...], ...]:
    """Ids of random scenarios of different categories, each followed by its nearest ones."""
    ids, category = table["scenario_id"].to_numpy(dtype=str), table["category"].to_numpy(dtype=str)
    order = np.random.default_rng([seed, 14]).permutation(len(ids))
    order = order[(near[order, :SHOWN] >= 0).all(axis=1)]
    _, first = np.unique(category[order], return_index=True)
    anchors = [*order[np.sort(first)], *np.delete(order, first)][:ANCHORS]
    return tuple((ids[a], *ids[near[a, :SHOWN]]) for a in anchors)


def chance_of_categories(category, drive) -> np.ndarray:
    """(n,) share of the scenarios of other drives that have the scenario's own category.

    >>> chance_of_categories(np.array(["a", "a", "b"]), np.array([0, 1, 2])).tolist()
    [0.5, 0.5, 0.0]
    """
    codes = np.unique(category, return_inverse=True)[1]
    of_pair = np.zeros((int(drive.max()) + 1, codes.max() + 1))
    np.add.at(of_pair, (drive, codes), np.asarray(category) != "")  # scenarios without a category are no neighbours
    total, own = of_pair.sum(axis=0), of_pair[drive, codes]
    others = total.sum() - of_pair.sum(axis=1)[drive]
    return (total[codes] - own) / np.maximum(others, 1)


def attribute_distances(near, table: pd.DataFrame, drive, seed: int, names=NUMBERS) -> dict[str, float]:
    """Mean |a_i - a_j| over neighbours j of i, over that of random pairs of different drives; missing values left out.
    """
    rng = np.random.default_rng([seed, 13])
    n = len(drive)
    row = np.repeat(np.arange(n), near.shape[1])
    pairs = row[near.ravel() >= 0], near.ravel()[near.ravel() >= 0]
    i, j = np.repeat(np.arange(n), RANDOM_PAIRS), rng.integers(0, n, n * RANDOM_PAIRS)
    other = drive[i] != drive[j]
    random = i[other], j[other]
    found = {}
    for name in names:
        if name not in table:
            continue
        a = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        gap = [np.abs(a[p[0]] - a[p[1]]) for p in (pairs, random)]
        gap = [g[np.isfinite(g)] for g in gap]
        if min(map(len, gap)) and gap[1].mean() > 0:
            found[name] = float(gap[0].mean() / gap[1].mean())
    return found
