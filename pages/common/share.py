"""This view under a name, or as a link; and whether what a link was made for is still there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.notebook.entries import LONGEST_NAME
from pages.common import state
from pages.common.cached import Loaded, notebook
from pages.common.cohorts import ALL
from pages.common.text import escape

if TYPE_CHECKING:
    from pages.common.frame import Desk

RUN = re.compile(r"([0-9a-f]{12})(?:\.([0-9a-f]{8}))?")  # the run, and the beginning of the corpus' fingerprint
NAME, SAID = "save_view_as", "_saved_said"


def stamp(run: str, fingerprint: str) -> str:
    """What a link says of the run that it was made for."""
    return f"{run}.{fingerprint[:8]}" if RUN.fullmatch(run) else ""


def address(desk: Desk, loaded: Loaded, metric: str) -> dict[str, str]:
    """All that the URL says, and what it leaves to defaults that change with the data."""
    chosen = {"P": str(desk.source) or ALL, "Q": str(desk.target) or ALL, "metric": metric,
              "run": stamp(loaded.run, loaded.comparison.corpus_fingerprint)}
    return {name: value for name, value in {**state.values(), **chosen}.items() if value}


@st.fragment
def share(desk: Desk, loaded: Loaded, metric: str) -> None:
    """A box with a link to this view and a field to save it; opening it runs it again, so that the link is right."""
    with st.popover("Save or share this view", icon=":material/bookmark_add:", width="stretch", key="share",
                    on_change="rerun"):
        st.markdown("**Save it under a name**", help="Kept beside the corpus for everybody who uses it, and listed on "
                    "the Overview.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Name of the view", key=NAME, max_chars=LONGEST_NAME, placeholder="Harbor: lorries in W12",
                          label_visibility="collapsed", width="stretch")
            st.button("Save", key="save_view", icon=":material/bookmark_add:", on_click=_save,
                      args=(desk, loaded, metric))
        kind, sentence = st.session_state.pop(SAID, ("", ""))
        if kind == "saved":
            st.success(sentence, icon=":material/check:")
        elif kind:
            st.error(sentence, icon=":material/error:")
        st.markdown("**Or copy its link**", help="It opens this view in any browser that reaches this dashboard. It "
                    "carries the run: if the data has changed by then, the page says so.")
        st.code(f"{st.context.url or ''}?{urlencode(address(desk, loaded, metric))}", language=None, wrap_lines=True)


def _save(desk: Desk, loaded: Loaded, metric: str) -> None:
    query = {name: value for name, value in address(desk, loaded, metric).items() if name != "run"}
    fingerprint = loaded.comparison.corpus_fingerprint
    try:
        view = notebook(desk.corpus.url).save_view(st.session_state.get(NAME) or "", desk.title, urlencode(query),
                                                   fingerprint=fingerprint, run=loaded.run)
    except AVShiftError as error:
        st.session_state[SAID] = "error", escape(str(error))
        return
    st.session_state[NAME] = ""
    st.session_state[SAID] = "saved", f"Saved as “{escape(view.name)}”; the Overview lists it."


def run_notice(loaded: Loaded) -> None:
    """Say so where the URL names a run and what stands here is another one."""
    said = state.value("run")
    if not said:
        return
    match, now = RUN.fullmatch(said), loaded.comparison.corpus_fingerprint[:8]
    if match is None:
        st.warning(f"The link names the run “{escape(said[:40])}”, and no run is called so: the address was changed on "
                   f"its way. This is run `{loaded.run}`.", icon=":material/link_off:")
        return
    run, data = match.groups()
    if run == loaded.run:
        if data and data != now:
            st.caption(f":material/info: The corpus has changed since this was saved (`{data}` then, `{now}` now), but "
                       "P and Q are the same, and so are their numbers.")
        return
    if data and data != now:
        reason = f"The data has changed since this was saved (corpus `{data}` then, `{now}` now)"
    elif data:
        reason = (f"The corpus is the one that this was saved with (`{data}`), but the engine, the settings or the "
                  "address have changed since")
    else:
        reason = "The data, the engine, the settings or the address have changed since this was saved"
    st.warning(f"{reason}: it was run `{run}`, and this is run `{loaded.run}`. Numbers and regions may differ.",
               icon=":material/history:")
