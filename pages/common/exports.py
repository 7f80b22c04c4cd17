"""What leaves the dashboard: tables, figures and reports, each with the identity of its run, or of the engine's code
where it belongs to no run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from avshift_core import AVShiftError, __version__
from avshift_core.files import json_bytes
from avshift_core.jobs.kinds import code_version, job_key
from avshift_core.report import report_bytes, table_bytes
from avshift_core.shift.sensitivity import SEEDS
from pages.common import state
from pages.common.cached import Loaded, corpus, notebook, workspace
from pages.common.jobs import result_of
from pages.common.text import escape

FORMATS = {"csv": ("CSV", "text/csv"), "parquet": ("Parquet", "application/vnd.apache.parquet")}


@dataclass(frozen=True, eq=False)
class Later:
    """A table of `rows` rows that is made when somebody takes it."""

    rows: int
    make: Callable[[], Any]


def identity(loaded: Loaded | None) -> str:
    """What a number belongs to: the run of a comparison, or the code that made it."""
    return loaded.run if loaded is not None else f"engine-{__version__}-{code_version()[:8]}"


def chart(figure, key: str, alt: str, loaded: Loaded | None = None) -> None:
    """A figure with a button for its image: stamped with the run, or with the code's identity in the file's name."""
    if loaded is not None:
        top = figure.layout.margin.t or 0
        figure.add_annotation(
            text=f"AVShift run {loaded.run}", xref="paper", yref="paper", x=1, y=1, xanchor="right", yanchor="bottom",
            yshift=max(top - 14, 0), showarrow=False, opacity=0.45, font={"size": 9},
        )
    st.plotly_chart(figure, key=key, alt=alt, config={
        "displaylogo": False, "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": image_format(), "filename": _file(key, loaded), "scale": 2},
    })


def image_format() -> str:
    """PNG for slides, SVG for print, as the reader has chosen."""
    return "svg" if state.value("img") == "svg" else "png"


def downloads(
    tables: Mapping[str, Any], loaded: Loaded | None = None,
    report: Callable[[], Mapping] | None = None, figures: bool = True, evidence: Mapping[str, Any] | None = None,
) -> None:
    """A menu with every table as CSV and Parquet, the report as JSON, and the format of images.

    Args:
        tables: name -> DataFrame, or a list of its rows, or one of them for later.
        report: what the JSON file holds; by default the report of the comparison, where there is one.
        figures: whether the page has any.
        evidence: metric and clip of the evidence pack, where the page offers it.
    """
    with st.popover("Download", icon=":material/download:"):
        for name, table in tables.items():
            later = table if isinstance(table, Later) else Later(len(table), lambda table=table: table)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{name.replace('_', ' ').capitalize()}**, {later.rows:,} rows", width="stretch")
                for kind, (label, mime) in FORMATS.items():
                    st.download_button(
                        label, lambda later=later, kind=kind: table_bytes(later.make(), kind, identity(loaded)),
                        _file(name, loaded, kind), mime, key=f"download_{name}_{kind}", on_click="ignore",
                    )
        if loaded is not None or report is not None:
            st.download_button("Report (JSON)", lambda: _report(loaded, report), _file("report", loaded, "json"),
                               "application/json", key="download_report", on_click="ignore",
                               help="Everything in one file, with settings and fingerprints.")
        if evidence is not None:
            evidence_pack(loaded, **evidence)
        if figures:
            state.segmented("img", "Image button of figures", ("png", "svg"), "png", format_func=str.upper)


def evidence_pack(loaded: Loaded, metric: str, B: float) -> None:
    """The pack for a review meeting: a job, then its two files."""
    st.divider()
    st.markdown("**Evidence pack** for a review: all of this comparison in one file that needs no network and prints "
                "to PDF.", help="Question, cohorts, verdict, map, regions with scenes, every estimate, the clip, "
                "checks, limits, settings and versions; for the metric and the clip of this page.")
    pack = result_of("evidence", "Making the evidence pack", start=False, button="Evidence pack (HTML)",
                     comparison=loaded.key, metric=metric, B=B, **_kept(loaded), **_said(loaded))
    if pack is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button("Evidence pack (HTML)", lambda: pack.html.encode(), _file("evidence", loaded, "html"),
                           "text/html", key="download_evidence_html", on_click="ignore", icon=":material/description:",
                           help="Open it in a browser; print it there to make a PDF.")
        st.download_button("Facts (JSON)", lambda: pack.json.encode(), _file("evidence", loaded, "json"),
                           "application/json", key="download_evidence_json", on_click="ignore",
                           help="Every number of the pack, to compute with.")


def _kept(loaded: Loaded) -> dict[str, str]:
    """What the pack can show beside the comparison, because somebody has made it: the map and the studies."""
    keys = {"projection": job_key("map", loaded.on_map),
            "sensitivity": job_key("sensitivity", {"comparison": loaded.key, "seeds": SEEDS})}
    return {name: key for name, key in keys.items() if workspace().results.has(key)}


def _said(loaded: Loaded) -> dict[str, list]:
    """The ledger and what reviewers wrote about regions; nothing where the notebook cannot be read."""
    try:
        book = notebook(loaded.comparison.corpus_url)
        return {"looks": [asdict(look) for look in book.looks()],
                "notes": [asdict(note) for note in book.region_notes(loaded.run).values()]}
    except AVShiftError as error:
        st.caption(f":material/warning: The pack has no ledger and no notes: {escape(str(error))}")
        return {}


def _report(loaded: Loaded | None, report: Callable[[], Mapping] | None) -> bytes:
    if report is not None:
        return json_bytes({"run": identity(loaded), **report()})
    comparison = loaded.comparison
    return report_bytes(comparison.analysis, comparison.pair(corpus(comparison.corpus_url)), comparison.run)


def _file(name: str, loaded: Loaded | None, kind: str = "") -> str:
    return f"avshift_{name}_{identity(loaded)}{f'.{kind}' if kind else ''}"
