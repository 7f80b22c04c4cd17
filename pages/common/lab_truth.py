"""The lab's third part: the comparison at hand against the truth of a simulated corpus."""

from __future__ import annotations

import streamlit as st

from avshift_core.laboratory.demo import DemoTruth, RateTruth, Untold
from avshift_core.plots import laboratory as figures
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.gate import TITLES
from avshift_core.shift.local import TARGET_HEAVY
from pages.common import state
from pages.common.cached import Loaded
from pages.common.exports import chart, downloads
from pages.common.frame import Desk, comparison_or_stop, metric_of
from pages.common.jobs import result_of
from pages.common.lab_fleet import QUIET, points
from pages.common.text import escape, percent


def truth_part(desk: Desk) -> None:
    st.markdown("The demo fleet is simulated, so that the truth of a comparison is known: exact weights, the best "
                "possible classifier, and the true rate of P's car in the traffic of Q.")
    loaded = comparison_or_stop(desk)
    truth = result_of("demo_truth", "Comparing with the truth", comparison=loaded.key)
    if truth is None:
        return
    if isinstance(truth, Untold):
        st.info(escape(truth.reason), icon=":material/visibility_off:")
        return
    truth_results(loaded, truth)


@state.fragment
def truth_results(loaded: Loaded, truth: DemoTruth) -> None:
    analysis, metric, test = loaded.analysis, metric_of(loaded), loaded.analysis.global_test
    rate, top = truth.rates.get(metric), st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        B = state.clip()
        downloads({"estimates_and_truth": truth.table(analysis, B), "regions_and_truth": truth.region_table()}, loaded)
    calibration, checks = analysis.calibrate(B, metric), analysis.recheck(B, [metric])
    headline = analysis.headline(metric, checks)
    with top:
        st.markdown(f"### {truth_words(loaded, truth, rate, calibration, headline)}")
        if truth.other_version:
            st.warning(f"Q was driven by {escape(', '.join(truth.other_version))}, P by {escape(truth.version)}: the "
                       "rate observed in Q is that of another car, and need not meet the calibrated one.",
                       icon=":material/warning:")
        truth_numbers(loaded, truth, rate, calibration, test)
    with st.grid(2, min_column_width=430):
        if rate is None:
            st.info(escape(truth.rates_reason or f"The truth does not know '{metric}'. Choose another metric."),
                    icon=":material/visibility_off:")
        else:
            withheld = "" if headline else " :red-badge[withheld]"
            with st.container(border=True):
                st.markdown(f"**{escape(loaded.comparison.phrase(metric))}: estimates and truth**{withheld}",
                            help="Line: the true rate of P's car in the traffic of Q. Its band is the truth's own 95 % "
                            "interval: it is counted over the whole fleet with exact weights. Star: P's scenarios with "
                            "exact weights, the best that weighting can do.")
                chart(figures.truth_figure(calibration.estimates(), rate, headline), "truth_rates",
                      f"Every estimate with the true rate of Q {rate.mu_Q:.2%}", loaded)
        w = analysis.calibrator.cells.weights(B)
        with st.container(border=True):
            st.markdown("**Weights and exact weights**", help="Each dot is a scenario of P. On the dashed line its "
                        "weight is right. Weights are constant in a cell, exact ones are not.")
            chart(figures.weights_figure(truth, w), "truth_weights", "Weight of each scenario of P against the exact "
                  "one", loaded)
            st.caption(f"Typical distance from the exact weights: {truth.weight_error(w):.2f}; without any weights "
                       f"{truth.weight_error([1.0] * len(w)):.2f}.")
    truth_regions(truth)


def truth_words(
    loaded: Loaded, truth: DemoTruth, rate: RateTruth | None, calibration: Calibration, headline: str | None
) -> str:
    name, expected = loaded.analysis.verdict.name, truth.expected
    first = f"The verdict “{TITLES[name]}” is right." if name == expected else \
        f"The verdict is “{TITLES[name]}”; the truth deserves “{TITLES[expected]}”."
    if rate is None:
        return first
    error, naive = calibration.strata.mu - rate.mu_Q, calibration.naive.mu - rate.mu_Q
    withheld = "" if headline else "withheld; it would be "
    return (f"{first} The calibrated rate is {withheld}{points(abs(error))} off the truth, the observed one "
            f"{points(abs(naive))}.")


def truth_numbers(loaded: Loaded, truth: DemoTruth, rate: RateTruth | None, calibration: Calibration, test) -> None:
    with st.grid(5, min_column_width=165):
        st.metric("Best possible advantage", f"{truth.gamma_star:.3f}", f"± {1.96 * truth.gamma_se:.3f}", **QUIET,
                  help="Advantage of the best classifier of contexts there can be.")
        bounds = f"{test.gamma_lcb:.3f} to {test.gamma_ucb:.3f}"
        st.metric("Measured advantage", f"{test.gamma_hat:.3f}", bounds, **QUIET,
                  help="What the classifier reached on the latents, with its bounds.")
        if rate is not None:
            error = calibration.strata.mu - rate.mu_Q
            inside = calibration.strata.lo <= rate.mu_Q <= calibration.strata.hi
            st.metric("True rate in Q", percent(rate.mu_Q), f"± {196 * rate.se_Q:.2f} pp", **QUIET,
                      help=f"Rate of {escape(truth.version)} in the traffic of Q: the whole fleet, exactly weighted.")
            st.metric("Calibrated, off by", f"{100 * error:+.2f} pp", "interval holds the truth" if inside
                      else "interval misses the truth", **QUIET,
                      help="Calibrated rate (cell by cell) minus the true one.")
        found = "no region" if truth.precision != truth.precision else f"{truth.precision:.0%}"
        st.metric("Regions, precision", found, "" if truth.recall != truth.recall else f"recall {truth.recall:.0%}",
                  **QUIET, help="Of the scenarios in regions, the share whose exact ratio is off 1 by more than 0.2; "
                  "recall: of all such scenarios, the share in regions.")


def truth_regions(truth: DemoTruth) -> None:
    with st.container(border=True):
        st.markdown("**Regions and truth**", help="True Q / P: mean of the exact ratio over P's scenarios there.")
        if not truth.regions:
            st.caption("No regions were found, or none were looked for: there is nothing to compare.")
            return
        st.table(
            [{"Region": f"R{r.k}", "More of": "Q" if r.direction == TARGET_HEAVY else "P", "Scenarios": f"{r.n:,}",
              "Q / P measured": f"{r.w_k:.2f}", "Q / P true": f"{r.w_true:.2f}",
              "Truly shifted": f"{r.share_off:.0%}", "Direction": "right" if r.right_way else ":red[wrong]"}
             for r in truth.regions], hide_index=True, border="horizontal", alt="Regions with their true ratios")
