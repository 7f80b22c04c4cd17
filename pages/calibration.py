"""Calibration: what P's metric would be in the traffic of Q, by every way of weighting, at any clip."""


import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.plots.love import love_figure
from avshift_core.plots.metrics import LABELS, metrics_figure
from avshift_core.plots.waterfall import category_figure, waterfall_figure
from avshift_core.plots.weights import sweep_figure, weights_figure
from avshift_core.shift.breakdown import (
    FEW_DRIVES,
    FEW_SCENARIOS,
    UNDRAWN,
    by_category,
    contributions,
    mse_condition,
)
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.profile import as_table, telling
from avshift_core.shift.tables import category_table, contribution_table, estimates_table, sweep_table, weight_table
from avshift_core.shift.weights import choices, weights_of
from avshift_core.words import readable
from pages.common import parts, state
from pages.common.cached import Loaded
from pages.common.derived import histogram_of, sweep_of, weighing_of
from pages.common.described import attributes_of, regions_of
from pages.common.exports import chart, downloads
from pages.common.frame import comparison_or_stop, frame, metric_of
from pages.common.text import count, escape, percent, span

QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
SHOWN = 20  # attributes of the love plot; all of them are in the download
BY = {  # column -> what it is called, where it varies
    "category": "Category", "road_type": "Type of road", "turn_type": "Turn", "area": "Area", "route": "Route",
    "actor_type": "Other agent", "av_version": "AV version",
}
PANEL = {"border": True, "height": "stretch"}


@state.fragment
def calibration(loaded: Loaded) -> None:
    """All that follows the clip: nothing is trained, and the numbers come first."""
    analysis, metric = loaded.analysis, metric_of(loaded)
    swept = sweep_of(loaded, metric)  # every place of the slider
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        B = state.clip()
        name = state.segmented(
            "weights", "Weights to look into", choices(analysis), "strata", format_func=LABELS.get,
            help="Whose weights the histogram, the balance and the effective numbers show. The estimates show all.",
        )
    found = next(c for c in swept if c.B == B)
    checks = parts.checks_in_words(loaded.comparison, analysis.checks_of(found), metric)
    headline = analysis.headline(metric, checks)
    with top:
        parts.conclusion(analysis, found, headline, checks, loaded.comparison.phrase(metric))
        key_numbers(loaded, found, headline)
    parts.numbers_first()
    with st.grid(2, min_column_width=430):
        with st.container(**PANEL):
            estimates(loaded, found, headline)
        with st.container(**PANEL):
            clip_sweep(loaded, swept, found, headline)
        with st.container(**PANEL):
            steps = waterfall(loaded, found, headline)
        with st.container(**PANEL):
            weights = weight_panel(loaded, found, name)
        with st.container(**PANEL):
            differences = balance(loaded, weights)
        with st.container(**PANEL):
            st.markdown("**Can the calibrated number be trusted?**", help="Each check has a threshold. A red one "
                        "withholds the calibrated number.")
            parts.trust_list(checks, analysis.config, B)
    with st.container(border=True):
        column, groups = categories(loaded, found, headline)
    with st.container(border=True):
        st.markdown("**Every estimator in numbers**", help=f"Rates in the traffic of Q at clip {B:g}, with "
                    f"{analysis.config.level:.0%} intervals by drive.")
        parts.estimator_table(found, headline)
    downloads({
        "estimates": estimates_table(found, headline), "clip_sweep": sweep_table(swept),
        "contributions": contribution_table(steps, found),
        "weights": weight_table(histogram_of(loaded, name), weights), "balance": as_table(differences),
        **({f"by_{column}": category_table(groups, column, found)} if groups else {}),
    }, loaded, evidence={"metric": metric, "B": B})


def withheld(headline: str | None) -> str:
    """A badge on what shows a withheld number for inspection."""
    return "" if headline else " :red-badge[withheld]"


def key_numbers(loaded: Loaded, found: Calibration, headline: str | None) -> None:
    level = f"{loaded.analysis.config.level:.0%} interval by drive"
    points = lambda e: f"{100 * e.lo:+.2f} to {100 * e.hi:+.2f} pp"  # noqa: E731
    with st.grid(6, min_column_width=150):
        st.metric("Observed rate (P)", percent(found.naive.mu), span(found.naive), **QUIET,
                  help=f"Share of the scenarios of P with the event; {level}.")
        if headline is None:
            st.metric("Calibrated to Q", "withheld", "see the checks", **QUIET,
                      help="A check of the trust panel refuses the number: it would not be the rate of Q.")
        else:
            estimate = getattr(found, headline)
            st.metric("Calibrated to Q", percent(estimate.mu), span(estimate), **QUIET,
                      help=f"Rate that P's scenarios give in the traffic of Q ({LABELS[headline].lower()}); {level}.")
        st.metric("Observed rate (Q)", percent(found.target.mu), span(found.target), **QUIET,
                  help=f"Share of the scenarios of Q with the event; {level}. The calibrated rate should meet it when "
                  "only the traffic changed.")
        hidden = headline is None
        st.metric("Traffic explains", "withheld" if hidden else f"{100 * found.traffic.mu:+.2f} pp",
                  "see the checks" if hidden else points(found.traffic), **QUIET,
                  help="Calibrated minus observed in P, in percentage points: what the change of traffic makes; "
                  f"{level}.")
        st.metric("Left over", "withheld" if hidden else f"{100 * found.residual.mu:+.2f} pp",
                  "see the checks" if hidden else points(found.residual), **QUIET,
                  help="Observed in Q minus calibrated: what the traffic does not explain, such as another AV version, "
                  "another map, what the latents do not see, or what the clip, coarse cells and uncovered traffic "
                  f"leave uncorrected; {level}.")
        st.metric("Effective scenarios", f"{found.ess:,.0f}", f"{found.ess / loaded.analysis.P.n:.0%} of "
                  f"{loaded.analysis.P.n:,}", **QUIET, help="As many unweighted scenarios would be as informative as P "
                  "with the weights of the headline. A property of the weights, so it has no interval.")


def estimates(loaded: Loaded, found: Calibration, headline: str | None) -> None:
    st.markdown(
        f"**By every estimator at clip {found.B:g}**{withheld(headline)}",
        help="Dots are estimates, bars their intervals; the large diamond is the headline. When it is withheld, open "
        "dots are for inspection only.",
    )
    told = ", ".join(f"{LABELS[k]} {e.mu:.2%}" for k, e in found.estimates().items() if e is not None)
    chart(metrics_figure(found, headline, height=440), "metrics", f"Rates at clip {found.B:g}: {told}", loaded)


def clip_sweep(loaded: Loaded, swept: tuple[Calibration, ...], found: Calibration, headline: str | None) -> None:
    st.markdown(
        f"**How much does the clip matter?**{withheld(headline)}",
        help="A low clip keeps the estimate steady and near P; a high one brings it to Q. Where the curve is flat, the "
        "choice does not matter. Below: the effective share of P, and the share of Q that the clip loses.",
    )
    chart(sweep_figure(swept, found, headline, loaded.analysis.P.n), "sweep", "Every estimate over clips from "
          f"{swept[0].B:g} to {swept[-1].B:g}, clip {found.B:g} marked", loaded)


def waterfall(loaded: Loaded, found: Calibration, headline: str | None):
    steps = contributions(loaded.analysis, found.metric, found.B)
    st.markdown(
        f"**From P to Q, step by step**{withheld(headline)}",
        help="Each region moves the rate by its change of mass times the distance of its own rate from the mean; the "
        "steps add up exactly. Bars: intervals of each step by drive. “Left over” is what the traffic does not "
        "explain.",
    )
    told = ", ".join(f"{s.name} {100 * s.move.mu:+.2f}" for s in steps)
    chart(waterfall_figure(steps, found, headline), "waterfall", f"From {found.naive.mu:.2%} observed in P by {told} "
          f"points to {found.strata.mu:.2%} calibrated and {found.target.mu:.2%} observed in Q", loaded)
    if steps[-1].k == UNDRAWN:
        st.caption("“Not drawn”: P is a sample of its drives; what the others add, known by their sums, has no place "
                   "in latent space.")
    named = regions_of(loaded).regions
    if loaded.analysis.local is None:
        st.caption("No regions were looked for, because of the verdict; all of the change stands under “elsewhere”.")
    elif named:
        st.caption(" · ".join(f"**{f.title}** {escape(f.name)}" for f in named))
    return steps


def weight_panel(loaded: Loaded, found: Calibration, name: str):
    weights = weights_of(loaded.analysis, name, found.B)
    st.markdown(f"**The weights and their clip** · {LABELS[name].lower()}", help="How often each scenario of P counts. "
                "1: as observed. What lies right of the clip is cut to it.")
    chart(weights_figure(histogram_of(loaded, name), found.B), "weights", "Weights of P's scenarios, "
          f"{weights.clipped:.1%} of them cut by clip {found.B:g}", loaded)
    unit = "scenarios" if loaded.analysis.global_test.independence_assumed else "drives"
    st.markdown(
        f"Effective **{weights.ess:,.0f}** of {loaded.analysis.P.n:,} scenarios and **{weights.ess_drives:,.0f}** of "
        f"{loaded.analysis.P.n_drives:,} {unit}; the heaviest has **{weights.top_drive:.1%}** of the weight. The clip "
        f"cuts **{weights.clipped:.1%}** of P's scenarios and **{weights.lost:.1%}** of the weight.",
        help="Effective number: the sum of the weights, squared, over the sum of their squares.",
    )
    condition = mse_condition(found, loaded.analysis.P.n)
    noise = found.traffic.lo <= 0 <= found.traffic.hi
    color, icon, word = ("gray", "help", "cannot be told") if noise else (
        ("green", "check", "it pays") if condition.holds else ("orange", "warning", "not sure"))
    st.markdown(
        f":{color}-badge[:material/{icon}: {word}] Squared bias removed **{1e4 * condition.removed:.2f}**, variance "
        f"added **{1e4 * condition.added:.2f}** (squared percentage points). "
        f"{escape(parts.in_words(loaded.comparison, condition.sentence, found.metric))}",
        help="Calibration has the smaller mean squared error when the first is above the second (the paper's "
        "condition, with estimates in place of the unknown values, for the headline).",
    )
    return weights


def balance(loaded: Loaded, weights):
    found = weighing_of(loaded).differences(weights.w)
    st.markdown(f"**Do the weights make P look like Q?** · {LABELS[weights.name].lower()}", help="Standardised "
                "differences of the attributes before and after weighting (a love plot). After weighting they should "
                "lie in the green band, below 0.1. Bars: 95 % intervals by drive, weights taken as given. "
                "Measured values such as time to collision are among them; another AV version may rightly "
                "change these.")
    if not found:
        st.info("These cohorts have no attributes that people can read, only latents.", icon=":material/search_off:")
        return found
    shown = telling(found, SHOWN)
    outside = sum(abs(d.after.smd) > 0.1 for d in found)
    chart(love_figure(shown), "love", "Standardised differences before and after weighting: " + ", ".join(
        f"{d.label} {d.smd:+.2f} to {d.after.smd:+.2f}" for d in shown[:5]), loaded)
    st.caption(f"{len(shown)} of {len(found)} attributes shown, the largest before weighting; after it "
               f"{count(outside, 'attribute')} of all {'lies' if outside == 1 else 'lie'} beyond 0.1.")
    return found


def categories(loaded: Loaded, found: Calibration, headline: str | None):
    """Rates by one attribute; the answer is its column and the groups."""
    columns = [column for column in BY if attributes_of(loaded).category(column) is not None]
    st.markdown(
        f"**By category**{withheld(headline)}",
        help="The same rates within each group: observed in P, calibrated to Q, observed in Q, with intervals by "
        f"drive. Groups with fewer than {FEW_SCENARIOS} scenarios or {FEW_DRIVES} drives have no number.",
    )
    if not columns:
        st.info("These cohorts have no categories, only latents.", icon=":material/search_off:")
        return "", ()
    column = state.segmented("by", "By", columns, columns[0], format_func=BY.get, label_visibility="collapsed")
    try:
        groups = by_category(loaded.analysis, found.metric, found.B, column)
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        return column, ()
    chart(category_figure(groups, headline is None), "categories", f"Rates by {BY[column].lower()} in P, calibrated "
          "and in Q", loaded)
    show = lambda e: "too few" if e is None else f"{percent(e.mu)} ({span(e)})"  # noqa: E731
    with st.expander(f"The table by {BY[column].lower()}", icon=":material/table:"):
        st.dataframe(
            [{BY[column]: readable(g.level), "Scenarios P": g.n_P, "Scenarios Q": g.n_Q, "Drives P": g.drives_P,
              "Drives Q": g.drives_Q, "Observed in P": show(g.naive), "Calibrated to Q": show(g.calibrated),
              "Observed in Q": show(g.target)} for g in groups],
            hide_index=True, alt=f"Rates by {BY[column].lower()} with intervals",
        )
    return column, groups


def start() -> None:
    loaded = comparison_or_stop(frame("Calibration"))
    if not loaded.comparison.metrics:
        st.info("No metric of these cohorts varies: there is nothing to calibrate. Choose other cohorts in the "
                "sidebar, or import scenarios with a metric.", icon=":material/search_off:")
        for reason in loaded.comparison.left_out.values():
            st.caption(escape(reason))
        return
    calibration(loaded)


start()
