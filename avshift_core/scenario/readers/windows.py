"""Long records -> windows of 10 to 15 s."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from avshift_core.scenario.readers.checks import MIN_DURATION_S, check_times

MAX_GAP_S = 1.0  # a longer hole hides whole manoeuvres: what lies on its two sides is not one scenario


def cut_windows(
    t_s: np.ndarray, *, shortest_s: float = 10.0, longest_s: float = 15.0, where: str = "The log",
) -> list[slice]:
    """Index slices of even windows of `shortest_s` to `longest_s`, none across a gap in time of more than 1 s.

    Each stretch without a gap is cut by itself, into the number of windows whose length is nearest to the middle of the
    two bounds. A window's last state stands until the next one, so 100 states at 10 Hz last 10 s. Windows share no
    state. Two things do not fit, and this is what happens to them: a stretch shorter than `shortest_s` is one window
    (below 1 s it is left out; if all are, the longest is kept, for `build_scenario` to refuse), and of a stretch too
    long for one window and too short for two, 15 to 20 s, the last seconds are left out.

    >>> cut_windows(np.arange(0, 26, 0.1))          # 26 s: twice 13
    [slice(0, 130, None), slice(130, 260, None)]
    >>> cut_windows(np.arange(0, 18, 0.1))          # 18 s: one of 15, since two of 9 would be too short
    [slice(0, 150, None)]
    """
    t_s = np.asarray(t_s, dtype=np.float64)
    check_times(where, t_s)
    breaks = np.flatnonzero(np.diff(t_s) > MAX_GAP_S) + 1
    stretches = [slice(int(a), int(b)) for a, b in pairwise([0, *breaks, len(t_s)])]
    long_enough = [s for s in stretches if s.stop > s.start and t_s[s.stop - 1] - t_s[s.start] >= MIN_DURATION_S]
    kept = long_enough or [max(stretches, key=lambda s: s.stop - s.start)]
    return [window for s in kept for window in _cut(t_s, s, shortest_s, longest_s)]


def _cut(t_s: np.ndarray, stretch: slice, shortest_s: float, longest_s: float) -> list[slice]:
    t = t_s[stretch]
    if len(t) < 2:
        return [stretch]
    step = float(np.median(np.diff(t)))
    duration = t[-1] - t[0] + step
    most, fewest = int(duration / shortest_s + 1e-6), int(np.ceil(duration / longest_s - 1e-6))
    if most < 1:
        return [stretch]
    middle = (shortest_s + longest_s) / 2
    if fewest > most:
        n, length = most, longest_s
    else:
        n = min(range(fewest, most + 1), key=lambda k: abs(duration / k - middle))
        length = duration / n
    # half a step early, so that rounding of t cannot move a state into the neighbour
    edges = stretch.start + np.searchsorted(t, t[0] + length * np.arange(n + 1) - step / 2)
    edges = np.minimum(edges, stretch.stop)
    if n * length >= duration - step / 2:
        edges[-1] = stretch.stop
    return [slice(int(a), int(b)) for a, b in pairwise(edges) if b > a]
