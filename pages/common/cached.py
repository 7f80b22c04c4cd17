"""The only caching of the dashboard: bounded, and keyed by small values, never by arrays."""

from __future__ import annotations

import atexit
import gc
from dataclasses import dataclass
from typing import Any

import streamlit as st

from avshift_core.comparison import Comparison
from avshift_core.jobs.board import Board
from avshift_core.jobs.kinds import job_key
from avshift_core.latent.retrieve import Usual, typical_distances
from avshift_core.notebook import Notebook, open_notebook
from avshift_core.scenario.schema import Scenario
from avshift_core.scenario.store.corpus import Corpus, open_corpus
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.scenario.store.record import Record, read_record
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.standing import TOLD
from avshift_core.workspace import Workspace, open_workspace


@dataclass(frozen=True, eq=False)
class Loaded:
    """A comparison at hand, and the key that jobs about it name it by."""

    key: str
    comparison: Comparison

    @property
    def analysis(self) -> Analysis:
        return self.comparison.analysis

    @property
    def run(self) -> str:
        return self.comparison.run

    @property
    def corpus(self) -> dict[str, str]:
        """Arguments of jobs about the whole corpus."""
        c = self.comparison
        return {"url": c.corpus_url, "fingerprint": c.corpus_fingerprint, "latents": c.latents}

    @property
    def on_map(self) -> dict[str, str]:
        """Arguments of the job that places P and Q on the map of the corpus."""
        return {"comparison": self.key, "atlas": job_key("atlas", self.corpus)}


@st.cache_resource(show_spinner=False)
def workspace() -> Workspace:
    return open_workspace()


@st.cache_resource(show_spinner=False)
def board() -> Board:
    """The jobs of this server, shared by all sessions."""
    return Board(workspace())


@st.cache_resource(show_spinner=False)
def settle(page: str) -> None:
    """Take what a page has imported out of the garbage collector's way, once.

    Streamlit collects after every run, also after every look at a progress bar: over all imported libraries that takes
    longer than the run itself.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else libraries complain at the end about what was never collected


@st.cache_resource(max_entries=8, show_spinner=False)
def result(key: str) -> Any:
    """A finished job's result; frozen, so that all sessions may share it."""
    return workspace().results.get(key)


@st.cache_resource(max_entries=4, show_spinner=False, ttl=5)
def corpus(url: str) -> Corpus:
    """The corpus as it is now: imports are seen within seconds."""
    return open_corpus(url)


@st.cache_resource(max_entries=16, show_spinner=False)
def notebook(url: str) -> Notebook:
    """The notebook of a corpus: only where it lies is kept, what it says is read anew."""
    return open_notebook(url, workspace())


@st.cache_resource(max_entries=64, show_spinner=False)
def distinct(url: str, fingerprint: str, column: str) -> tuple:
    return tuple(corpus(url).distinct(column))


@st.cache_resource(max_entries=64, show_spinner=False)
def counts(url: str, fingerprint: str, by: tuple[str, ...], query: CohortQuery = CohortQuery()):  # noqa: B008  frozen
    """Scenarios of a query by columns, as a table with the column n."""
    return corpus(url).sums(query, by=list(by))


@st.cache_resource(max_entries=8, show_spinner=False)
def summary(url: str, fingerprint: str) -> dict:
    return corpus(url).summary()


@st.cache_resource(max_entries=256, show_spinner=False)
def scenarios(url: str, fingerprint: str, ids: tuple[str, ...]) -> tuple[Scenario, ...]:
    """States of a few scenarios, for pictures and playback."""
    return tuple(corpus(url).scenarios(list(ids)))


@st.cache_resource(max_entries=64, show_spinner=False)
def told_of(url: str, fingerprint: str, ids: tuple[str, ...]):
    """What a table says of a few scenarios."""
    columns = [name for name in ("scenario_id", *TOLD) if name in corpus(url).cohort_columns]
    return corpus(url).table(columns=columns, ids=list(ids))


@st.cache_resource(max_entries=256, show_spinner=False)
def record(url: str, fingerprint: str, scenario_id: str, query: str = "") -> Record:
    """Ids, attributes and metrics of one scenario; `query` narrows where it is looked for."""
    return read_record(corpus(url), scenario_id, query)


@st.cache_resource(max_entries=8, show_spinner="Measuring which distances are usual …")
def usual_distances(key: str) -> Usual:
    """Of a comparison, by its key; about a second at 180,000 scenarios."""
    a = result(key).analysis
    return typical_distances(a.P, a.Q, a.space)
