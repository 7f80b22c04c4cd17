"""Two baselines an encoder has to beat: principal components of the flattened tensors, and features made by hand.

Both see what the encoder sees (the tensor view) and no attribute, category or label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from avshift_core.quality.drivewise import standardise
from avshift_core.quality.handmade import handmade
from avshift_core.scenario.schema import ROAD_KINDS, ScenarioBatch
from avshift_core.scenario.view import TensorView, tensor_view

FLAT_AGENTS = 16
HAND_AGENTS = 32  # features by hand are cheap: more agents than this come near in no scene
COMPONENTS = 64  # as many as the paper's latents have
FIT_ROWS = 4_000  # components of more rows are the same to two digits


@dataclass(frozen=True, eq=False)
class Baselines:
    """pca: (n, 64) scores of the flattened tensors, not whitened; hand: (n, f) standardised features."""

    pca: np.ndarray
    hand: np.ndarray


def make_baselines(batches: Iterable[ScenarioBatch], seed: int = 0) -> Baselines:
    """Both baselines of the scenarios of these batches, in their order."""
    flat, hand = [], []
    for batch in batches:
        view = tensor_view(batch, max_agents=HAND_AGENTS)
        flat.append(flatten(view).astype(np.float16))  # metres to 6 cm: half the memory
        hand.append(handmade(view))
    return Baselines(principal_components(np.concatenate(flat), seed), standardise(np.concatenate(hand)))


def flatten(view: TensorView, agents: int = FLAT_AGENTS) -> np.ndarray:
    """(n, f) every channel of the ego, of the nearest agents and of the road, one behind the other."""
    n, seen = len(view.ego), view.agents.shape[1]
    fill = [(0, 0), (0, max(0, agents - seen))]
    cut = lambda a: np.pad(a[:, :agents], fill + [(0, 0)] * (a.ndim - 2)).reshape(n, -1)  # noqa: E731
    kinds = (view.road_kind[..., None] == np.arange(len(ROAD_KINDS))) & view.road_valid[..., None]
    parts = [view.ego, view.ego_valid, view.ego_size, view.dt_s, view.road, kinds, view.road_limit_mps]
    return np.concatenate([p.reshape(n, -1).astype(np.float32) for p in parts] + [
        cut(a).astype(np.float32) for a in (view.agents, view.agents_valid, view.agent_size)], axis=1)


def principal_components(flat, seed: int, components: int = COMPONENTS) -> np.ndarray:
    """(n, at most 64) scores of standardised columns; fitted on a sample, applied in pieces."""
    from sklearn.decomposition import PCA

    rng = np.random.default_rng([seed, 14])
    rows = np.sort(rng.choice(len(flat), min(FIT_ROWS, len(flat)), replace=False))
    fit = flat[rows].astype(np.float32)
    mean, scale = fit.mean(axis=0), fit.std(axis=0)
    kept = scale > 1e-6
    prepare = lambda a: (a.astype(np.float32)[:, kept] - mean[kept]) / scale[kept]  # noqa: E731
    components = min(components, len(rows), int(kept.sum()))
    model = PCA(components, svd_solver="randomized", random_state=seed).fit(prepare(fit))
    return np.concatenate([model.transform(prepare(flat[i:i + 1024])) for i in range(0, len(flat), 1024)])
