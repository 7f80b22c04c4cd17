"""Gradients on several cores: processes of one thread each that share the weights and the work on every batch.

A batch is cut into shares of SHARE scenarios, whoever works on them, and their gradients are summed in one order: the
result does not depend on the number of processes. Threads inside of torch wait for each other in every operation, and
several times longer when anything else wants a core; processes wait once a share.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import multiprocessing

from avshift_core.config import EncoderConfig
from avshift_core.encoder.loss import PARTS, make_targets, training_loss
from avshift_core.encoder.model import Decoder, Encoder, to_torch
from avshift_core.encoder.records import Records
from avshift_core.encoder.scenes import STEPS, Scenes, context_view, cut, without_road
from avshift_core.encoder.targets import CLASSES, NUMBERS
from avshift_core.errors import ModelError
from avshift_core.parallel import end_with_parent

SHARE = 64  # scenarios; means over what is there, and correlations, are taken within a share
TRAIN = "train"  # what is shown of a batch: drawn anew for each step, or one of the views


@dataclass(frozen=True, eq=False)
class Desk:
    """What one process needs for its share of a batch."""

    config: EncoderConfig
    records: Records
    encoder: Encoder
    decoder: Decoder
    device: torch.device

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def loss(self, rows: np.ndarray, shown: str, key: tuple[int, ...]) -> tuple[torch.Tensor, np.ndarray]:
        """Loss on some scenes, and the loss and its PARTS as numbers.

        Args:
            shown: a view, or TRAIN.
            key: of the random choices; its last entry tells the shares of one step apart.
        """
        scenes, extra = self.records.read(rows)
        seed = int(np.random.default_rng([self.config.seed, 2, *key]).integers(2**62))
        seen = _shown(scenes, shown, self.config, np.random.default_rng([self.config.seed, 3, *key[:-1]]))
        mean, std = (torch.as_tensor(a).to(self.device) for a in (self.records.mean, self.records.std))
        whole = to_torch(scenes, self.device)
        part = whole if seen is scenes else to_torch(seen, self.device)
        targets = make_targets(extra, mean, std, self.device)
        loss, parts = training_loss(self.encoder, self.decoder, part, whole, targets, self.config,
                                    torch.Generator().manual_seed(seed))
        return loss, np.array([loss.item(), *(parts[name].item() for name in PARTS)])

    def gradient(self, rows: np.ndarray, key: tuple[int, ...]) -> np.ndarray:
        """Leave the gradient in the parameters; the loss and its parts."""
        self.encoder.train()
        for parameter in self.parameters:
            parameter.grad = None
        loss, numbers = self.loss(rows, TRAIN, key)
        loss.backward()
        return numbers

    def flat_gradient(self) -> torch.Tensor:
        """The gradient of all parameters, one behind the other."""
        return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).view(-1) for p in self.parameters])

    @torch.no_grad()
    def held_out(self, rows: np.ndarray, shown: str, key: tuple[int, ...]) -> np.ndarray:
        self.encoder.eval()
        return self.loss(rows, shown, key)[1]


class Team:
    """The networks, and the processes that work on them."""

    def __init__(self, config: EncoderConfig, records: Records, jobs: int) -> None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(config.seed)
        encoder = Encoder(config).to(device)
        decoder = Decoder(config, len(NUMBERS), tuple(map(len, CLASSES.values()))).to(device)
        self.desk = Desk(config, records, encoder, decoder, device)
        most = max(1, round(config.batch_size / SHARE))  # more would have nothing to do
        self.jobs = 1 if device.type == "cuda" else min(jobs, most)
        self._others: list[tuple[multiprocessing.Process, Connection, torch.Tensor]] = []
        if device.type == "cpu":
            torch.set_num_threads(1)
        if self.jobs > 1:
            encoder.share_memory()
            decoder.share_memory()
            size = sum(parameter.numel() for parameter in self.desk.parameters)
            self._others = [self._hire(torch.zeros(size).share_memory_()) for _ in range(self.jobs - 1)]

    def _hire(self, gradient: torch.Tensor):
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(self.desk, gradient, there), daemon=True)
        process.start()
        there.close()
        return process, here, gradient

    def gradient(self, rows: np.ndarray, step: int) -> np.ndarray:
        """Mean gradient over the shares of a batch, left in the parameters; the loss and its PARTS."""
        shares = np.array_split(rows, max(1, round(len(rows) / SHARE)))
        parameters, numbers, total = self.desk.parameters, 0.0, None
        for first in range(0, len(shares), self.jobs):
            mine, *others = shares[first:first + self.jobs]
            self._ask("gradient", [(share, (step, first + k + 1)) for k, share in enumerate(others)])
            answers = [(self.desk.gradient(mine, (step, first)), self.desk.flat_gradient(), len(mine))]
            answers += [(answer, gradient, len(share)) for answer, (_, _, gradient), share in zip(
                self._answers(len(others)), self._others[:len(others)], others, strict=True)]
            for answer, gradient, count in answers:
                numbers = numbers + answer * (count / len(rows))
                total = gradient * (count / len(rows)) + (0 if total is None else total)
        for parameter, gradient in zip(parameters, total.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = gradient.view_as(parameter)
        return numbers

    def held_out(self, rows: np.ndarray, shown: str) -> float:
        """Mean loss on some scenes, in one view."""
        shares, total = np.array_split(rows, max(1, round(len(rows) / SHARE))), 0.0
        for first in range(0, len(shares), self.jobs):
            mine, *others = shares[first:first + self.jobs]
            self._ask("held_out", [(share, shown, (first + k + 1, 0)) for k, share in enumerate(others)])
            total += self.desk.held_out(mine, shown, (first, 0))[0] * len(mine)
            total += sum(a[0] * len(share) for a, share in zip(self._answers(len(others)), others, strict=True))
        return total / len(rows)

    def _ask(self, task: str, work: list[tuple]) -> None:
        try:
            for (_, pipe, _), job in zip(self._others, work, strict=False):
                pipe.send((task, job))
        except OSError:
            raise _lost() from None

    def _answers(self, count: int) -> list[np.ndarray]:
        """Answers of the first `count` processes; an error of one of them is raised here."""
        answers = []
        for _, pipe, _ in self._others[:count]:
            try:
                answers.append(pipe.recv())
            except (EOFError, OSError):
                raise _lost() from None
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def close(self) -> None:
        """Let the processes go."""
        for process, pipe, _ in self._others:
            pipe.close()
            process.terminate()
            process.join()
        self._others = []


def _lost() -> ModelError:
    return ModelError("A process of the training was ended from outside, perhaps because memory ran out. The last "
                      "checkpoint is kept: go on with --resume, or with fewer --jobs.")


def _work(desk: Desk, gradient: torch.Tensor, pipe: Connection) -> None:
    """The life of one process: a share of a batch in, its gradient into the shared tensor, its loss out."""
    end_with_parent()
    torch.set_num_threads(1)
    while True:
        try:
            task, job = pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            answer = getattr(desk, task)(*job)
            if task == "gradient":
                gradient.copy_(desk.flat_gradient())
        except Exception as error:
            answer = error
        pipe.send(answer)


def _shown(scenes: Scenes, shown: str, config: EncoderConfig, rng: np.random.Generator) -> Scenes:
    """What the encoder sees of a batch; in training all of it, the context view, or a random first part."""
    draw = rng.random()
    if shown == TRAIN and config.no_road_share > 0:
        scenes = without_road(scenes, rng.random(scenes.n) < config.no_road_share)
    if shown == "full" or (shown == TRAIN and draw >= config.context_share):
        return scenes
    if shown == "context" or draw < config.context_share / 2:
        return context_view(scenes, config.context_s)
    last = np.full(scenes.n, rng.integers(1, STEPS - 1))
    return cut(scenes, np.maximum(last, scenes.ego_valid.argmax(axis=1)), ego_start_only=bool(rng.random() < 0.5))
