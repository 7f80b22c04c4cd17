"""The map of latent space as three small pictures: the scenarios of P, those of Q, and where one has more."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from avshift_core.evidence.markup import Safe, tag
from avshift_core.evidence.places import MapLayers
from avshift_core.evidence.svg import path, picture, text
from avshift_core.latent.outline import Outline
from avshift_core.plots import theme

SIDE = 216  # pixels of one map; three of them fit a page
FULL = 0.97  # quantile of the cells' counts from which on a cell is fully opaque
FAINTEST = 60  # opacity, of 255, of a cell with one scenario: never a silent sample
PANELS = (("P", "Scenarios of P"), ("Q", "Scenarios of Q"), ("difference", "More in Q, more in P"))


def map_pictures(layers: MapLayers) -> dict[str, Safe]:
    """Name of the panel -> picture; the outlines of the regions lie on each."""
    images = {"P": png(ink(layers.P, theme.P)), "Q": png(ink(layers.Q, theme.Q)),
              "difference": png(two_inks(layers.density.grid, theme.P, theme.Q))}
    shapes = _shapes(layers.outlines, layers.density.extent)
    found = {}
    for name, title in PANELS:
        data = base64.b64encode(images[name]).decode()
        image = tag("image", href=f"data:image/png;base64,{data}", x=0, y=0, width=SIDE, height=SIDE,
                    preserveAspectRatio="none")
        frame = tag("rect", x=0.5, y=0.5, width=SIDE - 1, height=SIDE - 1, class_="frame")
        found[name] = picture(SIDE, image, frame, *shapes, width=SIDE, alt=f"{title} on {layers.title}", class_="map")
    return found


def ink(counts: np.ndarray, color: str) -> np.ndarray:
    """(b, b, 4) one colour, the more opaque the more scenarios; rows from the top down."""
    opacity = np.zeros(counts.shape)
    some = counts > 0
    if some.any():
        full = max(float(np.quantile(counts[some], FULL)), 1.0)
        strength = np.log1p(counts[some]) / np.log1p(full)
        opacity[some] = FAINTEST + (255 - FAINTEST) * np.minimum(strength, 1.0)
    return _painted(np.broadcast_to(_rgb(color), (*counts.shape, 3)), opacity)


def two_inks(difference: np.ndarray, below: str, above: str) -> np.ndarray:
    """(b, b, 4) from -1 in one colour over nothing at 0 to 1 in the other; rows from the top down."""
    color = np.where((difference > 0)[..., None], _rgb(above), _rgb(below))
    return _painted(color, 255 * np.sqrt(np.abs(difference)))


def png(pixels: np.ndarray) -> bytes:
    """(h, w, 4) uint8 as a PNG file: the same pixels give the same bytes."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, 4 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits, colour with opacity
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    size = lambda number: struct.pack(">I", number)  # noqa: E731
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        size(len(data)) + kind + data + size(zlib.crc32(kind + data)) for kind, data in chunks)


def _painted(color: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    pixels = np.concatenate([color, np.round(opacity)[..., None]], axis=-1).astype(np.uint8)
    return pixels[::-1]


def _rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _shapes(outlines: Sequence[Outline], extent) -> list[Safe]:
    """Lines around the regions and their names, in pixels."""
    x0, x1, y0, y1 = extent
    place = lambda p: ((p[0] - x0) / (x1 - x0) * SIDE, (y1 - p[1]) / (y1 - y0) * SIDE)  # noqa: E731
    found = [path([place(p) for p in ring], "outline", closed=True) for o in outlines for ring in o.rings]
    taken: list[tuple[float, float]] = []
    for o in outlines:
        taken.append(_free(place(o.labels[0]), taken))
        found.append(text(*taken[-1], o.name, at="middle", class_="region-name"))
    return found


def _free(wanted: tuple[float, float], taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The nearest place of a name that covers no other name and stays on the map.

    >>> _free((50.0, 50.0), [(52.0, 51.0)])
    (50.0, 37.0)
    """
    high, wide = 13, 24
    for dx, dy in ((0, 0), (0, -high), (0, high), (wide, 0), (-wide, 0), (wide, high), (-wide, -high), (0, 2 * high)):
        x, y = min(max(wanted[0] + dx, 12.0), SIDE - 12.0), min(max(wanted[1] + dy, 12.0), SIDE - 6.0)
        if all(abs(x - a) >= wide or abs(y - b) >= high - 1 for a, b in taken):
            return x, y
    return wanted
