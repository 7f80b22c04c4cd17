"""Data & models, second part: a table of latents from the browser, or logs from this machine, into a corpus."""

from __future__ import annotations

import streamlit as st

from avshift_core.errors import AVShiftError
from avshift_core.jobs.shelf import (
    MAX_UPLOAD_MB,
    TablePeek,
    check_name,
    check_source,
    corpus_folder,
    peek_table,
    write_mapping,
)
from avshift_core.scenario.importing import MAPPED
from avshift_core.scenario.readers import READERS
from pages.common.cached import board, workspace
from pages.common.data_corpora import use
from pages.common.frame import DEMO, corpora
from pages.common.job_list import job_list
from pages.common.text import count, escape

FORMATS = {"table": "Table, one row per agent and time", "argoverse1": "Argoverse 1", "argoverse2": "Argoverse 2",
           "nuplan": "nuPlan", "commonroad": "CommonRoad", "latents": "Table of latents, one row per scenario"}


def import_part() -> None:
    with st.grid(2, min_column_width=430):
        with st.container(border=True):
            _upload()
        with st.container(border=True):
            _logs()
    st.markdown("**Imports**")
    job_list(("import",), shown=8, empty="None yet. What you start here goes on when you leave the page.")
    _ready()


def _ready() -> None:
    """Corpora that an import of this server has put on the list, to open at once."""
    done = [job.arguments["name"] for job in board().jobs() if job.kind == "import" and job.state == "done"]
    offered = [name for name in dict.fromkeys(done) if name in corpora()]
    with st.container(horizontal=True):
        for name in offered[:4]:
            st.button(f"Use “{name}”", key=f"ready_{name}", icon=":material/arrow_forward:", on_click=use, args=(name,))


# Upload -------------------------------------------------------------------------------------------------------------


def _upload() -> None:
    st.markdown("**Upload a table of latents**", help="One row per scenario: a list column z or columns z_0, z_1, ...; "
                "if you have them drive_id, period, area, av_version, and columns with metrics.")
    file = st.file_uploader("Parquet or CSV", ["parquet", "csv"], key="upload", max_upload_size=MAX_UPLOAD_MB,
                            help=f"At most {MAX_UPLOAD_MB} MB. Larger tables: give their path on the right.")
    if file is None:
        st.caption("Latents of your own encoder, or any features of scenarios. They can be compared, mapped and "
                   "calibrated, but not replayed: there are no states in them.")
        return
    try:
        path = _kept(file)
        peek = _peek(path)
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        st.caption("Nothing was imported. Correct the file and upload it again.")
        return
    _describe(peek)
    with st.form("upload_form", border=False):
        metrics = st.multiselect("Columns that are metrics", peek.numeric, key="upload_metrics",
                                 help="Their rates are what is calibrated. 0/1 columns count as events; others get "
                                 "thresholds.")
        name = st.text_input("Name of the corpus", key="upload_name", placeholder="Harbor, spring")
        pressed = st.form_submit_button("Import it", type="primary", icon=":material/download:")
    if pressed:
        _start_upload(path, name, metrics)


def _kept(file) -> str:
    """Path of the uploaded file under the dashboard's own folder, saved once."""
    kept = st.session_state.setdefault("uploads", {})
    if file.file_id not in kept:
        kept[file.file_id] = str(workspace().save_upload(file.name, file.getvalue()))
    return kept[file.file_id]


@st.cache_resource(max_entries=4, show_spinner="Looking at the table")
def _peek(path: str) -> TablePeek:
    return peek_table(path)


def _describe(peek: TablePeek) -> None:
    drives = count(peek.n_drives, "drive") if peek.n_drives else "no drive ids"
    st.markdown(f"{count(peek.n, 'scenario')} · {count(peek.d, 'number')} each · {drives}")
    if not peek.n_drives:
        st.markdown(":orange[:material/warning:] Without a column `drive_id` scenarios count as independent, and "
                    "bounds are too tight if those of a drive are alike.")
    if not {"period", "area"} & set(peek.known):
        st.markdown(":orange[:material/warning:] There is no column `period`, `day` or `area` to choose P and Q by.")


def _start_upload(path: str, name: str, metrics: list[str]) -> None:
    try:
        name = check_name(name, corpora())
        arguments = {"format": "latents", "paths": [path], "url": corpus_folder(workspace(), name, path),
                     "mapping": write_mapping(path, metrics)}
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        return
    _ask(name, arguments)


# Logs ---------------------------------------------------------------------------------------------------------------


def _logs() -> None:
    st.markdown("**Import logs from this machine**", help="Files, folders or zip archives that the server can read. "
                "Nothing is changed in them. An import that is stopped goes on when it is started again.")
    format = st.selectbox("Format", list(READERS), key="log_format", format_func=lambda f: FORMATS.get(f, f))
    text = READERS[format].text
    st.caption(f"{text[:1].upper()}{text[1:]}.")
    with st.form("log_form", border=False):
        path = st.text_input("Path", key="log_path", placeholder="a file, a folder or a zip archive")
        name = st.text_input("Name of the corpus", key="log_name", placeholder="a new name, or one on the list",
                             help="With the name of a corpus on the list, the scenarios are added to it.")
        with st.grid(3, min_column_width=120):
            area = st.text_input("Area", key="log_area", placeholder="as in the log")
            period = st.text_input("Period", key="log_period", placeholder="as in the log")
            version = st.text_input("AV version", key="log_version", placeholder="as in the log")
        mapping = ""
        if format in MAPPED:
            mapping = st.text_input("Mapping file", key="log_mapping", placeholder="none",
                                    help="TOML or JSON that says which column is what (docs/readers.md).")
        skip = st.toggle("Leave out what cannot be read", key="log_skip",
                         help="Off: the first bad file ends the import. On: it is left out, and the corpus says so.")
        pressed = st.form_submit_button("Import", type="primary", icon=":material/download:")
    if pressed:
        _start_logs(format, path, name, mapping, {"area": area.strip(), "period": period.strip(),
                                                  "version": version.strip(), "skip_bad": skip})


def _start_logs(format: str, path: str, name: str, mapping: str, said: dict) -> None:
    try:
        full = check_source(path)
        name = check_name(name, (DEMO,))
        arguments = {"format": format, "paths": [full], "url": corpus_folder(workspace(), name, full),
                     "mapping": check_source(mapping) if mapping.strip() else "", **said}
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        return
    _ask(name, arguments)


def _ask(name: str, arguments: dict) -> None:
    home = str(workspace().folder.resolve())
    board().ask("import", {"name": name, "home": home, **arguments}, f"Importing into “{name}”")
    st.rerun()
