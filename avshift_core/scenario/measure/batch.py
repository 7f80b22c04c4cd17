"""A batch of scenarios -> its categories, attributes and metrics, computed once from the native-rate states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from avshift_core.scenario.measure.attributes import compute_attributes
from avshift_core.scenario.measure.categories import detect
from avshift_core.scenario.measure.interaction import interact
from avshift_core.scenario.measure.metrics import compute_metrics
from avshift_core.scenario.schema import CATEGORIES, ScenarioBatch


@dataclass(frozen=True, eq=False)
class Measured:
    """What the store takes: every scenario has a category now; attributes and metrics are name -> (n,)."""

    batch: ScenarioBatch
    attributes: Mapping[str, np.ndarray]
    metrics: Mapping[str, np.ndarray]


def measure(batch: ScenarioBatch) -> Measured:
    """Detect what the log did not name, and compute attributes and metrics."""
    interaction = interact(batch)
    detected = detect(batch, interaction)
    ids = tuple(item if item.category else replace(item, category=CATEGORIES[category])
                for item, category in zip(batch.ids, detected.category.tolist(), strict=True))
    batch = replace(batch, ids=ids)
    return Measured(batch, compute_attributes(batch, detected, interaction), compute_metrics(batch, interaction))
