"""What differs between the cohorts, attribute by attribute; and what the weights leave of it (a love plot)."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.differences import Difference

ROW = 23  # pixels of one attribute
SMALL = 0.1  # a standardised difference below it is called negligible (Austin 2009)
LONGEST = 36


def differences_figure(differences: Sequence[Difference]) -> go.Figure:
    """Standardised differences with intervals, the first on top: orange more in Q, blue more in P, grey unclear."""
    groups = {
        "more in Q": (theme.Q, "square", [d for d in differences if d.clear and d.smd > 0]),
        "more in P": (theme.P, "circle", [d for d in differences if d.clear and d.smd <= 0]),
        "not clear": (theme.NEUTRAL, "circle-open", [d for d in differences if not d.clear]),
    }
    traces = [_dots(rows, rows, name, color, symbol) for name, (color, symbol, rows) in groups.items() if rows]
    return _figure(traces, differences, "Difference in standard deviations, Q minus P")


def love_figure(differences: Sequence[Difference]) -> go.Figure:
    """Differences before (open) and after weighting (filled), with the intervals of the latter."""
    before = {
        "type": "scatter", "x": [d.smd for d in differences], "y": [_label(d) for d in differences], "mode": "markers",
        "name": "before", "customdata": [_values(d) for d in differences],
        "marker": {"color": theme.NEUTRAL, "size": 9, "symbol": "circle-open", "line": {"width": 2}},
        "hovertemplate": "%{y}, before: %{x:+.3f}<br>%{customdata}<extra></extra>",
    }
    after = _dots(differences, [d.after for d in differences], "after weighting", theme.HEADLINE, "diamond")
    return _figure([before, after], differences, "Difference in standard deviations")


def _dots(rows, shown, name: str, color: str, symbol: str) -> dict:
    return {
        "type": "scatter", "x": [d.smd for d in shown], "y": [_label(d) for d in rows], "mode": "markers", "name": name,
        "marker": {"color": color, "size": 9, "symbol": symbol, "line": {"color": color, "width": 1.5}},
        "error_x": {"type": "data", "symmetric": False, "array": [d.hi - d.smd for d in shown],
                    "arrayminus": [d.smd - d.lo for d in shown], "color": color, "thickness": 1.5, "width": 3},
        "customdata": [_values(d) for d in shown],
        "hovertemplate": f"%{{y}}, {name}: %{{x:+.3f}}<br>%{{customdata}}<extra></extra>",
    }


def _figure(traces: list[dict], differences: Sequence[Difference], title: str) -> go.Figure:
    ends = [abs(x) for d in differences for x in (d.smd, d.lo, d.hi) if x == x]  # NaN is not itself
    far = 1.05 * max([2 * SMALL, *ends])
    negligible = {"type": "rect", "x0": -SMALL, "x1": SMALL, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
                  "fillcolor": theme.BAND_FILLS["no_shift"], "line": {"width": 0}}
    return theme.quick_figure(traces, {
        "shapes": [negligible, theme.vertical(0, width=1)],
        "xaxis": {"title": {"text": title}, "range": [-far, far]},
        "yaxis": {"categoryorder": "array", "categoryarray": [_label(d) for d in differences][::-1],
                  "range": [-0.7, len(differences) - 0.3], "tickfont": {"size": 12}, "ticklabelstandoff": 4},
    }, 96 + ROW * max(len(differences), 3), top=40)


def _label(d: Difference) -> str:
    text = d.label if len(d.label) <= LONGEST else f"{d.label[: LONGEST - 1]}…"
    return html.escape(text, quote=False)


def _values(d: Difference) -> str:
    return html.escape(f"P {d.text(d.outside)}, Q {d.text(d.inside)}", quote=False)
