"""Two AV versions: the waterfall of their difference, its parts by group, the leakage probe, power and the plan."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.power import OF_A, PER, PlanGroup, PlanRow, Power
from avshift_core.shift.version_probe import LeakageProbe
from avshift_core.shift.version_split import Split

UP, DOWN = "rgba(134, 134, 134, 0.75)", "rgba(134, 134, 134, 0.35)"
TRUTH = {"symbol": "star", "size": 13, "color": "#009E73", "line": {"color": theme.NEUTRAL, "width": 1}}
REFERENCE_NAMES = {"mean": "Mean of both", "P": "P's traffic", "Q": "Q's traffic"}
ROW = 34  # pixels of one row
LONGEST = 60  # characters of a label


def waterfall_figure(
    split: Split, reference: str, versions: tuple[str, str], truth: Mapping[str, float] | None = None, *,
    trusted: bool = True, height: int = 400,
) -> go.Figure:
    """A on P, what is not comparable, exposure and performance, B on Q.

    Args:
        truth: part -> its true value, drawn as a star at the level that the step would lead to.
        trusted: False draws the steps open, for inspection only.
    """
    first, last = (f"{_safe(name)}<br>on {side}" for name, side in zip(versions, "PQ", strict=True))
    steps = [("Not<br>comparable", "not_comparable", split.not_comparable),
             ("Exposure", "exposure", split.exposure[reference]),
             ("Performance", "performance", split.performance[reference])]
    level, levels, bars, notes, stars = split.A_P.mu, [(first, split.A_P.mu)], [], [], []
    for label, part, move in steps:
        bars.append(_step(label, level, move, trusted))
        notes.append(theme.note(f"{100 * move.mu:+.2f}", label, level + max(move.hi, 0.0), yanchor="bottom", yshift=3,
                                font={"size": 12}))
        if truth is not None and part in truth:
            stars.append((label, level + truth[part], truth[part]))
        level += move.mu
        levels.append((label, level))
    names = [first, *(label for label, *_ in steps), last]
    carried = {
        "type": "scatter", "x": [x for i in range(len(levels)) for x in (names[i], names[i + 1], None)],
        "y": [y for _, value in levels for y in (value, value, None)], "mode": "lines", "hoverinfo": "skip",
        "line": {"color": theme.NEUTRAL, "width": 1, "dash": "dot"}, "name": "level", "showlegend": False,
    }
    rates = [(first, split.A_P, theme.P, "circle"), (last, split.B_Q, theme.Q, "square")]
    notes += [theme.note(f"<b>{e.mu:.2%}</b>", label, e.hi, yanchor="bottom", yshift=3, font={"size": 12})
              for label, e, _, _ in rates]
    told = [] if not stars else [{
        "type": "scatter", "x": [x for x, *_ in stars], "y": [y for _, y, _ in stars], "mode": "markers",
        "name": "where the true step ends", "marker": TRUTH, "showlegend": True,
        "customdata": [f"true step {100 * v:+.2f} points" for *_, v in stars],
        "hovertemplate": "%{customdata}<extra></extra>",
    }]
    return theme.quick_figure([*bars, carried, *(_rate(*rate) for rate in rates), *told], {
        "annotations": notes, "bargap": 0.35, "showlegend": bool(told),
        "xaxis": {"categoryorder": "array", "categoryarray": names, "showgrid": False, "tickangle": 0,
                  "range": [-0.6, len(names) - 0.4]},
        "yaxis": {"title": {"text": "Event rate"}, "tickformat": "~%", "nticks": 7},
    }, height, top=34 if told else 20)


def references_figure(
    split: Split, truth: Mapping[str, Mapping[str, float]] | None = None, *, height: int = 330
) -> go.Figure:
    """Exposure and performance in every reference, with the truth where it is known: part -> reference -> value."""
    rows = [("performance", ref) for ref in REFERENCE_NAMES] + [("exposure", ref) for ref in REFERENCE_NAMES]
    labels = [f"{part.capitalize()}, {REFERENCE_NAMES[ref].lower() if ref == 'mean' else REFERENCE_NAMES[ref]}"
              for part, ref in rows]
    estimates = [getattr(split, part)[ref] for part, ref in rows]
    colors = [theme.HEADLINE if ref == "mean" else theme.P if ref == "P" else theme.Q for _, ref in rows]
    traces = [_dot(label, label, e, color, "diamond" if ref == "mean" else "circle" if ref == "P" else "square")
              for label, e, color, (_, ref) in zip(labels, estimates, colors, rows, strict=True)]
    if truth is not None:
        traces.append({"type": "scatter", "x": [100 * truth[part][ref] for part, ref in rows], "y": labels,
                       "mode": "markers", "name": "truth", "marker": TRUTH, "showlegend": True,
                       "hovertemplate": "truth %{x:+.2f} points<extra></extra>"})
    return _forest(traces, labels, "Percentage points", height, legend=truth is not None)


def groups_figure(
    splits: Sequence[Split], labels: Sequence[str], reference: str, *, trusted: bool = True
) -> go.Figure:
    """The performance part within every group, with its interval; right of 0 the second version has more events."""
    labels = _distinct(labels)
    traces = []
    for label, split in zip(labels, splits, strict=True):
        e = split.performance[reference]
        sure = trusted and not e.lo <= 0 <= e.hi
        traces.append(_dot(label, f"{label}: {split.in_P:,} and {split.in_Q:,} scenarios", e,
                           theme.HEADLINE if sure else theme.NEUTRAL, "diamond" if sure else "diamond-open"))
    return _forest(traces, labels, "Performance, percentage points", 80 + ROW * max(len(labels), 2))


def probe_figure(probe: LeakageProbe, *, height: int = 250) -> go.Figure:
    """Advantage before and after matching, and of the controls, with their bounds and the threshold."""
    rows = {"Before matching": probe.before, "In matched traffic": probe.matched, "Halves of P": probe.control_P,
            "Halves of Q": probe.control_Q}
    color = {"In matched traffic": theme.HEADLINE, "Halves of P": theme.P, "Halves of Q": theme.Q}
    traces = [{
        "type": "scatter", "x": [a.gamma_hat], "y": [name], "mode": "markers", "name": name,
        "marker": {"color": color.get(name, theme.NEUTRAL), "size": 11,
                   "symbol": "diamond" if name == "In matched traffic" else "circle"},
        "error_x": {"type": "data", "symmetric": False, "array": [max(0.0, a.gamma_ucb - a.gamma_hat)],
                    "arrayminus": [max(0.0, a.gamma_hat - a.gamma_lcb)], "color": color.get(name, theme.NEUTRAL),
                    "thickness": 2, "width": 5},
        "hovertemplate": f"{name}<br>{a.gamma_hat:.3f}, from {a.gamma_lcb:.3f} to {a.gamma_ucb:.3f}<extra></extra>",
    } for name, a in rows.items()]
    return theme.quick_figure(traces, {
        "showlegend": False, "shapes": [theme.vertical(probe.threshold, width=1.5, dash="dash")],
        "annotations": [theme.note("not to be trusted", probe.threshold, 1, yref="paper", yanchor="bottom",
                                   xanchor="left", font={"size": 11})],
        "xaxis": {"title": {"text": "Advantage of a classifier (0: a coin)"}, "rangemode": "tozero"},
        "yaxis": {"categoryorder": "array", "categoryarray": [*rows][::-1], "range": [-0.6, len(rows) - 0.4]},
    }, height)


def power_figure(power: Power, *, height: int = 270) -> go.Figure:
    """Smallest difference that can be seen, over how many times as many drives there are, and the observed one."""
    most = max(4.0, min(2.0 * (power.factor or 1.0), 64.0))
    times = np.geomspace(0.25, most, 60)
    curve = 100 * power.detectable / np.sqrt(times)
    observed = 100 * abs(power.observed)
    traces = [
        {"type": "scatter", "x": times, "y": curve, "mode": "lines", "name": "smallest difference seen",
         "line": {"color": theme.HEADLINE, "width": 2.5},
         "hovertemplate": "%{x:.2f} times as many drives: %{y:.2f} points<extra></extra>"},
        {"type": "scatter", "x": [times[0], times[-1]], "y": [observed, observed], "mode": "lines", "name": "observed",
         "line": {"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"}, "hoverinfo": "skip"},
        {"type": "scatter", "x": [1.0], "y": [100 * power.detectable], "mode": "markers", "name": "now",
         "marker": {"color": theme.HEADLINE, "size": 12, "symbol": "diamond"}, "hoverinfo": "skip"},
    ]
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if t <= most * 1.01]
    return theme.quick_figure(traces, {
        "xaxis": {"title": {"text": "Times as many drives of both versions"}, "type": "log", "tickvals": ticks,
                  "ticktext": [f"{t:g}" for t in ticks]},
        "yaxis": {"title": {"text": "Percentage points"}, "rangemode": "tozero"},
    }, height, top=40)


def plan_figure(
    rows: Sequence[PlanRow], groups: Sequence[PlanGroup], versions: tuple[str, str], *, most: int = 10
) -> go.Figure:
    """By how much `PER` further scenarios of each kind of traffic narrow the interval, the best first."""
    order = list(dict.fromkeys(row.group for row in rows))[:most]
    labels = dict(zip(order, _distinct([groups[g].name for g in order]), strict=True))
    traces = []
    for version, name, color in ((OF_A, versions[0], theme.P), ("B", versions[1], theme.Q)):
        own = {row.group: row for row in rows if row.version == version}
        shown = [g for g in order if g in own]
        who = _safe(name) if versions[0] != versions[1] else f"{_safe(name)} ({'P' if version == OF_A else 'Q'})"
        traces.append({
            "type": "bar", "orientation": "h", "y": [labels[g] for g in shown], "x": [100 * own[g].gain for g in shown],
            "name": f"driven by {who}",
            "marker": {"color": color, "pattern": {"shape": "" if version == OF_A else "/"}},
            "customdata": [f"{PER:,} more, so far {own[g].n:,}: half-width falls by {100 * own[g].gain:.3f} points, as "
                           f"good as {own[g].effective:.1%} more of everything" for g in shown],
            "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
        })
    return theme.quick_figure(traces, {
        "barmode": "group", "bargap": 0.3,
        "xaxis": {"title": {"text": "Interval narrower on each side, percentage points"}, "rangemode": "tozero"},
        "yaxis": {"categoryorder": "array", "categoryarray": [labels[g] for g in order][::-1], "ticklabelstandoff": 4},
    }, 100 + ROW * max(len(order), 2), top=40)


def _forest(traces: list[dict], labels: Sequence[str], title: str, height: int, legend: bool = False) -> go.Figure:
    zero = theme.vertical(0.0, width=1.5)
    return theme.quick_figure(traces, {
        "showlegend": legend, "shapes": [zero], "xaxis": {"title": {"text": title}, "nticks": 8},
        "yaxis": {"categoryorder": "array", "categoryarray": list(labels)[::-1], "ticklabelstandoff": 4,
                  "range": [-0.6, len(labels) - 0.4]},
    }, height, top=40 if legend else 20)


def _dot(label: str, told: str, e: Estimate, color: str, symbol: str) -> dict:
    points = Estimate(100 * e.mu, 100 * e.lo, 100 * e.hi, 100 * e.se)
    return {
        "type": "scatter", "x": [points.mu], "y": [label], "mode": "markers", "name": label, "showlegend": False,
        "marker": {"color": color, "size": 11, "symbol": symbol, "line": {"color": color, "width": 2}},
        "error_x": theme.whiskers([points], color),
        "hovertemplate": f"{told}<br>{points.mu:+.2f} points, from {points.lo:+.2f} to {points.hi:+.2f}<extra></extra>",
    }


def _step(label: str, base: float, move: Estimate, trusted: bool) -> dict:
    told = f"{100 * move.mu:+.2f} points, from {100 * move.lo:+.2f} to {100 * move.hi:+.2f}"
    return {
        "type": "bar", "x": [label], "y": [move.mu], "base": [base], "name": label, "showlegend": False,
        "marker": {"color": theme.CLEAR if not trusted else UP if move.mu >= 0 else DOWN,
                   "line": {"color": theme.NEUTRAL, "width": 1}},
        "error_y": theme.whiskers([move], theme.NEUTRAL, thickness=1.5),
        "hovertemplate": f"{label.replace('<br>', ' ')}: {told}<extra></extra>",
    }


def _rate(label: str, estimate: Estimate, color: str, symbol: str) -> dict:
    told = f"{estimate.mu:.2%}, from {estimate.lo:.2%} to {estimate.hi:.2%}"
    return {
        "type": "scatter", "x": [label], "y": [estimate.mu], "mode": "markers", "name": label, "showlegend": False,
        "marker": {"color": color, "size": 13, "symbol": symbol, "line": {"color": color, "width": 2}},
        "error_y": theme.whiskers([estimate], color, width=6),
        "hovertemplate": f"{label.replace('<br>', ' ')}: {told}<extra></extra>",
    }


def _safe(text: str) -> str:
    return html.escape(text[:LONGEST], quote=False)


def _distinct(labels: Sequence[str]) -> list[str]:
    """Short labels, no two the same: equal ones would share a row."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        short = _safe(label)
        seen[short] = seen.get(short, 0) + 1
        found.append(short if seen[short] == 1 else f"{short} ({seen[short]})")
    return found
