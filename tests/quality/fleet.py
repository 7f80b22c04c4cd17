"""Small fleets without states: true contexts of the demo's laws, latents made from them, and their truth."""

import numpy as np
import pandas as pd

from avshift_core.quality.contexts import true_contexts
from avshift_core.scenario.schema import ID_FIELDS
from avshift_core.scenario.simulate.fleet import FleetConfig, blocks, draw
from avshift_core.scenario.simulate.truth import begin_truth, read_truth, truth_folder, write_part
from avshift_core.scenario.store.corpus import create_or_open, open_corpus


def write_fleet(url, latents, *, scenarios=4800, seed=5, with_truth=True):
    """A corpus of true contexts with metrics and attributes that follow from them.

    Args:
        latents: name -> function of (true contexts (n, f), table, rng) that gives (n, d).
    """
    config = FleetConfig(scenarios=scenarios, seed=seed)
    folder = truth_folder(url)
    begin_truth(folder, config)
    tables = []
    for block in blocks(config):
        contexts, ids = draw(config, block)
        table = pd.DataFrame({name: [getattr(i, name) for i in ids] for name in ID_FIELDS})
        table["category"] = [f"kind{k % 6}" for k in contexts.situation]
        table["ego_speed_mps"] = 15 + 3 * contexts.z[:, 0]
        write_part(folder, config, block, contexts, table.drop(columns=["category", "ego_speed_mps"]))
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    truth = read_truth(url)
    x, rng = true_contexts(truth, table["scenario_id"]), np.random.default_rng(seed)
    risk = 1 / (1 + np.exp(-(x[:, 3] + 0.6 * x[:, 12] - 1.5)))
    metrics = {"hard_brake": (rng.random(len(x)) < risk).astype(float),
               "ttc_min_s": 6 - 5 * risk + rng.normal(size=len(x))}
    first, *others = [(name, np.asarray(f(x, table, rng), np.float32)) for name, f in latents.items()]
    with create_or_open(url) as writer:
        writer.add_table(table[list(ID_FIELDS)], table[["ego_speed_mps"]], metrics, first[1], model=first[0],
                         source="fleet")
    row = {name: i for i, name in enumerate(table["scenario_id"])}
    with create_or_open(url) as writer:
        for part in writer.manifest.parts:
            inside = open_corpus(url).table(f"area={part.area},day={part.day}", columns=["scenario_id"])["scenario_id"]
            for name, z in others:
                writer.write_latents(name, part.id, z[[row[s] for s in inside]])
    if not with_truth:
        folder.remove(["truth.json"])
    return url
