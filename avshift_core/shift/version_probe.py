"""Leakage probe: can the version be read from the context latent where the traffic is matched?

What it can see: a trace of the version that is finer than the strata by which traffic is matched. After each cohort was
given the same traffic, stratum by stratum, a classifier should be at chance, as it is between halves of one cohort.
What it cannot see: a trace so coarse that it moves scenarios from one stratum to another. That looks like a difference
of traffic, the weights remove it, and with it the version's effect. No test of two cohorts can tell these two apart;
only a view that leaves out what the AV did protects against it, and so every other view is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import Space
from avshift_core.shift.c2st import POWER, Advantage, advantage, cross_fit
from avshift_core.shift.drives import Pool, folds_by_drive
from avshift_core.shift.support import Support
from avshift_core.shift.trust import CAUTION, OK, REFUSE

BLIND = ("auto", "cells")  # classifiers that may be, or are, constant in a cell


@dataclass(frozen=True)
class LeakageProbe:
    """Advantage of a classifier that tells the versions apart in matched traffic.

    Attributes:
        matched: A against B, each stratum given the same mass in both; its bounds are drive-level, one-sided.
        before: the same scenarios without matching: what traffic and version do together.
        control_P, control_Q: the same test between two halves, by drive, of P and of Q, matched in the same way.
        detectable: smallest advantage above the threshold that would have been seen with probability 0.8.
        threshold: advantage from which the split is not to be trusted.
        status: "ok", "caution" or "refuse"; sentence: what it means.
    """

    matched: Advantage
    before: Advantage
    control_P: Advantage
    control_Q: Advantage
    detectable: float
    threshold: float
    status: str
    sentence: str


def probe_leakage(space: Space, sample: Pool, support: Support, config: AnalysisConfig) -> LeakageProbe:
    """Classifier tests in the traffic that both cohorts met, matched stratum by stratum.

    Weights are made fold by fold: weights of the whole sample would make one fold lack what the other has too much of,
    and hide what is left (shift/trust.py measure_balance). The tree of cells cannot see within the strata that were
    matched, which are made of the same cells: the network takes its place.
    """
    if config.classifier in BLIND:
        config = replace(config, classifier="mlp")
    of = np.concatenate([support.of_P, support.of_Q])
    inside = support.common[of]
    before = _test(space, sample, of, inside, config, matched=False)[0]
    matched, se = _test(space, sample, of, inside, config, matched=True)
    controls = [_test(*_halves(space, sample, of, inside, config, label), config, matched=True)[0] for label in (0, 1)]
    threshold = config.gamma_small
    z = stats.norm.ppf(1 - config.alpha) + stats.norm.ppf(POWER)
    worst = max(control.gamma_lcb for control in controls)
    status = OK if matched.gamma_lcb <= threshold / 2 else \
        REFUSE if matched.gamma_lcb > max(threshold, worst) else CAUTION
    detectable = float(threshold + z * se)
    return LeakageProbe(matched, before, *controls, detectable, threshold, status,
                        _sentence(status, matched, before, controls, worst, threshold, detectable))


def _test(space: Space, sample: Pool, of, rows, config: AnalysisConfig, *, matched: bool) -> tuple[Advantage, float]:
    """Advantage on some rows, and its standard error."""
    part, inner, of = _part(space, sample, of, rows)
    fold = folds_by_drive(inner, 2, np.random.default_rng([config.seed, 20]))
    extra = _matching(of, inner.y, fold) if matched else np.ones(inner.n)
    fit = cross_fit(part, inner, config, repeats=1, folds=2, seed=config.seed + 2, extra=extra, fold=fold)
    found, *_ = advantage(fit, inner, config, extra=extra)
    return found, _standard_error(found, inner, config)


def _standard_error(found: Advantage, inner: Pool, config: AnalysisConfig) -> float:
    """Back from the one-sided upper bound acc + t se of `advantage`."""
    t = stats.t.ppf(1 - config.alpha, max(min(np.bincount(inner.drive_y, minlength=2)) - 2, 1))
    return max(0.0, (0.5 + found.gamma_ucb - found.acc) / t)


def _matching(of, y, fold) -> np.ndarray:
    """(n,) weights with the same mass of both classes in every stratum of a fold: the mean of both.

    A stratum that one class does not have in a fold counts for nothing there.
    """
    extra = np.zeros(len(y))
    for k in np.unique(fold):
        counts = np.stack([np.bincount(of[(fold == k) & (y == c)], minlength=of.max() + 1) for c in (0, 1)])
        share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        common = (counts > 0).all(axis=0)
        mass = np.where(common, share.mean(axis=0), 0.0)
        for c in (0, 1):
            rows = (fold == k) & (y == c)
            extra[rows] = (mass / np.maximum(counts[c], 1))[of[rows]] * rows.sum()
    return np.maximum(extra, 1e-6)


def _part(space: Space, sample: Pool, of, rows) -> tuple[Space, Pool, np.ndarray]:
    """Space and labels of some rows, with drives counted anew."""
    rows = np.flatnonzero(rows)
    members, drive = np.unique(sample.drive[rows], return_inverse=True)
    inner = Pool(sample.y[rows], drive, sample.drive_y[members], sample.fold_key[members])
    return replace(space, X=space.X[rows], cell=space.cell[rows]), inner, of[rows]


def _halves(space: Space, sample: Pool, of, inside, config: AnalysisConfig, label: int):
    """One cohort, its drives dealt out to two halves."""
    part, inner, of = _part(space, sample, of, inside & (sample.y == label))
    half = np.zeros(inner.n_drives, dtype=int)
    half[np.random.default_rng([config.seed, 21, label]).permutation(inner.n_drives)[: inner.n_drives // 2]] = 1
    dealt = Pool(half[inner.drive], inner.drive, half, np.arange(inner.n_drives))
    return part, dealt, of, np.ones(inner.n, dtype=bool)


def _sentence(status: str, matched: Advantage, before: Advantage, controls, worst: float, threshold: float,
              detectable: float) -> str:
    fact = (f"In matched traffic a classifier tells the versions apart with an advantage of {matched.gamma_hat:.3f} "
            f"(lower bound {matched.gamma_lcb:.3f}; {before.gamma_hat:.3f} before matching, "
            f"{max(c.gamma_hat for c in controls):.3f} between halves of one cohort)")
    if status == OK:
        return (f"{fact}: no trace of the version was seen, where an advantage of {detectable:.3f} would have been "
                "with probability 0.8. A trace that looks like other traffic cannot be seen.")
    if status == CAUTION:
        why = f"the threshold of {threshold:g} is not reached" if matched.gamma_lcb <= threshold else \
            f"halves of one cohort differ as much (lower bound {worst:.3f})"
        return f"{fact}: something of the version or of the traffic is left, though {why}. Read the parts with care."
    return (f"{fact}, above {threshold:g}: the latents tell the versions apart beyond the traffic that was matched. "
            "They may hold what the AV did, or traffic that the matching misses; the parts are not to be trusted.")
