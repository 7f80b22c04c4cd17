"""Can AV version, area or drive be read from z beyond what the context explains?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.quality.drivewise import (
    MIN_DRIVES,
    Estimate,
    auc_of_draws,
    deal_folds,
    estimate,
    neighbours,
    ratio_of_sums,
    resample_drives,
    standardise,
)
from avshift_core.shift.c2st import CROSS_FIT_INFLATION

FOLDS = 3
K = 10
ROUNDS = 60  # trees of the boosting; more change no AUC by 0.005 at 20,000 scenarios


@dataclass(frozen=True)
class Leak:
    """How well one label can be told on held-out drives (AUC, 0.5 is a coin).

    Attributes:
        label: "av_version" or "area"; classes: its two or more values (the mean over each against the rest).
        context: by the context alone; z: by z alone; both: by both.
        excess: both minus context: what z tells beyond the context.
        exact: whether the context is the true one; otherwise the excess may be context that people cannot read.
    """

    label: str
    classes: tuple[str, ...]
    context: Estimate
    z: Estimate
    both: Estimate
    excess: Estimate
    exact: bool


@dataclass(frozen=True)
class DriveLeak:
    """Neighbours from the scenario's own drive, over what is expected when drives do not matter.

    Of those of the ten nearest neighbours that share the scenario's area, period and route, a share
    (n_drive - 1) / (n_group - 1) would be of its own drive. 1 is no trace of the drive; the context's own ratio tells
    how alike the traffic of one drive is.
    """

    z: Estimate
    context: Estimate
    share: float
    expected: float
    exact: bool


def leak(label: pd.Series, z, context, drive, *, exact: bool, seed: int = 0) -> Leak | None:
    """AUC of a boosted classifier, cross-fitted by drive; None where a class has too few drives.

    Boosting and not a line: z may hold a bent function of the context, which is no leak.
    """
    names, y = np.unique(label.to_numpy(dtype=str), return_inverse=True)
    if len(names) < 2 or min(len(np.unique(drive[y == c])) for c in range(len(names))) < MIN_DRIVES:
        return None
    fold, draws = deal_folds(drive, FOLDS, seed), resample_drives(int(drive.max()) + 1, seed)
    x = {"context": np.asarray(context, dtype=np.float32), "z": standardise(z)}
    x["both"] = np.concatenate([x["context"], x["z"]], axis=1)
    auc = {key: _auc(value, y, fold, drive, draws, seed) for key, value in x.items()}
    parts = {key: _widened(estimate(value)) for key, value in auc.items()}
    excess = _widened(estimate(auc["both"] - auc["context"]))
    return Leak(str(label.name), tuple(map(str, names)), **parts, excess=excess, exact=exact)


def _widened(e: Estimate) -> Estimate:
    """The interval that a cross-fitted classifier deserves where there is nothing to find (shift/c2st.py)."""
    return Estimate(e.value, e.value - CROSS_FIT_INFLATION * (e.value - e.lo),
                    e.value + CROSS_FIT_INFLATION * (e.hi - e.value))


def _auc(x, y, fold, drive, draws, seed: int) -> np.ndarray:
    """(1 + times,) mean AUC of each class against the rest (of one class, where there are two)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    classes = [1] if y.max() == 1 else range(int(y.max()) + 1)
    each = []
    for c in classes:
        score = np.empty(len(y))
        for k in np.unique(fold):
            model = HistGradientBoostingClassifier(max_iter=ROUNDS, max_leaf_nodes=15, min_samples_leaf=40,
                                                   early_stopping=False, random_state=seed)
            score[fold == k] = model.fit(x[fold != k], y[fold != k] == c).decision_function(x[fold == k])
        each.append(auc_of_draws(score, y == c, fold, drive, draws))
    return np.mean(each, axis=0)


def drive_leak(table: pd.DataFrame, z, context, drive, *, exact: bool, seed: int = 0) -> DriveLeak | None:
    """Share of neighbours from the own drive, for z and for the context; None where every group is one drive."""
    group = np.unique(table[["area", "period", "route"]].astype(str).agg("\0".join, axis=1), return_inverse=True)[1]
    of_drive = np.unique(np.stack([group, drive]), axis=1, return_inverse=True)[1].ravel()
    n_group, n_drive = np.bincount(group)[group], np.bincount(of_drive)[of_drive]
    chance = np.where(n_group > 1, (n_drive - 1) / np.maximum(n_group - 1, 1), 0)
    if not (n_drive < n_group).any():
        return None
    draws = resample_drives(int(drive.max()) + 1, seed)
    ratios, shares = [], []
    for x in (standardise(z), standardise(context)):
        found = neighbours(x, K)
        there = (found >= 0) & (group[found] == group[:, None]) & (n_drive < n_group)[:, None]
        own = (there & (drive[found] == drive[:, None])).sum(axis=1)
        ratios.append(estimate(ratio_of_sums(own, there.sum(axis=1) * chance, drive, draws)))
        shares.append((own.sum() / max(there.sum(), 1), (there.sum(axis=1) * chance).sum() / max(there.sum(), 1)))
    return DriveLeak(*ratios, *map(float, shares[0]), exact)
