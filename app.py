"""Start page: choose P and Q, read the verdict and its headline numbers, move the clip, see what to trust."""

import streamlit as st

from avshift_core.config import AnalysisConfig
from avshift_core.plots.band import band_figure
from avshift_core.plots.line import line_figure
from avshift_core.plots.metrics import metrics_figure
from pages.common import parts
from pages.common.cached import analysis_of
from pages.common.frame import Choice, errors_as_sentences, frame, identity

CHART = {"config": {"displayModeBar": False}}


@st.fragment
def results(choice: Choice, analysis, truth) -> None:
    """All that follows the clip; moving it calibrates again and trains nothing."""
    top = st.container()
    B = parts.clip_slider(analysis.config.B)
    calibration, checks = analysis.calibrate(B), analysis.recheck(B)
    headline = analysis.headline(checks=checks)
    with top:
        parts.conclusion(analysis, calibration, headline, checks)
        parts.key_numbers(analysis, calibration, headline)
    with st.grid(2, min_column_width=430):
        with st.container(border=True):
            distance(analysis)
        with st.container(border=True):
            rates(calibration, headline, truth)
    with st.container(border=True):
        places(choice, analysis, B)
    with st.container(border=True):
        st.markdown("**Can the calibrated number be trusted?**", help="Each check has a threshold. A red one withholds "
                    "the calibrated number.")
        parts.trust_list(checks, analysis.config, B)
    with st.container(border=True):
        st.markdown("**Every estimator in numbers**", help=f"Event rates in the traffic of Q at clip {B:g}, with "
                    f"{analysis.config.level:.0%} intervals.")
        parts.estimator_table(calibration, headline)


def distance(analysis) -> None:
    test = analysis.global_test
    st.markdown("**How far apart are P and Q?**", help="The verdict is the band in which the lower bound of the "
                "advantage lies. A cohort against itself shows what chance alone gives.")
    st.plotly_chart(
        band_figure(test, analysis.config), key="band", **CHART,
        alt=f"Advantage {test.gamma_hat:.3f}, between {test.gamma_lcb:.3f} and {test.gamma_ucb:.3f}: "
        f"{analysis.verdict.title}",
    )


def rates(calibration, headline, truth) -> None:
    withheld = "" if headline else " :red-badge[withheld]"
    st.markdown(f"**The event rate in the traffic of Q**{withheld}", help="Dots are estimates, bars their "
                "intervals; the large diamond is the headline. When it is withheld, open dots are for inspection only.")
    st.plotly_chart(
        metrics_figure(calibration, headline, truth.mu_Q), key="metrics", **CHART,
        alt=f"Event rate by every estimator at clip {calibration.B:g}, with the true rate of Q {truth.mu_Q:.1%}",
    )


def places(choice: Choice, analysis, B: float) -> None:
    st.markdown("**Where do they differ?**", help="Regions are chosen by one part of the scenarios and confirmed by "
                "the other; p is adjusted for the number of candidates. Orange: more of Q. Blue: more of P. Grey: Q "
                "without P.")
    parts.regions_text(analysis)
    st.plotly_chart(
        line_figure(analysis, choice.case, B), key="line", **CHART,
        alt="Densities of P and Q along the latent line with the detected regions, and the weights given to P",
    )


def start_page(choice: Choice) -> None:
    body, run = st.empty(), st.sidebar.empty()  # emptied at once: no old result stands beside a new choice
    with st.expander("Settings", icon=":material/tune:"):
        settings = parts.settings_form(elsewhere=("seed", "B"))
    with errors_as_sentences(body):
        config = AnalysisConfig(seed=choice.seed, **settings)
        pair, analysis = analysis_of(
            choice.case, choice.n, choice.seed, config, lambda step: body.progress(step.share, step.text)
        )
    with run.container():
        identity(choice, analysis)
    with body.container():
        results(choice, analysis, pair.truth)
        with st.expander("p-values", icon=":material/function:"):
            parts.p_values(analysis)


start_page(frame("Start"))
