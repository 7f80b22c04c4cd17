"""Latents for scenarios: of a whole corpus, part by part and beside it, or of a few at hand."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from avshift_core.config import VIEWS
from avshift_core.encoder.scenes import Scenes, context_view, scenes_of
from avshift_core.encoder.weights import Model, ModelFiles, latents_name, load_model, read_files
from avshift_core.errors import ClusterError, ConfigError, ModelError
from avshift_core.parallel import check_jobs, in_order
from avshift_core.progress import Progress
from avshift_core.scenario.schema import ScenarioBatch
from avshift_core.scenario.store.corpus import create_or_open, open_corpus, open_shared
from avshift_core.scenario.store.manifest import LATENTS, STATES, Part

BATCH = 256  # scenarios in the network at a time: what a cache holds
COMMIT_S = 10.0  # work that a killed run may lose


@dataclass(frozen=True)
class Encoded:
    """What `encode` did: scenarios encoded now, and scenarios without states, which cannot be."""

    n: int
    n_before: int
    n_without_states: int


def encode_steps(
    url: str, model: Model, *, views: Sequence[str] = VIEWS, jobs: int | None = None, scheduler: str | None = None
) -> Generator[Progress, None, Encoded]:
    """Write the latents of a corpus beside it. What has latents of this model already is left alone.

    Memory is that of one part a process, however large the corpus is.

    Args:
        views: of VIEWS; each is stored under its own name (`latents_name`).
        jobs: processes, one thread each; None is one for each core.
        scheduler: as in `in_order`; the model is sent there, and the corpus is read where the workers are.
    """
    _check_views(views)
    check_jobs(jobs, scheduler)
    corpus = open_corpus(url)  # a folder that is no corpus is refused here, before it would become one
    names = {view: latents_name(model.id, view) for view in views}
    with create_or_open(url) as writer:
        parts = [part for part in writer.manifest.parts if STATES in part.files]
        bare = writer.manifest.n - sum(part.n for part in parts)
        if not parts:
            raise ModelError(f"{url} has no states to encode: its {bare:,} scenarios come from tables of latents. "
                             "Import their logs, or compare the latents that are there.")
        todo = [(part, _missing(part, names)) for part in parts if _missing(part, names)]
        total = sum(part.n for part, _ in todo)
        done, last, began = 0, time.monotonic(), time.monotonic()
        work = partial(_encode_part, corpus.location.absolute, corpus.fingerprint, read_files(model.folder, model.id))
        answers = in_order(work, [(p.id, v) for p, v in todo], jobs, ready=1, scheduler=scheduler)
        try:
            for (part, _), latents in zip(todo, answers, strict=True):
                for view, z in latents.items():
                    writer.write_latents(names[view], part.id, z)
                done += part.n
                if time.monotonic() - last > COMMIT_S:
                    writer.commit()
                    last = time.monotonic()
                rate = done / max(time.monotonic() - began, 1e-9)
                yield Progress(f"{done:,} of {total:,} scenarios, {rate:,.0f} a second", done / total)
        except ClusterError:
            writer.commit()  # what came before the cluster was lost
            raise
    return Encoded(total, sum(part.n for part in parts) - total, bare)


def embed(model: Model, batches: Iterable[ScenarioBatch], view: str = "full") -> np.ndarray:
    """(n, d) float32 latents of scenarios at hand; nothing is written."""
    _check_views([view])
    z = [_embed_scenes(model, batch, scenes_of(batch), view) for batch in batches]
    return np.concatenate(z) if z else np.zeros((0, model.config.latent_dim), np.float32)


def _embed_scenes(model: Model, batch: ScenarioBatch, scenes: Scenes, view: str) -> np.ndarray:
    """(n, d) latents of the scenes of a batch."""
    import torch

    from avshift_core.encoder.model import to_torch

    device = next(model.net.parameters()).device
    shown = context_view(scenes, model.config.context_s) if view == "context" else scenes
    with torch.inference_mode():
        z = model.net(to_torch(shown, device)).cpu().numpy()
    for i in np.flatnonzero(~np.isfinite(z).all(axis=1)):
        raise ModelError(f"The latent of scenario '{batch.ids[i].scenario_id}' is not a number; its states may be far "
                         "out of range. Look at its log, and import it again without this scenario.")
    return z


def _encode_part(
    url: str, fingerprint: str, files: ModelFiles, job: tuple[str, tuple[str, ...]]
) -> dict[str, np.ndarray]:
    """Latents of one part by view: the work of one process."""
    part, views = job
    corpus, model = _opened(url, fingerprint, files)
    if all(part != known.id for known in corpus.parts):
        corpus = open_shared(url, [part])
    z: dict[str, list[np.ndarray]] = {view: [] for view in views}
    for batch in corpus.batches(size=BATCH, part=part):
        scenes = scenes_of(batch)
        for view in views:
            z[view].append(_embed_scenes(model, batch, scenes, view))
    return {view: np.concatenate(parts) for view, parts in z.items()}


@lru_cache(maxsize=1)
def _opened(url: str, fingerprint: str, files: ModelFiles):
    """Corpus, in one state, and model of this process; on the GPU when there is one, else with one thread."""
    import torch

    model = load_model(files)
    if torch.cuda.is_available():
        model.net.cuda()
    else:
        torch.set_num_threads(1)
    return open_shared(url), model


def _missing(part: Part, names: dict[str, str]) -> tuple[str, ...]:
    return tuple(view for view, name in names.items() if f"{LATENTS}/{name}" not in part.files)


def _check_views(views: Sequence[str]) -> None:
    for view in views:
        if view not in VIEWS:
            raise ConfigError(f"'{view}' is no view of a scenario; choose from {', '.join(VIEWS)}.")
