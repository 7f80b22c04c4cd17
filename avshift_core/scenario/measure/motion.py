"""The ego's motion at the log's rate: acceleration, jerk and yaw from least-squares parabolas over a span of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.scenario.measure.geometry import EgoPath, ego_path, fill_forward, wrap
from avshift_core.scenario.schema import ScenarioBatch

MEAN_HALF_S = 0.2  # of accelerations: a mean never overshoots, and half a second of hard braking survives it
# For derivatives, nuPlan smooths with Savitzky-Golay filters of order 2 over 15
# samples at 10 Hz; ours are 11 samples at 10 Hz and 21 at 20 Hz.
FILTER_HALF_S = 0.5
MIN_NEIGHBOURS = 2  # on each side; what a parabola needs with something left to average. Widens the span below 4 Hz
MIN_YAW_SPEED_MPS = 0.5  # a car does not turn on the spot: slower, a change of heading is noise of the log
TIME_SLACK_S = 1e-6


@dataclass(frozen=True)
class EgoMotion:
    """(n, T) each; 0 where the ego is invalid.

    Attributes:
        valid: the ego's mask.
        speed_mps: of the log.
        heading_rad: unwrapped; held where invalid.
        acceleration_mps2: longitudinal, mean over +-MEAN_HALF_S.
        jerk_mps3: slope of the log's longitudinal acceleration over +-FILTER_HALF_S.
        yaw_rate_radps, yaw_acceleration_radps2: slope and bend of the heading over +-FILTER_HALF_S, 0 when standing.
        lateral_acceleration_mps2: speed x yaw rate.
        lateral_jerk_mps3: slope of the lateral acceleration over +-FILTER_HALF_S.
    """

    valid: np.ndarray
    speed_mps: np.ndarray
    heading_rad: np.ndarray
    acceleration_mps2: np.ndarray
    jerk_mps3: np.ndarray
    yaw_rate_radps: np.ndarray
    yaw_acceleration_radps2: np.ndarray
    lateral_acceleration_mps2: np.ndarray
    lateral_jerk_mps3: np.ndarray


def ego_motion(batch: ScenarioBatch) -> EgoMotion:
    """Smoothed motion of every ego; only unbroken spans of valid steps are averaged."""
    valid, speed = batch.ego_valid, batch.ego[..., 3].astype(np.float64)
    heading = unwrap_valid(batch.ego[..., 2].astype(np.float64), valid)
    parabola = TimeFilter.of(batch.t_s, valid)
    jerk, _ = parabola.derivatives(batch.ego[..., 4])
    yaw_rate, yaw_acceleration = parabola.derivatives(heading)
    turning = valid & (np.abs(speed) >= MIN_YAW_SPEED_MPS)
    lateral = np.where(turning, speed * yaw_rate, 0)
    return EgoMotion(
        valid=valid, speed_mps=np.where(valid, speed, 0), heading_rad=heading,
        acceleration_mps2=moving_mean(batch.t_s, valid, batch.ego[..., 4], MEAN_HALF_S), jerk_mps3=jerk,
        yaw_rate_radps=np.where(turning, yaw_rate, 0),
        yaw_acceleration_radps2=np.where(turning, yaw_acceleration, 0), lateral_acceleration_mps2=lateral,
        lateral_jerk_mps3=parabola.derivatives(lateral)[0],
    )


def path_of(batch: ScenarioBatch, motion: EgoMotion) -> EgoPath:
    return ego_path(batch.ego, batch.ego_valid, motion.heading_rad)


def unwrap_valid(heading_rad: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(n, T) headings without jumps of 2 pi; where invalid, the last valid one.

    >>> unwrap_valid(np.array([[3.0, 0.0, -3.0]]), np.array([[True, False, True]])).round(2).tolist()
    [[3.0, 3.0, 3.28]]
    """
    held = fill_forward(heading_rad, valid)
    return np.concatenate([held[:, :1], held[:, :1] + np.cumsum(wrap(np.diff(held, axis=1)), axis=1)], axis=1)


@dataclass(frozen=True)
class TimeFilter:
    """Least-squares parabola over the steps within FILTER_HALF_S of each step: Savitzky-Golay for uneven times.

    A window stays inside one span of valid steps. Near the ends of a span it is moved inwards so that it keeps its
    length; at least MIN_NEIGHBOURS steps on each side are taken however far they are.

    Attributes:
        valid: (n, T); usable: False where invalid or with fewer than three steps in the window.
        tau_s: (n, T) time from the middle of the scenario, which keeps powers small.
        first, last: (n, T) flat index of the window's first entry, and of the one past its last, in running sums.
        centre_s: (n, T) time of the window's middle.
        inverse: the six different entries of the inverted normal equations, (n, T) each.
    """

    valid: np.ndarray
    usable: np.ndarray
    tau_s: np.ndarray
    first: np.ndarray
    last: np.ndarray
    centre_s: np.ndarray
    inverse: tuple[np.ndarray, ...]

    @staticmethod
    def of(t_s: np.ndarray, valid: np.ndarray) -> TimeFilter:
        n, T = valid.shape
        tau = t_s - (t_s[:, :1] + t_s[:, -1:]) / 2
        span_first, span_last = _spans(valid)
        low, high = (np.take_along_axis(tau, step, axis=1) for step in (span_first, span_last))
        middle, step = (low + high) / 2, np.arange(T)
        centre = np.clip(tau, np.minimum(low + FILTER_HALF_S, middle), np.maximum(high - FILTER_HALF_S, middle))
        spread, running = FILTER_HALF_S + TIME_SLACK_S, (T + 1) * np.arange(n)[:, None]
        first = np.minimum(_count_below(tau, centre - spread), np.maximum(step - MIN_NEIGHBOURS, 0))
        last = np.maximum(_count_below(tau, centre + spread), step + MIN_NEIGHBOURS + 1)
        first = np.maximum(first, span_first) + running
        last = np.minimum(last, span_last + 1) + running
        powers = [valid.astype(np.float64)]
        for _ in range(4):
            powers.append(powers[-1] * tau)
        m0, m1, m2, m3, m4 = _moved([_window_sum(p, first, last) for p in powers], centre)
        usable = valid & (m0 >= 3)
        inverse = (m2 * m4 - m3 * m3, m2 * m3 - m1 * m4, m1 * m3 - m2 * m2,
                   m0 * m4 - m2 * m2, m1 * m2 - m0 * m3, m0 * m2 - m1 * m1)
        determinant = m0 * inverse[0] + m1 * inverse[1] + m2 * inverse[2]
        factor = np.divide(1, determinant, where=usable & (determinant > 1e-18), out=np.zeros((n, T)))
        return TimeFilter(valid, usable, tau, first, last, centre, tuple(c * factor for c in inverse))

    def derivatives(self, signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, T) first and second derivative in the window's middle, where noise is amplified least; 0 where not
        usable."""
        weighted = np.where(self.valid, signal, 0).astype(np.float64)
        sums = [_window_sum(weighted, self.first, self.last)]
        for _ in range(2):
            weighted = weighted * self.tau_s
            sums.append(_window_sum(weighted, self.first, self.last))
        b0, b1, b2 = _moved(sums, self.centre_s)
        _, c01, c02, c11, c12, c22 = self.inverse
        return c01 * b0 + c11 * b1 + c12 * b2, 2 * (c02 * b0 + c12 * b1 + c22 * b2)


def moving_mean(t_s: np.ndarray, valid: np.ndarray, signal: np.ndarray, half_s: float) -> np.ndarray:
    """(n, T) mean of the valid steps within half_s of each step and in its span; 0 where invalid."""
    n, T = valid.shape
    span_first, span_last = _spans(valid)
    running = (T + 1) * np.arange(n)[:, None]
    first = _count_below(t_s, t_s - half_s - TIME_SLACK_S)
    # step j is in the window of step i when i is in that of j: count the windows that have begun
    last = np.cumsum(np.bincount((first + running).ravel(), minlength=n * (T + 1)).reshape(n, -1), axis=1)[:, :T]
    first, last = np.maximum(first, span_first) + running, np.minimum(last, span_last + 1) + running
    total = _window_sum(np.where(valid, signal, 0), first, last)
    return np.where(valid, total / np.maximum(last - first, 1), 0)


def _spans(valid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, T) first and last step of the span of valid steps that holds each step; the step itself where invalid."""
    n, T = valid.shape
    step = np.broadcast_to(np.arange(T), (n, T))
    edge = np.zeros((n, 1), bool)
    begins = valid & ~np.concatenate([edge, valid[:, :-1]], axis=1)
    ends = valid & ~np.concatenate([valid[:, 1:], edge], axis=1)
    first = np.maximum.accumulate(np.where(begins, step, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, step, T - 1)[:, ::-1], axis=1)[:, ::-1]
    return np.where(valid, first, step), np.where(valid, last, step)


def _count_below(times: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(n, T) how many of each row's `times` lie below `wanted`."""
    n, T = times.shape
    if times.size == 0:
        return np.zeros((n, T), np.intp)
    width = 2 * (np.abs(times).max() + np.abs(wanted).max()) + 1
    offset = np.arange(n)[:, None] * width
    found = np.searchsorted((times + offset).ravel(), (wanted + offset).ravel()).reshape(n, T)
    return found - T * np.arange(n)[:, None]


def _window_sum(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    n, T = values.shape
    running = np.zeros((n, T + 1))
    np.cumsum(values, axis=1, out=running[:, 1:])
    running = running.ravel()
    return running[last] - running[first]


def _moved(raw: list[np.ndarray], c: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums of powers of (t - c) from sums of powers of t, each times the same factor."""
    moved = [raw[0], raw[1] - c * raw[0], raw[2] - c * (2 * raw[1] - c * raw[0])]
    if len(raw) == 5:
        moved.append(raw[3] - c * (3 * raw[2] - c * (3 * raw[1] - c * raw[0])))
        moved.append(raw[4] - c * (4 * raw[3] - c * (6 * raw[2] - c * (4 * raw[1] - c * raw[0]))))
    return tuple(moved)
