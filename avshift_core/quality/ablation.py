"""The paper's ablation of the latent (tab:latent_ablation): size and KL term, over training seeds.

Encoders are trained on the weeks that the compared pair is not of. ACC and regions are the engine's own, drive by
drive; the paper's Jaccard is against the base model of the same seed, and the one between seeds stands beside it: an
index of 1 of the base with itself says nothing. LIS-L1 is measured from the truth where a simulated fleet has one: the
target's own sample mean is off by more than the settings differ by.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from avshift_core.config import AnalysisConfig, EncoderConfig
from avshift_core.errors import ConfigError, CorpusError
from avshift_core.files import plain
from avshift_core.latent.cautions import about_versions
from avshift_core.latent.cohort import Cohort
from avshift_core.latent.corpora import check_disjoint, cohort_of
from avshift_core.parallel import check_jobs, in_order
from avshift_core.progress import Progress, finish, within
from avshift_core.quality.contexts import whole_truth_steps
from avshift_core.quality.stability import chance_jaccard, jaccard
from avshift_core.scenario.simulate.truth import Truth
from avshift_core.scenario.store.corpus import Corpus, open_corpus, open_shared
from avshift_core.scenario.store.query import CohortQuery, as_query
from avshift_core.shift.analyze import analyze
from avshift_core.shift.drives import clustered_variance

if TYPE_CHECKING:
    from avshift_core.encoder.weights import Model, ModelFiles

KL_WEIGHT = 0.01  # of the KL term summed over 64 numbers, which then weighs about as much as the reconstruction
SETTINGS: Mapping[str, dict] = {
    "latent10": {"latent_dim": 10}, "latent64": {}, "latent64 + KL": {"kl_weight": KL_WEIGHT},
    "latent128": {"latent_dim": 128},
}
BASE = "latent64"
REPLACED = ("seed", "latent_dim", "kl_weight")  # by each of the trainings
SMALL = {"epochs": 6}  # twelve trainings of about 8,000 scenarios in under an hour on two cores
MOST = 8_000


@dataclass(frozen=True)
class Row:
    """One training and what the engine says with it. *_l1: |mu - yardstick|; of LIS None without a region."""

    setting: str
    seed: int
    model: str
    acc: float
    verdict: str
    n_regions: int
    region_share: float
    jaccard_base: float
    lis_l1: float | None
    lis_paper_l1: float | None
    strata_l1: float
    naive_l1: float


@dataclass(frozen=True, eq=False)
class Compared:
    """What the engine says of the pair with one model. mu: by estimator; inside: which scenarios are in a region."""

    acc: float
    verdict: str
    n_regions: int
    n_regions_paper: int
    mu: Mapping[str, float]
    inside: np.ndarray


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; n of them have the number at all."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    setting: str
    acc: Spread
    jaccard_seeds: Spread
    jaccard_chance: float
    jaccard_base: Spread
    lis_l1: Spread | None
    lis_paper_l1: Spread | None
    strata_l1: Spread
    n_with_regions: int


@dataclass(frozen=True)
class Ablation:
    """Attributes:
        source, target: the compared cohorts; metric: whose error LIS-L1 is; naive_l1: that of no calibration.
        yardstick: what the error is measured from; is_truth: whether it is exact; yardstick_se: its standard error.
        cautions: what bears on the comparison, such as different AV versions.
    """

    corpus: str
    source: str
    target: str
    metric: str
    train: str
    most: int
    config: EncoderConfig
    naive_l1: float
    yardstick: float
    is_truth: bool
    yardstick_se: float
    cautions: tuple[str, ...]
    rows: tuple[Row, ...]
    settings: tuple[Setting, ...]


def ablation_steps(
    url: str, out: str | Path, config: EncoderConfig, *, source: str | None = None, target: str | None = None,
    metric: str = "discomfort", seeds: Sequence[int] = (0, 1, 2), most: int = MOST, jobs: int | None = None,
    scheduler: str | None = None,
) -> Generator[Progress, None, Ablation]:
    """Train every setting with every seed, and compare one pair of cohorts with each.

    Args:
        out: folder of the models; those that are finished there are used again.
        config: what all settings share; its seed, latent_dim and kl_weight are replaced.
        source, target: cohorts; the second and third period of the first area without them.
        jobs: processes of one training. scheduler: as in `in_order`; whole trainings are done there, side by side.
    """
    check_jobs(jobs, scheduler)
    if not seeds or most < 1:
        raise ConfigError("An ablation needs at least one seed and one scenario.")
    corpus, out = open_corpus(url), Path(out)
    P, Q, rest = _cohorts(corpus, source, target)
    todo = [(name, seed) for name in SETTINGS for seed in seeds]
    sides = [cohort_of(corpus, query, metrics=[metric], z=np.zeros((corpus.sums(query)["n"].sum(), 1)))
             for query in (P, Q)]  # what does not depend on a model is checked before hours of training
    check_disjoint(*sides)
    truth = yield from within(whole_truth_steps(url, scheduler), 0.0, 0.0, "Truth: ")
    yardstick, is_truth, error = _yardstick(truth, Q, sides[1], metric)
    folders = {name_seed: out / f"{name_seed[0].replace(' + ', '-').lower()}-seed{name_seed[1]}" for name_seed in todo}
    settings = {(name, seed): replace(config, seed=seed, **SETTINGS[name]) for name, seed in todo}
    if scheduler is not None:
        yield from _elsewhere_steps(corpus, folders, settings, rest, most, jobs, scheduler)
    found: dict[tuple[str, int], Compared] = {}
    models: dict[tuple[str, int], str] = {}
    for i, (name, seed) in enumerate(todo):
        steps = _model_steps(url, folders[name, seed], settings[name, seed], rest, most, jobs)
        n = len(todo)
        model = yield from within(steps, i / n, (i + 1) / n, f"{name}, seed {seed} ({i + 1} of {n}): ")
        models[name, seed] = model.id
        found[name, seed] = _compare(corpus, model, P, Q, metric)
    rows = tuple(_row(name, seed, models[name, seed], found[name, seed], found[BASE, seed], yardstick)
                 for name, seed in todo)
    return Ablation(str(url), str(P), str(Q), metric, str(rest), most, config, rows[0].naive_l1, yardstick, is_truth,
                    error, tuple(about_versions(*sides, "full")), rows,
                    tuple(_setting(name, rows, found, seeds) for name in SETTINGS))


def _yardstick(truth: Truth | None, Q: CohortQuery, cohort: Cohort, metric: str) -> tuple[float, bool, float]:
    """What calibration should give: the true mean of Q's traffic where it is known, else Q's own mean and its error."""
    ell = cohort.ell[metric]
    error = float(np.sqrt(clustered_variance(ell - ell.mean(), cohort.drive, cohort.n_drives)))
    versions = set(cohort.obs["av_version"])
    if truth is None or len(Q.area) != 1 or len(Q.period) != 1 or len(versions) != 1 or set(Q.chosen()) > {
            "area", "period", "av_version"} or f"{metric}@{next(iter(versions))}" not in truth.table:
        return float(ell.mean()), False, error
    return truth.mean(metric, versions.pop(), (Q.area[0], Q.period[0])), True, error


def _cohorts(corpus: Corpus, source: str | None, target: str | None) -> tuple[CohortQuery, CohortQuery, CohortQuery]:
    """P, Q, and all periods that neither of them is of."""
    periods = corpus.distinct("period")
    if (source is None) != (target is None):
        raise ConfigError("Give --source and --target, or neither of them.")
    if source is None:
        if len(periods) < 4:
            raise CorpusError(f"{corpus.url} has {len(periods)} periods; an ablation needs two to compare and others "
                              "to train on. Name cohorts with --source and --target, or import more weeks.")
        area = corpus.distinct("area")[0]
        source, target = (f"period={period},area={area}" for period in periods[1:3])
    P, Q = as_query(source), as_query(target)
    rest = [period for period in periods if period not in {*P.period, *Q.period}]
    if P == Q:
        raise ConfigError(f"Source and target are both {P}; choose two different cohorts.")
    if not (P.period and Q.period and rest):
        raise CorpusError("Source and target must name periods and leave others to train on, so that no encoder has "
                          "seen the scenarios it is judged by.")
    return P, Q, CohortQuery(period=tuple(rest))


def _model_steps(url, folder: Path, config, query, most, jobs) -> Generator[Progress, None, Model]:
    from avshift_core.encoder.checkpoint import CHECKPOINT
    from avshift_core.encoder.train import data_of, train_steps
    from avshift_core.encoder.weights import CARD, load_model

    if not (folder / CARD).exists():
        return (yield from train_steps(url, folder, config, query=query, most=most,
                                       resume=(folder / CHECKPOINT).exists(), jobs=jobs))
    model, data = load_model(folder), data_of(open_corpus(url), query, most)
    if model.config != config or any(model.card["data"].get(key) != value for key, value in data.items()):
        raise ConfigError(f"{folder} holds a model of other settings or of other scenarios. Choose another folder for "
                          "--out.")
    return model


def _elsewhere_steps(
    corpus: Corpus, folders: Mapping, settings: Mapping, query: CohortQuery, most: int, jobs: int | None, scheduler: str
) -> Generator[Progress, None, None]:
    """Train on a cluster what has no model yet; the results are put where trainings of this machine would be."""
    from avshift_core.encoder.train import OWN
    from avshift_core.encoder.weights import CARD, write_files

    todo = [key for key, folder in folders.items() if not (folder / CARD).exists()]
    work = partial(_trained, corpus.location.absolute, [part.id for part in corpus.parts], query, most)
    for i, files in enumerate(in_order(work, [settings[key] for key in todo], jobs, scheduler=scheduler)):
        folder = folders[todo[i]]
        write_files(files, folder)
        for name in OWN:  # of a training that was begun here; it would have had the same result
            (folder / name).unlink(missing_ok=True)
        yield Progress(f"{i + 1} of {len(todo)} trainings finished", 0.0)


def _trained(url: str, parts: Sequence[str], query: CohortQuery, most: int, config: EncoderConfig) -> ModelFiles:
    """One training: the work of one process. Its result does not depend on where, or with how many it is done."""
    from avshift_core.encoder.train import train_steps
    from avshift_core.encoder.weights import read_files

    open_shared(url, parts)
    with TemporaryDirectory() as folder:
        model = finish(train_steps(url, folder, config, query=query, most=most, jobs=1))
        return read_files(model.folder)


def _compare(corpus: Corpus, model: Model, P: CohortQuery, Q: CohortQuery, metric: str) -> Compared:
    """The engine on latents of both cohorts, which are made at hand and not stored."""
    from avshift_core.encoder.encode import embed

    sides = [cohort_of(corpus, query, metrics=[metric], z=embed(model, corpus.batches(query, size=256)))
             for query in (P, Q)]
    a = analyze(*sides, AnalysisConfig(repeats=2), [metric], force_localize=True)
    mu = {name: e.mu for name, e in a.calibrations[metric].estimates().items() if e is not None}
    return Compared(a.global_test.acc, a.verdict.name, len(a.local.regions), a.local_paper.n_regions, mu,
                    np.concatenate([a.local.region_P, a.local.region_Q]) >= 0)


def _row(name, seed, model, found: Compared, base: Compared, yardstick: float) -> Row:
    error = lambda estimator: abs(found.mu[estimator] - yardstick)  # noqa: E731
    return Row(name, seed, model, found.acc, found.verdict, found.n_regions, float(found.inside.mean()),
               _overlap(found.inside, base.inside), error("lis") if found.n_regions else None,
               error("lis_paper") if found.n_regions_paper else None, error("strata"), error("naive"))


def _setting(name: str, rows: Sequence[Row], found: Mapping[tuple[str, int], Compared], seeds) -> Setting:
    own = [row for row in rows if row.setting == name]
    inside = [found[name, seed].inside for seed in seeds]
    pairs = list(combinations(inside, 2))
    chance = [chance_jaccard(a, b) for a, b in pairs if a.any() and b.any()]
    lis, paper = ([value for row in own if (value := getattr(row, key)) is not None]
                  for key in ("lis_l1", "lis_paper_l1"))
    return Setting(name, _spread([row.acc for row in own]), _spread([_overlap(a, b) for a, b in pairs]),
                   float(np.mean(chance)) if chance else 0.0, _spread([row.jaccard_base for row in own]),
                   _spread(lis) if lis else None, _spread(paper) if paper else None,
                   _spread([row.strata_l1 for row in own]), len(lis))


def _overlap(one, other) -> float:
    """Jaccard index; 0 where neither has a region, as in the paper."""
    value = jaccard(one, other)
    return value if np.isfinite(value) else 0.0


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(float("nan"), float("nan"), 0)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Spread(float(np.mean(values)), spread, len(values))


def to_json(ablation: Ablation) -> dict:
    return plain({"schema": 1, **asdict(ablation)})


def describe(ablation: Ablation) -> str:
    """The paper's table, with what it leaves out."""
    head = ("latent", "ACC", "Jaccard, seeds", "by chance", "against base", "LIS-L1", "paper's LIS-L1", "strata-L1",
            "with regions")
    row = "{:<15} {:>15} {:>15} {:>10} {:>15} {:>14} {:>15} {:>14} {:>13}"
    lines = [f"{ablation.source} -> {ablation.target}; trained on {ablation.train}, about {ablation.most:,} scenarios",
             row.format(*head)]
    for s in ablation.settings:
        lines.append(row.format(
            s.setting, _show(s.acc), _show(s.jaccard_seeds), f"{s.jaccard_chance:.3f}", _show(s.jaccard_base),
            _show(s.lis_l1, 1000, 2), _show(s.lis_paper_l1, 1000, 2), _show(s.strata_l1, 1000, 2),
            f"{s.n_with_regions} of {s.acc.n}"))
    of = "the true mean of the target's traffic" if ablation.is_truth else "the target's own mean"
    lines += [f"L1: 1000 x |estimate - {ablation.yardstick:.4f}|, {of} of {ablation.metric} (the sample's mean has a "
              f"standard error of {1000 * ablation.yardstick_se:.1f}); without calibration "
              f"{1000 * ablation.naive_l1:.2f}.",
              "Mean and standard deviation over training seeds on one pair of cohorts: what other scenarios would "
              "change is not in it. LIS over the trainings with a region; pairs of seeds share seeds.",
              *ablation.cautions]
    return "\n".join(lines)


def _show(spread: Spread | None, scale: float = 1.0, digits: int = 3) -> str:
    if spread is None or not spread.n:
        return "N/A"
    mean = f"{scale * spread.mean:.{digits}f}"
    return mean if spread.n < 2 else f"{mean} +- {scale * spread.std:.{digits}f}"
