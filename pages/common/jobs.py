"""Long work on a page: its result when it is there, otherwise its progress with a way to cancel it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from avshift_core.archive import ArchiveError
from avshift_core.jobs.board import CANCELLED, DONE, FAILED, Job
from avshift_core.jobs.kinds import KEPT, KINDS, job_key
from pages.common.cached import board, result, workspace
from pages.common.pulse import pulse
from pages.common.text import escape

POLL_S = 0.4


def result_of(kind: str, title: str = "", *, start: bool = True, button: str = "Start", **arguments: Any) -> Any | None:
    """The result of a job; None while there is none, and then its state stands on the page.

    Args:
        start: whether to start it now, or to wait for a click on `button`.
    """
    key = job_key(kind, arguments)
    title = title or KINDS[kind].title
    if workspace().results.has(key) and not KINDS[kind].once:
        try:
            return result(key)
        except ArchiveError:
            result.clear()  # it was damaged, and is removed: compute it again
    job = board().find(key)
    if job is None or (job.state == DONE and not workspace().results.has(key)):
        if not start:
            st.button(button, key=f"start_{key}", type="primary", icon=":material/play_arrow:",
                      on_click=_ask, args=(kind, arguments, title))
            return None
        job = _ask(kind, arguments, title)
    needed = [arguments[name] for name in KEPT if name in arguments]
    if job.damaged and needed and all(map(workspace().results.has, needed)):
        job = _ask(kind, arguments, title)  # what it needs has been computed again
    if job.state == DONE:
        return result(key)
    if job.state == FAILED:
        st.error(escape(job.error), icon=":material/error:")
        st.button("Try again", key=f"again_{key}", on_click=_ask, args=(kind, arguments, title))
    elif job.state == CANCELLED:
        st.info(f"{title}: cancelled. Nothing was lost.", icon=":material/cancel:")
        st.button("Start again", key=f"again_{key}", on_click=_ask, args=(kind, arguments, title))
    else:
        _progress(key)
    return None


def _ask(kind: str, arguments: dict, title: str) -> Job:
    return board().ask(kind, arguments, title)


@st.fragment
def _progress(key: str) -> None:
    """The bar of a job under way; when it is over the whole page runs again."""
    job = board().find(key)
    if job is None or job.over:
        st.rerun()
    with st.container(border=True):
        st.progress(min(max(job.share, 0.0), 1.0), f"**{job.title}** · {job.text}")
        st.button("Cancel", key=f"cancel_{key}", icon=":material/close:", on_click=board().cancel, args=(key,))
    pulse(key, POLL_S)
