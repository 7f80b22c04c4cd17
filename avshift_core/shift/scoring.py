"""Scores of scenarios by a classifier that never saw them, nor chose anything by them."""

from __future__ import annotations

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cells import partition
from avshift_core.shift.celltree import cell_logits
from avshift_core.shift.classifiers import LOGIT_LIMIT, class_weights, log_loss, sklearn_logits
from avshift_core.shift.mlp import choose_regime, fit_mlp

VALID_SHARE = 0.25  # of the training drives, on which the kind of classifier is chosen
N_CELLS = AnalysisConfig().n_cells


def train_and_score(kind: str, z, y, unit, z_test, *, weight=None, seed: int) -> np.ndarray:
    """Log-odds that scenarios are of class 1, by a classifier made from the training scenarios alone.

    Standardisation, cells, and the choice of the network's regime (and, with `auto`, between the network and the tree
    of cells) use training drives only; for the choice a quarter of them is held out.

    Args:
        kind: one of config.CLASSIFIERS.
        z: (n, d) training latents; y: (n,) 0 or 1, both occur; unit: (n,) their drives 0..G-1, each of one class.
        z_test: (m, d) latents to score.
        weight: (n,) weights within the classes.
    """
    y, n = np.asarray(y), len(z)
    weight = class_weights(y, weight)
    X = _standardised(z, weight, z_test)
    train, test = np.arange(n), np.arange(n, len(X))
    if kind in ("auto", "mlp", "cells"):
        own = _own_logits(kind, X, y, np.asarray(unit), weight, train, test, seed)
    else:
        own = sklearn_logits(kind, X, y, weight, train, test, seed, {})
    return np.clip(own, -LOGIT_LIMIT, LOGIT_LIMIT)


def _standardised(z, weight, z_test) -> np.ndarray:
    """(n + m, d) all latents in units of the training scenarios' standard deviation, both classes with equal say."""
    mean = np.average(z, axis=0, weights=weight)
    scale = np.sqrt(np.average((z - mean) ** 2, axis=0, weights=weight))
    kept = scale > 1e-7 * np.maximum(1.0, np.abs(mean))
    return ((np.concatenate([z, z_test])[:, kept] - mean[kept]) / scale[kept]).astype(np.float32)


def _own_logits(kind, X, y, unit, weight, train, test, seed) -> np.ndarray:
    """The network or the tree of cells; test rows get a class and a drive of their own, which nobody reads."""
    y_all = np.concatenate([y, np.zeros(len(test), dtype=y.dtype)])
    weight_all = np.concatenate([weight, np.ones(len(test))])
    learn, valid = _inner_split(y, unit, seed)
    cells_logits = None
    if kind in ("auto", "cells"):
        cells = partition(X[train], y, N_CELLS, seed)
        cell = cells.assign(X)
        drive = np.concatenate([unit, np.full(len(test), unit.max() + 1)])
        drive_y = np.zeros(int(drive.max()) + 1, dtype=int)
        drive_y[unit] = y

        def cells_logits(a, b):
            return cell_logits(cell, drive, drive_y, cells, a, b, weight_all)

    if kind == "cells":
        return cells_logits(train, test)
    target = y_all.astype(np.float32)[:, None]
    regime, loss = choose_regime(X, target, weight_all, learn, valid, seed=seed)
    if kind == "auto" and log_loss(cells_logits(learn, valid), valid, y_all, weight_all) < loss:
        return cells_logits(train, test)
    return fit_mlp(X, target, weight_all, [train], seed=seed, regime=regime)(0, test)[:, 0]


def _inner_split(y, unit, seed) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows to choose by: whole drives, some of each class; all rows where a class has one."""
    rng = np.random.default_rng([seed, 11])
    held = np.zeros(int(unit.max()) + 1, dtype=bool)
    for label in (0, 1):
        drives = np.unique(unit[y == label])
        if len(drives) < 2:
            return np.arange(len(y)), np.arange(len(y))
        held[rng.permutation(drives)[: max(1, round(VALID_SHARE * len(drives)))]] = True
    return np.flatnonzero(~held[unit]), np.flatnonzero(held[unit])
