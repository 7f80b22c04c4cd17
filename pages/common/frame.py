"""The frame of every page: set-up, the choice of P and Q in the sidebar, and errors as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st

from avshift_core import AVShiftError, __version__

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" fill="none" stroke-width="7">
<path d="M4 52 C18 52 18 14 28 14 S38 52 60 52" stroke="#0072B2"/>
<path d="M4 52 C26 52 28 26 38 26 S46 52 60 52" stroke="#D55E00"/></svg>"""

CASES = {
    "none": "Same traffic: Q is drawn exactly like P.",
    "localized": "One kind of scenario became more frequent: a tenth of Q is new, the rest is like P.",
    "global": "The traffic changed as a whole: hardly any part of Q is like P.",
}
SIZES = (2000, 5000, 20_000)


@dataclass(frozen=True)
class Choice:
    """What the sidebar says: the synthetic case, scenarios a side, the seed."""

    case: str
    n: int
    seed: int


def frame(title: str) -> Choice:
    """Set up the page and its sidebar; the first statement of every page."""
    st.set_page_config(page_title=f"{title} · AVShift", page_icon=ICON, layout="wide")
    with st.sidebar:
        st.markdown("### AVShift")
        st.caption("Is it the car, or the traffic it met?")
        case = st.radio(
            "Comparison of P and Q", list(CASES), index=1, captions=list(CASES.values()), key="case",
            bind="query-params",
            help="P is what was observed, Q the traffic the number is wanted for. Three synthetic comparisons with a "
            "known answer.",
        )
        n = st.selectbox(
            "Scenarios a side", SIZES, index=1, key="n", bind="query-params",
            help="More scenarios: narrower intervals, a longer wait.",
        )
        seed = st.number_input(
            "Seed", min_value=0, max_value=2**31 - 1, value=0, step=1, key="seed", bind="query-params",
            help="Seed of the scenarios drawn and of every random choice of the analysis. The same seed gives the same "
            "result.",
        )
    return Choice(case, int(n), int(seed))


def identity(choice: Choice, analysis) -> None:
    """Which data, which seed, which engine, and how long it took."""
    P, Q = analysis.P, analysis.Q
    st.divider()
    st.caption(
        f"P `{P.fingerprint[:8]}` · {P.n:,} scenarios  \nQ `{Q.fingerprint[:8]}` · {Q.n:,} scenarios  \n"
        f"seed {choice.seed} · engine {__version__} · {analysis.timings['total']:.1f} s",
        help="Fingerprints are taken over every byte of a cohort: equal fingerprints, equal data.",
    )


@contextmanager
def errors_as_sentences(place) -> Iterator[None]:
    """Show what an analyst can cause as its own text in `place`, and end there; a bug keeps its traceback."""
    try:
        yield
    except AVShiftError as error:
        place.error(str(error), icon=":material/error:")
        st.stop()
