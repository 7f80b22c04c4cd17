"""The demo fleet: two areas, eight weeks, two AV versions; contexts -> scenarios, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.scenario.schema import EGO_SIZE, Ids, ScenarioBatch
from avshift_core.scenario.simulate.dynamics import Motion, simulate_motion
from avshift_core.scenario.simulate.law import CellLaw, Change, Contexts, D, cell_law, sample_drive
from avshift_core.scenario.simulate.layout import lay_out
from avshift_core.scenario.simulate.policy import EgoPolicy
from avshift_core.scenario.simulate.roads import is_bent, scene_roads, to_plane
from avshift_core.scenario.simulate.scene import EGO, N_NOISE, Scene
from avshift_core.scenario.simulate.situations import CATEGORY_OF, PARAMETER_NAMES

SENSOR_M = 100.0  # agents farther from the ego are not seen
CHUNK, PIECE = 512, 128  # scenes that are simulated and turned into scenarios at a time: what a cache holds
BLOCK = 3072  # scenarios made, written and forgotten at a time
VEHICLES = 12  # an area
DRIVE_SCENARIOS = 25

AREAS = {
    "harbor": Change(
        mix={"cut_in_large": 1.6, "backing": 1.4, "jaywalk": 0.6, "crossing": 0.7},
        roads={"highway": 1.6, "arterial": 1.4}, routes={"quays": 2.0, "ring": 1.5, "centre": 0.5},
        text="wide roads, many lorries"),
    "old_town": Change(
        mix={"cut_in_large": 0.7, "cut_in_car": 0.55, "jaywalk": 2.6, "crossing": 2.0, "nudge": 2.2, "parallel": 0.5,
             "ego_turn": 1.6},
        means={"ego_speed": -0.6, "density": 0.4, "traffic_speed": -0.4},
        roads={"street": 2.0, "junction": 2.0, "highway": 0.2, "highway_curve": 0.2},
        routes={"centre": 3.0, "quays": 0.4, "ring": 0.4}, text="narrow streets, many people on foot"),
}
LORRIES = Change(mix={"cut_in_large": 3.4}, text="more cut-ins by large vehicles")
WEEKS = {  # period -> (change, AV version); the first two weeks have the same law
    "2026-W10": (Change(), "v4.1"),
    "2026-W11": (Change(), "v4.1"),
    "2026-W12": (LORRIES, "v4.1"),
    "2026-W13": (Change(mix={"work_zone": 12.0}, means={"traffic_speed": -0.1}, text="a work zone"), "v4.1"),
    "2026-W14": (Change(mix={"u_turn": 4.5}, text="more U-turns"), "v4.1"),
    "2026-W15": (Change(mix={"jaywalk": 2.4, "crossing": 1.5}, hours={"evening": 1.6},
                        text="a festival: more people on foot, busier evenings"), "v4.1"),
    "2026-W16": (Change(), "v4.2"),
    "2026-W17": (LORRIES, "v4.2"),
}


@dataclass(frozen=True)
class FleetConfig:
    """What a fleet is made from; equal configs give equal fleets."""

    scenarios: int = 40_000
    seed: int = 0
    effect_share: float = 0.1
    areas: dict[str, Change] = field(default_factory=lambda: dict(AREAS))
    weeks: dict[str, tuple[Change, str]] = field(default_factory=lambda: dict(WEEKS))

    def __post_init__(self) -> None:
        least = len(self.areas) * len(self.weeks)
        if self.scenarios < least:
            raise ConfigError(f"{self.scenarios} scenarios cannot fill {least} weeks and areas; give at least {least}.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be 0 or more.")

    @cached_property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """(area, period) of every cell."""
        return tuple((area, period) for period in self.weeks for area in self.areas)

    @cached_property
    def laws(self) -> tuple[CellLaw, ...]:
        """The law of every cell."""
        return tuple(cell_law((self.areas[area], self.weeks[period][0]), effect_share=self.effect_share,
                              seed=self.seed) for area, period in self.cells)


@dataclass(frozen=True)
class Block:
    """Some drives of one cell, made together."""

    cell: int
    first_drive: int
    drives: int
    n: int

    @property
    def key(self) -> str:
        """What the corpus' manifest calls it when it is done."""
        return f"fleet:{self.cell}:{self.first_drive}:{self.drives}:{self.n}"


def blocks(config: FleetConfig) -> list[Block]:
    """The whole fleet as blocks of at most BLOCK scenarios."""
    found = []
    share, rest = divmod(config.scenarios, len(config.cells))
    for cell in range(len(config.cells)):
        n = share + (cell < rest)
        drives = max(1, round(n / DRIVE_SCENARIOS))
        step = max(1, BLOCK // DRIVE_SCENARIOS)
        ends = np.linspace(0, n, drives + 1).astype(int)
        found += [Block(cell, first, min(step, drives - first), int(ends[min(first + step, drives)] - ends[first]))
                  for first in range(0, drives, step)]
    return found


def version_of(config: FleetConfig, block: Block) -> str:
    """The AV version that drove a block."""
    return config.weeks[config.cells[block.cell][1]][1]


def draw(config: FleetConfig, block: Block) -> tuple[Contexts, tuple[Ids, ...]]:
    """Contexts and ids of one block; each drive has its own random numbers, whatever block it is in."""
    area, period = config.cells[block.cell]
    version = version_of(config, block)
    monday = date.fromisocalendar(int(period[:4]), int(period[6:]), 1)
    n_cell = config.scenarios // len(config.cells) + (block.cell < config.scenarios % len(config.cells))
    drives = max(1, round(n_cell / DRIVE_SCENARIOS))
    ends = np.linspace(0, n_cell, drives + 1).astype(int)
    parts, ids = [], []
    for i in range(block.first_drive, block.first_drive + block.drives):
        rng = np.random.default_rng([config.seed, block.cell, i])
        day = monday + timedelta(days=i * 7 // drives)
        vehicle = int(rng.integers(VEHICLES))
        effect = lambda *key: np.random.default_rng([config.seed, *key]).normal(size=D)  # noqa: E731
        area_index = list(config.areas).index(area)
        drive = sample_drive(config.laws[block.cell], int(ends[i + 1] - ends[i]), effect_share=config.effect_share,
                             vehicle_effect=effect(1001, area_index, vehicle),
                             day_effect=effect(1002, area_index, day.toordinal()), n_noise=N_NOISE, rng=rng)
        parts.append(drive.contexts)
        ids += [Ids(f"{area}-{period}-{i:04d}-{j:03d}", f"{area}-{period}-{i:04d}", f"{area}-car{vehicle + 1:02d}",
                    day.isoformat(), period, drive.hour, area, drive.route, version, CATEGORY_OF[k])
                for j, k in enumerate(drive.contexts.situation)]
    joined = (np.concatenate([getattr(p, name) for p in parts]) for name in ("situation", "road", "z", "noise"))
    return Contexts(*joined), tuple(ids)


def simulate(contexts: Contexts, ids: tuple[Ids, ...], policy: EgoPolicy) -> Iterator[tuple[np.ndarray, ScenarioBatch,
                                                                                           np.ndarray]]:
    """Closed-loop runs of contexts under a policy: (rows, scenarios, collided (rows,)) for some rows at a time.

    Scenes of like length and density run together, which changes nothing but the time it takes. Where nobody found the
    gap to do what the situation is about, the category is left open.
    """
    density = PARAMETER_NAMES.index("density")
    order = np.lexsort((contexts.z[:, density], np.floor(2 * contexts.noise[:, 0])))
    for first in range(0, contexts.n, CHUNK):
        rows = order[first:first + CHUNK]
        scene = lay_out(contexts.take(rows))
        motion = simulate_motion(scene, policy)
        for part in np.split(np.arange(len(rows)), range(PIECE, len(rows), PIECE)):
            names = tuple(ids[rows[i]] if motion.acted[i] else replace(ids[rows[i]], category="") for i in part)
            piece = slice(part[0], part[-1] + 1)
            batch = to_batch(_only(scene, piece), _only(motion, piece), names)
            yield rows[piece], batch, motion.collided[:, piece].any(axis=0)


def _only(value: Scene | Motion, scenes: slice) -> Scene | Motion:
    """Some scenes of a structure of arrays whose last axis they are."""
    return type(value)(**{name: array[..., scenes] for name, array in vars(value).items()})


def to_batch(scene: Scene, motion: Motion, ids: tuple[Ids, ...]) -> ScenarioBatch:
    """Road coordinates -> scenarios in the plane, with what the ego's sensors reach."""
    T, _, n = motion.s.shape
    x, y, heading = _plane(scene, motion)  # (n, N, T)
    steps = np.arange(T) < scene.n_steps[:, None]
    seen = (x - x[:, :1]) ** 2 + (y - y[:, :1]) ** 2 < SENSOR_M**2
    seen &= steps[:, None] & scene.used.T[:, :, None]
    ever = seen.any(axis=2)
    ever[:, EGO] = False
    n_agents = ever.sum(axis=1)
    A = int(n_agents.max(initial=0))
    who = np.argsort(~ever, axis=1, kind="stable")[:, :A]  # (n, A) the agents that are seen, in their order
    keep = np.arange(A) < n_agents[:, None]
    row = np.arange(n)[:, None]
    valid = seen[row, who] & keep[:, :, None]
    speed = _scenes_first(motion.speed)
    agents = np.zeros((n, A, T, 4), np.float32)
    for column, state in enumerate((x, y, heading, speed)):
        np.multiply(state[row, who], valid, out=agents[..., column])
    ego = np.stack([x[:, EGO], y[:, EGO], heading[:, EGO], speed[:, EGO], motion.acceleration.T], axis=2)
    ego *= steps[:, :, None]
    size = np.stack([scene.length, scene.width, scene.height], axis=2)[who, row] * keep[:, :, None]
    t = np.arange(T) / 10
    return ScenarioBatch(
        ids, scene.n_steps.astype(np.int32), n_agents.astype(np.int32),
        np.minimum(t, t[scene.n_steps - 1, None]), ego, steps, np.broadcast_to(np.float32(EGO_SIZE), (n, 3)), agents,
        valid, np.where(keep, who, 0).astype("<U2"), (scene.kind[who, row] * keep).astype(np.int8),
        size.astype(np.float32), scene_roads(scene),
        np.zeros((n, 2)), ((),) * n,
    )


def _scenes_first(states: np.ndarray) -> np.ndarray:
    """(T, N, n) -> (n, N, T)."""
    return np.ascontiguousarray(states.transpose(2, 1, 0))


def _plane(scene: Scene, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, N, T) x, y, heading in the scene's world, which is turned by scene.heading."""
    s, d, heading = _scenes_first(motion.s), _scenes_first(motion.d), _scenes_first(motion.psi)
    rows = np.flatnonzero(is_bent(scene.road))
    if len(rows):
        s[rows], d[rows], lane = to_plane(scene.road[rows, None, None], s[rows], d[rows])
        heading[rows] += lane.astype(np.float32)
    cos, sin = (f(scene.heading)[:, None, None] for f in (np.cos, np.sin))
    heading += scene.heading[:, None, None]
    turns = np.rint(heading / np.float32(2 * np.pi))
    return s * cos - d * sin, s * sin + d * cos, heading - turns * np.float32(2 * np.pi)
