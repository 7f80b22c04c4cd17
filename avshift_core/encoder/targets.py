"""What the attribute heads learn to say of a scenario: columns of the corpus. None of them is an input."""

from __future__ import annotations

import numpy as np
import pandas as pd

from avshift_core.errors import ModelError
from avshift_core.scenario.schema import AGENT_TYPES, CATEGORIES
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.scenario.view import TensorView

# Interaction and surroundings; nothing that says how well the AV drove (braking, comfort, collisions).
METRICS = ("ttc_min_s", "thw_min_s", "gap_min_m", "drac_mps2")
NUMBERS = (
    *METRICS, "cutin_speed_mps", "cutin_distance_m", "cutin_length_m", "actor_distance_min_m", "n_agents",
    "n_agents_near", "n_pedestrians", "n_large", "n_lanes", "speed_limit_mps",
)
CLASSES: dict[str, tuple[str, ...]] = {
    "category": CATEGORIES,
    "turn_type": ("straight", "left", "right", "u_turn"),
    "road_type": ("work_zone", "junction", "fast_road", "multi_lane", "single_lane"),
    "actor_type": AGENT_TYPES,
}
COLUMNS = (*NUMBERS, *CLASSES)
N_EXTRA = len(COLUMNS) + 1  # numbers, classes, and which agent the category is about
NOT_GIVEN = -1


def read_columns(corpus, query: CohortQuery, part: str) -> pd.DataFrame:
    """The targets of a query's scenarios of one part, in its order, and `actor`; what nobody measured is left out."""
    known = set(corpus.cohort_columns)
    metrics = [name for name in METRICS if name in corpus.metric_columns]
    wanted = ["scenario_id", "drive_id", *(name for name in (*COLUMNS, "actor") if name in known)]
    if "category" not in known or "actor" not in known:
        raise ModelError(f"{corpus.url} has no scenarios with states and categories, so nothing can be learned from "
                         "it. Import logs, or make a fleet with 'python -m avshift_core demo'.")
    return corpus.table(query, columns=wanted, metrics=metrics, part=part)


def extra_of(table: pd.DataFrame, view: TensorView) -> np.ndarray:
    """(n, N_EXTRA) float32: NUMBERS (NaN where there is none), CLASSES and the actor's place (NOT_GIVEN where none)."""
    n = len(table)
    numbers = [table[name].to_numpy(np.float64, na_value=np.nan) if name in table else np.full(n, np.nan)
               for name in NUMBERS]
    classes = [_codes(table[name], values) if name in table else np.full(n, NOT_GIVEN)
               for name, values in CLASSES.items()]
    actor = table["actor"].to_numpy(np.float64, na_value=NOT_GIVEN)
    return np.stack([*numbers, *classes, _place_of(actor, view)], axis=1).astype(np.float32)


def _codes(column: pd.Series, values: tuple[str, ...]) -> np.ndarray:
    """(n,) position of each value, NOT_GIVEN for none and for unknown ones."""
    return pd.Index(values).get_indexer(column)


def _place_of(actor: np.ndarray, view: TensorView) -> np.ndarray:
    """(n,) place of the actor among the agents that the view shows of its scene."""
    hit = (view.agent_index == actor[:, None]) & view.agent_valid & (actor >= 0)[:, None]
    place = (view.agent_valid.cumsum(axis=1) - 1)[np.arange(len(actor)), hit.argmax(axis=1)] if hit.shape[1] else 0
    return np.where(hit.any(axis=1), place, NOT_GIVEN)
