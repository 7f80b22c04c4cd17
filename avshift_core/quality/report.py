"""The quality of a latent space in one frozen value: what the corpus allows, and a sentence for each other part."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from avshift_core.config import AnalysisConfig
from avshift_core.encoder.output import output_scale
from avshift_core.errors import AVShiftError, ConfigError
from avshift_core.files import plain
from avshift_core.parallel import check_jobs
from avshift_core.progress import Progress, within
from avshift_core.quality.aims import Aim, judge
from avshift_core.quality.clusters import EVENT, N_CLUSTERS, SECOND_EVENT, Clusters, cut, measure_clusters
from avshift_core.quality.contexts import context_features, find_truth
from avshift_core.quality.drivewise import MIN_DRIVES, standardise
from avshift_core.quality.features import make_baselines
from avshift_core.quality.leakage import DriveLeak, Leak, drive_leak, leak
from avshift_core.quality.probes import Probe, probe_all
from avshift_core.quality.rank import Rank, measure_rank
from avshift_core.quality.retrieval import Retrieval, examples, measure_retrieval, nearest_ten
from avshift_core.quality.sample import Sample, read_pair, read_sample
from avshift_core.quality.shifts import Pair, ShiftKept, kept_over_all, pairs_of, shift_kept, version_pair
from avshift_core.quality.stability import Stability, measure_stability, regions_of
from avshift_core.scenario.store.corpus import Corpus, open_corpus
from avshift_core.scenario.store.manifest import STATES
from avshift_core.scenario.store.thresholds import parse_metric
from avshift_core.shift.gate import LOCALIZE

if TYPE_CHECKING:
    from avshift_core.encoder.weights import Model

SCHEMA = 1
MODEL_SPACE, HAND_SPACE, PCA_SPACE = "latents", "hand-made features", "PCA of flattened tensors"
REPEATS = 2  # of the cross-fits of a pair
MOST_PAIRS = 24


@dataclass(frozen=True)
class Quality:
    """All that was measured of one model on one corpus.

    Attributes:
        corpus, fingerprint: where, and its SHA-256; model, view, output, seed: what.
        n, n_drives: the sample that was measured; n_corpus: all scenarios.
        trained_share: share of the corpus' files that the encoder was trained on; above 0 nothing here is held out.
        whitened: retrieval of the same latents with all directions on one scale.
        examples: ids of some scenarios, each followed by its nearest ones of other drives.
        shifts: pairs of weeks and areas; versions: one pair of AV versions in the same traffic, by view.
        notes: one sentence for each part that the corpus or the models did not allow.
    """

    corpus: str
    fingerprint: str
    model: str
    view: str
    output: str
    seed: int
    n: int
    n_drives: int
    n_corpus: int
    trained_share: float
    rank: Rank
    probes: tuple[Probe, ...] = ()
    retrieval: tuple[Retrieval, ...] = ()
    whitened: Retrieval | None = None
    examples: tuple[tuple[str, ...], ...] = ()
    clusters: Clusters | None = None
    leaks: tuple[Leak, ...] = ()
    drive_leak: DriveLeak | None = None
    shifts: tuple[ShiftKept, ...] = ()
    versions: tuple[ShiftKept, ...] = ()
    stability: Stability | None = None
    notes: tuple[str, ...] = field(default=())

    def retrieval_of(self, space: str) -> Retrieval | None:
        return next((r for r in self.retrieval if r.space == space), None)

    @property
    def baselines(self) -> tuple[Retrieval, ...]:
        return tuple(r for r in self.retrieval if r.space != MODEL_SPACE)

    @property
    def kept(self):
        """Advantage on z over that on the true contexts, over all pairs with a true shift; None without truth."""
        return kept_over_all(self.shifts, AnalysisConfig().gamma_small)

    @property
    def aims(self) -> tuple[Aim, ...]:
        return judge(self)


def quality_steps(
    url: str, model: Model, *, also: Sequence[Model] = (), view: str = "full", most: int = 20_000, seed: int = 0,
    n_clusters: int = N_CLUSTERS, events: tuple[str, str] = (EVENT, SECOND_EVENT), jobs: int | None = None,
    scheduler: str | None = None,
) -> Generator[Progress, None, Quality]:
    """Measure a model on a corpus; what is not encoded yet is encoded first.

    Args:
        also: models of other training seeds, for the stability of what this one says.
        view: of VIEWS; the pair of AV versions is measured in every view.
        most: scenarios of the sample (whole drives) for all but the pairs of cohorts, which use every drive.
        events: the two metrics of the clusters' events, such as `hard_brake` and `ttc_min_s<1.5`.
        jobs, scheduler: of the encoding.
    """
    from avshift_core.config import VIEWS
    from avshift_core.encoder.encode import encode_steps
    from avshift_core.encoder.weights import latents_name

    check_jobs(jobs, scheduler)
    config = AnalysisConfig(seed=seed, repeats=REPEATS)
    for other in also:
        if other.id == model.id or sum(other.id == each.id for each in also) > 1:
            raise ConfigError(f"Model {other.id} is given twice; stability needs models of different trainings.")
    corpus = open_corpus(url)
    for name in set(events) - {EVENT, SECOND_EVENT}:  # a missing default is left out, with a sentence
        parse_metric(name, corpus.metric_columns, corpus.cohort_columns)
    if most < 200:
        raise ConfigError(f"most is {most}; at least 200 scenarios are needed to say anything about a latent space.")
    wanted = [(model, VIEWS), *((other, (view,)) for other in also)]
    for i, (each, views) in enumerate(wanted):
        missing = tuple(v for v in views if corpus.models.get(latents_name(each.id, v), 0) < corpus.n)
        if missing:
            steps = encode_steps(url, each, views=missing, jobs=jobs, scheduler=scheduler)
            yield from within(steps, 0.4 * i / len(wanted), 0.4 * (i + 1) / len(wanted),
                              f"Encoding by model {each.id}: ")
    names = {each: latents_name(model.id, each) for each in VIEWS}
    others = tuple((other.id, latents_name(other.id, view)) for other in also)
    steps = measure_steps(open_corpus(url), names, view=view, model=model.id, card=model.card, also=others, most=most,
                          seed=seed, n_clusters=n_clusters, events=events, config=config)
    return (yield from within(steps, 0.4, 1.0))


def measure_steps(
    corpus: Corpus, latents: dict[str, str], *, view: str, model: str, card, also=(), most: int = 20_000, seed: int = 0,
    n_clusters: int = N_CLUSTERS, events: tuple[str, str] = (EVENT, SECOND_EVENT), config: AnalysisConfig | None = None,
) -> Generator[Progress, None, Quality]:
    """Measure latents that are in the corpus already, whoever made them.

    Args:
        latents: view -> name of the latents in the corpus; also: (model, name of its latents) of other seeds.
        card: what the model says about itself: `attributes`, `output`, `data`.
        config: settings of the tests of pairs of cohorts; the defaults with two repeats without it.
    """
    yield Progress("Reading latents and attributes", 0.0)
    sample = read_sample(corpus, latents[view], most=most, seed=seed, events=events)
    work = _Work(corpus, latents, view, sample, config or AnalysisConfig(seed=seed, repeats=REPEATS))
    output = str(card.get("output") or "standardised")
    quality = Quality(
        corpus.url, corpus.fingerprint, model, view, output, seed, sample.n, sample.n_drives, sample.n_corpus,
        trained_share(corpus, card), measure_rank(sample.z, output),
    )
    if sample.n_drives < 2 * MIN_DRIVES:
        return replace(quality, notes=(f"Only {sample.n_drives} drives: at least {2 * MIN_DRIVES} are needed to hold "
                                       "some of them out, so nothing but the rank was measured.",))
    yield Progress("Probes: what can be read from a latent?", 0.03)
    quality = replace(quality, probes=probe_all(sample.z, sample.table, sample.drive, seed=seed,
                                                taught=card.get("attributes") or ()))
    yield Progress("Baselines: hand-made features and principal components", 0.1)
    quality = replace(quality, retrieval=tuple(work.retrieval()), whitened=work.whitened(),
                      examples=examples(work.near, sample.table, seed) if work.has_states else ())
    yield Progress("Clusters and their events", 0.35)
    cluster = cut(work.x, n_clusters, seed)
    quality = replace(quality, clusters=work.clusters(cluster, events))
    yield Progress("Leakage: version, area and drive", 0.4)
    leaks, of_drive = work.leaks()
    quality = replace(quality, leaks=leaks, drive_leak=of_drive)
    pairs = work.pairs()
    shifts: list[ShiftKept] = []
    for i, pair in enumerate(pairs):
        yield Progress(f"Shifts kept: {pair.name}", 0.55 + 0.3 * i / len(pairs))
        shifts += work.shift(pair, view)
    yield Progress("AV versions in the same traffic", 0.86)
    quality = replace(quality, shifts=tuple(shifts), versions=work.versions())
    yield Progress("Stability over training seeds", 0.9)
    quality = replace(quality, stability=work.stability(model, also, cluster, n_clusters, shifts, pairs))
    yield Progress("Done", 1.0)
    return replace(quality, notes=(*work.notes, *work.told_refusals()))


def trained_share(corpus: Corpus, card) -> float:
    """Share of the corpus' scenarios whose states the encoder was trained on, by the hashes of their files."""
    known = set((card.get("data") or {}).get("states") or ())
    seen = sum(p.n for p in corpus.parts if STATES in p.files and p.files[STATES].sha256 in known)
    return seen / max(corpus.n, 1)


class _Work:
    """The parts of one report, each of which may be left out with one sentence in `notes`."""

    def __init__(self, corpus: Corpus, latents: dict[str, str], view: str, sample: Sample, config: AnalysisConfig
                 ) -> None:
        self.corpus, self.latents, self.view, self.sample = corpus, latents, view, sample
        self.config, self.seed = config, config.seed
        self.notes: list[str] = []
        self.refused: list[str] = []  # pairs that were too small, each with its reason
        self.x = standardise(sample.z)
        self.near = nearest_ten(self.x, sample.drive)
        self.truth = self._truth()

    @property
    def has_states(self) -> bool:
        return all(STATES in part.files for part in self.corpus.parts)

    def _truth(self):
        try:
            truth = find_truth(self.corpus.url)
        except AVShiftError as error:
            self.notes.append(f"No truth: {error}")
            return None
        if truth is None:
            self.notes.append("No truth lies beside the corpus: shifts are told on the latents alone, and leakage is "
                              "judged against readable attributes instead of the true contexts.")
        elif not set(self.sample.table["scenario_id"]) <= set(truth.table["scenario_id"]):
            self.notes.append("The truth beside the corpus does not know all of its scenarios and was not used.")
            return None
        return truth

    def retrieval(self) -> list[Retrieval]:
        sample, table = self.sample, self.sample.table
        if (table["category"] == "").all():
            self.notes.append("No scenario has a category: retrieval was left out. Import the logs again to detect "
                              "them.")
            return []
        spaces = {MODEL_SPACE: self.near}
        try:
            base = make_baselines(self.corpus.batches(sample.query), self.seed)
            spaces |= {HAND_SPACE: nearest_ten(base.hand, sample.drive), PCA_SPACE: nearest_ten(base.pca, sample.drive)}
        except AVShiftError as error:
            self.notes.append(f"The baselines were left out: {error}")
        return [measure_retrieval(name, near, table, sample.drive, seed=self.seed) for name, near in spaces.items()]

    def whitened(self) -> Retrieval | None:
        """The same latents, all directions on one scale."""
        if (self.sample.table["category"] == "").all():
            return None
        mean, scale = output_scale(self.x.astype(np.float64), "whitened")
        near = nearest_ten((self.x - mean) @ scale, self.sample.drive)
        return measure_retrieval("latents, whitened", near, self.sample.table, self.sample.drive, seed=self.seed)

    def clusters(self, cluster, events: tuple[str, str]) -> Clusters | None:
        missing = [name for name in events if name not in self.sample.table]
        if missing:
            self.notes.append(f"The corpus has no metric '{missing[0]}': events of clusters were left out.")
            return None
        values = [self.sample.table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in events]
        found = measure_clusters(cluster, *values, self.sample.drive, names=events, seed=self.seed)
        if found is None:
            self.notes.append(f"'{events[0]}' is the same in every scenario, or is known in too few drives: events of "
                              "clusters were left out.")
        return found

    def leaks(self) -> tuple[tuple[Leak, ...], DriveLeak | None]:
        table, drive = self.sample.table, self.sample.drive
        context = context_features(table, self.truth)
        found = []
        for label, text in (("av_version", "AV version"), ("area", "area")):
            result = leak(table[label], self.sample.z, context.x, drive, exact=context.exact, seed=self.seed)
            if result is None:
                self.notes.append(f"There is one {text}, or one has fewer than {MIN_DRIVES} drives: whether z tells "
                                  "them apart was left out.")
            else:
                found.append(result)
        of_drive = drive_leak(table, self.sample.z, context.x, drive, exact=context.exact, seed=self.seed)
        return tuple(found), of_drive

    def pairs(self) -> list[Pair]:
        pairs = pairs_of(self.sample.table)
        if not pairs:
            self.notes.append("There are no two weeks or areas of one AV version: no shifts were compared.")
        if len(pairs) > MOST_PAIRS:
            self.notes.append(f"Of {len(pairs)} pairs of weeks and areas, {MOST_PAIRS} were compared.")
            step = len(pairs) / MOST_PAIRS
            pairs = [pairs[int(i * step)] for i in range(MOST_PAIRS)]
        return pairs

    def shift(self, pair: Pair, view: str) -> list[ShiftKept]:
        try:
            read = read_pair(self.corpus, pair, self.latents[view], self.truth, self.seed)
            return [shift_kept(pair.name, read.z, read.contexts, read.gamma_star, self.config, view)]
        except AVShiftError as error:
            self.refused.append(f"{pair.name}: {error}")
            return []

    def told_refusals(self) -> list[str]:
        """One sentence for all pairs that could not be compared, with the reason of the first."""
        names = list(dict.fromkeys(text.split(":")[0] for text in self.refused))
        if not names:
            return []
        pairs = "1 pair of cohorts was" if len(names) == 1 else f"{len(names)} pairs of cohorts were"
        return [f"{pairs} left out. {self.refused[0]}"]

    def versions(self) -> tuple[ShiftKept, ...]:
        pair = None if self.truth is None else version_pair(self.sample.table, self.truth)
        if pair is None:
            self.notes.append("No two AV versions are known to have met the same traffic: whether z tells them apart "
                              "there was left out.")
            return ()
        return tuple(result for view in self.latents for result in self.shift(pair, view))

    def stability(self, model, also, cluster, n_clusters, shifts, pairs) -> Stability | None:
        if not also:
            self.notes.append("Stability needs models of other training seeds (--also MODEL) and was left out.")
            return None
        sample, ids, points, clusters = self.sample, [model], [self.x], [cluster]
        for identity, name in also:
            _, z = self.corpus.table(sample.query, columns=["scenario_id"], latents=name)
            ids.append(identity)
            points.append(standardise(z))
            clusters.append(cut(points[-1], n_clusters, self.seed))
        pair = _clearest(shifts, pairs)
        analyses = []
        for name in [self.latents[self.view], *(name for _, name in also)] if pair else []:
            read = read_pair(self.corpus, pair, name, None, self.seed)
            analyses.append(regions_of(*read.z, self.config))
        return measure_stability(ids, points, clusters, sample.drive, pair=pair.name if pair else "", analyses=analyses,
                                 seed=self.seed)


def _clearest(shifts: Sequence[ShiftKept], pairs: Sequence[Pair]) -> Pair | None:
    """The pair with the largest moderate shift, or the largest of all: where regions are worth comparing."""
    if not shifts:
        return None
    best = max(shifts, key=lambda s: (s.verdict_z == LOCALIZE, s.gamma_z.value))
    return next(pair for pair in pairs if pair.name == best.name)


def summary(quality: Quality) -> dict:
    """What a model's card keeps of its quality."""
    return plain({"corpus": quality.fingerprint, "n": quality.n, "drives": quality.n_drives, "view": quality.view,
                  "seed": quality.seed, "trained_share": quality.trained_share,
                  "aims": [asdict(aim) for aim in quality.aims]})


def to_json(quality: Quality) -> dict:
    """The report as plain values."""
    body = asdict(quality)
    for shift in (*body["shifts"], *body["versions"]):
        del shift["drawn_z"], shift["drawn_contexts"]
    kept = quality.kept
    return plain({"schema": SCHEMA, **body, "kept": None if kept is None else asdict(kept),
                  "aims": [asdict(aim) for aim in quality.aims]})
