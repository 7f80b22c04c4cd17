"""The saved views of a corpus: open, rename, remove."""

from __future__ import annotations

import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.notebook import SavedView
from avshift_core.notebook.entries import LONGEST_NAME
from pages.common import state
from pages.common.cached import notebook
from pages.common.frame import PAGES, Desk
from pages.common.share import stamp
from pages.common.text import count, escape, isolated

SHOWN = 50
SAID = "_views_said"


def saved_views(desk: Desk) -> None:
    """The list, in a box of its own; nothing where no view was ever saved."""
    try:
        views = notebook(desk.corpus.url).saved()
    except AVShiftError as error:
        st.caption(f":material/edit_off: Saved views cannot be listed: {escape(str(error))}")
        return
    said = st.session_state.pop(SAID, "")
    if not views and not said:
        return
    with st.expander(f"Saved views ({len(views):,})", icon=":material/bookmarks:", expanded=bool(said)):
        if said:
            st.error(escape(said), icon=":material/error:")
        for view in views[:SHOWN]:
            _row(desk, view)
        if len(views) > SHOWN:
            st.caption(f"The first {SHOWN} of {count(len(views), 'view')}, by name. Remove those that nobody needs.")


def link_of(view: SavedView) -> dict[str, str]:
    """What the URL of a saved view says. It is about this corpus, whatever it is called on the list by now."""
    query = {name: value[:state.LONGEST] for name, value in view.query.items() if name not in ("corpus", "run")}
    here = {"corpus": state.value("corpus"), "run": stamp(view.run, view.fingerprint)}
    return {**query, **{name: value for name, value in here.items() if value}}


def _row(desk: Desk, view: SavedView) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        name = escape(isolated(view.name))
        if view.page in PAGES:
            page, icon, _ = PAGES[view.page]
            st.page_link(page, label=name, icon=f":material/{icon}:", query_params=link_of(view), width="stretch")
        else:
            st.markdown(f"{name} · its page is not there any more", width="stretch")
        if view.fingerprint != desk.corpus.fingerprint:
            st.badge("data has changed", icon=":material/history:", color="orange",
                     help=f"Saved with corpus {escape(view.fingerprint[:8])}; it is {desk.corpus.fingerprint[:8]} now. "
                     "What has changed may lie outside of P and Q; the view itself says so.")
        st.caption(f"{escape(view.page)} · {escape(view.created[:10])} · run {escape(view.run[:12])}", width="content")
        with st.popover("Rename", icon=":material/edit:", type="tertiary"):
            key = f"rename_{view.id}_{view.version}"
            st.text_input("New name, then Enter", view.name, LONGEST_NAME, key=key, on_change=_rename,
                          args=(desk.corpus.url, view, key))
        st.button("Remove", key=f"remove_{view.id}_{view.version}", icon=":material/delete:", type="tertiary",
                  on_click=_remove, args=(desk.corpus.url, view))


def _rename(url: str, view: SavedView, key: str) -> None:
    try:
        notebook(url).rename_view(view, st.session_state[key])
    except AVShiftError as error:
        st.session_state[SAID] = str(error)


def _remove(url: str, view: SavedView) -> None:
    try:
        notebook(url).remove_view(view)
    except AVShiftError as error:
        st.session_state[SAID] = str(error)
