"""Training: a corpus -> a model folder, with checkpoints from which a killed run goes on to the same result."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from avshift_core import __version__
from avshift_core.config import VIEWS, EncoderConfig
from avshift_core.encoder.checkpoint import BEST, CHECKPOINT, RECORDS, Checkpoint, read_checkpoint, write_checkpoint
from avshift_core.encoder.loss import PARTS
from avshift_core.encoder.model import Decoder, Encoder, to_torch
from avshift_core.encoder.output import effective_rank, output_scale
from avshift_core.encoder.records import Records, prepare_steps
from avshift_core.encoder.targets import COLUMNS
from avshift_core.encoder.team import Team
from avshift_core.encoder.weights import CARD, WEIGHTS, Model, round_weights, save_model
from avshift_core.errors import ModelError
from avshift_core.parallel import check_jobs
from avshift_core.progress import Progress, within
from avshift_core.scenario.store.corpus import ALL, Corpus, open_corpus
from avshift_core.scenario.store.manifest import STATES
from avshift_core.scenario.store.query import CohortQuery, as_query

CHECKPOINT_STEPS = 200  # between two checkpoints, about two minutes on two cores
WARM_UP = 0.03  # share of the steps in which the learning rate rises
VALID_SCENES, OUTPUT_SCENES = 4096, 16_384  # that the held-out loss, and the scale of z, are measured on
MAY_CHANGE = ("learning_rate", "patience", "clip_norm")  # when a training goes on
OWN = (CHECKPOINT, BEST, RECORDS)  # files of an unfinished training
PREPARING = 0.05  # share of the progress bar


@dataclass(eq=False)
class Run:
    """One training under way."""

    config: EncoderConfig
    data: dict
    team: Team
    optimizer: torch.optim.Optimizer
    step: int = 0
    history: list[dict] = field(default_factory=list)
    sums: np.ndarray = field(default_factory=lambda: np.zeros(len(PARTS) + 1))  # loss and parts since the epoch began

    @property
    def records(self) -> Records:
        return self.team.desk.records

    @property
    def encoder(self) -> Encoder:
        return self.team.desk.encoder

    @property
    def decoder(self) -> Decoder:
        return self.team.desk.decoder

    @property
    def train_rows(self) -> np.ndarray:
        return np.flatnonzero(~self.records.held_out)

    @property
    def steps_an_epoch(self) -> int:
        return max(1, len(self.train_rows) // self.config.batch_size)

    @property
    def best(self) -> float:
        return min((entry["held_out"] for entry in self.history), default=math.inf)


def train_steps(
    url: str, out: str | Path, config: EncoderConfig, *, query: CohortQuery | str = ALL, most: int | None = None,
    resume: bool = False, jobs: int | None = None,
) -> Generator[Progress, None, Model]:
    """Train an encoder on a corpus; the last value is the model in folder `out`.

    Args:
        query: which scenarios to train on.
        most: of the scenarios at the most, for quick trials.
        resume: go on with an unfinished training in `out`, to the result it would have had.
        jobs: processes; None is one for each core. The result does not depend on it.
    """
    check_jobs(jobs)
    corpus, out, query = open_corpus(url), Path(out), as_query(query)
    data = data_of(corpus, query, most)
    saved = _open_folder(out, data, config, resume)
    prepare = prepare_steps(corpus, out / RECORDS, config.valid_share, query=query, most=most)
    records = yield from within(prepare, 0, PREPARING)
    _check_records(records, config, corpus)
    team = Team(config, records, jobs or os.cpu_count() or 1)
    try:
        run = Run(config, data, team, torch.optim.Adam(team.desk.parameters, lr=config.learning_rate, fused=True))
        if saved is not None:
            saved.restore(run)
        while len(run.history) < config.epochs and not _stalled(run):
            yield from _epoch(run, corpus, out)
    finally:
        team.close()
    return _finish(run, corpus, out)


def _epoch(run: Run, corpus: Corpus, out: Path) -> Generator[Progress, None, None]:
    """The rest of the epoch that the run is in, then its loss on the held-out drives."""
    config, epoch, per_epoch = run.config, len(run.history), run.steps_an_epoch
    order = np.random.default_rng([config.seed, 1, epoch]).permutation(run.train_rows)
    began, count = time.perf_counter(), 0
    while run.step < (epoch + 1) * per_epoch:
        k = run.step - epoch * per_epoch
        rows = order[k * config.batch_size:(k + 1) * config.batch_size]
        numbers = _train_step(run, rows)
        if not np.isfinite(numbers).all():
            raise ModelError(_nan_sentence(run, corpus, rows, epoch, k, out))
        run.step, count = run.step + 1, count + 1
        run.sums += numbers
        if run.step % CHECKPOINT_STEPS == 0 and k + 1 < per_epoch:
            write_checkpoint(run, out)
        if count % 5 == 0:
            rate = count * config.batch_size / (time.perf_counter() - began)
            done = run.step / (config.epochs * per_epoch)
            yield Progress(f"epoch {epoch + 1} of {config.epochs}: loss {run.sums[0] / (k + 1):.3f}, held out "
                           f"{run.history[-1]['held_out'] if run.history else math.nan:.3f}, {rate:,.0f} scenarios a "
                           "second", PREPARING + (1 - PREPARING) * done)
    held = _held_out_loss(run)
    if not math.isfinite(held["held_out"]):
        raise ModelError(f"The loss on the held-out drives is not a number after epoch {epoch + 1}. The checkpoint "
                         f"before it is kept in {out}: go on with --resume and a lower --learning-rate.")
    better = held["held_out"] < run.best
    loss, *parts = (run.sums / per_epoch).tolist()
    run.history.append({"epoch": epoch + 1, "loss": loss, **dict(zip(PARTS, parts, strict=True)), **held})
    run.sums = np.zeros_like(run.sums)
    if better:
        write_checkpoint(run, out, BEST)
    write_checkpoint(run, out)


def _train_step(run: Run, rows: np.ndarray) -> np.ndarray:
    """One step of Adam; the loss and its PARTS. Where a gradient is not a number the weights stay as they are."""
    numbers = run.team.gradient(rows, run.step)
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(run.step, run.config.epochs * run.steps_an_epoch, run.config.learning_rate)
    norm = torch.nn.utils.clip_grad_norm_(run.team.desk.parameters, run.config.clip_norm)
    if not torch.isfinite(norm):
        return np.full_like(numbers, math.nan)
    run.optimizer.step()
    return numbers


def learning_rate(step: int, total: int, peak: float) -> float:
    """A short linear rise, then half a cosine down to zero.

    >>> [round(learning_rate(k, 100, 1.0), 3) for k in (0, 3, 51, 100)]
    [0.333, 1.0, 0.508, 0.0]
    """
    warm = max(1, round(WARM_UP * total))
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, total - warm))))


def _held_out_loss(run: Run) -> dict[str, float]:
    """Mean loss of both views on held-out drives, always the same scenarios."""
    rows = np.flatnonzero(run.records.held_out)
    rows = np.random.default_rng([run.config.seed, 4]).permutation(rows)[:VALID_SCENES]
    loss = {view: run.team.held_out(rows, view) for view in VIEWS}
    share = run.config.context_share
    return {"held_out": (1 - share) * loss["full"] + share * loss["context"],
            **{f"held_out_{view}": value for view, value in loss.items()}}


def _stalled(run: Run) -> bool:
    """No better loss on the held-out drives for `patience` epochs."""
    losses = [entry["held_out"] for entry in run.history]
    return len(losses) > run.config.patience and min(losses[-run.config.patience:]) > min(losses)


@torch.no_grad()
def _finish(run: Run, corpus: Corpus, out: Path) -> Model:
    """The best weights with the scale of z fixed, their card, and the loss curves."""
    read_checkpoint(out / BEST).restore_weights(run)
    run.encoder.eval()
    round_weights(run.encoder)
    rows = np.random.default_rng([run.config.seed, 5]).permutation(run.train_rows)[:OUTPUT_SCENES]
    raw = _raw_latents(run, rows)
    shift, scale = output_scale(raw, run.config.output)
    run.encoder.shift.copy_(torch.as_tensor(shift))
    run.encoder.scale.copy_(torch.as_tensor(scale))
    card = {
        "config": asdict(run.config), "seed": run.config.seed, "output": run.config.output,
        "data": {"fingerprint": corpus.fingerprint, "n": int((~run.records.held_out).sum()), **run.data,
                 "drives": run.records.n_drives - run.records.n_held_out, "n_valid_drives": run.records.n_held_out},
        "attributes": taught(run.config), "losses": run.history, "best_epoch": 1 + int(np.argmin(
            [entry["held_out"] for entry in run.history])),
        "effective_rank": effective_rank(raw), "quality": {},
        "libraries": {"avshift": __version__, "torch": torch.__version__, "numpy": np.__version__},
    }
    model = save_model(out, run.encoder, card)
    for name in OWN:
        (out / name).unlink(missing_ok=True)
    return model


def taught(config: EncoderConfig) -> list[str]:
    """Names of the attributes whose heads were trained."""
    if config.attr_weight == 0:
        return []
    return [name for name in COLUMNS if name != "category" or config.category_weight > 0]


@torch.no_grad()
def _raw_latents(run: Run, rows: np.ndarray) -> np.ndarray:
    batches = (run.records.read(rows[first:first + 512])[0] for first in range(0, len(rows), 512))
    z = [run.encoder.pooled(to_torch(scenes, run.team.desk.device))[0].cpu().numpy() for scenes in batches]
    return np.concatenate(z).astype(np.float64)


def data_of(corpus: Corpus, query: CohortQuery, most: int | None) -> dict:
    """What a training sees: which scenarios, and the hashes of their states; latents beside them change nothing."""
    states = sorted(p.files[STATES].sha256 for p in corpus.parts if STATES in p.files and p.admits(query))
    if not states:
        raise ModelError(f"{corpus.url} holds no states{f' of {query}' if query != ALL else ''} to train on, only "
                         "ready-made latents or other scenarios. Import logs, or choose others with --only.")
    return {"query": str(query), "most": most, "states": states}


def _open_folder(out: Path, data: dict, config: EncoderConfig, resume: bool) -> Checkpoint | None:
    """Refuse a folder that holds something else; the checkpoint to go on from, if there is one."""
    if (out / CARD).exists():  # written last
        raise ModelError(f"{out} holds a finished model already. Choose another folder for --out.")
    strange = [p.name for p in out.iterdir() if p.name not in (*OWN, WEIGHTS)] if out.is_dir() else []
    if strange:
        raise ModelError(f"{out} holds other files ({strange[0]}). Choose a new or an empty folder for --out.")
    if not resume and (out / CHECKPOINT).exists():
        raise ModelError(f"{out} holds an unfinished training. Go on with --resume, or choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if out.is_file() else error.strerror or error
        raise ModelError(f"{out} cannot be made: {reason}. Choose another folder for --out.") from None
    if not (out / CHECKPOINT).exists():
        return None
    saved = read_checkpoint(out / CHECKPOINT)
    if saved.about["data"] != data:
        raise ModelError(f"The training in {out} began on other scenarios: on another corpus, with other --only or "
                         "--most, or something was imported since. Give them as they were, or choose another folder.")
    before, now = saved.about["config"], json.loads(json.dumps(asdict(config)))
    changed = [name for name in now if name not in MAY_CHANGE and now[name] != before.get(name)]
    if changed:
        raise ModelError(f"The training in {out} began with {changed[0]} {before.get(changed[0])}, and now it is "
                         f"{now[changed[0]]}. Only {', '.join(MAY_CHANGE)} may change on the way; give the others as "
                         "they were.")
    return saved


def _check_records(records: Records, config: EncoderConfig, corpus: Corpus) -> None:
    n = int((~records.held_out).sum())
    if n < config.batch_size or not records.held_out.any():
        raise ModelError(f"{corpus.url} gives {n:,} scenarios of {records.n_drives - records.n_held_out:,} drives to "
                         f"train on and {records.n - n:,} of {records.n_held_out:,} drives to hold out; at least one "
                         f"batch of {config.batch_size} and one held-out drive are needed. Import more logs, lower "
                         "--batch-size or raise --valid-share.")


def _nan_sentence(run: Run, corpus: Corpus, rows: np.ndarray, epoch: int, k: int, out: Path) -> str:
    names = run.records.names(corpus, rows[:3])
    kept = (f"The checkpoint before it is kept in {out}: go on from there with --resume and a lower --learning-rate"
            if (out / CHECKPOINT).exists() else "Begin again with a lower --learning-rate")
    return (f"The loss is not a number in batch {k + 1} of epoch {epoch + 1}, with scenarios "
            f"{', '.join(names)} and {max(len(rows) - 3, 0)} more. {kept}, or look at these scenarios.")
