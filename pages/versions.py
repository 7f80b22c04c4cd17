"""Versions: is the AV version of Q better than that of P, or did it meet easier traffic?"""


import streamlit as st

from avshift_core.laboratory.demo import Untold
from avshift_core.laboratory.versions import PartsTruth, VersionTruth
from avshift_core.latent.corpora import known_views
from avshift_core.plots.versions import REFERENCE_NAMES, references_figure, waterfall_figure
from avshift_core.shift.power import Power, plan, power_of
from avshift_core.shift.version_report import conclusion, plan_table, signed, to_version_report, verdict_table
from avshift_core.shift.version_split import Split, parts_table
from avshift_core.shift.versions import (
    BETTER,
    CONTEXT,
    FEW,
    NOISE,
    TURNS,
    UNTRUSTED,
    WORSE,
    VersionComparison,
    check_view,
    one_version,
)
from pages.common import parts, state
from pages.common.cached import Loaded, counts
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, comparison_or_stop, errors_as_sentences, frame, metric_of
from pages.common.jobs import result_of
from pages.common.text import escape, percent
from pages.common.version_panels import badge_of, by_attribute, by_region, ends, planner, points, power_panel, probe

QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
PANEL = {"border": True, "height": "stretch"}
BADGES = {
    BETTER: ("green", ":material/trending_down:"), WORSE: ("red", ":material/trending_up:"),
    TURNS: ("orange", ":material/swap_vert:"), NOISE: ("gray", ":material/help:"),
    FEW: ("gray", ":material/hourglass_empty:"), UNTRUSTED: ("red", ":material/block:"),
}


@state.fragment
def versions(loaded: Loaded, found: VersionComparison, truth: VersionTruth | Untold | None, asked: bool) -> None:
    """All that follows the reference and the grouping: nothing is trained.

    Args:
        asked: whether the truth is wanted; it is looked for outside of the fragment.
    """
    metric, analysis = metric_of(loaded), loaded.analysis
    split, top = found.splits[metric], st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reference = state.segmented(
            "reference", "In whose traffic", tuple(REFERENCE_NAMES), "mean", format_func=REFERENCE_NAMES.get,
            help="Whose traffic both versions are put in: that of P, that of Q, or the mean of the two answers. They "
            "differ when a version helps in traffic that one cohort met more often. The verdict asks all three.",
        )
        wanted = state.toggle("truth", "Show the truth", help="On a simulated fleet, such as the demo, every scenario "
                              "can be replayed by the other version, so that the true parts are known. The first time "
                              "that takes about a minute.")
    if wanted != asked:
        st.rerun()
    power, rows = power_of(split, analysis.config), plan(analysis, found.fit, found.groups, metric)
    with top:
        headline(loaded, found, split)
        key_numbers(loaded, found, split, reference, power)
    parts.numbers_first()
    known = truth.parts.get(metric) if isinstance(truth, VersionTruth) else None
    with st.grid(2, min_column_width=430):
        with st.container(**PANEL):
            waterfall(loaded, found, split, reference, known)
        with st.container(**PANEL):
            references(loaded, found, split, known, truth)
        with st.container(**PANEL):
            column, groups = by_attribute(loaded, found, metric, reference)
        with st.container(**PANEL):
            regions = by_region(loaded, found, metric, reference)
        with st.container(**PANEL):
            probe(loaded, found)
        with st.container(**PANEL):
            power_panel(loaded, found, power)
    with st.container(border=True):
        planner(loaded, found, rows)
    with st.container(border=True):
        every_metric(loaded, found)
    downloads({
        "parts": parts_table([split]), "every_metric": verdict_table(found),
        **({f"by_{column}": parts_table(groups)} if groups else {}),
        **({"by_region": parts_table(regions)} if regions else {}),
        "collection_plan": plan_table(rows, found, metric),
        **({"parts_and_truth": truth.table(found.splits)} if isinstance(truth, VersionTruth) else {}),
    }, loaded, lambda: to_version_report(analysis, found))


def headline(loaded: Loaded, found: VersionComparison, split: Split) -> None:
    """The conclusion in words, with its badge."""
    verdict = found.verdict(split.metric)
    color, icon = BADGES[verdict]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(verdict, icon=icon, color=color, help="By the intervals of the performance part in P's traffic, in "
                 "Q's and on the mean of both: better or worse when all of them leave out zero, inside noise when one "
                 "does not.")
        if found.same_version:
            st.badge("A/A", icon=":material/content_copy:", color="gray",
                     help="Both cohorts were driven by the same version: the performance part should be zero.")
        if found.independence_assumed:
            st.badge("independence assumed", icon=":material/warning:", color="orange",
                     help="There are no drive ids: intervals are too tight if scenarios of a drive are alike.")
    event = loaded.comparison.phrase(split.metric)
    st.markdown(f"### {escape(conclusion(found, split, event[:1].lower() + event[1:]))}")
    st.caption(f"{escape(found.version_A)} was observed on P, {escape(loaded.analysis.P.name)}; "
               f"{escape(found.version_B)} on Q, {escape(loaded.analysis.Q.name)}. Traffic is matched by the context "
               "alone, which leaves out what the AV did.")
    for sentence in found.cautions:
        st.caption(f":material/info: {escape(sentence)}")


def key_numbers(loaded: Loaded, found: VersionComparison, split: Split, reference: str, power: Power) -> None:
    level, where = f"{loaded.analysis.config.level:.0%} interval by drive", REFERENCE_NAMES[reference]
    hidden = not found.trusted
    share_P, share_Q = found.fit.support.shares
    with st.grid(6, min_column_width=150):
        st.metric("Raw difference", points(split.raw), ends(split.raw), **QUIET,
                  help=f"Observed rate of {escape(found.version_B)} on Q minus that of {escape(found.version_A)} on P: "
                  f"version and traffic together; {level}.")
        st.metric("Not comparable", points(split.not_comparable), ends(split.not_comparable), **QUIET,
                  help=f"What traffic that only one version met adds to the raw difference; {level}.")
        st.metric("Exposure", "withheld" if hidden else points(split.exposure[reference]),
                  "see the probe" if hidden else ends(split.exposure[reference]), **QUIET,
                  help=f"What the difference of traffic makes, in traffic that both met ({where}); {level}.")
        st.metric("Performance", "withheld" if hidden else points(split.performance[reference]),
                  "see the probe" if hidden else ends(split.performance[reference]), **QUIET,
                  help=f"The second version minus the first in the same traffic ({where}); below zero it has fewer "
                  f"events; {level}.")
        untold = found.verdict(split.metric) in (FEW, UNTRUSTED)
        st.metric("Detectable", "not told" if untold else f"{100 * power.detectable:.2f} pp",
                  "see the verdict" if untold else "power 0.8, level 5 %", **QUIET,
                  help="A difference between the versions of this size would be called better or worse with "
                  "probability 0.8, at this number of drives. It follows from the standard error, so it has "
                  "no interval.")
        st.metric("Common traffic", f"{min(share_P, share_Q):.0%}", f"P {share_P:.0%}, Q {share_Q:.0%}", **QUIET,
                  help="Traffic that both versions met: shares of the scenarios in parts of the latent space "
                  "where both versions have enough scenarios and drives. Counted, not estimated.")


def waterfall(loaded: Loaded, found: VersionComparison, split: Split, reference: str, known: PartsTruth | None) -> None:
    st.markdown(
        f"**From {escape(found.version_A)} on P to {escape(found.version_B)} on Q**{badge_of(found)}",
        help="The steps add up exactly to the raw difference. Bars: each step with its interval by drive. Stars, on a "
        "simulated fleet: where the true step would end.",
    )
    told = {"exposure": known.exposure[reference], "performance": known.performance[reference],
            "not_comparable": 0.0} if known else None
    chart(waterfall_figure(split, reference, (found.version_A, found.version_B), told, trusted=found.trusted),
          "versions_waterfall", f"From {split.A_P.mu:.2%} by not comparable {points(split.not_comparable)}, exposure "
          f"{points(split.exposure[reference])} and performance {points(split.performance[reference])} to "
          f"{split.B_Q.mu:.2%}", loaded)
    st.caption(f"Steps in {REFERENCE_NAMES[reference]}." if reference != "mean" else
               "Steps: the mean of the answers in P's and in Q's traffic.")


def references(
    loaded: Loaded, found: VersionComparison, split: Split, known: PartsTruth | None,
    truth: VersionTruth | Untold | None,
) -> None:
    st.markdown(f"**In either traffic, and the truth where it is known**{badge_of(found)}", help="Exposure and "
                "performance with P's traffic, Q's traffic and the mean of both as the reference, with intervals by "
                "drive. Stars: the true parts of a simulated fleet, where every scenario was also driven by the other "
                "version.")
    both = {"exposure": known.exposure, "performance": known.performance} if known else None
    chart(references_figure(split, both), "versions_references", "Performance "
          + ", ".join(f"{REFERENCE_NAMES[r]} {points(split.performance[r])}" for r in REFERENCE_NAMES), loaded)
    if known:
        e, true = split.performance["mean"], known.performance["mean"]
        held = "holds" if e.lo <= true <= e.hi else "misses"
        st.markdown(f"True performance **{100 * true:+.2f} pp** (± {196 * known.se['mean']:.2f}): the estimate is "
                    f"{100 * (e.mu - true):+.2f} pp off, its interval {held} the truth. The raw difference is "
                    f"{100 * (split.raw.mu - true):+.2f} pp off.",
                    help="From the whole fleet, replayed by both versions, with the exact weights of both weeks. It is "
                    "that of all traffic; the estimate speaks for the traffic that both versions met.")
    elif isinstance(truth, Untold):
        st.caption(escape(truth.reason))
    elif truth is not None:
        st.caption("The truth does not know this metric.")


def every_metric(loaded: Loaded, found: VersionComparison) -> None:
    st.markdown("**Every metric**", help="Verdict and parts (mean of both references) of every event, in percentage "
                "points with intervals by drive. With this many, about one in twenty is better or worse by chance.")
    rows = [{
        "Event": loaded.comparison.phrase(metric), "Verdict": found.verdict(metric),
        "Performance": signed(s.performance["mean"]), "Exposure": signed(s.exposure["mean"]), "Raw": signed(s.raw),
        f"{found.version_A} on P": percent(s.A_P.mu), f"{found.version_B} on Q": percent(s.B_Q.mu),
    } for metric, s in found.splits.items()]
    st.dataframe(rows, hide_index=True, alt="Verdict and parts of every metric", height=320)


def context_or_stop(desk: Desk) -> None:
    """Say why only the context view will do, with a click that switches to it."""
    if desk.corpus.models and not known_views(desk.corpus):
        with errors_as_sentences():
            check_view(None)
    if desk.view == CONTEXT:
        return
    with errors_as_sentences(_offer_context):
        check_view(desk.view)


def _offer_context() -> None:
    st.button("Compare by the context only", type="primary", icon=":material/swap_horiz:", on_click=state.go,
              kwargs={"view": CONTEXT})


def versions_or_stop(desk: Desk) -> None:
    """Each cohort must be of one version; said before anything is computed."""
    with errors_as_sentences():
        for side, query, name in zip("PQ", (desk.source, desk.target), desk.names, strict=True):
            table = counts(desk.corpus.url, desk.corpus.fingerprint, ("av_version",), query)
            one_version({str(v): int(n) for v, n in zip(table["av_version"], table["n"], strict=True)}, side, name)


def start() -> None:
    desk = frame("Versions")
    context_or_stop(desk)
    versions_or_stop(desk)
    loaded = comparison_or_stop(desk)
    if not loaded.comparison.metrics:
        st.info("No metric of these cohorts varies: there is nothing to compare. Choose other cohorts in the sidebar.",
                icon=":material/search_off:")
        return
    found = result_of("versions", "Comparing {} with {}".format(*desk.names), comparison=loaded.key)
    if found is None:
        return
    asked = state.value("truth") == "1"
    truth = result_of("versions_truth", "Replaying the fleet with both versions", comparison=loaded.key) if asked \
        else None
    versions(loaded, found, truth, asked)


start()
