"""From the rate of P to that of Q: the contributions of the regions, and the rates of every category."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.breakdown import ELSEWHERE, UNDRAWN, Contribution, GroupRate
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.estimate import Estimate
from avshift_core.words import readable

OBSERVED, CALIBRATED, LEFT_OVER, TARGET = "Observed<br>in P", "Calibrated<br>to Q", "Left<br>over", "Observed<br>in Q"
OTHER_STEPS = {ELSEWHERE: "Else-<br>where", UNDRAWN: "Not<br>drawn"}
UP, DOWN = "rgba(134, 134, 134, 0.75)", "rgba(134, 134, 134, 0.35)"
ROW = 40  # pixels of one category
RATES = {  # field -> label, colour, marker, place in its row
    "naive": ("Observed in P", theme.P, "circle", 0.22),
    "calibrated": ("Calibrated to Q", theme.HEADLINE, "diamond", 0.0),
    "target": ("Observed in Q", theme.Q, "square", -0.22),
}


def waterfall_figure(
    parts: Sequence[Contribution], calibration: Calibration, headline: str | None, *, height: int = 400
) -> go.Figure:
    """Naive, what each region and the others add, calibrated, what is left over, target.

    Rates are dots with their intervals, steps are bars from one level to the next with the interval of the step; the
    axis begins where the rates are, not at 0.
    """
    c, level = calibration, calibration.naive.mu
    steps = [(OTHER_STEPS.get(p.k, f"<b>{p.name}</b>"), p.move) for p in parts]
    levels, bars, notes = [(OBSERVED, level)], [], []
    for label, move in [*steps, (LEFT_OVER, c.residual)]:
        if label == LEFT_OVER:
            levels.append((CALIBRATED, level))
        bars.append(_step(label, level, move))
        notes.append(theme.note(f"{100 * move.mu:+.2f}", label, level + max(move.hi, 0.0), yanchor="bottom", yshift=3,
                                font={"size": 12}))
        level += move.mu
        levels.append((label, level))
    names = [*(name for name, _ in levels), TARGET]
    carried = {  # the line that carries one level over to the next bar
        "type": "scatter", "x": [x for i in range(len(levels)) for x in (names[i], names[i + 1], None)],
        "y": [y for _, value in levels for y in (value, value, None)], "mode": "lines", "hoverinfo": "skip",
        "line": {"color": theme.NEUTRAL, "width": 1, "dash": "dot"}, "name": "level",
    }
    rates = [(OBSERVED, c.naive, theme.P, "circle"), (TARGET, c.target, theme.Q, "square"),
             (CALIBRATED, c.strata, theme.HEADLINE, "diamond") if headline else
             (CALIBRATED, c.strata, theme.NEUTRAL, "diamond-open")]
    notes += [theme.note(f"<b>{e.mu:.2%}</b>", label, e.hi, yanchor="bottom", yshift=3, font={"size": 12})
              for label, e, _, _ in rates]
    return theme.quick_figure([*bars, carried, *(_rate(*rate) for rate in rates)], {
        "annotations": notes, "showlegend": False, "bargap": 0.35,
        "xaxis": {"categoryorder": "array", "categoryarray": names, "showgrid": False, "tickangle": 0,
                  "range": [-0.6, len(names) - 0.4]},
        "yaxis": {"title": {"text": "Event rate"}, "tickformat": "~%", "nticks": 7},
    }, height, top=20)


def category_figure(groups: Sequence[GroupRate], withheld: bool = False) -> go.Figure:
    """Rates of every level of an attribute in P, calibrated and in Q; levels with too little have none.

    Args:
        withheld: whether the calibrated rates are for inspection only, and then open and grey.
    """
    labels = [_label(g) for g in groups]
    traces = []
    for field, (name, color, symbol, shift) in RATES.items():
        rows = [i for i, g in enumerate(groups) if getattr(g, field) is not None]
        values: list[Estimate] = [getattr(groups[i], field) for i in rows]
        if withheld and field == "calibrated":
            color, symbol = theme.NEUTRAL, f"{symbol}-open"
        traces.append({
            "type": "scatter", "x": [e.mu for e in values], "y": [len(groups) - 1 - i + shift for i in rows],
            "mode": "markers", "name": name, "marker": {"color": color, "size": 8, "symbol": symbol},
            "error_x": theme.whiskers(values, color, thickness=1.5, width=3),
            "customdata": [f"{labels[i]}<br>{name} {e.mu:.2%}, from {e.lo:.2%} to {e.hi:.2%}" for i, e in
                           zip(rows, values, strict=True)],
            "hovertemplate": "%{customdata}<extra></extra>",
        })
    return theme.quick_figure(traces, {
        "xaxis": {"title": {"text": "Event rate"}, "tickformat": "~%", "rangemode": "tozero"},
        "yaxis": {"tickvals": list(range(len(groups))), "ticktext": labels[::-1], "ticklabelstandoff": 4,
                  "range": [-0.6, len(groups) - 0.4]},
    }, 90 + ROW * max(len(groups), 2), top=40)


def _step(label: str, base: float, move: Estimate) -> dict:
    span = f"{100 * move.mu:+.2f} points, from {100 * move.lo:+.2f} to {100 * move.hi:+.2f}"
    return {
        "type": "bar", "x": [label], "y": [move.mu], "base": [base], "name": label,
        "marker": {"color": UP if move.mu >= 0 else DOWN, "line": {"color": theme.NEUTRAL, "width": 1}},
        "error_y": theme.whiskers([move], theme.NEUTRAL, thickness=1.5),
        "hovertemplate": f"{_one_line(label)}: {span}<extra></extra>",
    }


def _rate(label: str, estimate: Estimate, color: str, symbol: str) -> dict:
    span = f"{estimate.mu:.2%}, from {estimate.lo:.2%} to {estimate.hi:.2%}"
    return {
        "type": "scatter", "x": [label], "y": [estimate.mu], "mode": "markers", "name": label,
        "marker": {"color": color, "size": 13, "symbol": symbol, "line": {"color": color, "width": 2}},
        "error_y": theme.whiskers([estimate], color, width=6),
        "hovertemplate": f"{_one_line(label)}: {span}<extra></extra>",
    }


def _one_line(label: str) -> str:
    return label.replace("-<br>", "").replace("<br>", " ")


def _label(group: GroupRate) -> str:
    few = " (too few)" if group.small else ""
    return html.escape(f"{readable(group.level)[:40]}{few}", quote=False)
