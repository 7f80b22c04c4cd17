"""The demo fleet as a corpus, with its truth beside it: made block by block, and gone on with after a stop."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import CorpusError
from avshift_core.parallel import check_jobs, in_order
from avshift_core.progress import Progress
from avshift_core.scenario.measure.batch import Measured, measure
from avshift_core.scenario.measure.metrics import compute_metrics
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, blocks, draw, simulate
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.simulate.truth import PLAN, begin_truth, part_name, truth_folder, write_part
from avshift_core.scenario.store.location import Location
from avshift_core.scenario.store.writer import create_or_open


@dataclass(frozen=True, eq=False)
class MadeBlock:
    """One block, simulated and measured; facts: one row a context, for the truth."""

    contexts: Contexts
    measured: tuple[Measured, ...]
    facts: pd.DataFrame


def demo_steps(url: str, config: FleetConfig, *, jobs: int | None = None) -> Generator[Progress, None, int]:
    """Make the fleet; the last value is how many scenarios were added. A fleet that is there already is left alone."""
    check_jobs(jobs)
    len(config.laws)  # settings outside of their range are refused here, before anything is written
    folder = truth_folder(url)
    with create_or_open(url) as writer:
        _begin(folder, config, url, new=not writer.manifest.n)
        todo = [block for block in blocks(config) if not (writer.done(block.key) and _has_truth(folder, block))]
        done = config.scenarios - sum(block.n for block in todo)
        added = 0
        for block, made in zip(todo, in_order(partial(make_block, config), todo, jobs), strict=True):
            write_part(folder, config, block, made.contexts, made.facts)
            if not writer.done(block.key):
                for part in made.measured:
                    writer.add(part.batch, part.attributes, part.metrics, source=block.key, label="demo fleet")
                writer.commit()
                added += block.n
            done += block.n
            area, period = config.cells[block.cell]
            yield Progress(f"{period} {area}: {done:,} scenarios", done / config.scenarios)
    return added


def _begin(folder: Location, config: FleetConfig, url: str, *, new: bool) -> None:
    """Write the plan of a new fleet, whatever truth lies there; an old one goes on only with its own."""
    if new:
        folder.remove([PLAN])
    try:
        same = (new or folder.read(PLAN) is not None) and begin_truth(folder, config)
    except ValueError:
        raise CorpusError(f"The truth in {folder.url} is damaged. Remove {folder.url} and {url}, and make the fleet "
                          "anew.") from None
    if not same:
        raise CorpusError(f"{url} holds another corpus or fleet. Choose another folder, or remove it and {folder.url} "
                          "first.")


def _has_truth(folder: Location, block: Block) -> bool:
    data = folder.read(part_name(block))
    try:
        return data is not None and pq.read_table(pa.BufferReader(data)).num_rows == block.n
    except (OSError, pa.ArrowException):
        return False


def make_block(config: FleetConfig, block: Block) -> MadeBlock:
    """Simulate one block under its own version and under the others, with the same contexts."""
    contexts, ids = draw(config, block)
    own = config.weeks[config.cells[block.cell][1]][1]
    names = ("scenario_id", "drive_id", "vehicle_id", "day", "area", "period", "av_version")
    facts = pd.DataFrame({name: [getattr(item, name) for item in ids] for name in names}).assign(
        acted=False, collided=False)
    values: dict[str, np.ndarray] = {}
    measured = []
    for version, policy in POLICIES.items():
        for rows, batch, collided in simulate(contexts, ids, policy):
            if version == own:
                measured.append(measure(batch))
                metrics = measured[-1].metrics
                facts.loc[rows, "acted"] = [bool(i.category) for i in batch.ids]
                facts.loc[rows, "collided"] = collided
            else:
                metrics = compute_metrics(batch)
            for name, value in metrics.items():
                values.setdefault(f"{name}@{version}", np.zeros(contexts.n))[rows] = value
    return MadeBlock(contexts, tuple(measured), pd.concat([facts, pd.DataFrame(values)], axis=1))
