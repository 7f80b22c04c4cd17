"""A feature vector a competent engineer would write by hand, from the tensor view alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS
from avshift_core.scenario.view import TensorView

FAR_M = 80.0  # what is farther, or not there, counts as this far
LANE_M, HALF_M = 3.5, 1.9  # lane width; half a lane and some centimetres
LARGE_M = 7.5
NO_TTC_S = 10.0
PEOPLE = [AGENT_TYPES.index("pedestrian"), AGENT_TYPES.index("bicycle")]


def handmade(view: TensorView) -> np.ndarray:
    """(n, f) float32: the ego's motion, gaps and speeds around it over time, moving-over, people, counts, road."""
    return np.nan_to_num(np.stack(list(named_features(view).values()), axis=1)).astype(np.float32)


def named_features(view: TensorView) -> dict[str, np.ndarray]:
    """Name -> (n,) values."""
    view = _with_a_slot(view)
    return _ego(view) | _sectors(view) | _moves(view) | _crowd(view) | _road(view)


def _with_a_slot(view: TensorView) -> TensorView:
    """The view with one agent that is not there, where no scene has any: nobody needs to ask then."""
    if view.agents.shape[1]:
        return view
    names = ("agents", "agents_valid", "agent_valid", "agent_type", "agent_size", "agent_index")
    return replace(view, **{name: np.zeros((len(a), 1, *a.shape[2:]), a.dtype) for name in names
                            for a in [getattr(view, name)]})


def _ego(view: TensorView) -> dict[str, np.ndarray]:
    speed, acceleration, valid = view.ego[..., 4], view.ego[..., 5], view.ego_valid
    mean = lambda a: np.where(valid, a, 0).sum(axis=1) / np.maximum(valid.sum(axis=1), 1)  # noqa: E731
    low, high = np.where(valid, speed, np.inf).min(axis=1), np.where(valid, speed, -np.inf).max(axis=1)
    row, last = np.arange(len(speed)), valid.shape[1] - 1 - valid[:, ::-1].argmax(axis=1)
    heading = np.unwrap(np.arctan2(view.ego[..., 3], view.ego[..., 2]), axis=1)
    y = np.where(valid, view.ego[..., 1], 0)
    return {
        "speed_first": speed[row, valid.argmax(axis=1)], "speed_last": speed[row, last], "speed_mean": mean(speed),
        "speed_min": low, "speed_max": high, "when_slowest": np.where(valid, speed, np.inf).argmin(axis=1),
        "acceleration_min": np.where(valid, acceleration, 0).min(axis=1),
        "acceleration_max": np.where(valid, acceleration, 0).max(axis=1), "acceleration_mean": mean(acceleration),
        "standing": mean(speed < 0.3), "x_last": view.ego[row, last, 0], "y_last": view.ego[row, last, 1],
        "y_min": y.min(axis=1), "y_max": y.max(axis=1), "turned": heading[row, last],
        "turned_most": np.where(valid, np.abs(heading), 0).max(axis=1), "duration": view.dt_s * (valid.shape[1] - 1),
    }


def _relative(view: TensorView):
    """(n, A, S) place, heading cosine and sine, and speed along and across of the agents, seen from the moving ego."""
    ego, agents = view.ego[:, None], view.agents
    c, s = ego[..., 2], ego[..., 3]
    dx, dy = agents[..., 0] - ego[..., 0], agents[..., 1] - ego[..., 1]
    x, y = c * dx + s * dy, c * dy - s * dx
    cos, sin = c * agents[..., 2] + s * agents[..., 3], c * agents[..., 3] - s * agents[..., 2]
    there = view.agents_valid & view.ego_valid[:, None]
    return x, y, cos, sin, agents[..., 4], there


def _sectors(view: TensorView) -> dict[str, np.ndarray]:
    """Nearest gap before, behind, left and right: at the start, in the middle, at the end, least; speed of approach."""
    x, y, cos, _, speed, there = _relative(view)
    length = (view.agent_size[..., 0:1] + view.ego_size[:, None, 0:1]) / 2
    beside = (np.abs(y) > HALF_M) & (np.abs(y) < HALF_M + LANE_M) & (np.abs(x) < 25)
    inside = {
        "front": there & (np.abs(y) < HALF_M) & (x > 0), "behind": there & (np.abs(y) < HALF_M) & (x < 0),
        "left": there & beside & (y > 0), "right": there & beside & (y < 0),
    }
    S, out = x.shape[2], {}
    closing_all = view.ego[:, None, :, 4] - speed * cos
    for name, mask in inside.items():
        gap = np.where(mask, np.maximum(np.abs(x) - length, 0), FAR_M)
        near = np.minimum(gap.min(axis=1), FAR_M)  # (n, S)
        out |= {f"{name}_first": near[:, 0], f"{name}_middle": near[:, S // 2], f"{name}_last": near[:, -1],
                f"{name}_min": near.min(axis=1), f"{name}_mean": near.mean(axis=1),
                f"{name}_when": near.argmin(axis=1)}
        who = gap.argmin(axis=1)[:, None]
        closing = np.where(near < FAR_M, np.take_along_axis(closing_all, who, axis=1)[:, 0], 0)
        out[f"{name}_closing"] = np.take_along_axis(closing, near.argmin(axis=1)[:, None], axis=1)[:, 0]
        if name == "front":
            ttc = np.where(closing > 0.1, near / np.maximum(closing, 0.1), NO_TTC_S)
            out["ttc_min"] = np.minimum(ttc, NO_TTC_S).min(axis=1)
    return out


def _moves(view: TensorView) -> dict[str, np.ndarray]:
    """Who moves over into the ego's lane and out of it, from where, how near; driving abreast; wrong ways."""
    x, y, cos, sin, speed, there = _relative(view)
    n = len(x)
    names = ("enter_gap", "enter_speed", "enter_length", "enter_side", "enter_when", "enter_slow", "leave", "abreast",
             "oncoming_gap", "backwards", "across_gap", "people_gap", "people_ahead_gap", "nearest", "nearest_x",
             "nearest_y", "nearest_speed", "nearest_when")
    inside = (np.abs(y) < HALF_M) & there
    enters = inside[..., 1:] & ~inside[..., :-1] & there[..., :-1] & (x[..., 1:] > 0) & (np.abs(y[..., :-1]) < 6)
    leaves = ~inside[..., 1:] & inside[..., :-1] & there[..., 1:] & (x[..., 1:] > 0)
    pick = lambda a, at: np.take_along_axis(a.reshape(n, -1), at[:, None], axis=1)[:, 0]  # noqa: E731
    gap = np.where(enters, x[..., 1:], FAR_M).reshape(n, -1)
    at, some = gap.argmin(axis=1), enters.any(axis=(1, 2))
    length = np.broadcast_to(view.agent_size[..., 0:1], enters.shape)
    when = np.broadcast_to(np.arange(enters.shape[2]), enters.shape)
    beside = there & (np.abs(x) < 6) & (np.abs(y) > HALF_M) & (np.abs(y) < HALF_M + LANE_M) & (speed > 2) & (cos > 0.8)
    least = lambda mask, a: np.where(mask, a, FAR_M).min(axis=(1, 2)).clip(max=FAR_M)  # noqa: E731
    far = np.hypot(x, y)
    people = there & np.isin(view.agent_type, PEOPLE)[..., None]
    nearest = np.where(there, far, FAR_M).reshape(n, -1).argmin(axis=1)
    along = np.gradient(view.agents[..., 0], axis=2) * view.agents[..., 2] + np.gradient(
        view.agents[..., 1], axis=2) * view.agents[..., 3]
    steady = there[..., 1:-1] & there[..., :-2] & there[..., 2:]
    values = (
        gap.min(axis=1), np.where(some, pick(speed[..., 1:], at), 0), np.where(some, pick(length, at), 0),
        np.where(some, np.sign(pick(y[..., :-1], at)), 0), np.where(some, pick(when, at), -1),
        np.where(some, pick(view.ego[:, None, 1:, 4] - speed[..., 1:] * cos[..., 1:], at), 0),
        leaves.any(axis=(1, 2)), beside.any(axis=1).mean(axis=1),
        least(there & (cos < -0.7) & (np.abs(y) < HALF_M) & (x > 0) & (speed > 0.5), far),
        (steady & (along[..., 1:-1] < -0.15)).any(axis=2).sum(axis=1),
        least(there & (np.abs(sin) > 0.7) & (x > 0) & (np.abs(y) < 8) & (speed > 0.5), far), least(people, far),
        least(people & (np.abs(y) < HALF_M) & (x > 0), far), least(there, far), pick(x, nearest), pick(y, nearest),
        pick(speed, nearest), nearest % x.shape[2],
    )
    return dict(zip(names, map(np.asarray, values), strict=True))


def _crowd(view: TensorView) -> dict[str, np.ndarray]:
    """How many agents of what kind, how near and how fast."""
    valid, kind = view.agents_valid, view.agent_type
    one = view.agent_valid
    speed = np.where(valid, view.agents[..., 4], 0).sum(axis=2) / np.maximum(valid.sum(axis=2), 1)
    far = np.where(valid, np.hypot(view.agents[..., 0] - view.ego[:, None, :, 0],
                                   view.agents[..., 1] - view.ego[:, None, :, 1]), np.inf).min(axis=2, initial=np.inf)
    count = one.sum(axis=1)
    moving = one & (speed > 0.5)
    out = {f"n_{name}": (one & (kind == i)).sum(axis=1) for i, name in enumerate(AGENT_TYPES)}
    return out | {
        "n_all": count + view.n_cut, "n_10m": (far < 10).sum(axis=1), "n_30m": (far < 30).sum(axis=1),
        "n_moving": moving.sum(axis=1), "n_large": (one & (view.agent_size[..., 0] > LARGE_M)).sum(axis=1),
        "traffic_speed": np.where(moving, speed, 0).sum(axis=1) / np.maximum(moving.sum(axis=1), 1),
    }


def _road(view: TensorView) -> dict[str, np.ndarray]:
    """Lanes beside the ego's, its limit, its bend; edges, crosswalks, stop lines and work zones near."""
    far = np.hypot(view.road[..., 0], view.road[..., 1]).min(axis=2)
    of = lambda name: view.road_valid & (view.road_kind == ROAD_KINDS.index(name))  # noqa: E731
    lane = of("lane_center")
    at = np.abs(view.road[..., 0]).argmin(axis=2)[..., None]  # the point abeam of the ego
    abeam_y = np.take_along_axis(view.road[..., 1], at, axis=2)[..., 0]
    first, last = view.road[:, :, 1] - view.road[:, :, 0], view.road[:, :, -1] - view.road[:, :, -2]
    near = lane & (np.abs(abeam_y) < 12) & (far < 15)
    own = np.where(lane, far, np.inf).argmin(axis=1)
    row = np.arange(len(far))
    bend = np.arctan2(last[..., 1], last[..., 0]) - np.arctan2(first[..., 1], first[..., 0])
    bend = (bend + np.pi) % (2 * np.pi) - np.pi
    reversed_ = near & (first[..., 0] < 0)
    out = {
        "lanes_left": (near & ~reversed_ & (abeam_y > HALF_M)).sum(axis=1),
        "lanes_right": (near & ~reversed_ & (abeam_y < -HALF_M)).sum(axis=1), "lanes_against": reversed_.sum(axis=1),
        "limit": view.road_limit_mps[row, own], "bend": np.where(lane.any(axis=1), bend[row, own], 0),
        "off_centre": np.where(lane.any(axis=1), abeam_y[row, own].clip(-5, 5), 0), "n_lines": lane.sum(axis=1),
    }
    return out | {f"{name}_far": np.where(of(name), far, FAR_M).min(axis=1).clip(max=FAR_M)
                  for name in ROAD_KINDS[2:]}
