"""Metrics ell(X) in [0, M], one pinned definition each, from states at the log's own rate (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.scenario.measure.interaction import TTC_HORIZON_S, Interaction, interact
from avshift_core.scenario.measure.motion import EgoMotion
from avshift_core.scenario.schema import ScenarioBatch

MIN_RATE_HZ = 5.0  # below, TTC, DRAC and jerk miss half of short events or more (see the tests)
HARD_BRAKE_MPS2 = -3.0
MIN_HEADWAY_SPEED_MPS = 1.0  # in a standing queue a headway in seconds means nothing
MIN_GAP_M = 0.1  # floor of the gap in DRAC; nearer, the cap of the metric rules anyway
DISCOMFORT_THRESHOLD = 1.0  # at a comfort bound; the analyst may move it

# Bounds of nuPlan's metric ego_is_comfortable (nuplan-devkit, docs/metrics_description.md), found on expert drives.
COMFORT_BOUNDS = {
    "acceleration_min_mps2": -4.05, "acceleration_max_mps2": 2.40, "lateral_acceleration_mps2": 4.89,
    "yaw_rate_radps": 0.95, "yaw_acceleration_radps2": 1.93, "jerk_mps3": 4.13, "jerk_magnitude_mps3": 8.37,
}


@dataclass(frozen=True)
class Metric:
    """One definition.

    Attributes:
        version: goes up whenever a value could change; stored beside the values.
        M: largest value; larger ones are cut.
        needs_hz: False where a low rate hardly matters, True where values below MIN_RATE_HZ are marked low-rate.
        higher_is_worse: False where small values are the dangerous ones (TTC, headway, gap).
        text: the definition in one sentence.
        compute: (batch, interaction) -> (n,) values before the cut at M; (comfort score) -> values if `of_comfort`.
    """

    name: str
    version: int
    unit: str
    M: float
    needs_hz: bool
    higher_is_worse: bool
    text: str
    compute: Callable[..., np.ndarray]
    of_comfort: bool = False


def compute_metrics(batch: ScenarioBatch, interaction: Interaction | None = None) -> dict[str, np.ndarray]:
    """All metrics of a batch: name -> (n,) float64 in [0, M].

    Args:
        interaction: of the same batch, where it is at hand.
    """
    interaction = interaction or interact(batch)
    values: dict[str, np.ndarray] = {}
    for name, metric in METRICS.items():
        value = metric.compute(values["comfort_score"]) if metric.of_comfort else metric.compute(batch, interaction)
        values[name] = np.clip(np.asarray(value, np.float64), 0, metric.M)
    return values


def low_rate(batch: ScenarioBatch) -> np.ndarray:
    """(n,) True below 5 Hz, where metrics with `needs_hz` are not to be trusted."""
    return batch.rate_hz < MIN_RATE_HZ * (1 - 1e-3)  # timestamps are rounded


def exceedance(values: np.ndarray, direction: str, threshold: float) -> np.ndarray:
    """(n,) 1.0 where a value lies beyond the threshold: an indicator of any continuous metric.

    >>> exceedance(np.array([0.5, 1.5, 4.0]), "<", 1.5).tolist()
    [1.0, 0.0, 0.0]
    """
    values = np.asarray(values, np.float64)
    if direction not in ("<", ">"):
        raise ConfigError(f"'{direction}' is no direction of an exceedance. Give '<' or '>'.")
    if not np.isfinite(threshold):
        raise ConfigError(f"The threshold of an exceedance is {threshold}; a finite number is needed.")
    beyond = values > threshold if direction == ">" else values < threshold
    return np.where(np.isnan(values), np.nan, beyond)


def discomfort(comfort_score: np.ndarray, threshold: float = DISCOMFORT_THRESHOLD) -> np.ndarray:
    """(n,) 1.0 where the comfort score exceeds the threshold.

    >>> discomfort(np.array([0.4, 1.2])).tolist()
    [0.0, 1.0]
    """
    return exceedance(comfort_score, ">", threshold)


def rate_per_km(values: np.ndarray, distance_km: np.ndarray) -> float:
    """Sum of values over sum of kilometres; NaN where nothing was driven.

    >>> rate_per_km(np.array([1.0, 0.0]), np.array([0.1, 0.3]))
    2.5
    """
    return _rate(values, distance_km)


def rate_per_hour(values: np.ndarray, duration_s: np.ndarray) -> float:
    """Sum of values over sum of hours; NaN without any time.

    >>> rate_per_hour(np.array([1.0, 1.0]), np.array([900.0, 900.0]))
    4.0
    """
    return _rate(values, np.asarray(duration_s) / 3600)


def _rate(values, exposure):
    """Sum over sum, of the scenarios that have both."""
    values, exposure = np.asarray(values, float), np.asarray(exposure, float)
    known = np.isfinite(values) & np.isfinite(exposure)
    total = exposure[known].sum()
    return float(values[known].sum() / total) if total > 0 else float("nan")


def _largest(values: np.ndarray) -> np.ndarray:
    return values.max(axis=1, initial=0)


def _drac(batch, interaction):
    closing = np.maximum(interaction.leader_closing_mps, 0)
    return _largest(closing**2 / (2 * np.maximum(interaction.leader_gap_m, MIN_GAP_M)))


def _headway(batch, interaction):
    speed = interaction.motion.speed_mps
    gap = np.where(speed >= MIN_HEADWAY_SPEED_MPS, interaction.leader_gap_m, np.inf)
    return (gap / np.maximum(speed, MIN_HEADWAY_SPEED_MPS)).min(axis=1, initial=np.inf)


def comfort_ratios(motion: EgoMotion) -> dict[str, np.ndarray]:
    """Largest value of each comfort quantity over its bound: bound -> (n,), 1 at the bound."""
    jerk = np.sqrt(motion.jerk_mps3**2 + motion.lateral_jerk_mps3**2)
    values = {
        "acceleration_min_mps2": -motion.acceleration_mps2, "acceleration_max_mps2": motion.acceleration_mps2,
        "lateral_acceleration_mps2": np.abs(motion.lateral_acceleration_mps2),
        "yaw_rate_radps": np.abs(motion.yaw_rate_radps),
        "yaw_acceleration_radps2": np.abs(motion.yaw_acceleration_radps2),
        "jerk_mps3": np.abs(motion.jerk_mps3), "jerk_magnitude_mps3": jerk,
    }
    return {name: _largest(values[name]) / abs(bound) for name, bound in COMFORT_BOUNDS.items()}


def _comfort_score(batch, interaction):
    return np.max(list(comfort_ratios(interaction.motion).values()), axis=0)


def _duration(batch, interaction):
    """Time covered by steps that are valid together with their successor."""
    both = batch.ego_valid[:, 1:] & batch.ego_valid[:, :-1]
    return np.sum(np.diff(batch.t_s, axis=1), axis=1, where=both)


def _distance_km(batch, interaction):
    both = batch.ego_valid[:, 1:] & batch.ego_valid[:, :-1]
    speed = np.abs(interaction.motion.speed_mps)
    return np.sum((speed[:, 1:] + speed[:, :-1]) / 2 * np.diff(batch.t_s, axis=1), axis=1, where=both) / 1000


def _registry(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


METRICS: dict[str, Metric] = _registry(
    Metric("ttc_min_s", 1, "s", TTC_HORIZON_S, True, False,
           "Smallest time until the ego's box overlaps another one, if both kept velocity and heading; 10 if never.",
           lambda b, i: i.ttc_min_s),
    Metric("drac_mps2", 1, "m/s2", 20.0, True, True,
           "Largest deceleration needed to avoid the leader in the ego's path: closing speed^2 / (2 gap).", _drac),
    Metric("thw_min_s", 1, "s", 10.0, False, False,
           "Smallest gap to the leader in the ego's path over the ego's speed, from 1 m/s on; 10 without a leader.",
           _headway),
    Metric("gap_min_m", 1, "m", 50.0, False, False,
           "Smallest distance between the ego's box and any other; 0 in contact.", lambda b, i: i.gap_min_m),
    Metric("collision", 1, "0/1", 1.0, False, True,
           "The ego's box overlaps another one at some step.", lambda b, i: i.gap_min_m <= 0),
    Metric("hard_brake", 1, "0/1", 1.0, True, True,
           "Mean longitudinal acceleration over 0.4 s below -3 m/s2 at some step; no duration is required.",
           lambda b, i: (i.motion.acceleration_mps2 < HARD_BRAKE_MPS2).any(axis=1)),
    Metric("jerk_max_mps3", 1, "m/s3", 20.0, True, True,
           "Largest absolute longitudinal jerk.", lambda b, i: _largest(np.abs(i.motion.jerk_mps3))),
    Metric("lateral_acceleration_max_mps2", 1, "m/s2", 15.0, True, True,
           "Largest absolute speed x yaw rate.", lambda b, i: _largest(np.abs(i.motion.lateral_acceleration_mps2))),
    Metric("comfort_score", 1, "ratio", 5.0, True, True,
           "Largest ratio of acceleration, yaw or jerk to its nuPlan comfort bound; 1 is at a bound.", _comfort_score),
    Metric("comfort_bound_exceeded", 1, "0/1", 1.0, True, True,
           "One of nuPlan's comfort bounds is exceeded, by our filters: not nuPlan's own score.",
           lambda score: score > 1, of_comfort=True),
    Metric("discomfort", 1, "0/1", 1.0, True, True,
           "The comfort score exceeds the threshold, 1 unless the analyst moves it.",
           discomfort, of_comfort=True),
    Metric("duration_s", 1, "s", 3600.0, False, True,
           "Exposure: time with a valid ego.", _duration),
    Metric("distance_km", 1, "km", 100.0, False, True,
           "Exposure: distance driven by a valid ego.", _distance_km),
)
EXPOSURE = ("duration_s", "distance_km")
