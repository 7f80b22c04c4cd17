"""Profiles, clusters and thumbnails as figures: what is drawn is what was measured, and data is no markup."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from avshift_core.plots import theme
from avshift_core.plots.clusters import agreement_figure, centres_figure, rates_figure, shares_figure
from avshift_core.plots.profiles import FARTHEST, profile_alt, profile_figure, short
from avshift_core.plots.thumbnails import thumbnail
from avshift_core.quality.cluster_report import ClusterEvents, Partition
from avshift_core.quality.clusters import Agreement, Clusters, Spread
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.profile import profile
from avshift_core.shift.regions import Shares
from tests.plots.test_scenes import pictured


@pytest.fixture
def differences():
    rng = np.random.default_rng(0)
    n, mask = 400, np.arange(400) < 100
    table = pd.DataFrame({
        "ego_speed_mps": np.where(mask, 12.0, 8.0) + rng.normal(size=n), "noise": rng.normal(size=n),
        "road_type": np.where(mask, "junction", rng.choice(["fast_road", "multi_lane"], n)),
        "<a href='x'>evil</a>": np.where(mask, 5.0, 0.0) + 9 * rng.normal(size=n),
    })
    return profile(table, mask, np.arange(n) // 5)


def estimate(mu, half=0.02):
    return Estimate(mu, max(mu - half, 0.0), mu + half, half / 2)


@pytest.fixture
def partition():
    shares = [estimate(v) for v in (0.5, 0.3, 0.2)], [estimate(v) for v in (0.4, 0.3, 0.3)]
    return Partition(
        3, 0, np.repeat([0, 1, 2], [5, 3, 2]), np.eye(3), np.array([[0.0, 0], [1, 0], [0, 1]]),
        ("cut-ins", "yielding <b>", "lane keeping"), np.array([0, 1, 1]), ("a", "b"),
        (Shares(estimate(0.5), estimate(0.4), None), Shares(estimate(0.5), estimate(0.6), None)), *map(tuple, shares),
        tuple(estimate(q.mu / p.mu) for p, q in zip(*shares, strict=True)), (0.01, 0.9, 0.03), (50, 30, 20),
        (40, 30, 30), (9, 9, 9), ((0,), (1,), (2,)), ((0,), (1,), (2,)),
    )


@pytest.fixture
def events():
    agreement = Agreement("rates", 3, (0.1, 0.2, 0.3), (0.2, 0.3, 0.5), *(0.9,) * 10)
    measured = Clusters(3, "brake", "near", 0.2, 0.1, (90, 60, 50), (0.1, 0.2, 0.3), (0.12, 0.2, 0.28), (0.2, 0.3, 0.5),
                        1.5, Spread(0.1, 0.08, 0.02, 0.03, 0.01), Spread(0.1, 0.08, 0.02, 0.03, 0.01), agreement, None)
    return ClusterEvents("brake", "near", measured, (estimate(0.1), estimate(0.2), estimate(0.3)),
                         (estimate(0.1), estimate(0.2), None))


def texts(figure):
    hovers = [str(c) for trace in figure.data if trace.customdata is not None for c in trace.customdata]
    return [*(figure.layout.yaxis.ticktext or ()), *(a.text for a in figure.layout.annotations), *hovers]


def test_dots_intervals_and_values_are_those_of_the_profile(differences):
    figure = profile_figure(differences, inside="in R1", outside="elsewhere")
    drawn = {y: x for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True)}
    lines = {s.y0: (s.x0, s.x1) for s in figure.layout.shapes if s.y0 == s.y1}
    assert len(drawn) == len(differences) == len(figure.layout.yaxis.ticktext)
    for place, d in enumerate(reversed(differences)):  # the largest difference is above
        if abs(d.smd) < FARTHEST:
            assert drawn[place] == pytest.approx(d.smd) and lines[place][0] == pytest.approx(max(d.lo, -FARTHEST))
        else:
            assert abs(drawn[place]) == pytest.approx(FARTHEST)
    speed = next(d for d in differences if d.column == "ego_speed_mps")
    assert any(f"<b>{speed.text(speed.inside)}</b> · {speed.text(speed.outside)}" in text for text in texts(figure))
    assert f"{speed.inside:.3g}\N{NO-BREAK SPACE}m/s" == speed.text(speed.inside)


def test_what_lies_beyond_the_edge_is_a_triangle_and_what_is_not_clear_is_open(differences):
    figure = profile_figure(differences)
    symbols = {y: s for trace in figure.data for y, s in zip(trace.y, trace.marker.symbol, strict=True)}
    for place, d in enumerate(reversed(differences)):
        assert symbols[place].startswith("triangle") == (abs(d.smd) > FARTHEST)
        assert symbols[place].endswith("open") == (not d.clear)
    assert any(s.startswith("triangle") for s in symbols.values()) and any(s.endswith("open") for s in symbols.values())


def test_text_from_data_is_no_markup(differences, partition, events):
    for figure in (profile_figure(differences), shares_figure(partition, 0), rates_figure(partition, events, "<i>", 0),
                   centres_figure(partition, 1), agreement_figure(events.measured.rates, "<i>x</i>", "b")):
        shown = " ".join([*texts(figure), str(figure.layout.xaxis.title.text)])
        assert "<a" not in shown and "yielding <b>" not in shown and "<i>" not in shown
    assert short("x" * 99).endswith("…") and len(short("x" * 99)) == 46


def test_an_empty_profile_and_one_without_intervals_can_be_drawn(differences):
    assert profile_figure(()).layout.height > 0
    bare = replace(differences[0], lo=np.nan, hi=np.nan)
    figure = profile_figure([bare])
    assert not [s for s in figure.layout.shapes if s.y0 == s.y1]
    assert differences[0].label in profile_alt(differences, "R1") and "no attribute" in profile_alt((), "R1")


def test_two_colours_for_two_cohorts(differences):
    figure = profile_figure(differences, colors=(theme.Q, theme.P))
    for trace in figure.data:
        for x, color in zip(trace.x, trace.marker.color, strict=True):
            assert color in (theme.NEUTRAL, theme.Q if x > 0 else theme.P)


def test_shares_of_P_and_Q_most_of_Q_above(partition):
    figure = shares_figure(partition, 1)
    P, Q = figure.data
    assert (P.marker.color, Q.marker.color) == (theme.P, theme.Q) and P.marker.symbol != Q.marker.symbol
    assert list(P.x) == [0.5, 0.3, 0.2] and list(Q.x) == [0.4, 0.3, 0.3]  # by the ratio 0.8, 1, 1.5 from below
    assert list(P.marker.opacity) == [1.0, 0.45, 1.0]  # adjusted p 0.9 is faint
    assert figure.layout.yaxis.ticktext[1].startswith("<b>yielding &lt;b&gt;")  # the chosen one


def test_rates_raw_and_shrunk_and_the_chosen_in_colour(partition, events):
    figure = rates_figure(partition, events, "Hard brake", 2)
    shrunk, raw = figure.data
    assert list(shrunk.x) == [0.12, 0.2, 0.28] and list(raw.x) == [0.1, 0.2, 0.3]
    assert list(shrunk.marker.color) == [theme.NEUTRAL, theme.NEUTRAL, theme.HEADLINE]
    assert len({*shrunk.marker.color}) == 2  # never a colour a cluster
    alone = rates_figure(partition, replace(events, measured=None), "Hard brake", 2)
    assert [list(t.x) for t in alone.data] == [[0.1, 0.2, 0.3]]


def test_centres_carry_their_numbers_and_sizes(partition):
    (dots,) = centres_figure(partition, 0).data
    assert list(dots.text) == ["1", "2", "3"] and dots.marker.size[0] > dots.marker.size[2]
    assert list(dots.marker.line.width) == [2, 0, 0]


def test_agreement_has_a_dot_a_cluster(events):
    (dots,) = agreement_figure(events.measured.rates, "a", "b").data
    assert list(dots.x) == [0.1, 0.2, 0.3] and list(dots.y) == [0.2, 0.3, 0.5]


def test_a_thumbnail_is_small_bare_and_to_scale():
    figure = thumbnail(pictured())
    assert figure.layout.showlegend is False and not figure.layout.annotations and figure.layout.height <= 160
    assert figure.layout.yaxis.scaleanchor == "x"
