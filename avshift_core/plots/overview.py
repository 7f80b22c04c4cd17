"""What a corpus holds: a calendar of its days, and counts by one column."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.words import readable

ROW = 24  # pixels of one bar
SHADES = [[0, "rgba(0, 114, 178, 0.12)"], [1, "rgba(0, 114, 178, 1)"]]
PATTERNS = ("", "/", ".", "x", "-")  # areas are told apart without colour, which belongs to P and Q


def calendar_figure(days: pd.DataFrame) -> go.Figure:
    """Scenarios of every day (columns) and area (rows).

    Args:
        days: columns day, area, period, av_version, n; days that are unknown are left out, and some must not be.
    """
    known = days[days["day"] != UNKNOWN]
    table = known.groupby(["area", "day"])["n"].sum().unstack(fill_value=0)
    facts = known.groupby("day").agg(
        period=("period", "first"), version=("av_version", lambda v: ", ".join(sorted(set(v)))))
    about = [[f"{facts.loc[day, 'period']}, AV {facts.loc[day, 'version']}" for day in table.columns]] * len(table)
    figure = go.Figure(go.Heatmap(
        x=list(table.columns), y=[readable(area) for area in table.index], z=table.to_numpy(), customdata=about,
        xgap=2, ygap=2, colorscale=SHADES, zmin=0, zmax=float(table.to_numpy().max()),
        showscale=False,
        hovertemplate="%{x}, %{y}: %{z:,} scenarios<br>%{customdata}<extra></extra>",
    ))
    for period, day in known.groupby("period")["day"].min().items():
        figure.add_annotation(x=day, y=1, yref="paper", yanchor="bottom", xanchor="left", text=str(period),
                              showarrow=False, font={"size": 10})
    theme.base_figure(figure, 130 + ROW * len(table), top=24)
    figure.update_xaxes(showgrid=False, type="date", tickformat="%d %b", title={
        "text": f"darkest: {table.to_numpy().max():,} scenarios a day", "font": {"size": 11}})
    figure.update_yaxes(showgrid=False)
    return figure


def counts_figure(table: pd.DataFrame, column: str, title: str) -> go.Figure:
    """Scenarios by one column, areas side by side in one bar.

    Args:
        table: columns `column`, area, n.
    """
    order = table.groupby(column)["n"].sum()
    order = order.sort_values() if column == "category" else order.sort_index(ascending=False)
    figure = go.Figure()
    for i, (area, rows) in enumerate(table.groupby("area")):
        n = rows.groupby(column)["n"].sum().reindex(order.index).fillna(0)
        figure.add_bar(
            y=[readable(value) for value in order.index], x=n, orientation="h", name=readable(area),
            marker={"color": theme.NEUTRAL, "opacity": 0.9 - 0.35 * (i % 2),
                    "pattern": {"shape": PATTERNS[i % len(PATTERNS)]}},
            hovertemplate=f"%{{y}}, {readable(area)}: %{{x:,}} scenarios<extra></extra>",
        )
    theme.base_figure(figure, 80 + ROW * max(len(order), 3), top=46)
    figure.update_layout(barmode="stack", title={"text": title, "font": {"size": 14}, "x": 0, "y": 0.99})
    figure.update_xaxes(nticks=4)
    figure.update_yaxes(type="category")
    return figure
