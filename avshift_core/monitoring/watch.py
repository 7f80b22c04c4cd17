"""A corpus under watch: the monitor of its weeks, and after an alarm where the traffic differs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp

import pandas as pd

from avshift_core.comparison import FIRST, LABELS, NOT_EVENTS, THRESHOLDS
from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError, CohortError
from avshift_core.latent.cautions import READ_VERSIONS, VERSIONS_DIFFER
from avshift_core.latent.corpora import OF_ENCODER, choose_latents, metric_definitions, read_pair
from avshift_core.latent.history import History, read_history
from avshift_core.progress import Progress, within
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import Corpus, open_corpus
from avshift_core.scenario.store.query import CohortQuery, as_query
from avshift_core.scenario.store.thresholds import parse_metric
from avshift_core.shift.analyze import analysis_steps
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.monitor import TRAFFIC, Monitor, MonitorConfig, Stream, monitor_steps
from avshift_core.shift.regions import describe_regions

SCHEMA = 1


@dataclass(frozen=True)
class Place:
    """A region in which the alarm week differs from the reference; p, q: its shares of the two."""

    name: str
    more: bool
    p: Estimate
    q: Estimate
    ratio: Estimate | None


@dataclass(frozen=True, eq=False)
class Watch:
    """A monitor and where it comes from.

    Attributes:
        reference, where: the queries as text; latents, view: as in CorpusPair, None where no traffic is watched.
        phrases: stream -> what people call it.
        verdict: of the comparison of the reference with the first alarm week, in one sentence, or why there is none; ""
            without an alarm. places: the regions it found.
        cautions: what bears on the result, one sentence each.
    """

    monitor: Monitor
    corpus_url: str
    corpus_fingerprint: str
    reference: str
    where: str
    latents: str | None
    view: str | None
    phrases: Mapping[str, str]
    verdict: str
    places: tuple[Place, ...]
    cautions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What to believe, in words."""
        m, n = self.monitor, len(self.monitor.watched)
        if not m.alarms:
            return f"No alarm after {n} {'week' if n == 1 else 'weeks'}."
        said = []
        for week in dict.fromkeys(m.alarms.values()):
            names = ["Traffic" if name == TRAFFIC else f"“{self.phrases[name]}”"
                     for name, first in m.alarms.items() if first == week]
            listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
            have = "has" if len(names) == 1 else "have"
            said.append(f"{listed} {have} changed: first alarm in {m.weeks[week].period}.")
        return " ".join(said)

    @property
    def cohorts(self) -> tuple[CohortQuery, CohortQuery] | None:
        """P and Q of the comparison that tells more: the reference, and the week of the first alarm."""
        m = self.monitor
        if m.first_alarm is None:
            return None
        return cohorts_of(self.reference, self.where, m.weeks[m.first_alarm].period)

    def week_rows(self) -> list[dict]:
        """One row a week: what it holds, and the wealth of every stream at its end."""
        m, rows = self.monitor, []
        for k, week in enumerate(m.weeks):
            row = {"week": week.period, "reference": week.reference, "drives": week.drives,
                   "scenarios": week.scenarios, "av_versions": "|".join(week.versions)}
            for s in m.streams:
                if s.rates:
                    row |= {f"{s.name}: mean": s.rates[k].mu, f"{s.name}: lo": s.rates[k].lo,
                            f"{s.name}: hi": s.rates[k].hi}
                row |= {f"{s.name}: ranked drives": s.ranked[k],
                        f"{s.name}: wealth": None if week.reference else exp(s.at_end_of(k)),
                        f"{s.name}: alarm": k == m.alarms.get(s.name)}
            rows.append(row)
        return rows

    def drive_table(self) -> pd.DataFrame:
        """One row a ranked drive after the reference and stream."""
        weeks = [week.period for week in self.monitor.weeks]
        return pd.concat([pd.DataFrame({
            "stream": s.name, "number": range(1, len(s.week) + 1), "week": [weeks[k] for k in s.week],
            "p_value": s.p_value, "log_wealth": s.log_wealth}) for s in self.monitor.streams], ignore_index=True)

    def report(self) -> dict:
        """All of it as plain values."""
        m = self.monitor
        return {
            "schema": SCHEMA, "sentence": self.sentence, "alarm": bool(m.alarms),
            "first_alarm": None if m.first_alarm is None else m.weeks[m.first_alarm].period,
            "corpus": {"url": self.corpus_url, "fingerprint": self.corpus_fingerprint, "latents": self.latents,
                       "view": self.view},
            "reference": self.reference, "where": self.where, "config": asdict(m.config), "threshold": m.threshold,
            "weeks": [asdict(week) for week in m.weeks],
            "streams": [self._stream(s) for s in m.streams],
            "comparison": None if self.cohorts is None else {
                "source": str(self.cohorts[0]), "target": str(self.cohorts[1]), "verdict": self.verdict,
                "regions": [asdict(place) for place in self.places]},
            "cautions": list(self.cautions),
        }

    def _stream(self, s: Stream) -> dict:
        m = self.monitor
        alarm = m.alarms.get(s.name)
        return {
            "name": s.name, "phrase": self.phrases[s.name], "largest_wealth": exp(s.largest),
            "p_anytime": m.p_anytime(s), "first_alarm": None if alarm is None else m.weeks[alarm].period,
            "ranked_drives": s.ranked, "rates": [asdict(rate) for rate in s.rates],
            "wealth_by_week": {m.weeks[k].period: exp(s.at_end_of(k)) for k in m.watched},
            "week": [m.weeks[k].period for k in s.week], "p_value": s.p_value, "log_wealth": s.log_wealth,
        }


def cohorts_of(reference: str, where: str, week: str) -> tuple[CohortQuery, CohortQuery]:
    """Reference and week as the cohorts P and Q of a comparison.

    >>> [str(query) for query in cohorts_of("period=2026-W10", "area=harbor", "2026-W12")]
    ['period=2026-W10,area=harbor', 'period=2026-W12,area=harbor']
    """
    chosen = as_query(where)
    return replace(chosen, period=as_query(reference).period), replace(chosen, period=(week,))


def watch_steps(
    corpus: str, reference: str, where: str = "", metrics: Sequence[str] = (), view: str = "context",
    model: str | None = None, traffic: bool = True, alpha: float = 0.05, seed: int = 0, classifier: str = "auto",
    unit: str = "drive", fingerprint: str = "",
) -> Generator[Progress, None, Watch]:
    """Watch a corpus since its reference.

    Args:
        reference, where, metrics, unit: as in latent/history.py read_history; view, model: as in choose_latents.
        traffic: whether to watch the traffic; alpha, seed, classifier: as in MonitorConfig.
        fingerprint: of the corpus that is meant; another one is refused, because the data has changed.
    """
    config = MonitorConfig(alpha, seed, classifier, unit)
    yield Progress("Reading the weeks", 0.01)
    opened = open_corpus(corpus)
    if fingerprint and opened.fingerprint != fingerprint:
        raise AVShiftError(f"{corpus} has changed since this was asked for. Open it again.")
    if len(set(metrics)) < len(metrics):
        raise CohortError(f"A metric is named twice in {', '.join(metrics)}; each is watched once.")
    if TRAFFIC in metrics:
        raise CohortError("'traffic' is watched by its own name; call the metric by another.")
    latents = choose_latents(opened, model, view) if traffic else None
    history = read_history(opened, reference, where, metrics=metrics, latents=latents, unit=unit)
    monitor = yield from within(monitor_steps(history, config, traffic=traffic), 0.05, 0.75)
    found = latents and OF_ENCODER.fullmatch(latents)
    shown = found[2] if found else None
    verdict, places, more = "", (), ()
    if monitor.first_alarm is not None:
        pair = cohorts_of(reference, where, monitor.weeks[monitor.first_alarm].period)
        verdict, places, more = yield from within(_where_steps(opened, pair, model, view, seed), 0.75, 1.0, "Where: ")
    return Watch(
        monitor, opened.url, opened.fingerprint, str(as_query(reference)), str(as_query(where)), latents, shown,
        {s.name: "Traffic" if s.name == TRAFFIC else phrase_of(opened, s.name) for s in monitor.streams}, verdict,
        places, (*history.cautions, *_about_versions(history, traffic, shown), *more),
    )


def _where_steps(
    corpus: Corpus, pair: tuple[CohortQuery, CohortQuery], model: str | None, view: str, seed: int
) -> Generator[Progress, None, tuple[str, tuple[Place, ...], tuple[str, ...]]]:
    """The ordinary comparison of the reference with the alarm week: verdict, regions, and what bears on them."""
    try:
        cohorts = read_pair(corpus, *pair, model=model, view=view)
        analysis = yield from analysis_steps(cohorts.P, cohorts.Q, AnalysisConfig(seed=seed), metrics=())
    except AVShiftError as error:  # too small for a comparison, or no latents: the alarm stands all the same
        return f"The two could not be compared further. {error}", (), ()
    places = tuple(Place(f.name, f.more_in == "Q", f.p, f.q, f.ratio) for f in describe_regions(analysis).regions)
    cautions = tuple(c for c in cohorts.cautions if not c.startswith(VERSIONS_DIFFER))
    return f"{analysis.verdict.title}. {analysis.verdict.sentence}", places, cautions


def phrase_of(corpus: Corpus, metric: str) -> str:
    """A metric in words."""
    choice = parse_metric(metric, corpus.metric_columns, corpus.cohort_columns)
    label = LABELS.get(choice.column, choice.column.replace("_", " "))
    if choice.above is None:
        return label
    unit = metric_definitions(corpus, [CohortQuery()], [choice.column])[choice.column].unit
    shown = "" if unit in ("", "0/1", "ratio") else f" {unit}".replace("m/s2", "m/s²").replace("m/s3", "m/s³")
    return f"{label} {'above' if choice.above else 'below'} {choice.threshold:g}{shown}"


def metric_choices(corpus: Corpus) -> dict[str, str]:
    """Metrics of a corpus that can be watched -> what people call them, the usual ones first."""
    texts = []
    for column in sorted((c for c in corpus.metric_columns if c not in NOT_EVENTS), key=lambda c: c not in FIRST):
        below = column in METRICS and not METRICS[column].higher_is_worse
        texts += [f"{column}{'<' if below else '>'}{t:g}" for t in THRESHOLDS.get(column, ())] or [column]
    return {text: phrase_of(corpus, text) for text in texts}


def _about_versions(history: History, traffic: bool, view: str | None) -> list[str]:
    """Metrics, and latents of whole scenarios, move with the AV version."""
    versions = sorted({version for week in history.versions for version in week if version != UNKNOWN})
    if len(versions) < 2:
        return []
    said = []
    if history.ell:
        said.append(f"{VERSIONS_DIFFER} ({', '.join(versions)}), so a change of a metric may be the car's. Watch one "
                    "version with a filter such as av_version=..., or compare the two in the same traffic.")
    if traffic and view != "context":
        said.append(f"{VERSIONS_DIFFER} ({', '.join(versions)}). {READ_VERSIONS[view]}")
    return said


def default_view(corpus: Corpus, model: str | None = None) -> str:
    """The context, in which another AV version alone is no change; the full view of latents that have no other."""
    shown = {found[2] for name in corpus.models if (found := OF_ENCODER.fullmatch(name))}
    return "context" if "context" in shown and model not in corpus.models else "full"
