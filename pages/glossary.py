"""Glossary: every statistic of the dashboard with its formula, one plain sentence, and when not to trust it."""

import streamlit as st

from avshift_core.glossary import ENTRIES, GROUPS, Entry, as_rows, find
from pages.common import state
from pages.common.exports import downloads
from pages.common.frame import frame
from pages.common.text import count, escape

ALL = "All"


def card(entry: Entry) -> None:
    """One entry: what it says, its formula, its limits, and where it comes from."""
    with st.container(border=True, gap="small", height="stretch"):
        st.subheader(entry.term, anchor=entry.key)
        st.markdown(entry.sentence)
        if entry.formula:
            st.latex(entry.formula, width="content")
        st.markdown(f":orange[:material/warning: **When not to trust it.**] {entry.distrust}")
        names = [code.partition(":")[2] for code in entry.codes]
        known = [f"paper `{entry.label}`"] if entry.label else []
        known += [f"in reports `{'`, `'.join(names)}`"] if names else []
        if known:
            st.caption(" · ".join(known))


def nothing_found(words: str) -> None:
    st.info(f"Nothing in the glossary holds all of “{escape(words)}”. Try a single word, or another part.",
            icon=":material/search_off:")
    st.button("Show everything", on_click=state.go, kwargs={"find": None, "part": None})


def glossary_page() -> None:
    frame("Glossary", needs_corpus=False)
    st.title("Glossary", anchor=False)
    st.markdown("What every number on these pages means, and when not to trust it.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = state.text("find", "Search", placeholder="a word, a symbol or a paper label", width=320,
                           help="Looks through names, sentences and the names that reports use.")
        part = state.select("part", "Part", (ALL, *GROUPS), ALL, width=220)
    found = find(words, None if part == ALL else part)
    if not found:
        nothing_found(words)
        return
    shown = sum(len(entries) for entries in found.values())
    downloads({"glossary": as_rows(found)}, report=lambda: {"entries": as_rows(found)}, figures=False)
    st.caption(f"{count(shown, 'entry').replace('entrys', 'entries')} of {len(ENTRIES)}")
    for group, entries in found.items():
        st.header(group, anchor=f"part-{group.lower().replace(' ', '-')}", divider="gray")
        with st.grid(2, min_column_width=430):
            for entry in entries:
                card(entry)


glossary_page()
