"""Two cohorts of a corpus, compared once for every metric and threshold that an analyst may ask for later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from avshift_core import __version__
from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError
from avshift_core.latent.cohort import Cohort, check_metric, check_pair, make_cohort
from avshift_core.latent.corpora import CorpusPair, read_pair
from avshift_core.latent.sampling import with_all_drives
from avshift_core.notebook.entries import Look, now
from avshift_core.progress import Progress, within
from avshift_core.scenario.measure.metrics import METRICS, exceedance
from avshift_core.scenario.store.corpus import Corpus, open_corpus
from avshift_core.scenario.store.manifest import Definition
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.scenario.store.rows import EXPOSURE
from avshift_core.shift.analyze import Analysis, analysis_steps

THRESHOLDS = {  # column -> what its slider offers; spread over the values that analysts set limits at
    "ttc_min_s": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0), "drac_mps2": (1.0, 2.0, 3.0, 4.0, 6.0),
    "thw_min_s": (0.5, 0.8, 1.0, 1.5, 2.0), "gap_min_m": (0.3, 0.5, 1.0, 1.5, 2.0, 3.0),
    "jerk_max_mps3": (1.0, 2.0, 3.0, 4.0, 6.0), "lateral_acceleration_max_mps2": (0.5, 1.0, 1.5, 2.0, 3.0),
    "comfort_score": (0.6, 0.8, 1.0, 1.2, 1.5, 2.0),
}
LABELS = {
    "ttc_min_s": "Time to collision", "drac_mps2": "Deceleration needed (DRAC)", "thw_min_s": "Time headway",
    "gap_min_m": "Gap", "collision": "Collision", "hard_brake": "Hard brake", "jerk_max_mps3": "Jerk",
    "lateral_acceleration_max_mps2": "Lateral acceleration", "comfort_score": "Comfort score",
    "comfort_bound_exceeded": "Comfort bound exceeded", "discomfort": "Discomfort",
}
FIRST = ("hard_brake", "discomfort", "collision")  # what is shown when nobody has chosen
NOT_EVENTS = (*EXPOSURE, "duration_s")
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # thresholds of a column that nobody has set limits for


@dataclass(frozen=True)
class MetricFamily:
    """One column as events: itself when it is 0 or 1, its exceedances otherwise.

    Attributes:
        texts: what `ell` calls each event; thresholds: () for a column that is 0 or 1 already.
    """

    column: str
    label: str
    unit: str
    direction: str
    thresholds: tuple[float, ...]
    texts: tuple[str, ...]

    def phrase(self, text: str) -> str:
        """The event in words.

        >>> MetricFamily("ttc_min_s", "Time to collision", "s", "<", (1.5,), ("ttc_min_s<1.5",)).phrase("ttc_min_s<1.5")
        'Time to collision below 1.5 s'
        """
        if not self.thresholds:
            return self.label
        threshold = self.thresholds[self.texts.index(text)]
        word = "below" if self.direction == "<" else "above"
        return f"{self.label} {word} {threshold:g}{f' {self.unit}' if self.unit not in ('', 'ratio') else ''}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """An analysis and where it comes from.

    Attributes:
        source, target: the queries as text; latents, view: as in CorpusPair.
        families: what can be chosen as metric; left_out: event -> why it cannot.
        cautions: what bears on the result, one sentence each.
    """

    analysis: Analysis
    corpus_url: str
    corpus_fingerprint: str
    source: str
    target: str
    latents: str
    view: str | None
    families: tuple[MetricFamily, ...]
    definitions: Mapping[str, Definition]
    left_out: Mapping[str, str]
    cautions: tuple[str, ...]

    @property
    def run(self) -> str:
        """Identity of data, latents, settings and engine; it stands on every page and in every export."""
        return run_of(self.analysis, self.latents)

    def look(self) -> tuple[str, Look]:
        """The corpus, and what its ledger says of this comparison."""
        columns = ", ".join(family.column for family in self.families)
        return self.corpus_url, look_of(self.analysis, self.corpus_fingerprint, self.source, self.target, self.latents,
                                        columns)

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.analysis.metrics

    def family(self, metric: str) -> MetricFamily:
        return next(family for family in self.families if metric in family.texts)

    def phrase(self, metric: str) -> str:
        """A metric in words."""
        return self.family(metric).phrase(metric)

    def pair(self, corpus: Corpus) -> CorpusPair:
        """The same for those who have the corpus at hand, such as the report."""
        return CorpusPair(self.analysis.P, self.analysis.Q, corpus, CohortQuery.parse(self.source),
                          CohortQuery.parse(self.target), self.latents, self.view, self.definitions, self.cautions)


def run_of(analysis: Analysis, latents: str) -> str:
    """Identity of an analysis of two cohorts of a corpus."""
    config = json.dumps(asdict(analysis.config))
    facts = [analysis.P.fingerprint, analysis.Q.fingerprint, latents, config, __version__]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


def look_of(analysis: Analysis, fingerprint: str, source: str, target: str, latents: str, metrics: str) -> Look:
    """An analysis of two cohorts of a corpus, as its ledger tells it.

    Args:
        fingerprint: of the corpus; source, target: queries as text; metrics: names of what was looked at.
    """
    test, config = analysis.global_test, asdict(analysis.config)
    changed = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
               for name, value in config.items() if value != getattr(AnalysisConfig, name)]
    return Look(
        now(), "comparison", source, target, latents, ", ".join(changed), run_of(analysis, latents), fingerprint,
        analysis.verdict.name, test.gamma_hat, test.gamma_lcb, test.gamma_ucb, metrics,
        hashlib.sha256(json.dumps(config).encode()).hexdigest()[:12], __version__,
    )


def comparison_steps(
    corpus: str, source: str, target: str, view: str = "full", model: str | None = None, fingerprint: str = "",
    config: Mapping | None = None,
) -> Generator[Progress, None, Comparison]:
    """Compare two cohorts of a corpus for all of its metrics.

    Args:
        source, target: queries as text; view, model: as in latent/corpora.py choose_latents.
        fingerprint: of the corpus that is meant; another one is refused, because the data has changed.
        config: settings that differ from the defaults.
    """
    yield Progress("Reading both cohorts", 0.01)
    opened = open_corpus(corpus, fingerprint=fingerprint)
    columns = [name for name in opened.metric_columns if name not in NOT_EVENTS]
    pair = read_pair(opened, source, target, metrics=columns, model=model, view=view, sums=False)
    settings = AnalysisConfig(**(config or {}))
    P, Q, families, left_out = as_events(pair, settings)
    analysis = yield from within(analysis_steps(P, Q, settings), 0.03, 1.0)
    return Comparison(
        analysis, opened.url, opened.fingerprint, str(pair.source), str(pair.target), pair.latents, pair.view, families,
        {text: replace(pair.definitions[f.column], unit="0/1", M=1.0) for f in families for text in f.texts}, left_out,
        pair.cautions,
    )


def as_events(
    pair: CorpusPair, config: AnalysisConfig
) -> tuple[Cohort, Cohort, tuple[MetricFamily, ...], dict[str, str]]:
    """Both cohorts with every metric as 0/1 events, and the measured values among the attributes."""
    check_pair(pair.P, pair.Q)  # before anything is taken of values that may not be there
    families = [_family(name, pair) for name in pair.P.ell]
    P, Q = (_with_events(cohort, families) for cohort in (pair.P, pair.Q))
    P, Q = (cohort if drawn is None else with_all_drives(cohort, pair.corpus, query)
            for cohort, drawn, query in zip((P, Q), pair.drawn, (pair.source, pair.target), strict=True))
    left_out, kept = {}, []
    for family in families:
        for text in family.texts:
            try:
                check_metric(P, Q, text, config.M)
            except AVShiftError as error:
                left_out[text] = str(error)
        texts = [text for text in family.texts if text not in left_out]
        if texts:
            thresholds = tuple(t for t, text in zip(family.thresholds, family.texts, strict=False) if text in texts)
            kept.append(replace(family, texts=tuple(texts), thresholds=thresholds))
    kept.sort(key=lambda f: FIRST.index(f.column) if f.column in FIRST else len(FIRST))
    names = [text for family in kept for text in family.texts]
    P, Q = (replace(cohort, ell={name: cohort.ell[name] for name in names}) for cohort in (P, Q))
    return P, Q, tuple(kept), left_out


def _family(name: str, pair: CorpusPair) -> MetricFamily:
    values = np.concatenate([pair.P.ell[name], pair.Q.ell[name]])
    known = values[np.isfinite(values)]
    unit = pair.definitions[name].unit
    label = LABELS.get(name, name.replace("_", " "))
    if not len(known) or np.isin(known, (0, 1)).all():
        return MetricFamily(name, label, unit, ">", (), (name,))
    metric = METRICS.get(name)
    direction = "<" if metric is not None and not metric.higher_is_worse else ">"
    thresholds = THRESHOLDS.get(name) or tuple(dict.fromkeys(
        float(f"{q:.3g}") for q in np.quantile(known, QUANTILES)))
    shown = "" if unit in ("", "0/1", "ratio") else unit.replace("m/s2", "m/s²").replace("m/s3", "m/s³")
    return MetricFamily(name, label, shown, direction, thresholds, tuple(f"{name}{direction}{t:g}" for t in thresholds))


def _with_events(cohort: Cohort, families: Sequence[MetricFamily]) -> Cohort:
    ell, values = {}, {}
    for family in families:
        if not family.thresholds:
            ell[family.column] = cohort.ell[family.column]
            continue
        values[family.column] = cohort.ell[family.column]
        for text, threshold in zip(family.texts, family.thresholds, strict=True):
            ell[text] = exceedance(cohort.ell[family.column], family.direction, threshold)
    obs = cohort.obs.assign(**{name: v for name, v in values.items() if name not in cohort.obs})
    drives = cohort.drive_ids[cohort.drive] if cohort.has_drives else None
    return make_cohort(cohort.name, cohort.z, drive_id=drives, ell=ell, obs=pd.DataFrame(obs))
