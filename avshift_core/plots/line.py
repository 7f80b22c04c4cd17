"""The synthetic line: densities of P and Q with the detected regions, and below them the weights."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from avshift_core.latent.benchmark import EVENT_ABOVE, LINE_TARGETS, SOURCE, line_density
from avshift_core.plots import theme
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.local import TARGET_HEAVY

POINTS = 1200  # of the grid the curves are drawn on


def line_figure(analysis: Analysis, case: str, B: float) -> go.Figure:
    """Both densities, R1.. shaded (orange: more of Q, blue: more of P), and the headline's weights at clip B."""
    x = _grid(analysis)
    p, q = line_density(SOURCE, x), line_density(LINE_TARGETS[case], x)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.62, 0.38], vertical_spacing=0.06)
    figure.add_scatter(x=x, y=p, name="P, observed", line={"color": theme.P, "width": 2.5}, row=1, col=1)
    figure.add_scatter(x=x, y=q, name="Q, target", line={"color": theme.Q, "width": 2.5, "dash": "dash"}, row=1, col=1)
    x_w, w = weight_steps(analysis, B)
    figure.add_scatter(
        x=x_w, y=w, name=f"weight given to P at clip {B:g}", line={"color": theme.HEADLINE, "width": 2, "shape": "hvh"},
        row=2, col=1,
    )
    figure.add_scatter(
        x=x, y=q / p, name="true ratio Q / P", line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dot"},
        row=2, col=1,
    )
    top = 1.15 * max(2.0, float(w.max()))
    figure.add_hline(y=1, line={"color": theme.NEUTRAL, "width": 1}, row=2, col=1)
    if top > B:
        figure.add_hline(
            y=B, line={"color": theme.NEUTRAL, "width": 1, "dash": "dash"}, annotation_text=f"clip {B:g}",
            annotation_position="top right", row=2, col=1,
        )
    figure.add_vline(x=EVENT_ABOVE, line={"color": theme.NEUTRAL, "width": 1, "dash": "dot"}, row="all", col=1)
    peak = 1.22 * float(max(p.max(), q.max()))
    figure.add_annotation(
        x=EVENT_ABOVE, y=peak, yanchor="top", xanchor="right", xshift=-4, text="an event right of here",
        showarrow=False, font={"size": 11}, row=1, col=1,
    )
    _shade(figure, analysis)
    theme.base_figure(figure, 430, top=46)
    figure.update_yaxes(title="Density", range=[0, peak], row=1, col=1)
    figure.update_yaxes(title="Weight", range=[0, top], row=2, col=1)
    figure.update_xaxes(title="Kind of scenario: position x in latent space", row=2, col=1)
    figure.update_xaxes(range=[x[0], x[-1]])
    figure.update_layout(hovermode="x unified")
    figure.update_traces(hovertemplate="%{y:.3g}")
    return figure


def weight_steps(analysis: Analysis, B: float) -> tuple[np.ndarray, np.ndarray]:
    """The headline's weights of P's scenarios along x, only where they change: the ends of each cell."""
    order = np.argsort(analysis.P.z[:, 0])
    x, w = analysis.P.z[order, 0], analysis.calibrator.cells.weights(B)[order]
    change = np.flatnonzero(np.diff(w))
    keep = np.unique(np.concatenate([[0], change, change + 1, [len(w) - 1]]))
    return x[keep], w[keep]


def intervals(label, x) -> dict[int, list[tuple[float, float]]]:
    """Stretches of equal label along x, by label; -1 is left out.

    >>> intervals(np.array([-1, 0, 0, -1, 1, 0]), np.arange(6.0))
    {0: [(1.0, 2.0), (5.0, 5.0)], 1: [(4.0, 4.0)]}
    """
    label, found = np.asarray(label), {}
    starts = np.flatnonzero(np.diff(label, prepend=-2) != 0)
    for start, end in zip(starts, [*starts[1:], len(label)], strict=True):
        if label[start] >= 0:
            found.setdefault(int(label[start]), []).append((float(x[start]), float(x[end - 1])))
    return found


def _grid(analysis: Analysis) -> np.ndarray:
    both = [analysis.P.z, analysis.Q.z]
    return np.linspace(min(float(z.min()) for z in both), max(float(z.max()) for z in both), POINTS)


def _shade(figure: go.Figure, analysis: Analysis) -> None:
    if analysis.local is None:
        return
    local = analysis.local
    x = np.concatenate([analysis.P.z[:, 0], analysis.Q.z[:, 0]])
    order = np.argsort(x)
    for index, stretches in intervals(np.concatenate([local.region_P, local.region_Q])[order], x[order]).items():
        region = local.regions[index]
        fill = theme.TARGET_HEAVY_FILL if region.direction == TARGET_HEAVY else theme.SOURCE_HEAVY_FILL
        _rectangles(figure, stretches, fill)
        low, high = max(stretches, key=lambda s: s[1] - s[0])
        figure.add_annotation(
            x=(low + high) / 2, y=1, yref="y domain", yanchor="bottom", text=f"<b>R{region.k}</b>", showarrow=False,
            yshift=-20 - 16 * (index % 2),
        )
    for bare in local.overlap_violations:
        stretches = intervals(np.where(np.isin(analysis.space.cell, bare.cells), 0, -1)[order], x[order])
        _rectangles(figure, stretches.get(0, []), theme.BARE_FILL)


def _rectangles(figure: go.Figure, stretches, fill: str) -> None:
    for low, high in stretches:
        figure.add_vrect(x0=low, x1=high, fillcolor=fill, line_width=0, layer="below", row="all", col=1)
