"""A few scenarios that stand for many: one in the middle, the others as different as typical ones can be."""

from __future__ import annotations

import numpy as np

FEWEST, MOST = 3, 6  # pictures that a reader compares at a glance
INNER = 0.5  # share of the scenarios, nearest to the centre, that count as typical
LOOKED_AT = 5_000  # rows of a large set, evenly spread, are enough to choose six from


def representatives(X, rows, drive, most: int = MOST) -> tuple[int, ...]:
    """Rows that stand for a set: the nearest to its centre, then farthest-first within the inner half.

    Args:
        X: (n, d) standardised latents; rows: (m,) rows of the set; drive: (n,) drives, of each at most one row is
            taken, so that the pictures are not one drive's.

    Returns:
        At most `most` rows, fewer where there are fewer drives; empty for an empty set.

    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [50.0]])
    >>> representatives(X, np.arange(6), np.arange(6), most=3)   # centre 10; the inner half of 2, 3 and 4
    (4, 2, 3)
    """
    rows = np.asarray(rows)
    if len(rows) > LOOKED_AT:
        rows = rows[np.linspace(0, len(rows) - 1, LOOKED_AT).astype(int)]
    if not len(rows) or most < 1:
        return ()
    points, owner = np.asarray(X[rows], dtype=np.float64), np.asarray(drive)[rows]
    distance = np.linalg.norm(points - points.mean(axis=0), axis=1)
    inner = np.argsort(distance, kind="stable")[: max(int(np.ceil(INNER * len(rows))), min(most, len(rows)))]
    points, owner, rows = points[inner], owner[inner], rows[inner]
    chosen = [0]
    gap = np.linalg.norm(points - points[0], axis=1)
    allowed = owner != owner[0]
    while len(chosen) < most and allowed.any():
        new = int(np.argmax(np.where(allowed, gap, -1.0)))
        chosen.append(new)
        gap = np.minimum(gap, np.linalg.norm(points - points[new], axis=1))
        allowed &= owner != owner[new]
    return tuple(int(rows[i]) for i in chosen)
