"""All that a corpus holds of one scenario beside its states, wherever in the corpus it lies.

    record = read_record(corpus, "harbor-2026-W10-0042-000")
    record.values["category"], record.metrics["ttc_min_s"], record.has_states
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.store.corpus import ALL, Corpus
from avshift_core.scenario.store.manifest import LATENTS, STATES, Definition
from avshift_core.scenario.store.query import CohortQuery


@dataclass(frozen=True, eq=False)
class Record:
    """One row of the corpus.

    Attributes:
        values: ids and attributes, column -> str, int or float; columns without a value are left out.
        metrics: metric -> measured value, NaN where there is none; definitions: what they mean.
        part: id of the part that holds it.
        has_states: False for imported latents, which cannot be played back.
        models: latents that there are of it.
    """

    scenario_id: str
    values: Mapping[str, str | int | float]
    metrics: Mapping[str, float]
    definitions: Mapping[str, Definition]
    part: str
    has_states: bool
    models: tuple[str, ...]


def read_record(corpus: Corpus, scenario_id: str, query: CohortQuery | str = ALL) -> Record:
    """The record of one scenario; CorpusError where there is none.

    Args:
        query: narrows where it is looked for, which saves time.
    """
    part = corpus.part_of(scenario_id, query)
    definitions = dict(corpus.manifest.metric_sets[part.metric_set])
    columns = [name for name in corpus.cohort_columns if name in corpus.manifest.column_sets[part.column_set]]
    row = corpus.table(columns=columns, metrics=list(definitions), part=part.id, ids=[scenario_id]).iloc[0]
    values = {name: _plain(row[name]) for name in columns}
    return Record(
        scenario_id, {name: value for name, value in values.items() if value is not None},
        {name: float(row[name]) for name in definitions}, definitions, part.id, STATES in part.files,
        tuple(model for model in corpus.models if f"{LATENTS}/{model}" in part.files),
    )


def read_latent(corpus: Corpus, record: Record, model: str) -> np.ndarray:
    """(d,) raw latent of one scenario."""
    return corpus.table(columns=["scenario_id"], latents=model, part=record.part, ids=[record.scenario_id])[1][0]


def _plain(value) -> str | int | float | None:
    """
    >>> _plain(np.float32(0.5)), _plain(np.nan), _plain("")
    (0.5, None, None)
    """
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value or value == "" else value
