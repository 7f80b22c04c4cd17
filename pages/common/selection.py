"""What is selected on the map, from the URL; and the pane that shows it: counts, table, profile, scenes, to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from avshift_core import AVShiftError
from avshift_core.latent.pack import Lasso
from avshift_core.plots.profiles import profile_alt, profile_figure
from avshift_core.quality.cluster_report import Partition
from avshift_core.shift.profile import as_table, profile, telling
from avshift_core.shift.selected import (
    Selected,
    example_ids,
    kept_mask,
    map_table,
    name_to_keep,
    region_code,
    select,
    selected_table,
    shown_rows,
    to_keep,
)
from pages.common import parts, state
from pages.common.cached import Loaded, workspace
from pages.common.described import attributes_of, regions_of
from pages.common.exports import Later, chart, downloads
from pages.common.frame import Desk
from pages.common.mapped import Picture
from pages.common.scenes import scene_legend, scene_row
from pages.common.text import count, escape, percent, span

PAGE_ROWS = 2000  # of the table; more are slow to send and nobody reads them
TOLD = 10  # attributes in the profile
QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True}
COLUMNS = {
    "cohort": "Cohort", "scenario_id": "Scenario", "category": "Category", "period": "Period", "area": "Area",
    "av_version": "AV version", "ego_speed_mps": "Ego speed, m/s", "h": "Score h", "region": "Region", "event": "Event",
    "drive_id": "Drive",
}
FORMATS = {"ego_speed_mps": "%.1f", "h": "%.2f", "event": "%d"}


@dataclass(frozen=True, eq=False)
class Choice:
    """What the URL selects.

    Attributes:
        name: identity of the selection; title: for people.
        mask: (n,) pooled rows. of: the value of the URL that it comes from.
        lasso: the drawn line, where there is one.
    """

    name: str
    title: str
    mask: object
    of: str
    lasso: Lasso | None = None


def lasso_in_link(loaded: Loaded) -> Lasso | None:
    """The line that the URL says; one of another comparison does not count, because its map is another."""
    run, _, text = state.value("sel").partition(".")
    return Lasso.parse(text) if text and run == loaded.run[:6] else None


def write_lasso(loaded: Loaded, line: Lasso | None) -> None:
    state.go(sel=f"{loaded.run[:6]}.{line.text}" if line is not None else None, kept=None)


def choice_in_link(
    loaded: Loaded, picture_in: Callable[[str], Picture | None], partition: Partition | None = None
) -> Choice | None:
    """A drawn line, a kept selection, a cluster or a region, in this order.

    Args:
        picture_in: a picture by its name, None while there is none.
        partition: where the map shows clusters.
    """
    line = lasso_in_link(loaded)
    if line is not None:
        picture = picture_in(line.space)
        if picture is None:
            return None
        inside = line.mask(picture.xy, picture.extent)
        return Choice(f"lasso {line.text}", "Drawn on the map", inside, "sel", line)
    kept = state.value("kept")
    if kept:
        entry = workspace().selections.read().get(kept)
        if entry is None:
            raise AVShiftError(f"There is no kept selection called '{kept}'. It may have been removed.")
        return Choice(f"kept {kept} {entry.get('kept')}", f"Kept: {kept}", kept_mask(loaded.analysis, entry), "kept")
    cluster = state.integer("cluster")
    if partition is not None and 1 <= cluster <= partition.n_clusters:
        title = f"Cluster {cluster}: {partition.names[cluster - 1]}"
        rows = partition.cluster == cluster - 1
        return Choice(f"cluster {cluster} of {partition.n_clusters}", title, rows, "cluster")
    code, titles = region_code(loaded.analysis)
    title = f"R{state.integer('region')}"
    if partition is None and title in titles:
        name = regions_of(loaded).regions[titles.index(title)].name
        return Choice(f"region {title}", f"{title}: {name}", code == titles.index(title), "region")
    return None


# The pane ----------------------------------------------------------------------------------------------------------


def nothing_selected(loaded: Loaded, metric: str | None, picture: Picture) -> None:
    """The empty pane: detected regions and kept selections, each of which can be shown, and both cohorts as a whole."""
    st.markdown("**Select scenarios** with the lasso or the box above the map, or choose one of these:")
    if loaded.analysis.local is None or not loaded.analysis.local.regions:
        parts.regions_text(loaded.analysis)
    else:
        for facts in regions_of(loaded).regions:
            st.button(f"**{facts.title}** {escape(facts.name)}", key=f"show_{facts.title}", type="tertiary",
                      on_click=partial(state.go, region=facts.region.k),
                      help=f"{percent(facts.p.mu)} of P and {percent(facts.q.mu)} of Q lie there. Show it on the map.")
        for bare in loaded.analysis.local.overlap_violations:
            st.caption(f"V{bare.k}: {percent(bare.q_k)} of Q lies where P has next to nothing; never weighted.")
    kept = workspace().selections.read()
    if kept:
        st.markdown("**Kept selections**", help="Saved by name for everybody who uses this dashboard. The scenarios of "
                    "it that are in P or Q are shown.")
        for name, entry in list(kept.items())[:20]:
            st.button(f"{escape(name)} :gray[{entry.get('n_P', 0) + entry.get('n_Q', 0):,}]", key=f"kept_{name}",
                      type="tertiary", icon=":material/bookmark:", on_click=partial(state.go, kept=name, sel=None))
    whole(loaded, metric)
    downloads(_whole_map(loaded, picture, metric), loaded)


def whole(loaded: Loaded, metric: str | None) -> None:
    """Both cohorts in two columns: what a selection is compared with. The browser also loads what draws tables, which
    takes a second that the first lasso would have to wait."""
    a = loaded.analysis
    rows = {"Scenarios": [f"{c.n:,}" for c in (a.P, a.Q)],
            "Drives": [f"{c.n_drives:,}" if c.has_drives else "unknown" for c in (a.P, a.Q)]}
    if metric is not None:
        c = a.calibrate(state.clip_value(), metric)
        rows |= {"Event rate": [percent(rate.mu) for rate in (c.naive, c.target)],
                 f"{a.config.level:.0%} interval": [span(rate) for rate in (c.naive, c.target)]}
    st.dataframe([{"": name, "P": p, "Q": q} for name, (p, q) in rows.items()], hide_index=True,
                 alt="Scenarios, drives and event rate of P and Q", key="both_cohorts")


def pane(loaded: Loaded, choice: Choice, metric: str | None, picture: Picture) -> Selected:
    """Counts, what to do with them, and the table."""
    selected = select(loaded.analysis, choice.mask, metric)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{escape(choice.title)}**", width="stretch")
        st.button("Clear", icon=":material/close:", on_click=state.go, kwargs={choice.of: None}, key="clear_selection",
                  help="Esc on the map clears a drawn line, too.")
    if not selected.n:
        st.info("No scenario of P or Q lies here. Draw another line.", icon=":material/search_off:")
        return selected
    numbers(loaded, selected, metric)
    buttons = st.container(horizontal=True, vertical_alignment="center")
    table(loaded, choice, selected, metric)
    with buttons:  # after the table, which somebody waits for
        if choice.of != "kept":
            keep(loaded, choice, selected)
        else:
            st.button("Remove", icon=":material/delete:", on_click=remove, key="remove_kept",
                      help="Forget this kept selection. The scenarios stay.")
        rows_download(loaded, choice, selected, metric, picture)
    return selected


def numbers(loaded: Loaded, selected: Selected, metric: str | None) -> None:
    a = loaded.analysis
    level = f"{a.config.level:.0%}"
    st.markdown(f"**{selected.n:,}** of {a.P.n + a.Q.n:,} scenarios, from {count(selected.drives, 'drive')}")
    looked = " The place was chosen by eye, which the interval does not know."
    with st.grid(2, min_column_width=140, gap="small"):
        for name, number, share in (("P", selected.n_P, selected.p), ("Q", selected.n_Q, selected.q)):
            st.metric(f"Of {name}: {number:,}", percent(share.mu), f"{100 * share.lo:.2f} to {100 * share.hi:.2f} %",
                      help=f"Share of {name}'s scenarios that are selected; {level} interval by drive.{looked}",
                      **QUIET)
    lines = []
    if selected.ratio is not None:
        r = selected.ratio
        lines.append(f"**{r.mu:.2f}** times as frequent in Q as in P ({r.lo:.2f} to {r.hi:.2f}).")
    elif selected.n:
        lines.append("Only in Q." if not selected.n_P else "Only in P.")
    if metric is not None:
        told = [f"{name} {percent(rate.mu)} ({100 * rate.lo:.2f} to {100 * rate.hi:.2f})"
                for name, rate in (("P", selected.rate_P), ("Q", selected.rate_Q)) if rate is not None]
        lines.append(f"{escape(loaded.comparison.phrase(metric))}: {', '.join(told)}.")
    st.markdown("  \n".join(lines), help=f"Intervals: {level}, by drive.{looked}")


def keep(loaded: Loaded, choice: Choice, selected: Selected) -> None:
    """Save under a name; what was typed is checked when the button is pressed."""
    with st.popover("Save as region", icon=":material/bookmark_add:"):
        st.caption("Keeps the line and the ids of the scenarios for everybody who uses this dashboard.")
        st.text_input("Name", key="keep_name", max_chars=60)
        st.button("Save", key="keep", type="primary", on_click=_keep, args=(loaded, choice, selected))
        error = st.session_state.pop("keep_error", "")
        if error:
            st.error(escape(error), icon=":material/error:")


def _keep(loaded: Loaded, choice: Choice, selected: Selected) -> None:
    try:
        entry = to_keep(loaded.comparison, selected, choice.lasso.text if choice.lasso else "", choice.title)
        name = name_to_keep(st.session_state["keep_name"], ())

        def add(old):
            return {**old, name_to_keep(name, old): entry}

        workspace().selections.update(add)
    except AVShiftError as error:
        st.session_state["keep_error"] = str(error)
        return
    state.go(kept=name, sel=None)


def remove() -> None:
    name = state.value("kept")
    workspace().selections.update(lambda old: {key: entry for key, entry in old.items() if key != name})
    state.go(kept=None)


def rows_download(loaded: Loaded, choice: Choice, selected: Selected, metric: str | None, picture: Picture) -> None:
    downloads({"selection": Later(selected.n, partial(selected_table, loaded.analysis, selected.rows, metric)),
               "profile": as_table(differences_of(loaded, choice)), **_whole_map(loaded, picture, metric)}, loaded)


def _whole_map(loaded: Loaded, picture: Picture, metric: str | None) -> dict[str, Later]:
    n = loaded.analysis.sample.n
    return {"map": Later(n, lambda: map_table(loaded.analysis, picture.names, picture.xy, metric))}


def table(loaded: Loaded, choice: Choice, selected: Selected, metric: str | None) -> None:
    """The rows, 2,000 at a time; choosing one opens its replay."""
    pages, page = -(-selected.n // PAGE_ROWS), 1
    if st.session_state.get("table_of") != choice.name or st.session_state.get("table_page", 1) > pages:
        st.session_state.pop("table_page", None)  # another selection begins with its first page
    st.session_state["table_of"] = choice.name
    if pages > 1:
        page = st.number_input(f"Page of {pages}", 1, pages, key="table_page", help=f"{PAGE_ROWS:,} rows each.")
    rows = selected.rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    shown = shown_rows(loaded.analysis, rows, metric)
    first = (page - 1) * PAGE_ROWS + 1
    event = st.dataframe(
        shown, key="selected_rows", hide_index=True, height=300, on_select="rerun", selection_mode="single-row",
        alt="Selected scenarios", column_config={
            name: st.column_config.NumberColumn(label, format=FORMATS[name]) if name in FORMATS
            else st.column_config.Column(label) for name, label in COLUMNS.items()},
    )
    part = f"first {len(rows):,}" if page == 1 else f"{first:,} to {first + len(rows) - 1:,}"
    st.caption(f"{part.capitalize()} of {selected.n:,}, P and Q mixed evenly. Mark a row to replay it."
               if pages > 1 else "Mark a row to replay it.")
    marked = event.selection.rows
    if marked and "scenario_id" in shown:
        state.open_page("pages/scenario.py", scenario=str(shown["scenario_id"].iloc[marked[0]]))


# Below the map -----------------------------------------------------------------------------------------------------


def differences_of(loaded: Loaded, choice: Choice):
    return _differences(loaded.key, choice.name, loaded, choice)


@st.cache_resource(max_entries=16, show_spinner=False)
def _differences(key: str, name: str, _loaded: Loaded, _choice: Choice):
    return profile(attributes_of(_loaded), _choice.mask, _loaded.analysis.sample.drive)


def details(desk: Desk, loaded: Loaded, choice: Choice, selected: Selected) -> None:
    """What sets the selected scenarios apart, and a few of them."""
    with st.grid(2, min_column_width=480):
        with st.container(border=True):
            st.markdown("**What sets them apart from all other scenarios**", help="Difference of the means or shares "
                        "over the standard deviation (pooled): 0.2 is small, 0.8 large. Bars are 95 % intervals by "
                        "drive. It describes the selection and tests nothing.")
            shown = telling(differences_of(loaded, choice), TOLD)
            if shown:
                chart(profile_figure(shown, inside="selected", outside="others"), "selection_profile",
                      profile_alt(shown, "the selection"), loaded)
            else:
                st.caption("There are no attributes to describe them by, or everything is selected.")
        with st.container(border=True):
            st.markdown("**Scenes from it**", help="The scenario nearest to the middle in latent space, then typical "
                        "ones as different as possible; at most one a drive. Choose one to replay it.")
            for name, ids in example_ids(loaded.analysis, selected).items():
                st.markdown(f"**{name}** · {escape(getattr(loaded.analysis, name).name)}")
                scene_row(desk.corpus, ids, f"selection_{name}", empty=f"No scenario of {name} is selected.")
            scene_legend()
