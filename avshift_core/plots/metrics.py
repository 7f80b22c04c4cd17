"""One metric by every estimator: observed, calibrated and target, as dots with intervals."""

from __future__ import annotations

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.calibrate import Calibration

LABELS = {
    "naive": "Observed in P", "strata": "Cell by cell",
    "lis": "Region by region", "lis_paper": "Region by region (paper)",
    "balance": "Balanced weights", "ipw": "Classifier weights", "aipw": "Classifier weights + model",
    "target": "Observed in Q",
}


def metrics_figure(calibration: Calibration, headline: str | None, truth: float | None = None) -> go.Figure:
    """Every estimate with its interval; the headline filled and large, open dots when it is withheld.

    Args:
        truth: the metric's true value under Q where it is known, drawn as a line.
    """
    estimates = calibration.estimates()
    figure = go.Figure()
    for name, label in LABELS.items():
        estimate = estimates[name]
        if estimate is None:
            figure.add_scatter(x=[None], y=[label], name=label)
            figure.add_annotation(x=0.01, xref="paper", xanchor="left", y=label, text="not available", showarrow=False,
                                  font={"color": theme.NEUTRAL})
            continue
        color = {"naive": theme.P, "target": theme.Q, headline: theme.HEADLINE}.get(name, theme.NEUTRAL)
        filled = name in ("naive", "target", headline)
        symbol = "diamond" if name == headline else "square" if name == "target" else "circle"
        figure.add_scatter(
            x=[estimate.mu], y=[label], mode="markers", name=label,
            marker={"color": color, "size": 14 if name == headline else 10, "line": {"color": color, "width": 2},
                    "symbol": symbol if filled else f"{symbol}-open"},
            error_x={"type": "data", "symmetric": False, "array": [estimate.hi - estimate.mu],
                     "arrayminus": [estimate.mu - estimate.lo], "color": color, "thickness": 2, "width": 5},
            hovertemplate=f"{label}<br>{estimate.mu:.2%}, from {estimate.lo:.2%} to {estimate.hi:.2%}<extra></extra>",
        )
    if truth is not None:
        figure.add_vline(x=truth, line={"color": theme.Q, "width": 1.5, "dash": "dash"})
        figure.add_annotation(x=truth, y=1, yref="paper", yanchor="bottom", text=f"true rate of Q {truth:.1%}",
                              showarrow=False)
    theme.base_figure(figure, 320)
    figure.update_xaxes(title="Event rate", tickformat="~%", nticks=8)
    figure.update_yaxes(categoryorder="array", categoryarray=[*LABELS.values()][::-1], range=[-0.6, len(LABELS) - 0.4])
    figure.update_layout(showlegend=False)
    return figure
