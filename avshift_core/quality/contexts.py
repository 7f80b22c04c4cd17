"""What explains a scenario without the encoder: the true contexts of a simulated fleet, or readable attributes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.progress import Progress
from avshift_core.scenario.simulate.demo import versions_steps
from avshift_core.scenario.simulate.situations import PARAMETER_NAMES, ROAD_NAMES, SITUATION_NAMES
from avshift_core.scenario.simulate.truth import PLAN, Truth, read_truth, truth_folder

START_NUMBERS = ("ego_speed_start_mps", "n_lanes", "speed_limit_mps", "n_agents", "hour")
START_CLASSES = ("road_type",)
SITUATION_SCALE, ROAD_SCALE = 3.0, 1.5  # as in tests/scenario/simulate/test_laboratory.py: kinds lie apart


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """x: (n, f) one row a scenario; exact: True for the true contexts, False for readable attributes."""

    x: np.ndarray
    exact: bool


def find_truth(url: str) -> Truth | None:
    """The truth beside a corpus, None where there is none."""
    return read_truth(url) if truth_folder(url).read(PLAN) is not None else None


def whole_truth_steps(url: str, scheduler: str | None = None) -> Generator[Progress, None, Truth | None]:
    """The truth beside a corpus with every scenario under every AV version, which is simulated where it was not yet."""
    if truth_folder(url).read(PLAN) is None:
        return None
    yield from versions_steps(url, scheduler=scheduler)
    return read_truth(url)


def true_contexts(truth: Truth, scenario_id) -> np.ndarray:
    """(n, 36) parameters, and situation and road as indicators, of these scenarios."""
    table = truth.table.set_index("scenario_id").loc[list(scenario_id)]
    situation = table["situation"].to_numpy(dtype=str)[:, None] == np.array(SITUATION_NAMES)
    road = table["road"].to_numpy(dtype=str)[:, None] == np.array(ROAD_NAMES)
    parameters = table[[f"z_{name}" for name in PARAMETER_NAMES]].to_numpy()
    return np.concatenate([parameters, SITUATION_SCALE * situation, ROAD_SCALE * road], axis=1)


def readable_contexts(table: pd.DataFrame) -> np.ndarray:
    """(n, f) what people can read about the start of a scene; missing numbers become the mean."""
    parts = []
    for name in START_NUMBERS:
        if name in table:
            value = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
            known = np.isfinite(value)
            value = np.where(known, value, value[known].mean() if known.any() else 0.0)
            parts.append(((value - value.mean()) / max(value.std(), 1e-9))[:, None])
    for name in START_CLASSES:
        if name in table:
            parts.append(ROAD_SCALE * pd.get_dummies(table[name].astype(str)).to_numpy(dtype=float))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(table), 1))


def context_features(table: pd.DataFrame, truth: Truth | None) -> ContextFeatures:
    """The true contexts of a simulated fleet, readable attributes of any other."""
    if truth is not None:
        return ContextFeatures(true_contexts(truth, table["scenario_id"]), True)
    return ContextFeatures(readable_contexts(table), False)


def same_law(truth: Truth, one: str, other: str) -> bool:
    """Whether two periods of a simulated fleet have the same traffic, whatever the AV."""
    laws = [{k: v for k, v in truth.plan["weeks"][period].items() if k not in ("version", "text")}
            for period in (one, other)]
    return laws[0] == laws[1]
