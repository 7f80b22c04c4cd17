"""Colours and layout of every figure: safe for colour-blind readers, legible on light and on dark."""

from __future__ import annotations

import plotly.graph_objects as go

P, Q = "#0072B2", "#D55E00"  # Okabe and Ito's blue and vermilion
HEADLINE = "#B05CC0"
NEUTRAL = "#868686"  # contrast above 3.5 to white and to the dark background
FAINT = "rgba(134, 134, 134, 0.25)"
CLEAR = "rgba(0, 0, 0, 0)"
TARGET_HEAVY_FILL, SOURCE_HEAVY_FILL = "rgba(213, 94, 0, 0.20)", "rgba(0, 114, 178, 0.20)"
BARE_FILL = "rgba(134, 134, 134, 0.30)"
BAND_FILLS = {
    "no_shift": "rgba(0, 158, 115, 0.18)", "localize": "rgba(230, 159, 0, 0.20)",
    "global_shift": "rgba(204, 51, 17, 0.20)",
}


def base_figure(figure: go.Figure, height: int, *, left: int = 10, top: int = 36) -> go.Figure:
    """Transparent, without title, the legend above the plot; no colour of text is set."""
    figure.update_layout(
        height=height, margin={"l": left, "r": 16, "t": top, "b": 10}, paper_bgcolor=CLEAR, plot_bgcolor=CLEAR,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}, hoverlabel={"align": "left"},
        dragmode=False,
    )
    figure.update_xaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    figure.update_yaxes(zeroline=False, gridcolor=FAINT, automargin=True)
    return figure


def quick_figure(traces: list[dict], layout: dict, height: int, *, left: int = 10, top: int = 36) -> go.Figure:
    """As base_figure, from plain dicts in one go, for figures that follow a slider.

    Every later `add_vline`, `update_layout` or `make_subplots` copies and validates it all again, 10 to 25 ms each.
    """
    axes = {name: {"zeroline": False, "gridcolor": FAINT, "automargin": True, **layout.get(name, {})}
            for name in {"xaxis", "yaxis", *(k for k in layout if k.startswith(("xaxis", "yaxis")))}}
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", **layout.get("legend", {})}
    return go.Figure(data=traces, layout={
        "height": height, "margin": {"l": left, "r": 16, "t": top, "b": 10}, "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR, "hoverlabel": {"align": "left"}, "dragmode": False, **layout, **axes, "legend": legend,
    })


def vertical(x: float, **line) -> dict:
    """A shape: a line from the bottom of the plot to its top."""
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": NEUTRAL, **line}}


def note(text: str, x, y, **more) -> dict:
    """An annotation without an arrow."""
    return {"text": text, "x": x, "y": y, "showarrow": False, **more}


def whiskers(estimates, color: str, *, thickness: float = 2, width: float = 5) -> dict:
    """Error bars of estimates with mu, lo and hi."""
    return {"type": "data", "symmetric": False, "array": [e.hi - e.mu for e in estimates],
            "arrayminus": [e.mu - e.lo for e in estimates], "color": color, "thickness": thickness, "width": width}
