"""The weights behind an estimate, one by one: how they spread, what the clip takes, and how much data they leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.shift.analyze import Analysis

CHOICES = ("strata", "lis", "ipw")  # estimators whose weights are the same for every metric
NO_CLIP = 1e12
LEAST, BINS = 0.05, 48  # weights below the least share a bin with 0


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of P's scenarios at one clip.

    Attributes:
        w: (n_P,) with mean 1. raw: (n_P,) before the clip, as the clip sees them.
        ess, ess_drives: effective numbers of scenarios and of drives, (sum w)^2 / sum w^2.
        top_drive: largest share of the weight on one drive.
        clipped: share of P's scenarios that the clip cuts. lost: share of all weight that it takes.
    """

    name: str
    B: float
    w: np.ndarray
    raw: np.ndarray
    ess: float
    ess_drives: float
    top_drive: float
    clipped: float
    lost: float


@dataclass(frozen=True, eq=False)
class WeightHistogram:
    """Scenarios of P by raw weight: edges (b + 1,) evenly spaced in the logarithm, the first bin from 0 on.

    share: (b,) of P's scenarios. mass: (b,) of the weight.
    """

    edges: np.ndarray
    share: np.ndarray
    mass: np.ndarray


def choices(analysis: Analysis) -> tuple[str, ...]:
    """Weights that there are: those of the regions need a local test."""
    return tuple(name for name in CHOICES if name != "lis" or analysis.calibrator.regions is not None)


def weights_of(analysis: Analysis, name: str, B: float) -> Weights:
    """The weights of one estimator at clip B; O(n).

    Args:
        name: one of `choices(analysis)`.
    """
    raw, w = raw_weights(analysis, name), _clipped(analysis, name, B)
    cut, lost = w < raw * (1 - 1e-9), max(0.0, 1 - float(w.sum() / raw.sum()))
    w = w / w.mean()
    per_drive = np.bincount(analysis.calibrator.drive_P, w)
    for array in (w, raw):
        array.setflags(write=False)
    return Weights(
        name, B, w, raw, float(w.sum() ** 2 / (w @ w)), float(per_drive.sum() ** 2 / (per_drive @ per_drive)),
        float(per_drive.max() / per_drive.sum()), float(cut.mean()), lost,
    )


def raw_weights(analysis: Analysis, name: str) -> np.ndarray:
    """(n_P,) weights that no clip has cut."""
    return _clipped(analysis, name, NO_CLIP)


def weight_histogram(raw) -> WeightHistogram:
    """Where the weights lie, on a logarithmic scale.

    >>> h = weight_histogram(np.array([0.0, 1.0, 1.0, 4.0]))
    >>> h.share.sum().item(), h.mass[-1].round(3).item(), h.edges[0].item()
    (1.0, 0.667, 0.0)
    """
    raw = np.asarray(raw, dtype=float)
    top = max(2.0, float(raw.max()) * 1.0001)
    edges = np.concatenate([[0.0], np.geomspace(LEAST, top, BINS)])
    count, mass = (np.histogram(raw, edges, weights=v)[0] for v in (None, raw))
    return WeightHistogram(edges, count / len(raw), mass / max(raw.sum(), 1e-300))


def _clipped(analysis: Analysis, name: str, B: float) -> np.ndarray:
    calibrator = analysis.calibrator
    if name not in choices(analysis):
        raise ConfigError(f"There are no weights '{name}' here; choose one of {', '.join(choices(analysis))}.")
    if name == "ipw":
        return np.minimum(calibrator.w_ipw, B)
    return (calibrator.cells if name == "strata" else calibrator.regions).weights(B)
