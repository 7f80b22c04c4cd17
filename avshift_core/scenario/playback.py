"""Scenario -> what a browser plays: whole numbers in base64, a few ten kilobytes, the ego starting towards the right.

    message = message_of([playback(scenario, title="harbor-2026-W10-0042-000", tag="P")])
    json.dumps(message)                          # to pages/common/player.js, which takes it apart
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.interaction import TTC_HORIZON_S
from avshift_core.scenario.measure.series import NOBODY, Series, series_of
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS, Road, Scenario

UNIT_M = 0.01  # boxes are drawn to the centimetre; longer scenes get a coarser unit, so that 16 bits hold them
LARGEST = 32_767  # of an int16
MARGIN_M = 100.0  # of road around everybody
ANGLE = 1e4  # units a radian: 0.006 degrees
NONE = -1  # in a series: there is nobody, or the ego is not seen
TTC_ALARM_S = 1.5  # the usual limit of a serious conflict; the line in the strip of the player
SPEED_TOPS_MPS = (5, 10, 15, 20, 30, 40, 60, 80)  # where the strips may end
GAP_TOPS_M = (10, 20, 50)


@dataclass(frozen=True, eq=False)
class Playback:
    """One scenario in whole numbers; places in units of `unit_m` from the ego's first one, its heading along x.

    Attributes:
        scenario_id, title, note: lines for people.
        tag: "P", "Q" or "" for the cohort.
        t_ms: (T,) int32 since the first step.
        ego: (v, 3) int16 x, y and heading of the valid steps; ego_valid: (T,).
        agents: (v, 3) int16 of the valid agent-steps, one agent behind the other; agents_valid: (A, T).
        kind: (A,) index into AGENT_TYPES; size_cm: (1 + A, 2) length and width, the ego first.
        road_xy: (m, 2) int16; road_start: (k + 1,) as in Road; road_kind: (k,).
        series: name -> (T,) int16: speed in cm/s, gaps in cm, time to collision in ms, agents by number; NONE where
            there is none.
        actor: number of the agent that the category is about, NOBODY if none; actor_name: what it is called.
        derived: as in Scenario.
    """

    scenario_id: str
    title: str
    note: str
    tag: str
    unit_m: float
    t_ms: np.ndarray
    ego: np.ndarray
    ego_valid: np.ndarray
    agents: np.ndarray
    agents_valid: np.ndarray
    kind: np.ndarray
    size_cm: np.ndarray
    road_xy: np.ndarray
    road_start: np.ndarray
    road_kind: np.ndarray
    series: dict[str, np.ndarray]
    actor: int
    actor_name: str
    derived: tuple[str, ...]

    def message(self) -> dict:
        """Numbers, text and base64 only."""
        return {
            "id": self.scenario_id, "title": self.title, "note": self.note, "tag": self.tag, "unit_m": self.unit_m,
            "T": len(self.t_ms), "A": len(self.kind), "t_ms": _text(self.t_ms, "<i4"),
            "ego": _text(self.ego, "<i2"), "ego_valid": _bits(self.ego_valid),
            "agents": _text(self.agents, "<i2"), "agents_valid": _bits(self.agents_valid),
            "kind": self.kind.tolist(), "size_cm": self.size_cm.ravel().tolist(),
            "road": {"xy": _text(self.road_xy, "<i2"), "start": self.road_start.tolist(),
                     "kind": [ROAD_KINDS[k] for k in self.road_kind]},
            "series": {name: _text(values, "<i2") for name, values in self.series.items()},
            "actor": self.actor, "actor_name": self.actor_name, "derived": list(self.derived),
        }


def playback(scenario: Scenario, *, title: str = "", note: str = "", tag: str = "", actor: int = NOBODY,
             actor_name: str = "") -> Playback:
    """A scenario as the browser plays it.

    Args:
        title, note: two lines above the picture; the scenario's id without a title.
        tag: "P" or "Q" where it belongs to a cohort.
        actor: agent to be pointed out (attribute `actor`), under the name `actor_name`.
    """
    to_start = _frame(scenario)
    ego, agents = scenario.ego[scenario.ego_valid], scenario.agents[scenario.agents_valid]
    places = [to_start(states) for states in (ego, agents)]
    reach = max((np.abs(xy).max(initial=0) for xy, _ in places), default=0) + MARGIN_M
    unit_m = max(UNIT_M, float(np.ceil(1e4 * reach / LARGEST) / 1e4))
    ego, agents = (np.column_stack([np.rint(xy / unit_m), np.rint(ANGLE * turn)]).astype(np.int16)
                   for xy, turn in places)
    size = np.concatenate([scenario.ego_size[None, :2], scenario.agent_size[:, :2]])
    return Playback(
        scenario_id=scenario.ids.scenario_id, title=title or scenario.ids.scenario_id, note=note, tag=tag,
        unit_m=unit_m, t_ms=np.rint(1e3 * (scenario.t_s - scenario.t_s[0])).astype(np.int32), ego=ego,
        ego_valid=scenario.ego_valid, agents=agents, agents_valid=scenario.agents_valid,
        kind=scenario.agent_type.astype(np.int64), size_cm=np.rint(100 * size).astype(np.int64),
        **_road(scenario.road, to_start, unit_m), series=_quantised(series_of(scenario)),
        actor=int(actor) if 0 <= actor < scenario.n_agents else NOBODY, actor_name=actor_name,
        derived=tuple(scenario.derived),
    )


def message_of(scenes: Sequence[Playback]) -> dict:
    """One scene, or two that are played beside each other on one clock: their messages and the scales they share."""
    def top(name: str, tops: Sequence[float]) -> float:
        largest = max(int(scene.series[name].max(initial=0)) for scene in scenes) / 100
        return next((value for value in tops if value >= largest), tops[-1])

    return {
        "scenes": [scene.message() for scene in scenes], "types": list(AGENT_TYPES),
        "duration_ms": max(int(scene.t_ms[-1]) for scene in scenes),
        "angle": ANGLE, "speed_top_mps": top("speed", SPEED_TOPS_MPS), "gap_top_m": top("gap", GAP_TOPS_M),
        "ttc_top_s": TTC_HORIZON_S, "ttc_alarm_s": TTC_ALARM_S,
    }


def _frame(scenario: Scenario):
    """States (n, 4 or more) of the log -> places (n, 2) and headings (n,) seen from the ego's first pose."""
    first = scenario.ego[scenario.ego_valid.argmax()].astype(np.float64)
    c, s = np.cos(first[2]), np.sin(first[2])

    def to_start(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d = states[:, :2].astype(np.float64) - first[:2]
        turn = states[:, 2] - first[2] if states.shape[1] > 2 else np.zeros(len(states))
        place = np.stack([c * d[:, 0] + s * d[:, 1], c * d[:, 1] - s * d[:, 0]], axis=1)
        return place, np.arctan2(np.sin(turn), np.cos(turn))

    return to_start


def _road(road: Road, to_start, unit_m: float) -> dict[str, np.ndarray]:
    """Polylines in the scene's units; what lies outside of an int16 is cut off, and a line may fall in two."""
    xy, line = to_start(road.xy)[0] / unit_m, np.repeat(np.arange(road.n), np.diff(road.start))
    inside = (np.abs(xy) <= LARGEST).all(axis=1)
    begins = np.diff(line, prepend=-1) != 0
    begins[1:] |= inside[1:] & ~inside[:-1]
    piece = np.cumsum(begins)[inside]
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    return {"road_xy": np.rint(xy[inside]).astype(np.int16), "road_start": np.append(first, len(piece)),
            "road_kind": road.kind[line[inside][first]].astype(np.int64)}


def _quantised(series: Series) -> dict[str, np.ndarray]:
    def whole(values: np.ndarray, factor: float) -> np.ndarray:
        told = np.isfinite(values)
        return np.where(told, np.clip(np.rint(factor * np.where(told, values, 0)), 0, LARGEST), NONE).astype(np.int16)

    return {
        "speed": whole(np.abs(series.speed_mps), 100), "gap": whole(series.gap_m, 100),
        "leader_gap": whole(series.leader_gap_m, 100), "ttc": whole(series.ttc_s, 1000),
        "leader": series.leader.astype(np.int16), "ttc_agent": series.ttc_agent.astype(np.int16),
    }


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def _bits(mask: np.ndarray) -> str:
    return base64.b64encode(np.packbits(mask.ravel(), bitorder="little").tobytes()).decode("ascii")
