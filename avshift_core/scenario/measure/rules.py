"""The rules behind the categories: each gives, for every scenario, the agent that fulfils it, NOBODY or NO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.interaction import Interaction
from avshift_core.scenario.measure.lanes import LANE_CENTER, Segments, Shift, nearest
from avshift_core.scenario.measure.tracks import GRID_S, REVERSE_MPS, Tracks
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS, ScenarioBatch

NO, NOBODY = -2, -1  # the rule does not fire; it fires, and no agent takes part

VEHICLES = tuple(AGENT_TYPES.index(k) for k in ("car", "truck", "bus", "motorcycle", "bicycle", "other"))
PEDESTRIAN = AGENT_TYPES.index("pedestrian")
CROSSWALK = ROAD_KINDS.index("crosswalk")

BEFORE_PATH_M, BEYOND_PATH_M = 20.0, 30.0  # before its start and after its end the course of the path is a guess
BESIDE_M = 0.4  # between the sides of two boxes: beside, and not just at the edge of the path
MOVING_MPS = 0.7  # slower is standing or noise
SAME_WAY_COS = 0.9  # within 25 degrees: lane changes stay below 15
LOOK_BACK_S = 6.0  # a lane change takes 3 to 6 s
CUTIN_MAX_GAP_M = 60.0  # further ahead nobody has to react
CUTIN_STAY_S = 1.2  # shorter is a pass through the path
CUTIN_MIN_MOVE_M = 1.2  # its own, against the lane: otherwise it was the ego who moved
LANE_SHIFT_M = 2.0  # more than half a lane (3 to 3.75 m): the centre has crossed the line
QUICK_SHARE = 0.85  # of a shift, within LOOK_BACK_S, where no lane is mapped: lane changes of 9 s still pass
MAX_LANE_SHIFT_M = 8.0  # two lanes; more is a turn
NEAR_AHEAD_M, NEAR_BEHIND_M, NEAR_ASIDE_M = 60.0, 25.0, 9.0  # two lanes to either side, as far as a driver minds
PARALLEL_S, PARALLEL_SLACK_M, PARALLEL_SPEED_MPS = 4.0, 2.0, 2.5
PARALLEL_ASIDE_M = 5.0  # the neighbouring lane, not the one after it
WRONG_WAY_S, WRONG_WAY_AHEAD_M = 1.5, 100.0  # at 10 m/s each, a car 100 m ahead is there in 5 s
MIN_DRIVEN_M = 5.0  # the path of an ego that hardly moves is a guess
LANE_HALF_WIDTH_M = 1.5  # inside this the lane is surely the agent's
BACKING_AHEAD_M = 100.0  # a car that backs on the road is seen, and answered, from far away
BACKING_M, BACKING_S = 1.5, 1.2  # driven backwards without a break
CROSSING_M = 2.0  # across the path, by a pedestrian
CROSSING_AHEAD_M = 70.0  # at 12 m/s six seconds
CROSSWALK_M = 3.0  # nearer to a mapped crosswalk it is no jaywalking
STANDING_MPS = 0.5
PULL_SHIFT_M, PULL_MAX_M = 1.0, 4.5  # from the kerb into the lane or back: half a car's width to more than a lane
NUDGE_MIN_M, NUDGE_MAX_M, NUDGE_RETURN = 0.4, 3.0, 0.5  # of its peak the excursion may keep at the end
NUDGE_BEHIND_M = 15.0  # so far behind the ego is back in its lane
NUDGE_SLOW_MPS = 4.0  # objects one goes around: standing, walking or a slow bicycle
YIELD_DROP_MPS, YIELD_SHARE = 0.8, 0.08  # slows by this much and by this share: more than speeds waver by themselves
YIELD_BEFORE_S, YIELD_AFTER_S = 6.0, 3.0  # from the fastest moment so long before the crossing to the slowest near it
FOLLOW_SHARE, FOLLOW_GAP_M = 0.5, 60.0


@dataclass(frozen=True)
class Scene:
    """What the rules look at, on the coarse grid.

    Attributes:
        near: (n, A, G) valid and along the path, where its course is known.
        aside_size: (n, A, G) distance from the path; lane_m: offset from the ego's first lane, left positive.
        touch_m, bumper_m: (n, A, 1) centre distances at which sides and bumpers touch.
        kind: (n, A) agent type; ego_speed, ego_shift: (n, G); driven_m: (n,).
        states: (n, A, T, 4) of the log.
    """

    tracks: Tracks
    near: np.ndarray
    aside_size: np.ndarray
    lane_m: np.ndarray
    touch_m: np.ndarray
    bumper_m: np.ndarray
    kind: np.ndarray
    ego_speed: np.ndarray
    ego_shift: np.ndarray
    shift: Shift
    states: np.ndarray
    driven_m: np.ndarray

    @property
    def vehicle(self) -> np.ndarray:
        """(n, A) cars, trucks, buses, two-wheelers."""
        return np.isin(self.kind, VEHICLES)

    def position(self, i, a, g) -> np.ndarray:
        """(k, 4) states of agents a of scenarios i at grid steps g."""
        return self.states[i, a, self.tracks.step[i, g]]


@dataclass(frozen=True)
class CutIn:
    """(n,) each; agent NO, steps -1 and numbers NaN where nobody cuts in.

    Attributes:
        agent: who.
        onset_step: the log's step at which it starts to move over; entry_step: at which it overlaps the path.
        onset_gap_m, entry_gap_m: from the ego's front bumper to its rear bumper at these steps.
        speed_mps: its speed at the onset.
    """

    agent: np.ndarray
    onset_step: np.ndarray
    entry_step: np.ndarray
    onset_gap_m: np.ndarray
    entry_gap_m: np.ndarray
    speed_mps: np.ndarray


def cutting_in(scene: Scene) -> CutIn:
    """An agent that was beside the path moves into it ahead of the ego, near enough, and stays; the nearest one."""
    n = len(scene.kind)
    beside = scene.near & (scene.aside_size > scene.touch_m + BESIDE_M)
    inside = scene.near & (scene.aside_size < scene.touch_m) & (scene.tracks.ahead_m > 0)
    i, a = np.nonzero(beside.any(axis=2) & inside.any(axis=2) & scene.vehicle)
    beside, inside, near = beside[i, a], inside[i, a], scene.near[i, a]
    tracks, k, G = scene.tracks, np.arange(len(i)), beside.shape[1]
    grid = np.arange(G)
    left = np.where(beside, grid, -1).max(axis=1)  # last time beside the path
    entry = np.where(inside & (grid > left[:, None]), grid, G).min(axis=1)
    last = np.where(near, grid, -1).max(axis=1)
    stays = (last - entry) * GRID_S >= CUTIN_STAY_S
    entry = np.minimum(entry, G - 1)
    before = near & (grid < entry[:, None]) & (grid >= entry[:, None] - int(LOOK_BACK_S / GRID_S))
    aside, ahead, lane = scene.aside_size[i, a], tracks.ahead_m[i, a], scene.lane_m[i, a]
    start = np.where(before, aside, -1).argmax(axis=1)
    onset = np.where(before & (aside >= aside[k, start][:, None] - 0.3), grid, -1).max(axis=1)
    onset = np.maximum(onset, start)
    gap = ahead - scene.bumper_m[i, a]
    moved = np.abs(lane[k, last] - lane[k, start])
    cos, speed = tracks.cos[i, a], tracks.speed_mps[i, a]
    good = stays & before.any(axis=1) & (gap[k, entry] > -1) & (gap[k, entry] <= CUTIN_MAX_GAP_M)
    good &= (aside[k, last] <= 0.75 * scene.touch_m[i, a, 0]) & (ahead[k, last] > 0) & (moved >= CUTIN_MIN_MOVE_M)
    good &= (cos[k, start] > SAME_WAY_COS) & (cos[k, entry] > 0.8) & (speed[k, entry] > MOVING_MPS)
    good &= aside[k, start] - aside[k, last] >= CUTIN_MIN_MOVE_M
    chosen = np.flatnonzero(good)
    chosen = chosen[np.argsort(-gap[chosen, entry[chosen]], kind="stable")]  # the nearest is written last
    row, pick = i[chosen], lambda values, at: values[chosen, at[chosen]]
    fill = lambda empty, values: _filled(n, row, empty, values)  # noqa: E731
    return CutIn(
        fill(NO, a[chosen]), fill(-1, tracks.step[row, onset[chosen]]), fill(-1, tracks.step[row, entry[chosen]]),
        fill(np.nan, pick(gap, onset)), fill(np.nan, pick(gap, entry)), fill(np.nan, pick(speed, onset)),
    )


def agent_lane_changing(scene: Scene, cutin: CutIn) -> np.ndarray:
    """A vehicle near the ego moves across its lane by about a lane's width, heads along the road before and after,
    and is not the one that cuts in."""
    tracks = scene.tracks
    near = scene.near & (tracks.ahead_m < NEAR_AHEAD_M) & (tracks.ahead_m > -NEAR_BEHIND_M)
    near &= (scene.aside_size < NEAR_ASIDE_M) & (tracks.speed_mps > MOVING_MPS) & (tracks.cos > SAME_WAY_COS)
    high = np.where(near, scene.lane_m, -np.inf).max(axis=2, initial=-np.inf)
    low = np.where(near, scene.lane_m, np.inf).min(axis=2, initial=np.inf)
    i, a = np.nonzero(scene.vehicle & (high - low >= LANE_SHIFT_M) & (cutin.agent[:, None] != np.arange(near.shape[1])))
    if len(i) == 0:
        return np.full(len(scene.kind), NO)
    near, lane, k = near[i, a], scene.lane_m[i, a], np.arange(len(i))
    first, last = near.argmax(axis=1), near.shape[1] - 1 - near[:, ::-1].argmax(axis=1)
    moved = np.abs(lane[k, last] - lane[k, first])
    straight = np.maximum(np.abs(tracks.sin[i, a, first]), np.abs(tracks.sin[i, a, last])) < 0.15
    good = (moved >= LANE_SHIFT_M) & (moved <= MAX_LANE_SHIFT_M) & straight & (near.sum(axis=1) * GRID_S >= 2.0)
    return _best(scene, i, a, np.where(good, moved, -1))


def parallel_driving(scene: Scene) -> np.ndarray:
    """A vehicle in the neighbouring lane keeps beside the ego, at its speed, for PARALLEL_S."""
    tracks = scene.tracks
    beside = scene.near & (np.abs(tracks.ahead_m) < scene.bumper_m + PARALLEL_SLACK_M)
    beside &= (scene.aside_size > scene.touch_m) & (scene.aside_size < PARALLEL_ASIDE_M) & (tracks.cos > SAME_WAY_COS)
    beside &= np.abs(tracks.speed_mps - scene.ego_speed[:, None]) < PARALLEL_SPEED_MPS
    beside &= (scene.ego_speed > 2.0)[:, None]
    return _longest(np.where(scene.vehicle, beside.sum(axis=2) * GRID_S, 0), PARALLEL_S)


def wrong_way(scene: Scene, segments: Segments) -> np.ndarray:
    """A vehicle near the ego drives against the direction of the lane it is in; where no lanes are mapped, one that
    comes towards the ego in the very path that the ego drives."""
    tracks = scene.tracks
    towards = scene.near & (tracks.cos < -0.8) & (tracks.speed_mps > 1.0) & scene.vehicle[..., None]
    towards &= (tracks.ahead_m < WRONG_WAY_AHEAD_M) & (tracks.ahead_m > -10)
    in_path = towards & (scene.aside_size < scene.touch_m) & (tracks.ahead_m > 0)
    count = np.where((scene.driven_m > MIN_DRIVEN_M)[:, None], in_path.sum(axis=2), 0)
    if scene.shift.mapped.any():
        near = towards & (scene.aside_size < NEAR_ASIDE_M) & scene.shift.mapped[:, None, None]
        count = np.where(scene.shift.mapped[:, None], _against_lane(scene, segments, near), count)
    return _longest(count * GRID_S, WRONG_WAY_S)


def _against_lane(scene: Scene, segments: Segments, towards: np.ndarray) -> np.ndarray:
    """(n, A) number of looks at which the lane runs against the agent. The lane is looked up where the agent is
    nearest to and where it is farthest from the ego's path; looks within half a lane of there are in the same one."""
    steps = np.zeros(towards.shape[:2])
    i, a = np.nonzero(towards.sum(axis=2) * GRID_S >= WRONG_WAY_S)
    if len(i) == 0:
        return steps
    lanes = segments.chosen(segments.kind == LANE_CENTER)
    towards, aside, k = towards[i, a], scene.tracks.aside_m[i, a], np.arange(len(i))
    size = np.abs(aside)
    for g in (np.where(towards, size, np.inf).argmin(axis=1), np.where(towards, size, -1).argmax(axis=1)):
        x, y, heading, _ = scene.position(i, a, g).T
        cos, sin = np.cos(heading), np.sin(heading)
        own, _ = nearest(lanes, i, x, y, cos, sin)
        other, _ = nearest(lanes, i, x, y, -cos, -sin)
        against = (other < LANE_HALF_WIDTH_M) & (own > LANE_HALF_WIDTH_M + other)
        there = (towards & (np.abs(aside - aside[k, g][:, None]) < LANE_HALF_WIDTH_M)).sum(axis=1)
        steps[i, a] = np.maximum(steps[i, a], np.where(against, there, 0))
    return steps


def backing_up(scene: Scene) -> np.ndarray:
    """A vehicle near the ego drives backwards by BACKING_M or more."""
    tracks = scene.tracks
    near = tracks.valid & (np.abs(tracks.ahead_m) < BACKING_AHEAD_M) & (scene.aside_size < 2 * NEAR_ASIDE_M)
    back = near & (tracks.speed_mps < -REVERSE_MPS)
    i, a = np.nonzero(scene.vehicle & (back.sum(axis=2) * GRID_S >= BACKING_S))
    driven = np.zeros(scene.kind.shape)
    if len(i):
        states = scene.position(i[:, None], a[:, None], np.arange(back.shape[2]))
        step, heading = np.diff(states[..., :2], axis=1), states[:, :-1, 2]
        ahead = np.cos(heading) * step[..., 0] + np.sin(heading) * step[..., 1]
        on = near[i, a][:, 1:] & back[i, a][:, :-1]
        total = np.cumsum(np.where(on, -ahead, 0), axis=1)
        since = total - np.maximum.accumulate(np.where(on, 0, total), axis=1)
        net = -np.sum(ahead, axis=1, where=near[i, a][:, 1:] & near[i, a][:, :-1])  # a parked car's box comes back
        driven[i, a] = np.minimum(since.max(axis=1), net)
    return _longest(driven, BACKING_M)


def crossers(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """(n, A, G) steps at which an agent is in the ego's path ahead and moves across it; (n, A) its way across."""
    tracks = scene.tracks
    ahead = scene.near & (tracks.ahead_m > 0) & (tracks.ahead_m < CROSSING_AHEAD_M)
    across = np.abs(tracks.speed_mps * tracks.sin) > MOVING_MPS * 0.7
    side = np.sign(tracks.aside_m)
    here = scene.aside_size < scene.touch_m
    here[..., 1:] |= (side[..., 1:] != side[..., :-1]) & scene.near[..., :-1]  # quick ones pass between two looks
    high = np.where(scene.near, tracks.aside_m, -np.inf).max(axis=2, initial=-np.inf)
    low = np.where(scene.near, tracks.aside_m, np.inf).min(axis=2, initial=np.inf)
    return ahead & here & across, high - low


def jaywalking(scene: Scene, segments: Segments, crossers: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """A pedestrian walks across the ego's path ahead of it, away from any mapped crosswalk."""
    crossing, way = crossers
    i, a = np.nonzero(crossing.any(axis=2) & (way >= CROSSING_M) & (scene.kind == PEDESTRIAN))
    walks = segments.kind == CROSSWALK
    if len(i) and walks.any():
        x, y, _, _ = scene.position(i, a, crossing[i, a].argmax(axis=1)).T
        away = nearest(segments.chosen(walks), i, x, y)[0] > CROSSWALK_M
        i, a = i[away], a[away]
    return _best(scene, i, a, np.ones(len(i)))


def yielding(scene: Scene, crossers: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The ego slows down, or stands, while somebody crosses its path ahead of it: the other goes first."""
    crossing, way = crossers
    steep = crossing & (np.abs(scene.tracks.sin) > 0.5)
    i, a = np.nonzero(steep.any(axis=2) & (way >= CROSSING_M))
    seconds = (np.arange(steep.shape[2]) - steep[i, a].argmax(axis=1)[:, None]) * GRID_S  # from the crossing on
    valid, speed = scene.tracks.ego_valid[i], scene.ego_speed[i]
    before = np.where(valid & (seconds <= 0) & (seconds >= -YIELD_BEFORE_S), speed, 0).max(axis=1, initial=0)
    lowest = np.where(valid & (np.abs(seconds) <= YIELD_AFTER_S), speed, np.inf).min(axis=1, initial=np.inf)
    slows = (before - lowest >= YIELD_DROP_MPS) & (before - lowest >= YIELD_SHARE * before)
    return _best(scene, i, a, np.where(slows | (lowest < STANDING_MPS), 1, -1))


def _ends(scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n,) the ego's speed at its first and at its last valid step, and its shift between the two."""
    valid = scene.tracks.ego_valid
    if valid.shape[1] == 0:
        return (np.zeros(len(valid)),) * 3
    row, first = np.arange(len(valid)), valid.argmax(axis=1)
    last = valid.shape[1] - 1 - valid[:, ::-1].argmax(axis=1)
    return (scene.ego_speed[row, first], scene.ego_speed[row, last],
            scene.ego_shift[row, last] - scene.ego_shift[row, first])


def pulling_out(scene: Scene) -> np.ndarray:
    """The ego starts from a standstill and moves sideways into the lane."""
    start, end, shift = _ends(scene)
    shifted = (np.abs(shift) >= PULL_SHIFT_M) & (np.abs(shift) <= PULL_MAX_M)
    return np.where(shifted & (start < STANDING_MPS) & (end > 2.0), NOBODY, NO)


def pulling_over(scene: Scene) -> np.ndarray:
    """The ego moves sideways out of its lane and comes to a standstill."""
    start, end, shift = _ends(scene)
    shifted = (np.abs(shift) >= PULL_SHIFT_M) & (np.abs(shift) <= PULL_MAX_M)
    return np.where(shifted & (end < STANDING_MPS) & (start > 2.0), NOBODY, NO)


def ego_lane_changing(scene: Scene) -> np.ndarray:
    """The ego ends more than half a lane beside where it would be had it followed its lane, and keeps rolling.
    Without mapped lanes it must have moved over within LOOK_BACK_S: a slow drift is an error of the baseline."""
    start, end, shift = _ends(scene)
    shifted = (np.abs(shift) >= LANE_SHIFT_M) & (np.abs(shift) <= MAX_LANE_SHIFT_M)
    span = min(int(LOOK_BACK_S / GRID_S), scene.ego_shift.shape[1] - 1)
    quick = np.abs(scene.ego_shift[:, span:] - scene.ego_shift[:, :scene.ego_shift.shape[1] - span]).max(axis=1)
    shifted &= scene.shift.mapped | (quick >= QUICK_SHARE * np.abs(shift))
    return np.where(shifted & (np.minimum(start, end) >= STANDING_MPS), NOBODY, NO)


def nudging(scene: Scene) -> np.ndarray:
    """The ego swerves by less than a lane and returns, on the other side of a slow or standing object it passes; or
    it has not yet passed it when the scenario ends."""
    _, _, shift = _ends(scene)
    nodes = scene.shift.nodes_m
    peak = nodes[np.arange(len(nodes)), np.abs(nodes).argmax(axis=1)]
    swerves = (np.abs(peak) >= NUDGE_MIN_M) & (np.abs(peak) <= NUDGE_MAX_M)
    returns = np.abs(shift) <= NUDGE_RETURN * np.abs(peak)
    swerves &= returns | (np.abs(peak) < LANE_SHIFT_M)
    rows = np.flatnonzero(swerves)
    tracks, sign = scene.tracks, np.sign(peak[rows])[:, None, None]
    place = tracks.s_m[rows][:, None] + tracks.ahead_m[rows]
    here = scene.lane_m[rows] - tracks.aside_m[rows]  # the ego's shift where the object is
    passed = scene.near[rows] & (place > 0) & (place < scene.driven_m[rows][:, None, None] + 5.0)
    passed &= (np.abs(tracks.speed_mps[rows]) < NUDGE_SLOW_MPS) & (tracks.aside_m[rows] * sign < 0)
    passed &= here * sign >= 0.4 * np.abs(peak[rows])[:, None, None]
    passed &= np.abs(scene.lane_m[rows]) < scene.touch_m[rows] + 1.2  # it leaves little room in the lane
    ends = np.where(passed, tracks.ahead_m[rows], np.inf).min(axis=2, initial=np.inf) > -NUDGE_BEHIND_M
    i, a = np.nonzero(passed.any(axis=2) & (returns[rows][:, None] | ends))
    return _best(scene, rows[i], a, np.ones(len(i)))


def lane_keeping(batch: ScenarioBatch, interaction: Interaction) -> np.ndarray:
    """The ego has a leader in its path for most of the time; the agent is the one it came nearest to."""
    follows = (interaction.leader_gap_m < FOLLOW_GAP_M) & batch.ego_valid
    share = follows.sum(axis=1) / np.maximum(batch.ego_valid.sum(axis=1), 1)
    nearest_step = interaction.leader_gap_m.argmin(axis=1)
    return np.where(share >= FOLLOW_SHARE, interaction.leader[np.arange(batch.n), nearest_step], NO)


def _filled(n: int, row: np.ndarray, empty: float, values: np.ndarray) -> np.ndarray:
    full = np.full(n, empty, dtype=np.float64 if np.isnan(empty) else np.int64)
    full[row] = values
    return full


def _longest(measure: np.ndarray, least: float) -> np.ndarray:
    """(n,) agent with the largest of measure (n, A) if that is at least `least`, else NO."""
    if measure.shape[1] == 0:
        return np.full(len(measure), NO)
    return np.where(measure.max(axis=1) >= least, measure.argmax(axis=1), NO)


def _best(scene: Scene, i: np.ndarray, a: np.ndarray, measure: np.ndarray) -> np.ndarray:
    """(n,) of the listed pairs with a measure of at least 0, the agent that came nearest to the ego; else NO."""
    i, a = i[measure >= 0], a[measure >= 0]
    tracks = scene.tracks
    distance = np.hypot(tracks.ahead_m[i, a], tracks.aside_m[i, a])
    distance = np.where(tracks.valid[i, a], distance, np.inf).min(axis=1, initial=np.inf)
    order = np.argsort(-distance, kind="stable")
    return _filled(len(scene.kind), i[order], NO, a[order])

