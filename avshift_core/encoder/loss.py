"""The training loss: reconstruction + attr_weight * attributes (paper, sec:real_world_exp), and the KL term if any."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from avshift_core.config import EncoderConfig
from avshift_core.encoder.model import ACTOR_OUT, EGO_OUT, NEAR_M, NEAREST_OUT, SPEED_MPS, Decoder, Encoder
from avshift_core.encoder.scenes import MAX_AGENTS, STEPS, Scenes
from avshift_core.encoder.targets import CLASSES, NUMBERS
from avshift_core.scenario.schema import ROAD_KINDS

NEAREST, OTHERS, LINES = 4, 4, 6  # decoded in one step of training: nearest agents, others at random, nearest lines
# What each part of the reconstruction counts: what z cannot hold (every neighbour's way) must not drown the rest.
RECONSTRUCTION = {"ego": 1.0, "agents": 0.3, "seen": 0.3, "actor": 1.0, "nearest": 0.3, "lines": 1.0}
NUMBERS_WEIGHT = 6.0  # of the mean loss of the numbers, against 1 of the category
PARTS = (*RECONSTRUCTION, "category", "numbers", "classes", "spread", "kl")


@dataclass(frozen=True, eq=False)
class Targets:
    """What is to be said of n scenes. numbers: (n, k) standardised, NaN where there is none; classes: (n, c) and
    actor: (n,), -1 where there is none."""

    numbers: torch.Tensor
    classes: torch.Tensor
    actor: torch.Tensor


def make_targets(extra, mean, std, device="cpu") -> Targets:
    """Extra numbers (n, N_EXTRA) of the scenes -> targets."""
    extra = torch.as_tensor(extra).to(device)
    k = len(NUMBERS)
    return Targets((extra[:, :k] - mean) / std, extra[:, k:-1].long(), extra[:, -1].long())


def training_loss(
    encoder: Encoder, decoder: Decoder, shown: Scenes, whole: Scenes, targets: Targets, config: EncoderConfig, generator
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Loss and its parts; the whole scene is to be told from the part that is shown.

    Args:
        shown: what the encoder sees; whole: the same scenes, uncut.
    """
    z, log_variance = encoder.pooled(shown)
    kl = z.new_zeros(())
    if log_variance is not None:
        kl = 0.5 * (z.square() + log_variance.exp() - 1 - log_variance).sum(dim=1).mean()
        if encoder.training:
            z = z + torch.randn(z.shape, generator=generator).to(z) * (0.5 * log_variance).exp()
    count = torch.bincount(whole.agent_scene, minlength=whole.n)
    rank = _agents_to_decode(count, generator)
    line_rank = torch.arange(LINES, device=z.device).expand(whole.n, LINES)
    steps, agents, lines, said = decoder(z, rank, line_rank)
    parts = _reconstruction(steps, agents, lines, whole, targets, count, rank) | _attributes(said, targets)
    parts |= {"spread": _spread(z), "kl": kl}
    loss = sum(weight * parts[name] for name, weight in RECONSTRUCTION.items())
    loss = loss + config.attr_weight * (
        config.category_weight * parts["category"] + parts["numbers"] + parts["classes"])
    return loss + config.spread_weight * parts["spread"] + config.kl_weight * kl, parts


def _agents_to_decode(count, generator):
    """(n, NEAREST + OTHERS) ranks: the nearest, and others at random; those beyond `count` are left out of the loss."""
    near = torch.arange(NEAREST, device=count.device).expand(len(count), NEAREST)
    room = (count - NEAREST).clamp(min=1)[:, None]
    draw = torch.rand((len(count), OTHERS), generator=generator).to(count.device)
    return torch.cat([near, (NEAREST + (draw * room).long()).clamp(max=MAX_AGENTS - 1)], dim=1)


def _reconstruction(steps, agents, lines, s: Scenes, targets: Targets, count, rank) -> dict[str, torch.Tensor]:
    ego, actor, nearest = steps.split([EGO_OUT, ACTOR_OUT, NEAREST_OUT], dim=2)
    ego_target = torch.cat([_squash(s.ego[..., :2]), s.ego[..., 2:4], s.ego[..., 4:5] / SPEED_MPS], dim=2)
    way, there = _ways(s, rank, count)  # (n, A, S, 4), (n, A)
    there = there[..., None].expand(way.shape[:3])
    acts, has_actor = (x[:, 0] for x in _ways(s, targets.actor[:, None], count))  # (n, S, 4), (n,)
    near = _nearest(s)
    line_there, line_xy, line_kind = _lines(s)
    xy, kind = lines.split([line_xy.shape[2], len(ROAD_KINDS)], dim=2)
    off_line = _off(xy, line_xy).mean(2) + 0.2 * F.cross_entropy(kind.transpose(1, 2), line_kind, reduction="none")
    return {
        "ego": _mean(_off(ego, ego_target).sum(2), s.ego_valid),
        "agents": _mean(_off(agents[..., :2], _squash(way[..., :2])).sum(3), (way[..., 3] > 0) & there),
        "seen": _mean(F.binary_cross_entropy_with_logits(agents[..., 2], way[..., 3], reduction="none"), there),
        "actor": _mean(_followed(actor, acts, s.ego), has_actor[:, None] & s.ego_valid),
        "nearest": _mean(_off(nearest[..., :4], near[..., :4]).sum(2), near[..., 4] > 0),
        "lines": _mean(off_line, line_there),
    }


def _off(said, target):
    """How far a reconstruction is off, number by number."""
    return F.smooth_l1_loss(said, target, reduction="none", beta=0.1)


def _ways(s: Scenes, rank, count):
    """x, y, speed, seen (n, A, S, 4) of the agents with these ranks (n, A) in their scenes, and whether there are such;
    count: (n,) agents of each scene."""
    table = s.token.new_zeros(len(s.agent_scene) + 1, STEPS, 4)  # the last row is nobody
    table[s.token_agent, s.token_step] = torch.cat([s.token[:, [0, 1, 4]], torch.ones_like(s.token[:, :1])], dim=1)
    there = (rank >= 0) & (rank < count[:, None])
    first = (count.cumsum(0) - count)[:, None]
    return table[torch.where(there, first + rank, len(table) - 1)], there


def _followed(said, acts, ego):
    """(n, S) loss of one agent, seen from the ego: place and speed while it is seen, and whether it is."""
    place = torch.cat([_squash(acts[..., :2] - ego[..., :2]), acts[..., 2:3] / SPEED_MPS], dim=2)
    off = _off(said[..., :3], place).sum(2) * acts[..., 3]
    return off + 0.2 * F.binary_cross_entropy_with_logits(said[..., 3], acts[..., 3], reduction="none")


def _nearest(s: Scenes):
    """(n, S, 5) place and velocity of the nearest agent at each step relative to the ego, and whether there is one."""
    n, scene = s.n, s.agent_scene[s.token_agent]
    ego, known = s.ego[scene, s.token_step], s.ego_valid[scene, s.token_step]
    d = s.token[:, :2] - ego[:, :2]
    v = s.token[:, 4:5] * s.token[:, 2:4] - ego[:, 4:5] * ego[:, 2:4]
    distance = torch.where(known, d.square().sum(dim=1), torch.inf)
    group = scene * STEPS + s.token_step
    least = torch.full((n * STEPS,), torch.inf, device=d.device).scatter_reduce(0, group, distance, "amin")
    hit = known & (distance == least[group])
    out = d.new_zeros(n * STEPS, 5)
    out[group[hit]] = torch.cat([_squash(d), v / SPEED_MPS, torch.ones_like(d[:, :1])], dim=1)[hit]
    return out.view(n, STEPS, 5)


def _lines(s: Scenes):
    """Nearest lines: whether there are as many (n, LINES), their points (n, LINES, 24) and kinds (n, LINES)."""
    many = torch.bincount(s.line_scene, minlength=s.n)
    place = torch.arange(len(s.line_scene), device=many.device) - (many.cumsum(0) - many)[s.line_scene]
    keep = place < LINES
    xy, kind = s.line.new_zeros(s.n, LINES, s.line[0].numel() if len(s.line) else 24), many.new_zeros(s.n, LINES)
    xy[s.line_scene[keep], place[keep]] = _squash(s.line[keep]).flatten(1)
    kind[s.line_scene[keep], place[keep]] = s.line_kind[keep]
    return torch.arange(LINES, device=many.device) < many[:, None], xy, kind


def _attributes(said, targets: Targets) -> dict[str, torch.Tensor]:
    """Losses of the attributes, mean of the linear head's and of both heads': what z says should be easy to read."""
    parts = []
    for numbers, *classes in said:
        losses = [_class(logits, targets.classes[:, c]) for c, logits in enumerate(classes)]
        parts.append({"category": losses[0], "numbers": _numbers(numbers, targets.numbers),
                      "classes": sum(losses[1:]) / len(CLASSES)})
    return {name: sum(part[name] for part in parts) / len(parts) for name in parts[0]}


def _numbers(said, target):
    known = ~torch.isnan(target)
    off = F.smooth_l1_loss(said, target.nan_to_num(), reduction="none") * known
    return (off.sum(dim=0) / known.sum(dim=0).clamp(min=1)).mean() * NUMBERS_WEIGHT


def _class(logits, target):
    return F.cross_entropy(logits, target, ignore_index=-1, reduction="sum") / (target >= 0).sum().clamp(min=1)


def _spread(z):
    """Sum of the squared correlations between each number of z and all others, mean over the numbers."""
    if len(z) < 2:
        return z.new_zeros(())
    z = (z - z.mean(dim=0)) / (z.std(dim=0) + 1e-4)
    correlation = z.T @ z / max(len(z) - 1, 1)
    return (correlation.square().sum() - correlation.diagonal().square().sum()) / len(correlation)


def _squash(x):
    """Metres -> near distances fine, far ones coarse."""
    return torch.asinh(x / NEAR_M)


def _mean(values, where):
    return (values * where).sum() / where.sum().clamp(min=1)
