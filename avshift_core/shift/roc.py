"""ROC curves of held-out scores: of one model, and the mean of many, each compared with itself only."""

from __future__ import annotations

import numpy as np

GRID = np.linspace(0, 1, 201)  # shares of P at which curves of different models are averaged


def roc_points(score_P, score_Q) -> tuple[np.ndarray, np.ndarray]:
    """Shares of P and of Q with a score at or above every threshold, from (0, 0) to (1, 1).

    >>> p, q = roc_points(np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0]))
    >>> p.round(3).tolist(), q.tolist()
    ([0.0, 0.0, 0.667, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    score, is_Q = np.concatenate([score_P, score_Q]), np.repeat([0, 1], [len(score_P), len(score_Q)])
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # of scenarios with the same score: one point
    upto = np.cumsum(is_Q[order])
    of_Q = np.append(0, upto[last]) / len(score_Q)
    of_P = np.append(0, (np.arange(1, len(score) + 1) - upto)[last]) / len(score_P)
    return of_P, of_Q


def mean_roc(logits, fold, y) -> np.ndarray:
    """(201,) share of Q by share of P (GRID), mean over the folds and repeats, by their scenarios.

    Models of different folds have different offsets, so that their scores cannot be ranked together: with a score of
    few levels, a pooled curve is that of the offsets.

    Args:
        logits, fold: (repeats, n) held-out scores, and the fold each scenario was scored in; y: (n,) 0 for P, 1 for Q.
    """
    total, weight = np.zeros(len(GRID)), 0.0
    for score, part in zip(logits, fold, strict=True):
        for k in np.unique(part):
            rows = part == k
            P, Q = score[rows & (y == 0)], score[rows & (y == 1)]
            if len(P) and len(Q):
                total += rows.sum() * np.interp(GRID, *roc_points(P, Q))  # a step belongs to its foot
                weight += rows.sum()
    tpr = total / weight
    tpr.setflags(write=False)
    return tpr
