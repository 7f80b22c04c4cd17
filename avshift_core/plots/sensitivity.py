"""The sensitivity studies of the global test in the paper's layout, and the half-width against N_te."""

from __future__ import annotations

import re
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from avshift_core.config import AnalysisConfig
from avshift_core.plots import theme
from avshift_core.shift.sensitivity import Row, Sensitivity, Width

FAMILY, RATIO, SIZE, CAPACITY = "classifier family", "training class ratio", "training-set size", "classifier capacity"
NAMES = {
    "logistic": "Logistic<br>regression", "mlp": "MLP", "boosting": "Gradient<br>boosting",
    "forest": "Random<br>forest", "svm": "Linear<br>SVM", "knn": "k nearest<br>neighbours",
    "small mlp (32)": "Small MLP<br>32", "large mlp (256-128)": "Large MLP<br>256-128",
    "shallow boosting (depth 2)": "Shallow boosting<br>depth 2", "deep boosting (depth 8)": "Deep boosting<br>depth 8",
}
TITLES = {
    FAMILY: "Classifier family", RATIO: "Share of Q in training (Q : P)", SIZE: "Training scenarios a class",
    CAPACITY: "Capacity and regularisation",
}
WAYS = {"natural": (theme.NEUTRAL, "circle-open"), "balanced": (theme.HEADLINE, "diamond")}


def studies_figure(result: Sensitivity, config: AnalysisConfig) -> go.Figure:
    """Four panels of held-out accuracy: family, class ratio, training size, capacity; a box over the seeds each."""
    figure = make_subplots(rows=2, cols=2, subplot_titles=list(TITLES.values()), shared_yaxes="all",
                           vertical_spacing=0.2, horizontal_spacing=0.05)
    _boxes(figure, result.study(FAMILY), 1, 1)
    _ratios(figure, result.study(RATIO), 1, 2)
    _sizes(figure, result.study(SIZE), 2, 1)
    _boxes(figure, result.study(CAPACITY), 2, 2)
    for edge, dash in ((0.5, "solid"), (0.5 + config.gamma_small, "dot"), (0.5 + config.gamma_large, "dot")):
        figure.add_hline(y=edge, line={"color": theme.NEUTRAL, "width": 1, "dash": dash}, row="all", col="all")
    theme.base_figure(figure, 640, top=70)
    figure.update_layout(legend={"y": 1.06})
    figure.update_yaxes(nticks=8)
    figure.update_yaxes(title="Held-out accuracy", col=1)
    figure.update_xaxes(showgrid=False)
    return figure


def widths_figure(widths: Sequence[Width]) -> go.Figure:
    """Half of the 95 % interval of the accuracy against N_te, both logarithmic: 1 over the root is a straight line."""
    figure = go.Figure()
    n = [w.n_te for w in widths]
    figure.add_scatter(
        x=n, y=[w.binomial for w in widths], mode="lines", name="independent scenarios (binomial)",
        line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"},
        hovertemplate="N %{x:,}: ± %{y:.4f} if independent<extra></extra>",
    )
    figure.add_scatter(
        x=n, y=[w.half_width for w in widths], mode="lines+markers", name="whole drives drawn",
        line={"color": theme.HEADLINE, "width": 2.5}, marker={"size": 9, "symbol": "diamond"},
        hovertemplate="N %{x:,}: ± %{y:.4f} by drives<extra></extra>",
    )
    theme.base_figure(figure, 340, top=40)
    figure.update_xaxes(type="log", title="Held-out scenarios N<sub>te</sub>", tickvals=n,
                        ticktext=[f"{x:,}" for x in n])
    ticks = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    figure.update_yaxes(type="log", title="Half-width of the 95 % interval", tickvals=ticks)
    return figure


def _boxes(figure: go.Figure, rows: Sequence[Row], row: int, col: int) -> None:
    for r in rows:
        name = NAMES.get(r.setting, r.setting)
        figure.add_box(
            x=[name] * len(r.values), y=list(r.values), name=name, boxpoints="all", jitter=0.4, pointpos=0,
            showlegend=False, line={"color": theme.HEADLINE, "width": 1.5}, fillcolor="rgba(176, 92, 192, 0.15)",
            marker={"color": theme.HEADLINE, "size": 5}, hovertemplate="%{y:.4f}<extra></extra>", row=row, col=col,
        )


def _ratios(figure: go.Figure, rows: Sequence[Row], row: int, col: int) -> None:
    for way, (color, symbol) in WAYS.items():
        of_way = [r for r in rows if r.setting.endswith(way)]
        figure.add_scatter(
            x=[r.setting.split()[0] for r in of_way], y=[r.acc for r in of_way], mode="lines+markers",
            name=f"class ratio: {way}", line={"color": color, "width": 1.5}, marker={"symbol": symbol, "size": 9},
            error_y=_spread(of_way, color), hovertemplate=f"%{{x}} {way}: %{{y:.4f}}<extra></extra>", row=row, col=col,
        )


def _sizes(figure: go.Figure, rows: Sequence[Row], row: int, col: int) -> None:
    """Sizes that were cut to what there is stand once."""
    by_size = {int(re.sub(r"\D", "", r.setting.split()[0])): r for r in rows}
    figure.add_scatter(
        x=list(by_size), y=[r.acc for r in by_size.values()], mode="lines+markers", showlegend=False,
        line={"color": theme.HEADLINE, "width": 1.5}, marker={"symbol": "diamond", "size": 9},
        error_y=_spread(list(by_size.values()), theme.HEADLINE), row=row, col=col,
        hovertemplate="%{x:,} a class: %{y:.4f}<extra></extra>",
    )
    figure.update_xaxes(type="log", tickvals=list(by_size), ticktext=[f"{n:,}" for n in by_size], row=row, col=col)


def _spread(rows: Sequence[Row], color: str) -> dict:
    return {"type": "data", "array": [r.acc_std for r in rows], "color": color, "thickness": 1.5, "width": 4}
