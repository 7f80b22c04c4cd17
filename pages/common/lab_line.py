"""The lab's first part: the paper's three cases, live."""

from __future__ import annotations

import streamlit as st

from avshift_core.laboratory.line import CASES, PAPER, LineCases, LineRun
from avshift_core.plots.line import line_figure
from avshift_core.plots.metrics import metrics_figure
from avshift_core.shift.calibrate import HEADLINE
from pages.common import parts, state
from pages.common.exports import chart, downloads
from pages.common.frame import errors_as_sentences, settings
from pages.common.jobs import result_of

CASE_NAMES = {"none": "Same traffic", "localized": "One kind more frequent", "global": "Everything changed"}
CASE_TEXTS = {
    "none": "Q is drawn exactly like P.",
    "localized": "A tenth of Q is a new kind of scenario, the rest is like P.",
    "global": "Hardly any part of Q is like P.",
}
SIZES = (2000, 5000, 20_000)
EVENT = "x above 1.5"


def line_part() -> None:
    st.markdown("Three pairs of cohorts on a line, as in the paper. Everything is known here: how far P and Q differ, "
                "the best possible classifier, the true rate of the event in Q.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n = state.segmented("lab_n", "Scenarios a side", SIZES, 5000, format_func="{:,}".format,
                            help="The paper has 20,000 held out. More scenarios, smaller errors.")
        seed = state.number("lab_seed", "Seed", 0, min_value=0, max_value=9999, step=1, width=140,
                            help="Another seed draws other scenarios of the same cases.")
    with errors_as_sentences():
        config = {name: value for name, value in settings().items() if name != "seed"}
        cases = result_of("line", "The paper's three cases", n=n, seed=int(seed), config=config)
    if cases is not None:
        line_results(cases)


@state.fragment
def line_results(cases: LineCases) -> None:
    """The table of all cases and one of them in detail; both follow the clip."""
    right = sum(run.right for run in cases.runs)
    st.markdown(f"### {'All three' if right == 3 else f'{right} of the three'} verdicts are right.")
    place = st.container(border=True)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        B = state.clip()
        table = cases.table(B)
        downloads({"paper_cases": table}, report=lambda: {"B": B, "cases": table.to_dict("records")})
    with place:
        st.markdown("**What the paper prints, and what comes out here**", help="Paper: tab:synthetic_twosample and the "
                    "text below fig:syn_local_diff. Here: this tool on freshly drawn scenarios.")
        st.table(line_rows(cases, B), hide_index=True, border="horizontal", alt="The three cases: paper and here")
        st.caption("The paper's classifier is kNN on random halves; ours aims at the best accuracy that is possible. "
                   "Its p-values 0.012 and 0.016 are 1/81 and 1/61: the floor of 80 and 60 permutations, which any "
                   "clear shift reaches. Its target rate 0.4097 is a sample mean; the exact rate is 0.4118.")
    case = state.segmented("case", "Case in detail", CASES, "localized", format_func=CASE_NAMES.get)
    line_case(cases.run(case), B)


def line_rows(cases: LineCases, B: float) -> list[dict[str, str]]:
    """Rows of quantities, two columns a case."""
    columns = {CASE_NAMES[run.case]: paper_and_here(run, B) for run in cases.runs}
    names = next(iter(columns.values()))
    return [{"": name} | {f"{case}: {which}": values[name][i] for case, values in columns.items()
                          for i, which in enumerate(("paper", "here"))} for name in names]


def paper_and_here(run: LineRun, B: float) -> dict[str, tuple[str, str]]:
    """Quantity -> what the paper prints, and what came out here; "" where there is nothing."""
    paper, test, p = PAPER[run.case], run.analysis.global_test, run.p_values
    found = run.estimates(B)
    rate = lambda value: "—" if value is None else f"{value:.4f}"  # noqa: E731
    here = lambda e: "—" if e is None else f"{e.mu:.4f} ({e.lo:.4f} to {e.hi:.4f})"  # noqa: E731
    bounds = f"{test.gamma_lcb:.3f} to {test.gamma_ucb:.3f}"
    return {
        "Verdict": (f"“{paper.name}”", f"{run.analysis.verdict.title} {':green[✓]' if run.right else ':red[✗]'}"),
        "Accuracy": (f"{paper.acc:.3f}", f"**{test.acc:.3f}**"),
        "Accuracy of kNN on random halves": ("as above", f"{run.acc_knn:.3f}"),
        "Best possible accuracy": ("", f"{0.5 + run.truth.gamma_star:.3f}"),
        "Advantage (bounds)": (f"{max(0, paper.acc - 0.5):.3f}", f"{test.gamma_hat:.3f} ({bounds})"),
        "p, classifier": (f"{paper.p_c2st:g}", f"{p['p_c2st']:.3g}"),
        "p, Kolmogorov-Smirnov, closed form": (f"{paper.p_ks:.3g}", f"{p['p_ks']:.3g}"),
        "p, maximum mean discrepancy": (f"{paper.p_mmd:g}", f"{p['p_mmd']:.3g}"),
        "p, Wasserstein": (f"{paper.p_w1:g}", f"{p['p_w1']:.3g}"),
        "Rate observed in P": (rate(paper.naive), here(found["naive"])),
        "Calibrated, regions as in the paper": (rate(paper.lis), here(found["lis_paper"])),
        "Calibrated, region by region": ("", here(found["lis"])),
        "Calibrated, cell by cell": ("", here(found[HEADLINE]) if run.analysis.headline() else "withheld"),
        "Rate observed in Q": (rate(paper.target), here(found["target"])),
        "True rate of Q": ("", f"**{run.truth.mu_Q:.4f}**"),
    }


def line_case(run: LineRun, B: float) -> None:
    analysis = run.analysis
    calibration, checks = analysis.calibrate(B), analysis.recheck(B)
    headline = analysis.headline(checks=checks)
    st.caption(CASE_TEXTS[run.case])
    parts.conclusion(analysis, calibration, headline, checks, EVENT)
    with st.container(border=True):
        st.markdown("**Where do they differ?**", help="Above: how often each kind of scenario occurs in P and Q, with "
                    "the detected regions. Below: the weights that scenarios of P get, and the true ratio.")
        parts.regions_text(analysis)
        chart(line_figure(analysis, run.case, B), "line", "Densities of P and Q along the latent line with the "
              "detected regions, and the weights given to P")
    with st.container(border=True):
        st.markdown("**The event rate in the traffic of Q**" + ("" if headline else " :red-badge[withheld]"),
                    help="Dots are estimates, bars their intervals; the dashed line is the true rate of Q.")
        chart(metrics_figure(calibration, headline, run.truth.mu_Q), "line_rates",
              f"Event rate by every estimator at clip {B:g}, with the true rate of Q {run.truth.mu_Q:.1%}")
