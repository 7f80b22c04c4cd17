"""Panels of the page on versions: groups, regions, leakage probe, power and the collection plan."""

from __future__ import annotations

import streamlit as st

from avshift_core.plots import versions as figures
from avshift_core.shift.power import PER, PlanRow, Power
from avshift_core.shift.trust import CAUTION, OK, REFUSE
from avshift_core.shift.version_report import power_words, signed
from avshift_core.shift.version_split import MIN_GROUP, MIN_GROUP_DRIVES, Split, split_by, split_by_region
from avshift_core.shift.versions import FEW, UNTRUSTED, VersionComparison
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import Loaded
from pages.common.described import attributes_of, regions_of
from pages.common.exports import chart
from pages.common.text import escape, percent

BY = {"category": "Category", "road_type": "Type of road", "area": "Area", "route": "Route",
      "actor_type": "Other agent"}
STATUS = {OK: ("green", "check", "no trace seen"), CAUTION: ("orange", "warning", "caution"),
          REFUSE: ("red", "block", "not to be trusted")}


def points(e) -> str:
    return f"{100 * e.mu:+.2f} pp"


def ends(e) -> str:
    return f"{100 * e.lo:+.2f} to {100 * e.hi:+.2f} pp"


def badge_of(found: VersionComparison) -> str:
    return "" if found.trusted else " :red-badge[not to be trusted]"


def group_table(splits: tuple[Split, ...], labels: list[str], title: str, found: VersionComparison, reference: str):
    rows = [{
        title: label, "Verdict": found.verdict(s.metric, s), "Performance": signed(s.performance[reference]),
        "Exposure": signed(s.exposure[reference]), "Raw": signed(s.raw), f"Scenarios {found.version_A} (P)": s.in_P,
        f"Scenarios {found.version_B} (Q)": s.in_Q,
    } for label, s in zip(labels, splits, strict=True)]
    with st.expander(f"The table by {title.lower()}", icon=":material/table:"):
        st.dataframe(rows, hide_index=True, alt=f"Parts by {title.lower()} with intervals in percentage points")


def by_attribute(loaded: Loaded, found: VersionComparison, metric: str, reference: str):
    """Performance within each level of an attribute; the answer is its column and the splits."""
    st.markdown(f"**By category**{badge_of(found)}", help="The same split within each group. Categories are told by "
                "what happened, the AV's own driving included, so a version can move scenarios from one to another: "
                "read them as a hint. Regions rest on the context alone. Groups with fewer than "
                f"{MIN_GROUP} scenarios or {MIN_GROUP_DRIVES} drives of either version are left out.")
    columns = [column for column in BY if attributes_of(loaded).category(column) is not None]
    if not columns:
        st.info("These cohorts have no categories, only latents.", icon=":material/search_off:")
        return "", ()
    column = state.segmented("by", "By", columns, columns[0], format_func=BY.get, label_visibility="collapsed")
    splits = split_by(loaded.analysis, found.fit, metric, column)
    if not splits:
        st.info("No group has enough scenarios of both versions.", icon=":material/search_off:")
        return column, ()
    labels = [readable(s.group) for s in splits]
    chart(figures.groups_figure(splits, labels, reference, trusted=found.trusted), "versions_groups",
          "Performance by " + BY[column].lower() + ": " + ", ".join(
              f"{label} {points(s.performance[reference])}" for label, s in zip(labels[:6], splits, strict=False)),
          loaded)
    group_table(splits, labels, BY[column], found, reference)
    return column, splits


def by_region(loaded: Loaded, found: VersionComparison, metric: str, reference: str):
    st.markdown(f"**By mismatch region**{badge_of(found)}", help="The same split within the regions in which P and Q "
                "differ, and elsewhere. Regions rest on the context, which leaves out what the AV did.")
    splits = split_by_region(loaded.analysis, found.fit, metric)
    if not splits:
        text = "No region was found, or none was looked for: the traffic differs too little, or too much." \
            if loaded.analysis.local is None or not loaded.analysis.local.regions else \
            "No region has enough scenarios of both versions."
        st.info(text, icon=":material/search_off:")
        return ()
    names = {f.title: f"{f.title} {f.name}" for f in regions_of(loaded).regions}
    labels = [names.get(s.group, s.group) for s in splits]
    chart(figures.groups_figure(splits, labels, reference, trusted=found.trusted), "versions_regions",
          "Performance by region: " + ", ".join(f"{s.group} {points(s.performance[reference])}" for s in splits),
          loaded)
    group_table(splits, labels, "Region", found, reference)
    return splits


def probe(loaded: Loaded, found: VersionComparison) -> None:
    color, icon, word = STATUS[found.probe.status]
    st.markdown(
        f"**Can the version be read from the context?** :{color}-badge[:material/{icon}: {word}]",
        help="A classifier that tries to tell the versions apart where the traffic is matched, beside the same test "
        "between halves of one cohort. Bars: one-sided drive-level bounds. It sees traces that are finer than the "
        "parts by which traffic is matched; a trace that looks like other traffic cannot be told from it.",
    )
    chart(figures.probe_figure(found.probe), "versions_probe", f"Advantage {found.probe.matched.gamma_hat:.3f} in "
          f"matched traffic, {found.probe.before.gamma_hat:.3f} before", loaded)
    st.markdown(escape(found.probe.sentence))


def power_panel(loaded: Loaded, found: VersionComparison, power: Power) -> None:
    st.markdown("**What can this much data decide?**", help="The smallest difference between the versions that would "
                "be called better or worse with probability 0.8, at level 5 %, over the number of drives. It "
                "assumes that further drives are like those at hand.")
    if found.verdict(power.metric) not in (FEW, UNTRUSTED):
        chart(figures.power_figure(power), "versions_power", f"Smallest difference seen: {100 * power.detectable:.2f} "
              f"percentage points now; observed {100 * power.observed:+.2f}", loaded)
    st.markdown(escape(power_words(power, found)))


def planner(loaded: Loaded, found: VersionComparison, rows: tuple[PlanRow, ...]) -> None:
    st.markdown(f"**Which traffic to drive next** · {PER:,} further scenarios", help="By how much the interval of the "
                "performance part narrows, on each side, with a thousand further scenarios of one kind of traffic "
                "driven by one version, while the traffic that is compared in stays as it is. Kinds are regions and "
                "groups of neighbouring cells; names describe most of their scenarios.")
    if rows:
        chart(figures.plan_figure(rows, found.groups, (found.version_A, found.version_B)), "versions_plan",
              "Gains of further scenarios, the best: " + found.groups[rows[0].group].name, loaded)
    version = {"A": f"{found.version_A} (P)", "B": f"{found.version_B} (Q)"}
    with st.expander("The table of the plan", icon=":material/table:"):
        st.dataframe(
            [{"Traffic": found.groups[r.group].name, "Region": found.groups[r.group].region,
              "Driven by": version[r.version], "Scenarios so far": r.n,
              "Share of the variance": f"{r.variance_share:.1%}",
              "Narrower by": f"{100 * r.gain:.3f} pp", "As good as more of everything": f"{r.effective:.1%}"}
             for r in rows], hide_index=True, alt="Collection plan")
    for group in found.groups:
        if not group.common:
            share = f"{percent(group.q)} of Q" if group.lacking == "A" else f"{percent(group.p)} of P"
            st.caption(f":material/block: Only one version met it: {escape(group.name)}, {share}. About "
                       f"{group.needed:,} further scenarios of it by {escape(version[group.lacking])} would make it "
                       "comparable.")
