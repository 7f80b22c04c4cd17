"""All of phi: scenes -> z, and the decoder that trains it.

    ego, agents, road -> d_model features -> ego-agent and ego-road attention at each step -> fusion
        -> temporal transformer -> masked pooling -> z -> memory tokens -> decoder -> trajectories, masks, attributes

Letters in shapes: n scenes, S steps, m tokens (an agent at a step), a agents, l lines of the road, d width, H heads.
"""

from __future__ import annotations

import math
from dataclasses import fields

import torch
from torch import nn
from torch.nn import functional as F

from avshift_core.config import EncoderConfig
from avshift_core.encoder.scenes import MAX_AGENTS, STEPS, Scenes
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS
from avshift_core.scenario.view import ROAD_LINES, ROAD_POINTS

NEAR_M, FAR_M, SPEED_MPS, TIME_S = 4.0, 40.0, 10.0, 10.0  # units in which features are about 1
EGO_INPUTS, AGENT_INPUTS, LINE_INPUTS = 15, 32, 4 * ROAD_POINTS + 2
MEMORY = STEPS  # temporal memory tokens of the decoder
EGO_OUT, ACTOR_OUT, NEAREST_OUT = 5, 4, 5  # per step: x, y, cos, sin, speed; x, y, speed, seen; x, y, vx, vy, seen


def to_torch(scenes: Scenes, device="cpu") -> Scenes:
    """Arrays -> tensors."""
    return Scenes(**{f.name: torch.as_tensor(getattr(scenes, f.name)).to(device) for f in fields(Scenes)})


class Block(nn.Module):
    """A pre-norm transformer layer: self-attention, or attention to a memory, then two linear maps."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_q, self.norm_ff = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.kv, self.out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, memory=None, mask=None):  # x (n, S, d), memory (n, M, d), mask (n, 1, 1, M) -> (n, S, d)
        n, S, d = x.shape
        h = self.norm_q(x)
        source = h if memory is None else memory
        q = self.q(h).view(n, S, self.heads, -1).transpose(1, 2)  # (n, H, S, d/H)
        k, v = self.kv(source).view(n, source.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)  # (n, H, M, d/H)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(n, S, d))
        return x + self.ff(self.norm_ff(x))


class AgentAttention(nn.Module):
    """Each query attends to the tokens of its own group, and to one learned token that stands for nobody; ragged."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.nobody = nn.Parameter(torch.randn(2, d) / math.sqrt(d))

    def forward(self, query, token, group):  # query (g, d), token (m, d), group (m,) -> (g, d)
        (g, d), m, H = query.shape, len(token), self.heads
        q = self.q(query) / math.sqrt(d / H)
        k, v = self.kv(token).split(d, dim=1)  # (m, d)
        score = (q.index_select(0, group) * k).view(m, H, d // H).sum(dim=2)  # (m, H)
        none = (q * self.nobody[0]).view(g, H, d // H).sum(dim=2)  # (g, H)
        top = none.detach().scatter_reduce(0, group[:, None].expand(m, H), score.detach(), "amax")
        weight = torch.exp(score - top.index_select(0, group))  # (m, H)
        rest = torch.exp(none - top)  # (g, H)
        total = rest.index_add(0, group, weight)
        weighted = (weight[..., None] * v.view(m, H, d // H)).view(m, d)
        summed = (rest[..., None] * self.nobody[1].view(H, d // H)).view(g, d).index_add(0, group, weighted)
        return self.out((summed.view(g, H, d // H) / total[..., None]).view(g, d))


class RoadAttention(nn.Module):
    """Every step of a scene attends to all its lines, and to one learned line that stands for none."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.nothing = nn.Parameter(torch.randn(2 * d) / math.sqrt(d))

    def forward(self, query, line, scene):  # query (n, S, d), line (l, d), scene (l,) -> (n, S, d)
        (n, S, d), H = query.shape, self.heads
        many = torch.bincount(scene, minlength=n)
        first = many.cumsum(0) - many  # lines stand scene by scene
        place = 1 + torch.arange(len(scene), device=scene.device) - first[scene]
        L = 1 + int(many.max()) if n else 1
        kv = self.nothing.expand(n, L, 2 * d).contiguous().view(n * L, 2 * d)
        kv = kv.index_copy(0, scene * L + place, self.kv(line)).view(n, L, 2, H, d // H)
        k, v = kv.permute(2, 0, 3, 1, 4)  # (n, H, L, d/H)
        q = self.q(query).view(n, S, H, d // H).transpose(1, 2)
        mask = torch.arange(L, device=scene.device) <= many[:, None]  # (n, L)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        return self.out(attended.transpose(1, 2).reshape(n, S, d))


class Encoder(nn.Module):
    """phi: scenes -> z (n, latent_dim)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        d, heads = config.d_model, config.n_heads
        self.config = config
        self.ego = _mlp(EGO_INPUTS, d)
        self.agent, self.agent_type = _mlp(AGENT_INPUTS, d), nn.Embedding(len(AGENT_TYPES), d)
        self.line, self.line_kind = _mlp(LINE_INPUTS, d), nn.Embedding(len(ROAD_KINDS), d)
        self.time = _mlp(9, d)
        self.ego_agent, self.ego_road = AgentAttention(d, heads), RoadAttention(d, heads)
        self.fuse = nn.Sequential(nn.Linear(4 * d + 1, d), nn.GELU(), nn.Linear(d, d))
        self.temporal = nn.ModuleList(Block(d, heads) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(2 * d)
        self.latent = nn.Linear(2 * d, config.latent_dim)
        self.log_variance = nn.Linear(2 * d, config.latent_dim) if config.kl_weight > 0 else None
        self.register_buffer("shift", torch.zeros(config.latent_dim))
        self.register_buffer("scale", torch.eye(config.latent_dim))

    def forward(self, s: Scenes):
        """z as the statistics take it: standardised, or whitened, as the training's end has fixed it."""
        return (self.pooled(s)[0] - self.shift) @ self.scale

    def pooled(self, s: Scenes):
        """z before its scale is fixed, and the log-variances of the KL term (None without it)."""
        n, S, _ = s.ego.shape
        t = s.dt_s[:, None] * torch.arange(S, device=s.ego.device)  # (n, S) seconds
        ego = self.ego(_ego_inputs(s, t)) + self.time(_waves(t))  # (n, S, d)
        line = self.line(_line_inputs(s)) + self.line_kind(s.line_kind)  # (l, d)
        road = self.ego_road(ego, line, s.line_scene).view(n * S, -1)
        ego = ego.view(n * S, -1)
        group = s.agent_scene[s.token_agent] * S + s.token_step  # (m,) scene and step of each token
        agent = self.agent(_agent_inputs(s, t)) + self.agent_type(s.agent_type)[s.token_agent]  # (m, d)
        met = self.ego_agent(ego, agent, group)  # (n * S, d)
        count = ego.new_zeros(n * S).index_add(0, group, ego.new_ones(len(group)))
        around = torch.zeros_like(ego).index_add(0, group, agent) / count.clamp(min=1)[:, None]
        step = self.fuse(torch.cat([ego, met, road, around, torch.log1p(count)[:, None]], dim=1)).view(n, S, -1)
        return self.over_time(step, s.step_valid)

    def over_time(self, step, valid):  # step (n, S, d), valid (n, S) -> (n, latent_dim), and log-variances or None
        for block in self.temporal:
            step = block(step, mask=valid[:, None, None, :])
        shown = valid[..., None]
        mean = (step * shown).sum(dim=1) / shown.sum(dim=1).clamp(min=1)
        most = step.masked_fill(~shown, -math.inf).amax(dim=1)
        pooled = self.norm(torch.cat([mean, most], dim=1))  # (n, 2 d)
        return self.latent(pooled), None if self.log_variance is None else self.log_variance(pooled)


class Decoder(nn.Module):
    """z -> temporal memory tokens -> what happened. Slots are asked one by one, so any subset can be decoded."""

    def __init__(self, config: EncoderConfig, n_numbers: int, n_classes: tuple[int, ...]) -> None:
        super().__init__()
        d, heads, k = config.d_model, config.n_heads, config.latent_dim
        self.memory, self.memory_place = nn.Linear(k, MEMORY * d), nn.Parameter(torch.randn(MEMORY, d) / math.sqrt(d))
        self.step_slot, self.agent_slot = nn.Embedding(STEPS, d), nn.Embedding(MAX_AGENTS, d)
        self.line_slot = nn.Embedding(ROAD_LINES, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(2))
        self.norm = nn.LayerNorm(d)
        self.step_out = nn.Linear(d, EGO_OUT + ACTOR_OUT + NEAREST_OUT)
        self.agent_out = nn.Linear(d, STEPS * 3)  # x, y, seen
        self.line_out = nn.Linear(d, ROAD_POINTS * 2 + len(ROAD_KINDS))
        self.sizes = (n_numbers, *n_classes)
        self.direct = nn.Linear(k, sum(self.sizes))
        self.attributes = nn.Sequential(nn.Linear(k, d), nn.GELU(), nn.Linear(d, sum(self.sizes)))

    def forward(self, z, agent_rank, line_rank):
        """What z says.

        Args:
            z: (n, latent_dim).
            agent_rank: (n, A) which agents to decode, by nearness; line_rank: (n, L) which lines.

        Returns:
            steps (n, S, 14), agents (n, A, S, 3), lines (n, L, 30); attributes: numbers, then logits of each class, as
            the linear head says them and as both heads do.
        """
        n, A = agent_rank.shape
        memory = self.memory(z).view(n, MEMORY, -1) + self.memory_place
        x = torch.cat([self.step_slot.weight.expand(n, STEPS, -1), self.agent_slot(agent_rank),
                       self.line_slot(line_rank)], dim=1)  # (n, S + A + L, d)
        for block in self.blocks:
            x = block(x, memory)
        steps, agents, lines = self.norm(x).split([STEPS, A, line_rank.shape[1]], dim=1)
        direct = self.direct(z)
        attributes = [said.split(self.sizes, dim=1) for said in (direct, direct + self.attributes(z))]
        return self.step_out(steps), self.agent_out(agents).view(n, A, STEPS, 3), self.line_out(lines), attributes


def _mlp(inputs: int, d: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, d), nn.GELU(), nn.Linear(d, d))


def _waves(t):  # (...,) seconds -> (..., 9)
    turns = [t * (2 * math.pi / period) for period in (2.0, 5.0, 10.0, 20.0)]
    return torch.stack([t / TIME_S, *(f(x) for x in turns for f in (torch.sin, torch.cos))], dim=-1)


def _place(x, y):
    """A place at two scales: where on the street, and how close. Four numbers each."""
    return [x / FAR_M, y / FAR_M, torch.asinh(x / NEAR_M) / 2, torch.asinh(y / NEAR_M) / 2]


def _ego_inputs(s: Scenes, t):  # (n, S, 15)
    x, y, cos, sin, speed, acceleration = s.ego.unbind(dim=-1)
    known = s.ego_valid.to(x.dtype)
    both = torch.zeros_like(known)
    both[:, 1:] = known[:, 1:] * known[:, :-1]
    moved = [F.pad(v[:, 1:] - v[:, :-1], (1, 0)) * both / SPEED_MPS for v in (x, y)]
    size = (s.ego_size / s.ego_size.new_tensor([5.0, 2.0, 2.0]))[:, None].expand(*x.shape, 3)
    parts = [*_place(x, y), cos, sin, speed / SPEED_MPS, acceleration / 3, *moved, t / TIME_S, known]
    return torch.cat([torch.stack(parts, dim=-1), size], dim=-1)


def _agent_inputs(s: Scenes, t):  # (m, 32)
    scene = s.agent_scene[s.token_agent]
    x, y, cos, sin, speed = s.token.unbind(dim=-1)
    vx, vy = speed * cos, speed * sin
    now = t[scene, s.token_step]
    size = s.agent_size[s.token_agent] / s.agent_size.new_tensor([5.0, 2.0, 2.0])
    follows = torch.zeros_like(x)  # whether the token before is the same agent one step earlier
    if len(x) > 1:
        same = (s.token_agent[1:] == s.token_agent[:-1]) & (s.token_step[1:] == s.token_step[:-1] + 1)
        follows[1:] = same.to(x.dtype)
    before = lambda v: torch.cat([v[:1], v[1:] - v[:-1]]) * follows  # noqa: E731
    ego, known = s.ego[scene, s.token_step], s.ego_valid[scene, s.token_step].to(x.dtype)
    dx, dy, ec, es = x - ego[:, 0], y - ego[:, 1], ego[:, 2], ego[:, 3]
    rx, ry = (dx * ec + dy * es) * known, (dy * ec - dx * es) * known
    rvx, rvy = (vx * ec + vy * es - ego[:, 4]) * known, (vy * ec - vx * es) * known
    distance = torch.sqrt(rx * rx + ry * ry + 1e-2)
    closing = -(rx * rvx + ry * rvy) / distance
    parts = [
        *_place(x, y), cos, sin, speed / SPEED_MPS, vx / SPEED_MPS, vy / SPEED_MPS,
        before(x) / SPEED_MPS, before(y) / SPEED_MPS, before(speed) / 3, follows,
        *_place(rx, ry), (cos * ec + sin * es) * known, (sin * ec - cos * es) * known, rvx / SPEED_MPS, rvy / SPEED_MPS,
        torch.asinh(distance / NEAR_M) / 2 * known, torch.exp(-distance / SPEED_MPS) * known,
        closing / SPEED_MPS, (closing / distance).clamp(-2, 2), known, now / TIME_S,
        torch.sin(now * (math.pi / TIME_S)), torch.cos(now * (math.pi / TIME_S)),
    ]
    return torch.cat([torch.stack(parts, dim=1), size], dim=1)


def _line_inputs(s: Scenes):  # (l, 50)
    x, y = s.line.unbind(dim=-1)  # (l, 12)
    known = s.line_known.to(x.dtype)
    return torch.cat([*_place(x, y), (s.line_limit / SPEED_MPS)[:, None], known[:, None]], dim=1)
