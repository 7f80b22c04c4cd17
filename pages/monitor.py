"""Monitor: has anything changed since the reference, week by week, however often one looks?"""

from __future__ import annotations

from math import exp

import streamlit as st

from avshift_core import __version__
from avshift_core.comparison import FIRST
from avshift_core.config import VIEWS
from avshift_core.latent.history import UNITS
from avshift_core.monitoring.watch import Watch, default_view, metric_choices
from avshift_core.plots.monitor import rates_figure, wealth_figure
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.shift.monitor import ASSUMED, MonitorConfig, Stream
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import distinct
from pages.common.exports import chart, downloads
from pages.common.frame import VIEW_NAMES, Desk, errors_as_sentences, frame
from pages.common.jobs import result_of
from pages.common.text import count, escape, percent, span

QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
ALL, MOST_METRICS = "all", 8
UNIT_NAMES = {"drive": "Drives", "day": "Days"}
WEALTH = ("What a bettor has who began with 1 and bets, drive by drive, that something has changed. Without a change "
          "it ever reaches the alarm line with a small chance only, however often one looks.")
HELP = {
    "Week": "Reference weeks are what the later ones are held against.", "Drives": "Drives of the week.",
    "Scenarios": "Scenarios of the week.", "AV": "AV versions that drove.",
    "wealth": "Wealth at the end of the week. A star marks the week in which it first reached the alarm line.",
    "rate": "Share of the week's scenarios with the event (or mean of the metric), with its 95 % interval by drive.",
}


def monitor_page(desk: Desk) -> None:
    st.title("Monitor", anchor=False)
    head = st.container()
    with st.container(border=True), errors_as_sentences():
        arguments = choices(desk.corpus)
    with errors_as_sentences():
        watch = result_of("monitor", "Looking at every week", **arguments)
    if watch is None:
        st.stop()
    with head:
        conclusion(watch)
    numbers(watch)
    with st.container(border=True):
        st.markdown("**How much speaks for a change?**", help=WEALTH)
        chart(wealth_figure(watch.monitor, watch.phrases), "monitor_wealth", f"Wealth by week. {watch.sentence}")
        if watch.monitor.alarms:
            st.caption("An alarm stays while the data of its weeks do: later weeks may take from the wealth, but not "
                       "from what it has shown. The axis ends far beyond the alarm line. To watch on, choose a "
                       "reference after the change.")
    if watch.cohorts is not None:
        with st.container(border=True):
            differences(watch, arguments["view"])
    with st.container(border=True):
        st.markdown("**Week by week**", help="Everything that was watched, one row a week.")
        weeks_table(watch)
    metrics = [s for s in watch.monitor.streams if s.rates]
    with st.grid(2, min_column_width=430):
        for s in metrics:
            with st.container(border=True):
                name = watch.phrases[s.name]
                st.markdown(f"**{escape(name)}, week by week**", help=HELP["rate"])
                chart(rates_figure(watch.monitor, s, name), f"monitor_rate_{s.name}", f"{name} in every week")
    downloads({"weeks": watch.week_rows(), "ranks": watch.drive_table()}, report=watch.report)
    identity(watch)


def choices(corpus: Corpus) -> dict:
    """What to watch; all of it stands in the URL. The answer is what the job needs."""
    periods, areas, versions = (distinct(corpus.url, corpus.fingerprint, name)
                                for name in ("period", "area", "av_version"))
    labels = metric_choices(corpus)
    with st.grid(4, min_column_width=220):
        reference = state.several("ref", "Reference", periods, periods[:min(2, max(1, len(periods) - 1))],
                                  help="Weeks that all later ones are held against. Choose weeks in which everything "
                                  "was as usual; more of them see smaller changes.")
        area = state.select("in_area", "Area", (ALL, *areas), areas[0] if len(areas) > 1 else ALL, format_func=readable,
                            help="Watch one area, or all together.")
        version = state.select("in_version", "AV version", (ALL, *versions), ALL,
                               help="Watch the weeks of one AV version only, or all.")
        view = state.select("traffic", "Traffic by", VIEWS, default_view(corpus), format_func=VIEW_NAMES.get,
                            help="Context only: what the AV did not cause; another AV version alone is then no change. "
                            "Whole scenario: the AV's own reaction included.")
        metrics = state.several("watch", "Metrics", list(labels), [m for m in FIRST[:2] if m in labels],
                                format_func=labels.get, max_selections=MOST_METRICS,
                                help="Events whose rates are watched beside the traffic.")
        alpha = alpha_field()
        unit = state.segmented("rank", "Rank", tuple(UNITS), "drive", format_func=UNIT_NAMES.get,
                               help="What is ranked as a whole. Days, where days differ more than their drives explain "
                               "(weather, roadworks of a day): fewer false alarms, but it takes longer.")
    where = CohortQuery(area=() if area == ALL else area, av_version=() if version == ALL else version)
    return {"corpus": corpus.url, "fingerprint": corpus.fingerprint, "reference": str(CohortQuery(period=reference)),
            "where": str(where), "metrics": metrics, "view": view, "alpha": alpha, "unit": unit,
            "seed": MonitorConfig(alpha, state.integer("seed", 0)).seed}


def alpha_field() -> float:
    said = state.value("level")
    if said:  # also what the field cannot show: refused with a sentence
        MonitorConfig(alpha=state.real("level", float("nan")))
    return state.number("level", "Chance of a false alarm", 0.05, min_value=0.0001, max_value=0.9999, step=0.01,
                        format="%g", help="Largest chance of ever raising an alarm without a change, over the traffic "
                        "and all metrics together, and however often one looks.")


def conclusion(watch: Watch) -> None:
    m = watch.monitor
    if m.alarms:
        st.badge("alarm", icon=":material/notifications_active:", color="red",
                 help="Some wealth has reached the alarm line. An alarm stays while the data of its weeks do.")
    else:
        st.badge("no alarm", icon=":material/check_circle:", color="green",
                 help="No wealth has reached the alarm line so far. A small change may still be there.")
    st.markdown(f"### {escape(watch.sentence)}")
    drives = sum(m.weeks[k].drives for k in m.watched)
    held = ", ".join(week.period for week in m.weeks if week.reference)
    st.caption(f"{count(len(m.watched), 'week')} with {count(drives, 'drive')} held against {escape(held)}. Without a "
               f"change, an alarm is ever raised with a chance of at most {m.config.alpha:g}, however often one looks, "
               f"if {ASSUMED[m.config.unit]}.")
    for caution in watch.cautions:
        st.warning(escape(caution), icon=":material/warning:")


def numbers(watch: Watch) -> None:
    m = watch.monitor
    reference = [week for week in m.weeks if week.reference]
    with st.grid(5, min_column_width=165):
        for s in m.streams:
            alarm = m.alarms.get(s.name)
            told = f"alarm in {m.weeks[alarm].period}" if alarm is not None else f"alarm at {m.threshold:g}"
            st.metric(watch.phrases[s.name], wealth_words(s.largest), told, **QUIET,
                      help=f"Largest wealth so far. {WEALTH} Anytime p-value {m.p_anytime(s):.2g}: the smallest level "
                      "at which an alarm would have been raised by now.")
        st.metric("Reference", f"{sum(week.drives for week in reference):,} drives",
                  f"{sum(week.scenarios for week in reference):,} scenarios", **QUIET,
                  help="What later weeks are held against. Of the traffic, half of the drives train a classifier and "
                  "the other half are ranked; of metrics, all are ranked.")


def wealth_words(log_wealth: float) -> str:
    wealth = exp(min(log_wealth, 600.0))
    return "over a million" if wealth >= 1e6 else f"{wealth:,.0f}" if wealth >= 10 else f"{wealth:.2g}"


def differences(watch: Watch, view: str) -> None:
    """The ordinary comparison of the reference with the week of the first alarm."""
    m = watch.monitor
    week = m.weeks[m.first_alarm].period
    P, Q = watch.cohorts
    st.markdown(f"**What differs in {escape(week)}**", help="The ordinary comparison of the reference (P) with the "
                "week of the first alarm (Q), and the regions of latent space that it confirmed.")
    st.markdown(escape(watch.verdict))
    if watch.places:
        st.table([{
            "Region": escape(place.name),
            "Share of the reference (P)": f"{percent(place.p.mu)} :gray[({span(place.p)})]",
            "Share of the week (Q)": f"{percent(place.q.mu)} :gray[({span(place.q)})]",
        } for place in watch.places], hide_index=True, border="horizontal", alt="Regions that differ")
    with st.container(horizontal=True):
        link = {"P": str(P), "Q": str(Q), "view": view, "region": None}
        state.link("app.py", f"Compare the reference with {week}", icon=":material/balance:", **link)
        state.link("pages/regions.py", "Its regions, with scenes", icon=":material/my_location:", **link)


def weeks_table(watch: Watch) -> None:
    m = watch.monitor
    rows, columns = [], {name: st.column_config.TextColumn(help=HELP[name]) for name in
                         ("Week", "Drives", "Scenarios", "AV")}
    for k, week in enumerate(m.weeks):
        row = {"Week": f"{week.period} (reference)" if week.reference else week.period, "Drives": f"{week.drives:,}",
               "Scenarios": f"{week.scenarios:,}", "AV": ", ".join(week.versions)}
        for s in m.streams:
            row |= stream_cells(watch, s, k)
        rows.append(row)
    for name in rows[0]:
        columns.setdefault(name, st.column_config.TextColumn(help=HELP["wealth" if "wealth" in name else "rate"]))
    st.dataframe(rows, hide_index=True, column_config=columns, alt="Every week: drives, rates and wealth",
                 key="monitor_weeks", height="content")


def stream_cells(watch: Watch, s: Stream, k: int) -> dict[str, str]:
    m, name = watch.monitor, watch.phrases[s.name]
    cells = {}
    if s.rates:
        rate = s.rates[k]
        event = all(0 <= e.mu <= 1 for e in s.rates)
        plain = f"{rate.mu:.3g} ({rate.lo:.3g} to {rate.hi:.3g})"
        cells[name] = f"{percent(rate.mu)} ({span(rate)})" if event else plain
    star = " ★" if m.alarms.get(s.name) == k else ""
    cells[f"{name}: wealth"] = "" if m.weeks[k].reference else wealth_words(s.at_end_of(k)) + star
    return cells


def identity(watch: Watch) -> None:
    latents = f" · latents `{watch.latents[:8]}`" if watch.latents else ""
    st.sidebar.caption(f"corpus `{watch.corpus_fingerprint[:8]}`{latents} · seed {watch.monitor.config.seed} · engine "
                       f"{__version__}", help="P and Q above do not matter here: the monitor has its own reference and "
                       "filter. Equal data and settings give equal numbers.")


monitor_page(frame("Monitor"))
