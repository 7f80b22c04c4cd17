"""The bytes of a map: what is read from them is what was put in; lines that fit into a link."""

import json

import numpy as np
import pytest

from avshift_core.errors import AVShiftError
from avshift_core.latent.outline import density_difference, inside, outlines
from avshift_core.latent.pack import GRID, Categories, Lasso, Stamp, Words, message, pack

RNG = np.random.default_rng(0)
XY = RNG.normal(size=(1000, 2)).astype(np.float32)
Y = (RNG.random(1000) < 0.5).astype(np.uint8)
COLOUR = Categories("Cohort", ("P", "Q"), ("#0072B2", "#D55E00"), ("#0072B2", "#D55E00"), Y, (1, 1), (500, 500))


def read(data: bytes) -> tuple[dict, bytes]:
    """As map_draw.js reads it."""
    length = int.from_bytes(data[:4], "little")
    assert length % 4 == 0  # whole numbers behind it have to lie on their boundaries
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def test_what_is_packed_is_read_again():
    words = [Words("Category", ("a", "b <i>"), (1 - Y).astype(np.uint8))]
    packed = pack(XY, COLOUR, space="umap", axes=("UMAP 1", "UMAP 2"), words=words, highlight=XY[:, 0] > 0)
    head, body = read(message(packed, stamp=Stamp("Title", "run 1"), extra={"height": 500}))
    n = head["n"]
    assert n == head["total"] == 1000 and head["height"] == 500 and head["stamp"]["run"] == "run 1"
    place = np.stack([np.frombuffer(body, "<u2", n, 0), np.frombuffer(body, "<u2", n, 2 * n)], axis=1)
    x0, x1, y0, y1 = packed.extent
    back = [x0, y0] + place * [(x1 - x0) / GRID, (y1 - y0) / GRID]
    assert np.abs(back - XY).max() <= (x1 - x0) / GRID  # half a step, and rounding of float32
    assert (np.frombuffer(body, np.uint8, n, 4 * n) == Y).all()
    assert head["blocks"] == ["word0", "highlight"] and head["words"][0]["names"] == ["a", "b <i>"]
    assert (np.frombuffer(body, np.uint8, n, 5 * n) == 1 - Y).all()
    assert (np.frombuffer(body, np.uint8, n, 6 * n) == (XY[:, 0] > 0)).all()
    assert len(body) == 7 * n and head["bounds"] == [*place.min(axis=0), *place.max(axis=0)]


def test_a_part_of_the_scenarios_lies_on_the_same_grid():
    rows = np.array([3, 500, 999])
    whole, part = (pack(XY, COLOUR, space="umap", axes=("a", "b"), rows=r) for r in (None, rows))
    assert part.extent == whole.extent and part.n == 3 and part.total == 1000
    assert part.body[:6] == b"".join(whole.body[2 * r : 2 * r + 2] for r in rows)
    assert part.rows.tolist() == rows.tolist() and not part.rows.flags.writeable


def test_180_000_scenarios_are_less_than_a_megabyte_and_a_half():
    xy = RNG.normal(size=(180_000, 2)).astype(np.float32)
    code = np.zeros(180_000, np.uint8)
    colour = Categories("Cohort", ("P",), ("#000000",), ("#000000",), code, (1,), (180_000,))
    words = [Words("Cohort", ("P",), code), Words("Category", ("a",), code)]
    assert len(message(pack(xy, colour, space="umap", axes=("a", "b"), words=words))) < 1_300_000


def test_outlines_and_density_come_in_steps_of_the_same_grid():
    lines = outlines(XY, np.where(XY[:, 0] > 1, 0, -1), ["R1"])
    density = density_difference(XY, Y, bins=8)
    packed = pack(XY, COLOUR, space="umap", axes=("a", "b"))
    head, body = read(message(packed, outlines=lines, density=density))
    ring = np.array(head["shapes"][0]["rings"][0]).reshape(-1, 2)
    x0, x1, y0, y1 = packed.extent
    assert np.allclose([x0, y0] + ring * [(x1 - x0) / GRID, (y1 - y0) / GRID], lines[0].rings[0], atol=(x1 - x0) / GRID)
    assert head["density"] == {"bins": 8, "extent": [0, 0, GRID, GRID]}
    grid = np.frombuffer(body, np.int8, 64, 5 * head["n"]).reshape(8, 8)
    assert np.abs(grid / 127 - density.grid).max() <= 0.5 / 127 + 1e-6 and np.abs(grid).max() == 127


def test_no_scenario_at_all_can_be_packed():
    head, body = read(message(pack(XY, COLOUR, space="umap", axes=("a", "b"), rows=np.array([], dtype=int))))
    assert head["n"] == 0 and head["bounds"] == [0, 0, GRID, GRID] and body == b""


def test_a_line_of_the_browser_selects_what_lies_inside_in_the_maps_own_units():
    x0, x1, y0, y1 = pack(XY, COLOUR, space="umap", axes=("a", "b")).extent
    corners = [[0, 0], [GRID, 0], [GRID, GRID // 2], [0, GRID // 2]]
    line = Lasso.of_browser({"space": "umap", "corners": [v for corner in corners for v in corner]})
    assert np.allclose(line.polygon((x0, x1, y0, y1)),
                       [(x0, y0), (x1, y0), (x1, (y0 + y1) / 2), (x0, (y0 + y1) / 2)], atol=1e-3)
    assert (line.mask(XY) == inside(XY, line.polygon((x0, x1, y0, y1)))).all()
    assert line.mask(XY).sum() == (XY[:, 1] < y0 + (y1 - y0) * (GRID // 2) / GRID).sum()


def test_a_line_goes_through_a_link():
    rng = np.random.default_rng(1)
    line = Lasso("pca12", tuple(map(tuple, rng.integers(0, GRID + 1, (64, 2)).tolist())))
    assert Lasso.parse(line.text) == line and len(line.text) < 400
    assert all(c.isalnum() or c in "-_." for c in line.text)  # nothing that a URL would have to escape


@pytest.mark.parametrize("text", ["", "umap", "umap.", "umap.AAAA", "umap.%%%", "umap.AAAAAP__AAAAAP_",
                                  "<b>.AAAAAP__AAAAAP__", "umap." + "A" * 4000, ".AAAAAP__AAAAAP__"])
def test_a_link_that_holds_no_line_is_refused_in_words(text):
    with pytest.raises(AVShiftError, match="is not a line on a map"):
        Lasso.parse(text)


@pytest.mark.parametrize("value", [
    None, 7, [], {"space": "umap"}, {"space": "umap", "corners": [1, 2]}, {"space": "umap", "corners": [1, 2, 3, 4, 5]},
    {"space": "umap", "corners": [0, 0, 1, 1, 2, 70_000]}, {"space": "umap", "corners": [0.5] * 6},
    {"space": 3, "corners": [0] * 6}, {"space": "a.b", "corners": [0] * 6}, {"space": "umap", "corners": [1] * 1000},
])
def test_a_browser_may_send_anything(value):
    assert Lasso.of_browser(value) is None
