"""A map as bytes for the browser: five bytes a scenario, and a small head that says what they mean.

    4 bytes   length of the head, little-endian
    head      JSON in UTF-8, padded with blanks to a multiple of 4
    body      x uint16 (n), y uint16 (n), colour uint8 (n), then what `head["blocks"]` lists, uint8 each

Places are whole numbers on a grid of 65,535 steps over the square around all scenarios, from its lower left corner.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from avshift_core.errors import AVShiftError
from avshift_core.latent.outline import Density, Outline, extent_of, inside

GRID = 65_535
MISSING = 255  # colour of a scenario without a value; levels of a scale are 0..254
TOP_LEVEL = 254
MOST_NAMES = 250
MOST_CORNERS = 200  # of a drawn line; the browser sends at most 64
MOST_WEIGHT = 24  # keeps the browser's sums of colours in 32 bits up to 700,000 scenarios on one pixel


@dataclass(frozen=True, eq=False)
class Categories:
    """One colour a name. A pixel shows the mean colour of its scenarios.

    Attributes:
        names, counts: of each category; light, dark: its colour ("#rrggbb") on a light and on a dark page.
        code: (n,) uint8 index into names, MISSING for none.
        weight: (m,) whole numbers, how much a scenario of each category counts in the mean.
    """

    title: str
    names: tuple[str, ...]
    light: tuple[str, ...]
    dark: tuple[str, ...]
    code: np.ndarray
    weight: tuple[int, ...]
    counts: tuple[int, ...]
    note: str = ""

    def head(self) -> dict[str, Any]:
        return {"kind": "categories", "title": self.title, "names": self.names, "light": self.light, "dark": self.dark,
                "weight": self.weight, "counts": self.counts, "note": self.note}


@dataclass(frozen=True, eq=False)
class Scale:
    """A number as colour. A pixel shows the colour of the mean level of its scenarios.

    Attributes:
        code: (n,) uint8 level 0..254, MISSING for none.
        low, high: values at levels 0 and 254, as logarithms to base 2 when `log`.
        ticks: (level, text) along the bar; light, dark: colours from low to high, evenly spaced.
        missing: scenarios without a value, which are grey.
    """

    title: str
    unit: str
    code: np.ndarray
    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]
    light: tuple[str, ...]
    dark: tuple[str, ...]
    missing: int
    note: str = ""

    def head(self) -> dict[str, Any]:
        return {"kind": "scale", "title": self.title, "unit": self.unit, "low": self.low, "high": self.high,
                "log": self.log, "ticks": self.ticks, "light": self.light, "dark": self.dark, "missing": self.missing,
                "note": self.note}


@dataclass(frozen=True, eq=False)
class Words:
    """What a hint says about each scenario: code (n,) uint8 index into names."""

    title: str
    names: tuple[str, ...]
    code: np.ndarray


@dataclass(frozen=True, eq=False)
class PackedMap:
    """Scenarios on a map, ready to be sent.

    Attributes:
        head, body: as in the module's description; extent: x0, x1, y0, y1 of the grid.
        rows: (n,) pooled row of each scenario sent; space: which picture this is ("umap").
    """

    head: Mapping[str, Any]
    body: bytes
    extent: tuple[float, float, float, float]
    rows: np.ndarray
    space: str
    total: int

    @property
    def n(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Lasso:
    """A line drawn on one picture, in whole steps of its grid; it fits into a link.

    >>> line = Lasso("umap", ((0, 0), (65535, 0), (0, 65535)))
    >>> line.text, Lasso.parse(line.text) == line
    ('umap.AAAAAP__AAAAAP__', True)
    """

    space: str
    corners: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        flat = np.array(self.corners, dtype="<u2").tobytes()
        return f"{self.space}.{base64.urlsafe_b64encode(flat).decode().rstrip('=')}"

    @classmethod
    def parse(cls, text: str) -> Lasso:
        """The line of a link."""
        space, _, code = text.partition(".")
        try:
            raw = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raw = b""
        if not space.isalnum() or len(raw) % 4 or not 12 <= len(raw) <= 4 * MOST_CORNERS:
            raise AVShiftError(f"The link's selection, '{text:.40}', is not a line on a map. Draw it again.")
        return cls(space, tuple(map(tuple, np.frombuffer(raw, "<u2").reshape(-1, 2).tolist())))

    @classmethod
    def of_browser(cls, value: Any) -> Lasso | None:
        """The line that the component sends, None for anything else."""
        if not isinstance(value, Mapping) or not isinstance(value.get("space"), str):
            return None
        flat = value.get("corners")
        whole = isinstance(flat, list) and all(isinstance(v, int) and 0 <= v <= GRID for v in flat)
        if not whole or len(flat) % 2 or not 6 <= len(flat) <= 2 * MOST_CORNERS or not value["space"].isalnum():
            return None
        return cls(value["space"], tuple(zip(flat[::2], flat[1::2], strict=True)))

    def polygon(self, extent) -> np.ndarray:
        """(m, 2) in the map's own units."""
        x0, x1, y0, y1 = extent
        return np.array([x0, y0]) + np.array(self.corners, dtype=float) * [(x1 - x0) / GRID, (y1 - y0) / GRID]

    def mask(self, xy, extent=None) -> np.ndarray:
        """(n,) which of all scenarios of the picture lie inside; extent: of its grid, where it is not its own."""
        return inside(xy, self.polygon(extent or extent_of(xy)))


@dataclass(frozen=True)
class Stamp:
    """What a saved picture says about itself: a title, the run's identity, and the name of the file."""

    title: str = ""
    run: str = ""
    file: str = "avshift_map"


def pack(
    xy, colour: Categories | Scale, *, space: str, axes: tuple[str, str], words: Sequence[Words] = (), rows=None,
    highlight=None, extent=None,
) -> PackedMap:
    """Some or all scenarios of a picture.

    Args:
        xy: (N, 2) all scenarios of the picture.
        extent: x0, x1, y0, y1 of a grid that several pictures share, all of which is shown; without it that of xy.
        colour: of all; words: shown when the pointer is on a scenario.
        rows: (n,) the scenarios to send, all without it.
        highlight: (N,) bool, scenarios to stress; all others are drawn faintly.
    """
    N = len(xy)
    rows = np.arange(N) if rows is None else np.asarray(rows)
    shared, extent = extent is not None, extent or extent_of(xy)
    origin, step = np.array([extent[0], extent[2]]), np.array([extent[1] - extent[0], extent[3] - extent[2]]) / GRID
    place = np.rint((xy[rows] - origin) / step).clip(0, GRID).astype("<u2")
    blocks = [(f"word{i}", word.code[rows]) for i, word in enumerate(words)]
    if highlight is not None:
        blocks.append(("highlight", np.asarray(highlight)[rows]))
    whole = shared or not len(rows)
    bounds = [0, 0, GRID, GRID] if whole else [*place.min(axis=0).tolist(), *place.max(axis=0).tolist()]
    head = {
        "n": len(rows), "total": N, "space": space, "axes": axes, "colour": colour.head(),
        "words": [{"title": word.title, "names": word.names} for word in words],
        "blocks": [name for name, _ in blocks], "bounds": bounds,
    }
    parts = [place[:, 0], place[:, 1], *(np.asarray(b).astype(np.uint8) for b in (colour.code[rows],
                                                                                  *(b for _, b in blocks)))]
    rows = rows.copy()
    rows.setflags(write=False)
    return PackedMap(head, b"".join(np.ascontiguousarray(p).tobytes() for p in parts), extent, rows, space, N)


def message(
    points: PackedMap, *, outlines: Sequence[Outline] = (), density: Density | None = None, stamp: Stamp | None = None,
    extra: Mapping[str, Any] | None = None,
) -> bytes:
    """The bytes that the component reads.

    Args:
        extra: further entries of the head, JSON.
    """
    x0, x1, y0, y1 = points.extent
    scale = np.array([GRID / (x1 - x0), GRID / (y1 - y0)])
    steps = lambda xy: np.rint((np.asarray(xy) - [x0, y0]) * scale).astype(int)  # noqa: E731
    shapes = [{"name": line.name, "rings": [steps(ring).ravel().tolist() for ring in line.rings],
               "labels": steps(line.labels).tolist()} for line in outlines]
    stamp = stamp or Stamp()
    head = {**points.head, "shapes": shapes, "stamp": {"title": stamp.title, "run": stamp.run, "file": stamp.file},
            **(extra or {})}
    body = points.body
    if density is not None:
        grid = np.rint(density.grid * 127).astype(np.int8)
        corners = steps([density.extent[::2], density.extent[1::2]])
        head["density"] = {"bins": len(grid), "extent": corners.ravel().tolist()}
        body += grid.tobytes()
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + body
