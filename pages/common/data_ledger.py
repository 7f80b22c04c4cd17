"""Data & models, the ledger: every look at the corpus in use, so that a reviewer sees how many there were."""

from __future__ import annotations

from dataclasses import asdict

import streamlit as st

from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError
from avshift_core.notebook import Look, chance_of_one
from avshift_core.shift.gate import TITLES
from pages.common import state
from pages.common.cached import Loaded, notebook
from pages.common.exports import downloads
from pages.common.frame import DEMO, corpora
from pages.common.text import count, escape

SHOWN = 2000  # rows that are sent; all are in the download
HELP = {
    "Look": "Counted from 1. The same run again is no second look.", "When": "UTC.",
    "What": "Comparison: the global test, regions and calibration of P against Q.",
    "Verdict": "The band in which the lower bound of the advantage lies.",
    "Advantage": "How much better than a coin a classifier tells P and Q apart, with its bounds.",
    "Settings": "Those that differ from the defaults.",
    "Metrics": "What event rates were looked at; a threshold or clip that is moved later is not counted.",
    "Run": "Names data, latents, settings and engine: equal runs, equal numbers.",
    "Data": "Beginning of the corpus' fingerprint at that time.", "Config": "Hash of all settings.",
}


def ledger_part() -> None:
    name = state.value("corpus", DEMO)
    url = corpora().get(name)
    if url is None:
        raise AVShiftError(f"There is no corpus called '{name}' here. Choose another under Corpora.")
    book = notebook(url)
    looks, broken = book.looks(), book.broken_at()
    if not looks:
        st.markdown(f"No cohorts of **{escape(name)}** have been compared yet: its ledger is empty.")
        return
    st.markdown(f"### {count(len(looks), 'look')} at {escape(name)}")
    st.markdown(f"Whoever looks often finds something by chance. {why(len(looks))}", help="One minus the chance that "
                "none of them does: 1 − (1 − error level) to the power of the number of looks. It is the worst case: "
                "the bounds err less often than their level, and looks that share scenarios are not independent.")
    if broken is not None:
        st.error(f"Look {broken} does not fit its digest: somebody has changed the ledger by hand, there or before.",
                 icon=":material/error:")
    st.dataframe([row(look) for look in looks[::-1][:SHOWN]], hide_index=True, key="ledger", column_config={
        column: st.column_config.Column(help=text) for column, text in HELP.items()},
        alt="Every look at the corpus, the latest first, with its cohorts, verdict and run")
    if len(looks) > SHOWN:
        st.caption(f"The last {SHOWN:,} of {len(looks):,}.")
    st.caption(f"Kept in `{str(book.path).replace('`', '')}`. Looks can only be added; each has a digest over itself "
               f"and all before it. The last one is `{looks[-1].digest[:16]}`.")
    downloads({"ledger": [asdict(look) for look in looks]}, figures=False,
              report=lambda: {"corpus": url, "whole": broken is None, "looks": [asdict(look) for look in looks]})


def why(n: int) -> str:
    alpha = AnalysisConfig.alpha
    if n == 1:
        return f"One look errs with a probability of at most {alpha:.0%}; each further one adds to it."
    return (f"If each of the {n:,} looks had its full error level of {alpha:.0%} and they were independent, at least "
            f"one would show a shift that is not there with a probability of **{chance_of_one(n, alpha):.0%}**.")


def row(look: Look) -> dict[str, object]:
    """A look as a row of the table."""
    known = None not in (look.gamma_hat, look.gamma_lcb, look.gamma_ucb)
    size = f"{look.gamma_hat:.3f} ({look.gamma_lcb:.3f} to {look.gamma_ucb:.3f})" if known else ""
    return {
        "Look": look.number, "When": f"{look.when[:10]} {look.when[11:16]}", "What": look.kind,
        "P": look.source or "all", "Q": look.target or "all", "Verdict": TITLES.get(look.verdict, look.verdict),
        "Advantage": size, "Settings": look.settings or "defaults", "Latents": look.latents, "Metrics": look.metrics,
        "Run": look.run, "Data": look.fingerprint[:8], "Config": look.config,
    }


def looks_line(loaded: Loaded) -> None:
    """How many looks there were, beside the verdict of this one."""
    comparison = loaded.comparison
    try:
        found = notebook(comparison.corpus_url).count(comparison.source, comparison.target)
    except AVShiftError:  # said at the top of the page
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{count(found.all, 'look')} at this corpus so far, {found.same_pair:,} of them with this P and Q.",
                   width="content", help="Comparisons that were made on this corpus, whoever made them; the same run "
                   "again is no second look, P and Q swapped are the same two cohorts. Whoever looks often finds "
                   "something by chance.")
        state.link("pages/data.py", "Ledger", icon=":material/list_alt:", data="ledger")
