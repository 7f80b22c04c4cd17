"""Data & models, last part: every job of this server, and the results that are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from avshift_core.jobs.shelf import clear_uploads, uploads_size
from pages.common.cached import board, result, workspace
from pages.common.exports import downloads
from pages.common.job_list import job_list
from pages.common.text import count


def jobs_part() -> None:
    st.markdown("**Jobs**", help="Long work runs in processes of its own, two at a time. Everybody sees the same list; "
                "it survives a reload. Asking for what is under way joins it.")
    job_list(empty="No job has run since the server was started. Comparing P and Q starts one.")
    _kept()
    _uploads()
    downloads({"jobs": job_rows()}, figures=False)


def job_rows() -> list[dict]:
    """Every job on the board, as it stands now."""
    def when(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""

    return [{"kind": j.kind, "title": j.title, "state": j.state, "share": j.share, "text": j.text, "error": j.error,
             "created": when(j.created), "ended": when(j.ended), "key": j.key} for j in board().jobs()]


def _kept() -> None:
    results = workspace().results
    with st.container(border=True):
        st.markdown("**Kept results**", help="A result is used again when the same is asked for. The least recently "
                    "used go when there are too many.")
        used, most = results.size(), results.max_bytes
        st.markdown(f"{count(results.count(), 'result')} · {_size(used)} of at most {_size(most)}")
        st.button("Remove all kept results", icon=":material/delete:", on_click=_clear, disabled=not used,
                  help="Nothing is lost but time: they are computed again when needed. Corpora and uploads stay.")
        if st.session_state.pop("cleared", False):
            st.success("All kept results were removed.", icon=":material/check:")


def _uploads() -> None:
    used = uploads_size(workspace())
    if not used:
        return
    importing = any(job.kind == "import" and not job.over for job in board().jobs())
    with st.container(border=True):
        st.markdown("**Uploads**", help="Files as they were uploaded. Corpora that were made of them do not need them.")
        st.markdown(_size(used))
        st.button("Remove all uploads", icon=":material/delete:", on_click=clear_uploads, args=(workspace(),),
                  disabled=importing, help="Wait until imports are done." if importing else "Corpora stay.")


def _clear() -> None:
    workspace().results.clear()
    result.clear()
    st.session_state["cleared"] = True


def _size(n: int) -> str:
    """
    >>> _size(512), _size(3_400_000), _size(4 * 2**30)
    ('1 kB', '3 MB', '4.0 GB')
    """
    return f"{n / 2**30:.1f} GB" if n >= 2**30 else f"{n / 2**20:.0f} MB" if n >= 2**20 else f"{max(1, n // 1024)} kB"
