"""States of scenarios <-> Arrow tables: ragged and in fixed point, one row a scenario.

Only valid samples are kept, as runs: `agents_run_agent[k]` is seen from step `agents_run_first[k]` on, for
`agents_run_length[k]` steps; a gap starts a new run. Samples stand one run behind the other in `agents_x` and so on.
Units of the integers: mm, mm/s, mm/s2, 0.1 mrad, us; a value comes back within half a unit (0.5 mm, 0.003 degrees),
far below what any sensor resolves. Headings come back in [-pi, pi].

int32 + BYTE_STREAM_SPLIT + zstd was the smallest of the plain layouts on 300 scenes of Argoverse 1 (bytes a sample of
four values, M samples written and read a second): 7.5, 20, 37; DELTA_BINARY_PACKED 8.1, 18, 39; float32 12.6, 19, 41.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import LogError
from avshift_core.scenario.schema import ID_FIELDS, Ids, Road, ScenarioBatch

TIME, LENGTH, ANGLE = 1e6, 1e3, 1e4  # units a second, a metre (or m/s, m/s2), a radian
EGO = {"x": LENGTH, "y": LENGTH, "heading": ANGLE, "speed": LENGTH, "acceleration": LENGTH}  # order of EGO_FIELDS
AGENTS = {"x": LENGTH, "y": LENGTH, "heading": ANGLE, "speed": LENGTH}  # order of AGENT_FIELDS
SIZES = ("length", "width", "height")
NO_LIMIT = -1
FIXED_POINT = ("t", *(f"ego_{f}" for f in EGO), *(f"agents_{f}" for f in AGENTS), "road_x", "road_y")
ROW_GROUP = 256  # scenarios; reading one for playback decodes about a megabyte


def states_table(batch: ScenarioBatch) -> pa.Table:
    """The whole of a batch as one row a scenario, without its padding."""
    steps = np.arange(batch.t_s.shape[1]) < batch.n_steps[:, None]
    agents = np.arange(batch.agent_type.shape[1]) < batch.n_agents[:, None]
    columns = {
        **{name: pa.array([getattr(ids, name) for ids in batch.ids]) for name in ID_FIELDS if name != "hour"},
        "hour": pa.array([ids.hour for ids in batch.ids], pa.int16()),
        "n_steps": pa.array(batch.n_steps, pa.int32()), "n_agents": pa.array(batch.n_agents, pa.int32()),
        "origin_x": pa.array(batch.origin_m[:, 0]), "origin_y": pa.array(batch.origin_m[:, 1]),
        "derived": pa.array(batch.derived, pa.list_(pa.string())),
        "t": _lists(_fixed(batch, "t_s", batch.t_s[steps], TIME, batch.n_steps, np.int64), batch.n_steps),
        **{f"ego_{name}": pa.array(_fixed(batch, "ego size", batch.ego_size[:, k], LENGTH, np.ones(batch.n, int)))
           for k, name in enumerate(SIZES)},
        **_sampled(batch, "ego", batch.ego[:, None], batch.ego_valid[:, None], EGO),
        "agent_id": _lists(batch.agent_id[agents].astype(object), batch.n_agents, pa.string()),
        "agent_type": _lists(batch.agent_type[agents], batch.n_agents, pa.int8()),
        **{f"agent_{name}": _lists(_fixed(batch, "agent size", batch.agent_size[agents][:, k], LENGTH, batch.n_agents),
                                   batch.n_agents) for k, name in enumerate(SIZES)},
        **_sampled(batch, "agents", batch.agents, batch.agents_valid, AGENTS),
        **_road_columns(batch),
    }
    return pa.table(columns)


def batch_of(table: pa.Table) -> ScenarioBatch:
    """Rows of `states` -> padded batch."""
    n, table = table.num_rows, table.combine_chunks()
    n_steps, n_agents = _flat(table, "n_steps"), _flat(table, "n_agents")
    T, A = int(n_steps.max(initial=0)), int(n_agents.max(initial=0))
    t = _flat(table, "t")
    t_s = np.repeat(t[np.cumsum(n_steps) - 1], T).reshape(n, T)  # the last value, also in the padding
    t_s[np.arange(T) < n_steps[:, None]] = t
    ego, ego_valid = _padded(table, "ego", (n, 1, T), EGO)
    agents, agents_valid = _padded(table, "agents", (n, A, T), AGENTS)
    present = np.arange(A) < n_agents[:, None]
    names = _flat(table, "agent_id").astype(str) if present.any() else np.zeros(0, "<U1")
    agent_id, agent_type = np.zeros((n, A), names.dtype), np.zeros((n, A), np.int8)
    agent_id[present], agent_type[present] = names, _flat(table, "agent_type")
    agent_size = np.zeros((n, A, len(SIZES)), np.float32)
    agent_size[present] = np.stack([_flat(table, f"agent_{name}") for name in SIZES], axis=1) / LENGTH
    return ScenarioBatch(
        tuple(map(Ids, *(table.column(name).to_pylist() for name in ID_FIELDS))), n_steps, n_agents, t_s / TIME,
        ego[:, 0], ego_valid[:, 0], np.stack([_flat(table, f"ego_{s}") / LENGTH for s in SIZES], 1).astype(np.float32),
        agents, agents_valid, agent_id, agent_type, agent_size, _roads(table),
        np.stack([_flat(table, "origin_x"), _flat(table, "origin_y")], axis=1),
        tuple(map(tuple, table.column("derived").to_pylist())),
    )


def parquet_bytes(table: pa.Table, numbers: Sequence[str] = (), row_group: int | None = None) -> bytes:
    """A table of a part as the bytes of its file.

    Args:
        numbers: list columns of numbers that hardly repeat; their bytes are split into streams, times into steps.
    """
    leaves = {name: f"{name}.list.element" for name in numbers}
    encodings = {leaf: "DELTA_BINARY_PACKED" if name == "t" else "BYTE_STREAM_SPLIT" for name, leaf in leaves.items()}
    plain = [name for name in table.column_names if name not in leaves and not pa.types.is_floating(table[name].type)]
    others = [f"{name}.list.element" if pa.types.is_list(table[name].type) else name for name in plain]
    sink = BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=1, use_dictionary=others,
                   column_encoding=encodings, row_group_size=row_group,
                   write_statistics=[name for name in plain if not pa.types.is_list(table[name].type)])
    return sink.getvalue()


# Samples as runs -----------------------------------------------------------------------------------------------------


def _sampled(batch: ScenarioBatch, prefix: str, states: np.ndarray, valid: np.ndarray, units: dict) -> dict:
    """states (n, A, T, f) where valid (n, A, T) -> list columns of the runs and of the valid samples."""
    n, A, T = valid.shape
    edges = np.diff(valid.view(np.int8), axis=2, prepend=np.int8(0), append=np.int8(0)).ravel()  # (n * A * (T + 1),)
    first, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    owner = first // (T + 1)
    runs = np.bincount(owner // max(A, 1), minlength=n)
    place = np.flatnonzero(valid)
    counts = np.bincount(place // max(A * T, 1), minlength=n)
    samples = states.reshape(-1, len(units)).take(place, axis=0)  # (s, f)
    return {
        f"{prefix}_run_agent": _lists(owner % max(A, 1), runs, pa.int32()),
        f"{prefix}_run_first": _lists(first % (T + 1), runs, pa.int32()),
        f"{prefix}_run_length": _lists(end - first, runs, pa.int32()),
        **{f"{prefix}_{name}": _lists(_fixed(batch, f"{prefix} {name}", samples[:, k], unit, counts), counts)
           for k, (name, unit) in enumerate(units.items())},
    }


def _padded(table: pa.Table, prefix: str, shape: tuple[int, int, int], units: dict) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of _sampled: states (n, A, T, f) float32 and valid (n, A, T)."""
    n, A, T = shape
    runs = _counts(table, f"{prefix}_run_agent")
    length = _flat(table, f"{prefix}_run_length")
    start = (np.repeat(np.arange(n), runs) * A + _flat(table, f"{prefix}_run_agent")) * T
    start += _flat(table, f"{prefix}_run_first")
    place = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())  # (s,)
    states, valid = np.zeros((n * A * T, len(units)), np.float32), np.zeros(n * A * T, bool)
    valid[place] = True
    for k, (name, unit) in enumerate(units.items()):
        states[place, k] = _flat(table, f"{prefix}_{name}") / unit
    return states.reshape(n, A, T, len(units)), valid.reshape(shape)


def _road_columns(batch: ScenarioBatch) -> dict:
    lines = np.array([road.n for road in batch.road])
    points = np.array([len(road.xy) for road in batch.road])
    xy = np.concatenate([road.xy for road in batch.road])
    limits = np.nan_to_num(np.concatenate([road.speed_limit_mps for road in batch.road]), nan=NO_LIMIT / LENGTH)
    return {
        "road_kind": _lists(np.concatenate([road.kind for road in batch.road]), lines, pa.int8()),
        "road_points": _lists(np.concatenate([np.diff(road.start) for road in batch.road]), lines, pa.int32()),
        "road_speed_limit": _lists(_fixed(batch, "speed limit", limits, LENGTH, lines), lines),
        "road_x": _lists(_fixed(batch, "road", xy[:, 0], LENGTH, points), points),
        "road_y": _lists(_fixed(batch, "road", xy[:, 1], LENGTH, points), points),
    }


def _roads(table: pa.Table) -> tuple[Road, ...]:
    lines, points = _counts(table, "road_kind"), _counts(table, "road_x")
    xy = (np.stack([_flat(table, "road_x"), _flat(table, "road_y")], axis=1) / LENGTH).astype(np.float32)
    limits = _flat(table, "road_speed_limit")
    limits = np.where(limits == NO_LIMIT, np.nan, limits / LENGTH).astype(np.float32)
    kinds, ends = _flat(table, "road_kind"), np.cumsum(_flat(table, "road_points"), dtype=np.int64)
    a, p, roads = 0, 0, []
    for k, m in zip(lines.tolist(), points.tolist(), strict=True):
        start = np.zeros(k + 1, np.int32)
        start[1:] = ends[a:a + k] - p
        roads.append(Road(xy[p:p + m], start, kinds[a:a + k], limits[a:a + k]))
        a, p = a + k, p + m
    return tuple(roads)


# Columns -------------------------------------------------------------------------------------------------------------


def _fixed(batch: ScenarioBatch, name: str, values: np.ndarray, unit: float, counts, dtype=np.int32) -> np.ndarray:
    """Values in integer units; `counts` of them belong to each scenario, to name the one that does not fit."""
    scaled = values.astype(np.float64)
    if unit == ANGLE and _largest(scaled) > np.pi:
        scaled -= 2 * np.pi * np.ceil((scaled - np.pi) / (2 * np.pi))  # (-pi, pi]
    scaled *= unit
    limit = np.iinfo(dtype).max
    if not _largest(scaled) < limit:  # also when it is NaN
        bad = np.repeat(np.arange(batch.n), counts)[~(np.abs(scaled) < limit)][0]
        raise LogError(f"Scenario '{batch.ids[bad].scenario_id}' has a value of '{name}' that is not a number or "
                       f"beyond {limit / unit:,.0f}; states must be finite.")
    return np.rint(scaled, out=scaled).astype(dtype)


def _largest(values: np.ndarray) -> float:
    return max(values.max(initial=0), -values.min(initial=0))


def _lists(values: np.ndarray, counts: np.ndarray, kind: pa.DataType | None = None) -> pa.ListArray:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, kind))


def _flat(table: pa.Table, name: str) -> np.ndarray:
    """Values of a column, of all lists one behind the other."""
    column = table.column(name).combine_chunks()
    return (column.flatten() if pa.types.is_list(column.type) else column).to_numpy(zero_copy_only=False)


def _counts(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).combine_chunks().value_lengths().to_numpy()
