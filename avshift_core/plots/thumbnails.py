"""One scenario from above as a small picture without legend, for rows and grids of them."""

from __future__ import annotations

import plotly.graph_objects as go

from avshift_core.plots.scenes import scene_rows
from avshift_core.scenario.schema import Scenario

HEIGHT = 150


def thumbnail(scene: Scenario) -> go.Figure:
    """Everybody's way, and where they are at half of the time, to scale; the ego drives to the right."""
    figure = scene_rows([[scene]], [[""]])
    figure.update_layout(showlegend=False, height=HEIGHT, width=None, margin={"l": 0, "r": 0, "t": 0, "b": 4})
    figure.layout.annotations = ()
    figure.update_xaxes(domain=[0, 1], constrain="domain")
    figure.update_yaxes(domain=[0, 1], constrain="domain")
    return figure
