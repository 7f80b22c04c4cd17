"""The words that names of regions and clusters are made of, by column and level."""

from __future__ import annotations

EVENTS = {  # category -> what happens, and the word before the agent
    "agent_cutting_in": ("cut-ins", "by"), "agent_jaywalking": ("jaywalking", "by"),
    "agent_lane_changing": ("lane changes", "by"), "agent_parallel_driving": ("driving side by side", "with"),
    "agent_wrong_way_driving": ("wrong-way driving", "by"), "agent_backing_up": ("backing up", "by"),
    "ego_lane_changing": ("lane changes of the ego", "near"), "ego_lane_keeping": ("lane keeping", "behind"),
    "ego_yielding": ("yielding", "to"), "ego_pulling_out": ("pulling out", "near"),
    "ego_pulling_over": ("pulling over", "near"), "ego_nudging": ("nudging", "around"),
    "general": ("general driving", "near"),
}
EVERYDAY = ("general", "ego_lane_keeping")  # a turn of the ego says more
TURNS = {"left": "left turns of the ego", "right": "right turns of the ego", "u_turn": "U-turns of the ego"}
WHO = {"car": "cars", "truck": "trucks", "bus": "buses", "motorcycle": "motorcycles", "bicycle": "cyclists",
       "pedestrian": "pedestrians", "static": "standing objects"}
IMPLIED = {"agent_jaywalking": "pedestrian"}  # who need not be said
WHERE = {"work_zone": "in work zones", "junction": "at junctions", "fast_road": "on fast roads",
         "multi_lane": "on multi-lane roads", "single_lane": "on single-lane roads"}
WHEN = {"night": "at night", "morning": "in the morning", "midday": "at midday", "evening": "in the evening"}

NUMBERS = {  # column -> pattern for numbers over and under a threshold {t}; None where that side says nothing
    "cutin_length_m": ("by vehicles over {t} m", "by vehicles under {t} m"),
    "cutin_speed_mps": ("agent over {t} m/s", "agent under {t} m/s"),
    "cutin_distance_m": (None, "from under {t} m ahead"),
    "actor_distance_min_m": ("gap over {t} m", "gap under {t} m"),
    "ego_speed_mps": ("ego over {t} m/s", "ego under {t} m/s"),
    "ego_speed_min_mps": (None, "ego slowing below {t} m/s"),
    "stop_s": ("ego standing over {t} s", None),
    "brake_max_mps2": ("braking over {t} m/s²", None),
    "n_agents": ("in dense traffic", "in light traffic"),
    "n_agents_near": ("in dense traffic", "in light traffic"),
    "n_pedestrians": ("{t} or more pedestrians", None),
    "n_large": ("{t} or more large vehicles", None),
}
LEAST = {"cutin_length_m": 6.0}  # "over" less than this is no news: the length of a car
ONE = {"n_pedestrians": "with pedestrians", "n_large": "with large vehicles"}  # instead of "1 or more"
COUNTS = ("n_agents", "n_agents_near", "n_pedestrians", "n_large")  # t itself is "t or more"
OF_CUTIN = ("cutin_length_m", "cutin_speed_mps", "cutin_distance_m")
SILENT = (  # consequences of what a name should tell, and what the type of road says better
    "decel_onset_s", "distance_km", "duration_s", "rate_hz", "ego_missing_steps", "ego_speed_start_mps", "ttc_min_s",
    "drac_mps2", "thw_min_s", "gap_min_m", "jerk_max_mps3", "comfort_score", "lateral_acceleration_max_mps2", "n_lanes",
    "speed_limit_mps",
)
HALF = ("brake_max_mps2", "stop_s")  # said only when nothing else is as strong: the ego's answer, not the traffic
GROUPS = (  # columns of which one word is enough
    ("n_agents", "n_agents_near"), ("cutin_length_m", "cutin_type", "n_large"),
    ("ego_speed_mps", "ego_speed_min_mps", "stop_s"), ("actor_distance_min_m", "cutin_distance_m"),
)
JOINED = ("by ", "in ", "on ", "at ", "from ", "to ", "with ", "behind ", "near ", "around ")  # follow without a comma
