"""What is known of a simulated fleet and of no other: exact weights, and every scenario under every AV version.

It lies beside the corpus, in a folder of its own. The engine's self-tests read it; the analysis never does.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from avshift_core.errors import CorpusError
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, blocks
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.simulate.situations import PARAMETER_NAMES, ROAD_NAMES, SITUATION_NAMES
from avshift_core.scenario.store.location import Location, locate

PLAN = "truth.json"


@dataclass(frozen=True, eq=False)
class Truth:
    """Everything about a fleet.

    Attributes:
        cells: (area, period) of each column of `log_density`.
        table: one row a scenario: ids, situation, road, the parameters behind it, whether the ego or the actor did what
            the situation is about (`acted`), whether any two vehicles, not only the ego, touched (`collided`), and each
            metric under each version as `metric@version`, once every version was simulated. Where they did not act the
            corpus has a detected category, which depends on the version: weights are for cohorts of weeks and areas,
            not of categories.
        log_density: (n, cells) log p(c) of each scenario's context under the law of each cell.
        plan: the fleet's settings and what changed in which week and area.
    """

    cells: tuple[tuple[str, str], ...]
    table: pd.DataFrame
    log_density: np.ndarray
    plan: dict

    @cached_property
    def _cell(self) -> np.ndarray:
        """(n,) index of each scenario's own cell."""
        number = {cell: i for i, cell in enumerate(self.cells)}
        return np.array([number[cell] for cell in zip(self.table["area"], self.table["period"], strict=True)])

    def rows(self, cells: Sequence[tuple[str, str]]) -> np.ndarray:
        """Rows of the scenarios of these cells."""
        return np.flatnonzero(np.isin(self._cell, [self.cells.index(tuple(cell)) for cell in cells]))

    def weights(self, source: Sequence[tuple[str, str]], target: Sequence[tuple[str, str]]) -> np.ndarray:
        """Exact w*(c) = q(c) / p(c) at the rows of the source; cohorts of several cells are mixtures of their laws."""
        rows = self.rows(source)
        return np.exp(self._mixture(target)[rows] - self._mixture(source)[rows])

    def gamma_star(self, source, target) -> float:
        """Advantage of the best classifier of contexts, half of their total variation (prop:classifier_tv)."""
        w = self.weights(source, target)
        return float(np.abs(w - 1).mean() / 4)

    def mean(self, metric: str, version: str, cell: tuple[str, str]) -> float:
        """Expected metric of a version in a cell, from all scenarios of the fleet, each with its weight there.

        The weights are q_cell(c) over the fleet's mixture of laws (the balance heuristic), which are bounded.
        """
        if f"{metric}@{version}" not in self.table:
            raise CorpusError(f"The truth does not know '{metric}' under {version}. Run the fleet's 'demo' command "
                              "again, which completes it, or choose one of the demo's own metrics.")
        log_w = self._mixture([cell]) - self._mixture(self.cells)
        w = np.exp(log_w)
        return float(w @ self.table[f"{metric}@{version}"].to_numpy() / w.sum())

    def _mixture(self, cells) -> np.ndarray:
        """(n,) log density of a cohort made of these cells."""
        columns = [self.cells.index(tuple(cell)) for cell in cells]
        counts = np.array([len(self.rows([self.cells[i]])) for i in columns], dtype=float)
        return np.logaddexp.reduce(self.log_density[:, columns] + np.log(counts / counts.sum()), axis=1)


def truth_folder(url: str) -> Location:
    """Where the truth of the fleet in corpus `url` lies: beside it."""
    return locate(f"{str(url).rstrip('/')}-truth")


def plan_of(config: FleetConfig) -> dict:
    """The fleet in plain values, for people, and for the check that a fleet goes on with its own settings."""
    return {
        "scenarios": config.scenarios, "seed": config.seed, "effect_share": config.effect_share,
        "areas": {name: asdict(change) for name, change in config.areas.items()},
        "weeks": {name: {**asdict(change), "version": version} for name, (change, version) in config.weeks.items()},
        "versions": {name: asdict(policy) for name, policy in POLICIES.items()},
        "cells": [list(cell) for cell in config.cells],
    }


def begin_truth(folder: Location, config: FleetConfig) -> bool:
    """Write the plan, or check that the one there is the same; False when it is another fleet's."""
    text = folder.read(PLAN)
    if text is not None:
        return json.loads(text) == json.loads(json.dumps(plan_of(config)))
    folder.write(PLAN, (json.dumps(plan_of(config), indent=2) + "\n").encode())
    return True


def write_part(folder: Location, config: FleetConfig, block: Block, contexts: Contexts, facts: pd.DataFrame) -> None:
    """Truth of one block; facts: ids and what the simulation found, one row a context."""
    density = {f"log_density_{i}": law.log_density(contexts) for i, law in enumerate(config.laws)}
    table = facts.assign(
        situation=np.array(SITUATION_NAMES)[contexts.situation], road=np.array(ROAD_NAMES)[contexts.road],
        **{f"z_{name}": contexts.z[:, d] for d, name in enumerate(PARAMETER_NAMES)}, **density,
    )
    folder.write(part_name(block), _parquet(table))


def write_others(folder: Location, block: Block, metrics: pd.DataFrame) -> None:
    """Metrics of one block under the other versions, one row a context."""
    folder.write(others_name(block), _parquet(metrics))


def _parquet(table: pd.DataFrame) -> bytes:
    data = io.BytesIO()
    table.to_parquet(data, index=False)
    return data.getvalue()


def fleet_of(url: str) -> FleetConfig:
    """The settings that the fleet in corpus `url` was made with."""
    text = truth_folder(url).read(PLAN)
    if text is None:
        raise CorpusError(f"There is no truth beside {url}: it is not a simulated fleet. Make one with "
                          "'python -m avshift_core demo --out DIR'.")
    plan = json.loads(text)
    config = FleetConfig(plan["scenarios"], plan["seed"], plan["effect_share"])
    if json.loads(json.dumps(plan_of(config))) != plan:
        raise CorpusError(f"The fleet in {url} was made by another version of AVShift; make it anew.")
    return config


def read_truth(url: str) -> Truth:
    """Truth of the fleet in corpus `url`; without metrics where not every version was simulated yet."""
    folder, config = truth_folder(url), fleet_of(url)
    parts, others = [], []
    for block in blocks(config):
        data = folder.read(part_name(block))
        if data is None:
            raise CorpusError(f"The fleet in {url} is not finished; run the same 'demo' command again.")
        parts.append(pd.read_parquet(io.BytesIO(data)))
        data = folder.read(others_name(block))
        others += [] if data is None else [pd.read_parquet(io.BytesIO(data))]
    if len(others) == len(parts):
        parts = [pd.concat([part.drop(columns=other.columns, errors="ignore"), other], axis=1)  # 0.3 held all in one
                 for part, other in zip(parts, others, strict=True)]
    table = pd.concat(parts, ignore_index=True)
    if len(others) < len(parts):
        table = table.drop(columns=[name for name in table if "@" in name])
    names = [f"log_density_{i}" for i in range(len(config.cells))]
    return Truth(config.cells, table.drop(columns=names), table[names].to_numpy(), json.loads(folder.read(PLAN)))


def part_name(block: Block) -> str:
    return f"part-{_place(block)}.parquet"


def others_name(block: Block) -> str:
    return f"others-{_place(block)}.parquet"


def _place(block: Block) -> str:
    return f"{block.cell:02d}-{block.first_drive:06d}"
