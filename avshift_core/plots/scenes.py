"""Scenarios seen from above: small pictures in rows, the ego driving to the right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from avshift_core.plots import theme
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS, Scenario

REACH_M = 45.0  # to each side of the middle of the ego's way
PANEL, GAP = 155, 0.012  # pixels of a picture, six of which fit a page; share of the width between two
EGO = theme.HEADLINE
COLORS = {"car": theme.P, "motorcycle": theme.P, "truck": theme.Q, "bus": theme.Q, "pedestrian": "#009E73",
          "bicycle": "#009E73"}  # Okabe and Ito's; all others are grey
LEGEND = (("ego", EGO), ("car", theme.P), ("truck, bus", theme.Q), ("pedestrian, bicycle", "#009E73"),
          ("other", theme.NEUTRAL))
ON_FOOT = ("pedestrian", "bicycle")


def scene_rows(rows: Sequence[Sequence[Scenario]], titles: Sequence[Sequence[str]]) -> go.Figure:
    """One picture a scenario: everybody's way, and where they are at half of the time, to scale.

    Args:
        titles: a line above each picture.
    """
    columns = max(map(len, rows))
    figure = go.Figure()
    width, height = 1 / columns, 1 / len(rows)
    for r, (scenes, names) in enumerate(zip(rows, titles, strict=True)):
        for c, (scene, name) in enumerate(zip(scenes, names, strict=True)):
            _panel(figure, scene, name, 1 + r * columns + c, [c * width + GAP / 2, (c + 1) * width - GAP / 2],
                   [1 - (r + 1) * height, 1 - r * height - 22 / (len(rows) * (PANEL + 22))])
    for name, color in LEGEND:
        figure.add_scatter(x=[None], y=[None], mode="markers", name=name, marker={"color": color, "symbol": "square"})
    theme.base_figure(figure, len(rows) * (PANEL + 22) + 40)
    figure.update_layout(margin={"l": 4, "r": 4, "t": 30, "b": 4}, width=columns * PANEL)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def _panel(figure: go.Figure, scene: Scenario, name: str, number: int, across, up) -> None:
    number = str(number) if number > 1 else ""  # plotly's first axes have none
    x, y = f"x{number}", f"y{number}"
    figure.update_layout({
        f"xaxis{number}": {"domain": across, "anchor": y, "range": [-REACH_M, REACH_M], "fixedrange": True},
        f"yaxis{number}": {"domain": up, "anchor": x, "range": [-REACH_M, REACH_M], "fixedrange": True,
                           "scaleanchor": x},
    })
    figure.add_shape(type="rect", xref=f"{x} domain", yref=f"{y} domain", x0=0, x1=1, y0=0, y1=1,
                     line={"color": theme.FAINT, "width": 1})
    figure.add_annotation(text=name, xref=f"{x} domain", yref=f"{y} domain", x=0, y=1, xanchor="left",
                          yanchor="bottom", showarrow=False, font={"size": 11})
    axes = {"xaxis": x, "yaxis": y, "showlegend": False, "hoverinfo": "skip"}
    road, users = scene_lines(scene)
    for kind, lines in road.items():
        solid = kind in ("lane_boundary", "road_edge")
        figure.add_scatter(**_joined(lines), mode="lines", **axes,
                           line={"color": theme.NEUTRAL if kind == "work_zone" else theme.FAINT,
                                 "width": 1.5 if solid else 1, "dash": "solid" if solid else "dot"})
    for color, (ways, boxes) in users.items():
        figure.add_scatter(**_joined(ways), mode="lines", line={"color": color, "width": 1.2}, opacity=0.55, **axes)
        figure.add_scatter(**_joined(boxes), mode="lines", fill="toself", fillcolor=color,
                           line={"color": color, "width": 1}, **axes)


def scene_lines(scene: Scenario) -> tuple[dict[str, list[np.ndarray]], dict[str, tuple[list, list]]]:
    """Kind of road line -> lines, and colour of road users -> ways and boxes; (m, 2) each, metres in the picture."""
    to_view, half = _frame(scene)
    return _road(scene, to_view), _users(scene, to_view, half)


def _frame(scene: Scenario):
    """Places of the log -> metres in the picture, and the step at half of the time."""
    steps = np.flatnonzero(scene.ego_valid)
    first, half = scene.ego[steps[0]], int(steps[len(steps) // 2])
    c, s = np.cos(first[2]), np.sin(first[2])
    middle = scene.ego[half, :2]

    def to_view(xy) -> np.ndarray:
        d = np.asarray(xy, float) - middle
        return np.stack([c * d[..., 0] + s * d[..., 1], c * d[..., 1] - s * d[..., 0]], axis=-1)

    return to_view, half


def _road(scene: Scenario, to_view) -> dict[str, list[np.ndarray]]:
    lines: dict[str, list[np.ndarray]] = {}
    for j in range(scene.road.n):
        lines.setdefault(ROAD_KINDS[scene.road.kind[j]], []).append(to_view(scene.road.polyline(j)))
    return lines


def _users(scene: Scenario, to_view, half: int) -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    """Colour -> ways, and boxes at half of the time (or the nearest time at which the agent is seen)."""
    users: dict[str, tuple[list, list]] = {}
    for a in range(scene.n_agents):
        steps = np.flatnonzero(scene.agents_valid[a])
        kind = AGENT_TYPES[scene.agent_type[a]]
        if len(steps):
            at = int(steps[np.abs(steps - half).argmin()])
            size = np.maximum(scene.agent_size[a, :2], 1.2 if kind in ON_FOOT else 0.5)  # people stay visible
            _add(users, COLORS.get(kind, theme.NEUTRAL), scene.agents[a], steps, at, size, to_view)
    _add(users, EGO, scene.ego, np.flatnonzero(scene.ego_valid), half, scene.ego_size[:2], to_view)
    return users


def _add(users, color, states, steps, at, size, to_view) -> None:
    ways, boxes = users.setdefault(color, ([], []))
    breaks = [0, *(1 + np.flatnonzero(np.diff(steps) > 1)), len(steps)]
    ways += [to_view(states[steps[a:b], :2]) for a, b in pairwise(breaks)]
    heading, (length, width) = states[at, 2], size
    corners = np.array([(1, 1), (1, -1), (-1, -1), (-1, 1), (1, 1)]) * [length / 2, width / 2]
    c, s = np.cos(heading), np.sin(heading)
    boxes.append(to_view(states[at, :2] + corners @ np.array([[c, s], [-s, c]])))


def _joined(lines: Sequence[np.ndarray]) -> dict[str, list]:
    """Lines as one trace, cut at what is out of the picture and with gaps between them."""
    x, y = [], []
    for line in lines:
        inside = (np.abs(line) <= REACH_M * 1.5).all(axis=1)
        if inside.any():
            x += [*np.where(inside, line[:, 0], np.nan).round(2).tolist(), None]
            y += [*np.where(inside, line[:, 1], np.nan).round(2).tolist(), None]
    return {"x": x, "y": y}
