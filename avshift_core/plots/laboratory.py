"""The lab as figures: errors by estimator, coverage, verdicts, regions, and weights against the exact ones."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from avshift_core.laboratory.demo import DemoTruth, RateTruth
from avshift_core.laboratory.fleet import EXACT, EstimatorCheck, FleetCheck
from avshift_core.laboratory.shares import Share, Spread
from avshift_core.plots import theme
from avshift_core.plots.metrics import LABELS
from avshift_core.shift.calibrate import HEADLINE
from avshift_core.shift.estimate import Estimate

NAMES = {**LABELS, EXACT: "Exact weights"}
SYMBOLS = {"naive": (theme.P, "circle"), HEADLINE: (theme.HEADLINE, "diamond"), "target": (theme.Q, "square"),
           EXACT: (theme.NEUTRAL, "star")}
VERDICT_NAMES = {"right": "right", "missed": "missed: no shift was seen", "wrong": "wrong"}
VERDICT_FILLS = {"right": "rgba(0, 158, 115, 0.75)", "missed": "rgba(230, 159, 0, 0.75)",
                 "wrong": "rgba(204, 51, 17, 0.75)"}
ROW, FRAME = 30, 110  # pixels of one row, and of all that is not a row


def errors_figure(check: FleetCheck) -> go.Figure:
    """Left the mean error of every estimator, right the typical one; dots with intervals over the repeats."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.06)
    for each in check.checks:
        for column, spread, what in ((1, each.bias, "mean error"), (2, each.rms, "typical error")):
            _dot(figure, NAMES[each.name], spread, *_style(each.name), what, scale=100, unit=" pp", row=1, col=column)
    theme.base_figure(figure, FRAME + ROW * len(check.checks), top=16)
    figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"}, row=1, col=1)
    figure.update_xaxes(title="Mean error, pp", row=1, col=1)
    figure.update_xaxes(title="Typical error (rms), pp", rangemode="tozero", row=1, col=2)
    _rows(figure, [NAMES[c.name] for c in check.checks])
    return figure


def coverage_figure(check: FleetCheck) -> go.Figure:
    """How often the interval of each estimator held the true rate of Q, with Wilson's interval over the repeats."""
    figure, known = go.Figure(), [c for c in check.checks if c.coverage is not None]
    for each in known:
        _dot(figure, NAMES[each.name], each.coverage, *_style(each.name), _counted(each), scale=100, unit=" %")
    figure.add_vline(x=100 * check.level, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    figure.add_annotation(x=100 * check.level, y=1, yref="paper", yanchor="bottom", xanchor="right",
                          text=f"promised {check.level:.0%}", showarrow=False)
    theme.base_figure(figure, FRAME + ROW * len(known))
    figure.update_xaxes(title="Intervals that held the true rate of Q, %", range=[-3, 103])
    _rows(figure, [NAMES[c.name] for c in known])
    return figure


def verdicts_figure(shares: Mapping[str, Share]) -> go.Figure:
    """One bar of all repeats: right, missed, wrong."""
    figure = go.Figure()
    for name, share in shares.items():
        figure.add_bar(
            x=[share.count], y=["Verdict"], orientation="h", name=VERDICT_NAMES[name],
            marker={"color": VERDICT_FILLS[name], "line": {"width": 0}},
            text=[f"{share.count}" if share.count else ""], textposition="inside", insidetextanchor="middle",
            hovertemplate=f"{VERDICT_NAMES[name]}: {share.count} of {share.n}, between {share.lo:.0%} and "
            f"{share.hi:.0%} of all such fleets<extra></extra>",
        )
    theme.base_figure(figure, 150)
    figure.update_layout(barmode="stack", bargap=0.35, legend={"traceorder": "normal"})
    figure.update_xaxes(title="Repeats", dtick=max(1, next(iter(shares.values())).n // 10))
    figure.update_yaxes(showticklabels=False)
    return figure


def regions_figure(check: FleetCheck) -> go.Figure:
    """Precision and recall of every repeat as dots, and their means with intervals."""
    figure = go.Figure()
    words = {"precision": "Precision: in a region and truly shifted", "recall": "Recall: truly shifted and in a region"}
    for name, label in words.items():
        values = [100 * float(v) for v in check.runs[name] if v == v]
        figure.add_scatter(
            x=values, y=[label] * len(values), mode="markers", name="one repeat",
            marker={"color": theme.NEUTRAL, "symbol": "circle-open", "size": 9, "opacity": 0.8},
            hovertemplate="%{x:.0f} %<extra></extra>",
        )
        _dot(figure, label, check.regions[name], theme.HEADLINE, "diamond", name, scale=100, unit=" %")
    theme.base_figure(figure, FRAME + 2 * 46, top=16)
    figure.update_xaxes(title="Scenarios, %", range=[-3, 103])
    _rows(figure, list(words.values()))
    return figure


def advantages_figure(check: FleetCheck) -> go.Figure:
    """The advantage of every repeat with its bounds, and the best possible one."""
    figure, runs = go.Figure(), check.runs
    x = [str(i + 1) for i in range(len(runs))]
    figure.add_scatter(
        x=x, y=runs["gamma_hat"], mode="markers", name="measured, with its bounds",
        marker={"color": theme.HEADLINE, "symbol": "diamond", "size": 9},
        error_y={"type": "data", "symmetric": False, "array": runs["gamma_ucb"] - runs["gamma_hat"],
                 "arrayminus": runs["gamma_hat"] - runs["gamma_lcb"], "color": theme.HEADLINE, "thickness": 1.8},
        hovertemplate="repeat %{x}: %{y:.3f}<extra></extra>",
    )
    figure.add_scatter(x=x, y=runs["gamma_star"], mode="markers", name="best possible",
                       marker={"color": theme.NEUTRAL, "symbol": "line-ew", "size": 16,
                               "line": {"color": theme.NEUTRAL, "width": 3}},
                       hovertemplate="repeat %{x}: at most %{y:.3f}<extra></extra>")
    theme.base_figure(figure, 330)
    figure.update_xaxes(title="Repeat", type="category", showgrid=False, nticks=20, tickangle=0)
    figure.update_yaxes(title="Advantage", rangemode="tozero")
    return figure


def truth_figure(estimates: Mapping[str, Estimate | None], truth: RateTruth, headline: str | None) -> go.Figure:
    """Every estimate of one metric with its interval, the exact weights, and the true rate of Q as a band."""
    figure, rows = go.Figure(), []
    for name, label in LABELS.items():
        estimate = estimates.get(name)
        if estimate is not None:
            rows.append(label)
            color, symbol = SYMBOLS.get(name, (theme.NEUTRAL, "circle-open"))
            filled = name != HEADLINE or headline is not None
            _dot(figure, label, Spread(estimate.mu, estimate.lo, estimate.hi, 0), color,
                 symbol if filled else f"{symbol}-open", "estimate", scale=100, unit=" %", digits=2)
    rows.append(NAMES[EXACT])
    _dot(figure, NAMES[EXACT], Spread(truth.exact, float("nan"), float("nan"), 0), *SYMBOLS[EXACT], "exact weights",
         scale=100, unit=" %", digits=2)
    figure.add_vrect(x0=100 * truth.lo, x1=100 * truth.hi, fillcolor=theme.TARGET_HEAVY_FILL, line_width=0,
                     layer="below")
    figure.add_vline(x=100 * truth.mu_Q, line={"color": theme.Q, "width": 2})
    figure.add_annotation(x=100 * truth.mu_Q, y=1, yref="paper", yanchor="bottom", showarrow=False,
                          text=f"true rate in the traffic of Q {truth.mu_Q:.2%}")
    theme.base_figure(figure, FRAME + ROW * len(rows))
    figure.update_xaxes(title="Event rate of P's car in the traffic of Q, %")
    _rows(figure, rows)
    return figure


def weights_figure(demo: DemoTruth, w, most: int = 4000) -> go.Figure:
    """The weight that each scenario of P got against the exact one; at most `most` of them, evenly taken."""
    figure, step = go.Figure(), max(1, -(-len(w) // most))
    exact, given = demo.w[::step], w[::step]
    figure.add_scattergl(x=exact, y=given, mode="markers", name="a scenario of P",
                         marker={"color": theme.P, "size": 5, "opacity": 0.35},
                         hovertemplate="exact %{x:.2f}, given %{y:.2f}<extra></extra>")
    top = 1.05 * max(float(exact.max()), float(given.max()), 1.2)
    figure.add_scatter(x=[0, top], y=[0, top], mode="lines", name="equal", hoverinfo="skip",
                       line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    theme.base_figure(figure, 320)
    figure.update_xaxes(title="Exact weight", range=[0, top])
    figure.update_yaxes(title="Weight given", range=[0, top])
    return figure


def _style(name: str) -> tuple[str, str]:
    return SYMBOLS.get(name, (theme.NEUTRAL, "circle-open"))


def _counted(check: EstimatorCheck) -> str:
    return f"{check.coverage.count} of {check.coverage.n} intervals"


def _dot(figure: go.Figure, row_label: str, spread: Spread | Share, color: str, symbol: str, what: str, *, scale: float,
         unit: str, digits: int = 2, row=None, col=None) -> None:
    """One dot with its interval; without an interval where it is not known."""
    known = spread.lo == spread.lo
    figure.add_scatter(
        x=[scale * spread.value], y=[row_label], mode="markers", name=row_label, showlegend=False, row=row, col=col,
        marker={"color": color, "symbol": symbol, "size": 12 if symbol.startswith("diamond") else 10,
                "line": {"color": color, "width": 2}},
        error_x={"type": "data", "symmetric": False, "array": [scale * (spread.hi - spread.value)],
                 "arrayminus": [scale * (spread.value - spread.lo)], "color": color, "thickness": 2, "width": 5}
        if known else None,
        hovertemplate=f"{row_label}<br>{what}: {scale * spread.value:.{digits}f}{unit}" + (
            f"<br>between {scale * spread.lo:.{digits}f} and {scale * spread.hi:.{digits}f}{unit}" if known else "")
        + "<extra></extra>",
    )


def _rows(figure: go.Figure, labels: list[str]) -> None:
    figure.update_layout(showlegend=False)
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1], range=[-0.6, len(labels) - 0.4])
