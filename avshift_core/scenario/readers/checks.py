"""Times, states and units of a log: what no scenario can hold, said in one sentence."""

from __future__ import annotations

import numpy as np

from avshift_core.errors import LogError
from avshift_core.scenario.measure.geometry import wrap
from avshift_core.scenario.readers.units import WORDS, Declared, listed, sentence
from avshift_core.scenario.schema import AGENT_TYPES

MIN_DURATION_S = 1.0  # shorter records hold no manoeuvre, and no acceleration could be told from noise
MAX_DURATION_S = 3600.0
MAX_STEP_S = 5.0  # median; a log with a state every 5 s holds no trajectory
PLAUSIBLE_STEP_S = (0.004, 4.0)  # 250 Hz to one state in 4 s
MAX_SPEED_MPS = 75.0  # 270 km/h by positions and times, most of the time
MAX_JUMP_M, MAX_JUMP_MPS = 20.0, 100.0  # between two states of the ego
MAX_REPORTED_MPS = 150.0
MAX_ACCELERATION_MPS2 = 1000.0  # 100 g, beyond any crash
MAX_COORDINATE_M = 1e10  # no map has it, not even in millimetres
MAX_DISTANCE_M = 10_000.0  # no sensor sees so far, and float32 keeps a millimetre up to there
LENGTH_UNITS = (("feet", 3.2808), ("inches", 39.37), ("centimetres", 100.0), ("millimetres", 1000.0))
RATIO_RANGE = (0.55, 1.8)  # medians of right but noisy logs stay well inside
STABLE_RATIO_RANGE = (1 / 1.2, 1.2)  # where speeds are well measured; medians of the logs at hand are 0.95 to 1.04
MAX_RATIO_SPREAD = 0.15  # between quartiles, relative; noisy logs reach 1
MAX_OFFSET_RAD, MAX_OFFSET_SPREAD_RAD = np.radians(10), np.radians(6)  # medians of the logs at hand are below 2
FITS_RAD, FAR_OFF_RAD = 0.1, 0.5  # taken for degrees, the noise of any heading along an axis shrinks to nothing
STRAIGHT_RADPS = 0.1  # in tighter turns the direction of motion differs from the heading
EDGE_S = 0.45  # at its ends a track gives one-sided velocities
MIN_MEASURED_STATES, MIN_MEASURED_S = 8, 1.0
MOVING_MPS, MIN_MOVING_STATES = 3.0, 10
AS_WRITTEN = Declared()


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


def check_duration(where: str, t_s: np.ndarray, units: Declared = AS_WRITTEN) -> None:
    """Refuse records that are too short, and times that are not in seconds."""
    if len(t_s) < 2:
        raise LogError(f"{where} holds {len(t_s)} time step{'' if len(t_s) == 1 else 's'}; at least 2 are needed.")
    step, duration = float(np.median(np.diff(t_s))), float(t_s[-1] - t_s[0])
    if step > MAX_STEP_S:
        likely = units.time_units(step, PLAUSIBLE_STEP_S)
        seems = f"; times seem to be in {listed([WORDS[unit] for unit in likely])}" if likely else ""
        advice = units.advice(("time", likely[0])) if likely else "convert times to seconds"
        raise LogError(f"{where}: states are {step:,.10g} s apart, and at most {MAX_STEP_S:g} s make a trajectory"
                       f"{seems}. {sentence(advice)}.")
    if duration > MAX_DURATION_S:
        raise LogError(f"{where} lasts {duration:,.10g} s; at most {MAX_DURATION_S:,.0f} s make a scenario. Cut it "
                       "into windows, and give its times in seconds.")
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


def check_motion(where: str, t_s, xy, valid, speed, units: Declared = AS_WRITTEN) -> None:
    """Refuse positions and times that no road user can have; `speed` is the one that they give, row 0 is the ego."""
    who, fast = "the ego moves", float(np.quantile(speed[0, valid[0]], 0.9))
    if fast <= MAX_SPEED_MPS and valid[1:].any():
        who, fast = "most agents move", float(np.median(speed[1:][valid[1:]]))
    if fast > MAX_SPEED_MPS:
        seems, advice = next((
            (f"positions seem to be in {name}", units.length_advice("position", factor)) for name, factor in
            LENGTH_UNITS if name != "inches" and fast / factor <= 0.8 * MAX_SPEED_MPS
        ), ("the times seem to be wrong", "convert positions to metres and times to seconds"))
        raise LogError(f"{where}: by positions and times, {who} at {fast:,.0f} m/s; {seems}. {sentence(advice)}.")
    steps = np.flatnonzero(valid[0])
    way = np.hypot(*np.diff(xy[0, steps], axis=0).T)
    bad = np.flatnonzero((way > MAX_JUMP_M) & (way > MAX_JUMP_MPS * np.diff(t_s[steps])))
    if len(bad):
        raise LogError(f"{where}: the ego jumps by {way[bad[0]]:,.0f} m between steps {steps[bad[0]]} and "
                       f"{steps[bad[0] + 1]}. Cut the log there, or leave the wrong states out.")


def check_speeds(where: str, who: str, t_s, reported, speed, valid, units: Declared = AS_WRITTEN) -> None:
    """Refuse reported speeds (A, T), NaN where unknown, that `speed` from positions and times cannot explain."""
    known = valid & ~np.isnan(reported)
    if np.isinf(reported[known]).any():
        raise LogError(f"{where}: a speed of {who} is infinite. Give a number in m/s, or leave it empty.")
    ratio = _speed_ratio(t_s, np.abs(reported), speed, valid, known)
    if ratio is not None:
        raise LogError(f"{where}: speeds of {who} are {ratio:.4g} times what positions and times give; "
                       f"{units.explain_ratio(ratio)}.")
    top = float(np.abs(reported[known]).max(initial=0.0))
    if top > MAX_REPORTED_MPS:
        raise LogError(f"{where}: a speed of {who} is {top:,.0f} m/s; no road user is faster than "
                       f"{MAX_REPORTED_MPS:g} m/s. Give speeds in m/s, and none where it is not known.")


def _speed_ratio(t_s, reported, speed, valid, known) -> float | None:
    """Median of reported speed over that from positions, if it is off: far off, or a little but all the time."""
    moving = known & (np.maximum(speed, reported) >= MOVING_MPS)
    if moving.sum() >= MIN_MOVING_STATES:
        ratio = float(np.median(np.maximum(reported[moving], 1e-6) / np.maximum(speed[moving], 1e-6)))
        if not RATIO_RANGE[0] <= ratio <= RATIO_RANGE[1]:
            return ratio
    measured = known & (speed >= MOVING_MPS) & _inside_of_tracks(t_s, valid)
    if _enough(t_s, measured):
        low, ratio, high = np.quantile(reported[measured] / speed[measured], [0.25, 0.5, 0.75])
        off = not STABLE_RATIO_RANGE[0] <= ratio <= STABLE_RATIO_RANGE[1]
        if off and high - low <= MAX_RATIO_SPREAD * ratio:
            return float(ratio)
    return None


def check_acceleration(where: str, acceleration: np.ndarray, valid: np.ndarray) -> None:
    """Refuse accelerations (T,) that no car survives."""
    bad = np.flatnonzero(valid & ~(np.abs(acceleration) <= MAX_ACCELERATION_MPS2))
    if len(bad):
        raise LogError(f"{where}: the ego's acceleration at step {bad[0]} is {acceleration[bad[0]]:.4g} m/s2; at most "
                       f"{MAX_ACCELERATION_MPS2:g} is possible. Give m/s2, or leave it empty where it is not known.")


def check_headings(where: str, who: str, t_s, heading, velocity, valid, units: Declared = AS_WRITTEN) -> None:
    """Refuse headings (A, T) in degrees or clockwise from north, told by their range and by the direction of motion."""
    known = valid & ~np.isnan(heading)
    if np.isinf(heading[known]).any():
        raise LogError(f"{where}: a heading of {who} is infinite. Give a number in radians, or leave it empty.")
    straight = known & _fast_and_straight(t_s, velocity, valid)
    direction, given = np.arctan2(velocity[straight][:, 1], velocity[straight][:, 0]), heading[straight]
    enough = _enough(t_s, straight)
    if enough and _off(given, direction) < min(MAX_OFFSET_RAD, _off(np.radians(given), direction) + 0.05):
        return
    largest = float(np.abs(heading[known]).max(initial=0.0))
    if largest > 2 * np.pi + 0.5:
        largest = float(np.abs(units.raw_heading(heading[known])).max())
        if units.unit("angle") == "deg":
            raise LogError(f"{where}: headings of {who} reach {largest:.4g}, more than a full turn of 360 degrees, and "
                           "do not fit the direction of motion. Correct them, or leave them empty.")
        raise LogError(f"{where}: headings of {who} reach {largest:.4g}, more than a full turn of 6.28 rad; they "
                       f"seem to be in degrees. {sentence(units.advice(('angle', 'deg')))}.")
    backwards = enough and _off(given + np.pi, direction) < MAX_OFFSET_RAD and straight.any(axis=1).sum() == 1
    if enough and not backwards:  # a single vehicle may back up
        _check_offset(where, who, given, direction, units)


def _check_offset(where: str, who: str, given: np.ndarray, direction: np.ndarray, units: Declared) -> None:
    """Refuse headings (n,) that would fit the direction of motion in another unit, or are off by a fixed angle."""
    as_given = _off(given, direction)
    fits = {changes: _off(other, direction) for changes, other in units.other_headings(given)
            if ("angle", "deg") not in changes or as_given > FAR_OFF_RAD}
    fits = {changes: off for changes, off in fits.items() if off < min(FITS_RAD, as_given / 2)}
    if fits:  # along x, 1.57 clockwise from north would fit as degrees as well, but few logs hold such small degrees
        best = min(fits, key=lambda changes: (("angle", "deg") in changes, fits[changes]))
        seems = " and ".join(("in " if kind == "angle" else "") + WORDS[unit] for kind, unit in best)
        raise LogError(f"{where}: headings of {who} do not fit the direction of motion, which they do if they are "
                       f"{seems}. {sentence(units.advice(*best))}.")
    off = wrap(given - direction)
    middle = np.angle(np.exp(1j * off).mean())
    low, rest, high = np.quantile(wrap(off - middle), [0.25, 0.5, 0.75])
    if abs(wrap(middle + rest)) > MAX_OFFSET_RAD and high - low < MAX_OFFSET_SPREAD_RAD:
        order = "clockwise from north, or in degrees" if units.unit("angle") == "rad" else "clockwise from north"
        raise LogError(f"{where}: headings of {who} are {np.degrees(wrap(middle + rest)):+.0f} degrees off the "
                       f"direction of motion, all the time. They may be {order}, or measured from another axis; "
                       "counter-clockwise from the x axis is needed.")


def check_sizes(where: str, who: str, size, agent_type, units: Declared = AS_WRITTEN) -> None:
    """Refuse sizes (A, 3), NaN where unknown, that are negative, infinite or in another unit, told by those of cars."""
    if np.isinf(size).any() or (size < 0).any():
        raise LogError(f"{where}: a size of {who} is {size[np.isinf(size) | (size < 0)][0]:g}. Give metres, or leave "
                       "it empty where it is not known.")
    cars = size[(agent_type == AGENT_TYPES.index("car")) | (agent_type < 0)]
    length, width = (float(np.median(v)) if len(v := cars[~np.isnan(cars[:, k]), k]) else np.nan for k in (0, 1))
    if length > 9 or width > 3.2:
        for name, factor in LENGTH_UNITS:
            if (np.isnan(length) or 3 <= length / factor <= 6.5) and (np.isnan(width) or 1.4 <= width / factor <= 2.8):
                said = " and ".join(f"{v:.4g} {k}" for v, k in ((length, "long"), (width, "wide")) if not np.isnan(v))
                cars = "the ego is" if who == "the ego" else f"cars among {who} are (median)"
                raise LogError(f"{where}: {cars} {said}; sizes seem to be in {name}. "
                               f"{sentence(units.length_advice('size', factor))}, and look at positions too.")
    if np.nanmax(size, initial=0.0) > 100:
        raise LogError(f"{where}: a size of {who} is {np.nanmax(size):,.0f} m. Convert sizes to metres.")


def _inside_of_tracks(t_s: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """States (A, T) with at least 0.45 s of their track on both sides."""
    first = np.where(valid, t_s, np.inf).min(axis=1, initial=np.inf)
    last = np.where(valid, t_s, -np.inf).max(axis=1, initial=-np.inf)
    return valid & (t_s - first[:, None] >= EDGE_S) & (last[:, None] - t_s >= EDGE_S)


def _fast_and_straight(t_s: np.ndarray, velocity: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """States (A, T) whose direction of motion is that of the vehicle, for velocities (A, T, 2)."""
    along = velocity[..., 0] + 1j * velocity[..., 1]
    turned = np.zeros(valid.shape)
    turned[:, 1:-1] = np.abs(np.angle(along[:, 2:] * along[:, :-2].conj())) / (t_s[2:] - t_s[:-2])
    return _inside_of_tracks(t_s, valid) & (np.abs(along) >= MOVING_MPS) & (turned <= STRAIGHT_RADPS)


def _enough(t_s: np.ndarray, states: np.ndarray) -> bool:
    n = states.sum()
    return n >= MIN_MEASURED_STATES and n * np.median(np.diff(t_s)) >= MIN_MEASURED_S


def _off(heading: np.ndarray, direction: np.ndarray) -> float:
    """Median difference of two directions in rad."""
    return float(np.median(np.abs(wrap(heading - direction))))


def _point(xy: np.ndarray) -> str:
    return f"({xy[0]:g}, {xy[1]:g})"
