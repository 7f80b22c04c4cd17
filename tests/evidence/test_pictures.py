"""Static pictures: what is drawn lies where the numbers say."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from avshift_core.evidence import charts, svg
from avshift_core.evidence.maps import ink, png, two_inks
from avshift_core.evidence.markup import Column, Safe, table, tag
from avshift_core.evidence.places import map_layers
from avshift_core.evidence.scenes import scene
from avshift_core.plots import theme
from tests.scenario import scenes as made


def test_a_png_holds_the_pixels():
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png(pixels)))), pixels)
    assert png(pixels) == png(pixels.copy())


def test_every_scenario_leaves_ink_and_nothing_else_does():
    counts = np.zeros((4, 4))
    counts[0, 1], counts[3, 2] = 1, 50
    drawn = ink(counts, theme.P)
    assert (drawn[..., 3] > 0).sum() == 2 and drawn[3, 1, 3] >= 60  # rows from the bottom up become rows from the top
    assert drawn[0, 2, 3] == 255 and drawn[0, 2, :3].tolist() == [0x00, 0x72, 0xB2]
    assert not ink(np.zeros((2, 2)), theme.P)[..., 3].any()


def test_the_sign_of_a_difference_is_its_colour():
    drawn = two_inks(np.array([[-1.0, 0.0, 0.25]]), theme.P, theme.Q)[0]
    assert drawn[0, :3].tolist() == [0x00, 0x72, 0xB2] and drawn[2, :3].tolist() == [0xD5, 0x5E, 0x00]
    assert drawn[:, 3].tolist() == [255, 0, 128]  # root of 0.25 is a half


def test_the_map_counts_everybody(cases):
    layers = map_layers(cases["localized"].analysis)
    assert layers.P.sum() == layers.Q.sum() == 2000 and layers.outlines


def test_ticks_are_round_and_inside():
    for low, high in ((0.0, 1.0), (0.0123, 0.0131), (-3.2, 7.9), (1e-6, 2e-6)):
        found = svg.ticks(low, high)
        assert 2 <= len(found) <= 12 and min(found) >= low - 1e-12 and max(found) <= high + 1e-12
        assert np.allclose(np.diff(found), found[1] - found[0])


def test_an_estimate_lies_between_its_ends():
    e = lambda mu: {"label": "x", "missing": None, "value": {"mu": mu, "lo": mu - 0.01, "hi": mu + 0.02}}  # noqa: E731
    drawn = charts.estimates({"estimates": {"naive": e(0.1), "strata": e(0.2), "target": e(0.3)}, "headline": "strata"})
    at = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]  # of the naive estimate
    bars = [tuple(map(float, pair)) for pair in re.findall(r'<line x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)" y2="[\d.]+" '
                                                          r'class="bar p"', drawn)]
    low, high = bars[0]
    assert low < at[0] < high and (at[0] - low) / (high - low) == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rates_at_the_ends_are_drawn(value):
    flat = {"label": "x", "missing": None, "value": {"mu": value, "lo": value, "hi": value}}
    drawn = charts.estimates({"estimates": {"naive": flat}, "headline": None}, threshold=0.5)
    assert "nan" not in drawn and "inf" not in drawn and "threshold" in drawn


def test_a_scene_is_to_scale_and_the_ego_drives_to_the_right():
    t = made.times()
    ego = made.track(t, -10.0, made.along(t, 5.0))  # to the north in the log
    drawn = scene(made.scene(t, ego, [made.track(t, -7.0, made.along(t, 5.0), kind="truck", size=(10.0, 2.5, 3.0))]),
                  "Scenario <s>")
    assert "Scenario &lt;s&gt;" in drawn
    way = re.search(r'<path d="([^"]*)" class="way ego"', drawn)[1]
    points = [tuple(map(float, p.split())) for p in re.split("[ML]", way)[1:]]
    assert points[0][0] < points[-1][0] and abs(points[0][1]) < 0.1 and abs(points[-1][1]) < 0.1
    assert points[-1][0] - points[0][0] == pytest.approx(60, abs=1)  # 12 s at 5 m/s
    body = re.search(r'<path d="([^"]*)Z" class="body truck"', drawn)[1]
    corners = np.array([tuple(map(float, p.split())) for p in re.split("[ML]", body)[1:]])
    assert np.ptp(corners, axis=0) == pytest.approx([10.0, 2.5], abs=0.11)
    assert corners[:, 1].mean() == pytest.approx(-3.0, abs=0.1)  # 3 m to the right of the ego


def test_whatever_is_not_markup_is_escaped():
    assert tag("td", "<b>", Safe("<i></i>"), title='"') == '<td title="&quot;">&lt;b&gt;<i></i></td>'
    assert "&lt;x&gt;" in table([Column("<x>")], [["<x>"]]) and "<x>" not in table([Column("<x>")], [["<x>"]])
