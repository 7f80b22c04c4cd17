"""Synthetic lab: how far the tool is from the truth, where the truth is known."""

import streamlit as st

from pages.common import state
from pages.common.frame import Desk, frame
from pages.common.lab_fleet import fleet_part
from pages.common.lab_line import line_part
from pages.common.lab_truth import truth_part

LINE, FLEET, TRUTH = "line", "fleet", "truth"
PARTS = {LINE: "The paper's three cases", FLEET: "A fleet like yours", TRUTH: "This comparison"}


def lab_page(desk: Desk) -> None:
    st.title("Synthetic lab", anchor=False)
    part = state.segmented("lab", "What to look at", tuple(PARTS), LINE, format_func=PARTS.get,
                           label_visibility="collapsed")
    if part == LINE:
        line_part()
    elif part == FLEET:
        fleet_part(desk)
    else:
        truth_part(desk)


def needs_corpus() -> bool:
    """The paper's cases and fleets of one's own numbers need no corpus, and open without one."""
    part = state.value("lab", LINE)
    return part == TRUTH or (part == FLEET and state.value("like") != "own")


lab_page(frame("Lab", needs_corpus=needs_corpus()))
