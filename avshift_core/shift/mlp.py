"""The paper's 128-64 network in torch: many of them trained at once, on different parts of one sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

# Idle torch threads that spin slow an analysis down several times as soon as another process wants the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

HIDDEN = (128, 64)  # paper, appendix:classifier_details
BATCH = 256
MIN_STEPS = 100  # so that a small sample is not left at its initial weights


@dataclass(frozen=True)
class Regime:
    """How firmly the network is held back. Which one is used is decided on held-out drives."""

    epochs: int
    weight_decay: float
    learning_rate: float = 1e-2


# Light finds a narrow bump on a line (the paper's localized case); firm does not learn drives by heart in 64-D.
REGIMES = (Regime(8, 0.01), Regime(4, 1.0), Regime(3, 3.0))

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Predict = Callable[[int, np.ndarray], np.ndarray]


def fit_mlp(X, y, weight, members: Sequence[np.ndarray], *, seed: int, regime: Regime, hidden=HIDDEN) -> Predict:
    """Train one network for each row set in `members`, all in one batched pass.

    Binary cross-entropy with weights, AdamW, one-cycle schedule. Targets may be fractions in [0, 1].

    Args:
        X: (n, d) float32, standardised.
        y: (n, m) targets in [0, 1], one output each.
        weight: (n,) weights of the scenarios.

    Returns:
        predict(e, rows) -> (len(rows), m) logits of network e.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    X_t, y_t, weight_t = (torch.as_tensor(np.array(a, dtype=np.float32)) for a in (X, y, weight))
    E, widths = len(members), (X_t.shape[1], *hidden, y_t.shape[1])
    W, b = [], []
    for layer, (fan_in, fan_out) in enumerate(pairwise(widths)):
        bound = (6 / fan_in) ** 0.5 if layer < len(hidden) else 0.1 / fan_in**0.5  # He; near-zero logits at the start
        W.append((2 * torch.rand(E, fan_in, fan_out, generator=generator) - 1) * bound)
        b.append((2 * torch.rand(E, 1, fan_out, generator=generator) - 1) / fan_in**0.5)
    rows = [torch.as_tensor(np.asarray(member)) for member in members]
    steps = max(1, min(len(member) for member in rows) // BATCH)
    epochs = max(regime.epochs, -(-MIN_STEPS // steps))
    orders = torch.empty(epochs, E, steps * BATCH, dtype=torch.int32)
    for epoch in range(epochs):
        for e, own in enumerate(rows):
            orders[epoch, e] = _shuffled(own, steps * BATCH, generator)

    def train(group: np.ndarray) -> None:
        first, last = int(group[0]), int(group[-1]) + 1
        nets = [part[first:last].clone().requires_grad_() for part in (*W, *b)]
        _train(nets, X_t, y_t, weight_t, orders[:, first:last], regime)
        for part, net in zip((*W, *b), nets, strict=True):
            part[first:last] = net.detach()

    n_groups = max(1, min(E // 2, torch.get_num_threads()))  # one alone is multiplied in another order
    side_by_side(train, np.array_split(np.arange(E), n_groups))

    def predict(e: int, which: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            x = X_t[torch.as_tensor(np.asarray(which))]
            for layer in range(len(W)):
                x = torch.addmm(b[layer][e], x, W[layer][e])
                x = torch.relu(x) if layer < len(hidden) else x
            return x.double().numpy()

    return predict


def _train(nets, X, y, weight, orders, regime: Regime) -> None:
    """Train a group of networks in place: `nets` are their weights (E, in, out), then their biases (E, 1, out).

    Args:
        orders: (epochs, E, rows) which rows each of them sees, BATCH at a time.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    W, b = nets[: len(nets) // 2], nets[len(nets) // 2 :]
    optimizer = torch.optim.AdamW(
        [{"params": W, "weight_decay": regime.weight_decay}, {"params": b, "weight_decay": 0.0}],
        lr=regime.learning_rate, fused=True,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=regime.learning_rate, total_steps=len(orders) * (orders.shape[2] // BATCH), pct_start=0.2
    )
    for order in orders:
        for batch in order.split(BATCH, dim=1):  # (E, BATCH)
            x = X[batch]
            for layer in range(len(W)):  # (E, BATCH, d) -> (E, BATCH, m)
                x = torch.baddbmm(b[layer], x, W[layer])
                x = torch.relu(x) if layer < len(W) - 1 else x
            loss = binary_cross_entropy_with_logits(x, y[batch], reduction="none")
            loss = (loss.mean(dim=2) * weight[batch]).mean(dim=1).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()


def side_by_side(work: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """work(item) of every item, on as many threads as torch may use, each of them alone.

    The matrices of a training are too small to be shared: two threads on one of them take twice the processor's time
    of one, and far more when other processes want the cores.
    """
    import torch

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        if min(threads, len(items)) <= 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, items))
    finally:
        torch.set_num_threads(threads)


def _shuffled(rows, count: int, generator):
    """`count` of the rows in random order; drawn with replacement where there are not as many."""
    import torch

    if count <= len(rows):
        return rows[torch.randperm(len(rows), generator=generator)[:count]]
    return rows[torch.randint(len(rows), (count,), generator=generator)]


def choose_regime(X, y, weight, train, valid, *, seed: int, hidden=HIDDEN) -> tuple[Regime, float]:
    """The regime with the smallest weighted log-loss on scenarios (of other drives) that it did not see, and that."""
    def held_out_loss(regime: Regime) -> float:
        logit = fit_mlp(X, y, weight, [train], seed=seed, regime=regime, hidden=hidden)(0, valid)
        return float(np.average((np.logaddexp(0, logit) - y[valid] * logit).mean(axis=1), weights=weight[valid]))

    losses = side_by_side(held_out_loss, REGIMES)
    return REGIMES[int(np.argmin(losses))], min(losses)
