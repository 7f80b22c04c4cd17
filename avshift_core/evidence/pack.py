"""The pack as a job and as a command: facts, pictures, page; one HTML file and one JSON file."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from avshift_core.comparison import Comparison
from avshift_core.errors import AVShiftError
from avshift_core.evidence.facts import Given, check_choice, gather
from avshift_core.evidence.maps import map_pictures
from avshift_core.evidence.page import page
from avshift_core.evidence.places import map_layers, read_scenes
from avshift_core.evidence.scenes import scene
from avshift_core.files import json_bytes
from avshift_core.progress import Progress
from avshift_core.shift.sensitivity import Row, Sensitivity, Width


@dataclass(frozen=True)
class Pack:
    """Both files as text, and the run they belong to."""

    html: str
    json: str
    run: str


def pack_steps(
    comparison: Comparison, metric: str | None = None, B: float | None = None, *, threshold: float | None = None,
    projection: Any = None, sensitivity: Sensitivity | None = None, looks: Sequence[Any] | None = None,
    notes: Mapping[Any, Any] | Sequence[Any] | None = None, made: str | None = None,
) -> Generator[Progress, None, Pack]:
    """Make a pack; nothing is tested or trained again.

    Args:
        metric: one of `comparison.metrics`, the first without it. B: clip, that of the comparison without it.
        projection: a kept map with `umap` (n, 2) of this comparison's scenarios; principal axes without it.
        threshold, sensitivity, looks, notes, made: as in facts.Given; `made` is now without it.
    """
    B = comparison.analysis.config.B if B is None else B
    metric = check_choice(comparison, metric, B, threshold)
    yield Progress("Drawing the map", 0.05)
    xy = None if projection is None else np.asarray(projection.umap)
    layers = map_layers(comparison.analysis, xy, "" if projection is None else "UMAP")
    yield Progress("Gathering the facts", 0.2)
    given = Given(made or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), threshold, sensitivity, looks, notes)
    facts = gather(comparison, metric, B, layers, given)
    yield Progress("Drawing the scenes", 0.8)
    scenes = read_scenes(comparison, facts["places"])
    pictures = {name: scene(scenario, f"Scenario {name}") for name, scenario in scenes.by_id.items()}
    yield Progress("Writing the page", 0.95)
    html = page(facts, map_pictures(layers), pictures, scenes.reason)
    yield Progress("Done", 1.0)
    return Pack(html, json_bytes(facts).decode(), comparison.run)


@dataclass(frozen=True)
class Studies:
    """The studies of a file, and what they are about: field of a comparison -> its value."""

    path: str
    studies: Sensitivity
    about: Mapping[str, str]

    def of(self, comparison: Comparison) -> Sensitivity:
        """The studies, refused when they are of other cohorts."""
        for name, theirs in self.about.items():
            own = getattr(comparison, name)
            if theirs != own:
                what = name.replace("corpus_fingerprint", "corpus")
                raise AVShiftError(f"{self.path} is about another {what}: {str(theirs)[:60]}, and this comparison has "
                                   f"{str(own)[:60]}. Run the studies again on these cohorts.")
        return self.studies


def read_sensitivity(path: str | Path) -> Studies:
    """The studies that `sensitivity --json` has written."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        studies = Sensitivity(tuple(_made(Row, row) for row in found["rows"]),
                              tuple(_made(Width, row) for row in found["half_width"]))
        about = {"source": found["source"], "target": found["target"], "latents": found["corpus"]["latents"],
                 "corpus_fingerprint": found["corpus"]["fingerprint"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise AVShiftError(f"{path} holds no sensitivity studies of a corpus; give a file written by "
                           "`sensitivity --corpus DIR --json FILE`.") from None
    return Studies(str(path), studies, about)


def _made(kind: type, row: Mapping) -> Any:
    values = {f.name: row[f.name] for f in fields(kind)}
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
