"""Clusters as figures: grey dots, the chosen one in colour; P blue and Q orange where they are compared."""

from __future__ import annotations

from html import escape

import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.plots.profiles import short
from avshift_core.quality.cluster_report import ClusterEvents, Partition
from avshift_core.quality.clusters import Agreement

ROW = 21
CHOSEN = "rgba(176, 92, 192, 0.35)"  # theme.HEADLINE behind a number
APART = 0.05  # adjusted p from which a difference between P and Q is drawn as one


def rates_figure(partition: Partition, events: ClusterEvents, event: str, chosen: int) -> go.Figure:
    """Event rate of every cluster, the highest above: raw with interval, and shrunk.

    Args:
        event: the event in words; chosen: the cluster in colour.
    """
    known = [k for k in range(partition.n_clusters) if events.rate[k] is not None]
    shrunk = events.measured.shrunk_rate if events.measured else [e and e.mu for e in events.rate]
    rows = sorted(known, key=lambda k: shrunk[k])
    figure = go.Figure()
    for i, k in enumerate(rows):
        figure.add_shape(type="line", x0=events.rate[k].lo, x1=events.rate[k].hi, y0=i, y1=i, opacity=0.6,
                         line={"color": _color(k, chosen), "width": 3}, layer="below")
    if events.measured:
        figure.add_vline(x=events.measured.mean_rate, line={"color": theme.NEUTRAL, "width": 1, "dash": "dot"},
                         annotation={"text": "all clusters"}, annotation_position="bottom right")
        _dots(figure, [shrunk[k] for k in rows], rows, chosen, "shrunk", "circle", partition, events)
    _dots(figure, [events.rate[k].mu for k in rows], rows, chosen, "as counted, 95 % interval", "line-ns-open",
          partition, events)
    _rows(figure, partition, rows)
    _from_zero(figure, f"Share of scenarios with “{escape(event)}”", max(events.rate[k].hi for k in rows))
    return figure


def shares_figure(partition: Partition, chosen: int) -> go.Figure:
    """Share of P and of Q in every cluster, what Q has more of above; faint where chance explains the difference."""
    ratio = [q.mu / max(p.mu, 1e-9) for p, q in zip(partition.share_P, partition.share_Q, strict=True)]
    rows = sorted(range(partition.n_clusters), key=lambda k: ratio[k])
    apart = [partition.p_adj[k] <= APART for k in rows]
    figure = go.Figure()
    for i, k in enumerate(rows):
        color = theme.Q if ratio[k] > 1 else theme.P
        figure.add_shape(type="line", x0=partition.share_P[k].mu, x1=partition.share_Q[k].mu, y0=i, y1=i,
                         layer="below", line={"color": color if apart[i] else theme.FAINT, "width": 4})
    for name, shares, color, symbol in (("P", partition.share_P, theme.P, "circle"),
                                        ("Q", partition.share_Q, theme.Q, "diamond")):
        figure.add_scatter(
            x=[shares[k].mu for k in rows], y=list(range(len(rows))), mode="markers", name=f"share of {name}",
            marker={"color": color, "symbol": symbol, "size": 10, "opacity": [1.0 if a else 0.45 for a in apart]},
            customdata=[_share_hover(partition, k) for k in rows], hovertemplate="%{customdata}<extra></extra>",
        )
    _rows(figure, partition, rows, bold=chosen)
    _from_zero(figure, "Share of the cohort's scenarios", max(e.mu for e in (*partition.share_P, *partition.share_Q)))
    return figure


def agreement_figure(agreement: Agreement, first: str, second: str) -> go.Figure:
    """Two events in each cluster, each measured on its own half of the drives."""
    rates = agreement.of == "rates"
    unit = "Rate of" if rates else "Share of all"
    figure = go.Figure(go.Scatter(
        x=list(agreement.first), y=list(agreement.second), mode="markers", showlegend=False,
        marker={"color": theme.NEUTRAL, "size": 9, "opacity": 0.8},
        hovertemplate=f"{escape(first)} %{{x:.1%}}<br>{escape(second)} %{{y:.1%}}<extra></extra>",
    ))
    theme.base_figure(figure, 320)
    figure.update_layout(margin={"b": 48})
    _from_zero(figure, f"{unit} “{escape(first)}”, one half of the drives", max(agreement.first))
    most = max(agreement.second)
    figure.update_yaxes(title=f"{unit} “{escape(second)}”,<br>other half", tickformat=".0%",
                        range=[-0.05 * most, 1.06 * most], fixedrange=True)
    return figure


def centres_figure(partition: Partition, chosen: int) -> go.Figure:
    """Every cluster as a disc of its size at its centre, with its number; a picture, distances are not to scale."""
    largest = max(partition.size)
    figure = go.Figure(go.Scatter(
        x=partition.place[:, 0].tolist(), y=partition.place[:, 1].tolist(), mode="markers+text", showlegend=False,
        text=[str(k + 1) for k in range(partition.n_clusters)], textposition="middle center",
        marker={"size": [14 + 32 * (n / largest) ** 0.5 for n in partition.size],
                "color": [CHOSEN if k == chosen else theme.FAINT for k in range(partition.n_clusters)], "opacity": 1.0,
                "line": {"width": [2 if k == chosen else 0 for k in range(partition.n_clusters)],
                         "color": theme.HEADLINE}},
        customdata=[f"<b>{k + 1} {short(partition.names[k])}</b><br>{partition.size[k]:,} scenarios<br>"
                    f"{escape(partition.group_names[partition.group[k]])}" for k in range(partition.n_clusters)],
        hovertemplate="%{customdata}<extra></extra>",
    ))
    theme.base_figure(figure, 380)
    figure.update_layout(margin={"b": 34})
    figure.update_xaxes(title="First principal axis", showticklabels=False, fixedrange=True)
    figure.update_yaxes(title="Second principal axis", showticklabels=False, fixedrange=True)
    return figure


def _color(k: int, chosen: int) -> str:
    return theme.HEADLINE if k == chosen else theme.NEUTRAL


def _dots(figure, values, rows, chosen: int, name: str, symbol: str, partition, events) -> None:
    figure.add_scatter(
        x=values, y=list(range(len(rows))), mode="markers", name=name,
        marker={"color": [_color(k, chosen) for k in rows], "size": 10, "symbol": symbol,
                "line": {"width": 2 if symbol.endswith("open") else 0}},
        customdata=[_rate_hover(partition, events, k) for k in rows], hovertemplate="%{customdata}<extra></extra>",
    )


def _rows(figure: go.Figure, partition: Partition, rows, bold: int | None = None) -> None:
    """One line a cluster, named at its side."""
    theme.base_figure(figure, 130 + ROW * len(rows), top=60)
    figure.update_layout(margin={"b": 46})
    text = [f"{short(partition.names[k], 38)}  {k + 1}" for k in rows]
    text = [f"<b>{t}</b>" if k == bold else t for k, t in zip(rows, text, strict=True)]
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=text, range=[-0.7, len(rows) - 0.3], fixedrange=True)


def _from_zero(figure: go.Figure, title: str, most: float) -> None:
    """An axis of shares with room for dots at 0."""
    figure.update_xaxes(title=title, tickformat=".0%", range=[-0.03 * most, 1.04 * most], fixedrange=True)


def _rate_hover(partition: Partition, events: ClusterEvents, k: int) -> str:
    rate = events.rate[k]
    lines = [f"<b>{k + 1} {short(partition.names[k])}</b>",
             f"{rate.mu:.1%} as counted ({rate.lo:.1%} to {rate.hi:.1%}), {partition.size[k]:,} scenarios, "
             f"{partition.drives[k]:,} drives"]
    if events.measured:
        lines.append(f"{events.measured.shrunk_rate[k]:.1%} after shrinkage; "
                     f"{events.measured.share[k]:.1%} of all events")
    return "<br>".join(lines)


def _share_hover(partition: Partition, k: int) -> str:
    p, q, ratio = partition.share_P[k], partition.share_Q[k], partition.ratio[k]
    lines = [f"<b>{k + 1} {short(partition.names[k])}</b>", f"P {p.mu:.2%} ({p.lo:.2%} to {p.hi:.2%})",
             f"Q {q.mu:.2%} ({q.lo:.2%} to {q.hi:.2%})"]
    if ratio is not None:
        lines.append(f"Q / P {ratio.mu:.2f} ({ratio.lo:.2f} to {ratio.hi:.2f})")
    return "<br>".join([*lines, f"adjusted p {partition.p_adj[k]:.2g}"])
