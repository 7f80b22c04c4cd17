"""A stored corpus -> Cohort: two queries and one set of latents, with what a reader must know of the pair.

    corpus = open_corpus("fleet")
    pair = read_pair(corpus, "period=2026-W10,area=harbor", "period=2026-W11,area=harbor", metrics=["discomfort"])
    analysis = analyze(pair.P, pair.Q)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from avshift_core.config import VIEWS
from avshift_core.encoder import weights
from avshift_core.errors import CohortError, CorpusError
from avshift_core.latent.cautions import about_rate, about_training, about_versions
from avshift_core.latent.cohort import Cohort, make_cohort
from avshift_core.latent.sampling import MOST, Drawn, draw_drives, with_all_drives
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.manifest import STATES, Definition
from avshift_core.scenario.store.query import CohortQuery, as_query
from avshift_core.scenario.store.thresholds import parse_metric

DRIVE, SCENARIO = "drive_id", "scenario_id"
NAMED = 3  # values of a column that a cohort's name lists
OF_ENCODER = re.compile(rf"([0-9a-f]{{16}})\.({'|'.join(VIEWS)})")  # weights.latents_name; all others are imported


@dataclass(frozen=True, eq=False)
class CorpusPair:
    """Two cohorts of one corpus, and where they come from.

    Attributes:
        latents: what the corpus calls the latents of both cohorts.
        view: what of a scenario the latents show; None for imported ones, of which nobody knows.
        definitions: metric -> what its values mean, with M = 1 for an exceedance.
        cautions: what is no error and yet bears on the result, one sentence each.
        drawn: of P and of Q, what a sample was drawn from; None for a cohort that is whole.
    """

    P: Cohort
    Q: Cohort
    corpus: Corpus
    source: CohortQuery
    target: CohortQuery
    latents: str
    view: str | None
    definitions: Mapping[str, Definition]
    cautions: tuple[str, ...]
    drawn: tuple[Drawn | None, Drawn | None] = (None, None)


def read_pair(
    corpus: Corpus, source: CohortQuery | str, target: CohortQuery | str, *, metrics: Sequence[str] = (),
    model: str | None = None, view: str = "full", most: int = MOST, sums: bool = True,
) -> CorpusPair:
    """Both cohorts of a comparison, with the same latents and without a scenario in common.

    Args:
        metrics: as in Corpus.table.
        model, view: as in choose_latents.
        most: scenarios of a cohort beyond which drives are drawn from it.
        sums: whether to read the sums of the drives that were not drawn; False for who adds them later.
    """
    queries = source, target = as_query(source), as_query(target)
    if source == target:
        raise CohortError(f"Source and target are both '{cohort_name(source)}'; choose two different cohorts.")
    latents = choose_latents(corpus, model, view)
    definitions = metric_definitions(corpus, queries, metrics)
    names = [cohort_name(query) for query in queries]
    drawn = [draw_drives(corpus, query, name, most) for query, name in zip(queries, names, strict=True)]
    P, Q = (cohort_of(corpus, query, metrics=metrics, latents=latents, name=name)
            for (query, _), name in zip(drawn, names, strict=True))
    check_disjoint(P, Q)
    samples = tuple(sample for _, sample in drawn)
    if sums:
        P, Q = (cohort if sample is None else with_all_drives(cohort, corpus, query)
                for cohort, sample, query in zip((P, Q), samples, queries, strict=True))
    found = OF_ENCODER.fullmatch(latents)
    states = [{part.files[STATES].sha256 for part in corpus.parts if part.admits(query) and STATES in part.files}
              for query in queries]
    cautions = (
        *(sample.caution(name) for sample, name in zip(samples, names, strict=True) if sample is not None),
        *about_versions(P, Q, found and found[2]),
        *about_training(P, Q, states, _card_at_hand(found and found[1], model)),
        *about_rate(P, Q, [name for name, definition in definitions.items() if definition.needs_hz]),
    )
    return CorpusPair(P, Q, corpus, source, target, latents, found and found[2], definitions, cautions, samples)


def cohort_of(
    corpus: Corpus, query: CohortQuery | str, *, metrics: Sequence[str] = (), latents: str | None = None, z=None,
    name: str | None = None,
) -> Cohort:
    """One cohort of a corpus.

    Args:
        metrics: as in Corpus.table, also exceedances such as `ttc_min_s<1.5`; every other column becomes an attribute.
        latents: one of `corpus.models`; or z: (n, d) latents at hand, in the order of the corpus.
        name: what the cohort is called in results; the query's values without it.
    """
    query = as_query(query)
    name = name or cohort_name(query)
    table = corpus.table(query, metrics=metrics, latents=latents)
    table, z = table if z is None else (table, z)
    unknown = int((table[DRIVE] == UNKNOWN).sum())
    if 0 < unknown < len(table):
        raise CohortError(f"Cohort '{name}' has {unknown:,} of {len(table):,} scenarios without a drive id, and bounds "
                          "count drives. Narrow the query to scenarios that all have one, or none; or import these "
                          "again with drive ids.")
    return make_cohort(
        name, z, drive_id=None if unknown else table[DRIVE].to_numpy(), ell={m: table[m].to_numpy() for m in metrics},
        obs=table.drop(columns=list({DRIVE, *metrics})),
    )


def cohort_name(query: CohortQuery) -> str:
    """What a reader calls the scenarios of a query.

    >>> cohort_name(CohortQuery.parse("period=2026-W10|2026-W11,area=harbor,hour=8"))
    '2026-W10+2026-W11 harbor hour 8'
    >>> cohort_name(CohortQuery(drive_id=["a", "b", "c", "d"])), cohort_name(CohortQuery())
    ('4 values of drive_id', 'all scenarios')
    """
    words = [
        f"{len(values)} values of {column}" if len(values) > NAMED else
        f"{'hour ' if column == 'hour' else ''}{'+'.join(map(str, values))}"
        for column, values in query.chosen().items()
    ]
    return " ".join(words) or "all scenarios"


def choose_latents(corpus: Corpus, model: str | None = None, view: str = "full") -> str:
    """Which latents of a corpus to use: one name, never a mixture.

    Args:
        model: id or folder of a model, or the name of imported latents. Without it the only latents of this view;
            among several those of the shipped model.
        view: one of VIEWS; imported latents count as `full`.
    """
    names, encode = list(corpus.models), f"`python -m avshift_core encode {corpus.url}`"
    if not names:
        raise CorpusError(f"{corpus.url} has no latents yet. Run {encode} first." if corpus.n else
                          f"{corpus.url} holds no scenarios. Import some first.")
    if model is not None:
        return _named_latents(corpus, model, view)
    of_view = [name for name in names if _shows(name, view)]
    if not of_view and not any(OF_ENCODER.fullmatch(name) for name in names) and not any(
            STATES in part.files for part in corpus.parts):
        raise CorpusError(f"{corpus.url} holds ready-made latents ({', '.join(names)}) and no states, so there is no "
                          f"view '{view}' of its scenarios. Leave out --view.")
    if not of_view:
        raise CorpusError(f"{corpus.url} has no latents of the view '{view}'; found {', '.join(names)}. Run {encode} "
                          "first, or choose another view.")
    shipped = weights.latents_name(_shipped_card().get("model"), view)
    if len(of_view) > 1 and shipped not in of_view:
        raise CorpusError(f"{corpus.url} has several latents of the view '{view}', and latents of different models "
                          f"cannot be compared: {', '.join(of_view)}. Choose one with --model.")
    return of_view[0] if len(of_view) == 1 else shipped


def known_views(corpus: Corpus) -> tuple[str, ...]:
    """Views that latents of an encoder show; what imported latents show nobody knows."""
    found = {match[2] for name in corpus.models if (match := OF_ENCODER.fullmatch(name))}
    return tuple(view for view in VIEWS if view in found)


def metric_definitions(
    corpus: Corpus, queries: Sequence[CohortQuery], metrics: Sequence[str]
) -> dict[str, Definition]:
    """What the values of each metric mean in all cohorts; refused when two cohorts were measured by different versions.

    An exceedance lies in [0, 1]; M is None for attributes and for metrics of which nobody said it.
    """
    parts = [part for part in corpus.parts if any(part.admits(query) for query in queries)]
    sets = [corpus.manifest.metric_sets[i] for i in sorted({part.metric_set for part in parts})]
    found = {}
    for text in metrics:
        choice = parse_metric(text, corpus.metric_columns, corpus.cohort_columns)
        definitions = [group[choice.column] for group in sets if choice.measured and choice.column in group]
        versions = sorted({definition.version for definition in definitions})
        if len(versions) > 1:
            raise CorpusError(f"Metric '{choice.column}' was measured by versions {', '.join(map(str, versions))} of "
                              "its definition in these cohorts; they cannot be compared. Import all of them again.")
        definition = definitions[-1] if definitions else Definition()
        found[text] = definition if choice.above is None else replace(definition, unit="0/1", M=1.0)
    return found


def check_disjoint(P: Cohort, Q: Cohort) -> None:
    """Refuse two cohorts of a corpus that share scenarios."""
    common = sorted(set(P.obs[SCENARIO]) & set(Q.obs[SCENARIO]))
    if common:
        raise CohortError(f"'{P.name}' and '{Q.name}' have {len(common):,} scenarios in common (the first: "
                          f"'{common[0]}'), which hides a shift. Narrow one so that no scenario belongs to both.")


def _shows(latents: str, view: str) -> bool:
    found = OF_ENCODER.fullmatch(latents)
    return (found[2] if found else VIEWS[0]) == view


def _named_latents(corpus: Corpus, model: str, view: str) -> str:
    """Imported latents of this name, or those of the model with this id or in this folder."""
    if model in corpus.models:
        if not _shows(model, view):
            raise CorpusError(f"Latents '{model}' do not show the view '{view}'. Give the model's id alone, or choose "
                              "another view.")
        return model
    card = weights.read_card(model) if Path(model).is_dir() else {}
    name = weights.latents_name(card.get("model", model), view)
    if name not in corpus.models:
        advice = f"Run `python -m avshift_core encode {corpus.url} --model {model}` first" if card else \
            "Give one of these ids, or the folder of a model that the corpus was encoded with"
        raise CorpusError(f"{corpus.url} has no latents '{name}'; found {', '.join(corpus.models)}. {advice}.")
    return name


def _card_at_hand(model_id: str | None, model: str | None) -> dict:
    """The card of the model behind the latents, {} where only its id is known."""
    if model_id is None:
        return {}
    cards = [_shipped_card(), weights.read_card(model) if model is not None and Path(model).is_dir() else {}]
    return next((card for card in cards if card.get("model") == model_id), {})


def _shipped_card() -> dict:
    return weights.read_card() if weights.SHIPPED.is_dir() else {}
