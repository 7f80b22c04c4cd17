"""Names in data as words for people."""

from __future__ import annotations

PHRASES = {
    "ego_lane_changing": "Ego changes lane", "ego_lane_keeping": "Ego keeps its lane", "ego_yielding": "Ego yields",
    "ego_pulling_out": "Ego pulls out", "ego_pulling_over": "Ego pulls over", "ego_nudging": "Ego nudges",
    "agent_lane_changing": "Agent changes lane", "agent_parallel_driving": "Agent drives alongside",
    "agent_cutting_in": "Agent cuts in", "agent_wrong_way_driving": "Agent drives the wrong way",
    "agent_jaywalking": "Person crosses the road", "agent_backing_up": "Agent backs up", "general": "General",
    "harbor": "Harbor", "old_town": "Old town", "unknown": "unknown",
}


def readable(value) -> str:
    """A value as words; what nobody has words for loses its underscores.

    >>> readable("agent_cutting_in"), readable("old_town"), readable("ring_road"), readable(8)
    ('Agent cuts in', 'Old town', 'ring road', '8')
    """
    return PHRASES.get(value, str(value).replace("_", " "))
