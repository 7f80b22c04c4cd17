"""Rows of small bird's-eye views, each with a link to its replay."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from avshift_core import AVShiftError
from avshift_core.plots.thumbnails import thumbnail
from avshift_core.scenario.store.corpus import Corpus
from pages.common import state
from pages.common.cached import scenarios
from pages.common.text import escape

LEGEND = ":violet[■] ego · :blue[■] car · :orange[■] truck, bus · :green[■] pedestrian, bicycle · :gray[■] other"


def scene_row(corpus: Corpus, ids: Sequence[str], key: str, *, empty: str = "None here.") -> None:
    """Small pictures of some scenarios, to scale, the ego driving to the right; each opens its replay.

    Args:
        key: tells the rows of a page apart. empty: what stands there when there is no scenario.
    """
    if not ids:
        st.caption(empty)
        return
    try:
        drawn = scenarios(corpus.url, corpus.fingerprint, tuple(ids))
    except AVShiftError as error:
        st.caption(f"No pictures: {escape(str(error))}")
        drawn = None
    with st.grid(6, min_column_width=150, gap="small"):
        for i, name in enumerate(ids):
            with st.container(gap=None):
                if drawn is not None:
                    st.plotly_chart(thumbnail(drawn[i]), key=f"scene_{key}_{i}",
                                    alt=f"Scenario {name} from above", config={"displayModeBar": False})
                state.link("pages/scenario.py", escape(_short(name)), icon=":material/play_circle:",
                           help=f"Replay {escape(name)}", scenario=name)


def scene_legend() -> None:
    st.caption(f"{LEGEND}. Everybody's way, and where they are at half of the time; 90 m across.")


def _short(name: str) -> str:
    """The end of an id tells more than its beginning."""
    return name if len(name) <= 16 else f"…{name[-14:]}"
