"""The classifier families of the paper's sensitivity study, each as held-out logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from avshift_core.latent.space import Space
from avshift_core.shift.celltree import cell_logits
from avshift_core.shift.drives import Pool
from avshift_core.shift.mlp import HIDDEN, choose_regime, fit_mlp

LOGIT_LIMIT = 12.0  # keeps h inside (0, 1) for families that answer with exact zeros and ones


def held_out_logits(
    kind: str, space: Space, sample: Pool, weight, splits: Sequence[tuple[np.ndarray, np.ndarray]], *, seed: int,
    **options,
) -> list[np.ndarray]:
    """Train on each split's first part, score its second part.

    `auto` takes, by log-loss on the first split's held-out drives, the better of the network and the tree of cells.

    Args:
        kind: one of config.CLASSIFIERS.
        weight: (n,) weights; equal total weight of both classes makes h the posterior under equal priors.
        splits: (train rows, test rows) of each part.
        options: `hidden` of the mlp, or keyword arguments of the scikit-learn estimator.

    Returns:
        One array of logits for each split's test rows.
    """
    X, y = space.X, sample.y
    if kind in ("auto", "mlp"):
        hidden = options.get("hidden", HIDDEN)
        target = y.astype(np.float32)[:, None]
        regime, loss = choose_regime(X, target, weight, *splits[0], seed=seed, hidden=hidden)
        if kind == "auto" and log_loss(_cell_logits(space, sample, weight, *splits[0]), splits[0][1], y, weight) < loss:
            kind = "cells"
        else:
            rows = [train for train, _ in splits]
            predict = fit_mlp(X, target, weight, rows, seed=seed, regime=regime, hidden=hidden)
            return [predict(e, test)[:, 0] for e, (_, test) in enumerate(splits)]
    if kind == "cells":
        return [_cell_logits(space, sample, weight, *split) for split in splits]
    return [sklearn_logits(kind, X, y, weight, *split, seed, options) for split in splits]


def log_loss(logit, rows, y, weight) -> float:
    """Weighted cross-entropy of held-out logits."""
    return float(np.average(np.logaddexp(0, logit) - y[rows] * logit, weights=weight[rows]))


def _cell_logits(space: Space, sample: Pool, weight, train, test) -> np.ndarray:
    return cell_logits(space.cell, sample.drive, sample.drive_y, space.cells, train, test, weight)


def sklearn_logits(kind, X, y, weight, train, test, seed, options) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    if kind == "knn":  # takes no weights: balance the classes by drawing from the larger one
        rng = np.random.default_rng(seed)
        smaller = min(np.bincount(y[train], minlength=2))
        train = np.concatenate([rng.choice(train[y[train] == c], smaller, replace=False) for c in (0, 1)])
        k = options.get("n_neighbors", max(5, min(200, len(train) // 50)))
        model = KNeighborsClassifier(n_neighbors=min(k, len(train))).fit(X[train], y[train])
    else:
        make = {
            "logistic": lambda: LogisticRegression(max_iter=500, **options),
            "boosting": lambda: HistGradientBoostingClassifier(
                random_state=seed, **{"max_iter": 60, "min_samples_leaf": 100, "early_stopping": False, **options}
            ),
            "forest": lambda: RandomForestClassifier(
                random_state=seed, **{"n_jobs": -1, "n_estimators": 100, "min_samples_leaf": 20, **options}
            ),
            "svm": lambda: LinearSVC(random_state=seed, **{"C": 0.01, **options}),
        }[kind]
        model = make().fit(X[train], y[train], sample_weight=weight[train])
    if kind == "svm":
        return np.clip(model.decision_function(X[test]), -LOGIT_LIMIT, LOGIT_LIMIT)
    h = model.predict_proba(X[test])[:, 1]
    with np.errstate(divide="ignore"):
        return np.clip(np.log(h) - np.log1p(-h), -LOGIT_LIMIT, LOGIT_LIMIT)


def class_weights(y, extra=None) -> np.ndarray:
    """(n,) weights with equal totals for both classes, mean 1; `extra` are weights within the classes."""
    y = np.asarray(y)
    weight = np.ones(len(y)) if extra is None else np.array(extra, dtype=float)
    for label in (0, 1):
        weight[y == label] *= len(y) / (2 * weight[y == label].sum())
    return weight
