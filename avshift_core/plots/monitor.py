"""The wealth of every stream, drive by drive, and the rates of the metrics week by week."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from math import exp, log

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.monitor import TRAFFIC, Monitor, Stream

# Safe for colour-blind readers, and apart from P's blue and Q's orange; lines differ by their dashes, too.
LINES = (("#B05CC0", "solid"), ("#009E73", "dash"), ("#E69F00", "dot"), ("#56B4E9", "dashdot"), ("#CC79A7", "longdash"))
ALARM = "#CC3311"
FEWEST_TICKS = 8  # weeks up to which each has a label
LOWEST = 1e-3  # wealth below is of no interest: nothing speaks for a change
FAR_BEYOND = 1e4  # times the threshold, where the axis ends: more is as good as certain


def wealth_figure(monitor: Monitor, phrases: Mapping[str, str], *, height: int = 400) -> go.Figure:
    """Wealth on a logarithmic axis, weeks side by side, with the threshold and a star at each first alarm.

    Args:
        phrases: stream -> what people call it.
    """
    traces = [{
        "type": "scatter", "mode": "lines", "name": escape(phrases[s.name]), **_curve(monitor, s),
        "line": {"color": color, "dash": dash, "width": 3 if s.name == TRAFFIC else 2, "shape": "hv"},
    } for s, (color, dash) in zip(monitor.streams, _styles(len(monitor.streams)), strict=True)]
    stars = [_star(monitor, s) for s in monitor.streams if s.name in monitor.alarms]
    if stars:
        traces.append({
            "type": "scatter", "mode": "markers", "name": "first alarm", "x": [x for x, _, _ in stars],
            "y": [y for _, y, _ in stars],
            "customdata": [f"{escape(phrases[name])}: first alarm" for _, _, name in stars],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"color": ALARM, "symbol": "star", "size": 15, "line": {"color": "white", "width": 1}},
        })
    first, count = monitor.watched[0], len(monitor.watched)
    step = 1 if count <= FEWEST_TICKS else -(-count // FEWEST_TICKS)
    labels, year = short_names(monitor)
    top = max(exp(min(s.largest, 600.0)) for s in monitor.streams)
    top = min(max(top, 3 * monitor.threshold), FAR_BEYOND * monitor.threshold)
    low = max(LOWEST, min(0.5, *(exp(float(s.log_wealth.min(initial=0.0))) for s in monitor.streams)))
    edges = [theme.vertical(k, width=1, dash="dot") for k in range(1, count)] if count <= 2 * FEWEST_TICKS else []
    return theme.quick_figure(traces, {
        "shapes": [*edges, {"type": "line", "x0": 0, "x1": count, "y0": monitor.threshold, "y1": monitor.threshold,
                            "line": {"color": ALARM, "width": 2, "dash": "dash"}}],
        "annotations": [theme.note(f"alarm at {monitor.threshold:g}", 0, log(monitor.threshold, 10),
                                   xanchor="left", yanchor="bottom", font={"size": 12})],  # where wealth is still small
        "xaxis": {"tickvals": [k + 0.5 for k in range(0, count, step)], "ticktext": labels[first::step],
                  "range": [0, count], "showgrid": False, "title": {"text": f"Week{year}, drive by drive"}},
        "yaxis": {"type": "log", "title": {"text": "Wealth of a bettor who began with 1"},
                  "range": [log(low / 1.5, 10), log(top * 1.5, 10)], "exponentformat": "power", "dtick": _decades(
                      low, top)},
    }, height, top=44)


def rates_figure(monitor: Monitor, stream: Stream, phrase: str, *, height: int = 260) -> go.Figure:
    """A metric week by week with its interval; reference weeks blue, later ones orange, the alarm week starred."""
    alarm = monitor.alarms.get(stream.name)
    traces = []
    for name, color, symbol, reference in (("reference", theme.P, "circle", True),
                                           ("later weeks", theme.Q, "square", False)):
        weeks = [k for k, week in enumerate(monitor.weeks) if week.reference == reference]
        values = [stream.rates[k] for k in weeks]
        traces.append({
            "type": "scatter", "mode": "markers", "name": name, "x": [monitor.weeks[k].period for k in weeks],
            "y": [e.mu for e in values], "error_y": theme.whiskers(values, color, width=4),
            "marker": {"color": color, "symbol": symbol, "size": 9},
            "customdata": [f"{e.mu:.4g}, from {e.lo:.4g} to {e.hi:.4g}" for e in values],
            "hovertemplate": "%{x}: %{customdata}<extra></extra>",
        })
    notes = [] if alarm is None else [theme.note("alarm", monitor.weeks[alarm].period, stream.rates[alarm].hi,
                                                 yanchor="bottom", yshift=4, font={"size": 12})]
    event = all(0 <= e.mu <= 1 for e in stream.rates)
    periods, (labels, year) = [week.period for week in monitor.weeks], short_names(monitor)
    step = -(-len(periods) // FEWEST_TICKS)
    return theme.quick_figure(traces, {
        "annotations": notes,
        "xaxis": {"type": "category", "showgrid": False, "tickangle": 0, "tickvals": periods[::step],
                  "ticktext": labels[::step], "categoryorder": "array", "categoryarray": periods,
                  "title": {"text": f"Week{year}"}},
        "yaxis": {"title": {"text": f"{escape(phrase)}<br>share of scenarios" if event else escape(phrase)},
                  **({"tickformat": "~%"} if event else {}), "rangemode": "tozero"},
    }, height)


def short_names(monitor: Monitor) -> tuple[list[str], str]:
    """Labels of all weeks, without the year where they share one, and " of" that year."""
    periods = [week.period for week in monitor.weeks]
    parts = [re.fullmatch(r"(\d{4})-(W\d\d)", period) for period in periods]
    if not all(parts) or len({part[1] for part in parts}) > 1:
        return [escape(period) for period in periods], ""
    return [part[2] for part in parts], f" of {parts[0][1]}"


def _curve(monitor: Monitor, stream: Stream) -> dict:
    """x: weeks after the reference, each of length 1, its ranked drives spread evenly over it."""
    first, x, seen = monitor.watched[0], [0.0], {}
    for k in stream.week:
        seen[k] = seen.get(k, 0) + 1
        x.append(float(k - first + seen[k] / stream.ranked[k]))
    y = [1.0, *(exp(max(min(value, 600.0), -600.0)) for value in stream.log_wealth)]
    where = ["start", *(f"{monitor.weeks[k].period}, drive {i + 1:,}" for i, k in enumerate(stream.week))]
    return {"x": x, "y": y, "customdata": where, "hovertemplate": "%{customdata}: %{y:.3g}"}


def _star(monitor: Monitor, stream: Stream) -> tuple[float, float, str]:
    curve = _curve(monitor, stream)
    place = next(i for i, value in enumerate(stream.log_wealth) if value >= log(monitor.threshold)) + 1
    return curve["x"][place], curve["y"][place], stream.name


def _styles(count: int) -> list[tuple[str, str]]:
    return [LINES[i % len(LINES)] for i in range(count)]


def _decades(low: float, top: float) -> int:
    """Powers of ten between two ticks, so that there are at most about eight."""
    return max(1, round(log(top / low, 10) / 8))
