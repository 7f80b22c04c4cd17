"""Scenario: replay one from above, see where it stands in the comparison, and play what is nearest to it beside it."""

from __future__ import annotations

from random import getrandbits

import streamlit as st

from avshift_core.comparison import LABELS
from avshift_core.errors import AVShiftError
from avshift_core.latent.retrieve import Anchor, anchor_of, find_anchor
from avshift_core.scenario.measure.attributes import ATTRIBUTES
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.playback import Playback, playback
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.record import Record, read_latent
from avshift_core.shift.attributes import TEXTS
from avshift_core.shift.standing import Standing, is_sample, random_scenario, region_examples, standing
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import Loaded, record, scenarios
from pages.common.described import regions_of
from pages.common.frame import Desk, comparison_or_stop, frame, metric_of
from pages.common.player import player
from pages.common.similar import pictures, similar
from pages.common.text import escape, percent, span

PAGE = "pages/scenario.py"
TAGS = {"P": "blue", "Q": "orange", "": "gray"}
ACTORS = {  # what is written beside the agent that the category is about
    "agent_cutting_in": "cuts in", "agent_lane_changing": "changes lane", "agent_parallel_driving": "drives alongside",
    "agent_wrong_way_driving": "wrong way", "agent_jaywalking": "crosses", "agent_backing_up": "backs up",
}
EXPOSURE = {"duration_s": "Duration", "distance_km": "Distance driven"}
IDS = (("period", "Period"), ("area", "Area"), ("av_version", "AV version"), ("category", "Category"),
       ("drive_id", "Drive"), ("vehicle_id", "Vehicle"), ("route", "Route"), ("day", "Day"), ("hour", "Hour"),
       ("source", "Source"), ("rate_hz", "Rate of the log, Hz"))


def scenario_page(desk: Desk) -> None:
    loaded = comparison_or_stop(desk)
    wanted = state.value("scenario")
    if not wanted:
        choose(desk, loaded)
        return
    try:
        anchor, found = known(desk, loaded, wanted)
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        choose(desk, loaded, "Choose another scenario")
        return
    place = standing(loaded.analysis, anchor, state.clip_value()) if anchor is not None else None
    head(loaded, found, place)
    key_numbers(loaded, found, place)
    beside = second(desk, loaded, wanted)
    stage(desk, loaded, found, anchor, beside)
    if anchor is None:
        st.info("This scenario has no latent of the model that P and Q are compared by, so it has no neighbours here. "
                "Encode it under Data & models.", icon=":material/scatter_plot:")
    else:
        similar(desk, loaded, anchor, beside[1].scenario_id if beside is not None else "")
    with st.expander("All metrics and attributes", icon=":material/list_alt:"):
        facts(found)


def known(desk: Desk, loaded: Loaded, scenario_id: str) -> tuple[Anchor | None, Record]:
    """A scenario of the corpus, and its place in latent space where it has one; refused if there is no such."""
    a = loaded.analysis
    anchor = find_anchor(a.P, a.Q, a.space, scenario_id)
    query = {"P": loaded.comparison.source, "Q": loaded.comparison.target}.get(anchor.cohort if anchor else "", "")
    found = record(desk.corpus.url, desk.corpus.fingerprint, scenario_id, query)
    if anchor is None and loaded.comparison.latents in found.models:
        z = read_latent(desk.corpus, found, loaded.comparison.latents)
        anchor = anchor_of(a.space, scenario_id, z, str(found.values.get("drive_id", "")))
    return anchor, found


# Without an anchor --------------------------------------------------------------------------------------------------


def choose(desk: Desk, loaded: Loaded, title: str = "Choose a scenario") -> None:
    """Ways to an anchor: chance, an id, or a region."""
    analysis = loaded.analysis
    regions = () if analysis.local is None else analysis.local.regions
    st.markdown(f"### {title}")
    st.markdown("The player shows one scenario from above, and beside it the most similar ones of P and Q. Open one "
                "from the map or from a region, draw one by chance, or enter its id.")
    k = state.integer("region")
    k = k if 1 <= k <= len(regions) else 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chance(loaded, k, primary=True)
        enter_id()
        if regions:
            state.select("region", "Region", (0, *(r.k for r in regions)), 0, width=220,
                         format_func=lambda n: f"R{n}" if n else "everywhere",
                         help="Draw from this region only, and show what is typical of it.")
        state.link("pages/latent_map.py", "Latent map", icon=":material/scatter_plot:")
    if k:
        examples(desk, loaded, k)


def chance(loaded: Loaded, k: int = 0, *, primary: bool = False) -> None:
    st.button(f"Random scenario of R{k}" if k else "Random scenario", icon=":material/shuffle:", key="random",
              type="primary" if primary else "secondary", on_click=_draw, args=(loaded, k),
              help="Any scenario of P and Q, each with the same chance.")


def _draw(loaded: Loaded, k: int) -> None:
    state.go(scenario=random_scenario(loaded.analysis, getrandbits(32), k), beside=None)


def enter_id() -> None:
    def entered() -> None:
        text = st.session_state["enter_id"].strip()
        if text:
            state.go(scenario=text, beside=None)

    st.text_input("Id of a scenario", key="enter_id", on_change=entered, width=320, max_chars=500,
                  placeholder="Enter an id, then press Enter")


def examples(desk: Desk, loaded: Loaded, k: int) -> None:
    """A few scenarios that stand for a region."""
    found = region_examples(loaded.analysis, k)
    rows = {name: ids for name, ids in found.items() if ids and all(ids)}
    st.markdown(f"**Typical scenarios of R{k}**", help="One in the middle of the region, the others as different as "
                "typical ones can be, from different drives.")
    pictures(desk, loaded, list(rows.values()), [[f"{name} · {i}" for i in range(1, len(ids) + 1)]
             for name, ids in rows.items()], "region_scenes", f"Typical scenarios of region R{k}, seen from above")
    with st.container(horizontal=True):
        for name, ids in rows.items():
            for i, scenario_id in enumerate(ids, 1):
                state.link(PAGE, f"Play {name} · {i}", icon=":material/play_circle:", scenario=scenario_id, beside=None)


# The anchor ---------------------------------------------------------------------------------------------------------


def head(loaded: Loaded, found: Record, place: Standing | None) -> None:
    """What it is and where it stands, in words."""
    values = found.values
    title = " · ".join(escape(readable(values[name])) for name in ("category", "area", "period")
                       if values.get(name, UNKNOWN) != UNKNOWN)
    cohort = place.cohort if place is not None else ""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            outside = "not among the drawn" if is_sample(loaded.analysis) else "in neither P nor Q"
            st.badge(f"in {cohort}" if cohort else outside, color=TAGS[cohort],
                     help="The cohort of this comparison that the scenario belongs to.")
            if place is not None and place.region:
                st.badge(f"R{place.region}", icon=":material/my_location:", color="violet",
                         help="The region of latent space, found by the local test, that it lies in.")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            chance(loaded)
            with st.popover("Enter an id", icon=":material/search:"):
                enter_id()
            state.link("pages/latent_map.py", "On the map", icon=":material/scatter_plot:")
    st.markdown(f"### {title or 'Scenario'}")
    st.markdown(_place_words(loaded, place))
    told = [f"{label.lower()} {escape(str(values[name]))}" for name, label in IDS[2:9]
            if name != "category" and values.get(name, UNKNOWN) not in (UNKNOWN, -1)]
    st.caption(" · ".join([escape(found.scenario_id), *told]))


def _place_words(loaded: Loaded, place: Standing | None) -> str:
    if place is None or not place.cohort:
        outside = "It is not among the scenarios of P and Q that were drawn" if is_sample(loaded.analysis) else \
            "It belongs to neither of the two cohorts"
        return f"{outside}; it is placed among them by its own latent." if place else f"{outside}."
    if place.region is None:
        return f"A scenario of {place.cohort}. No regions were looked for: {escape(loaded.analysis.verdict.sentence)}"
    if place.bare:
        return f"A scenario of {place.cohort}. P has next to nothing like it: it is never weighted."
    if not place.region:
        return f"A scenario of {place.cohort}, outside of all regions: no difference was confirmed here."
    facts = regions_of(loaded).regions[place.region - 1]
    return (f"A scenario of {place.cohort} in region {facts.title} ({escape(facts.name)}), which holds "
            f"{percent(facts.p.mu)} of P ({span(facts.p)}) and {percent(facts.q.mu)} of Q ({span(facts.q)}).")


def key_numbers(loaded: Loaded, found: Record, place: Standing | None) -> None:
    B, metric = state.clip_value(), metric_of(loaded) if loaded.comparison.metrics else ""
    with st.grid(5, min_column_width=160):
        for name in ("ttc_min_s", "gap_min_m"):
            if name in found.metrics:
                st.metric(f"Smallest {LABELS[name].lower()}", measured(found, name), border=True, height="stretch",
                          help=METRICS[name].text)
        if metric:
            label = loaded.comparison.family(metric).label
            st.metric(label, _event(loaded, found, metric), loaded.comparison.phrase(metric).removeprefix(label).strip()
                      or None, delta_color="off", delta_arrow="off", border=True, height="stretch",
                      help="Whether the event that is chosen as metric in the sidebar happened in this scenario.")
        if place is not None and place.h is not None:
            st.metric("Looks like Q", f"{place.h:.2f}", border=True, height="stretch",
                      help="Held-out posterior h of the classifier: 0 is certainly P, 1 certainly Q. It was made by a "
                      "classifier that has not seen this scenario's drive. A single score has no interval.")
        if place is not None and place.w is not None:
            st.metric(f"Weight at clip {B:g}", f"{place.w:.2f}", "clipped" if place.clipped else None,
                      delta_color="off", delta_arrow="off", border=True, height="stretch",
                      help="How often this scenario of P counts when P is calibrated to the traffic of Q; 1 on "
                      "average, before the clip. Move the clip under Calibration.")
        elif place is not None:
            st.metric(f"Weight at clip {B:g}", "none", border=True, height="stretch",
                      help="Only scenarios of P are weighted.")


def measured(found: Record, name: str) -> str:
    """A value of a metric with its unit; at its cap it says so."""
    value, definition = found.metrics[name], found.definitions[name]
    if value != value:
        return "not measured"
    if definition.unit == "0/1":
        return "yes" if value else "no"
    unit = {"ratio": "", "m/s2": "m/s²", "m/s3": "m/s³"}.get(definition.unit, definition.unit)
    capped = definition.M is not None and value >= definition.M and name in METRICS
    if capped:
        return f"≥ {value:g} {unit}".strip()
    return f"{value:.2f} {unit}".strip() if abs(value) < 100 else f"{value:,.0f} {unit}".strip()


def _event(loaded: Loaded, found: Record, metric: str) -> str:
    family = loaded.comparison.family(metric)
    value = found.metrics.get(family.column)
    if value is None or value != value:
        return "not measured"
    if not family.thresholds:
        return "yes" if value else "no"
    threshold = family.thresholds[family.texts.index(metric)]
    return "yes" if (value < threshold if family.direction == "<" else value > threshold) else "no"


def facts(found: Record) -> None:
    with st.grid(3, min_column_width=300):
        st.table([{"Metric": {**LABELS, **EXPOSURE}.get(name, readable(name)), "Value": measured(found, name)}
                  for name in found.metrics], hide_index=True, border="horizontal", alt="Metrics of the scenario")
        st.table([{"Attribute": TEXTS.get(name, (about.text,))[0], "Value": _attribute(name, found.values[name])}
                  for name, about in ATTRIBUTES.items() if name in found.values and name not in ("actor", "actor_id")],
                 hide_index=True, border="horizontal", alt="Attributes of the scenario")
        st.table([{"From": label, "Value": escape(_number(found.values[name]))} for name, label in IDS
                  if name in found.values], hide_index=True, border="horizontal", alt="Where the scenario comes from")


def _attribute(name: str, value) -> str:
    unit = ATTRIBUTES[name].unit.replace("m/s2", "m/s²")
    return escape(f"{_number(value)} {unit}".strip())


def _number(value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else readable(value)


# The player ---------------------------------------------------------------------------------------------------------


def second(desk: Desk, loaded: Loaded, anchor_id: str) -> tuple[Anchor | None, Record] | None:
    """The scenario to play beside the anchor; a wrong one is said and left out."""
    wanted = state.value("beside")
    if not wanted or wanted == anchor_id:
        return None
    try:
        return known(desk, loaded, wanted)
    except AVShiftError as error:
        st.warning(f"{escape(str(error))} Only the anchor is shown.", icon=":material/warning:")
        st.button("Forget it", on_click=state.go, kwargs={"beside": None})
        return None


def stage(desk: Desk, loaded: Loaded, found: Record, anchor: Anchor | None, beside) -> None:
    """The player, or why there is nothing to play."""
    if not found.has_states:
        st.info("This scenario was imported as a latent without states, so there is nothing to play. Its neighbours "
                "in latent space are below; import its log to see it move.", icon=":material/videocam_off:")
        return
    pair = [(anchor, found)]
    if beside is not None and not beside[1].has_states:
        st.info("The scenario beside it was imported as a latent without states and cannot be played.",
                icon=":material/videocam_off:")
    elif beside is not None:
        pair.append(beside)
    with st.container(border=True):
        player([scene(desk, one, other) for one, other in pair], stamp=f"AVShift run {loaded.run}")
        if len(pair) > 1:
            name = pair[1][1].scenario_id
            with st.container(horizontal=True, vertical_alignment="center"):
                st.button("Make the right one the anchor", icon=":material/anchor:", on_click=state.go,
                          kwargs={"scenario": name, "beside": None})
                st.button("Close the right one", icon=":material/close:", on_click=state.go, kwargs={"beside": None})


def scene(desk: Desk, anchor: Anchor | None, found: Record) -> Playback:
    values = found.values
    (states,) = scenarios(desk.corpus.url, desk.corpus.fingerprint, (found.scenario_id,))
    told = [readable(values[name]) for name in ("area", "period", "av_version", "route")
            if values.get(name, UNKNOWN) != UNKNOWN]
    category = str(values.get("category", ""))
    return playback(
        states, title=" · ".join([readable(category or "scenario"), *told]), note=found.scenario_id,
        tag=anchor.cohort if anchor is not None else "", actor=int(values.get("actor", -1)),
        actor_name=ACTORS.get(category, ""),
    )


scenario_page(frame("Scenario"))
