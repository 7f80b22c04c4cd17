"""Latent map: all scenarios of P and Q as a picture, to colour, to select from, and to look into."""

from __future__ import annotations

from functools import partial

import streamlit as st

from avshift_core import AVShiftError
from avshift_core.latent.lists import MEASURED
from avshift_core.latent.outline import Outline
from avshift_core.latent.pack import Stamp
from avshift_core.latent.project import Projection, Smoothed
from avshift_core.plots.map_colours import colour_options
from avshift_core.quality.clusters import N_CLUSTERS
from avshift_core.shift.gate import GLOBAL_SHIFT, NO_SHIFT
from avshift_core.shift.selected import halves, row_of_scenario, scenario_of_row
from pages.common import parts, state
from pages.common.cached import Loaded
from pages.common.described import attributes_of
from pages.common.frame import Desk, comparison_or_stop, frame, metric_of
from pages.common.jobs import result_of
from pages.common.map import Layers, Selection, drawn, latent_map, layers_of
from pages.common.mapped import SPACES, Picture, density_of, outlines_of, packed_of, picture_of
from pages.common.selection import (
    Choice,
    choice_in_link,
    details,
    lasso_in_link,
    nothing_selected,
    pane,
    write_lasso,
)
from pages.common.text import count, escape

HEIGHT, PAIR_HEIGHT = 620, 520
PARTS = {"choose": "Drives that chose the regions", "confirm": "Drives that confirmed them"}


def map_page(desk: Desk) -> None:
    loaded = comparison_or_stop(desk)
    parts.verdict_badges(loaded.analysis)
    st.markdown(f"### {conclusion(loaded)}")
    colour, space, pair = choices(loaded)
    needs_umap = space == "umap" or state.value("sel").partition(".")[2].startswith("umap")
    projection = projection_of(loaded) if needs_umap else None
    smoothed = result_of("smoothed", "Smoothing the scores", comparison=loaded.key) if colour == "h_bar" else None
    partition = None
    if colour == "cluster":
        wanted = min(max(state.integer("clusters", N_CLUSTERS), 5), 60)
        partition = result_of("clusters", f"Cutting latent space into {wanted} clusters", comparison=loaded.key,
                              n_clusters=wanted, seed=loaded.analysis.config.seed)
    if (colour == "h_bar" and smoothed is None) or (colour == "cluster" and partition is None):
        colour = "cohort"
    if space == "umap" and projection is None:
        space = "pca12"
        st.caption("Until the map is drawn, here are the first two principal axes.")
    board(desk, loaded, projection, smoothed, partition, colour, space, pair)


def projection_of(loaded: Loaded) -> Projection | None:
    """P and Q on the map of their corpus, which is drawn once for all comparisons."""
    if result_of("atlas", "Drawing the map of the corpus", **loaded.corpus) is None:
        return None
    return result_of("map", "Placing P and Q on it", **loaded.on_map)


def conclusion(loaded: Loaded) -> str:
    local, verdict = loaded.analysis.local, loaded.analysis.verdict.name
    if local is None:
        return f"Q differs from P strongly (at least {loaded.analysis.global_test.tv_lower:.0%} in total variation)." \
            if verdict == GLOBAL_SHIFT else "P and Q lie in the same places, as far as can be seen."
    asked = "No shift could be shown; regions were looked for because you asked for it"
    if not local.regions:
        return f"{asked}, and none was found." if verdict == NO_SHIFT else \
            "P and Q differ, but in no place that other drives confirm."
    names = ", ".join(f"R{r.k}" for r in local.regions[:6]) + (", …" if len(local.regions) > 6 else "")
    found = f"{count(len(local.regions), 'region')}, outlined on the map: {names}."
    return f"{asked}. Found: {found}" if verdict == NO_SHIFT else f"Q differs from P in {found}"


def choices(loaded: Loaded) -> tuple[str, str, bool]:
    """Colour, axes, and whether the two halves of the drives stand side by side."""
    options = colour_options(loaded.comparison, attributes_of(loaded))
    split = loaded.analysis.local is not None
    with st.grid(3, min_column_width=220, vertical_alignment="bottom"):
        colour = state.select("colour", "Colour by", list(options), "cohort", format_func=options.get,
                              help="A pixel shows the mean of its scenarios, whatever the order they are drawn in. "
                              "Choose a name in the legend to bring it to the front.")
        space = state.segmented("axes", "Axes", list(SPACES), "umap", format_func=_short_axes,
                                help="UMAP keeps neighbours together and bends everything else. Principal axes are "
                                "straight views of the space: distances in them are real, but most of the space is "
                                "behind them.")
        pair = state.toggle("halves", "Both halves side by side", False, disabled=not split,
                            help="The drives that chose the regions beside those that confirmed them, in one "
                            "projection: what is real is in both." if split else
                            "Regions were not looked for, so no drives chose any.")
    return colour, space, pair and split


def _short_axes(space: str) -> str:
    return {"umap": "UMAP", "pca12": "PCA 1, 2", "pca34": "PCA 3, 4"}[space]


@state.fragment
def board(desk: Desk, loaded: Loaded, projection: Projection | None, smoothed: Smoothed | None, partition, colour: str,
          space: str, pair: bool) -> None:
    """Map and selection; a lasso runs this part again and nothing else."""
    def picture_in(name: str) -> Picture | None:
        missing = name not in SPACES or (name == "umap" and projection is None)
        return None if missing else picture_of(loaded, name, projection)

    try:
        choice = choice_in_link(loaded, picture_in, partition if colour == "cluster" else None)
    except AVShiftError as error:
        st.warning(escape(str(error)), icon=":material/link_off:")
        st.button("Clear the selection", on_click=state.go, kwargs={"sel": None, "kept": None})
        choice = None
    picture = picture_of(loaded, space, projection)
    metric = metric_of(loaded) if loaded.comparison.metrics else None
    draw = partial(one_map, loaded, picture, choice, colour, metric, smoothed, partition)
    if pair:
        seen, grid, rows = [], st.grid(2, min_column_width=380), halves(loaded.analysis)
        for part, title in PARTS.items():
            with grid.cell():
                st.markdown(f"**{title}** · {count(len(rows[part]), 'scenario')}")
                seen.append(draw(part=part, height=PAIR_HEIGHT))
        trust(loaded, space, projection)
        side = st.container(border=True)
    else:
        grid = st.grid(3, min_column_width=300)  # on a narrow page the pane stands below
        with grid.cell(column_span=2):
            seen = [draw()]
            trust(loaded, space, projection)
        side = grid.cell().container(border=True)
    for selection in seen:
        open_clicked(loaded, selection)
    with side:
        if choice is None:
            nothing_selected(loaded, metric, picture)
            return
        selected = pane(loaded, choice, metric, picture)
    if selected.n:
        details(desk, loaded, choice, selected)


def one_map(
    loaded: Loaded, picture: Picture, choice: Choice | None, colour: str, metric: str | None, smoothed, partition, *,
    part: str = "", height: int = HEIGHT,
) -> Selection:
    """A map with everything that the URL says about it."""
    own = choice is not None and choice.lasso is not None and choice.lasso.space == picture.space
    stress = choice is not None and not own
    packed = packed_of(
        loaded, picture, colour, B=state.clip_value(), metric=metric, part=part, smoothed=smoothed,
        partition=partition, highlight=choice.mask if stress else None, highlighted=choice.name if stress else "")
    shapes = outlines_of(loaded, picture, partition if colour == "cluster" else None)
    name = f"map_{part}" if part else "map"

    def keep_layers() -> None:
        layers = layers_of(name)
        state.go(density=True if layers.density else None, shapes=None if layers.shapes else False)

    return latent_map(
        packed, key=name, height=height, outlines=(*shapes, *marked(loaded, picture)),
        density=density_of(loaded, picture), layers=Layers(state.value("density") == "1", state.value("shapes") != "0"),
        selection=lasso_of(loaded), on_selection=lambda: write_lasso(loaded, drawn(name)), on_layers=keep_layers,
        alt=f"{SPACES[picture.space]} of {packed.n:,} scenarios, coloured by {packed.head['colour']['title']}",
        stamp=Stamp(f"{SPACES[picture.space]} · {loaded.analysis.P.name} (P), {loaded.analysis.Q.name} (Q)",
                    f"AVShift run {loaded.run}", f"avshift_map_{picture.space}_{loaded.run}"),
        part={"choose": "drives that chose", "confirm": "drives that confirmed"}.get(part, ""),
        link="halves" if part else "",
    )


def lasso_of(loaded: Loaded):
    try:
        return lasso_in_link(loaded)
    except AVShiftError:  # said above the map
        return None


def marked(loaded: Loaded, picture: Picture) -> tuple[Outline, ...]:
    """The scenario that was looked at last, as a mark."""
    row = row_of_scenario(loaded.analysis, state.value("scenario")) if state.value("scenario") else None
    return () if row is None else (Outline("◎", (), (tuple(picture.xy[row].tolist()),), 0.0),)


def open_clicked(loaded: Loaded, selection: Selection) -> None:
    if selection.row is None:
        return
    scenario = scenario_of_row(loaded.analysis, selection.row)
    if scenario is None:
        st.info("This scenario has no id, so it cannot be replayed.", icon=":material/play_disabled:")
        return
    state.open_page("pages/scenario.py", scenario=scenario)


def trust(loaded: Loaded, space: str, projection: Projection | None) -> None:
    """How far the picture can be believed."""
    d = loaded.analysis.space.X.shape[1]
    text = f"Regions, scores and neighbours are measured in {count(d, 'dimension')}; a map is only a picture of them."
    if projection is not None and space != "pca34":
        faith = projection.umap_faith if space == "umap" else projection.pca_faith
        text += (f" Of a scenario's {faith.k} nearest neighbours this one keeps {100 * faith.kept:.0f} % beside it "
                 f"(within a sample of {count(faith.rows, 'scenario')}: trustworthiness {faith.trustworthiness:.2f}, "
                 f"continuity {faith.continuity:.2f}, of at most 1).")
    if space == "umap" and projection is not None:
        text += " " + common_map(projection)
    if space == "umap":
        text += " Distances between groups, their sizes and empty spaces mean nothing on UMAP: compare PCA."
    st.caption(text, help="Trustworthiness: neighbours on the map are neighbours in the space. Continuity: neighbours "
               "in the space are neighbours on the map. Both look only at neighbours within the sample; the share that "
               "is kept counts neighbours among all scenarios. UMAP is made of the first 30 principal components, with "
               "a fixed seed: the same corpus gives the same map on the same number of cores.")


def common_map(projection: Projection) -> str:
    """What the map was made of."""
    whole, drawn = count(projection.n_corpus, "scenario"), f"{projection.n_drawn:,}"
    text = f"It is the map of the whole corpus ({whole}): a scenario has the same place in every comparison."
    if projection.n_drawn < projection.n_corpus:
        text += (f" It was drawn from {drawn} of them; {100 * projection.placed:.0f} % of the scenarios here were not "
                 "among these and stand between those nearest to them.")
    if projection.landmarks:
        text += " It was drawn by landmarks first."
    if projection.recall < 1:
        text += (f" The search behind it has found {100 * projection.recall:.1f} % of the true neighbours (counted on "
                 f"{MEASURED} scenarios).")
    return text


map_page(frame("Latent map"))
