"""What people say about regions: their own names, a comment, a status; and this look in the ledger."""

from __future__ import annotations

import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.notebook import STATUSES, RegionNote, Written
from avshift_core.notebook.entries import ACCEPTED, ASIDE, INVESTIGATE, LONGEST_COMMENT, LONGEST_NAME, MERGED
from avshift_core.shift.regions import RegionFacts
from pages.common.cached import Loaded, notebook
from pages.common.text import escape, isolated

BADGES = {ACCEPTED: ":green-badge[:material/check: accepted]",
          INVESTIGATE: ":orange-badge[:material/search: to be investigated]"}
SHOWN = 30  # entries of a history


def enter(loaded: Loaded) -> None:
    """Write this look into the ledger, if it is not there; what keeps it out is said."""
    url, look = loaded.comparison.look()
    try:
        notebook(url).record(look)
    except AVShiftError as error:
        st.warning(f"This look is not in the ledger of the corpus, and no notes can be kept: {escape(str(error))}",
                   icon=":material/edit_off:")


def notes_of(loaded: Loaded) -> dict[int, RegionNote]:
    """Region -> its note; none where the notebook cannot be read, which `enter` has said."""
    try:
        return notebook(loaded.comparison.corpus_url).region_notes(loaded.run)
    except AVShiftError:
        return {}


def number_of(facts: RegionFacts) -> int:
    """What notes call a region: k of Rk, -k of Vk."""
    return facts.region.k if facts.title[0] == "R" else -facts.region.k


def badge(note: RegionNote | None) -> str:
    return BADGES.get(note.status, "") if note is not None else ""


def note_editor(loaded: Loaded, facts: RegionFacts, proposed: str) -> None:
    """Name, comment and status of a region, to be changed by several people at once.

    Args:
        proposed: the name that it has without one of its own.
    """
    book, region = notebook(loaded.comparison.corpus_url), number_of(facts)
    slot = f"note_{loaded.run}_{region}"
    try:
        history = book.history(loaded.run, region)
    except AVShiftError:  # said at the top of the page
        return
    note = next((old for old in history if not old.aside), RegionNote(region))
    draft = _draft(slot, note)
    _said(slot)
    if note.version != draft["seen"]:
        st.info(f"Somebody has changed this note since you opened it. {_told(note)}", icon=":material/group:")
        st.button("Take over what it says now", key=f"{slot}_take", icon=":material/refresh:", on_click=_show,
                  args=(slot, note, note))
    form, (name, comment, status) = f"{slot}_{draft['form']}", draft["texts"]
    with st.form(form, border=False):
        st.text_input("Own name", name, LONGEST_NAME, key=f"{form}_name", placeholder=proposed,
                      help=f"Shown instead of the proposed one on every page. Proposed: {escape(proposed)}")
        st.text_area("Comment", comment, key=f"{form}_comment", height=90, max_chars=LONGEST_COMMENT,
                     placeholder="What it is, what was decided, what is left to do")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.segmented_control("Status", STATUSES, default=status, required=True, key=f"{form}_status",
                                 help="Accepted: known and no reason to act. To be investigated: somebody looks at it.")
            st.form_submit_button("Save the note", icon=":material/save:", on_click=_write,
                                  args=(loaded, region, slot, form, draft["seen"]))
    if history:
        _history(loaded, region, slot, note, history)
    _earlier(loaded, slot, note)


def _draft(slot: str, note: RegionNote) -> dict:
    """What the form shows: it stays while somebody may be typing, whoever else changes the note."""
    draft = st.session_state.get(slot)
    if draft is None or not (draft.pop("new", False) or f"{slot}_{draft['form']}_name" in st.session_state):
        _show(slot, note, note)
        draft = st.session_state[slot]
        draft.pop("new")
    return draft


def _show(slot: str, seen: RegionNote, texts: RegionNote) -> None:
    """A new form with these texts, for a writer who has seen that note."""
    form = st.session_state.get(slot, {"form": 0})["form"] + 1
    st.session_state[slot] = {"form": form, "seen": seen.version, "texts": texts.texts, "new": True}


def _write(loaded: Loaded, region: int, slot: str, form: str, seen: int) -> None:
    name, comment, status = (st.session_state[f"{form}_{part}"] for part in ("name", "comment", "status"))
    _put(loaded, region, slot, seen, (name or "", comment or "", status or STATUSES[0]))


def _put(loaded: Loaded, region: int, slot: str, seen: int, texts: tuple[str, str, str]) -> None:
    name, comment, status = texts
    try:
        written = notebook(loaded.comparison.corpus_url).write_note(
            loaded.run, region, name=name, comment=comment, status=status, seen=seen)
    except AVShiftError as error:
        st.session_state[f"{slot}_said"] = str(error)
        return
    st.session_state[f"{slot}_said"] = written
    _show(slot, written.note, written.mine if written.outcome == ASIDE else written.note)


def _said(slot: str) -> None:
    """What became of the last note that was written here."""
    said: Written | str | None = st.session_state.pop(f"{slot}_said", None)
    if isinstance(said, str):
        st.error(escape(said), icon=":material/error:")
    elif said is not None and said.outcome == ASIDE:
        st.warning(f"This note changed while you were writing. {_told(said.note)} Yours is kept in the history and "
                   "stands below: save it again to put it in place of the other.", icon=":material/group:")
    elif said is not None:
        also = " It was joined with what somebody else wrote meanwhile." if said.outcome == MERGED else ""
        st.success(f"The note is saved.{also}", icon=":material/check:")


def _told(note: RegionNote) -> str:
    """A note in one line."""
    comment = escape(isolated(" ".join(note.comment.split())))
    name = f"name “{escape(isolated(note.name))}”" if note.name else "no name"
    return f"It now has {name}, {f'the comment “{comment}”' if comment else 'no comment'}, status: {note.status}."


def _history(loaded: Loaded, region: int, slot: str, note: RegionNote, history: tuple[RegionNote, ...]) -> None:
    with st.expander(f"History ({len(history)})", icon=":material/history:"):
        for old in history[:SHOWN]:
            with st.container(horizontal=True, vertical_alignment="center", border=True):
                with st.container(width="stretch", gap="xsmall"):
                    kind = "now" if old.version == note.version else "kept aside" if old.aside else "earlier"
                    st.caption(f"{_time(old.changed)} · {kind} · status: {old.status}")
                    _text(old)
                if old.version != note.version:
                    st.button("Put it back", key=f"{slot}_back_{old.version}", icon=":material/undo:", on_click=_put,
                              args=(loaded, region, slot, note.version, old.texts))
        if len(history) > SHOWN:
            st.caption(f"The last {SHOWN} of {len(history):,}.")


def _earlier(loaded: Loaded, slot: str, note: RegionNote) -> None:
    """Notes on the same two cohorts with other data, settings or engine: a person decides whether they still fit."""
    comparison = loaded.comparison
    found = notebook(comparison.corpus_url).earlier_notes(loaded.run, comparison.source, comparison.target)
    if not found:
        return
    with st.expander(f"Notes on earlier runs of this P and Q ({len(found)})", icon=":material/sticky_note_2:"):
        st.caption("Other data, settings or another engine: regions may be others, and their numbers too.")
        for i, (run, old) in enumerate(found[:SHOWN]):
            with st.container(horizontal=True, vertical_alignment="center", border=True):
                with st.container(width="stretch", gap="xsmall"):
                    title = f"R{old.region}" if old.region > 0 else f"V{-old.region}"
                    st.caption(f"{title} of run {escape(run[:12])} · {_time(old.changed)} · status: {old.status}")
                    _text(old)
                st.button("Put it into the form", key=f"{slot}_use_{i}", icon=":material/content_paste:",
                          on_click=_show, args=(slot, note, old), help="To be saved for the region above.")


def _text(note: RegionNote) -> None:
    st.text(isolated(note.name) or "(no name)")
    if note.comment:
        st.text(isolated(note.comment))


def _time(when: str) -> str:
    """
    >>> _time("2026-03-02T09:30:00Z")
    '2026-03-02 09:30 UTC'
    """
    return f"{when[:10]} {when[11:16]} UTC"
