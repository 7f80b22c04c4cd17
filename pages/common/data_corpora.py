"""Data & models, first part: the corpora on offer, what is in them, and how to put another one on the list."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from avshift_core.config import VIEWS
from avshift_core.errors import AVShiftError
from avshift_core.jobs.kinds import job_key
from avshift_core.jobs.shelf import add_corpus, remove_corpus
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.manifest import STATES
from avshift_core.words import readable
from pages.common import state
from pages.common.cached import board, corpus, summary, workspace
from pages.common.exports import downloads
from pages.common.frame import DEMO, corpora
from pages.common.job_list import job_list
from pages.common.text import count, escape

LISTED = {"period": "Periods", "area": "Areas", "av_version": "AV versions", "category": "Categories"}
MANY = 12  # values of a column that one line lists
OF_THE_COHORTS = ("P", "Q", "region", "scenario", "metric")  # what of a link belongs to one corpus


def corpora_part() -> None:
    st.markdown("A corpus is a folder, or a URL, of scenarios with their metrics and latents. All visitors of this "
                "dashboard see the same list.")
    for name, url in corpora().items():
        with st.container(border=True):
            _corpus(name, url)
    _add()
    job_list(("encode", "import"), shown=5)
    facts = _facts()
    downloads({"corpora": corpora_rows(facts), "metrics": metrics_rows(facts)}, report=lambda: {"corpora": facts},
              figures=False)


def _facts() -> dict[str, dict]:
    """What is known of every corpus that can be opened, by its name on the list."""
    found = {}
    for name, url in corpora().items():
        with suppress(AVShiftError):
            opened = corpus(url)
            found[name] = {"url": url, "fingerprint": opened.fingerprint, "latents": dict(opened.models),
                           **summary(opened.url, opened.fingerprint)}
    return found


def corpora_rows(facts: dict[str, dict]) -> list[dict]:
    columns = ("url", "fingerprint", "revision", "n", "drives", "km", "hours")
    return [{"corpus": name, **{c: f[c] for c in columns}, "latents": " ".join(f["latents"])}
            for name, f in facts.items()]


def metrics_rows(facts: dict[str, dict]) -> list[dict]:
    return [{"corpus": name, "metric": metric, **values} for name, f in facts.items()
            for metric, values in f["metrics"].items()]


def _corpus(name: str, url: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch", gap="xsmall"):
            st.markdown(f"**{escape(name)}**" + (" :blue-badge[in use]" if name == state.value("corpus", DEMO) else ""))
            st.caption(f"`{url.replace('`', '')}`")
        opened = _opened(name, url)
        if opened is not None and opened.n and name != state.value("corpus", DEMO):
            st.button("Use it", key=f"use_{name}", icon=":material/check:", on_click=use, args=(name,))
        if name != DEMO:
            st.button("Remove from the list", key=f"remove_{name}", icon=":material/playlist_remove:",
                      on_click=_remove, args=(name,), help="The files stay where they are.")
    if opened is None:
        return
    making = board().find(job_key("demo", {"url": url})) if name == DEMO else None
    if making is not None and not making.over:
        st.info("The demo fleet is still being made: what is there so far is not complete.",
                icon=":material/hourglass_top:")
        return
    facts = summary(opened.url, opened.fingerprint)
    st.markdown(f"{facts['n']:,} scenarios · {facts['drives']:,} drives · {facts['km']:,.0f} km · "
                f"{facts['hours']:,.0f} h · fingerprint `{opened.fingerprint[:12]}`",
                help="The fingerprint is taken over every file: equal fingerprints, equal data.")
    for sentence in facts["warnings"]:
        st.markdown(f":orange[:material/warning:] {escape(sentence)}")
    _latents(opened)
    with st.expander("What is in it", icon=":material/list:"):
        _contents(facts)


def _opened(name: str, url: str) -> Corpus | None:
    """The corpus; None, with a sentence in its place, where it cannot be opened."""
    try:
        return corpus(url)
    except AVShiftError as error:
        if name == DEMO:
            st.info("The demo fleet is not ready yet: it is made when it is first compared.", icon=":material/info:")
            state.link("app.py", "Make it now", icon=":material/arrow_forward:", corpus=None)
        else:
            st.error(escape(str(error)), icon=":material/error:")
        return None


def _latents(opened: Corpus) -> None:
    """Which latents there are, and encoding what has none."""
    if opened.models:
        st.caption(" · ".join(f"latents `{model}` of {count(n, 'scenario')}" for model, n in opened.models.items()))
    if needs_encoding(opened):
        st.button("Encode it with the shipped model", key=f"encode_{opened.url}", icon=":material/play_arrow:",
                  on_click=start_encoding, args=(opened.url,),
                  help=f"About {max(1, round(opened.n / 25_000))} min for {opened.n:,} scenarios on two cores. Latents "
                  "are written beside the corpus; an encoding that is stopped goes on where it was.")


def needs_encoding(opened: Corpus) -> bool:
    """Whether scenarios with states lack latents of one of the views."""
    with_states = sum(part.n for part in opened.parts if STATES in part.files)
    return with_states > 0 and sum(n >= with_states for n in opened.models.values()) < len(VIEWS)


def start_encoding(url: str) -> None:
    board().ask("encode", {"url": url}, f"Encoding {url}")


def use(name: str) -> None:
    """Make a corpus the one that all pages work on; what a link says about another one goes."""
    state.go(**{"corpus": None if name == DEMO else name, **dict.fromkeys(OF_THE_COHORTS)})


def _remove(name: str) -> None:
    remove_corpus(workspace(), name)
    if state.value("corpus") == name:
        use(DEMO)


def _contents(facts: dict) -> None:
    for column, label in LISTED.items():
        values = facts["by"][column]
        shown = ", ".join(f"{escape(readable(value))} {n:,}" for value, n in list(values.items())[:MANY])
        rest = f", and {len(values) - MANY:,} more" if len(values) > MANY else ""
        st.markdown(f"**{label}.** {shown}{rest}")
    if facts["metrics"]:
        number = lambda value: "" if value is None else f"{value:.4g}"  # noqa: E731
        st.table([{"Metric": escape(name), "Mean": number(m["mean"]), "Per km": number(m["per_km"]),
                   "Per hour": number(m["per_hour"]), "Unit": escape(m["unit"] or ""), "Version": str(m["version"])}
                  for name, m in facts["metrics"].items()], hide_index=True, border="horizontal",
                 alt="Metrics of the corpus with their means and rates")
    st.caption(f"{count(facts['parts'], 'file')} · {count(facts['sources'], 'piece')} of logs imported · revision "
               f"{facts['revision']}")


def _add() -> None:
    with st.container(border=True):
        st.markdown("**Add a corpus that is there already**", help="A folder on this machine, or a URL such as "
                    "s3://bucket/fleet, that an import has written.")
        with st.form("add_corpus", border=False):
            with st.grid(2, min_column_width=300):
                url = st.text_input("Folder or URL", key="add_url", placeholder="fleet/2026 or s3://bucket/fleet")
                name = st.text_input("Name on the list", key="add_name", placeholder="the folder's name")
            pressed = st.form_submit_button("Add to the list", icon=":material/playlist_add:")
        if pressed:
            try:
                st.session_state["added"] = add_corpus(workspace(), name, url, corpora())
                st.rerun()
            except AVShiftError as error:
                st.error(escape(str(error)), icon=":material/error:")
        added = st.session_state.pop("added", None)
        if added:
            st.success(f"“{escape(added)}” is on the list.", icon=":material/check:")
