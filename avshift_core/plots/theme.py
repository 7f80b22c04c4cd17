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
