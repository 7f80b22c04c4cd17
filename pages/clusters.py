"""Clusters: kinds of scenarios, how often events happen in them, and how P and Q fill them."""

from __future__ import annotations

import streamlit as st

from avshift_core.jobs.kinds import job_key
from avshift_core.plots.clusters import agreement_figure, centres_figure, rates_figure, shares_figure
from avshift_core.plots.profiles import profile_alt, profile_figure
from avshift_core.quality.cluster_report import FEWEST, MOST, ClusterEvents, Partition, cluster_table
from avshift_core.quality.clusters import EVENT, N_CLUSTERS, SECOND_EVENT
from avshift_core.shift.profile import as_table, telling
from pages.common import state
from pages.common.cached import Loaded
from pages.common.described import cluster_profile
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, comparison_or_stop, frame, metric_of
from pages.common.jobs import result_of
from pages.common.scenes import scene_legend, scene_row
from pages.common.tables import choose_row
from pages.common.text import escape, percent, span

SECOND = (SECOND_EVENT, EVENT)  # what is compared with the chosen event when nobody has said
HELP = {
    "Cluster": "Numbered by size, the largest first.",
    "Name": "Proposed from the attributes that set the cluster apart. It describes most of its scenarios and proves "
    "nothing.",
    "Group": "Clusters whose centres lie close together, joined by Ward's method and named the same way.",
    "Scenarios": "Of P and Q together.",
    "Share of P": "Share of P's scenarios; 95 % interval by drive.", "Share of Q": "The same of Q.",
    "Q / P": "Above 1 there is more of it in Q; 95 % interval by drive.",
    "Adjusted p": "That P and Q have the same share, drive by drive, adjusted for the number of clusters "
    "(Benjamini-Hochberg).",
    "Rate": "Share of its scenarios with the event, over P and Q; 95 % interval by drive.",
    "Shrunk rate": "The rate drawn towards the mean of all clusters, more so the fewer scenarios there are (empirical "
    "Bayes, with drives counted): what to rank clusters by.",
    "Share of events": "Share of all events that happen in the cluster.",
}


def clusters(desk: Desk) -> None:
    loaded = comparison_or_stop(desk)
    head = st.container()
    wanted, event, second = choices(loaded)
    arguments = {"comparison": loaded.key, "n_clusters": wanted, "seed": loaded.analysis.config.seed}
    partition = result_of("clusters", f"Cutting latent space into {wanted} clusters", **arguments)
    if partition is None:
        st.stop()
    events = event and result_of("cluster_events", "Events by cluster", event=event, second=second, **arguments)
    with head:
        conclusion(loaded, partition, events)
    charts = st.container()
    rows = cluster_table(partition, events)
    chosen = table(rows)
    differences = cluster_profile(loaded, partition, job_key("clusters", arguments), chosen)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Choose a row for its profile and scenes; click a column to sort.", width="stretch")
        downloads({"clusters": rows, f"profile_{chosen + 1}": as_table(differences)}, loaded)
    with charts:
        overview(loaded, partition, events, chosen)
    detail(desk, loaded, partition, differences, chosen)
    with st.grid(2, min_column_width=480):
        with st.container(border=True):
            groups(loaded, partition, chosen)
        if events is not None:
            with st.container(border=True):
                agreement(loaded, events)


def choices(loaded: Loaded) -> tuple[int, str | None, str | None]:
    """Number of clusters and the two events."""
    metrics = loaded.comparison.metrics
    with st.grid(3, min_column_width=230):
        wanted = int(state.number("clusters", "Number of clusters", N_CLUSTERS, min_value=FEWEST, max_value=MOST,
                                  step=1, help="The paper has 27. Fewer are easier to read, more are purer."))
        if not metrics:
            return wanted, None, None
        event = metric_of(loaded)
        phrase, family = loaded.comparison.phrase, loaded.comparison.family
        st.text_input("Event (chosen in the sidebar)", phrase(event), disabled=True, key=f"of_{event}",
                      help="The event whose rates are shown: the metric of all pages.")
        others = [m for m in metrics if family(m) != family(event)] or list(metrics)
        default = next((m for m in SECOND if m in others), others[0])
        second = state.select("second", "Second source of events", others, default, format_func=phrase,
                              help="Another event, to see whether both find the same clusters risky.")
    return wanted, event, second


def conclusion(loaded: Loaded, partition: Partition, events: ClusterEvents | None) -> None:
    apart = [k for k in range(partition.n_clusters) if partition.p_adj[k] <= 0.05]
    first = f"None of the {partition.n_clusters} clusters has a clearly different share in Q than in P"
    if apart:
        most = max(apart, key=lambda k: abs(partition.share_Q[k].mu - partition.share_P[k].mu))
        more = "rises" if partition.share_Q[most].mu > partition.share_P[most].mu else "falls"
        has = "has" if len(apart) == 1 else "have"
        first = (f"{len(apart)} of {partition.n_clusters} clusters {has} another share in Q than in P; "
                 f"“{escape(partition.names[most])}” {more} most, from "
                 f"{percent(partition.share_P[most].mu)} to {percent(partition.share_Q[most].mu)}")
    st.markdown(f"### {first}.")
    st.caption(
        f"{loaded.analysis.sample.n:,} scenarios of P and Q in {partition.n_clusters} clusters of latent space "
        f"(k-means, without looking at P, Q or any label). {spread_words(events)}")


def spread_words(events: ClusterEvents | None) -> str:
    m = events.measured if events else None
    if m is None:
        return ""
    word = "far more than" if m.rate_spread.raw > 2 * m.rate_spread.chance_high else (
        "more than" if m.rate_spread.p_value <= 0.05 else "not clearly more than")
    return (f"Event rates differ between clusters by {100 * m.rate_spread.raw:.1f} percentage points (standard "
            f"deviation), {word} the {100 * m.rate_spread.chance:.1f} that chance alone would give.")


def table(rows) -> int:
    """All clusters; the answer is the chosen one."""
    shown = [row(r) for r in rows.to_dict("records")]
    number = lambda label, help, width: st.column_config.NumberColumn(  # noqa: E731
        label, help=HELP[help], width=width, format="%.1f %%")
    columns = {
        "Cluster": st.column_config.NumberColumn(help=HELP["Cluster"], width=70),
        "Scenarios": st.column_config.NumberColumn(help=HELP["Scenarios"], width=90, format="localized"),
        "Shrunk %": number("Shrunk rate", "Shrunk rate", 100),
        "Events %": number("Share of events", "Share of events", 125),
        "Adjusted p": st.column_config.NumberColumn(help=HELP["Adjusted p"], width=100, format="%.2g"),
    }
    columns = {name: setting for name, setting in columns.items() if name in shown[0]}
    return choose_row("cluster", shown, help=HELP, columns=columns, height=390,
                      alt="Clusters with their names, sizes, event rates and shares of P and Q")


def row(r: dict) -> dict:
    ratio = "cannot be told" if r["ratio"] != r["ratio"] else (
        f"{r['ratio']:.2f} ({r['ratio_lo']:.2f} to {r['ratio_hi']:.2f})")
    shown = {"Cluster": r["cluster"], "Name": r["name"], "Scenarios": r["scenarios"]}
    if "rate" in r:
        shown |= {"Rate": interval(r, "rate"), "Shrunk %": 100 * r["rate_shrunk"],
                  "Events %": 100 * r["share_of_events"]}
    return shown | {"Share of P": interval(r, "share_P"), "Share of Q": interval(r, "share_Q"), "Q / P": ratio,
                    "Adjusted p": r["p_adj"], "Group": r["group"]}


def interval(r: dict, name: str) -> str:
    """A share with its interval; spaces in front, so that sorting the text sorts the numbers."""
    if r[name] != r[name]:
        return ""
    return f"{100 * r[name]:5.1f} % ({100 * r[f'{name}_lo']:.1f} to {100 * r[f'{name}_hi']:.1f})"


def detail(desk: Desk, loaded: Loaded, partition: Partition, differences, k: int) -> None:
    """Profile and scenes of one cluster."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Cluster {k + 1}: {escape(partition.names[k])}**", width="stretch")
            state.link("pages/latent_map.py", "Show on the map", icon=":material/scatter_plot:", colour="cluster")
        shown = telling(differences)
        if shown:
            st.markdown("What sets it apart from all other scenarios", help="Difference of the means or shares over "
                        "the standard deviation (pooled): 0.2 is small, 0.8 large. Bars are 95 % intervals by drive; "
                        "triangles lie beyond the edge. It describes the cluster and tests nothing.")
            chart(profile_figure(shown, inside="in the cluster", outside="elsewhere"), "cluster_profile",
                  profile_alt(shown, f"cluster {k + 1}"), loaded)
        else:
            st.caption("The table has no attributes to describe it by.")
        scenes(desk, loaded, partition, k)


def scenes(desk: Desk, loaded: Loaded, partition: Partition, k: int) -> None:
    st.markdown("Scenes that stand for it", help="The scenario nearest to the cluster's centre in latent space, then "
                "typical ones as different as possible; at most one a drive. Choose one to replay it.")
    for name, cohort, rows in (("P", loaded.analysis.P, partition.scenes_P[k]),
                               ("Q", loaded.analysis.Q, partition.scenes_Q[k])):
        st.markdown(f"**{name}** · {escape(cohort.name)}")
        ids = [str(cohort.obs["scenario_id"].iloc[r]) for r in rows] if "scenario_id" in cohort.obs else []
        scene_row(desk.corpus, ids, f"cluster_{name}", empty=f"No scenario of {name} lies here.")
    scene_legend()


def overview(loaded: Loaded, partition: Partition, events: ClusterEvents | None, chosen: int) -> None:
    """All clusters at a glance: P against Q, and events."""
    phrase = loaded.comparison.phrase
    with st.grid(2, min_column_width=480):
        with st.container(border=True):
            st.markdown("**P against Q**", help="Faint where chance explains the difference (adjusted p above 0.05, "
                        "drive by drive). Clusters were cut without looking at P or Q.")
            chart(shares_figure(partition, chosen), "cluster_shares", "Share of P and of Q in every cluster", loaded)
        with st.container(border=True):
            if events is None:
                st.caption("No events are known, or they are still being counted.")
            else:
                st.markdown(f"**{escape(phrase(events.event))}**", help="Dots are rates drawn towards the mean of all "
                            "clusters, ticks the counted ones with their 95 % interval by drive.")
                chart(rates_figure(partition, events, phrase(events.event), chosen), "cluster_rates",
                      "Event rate of every cluster", loaded)


def groups(loaded: Loaded, partition: Partition, chosen: int) -> None:
    st.markdown("**Groups of clusters**", help=HELP["Group"] + " The picture shows the centres on two principal axes "
                "of latent space; clusters that overlap there may be far apart in the other dimensions.")
    for g, (name, shares) in enumerate(zip(partition.group_names, partition.group_shares, strict=True)):
        own = [k for k in range(partition.n_clusters) if partition.group[k] == g]
        numbers = ", ".join(str(k + 1) for k in own)
        st.markdown(f"{escape(name)} · :blue[{percent(shares.p.mu)}] ({span(shares.p)}) of P, "
                    f":orange[{percent(shares.q.mu)}] ({span(shares.q)}) of Q  \n"
                    f":small[:gray[{'cluster' if len(own) == 1 else 'clusters'} {numbers}]]")
    chart(centres_figure(partition, chosen), "cluster_centres", "Clusters as discs on two principal axes", loaded)


def agreement(loaded: Loaded, events: ClusterEvents) -> None:
    phrase, m = loaded.comparison.phrase, events.measured
    st.markdown("**Do two sources of events agree?**", help="Each event is measured on its own half of the drives, so "
                "that what both owe to the same scenarios does not count as agreement.")
    if m is None:
        st.info(escape(events.reason), icon=":material/info:")
        return
    of = state.segmented("agree", "Compare", ("rates", "shares"), "rates", format_func=str.capitalize,
                         help="Rates: events over scenarios of a cluster. Shares: of all events; they follow the "
                         "clusters' sizes, so rates are the harder test.")
    found = m.rates if of == "rates" else m.shares
    if found is None:
        st.info("One of the two events hardly varies between the clusters: there is no correlation to speak of. "
                "Choose a more frequent event.", icon=":material/info:")
        return
    chart(agreement_figure(found, phrase(events.event), phrase(events.second_event)), "cluster_agreement",
          f"{of} of two events over {found.n} clusters, correlation {found.pearson_mean:.2f}", loaded)
    agree = found.pearson_p < 0.05 and found.pearson_mean > 0 and (
        found.pearson_mean - 2 * found.pearson_std > found.chance)
    said = "The two agree on which clusters are risky" if agree else (
        "Agreement on which clusters are risky cannot be shown")
    st.markdown(
        f"**{said}.** Correlation over {found.n} clusters: **{found.pearson_mean:+.2f}** (Pearson; "
        f"± {found.pearson_std:.2f} between random halves of the drives), {found.spearman_mean:+.2f} by ranks "
        f"(Spearman). Events dealt out to other drives by chance would give {found.chance:+.2f}; the same event on "
        f"both halves gives {found.same_metric:+.2f}. Scenario by scenario the two events go together with "
        f"{m.phi:+.2f} (phi).")


clusters(frame("Clusters"))
