"""The weights and their clip: a histogram with the clip's line, and every estimate over the clips."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log10, sqrt

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.plots.metrics import LABELS
from avshift_core.shift.calibrate import HEADLINE, Calibration
from avshift_core.shift.weights import WeightHistogram

SWEPT = {  # estimator -> dash and marker of its line, so that they are told apart without colour
    "strata": ("solid", "diamond"), "lis": ("dash", "circle"), "lis_paper": ("dot", "circle-open"),
    "balance": ("dashdot", "square-open"), "ipw": ("dash", "triangle-up-open"), "aipw": ("dot", "triangle-down-open"),
}
BAND = "rgba(176, 92, 192, 0.16)"
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
LOG = {"type": "log", "tickvals": TICKS, "ticktext": [f"{t:g}" for t in TICKS]}


def weights_figure(histogram: WeightHistogram, B: float) -> go.Figure:
    """Scenarios of P by weight before the clip; what lies beyond it is given the weight B."""
    edges = histogram.edges.tolist()
    edges[0] = edges[1] ** 2 / edges[2]  # the bin from 0 on, as wide as the others
    bins = list(pairwise(edges))
    traces = []
    for name, color, beyond in (("kept", theme.P, False), (f"cut to {B:g}", theme.NEUTRAL, True)):
        rows = [i for i, (low, high) in enumerate(bins) if (sqrt(low * high) > B) == beyond]
        traces.append({
            "type": "bar", "x": [sqrt(bins[i][0] * bins[i][1]) for i in rows], "y": histogram.share[rows].tolist(),
            "width": [bins[i][1] - bins[i][0] for i in rows], "name": name, "customdata": histogram.mass[rows].tolist(),
            "marker": {"color": color, "opacity": 0.75, "line": {"width": 0}},
            "hovertemplate": "weight about %{x:.2f}: %{y:.2%} of P, %{customdata:.2%} of the weight<extra></extra>",
        })
    return theme.quick_figure(traces, {
        "shapes": [theme.vertical(1, width=1, dash="dot"), theme.vertical(B, color=theme.HEADLINE, width=2.5)],
        "annotations": [theme.note(f"<b>clip {B:g}</b>", log10(B), 1, yref="paper", yanchor="bottom")],
        "xaxis": {**LOG, "title": {"text": "Weight before the clip (logarithmic; leftmost: 0)"},
                  "range": [log10(edges[0] / 1.1), log10(1.15 * max(edges[-1], B))]},
        "yaxis": {"title": {"text": "Share of P"}, "tickformat": "~%", "nticks": 5},
        "showlegend": False, "barmode": "overlay",
    }, 300, top=30)


def sweep_figure(swept: Sequence[Calibration], chosen: Calibration, headline: str | None, n_P: int) -> go.Figure:
    """Every estimate over the clips with the chosen clip marked; below, the data it leaves and the mass it loses.

    Args:
        headline: the estimator with the band; None when it is withheld at the chosen clip, and then it is grey.
    """
    clips, main = [c.B for c in swept], headline or HEADLINE
    traces = [_band(clips, [getattr(c, main) for c in swept], BAND if headline else theme.FAINT)]
    for name, color, dash in (("naive", theme.P, "solid"), ("target", theme.Q, "dash")):
        traces.append({
            "type": "scatter", "x": [clips[0], clips[-1]], "y": [getattr(chosen, name).mu] * 2, "mode": "lines",
            "name": LABELS[name], "line": {"color": color, "width": 2, "dash": dash},
            "hovertemplate": f"{LABELS[name]}: %{{y:.2%}}<extra></extra>",
        })
    color = theme.HEADLINE if headline else theme.NEUTRAL
    traces += [_line(clips, [getattr(c, name).mu for c in swept], name, color if name == main else None)
               for name in SWEPT if getattr(swept[0], name) is not None]
    traces.append(_mark(chosen, main, color))
    notes, at = [], len(clips) // 4
    for name, values, dash in (("effective share of P", [c.ess / n_P for c in swept], "solid"),
                               ("share of Q lost to the clip", [c.clipped_mass for c in swept], "dash")):
        traces.append({
            "type": "scatter", "x": clips, "y": values, "name": name, "mode": "lines", "showlegend": False,
            "yaxis": "y2", "line": {"color": theme.NEUTRAL, "width": 2, "dash": dash},
            "hovertemplate": f"{name}, clip %{{x:g}}: %{{y:.1%}}<extra></extra>",
        })
        notes.append(theme.note(name, log10(clips[at]), values[at], yref="y2", xanchor="left", yanchor="bottom",
                                yshift=2, font={"size": 11}))
    return theme.quick_figure(traces, {
        "shapes": [theme.vertical(chosen.B, color=theme.HEADLINE, width=1.5, dash="dot")], "annotations": notes,
        "xaxis": {**LOG, "title": {"text": "Clip B (logarithmic)"}, "anchor": "y2",
                  "range": [log10(clips[0] / 1.1), log10(clips[-1] * 1.1)]},
        "yaxis": {"title": {"text": "Event rate"}, "tickformat": "~%", "nticks": 7, "domain": [0.34, 1]},
        "yaxis2": {"tickformat": ".0%", "range": [-0.04, 1.35], "tickvals": [0, 0.5, 1], "domain": [0, 0.29]},
    }, 470, top=92)


def _band(clips, estimates, fill: str) -> dict:
    return {
        "type": "scatter", "x": [*clips, *clips[::-1]],
        "y": [*(e.hi for e in estimates), *(e.lo for e in estimates[::-1])], "mode": "lines", "name": "interval",
        "fill": "toself", "fillcolor": fill, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False,
    }


def _line(clips, values, name: str, main: str | None) -> dict:
    """main: the colour of the main line, None for the others."""
    color, (dash, symbol) = main or theme.NEUTRAL, SWEPT[name]
    return {
        "type": "scatter", "x": clips, "y": values, "name": LABELS[name], "mode": "lines+markers",
        "line": {"color": color, "width": 3 if main else 1.2, "dash": dash},
        "marker": {"symbol": symbol, "size": 8 if main else 6, "color": color},
        "hovertemplate": f"{LABELS[name]}, clip %{{x:g}}: %{{y:.2%}}<extra></extra>",
    }


def _mark(chosen: Calibration, main: str, color: str) -> dict:
    """The estimate at the chosen clip."""
    estimate = getattr(chosen, main)
    return {
        "type": "scatter", "x": [chosen.B], "y": [estimate.mu], "mode": "markers", "showlegend": False,
        "name": f"clip {chosen.B:g}", "error_y": theme.whiskers([estimate], color, width=6),
        "marker": {"symbol": "diamond", "size": 16, "color": color,
                   "line": {"color": theme.NEUTRAL, "width": 2}},
        "hovertemplate": f"clip {chosen.B:g}: {estimate.mu:.2%}, from {estimate.lo:.2%} to {estimate.hi:.2%}"
        "<extra></extra>",
    }
