"""Linear probes: what a straight line through latent space can read, on drives it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.quality.drivewise import (
    FOLDS,
    MIN_DRIVES,
    Estimate,
    auc_of_draws,
    deal_folds,
    estimate,
    ratio_of_sums,
    resample_drives,
    standardise,
)
from avshift_core.scenario.measure.attributes import ATTRIBUTES

METRICS = ("ttc_min_s", "thw_min_s", "gap_min_m", "drac_mps2", "comfort_score", "hard_brake", "discomfort")
IDS = ("actor", "actor_id")  # numbers of agents in a log, which say nothing about the scenario
TARGETS = (*(name for name in ATTRIBUTES if name not in IDS), "category", *METRICS)
RIDGE = 1.0  # of standardised latents: next to nothing with thousands of rows, enough when dimensions coincide
FEWEST = 50  # scenarios that a probe needs
FEWEST_OF_CLASS = 20


@dataclass(frozen=True)
class Probe:
    """How well one attribute can be read.

    Attributes:
        kind: "r2" (ridge, numbers) or "auc" (logistic, categories and 0/1; mean over classes against the rest).
        score: on drives that the probe was not fitted on.
        trained_on: whether the encoder was taught this attribute.
        n, n_drives: scenarios that have the attribute, and their drives.
        classes: how many, 0 for numbers.
    """

    name: str
    kind: str
    score: Estimate
    trained_on: bool
    n: int
    n_drives: int
    classes: int = 0


def probe_all(z, table: pd.DataFrame, drive, *, taught: Collection[str] = (), targets=TARGETS, seed: int = 0
              ) -> tuple[Probe, ...]:
    """A probe of each target that the table has and that varies.

    Args:
        z: (n, d) latents; table: their attributes and metrics; drive: (n,) as 0..G-1.
        taught: names that the encoder was trained to predict.
    """
    x = standardise(z)
    found = (probe(x, table[name], drive, taught=name in taught, seed=seed) for name in targets if name in table)
    return tuple(p for p in found if p is not None)


def probe(x, values: pd.Series, drive, *, taught: bool = False, seed: int = 0) -> Probe | None:
    """Probe of one attribute; None where too few scenarios have it, or all the same."""
    y, is_class = numbers_of(values)
    rows = np.flatnonzero(np.isfinite(y))
    y, x, drive = y[rows], x[rows], np.unique(drive[rows], return_inverse=True)[1]
    n_drives = len(np.unique(drive))
    if len(rows) < FEWEST or n_drives < MIN_DRIVES or len(np.unique(y)) < 2:
        return None
    fold, draws = deal_folds(drive, FOLDS, seed), resample_drives(n_drives, seed)
    if not is_class:
        scores = r2_of_draws(y, held_out_ridge(x, y, fold), drive, draws)
        return Probe(str(values.name), "r2", estimate(scores), taught, len(rows), n_drives)
    y = np.unique(y, return_inverse=True)[1]
    scores = auc_of_classes(held_out_logistic(x, y, fold), y, fold, drive, draws)
    return Probe(str(values.name), "auc", estimate(scores), taught, len(rows), n_drives, int(y.max()) + 1)


def numbers_of(values: pd.Series) -> tuple[np.ndarray, bool]:
    """(n,) float64, NaN where missing, and whether they are classes: text, or 0 and 1.

    A class of fewer than 20 scenarios counts as missing: its AUC would be a coin's.
    """
    numeric = pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values)
    if numeric:
        y = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        if not set(np.unique(y[np.isfinite(y)])) <= {0.0, 1.0}:
            return np.where(np.isfinite(y), y, np.nan), False
    else:
        text = values.astype(object).where(values.notna(), "").astype(str).to_numpy(dtype=str)
        names, codes = np.unique(text, return_inverse=True)
        y = np.where(names[codes] == "", np.nan, codes.astype(float))
    some = np.isfinite(y)
    count = np.bincount(y[some].astype(int), minlength=1)
    y[some] = np.where(count[y[some].astype(int)] >= FEWEST_OF_CLASS, y[some], np.nan)
    return y, True


def held_out_ridge(x, y, fold) -> np.ndarray:
    """(n,) prediction of each row by a ridge regression that saw neither it nor its drive."""
    out, x = np.empty(len(y)), np.asarray(x, dtype=np.float64)
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        mean, centre = x[train].mean(axis=0), y[train].mean()
        a = x[train] - mean
        slope = np.linalg.solve(a.T @ a + RIDGE * np.eye(x.shape[1]), a.T @ (y[train] - centre))
        out[test] = centre + (x[test] - mean) @ slope
    return out


def held_out_logistic(x, y, fold) -> np.ndarray:
    """(n, classes) probability of each class by a logistic regression that saw neither the row nor its drive."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    out = np.zeros((len(y), int(y.max()) + 1))
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        seen = np.unique(y[train])
        if len(seen) < 2:
            out[np.ix_(test, seen)] = 1.0
            continue
        with warnings.catch_warnings():  # the last digits of the slopes do not move a rank
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=1.0, tol=1e-3, max_iter=200).fit(x[train], y[train])
        out[np.ix_(test, model.classes_)] = model.predict_proba(x[test])
    return out


def r2_of_draws(y, predicted, drive, draws) -> np.ndarray:
    """(1 + times,) share of the variance that the predictions explain, in each draw of drives."""
    error = ratio_of_sums((y - predicted) ** 2, 1.0, drive, draws)
    centred = y - y.mean()
    total = ratio_of_sums(centred**2, 1.0, drive, draws) - ratio_of_sums(centred, 1.0, drive, draws) ** 2
    return 1 - np.divide(error, total, out=np.full(len(draws), np.nan), where=total > 0)


def auc_of_classes(probability, y, fold, drive, draws) -> np.ndarray:
    """(1 + times,) mean over the classes of the AUC of each against the rest."""
    if probability.shape[1] == 2:
        return auc_of_draws(probability[:, 1], y, fold, drive, draws)
    each = [auc_of_draws(probability[:, c], y == c, fold, drive, draws) for c in range(probability.shape[1])]
    return np.mean(each, axis=0)
