"""Tables of which one row is chosen; the URL says which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.common import state


def choose_row(name: str, rows: Sequence[Mapping[str, object]], *, help: Mapping[str, str], alt: str,
               columns: Mapping[str, object] | None = None, height: int | str = "auto") -> int:
    """A table with exactly one chosen row; the answer is its place, the URL keeps it counted from 1.

    Args:
        name: of the URL's value. help: by column. columns: settings of columns, instead of plain text.
    """
    number = state.integer(name, 1)
    place = number - 1 if 1 <= number <= len(rows) else 0
    key = f"table_{name}"

    def changed() -> None:
        chosen = st.session_state[key]["selection"]["rows"]
        state.go(**{name: chosen[0] + 1 if chosen else None})

    if _chosen(key) not in ([], [place]):
        st.session_state[key] = {"selection": {"rows": [place], "columns": [], "cells": []}}
    settings = {column: st.column_config.TextColumn(help=help.get(column)) for column in rows[0]} | dict(columns or {})
    st.dataframe(
        list(rows), key=key, hide_index=True, on_select=changed, selection_mode="single-row-required",
        selection_default={"selection": {"rows": [place], "columns": [], "cells": []}}, column_config=settings, alt=alt,
        height=height,
    )
    return place


def _chosen(key: str) -> list[int]:
    return list(st.session_state.get(key, {}).get("selection", {}).get("rows", []))
