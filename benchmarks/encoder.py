"""What the encoder costs: `python benchmarks/encoder.py`.

1. The network ragged, as it is, against the same weights padded to 128 agents: scenarios a second of one
   thread, encoding and training, on the same demo scenarios in turn; and that both give the same z.
2. The whole of `encode` (reading, views, both latents, writing), and its peak memory for corpora of growing size.
3. The whole of `train`, one epoch: the same.
4. How soon another AV version changes the others: the same contexts of the fleet under both versions.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.config import EncoderConfig
from avshift_core.encoder.encode import encode_steps
from avshift_core.encoder.loss import make_targets, training_loss
from avshift_core.encoder.model import (
    Decoder,
    Encoder,
    _agent_inputs,
    _ego_inputs,
    _line_inputs,
    _waves,
    to_torch,
)
from avshift_core.encoder.scenes import MAX_AGENTS, STEPS, Scenes, ragged
from avshift_core.encoder.targets import CLASSES, N_EXTRA, NUMBERS
from avshift_core.encoder.train import train_steps
from avshift_core.encoder.weights import load_model
from avshift_core.progress import finish
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, draw, simulate
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.view import tensor_view

SEED, BATCH, ROUNDS = 10_000, 128, 8
SIZES = (6_000, 18_000, 36_000)
TASKS = ("ratio", "encode", "train", "context")


class Padded(Encoder):
    """The same network and weights on padded tensors: 128 agents at 15 steps, most of them nobody.

    Its inputs are laid out from the ragged ones, which spares it the cost of making them for nobody.
    """

    def pooled(self, s: Scenes):
        n, S, _ = s.ego.shape
        t = s.dt_s[:, None] * torch.arange(S)
        place = _place_in_scene(s.agent_scene, n)
        at = ((s.agent_scene * MAX_AGENTS + place)[s.token_agent] * S + s.token_step)
        seen = torch.zeros(n * MAX_AGENTS * S, dtype=torch.bool).index_fill(0, at, True).view(n, MAX_AGENTS, S)
        inputs = _agent_inputs(s, t)
        inputs = inputs.new_zeros(n * MAX_AGENTS * S, inputs.shape[1]).index_copy(0, at, inputs)
        kind = s.agent_type.new_zeros(n * MAX_AGENTS).index_copy(0, s.agent_scene * MAX_AGENTS + place, s.agent_type)
        agent = self.agent(inputs).view(n, MAX_AGENTS, S, -1) + self.agent_type(kind).view(n, MAX_AGENTS, 1, -1)
        ego = self.ego(_ego_inputs(s, t)) + self.time(_waves(t))  # (n, S, d)
        line = self.line(_line_inputs(s)) + self.line_kind(s.line_kind)
        road = self.ego_road(ego, line, s.line_scene)
        met = _attend(self.ego_agent, ego.view(n * S, 1, -1), agent.transpose(1, 2).reshape(n * S, MAX_AGENTS, -1),
                      seen.transpose(1, 2).reshape(n * S, MAX_AGENTS), self.ego_agent.nobody.view(-1))
        count = seen.sum(dim=1).view(n * S, 1)
        around = (agent * seen[..., None]).sum(dim=1).view(n * S, -1) / count.clamp(min=1)
        together = [ego.view(n * S, -1), met.view(n * S, -1), road.view(n * S, -1), around, torch.log1p(count)]
        return self.over_time(self.fuse(torch.cat(together, dim=1)).view(n, S, -1), s.step_valid)


def _place_in_scene(scene, n: int):
    many = torch.bincount(scene, minlength=n)
    return torch.arange(len(scene)) - (many.cumsum(0) - many)[scene]


def _attend(layer, query, token, seen, nobody):
    """Attention of queries (g, S, d) to slots (g, A, d) where seen (g, A), and to nobody (2 d,)."""
    (g, S, d), H = query.shape, layer.heads
    kv = torch.cat([nobody.expand(g, 1, 2 * d), layer.kv(token)], dim=1).view(g, -1, 2, H, d // H)
    k, v = kv.permute(2, 0, 3, 1, 4)
    q = layer.q(query).view(g, S, H, d // H).transpose(1, 2)
    mask = F.pad(seen, (1, 0), value=True)[:, None, None]
    return layer.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(g, S, d))


def compare_speed() -> None:
    """Ragged against padded, in turn, by process time of one thread."""
    torch.set_num_threads(1)
    config = FleetConfig(scenarios=16 * 2500, seed=SEED)
    batch = next(b for _, b, _ in simulate(*draw(config, Block(0, 0, 6, BATCH)), POLICIES["v4.1"]))
    view = tensor_view(batch)
    scenes = to_torch(ragged(view))
    model = load_model()
    net, other = model.net, _padded_copy(model)
    with torch.inference_mode():
        difference = (net(scenes) - other(scenes)).abs().max().item()
    print(f"agents {view.agent_valid.sum() / batch.n:.1f}, tokens {len(scenes.token) / batch.n:.0f} of "
          f"{MAX_AGENTS * STEPS:,} a scenario; largest "
          f"difference of z: {difference:.1e}\n")
    print(f"{'':<10} {'ragged / s':>11} {'padded / s':>11} {'ratio':>6}")
    encode = _rates([lambda n=n: _forward(n, scenes) for n in (net, other)], batch.n)
    torch.manual_seed(0)
    decoder = Decoder(model.config, len(NUMBERS), tuple(map(len, CLASSES.values())))
    train = _rates([lambda n=n: _step(n, decoder, scenes) for n in (net, other)], batch.n)
    for name, (fast, slow) in (("encoding", encode), ("training", train)):
        print(f"{name:<10} {fast:>11,.0f} {slow:>11,.0f} {fast / slow:>6.2f}", flush=True)


def _padded_copy(model) -> Padded:
    other = Padded(model.config)
    other.load_state_dict(model.net.state_dict())
    return other.eval()


def _forward(net, scenes) -> None:
    with torch.inference_mode():
        net(scenes)


def _step(net, decoder, scenes) -> None:
    extra = np.zeros((scenes.n, N_EXTRA), np.float32)
    targets = make_targets(extra, torch.ones(len(NUMBERS)), torch.ones(len(NUMBERS)))
    loss, _ = training_loss(net, decoder, scenes, scenes, targets, EncoderConfig(), torch.Generator().manual_seed(0))
    loss.backward()


def _rates(works, n: int) -> list[float]:
    """Scenarios a second of the fastest round of each, in turn."""
    best = [math.inf] * len(works)
    for _ in range(ROUNDS + 1):
        for k, work in enumerate(works):
            start = time.process_time()
            work()
            best[k] = min(best[k], time.process_time() - start)
    return [n / seconds for seconds in best]


def grow(task: str) -> None:
    """Time and peak memory of the whole command, for corpora of growing size; each in a process of its own."""
    print(f"\n{task}\n{'scenarios':>10} {'s':>7} {'a second':>9} {'peak MB of one process':>23}")
    for n in SIZES:
        command = [sys.executable, __file__, "--task", task, "--make", str(n)]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        print(f"{n:>10,} {row['s']:>7.1f} {n / row['s']:>9,.0f} {row['mb']:>23,.0f}", flush=True)


def measure(task: str, n: int) -> dict:
    """One command on a fleet of n scenarios, which another process makes so that only the command's memory counts."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/corpus"
        maker = multiprocessing.get_context("spawn").Process(target=_make, args=(url, n))
        maker.start()
        maker.join()
        start = time.perf_counter()
        if task == "encode":
            finish(encode_steps(url, load_model(), jobs=1))
        else:
            finish(train_steps(url, f"{folder}/model", EncoderConfig(epochs=1), jobs=1))
        seconds = time.perf_counter() - start
    return {"s": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _make(url: str, n: int) -> None:
    finish(demo_steps(url, FleetConfig(n, SEED), jobs=2))


def context_window() -> None:
    """Who is elsewhere, because another version drives, after so many seconds."""
    config = FleetConfig(16_000, SEED)
    contexts, ids = draw(config, Block(0, 0, 40, 1000))
    runs = [{item.scenario_id: (batch.ego[k], batch, k) for _, batch, _ in simulate(contexts, ids, policy)
             for k, item in enumerate(batch.ids)} for policy in POLICIES.values()]
    print(f"\n{len(ids):,} contexts under {' and '.join(POLICIES)}\n{'after s':>8} {'egos moved > 0.1 m':>19} "
          f"{'agents moved > 0.1 m':>21} {'most m':>7}")
    for step in (0, 5, 10, 15, 20, 30, 50):
        egos, agents = [], []
        for name in runs[0]:
            (ego, a, i), (other, b, j) = runs[0][name], runs[1][name]
            egos.append(np.hypot(*(ego[step, :2] - other[step, :2])))
            place = [{who: batch.agents[row, n, step, :2] for n, who in enumerate(batch.agent_id[row])
                      if batch.agents_valid[row, n, step]} for batch, row in ((a, i), (b, j))]
            agents += [np.hypot(*(place[0][who] - place[1][who])) for who in place[0].keys() & place[1].keys()]
        far = [(np.array(moved) > 0.1).mean() for moved in (egos, agents)]
        print(f"{step / 10:>8.1f} {far[0]:>19.2%} {far[1]:>21.2%} {max(agents):>7.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, help="only this table")
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        print(json.dumps(measure(arguments.task, arguments.make)))
        return
    tables = {"ratio": compare_speed, "encode": lambda: grow("encode"), "train": lambda: grow("train"),
              "context": context_window}
    for task in [arguments.task] if arguments.task else TASKS:
        tables[task]()


if __name__ == "__main__":
    main()
