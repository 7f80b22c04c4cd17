"""Overview: what is loaded, P and Q, the verdict, its headline numbers and how far to trust them."""

import streamlit as st

from avshift_core.plots.band import band_figure
from avshift_core.plots.metrics import metrics_figure
from avshift_core.plots.overview import calendar_figure, counts_figure
from avshift_core.report import region_table
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.shift.tables import estimates_table
from pages.common import cohorts, parts, state
from pages.common.cached import Loaded, counts, summary
from pages.common.described import regions_of
from pages.common.exports import chart, downloads
from pages.common.frame import IN_URL, Desk, comparison_or_stop, frame, metric_of
from pages.common.notes import notes_of
from pages.common.saved import saved_views
from pages.common.text import count, escape


def overview(desk: Desk) -> None:
    for sentence in cohorts.warnings(desk.corpus, desk.source, desk.target, desk.view):
        st.warning(escape(sentence), icon=":material/warning:")
    results_place = st.container()
    saved_views(desk)
    with st.expander("What is loaded", icon=":material/inventory_2:", expanded=True):
        loaded_corpus(desk)
    with st.expander("Settings of the analysis", icon=":material/tune:"):
        parts.settings_form(IN_URL)
    with results_place:
        loaded = comparison_or_stop(desk)
        for caution in loaded.comparison.cautions:
            if not caution.startswith("AV versions differ"):  # said above already
                st.warning(escape(caution), icon=":material/warning:")
        results(loaded)


@state.fragment
def results(loaded: Loaded) -> None:
    """All that follows the clip; moving it calibrates again and trains nothing."""
    analysis, metric = loaded.analysis, metric_of(loaded)
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        B = state.clip()
        take = st.container(width="content")
    calibration = analysis.calibrate(B, metric)
    checks = parts.checks_in_words(loaded.comparison, analysis.checks_of(calibration), metric)
    headline = analysis.headline(metric, checks)
    with top:
        parts.conclusion(analysis, calibration, headline, checks, loaded.comparison.phrase(metric))
        parts.key_numbers(analysis, calibration, headline)
    parts.numbers_first()
    with take:
        downloads({"estimates": estimates_table(calibration, headline), "regions": region_table(analysis, B)}, loaded,
                  evidence={"metric": metric, "B": B})
    with st.grid(2, min_column_width=430):
        with st.container(border=True):
            distance(loaded)
        with st.container(border=True):
            rates(loaded, calibration, headline)
        with st.container(border=True):
            where(loaded)
        with st.container(border=True):
            st.markdown("**Can the calibrated number be trusted?**", help="Each check has a threshold. A red one "
                        "withholds the calibrated number.")
            parts.trust_summary(checks)
            state.link("pages/calibration.py", f"All {len(checks)} checks", icon=":material/arrow_forward:")


def distance(loaded: Loaded) -> None:
    analysis, test = loaded.analysis, loaded.analysis.global_test
    st.markdown("**How far apart are P and Q?**", help="The verdict is the band in which the lower bound of the "
                "advantage lies. A cohort against itself shows what chance alone gives.")
    chart(band_figure(test, analysis.config), "band", f"Advantage {test.gamma_hat:.3f}, between {test.gamma_lcb:.3f} "
          f"and {test.gamma_ucb:.3f}: {analysis.verdict.title}", loaded)


def rates(loaded: Loaded, calibration, headline) -> None:
    withheld = "" if headline else " :red-badge[withheld]"
    st.markdown(f"**{escape(loaded.comparison.phrase(calibration.metric))} in the traffic of Q**{withheld}",
                help="Dots are estimates, bars their intervals; the large diamond is the headline. When it is "
                "withheld, open dots are for inspection only.")
    chart(metrics_figure(calibration, headline), "metrics", "Event rate by every estimator at clip "
          f"{calibration.B:g}", loaded)


def where(loaded: Loaded) -> None:
    st.markdown("**Where do they differ?**", help="Regions of latent space, chosen by some drives and confirmed by "
                "others; the share of each cohort is measured on the latter.")
    parts.regions_text(loaded.analysis, regions_of(loaded).regions, notes_of(loaded))
    with st.container(horizontal=True):
        state.link("pages/regions.py", "Regions", icon=":material/arrow_forward:")
        state.link("pages/latent_map.py", "Latent map", icon=":material/arrow_forward:")


def loaded_corpus(desk: Desk) -> None:
    """Counts of the corpus, its calendar and what it warns of."""
    facts = summary(desk.corpus.url, desk.corpus.fingerprint)
    st.markdown(f"**{facts['n']:,}** scenarios · **{facts['drives']:,}** drives · **{facts['km']:,.0f}** km · "
                f"**{facts['hours']:,.0f}** h · {count(len(facts['by']['area']), 'area')} · "
                f"{count(len(facts['by']['av_version']), 'AV version')}")
    for sentence in facts["warnings"]:
        st.caption(f":material/warning: {escape(sentence)}")
    days = counts(desk.corpus.url, desk.corpus.fingerprint, ("day", "area", "av_version", "period"))
    if (days["day"] != UNKNOWN).any():
        chart(calendar_figure(days), "calendar", "Scenarios of each day and area")
    else:
        st.caption("No scenario has a date, so there is no calendar.")
    with st.grid(3, min_column_width=300):
        for name, title in (("period", "Period"), ("av_version", "AV version"), ("category", "Category")):
            table = counts(desk.corpus.url, desk.corpus.fingerprint, (name, "area"))
            chart(counts_figure(table, name, title), f"counts_{name}", f"Scenarios by {title.lower()}")


overview(frame("Overview"))
