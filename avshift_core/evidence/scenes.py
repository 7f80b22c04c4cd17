"""Scenarios from above as small static pictures: everybody's way, and where they are at half of the time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from avshift_core.evidence.markup import Safe, tag
from avshift_core.evidence.svg import picture
from avshift_core.plots.scenes import EGO, LEGEND, REACH_M, scene_lines
from avshift_core.scenario.schema import Scenario

CLASSES = {color: name for (_, color), name in zip(LEGEND, ("ego", "car", "truck", "foot", "other"), strict=True)}
WORDS = tuple((CLASSES[color], words) for words, color in LEGEND)
UP_M = 20.0  # of the picture above and below its middle; roads run from left to right
FINE_M = 0.4  # corners of a line that are nearer than this to the last one are left out: a pixel of the picture


def scene(scenario: Scenario, title: str) -> Safe:
    """One picture, to scale, the ego driving to the right; 90 m across and 40 m up."""
    road, users = scene_lines(scenario)
    parts = [_lines(lines, f"road {kind.replace('_', '-')}") for kind, lines in road.items()]
    for color, (ways, _) in users.items():
        parts.append(_lines(ways, f"way {CLASSES[color]}"))
    for color, (_, boxes) in sorted(users.items(), key=lambda item: item[0] == EGO):  # the ego lies on top
        parts.append(_lines(boxes, f"body {CLASSES[color]}", closed=True))
    drawn = tag("g", *parts, transform=f"translate({REACH_M:g} {UP_M:g}) scale(1 -1)")
    return picture(2 * UP_M, drawn, width=2 * REACH_M, alt=f"{title} from above",
                   class_="scene")


def _lines(lines: Iterable[np.ndarray], class_: str, closed: bool = False) -> Safe:
    """All lines of one kind as one path, without what lies out of the picture."""
    drawn = "".join(_steps(line, closed) for line in lines)
    return tag("path", d=drawn, class_=class_) if drawn else Safe("")


def _steps(points: np.ndarray, closed: bool) -> str:
    if closed:
        inside = (np.abs(points) <= REACH_M * 1.5).all(axis=1).any()
        return f"M{'L'.join(_at(p) for p in points[:-1])}Z" if inside else ""
    pieces, last = [], None
    for place, shown in zip(points, (np.abs(points) <= REACH_M * 1.5).all(axis=1), strict=True):
        if not shown:
            last = None
        elif last is None or np.hypot(*(place - last)) >= FINE_M:
            pieces.append(f"{'M' if last is None else 'L'}{_at(place)}")
            last = place
    return "".join(pieces)


def _at(place: np.ndarray) -> str:
    x, y = (f"{v:.1f}".removesuffix(".0") for v in place)
    return f"{'0' if x == '-0' else x} {'0' if y == '-0' else y}"
