"""Hand-made scenes for the tests of metrics, categories, attributes and views."""

import numpy as np

from avshift_core.scenario.schema import AGENT_TYPES, Ids, Scenario, make_road, pad

CAR = (4.8, 1.9, 1.6)
PERSON = (0.6, 0.6, 1.8)


def times(duration_s=12.0, hz=10.0):
    return np.arange(round(duration_s * hz) + 1) / hz


def lane_change(t, start_s, lasts_s, width_m):
    """Smooth step from 0 to width_m: half a cosine."""
    u = np.clip((t - start_s) / lasts_s, 0, 1)
    return width_m * (1 - np.cos(np.pi * u)) / 2


def along(t, speed_mps):
    """Distance driven at a constant speed, or at the speeds given for each step."""
    speed = np.broadcast_to(np.asarray(speed_mps, float), t.shape)
    return np.concatenate([[0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(t))])


def track(t, x, y=0.0, heading=None, kind="car", size=CAR, valid=True):
    """States (T, 4) of one road user; the heading follows the motion, and is 0 when it does not move, if not given."""
    x, y = (np.broadcast_to(np.asarray(v, float), t.shape) for v in (x, y))
    vx, vy = np.gradient(x, t), np.gradient(y, t)
    speed = np.hypot(vx, vy)
    if heading is None:
        heading = np.where(speed > 1e-3, np.arctan2(vy, vx), 0.0)
    states = np.stack([x, y, np.broadcast_to(heading, t.shape), speed], axis=1)
    return {"states": states, "kind": kind, "size": size, "valid": np.broadcast_to(valid, t.shape)}


def scene(t, ego, agents=(), road=(), ego_size=CAR, acceleration=None):
    """Scenario of tracks; the ego's acceleration is the change of its speed."""
    valid, T = ego["valid"], len(t)
    if acceleration is None:
        acceleration = np.gradient(ego["states"][:, 3], t)
    ego_states = np.concatenate([ego["states"], np.broadcast_to(acceleration, t.shape)[:, None]], axis=1)
    states = np.array([a["states"] for a in agents]).reshape(len(agents), T, 4)
    agents_valid = np.array([a["valid"] for a in agents], bool).reshape(len(agents), T)
    return Scenario(
        ids=Ids("s", "d"), t_s=np.asarray(t, float),
        ego=np.where(valid[:, None], ego_states, 0).astype(np.float32), ego_valid=np.array(valid, bool),
        ego_size=np.array(ego_size, np.float32), agents=np.where(agents_valid[..., None], states, 0).astype(np.float32),
        agents_valid=agents_valid, agent_id=np.array([f"a{k}" for k in range(len(agents))], dtype="<U4"),
        agent_type=np.array([AGENT_TYPES.index(a["kind"]) for a in agents], np.int8),
        agent_size=np.array([a["size"] for a in agents], np.float32).reshape(len(agents), 3),
        road=make_road(list(road)),
    )


def batch_of(*scenarios):
    return pad(list(scenarios))


def bent(scenario, radius_m):
    """The same scene on a road that bends to the left with this radius: x becomes the way along it."""
    def bend(states, tangent):
        s, d = states[..., 0].astype(float), states[..., 1].astype(float)
        phi = s / radius_m
        out = states.copy()
        out[..., 0], out[..., 1] = (radius_m - d) * np.sin(phi), radius_m - (radius_m - d) * np.cos(phi)
        if tangent:
            out[..., 2] = states[..., 2] + phi
        return out
    road = scenario.road
    return Scenario(**{**vars(scenario), "ego": bend(scenario.ego, True), "agents": bend(scenario.agents, True),
                       "road": type(road)(bend(road.xy, False), road.start, road.kind, road.speed_limit_mps)})


def moved(scenario, dx, dy, turn):
    """The same scene elsewhere: turned about the origin, then moved."""
    c, s = np.cos(turn), np.sin(turn)

    def move(states, tangent):
        out = states.astype(np.float64)
        x, y = out[..., 0].copy(), out[..., 1].copy()
        out[..., 0], out[..., 1] = c * x - s * y + dx, s * x + c * y + dy
        if tangent:
            out[..., 2] = (out[..., 2] + turn + np.pi) % (2 * np.pi) - np.pi
        return out.astype(np.float32)
    road = scenario.road
    return Scenario(**{**vars(scenario), "ego": move(scenario.ego, True), "agents": move(scenario.agents, True),
                       "road": type(road)(move(road.xy, False), road.start, road.kind, road.speed_limit_mps)})
