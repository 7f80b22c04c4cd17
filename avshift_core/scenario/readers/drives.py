"""Which scenes of one fleet were cut out of the same drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_GAP_S = 20.0
MEET_M, MEET_MPS2 = 1.0, 0.2  # how far the gap may be missed: 1 m, and what a mild change of speed makes of it
MIN_COMMON_TRACKS = 2  # ids are counted up in each drive: one in common is often chance
END_S = 1.0  # the velocity at an end of a scene is that of a line through its last second


@dataclass(frozen=True, eq=False)
class Passage:
    """The ego's way through one scene.

    Attributes:
        t_s: (T,) increasing, on the clock of the fleet; xy: (T, 2) m, on the map of the area.
        tracks: (k,) numbers that stand for the ids of the agents.
    """

    name: str
    area: str
    t_s: np.ndarray
    xy: np.ndarray
    tracks: np.ndarray


def name_drives(passages: Sequence[Passage | None]) -> list[str]:
    """Drive of each scene: the name of its first scene; "" for None.

    Two scenes of one area belong to the same drive if the ego has the same position at the same time in both; or if
    one begins up to 20 s after the other ends, the mean of both velocities leads from that end to that beginning
    (within 1 m + 0.2 m/s2 times the gap squared), and they have two agents in common. Of 2,000 scenes of Argoverse 1,
    27 pairs fulfil the first and 101 the second. With one of the clocks moved by -211, -77, 57 and 100 s, which leaves
    little but chance, 0, 1, 5 and 2 fulfil the second; by 33 s, where scenes of one drive may still meet, 21.
    """
    known = [i for i, passage in enumerate(passages) if passage is not None]
    order = np.array(sorted(known, key=lambda i: (passages[i].area, passages[i].t_s[0], passages[i].name)), dtype=int)
    parent = np.arange(len(passages))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    rank = np.empty(len(passages), dtype=int)
    rank[order] = np.arange(len(order))
    for a, b in _pairs([passages[i] for i in order]):
        first, second = sorted((root(order[a]), root(order[b])), key=rank.__getitem__)
        parent[second] = first
    return ["" if passage is None else passages[root(i)].name for i, passage in enumerate(passages)]


def _pairs(passages: Sequence[Passage]) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of one drive; the passages are sorted by area and start."""
    if not passages:
        return []
    area = np.array([p.area for p in passages])
    start, end = (np.array([p.t_s[k] for p in passages]) for k in (0, -1))
    first, last = (np.array([p.xy[k] for p in passages]) for k in (0, -1))
    velocity = np.array([_end_velocities(p) for p in passages])
    linked = []
    for a in range(len(passages)):  # a few neighbours in time each
        stop = a + 1 + int(np.argmax(np.append((area[a + 1:] != area[a]) | (start[a + 1:] > end[a] + MAX_GAP_S), True)))
        later = np.arange(a + 1, stop)
        gap = start[later] - end[a]
        missed = first[later] - last[a] - (velocity[later, 0] + velocity[a, 1]) / 2 * gap[:, None]
        meets = (gap > 0) & (np.hypot(*missed.T) <= MEET_M + MEET_MPS2 * gap**2)
        linked += [(a, int(b)) for b in later[gap <= 0] if _same_state(passages[a], passages[b])]
        linked += [(a, int(b)) for b in later[meets] if _common(passages[a], passages[b]) >= MIN_COMMON_TRACKS]
    return linked


def _end_velocities(passage: Passage) -> np.ndarray:
    """Velocities (2, 2) over the first and the last second."""
    velocities = []
    for near in (passage.t_s <= passage.t_s[0] + END_S, passage.t_s >= passage.t_s[-1] - END_S):
        t = passage.t_s[near] - passage.t_s[near].mean()
        spread = float((t**2).sum())
        velocities.append((t[:, None] * passage.xy[near]).sum(axis=0) / spread if spread > 0 else np.zeros(2))
    return np.array(velocities)


def _same_state(a: Passage, b: Passage) -> bool:
    _, i, j = np.intersect1d(a.t_s, b.t_s, return_indices=True)
    return bool((a.xy[i] == b.xy[j]).all(axis=1).any())


def _common(a: Passage, b: Passage) -> int:
    return len(np.intersect1d(a.tracks, b.tracks))
