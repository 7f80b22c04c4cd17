"""Jobs as a list that moves: state, progress, cancel, try again; the same for every session of the server."""

from __future__ import annotations

import time
from collections.abc import Collection

import streamlit as st

from avshift_core.jobs.board import CANCELLED, DONE, FAILED, QUEUED, RUNNING, Job
from pages.common.cached import board
from pages.common.pulse import pulse
from pages.common.text import escape

BADGES = {
    QUEUED: (":gray-badge[:material/schedule: queued]", 1), RUNNING: (":blue-badge[:material/play_arrow: running]", 0),
    DONE: (":green-badge[:material/check: done]", 2), FAILED: (":red-badge[:material/error: failed]", 2),
    CANCELLED: (":gray-badge[:material/close: cancelled]", 2),
}
SHOWN = 30
POLL_S = 1.0


def job_list(kinds: Collection[str] = (), shown: int = SHOWN, empty: str = "") -> None:
    """Jobs of these kinds, or all, those under way first; it follows them by itself while one is under way.

    Args:
        empty: what to say when there is none; nothing when "".
    """
    jobs = _chosen(kinds)
    if not jobs:
        if empty:
            st.caption(empty)
        return
    if any(not job.over for job in jobs):
        _moving(tuple(kinds), shown)
    else:
        _rows(jobs, shown)


def _chosen(kinds: Collection[str]) -> list[Job]:
    found = [job for job in board().jobs() if not kinds or job.kind in kinds]
    return sorted(found, key=lambda job: (BADGES[job.state][1], -job.created))


@st.fragment
def _moving(kinds: tuple[str, ...], shown: int) -> None:
    jobs = _chosen(kinds)
    if all(job.over for job in jobs):
        st.rerun()
    _rows(jobs, shown)
    pulse("-".join(("list", *kinds)), POLL_S)


def _rows(jobs: list[Job], shown: int) -> None:
    for job in jobs[:shown]:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            with st.container(width="stretch", gap="xsmall"):
                st.markdown(f"{BADGES[job.state][0]} **{escape(job.title)}** · :gray[{_when(job)}]")
                if job.state == FAILED:
                    st.markdown(f":red[{escape(job.error)}]")
                elif not job.over:
                    share = min(max(job.share, 0.0), 1.0)
                    st.progress(share, f"{share:.0%} · {escape(job.text)}")
            if not job.over:
                st.button("Cancel", key=f"list_cancel_{job.key}", icon=":material/close:", on_click=board().cancel,
                          args=(job.key,))
            elif job.state in (FAILED, CANCELLED):
                st.button("Try again", key=f"list_again_{job.key}", icon=":material/replay:", on_click=board().ask,
                          args=(job.kind, job.arguments, job.title))
    if len(jobs) > shown:
        st.caption(f"The first {shown} of {len(jobs)} jobs.")


def _when(job: Job) -> str:
    """When it was asked for, and how long it took or takes."""
    seconds = (job.ended or time.time()) - job.created
    took = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f"{time.strftime('%H:%M', time.localtime(job.created))} · {took}"
