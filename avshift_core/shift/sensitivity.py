"""The paper's four sensitivity studies of the global test, and the half-width against N_te."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from avshift_core.config import AnalysisConfig
from avshift_core.latent.space import Space
from avshift_core.progress import Progress
from avshift_core.shift.classifiers import class_weights, held_out_logits
from avshift_core.shift.drives import Pool, folds_by_drive

FAMILIES = ("logistic", "mlp", "boosting", "forest", "svm", "knn")  # fig:robust_classifier_choice
RATIOS = (0.1, 0.2, 1 / 3, 0.5, 1.0)  # share of Q kept in training; natural and balanced: ten configurations
TRAIN_SIZES = (100, 250, 500, 1000, 2000, 5000)  # per class, fig:robust_training_size
CAPACITIES = {  # fig:robust_regularization_capacity
    "small mlp (32)": ("mlp", {"hidden": (32,)}),
    "large mlp (256-128)": ("mlp", {"hidden": (256, 128)}),
    "shallow boosting (depth 2)": ("boosting", {"max_depth": 2}),
    "deep boosting (depth 8)": ("boosting", {"max_depth": 8}),
}
TEST_SIZES = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000)


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


def sensitivity_steps(comparison, seeds: int = 5) -> Generator[Progress, None, Sensitivity]:
    """The studies as a job.

    Args:
        comparison: anything with an `analysis`; its space, sample, settings and held-out scores are used.
        seeds: trainings of each configuration, each with other halves of the drives.
    """
    analysis = comparison.analysis
    test, sample = analysis.global_test, analysis.sample
    total, rows = count_rows(), []
    yield Progress("Training the first classifier", 0.0)
    for row in sensitivity(analysis.space, sample, analysis.config, range(seeds)):
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


def sensitivity(space: Space, sample: Pool, config: AnalysisConfig, seeds: Sequence[int] = range(5)) -> Iterator[Row]:
    """The four studies, one row a configuration, on held-out drives balanced between the cohorts."""
    splits = [_split(sample, config, seed) for seed in seeds]

    def row(study, setting, kind, thin=None, balance=True, **options) -> Row:
        accs = []
        for seed, (train, test) in zip(seeds, splits, strict=True):
            rng = np.random.default_rng([seed, 8])
            part = train if thin is None else thin(train, rng)
            weight = np.ones(sample.n)
            if balance:
                weight[part] = class_weights(sample.y[part])
            logit = held_out_logits(kind, space, sample, weight, [(part, test)], seed=seed, **options)[0]
            right = (logit >= 0) == sample.y[test]
            accs.append(float((right[sample.y[test] == 0].mean() + right[sample.y[test] == 1].mean()) / 2))
        acc = float(np.mean(accs))
        spread = float(np.std(accs, ddof=1)) if len(accs) > 1 else 0.0
        return Row(study, setting, acc, spread, max(0.0, acc - 0.5), len(accs), tuple(accs))

    for kind in FAMILIES:
        yield row("classifier family", kind, kind)
    for ratio in RATIOS:
        for balance in (False, True):
            label = f"1:{1 / ratio:.0f} {'balanced' if balance else 'natural'}"
            yield row("training class ratio", label, "mlp", _keep_share(sample, ratio), balance)
    largest = min(int((sample.y[train] == c).sum()) for train, _ in splits for c in (0, 1))
    for size in TRAIN_SIZES:
        per_class = min(size, largest)
        label = f"{per_class:,} a class" + ("" if per_class == size else f" (all there are; {size:,} asked)")
        yield row("training-set size", label, "mlp", _keep_count(sample, per_class))
    for label, (kind, options) in CAPACITIES.items():
        yield row("classifier capacity", label, kind, **options)


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


def _keep_share(sample: Pool, share: float):
    def thin(train, rng):
        of_Q = train[sample.y[train] == 1]
        kept = rng.choice(of_Q, max(10, round(share * len(of_Q))), replace=False)
        return np.concatenate([train[sample.y[train] == 0], kept])

    return thin


def _keep_count(sample: Pool, count: int):
    def thin(train, rng):
        return np.concatenate([rng.choice(train[sample.y[train] == c], count, replace=False) for c in (0, 1)])

    return thin
