"""What the pack says of places in latent space: the map, the regions, and the scenes that stand for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from avshift_core.comparison import Comparison
from avshift_core.errors import AVShiftError
from avshift_core.evidence.rates import estimate
from avshift_core.latent.outline import Density, Outline, density_difference, outlines
from avshift_core.latent.principal import pca_axes
from avshift_core.scenario.schema import Scenario
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.breakdown import contributions
from avshift_core.shift.gate import GLOBAL_SHIFT
from avshift_core.shift.profile import telling
from avshift_core.shift.regions import RegionFacts, describe_regions
from avshift_core.shift.selected import ID, region_code

SCENES = 3  # pictures a region and cohort: they stand in one row
DIFFERENCES = 5  # attributes of a region
BINS = 150  # cells of the map, each way
PRINCIPAL = "Principal axes 1 and 2"


@dataclass(frozen=True, eq=False)
class MapLayers:
    """A map as it is drawn.

    Attributes:
        title: what its axes are; axes: their names.
        P, Q: (BINS, BINS) scenarios of each cohort in every cell, rows from the bottom up.
        density: where there is more of Q than of P. outlines: of the regions.
    """

    title: str
    axes: tuple[str, str]
    P: np.ndarray
    Q: np.ndarray
    density: Density
    outlines: tuple[Outline, ...]


@dataclass(frozen=True, eq=False)
class Scenes:
    """Scenarios with their states by id; `reason` says why there are none."""

    by_id: Mapping[str, Scenario]
    reason: str = ""


def map_layers(analysis: Analysis, xy: np.ndarray | None = None, title: str = "") -> MapLayers:
    """The map of both cohorts on given axes, or on the principal ones.

    Args:
        xy: (n, 2) places of P's scenarios and then Q's; title: what they are.
    """
    axes = ("first axis", "second axis")
    if xy is None:
        found = pca_axes(analysis.space.X, 2)
        xy, title = found.scores, PRINCIPAL
        axes = tuple(f"PC {i + 1} ({100 * found.explained[i]:.0f} % of the variance)" for i in (0, 1))
    xy = np.asarray(xy, dtype=np.float64)
    if xy.shape != (analysis.sample.n, 2) or not np.isfinite(xy).all():
        raise AVShiftError(f"The map has places of shape {xy.shape} for {analysis.sample.n:,} scenarios; two finite "
                           "numbers each are needed. Draw the map of this comparison again, or leave it out.")
    density = density_difference(xy, analysis.sample.y)
    x0, x1, y0, y1 = density.extent
    counts = [np.histogram2d(xy[own, 1], xy[own, 0], BINS, [[y0, y1], [x0, x1]])[0]
              for own in (analysis.sample.y == 0, analysis.sample.y == 1)]
    return MapLayers(title or "A map of latent space", axes, *counts, density, outlines(xy, *region_code(analysis)))


def map_facts(layers: MapLayers) -> dict:
    return {"title": layers.title, "axes": list(layers.axes), "extent": list(layers.density.extent),
            "n_P": int(layers.P.sum()), "n_Q": int(layers.Q.sum()), "largest_difference": layers.density.peak,
            "outlined": [{"region": o.name, "held": o.held, "pieces": len(o.rings)} for o in layers.outlines]}


def place_facts(comparison: Comparison, metric: str | None, B: float, attributes: Attributes,
                notes: Mapping[str, Mapping]) -> dict:
    """The regions and the places without support.

    Args:
        notes: "R1" -> what reviewers said of it.
    """
    analysis = comparison.analysis
    described = describe_regions(analysis, attributes)
    moves = {} if metric is None or analysis.local is None else {
        c.name: c for c in contributions(analysis, metric, B)}
    return {
        "looked_for": analysis.local is not None, "why_not": why_no_regions(analysis),
        "candidates": 0 if analysis.local is None else analysis.local.n_candidates,
        "regions": [_region(comparison, f, moves.get(f.title), B, notes.get(f.title)) for f in described.regions],
        "without_support": [_region(comparison, f, None, B, notes.get(f.title)) for f in described.violations],
    }


def why_no_regions(analysis: Analysis) -> str:
    """Why there is no region; "" where there is one. A stop is a result."""
    config, local = analysis.config, analysis.local
    if local is not None:
        return "" if local.regions else (
            f"Regions were looked for and none was found: {local.n_candidates:,} were proposed by one part of the "
            "drives, none was confirmed by the other.")
    if analysis.verdict.name == GLOBAL_SHIFT:
        return (f"Localization stopped on purpose: the lower bound of the advantage lies above {config.gamma_large:g}, "
                "more than a few regions would explain. Choose a P that is closer to Q, or look for regions anyway "
                "with the setting force_localize.")
    return (f"Localization stopped on purpose: the lower bound of the advantage lies below {config.gamma_small:g}, so "
            "there is no shift that could be looked for.")


def read_scenes(comparison: Comparison, places: Mapping) -> Scenes:
    """States of the scenarios that stand for the regions, from the corpus that was compared."""
    wanted = {side: [name for r in (*places["regions"], *places["without_support"]) for name in r["scenes"][side]]
              for side in ("P", "Q")}
    if not any(wanted.values()):
        return Scenes({})
    try:
        corpus = open_corpus(comparison.corpus_url)
        found = {}
        for side, query in (("P", comparison.source), ("Q", comparison.target)):
            ids = list(dict.fromkeys(wanted[side]))
            found |= dict(zip(ids, corpus.scenarios(ids, query), strict=True)) if ids else {}
    except AVShiftError as error:
        return Scenes({}, str(error))
    return Scenes(found)


def _region(comparison: Comparison, facts: RegionFacts, part, B: float, note: Mapping | None) -> dict:
    analysis, r = comparison.analysis, facts.region
    bare = facts.title.startswith("V")
    return {
        "region": facts.title, "name": facts.name, "note": note, "more_in": facts.more_in, "n_P": r.n_source,
        "n_Q": r.n_target, "drives": r.n_drives, "p": estimate(facts.p), "q": estimate(facts.q),
        "ratio": estimate(facts.ratio), "weight": 1.0 if bare else facts.weight(B), "effect": r.score,
        "p_adj": r.p_adj,
        "contribution": None if part is None else estimate(part.move), "rate_P": None if part is None else part.rate,
        "attributes": [{"label": d.label, "inside": d.text(d.inside), "outside": d.text(d.outside), "smd": d.smd,
                        "lo": d.lo, "hi": d.hi} for d in telling(facts.differences, DIFFERENCES)],
        "scenes": {"P": _ids(analysis.P, facts.scenes_P), "Q": _ids(analysis.Q, facts.scenes_Q)},
    }


def _ids(cohort, rows: Sequence[int]) -> list[str]:
    return [str(cohort.obs[ID].iloc[row]) for row in rows[:SCENES]] if ID in cohort.obs else []
