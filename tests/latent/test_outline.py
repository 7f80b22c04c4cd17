"""Membership, contours and density differences on maps; expected values by hand, or from geometry."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from avshift_core.latent.outline import HELD, contour, density_difference, extent_of, inside, outlines

SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]


def slow_inside(point, polygon) -> bool:
    """One ray to the right, edge by edge, as in a textbook."""
    x, y = point
    crossings = 0
    for (xa, ya), (xb, yb) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if (ya <= y < yb) or (yb <= y < ya):
            crossings += x < xa + (y - ya) * ((xb - xa) / (yb - ya))
    return crossings % 2 == 1


def test_a_hole_made_by_crossing_lines_is_outside():
    pentagram = [(np.cos(a), np.sin(a)) for a in np.pi / 2 + 4 * np.pi / 5 * np.arange(5)]
    tip = (0.0, 0.9)
    assert inside(np.array([(0.0, 0.0), tip]), pentagram).tolist() == [False, True]  # around the middle it goes twice


def test_neighbouring_polygons_share_no_point_and_lose_none():
    rng = np.random.default_rng(0)
    xy = np.vstack([rng.integers(0, 5, (500, 2)), rng.uniform(0, 4, (500, 2))]).astype(float)  # many lie on the edges
    left = inside(xy, [(0, 0), (2, 0), (2, 4), (0, 4)])
    right = inside(xy, [(2, 0), (4, 0), (4, 4), (2, 4)])
    whole = inside(xy, SQUARE)
    assert not (left & right).any() and ((left | right) == whole).all()


PLACES = st.floats(-3, 3, width=32)


@given(arrays(float, (30, 2), elements=PLACES), arrays(float, (7, 2), elements=PLACES))
def test_all_at_once_is_what_one_at_a_time_gives(xy, polygon):
    expected = [slow_inside(point, polygon.tolist()) for point in xy.tolist()]
    box = (xy >= polygon.min(axis=0)).all(axis=1) & (xy <= polygon.max(axis=0)).all(axis=1)
    assert inside(xy, polygon).tolist() == (np.array(expected) & box).tolist()


@pytest.mark.parametrize("polygon", [[], [(0, 0), (1, 1)], [(0, 0), (np.nan, 1), (1, 1)], [(1, 1)] * 5])
def test_what_is_no_polygon_holds_nothing(polygon):
    assert not inside(np.random.default_rng(0).normal(size=(50, 2)), np.array(polygon).reshape(-1, 2)).any()


def test_180_000_points_take_milliseconds():
    rng = np.random.default_rng(0)
    xy = rng.normal(size=(180_000, 2)).astype(np.float32)
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    polygon = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 0.2 * np.sin(9 * angle))[:, None]
    taken = []
    for _ in range(9):
        start = time.process_time()
        found = inside(xy, polygon)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.02
    r = (1 + 0.2 * np.sin(9 * np.arctan2(xy[:, 1], xy[:, 0])))
    assert np.mean(found != (np.hypot(*xy.T) < r)) < 0.02  # 64 straight lines instead of the curve


def test_a_contour_of_a_cone_is_a_circle():
    y, x = np.mgrid[0:61, 0:61]
    ring, = contour(30 - np.hypot(x - 30, y - 30), 12.0)
    radius = np.hypot(*(ring - 30).T)
    assert len(ring) > 100 and np.abs(radius - 18).max() < 0.05  # linear between cells: exact up to the curvature


def test_two_hills_are_two_rings_and_a_crater_has_two():
    y, x = np.mgrid[0:40, 0:40]
    hill = lambda cx, cy: np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 20)  # noqa: E731
    assert len(contour(hill(10, 10) + hill(30, 30), 0.5)) == 2
    crater = np.exp(-((np.hypot(x - 20, y - 20) - 12) ** 2) / 8)
    assert len(contour(crater, 0.5)) == 2


def test_rings_close_at_the_border_and_corners_that_touch_stay_apart():
    assert len(contour(np.ones((3, 3)), 0.5)) == 1
    assert len(contour(np.eye(2), 0.5)) == 2
    assert contour(np.zeros((3, 3)), 0.5) == []


def test_outlines_hold_nine_of_ten_and_follow_the_pieces():
    rng = np.random.default_rng(1)
    two = np.vstack([rng.normal(size=(3000, 2)), rng.normal(size=(1500, 2)) + 12])
    rest = rng.uniform(-6, 18, (4000, 2))
    xy, label = np.vstack([two, rest]).astype(np.float32), np.repeat([0, -1], [4500, 4000])
    found, = outlines(xy, label, ["R1", "R2 has no points"])
    assert found.name == "R1" and len(found.rings) == len(found.labels) == 2
    assert found.held == pytest.approx(HELD, abs=0.02)
    for ring, at in zip(found.rings, found.labels, strict=True):
        assert inside(np.array([at]), ring)[0]
    centres = np.array(sorted(np.mean(ring, axis=0).tolist() for ring in found.rings))
    assert np.abs(centres - [[0, 0], [12, 12]]).max() < 0.5
    named, = outlines(xy, label, ["R1"], lines=False)
    assert named.rings == () and np.hypot(*named.labels[0]) < 1  # where there are most of them


def test_one_point_is_a_region_too():
    xy = np.random.default_rng(0).normal(size=(100, 2))
    found, = outlines(xy, np.where(np.arange(100) == 7, 0, -1), ["R1"])
    assert found.held == 1.0 and found.labels == (tuple(xy[7]),)


def test_the_density_difference_is_that_of_the_shares_and_its_sign_is_q_less_p():
    rng = np.random.default_rng(2)
    P, Q = rng.normal(size=(20_000, 2)), rng.normal(size=(5_000, 2))
    same = density_difference(np.vstack([P, Q]), np.repeat([0, 1], [20_000, 5_000]))
    Q[:1000] = rng.normal(size=(1000, 2)) * 0.2 + 3
    xy, y = np.vstack([P, Q]), np.repeat([0, 1], [20_000, 5_000])
    moved = density_difference(xy, y)
    assert moved.peak > 4 * same.peak  # four times as many of P than of Q make no difference by themselves
    row, column = np.unravel_index(moved.grid.argmax(), moved.grid.shape)
    step = (moved.extent[1] - moved.extent[0]) / len(moved.grid)
    assert moved.extent[0] + (column + 0.5) * step == pytest.approx(3, abs=0.3)
    assert moved.extent[2] + (row + 0.5) * step == pytest.approx(3, abs=0.3)
    swapped = density_difference(xy, 1 - y)
    assert np.allclose(swapped.grid, -moved.grid, atol=1e-6)
    assert abs(float(moved.grid.sum())) * moved.peak < 1e-3  # both cohorts have mass 1


def test_the_extent_is_a_square_around_everything():
    x0, x1, y0, y1 = extent_of(np.array([[0.0, 0.0], [10.0, 4.0]]))
    assert x1 - x0 == y1 - y0 == pytest.approx(10.8)  # 4 % on each side
    assert (x0 + x1) / 2 == 5 and (y0 + y1) / 2 == 2
    x0, x1, *_ = extent_of(np.zeros((3, 2)))
    assert x1 > x0
