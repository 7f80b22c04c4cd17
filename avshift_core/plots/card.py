"""The card of an encoder as figures: how its loss fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from avshift_core.plots import theme

CURVES = {"loss": ("training drives", theme.NEUTRAL, "dot"), "held_out": ("held-out drives", theme.HEADLINE, "solid")}


def losses_figure(losses: Sequence[Mapping], best_epoch: int) -> go.Figure:
    """Loss of every epoch on training and held-out drives; the epoch whose weights were kept is marked."""
    figure = go.Figure()
    for key, (name, color, dash) in CURVES.items():
        figure.add_scatter(x=[row["epoch"] for row in losses], y=[row[key] for row in losses], mode="lines", name=name,
                           line={"color": color, "width": 2.5, "dash": dash},
                           hovertemplate="epoch %{x}: %{y:.2f}<extra>" + name + "</extra>")
    kept = losses[best_epoch - 1]
    figure.add_scatter(x=[kept["epoch"]], y=[kept["held_out"]], mode="markers", name="kept",
                       marker={"color": theme.HEADLINE, "symbol": "diamond", "size": 12},
                       hovertemplate="kept: epoch %{x}, %{y:.2f}<extra></extra>")
    theme.base_figure(figure, 300)
    figure.update_xaxes(title="Epoch")
    figure.update_yaxes(title="Loss", rangemode="tozero")
    return figure
