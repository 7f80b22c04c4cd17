"""The scenario player: a canvas in the browser (player.js), given once what it plays and left alone after that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from avshift_core.plots import theme
from avshift_core.plots.scenes import COLORS, LEGEND
from avshift_core.scenario.playback import Playback, message_of
from avshift_core.scenario.schema import AGENT_TYPES

HERE = Path(__file__).parent
HEIGHT, PAIR_HEIGHT = 400, 340  # pixels of a picture
SCRIPTS = ("player_scene.js", "player_picture.js", "player_strips.js", "player.js")  # one script, in this order
_component = st.components.v2.component(
    "avshift_player", html="<div class='avs-mount'></div>", css=(HERE / "player.css").read_text(encoding="utf-8"),
    js="\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS),
)


def player(scenes: Sequence[Playback], *, key: str = "player", stamp: str = "") -> None:
    """Play one scene, or two beside each other on one clock.

    Args:
        stamp: the run's identity, written under a saved picture.
    """
    message = message_of(scenes)
    legend = [{"name": name, "color": color,
               "types": [kind for kind in AGENT_TYPES if COLORS.get(kind, theme.NEUTRAL) == color]}
              for name, color in LEGEND]
    _component(
        key=key, data={**message, "legend": legend, "tags": {"P": theme.P, "Q": theme.Q}, "stamp": stamp,
                       "height": HEIGHT if len(scenes) == 1 else PAIR_HEIGHT, "on_foot": ["pedestrian"]},
    )
