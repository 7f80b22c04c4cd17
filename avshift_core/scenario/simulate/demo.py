"""The demo fleet as a corpus, with its truth beside it: made block by block, and gone on with after a stop."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import CorpusError
from avshift_core.parallel import check_jobs, in_order
from avshift_core.progress import Progress, within
from avshift_core.scenario.measure.batch import Measured, measure
from avshift_core.scenario.measure.metrics import compute_metrics
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, blocks, draw, simulate, version_of
from avshift_core.scenario.simulate.law import Contexts
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.simulate.truth import (
    PLAN,
    begin_truth,
    fleet_of,
    others_name,
    part_name,
    truth_folder,
    write_others,
    write_part,
)
from avshift_core.scenario.store.location import Location
from avshift_core.scenario.store.writer import create_or_open

CORPUS_SHARE = 0.55  # of the time that the corpus takes; the rest is for the other versions


@dataclass(frozen=True, eq=False)
class MadeBlock:
    """One block, simulated and measured; facts: one row a context, for the truth."""

    contexts: Contexts
    measured: tuple[Measured, ...]
    facts: pd.DataFrame


def demo_steps(
    url: str, config: FleetConfig, *, every_version: bool = True, jobs: int | None = None, scheduler: str | None = None
) -> Generator[Progress, None, int]:
    """Make the fleet; the last value is how many scenarios were added. A fleet that is there already is left alone.

    Args:
        every_version: simulate also what the other AV versions would have done; without it `versions_steps` can do so
            later.
        jobs, scheduler: as in `in_order`; workers need no access to the corpus.
    """
    check_jobs(jobs, scheduler)
    len(config.laws)  # settings outside of their range are refused here, before anything is written
    added = yield from within(_corpus_steps(url, config, jobs, scheduler), 0.0, CORPUS_SHARE if every_version else 1.0)
    if every_version:
        yield from within(versions_steps(url, jobs=jobs, scheduler=scheduler), CORPUS_SHARE, 1.0)
    return added


def _corpus_steps(
    url: str, config: FleetConfig, jobs: int | None, scheduler: str | None
) -> Generator[Progress, None, int]:
    folder = truth_folder(url)
    with create_or_open(url) as writer:
        _begin(folder, config, url, new=not writer.manifest.n)
        todo = [b for b in blocks(config) if not (writer.done(b.key) and _is_whole(folder, part_name(b), b.n))]
        done = config.scenarios - sum(block.n for block in todo)
        added = 0
        answers = in_order(partial(make_block, config), todo, jobs, scheduler=scheduler)
        for block, made in zip(todo, answers, strict=True):
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


def versions_steps(
    url: str, *, jobs: int | None = None, scheduler: str | None = None
) -> Generator[Progress, None, None]:
    """Complete a fleet's truth: its scenarios under the AV versions that did not drive them. What is there is kept."""
    config, folder = fleet_of(url), truth_folder(url)
    todo = [block for block in blocks(config) if not _is_whole(folder, others_name(block), block.n)]
    done = config.scenarios - sum(block.n for block in todo)
    answers = in_order(partial(make_others, config), todo, jobs, scheduler=scheduler)
    for block, others in zip(todo, answers, strict=True):
        write_others(folder, block, others)
        done += block.n
        yield Progress(f"other AV versions: {done:,} scenarios", done / config.scenarios)


def _begin(folder: Location, config: FleetConfig, url: str, *, new: bool) -> None:
    """Write the plan of a new fleet, whatever truth lies there; an old one goes on only with its own."""
    if new:
        folder.remove([PLAN, *map(others_name, blocks(config))])  # parts are written again, these only where missing
    try:
        same = (new or folder.read(PLAN) is not None) and begin_truth(folder, config)
    except ValueError:
        raise CorpusError(f"The truth in {folder.url} is damaged. Remove {folder.url} and {url}, and make the fleet "
                          "anew.") from None
    if not same:
        raise CorpusError(f"{url} holds another corpus or fleet. Choose another folder, or remove it and {folder.url} "
                          "first.")


def _is_whole(folder: Location, name: str, n: int) -> bool:
    """Whether a table of n rows lies there undamaged."""
    data = folder.read(name)
    try:
        return data is not None and pq.read_table(pa.BufferReader(data)).num_rows == n
    except (OSError, pa.ArrowException):
        return False


def make_block(config: FleetConfig, block: Block) -> MadeBlock:
    """Simulate one block under its own version."""
    contexts, ids = draw(config, block)
    own = version_of(config, block)
    names = ("scenario_id", "drive_id", "vehicle_id", "day", "area", "period", "av_version")
    facts = pd.DataFrame({name: [getattr(item, name) for item in ids] for name in names}).assign(
        acted=False, collided=False)
    values: dict[str, np.ndarray] = {}
    measured = []
    for rows, batch, collided in simulate(contexts, ids, POLICIES[own]):
        measured.append(measure(batch))
        facts.loc[rows, "acted"] = [bool(i.category) for i in batch.ids]
        facts.loc[rows, "collided"] = collided
        _put(values, own, rows, measured[-1].metrics, contexts.n)
    return MadeBlock(contexts, tuple(measured), pd.concat([facts, pd.DataFrame(values)], axis=1))


def make_others(config: FleetConfig, block: Block) -> pd.DataFrame:
    """Metrics of one block's contexts under every version but its own, as `metric@version`."""
    contexts, ids = draw(config, block)
    values: dict[str, np.ndarray] = {}
    for version, policy in POLICIES.items():
        if version != version_of(config, block):
            for rows, batch, _ in simulate(contexts, ids, policy):
                _put(values, version, rows, compute_metrics(batch), contexts.n)
    return pd.DataFrame(values)


def _put(values: dict[str, np.ndarray], version: str, rows: np.ndarray, metrics: Mapping[str, np.ndarray], n: int):
    """Write the metrics of some of n rows to their columns."""
    for name, value in metrics.items():
        values.setdefault(f"{name}@{version}", np.zeros(n))[rows] = value
