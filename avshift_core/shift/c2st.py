"""Stage I: the classifier two-sample test, with bounds that know about drives."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.neighbors import cross_drive_neighbors
from avshift_core.latent.space import Space
from avshift_core.progress import Progress, finish
from avshift_core.shift.classifiers import class_weights, held_out_logits
from avshift_core.shift.drives import (
    Pool,
    clustered_variance,
    folds_by_drive,
    intraclass_correlation,
    permutation_p,
    permuted_labels,
    thin_drives,
)
from avshift_core.shift.roc import mean_roc

# In a cross-fit every pair of folds is used twice, once in each role, so under P = Q the sum of the folds' statistics
# varies by a factor sqrt(2) more than permuting the held-out labels shows (exact for a linear score; measured in
# tests/shift/test_c2st.py). The permutation distribution and the drive-level bounds are widened by it; where there is
# a shift that is more than is needed.
CROSS_FIT_INFLATION = np.sqrt(2.0)
NEIGHBOR_ROWS, NEIGHBOR_K = 8_000, 50  # the neighbour test works on a sample of this size
POWER = 0.8  # "the smallest advantage that this n could have seen" is seen with this probability


@dataclass(frozen=True)
class Advantage:
    """Held-out accuracy and advantage with bounds on their uncertainty (one-sided level 1 - alpha each)."""

    acc: float
    gamma_hat: float
    gamma_lcb: float
    gamma_ucb: float


@dataclass(frozen=True, eq=False)
class GlobalTest:
    """Result of Stage I. `gamma_lcb` and `gamma_ucb` are those of `config.bound`.

    Attributes:
        acc, acc_std: mean and standard deviation over the repeats of the balanced held-out accuracy.
        se: standard error of `acc`: scenarios within drives, and training.
        var_test, var_training: the two parts of eq:c2st_variance_decomposition.
        auc: area under the ROC curve of the held-out score, mean of the folds.
        statistic: (auc - 1/2) over its drive-level error; `p_value` is its permutation p-value, `null` what it is when
            the drives are dealt out again.
        p_neighbors: p-value of the share of same-cohort neighbours.
        icc: share of the latent variance between drives; design_effect: variance of `acc` over the binomial one.
        detectable_gamma: smallest advantage that would have been called a shift with probability 0.8.
        aa_source, aa_target: the same test between two random halves, by drive, of P and of Q.
        logit_P, logit_Q: held-out log-odds of Q, mean over the repeats.
        shared_drives: drives with scenarios in both cohorts.
        acc_repeats: (repeats,) accuracy of each; null: (n_perm,).
    """

    acc: float
    acc_std: float
    gamma_hat: float
    gamma_lcb: float
    gamma_ucb: float
    gamma_lcb_wilson: float
    gamma_lcb_hoeffding: float
    se: float
    var_test: float
    var_training: float
    auc: float
    statistic: float
    p_value: float
    p_neighbors: float
    n_te: int
    repeats: int
    icc: float
    design_effect: float
    detectable_gamma: float
    aa_source: Advantage
    aa_target: Advantage
    independence_assumed: bool
    shared_drives: int
    logit_P: np.ndarray
    logit_Q: np.ndarray
    acc_repeats: np.ndarray
    roc_tpr: np.ndarray
    null: np.ndarray

    @property
    def tv_lower(self) -> float:
        """Lower bound of the total variation distance (prop:classifier_tv)."""
        return 2 * self.gamma_lcb

    @property
    def h_P(self) -> np.ndarray:
        return sigmoid(self.logit_P)

    @property
    def h_Q(self) -> np.ndarray:
        return sigmoid(self.logit_Q)


def sigmoid(x) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(x)))


def wilson_lower(acc: float, n: float, alpha: float) -> float:
    """One-sided Wilson lower bound of an accuracy (paper, app:bandpass_thresholds).

    >>> round(wilson_lower(0.5, 100, 0.025), 4)        # Wilson 1927; R: prop.test(50, 100, correct = FALSE)
    0.4038
    """
    z = stats.norm.ppf(1 - alpha)
    centre = acc + z**2 / (2 * n)
    return float((centre - z * np.sqrt(acc * (1 - acc) / n + z**2 / (4 * n**2))) / (1 + z**2 / n))


def hoeffding_lower(acc: float, n: float, alpha: float) -> float:
    """One-sided distribution-free lower bound of an accuracy (paper, eq:c2st_accuracy_bound)."""
    return float(acc - np.sqrt(np.log(1 / alpha) / (2 * n)))


@dataclass(frozen=True, eq=False)
class CrossFit:
    """(repeats, n) held-out logits, and the fold in which each scenario was scored."""

    logits: np.ndarray
    fold: np.ndarray


def cross_fit(
    space: Space, sample: Pool, config: AnalysisConfig, *, repeats, folds, seed, extra=None, fold=None
) -> CrossFit:
    """Score each scenario by models that saw neither it nor its drive.

    Every fold keeps at least two drives of each cohort, or its spread could not be measured.

    Args:
        extra: (n,) weights of the scenarios; fold: (n,) folds to use instead of drawn ones.
    """
    rng = np.random.default_rng(seed)
    by_row = config.split_by == "row"
    folds = max(2, min(folds, int(np.bincount(sample.y if by_row else sample.drive_y).min()) // 2))
    drawn = [folds_by_drive(sample, folds, rng, by_row) for _ in range(repeats)]
    fold = np.stack(drawn) if fold is None else np.asarray(fold)[None]
    repeats, folds = len(fold), int(fold.max()) + 1
    parts = [
        (r, np.flatnonzero(fold[r] != k), np.flatnonzero(fold[r] == k)) for r in range(repeats) for k in range(folds)
    ]
    parts = [part for part in parts if len(part[2])]
    scores = held_out_logits(
        config.classifier, space, sample, class_weights(sample.y, extra), [part[1:] for part in parts], seed=seed
    )
    logits = np.zeros(fold.shape)
    for (repeat, _, test), score in zip(parts, scores, strict=True):
        logits[repeat, test] = score
    return CrossFit(logits, fold)


def advantage(fit: CrossFit, sample: Pool, config: AnalysisConfig, extra=None):
    """Advantage with the bounds of `config.bound`.

    The accuracy is the mean of the folds' balanced accuracies. That of a fold varies around that of its own model, so
    correct decisions are centred within folds before they are summed by drive; what the models themselves vary by is
    the spread of the repeats (eq:c2st_variance_decomposition).

    Returns:
        Advantage, accuracy of each repeat, test part and training part of the variance, design effect.
    """
    correct = (fit.logits >= 0) == sample.y
    R, folds = len(correct), int(fit.fold.max()) + 1
    weight = np.ones(sample.n) if extra is None else np.asarray(extra, dtype=float)
    cohorts = [np.flatnonzero(sample.y == label) for label in (0, 1)]
    acc_repeats, influence, binomial = np.zeros(R), np.zeros(sample.n), 0.0
    for r in range(R):
        held = np.stack([np.bincount(fit.fold[r, rows], weight[rows], minlength=folds) for rows in cohorts])
        right = np.stack([
            np.bincount(fit.fold[r, rows], weight[rows] * correct[r, rows], minlength=folds) for rows in cohorts
        ])
        mean = right / np.maximum(held, 1e-300)  # (2, folds)
        share = (held / held.sum(axis=1, keepdims=True)).mean(axis=0) * (held > 0).all(axis=0)
        share /= share.sum()
        acc_repeats[r] = share @ mean.mean(axis=0)
        for label, rows in enumerate(cohorts):
            k = fit.fold[r, rows]
            scale = len(rows) * weight[rows] * (share / np.maximum(held[label], 1e-300))[k]
            influence[rows] += scale * (correct[r, rows] - mean[label, k]) / R
    var_test = 0.0
    for label, rows in enumerate(cohorts):
        drives = int((sample.drive_y == label).sum())
        var_test += clustered_variance(influence[rows], sample.drive[rows], sample.n_drives) / 4 * (
            (drives - 1) / drives / _kept_variance(drives / folds, R)
        )
        accuracy = correct[:, rows].mean()
        binomial += accuracy * (1 - accuracy) / len(rows) / 4
    var_training = float(acc_repeats.var(ddof=1) / len(acc_repeats)) if len(acc_repeats) > 1 else 0.0
    acc, n_te = float(acc_repeats.mean()), _balanced_size(sample)
    if config.bound == "wilson":
        low, high = wilson_lower(acc, n_te, config.alpha), 1 - wilson_lower(1 - acc, n_te, config.alpha)
    elif config.bound == "hoeffding":
        low, high = hoeffding_lower(acc, n_te, config.alpha), 1 - hoeffding_lower(1 - acc, n_te, config.alpha)
    else:
        t = stats.t.ppf(1 - config.alpha, max(min(np.bincount(sample.drive_y)) - folds, 1))
        variance = CROSS_FIT_INFLATION**2 * var_test + var_training
        low = acc - t * np.sqrt(variance)
        high = acc + t * np.sqrt(max(variance, _chance_variance(n_te)))
    return (
        Advantage(acc, _gain(acc), _gain(low), _gain(high)), acc_repeats, float(var_test), var_training,
        float(var_test / max(binomial, 1e-300)),
    )


def _kept_variance(m: float, R: int) -> float:
    """Share of the variance that centring by the means of folds of m drives leaves, over R repeats with other folds."""
    return (1 - 1 / m) ** 2 + (m - 1) / (m**2 * R)


def _chance_variance(n_te: int) -> float:
    """Variance of the accuracy of a coin: a classifier that answers the same everywhere has none of its own."""
    return 1 / (4 * n_te)


def _gain(acc: float) -> float:
    """eq:empirical_advantage"""
    return float(max(0.0, acc - 0.5))


def global_test(space: Space, sample: Pool, config: AnalysisConfig, *, has_drives: bool = True) -> GlobalTest:
    """Stage I in one go."""
    return finish(global_test_steps(space, sample, config, has_drives=has_drives))


def global_test_steps(
    space: Space, sample: Pool, config: AnalysisConfig, *, has_drives: bool = True
) -> Generator[Progress, None, GlobalTest]:
    """Stage I.

    `gamma_hat` is a lower bound of the best classifier's advantage in expectation, and 2 gamma_lcb one of the total
    variation (prop:classifier_tv). The guarantee needs drives that are independent of each other.
    """
    yield Progress("Can a classifier tell the cohorts apart?", 0.0)
    fit = cross_fit(space, sample, config, repeats=config.repeats, folds=config.folds, seed=config.seed)
    result, acc_repeats, var_test, var_training, design_effect = advantage(fit, sample, config)
    se, n_te = np.sqrt(CROSS_FIT_INFLATION**2 * var_test + var_training), _balanced_size(sample)
    mean_logit = fit.logits.mean(axis=0)
    yield Progress("Can P be told from itself?", 0.55)
    aa_source = _same_cohort_test(space, sample, config, 0)
    yield Progress("Can Q be told from itself?", 0.7)
    aa_target = _same_cohort_test(space, sample, config, 1)
    yield Progress("Permuting drives", 0.85)
    rng = np.random.default_rng([config.seed, 1])
    labels = permuted_labels(sample.drive_y, config.n_perm, rng)
    auc, statistic, null = _rank_test(fit, sample, labels)
    X = space.X
    return GlobalTest(
        acc=result.acc,
        acc_std=float(acc_repeats.std(ddof=1)) if config.repeats > 1 else 0.0,
        gamma_hat=result.gamma_hat,
        gamma_lcb=result.gamma_lcb,
        gamma_ucb=result.gamma_ucb,
        gamma_lcb_wilson=_gain(wilson_lower(result.acc, n_te, config.alpha)),
        gamma_lcb_hoeffding=_gain(hoeffding_lower(result.acc, n_te, config.alpha)),
        se=float(se),
        var_test=var_test,
        var_training=var_training,
        auc=auc,
        statistic=statistic,
        p_value=permutation_p(statistic, null),
        p_neighbors=_neighbor_test(X, sample, labels, rng),
        n_te=n_te,
        repeats=config.repeats,
        icc=float(np.mean([
            intraclass_correlation(X[sample.y == c], sample.drive[sample.y == c], sample.n_drives) for c in (0, 1)
        ])) if has_drives else 0.0,
        design_effect=design_effect,
        detectable_gamma=float(
            config.gamma_small
            + (stats.norm.ppf(1 - config.alpha) + stats.norm.ppf(POWER)) * max(se, np.sqrt(_chance_variance(n_te)))
        ),
        aa_source=aa_source,
        aa_target=aa_target,
        independence_assumed=not has_drives,
        shared_drives=sample.n_drives - len(np.unique(sample.fold_key)),
        logit_P=mean_logit[sample.y == 0],
        logit_Q=mean_logit[sample.y == 1],
        acc_repeats=acc_repeats,
        roc_tpr=mean_roc(fit.logits, fit.fold, sample.y),
        null=null,
    )


def _balanced_size(sample: Pool) -> int:
    return int(2 * np.bincount(sample.y, minlength=2).min())


def _rank_test(fit: CrossFit, sample: Pool, labels) -> tuple[float, float, np.ndarray]:
    """AUC within folds (models of different folds have different offsets), the same over its drive-level error, and
    the distribution of that when the drives are dealt out again.

    Dividing by the error keeps the test honest when the drives of one cohort are longer.
    """
    rank = np.zeros(sample.n)  # of a scenario among those of its fold, 0 to 1, mean over the repeats
    for logits, fold in zip(fit.logits, fit.fold, strict=True):
        for k in np.unique(fold):
            rows = fold == k
            rank[rows] += (stats.rankdata(logits[rows]) - 0.5) / rows.sum() / len(fit.logits)
    S, n = np.bincount(sample.drive, rank, minlength=sample.n_drives), sample.drive_size.astype(float)

    def moments(label):  # (..., G) -> mean rank of the chosen drives and its variance
        size, total = label @ n, label @ S
        mean = total / size
        return mean, (label @ S**2 - 2 * mean * (label @ (S * n)) + mean**2 * (label @ n**2)) / size**2

    def studentised(label):
        (mean_Q, var_Q), (mean_P, var_P) = moments(label), moments(1 - label)
        error = np.sqrt(np.maximum(var_Q + var_P, 0))
        return mean_Q - mean_P, np.where(error > 1e-12, (mean_Q - mean_P) / np.maximum(error, 1e-12), 0.0)

    difference, statistic = studentised(sample.drive_y.astype(float))
    null = CROSS_FIT_INFLATION * studentised(labels.astype(float))[1]
    return 0.5 + float(difference), float(statistic), null


def _neighbor_test(X, sample: Pool, labels, rng) -> float:
    """p-value of the share of neighbours (of other drives) from the same cohort, permuted by drive.

        T = s' L s,   s = 1/n_Q in Q and -1/n_P in P,   L = links between drives
    """
    from scipy.sparse import csr_array

    rows = thin_drives(sample, NEIGHBOR_ROWS, rng)
    drive = sample.drive[rows]
    size = np.bincount(drive, minlength=sample.n_drives)
    source, neighbor = cross_drive_neighbors(X[rows], drive, min(NEIGHBOR_K, len(rows) // 4))
    links = csr_array(
        (np.ones(len(source)), (drive[source], drive[neighbor])), shape=(sample.n_drives, sample.n_drives)
    )

    def agreement(label):  # (G, m) -> (m,)
        s = label / (size @ label) - (1 - label) / (size @ (1 - label))
        return np.sum(s * (links @ s), axis=0)

    observed = agreement(sample.drive_y[:, None].astype(float))[0]
    return permutation_p(float(observed), agreement(labels.T.astype(float)))


def _same_cohort_test(space: Space, sample: Pool, config: AnalysisConfig, label: int) -> Advantage:
    """A/A control: the same test between two random halves, by drive, of one cohort."""
    rng = np.random.default_rng([config.seed, 2, label])
    rows = np.flatnonzero(sample.y == label)
    members = np.flatnonzero(sample.drive_y == label)
    half = np.zeros(sample.n_drives, dtype=int)
    half[rng.permutation(members)[: len(members) // 2]] = 1
    drive = np.searchsorted(members, sample.drive[rows])
    inner = Pool(half[sample.drive[rows]], drive, half[members], np.arange(len(members)))
    part = replace(space, X=space.X[rows], cell=space.cell[rows])
    return advantage(cross_fit(part, inner, config, repeats=1, folds=2, seed=config.seed), inner, config)[0]
