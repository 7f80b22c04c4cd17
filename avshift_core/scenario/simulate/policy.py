"""The ego's driving policy: car following with delay, foresight and comfort limits, in named versions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EgoPolicy:
    """Parameters of one AV version.

    Attributes:
        delay_s: from what is seen to what is commanded.
        foresight_s: how far ahead the lateral motion of others is continued: who is about to enter the ego's path
            counts as if it were there.
        headway_s, standstill_m, accelerate_mps2, brake_mps2: IDM (Treiber, Hennecke and Helbing 2000).
        comfort_brake_mps2: hardest braking while the situation needs less than `emergency_mps2`.
        comfort_jerk_mps3: change of acceleration in normal driving; emergency_jerk_mps3 otherwise.
        turn_lateral_mps2: lateral acceleration it takes a bend with.
        lane_change_s: duration of its lane changes.
    """

    version: str
    delay_s: float = 0.5
    foresight_s: float = 0.8
    headway_s: float = 1.4
    standstill_m: float = 2.5
    accelerate_mps2: float = 1.4
    brake_mps2: float = 1.8
    comfort_brake_mps2: float = 3.2
    comfort_jerk_mps3: float = 4.4
    emergency_mps2: float = 2.0
    emergency_jerk_mps3: float = 14.0
    turn_lateral_mps2: float = 2.2
    lane_change_s: float = 4.0


POLICIES = {
    "v4.1": EgoPolicy("v4.1"),
    "v4.2": EgoPolicy("v4.2", delay_s=0.3, foresight_s=1.3, comfort_brake_mps2=2.8, comfort_jerk_mps3=4.25,
                      lane_change_s=4.6),
}
