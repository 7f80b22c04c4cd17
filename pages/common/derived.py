"""What pages derive from a comparison and keep: curves, differences, sweeps; keyed by it, never by arrays."""

from __future__ import annotations

import streamlit as st

from avshift_core.comparison import Comparison
from avshift_core.shift.breakdown import sweep
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.curves import Curves, held_out_curves
from avshift_core.shift.profile import Weighing, weighing
from avshift_core.shift.weights import WeightHistogram, raw_weights, weight_histogram
from pages.common.cached import Loaded
from pages.common.described import attributes_of
from pages.common.state import CLIPS


def curves_of(loaded: Loaded) -> Curves:
    """ROC, reliability and bounds of the global test."""
    return _curves(loaded.key, loaded.comparison)


def weighing_of(loaded: Loaded) -> Weighing:
    """What differs between P and Q, ready for any weights."""
    return _weighing(loaded.key, loaded)


def sweep_of(loaded: Loaded, metric: str) -> tuple[Calibration, ...]:
    """A metric at every clip of the slider."""
    return _sweep(loaded.key, metric, loaded.comparison)


def histogram_of(loaded: Loaded, name: str) -> WeightHistogram:
    """The weights of an estimator before the clip."""
    return _histogram(loaded.key, name, loaded.comparison)


@st.cache_resource(max_entries=8, show_spinner=False)
def _curves(key: str, _comparison: Comparison) -> Curves:
    return held_out_curves(_comparison.analysis)


@st.cache_resource(max_entries=3, show_spinner=False)
def _weighing(key: str, _loaded: Loaded) -> Weighing:
    sample = _loaded.analysis.sample
    return weighing(attributes_of(_loaded), sample.y, sample.drive)


@st.cache_resource(max_entries=64, show_spinner=False)
def _sweep(key: str, metric: str, _comparison: Comparison) -> tuple[Calibration, ...]:
    return sweep(_comparison.analysis, metric, CLIPS)


@st.cache_resource(max_entries=16, show_spinner=False)
def _histogram(key: str, name: str, _comparison: Comparison) -> WeightHistogram:
    return weight_histogram(raw_weights(_comparison.analysis, name))
