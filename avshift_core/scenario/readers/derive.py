"""What a log does not hold: velocity, heading, acceleration, types and sizes, from positions in time."""

from __future__ import annotations

import numpy as np

from avshift_core.scenario.schema import AGENT_TYPES

HALF_WINDOW_S = 0.5  # of the local line; 1 s holds 11 states at 10 Hz and is shorter than any manoeuvre
MIN_STEPS_EACH_SIDE = 1.5  # of the median step: below 3 Hz the window widens until it holds both neighbours
STANDSTILL_MPS = 0.5  # below, noise of 0.1 m in position turns the direction of motion by more than 10 degrees
TRAFFIC_MPS, HALF_LANE_M, BESIDE_M, NEAR_M = 2.0, 1.5, 3.0, 40.0  # who votes for the heading of a standing ego
ONCOMING = 1.25  # weight of the vote for the opposite direction, the best of 0.8 to 2 on egos that do move
EDGE, EDGE_STANDSTILL_MPS = 0.75, 1.5  # with less of the window on one side, noise is up to four times as large
VOTE_RAD = np.radians(np.arange(-180, 180, 5))
BLOCK = 256  # steps fitted at once; bounds memory for long records
# m, length x width x height: mean boxes of nuScenes by class, rounded, as the anchors of its detectors hold them
# (mmdetection3d's configurations: car 4.607 x 1.950 x 1.723 ...); static: between a cone and a barrier. An unknown road
# user is most often a car.
TYPE_SIZE_M = {
    "car": (4.6, 1.95, 1.7), "truck": (6.7, 2.5, 2.7), "bus": (11.2, 2.9, 3.5), "motorcycle": (2.1, 0.8, 1.4),
    "bicycle": (1.7, 0.6, 1.3), "pedestrian": (0.7, 0.7, 1.8), "static": (0.5, 0.5, 1.0), "other": (4.6, 1.95, 1.7),
}
CAR_MPS = 4.0  # no pedestrian runs so fast for a window of 1 s, and few cyclists are tracked among cars
WALK_MPS = (0.6, 2.2)  # people walk at about 1.4 m/s; room for slow ones and for noise
WALK_S, WALK_M = 2.0, 2.5  # a car creeps at walking speed too, but seldom for long without stopping or speeding up
PERSON_M, CAR_LENGTH_M, TRUCK_LENGTH_M = 1.2, 2.8, 6.5  # between the mean boxes above
RIDER_MPS = 8.0  # few cyclists are faster
MIN_CREEP_M, MIN_CREEP_STATES = 0.02, 10  # localisation of a standing car wanders by some millimetres


def local_slope(t_s: np.ndarray, values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Derivative in time of `values` (A, T, k), same shape; NaN where fewer than two valid states are near.

    The slope of the least-squares line over the valid states within 0.5 s on both sides (wider below 3 Hz), weighted
    by 1 - (dt / width)^2: a Savitzky-Golay filter of order 1 for uneven times. At 10 Hz it halves a sine of 1 Hz,
    passes one of 0.3 Hz with 94 %, and turns noise of sd 0.1 m in position into one of 0.14 m/s in velocity.
    """
    valid = valid.astype(np.float64)
    filled = np.where(valid[..., None] > 0, values, 0.0)
    width = half_window(t_s) * 1.0001  # so that a neighbour at the very edge keeps some weight
    slope = np.full(values.shape, np.nan)
    for start in range(0, len(t_s), BLOCK):
        rows = slice(start, min(start + BLOCK, len(t_s)))
        cols = slice(*np.searchsorted(t_s, [t_s[rows.start] - width, t_s[rows.stop - 1] + width]))
        slope[:, rows] = _weighted_slope(t_s[rows], t_s[cols], filled[:, cols], valid[:, cols], width)
    return slope


def half_window(t_s: np.ndarray) -> float:
    """Half the width in s of the local line."""
    return max(HALF_WINDOW_S, MIN_STEPS_EACH_SIDE * float(np.median(np.diff(t_s)))) if len(t_s) > 1 else HALF_WINDOW_S


def _weighted_slope(at_s, t_s, values, valid, width) -> np.ndarray:
    dt = t_s[None, :] - at_s[:, None]
    weight = np.maximum(1 - (dt / width) ** 2, 0)
    s0, s1, s2 = (valid @ (weight * dt**power).T for power in (0, 1, 2))
    # (A, T', k): sums over the states of each window
    y0, y1 = (np.einsum("atk,st->ask", values, weight * dt**power, optimize=True) for power in (0, 1))
    spread = s0 * s2 - s1**2
    enough = spread > 1e-9 * np.maximum(s0, 1e-12) ** 2 * width**2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (s0[..., None] * y1 - s1[..., None] * y0) / spread[..., None]
    return np.where(enough[..., None], slope, np.nan)


def velocity_of(t_s: np.ndarray, xy: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Velocity (A, T, 2) in m/s of tracks (A, T, 2).

    A state without a neighbour in its window takes the velocity of the nearest state in time that has one; a track
    without any (one state alone) counts as standing.
    """
    velocity = local_slope(t_s, xy, valid)
    velocity[~valid] = np.nan
    return np.nan_to_num(_fill_in_time(t_s, velocity), nan=0.0)


def heading_of(t_s: np.ndarray, xy: np.ndarray, valid: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Direction of motion (A, T) in rad; NaN in all steps of a track that shows none.

    While a track stands (below 0.5 m/s; 1.5 m/s at its ends, where noise is larger) it keeps its last direction, and
    before it first moves it has the first one. A track that never moves so fast has the direction from its first to its
    last state, if it went straight (see `_creep`). A vehicle that backs up cannot be told from one that turned around:
    it points where it goes.
    """
    first, last = _ends(valid)
    reach = EDGE * half_window(t_s)
    edge = (t_s - t_s[first][:, None] < reach) | (t_s[last][:, None] - t_s < reach)
    standstill = np.where(edge, EDGE_STANDSTILL_MPS, STANDSTILL_MPS)
    moving = valid & (np.hypot(velocity[..., 0], velocity[..., 1]) >= standstill)
    heading = np.where(moving, np.arctan2(velocity[..., 1], velocity[..., 0]), np.nan)
    heading = _fill_forward(heading)
    heading = _fill_forward(heading[:, ::-1])[:, ::-1]
    never = ~moving.any(axis=1)
    heading[never] = _creep(xy[never], valid[never])[:, None]
    return heading


def _creep(xy: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Direction (A,) of tracks that hardly move: first to last state, NaN unless half of the way is in that direction.

    Noise alone goes back and forth: of n random steps about 1 / sqrt(n) of the way is left, so ten states are needed.
    """
    first, last = _ends(valid)
    row = np.arange(len(xy))
    chord = xy[row, last] - xy[row, first]
    filled = np.moveaxis(_fill_forward(np.moveaxis(np.where(valid[..., None], xy, np.nan), 2, 1)), 1, 2)
    way = np.nansum(np.hypot(*np.moveaxis(np.diff(filled, axis=1), 2, 0)), axis=1)
    net = np.hypot(chord[:, 0], chord[:, 1])
    straight = (net >= MIN_CREEP_M) & (net >= 0.5 * way) & (valid.sum(axis=1) >= MIN_CREEP_STATES)
    return np.where(straight, np.arctan2(chord[:, 1], chord[:, 0]), np.nan)


def heading_in_traffic(ego_xy: np.ndarray, xy: np.ndarray, velocity: np.ndarray, valid: np.ndarray) -> float:
    """Heading of an ego that never moves, from the agents that do (xy and velocity (A, T, 2), valid (A, T)); 0 if none.

    The direction with most votes: an agent votes for its own direction, and for the opposite one where the ego stands
    to its left, as oncoming cars have it in right-hand traffic; the closer its line passes by the ego, the more. Of
    213 Argoverse 1 scenes with an ego that moves less than 10 m, this is within 15 degrees of its heading in 85 % and
    within 90 in 91 % (two weights were chosen among 15 pairs on the same scenes, which gave 71 to 85 %).
    Any fixed direction instead would tell the streets of one city from those of another.
    """
    moving = valid & (np.hypot(velocity[..., 0], velocity[..., 1]) >= TRAFFIC_MPS)
    direction = np.arctan2(velocity[..., 1], velocity[..., 0])[moving]
    offset = np.broadcast_to(ego_xy, xy.shape)[moving] - xy[moving]
    left = np.cos(direction) * offset[:, 1] - np.sin(direction) * offset[:, 0]
    weight = np.exp(-np.abs(left) / BESIDE_M - np.hypot(offset[:, 0], offset[:, 1]) / NEAR_M)
    votes = np.zeros(len(VOTE_RAD))
    for k, candidate in enumerate(VOTE_RAD):
        along = np.cos(direction - candidate)
        # exp(8 (cos - 1)): a von Mises kernel that falls to one half at 24 degrees
        opposite = ONCOMING * (left > HALF_LANE_M) * np.exp(8 * (-along - 1))
        votes[k] = (weight * (np.exp(8 * (along - 1)) + opposite)).sum()
    return float(VOTE_RAD[votes.argmax()]) if votes.any() else 0.0


def acceleration_of(t_s: np.ndarray, speed: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Acceleration (T,) along the track in m/s2: the local line through the speeds (`local_slope`)."""
    slope = local_slope(t_s, speed[None, :, None], valid[None])
    return np.nan_to_num(_fill_in_time(t_s, slope)[0, :, 0], nan=0.0)


def guess_types(t_s, xy, valid, speed, size) -> np.ndarray:
    """Types (A,) of agents, from their size (A, 3) where it is known (NaN elsewhere), else from how they move.

    By length: under 1.2 m a pedestrian, under 2.8 m a bicycle (faster than 8 m/s: a motorcycle), over 6.5 m a truck,
    else a car. By motion, if it gets 2.5 m ahead: faster than 4 m/s (90th percentile) a car; for at least 2 s nearly
    always at 0.6 to 2.2 m/s a pedestrian. All else is "other": parked, or seen too shortly. On Argoverse 2, whose types
    are known, all 10 pedestrians found by motion are some, and 52 of 65 cars (4 scenarios, the same the rule was
    made on).
    """
    slow, fast = _quantile(speed, valid, 0.1), _quantile(speed, valid, 0.9)
    first, last = _ends(valid)
    row = np.arange(len(xy))
    way = np.hypot(*np.moveaxis(xy[row, last] - xy[row, first], -1, 0))
    walks = (slow >= WALK_MPS[0]) & (fast <= WALK_MPS[1]) & (t_s[last] - t_s[first] >= WALK_S) & (way >= WALK_M)
    length = size[:, 0]
    names = np.select(
        [length < PERSON_M, (length < CAR_LENGTH_M) & (fast > RIDER_MPS), length < CAR_LENGTH_M,
         length > TRUCK_LENGTH_M, np.isfinite(length), (fast >= CAR_MPS) & (way >= WALK_M), walks],
        ["pedestrian", "motorcycle", "bicycle", "truck", "car", "car", "pedestrian"], "other",
    )
    return np.array([AGENT_TYPES.index(name) for name in names], dtype=np.int8)


def default_sizes(agent_type: np.ndarray) -> np.ndarray:
    """Sizes (A, 3) in m by type."""
    table = np.array([TYPE_SIZE_M[name] for name in AGENT_TYPES])
    return table[agent_type]


def _ends(valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last valid step (A,) of each track."""
    return valid.argmax(axis=1), valid.shape[1] - 1 - valid[:, ::-1].argmax(axis=1)


def _fill_forward(values: np.ndarray) -> np.ndarray:
    """NaN along the last axis takes the value before it."""
    known = ~np.isnan(values)
    index = np.maximum.accumulate(np.where(known, np.arange(values.shape[-1]), 0), axis=-1)
    return np.take_along_axis(values, index, axis=-1)


def _fill_in_time(t_s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """NaN of (A, T, k) takes the value nearest in time; a track that is all NaN stays so."""
    lacking = np.isnan(values[..., 0])
    for a in np.flatnonzero(lacking.any(axis=1) & ~lacking.all(axis=1)):
        known = np.flatnonzero(~lacking[a])
        at = np.clip(np.searchsorted(t_s[known], t_s), 1, max(len(known) - 1, 1))
        left, right = known[at - 1], known[np.minimum(at, len(known) - 1)]
        nearest = np.where(t_s - t_s[left] <= t_s[right] - t_s, left, right)
        values[a, lacking[a]] = values[a, nearest[lacking[a]]]
    return values


def _quantile(values: np.ndarray, valid: np.ndarray, share: float) -> np.ndarray:
    """Quantile (A,) over the valid steps of each track: the lower of the two neighbours; every track needs one."""
    ordered = np.sort(np.where(valid, values, np.inf), axis=1)
    return ordered[np.arange(len(values)), ((valid.sum(axis=1) - 1) * share).astype(int)]
