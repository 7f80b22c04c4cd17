"""The choice of P and Q: what the URL says as queries, the widgets of the sidebar, what to know before comparing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from avshift_core.errors import AVShiftError, CohortError
from avshift_core.latent.cohort import MIN_DRIVES, MIN_SCENARIOS
from avshift_core.latent.corpora import cohort_name
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import counts, distinct, workspace

ALL = "all"  # what the URL calls a cohort without any restriction
FIRST, MORE = ("period", "area"), ("av_version", "category", "route", "hour")
LABELS = {"period": "Period", "area": "Area", "av_version": "AV version", "category": "Category", "route": "Route",
          "hour": "Hour of the day"}
SIDES = {"P": ("P · observed", "What was driven: its metric is re-weighted."),
         "Q": ("Q · target", "The traffic that the number is wanted for.")}


@dataclass(frozen=True)
class Size:
    """How much a query holds. drives is None where scenarios have no drive id."""

    n: int
    drives: int | None
    versions: tuple[str, ...]


def chosen(side: str, corpus: Corpus) -> CohortQuery:
    """The cohort of a side as the URL says it, or the default of the corpus."""
    text = state.value(side)
    if not text:
        return default_cohorts(corpus)[side == "Q"]
    return CohortQuery() if text == ALL else CohortQuery.parse(text)


def default_cohorts(corpus: Corpus) -> tuple[CohortQuery, CohortQuery]:
    """The last two periods in the first area; of one period only, the first two areas."""
    periods, areas = (distinct(corpus.url, corpus.fingerprint, name) for name in FIRST)
    if len(periods) > 1:
        area = areas[:1] if len(areas) > 1 else ()
        return tuple(CohortQuery(period=[period], area=area) for period in periods[-2:])
    return tuple(CohortQuery(area=[area]) for area in (*areas, *areas)[:2])


def size_of(corpus: Corpus, query: CohortQuery) -> Size:
    try:
        rows = counts(corpus.url, corpus.fingerprint, ("drive_id", "av_version"), query)
    except AVShiftError:
        return Size(0, 0, ())
    drives = None if UNKNOWN in set(rows["drive_id"]) else rows["drive_id"].nunique()
    return Size(int(rows["n"].sum()), drives, tuple(sorted(set(rows["av_version"]))))


def choose(side: str, corpus: Corpus, query: CohortQuery) -> None:
    """Widgets of one side: they show the query and write the URL."""
    title, text = SIDES[side]
    color = "blue" if side == "P" else "orange"
    st.markdown(f":{color}[**{title}**]", help=text)
    for column in FIRST:
        _values(side, column, corpus, query)
    restricted = sum(bool(getattr(query, column)) for column in MORE)
    with st.popover(f"More filters ({restricted})" if restricted else "More filters", width="stretch"):
        for column in MORE:
            _values(side, column, corpus, query)
        _saved(side, query)
    size = size_of(corpus, query)
    drives = "no drive ids" if size.drives is None else f"{size.drives:,} drives"
    st.caption(f"{size.n:,} scenarios · {drives}" if size.n else ":red[No scenario has this.]")


def _values(side: str, column: str, corpus: Corpus, query: CohortQuery) -> None:
    options, now = distinct(corpus.url, corpus.fingerprint, column), list(getattr(query, column))
    if len(options) < 2 and not now:
        return
    options = [*options, *(value for value in now if value not in options)]  # a link may ask in vain
    key = f"cohort_{side}_{column}"
    state.show(key, now)

    def changed() -> None:
        write(side, replace(query, **{column: st.session_state[key]}))

    st.multiselect(LABELS[column], options, key=key, on_change=changed, format_func=readable, placeholder="all")


def write(side: str, query: CohortQuery) -> None:
    """Put a cohort in the URL; what was about the old one goes."""
    state.go(**{side: str(query) or ALL, "region": None, "beside": None})


def swap(corpus: Corpus) -> None:
    source, target = chosen("P", corpus), chosen("Q", corpus)
    write("P", target)
    write("Q", source)


def _saved(side: str, query: CohortQuery) -> None:
    """Saved filters: take one, or keep this one under a name."""
    saved = workspace().filters.read()
    pick, name = f"saved_{side}", f"save_as_{side}"

    def take() -> None:
        text = saved.get(st.session_state[pick])
        st.session_state[pick] = None
        if text is not None:
            write(side, CohortQuery.parse(text))

    def keep() -> None:
        label = st.session_state[name].strip()[:60]
        if label:
            workspace().filters.update(lambda old: {**old, label: str(query)})
        st.session_state[name] = ""

    if saved:
        st.selectbox("Saved filter", list(saved), index=None, key=pick, on_change=take, placeholder="choose one")
    st.text_input("Save this filter as", key=name, on_change=keep, placeholder="a name, then Enter")


def check(corpus: Corpus, source: CohortQuery, target: CohortQuery) -> None:
    """Refuse two cohorts of which no comparison could come, before a job is started for them."""
    if source == target:
        raise CohortError("P and Q are the same cohort. Choose another period or area for one of them in the sidebar.")
    for side, query in (("P", source), ("Q", target)):
        n = size_of(corpus, query).n
        if n < MIN_SCENARIOS:
            raise CohortError(f"{side} ({cohort_name(query)}) has {n:,} scenarios; at least {MIN_SCENARIOS} are needed "
                              "to see any shift. Widen its period or area in the sidebar.")


def warnings(corpus: Corpus, source: CohortQuery, target: CohortQuery, view: str) -> list[str]:
    """What to know before anything is computed, one sentence each."""
    found = []
    sizes = {side: size_of(corpus, query) for side, query in (("P", source), ("Q", target))}
    names = {"P": cohort_name(source), "Q": cohort_name(target)}
    for side, size in sizes.items():
        if size.drives is None:
            found.append(f"{side} ({names[side]}) has no drive ids: scenarios count as independent, and bounds are too "
                         "tight if those of a drive are alike.")
        elif size.drives < MIN_DRIVES:
            found.append(f"{side} ({names[side]}) has {size.drives} drives; at least {MIN_DRIVES} are needed. Widen "
                         "its period or area.")
    versions = {version for size in sizes.values() for version in size.versions if version != UNKNOWN}
    if len(versions) > 1:
        advice = "choose one version, or compare the context view" if view == "full" else \
            "what calibration leaves of a metric's difference may be the version's"
        found.append(f"AV versions differ ({', '.join(sorted(versions))}), so a shift may be the car's: {advice}.")
    return found
