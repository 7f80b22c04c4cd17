"""One row a scenario: ids and attributes (`meta`), metrics and exposure (`metrics`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from avshift_core.errors import CorpusError
from avshift_core.scenario.measure.metrics import low_rate
from avshift_core.scenario.schema import ID_FIELDS, ScenarioBatch

EXPOSURE = ("low_rate", "distance_km", "duration_h")
RESERVED = (*ID_FIELDS, "source", *EXPOSURE, "filename", "file_index", "file_row_number")  # the last are DuckDB's


def meta_table(batch: ScenarioBatch, attributes: Mapping[str, np.ndarray], labels: Sequence[str]) -> pa.Table:
    """Ids, what the states look like and where they come from, then the attributes."""
    columns = {name: [getattr(ids, name) for ids in batch.ids] for name in ID_FIELDS}
    columns |= {
        "n_steps": batch.n_steps, "n_agents": batch.n_agents, "duration_s": batch.t_s[:, -1] - batch.t_s[:, 0],
        "rate_hz": batch.rate_hz, "ego_missing_steps": batch.n_steps - batch.ego_valid.sum(axis=1, dtype=np.int32),
        "derived": [",".join(names) for names in batch.derived], "source": labels,
    }
    return _table(columns, attributes, batch.n)


def metrics_table(batch: ScenarioBatch, metrics: Mapping[str, np.ndarray]) -> pa.Table:
    """Scenario ids, one column a metric, and the exposure that rates are taken over."""
    return _metrics([ids.scenario_id for ids in batch.ids], metrics, low_rate(batch))


def plain_meta_table(ids: pd.DataFrame, attributes: pd.DataFrame, labels: Sequence[str]) -> pa.Table:
    """As meta_table, for scenarios that come without states."""
    return _table({**{name: ids[name] for name in ID_FIELDS}, "source": labels}, attributes, len(ids))


def plain_metrics_table(ids: pd.DataFrame, metrics: Mapping[str, np.ndarray]) -> pa.Table:
    """As metrics_table, for scenarios that come without states: nobody knows their rate."""
    return _metrics(ids["scenario_id"], metrics, np.zeros(len(ids), bool))


def _metrics(ids: Sequence[str], metrics: Mapping[str, np.ndarray], low: np.ndarray) -> pa.Table:
    missing = np.full(len(ids), np.nan)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in metrics.items()}
    duration_h = columns.get("duration_s", missing) / 3600
    exposure = {"low_rate": low, "distance_km": columns.pop("distance_km", missing), "duration_h": duration_h}
    return _table({"scenario_id": ids, **exposure}, columns, len(ids))


def _table(columns: Mapping, more: Mapping, n: int) -> pa.Table:
    """More may replace what is known of the states, but no id, no source and no exposure."""
    _check_names([str(name) for name in more])
    columns = {**columns, **{str(name): more[name] for name in more}}
    for name, values in columns.items():
        if len(values) != n:
            raise CorpusError(f"'{name}' has {len(values):,} values for {n:,} scenarios; one each is needed.")
    try:
        return pa.table({name: pa.array(values) for name, values in columns.items()})
    except (pa.ArrowException, TypeError) as error:
        raise CorpusError(f"A column mixes numbers and text: {str(error).splitlines()[0]}. Use one kind.") from None


def _check_names(names: Sequence[str]) -> None:
    """DuckDB does not tell upper from lower case, so two columns may not differ by that alone."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in RESERVED:
            raise CorpusError(f"A column is called '{name}', which the corpus uses itself. Rename it.")
        if name.lower() in seen:
            raise CorpusError(f"Columns '{seen[name.lower()]}' and '{name}' differ only in case. Rename one of them.")
        seen[name.lower()] = name
