"""A batch as the encoder sees it: a few steps in the ego's frame, the nearest agents, the nearest lines of the road."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.scenario.measure.geometry import last_at_or_before, wrap
from avshift_core.scenario.schema import Road, ScenarioBatch

EGO_FEATURES = ("x_m", "y_m", "cos", "sin", "speed_mps", "acceleration_mps2")
AGENT_FEATURES = ("x_m", "y_m", "cos", "sin", "speed_mps")
MAX_BRIDGE_S = 1.05  # two states further apart in time (1 Hz logs still pass) say nothing about the time between
ROAD_LINES, ROAD_POINTS = 64, 12  # per scenario; 12 points follow a quarter circle of 20 m within 5 cm
ROAD_REACH_M = 120.0  # points further from the ego's first place are cut off


@dataclass(frozen=True, eq=False)
class TensorView:
    """float32 arrays; 0 where a mask is False. No absolute place or time and no label of area or
    version is in it; how the ego drives is, of course.

    Attributes:
        ego: (n, S, 6) EGO_FEATURES at S even steps of the scenario's own duration; ego_valid: (n, S).
        ego_size: (n, 3) length, width, height.
        agents: (n, K, S, 5) AGENT_FEATURES, the actor and then the nearest first; agents_valid: (n, K, S).
        agent_valid: (n, K) seen at one of the steps at least.
        agent_type: (n, K) int8 index into AGENT_TYPES; agent_size: (n, K, 3).
        agent_index: (n, K) int32 number of the agent in the batch, -1 where none.
        n_cut: (n,) how many agents were left out.
        dt_s: (n,) time between steps.
        road: (n, ROAD_LINES, ROAD_POINTS, 2) nearest lines first, each cut at ROAD_REACH_M and spread evenly.
        road_kind: (n, ROAD_LINES) int8 index into ROAD_KINDS; road_valid: (n, ROAD_LINES).
        road_limit_mps: (n, ROAD_LINES), 0 where unknown; road_limit_known: (n, ROAD_LINES).
    """

    ego: np.ndarray
    ego_valid: np.ndarray
    ego_size: np.ndarray
    agents: np.ndarray
    agents_valid: np.ndarray
    agent_valid: np.ndarray
    agent_type: np.ndarray
    agent_size: np.ndarray
    agent_index: np.ndarray
    n_cut: np.ndarray
    dt_s: np.ndarray
    road: np.ndarray
    road_kind: np.ndarray
    road_valid: np.ndarray
    road_limit_mps: np.ndarray
    road_limit_known: np.ndarray


def tensor_view(batch: ScenarioBatch, steps: int = 15, max_agents: int = 128, actor: np.ndarray | None = None
                ) -> TensorView:
    """The view of every scenario of a batch.

    Args:
        steps: S, spread evenly from the first to the last timestamp.
        max_agents: K at most; kept are those that come nearest to the ego.
        actor: (n,) agent that is kept however far it is, -1 where none (Detection.actor).
    """
    if steps < 2 or max_agents < 1:
        raise ConfigError(f"A view of {steps} steps and {max_agents} agents holds nothing. Give at least 2 steps and 1 "
                          "agent.")
    origin, heading = _first_pose(batch)
    chosen, n_cut = _kept(batch, max_agents, actor)
    left, part, usable, dt = _between(batch, steps)
    alone = np.zeros((batch.n, 1), np.int64)
    ego, ego_valid = _resample(batch.ego[:, None], batch.ego_valid[:, None], alone, left, part, usable)
    agents, agents_valid = _resample(batch.agents, batch.agents_valid, chosen, left, part, usable)
    kept = agents_valid.any(axis=2)
    size = np.take_along_axis(batch.agent_size, np.maximum(chosen, 0)[..., None], axis=1)
    kind = np.take_along_axis(batch.agent_type, np.maximum(chosen, 0), axis=1)
    return TensorView(
        _features(ego, ego_valid, origin, heading)[:, 0], ego_valid[:, 0], batch.ego_size.astype(np.float32),
        _features(agents, agents_valid, origin, heading), agents_valid, kept, np.where(kept, kind, 0).astype(np.int8),
        np.where(kept[..., None], size, 0).astype(np.float32), chosen.astype(np.int32), n_cut, dt,
        *_road(batch.road, origin, heading),
    )


def _first_pose(batch: ScenarioBatch) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) place and (n,) heading of the ego at its first valid step."""
    first = batch.ego[np.arange(batch.n), batch.ego_valid.argmax(axis=1)].astype(np.float64)
    return first[:, :2], first[:, 2]


def _kept(batch: ScenarioBatch, max_agents: int, actor: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) agents, nearest first and -1 where there are fewer, and (n,) how many were cut."""
    A = batch.agents_valid.shape[1]
    valid = batch.agents_valid & batch.ego_valid[:, None]
    dx = batch.agents[..., 0] - batch.ego[:, None, :, 0]
    dy = batch.agents[..., 1] - batch.ego[:, None, :, 1]
    near = np.where(valid, dx * dx + dy * dy, np.inf).min(axis=2, initial=np.inf)
    seen = batch.agents_valid.any(axis=2)
    near = np.where(seen, np.minimum(near, 1e12), np.inf)
    if actor is not None and A:
        row = np.flatnonzero(np.asarray(actor) >= 0)
        near[row, np.asarray(actor)[row]] = -1
    order = np.argsort(near, axis=1, kind="stable")[:, :max_agents]
    there = np.isfinite(np.take_along_axis(near, order, axis=1))
    return np.where(there, order, -1), seen.sum(axis=1) - there.sum(axis=1)


def _between(batch: ScenarioBatch, steps: int):
    """(n, S) native step at or before each step of the view and how far towards the next one; (n, S) whether the two
    are near enough in time; (n,) time between steps."""
    start, end = batch.t_s[:, :1], batch.t_s[:, -1:]
    wanted = start + (end - start) * np.linspace(0, 1, steps)
    left = np.minimum(last_at_or_before(batch.t_s, wanted), np.maximum(batch.n_steps[:, None] - 2, 0))
    right = np.minimum(left + 1, batch.n_steps[:, None] - 1)
    t_left, t_right = (np.take_along_axis(batch.t_s, i, axis=1) for i in (left, right))
    part = np.clip((wanted - t_left) / np.maximum(t_right - t_left, 1e-9), 0, 1)
    usable = (t_right - t_left <= MAX_BRIDGE_S) | (part <= 1e-9) | (part >= 1 - 1e-9)
    return left, part, usable, ((end - start)[:, 0] / (steps - 1)).astype(np.float32)


def _resample(states, valid, chosen, left, part, usable):
    """(n, K, S, F) states of the chosen (n, K) agents between two native steps, headings the short way round, and
    (n, K, S) whether both are valid; a step that falls on a native one needs only that."""
    n, A, T = valid.shape
    if A == 0:
        return np.zeros((n, 0, left.shape[1], states.shape[3])), np.zeros((n, 0, left.shape[1]), bool)
    first = (np.arange(n)[:, None] * A + np.maximum(chosen, 0))[:, :, None] * T  # (n, K, 1) flat place of an agent
    states, valid = states.reshape(-1, states.shape[3]), valid.reshape(-1)
    at, then = first + left[:, None], first + np.minimum(left + 1, max(T - 1, 0))[:, None]
    a, b, share = states.take(at, axis=0).astype(np.float64), states.take(then, axis=0), part[:, None]
    out = a + share[..., None] * (b - a)
    out[..., 2] = a[..., 2] + share * wrap(b[..., 2] - a[..., 2])
    ok = (valid[at] | (share >= 1 - 1e-9)) & (valid[then] | (share <= 1e-9)) & usable[:, None]
    return out, ok & (chosen >= 0)[:, :, None]


def _features(states, valid, origin, heading):
    """(n, A, S, 5 or 6) features in the frame of the ego's first pose."""
    c, s = np.cos(heading)[:, None, None], np.sin(heading)[:, None, None]
    dx, dy = states[..., 0] - origin[:, 0, None, None], states[..., 1] - origin[:, 1, None, None]
    angle = states[..., 2] - heading[:, None, None]
    columns = [c * dx + s * dy, c * dy - s * dx, np.cos(angle), np.sin(angle), *np.moveaxis(states[..., 3:], -1, 0)]
    return np.where(valid[..., None], np.stack(columns, axis=-1), 0).astype(np.float32)


def _road(roads: tuple[Road, ...], origin, heading):
    """Lines within reach of the ego's first place, nearest first, as (n, ROAD_LINES, ROAD_POINTS, 2) and masks."""
    n = len(roads)
    out = np.zeros((n, ROAD_LINES, ROAD_POINTS, 2), np.float32)
    kind, valid = np.zeros((n, ROAD_LINES), np.int8), np.zeros((n, ROAD_LINES), bool)
    limit, known = np.zeros((n, ROAD_LINES), np.float32), np.zeros((n, ROAD_LINES), bool)
    many = np.array([road.n for road in roads], dtype=np.int64)
    if many.sum() == 0:
        return out, kind, valid, limit, known
    row_of_line = np.repeat(np.arange(n), many)
    sizes = np.concatenate([np.diff(road.start) for road in roads]).astype(np.int64)
    row = np.repeat(row_of_line, sizes)
    xy = np.concatenate([road.xy for road in roads]).astype(np.float64) - origin[row]
    c, s = np.cos(heading)[row], np.sin(heading)[row]
    xy = np.stack([c * xy[:, 0] + s * xy[:, 1], c * xy[:, 1] - s * xy[:, 0]], axis=1)
    points, near = _spread(xy, sizes)
    order = np.lexsort((near, row_of_line))
    order = order[np.isfinite(near[order])]
    rank = np.arange(len(order)) - np.searchsorted(row_of_line[order], row_of_line[order])
    order, rank = order[rank < ROAD_LINES], rank[rank < ROAD_LINES]
    where = row_of_line[order], rank
    limits = np.concatenate([road.speed_limit_mps for road in roads])[order]
    out[where], kind[where] = points[order], np.concatenate([road.kind for road in roads])[order]
    valid[where], known[where], limit[where] = True, ~np.isnan(limits), np.nan_to_num(limits)
    return out, kind, valid, limit, known


def _spread(xy: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, ROAD_POINTS, 2) points at even distances along the part of each polyline from where it first to where it
    last lies within reach of (0, 0), and (k,) its distance from there, inf where it is out of reach."""
    k, line = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    p, d = xy[:-1], np.diff(xy, axis=0)
    inner = line[1:] == line[:-1]
    square = np.where(inner, np.maximum((d * d).sum(axis=1), 1e-12), 0)
    s = np.concatenate([[0], np.cumsum(np.where(inner, np.sqrt(square), 1.0))])  # increases from line to line, too
    safe, towards = np.maximum(square, 1e-12), -(p * d).sum(axis=1)
    closest = p + np.clip(towards / safe, 0, 1)[:, None] * d
    root = towards**2 - square * ((p * p).sum(axis=1) - ROAD_REACH_M**2)
    enter, leave = (np.clip((towards + sign * np.sqrt(np.maximum(root, 0))) / safe, 0, 1) for sign in (-1, 1))
    use = np.flatnonzero(inner & (root > 0) & (leave > enter))
    near, first, last = np.full(k, np.inf), np.full(k, np.inf), np.full(k, -np.inf)
    np.minimum.at(near, line[use], np.hypot(*closest[use].T))
    np.minimum.at(first, line[use], s[use] + enter[use] * np.sqrt(square[use]))
    np.maximum.at(last, line[use], s[use] + leave[use] * np.sqrt(square[use]))
    some = np.isfinite(near)
    first, last = np.where(some, first, 0), np.where(some, last, 0)
    wanted = first[:, None] + (last - first)[:, None] * np.linspace(0, 1, ROAD_POINTS)
    flat = np.stack([np.interp(wanted.ravel(), s, xy[:, axis]) for axis in (0, 1)], axis=1)
    return flat.reshape(k, ROAD_POINTS, 2), near
