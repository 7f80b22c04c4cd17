"""The paper's four sensitivity studies of the global test, and the half-width against N_te."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import Space
from avshift_core.parallel import in_order
from avshift_core.progress import Progress
from avshift_core.shift.classifiers import class_weights, held_out_logits
from avshift_core.shift.drives import Pool, folds_by_drive
from avshift_core.threads import one_thread

FAMILIES = ("logistic", "mlp", "boosting", "forest", "svm", "knn")  # fig:robust_classifier_choice
RATIOS = (0.1, 0.2, 1 / 3, 0.5, 1.0)  # share of Q kept in training; natural and balanced: ten configurations
TRAIN_SIZES = (100, 250, 500, 1000, 2000, 5000)  # per class, fig:robust_training_size
CAPACITIES = {  # fig:robust_regularization_capacity
    "small mlp (32)": ("mlp", {"hidden": (32,)}),
    "large mlp (256-128)": ("mlp", {"hidden": (256, 128)}),
    "shallow boosting (depth 2)": ("boosting", {"max_depth": 2}),
    "deep boosting (depth 8)": ("boosting", {"max_depth": 8}),
}
SEEDS = 5  # trainings of each configuration
TEST_SIZES = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000)


@dataclass(frozen=True)
class Trial:
    """One configuration: which classifier is trained, on what.

    Attributes:
        share: of Q kept in training; count: scenarios of each class; all without them.
        balance: equal weight of both classes.
        options: of the classifier.
    """

    study: str
    setting: str
    kind: str
    share: float | None = None
    count: int | None = None
    balance: bool = True
    options: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """Accuracy of one configuration over the seeds."""

    study: str
    setting: str
    acc: float
    acc_std: float
    gamma_hat: float
    seeds: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class Width:
    """Empirical half-width of the 95 % interval of the accuracy at N_te held-out scenarios, and the binomial one."""

    n_te: int
    half_width: float
    binomial: float


@dataclass(frozen=True)
class Summary:
    """A line of the paper's table tab:robustness_summary: mean and deviation over all configurations and seeds."""

    study: str
    configs: int
    acc: float
    acc_std: float


@dataclass(frozen=True)
class Sensitivity:
    """All four studies and the half-widths, as a job returns them."""

    rows: tuple[Row, ...]
    widths: tuple[Width, ...]

    def study(self, name: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.study == name)

    def summary(self) -> tuple[Summary, ...]:
        """The paper's table, studies in their order."""
        found = []
        for name in dict.fromkeys(row.study for row in self.rows):
            rows = self.study(name)
            values = [value for row in rows for value in row.values]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            found.append(Summary(name, len(rows), float(np.mean(values)), spread))
        return tuple(found)


def sensitivity_steps(
    comparison, seeds: int = SEEDS, jobs: int | None = 1, scheduler: str | None = None
) -> Generator[Progress, None, Sensitivity]:
    """The studies as a job.

    Args:
        comparison: anything with an `analysis`; its space, sample, settings and held-out scores are used.
        seeds: trainings of each configuration, each with other halves of the drives.
        jobs, scheduler: as in `in_order`.
    """
    analysis = comparison.analysis
    test, sample = analysis.global_test, analysis.sample
    total, rows = count_rows(), []
    yield Progress("Training the first classifier", 0.0)
    for row in sensitivity(analysis.space, sample, analysis.config, range(seeds), jobs, scheduler):
        rows.append(row)
        yield Progress(f"{len(rows)} of {total} configurations: {row.study}, {row.setting}", 0.97 * len(rows) / total)
    yield Progress("Half-widths by number of held-out scenarios", 0.98)
    correct = (np.concatenate([test.logit_P, test.logit_Q]) >= 0) == sample.y
    widths = half_widths(correct, sample, analysis.config.seed)
    yield Progress("Done", 1.0)
    return Sensitivity(tuple(rows), tuple(widths))


def count_rows() -> int:
    """Rows that `sensitivity` yields, for a progress bar."""
    return len(FAMILIES) + 2 * len(RATIOS) + len(TRAIN_SIZES) + len(CAPACITIES)


def sensitivity(
    space: Space, sample: Pool, config: AnalysisConfig, seeds: Sequence[int] = range(5), jobs: int | None = 1,
    scheduler: str | None = None,
) -> Iterator[Row]:
    """The four studies, one row a configuration, on held-out drives balanced between the cohorts."""
    trials = _trials(sample, config, seeds)
    todo = [(trial, seed) for trial in trials for seed in seeds]
    work = partial(_accuracy, space, sample, config)
    answers = in_order(work, todo, jobs, ready=len(seeds), scheduler=scheduler)
    for trial in trials:
        accs = [next(answers) for _ in seeds]
        acc = float(np.mean(accs))
        spread = float(np.std(accs, ddof=1)) if len(accs) > 1 else 0.0
        yield Row(trial.study, trial.setting, acc, spread, max(0.0, acc - 0.5), len(accs), tuple(accs))


def _trials(sample: Pool, config: AnalysisConfig, seeds: Sequence[int]) -> list[Trial]:
    """All configurations, study by study."""
    trials = [Trial("classifier family", kind, kind) for kind in FAMILIES]
    trials += [Trial("training class ratio", f"1:{1 / ratio:.0f} {'balanced' if balance else 'natural'}", "mlp",
                     share=ratio, balance=balance) for ratio in RATIOS for balance in (False, True)]
    splits = [_split(sample, config, seed)[0] for seed in seeds]
    largest = min(int((sample.y[train] == c).sum()) for train in splits for c in (0, 1))
    for size in TRAIN_SIZES:
        per_class = min(size, largest)
        label = f"{per_class:,} a class" + ("" if per_class == size else f" (all there are; {size:,} asked)")
        trials.append(Trial("training-set size", label, "mlp", count=per_class))
    return trials + [Trial("classifier capacity", label, kind, options=options)
                     for label, (kind, options) in CAPACITIES.items()]


def _accuracy(space: Space, sample: Pool, config: AnalysisConfig, job: tuple[Trial, int]) -> float:
    """Balanced accuracy of one training on held-out drives: the work of one process."""
    trial, seed = job
    train, test = _split(sample, config, seed)
    part = _thinned(trial, sample.y, train, np.random.default_rng([seed, 8]))
    weight = np.ones(sample.n)
    if trial.balance:
        weight[part] = class_weights(sample.y[part])
    options = {**trial.options, **({"n_jobs": 1} if trial.kind == "forest" else {})}
    with one_thread():
        logit = held_out_logits(trial.kind, space, sample, weight, [(part, test)], seed=seed, **options)[0]
    right = (logit >= 0) == sample.y[test]
    return float((right[sample.y[test] == 0].mean() + right[sample.y[test] == 1].mean()) / 2)


def _thinned(trial: Trial, y, train, rng: np.random.Generator) -> np.ndarray:
    """The rows that a trial trains on."""
    if trial.count is not None:
        return np.concatenate([rng.choice(train[y[train] == c], trial.count, replace=False) for c in (0, 1)])
    if trial.share is None:
        return train
    of_Q = train[y[train] == 1]
    kept = rng.choice(of_Q, max(10, round(trial.share * len(of_Q))), replace=False)
    return np.concatenate([train[y[train] == 0], kept])


def half_widths(correct, sample: Pool, seed: int = 0, draws: int = 200) -> list[Width]:
    """Half-width of the accuracy when whole drives are drawn until N_te scenarios are held out.

    Args:
        correct: (n,) share of correct held-out decisions.
    """
    rng = np.random.default_rng([seed, 9])
    cohorts = [np.flatnonzero(sample.drive_y == c) for c in (0, 1)]
    total = np.bincount(sample.drive, correct, minlength=sample.n_drives)
    size = sample.drive_size
    z = stats.norm.ppf(0.975)
    rows = []
    for n_te in TEST_SIZES:
        if n_te > 2 * np.bincount(sample.y).min():
            break
        accs = []
        for _ in range(draws):
            halves = []
            for drives in cohorts:
                drawn = drives[rng.integers(len(drives), size=_enough(size[drives], n_te // 2))]
                upto = np.searchsorted(np.cumsum(size[drawn]), n_te // 2) + 1
                halves.append(total[drawn[:upto]].sum() / size[drawn[:upto]].sum())
            accs.append(np.mean(halves))
        mean = float(np.mean(accs))
        rows.append(Width(n_te, float(z * np.std(accs, ddof=1)), float(z * np.sqrt(mean * (1 - mean) / n_te))))
    return rows


def _enough(size, n) -> int:
    """Drives to draw so that n scenarios are surely among them."""
    return int(3 * n / size.mean()) + 10


def _split(sample: Pool, config: AnalysisConfig, seed: int) -> tuple[np.ndarray, np.ndarray]:
    fold = folds_by_drive(sample, 2, np.random.default_rng([seed, 7]), by_row=config.split_by == "row")
    return np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)
