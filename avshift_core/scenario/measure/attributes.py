"""What people can read about a scenario: speeds, the actor, the road; for colouring a map and naming its regions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.categories import Detection
from avshift_core.scenario.measure.geometry import PATH_NODES, Boxes, distance
from avshift_core.scenario.measure.interaction import Interaction, interact
from avshift_core.scenario.measure.lanes import LANE_CENTER, SAME_DIRECTION_COS, nearest
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS, UNKNOWN, ScenarioBatch

NEAR_M = 30.0  # about two seconds at town speed
LARGE_M = 7.5  # longer than any car or van: trucks and buses
BRAKE_ONSET_MPS2 = -1.0  # beyond letting off the pedal
STANDING_MPS = 0.3
TURN_RAD, U_TURN_RAD = np.radians(35), np.radians(140)  # bends of a road within 15 s stay below; junctions turn by 90
WORK_ZONE_M, JUNCTION_M, ABEAM_M = 30.0, 15.0, 9.0
FAST_ROAD_MPS = 22.0  # 80 km/h: no town has it


@dataclass(frozen=True)
class Attribute:
    """One readable column. kind: "number" or "category"; text: its label for people."""

    name: str
    unit: str
    kind: str
    text: str


def _registry(*rows: tuple[str, str, str, str]) -> dict[str, Attribute]:
    return {row[0]: Attribute(*row) for row in rows}


ATTRIBUTES: dict[str, Attribute] = _registry(
    ("ego_speed_mps", "m/s", "number", "Ego speed, mean"),
    ("ego_speed_start_mps", "m/s", "number", "Ego speed at the start"),
    ("ego_speed_min_mps", "m/s", "number", "Ego speed, lowest"),
    ("brake_max_mps2", "m/s2", "number", "Strongest braking"),
    ("decel_onset_s", "s", "number", "Time of first braking"),
    ("stop_s", "s", "number", "Time standing still"),
    ("cutin_speed_mps", "m/s", "number", "Speed of the cut-in agent"),
    ("cutin_distance_m", "m", "number", "Gap to the cut-in agent when it starts to move over"),
    ("cutin_type", "", "category", "Type of the cut-in agent"),
    ("cutin_length_m", "m", "number", "Length of the cut-in agent"),
    ("actor", "", "number", "Number of the agent the category is about, -1 if none"),
    ("actor_id", "", "category", "Id of that agent in the log"),
    ("actor_type", "", "category", "Type of that agent"),
    ("actor_distance_min_m", "m", "number", "Smallest gap to that agent"),
    ("n_agents", "", "number", "Agents"),
    ("n_agents_near", "", "number", "Agents within 30 m"),
    ("n_pedestrians", "", "number", "Pedestrians"),
    ("n_large", "", "number", "Agents of 7.5 m or longer"),
    ("turn_type", "", "category", "Turn of the ego"),
    ("road_type", "", "category", "Type of road"),
    ("n_lanes", "", "number", "Lanes in the ego's direction"),
    ("speed_limit_mps", "m/s", "number", "Speed limit of the ego's lane"),
)


def compute_attributes(
    batch: ScenarioBatch, detected: Detection, interaction: Interaction | None = None
) -> dict[str, np.ndarray]:
    """All attributes of a batch: name -> (n,) float64, int64 or str; NaN or "" where there is none.

    Args:
        detected: by `detect` on the same batch.
        interaction: of the same batch, where it is at hand.
    """
    interaction = interaction or interact(batch)
    values = _ego(batch, interaction) | _cutin(batch, detected) | _actor(batch, detected) | _agents(batch, interaction)
    values |= {"turn_type": _turn_type(interaction)} | _road(batch, detected, interaction)
    return {name: values[name] for name in ATTRIBUTES}


def _ego(batch, interaction):
    motion, valid = interaction.motion, batch.ego_valid
    count, row = valid.sum(axis=1), np.arange(batch.n)
    some = count > 0
    speed = np.where(valid, motion.speed_mps, 0)
    braking = valid & (motion.acceleration_mps2 < BRAKE_ONSET_MPS2)
    onset = batch.t_s[row, braking.argmax(axis=1)] - batch.t_s[:, 0]
    lasts = np.diff(batch.t_s, axis=1)
    stands = valid[:, :-1] & valid[:, 1:] & (speed[:, :-1] < STANDING_MPS)
    return {
        "ego_speed_mps": np.where(some, speed.sum(axis=1) / np.maximum(count, 1), np.nan),
        "ego_speed_start_mps": np.where(some, speed[row, valid.argmax(axis=1)], np.nan),
        "ego_speed_min_mps": np.where(some, np.where(valid, speed, np.inf).min(axis=1), np.nan),
        "brake_max_mps2": np.maximum(-motion.acceleration_mps2.min(axis=1), 0),
        "decel_onset_s": np.where(braking.any(axis=1), onset, np.nan),
        "stop_s": np.sum(lasts, axis=1, where=stands),
    }


def _of_agent(values: np.ndarray, agent: np.ndarray, empty) -> np.ndarray:
    """(n,) entry of values (n, A) for the agent of each scenario, `empty` where it is below 0."""
    if values.shape[1] == 0:
        return np.full(len(agent), empty)
    return np.where(agent >= 0, values[np.arange(len(agent)), np.maximum(agent, 0)], empty)


def _type_of(batch: ScenarioBatch, agent: np.ndarray) -> np.ndarray:
    """(n,) name of the type of one agent each, "" where there is none."""
    return np.array([*AGENT_TYPES, ""])[_of_agent(batch.agent_type, agent, -1)]


def _cutin(batch, detected):
    cutin = detected.cutin
    return {
        "cutin_speed_mps": cutin.speed_mps, "cutin_distance_m": np.maximum(cutin.onset_gap_m, 0),
        "cutin_type": _type_of(batch, cutin.agent),
        "cutin_length_m": _of_agent(batch.agent_size[..., 0].astype(np.float64), cutin.agent, np.nan),
    }


def _actor(batch, detected):
    return {
        "actor": detected.actor.astype(np.int64),
        "actor_id": _of_agent(batch.agent_id, detected.actor, ""),
        "actor_type": _type_of(batch, detected.actor),
        "actor_distance_min_m": _gap_to(batch, detected.actor),
    }


def _gap_to(batch: ScenarioBatch, agent: np.ndarray) -> np.ndarray:
    """(n,) smallest distance between the boxes of the ego and one agent each, NaN where there is none."""
    gap = np.full(batch.n, np.nan)
    i = np.flatnonzero(agent >= 0)
    a = agent[i]
    valid = batch.ego_valid[i] & batch.agents_valid[i, a]
    ego, other = batch.ego[i], batch.agents[i, a]
    c, s = np.cos(ego[..., 2]), np.sin(ego[..., 2])
    dx, dy = other[..., 0] - ego[..., 0], other[..., 1] - ego[..., 1]
    turn, half, ego_half = other[..., 2] - ego[..., 2], batch.agent_size[i, a, :2] / 2, batch.ego_size[i, :2] / 2
    sides = (np.broadcast_to(side[:, None], valid.shape) for side in (*ego_half.T, *half.T))
    between = distance(Boxes(c * dx + s * dy, c * dy - s * dx, np.cos(turn), np.sin(turn), *sides))
    least = np.where(valid, between, np.inf).min(axis=1, initial=np.inf)
    gap[i] = np.where(np.isfinite(least), least, np.nan)
    return gap


def _agents(batch, interaction):
    seen = batch.agents_valid.any(axis=2)
    return {
        "n_agents": seen.sum(axis=1),
        "n_agents_near": (interaction.distance_min_m <= NEAR_M).sum(axis=1),
        "n_pedestrians": (seen & (batch.agent_type == AGENT_TYPES.index("pedestrian"))).sum(axis=1),
        "n_large": (seen & (batch.agent_size[..., 0] >= LARGE_M)).sum(axis=1),
    }


def _turn_type(interaction):
    """From the change of heading between the ego's first and last valid step."""
    heading = interaction.motion.heading_rad
    turn = heading[:, -1] - heading[:, 0]
    return np.select([np.abs(turn) >= U_TURN_RAD, turn >= TURN_RAD, turn <= -TURN_RAD], ["u_turn", "left", "right"],
                     "straight")


def _road(batch, detected, interaction):
    """Speed limit of the lane most under the ego; lanes abeam of the middle of its path; type by what is near."""
    segments, lane, path = detected.segments, detected.shift.lane, interaction.path
    limit = np.full(batch.n, np.nan)
    mapped = np.diff(segments.start) > 0
    if len(segments.x):
        limits = np.where(lane >= 0, segments.limit_mps.take(lane, mode="clip"), np.nan)
        known = ~np.isnan(limits)
        some = known.any(axis=1)
        middle = np.where(known, np.arange(lane.shape[1]), -1).max(axis=1)
        limit[some] = limits[some, middle[some]]
    n_lanes = _lanes_abeam(segments, path, batch.n)
    near = {kind: _distance_to(segments, path, kind, batch.n) for kind in ("work_zone", "crosswalk", "stop_line")}
    junction = np.minimum(near["crosswalk"], near["stop_line"]) <= JUNCTION_M
    turned = path.turn_rad >= TURN_RAD
    kind = np.select(
        [~mapped, near["work_zone"] <= WORK_ZONE_M, junction | (turned & (n_lanes == 0)), limit >= FAST_ROAD_MPS,
         n_lanes >= 2, n_lanes == 1],
        [UNKNOWN, "work_zone", "junction", "fast_road", "multi_lane", "single_lane"], UNKNOWN)
    return {"road_type": kind, "n_lanes": n_lanes, "speed_limit_mps": limit}


def _lanes_abeam(segments, path, n):
    """(n,) lane centre lines that pass beside the middle of the path in the ego's direction, a lane each."""
    lanes = segments.chosen(segments.kind == LANE_CENTER)
    row = np.repeat(np.arange(n), np.diff(lanes.start))
    x, y, cos, sin = path.nodes[row, PATH_NODES // 2].T
    along = lambda dx, dy: cos * dx + sin * dy  # noqa: E731
    first = along(lanes.x - x, lanes.y - y)
    way = along(lanes.dx, lanes.dy)
    passes = (way > SAME_DIRECTION_COS * lanes.length) & (first <= 0) & (first + way > 0)
    part = -first[passes] / way[passes]
    aside = (cos * (lanes.y - y) - sin * (lanes.x - x))[passes] + part * (cos * lanes.dy - sin * lanes.dx)[passes]
    slot = np.rint(aside / 2.5).astype(int)  # lanes are at least 2.5 m apart: two lines in one slot are one lane
    near = np.abs(aside) <= ABEAM_M
    lane = np.unique(np.stack([row[passes][near], slot[near]]), axis=1)
    return np.bincount(lane[0], minlength=n)


def _distance_to(segments, path, kind, n):
    """(n,) smallest distance between the path and polylines of a kind, inf where there is none."""
    chosen = segments.chosen(segments.kind == ROAD_KINDS.index(kind))
    if len(chosen.x) == 0:
        return np.full(n, np.inf)
    nodes = np.arange(0, PATH_NODES, 4)
    x, y, _, _ = path.nodes[:, nodes].reshape(-1, 4).T
    return nearest(chosen, np.repeat(np.arange(n), len(nodes)), x, y)[0].reshape(n, -1).min(axis=1)
