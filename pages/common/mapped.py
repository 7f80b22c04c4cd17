"""What a map shows of a comparison, kept: axes, colours, outlines, packed points; keyed by names, never by arrays."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from avshift_core.latent.outline import Density, Outline, density_difference, outlines
from avshift_core.latent.pack import PackedMap, pack
from avshift_core.latent.principal import Principal, pca_axes
from avshift_core.latent.project import Projection, Smoothed
from avshift_core.plots.map_colours import colouring, words_of
from avshift_core.quality.cluster_report import Partition
from avshift_core.shift.selected import halves, region_code
from pages.common.cached import Loaded
from pages.common.described import attributes_of

SPACES = {"umap": "UMAP", "pca12": "Principal axes 1 and 2", "pca34": "Principal axes 3 and 4"}


@dataclass(frozen=True, eq=False)
class Picture:
    """One pair of axes: xy (n, 2), what they are called, and their extent where other comparisons share it."""

    space: str
    xy: object
    names: tuple[str, str]
    extent: tuple[float, float, float, float] | None = None


def axes_of(loaded: Loaded) -> Principal:
    return _axes(loaded.key, loaded)


def picture_of(loaded: Loaded, space: str, projection: Projection | None) -> Picture:
    """The points of one pair of axes; principal axes need no projection."""
    if space == "umap":
        return Picture(space, projection.umap, ("UMAP 1", "UMAP 2"), projection.extent)
    axes, first = axes_of(loaded), 0 if space == "pca12" else 2
    names = tuple(f"PC {first + i + 1} ({100 * axes.explained[first + i]:.0f} % of the variance)" for i in (0, 1))
    return Picture(space, axes.scores[:, first : first + 2], names)


def packed_of(
    loaded: Loaded, picture: Picture, colour: str, *, B: float, metric: str | None, part: str = "",
    smoothed: Smoothed | None = None, partition: Partition | None = None, highlight=None, highlighted: str = "",
) -> PackedMap:
    """Points ready to be sent.

    Args:
        part: "choose" or "confirm" for the scenarios of these drives, all without it.
        highlight: (n,) scenarios to stress; highlighted: names them.
    """
    clusters = partition.n_clusters if partition is not None else 0
    return _packed(loaded.key, picture.space, colour, B if colour == "weight" else 0.0,
                   metric if colour == "event" else "", part, clusters, highlighted, loaded, picture, smoothed,
                   partition, highlight)


def density_of(loaded: Loaded, picture: Picture) -> Density:
    return _density(loaded.key, picture.space, loaded, picture)


def outlines_of(loaded: Loaded, picture: Picture, partition: Partition | None = None) -> tuple[Outline, ...]:
    """Lines around regions and places without support; with a partition, the clusters' numbers instead."""
    clusters = partition.n_clusters if partition is not None else 0
    return _outlines(loaded.key, picture.space, clusters, loaded, picture, partition)


@st.cache_resource(max_entries=4, show_spinner=False)
def _axes(key: str, _loaded: Loaded) -> Principal:
    return pca_axes(_loaded.analysis.space.X)


@st.cache_resource(max_entries=24, show_spinner=False)
def _packed(key, space, colour, B, metric, part, clusters, highlighted, _loaded, _picture, _smoothed, _partition,
            _highlight) -> PackedMap:
    attributes = attributes_of(_loaded)
    colours = colouring(colour, _loaded.comparison, attributes, B=B, metric=metric, smoothed=_smoothed,
                        partition=_partition)
    words = words_of(_loaded.comparison, attributes, _partition)
    rows = halves(_loaded.analysis)[part] if part else None
    return pack(_picture.xy, colours, space=space, axes=_picture.names, words=words, rows=rows, highlight=_highlight,
                extent=_picture.extent)


@st.cache_resource(max_entries=16, show_spinner=False)
def _density(key, space, _loaded, _picture) -> Density:
    return density_difference(_picture.xy, _loaded.analysis.sample.y)


@st.cache_resource(max_entries=16, show_spinner=False)
def _outlines(key, space, clusters, _loaded, _picture, _partition) -> tuple[Outline, ...]:
    if _partition is not None:
        names = [str(k + 1) for k in range(_partition.n_clusters)]
        return outlines(_picture.xy, _partition.cluster, names, lines=False)
    code, titles = region_code(_loaded.analysis)
    return outlines(_picture.xy, code, titles)
