"""What sets scenarios apart, kept for the comparisons at hand; keyed by the comparison, never by arrays."""

from __future__ import annotations

import streamlit as st

from avshift_core.comparison import Comparison
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.differences import Difference
from avshift_core.shift.profile import profile
from avshift_core.shift.regions import DescribedRegions, describe_regions, pooled_attributes
from pages.common.cached import Loaded


def attributes_of(loaded: Loaded) -> Attributes:
    """The readable attributes of the pooled rows."""
    return _attributes(loaded.key, loaded.comparison)


def regions_of(loaded: Loaded) -> DescribedRegions:
    """Names, profiles, intervals and scenes of the regions."""
    return _regions(loaded.key, loaded.comparison)


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
