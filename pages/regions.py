"""Regions: where P and Q differ, what sets these places apart, and scenes from them."""

from __future__ import annotations

from dataclasses import asdict

import streamlit as st

from avshift_core.notebook.entries import NONE
from avshift_core.plots import theme
from avshift_core.plots.profiles import profile_alt, profile_figure
from avshift_core.shift.gate import GLOBAL_SHIFT, LOCALIZE
from avshift_core.shift.profile import as_table, telling
from avshift_core.shift.regions import DescribedRegions, RegionFacts, in_regions, region_scenarios, region_table
from pages.common import parts, state
from pages.common.cached import Loaded
from pages.common.derived import weighing_of
from pages.common.described import proposed_regions, regions_of
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, comparison_or_stop, frame, metric_of
from pages.common.notes import badge, note_editor, notes_of, number_of
from pages.common.scenes import scene_legend, scene_row
from pages.common.tables import choose_row
from pages.common.text import count, escape, percent, span

HELP = {
    "Region": "R1 to RK in order of evidence. Some drives chose them, others confirmed them.",
    "Name": "The one that somebody gave it under Note below. Otherwise proposed from the attributes that set the "
    "region apart: it describes most of its scenarios and proves nothing; the profile below has the intervals.",
    "Status": "What people decided about it: accepted, or to be investigated; under Note below.",
    "More in": "The cohort that has more of it: the direction of the shift.",
    "Share of P": "p_k: share of P's scenarios that lie in the region, on drives that did not choose it; 95 % interval "
    "by drive.",
    "Share of Q": "q_k: the same of Q.",
    "Q / P": "q_k / p_k: above 1 there is more of it in Q; 95 % interval by drive.",
    "Weight": "q_k / p_k of the region as a whole, at most the clip B. The calibrated rate takes weights cell by cell.",
    "Moves the rate": "Contribution to the difference between calibrated and observed rate of the chosen metric, in "
    "percentage points, with its 95 % interval. All regions and what lies elsewhere add up to that difference. "
    "Measured on all drives, also those that chose the region, so that steps of regions lean too large; weights are "
    "cell by cell.",
    "Adjusted p": "Of the confirming drives, adjusted for the number of regions (Benjamini-Hochberg).",
    "Effect": "Absolute log-odds of the classifier's mean score there: 0 none, 1.1 three to one, 2.2 nine to one.",
    "Scenarios P, Q": "All scenarios in the region.",
    "Drives": "Drives with a scenario there.",
}
BARE_HELP = HELP | {
    "Region": "V1, V2 and so on: cells without P, joined where they lie together. Some drives chose them; no others "
    "confirmed them.",
    "Share of P": "Share of P's scenarios that lie there, on all drives, also those that chose it; 95 % interval by "
    "drive.",
    "Share of Q": "The same of Q.",
    "Q / P": "Share of Q over share of P, on all drives; 95 % interval by drive.",
    "Adjusted p": "That P and Q have the same share there, on all drives, also those that chose it; times the number "
    "of cells (Bonferroni).",
    "Scenarios P, Q": "All scenarios there.",
}


def regions(desk: Desk) -> None:
    loaded = comparison_or_stop(desk)
    analysis = loaded.analysis
    described = regions_of(loaded)
    parts.verdict_badges(analysis)
    st.markdown(f"### {conclusion(loaded, described)}")
    paper_caption(loaded)
    if not described.regions:
        no_regions(loaded, described)
    else:
        table(desk, loaded, described)
    violations(desk, loaded, described)


def conclusion(loaded: Loaded, described: DescribedRegions) -> str:
    analysis = loaded.analysis
    if analysis.local is None:
        if analysis.verdict.name == GLOBAL_SHIFT:
            return (f"Q differs from P strongly (at least {analysis.global_test.tv_lower:.0%} in total variation): no "
                    "regions were looked for.")
        return "No shift to locate: P and Q met the same traffic, as far as can be seen."
    if not described.regions:
        return "No place was found where Q differs from P that other drives confirm."
    names = [escape(f.name) for f in described.regions]
    shown = "; ".join(names[:2]) + (f"; and {count(len(names) - 2, 'other')}" if len(names) > 2 else "")
    return f"Q differs from P in {count(len(names), 'region')}: {shown}."


def paper_caption(loaded: Loaded) -> None:
    analysis = loaded.analysis
    if analysis.local is None:
        return
    shares = in_regions(analysis)
    paper = analysis.local_paper
    text = (f"{percent(shares.p.mu)} of P ({span(shares.p)}) and {percent(shares.q.mu)} of Q ({span(shares.q)}) lie in "
            "the regions, on the drives that confirmed them.")
    if paper is not None:
        text += (f" The paper's own procedure finds {count(paper.n_regions, 'region')} here: balls around single "
                 "scenarios, which are smaller, and tested as if scenarios of a drive were independent, which finds "
                 "regions also where there are none.")
    if analysis.config.force_localize and analysis.verdict.name != LOCALIZE:
        text += " The verdict would have stopped here; the regions were looked for because you asked for it."
    st.caption(text)


def no_regions(loaded: Loaded, described: DescribedRegions) -> None:
    """A stop is a result: why, and what next."""
    parts.regions_text(loaded.analysis)
    differences = weighing_of(loaded).before
    with st.container(horizontal=True, vertical_alignment="center"):
        state.link("pages/global_test.py", "How far apart are P and Q?", icon=":material/arrow_forward:")
        state.link("pages/latent_map.py", "Look at the map", icon=":material/arrow_forward:")
        if loaded.analysis.local is None:
            st.button("Look for regions all the same", icon=":material/my_location:", on_click=state.go,
                      kwargs={"force_localize": True},
                      help="Runs the local test whatever the verdict says. Of a global shift it finds regions that "
                      "are most of the space; without a shift it should find none.")
        downloads({"regions": region_table(described, loaded.analysis, None, state.clip_value()),
                   "what_differs": as_table(differences)}, loaded)
    shown = telling(differences)
    if shown:
        with st.container(border=True):
            st.markdown("**What differs between P and Q as a whole**", help="Difference of the means or shares over "
                        "the standard deviation (pooled): 0.2 is small, 0.8 large. Bars are 95 % intervals by drive, "
                        "for each attribute by itself; grey where they reach 0. Columns that P and Q were chosen by "
                        "are left out.")
            chart(profile_figure(shown, inside="in Q", outside="in P", colors=(theme.Q, theme.P)), "what_differs",
                  profile_alt(shown, "Q from P"), loaded)


def table(desk: Desk, loaded: Loaded, described: DescribedRegions) -> None:
    metric, B = metric_of(loaded) if loaded.comparison.metrics else None, state.clip_value()
    rows = region_table(described, loaded.analysis, metric, B)
    shown = with_status([row(r) for r in rows[~rows["violation"]].to_dict("records")], described.regions, loaded)
    chosen = choose_row("region", shown, help=HELP, alt="Regions with their shares of P and Q, names and evidence")
    facts = described.regions[chosen]
    with st.container(horizontal=True, vertical_alignment="center"):
        event = f"Metric: {escape(loaded.comparison.phrase(metric))}; weights at clip {B:g}." if metric else ""
        st.caption(f"{event} Choose a row for its profile and scenes.", width="stretch")
        downloads({
            "regions": rows, f"scenarios_{facts.title}": region_scenarios(loaded.analysis, facts),
            f"profile_{facts.title}": as_table(facts.differences), **notes_table(loaded),
        }, loaded)
    detail(desk, loaded, facts)


def row(r: dict) -> dict[str, str]:
    """A region as a row of the table."""
    moves = "" if r["contribution"] != r["contribution"] else (
        f"{100 * r['contribution']:+.2f} pp ({100 * r['contribution_lo']:+.2f} to {100 * r['contribution_hi']:+.2f})")
    ratio = "cannot be told" if r["ratio"] != r["ratio"] else (
        f"{r['ratio']:.2f} ({r['ratio_lo']:.2f} to {r['ratio_hi']:.2f})")
    return {
        "Region": r["region"], "Name": r["name"], "More in": r["more_in"], "Share of P": share(r, "p_k"),
        "Share of Q": share(r, "q_k"), "Q / P": ratio, "Weight": f"{r['weight']:.2f}", "Moves the rate": moves,
        "Adjusted p": f"{r['p_adj']:.1g}", "Effect": f"{r['effect']:.2f}",
        "Scenarios P, Q": f"{r['n_P']:,}, {r['n_Q']:,}", "Drives": f"{r['drives']:,}",
    }


def with_status(rows: list[dict], described: tuple[RegionFacts, ...], loaded: Loaded) -> list[dict]:
    """The same rows with the status of each note, where any region has one."""
    notes = notes_of(loaded)
    found = [notes[number_of(f)].status if number_of(f) in notes else NONE for f in described]
    if set(found) <= {NONE}:
        return rows
    return [{"Region": r["Region"], "Name": r["Name"], "Status": "" if status == NONE else status, **r}
            for r, status in zip(rows, found, strict=True)]


def notes_table(loaded: Loaded) -> dict[str, list[dict]]:
    notes = [asdict(note) for note in notes_of(loaded).values()]
    return {"notes": notes} if notes else {}


def share(r: dict, name: str) -> str:
    return f"{100 * r[name]:.1f} % ({100 * r[f'{name}_lo']:.1f} to {100 * r[f'{name}_hi']:.1f})"


def detail(desk: Desk, loaded: Loaded, facts: RegionFacts) -> None:
    """Profile and scenes of one region."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{facts.title}: {escape(facts.name)}**", width="stretch")
            state.link("pages/latent_map.py", "Show on the map", icon=":material/scatter_plot:", colour="region",
                       region=facts.region.k if facts.title[0] == "R" else None)
        shown = telling(facts.differences)
        if shown:
            st.markdown("What sets it apart from all other scenarios", help="Difference of the means or shares over "
                        "the standard deviation (pooled): 0.2 is small, 0.8 large. Bars are 95 % intervals by drive; "
                        "triangles lie beyond the edge. It describes the region and tests nothing.")
            chart(profile_figure(shown, inside="in the region", outside="elsewhere"), f"profile_{facts.title}",
                  profile_alt(shown, facts.title), loaded)
        else:
            st.caption("The table has no attributes to describe it by.")
        note(loaded, facts)
        scenes(desk, loaded, facts)


def note(loaded: Loaded, facts: RegionFacts) -> None:
    st.markdown(f"Note {badge(notes_of(loaded).get(number_of(facts)))}", help="What you call this region, what is "
                "known about it, and what was decided. Kept beside the corpus for this run and seen by everybody; "
                "nothing is computed again. Other data or other settings are another run, with notes of its own.")
    proposed = proposed_regions(loaded)
    own = next(f for f in (*proposed.regions, *proposed.violations) if f.title == facts.title)
    note_editor(loaded, facts, own.name)


def scenes(desk: Desk, loaded: Loaded, facts: RegionFacts) -> None:
    st.markdown("Scenes that stand for it", help="The scenario nearest to the region's centre in latent space, then "
                "typical ones as different as possible; at most one a drive. Choose one to replay it.")
    for name, cohort, rows in (("P", loaded.analysis.P, facts.scenes_P), ("Q", loaded.analysis.Q, facts.scenes_Q)):
        st.markdown(f"**{name}** · {escape(cohort.name)}")
        ids = [str(cohort.obs["scenario_id"].iloc[r]) for r in rows] if "scenario_id" in cohort.obs else []
        scene_row(desk.corpus, ids, f"{facts.title}_{name}", empty=f"No scenario of {name} lies here.")
    scene_legend()


def violations(desk: Desk, loaded: Loaded, described: DescribedRegions) -> None:
    """Places where Q has scenarios and P next to none: listed, never weighted."""
    if loaded.analysis.local is None:
        return
    st.markdown("#### Overlap violations", help="Places where Q is significantly present and P has next to nothing. "
                "No weight can make P speak for them: they are listed and left uncorrected.")
    if not described.violations:
        st.caption(f"None that is statistically clear; {percent(loaded.analysis.calibrator.uncovered_mass)} of Q lies "
                   "in cells with next to no P.")
        return
    total = sum(f.q.mu for f in described.violations)
    st.markdown(f"**{percent(total)}** of Q lies where P has next to nothing, and stays uncorrected. Collect such "
                "scenarios in P, or narrow Q.")
    rows = region_table(described, loaded.analysis, None, state.clip_value())
    shown = with_status([row(r) for r in rows[rows["violation"]].to_dict("records")], described.violations, loaded)
    left_out = ("Weight", "Moves the rate")
    chosen = choose_row("bare", [{k: v for k, v in r.items() if k not in left_out} for r in shown],
                        help=BARE_HELP, alt="Places where P has next to no scenarios")
    detail(desk, loaded, described.violations[chosen])


regions(frame("Regions"))
