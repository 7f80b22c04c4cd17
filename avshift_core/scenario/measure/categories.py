"""Which of the thirteen categories a scenario is, by documented rules on kinematics and, where mapped, the road
(docs/categories.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure import rules
from avshift_core.scenario.measure.geometry import EgoPath
from avshift_core.scenario.measure.interaction import Interaction, interact
from avshift_core.scenario.measure.lanes import Segments, Shift, ego_shift, road_segments
from avshift_core.scenario.measure.rules import CutIn, Scene
from avshift_core.scenario.schema import CATEGORIES, ScenarioBatch

# When several rules fire, the first of these names the scenario: rare and dangerous before common, an agent's doing
# before the ego's answer to it, a manoeuvre before a state.
PRIORITY = (
    "agent_wrong_way_driving", "agent_backing_up", "agent_jaywalking", "agent_cutting_in", "ego_pulling_out",
    "ego_pulling_over", "ego_lane_changing", "ego_nudging", "ego_yielding", "agent_lane_changing",
    "agent_parallel_driving", "ego_lane_keeping", "general",
)


@dataclass(frozen=True)
class Detection:
    """What the rules found.

    Attributes:
        category: (n,) index into CATEGORIES.
        actor: (n,) agent that the category is about, -1 where none.
        fired: (n, 13) every rule that fired, in the order of CATEGORIES.
        actors: (n, 13) the agent of each of them, -1 where none.
        cutin: the cut-in, whether or not it names the scenario.
        shift: the ego's way across its lane; segments: the road of the batch.
    """

    category: np.ndarray
    actor: np.ndarray
    fired: np.ndarray
    actors: np.ndarray
    cutin: CutIn
    shift: Shift
    segments: Segments

    @property
    def category_name(self) -> np.ndarray:
        """(n,) str."""
        return np.array(CATEGORIES)[self.category]


def detect(batch: ScenarioBatch, interaction: Interaction | None = None) -> Detection:
    """Category and actor of every scenario.

    Args:
        interaction: of the same batch, where it is at hand.
    """
    interaction = interaction or interact(batch)
    segments = road_segments(batch.road)
    shift = ego_shift(segments, interaction.path)
    scene = _scene(batch, interaction, shift, interaction.path)
    cutin, crossers = rules.cutting_in(scene), rules.crossers(scene)
    found = {
        "agent_wrong_way_driving": rules.wrong_way(scene, segments),
        "agent_backing_up": rules.backing_up(scene),
        "agent_jaywalking": rules.jaywalking(scene, segments, crossers),
        "agent_cutting_in": cutin.agent,
        "agent_lane_changing": rules.agent_lane_changing(scene, cutin),
        "agent_parallel_driving": rules.parallel_driving(scene),
        "ego_pulling_out": rules.pulling_out(scene),
        "ego_pulling_over": rules.pulling_over(scene),
        "ego_lane_changing": rules.ego_lane_changing(scene),
        "ego_nudging": rules.nudging(scene),
        "ego_yielding": rules.yielding(scene, crossers),
        "ego_lane_keeping": rules.lane_keeping(batch, interaction),
    }
    fired, actors = np.zeros((batch.n, len(CATEGORIES)), bool), np.full((batch.n, len(CATEGORIES)), -1)
    for name, result in found.items():
        k = CATEGORIES.index(name)
        actors[:, k] = np.maximum(result, -1)
        fired[:, k] = result != rules.NO
    fired[:, CATEGORIES.index("general")] = True
    order = np.array([CATEGORIES.index(name) for name in PRIORITY])
    category = order[fired[:, order].argmax(axis=1)] if batch.n else np.zeros(0, int)
    return Detection(category, actors[np.arange(batch.n), category], fired, actors, cutin, shift, segments)


def _scene(batch: ScenarioBatch, interaction: Interaction, shift: Shift, path: EgoPath) -> Scene:
    tracks = interaction.tracks
    place = tracks.s_m[:, None] + tracks.ahead_m
    length = path.driven_m[:, None, None]
    near = tracks.valid & (place > -rules.BEFORE_PATH_M) & (place < length + rules.BEYOND_PATH_M)
    ego_speed = np.take_along_axis(interaction.motion.speed_mps, tracks.step, axis=1).astype(np.float32)
    return Scene(
        tracks=tracks, near=near, aside_size=np.abs(tracks.aside_m), lane_m=tracks.aside_m + shift.at(path, place),
        touch_m=((batch.ego_size[:, None, 1] + batch.agent_size[..., 1]) / 2)[..., None],
        bumper_m=((batch.ego_size[:, None, 0] + batch.agent_size[..., 0]) / 2)[..., None],
        kind=batch.agent_type, ego_speed=ego_speed, ego_shift=shift.at(path, tracks.s_m), shift=shift,
        states=batch.agents, driven_m=length[:, 0, 0],
    )
