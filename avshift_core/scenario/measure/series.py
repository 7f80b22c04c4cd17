"""One scenario over time: the ego's speed, its gaps and its time to collision at every step, as the metrics see them.

    series = series_of(scenario)
    series.ttc_s.min()                   # the metric ttc_min_s, before its cut at 10 s
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.interaction import interact, pair_steps
from avshift_core.scenario.schema import Scenario, pad

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Series:
    """(T,) each, read-only.

    Attributes:
        t_s: seconds since the first step.
        speed_mps: the ego's, as the log has it; NaN where the ego is not seen.
        gap_m: smallest distance between the ego's box and any other, inf without anybody.
        gap_agent: whose that is, NOBODY where there is none.
        leader_gap_m: from bumper to bumper to the nearest agent ahead in the ego's path, inf without one.
        leader: who that is.
        ttc_s: smallest time until the ego's box overlaps another one, if all kept velocity and heading; inf where
            that takes more than 10 s.
        ttc_agent: with whom.
    """

    t_s: np.ndarray
    speed_mps: np.ndarray
    gap_m: np.ndarray
    gap_agent: np.ndarray
    leader_gap_m: np.ndarray
    leader: np.ndarray
    ttc_s: np.ndarray
    ttc_agent: np.ndarray


def series_of(scenario: Scenario) -> Series:
    """The series of one scenario; their minima are the metrics `ttc_min_s` and `gap_min_m`."""
    batch = pad([scenario])
    seen = interact(batch)
    ttc, gap = (values[0] for values in pair_steps(batch, seen.tracks))
    ttc_s, ttc_agent = _least(ttc)
    gap_m, gap_agent = _least(gap)
    found = Series(
        t_s=scenario.t_s - scenario.t_s[:1], speed_mps=np.where(scenario.ego_valid, scenario.ego[:, 3], np.nan),
        gap_m=gap_m, gap_agent=gap_agent, leader_gap_m=seen.leader_gap_m[0], leader=seen.leader[0],
        ttc_s=ttc_s, ttc_agent=ttc_agent,
    )
    for array in vars(found).values():
        array.setflags(write=False)
    return found


def _least(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T,) smallest of values (A, T) over the agents, and whose it is."""
    A, T = values.shape
    if A == 0:
        return np.full(T, np.inf, np.float32), np.full(T, NOBODY, np.int32)
    who = values.argmin(axis=0)
    least = values[who, np.arange(T)]
    return least, np.where(np.isfinite(least), who, NOBODY).astype(np.int32)
