"""The wealth curve and the rates carry the monitor's numbers."""

from math import exp, log10

import numpy as np
import pytest

from avshift_core.plots import theme
from avshift_core.plots.monitor import rates_figure, wealth_figure
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.monitor import Monitor, MonitorConfig, Stream, Week

PHRASES = {"traffic": "Traffic", "event<b>": "Event<b>"}


def monitor(weeks=3, top=5.0):
    """A week of reference, then two ranked drives a week of traffic and one of a metric; traffic alarms at the end."""
    held = tuple(Week(f"2026-W{10 + k}", k == 0, 100, 4, ("v1",)) for k in range(weeks + 1))
    traffic = np.linspace(0.1, top, 2 * weeks)
    rates = tuple(Estimate(0.1 + 0.01 * k, 0.05, 0.2, 0.03) for k in range(weeks + 1))
    return Monitor(MonitorConfig(), held, (
        Stream("traffic", np.repeat(np.arange(1, weeks + 1), 2), np.full(2 * weeks, 0.2), traffic, (4,) + (2,) * weeks),
        Stream("event<b>", np.arange(1, weeks + 1), np.full(weeks, 0.5), np.full(weeks, -0.5), (4,) + (1,) * weeks,
               rates)))


def test_curves_carry_the_wealth_drive_by_drive():
    m = monitor()
    figure = wealth_figure(m, PHRASES)
    traffic, event, star = figure.data
    assert list(traffic.x) == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert list(traffic.y) == pytest.approx([1, *np.exp(m.streams[0].log_wealth)])
    assert list(event.x) == [0, 1, 2, 3] and traffic.line.dash != event.line.dash
    assert figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["W11", "W12", "W13"] and "of 2026" in figure.layout.xaxis.title.text
    line = next(s for s in figure.layout.shapes if s.y0 == m.threshold)
    assert (line.x0, line.x1, line.y1) == (0, 3, 40)
    assert (star.x[0], star.y[0]) == (2.5, pytest.approx(exp(4.02)))  # 0.1, 1.08, 2.06, 3.04, 4.02, 5; log 40 = 3.69
    low, high = figure.layout.yaxis.range
    assert low < log10(0.5) and high > log10(exp(5))


def test_without_an_alarm_there_is_no_star_and_the_line_is_in_view():
    figure = wealth_figure(monitor(top=1.0), PHRASES)
    assert len(figure.data) == 2 and figure.layout.yaxis.range[1] > log10(40)


def test_a_year_has_few_labels_and_a_huge_wealth_is_drawn():
    figure = wealth_figure(monitor(weeks=52, top=900.0), PHRASES)
    assert len(figure.layout.xaxis.ticktext) <= 9 and np.isfinite(figure.data[0].y).all()
    assert figure.layout.yaxis.range[1] < 7  # what is far beyond the line need not be told apart


def test_rates_in_the_colours_of_reference_and_later_weeks():
    m = monitor()
    figure = rates_figure(m, m.streams[1], "Event<b>")
    reference, later = figure.data
    assert reference.marker.color == theme.P and later.marker.color == theme.Q
    assert list(later.x) == ["2026-W11", "2026-W12", "2026-W13"] and list(later.y) == pytest.approx([0.11, 0.12, 0.13])
    assert later.y[0] - later.error_y.arrayminus[0] == pytest.approx(0.05)


def test_names_from_data_are_no_html():
    m = monitor()
    text = wealth_figure(m, PHRASES).to_json() + rates_figure(m, m.streams[1], "Event<b>").to_json()
    assert "<b>" not in text and "Event&lt;b&gt;" in text.replace("\\u003c", "<").replace("\\u003e", ">").replace(
        "\\u0026", "&")
