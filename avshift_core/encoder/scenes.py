"""Scenarios on the way into the network: ragged, so that 128 agents are a limit and not a cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from avshift_core.errors import ModelError
from avshift_core.scenario.schema import ScenarioBatch
from avshift_core.scenario.view import EGO_FEATURES, ROAD_POINTS, TensorView, tensor_view

STEPS, MAX_AGENTS = 15, 128  # paper, sec:real_world_exp
ACCELERATION = EGO_FEATURES.index("acceleration_mps2")


@dataclass(frozen=True, eq=False)
class Scenes:
    """n scenarios; only what is there takes room. Arrays of numpy, or tensors of torch once they are in the network.

    A token is one agent at one step at which it is seen. Tokens stand agent by agent, each in the order of time.

    Attributes:
        ego: (n, S, 6) EGO_FEATURES; ego_valid: (n, S); ego_size: (n, 3); dt_s: (n,) time between steps.
        step_valid: (n, S) steps that this view shows: the time-validity mask.
        token: (m, 5) AGENT_FEATURES; token_agent: (m,) row of `agent_type`; token_step: (m,).
        agent_scene, agent_type: (a,), agent_size: (a, 3); agents of a scene stand nearest first.
        line: (l, 12, 2) points; line_scene, line_kind: (l,); line_limit: (l,) m/s; line_known: (l,) has a limit.
    """

    ego: np.ndarray
    ego_valid: np.ndarray
    ego_size: np.ndarray
    dt_s: np.ndarray
    step_valid: np.ndarray
    token: np.ndarray
    token_agent: np.ndarray
    token_step: np.ndarray
    agent_scene: np.ndarray
    agent_type: np.ndarray
    agent_size: np.ndarray
    line: np.ndarray
    line_scene: np.ndarray
    line_kind: np.ndarray
    line_limit: np.ndarray
    line_known: np.ndarray

    @property
    def n(self) -> int:
        return len(self.ego)


def scenes_of(batch: ScenarioBatch) -> Scenes:
    """A batch of scenarios as the network sees it: 15 steps in the ego's frame, at most 128 agents."""
    scenes = ragged(tensor_view(batch, STEPS, MAX_AGENTS))
    for i in np.flatnonzero(~can_be_encoded(scenes)):
        raise ModelError(f"Scenario '{batch.ids[i].scenario_id}' has no valid step of the ego, so nothing can be "
                         "encoded. Import its log again without it; --skip-bad leaves such scenarios out.")
    return scenes


def can_be_encoded(scenes: Scenes) -> np.ndarray:
    """(n,) whether the ego is seen at one step of the view at least."""
    return scenes.ego_valid.any(axis=1)


def ragged(view: TensorView) -> Scenes:
    """The padded view without its padding."""
    agent_scene, slot = np.nonzero(view.agent_valid)
    valid = view.agents_valid[agent_scene, slot]  # (a, S)
    token_agent, token_step = np.nonzero(valid)
    line_scene, line = np.nonzero(view.road_valid)
    return Scenes(
        view.ego, view.ego_valid, view.ego_size, view.dt_s, view.ego_valid | view.agents_valid.any(axis=1),
        view.agents[agent_scene[token_agent], slot[token_agent], token_step], token_agent, token_step,
        agent_scene, view.agent_type[agent_scene, slot].astype(np.int64), view.agent_size[agent_scene, slot],
        view.road[line_scene, line], line_scene, view.road_kind[line_scene, line].astype(np.int64),
        view.road_limit_mps[line_scene, line], view.road_limit_known[line_scene, line],
    )


def context_view(scenes: Scenes, window_s: float) -> Scenes:
    """What the AV did not cause: the road, the first `window_s` seconds of the others, and the ego's first state."""
    steps = np.floor(window_s / np.maximum(scenes.dt_s, 1e-6) + 1e-6).astype(np.int64)
    return cut(scenes, np.maximum(steps, scenes.ego_valid.argmax(axis=1)), ego_start_only=True)


def cut(scenes: Scenes, last: np.ndarray, *, ego_start_only: bool) -> Scenes:
    """The scenes up to step `last` (n,) of each; later steps are as if they had not been recorded.

    Args:
        ego_start_only: the ego is shown at its first valid step alone, and without its acceleration: that is already
            the AV's answer to what it sees.
    """
    S = min(int(last.max(initial=0)) + 1, scenes.ego.shape[1])
    shown = np.arange(S) <= last[:, None]
    ego, ego_valid = scenes.ego[:, :S].copy(), scenes.ego_valid[:, :S] & shown
    if ego_start_only:
        ego_valid = ego_valid & (np.arange(S) == scenes.ego_valid.argmax(axis=1)[:, None])
        ego[..., ACCELERATION] = 0
    keep = scenes.token_step <= last[scenes.agent_scene[scenes.token_agent]]
    there = np.bincount(scenes.token_agent[keep], minlength=len(scenes.agent_scene)) > 0
    row = np.cumsum(there) - 1
    return replace(
        scenes, ego=ego * ego_valid[..., None], ego_valid=ego_valid,
        step_valid=scenes.step_valid[:, :S] & shown, token=scenes.token[keep],
        token_agent=row[scenes.token_agent[keep]], token_step=scenes.token_step[keep],
        agent_scene=scenes.agent_scene[there], agent_type=scenes.agent_type[there], agent_size=scenes.agent_size[there],
    )


def without_road(scenes: Scenes, which: np.ndarray) -> Scenes:
    """The scenes as a log without a map would have them, where `which` (n,) says so."""
    keep = ~which[scenes.line_scene]
    return replace(scenes, line=scenes.line[keep], line_scene=scenes.line_scene[keep],
                   line_kind=scenes.line_kind[keep], line_limit=scenes.line_limit[keep],
                   line_known=scenes.line_known[keep])


# Scenes as rows of numbers, for the file that training reads --------------------------------------------------------

AGENT_ROW, TOKEN_ROW, LINE_ROW = 4, 7, ROAD_POINTS * 2 + 3
HEAD_ROW = STEPS * 6 + 2 * STEPS + 3 + 1


def spans(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """start[0], start[0] + 1, ... (length[0] of them), start[1], ...

    >>> spans(np.array([0, 7]), np.array([2, 3])).tolist()
    [0, 1, 7, 8, 9]
    """
    return np.repeat(start - np.cumsum(length) + length, length) + np.arange(length.sum())


def pack(scenes: Scenes, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One run of float32 for each scene, behind each other.

    Args:
        extra: (n, k) numbers that go with each scene.

    Returns:
        The numbers, and counts (n, 3): agents, tokens and lines of each scene.
    """
    n = scenes.n
    token_scene = scenes.agent_scene[scenes.token_agent]
    counts = np.stack([np.bincount(of, minlength=n) for of in (scenes.agent_scene, token_scene, scenes.line_scene)], 1)
    first_agent = np.cumsum(counts[:, 0]) - counts[:, 0]
    head = np.concatenate([scenes.ego.reshape(n, -1), scenes.ego_valid, scenes.step_valid, scenes.ego_size,
                           scenes.dt_s[:, None], extra], axis=1)
    agent = np.concatenate([scenes.agent_type[:, None], scenes.agent_size], axis=1)
    token = np.concatenate([scenes.token, (scenes.token_agent - first_agent[token_scene])[:, None],
                            scenes.token_step[:, None]], axis=1)
    line = np.concatenate([scenes.line.reshape(len(scenes.line), -1), scenes.line_kind[:, None],
                           scenes.line_limit[:, None], scenes.line_known[:, None]], axis=1)
    place = _layout(counts, extra.shape[1])
    data = np.empty(int(sum(length.sum() for _, length in place)), np.float32)
    for rows, (start, length) in zip((head, agent, token, line), place, strict=True):
        data[spans(start, length)] = rows.ravel()
    return data, counts


def unpack(data: np.ndarray, counts: np.ndarray, n_extra: int) -> tuple[Scenes, np.ndarray]:
    """The inverse of `pack`: scenes and extra (n, k)."""
    n = len(counts)
    place = _layout(counts, n_extra)
    widths = (HEAD_ROW + n_extra, AGENT_ROW, TOKEN_ROW, LINE_ROW)
    head, agent, token, line = (data[spans(*at)].reshape(-1, width) for at, width in zip(place, widths, strict=True))
    ego, valid, size, dt, extra = np.split(head, np.cumsum([STEPS * 6, 2 * STEPS, 3, 1]), axis=1)
    ego_valid, step_valid = np.split(valid > 0, 2, axis=1)
    scene = np.arange(n)
    first_agent = np.cumsum(counts[:, 0]) - counts[:, 0]
    token_agent = token[:, 5].astype(np.int64) + np.repeat(first_agent, counts[:, 1])
    return Scenes(
        ego.reshape(n, STEPS, 6), ego_valid, size, dt[:, 0], step_valid, token[:, :5],
        token_agent, token[:, 6].astype(np.int64), np.repeat(scene, counts[:, 0]), agent[:, 0].astype(np.int64),
        agent[:, 1:], line[:, :-3].reshape(-1, ROAD_POINTS, 2), np.repeat(scene, counts[:, 2]),
        line[:, -3].astype(np.int64), line[:, -2], line[:, -1] > 0,
    ), extra


def packed_size(counts: np.ndarray, n_extra: int) -> np.ndarray:
    """(n,) how many numbers each scene takes."""
    return HEAD_ROW + n_extra + counts @ np.array([AGENT_ROW, TOKEN_ROW, LINE_ROW])


def _layout(counts: np.ndarray, n_extra: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(start, length) of head, agents, tokens and lines of each scene."""
    lengths = [np.full(len(counts), HEAD_ROW + n_extra), counts[:, 0] * AGENT_ROW, counts[:, 1] * TOKEN_ROW,
               counts[:, 2] * LINE_ROW]
    total = sum(lengths)
    start = np.cumsum(total) - total
    place = []
    for length in lengths:
        place.append((start, length))
        start = start + length
    return place
