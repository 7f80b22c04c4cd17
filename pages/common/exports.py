"""What leaves the dashboard: tables, figures and the report, each with the identity of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from avshift_core.report import report_bytes, table_bytes
from pages.common import state
from pages.common.cached import Loaded, corpus

FORMATS = {"csv": ("CSV", "text/csv"), "parquet": ("Parquet", "application/vnd.apache.parquet")}


def chart(figure, key: str, alt: str, loaded: Loaded | None = None) -> None:
    """A figure with a button for its image, stamped with the run."""
    kind = image_format()
    if loaded is not None:
        top = figure.layout.margin.t or 0
        figure.add_annotation(
            text=f"AVShift run {loaded.run}", xref="paper", yref="paper", x=1, y=1, xanchor="right", yanchor="bottom",
            yshift=max(top - 14, 0), showarrow=False, opacity=0.45, font={"size": 9},
        )
    st.plotly_chart(figure, key=key, alt=alt, config={
        "displaylogo": False, "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": kind, "filename": _file(key, loaded), "scale": 2},
    })


def image_format() -> str:
    """PNG for slides, SVG for print, as the reader has chosen."""
    return "svg" if state.value("img") == "svg" else "png"


def downloads(tables: Mapping[str, Any], loaded: Loaded | None = None) -> None:
    """A menu with every table as CSV and Parquet, the report as JSON, and the format of images.

    Args:
        tables: name -> DataFrame.
    """
    with st.popover("Download", icon=":material/download:"):
        for name, table in tables.items():
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{name.replace('_', ' ').capitalize()}**, {len(table):,} rows", width="stretch")
                for kind, (label, mime) in FORMATS.items():
                    st.download_button(
                        label, _Lazy(table, kind, loaded), _file(name, loaded, kind), mime,
                        key=f"download_{name}_{kind}", on_click="ignore",
                    )
        if loaded is not None:
            st.download_button("Report (JSON)", lambda: _report(loaded), _file("report", loaded, "json"),
                               "application/json", key="download_report", on_click="ignore",
                               help="Verdict, regions, metrics, trust panel, settings and fingerprints.")
        state.segmented("img", "Image button of figures", ("png", "svg"), "png", format_func=str.upper)


class _Lazy:
    """Bytes of a table, made when somebody asks for them."""

    def __init__(self, table: Any, kind: str, loaded: Loaded | None) -> None:
        self.table, self.kind, self.run = table, kind, "" if loaded is None else loaded.run

    def __call__(self) -> bytes:
        return table_bytes(self.table, self.kind, self.run)


def _report(loaded: Loaded) -> bytes:
    comparison = loaded.comparison
    return report_bytes(comparison.analysis, comparison.pair(corpus(comparison.corpus_url)), comparison.run)


def _file(name: str, loaded: Loaded | None, kind: str = "") -> str:
    run = "" if loaded is None else f"_{loaded.run}"
    return f"avshift_{name}{run}{f'.{kind}' if kind else ''}"
