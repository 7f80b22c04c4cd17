"""The big map: one canvas in the browser (map*.js); what comes back is a drawn line or a clicked row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

from avshift_core.latent.outline import Density, Outline
from avshift_core.latent.pack import Lasso, PackedMap, Stamp, message
from avshift_core.plots.map_colours import COHORTS

HERE = Path(__file__).parent
HEIGHT = 620  # pixels of the picture, without tools and legend
_text = lambda *names: "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)  # noqa: E731
_component = st.components.v2.component(
    "avshift_map", html="<div class='avs-mount'></div>", css=_text("map.css"),
    js=_text("map_draw.js", "map_legend.js", "map_save.js", "map.js"),
)


@dataclass(frozen=True)
class Selection:
    """What the reader did: a line on the map, None for none; the pooled row of a scenario clicked in this run."""

    lasso: Lasso | None
    row: int | None


@dataclass(frozen=True)
class Layers:
    """What is drawn beside the points: the density difference below them, outlines and names above."""

    density: bool = False
    shapes: bool = True


def latent_map(
    points: PackedMap, *, key: str, height: int = HEIGHT, outlines: Sequence[Outline] = (),
    density: Density | None = None, layers: Layers | None = None, selection: Lasso | None = None, alt: str = "",
    stamp: Stamp | None = None, part: str = "", link: str = "", on_selection=None, on_layers=None,
) -> Selection:
    """Draw scenarios and say what was selected. Zoom, place and tools stay when the colours change.

    Args:
        layers, selection: what is to stand on the map, where `on_layers` and `on_selection` keep it; else the reader
            has it alone. What the reader has just changed is not sent back: the same bytes are not sent again.
        part: which of the scenarios these are, where they are not all; link: maps of one name move together.
        on_selection, on_layers: called when the reader has changed them; `drawn(key)` and `layers_of(key)` are new.
    """
    extra = {"height": height, "alt": alt, "part": part, "link": link, "pq": COHORTS}
    if on_selection is not None and selection != drawn(key):
        extra["selection"] = None if selection is None else {
            "space": selection.space, "corners": [v for corner in selection.corners for v in corner]}
    if on_layers is not None and layers not in (None, layers_of(key)):
        extra["layers"] = asdict(layers)
    result = _component(
        key=key, data=message(points, outlines=outlines, density=density, stamp=stamp, extra=extra),
        on_selection_change=on_selection or _nothing, on_layers_change=on_layers or _nothing,
        on_clicked_change=_nothing,
    )
    row = result.clicked
    known = isinstance(row, int) and 0 <= row < points.n
    return Selection(Lasso.of_browser(result.selection), int(points.rows[row]) if known else None)


def drawn(key: str) -> Lasso | None:
    """The line that the reader has drawn on a map, before it is shown again."""
    return Lasso.of_browser(_held(key, "selection"))


def layers_of(key: str) -> Layers:
    """The layers that the reader has chosen on a map."""
    held = _held(key, "layers")
    return Layers(held.get("density") is True, held.get("shapes") is not False) if isinstance(held, dict) else Layers()


def _held(key: str, name: str):
    held = st.session_state.get(key)
    return None if held is None else held.get(name)


def _nothing() -> None:
    """The component needs a callback for each of its values."""
