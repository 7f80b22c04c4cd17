"""What metrics, categories and attributes share: the ego against every agent at every step, computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from avshift_core.scenario.measure.geometry import Boxes, EgoPath, along_path, distance, time_to_overlap
from avshift_core.scenario.measure.motion import EgoMotion, ego_motion, path_of
from avshift_core.scenario.measure.tracks import GRID_S, Tracks, follow_tracks
from avshift_core.scenario.schema import ScenarioBatch

TTC_HORIZON_S = 10.0  # cap of the metric: nobody reacts to what may happen later
LEADER_MARGIN_M = 0.5  # beyond its lateral speed, an agent may come this much nearer to the path between two looks
CHUNK_PAIR_STEPS = 200_000  # 0.8 MB an array: those in use at a time stay in the processor's cache
HIDDEN_M = 30.0  # behind somebody who is in the path by this much, nobody can become the nearest before the next look
FAR_M = 1e6


@dataclass(frozen=True)
class Interaction:
    """The ego and its agents.

    Attributes:
        motion: the ego's smoothed motion; path: where it drove; tracks: the agents along that path.
        ttc_min_s: (n,) smallest time to collision with any agent, inf where none within TTC_HORIZON_S.
        gap_min_m: (n,) smallest distance between the ego's box and any other, inf without agents.
        distance_min_m: (n, A) smallest distance between the centres, inf where never valid together.
        leader: (n, T) nearest agent ahead in the ego's path, -1 where none.
        leader_gap_m: (n, T) from bumper to bumper along the path, inf where none.
        leader_closing_mps: (n, T) ego's speed minus the leader's along the path, 0 where none.
    """

    motion: EgoMotion
    path: EgoPath
    tracks: Tracks
    ttc_min_s: np.ndarray
    gap_min_m: np.ndarray
    distance_min_m: np.ndarray
    leader: np.ndarray
    leader_gap_m: np.ndarray
    leader_closing_mps: np.ndarray


def interact(batch: ScenarioBatch) -> Interaction:
    """Ego against agents; only the coarse tracks are kept for every pair."""
    n, A, T = batch.agents_valid.shape
    motion = ego_motion(batch)
    path = path_of(batch, motion)
    tracks = follow_tracks(batch, path)
    ttc, gap = np.full(n, np.inf, np.float32), np.full(n, np.inf, np.float32)
    leader, closing = np.full((n, T), -1, np.int32), np.zeros((n, T), np.float32)
    leader_gap, nearest = np.full((n, T), np.inf, np.float32), np.full((n, A), np.inf, np.float32)
    size = max(1, CHUNK_PAIR_STEPS // max(A * T, 1))
    for start in range(0, n if A * T else 0, size):
        part = slice(start, start + size)
        pairs = _Pairs.of(batch, tracks, part)
        ttc[part] = _ttc(pairs)
        gap[part], nearest[part] = _gap(pairs)
        leader[part], leader_gap[part], closing[part] = _leader(pairs, path, tracks, part)
    return Interaction(motion, path, tracks, ttc, gap, nearest, leader, leader_gap, closing)


def pair_steps(batch: ScenarioBatch, tracks: Tracks) -> tuple[np.ndarray, np.ndarray]:
    """(n, A, T) time to collision and gap of the ego and each agent at each step; inf where there is none.

    Every pair-step is measured as a scenario of its own, by the same arithmetic: the smallest of a scenario are its
    `ttc_min_s` and `gap_min_m`, bit for bit.
    """
    shape = n, A, T = batch.agents_valid.shape
    ttc, gap = np.full(shape, np.inf, np.float32), np.full(shape, np.inf, np.float32)
    size = max(1, CHUNK_PAIR_STEPS // max(A * T, 1))
    for start in range(0, n if A * T else 0, size):
        part = slice(start, start + size)
        pairs = _Pairs.of(batch, tracks, part).alone()
        ttc[part] = _ttc(pairs).reshape(-1, A, T)
        gap[part] = _gap(pairs)[0].reshape(-1, A, T)
    return ttc, gap


@dataclass(frozen=True)
class _Pairs:
    """A part of the batch in the ego's moving frame, (m, A, T) each; (m, A, 1) or (m, 1, T) where constant."""

    valid: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    square: np.ndarray
    cos: np.ndarray
    sin: np.ndarray
    speed: np.ndarray
    xy_heading: np.ndarray
    ego_speed: np.ndarray
    ego_half: np.ndarray
    half: np.ndarray
    grid: np.ndarray

    @staticmethod
    def of(batch: ScenarioBatch, tracks: Tracks, part: slice) -> _Pairs:
        ego, agents, t_s = batch.ego[part], batch.agents[part], batch.t_s[part]
        grid = np.minimum((t_s - t_s[:, :1]) / GRID_S + 1e-6, tracks.step.shape[1] - 1).astype(np.intp)
        valid = batch.agents_valid[part] & batch.ego_valid[part][:, None, :]
        c, s = np.cos(ego[:, None, :, 2]), np.sin(ego[:, None, :, 2])
        dx, dy = agents[..., 0] - ego[:, None, :, 0], agents[..., 1] - ego[:, None, :, 1]
        np.copyto(dx, np.float32(FAR_M), where=~valid)
        lon, lat = c * dx + s * dy, c * dy - s * dx
        turn = agents[..., 2] - ego[:, None, :, 2]
        speed = np.ascontiguousarray(agents[..., 3])
        i, a = np.nonzero((tracks.speed_mps[part] < 0).any(axis=2))  # few ever drive backwards
        speed[i, a] = np.copysign(speed[i, a], np.take_along_axis(tracks.speed_mps[part][i, a], grid[i], axis=1))
        return _Pairs(
            valid, lon, lat, lon * lon + lat * lat, np.cos(turn), np.sin(turn), speed, agents, ego[:, None, :, 3],
            batch.ego_size[part, :2] / 2, batch.agent_size[part, :, :2] / 2, grid,
        )

    def alone(self) -> _Pairs:
        """Every pair-step as a scenario of one agent and one step: m A T of them."""
        m, A, T = self.valid.shape
        alone = {name: np.broadcast_to(getattr(self, name), (m, A, T)).reshape(-1, 1, 1)
                 for name in ("valid", "lon", "lat", "square", "cos", "sin", "speed", "ego_speed")}
        half = np.repeat(self.half.reshape(-1, 1, 2), T, axis=0)
        return replace(self, **alone, xy_heading=self.xy_heading.reshape(-1, 1, 1, 4), half=half,
                       ego_half=np.repeat(self.ego_half, A * T, axis=0), grid=np.zeros((m * A * T, 1), np.intp))

    @property
    def reach(self) -> np.ndarray:
        """(m, A, 1) centres further apart than this cannot touch: sum of half diagonals."""
        ego, other = (np.hypot(h[..., 0], h[..., 1]) for h in (self.ego_half, self.half))
        return (ego[:, None] + other)[..., None]

    @property
    def inscribed(self) -> np.ndarray:
        """(m, A) centres nearer than this do overlap: sum of the smaller half sides."""
        return self.ego_half.min(axis=1)[:, None] + self.half.min(axis=2)

    def boxes(self, chosen: np.ndarray) -> tuple[Boxes, np.ndarray]:
        """Boxes of the chosen pair-steps (flat indices), and their scenario."""
        _, A, T = self.valid.shape
        pair = chosen // T
        row, half = pair // A, self.half.reshape(-1, 2)
        boxes = Boxes(
            *(a.ravel().take(chosen) for a in (self.lon, self.lat, self.cos, self.sin)),
            self.ego_half[:, 0].take(row), self.ego_half[:, 1].take(row), half[:, 0].take(pair), half[:, 1].take(pair),
        )
        return boxes, row


def _ttc(pairs: _Pairs) -> np.ndarray:
    """(m,) smallest time until two boxes overlap, exact.

    Boxes overlap after their circumscribed and not after their inscribed circles do: only pair-steps that could beat
    the scenario's smallest upper bound are computed with the boxes.
    """
    m, A, T = pairs.valid.shape
    w_lon, w_lat = pairs.speed * pairs.cos - pairs.ego_speed, pairs.speed * pairs.sin
    towards = pairs.lon * w_lon + pairs.lat * w_lat
    w2 = w_lon * w_lon + w_lat * w_lat
    reach = pairs.reach
    outside = pairs.square - reach * reach
    chosen = outside * w2 <= towards * towards
    chosen &= (towards < 0) | (outside < 0)
    # within the horizon: distance <= reach + horizon x speed, loosened by (a + b)^2 <= 2 a^2 + 2 b^2
    chosen &= pairs.square <= 2 * reach * reach + np.float32(2 * TTC_HORIZON_S**2) * w2
    chosen &= pairs.valid
    chosen = np.flatnonzero(chosen)
    pair = chosen // T
    row, inscribed = pair // A, pairs.inscribed.ravel().take(pair)
    w2, towards, square = (a.ravel().take(chosen) for a in (w2, towards, pairs.square))
    safe_w2 = np.maximum(w2, np.float32(1e-9))
    lower = (np.sqrt(square) - reach.ravel().take(pair)) / np.sqrt(safe_w2)
    root = towards * towards - w2 * (square - inscribed * inscribed)
    meets = (root >= 0) & (towards < 0) | (square <= inscribed * inscribed)  # who moves apart never meets
    upper = np.where(meets, np.maximum(-towards - np.sqrt(np.maximum(root, 0)), 0) / safe_w2, TTC_HORIZON_S)
    limit = np.minimum(_least_of_row(upper, row, m), np.float32(TTC_HORIZON_S))
    chosen = chosen[lower <= limit.take(row) + np.float32(1e-3)]
    boxes, row = pairs.boxes(chosen)
    ttc = time_to_overlap(boxes, w_lon.ravel().take(chosen), w_lat.ravel().take(chosen))
    return _least_of_row(np.where(ttc <= TTC_HORIZON_S, ttc, np.float32(np.inf)), row, m)


def _least_of_row(values: np.ndarray, row: np.ndarray, m: int) -> np.ndarray:
    """(m,) smallest of the values (k,) of each row, inf where there is none; rows (k,) do not decrease."""
    out = np.full(m, np.inf, np.float32)
    if len(row):
        first = np.flatnonzero(np.diff(row, prepend=-1))
        out[row[first]] = np.minimum.reduceat(values, first)
    return out


def _gap(pairs: _Pairs) -> tuple[np.ndarray, np.ndarray]:
    """(m,) smallest gap, exact, and (m, A) smallest centre distance.

    A gap lies between the centre distance minus both circumscribed and minus both inscribed radii; only pair-steps
    that could beat the scenario's smallest upper bound are measured exactly.
    """
    nearest = np.sqrt(pairs.square.min(axis=2))
    upper = np.maximum((nearest - pairs.inscribed).min(axis=1), 0)[:, None, None]
    reach = pairs.reach
    chosen = np.flatnonzero(pairs.square <= (upper + reach) ** 2 * np.float32(1 + 1e-5))
    boxes, row = pairs.boxes(chosen)
    gap = _least_of_row(distance(boxes), row, len(nearest))
    some = pairs.valid.any(axis=2)
    return np.where(some.any(axis=1), gap, np.inf), np.where(some, nearest, np.inf)


def _near_path(pairs: _Pairs, tracks: Tracks, part: slice) -> np.ndarray:
    """(m, A, G) agents that may be ahead in the ego's path before the next look."""
    sin, speed = np.abs(tracks.sin[part]), np.abs(tracks.speed_mps[part])
    length, width = pairs.half[..., :1], pairs.half[..., 1:]
    margin = pairs.ego_half[:, 1:, None] + width + np.float32(LEADER_MARGIN_M)
    near = np.abs(tracks.aside_m[part]) <= margin + (length + np.float32(GRID_S) * speed) * sin
    near &= tracks.ahead_m[part] > -np.float32(GRID_S) * speed
    near &= tracks.valid[part]
    ahead = tracks.ahead_m[part]
    blocked = near & (ahead > 0) & (np.abs(tracks.aside_m[part]) < pairs.ego_half[:, 1:, None])
    block = np.where(blocked, ahead, np.float32(np.inf)).min(axis=1, keepdims=True)
    block[..., :-1] = np.maximum(block[..., :-1], block[..., 1:])
    near[..., :-1] |= near[..., 1:]
    near &= (ahead <= block + np.float32(HIDDEN_M)) | ~tracks.valid[part]
    return near


def _native_steps(looks: np.ndarray, pairs: _Pairs, G: int) -> np.ndarray:
    """Flat (m, A, T) indices of the valid pair-steps from each of the looks, flat (m, A, G) indices, to the next."""
    m, A, T = pairs.valid.shape
    count = np.bincount((pairs.grid + G * np.arange(m)[:, None]).ravel(), minlength=m * G).reshape(m, G)
    begin = np.cumsum(count, axis=1) - count
    pair = looks // G
    at = pair // A * G + looks % G
    many, start = count.ravel().take(at), pair * T + begin.ravel().take(at)
    steps = np.arange(many.sum()) + np.repeat(start - np.cumsum(many) + many, many)
    return steps[pairs.valid.ravel().take(steps)]


def _leader(pairs: _Pairs, path: EgoPath, tracks: Tracks, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m, T) nearest agent whose box overlaps the strip that the ego's box sweeps along its path, ahead of it; its gap
    and closing speed. Only agents that the coarse tracks show near the strip are projected at every step.
    """
    m, A, T = pairs.valid.shape
    chosen = _native_steps(np.flatnonzero(_near_path(pairs, tracks, part)), pairs, tracks.step.shape[1])
    boxes, row = pairs.boxes(chosen)
    at = row * T + chosen % T
    x, y, heading, _ = pairs.xy_heading.reshape(-1, 4).take(chosen, axis=0).T
    s_ego = path.s_m[part].ravel().take(at)
    s, d, cos, sin = along_path(path, row + part.start, x, y, s_ego + boxes.x)
    h_cos, h_sin = np.cos(heading), np.sin(heading)
    cos, sin = cos * h_cos + sin * h_sin, cos * h_sin - sin * h_cos
    l, w = boxes.other_half_length, boxes.other_half_width
    gap = s - s_ego - boxes.half_length - l * np.abs(cos) - w * np.abs(sin)
    in_path = (np.abs(d) < boxes.half_width + l * np.abs(sin) + w * np.abs(cos)) & (s > s_ego)
    gap, at, chosen, cos = np.maximum(gap, 0)[in_path], at[in_path], chosen[in_path], cos[in_path]
    best = np.full(m * T, np.inf, np.float32)
    np.minimum.at(best, at, gap)
    first = gap == best[at]
    at, chosen, cos = at[first], chosen[first], cos[first]
    leader, closing = np.full(m * T, -1, np.int32), np.zeros(m * T, np.float32)
    leader[at] = chosen // T % A
    closing[at] = pairs.ego_speed.ravel()[at] - pairs.speed.ravel()[chosen] * cos
    return leader.reshape(m, T), best.reshape(m, T), closing.reshape(m, T)
