"""The lab's second part: drawn fleets of the reader's size, with a truth that is known."""

from __future__ import annotations

import streamlit as st

from avshift_core.laboratory.fleet import MOST, FleetCheck, Setup, expected_minutes, setup_of
from avshift_core.laboratory.shares import Share, Spread
from avshift_core.latent.cohort import MIN_DRIVES, MIN_SCENARIOS
from avshift_core.plots import laboratory as figures
from avshift_core.shift.calibrate import HEADLINE
from pages.common import state
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, comparison_or_stop, errors_as_sentences, metric_of
from pages.common.jobs import result_of
from pages.common.text import count, escape, percent

REPEATS = (4, 10, 20, 40)
QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}


def fleet_part(desk: Desk) -> None:
    st.markdown("Fleets are drawn in 64 dimensions with a truth that is known exactly, as large as yours and with as "
                "many drives and events. How often is the verdict right, and how far off are the numbers?")
    with errors_as_sentences():
        setup = fleet_setup(desk)
        repeats = state.segmented("repeats", "Fleets to draw", REPEATS, 10,
                                  help="More fleets, surer shares: after 10, a share is known to about 25 points.")
        minutes = expected_minutes(setup.n, repeats)
        st.caption(f"{count(repeats, 'fleet')} of {setup.n:,} + {setup.n:,} scenarios take about "
                   f"{'a minute' if minutes < 1.5 else f'{minutes:.0f} minutes'}. You can go on working meanwhile.")
        check = result_of(
            "fleet_check", f"{repeats} fleets of {setup.n:,} scenarios a side", start=False, button="Draw the fleets",
            n=setup.n, drives=setup.drives, event_rate=round(setup.event_rate, 4), drive_share=setup.drive_share,
            shift=setup.shift, repeats=repeats)
    if check is not None:
        fleet_results(check)


def fleet_setup(desk: Desk) -> Setup:
    """The numbers of the comparison, or those that the reader sets."""
    like = state.segmented("like", "Numbers", ("comparison", "own"), "own" if desk.corpus is None else "comparison",
                           format_func={"comparison": "of this comparison", "own": "my own"}.get)
    if like == "comparison":
        loaded = comparison_or_stop(desk)
        found = setup_of(loaded.analysis, metric_of(loaded))
        event = escape(loaded.comparison.phrase(metric_of(loaded)))
        st.markdown(f"**{found.n:,}** scenarios a side · **{found.drives:,}** drives · **{percent(found.event_rate)}** "
                    f"of P with an event ({event}) · **{found.drive_share:.1%}** of the variance between drives")
    else:
        found = own_setup()
    shift = state.toggle("shifted", "Q differs from P in three kinds of scenarios", True,
                         help="Off: Q is drawn like P, and every shift that is claimed is a false alarm.")
    return Setup(found.n, found.drives, found.event_rate, found.drive_share, shift)


def own_setup() -> Setup:
    with st.grid(4, min_column_width=130):
        n = state.number("fleet_n", "Scenarios a side", 2500, min_value=MIN_SCENARIOS, max_value=MOST, step=500)
        drives = state.number("fleet_drives", "Drives a side", 100, min_value=MIN_DRIVES, max_value=MOST, step=10)
        rate = state.number("fleet_rate", "Events in P, %", 10.0, min_value=0.1, max_value=99.9, step=1.0, format="%g")
        share = state.number("fleet_share", "Variance between drives, %", 20.0, min_value=0.0, max_value=40.0, step=5.0,
                             format="%g", help="How alike the scenarios of a drive are: 0 not at all.")
    return Setup(int(n), int(drives), round(rate / 100, 6), round(share / 100, 6))


def fleet_results(check: FleetCheck) -> None:
    verdicts, headline, naive = check.verdicts, check.check(HEADLINE), check.check("naive")
    st.markdown(f"### {fleet_words(check)}")
    with st.grid(5, min_column_width=165):
        right = verdicts["right"]
        st.metric("Verdict right", f"{right.count} of {check.repeats}", share_span(right), **QUIET,
                  help="Fleets in which the verdict is the one that the true distance deserves, with Wilson's 95 % "
                  "interval of the share among all such fleets.")
        st.metric("Calibrated rate, off by", points(headline.rms.value), points_span(headline.rms), **QUIET,
                  help="Typical distance (root mean square) of the calibrated rate from the true rate of Q, in "
                  "percentage points, with its 95 % interval.")
        st.metric("Observed rate, off by", points(naive.rms.value), points_span(naive.rms), **QUIET,
                  help="The same for the rate of P as it was observed: what not calibrating costs.")
        st.metric("Intervals that held", f"{headline.coverage.count} of {headline.coverage.n}",
                  share_span(headline.coverage), **QUIET,
                  help=f"Fleets in which the {check.level:.0%} interval of the calibrated rate held the true rate.")
        st.metric("Number shown", f"{check.shown.count} of {check.repeats}", share_span(check.shown), **QUIET,
                  help="Fleets in which the trust panel let the calibrated rate be shown.")
    with st.grid(2, min_column_width=430):
        with st.container():
            panel("How often is the verdict right?", "Every fleet is one of the three. Missed: no shift was seen, "
                  "although there is one.", figures.verdicts_figure(verdicts), "fleet_verdicts", "Verdicts of all "
                  "fleets")
            panel("Are the regions where the shift is?", "Truly shifted: the exact ratio of Q to P is off 1 by more "
                  "than 0.2. Open circles are fleets.", figures.regions_figure(check), "fleet_regions", "Precision and "
                  "recall of the regions")
        panel("How large a shift was seen?", "The advantage of each fleet with its bounds, and the best possible.",
              figures.advantages_figure(check), "fleet_advantages", "Advantage of each fleet and the best possible one")
        panel("How far are the numbers off?", "Bars are 95 % intervals over the fleets.", figures.errors_figure(check),
              "fleet_errors", "Mean and typical error of every estimator")
        panel("Do the intervals hold what they promise?", "The observed rate's interval is about P, and need not hold "
              "the rate of Q.", figures.coverage_figure(check), "fleet_coverage", "Coverage of every estimator")
    tables = {"estimators": check.table(), "fleets": check.runs, "estimates": check.estimates}
    downloads(tables, report=lambda: {name: table.to_dict("records") for name, table in tables.items()})


def fleet_words(check: FleetCheck) -> str:
    right, headline, naive = check.verdicts["right"], check.check(HEADLINE), check.check("naive")
    size = f"{check.setup.n:,} scenarios in {check.setup.drives:,} drives"
    if not check.setup.shift:
        return (f"With {size} and no shift, the verdict is right in {right.count} of {right.n} fleets, and a shift is "
                f"claimed in {check.verdicts['wrong'].count}.")
    gain = check.gain
    better = "calibration pays" if gain.lo > 0 else "calibration does not pay" if gain.hi < 0 else \
        f"whether calibration pays cannot be told from {right.n} fleets"
    return (f"With {size} the verdict is right in {right.count} of {right.n} fleets, and {better}: the calibrated rate "
            f"is off by {points(headline.rms.value)}, the observed one by {points(naive.rms.value)}.")


def panel(title: str, text: str, figure, key: str, alt: str) -> None:
    with st.container(border=True):
        st.markdown(f"**{title}**", help=text)
        chart(figure, key, alt)


def points(value: float) -> str:
    return f"{100 * value:.2f} pp"


def points_span(spread: Spread) -> str:
    return "" if spread.lo != spread.lo else f"{100 * spread.lo:.2f} to {100 * spread.hi:.2f} pp"


def share_span(share: Share) -> str:
    return f"{share.lo:.0%} to {share.hi:.0%}" if share.n else ""
