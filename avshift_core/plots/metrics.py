"""One metric by every estimator: observed, calibrated and target, as dots with intervals."""

from __future__ import annotations

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.estimate import Estimate

LABELS = {
    "naive": "Observed in P", "strata": "Cell by cell",
    "lis": "Region by region", "lis_paper": "Region by region (paper)",
    "balance": "Balanced weights", "ipw": "Classifier weights", "aipw": "Classifier weights + model",
    "target": "Observed in Q",
}


def metrics_figure(
    calibration: Calibration, headline: str | None, truth: float | None = None, *, height: int = 320
) -> go.Figure:
    """Every estimate with its interval; the headline filled and large, open dots when it is withheld.

    Args:
        truth: the metric's true value under Q where it is known, drawn as a line.
    """
    estimates = calibration.estimates()
    traces, notes, shapes = [], [], []
    for name, label in LABELS.items():
        if estimates[name] is None:
            traces.append({"type": "scatter", "x": [None], "y": [label], "name": label})
            notes.append(theme.note("not available", 0.01, label, xref="paper", xanchor="left",
                                    font={"color": theme.NEUTRAL}))
        else:
            traces.append(_dot(name, label, estimates[name], headline))
    if truth is not None:
        shapes.append(theme.vertical(truth, color=theme.Q, width=1.5, dash="dash"))
        notes.append(theme.note(f"true rate of Q {truth:.1%}", truth, 1, yref="paper", yanchor="bottom"))
    return theme.quick_figure(traces, {
        "shapes": shapes, "annotations": notes, "showlegend": False,
        "xaxis": {"title": {"text": "Event rate"}, "tickformat": "~%", "nticks": 8},
        "yaxis": {"categoryorder": "array", "categoryarray": [*LABELS.values()][::-1],
                  "range": [-0.6, len(LABELS) - 0.4]},
    }, height)


def _dot(name: str, label: str, estimate: Estimate, headline: str | None) -> dict:
    color = {"naive": theme.P, "target": theme.Q, headline: theme.HEADLINE}.get(name, theme.NEUTRAL)
    filled = name in ("naive", "target", headline)
    symbol = "diamond" if name == headline else "square" if name == "target" else "circle"
    return {
        "type": "scatter", "x": [estimate.mu], "y": [label], "mode": "markers", "name": label,
        "marker": {"color": color, "size": 14 if name == headline else 10, "line": {"color": color, "width": 2},
                   "symbol": symbol if filled else f"{symbol}-open"},
        "error_x": theme.whiskers([estimate], color),
        "hovertemplate": f"{label}<br>{estimate.mu:.2%}, from {estimate.lo:.2%} to {estimate.hi:.2%}<extra></extra>",
    }
