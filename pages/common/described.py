"""What sets scenarios apart, kept for the comparisons at hand; keyed by the comparison, never by arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from avshift_core.comparison import Comparison
from avshift_core.notebook import RegionNote
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.differences import Difference
from avshift_core.shift.profile import profile
from avshift_core.shift.regions import DescribedRegions, RegionFacts, describe_regions, pooled_attributes
from pages.common.cached import Loaded
from pages.common.notes import notes_of, number_of
from pages.common.text import isolated


def attributes_of(loaded: Loaded) -> Attributes:
    """The readable attributes of the pooled rows."""
    return _attributes(loaded.key, loaded.comparison)


def regions_of(loaded: Loaded) -> DescribedRegions:
    """Names, profiles, intervals and scenes of the regions; the names that people gave them, where they did."""
    proposed, notes = proposed_regions(loaded), notes_of(loaded)
    return DescribedRegions(*(tuple(_named(facts, notes) for facts in group)
                              for group in (proposed.regions, proposed.violations))) if notes else proposed


def proposed_regions(loaded: Loaded) -> DescribedRegions:
    """The same with the names that were proposed."""
    return _regions(loaded.key, loaded.comparison)


def _named(facts: RegionFacts, notes: Mapping[int, RegionNote]) -> RegionFacts:
    note = notes.get(number_of(facts))
    return replace(facts, name=isolated(note.name)) if note is not None and note.name else facts


def cluster_profile(loaded: Loaded, partition, key: str, k: int) -> tuple[Difference, ...]:
    """Cluster k of a partition against all others.

    Args:
        key: names the partition.
    """
    return _cluster_profile(loaded.key, key, k, loaded.comparison, partition)


@st.cache_resource(max_entries=3, show_spinner=False)
def _attributes(key: str, _comparison: Comparison) -> Attributes:
    return pooled_attributes(_comparison.analysis)


@st.cache_resource(max_entries=8, show_spinner="Describing the regions …")
def _regions(key: str, _comparison: Comparison) -> DescribedRegions:
    return describe_regions(_comparison.analysis, _attributes(key, _comparison))


@st.cache_resource(max_entries=64, show_spinner=False)
def _cluster_profile(key: str, partition_key: str, k: int, _comparison: Comparison, _partition):
    return profile(_attributes(key, _comparison), _partition.cluster == k, _comparison.analysis.sample.drive)
