"""Attribute profiles: what sets some scenarios apart, as dots with intervals and the values beside them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.differences import NUMBER, Difference

ROW = 26  # pixels of one attribute
FARTHEST = 4.0  # standardised differences beyond are drawn at the edge, or the others would shrink to a line
LONGEST = 46  # characters of a label


def profile_figure(
    differences: Sequence[Difference], *, inside: str = "here", outside: str = "elsewhere", colors=None,
) -> go.Figure:
    """One row an attribute: standardised difference with its interval, values of both sides at the right.

    Args:
        inside, outside: what the two sides are called.
        colors: of dots right and left of 0, such as those of Q and P; without them, one colour for clear differences.
    """
    rows = list(differences)[::-1]
    edge = _edges(rows)
    figure = go.Figure()
    for i, d in enumerate(rows):
        _interval(figure, d, i, edge, colors)
    for text, chosen in (("interval clear of 0", True), ("not clear", False)):
        own = [(i, d) for i, d in enumerate(rows) if d.clear == chosen]
        if own:
            _dots(figure, own, edge, text, chosen, colors, inside, outside)
    figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1})
    theme.base_figure(figure, 106 + ROW * max(len(rows), 1), top=56)
    figure.update_layout(showlegend=any(not d.clear for d in rows), margin={"r": 150, "b": 44})
    figure.update_xaxes(range=[1.05 * edge[0], 1.05 * edge[1]], zeroline=False, fixedrange=True,
                        title=f"Standardised difference: left less, right more {escape(inside)}")
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=[short(d.label) for d in rows], showgrid=False,
                        range=[-0.6, len(rows) - 0.4], fixedrange=True)
    for i, d in enumerate(rows):
        figure.add_annotation(x=1.0, xref="paper", xanchor="left", y=i, yref="y", showarrow=False, align="left",
                              text=f"  <b>{_value(d, d.inside)}</b> · {_value(d, d.outside)}", font={"size": 12})
    figure.add_annotation(x=1.0, xref="paper", xanchor="left", y=len(rows) - 0.4, yref="y", yanchor="bottom",
                          showarrow=False, text=f"  <b>{escape(inside)}</b> · {escape(outside)}", font={"size": 11})
    return figure


def profile_alt(differences: Sequence[Difference], what: str) -> str:
    """The figure in words, for those who do not see it."""
    told = "; ".join(f"{d.label} {d.text(d.inside)} against {d.text(d.outside)}" for d in list(differences)[:3])
    return f"What sets {what} apart: {told or 'no attribute'}"


def short(text: str, most: int = LONGEST) -> str:
    """Text from data as a label: no markup, and not longer than a label may be.

    >>> short("<a href='x'>rain</a>")
    '&lt;a href=&#x27;x&#x27;&gt;rain&lt;/a&gt;'
    """
    return escape(text if len(text) <= most else f"{text[:most - 1].rstrip()}…")


def _edges(rows: Sequence[Difference]) -> tuple[float, float]:
    """How far the picture reaches to both sides of 0."""
    ends = [v for d in rows for v in (d.smd, d.lo, d.hi) if v == v]
    return max(-FARTHEST, 1.05 * min([-0.3, *ends])), min(FARTHEST, 1.05 * max([0.3, *ends]))


def _within(value: float, edge: tuple[float, float]) -> float:
    return min(max(value, edge[0]), edge[1])


def _color(d: Difference, colors) -> str:
    if not d.clear:
        return theme.NEUTRAL
    return theme.HEADLINE if colors is None else colors[0] if d.smd > 0 else colors[1]


def _interval(figure: go.Figure, d: Difference, i: int, edge, colors) -> None:
    if d.lo != d.lo:  # too few drives for one
        return
    lo, hi = (_within(v, edge) for v in (d.lo, d.hi))
    figure.add_shape(type="line", x0=lo, x1=hi, y0=i, y1=i, opacity=0.65, layer="below",
                     line={"color": _color(d, colors), "width": 3})


def _dots(figure, own, edge, text: str, clear: bool, colors, inside: str, outside: str) -> None:
    symbols = ["triangle-right" if d.smd > edge[1] else "triangle-left" if d.smd < edge[0] else "circle"
               for _, d in own]
    figure.add_scatter(
        x=[_within(d.smd, edge) for _, d in own], y=[i for i, _ in own], mode="markers", name=text,
        marker={"color": [_color(d, colors) for _, d in own], "size": 10, "line": {"width": 0 if clear else 1.5},
                "symbol": symbols if clear else [f"{s}-open" for s in symbols]},
        hovertemplate="%{customdata}<extra></extra>", customdata=[_hover(d, inside, outside) for _, d in own],
    )


def _hover(d: Difference, inside: str, outside: str) -> str:
    what = "Mean" if d.kind == NUMBER else "Share"
    lines = [f"<b>{escape(d.label)}</b>", f"{what} {escape(inside)} {_value(d, d.inside)}, {escape(outside)} "
             f"{_value(d, d.outside)}", f"Standardised difference {d.smd:+.2f}"]
    if d.lo == d.lo:
        lines[-1] += f" (95 % interval {d.lo:+.2f} to {d.hi:+.2f})"
    if d.ratio is not None:
        lines.append(f"{d.ratio:.2g} times as often")
    if d.missing_inside or d.missing_outside:
        lines.append(f"Without a value: {d.missing_inside:,} and {d.missing_outside:,} scenarios")
    return "<br>".join(lines)


def _value(d: Difference, value: float) -> str:
    return escape(d.text(value))
