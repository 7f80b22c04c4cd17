"""The most similar scenarios of an anchor: at a click, as a table to pick from, and as pictures."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.latent.inverted import K_RECALL
from avshift_core.latent.retrieve import ALL, Anchor, Neighbours, neighbours
from avshift_core.plots.scenes import scene_rows
from avshift_core.shift.standing import found_table, neighbour_table
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import Loaded, scenarios, told_of, usual_distances
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, errors_as_sentences, metric_of
from pages.common.jobs import result_of
from pages.common.text import count, escape

NUMBERS = (5, 10, 20, 50)
PICTURES = 6
COLUMNS = ("beside", "rank", "cohort", "distance", "times_usual", "far", "category", "event", "period", "area", "route",
           "scenario_id")


def similar(desk: Desk, loaded: Loaded, anchor: Anchor, beside: str) -> None:
    """The nearest scenarios of an anchor.

    Args:
        beside: id of the scenario that is played beside it, "" if none.
    """
    a, usual = loaded.analysis, usual_distances(loaded.key)
    with st.container(border=True), errors_as_sentences():
        st.markdown("**The most similar scenarios**", help=f"Distances are taken between standardised latents in all "
                    f"{a.space.X.shape[1]} dimensions, exactly; the map is only a picture of them. “Times usual” "
                    "compares with the distance at which a scenario of the same cohort usually has its neighbour of "
                    "this rank.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            k = state.segmented("k", "How many", NUMBERS, 10)
            other = {"P": "Q", "Q": "P"}.get(anchor.cohort)
            anywhere_else = state.value("whole") == "1"
            only = other is not None and state.toggle("other", "Only from the other cohort", width="content",
                                                      disabled=anywhere_else)
            drives = a.P.has_drives and state.toggle(
                "drives", "Not from its own drive", width="content",
                help="Scenarios of one drive are alike for their time and place alone.")
            whole = state.toggle("whole", "In the whole corpus", width="content",
                                 help="Look among all scenarios of the corpus, also those of neither P nor Q.")
        if whole:
            anywhere(desk, loaded, anchor, k, drives, beside)
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            for name in ("P", "Q"):
                quick(loaded, anchor, name, drives, usual)
        found = neighbours(a.P, a.Q, a.space, anchor, k, among=other if only else ALL, other_drives=drives, usual=usual)
        metric = metric_of(loaded) if loaded.comparison.metrics else ""
        table = neighbour_table(a, found, metric)
        st.markdown(near_words(found))
        key = f"near_{found.anchor.scenario_id}_{found.k}_{found.among}_{found.other_drives}"
        pick_row(loaded, key, found.scenario_id, table, metric, beside)
        near_pictures(desk, loaded, found)
        downloads({"neighbours": table}, loaded)


def quick(loaded: Loaded, anchor: Anchor, name: str, drives: bool, usual) -> None:
    a = loaded.analysis
    one = neighbours(a.P, a.Q, a.space, anchor, 1, among=name, other_drives=drives, usual=usual)
    far = ", far" if one.far[0] else ""
    st.button(f"Nearest of {name}: {one.distance[0]:.2f}{far}", icon=":material/compare:", key=f"nearest_{name}",
              on_click=state.go, kwargs={"beside": str(one.scenario_id[0])}, disabled=not one.scenario_id[0],
              help=f"Play the scenario of {name} that is nearest to the anchor beside it. The number is its distance.")


def anywhere(desk: Desk, loaded: Loaded, anchor: Anchor, k: int, drives: bool, beside: str) -> None:
    """The nearest scenarios of the whole corpus, by its index."""
    index = result_of("index", "Preparing the search in the corpus", **loaded.corpus)
    if index is None:
        return
    z = loaded.analysis.space.raw(anchor.x)
    found = index.search(z, k, scenario_id=anchor.scenario_id, drive_id=anchor.drive_id if drives else "")
    if not len(found.scenario_id):
        st.caption("There is no other scenario like it in the corpus.")
        return
    table = told_of(desk.corpus.url, desk.corpus.fingerprint, tuple(found.scenario_id.tolist()))
    table = found_table(loaded.analysis, found, table)
    whole = count(len(index.obs), "scenario")
    st.markdown(f"Among **{whole}** of the corpus. Pick a row to play it beside the anchor.")
    st.caption(f"The search has looked at {100 * found.looked_at:.0f} % of them. Of the {K_RECALL} nearest it finds "
               f"{100 * index.reach.recall:.1f} % (counted on {index.reach.anchors} scenarios, those of the same drive "
               "included). Distances are in standard deviations of the corpus.")
    pick_row(loaded, f"anywhere_{anchor.scenario_id}_{k}_{drives}", found.scenario_id, table, "", beside)
    titles = [f"{rank} · {distance:.2f}" for rank, distance in enumerate(found.distance[:PICTURES], 1)]
    ids = found.scenario_id[:PICTURES].tolist()
    pictures(desk, loaded, [ids], [titles], "anywhere_scenes",
             f"The {len(ids)} nearest scenarios of the corpus seen from above: " + "; ".join(titles))
    downloads({"neighbours_in_corpus": table}, loaded)


def near_words(found: Neighbours) -> str:
    """Whether there is anything like it."""
    where = "" if found.among == ALL else f" in {found.among}"
    if found.far[0]:
        return (f":orange-badge[far away] Its nearest neighbour{where} is {found.ratio[0]:.1f} times as far as usual: "
                f"there is hardly anything like it{where}, and what is below resembles it only roughly.")
    far = int(found.far.sum())
    rest = f"; {far} of {found.k} are far away" if far else ""
    ratio = f"{found.ratio[0]:.1f}"
    how = "about as far as usual" if ratio == "1.0" else f"{ratio} times as far as usual"
    return (f"Its nearest neighbour{where} is {how}{rest}. Pick a row to play it "
            "beside the anchor.")


def pick_row(loaded: Loaded, key: str, scenario_id: Sequence[str], table, metric: str, beside: str) -> None:
    """The table; a picked row is played beside the anchor."""
    def picked() -> None:
        rows = st.session_state[key].selection.rows
        state.go(beside=str(scenario_id[rows[0]]) if rows else None)

    table = table.assign(beside=["▶" if i == beside else "" for i in table["scenario_id"]])
    for name in ("category", "area"):
        if name in table:
            table[name] = table[name].map(readable)
    for name in ("event", "far"):
        if name in table:
            table[name] = ["yes" if value > 0 else "no" for value in table[name]]
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    st.dataframe(
        table, key=key, on_select=picked, selection_mode="single-row", hide_index=True, width="stretch",
        height="auto" if len(table) <= 10 else 390, alt="Nearest scenarios with their distances",
        column_order=[name for name in COLUMNS if name in table],
        column_config={
            "beside": text("", width=30), "rank": number("#", width=40), "cohort": text("Cohort", width=70),
            "distance": number("Distance", format="%.2f", help="In standardised latent units."),
            "times_usual": number("Times usual", format="%.2f ×"),
            "far": text("Far", help="Beyond 95 % of what is usual for its rank."),
            "category": "Category", "period": "Period", "area": "Area", "route": "Route",
            "scenario_id": "Scenario",
            "event": text(loaded.comparison.phrase(metric) if metric else "Event"),
        },
    )


def near_pictures(desk: Desk, loaded: Loaded, found: Neighbours) -> None:
    ids = tuple(str(i) for i in found.scenario_id[:PICTURES])
    titles = [f"{rank} · {cohort} · {distance:.2f}" for rank, (cohort, distance) in enumerate(
        zip(found.cohort[:PICTURES], found.distance[:PICTURES], strict=True), 1)]
    if all(ids):
        pictures(desk, loaded, [ids], [titles], "neighbour_scenes",
                 f"The {len(ids)} nearest scenarios seen from above: " + "; ".join(titles))


def pictures(
    desk: Desk, loaded: Loaded, rows: Sequence[Sequence[str]], titles: Sequence[Sequence[str]], key: str, alt: str
) -> None:
    """Small scenes in rows, by their ids; scenarios without states have none, and that is said."""
    try:
        found = scenarios(desk.corpus.url, desk.corpus.fingerprint, tuple(i for ids in rows for i in ids))
    except AVShiftError as error:
        st.caption(f":material/videocam_off: {escape(str(error))}")
        return
    scenes = {scene.ids.scenario_id: scene for scene in found}
    chart(scene_rows([[scenes[i] for i in ids] for ids in rows], titles), key, alt, loaded)
