"""The only caching of the dashboard: bounded, and keyed by small values, never by arrays."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import streamlit as st

from avshift_core.config import AnalysisConfig
from avshift_core.latent.benchmark import SyntheticPair, line_case
from avshift_core.shift.analyze import Analysis, Progress, analysis_steps


class Run:
    """One analysis on its way. A page that is left half-way leaves its steps here, and the next visit goes on."""

    def __init__(self, pair: SyntheticPair, config: AnalysisConfig) -> None:
        self.pair, self.analysis, self.error = pair, None, None
        self._steps, self._lock = analysis_steps(pair.P, pair.Q, config), Lock()

    def advance(self) -> Progress | None:
        """The next step; None when the analysis is there. Visitors of the same run take turns."""
        with self._lock:
            if self.error is not None:
                raise self.error
            if self.analysis is not None:
                return None
            try:
                return next(self._steps)
            except StopIteration as done:
                self.analysis = done.value
                return None
            except Exception as error:
                self.error = error
                raise


@st.cache_resource(max_entries=8, show_spinner=False)
def _pair(case: str, n: int, seed: int) -> SyntheticPair:
    return line_case(case, n, seed)


@st.cache_resource(max_entries=8, show_spinner=False)
def _run(case: str, n: int, seed: int, config: AnalysisConfig) -> Run:
    return Run(_pair(case, n, seed), config)


def analysis_of(
    case: str, n: int, seed: int, config: AnalysisConfig, on_progress: Callable[[Progress], None]
) -> tuple[SyntheticPair, Analysis]:
    """The analysis of a synthetic case, from the cache or step by step."""
    run = _run(case, n, seed, config)
    while (progress := run.advance()) is not None:
        on_progress(progress)
    return run.pair, run.analysis
