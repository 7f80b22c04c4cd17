"""The advantage on the band: where the verdict comes from, with the A/A controls below it."""

from __future__ import annotations

from math import sqrt

import plotly.graph_objects as go

from avshift_core.config import AnalysisConfig
from avshift_core.plots import theme
from avshift_core.shift.c2st import GlobalTest

CHANCE, PERFECT = 0.0, 0.5  # the advantage of a coin and of a classifier without errors
TICKS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
BAND_NAMES = {"no_shift": "no shift", "localize": "moderate: localize", "global_shift": "global"}
ROWS = ("P against Q", "P against itself", "Q against itself")


def band_figure(test: GlobalTest, config: AnalysisConfig) -> go.Figure:
    """Advantage and its bounds, on a square-root axis: the small band of "no shift" stays visible."""
    figure = go.Figure()
    edges = (CHANCE, config.gamma_small, config.gamma_large, PERFECT)
    for (name, label), low, high in zip(BAND_NAMES.items(), edges[:-1], edges[1:], strict=True):
        figure.add_vrect(
            x0=sqrt(low), x1=sqrt(high), fillcolor=theme.BAND_FILLS[name], line_width=0, layer="below",
        )
        figure.add_annotation(
            x=(sqrt(low) + sqrt(high)) / 2, y=1, yref="paper", yanchor="bottom", text=label, showarrow=False,
        )
    for edge, name in ((config.gamma_small, "γ small"), (config.gamma_large, "γ large")):
        figure.add_vline(x=sqrt(edge), line={"color": theme.NEUTRAL, "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=sqrt(edge), y=0, yref="paper", yanchor="bottom", xanchor="left", text=f"{name} {edge:g}", showarrow=False,
            font={"size": 11},
        )
    _add_row(figure, ROWS[0], test, theme.HEADLINE, symbol="diamond", size=12)
    _add_row(figure, ROWS[1], test.aa_source, theme.P, symbol="circle-open", size=10)
    _add_row(figure, ROWS[2], test.aa_target, theme.Q, symbol="square-open", size=10)
    theme.base_figure(figure, 320)
    ticks = sorted({*TICKS, config.gamma_small, config.gamma_large})
    ticks = [t for t in ticks if t in edges or all(abs(sqrt(t) - sqrt(e)) > 0.04 for e in edges)]
    figure.update_xaxes(
        range=[-0.012, sqrt(PERFECT)], tickvals=[sqrt(t) for t in ticks], ticktext=[f"{t:g}" for t in ticks],
        title="Advantage over chance (square-root scale)", showgrid=False,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=[*ROWS[::-1]], range=[-0.85, 2.5], showgrid=False)
    figure.update_layout(showlegend=False)
    return figure


def _add_row(figure: go.Figure, row: str, value, color: str, *, symbol: str, size: int) -> None:
    at, low, high = sqrt(value.gamma_hat), sqrt(value.gamma_lcb), sqrt(value.gamma_ucb)
    figure.add_scatter(
        x=[at], y=[row], mode="markers", name=row,
        marker={"color": color, "size": size, "symbol": symbol, "line": {"color": color, "width": 2}},
        error_x={
            "type": "data", "symmetric": False, "array": [high - at], "arrayminus": [at - low], "color": color,
            "thickness": 2.5, "width": 6,
        },
        hovertemplate=f"{row}<br>advantage {value.gamma_hat:.4f}<br>between {value.gamma_lcb:.4f} and "
        f"{value.gamma_ucb:.4f}<extra></extra>",
    )
