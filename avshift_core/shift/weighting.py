"""Outcome models and balancing weights for calibration, and how heavy the tail of weights is."""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import Space
from avshift_core.shift.c2st import GlobalTest, sigmoid
from avshift_core.shift.drives import Pool, folds_by_drive
from avshift_core.shift.mlp import choose_regime, fit_mlp


def outcome_models(cohort, label: int, space: Space, sample: Pool, metrics, config: AnalysisConfig):
    """m(z) = E[ell | z] of one cohort, cross-fitted by drive: one network with an output for each metric.

    Args:
        cohort, label: P and 0, or Q and 1: whose outcomes are learnt.

    Returns:
        metric -> (n_P,) and metric -> (n_Q,) predictions; those at the other cohort are the mean of all networks.
    """
    own, other = np.flatnonzero(sample.y == label), np.flatnonzero(sample.y != label)
    target = np.zeros((sample.n, len(metrics)), dtype=np.float32)
    target[own] = np.column_stack([cohort.ell[k] for k in metrics]) / config.M
    fold = folds_by_drive(sample, config.folds, np.random.default_rng([config.seed, 5]))[own]
    parts = [(own[fold != k], own[fold == k]) for k in range(config.folds) if (fold == k).any()]
    weight = np.ones(sample.n)
    regime, _ = choose_regime(space.X, target, weight, *parts[0], seed=config.seed)
    predict = fit_mlp(space.X, target, weight, [train for train, _ in parts], seed=config.seed, regime=regime)
    m = np.zeros((sample.n, len(metrics)))
    for e, (_, test) in enumerate(parts):
        m[test] = sigmoid(predict(e, test))
        m[other] += sigmoid(predict(e, other)) / len(parts)
    m *= config.M
    return tuple({k: m[sample.y == c, j] for j, k in enumerate(metrics)} for c in (0, 1))


def entropy_balance(test: GlobalTest, m_P, m_Q) -> np.ndarray | None:
    """Weights exp(lambda f) with P's mean of f = (log-odds, outcome) equal to Q's; None where they cannot be met."""
    f = np.column_stack([test.logit_P, m_P])
    goal = np.array([test.logit_Q.mean(), m_Q.mean()])
    scale = f.std(axis=0)
    use = scale > 1e-9
    if not use.any():
        return np.ones(len(f))
    f = ((f - goal) / np.where(use, scale, 1.0))[:, use]

    def dual(lam):
        a = f @ lam
        top = a.max()
        w = np.exp(a - top)
        return top + np.log(w.mean()), w @ f / w.sum()

    with np.errstate(all="ignore"):  # where no weights meet the goal the search runs off
        result = optimize.minimize(dual, np.zeros(f.shape[1]), jac=True, method="BFGS", options={"maxiter": 100})
    if not np.isfinite(result.x).all():
        return None
    if np.abs(dual(result.x)[1]).max() > 1e-3:
        return None
    a = f @ result.x
    w = np.exp(a - a.max())
    return w / w.mean()


def pareto_khat(w) -> float:
    """Tail index of the largest weights: a generalised Pareto fit to the largest min(n / 5, 3 sqrt(n)) of them."""
    w = np.sort(np.asarray(w, dtype=float))
    tail = int(min(len(w) / 5, 3 * np.sqrt(len(w))))
    excess = w[-tail:] - w[-tail - 1]
    if len(np.unique(excess)) < tail / 4:
        return 0.0  # weights of a few levels (the tree of cells): a bounded tail
    with np.errstate(all="ignore"):  # the optimiser probes shapes outside the support
        return float(stats.genpareto.fit(excess[excess > 0], floc=0)[0])
