"""What a road-test scenario is: ids, ego, agents and road at the log's own rate; and many of them as a padded batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np

CATEGORIES = (  # paper, app:real_exp: six of the ego, six of other agents, and the rest
    "ego_lane_changing", "ego_lane_keeping", "ego_yielding", "ego_pulling_out", "ego_pulling_over", "ego_nudging",
    "agent_lane_changing", "agent_parallel_driving", "agent_cutting_in", "agent_wrong_way_driving",
    "agent_jaywalking", "agent_backing_up", "general",
)
AGENT_TYPES = ("car", "truck", "bus", "motorcycle", "bicycle", "pedestrian", "static", "other")
ROAD_KINDS = ("lane_center", "lane_boundary", "road_edge", "crosswalk", "stop_line", "work_zone")
EGO_FIELDS = ("x_m", "y_m", "heading_rad", "speed_mps", "acceleration_mps2")
AGENT_FIELDS = ("x_m", "y_m", "heading_rad", "speed_mps")
SIZE_FIELDS = ("length_m", "width_m", "height_m")
DERIVABLE = ("ego_heading", "ego_speed", "ego_acceleration", "ego_size", "agent_heading", "agent_speed", "agent_size",
             "agent_type")
UNKNOWN = "unknown"
EGO_SIZE = (4.9, 1.9, 1.7)  # m; a mid-size car, where the log does not tell


@dataclass(frozen=True)
class Ids:
    """Where a scenario comes from; `unknown` where the log does not tell.

    Attributes:
        day: ISO date, "2026-03-02".
        period: ISO week of the day, "2026-W10", unless the analyst named another.
        hour: local hour 0..23 at the start, -1 where the log does not tell.
        category: one of CATEGORIES; "" until it is detected (scenario/measure/categories.py).
    """

    scenario_id: str
    drive_id: str
    vehicle_id: str = UNKNOWN
    day: str = UNKNOWN
    period: str = UNKNOWN
    hour: int = -1
    area: str = UNKNOWN
    route: str = UNKNOWN
    av_version: str = UNKNOWN
    category: str = ""


ID_FIELDS = tuple(Ids.__dataclass_fields__)


def iso_week(day: str) -> str:
    """
    >>> iso_week("2026-03-02"), iso_week("unknown")
    ('2026-W10', 'unknown')
    """
    if day == UNKNOWN:
        return UNKNOWN
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year}-W{week:02d}"


@dataclass(frozen=True, eq=False)
class Road:
    """Polylines near the ego, one behind the other; polyline j is xy[start[j]:start[j + 1]].

    Attributes:
        xy: (m, 2) float32 points in the scenario's coordinates.
        start: (k + 1,) int32 first point of each polyline, and m.
        kind: (k,) int8 index into ROAD_KINDS.
        speed_limit_mps: (k,) float32, NaN where unknown.
    """

    xy: np.ndarray
    start: np.ndarray
    kind: np.ndarray
    speed_limit_mps: np.ndarray

    @property
    def n(self) -> int:
        return len(self.kind)

    def polyline(self, j: int) -> np.ndarray:
        return self.xy[self.start[j]:self.start[j + 1]]


def make_road(polylines: Sequence[tuple[np.ndarray, str, float]]) -> Road:
    """Road of (points (m, 2), kind, speed limit in m/s or NaN) triples.

    >>> road = make_road([([(0, 0), (9, 0)], "lane_center", 13.9), ([(0, 2), (5, 2), (9, 2)], "lane_boundary", np.nan)])
    >>> road.n, road.polyline(1)[0].tolist()
    (2, [0.0, 2.0])
    """
    points = [np.asarray(xy, dtype=np.float32).reshape(-1, 2) for xy, _, _ in polylines]
    return Road(
        xy=_frozen(np.concatenate([*points, np.zeros((0, 2), np.float32)])),
        start=_frozen(np.cumsum([0, *map(len, points)], dtype=np.int32)),
        kind=_frozen(np.array([ROAD_KINDS.index(kind) for _, kind, _ in polylines], dtype=np.int8)),
        speed_limit_mps=_frozen(np.array([limit for _, _, limit in polylines], dtype=np.float32)),
    )


def extend_road(road: Road, xy: np.ndarray, kind: str, speed_limit_mps: float = np.nan) -> Road:
    """The road with one polyline more."""
    return make_road([*((road.polyline(j), ROAD_KINDS[road.kind[j]], road.speed_limit_mps[j]) for j in range(road.n)),
                      (xy, kind, speed_limit_mps)])


@dataclass(frozen=True, eq=False)
class Scenario:
    """One scenario at the log's own rate. Where a mask is False the state is 0 and means nothing.

    Attributes:
        t_s: (T,) float64 seconds since the start, increasing, not always even.
        ego: (T, 5) float32, EGO_FIELDS; ego_valid: (T,).
        ego_size: (3,) float32, SIZE_FIELDS.
        agents: (A, T, 4) float32, AGENT_FIELDS; agents_valid: (A, T).
        agent_id: (A,) str ids of the log; agent_type: (A,) int8 index into AGENT_TYPES; agent_size: (A, 3) float32.
        origin_m: (2,) float64, where (0, 0) lies in the log's own coordinates; states are stored relative to it.
        derived: names of DERIVABLE that the log did not hold, in whole or in part.
    """

    ids: Ids
    t_s: np.ndarray
    ego: np.ndarray
    ego_valid: np.ndarray
    ego_size: np.ndarray
    agents: np.ndarray
    agents_valid: np.ndarray
    agent_id: np.ndarray
    agent_type: np.ndarray
    agent_size: np.ndarray
    road: Road = field(default_factory=lambda: make_road([]))
    origin_m: np.ndarray = field(default_factory=lambda: np.zeros(2))
    derived: tuple[str, ...] = ()

    @property
    def n_steps(self) -> int:
        return len(self.t_s)

    @property
    def n_agents(self) -> int:
        return len(self.agents)

    @property
    def rate_hz(self) -> float:
        """Median rate of the states.

        A 5 s scene with 51 states has 10 Hz.
        """
        return float(1 / np.median(np.diff(self.t_s))) if self.n_steps > 1 else 0.0

    def with_ids(self, **changes) -> Scenario:
        return replace(self, ids=replace(self.ids, **changes))


@dataclass(frozen=True, eq=False)
class ScenarioBatch:
    """n scenarios padded to common sizes, on the way to metrics, store and encoder; never kept.

    Beyond `n_steps` and `n_agents` masks are False and states 0; `t_s` repeats its last value there.
    Attributes are those of Scenario with a leading n: ego (n, T, 5), agents (n, A, T, 4), agent_type (n, A), ...
    """

    ids: tuple[Ids, ...]
    n_steps: np.ndarray
    n_agents: np.ndarray
    t_s: np.ndarray
    ego: np.ndarray
    ego_valid: np.ndarray
    ego_size: np.ndarray
    agents: np.ndarray
    agents_valid: np.ndarray
    agent_id: np.ndarray
    agent_type: np.ndarray
    agent_size: np.ndarray
    road: tuple[Road, ...]
    origin_m: np.ndarray
    derived: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def rate_hz(self) -> np.ndarray:
        """(n,) median rate of each scenario."""
        steps = np.diff(self.t_s, axis=1)
        steps[np.arange(1, self.t_s.shape[1])[None, :] >= self.n_steps[:, None]] = np.nan
        median = np.full(self.n, np.nan)
        some = self.n_steps > 1
        median[some] = np.nanmedian(steps[some], axis=1)
        return np.where(some, 1 / median, 0.0)

    def scenario(self, i: int) -> Scenario:
        """Scenario i, without its padding."""
        T, A = self.n_steps[i], self.n_agents[i]
        return Scenario(
            self.ids[i], self.t_s[i, :T], self.ego[i, :T], self.ego_valid[i, :T], self.ego_size[i],
            self.agents[i, :A, :T], self.agents_valid[i, :A, :T], self.agent_id[i, :A], self.agent_type[i, :A],
            self.agent_size[i, :A], self.road[i], self.origin_m[i], self.derived[i],
        )


def pad(scenarios: Sequence[Scenario]) -> ScenarioBatch:
    """Scenarios -> one batch."""
    n = len(scenarios)
    n_steps = np.array([s.n_steps for s in scenarios], dtype=np.int32)
    n_agents = np.array([s.n_agents for s in scenarios], dtype=np.int32)
    T, A = int(n_steps.max(initial=0)), int(n_agents.max(initial=0))
    width = max((s.agent_id.dtype.itemsize // 4 for s in scenarios if s.n_agents), default=1)
    t_s, ego = np.zeros((n, T)), np.zeros((n, T, len(EGO_FIELDS)), np.float32)
    ego_valid, agents_valid = np.zeros((n, T), bool), np.zeros((n, A, T), bool)
    agents = np.zeros((n, A, T, len(AGENT_FIELDS)), np.float32)
    agent_id, agent_type = np.zeros((n, A), f"<U{width}"), np.zeros((n, A), np.int8)
    agent_size = np.zeros((n, A, len(SIZE_FIELDS)), np.float32)
    for i, s in enumerate(scenarios):
        t, a = s.n_steps, s.n_agents
        t_s[i, :t], t_s[i, t:] = s.t_s, s.t_s[-1]
        ego[i, :t], ego_valid[i, :t] = s.ego, s.ego_valid
        agents[i, :a, :t], agents_valid[i, :a, :t] = s.agents, s.agents_valid
        agent_id[i, :a], agent_type[i, :a], agent_size[i, :a] = s.agent_id, s.agent_type, s.agent_size
    return ScenarioBatch(
        tuple(s.ids for s in scenarios), n_steps, n_agents, t_s, ego, ego_valid,
        np.array([s.ego_size for s in scenarios], np.float32).reshape(n, 3), agents, agents_valid, agent_id,
        agent_type, agent_size, tuple(s.road for s in scenarios),
        np.array([s.origin_m for s in scenarios]).reshape(n, 2), tuple(s.derived for s in scenarios),
    )


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
