"""The quality of a latent space as figures, and as one page that opens without a network."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go

from avshift_core.errors import AVShiftError
from avshift_core.files import write_whole
from avshift_core.plots import theme
from avshift_core.plots.scenes import scene_rows
from avshift_core.quality.aims import PRECISION_AIM, R2_AIM, R2_OF, RANK_AIM
from avshift_core.quality.clusters import Clusters
from avshift_core.quality.drivewise import Estimate
from avshift_core.quality.probes import Probe
from avshift_core.quality.rank import Rank
from avshift_core.quality.report import Quality
from avshift_core.quality.retrieval import Retrieval
from avshift_core.quality.shifts import KEPT, ShiftKept
from avshift_core.scenario.store.corpus import open_corpus

SPACE_STYLES = ((theme.HEADLINE, "diamond", 12), (theme.P, "circle-open", 10), (theme.Q, "square-open", 10))
NAMES = ("probes", "retrieval", "neighbours", "spectrum", "clusters", "agreement", "shifts")
ROW = 22  # pixels of one row of a chart with names at its side
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 960px; margin: 2rem auto; padding: 0 1rem;
color: #222; background: #fff }} h1 {{ font-size: 1.5rem }} pre {{ font-size: 12px; overflow-x: auto }}
p {{ margin: .3rem 0 1rem }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def probes_figure(probes: tuple[Probe, ...]) -> go.Figure:
    """R2 and AUC of every attribute, best first; what the encoder was taught filled, the rest open."""
    figure = go.Figure()
    rows = sorted(probes, key=lambda p: (p.kind == "r2", p.score.value))
    groups = ((True, "taught", theme.P, "circle"), (False, "not taught", theme.Q, "square-open"))
    for taught, text, color, symbol in groups:
        chosen = [p for p in rows if p.trained_on == taught]
        if chosen:
            _dots(figure, [_probe_label(p) for p in chosen], [p.score for p in chosen], text, color, symbol)
    theme.base_figure(figure, 150 + ROW * len(rows))
    lowest = min([0.0, *(p.score.lo for p in rows)])
    figure.update_xaxes(title="R² of numbers, AUC of classes (0.5 is a coin), on held-out drives",
                        range=[max(lowest, -0.5) - 0.02, 1.03])
    figure.update_yaxes(categoryorder="array", categoryarray=[_probe_label(p) for p in rows], dtick=1)
    aimed = [i for i, p in enumerate(rows) if p.name in R2_OF]
    for i in aimed:
        figure.add_shape(type="line", x0=R2_AIM, x1=R2_AIM, y0=i - 0.45, y1=i + 0.45,
                         line={"color": theme.HEADLINE, "width": 3})
    if aimed:
        figure.add_scatter(x=[None], y=[_probe_label(rows[0])], mode="lines", name=f"aim {R2_AIM:g}",
                           line={"color": theme.HEADLINE, "width": 3})
    return figure


def retrieval_figure(spaces: tuple[Retrieval, ...]) -> go.Figure:
    """Precision of the ten nearest neighbours by category, of the latents, the baselines and chance."""
    figure = go.Figure()
    names = [c.category for c in sorted(spaces[0].categories, key=lambda c: c.precision.value)]
    label = lambda name: name.replace("_", " ")  # noqa: E731
    rows = [*map(label, names), "all scenarios"]
    for space, (color, symbol, size) in zip(spaces, SPACE_STYLES, strict=False):
        of = {c.category: c.precision for c in space.categories}
        _dots(figure, rows, [*(of[name] for name in names), space.precision], space.space, color, symbol, size)
    chance = {c.category: c.chance for c in spaces[0].categories}
    figure.add_scatter(x=[*(chance[n] for n in names), spaces[0].chance], y=rows, mode="markers", name="chance",
                       marker={"symbol": "line-ns", "size": 12, "line": {"color": theme.NEUTRAL, "width": 2}},
                       hovertemplate="%{y}: %{x:.3f} by chance<extra></extra>")
    figure.add_vline(x=PRECISION_AIM, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    figure.add_annotation(x=PRECISION_AIM, y=0, yref="paper", xanchor="right", yanchor="bottom", xshift=-4,
                          text=f"aim {PRECISION_AIM:g}", showarrow=False, font={"size": 11})
    theme.base_figure(figure, 120 + 28 * len(rows))
    figure.update_xaxes(title=f"Share of the {spaces[0].k} nearest scenarios of other drives with the same category",
                        range=[-0.02, 1.03])
    figure.update_yaxes(categoryorder="array", categoryarray=rows, dtick=1)
    return figure


def neighbours_figure(quality: Quality) -> go.Figure:
    """Each example and its nearest scenarios from above, with their categories."""
    ids = [name for row in quality.examples for name in row]
    scenes = dict(zip(ids, open_corpus(quality.corpus).scenarios(ids), strict=True))
    rows = [[scenes[name] for name in row] for row in quality.examples]
    return scene_rows(rows, [[s.ids.category.replace("_", " ") for s in row] for row in rows])


def spectrum_figure(rank: Rank) -> go.Figure:
    """Share of the variance of each direction, and of all up to it."""
    figure, total, summed = go.Figure(), 0.0, []
    for value in rank.eigenvalues:
        total += value
        summed.append(total)
    number = list(range(1, len(summed) + 1))
    figure.add_bar(x=number, y=rank.eigenvalues, name="one direction", marker={"color": theme.P},
                   hovertemplate="direction %{x}: %{y:.1%}<extra></extra>")
    figure.add_scatter(x=number, y=summed, name="all up to it", line={"color": theme.Q, "width": 2},
                       hovertemplate="first %{x}: %{y:.1%}<extra></extra>")
    theme.base_figure(figure, 340)
    for x, text, dash in ((rank.effective, f"effective rank {rank.effective:.1f}", "solid"),
                          (RANK_AIM, f"aim {RANK_AIM:g}", "dash")):
        figure.add_vline(x=x, line={"color": theme.HEADLINE if dash == "solid" else theme.NEUTRAL, "width": 1.5,
                                    "dash": dash})
        figure.add_annotation(x=x, y=0.55 if dash == "solid" else 0.4, yref="paper", xanchor="left", xshift=4,
                              text=text, showarrow=False)
    figure.update_xaxes(title="Direction of the standardised latents, largest first", range=[0, len(summed) + 1])
    figure.update_yaxes(title="Share of the variance", tickformat=".0%", range=[0, 1.02])
    return figure


def clusters_figure(clusters: Clusters) -> go.Figure:
    """Event rate of each cluster, as counted and after shrinkage, largest first; the dots' area is the cluster's size.
    """
    figure = go.Figure()
    order = sorted(range(clusters.n_clusters), key=lambda k: -clusters.shrunk_rate[k])
    names = [str(k) for k in order]
    largest = max(clusters.size)
    figure.add_scatter(
        x=names, y=[clusters.rate[k] for k in order], mode="markers", name="as counted",
        marker={"color": theme.P, "size": [6 + 18 * (clusters.size[k] / largest) ** 0.5 for k in order],
                "opacity": 0.65, "line": {"width": 0}},
        customdata=[clusters.size[k] for k in order],
        hovertemplate="cluster %{x}: %{y:.1%} of %{customdata:,} scenarios<extra></extra>")
    figure.add_scatter(
        x=names, y=[clusters.shrunk_rate[k] for k in order], mode="markers", name="after shrinkage",
        marker={"symbol": "line-ew", "size": 16, "line": {"color": theme.Q, "width": 3}},
        hovertemplate="cluster %{x}: %{y:.1%} after shrinkage<extra></extra>")
    theme.base_figure(figure, 380)
    top = max(clusters.mean_rate, *(rate for rate in clusters.rate if rate == rate))  # NaN in tiny clusters
    band = clusters.rate_spread.chance_high
    figure.add_hrect(y0=max(clusters.mean_rate - band, 0), y1=clusters.mean_rate + band, fillcolor=theme.BARE_FILL,
                     line_width=0, layer="below")
    figure.add_hline(y=clusters.mean_rate, line={"color": theme.NEUTRAL, "width": 1.5, "dash": "dash"})
    figure.add_annotation(x=1, xref="paper", xanchor="right", y=clusters.mean_rate + band, yanchor="bottom",
                          text=f"all scenarios {clusters.mean_rate:.1%}; grey: the spread that chance gives",
                          showarrow=False, font={"size": 11})
    figure.update_xaxes(title="Cluster, highest rate first", type="category", tickangle=0)
    figure.update_yaxes(title=f"Rate of {html.escape(clusters.event)}", tickformat=".0%",
                        range=[-0.03 * top, 1.08 * top])
    return figure


def agreement_figure(clusters: Clusters) -> go.Figure:
    """Rates of two different events over the clusters, each measured on its own half of the drives."""
    a, figure = clusters.rates, go.Figure()
    figure.add_scatter(x=a.first, y=a.second, mode="markers", name="cluster", marker={"color": theme.P, "size": 10},
                       hovertemplate="%{x:.1%} and %{y:.1%}<extra></extra>")
    theme.base_figure(figure, 400)
    figure.add_annotation(
        x=0, y=1.01, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False, align="left",
        text=f"Pearson {a.pearson:.2f}, Spearman {a.spearman:.2f} on this split of the drives; "
             f"by chance {a.chance:.2f}; first event with itself {a.same_metric:.2f}")
    margins = [[-0.03 * max(values), 1.05 * max(values)] for values in (a.first, a.second)]
    figure.update_xaxes(title=f"Rate of {html.escape(clusters.event)}, first half of the drives", tickformat=".0%",
                        range=margins[0])
    figure.update_yaxes(title=f"Rate of {html.escape(clusters.second_event)}, second half", tickformat=".0%",
                        range=margins[1])
    figure.update_layout(showlegend=False)
    return figure


def shifts_figure(shifts: tuple[ShiftKept, ...]) -> go.Figure:
    """Advantage on z against that on the true contexts, with the line that has to be reached."""
    known = [s for s in shifts if s.gamma_contexts is not None]
    figure = go.Figure()
    groups = ((False, "a true shift", theme.P, "circle"), (True, "the same traffic", theme.Q, "x"))
    for same, text, color, symbol in groups:
        chosen = [s for s in known if s.is_same == same]
        if chosen:
            figure.add_scatter(
                x=[s.gamma_contexts.value for s in chosen], y=[s.gamma_z.value for s in chosen], mode="markers",
                name=text, marker={"color": color, "symbol": symbol, "size": 10}, customdata=[s.name for s in chosen],
                error_y=_error([s.gamma_z for s in chosen], color, 1.2),
                error_x=_error([s.gamma_contexts for s in chosen], color, 0.8),
                hovertemplate="%{customdata}<br>contexts %{x:.3f}, latents %{y:.3f}<extra></extra>")
    end = 1.1 * max(0.05, *(max(s.gamma_contexts.value, s.gamma_z.hi) for s in known))
    for slope, text, dash in ((1.0, "all of it", "dot"), (KEPT, f"{KEPT:.0%} of it", "solid")):
        figure.add_scatter(x=[0, end], y=[0, slope * end], mode="lines", name=text, hoverinfo="skip",
                           line={"color": theme.NEUTRAL, "width": 1.5, "dash": dash})
    theme.base_figure(figure, 440)
    figure.update_xaxes(title="Advantage of a classifier on the true contexts", range=[-0.03 * end, end])
    figure.update_yaxes(title="Advantage on the latents", range=[-0.03 * end, end])
    return figure


def figures_of(quality: Quality) -> dict[str, tuple[str, str, Callable[[], go.Figure]]]:
    """Name -> (title, one sentence, how to draw it), of the parts that were measured."""
    found = {}
    if quality.probes:
        found["probes"] = ("What can be read from a latent", "A straight line through latent space, fitted on some "
                           "drives and judged on others.", lambda: probes_figure(quality.probes))
    if quality.retrieval:
        found["retrieval"] = ("Do neighbours look alike?", "Neighbours from other drives only; bars are 95 % intervals "
                              "from resampled drives.", lambda: retrieval_figure(quality.retrieval))
    if quality.examples:
        found["neighbours"] = ("Scenarios and their neighbours", "The first of each row was drawn at random; then its "
                               "nearest ones of other drives. Ways, and boxes at half of the time; the ego drives to "
                               "the right.", lambda: neighbours_figure(quality))
    found["spectrum"] = ("Directions in use", "Eigenvalues of the covariance of standardised latents.",
                         lambda: spectrum_figure(quality.rank))
    if quality.clusters is not None:
        found["clusters"] = ("Do clusters differ in risk?", "Rates after shrinkage are what is left when small "
                             "clusters are not believed too much.", lambda: clusters_figure(quality.clusters))
        if quality.clusters.rates is not None:
            phi = quality.clusters.phi
            found["agreement"] = ("Do two sources of events agree?", "Different metrics on different drives: what they "
                                  f"agree on is not noise. Scenario by scenario the two correlate by {phi:.2f}; near 0 "
                                  "no clusters can make them agree.", lambda: agreement_figure(quality.clusters))
    if any(s.gamma_contexts is not None for s in quality.shifts):
        found["shifts"] = ("Are the shifts kept?", "Each point is a pair of weeks or areas; above the solid line the "
                           "latents keep enough of what is there.", lambda: shifts_figure(quality.shifts))
    return found


def write_figures(quality: Quality, folder: Path) -> None:
    """Each figure as a page of its own, and all of them in index.html; no page needs a network."""
    from plotly.offline import get_plotlyjs

    from avshift_core.quality.describe import describe

    folder = Path(folder)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise AVShiftError(f"{folder} cannot be made: {error.strerror or error}. Choose another folder for the "
                           "figures.") from None
    drawn = figures_of(quality)
    for stale in set(NAMES) - set(drawn):
        (folder / f"{stale}.html").unlink(missing_ok=True)
    script = f"<script>{get_plotlyjs()}</script>"
    parts = [script]
    for name, (title, text, draw) in drawn.items():
        div = draw().to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})
        _write(folder / f"{name}.html", title, f"<p>{text}</p>{script}{div}")
        parts.append(f"<h2>{title}</h2><p>{text}</p>{div}")
    parts.append(f"<h2>In numbers</h2><pre>{html.escape(describe(quality))}</pre>")
    _write(folder / "index.html", f"Quality of model {quality.model}, view {quality.view}", "\n".join(parts))


def _write(path: Path, title: str, body: str) -> None:
    text = PAGE.format(title=html.escape(title), body=body)
    write_whole(path, lambda draft: Path(draft).write_text(text, encoding="utf-8"))


def _probe_label(probe: Probe) -> str:
    return f"{probe.name}  {'R²' if probe.kind == 'r2' else 'AUC'}"


def _error(estimates: list[Estimate], color: str, thickness: float) -> dict:
    return {"type": "data", "symmetric": False, "array": [e.hi - e.value for e in estimates],
            "arrayminus": [e.value - e.lo for e in estimates], "color": color, "thickness": thickness, "width": 3}


def _dots(figure: go.Figure, rows, estimates: list[Estimate], name: str, color: str, symbol: str, size=9) -> None:
    figure.add_scatter(
        x=[e.value for e in estimates], y=rows, mode="markers", name=name,
        marker={"color": color, "symbol": symbol, "size": size, "line": {"color": color, "width": 1.5}},
        error_x=_error(estimates, color, 1.5), customdata=[[e.lo, e.hi] for e in estimates],
        hovertemplate="%{y}: %{x:.3f}, from %{customdata[0]:.3f} to %{customdata[1]:.3f}<extra></extra>")
