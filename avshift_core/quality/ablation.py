"""The paper's ablation of the latent (tab:latent_ablation): size and KL term, over training seeds.

Encoders are trained on the weeks that the compared pair is not of. ACC, regions and LIS are the engine's own, drive by
drive; the paper's Jaccard is against the base model of the same seed, and the one between seeds stands beside it: an
index of 1 of the base with itself says nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from avshift_core.config import AnalysisConfig, EncoderConfig
from avshift_core.errors import ConfigError, CorpusError
from avshift_core.files import plain
from avshift_core.latent.corpora import cohort_of
from avshift_core.progress import Progress, within
from avshift_core.quality.stability import jaccard
from avshift_core.scenario.store.corpus import Corpus, open_corpus
from avshift_core.scenario.store.query import CohortQuery, as_query
from avshift_core.shift.analyze import Analysis, analyze

if TYPE_CHECKING:
    from avshift_core.encoder.weights import Model

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
    """One training and what the engine says with it. lis_l1: |mu_lis - mu_target|, None without a region."""

    setting: str
    seed: int
    model: str
    acc: float
    verdict: str
    n_regions: int
    region_share: float
    jaccard_base: float
    lis_l1: float | None
    strata_l1: float
    naive_l1: float


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
    jaccard_base: Spread
    lis_l1: Spread | None
    strata_l1: Spread
    n_with_regions: int


@dataclass(frozen=True)
class Ablation:
    """source, target: the compared cohorts; metric: whose error LIS-L1 is; naive_l1: that of no calibration."""

    corpus: str
    source: str
    target: str
    metric: str
    train: str
    most: int
    config: EncoderConfig
    naive_l1: float
    rows: tuple[Row, ...]
    settings: tuple[Setting, ...]


def ablation_steps(
    url: str, out: str | Path, config: EncoderConfig, *, source: str | None = None, target: str | None = None,
    metric: str = "discomfort", seeds: Sequence[int] = (0, 1, 2), most: int = MOST, jobs: int | None = None,
) -> Generator[Progress, None, Ablation]:
    """Train every setting with every seed, and compare one pair of cohorts with each.

    Args:
        out: folder of the models; those that are finished there are used again.
        config: what all settings share; its seed, latent_dim and kl_weight are replaced.
        source, target: cohorts; the second and third period of the first area without them.
    """
    if not seeds or most < 1:
        raise ConfigError("An ablation needs at least one seed and one scenario.")
    corpus, out = open_corpus(url), Path(out)
    P, Q, rest = _cohorts(corpus, source, target)
    todo = [(name, seed) for name in SETTINGS for seed in seeds]
    analyses: dict[tuple[str, int], Analysis] = {}
    models: dict[tuple[str, int], str] = {}
    for i, (name, seed) in enumerate(todo):
        settings = replace(config, seed=seed, **SETTINGS[name])
        steps = _model_steps(url, out / f"{name.replace(' + ', '-').lower()}-seed{seed}", settings, rest, most, jobs)
        n = len(todo)
        model = yield from within(steps, i / n, (i + 1) / n, f"{name}, seed {seed} ({i + 1} of {n}): ")
        models[name, seed] = model.id
        analyses[name, seed] = _compare(corpus, model, P, Q, metric)
    rows = tuple(_row(name, seed, models[name, seed], analyses[name, seed], analyses[BASE, seed], metric)
                 for name, seed in todo)
    return Ablation(str(url), str(P), str(Q), metric, str(rest), most, config, rows[0].naive_l1, rows,
                    tuple(_setting(name, rows, analyses, seeds) for name in SETTINGS))


def _cohorts(corpus: Corpus, source: str | None, target: str | None) -> tuple[CohortQuery, CohortQuery, CohortQuery]:
    """P, Q, and all periods that neither of them is of."""
    periods = corpus.distinct("period")
    if source is None or target is None:
        if len(periods) < 4:
            raise CorpusError(f"{corpus.url} has {len(periods)} periods; an ablation needs two to compare and others "
                              "to train on. Name cohorts with --source and --target, or import more weeks.")
        area = corpus.distinct("area")[0]
        source, target = (f"period={period},area={area}" for period in periods[1:3])
    P, Q = as_query(source), as_query(target)
    rest = [period for period in periods if period not in {*P.period, *Q.period}]
    if not (P.period and Q.period and rest):
        raise CorpusError("Source and target must name periods and leave others to train on, so that no encoder has "
                          "seen the scenarios it is judged by.")
    return P, Q, CohortQuery(period=tuple(rest))


def _model_steps(url, folder: Path, config, query, most, jobs) -> Generator[Progress, None, Model]:
    from avshift_core.encoder.checkpoint import CHECKPOINT
    from avshift_core.encoder.train import train_steps
    from avshift_core.encoder.weights import WEIGHTS, load_model

    if not (folder / WEIGHTS).exists():
        return (yield from train_steps(url, folder, config, query=query, most=most,
                                       resume=(folder / CHECKPOINT).exists(), jobs=jobs))
    model = load_model(folder)
    if asdict(model.config) != asdict(config) or model.card["data"]["query"] != str(query):
        raise ConfigError(f"{folder} holds a model of other settings. Choose another folder for --out.")
    return model


def _compare(corpus: Corpus, model: Model, P: CohortQuery, Q: CohortQuery, metric: str) -> Analysis:
    """The engine on latents of both cohorts, which are made at hand and not stored."""
    from avshift_core.encoder.encode import embed

    sides = [cohort_of(corpus, query, metrics=[metric], z=embed(model, corpus.batches(query, size=256)))
             for query in (P, Q)]
    return analyze(*sides, AnalysisConfig(repeats=2), [metric], force_localize=True)


def _row(name, seed, model, analysis: Analysis, base: Analysis, metric: str) -> Row:
    c = analysis.calibrations[metric]
    found = len(analysis.local.regions)
    error = lambda estimate: abs(estimate.mu - c.estimates()["target"].mu)  # noqa: E731
    inside = _inside(analysis)
    return Row(name, seed, model, analysis.global_test.acc, analysis.verdict.name, found, float(inside.mean()),
               _overlap(inside, _inside(base)), error(c.lis) if found else None, error(c.strata),
               error(c.estimates()["naive"]))


def _setting(name: str, rows: Sequence[Row], analyses, seeds) -> Setting:
    own = [row for row in rows if row.setting == name]
    inside = [_inside(analyses[name, seed]) for seed in seeds]
    between = [_overlap(a, b) for a, b in combinations(inside, 2)]
    lis = [row.lis_l1 for row in own if row.lis_l1 is not None]
    return Setting(name, _spread([row.acc for row in own]), _spread(between),
                   _spread([row.jaccard_base for row in own]), _spread(lis) if lis else None,
                   _spread([row.strata_l1 for row in own]), len(lis))


def _inside(analysis: Analysis) -> np.ndarray:
    return np.concatenate([analysis.local.region_P, analysis.local.region_Q]) >= 0


def _overlap(one, other) -> float:
    """Jaccard index; 0 where neither has a region, as in the paper."""
    value = jaccard(one, other)
    return value if np.isfinite(value) else 0.0


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(float("nan"), float("nan"), 0)
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))


def to_json(ablation: Ablation) -> dict:
    return plain({"schema": 1, **asdict(ablation)})


def describe(ablation: Ablation) -> str:
    """The paper's table, with what it leaves out."""
    show = lambda s, scale=1.0, digits=3: (  # noqa: E731
        "N/A" if s is None or not s.n else f"{scale * s.mean:.{digits}f} +- {scale * s.std:.{digits}f}")
    lines = [f"{ablation.source} -> {ablation.target}; trained on {ablation.train}, about {ablation.most:,} scenarios",
             f"{'latent':<15} {'ACC':>15} {'Jaccard, seeds':>16} {'against base':>15} {'LIS-L1 x 1000':>15} "
             f"{'strata-L1 x 1000':>17} {'with regions':>13}"]
    for s in ablation.settings:
        lines.append(f"{s.setting:<15} {show(s.acc):>15} {show(s.jaccard_seeds):>16} {show(s.jaccard_base):>15} "
                     f"{show(s.lis_l1, 1000, 2):>15} {show(s.strata_l1, 1000, 2):>17} "
                     f"{s.n_with_regions:>9} of {s.acc.n}")
    lines.append(f"Without calibration the error of {ablation.metric} is {1000 * ablation.naive_l1:.2f} x 10^-3. Mean "
                 "and standard deviation over seeds; LIS-L1 over those with a region.")
    return "\n".join(lines)
