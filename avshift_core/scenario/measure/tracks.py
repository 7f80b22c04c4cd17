"""Agents in the frame of the ego's path, on a coarse grid of time: how far ahead, how far aside, how they head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.geometry import EgoPath, along_path, last_at_or_before
from avshift_core.scenario.schema import ScenarioBatch

GRID_S = 0.5  # manoeuvres last seconds: six looks at the quickest lane change (3 s)
HORIZON_M = 160.0  # agents further away do not matter to any rule
REVERSE_MPS = 0.3  # backwards faster than this is driving, slower is noise of the positions


@dataclass(frozen=True)
class Tracks:
    """Agents every GRID_S seconds; distances in m. Where not valid, numbers mean nothing.

    Attributes:
        step: (n, G) the log's step, the last at or before the grid's time.
        t_s: (n, G) its time; ego_valid: (n, G).
        s_m: (n, G) how far the ego has come along its path.
        valid: (n, A, G) ego and agent are there, at most HORIZON_M apart.
        ahead_m: (n, A, G) of the agent's centre before the ego's, along the path.
        aside_m: (n, A, G) of the agent's centre to the left of the path.
        cos, sin: (n, A, G) of the agent's heading against the path.
        speed_mps: (n, A, G) along its heading, below 0 when it drives backwards.
    """

    step: np.ndarray
    t_s: np.ndarray
    ego_valid: np.ndarray
    s_m: np.ndarray
    valid: np.ndarray
    ahead_m: np.ndarray
    aside_m: np.ndarray
    cos: np.ndarray
    sin: np.ndarray
    speed_mps: np.ndarray


def follow_tracks(batch: ScenarioBatch, path: EgoPath) -> Tracks:
    """Sample the agents and project them onto the ego's path."""
    n, A, T = batch.agents_valid.shape
    start, end = batch.t_s[:, :1], batch.t_s[:, -1:]
    G = int(np.floor((end - start).max(initial=0) / GRID_S + 1e-6)) + 1
    wanted = start + GRID_S * np.arange(G)
    step = np.minimum(last_at_or_before(batch.t_s, wanted + 1e-6), np.maximum(batch.n_steps[:, None] - 1, 0))
    at = lambda a: np.take_along_axis(a, step, axis=1)  # noqa: E731
    ego_valid = at(batch.ego_valid) & (wanted <= end + 1e-6)
    s = at(path.s_m)
    flat = (np.arange(n * A).reshape(n, A, 1) * T + step[:, None]).ravel()
    states = batch.agents.reshape(-1, 4).take(flat, axis=0).reshape(n, A, G, 4)
    ego = batch.ego[np.arange(n)[:, None], step]
    dx, dy = states[..., 0] - ego[:, None, :, 0], states[..., 1] - ego[:, None, :, 1]
    valid = batch.agents_valid.ravel().take(flat).reshape(n, A, G) & ego_valid[:, None]
    valid &= dx * dx + dy * dy <= HORIZON_M**2
    chosen = np.flatnonzero(valid)
    row, at_step = chosen // max(A * G, 1), chosen % G
    at_ego = row * G + at_step
    lon = np.cos(ego[..., 2])[:, None] * dx + np.sin(ego[..., 2])[:, None] * dy
    x, y, heading, _ = states.reshape(-1, 4).take(chosen, axis=0).T
    s_ego = s.ravel().take(at_ego)
    s_agent, aside, path_cos, path_sin = along_path(path, row, x, y, s_ego + lon.ravel().take(chosen))
    cos, sin = np.cos(heading), np.sin(heading)

    def spread(values):
        full = np.zeros(n * A * G, np.float32)
        full[chosen] = values
        return full.reshape(n, A, G)

    return Tracks(
        step, at(batch.t_s), ego_valid, s, valid, spread(s_agent - s_ego), spread(aside),
        spread(path_cos * cos + path_sin * sin), spread(path_cos * sin - path_sin * cos),
        _signed_speed(states, valid & _headings_told(batch)[:, None, None], at(batch.t_s)),
    )


def _headings_told(batch: ScenarioBatch) -> np.ndarray:
    """(n,) False where headings were derived from the motion: then nobody seems to drive backwards, except by noise."""
    return np.fromiter(("agent_heading" not in names for names in batch.derived), bool, batch.n)


def _signed_speed(states: np.ndarray, valid: np.ndarray, t_s: np.ndarray) -> np.ndarray:
    """(n, A, G) speed along the heading. Logs that hold only its size get the sign from the change of position."""
    speed = states[..., 3].copy()
    if speed.shape[2] < 2:
        return speed
    dx, dy = np.diff(states[..., 0], axis=2), np.diff(states[..., 1], axis=2)
    heading = states[:, :, :-1, 2]
    backwards = np.cos(heading) * dx + np.sin(heading) * dy < -REVERSE_MPS * np.diff(t_s, axis=1)[:, None] - 1e-3
    backwards &= valid[:, :, 1:] & valid[:, :, :-1]
    for part in (speed[:, :, :-1], speed[:, :, 1:]):
        np.copyto(part, -np.abs(part), where=backwards)
    return speed
