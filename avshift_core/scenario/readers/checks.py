"""Times, states and units of a log: what no scenario can hold, said in one sentence."""

from __future__ import annotations

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.measure.geometry import wrap
from avshift_core.scenario.schema import AGENT_TYPES

MIN_DURATION_S = 1.0  # shorter records hold no manoeuvre, and no acceleration could be told from noise
MAX_DURATION_S = 3600.0
MAX_STEP_S = 5.0  # median; a log with a state every 5 s holds no trajectory
TIME_UNITS = (("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))
PLAUSIBLE_STEP_S = (0.004, 4.0)  # 250 Hz to one state in 4 s
MAX_SPEED_MPS = 75.0  # 270 km/h by positions and times, most of the time
MAX_JUMP_M, MAX_JUMP_MPS = 20.0, 100.0  # between two states of the ego
MAX_REPORTED_MPS = 150.0
MAX_ACCELERATION_MPS2 = 1000.0  # 100 g, beyond any crash
MAX_COORDINATE_M = 1e10  # no map has it, not even in millimetres
MAX_DISTANCE_M = 10_000.0  # no sensor sees so far, and float32 keeps a millimetre up to there
LENGTH_UNITS = (("feet", 3.2808), ("inches", 39.37), ("centimetres", 100.0), ("millimetres", 1000.0))
SPEED_RATIOS = (  # reported speed over that from positions and times -> what that tells
    (3.6, "it seems that speeds are in km/h; convert them to m/s (divide by 3.6)"),
    (3.2808, "it seems that speeds are in ft/s; convert them to m/s (divide by 3.281)"),
    (2.2369, "it seems that speeds are in mph; convert them to m/s (divide by 2.237)"),
    (1.9438, "it seems that speeds are in knots; convert them to m/s (divide by 1.944)"),
    (100.0, "it seems that speeds are in cm/s; convert them to m/s (divide by 100)"),
    (0.3048, "it seems that positions are in feet; convert them to metres (multiply by 0.3048)"),
    (0.01, "it seems that positions are in centimetres; convert them to metres (divide by 100)"),
    (0.001, "it seems that positions are in millimetres, or times in ms; convert them to metres and seconds"),
    (1000.0, "it seems that times are in milliseconds, or positions in km; convert them to seconds and metres"),
)
RATIO_TOLERANCE = 0.04  # ft/s and km/h lie 9 % apart
RATIO_RANGE = (0.55, 1.8)  # medians of right but noisy logs stay well inside
MOVING_MPS, MIN_MOVING_STATES = 3.0, 10


def check_times(where: str, t_s: np.ndarray) -> None:
    """Refuse times that are not finite or do not increase."""
    bad = np.flatnonzero(~np.isfinite(t_s))
    if len(bad):
        raise LogError(f"{where}: the time of step {bad[0]} is {t_s[bad[0]]}. Give every state a time in seconds.")
    bad = np.flatnonzero(np.diff(t_s) <= 0)
    if len(bad):
        i = bad[0] + 1
        if t_s[i] == t_s[i - 1]:
            raise LogError(f"{where}: steps {i - 1} and {i} have the same time, {t_s[i]:.6f} s. Leave one of them out.")
        raise LogError(f"{where}: time runs backwards, from {t_s[i - 1]:.6f} s at step {i - 1} to {t_s[i]:.6f} s at "
                       f"step {i}. Sort the log by time, or cut it there if these are two drives.")


def check_duration(where: str, t_s: np.ndarray) -> None:
    """Refuse records that are too short, and times that are not in seconds."""
    if len(t_s) < 2:
        raise LogError(f"{where} holds {len(t_s)} time step{'' if len(t_s) == 1 else 's'}; at least 2 are needed.")
    step, duration = float(np.median(np.diff(t_s))), float(t_s[-1] - t_s[0])
    if step > MAX_STEP_S:
        units = [name for name, factor in TIME_UNITS if PLAUSIBLE_STEP_S[0] <= step / factor <= PLAUSIBLE_STEP_S[1]]
        unit = f"; times seem to be in {' or '.join(units)}" if units else ""
        raise LogError(f"{where}: states are {step:,.6g} s apart, and at most {MAX_STEP_S:g} s make a trajectory"
                       f"{unit}. Convert times to seconds.")
    if duration > MAX_DURATION_S:
        raise LogError(f"{where} lasts {duration:,.6g} s; at most {MAX_DURATION_S:,.0f} s make a scenario. Cut it into "
                       "windows, and give its times in seconds.")
    if duration < MIN_DURATION_S:
        raise LogError(f"{where} lasts {duration:.3g} s; at least {MIN_DURATION_S:g} s are needed. If it is longer, "
                       "give its times in seconds.")


def check_states(where: str, ego_xy, ego_valid, agent_id, agent_xy, agent_valid) -> None:
    """Refuse positions that are not finite in valid states, an ego that is not there, and twice the same agent."""
    if ego_valid.sum() < 2:
        raise LogError(f"{where}: the ego has {int(ego_valid.sum())} valid states; at least 2 are needed.")
    bad = np.flatnonzero(ego_valid & ~(np.abs(ego_xy) <= MAX_COORDINATE_M).all(axis=1))
    if len(bad):
        raise LogError(f"{where}: the ego's position at step {bad[0]} is {_point(ego_xy[bad[0]])}. Give metres, or "
                       "leave the state out.")
    bad = np.argwhere(agent_valid & ~(np.abs(agent_xy) <= MAX_COORDINATE_M).all(axis=2))
    if len(bad):
        a, i = bad[0]
        raise LogError(f"{where}: the position of agent '{agent_id[a]}' at step {i} is {_point(agent_xy[a, i])}. Give "
                       "metres, or leave the state out.")
    names, count = np.unique(agent_id, return_counts=True)
    if (count > 1).any():
        raise LogError(f"{where}: agent '{names[count > 1][0]}' stands there twice. Give every agent one id.")


def check_distances(where: str, agent_id: np.ndarray, xy: np.ndarray, valid: np.ndarray) -> None:
    """Refuse agents (rows 1.. of (1 + A, T, 2)) that are nowhere near the ego's first position, (0, 0)."""
    distance = np.where(valid[1:], np.abs(xy[1:]).max(axis=2, initial=0.0), 0.0)
    if distance.max(initial=0.0) > MAX_DISTANCE_M:
        a, i = np.unravel_index(distance.argmax(), distance.shape)
        raise LogError(f"{where}: agent '{agent_id[a]}' is {distance[a, i] / 1000:,.0f} km away from the ego's start "
                       f"at step {i}. Give ego and agents in the same coordinates, in metres.")


def check_motion(where: str, t_s: np.ndarray, xy: np.ndarray, valid: np.ndarray, speed: np.ndarray) -> None:
    """Refuse positions and times that no road user can have; `speed` is the one that they give, row 0 is the ego."""
    who, fast = "the ego moves", float(np.quantile(speed[0, valid[0]], 0.9))
    if fast <= MAX_SPEED_MPS and valid[1:].any():
        who, fast = "most agents move", float(np.median(speed[1:][valid[1:]]))
    if fast > MAX_SPEED_MPS:
        unit = next((f"positions seem to be in {name}" for name, factor in LENGTH_UNITS
                     if name != "inches" and fast / factor <= 0.8 * MAX_SPEED_MPS), "the times seem to be wrong")
        raise LogError(f"{where}: by positions and times, {who} at {fast:,.0f} m/s; {unit}. Convert positions to "
                       "metres and times to seconds.")
    steps = np.flatnonzero(valid[0])
    way = np.hypot(*np.diff(xy[0, steps], axis=0).T)
    bad = np.flatnonzero((way > MAX_JUMP_M) & (way > MAX_JUMP_MPS * np.diff(t_s[steps])))
    if len(bad):
        raise LogError(f"{where}: the ego jumps by {way[bad[0]]:,.0f} m between steps {steps[bad[0]]} and "
                       f"{steps[bad[0] + 1]}. Cut the log there, or leave the wrong states out.")


def check_speeds(where: str, who: str, reported: np.ndarray, speed: np.ndarray, valid: np.ndarray) -> None:
    """Refuse reported speeds (A, T), NaN where unknown, that `speed` from positions and times cannot explain."""
    known = valid & ~np.isnan(reported)
    if np.isinf(reported[known]).any():
        raise LogError(f"{where}: a speed of {who} is infinite. Give a number in m/s, or leave it empty.")
    moving = known & (np.maximum(speed, np.abs(reported)) >= MOVING_MPS)
    if moving.sum() >= MIN_MOVING_STATES:
        ratio = float(np.median(np.maximum(np.abs(reported[moving]), 1e-6) / np.maximum(speed[moving], 1e-6)))
        if not RATIO_RANGE[0] <= ratio <= RATIO_RANGE[1]:
            hint = next((text for factor, text in SPEED_RATIOS if abs(ratio / factor - 1) <= RATIO_TOLERANCE),
                        "check the units: speeds in m/s, positions in metres and times in seconds are needed")
            raise LogError(f"{where}: speeds of {who} are {ratio:.3g} times what positions and times give; {hint}.")
    top = float(np.abs(reported[known]).max(initial=0.0))
    if top > MAX_REPORTED_MPS:
        raise LogError(f"{where}: a speed of {who} is {top:,.0f} m/s; no road user is faster than "
                       f"{MAX_REPORTED_MPS:g} m/s. Give speeds in m/s, and none where it is not known.")


def check_acceleration(where: str, acceleration: np.ndarray, valid: np.ndarray) -> None:
    """Refuse accelerations (T,) that no car survives."""
    bad = np.flatnonzero(valid & ~(np.abs(acceleration) <= MAX_ACCELERATION_MPS2))
    if len(bad):
        raise LogError(f"{where}: the ego's acceleration at step {bad[0]} is {acceleration[bad[0]]:.4g} m/s2; at most "
                       f"{MAX_ACCELERATION_MPS2:g} is possible. Give m/s2, or leave it empty where it is not known.")


def check_headings(where: str, who: str, heading, velocity, valid) -> None:
    """Refuse headings (A, T) in degrees or clockwise from north, told by their range and by the direction of motion."""
    known = valid & ~np.isnan(heading)
    if np.isinf(heading[known]).any():
        raise LogError(f"{where}: a heading of {who} is infinite. Give a number in radians, or leave it empty.")
    moving = known & (np.hypot(velocity[..., 0], velocity[..., 1]) >= MOVING_MPS)
    direction, given = np.arctan2(velocity[moving][:, 1], velocity[moving][:, 0]), heading[moving]
    enough = moving.sum() >= MIN_MOVING_STATES
    largest = float(np.abs(heading[known]).max(initial=0.0))
    if enough and _off(given, direction) < min(0.3, _off(np.radians(given), direction) + 0.05):
        return
    if largest > 2 * np.pi + 0.5:
        raise LogError(f"{where}: headings of {who} reach {largest:.4g}, more than a full turn of 6.28 rad; they "
                       "seem to be in degrees. Convert them to radians (multiply by pi / 180).")
    if enough and _off(given, direction) > 0.5 and _off(given + np.pi, direction) > 0.5:
        for text, other in (("in degrees. Convert them to radians (multiply by pi / 180)", np.radians(given)),
                            ("clockwise from north. Convert them to counter-clockwise from the x axis (pi / 2 - "
                             "heading)", np.pi / 2 - given)):
            if _off(other, direction) < 0.1:
                raise LogError(f"{where}: headings of {who} do not fit the direction of motion, which they do if they "
                               f"are {text}.")


def check_sizes(where: str, who: str, size: np.ndarray, agent_type: np.ndarray) -> None:
    """Refuse sizes (A, 3), NaN where unknown, that are negative, infinite or in another unit, told by those of cars."""
    if np.isinf(size).any() or (size < 0).any():
        raise LogError(f"{where}: a size of {who} is {size[np.isinf(size) | (size < 0)][0]:g}. Give metres, or leave "
                       "it empty where it is not known.")
    cars = size[(agent_type == AGENT_TYPES.index("car")) | (agent_type < 0)]
    length, width = (float(np.median(v)) if len(v := cars[~np.isnan(cars[:, k]), k]) else np.nan for k in (0, 1))
    if length > 9 or width > 3.2:
        for name, factor in LENGTH_UNITS:
            if (np.isnan(length) or 3 <= length / factor <= 6.5) and (np.isnan(width) or 1.4 <= width / factor <= 2.8):
                raise LogError(f"{where}: cars among {who} are {length:.4g} long and {width:.4g} wide (median); sizes "
                               f"seem to be in {name}. Convert them to metres, and positions too if they are the same.")
    if np.nanmax(size, initial=0.0) > 100:
        raise LogError(f"{where}: a size of {who} is {np.nanmax(size):,.0f} m. Convert sizes to metres.")


def _off(heading: np.ndarray, direction: np.ndarray) -> float:
    """Median difference of two directions in rad."""
    return float(np.median(np.abs(wrap(heading - direction))))


def _point(xy: np.ndarray) -> str:
    return f"({xy[0]:g}, {xy[1]:g})"
