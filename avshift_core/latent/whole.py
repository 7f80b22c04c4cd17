"""All latents of a corpus, or of every part its share: what a map of the corpus and a search in it are made of."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import CorpusError
from avshift_core.progress import Progress
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.manifest import LATENTS

SCENARIO, DRIVE = "scenario_id", "drive_id"


@dataclass(frozen=True, eq=False)
class Whole:
    """Scenarios of a corpus that have the same latents, in its order.

    Attributes:
        obs: scenario_id and drive_id; z: (m, d) float32; part: (m,) number of the part that holds each.
        n_all: scenarios that these stand for.
    """

    obs: pd.DataFrame
    z: np.ndarray
    part: np.ndarray
    n_all: int


def whole_steps(
    corpus: Corpus, latents: str, most: int | None = None, seed: int = 0
) -> Generator[Progress, None, Whole]:
    """Read the latents of a corpus, part by part.

    Args:
        most: scenarios to read; of a larger corpus they are drawn at random, of every part its share.
    """
    parts = [part for part in corpus.parts if f"{LATENTS}/{latents}" in part.files]
    if not parts:
        raise CorpusError(f"{corpus.url} has no latents '{latents}'. Encode it first.")
    ends = np.cumsum([part.n for part in parts])
    share = 1.0 if most is None else min(1.0, most / ends[-1])
    quota = np.diff(np.rint(ends * share).astype(int), prepend=0)
    obs, z = [], []
    for k, (part, wanted) in enumerate(zip(parts, quota, strict=True)):
        if wanted:
            table, own = corpus.table(columns=[SCENARIO, DRIVE], latents=latents, part=part.id)
            rows = np.sort(np.random.default_rng([seed, 25, k]).permutation(part.n)[:wanted])
            obs.append(table.iloc[rows])
            z.append(own[rows])
        yield Progress(f"Reading the latents of {ends[-1]:,} scenarios", (k + 1) / len(parts))
    return Whole(pd.concat(obs, ignore_index=True), np.concatenate(z), np.repeat(np.arange(len(parts)), quota),
                 int(ends[-1]))


def spread(z) -> tuple[np.ndarray, np.ndarray]:
    """(d,) mean and standard deviation of latents (n, d); 1 where they do not vary."""
    mean, scale = z.mean(axis=0, dtype=np.float64), z.std(axis=0, dtype=np.float64)
    return mean, np.where(scale > 1e-7 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
