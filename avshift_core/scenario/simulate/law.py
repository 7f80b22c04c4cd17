"""The law of contexts p(c | area, period, route, hour): an explicit mixture, so that every density is exact.

A context is c = (situation k, road j, z): z in R^8 behind the physical parameters of situations.py. In a cell
(area, period), with r over routes and h over hours,

    p(k, j, z) = sum_{r,h} p(r, h) pi_k(r, h) rho_j(k, r) prod_d N(z_d; m_kd(r, h), 1)

Effects of vehicle, day and drive are Gaussian with shares of that unit variance, and the mix of situations of one
drive is Dirichlet around pi: both leave the density of a single scenario as it stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.scenario.simulate.situations import PARAMETER_NAMES, ROAD_NAMES, SITUATION_NAMES, SITUATIONS

ROUTES = ("ring", "arterials", "centre", "quays")
HOURS = {"morning": 8, "midday": 13, "evening": 18, "night": 22}
SHARE_OF = {"drive": 0.7, "vehicle": 0.2, "day": 0.1}  # how the dial is divided; the drive matters most
ROUTE_SHARE = 0.1  # variance of a route's own means, in units of the dial
D = len(PARAMETER_NAMES)

# Odds of each situation before any change. Rare ones are over-sampled against real traffic, as in a triggered log.
BASE_MIX = {
    "free": 8, "follow": 16, "queue": 7, "work_zone": 1.2, "cut_in_car": 14, "cut_in_large": 4, "u_turn": 3,
    "crossing": 5, "ego_lane_change": 7, "pull_out": 4, "pull_over": 4, "nudge": 5, "agent_lane_change": 6,
    "parallel": 6, "wrong_way": 2, "jaywalk": 5, "backing": 2.5, "ego_turn": 6,
}
# What a situation looks like before any change: means of z, where they are not 0.
SITUATION_MEANS = {
    "free": {"density": -1.0, "traffic_speed": 0.6}, "queue": {"traffic_speed": -1.3, "density": 0.8},
    "work_zone": {"traffic_speed": -0.5}, "cut_in_large": {"closing": -0.4}, "ego_turn": {"density": -0.6},
    "pull_out": {"density": -0.2}, "jaywalk": {"ego_speed": -0.4},
}


@dataclass(frozen=True)
class Change:
    """A change against the base law: odds of situations are multiplied, means of z and odds of roads moved."""

    mix: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    roads: Mapping[str, float] = field(default_factory=dict)
    routes: Mapping[str, float] = field(default_factory=dict)
    hours: Mapping[str, float] = field(default_factory=dict)
    text: str = "as usual"


ROUTE_CHANGES = {
    "ring": Change(roads={"highway": 4, "highway_curve": 4}, mix={"parallel": 1.6, "jaywalk": 0.5}),
    "arterials": Change(roads={"arterial": 3, "arterial_left": 3, "arterial_curve": 3}),
    "centre": Change(roads={"street": 3, "junction": 3, "street_curve": 2}, mix={"jaywalk": 1.6, "crossing": 1.4}),
    "quays": Change(roads={"arterial": 2, "street": 1.5}, mix={"cut_in_large": 1.7, "backing": 1.5}),
}
HOUR_CHANGES = {
    "morning": Change(means={"density": 0.3, "traffic_speed": -0.3}, mix={"queue": 1.5}),
    "midday": Change(),
    "evening": Change(means={"density": 0.4, "traffic_speed": -0.35}, mix={"queue": 1.6, "jaywalk": 1.3}),
    "night": Change(means={"density": -0.5, "traffic_speed": 0.4, "ego_speed": 0.2}, mix={"free": 1.6}),
}


@dataclass(frozen=True, eq=False)
class Contexts:
    """n contexts and all their randomness: the same contexts give the same traffic under any ego policy.

    Attributes:
        situation, road: (n,) int8 indices into SITUATION_NAMES, ROAD_NAMES.
        z: (n, 8) float64.
        noise: (n, m) float32 uniform on (0, 1), everything else that is drawn.
    """

    situation: np.ndarray
    road: np.ndarray
    z: np.ndarray
    noise: np.ndarray

    @property
    def n(self) -> int:
        return len(self.situation)

    def take(self, rows) -> Contexts:
        return Contexts(self.situation[rows], self.road[rows], self.z[rows], self.noise[rows])


@dataclass(frozen=True, eq=False)
class CellLaw:
    """The law in one cell, as tables over routes r and hours h.

    Attributes:
        p_rh: (R, H) share of the drives on each route at each hour.
        pi: (R, H, K) mix of situations; rho: (R, K, J) roads of a situation on a route.
        m: (R, H, K, 8) means of z.
    """

    p_rh: np.ndarray
    pi: np.ndarray
    rho: np.ndarray
    m: np.ndarray

    def log_density(self, contexts: Contexts) -> np.ndarray:
        """(n,) log p(k, j, z), routes and hours summed out."""
        k, j = contexts.situation, contexts.road
        total = np.zeros(contexts.n)
        for r in range(len(ROUTES)):
            for h in range(len(HOURS)):
                quadratic = ((contexts.z - self.m[r, h][k]) ** 2).sum(axis=1)
                total += self.p_rh[r, h] * self.pi[r, h, k] * self.rho[r, k, j] * np.exp(-quadratic / 2)
        return np.log(np.maximum(total, 1e-300)) - D / 2 * np.log(2 * np.pi)


def cell_law(changes: tuple[Change, ...], *, effect_share: float, seed: int) -> CellLaw:
    """The law of a cell: the base, then each change in turn (the area's, the period's).

    Args:
        effect_share: dial of the hierarchical effects, 0 to 0.5: share of the variance between drives, days, vehicles.
        seed: of the routes' own means, which stay the same in every period.
    """
    if not 0 <= effect_share <= 0.5:
        raise ConfigError(f"effect_share is {effect_share:g}; it must be from 0 to 0.5.")
    routes, hours = list(ROUTES), list(HOURS)
    own = np.random.default_rng([seed, 77]).normal(size=(len(routes), D)) * np.sqrt(ROUTE_SHARE * effect_share)
    p_r = _normalized([_product(changes, "routes", r) for r in routes])
    p_h = _normalized([_product(changes, "hours", h) for h in hours])
    pi = np.zeros((len(routes), len(hours), len(SITUATION_NAMES)))
    m = np.zeros((*pi.shape, D))
    rho = np.zeros((len(routes), len(SITUATION_NAMES), len(ROAD_NAMES)))
    for a, route in enumerate(routes):
        for k, name in enumerate(SITUATION_NAMES):
            odds = [_product((*changes, ROUTE_CHANGES[route]), "roads", road) * (road in SITUATIONS[name][1])
                    for road in ROAD_NAMES]
            rho[a, k] = _normalized(odds)
        for b, hour in enumerate(hours):
            local = (*changes, ROUTE_CHANGES[route], HOUR_CHANGES[hour])
            pi[a, b] = _normalized([BASE_MIX[name] * _product(local, "mix", name) for name in SITUATION_NAMES])
            shift = np.array([sum(c.means.get(p, 0.0) for c in local) for p in PARAMETER_NAMES]) + own[a]
            for k, name in enumerate(SITUATION_NAMES):
                m[a, b, k] = shift + [SITUATION_MEANS.get(name, {}).get(p, 0.0) for p in PARAMETER_NAMES]
    return CellLaw(np.outer(p_r, p_h), pi, rho, m)


@dataclass(frozen=True, eq=False)
class DriveContexts:
    """The contexts of one drive, and where and when it went."""

    contexts: Contexts
    route: str
    hour: int


def sample_drive(law: CellLaw, n: int, *, effect_share: float, vehicle_effect, day_effect, n_noise: int, rng
                 ) -> DriveContexts:
    """n contexts of one drive.

    Args:
        vehicle_effect, day_effect: (8,) standard normal draws of the vehicle and the day.
        n_noise: uniform numbers a context carries.
    """
    flat = rng.choice(law.p_rh.size, p=law.p_rh.ravel())
    r, h = divmod(int(flat), law.p_rh.shape[1])
    share = {name: effect_share * part for name, part in SHARE_OF.items()}
    mix = law.pi[r, h]
    if share["drive"] > 0:  # Dirichlet with intra-drive correlation share["drive"] = 1 / (1 + concentration)
        mix = rng.dirichlet((1 / share["drive"] - 1) * mix)
    k = rng.choice(len(mix), size=n, p=mix)
    roads = law.rho[r, k].cumsum(axis=1)
    j = (rng.random(n)[:, None] > roads / roads[:, -1:]).sum(axis=1)
    effect = (np.sqrt(share["drive"]) * rng.normal(size=D) + np.sqrt(share["vehicle"]) * vehicle_effect
              + np.sqrt(share["day"]) * day_effect)
    z = law.m[r, h, k] + effect + np.sqrt(1 - sum(share.values())) * rng.normal(size=(n, D))
    noise = rng.random((n, n_noise), dtype=np.float32)
    contexts = Contexts(k.astype(np.int8), j.astype(np.int8), z, noise)
    return DriveContexts(contexts, ROUTES[r], HOURS[list(HOURS)[h]])


def _product(changes, kind: str, name: str) -> float:
    return float(np.prod([getattr(change, kind).get(name, 1.0) for change in changes]))


def _normalized(odds) -> np.ndarray:
    odds = np.asarray(odds, dtype=float)
    return odds / odds.sum()
