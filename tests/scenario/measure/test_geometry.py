"""Rectangles and paths: values by hand, and against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avshift_core.scenario.measure.geometry import Boxes, along_path, distance, ego_path, overlap, time_to_overlap, wrap
from avshift_core.scenario.measure.motion import unwrap_valid


def boxes(x, y, turn_deg=0.0, size=(4.0, 2.0), other=(4.0, 2.0)):
    turn = np.radians(turn_deg)
    values = (x, y, np.cos(turn), np.sin(turn), size[0] / 2, size[1] / 2, other[0] / 2, other[1] / 2)
    return Boxes(*(np.full(1, value, dtype=np.float64) for value in values))


@pytest.mark.parametrize(
    ("x", "y", "turn_deg", "expected"),
    [
        (10.0, 0.0, 0, 6.0),  # in line: 10 minus two half lengths
        (0.0, 3.5, 0, 1.5),  # side by side: 3.5 minus two half widths
        (7.0, 6.0, 0, 5.0),  # corners 3 m and 4 m apart
        (10.0, 0.0, 90, 7.0),  # across the way: 10 - 2 - 1
        (0.0, 0.0, 33, 0.0),  # on top of each other
        (3.9, 1.9, 0, 0.0),  # corners overlap by 10 cm each way
        (5.0, 0.0, 45, 5 - 2 - 3 / np.sqrt(2)),  # its corner (-2, -1) or (-2, 1) turned by 45 deg is at -3/sqrt(2)
    ],
)
def test_distance_by_hand(x, y, turn_deg, expected):
    assert distance(boxes(x, y, turn_deg))[0] == pytest.approx(max(expected, 0), abs=1e-6)
    assert bool(overlap(boxes(x, y, turn_deg))[0]) == (expected <= 0)


def outline(x, y, turn, length, width, n=200):
    """Points on the sides of a rectangle."""
    u = np.linspace(-1, 1, n)
    one = np.ones(n)
    p = np.concatenate([np.stack([u, one], 1), np.stack([u, -one], 1), np.stack([one, u], 1), np.stack([-one, u], 1)])
    p = p * [length / 2, width / 2]
    c, s = np.cos(turn), np.sin(turn)
    return p @ np.array([[c, s], [-s, c]]) + [x, y]


@given(st.floats(-15, 15), st.floats(-15, 15), st.floats(-180, 180))
def test_distance_against_points_on_the_outlines(x, y, turn_deg):
    pair = boxes(x, y, turn_deg, (4.9, 1.9), (9.0, 2.5))
    if overlap(pair)[0]:
        assert distance(pair)[0] == 0
        return
    a, b = outline(0, 0, 0, 4.9, 1.9), outline(x, y, np.radians(turn_deg), 9.0, 2.5)
    brute = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1).min())
    assert brute - 0.05 <= distance(pair)[0] <= brute + 1e-5  # points are 4.5 cm apart or less


@pytest.mark.parametrize(
    ("place", "velocity", "expected"),
    [
        ((24.0, 0.0), (-10.0, 0.0), 2.0),  # (24 - 4) / 10
        ((24.0, 0.0), (10.0, 0.0), np.inf),  # drives away
        ((24.0, 0.0), (0.0, 0.0), np.inf),
        ((24.0, 2.1), (-10.0, 0.0), np.inf),  # passes 10 cm beside
        ((24.0, 1.9), (-10.0, 0.0), 2.0),  # does not
        ((0.0, 12.0), (0.0, -5.0), 2.0),  # from the side: (12 - 2) / 5
        ((14.0, 12.0), (-5.0, -5.0), 2.0),  # both axes are reached after 2 s: (14 - 4) / 5 and (12 - 2) / 5
        ((1.0, 0.5), (3.0, 0.0), 0.0),  # overlap now
    ],
)
def test_time_to_overlap_by_hand(place, velocity, expected):
    v = [np.full(1, value) for value in velocity]
    assert time_to_overlap(boxes(*place), *v)[0] == pytest.approx(expected, abs=1e-6)


@given(st.floats(-40, 40), st.floats(-40, 40), st.floats(-180, 180), st.floats(-15, 15), st.floats(-15, 15))
def test_time_to_overlap_is_the_first_time_of_overlap(x, y, turn_deg, vx, vy):
    t = time_to_overlap(boxes(x, y, turn_deg), np.full(1, vx), np.full(1, vy))[0]
    times = np.linspace(0, 10, 400)
    hit = [bool(overlap(boxes(x + vx * s, y + vy * s, turn_deg))[0]) for s in times]
    if any(hit):
        assert t <= times[hit.index(True)] + 1e-6
    if np.isfinite(t):
        nearby = boxes(x + vx * (t + 1e-7), y + vy * (t + 1e-7), turn_deg)
        assert distance(nearby)[0] == pytest.approx(0, abs=1e-4)
        assert not any(h for h, s in zip(hit, times, strict=True) if s < t - 1e-6)


def path_of(x, y, heading):
    ego = np.zeros((1, len(x), 5), np.float32)
    ego[0, :, 0], ego[0, :, 1], ego[0, :, 2] = x, y, heading
    valid = np.ones((1, len(x)), bool)
    return ego_path(ego, valid, unwrap_valid(ego[..., 2].astype(float), valid))


@pytest.mark.parametrize("radius", [12.0, 50.0, 300.0])
@pytest.mark.parametrize("offset", [-3.5, 0.0, 1.8])
def test_positions_along_an_arc(radius, offset):
    """A point at angle phi and distance R - offset from the centre lies R * phi along an arc to the left."""
    phi = np.linspace(0, min(150 / radius, 3.0), 125)
    path = path_of(radius * np.sin(phi), radius * (1 - np.cos(phi)), phi)
    for angle in (0.1 * phi[-1], 0.52 * phi[-1], 0.97 * phi[-1]):
        x, y = (radius - offset) * np.sin(angle), radius - (radius - offset) * np.cos(angle)
        guess = np.array([radius * angle - 8], np.float32)
        s, d, cos, sin = along_path(path, np.array([0]), np.array([x], np.float32), np.array([y], np.float32), guess)
        assert s[0] == pytest.approx(radius * angle, abs=0.2)
        assert d[0] == pytest.approx(offset, abs=0.05)
        assert np.arctan2(sin[0], cos[0]) == pytest.approx(wrap(np.array(angle)), abs=0.03)


def test_path_goes_straight_on_beyond_its_ends():
    path = path_of(np.linspace(0, 20, 50), np.zeros(50), np.zeros(50))
    x, y = np.array([-7.0, 50.0], np.float32), np.array([1.0, -2.0], np.float32)
    s, d, _, _ = along_path(path, np.zeros(2, int), x, y, x)
    assert s == pytest.approx([-7, 50], abs=1e-3)
    assert d == pytest.approx([1, -2], abs=1e-3)


def test_path_of_an_ego_that_stands_runs_along_its_heading():
    path = path_of(np.full(20, 3.0), np.full(20, 4.0), np.full(20, np.pi / 2))
    s, d, _, _ = along_path(path, np.array([0]), np.array([1.0], np.float32), np.array([14.0], np.float32),
                            np.array([9.0], np.float32))
    assert s[0] == pytest.approx(10, abs=0.01)  # straight up
    assert d[0] == pytest.approx(2, abs=0.01)  # to its left, x = 1 < 3
