"""Global test: how far P and Q differ as a whole, how sure that is, and what makes the difference."""

import streamlit as st

from avshift_core.plots.band import band_figure
from avshift_core.plots.classifier import (
    bounds_figure,
    permutation_figure,
    reference_figure,
    reliability_figure,
    repeats_figure,
    roc_figure,
    saturation_figure,
    variance_figure,
)
from avshift_core.plots.love import differences_figure
from avshift_core.plots.sensitivity import studies_figure, widths_figure
from avshift_core.shift.baselines import N_PERM
from avshift_core.shift.curves import Curves, Roc, variance_split
from avshift_core.shift.gate import GLOBAL_SHIFT, LOCALIZE, NO_SHIFT
from avshift_core.shift.profile import as_table, telling
from avshift_core.shift.sensitivity import SEEDS, Sensitivity
from avshift_core.shift.tables import global_tables, sensitivity_tables
from pages.common import parts
from pages.common.cached import Loaded
from pages.common.data_ledger import looks_line
from pages.common.derived import curves_of, weighing_of
from pages.common.exports import chart, downloads
from pages.common.frame import comparison_or_stop, frame
from pages.common.jobs import result_of
from pages.common.text import count, escape

QUIET = {"delta_color": "off", "delta_arrow": "off", "border": True, "height": "stretch"}
PANEL = {"border": True, "height": "stretch"}
SHOWN = 16  # attributes of the ranking; all of them are in the table below it and in the download


def global_test(loaded: Loaded) -> None:
    analysis, curves = loaded.analysis, curves_of(loaded)
    conclusion(loaded)
    key_numbers(loaded, curves.roc)
    with st.grid(2, min_column_width=430):
        with st.container(**PANEL):
            distance(loaded, curves)
        with st.container(**PANEL):
            uncertainty(loaded)
        with st.container(**PANEL):
            discrimination(loaded, curves)
        with st.container(**PANEL):
            honesty(loaded, curves)
        with st.container(**PANEL):
            chance(loaded)
        with st.container(**PANEL):
            why_not_p(loaded, curves)
    with st.container(border=True):
        attributes(loaded)
    with st.container(border=True):
        studies = sensitivity(loaded)
    tables = global_tables(analysis, curves, variance_split(analysis.global_test))
    tables["differences"] = as_table(weighing_of(loaded).before)
    downloads({**tables, **(sensitivity_tables(studies) if studies else {})}, loaded)


def conclusion(loaded: Loaded) -> None:
    test, verdict = loaded.analysis.global_test, loaded.analysis.verdict
    parts.verdict_badges(loaded.analysis)
    told = f"A classifier gives {test.acc:.1%} of the scenarios to the right cohort; a coin gives 50%."
    words = {
        NO_SHIFT: f"P and Q could not be told apart. {told}", LOCALIZE: f"P and Q differ moderately. {told}",
        GLOBAL_SHIFT: f"P and Q differ strongly. {told}",
    }[verdict.name]
    st.markdown(f"### {words}")
    st.caption(escape(verdict.sentence))
    looks_line(loaded)


def key_numbers(loaded: Loaded, roc: Roc) -> None:
    test, config = loaded.analysis.global_test, loaded.analysis.config
    level = f"one-sided bounds, error level {config.alpha:g} each"
    unit = "scenarios" if test.independence_assumed else "drives"
    with st.grid(5, min_column_width=165):
        st.metric("Held-out accuracy", f"{test.acc:.1%}", f"{0.5 + test.gamma_lcb:.1%} to {0.5 + test.gamma_ucb:.1%}",
                  **QUIET, help="Share of scenarios that a classifier, which has seen neither them nor their drive, "
                  f"gives to the right cohort; both cohorts count the same. In grey {level}, not below 50 %.")
        st.metric("Advantage", f"{test.gamma_hat:.3f}", f"{test.gamma_lcb:.3f} to {test.gamma_ucb:.3f}", **QUIET,
                  help=f"Accuracy minus one half: 0 cannot be told apart, 0.5 without error. In grey {level}.")
        st.metric("Total variation", f"≥ {test.tv_lower:.1%}", "lower bound", **QUIET,
                  help="There are situations whose shares of P and of Q differ by at least this much: twice the lower "
                  "bound of the advantage. The true distance may be larger; no classifier bounds it from above.")
        st.metric("Visible from", f"{test.detectable_gamma:.3f}", "in 4 of 5 comparisons", **QUIET,
                  help="A true advantage of this size would have been called a shift with probability 0.8, with as "
                  "many scenarios and drives as here.")
        st.metric("Scenarios held out", f"{test.n_te:,}", f"worth {test.n_te / max(test.design_effect, 1):,.0f}",
                  **QUIET, help="Every scenario is held out once a repeat, in equal numbers of P and Q. In grey, how "
                  "many independent scenarios they are worth: number over design effect.")
        st.metric("p, classifier", f"{test.p_value:.3g}", f"floor {1 / (config.n_perm + 1):.3g}", **QUIET,
                  help=f"How often dealing out the {unit} to P and Q at random gives an area under the ROC curve as "
                  "large. It says whether there is a shift, not how large it is.")
        st.metric("p, neighbours", f"{test.p_neighbors:.3g}", f"floor {1 / (config.n_perm + 1):.3g}", **QUIET,
                  help="The same for the share of neighbours in latent space that are of the same cohort: a test that "
                  "trains nothing.")
        st.metric("Alike within a drive", f"{test.icc:.1%}", "intraclass correlation", **QUIET,
                  help="Share of the latent variance that lies between drives. Above 0, scenarios of one drive are not "
                  "independent, and bounds that count scenarios are too tight.")
        same = test.var_test == 0  # a classifier that says the same of every scenario
        st.metric("Design effect", "—" if same else f"{test.design_effect:.1f}", "the same answer everywhere" if same
                  else "variance by drive", **QUIET, help="How many times larger the variance of the accuracy is than "
                  "with independent scenarios.")
        st.metric("Area under ROC", f"{roc.auc:.3f}", interval(roc), **QUIET,
                  help="Chance that a scenario of Q has a higher score than one of P, mean of the folds; 0.5 is a "
                  "coin. In grey its 95 % interval by drive.")
    if test.independence_assumed:
        st.warning("No drive ids: independence of the scenarios is assumed, and bounds are too tight if scenarios of a "
                   "drive are alike.", icon=":material/warning:")


def interval(roc: Roc) -> str:
    """In words; a classifier that says the same of every scenario has none."""
    return f"{roc.lo:.3f} to {roc.hi:.3f}" if roc.lo == roc.lo else "the same score everywhere"


def distance(loaded: Loaded, curves: Curves) -> None:
    analysis, test = loaded.analysis, loaded.analysis.global_test
    st.markdown("**How far apart are P and Q?**", help="The verdict is the band in which the lower bound of the "
                "advantage lies. A cohort against itself shows what chance alone gives.")
    chart(band_figure(test, analysis.config), "band", f"Advantage {test.gamma_hat:.3f}, between {test.gamma_lcb:.3f} "
          f"and {test.gamma_ucb:.3f}: {analysis.verdict.title}", loaded)
    st.markdown("**The same by other bounds**", help="Wilson and Hoeffding are the paper's and count scenarios; the "
                "bound by drive counts drives and decides. Lower ends in numbers.")
    chart(bounds_figure(curves.bounds, test, analysis.config), "bounds", "Advantage with bounds by drive, Wilson and "
          "Hoeffding: " + ", ".join(f"{b.name} {b.gamma_lcb:.3f} to {b.gamma_ucb:.3f}" for b in curves.bounds), loaded)


def uncertainty(loaded: Loaded) -> None:
    test = loaded.analysis.global_test
    st.markdown("**Accuracy over the repeats**", help="Each repeat draws folds and trains anew. Dashed: their mean; "
                "grey: its standard error; dotted: chance.")
    chart(repeats_figure(test), "repeats", f"Accuracy of {count(test.repeats, 'repeat')}: mean {test.acc:.4f}, "
          f"standard deviation {test.acc_std:.4f}", loaded)
    st.caption(f"Mean {test.acc:.4f}, standard deviation over the repeats {test.acc_std:.4f}, standard error of the "
               f"mean {test.se:.4f}.")
    st.markdown("**Where its uncertainty comes from**", help="The variance of the accuracy is that of the held-out "
                "scenarios plus that of training. The first is larger than binomial because scenarios of a drive are "
                "alike, and is doubled because every pair of folds is used in both roles.")
    chart(variance_figure(variance_split(test)), "variance", "Shares of the variance of the accuracy", loaded)


def discrimination(loaded: Loaded, curves: Curves) -> None:
    roc = curves.roc
    st.markdown("**How well do scores tell P from Q?** (ROC)", help="Every threshold of the score is a point: how much "
                "of Q is found, and how much of P is taken for Q. On the diagonal the score says nothing. Mean over "
                "the folds and repeats; 95 % interval by drive.")
    chart(roc_figure(roc), "roc", f"ROC curve with area {roc.auc:.3f}, {interval(roc)}", loaded)
    st.caption(f"Area under the curve {roc.auc:.3f} ({interval(roc)}): the chance that a scenario of Q scores higher "
               "than one of P.")


def honesty(loaded: Loaded, curves: Curves) -> None:
    found = curves.reliability
    st.markdown("**Does the score mean what it says?** (reliability)", help="Among scenarios with a score of 0.6, 60 % "
                "should be of Q, if P and Q were equally large. Bars: 95 % intervals by drive. Classifier weights are "
                "only as good as this. Below: the scores of both cohorts.")
    chart(reliability_figure(found, curves.scores), "reliability", "Share of Q against the score in "
          f"{count(len(found.h), 'bin')}; expected calibration error {found.error:.4f}", loaded)
    st.caption(f"Expected calibration error {found.error:.4f}: the mean distance of the dots from the line. By chance "
               f"alone, a score that means exactly what it says would show about {found.by_chance:.4f}.")


def chance(loaded: Loaded) -> None:
    test, config = loaded.analysis.global_test, loaded.analysis.config
    unit = "scenarios" if test.independence_assumed else "drives"
    st.markdown("**Could chance do that?**", help=f"The {unit} are dealt out to P and Q at random {config.n_perm:,} "
                "times, and the statistic is taken again each time.")
    chart(permutation_figure(test), "permutations", f"Distribution of the statistic over {config.n_perm:,} "
          f"permutations, and the observed {test.statistic:.2f}", loaded)
    beyond = round(test.p_value * (config.n_perm + 1)) - 1
    st.caption(f"{beyond:,} of {config.n_perm:,} permutations reach the observed {test.statistic:.2f}: "
               f"p = {test.p_value:.3g}.")


    st.markdown("**And by other tests?**", help="Reference statistics on the same scenarios; p-values by dealing out "
                f"the {unit} again. No p-value by permutation can lie beyond its floor.")
    floor = 1 / (config.n_perm + 1)
    rows = [("Classifier", test.p_value, floor, None), ("Neighbours", test.p_neighbors, floor, None)]
    rows += [(parts.TESTS.get(r.name, r.name), r.p_value, 1 / (N_PERM + 1), r.p_asymptotic)
             for r in loaded.analysis.reference]
    chart(reference_figure(rows), "tests", "p-values of the classifier, neighbour, Kolmogorov-Smirnov, maximum mean "
          "discrepancy and Wasserstein tests", loaded)


def why_not_p(loaded: Loaded, curves: Curves) -> None:
    st.markdown("**Why a p-value is not the verdict**", help="Every test with its statistic and its p-values. Below: "
                "what p a shift of a given size is expected to have, by the number of scenarios, at this design "
                "effect.")
    parts.p_values(loaded.analysis)
    chart(saturation_figure(curves.saturation), "saturation", "Expected p-value against the number of scenarios for "
          "three sizes of shift: with enough scenarios it falls to any level for each of them", loaded)


def attributes(loaded: Loaded) -> None:
    found = weighing_of(loaded).before
    st.markdown("**What differs, attribute by attribute?**", help="Standardised difference: Q's mean minus P's, in "
                "standard deviations; below 0.1 (green) it is usually called negligible. Bars: 95 % intervals by "
                "drive, each for itself.")
    if not found:
        st.info("These cohorts have no attributes that people can read, only latents. Import the scenarios with their "
                "attributes to see what differs.", icon=":material/search_off:")
        return
    shown = telling(found, SHOWN)
    chart(differences_figure(shown), "differences", "Standardised differences of the attributes that differ most: "
          + ", ".join(f"{d.label} {d.smd:+.2f}" for d in shown[:5]), loaded)
    st.caption(f"{len(shown)} of {len(found)} attributes shown: the largest that are clear of 0 first, and of those "
               "that say the same only one. All are in the table.")
    with st.expander(f"All {len(found)} attributes", icon=":material/table:"):
        st.dataframe(
            [{"Attribute": d.label, "P": d.text(d.outside), "Q": d.text(d.inside), "Difference": d.smd, "from": d.lo,
              "to": d.hi, "Missing in P": d.missing_outside, "Missing in Q": d.missing_inside} for d in found],
            hide_index=True, alt="Every attribute in P and Q with its standardised difference",
            column_config={k: st.column_config.NumberColumn(format="%+.3f") for k in ("Difference", "from", "to")},
        )


def sensitivity(loaded: Loaded) -> Sensitivity | None:
    st.markdown("**How much does the answer depend on the classifier?** (the paper's sensitivity studies)",
                help="26 configurations in four studies, each trained on one half of the drives and tested on the "
                f"other, {SEEDS} times.")
    found = result_of("sensitivity", "Sensitivity studies", start=False, button="Run the 26 configurations",
                      comparison=loaded.key, seeds=SEEDS)
    if found is None:
        st.caption("Classifier family, class ratio, training size and capacity: the accuracy should not depend much on "
                   "any of them. It takes a few minutes for some thousand scenarios, longer for more, and goes on when "
                   "you leave this page.")
        return None
    study_results(loaded, found)
    return found


def study_results(loaded: Loaded, found: Sensitivity) -> None:
    config = loaded.analysis.config
    chart(studies_figure(found, config), "studies", "Held-out accuracy by classifier family, class ratio, training "
          "size and capacity", loaded)
    st.caption(f"Boxes and dots: {SEEDS} seeds. Solid line: chance. Dotted: the edges of the band, "
               f"{0.5 + config.gamma_small:g} and {0.5 + config.gamma_large:g}. Half of the drives train here, so the "
               "accuracy may be lower than above.")
    left, right = st.columns(2)
    with left:
        st.markdown("**Interval against the number held out**", help="Half of the 95 % interval of the accuracy, "
                    "measured by drawing whole drives; dashed: if scenarios were independent.")
        chart(widths_figure(found.widths), "widths", "Half-width of the interval against the number of scenarios held "
              "out", loaded)
    with right:
        st.markdown("**All configurations of a study together**", help="As the paper's table: mean and standard "
                    "deviation over configurations and seeds.")
        st.table(
            [{"Study": s.study.capitalize(), "Configurations": s.configs, "Accuracy": f"{s.acc:.3f} ± {s.acc_std:.3f}"}
             for s in found.summary()], hide_index=True, border="horizontal", alt="Mean accuracy of each study",
        )
    with st.expander("Every configuration", icon=":material/table:"):
        st.dataframe(
            [{"Study": r.study, "Setting": r.setting, "Accuracy": r.acc, "Deviation": r.acc_std,
              "Advantage": r.gamma_hat, "Seeds": r.seeds} for r in found.rows],
            hide_index=True, alt="Accuracy of every configuration",
            column_config={k: st.column_config.NumberColumn(format="%.4f") for k in ("Accuracy", "Deviation",
                                                                                    "Advantage")},
        )


global_test(comparison_or_stop(frame("Global test")))
