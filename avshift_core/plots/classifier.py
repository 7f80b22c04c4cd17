"""The held-out classifier: ROC, reliability, repeats, bounds, permutations and where its variance comes from."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from avshift_core.config import AnalysisConfig
from avshift_core.plots import theme
from avshift_core.shift.c2st import GlobalTest
from avshift_core.shift.curves import Bound, Reliability, Roc, Saturation, Scores, VarianceSplit

BOUND_NAMES = {"drive": "By drive", "wilson": "Wilson (paper)", "hoeffding": "Hoeffding (paper)"}
VARIANCE_PARTS = {
    "binomial": "As if scenarios were independent", "drives": "Scenarios of a drive are alike",
    "cross_fit": "Folds used in both roles", "training": "Training anew",
}
SMALLEST_P = 1e-60  # smaller closed-form p-values are drawn here
DIAGONAL = {"color": theme.NEUTRAL, "width": 1, "dash": "dot"}


def roc_figure(roc: Roc) -> go.Figure:
    """Share of Q found against share of P called Q by mistake; the diagonal is a coin."""
    figure = go.Figure()
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", name="coin", line=DIAGONAL, hoverinfo="skip")
    figure.add_scatter(
        x=roc.fpr, y=roc.tpr, mode="lines", name="classifier, held out",
        line={"color": theme.HEADLINE, "width": 2.5}, hovertemplate="%{y:.1%} of Q at %{x:.1%} of P<extra></extra>",
    )
    theme.base_figure(figure, 340)
    figure.update_xaxes(title="Share of P called Q", range=[0, 1], tickformat=".0%")
    figure.update_yaxes(title="Share of Q called Q", range=[0, 1.005], tickformat=".0%")
    return figure


def reliability_figure(reliability: Reliability, scores: Scores) -> go.Figure:
    """What the score says against what there is, and below it how the scores of the cohorts lie."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.64, 0.36], vertical_spacing=0.06)
    low, high = float(scores.edges[0]), float(scores.edges[-1])
    figure.add_scatter(x=[low, high], y=[low, high], mode="lines", name="as it says", line=DIAGONAL, hoverinfo="skip",
                       row=1, col=1)
    r = reliability
    count = [f"{p:,} of P, {q:,} of Q" for p, q in zip(r.n_P.tolist(), r.n_Q.tolist(), strict=True)]
    figure.add_scatter(
        x=r.h, y=r.share, mode="markers", name="held-out scenarios", customdata=count,
        marker={"color": theme.HEADLINE, "size": 9},
        error_y={"type": "data", "symmetric": False, "array": r.hi - r.share, "arrayminus": r.share - r.lo,
                 "color": theme.HEADLINE, "thickness": 1.5, "width": 4},
        hovertemplate="score %{x:.3f}: share of Q %{y:.3f}<br>%{customdata}<extra></extra>", row=1, col=1,
    )
    middle = (scores.edges[:-1] + scores.edges[1:]) / 2
    for name, share, color, dash in (("P", scores.P, theme.P, "solid"), ("Q", scores.Q, theme.Q, "dash")):
        figure.add_scatter(
            x=middle, y=share, name=name, mode="lines", line={"color": color, "width": 2, "shape": "hvh", "dash": dash},
            hovertemplate=f"{name}: %{{y:.2%}} around %{{x:.3f}}<extra></extra>", row=2, col=1,
        )
    theme.base_figure(figure, 340, top=40)
    figure.update_yaxes(title="Share of Q", nticks=6, row=1, col=1)
    figure.update_yaxes(title="Scenarios", tickformat="~%", nticks=3, rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="Score h: probability of Q that the classifier gives", row=2, col=1)
    return figure


def repeats_figure(test: GlobalTest) -> go.Figure:
    """Accuracy of every repeat, their mean and its standard error; the advantage on the right."""
    figure = go.Figure()
    values = test.acc_repeats.tolist()
    place = list(range(1, len(values) + 1))
    figure.add_hrect(y0=test.acc - test.se, y1=test.acc + test.se, fillcolor=theme.FAINT, line_width=0, layer="below")
    figure.add_hline(y=test.acc, line={"color": theme.HEADLINE, "width": 1.5, "dash": "dash"})
    figure.add_hline(y=0.5, line=DIAGONAL)
    figure.add_scatter(
        x=place, y=values, mode="markers", name="accuracy", customdata=[v - 0.5 for v in values],
        marker={"color": theme.HEADLINE, "size": 11},
        hovertemplate="repeat %{x}: accuracy %{y:.4f}, advantage %{customdata:.4f}<extra></extra>",
    )
    ends = min(0.5, *values, test.acc - test.se), max(0.5, *values, test.acc + test.se)
    room = max(0.12 * (ends[1] - ends[0]), 0.01)
    low, high = ends[0] - room, ends[1] + room
    figure.add_scatter(x=[None], y=[None], yaxis="y2", showlegend=False)
    theme.base_figure(figure, 280)
    figure.update_layout(
        showlegend=False, margin_r=60,
        yaxis2={"overlaying": "y", "side": "right", "range": [low - 0.5, high - 0.5], "title": "Advantage",
                "showgrid": False, "zeroline": False, "nticks": 6},
    )
    figure.update_layout(yaxis={"title": "Held-out accuracy", "range": [low, high], "nticks": 6})
    figure.update_xaxes(title="Repeat (folds and training drawn anew)", tickvals=place, showgrid=False,
                        range=[0.4, len(values) + 0.6])
    return figure


def bounds_figure(bounds: tuple[Bound, ...], test: GlobalTest, config: AnalysisConfig) -> go.Figure:
    """The advantage with its bounds in every way they can be drawn; the one behind the verdict is filled."""
    figure = go.Figure()
    for edge, name in ((config.gamma_small, "γ small"), (config.gamma_large, "γ large")):
        figure.add_vline(x=edge, line=DIAGONAL)
        figure.add_annotation(x=edge, y=1, yref="paper", yanchor="bottom", text=f"{name} {edge:g}", showarrow=False,
                              font={"size": 11})
    for bound in bounds:
        label = BOUND_NAMES[bound.name]
        color = theme.HEADLINE if bound.used else theme.NEUTRAL
        figure.add_scatter(
            x=[test.gamma_hat], y=[label], mode="markers", name=label,
            marker={"color": color, "size": 11, "symbol": "diamond" if bound.used else "circle-open",
                    "line": {"color": color, "width": 2}},
            error_x={"type": "data", "symmetric": False, "array": [bound.gamma_ucb - test.gamma_hat],
                     "arrayminus": [test.gamma_hat - bound.gamma_lcb], "color": color, "thickness": 2.5, "width": 6},
            hovertemplate=f"{label}: {bound.gamma_lcb:.4f} to {bound.gamma_ucb:.4f}<extra></extra>",
        )
        figure.add_annotation(
            x=bound.gamma_lcb, y=label, yshift=-17, text=f"{bound.gamma_lcb:.3f}", showarrow=False, font={"size": 11},
        )
    theme.base_figure(figure, 240)
    far = max(*(b.gamma_ucb for b in bounds), config.gamma_large)
    figure.update_xaxes(title="Advantage over chance", range=[-0.03 * far, 1.08 * far], showgrid=False)
    names = [BOUND_NAMES[b.name] for b in bounds]
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], range=[-0.7, len(names) - 0.5])
    figure.update_layout(showlegend=False)
    return figure


def permutation_figure(test: GlobalTest) -> go.Figure:
    """The statistic when drives are dealt out again, and the one observed."""
    figure = go.Figure()
    figure.add_histogram(
        x=test.null, nbinsx=50, marker={"color": theme.NEUTRAL, "opacity": 0.6}, name="drives dealt out again",
        hovertemplate="%{x}: %{y} permutations<extra></extra>",
    )
    figure.add_vline(x=test.statistic, line={"color": theme.HEADLINE, "width": 2.5})
    right = test.statistic > float(test.null.mean())
    figure.add_annotation(
        x=test.statistic, y=1, yref="paper", yanchor="top", xanchor="right" if right else "left", xshift=-6 if right
        else 6, text=f"<b>observed {test.statistic:.1f}</b><br>p = {test.p_value:.3g}", align="right" if right
        else "left", showarrow=False,
    )
    theme.base_figure(figure, 280, top=20)
    ends = min(float(test.null.min()), test.statistic), max(float(test.null.max()), test.statistic)
    room = max(0.05 * (ends[1] - ends[0]), 0.5)
    figure.update_xaxes(title="(Area under the ROC curve − ½) over its error by drive",
                        range=[ends[0] - room, ends[1] + room])
    figure.update_yaxes(title="Permutations")
    figure.update_layout(showlegend=False, bargap=0.05)
    return figure


def variance_figure(split: VarianceSplit) -> go.Figure:
    """Shares of the variance of the accuracy, a bar each."""
    total = max(split.total, 1e-300)
    parts = [getattr(split, field) for field in VARIANCE_PARTS]
    labels = list(VARIANCE_PARTS.values())
    figure = go.Figure(go.Bar(
        y=labels, x=[part / total for part in parts], orientation="h", text=[f"{part / total:.0%}" for part in parts],
        textposition="outside", cliponaxis=False, marker={"color": theme.HEADLINE, "opacity": 0.8},
        customdata=[part**0.5 for part in parts],
        hovertemplate="%{y}: %{x:.1%}, standard deviation %{customdata:.4f}<extra></extra>",
    ))
    theme.base_figure(figure, 210, top=16)
    far = 1.08 * max(parts) / total if split.total > 0 else 1
    figure.update_xaxes(range=[0, far], tickformat=".0%", showgrid=False, nticks=5,
                        title="Share of the variance of the accuracy")
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1], showgrid=False)
    figure.update_layout(showlegend=False, bargap=0.35)
    return figure


def reference_figure(tests: Sequence[tuple[str, float, float, float | None]]) -> go.Figure:
    """p-values of every test, logarithmic, the smaller the farther right; permutations cannot pass their floor.

    Args:
        tests: label, p by permutation, the floor of that, and p in closed form or None.
    """
    figure = go.Figure()
    labels = [label for label, *_ in tests]
    figure.add_scatter(
        x=[floor for _, _, floor, _ in tests], y=labels, mode="markers", name="floor of the permutations",
        marker={"symbol": "line-ns", "size": 20, "color": theme.NEUTRAL, "line": {"width": 2, "color": theme.NEUTRAL}},
        hovertemplate="%{y}: no permutation p-value below %{x:.3g}<extra></extra>",
    )
    figure.add_scatter(
        x=[p for _, p, _, _ in tests], y=labels, mode="markers", name="by permutation of drives",
        marker={"symbol": "diamond", "size": 10, "color": theme.HEADLINE},
        hovertemplate="%{y}: %{x:.3g}<extra></extra>",
    )
    closed = [(label, max(p, SMALLEST_P)) for label, _, _, p in tests if p is not None]
    figure.add_scatter(
        x=[p for _, p in closed], y=[label for label, _ in closed], mode="markers",
        name="in closed form, as if scenarios were independent",
        marker={"symbol": "circle-open", "size": 10, "color": theme.NEUTRAL, "line": {"width": 2}},
        hovertemplate="%{y}, closed form: %{x:.2g}<extra></extra>",
    )
    least = min([p for _, p, _, _ in tests] + [f for _, _, f, _ in tests] + [p for _, p in closed])
    theme.base_figure(figure, 144 + 30 * len(tests), top=80)  # a legend of three lines on a narrow page
    figure.update_xaxes(type="log", title="p-value (logarithmic)", range=[log10(1.6), log10(least) - 0.3],
                        exponentformat="power", nticks=8)
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1], range=[-0.6, len(labels) - 0.4])
    return figure


def saturation_figure(found: Saturation) -> go.Figure:
    """p by the number of scenarios for shifts of different size; dotted: this comparison's number."""
    figure = go.Figure()
    for gamma, p, dash in zip(found.gamma, found.p, ("solid", "dash", "dot"), strict=True):
        figure.add_scatter(
            x=found.n, y=p, mode="lines", name=f"advantage {gamma:g}", line={"color": theme.NEUTRAL, "width": 2,
                                                                           "dash": dash},
            hovertemplate=f"advantage {gamma:g}, %{{x:,.0f}} scenarios: p = %{{y:.2g}}<extra></extra>",
        )
    figure.add_shape(**theme.vertical(found.n_te, color=theme.HEADLINE, width=1.5, dash="dot"))
    figure.add_annotation(**theme.note(f"{found.n_te:,} held out here", log10(found.n_te), 0, yref="paper",
                                       xanchor="right" if found.n_te > 10_000 else "left", yanchor="bottom",
                                       font={"size": 11}))
    theme.base_figure(figure, 260, top=40)
    figure.update_xaxes(type="log", title="Scenarios held out (logarithmic)", tickvals=[10**k for k in range(2, 7)],
                        ticktext=["100", "1,000", "10,000", "100,000", "1 million"])
    figure.update_yaxes(type="log", title="p-value", exponentformat="power", nticks=6, range=[-12.2, 0.2])
    return figure
