"""Mutated files of the formats argoverse1 and argoverse2: each gives valid scenarios, or one sentence."""

import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avshift_core.errors import LogError
from avshift_core.scenario.readers import read_scenarios
from tests.scenario.readers.test_argoverse1 import HEADER, rows
from tests.scenario.readers.test_argoverse2 import small_map, table

DATA = Path(__file__).parents[3].parent / "shared" / "data"
REAL_CSV, REAL_SCENARIOS = DATA / "argoverse1" / "forecasting_csv.zip", DATA / "argoverse2"
realdata = [pytest.mark.realdata, pytest.mark.skipif(not DATA.exists(), reason="needs the data in ../shared/data")]
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
NASTY = ["", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "0", "-1", "99999999999999999999", "AV", '"', "'", ",",
         "\n", "\0", "é", "NULL", "1,2", "0x1F", "1_000", "true", "3.15e8"]
NASTY_VALUES = [None, 5, "x", [], {}, [[]], float("nan"), 1e308, True, [{"x": 1, "y": 2}]]
NASTY_NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 1e15, 1e9, 2.5]


@st.composite
def mutated(draw, data: bytes) -> bytes:
    """A few bytes flipped, cut out, put in, said twice or cut off at the end."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.sampled_from([1, 2, 8, 100, 1000]))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "repeat", "end"]))
        if kind == "flip" and data:
            data[at] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del data[at:at + length]
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=20))
        elif kind == "repeat":
            data[at:at] = data[at:at + length]
        elif kind == "end":
            del data[at:]
    return bytes(data)


@st.composite
def edited_csv(draw, lines: list[str]) -> bytes:
    """Cells replaced, lines moved, repeated or left out."""
    lines = list(lines)
    for _ in range(draw(st.integers(1, 5))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        kind = draw(st.sampled_from(["cell", "column", "swap", "repeat", "drop"]))
        if kind == "cell":
            cells = lines[at].split(",")
            cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(NASTY))
            lines[at] = ",".join(cells)
        elif kind == "column":
            column, value = draw(st.integers(0, 5)), draw(st.sampled_from(NASTY))
            lines[1:] = [",".join([*c[:column], value, *c[column + 1:]]) for c in (x.split(",") for x in lines[1:])]
        elif kind == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif kind == "repeat":
            lines.insert(to, lines[at])
        elif len(lines) > 1:
            del lines[at]
    return "\n".join(lines).encode("utf-8")


@st.composite
def edited_table(draw, frame: pd.DataFrame) -> pd.DataFrame:
    """Cells or columns of numbers replaced, rows repeated or left out, columns dropped or turned to text."""
    frame = frame.copy()
    numbers = ["timestep", "position_x", "position_y", "heading", "velocity_x", "velocity_y", "start_timestamp",
               "end_timestamp", "num_timestamps"]
    for _ in range(draw(st.integers(1, 4))):
        column = draw(st.sampled_from(numbers))
        at = draw(st.integers(0, max(len(frame) - 1, 0)))
        kind = draw(st.sampled_from(["cell", "column", "scale", "repeat", "drop rows", "drop column", "text", "ids"]))
        if column not in frame or not len(frame):
            continue
        values = frame[column].to_numpy()
        if kind == "cell" and values.dtype.kind in "if":
            values = values.astype(float)
            values[at] = draw(st.sampled_from(NASTY_NUMBERS))
            frame[column] = values
        elif kind == "column":
            frame[column] = draw(st.sampled_from(NASTY_NUMBERS))
        elif kind == "scale" and values.dtype.kind in "if":
            frame[column] = values.astype(float) * draw(st.sampled_from([-1.0, 0.3048, 3.6, 57.3, 1000.0, 1e-9]))
        elif kind == "repeat":
            frame = pd.concat([frame, frame.iloc[at:at + 3]])
        elif kind == "drop rows":
            frame = frame.iloc[at:at + draw(st.integers(0, len(frame)))]
        elif kind == "drop column":
            frame = frame.drop(columns=column)
        elif kind == "text":
            frame[column] = frame[column].astype(str)
        elif kind == "ids":
            name = draw(st.sampled_from(["track_id", "object_type", "scenario_id", "city"]))
            frame[name] = draw(st.sampled_from(["AV", "", None, 7, 1.5, "é" * 300]))
    return frame


@st.composite
def edited_map(draw, archive: dict) -> dict | list:
    """One value somewhere in the map replaced."""
    archive = json.loads(json.dumps(archive))
    inner = archive
    for _ in range(draw(st.integers(1, 6))):
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or draw(st.booleans()):
            inner[key] = draw(st.sampled_from(NASTY_VALUES))
            break
        inner = inner[key]
    return archive


def check_outcome(fmt: str, path: Path) -> bool:
    """Read; True if there were scenarios. Anything but a LogError, and any state that is not sound, fails the test."""
    try:
        found = list(read_scenarios(fmt, path))
    except LogError as error:
        text = str(error)
        assert text[-1] in ".!" and "\n" not in text and "Traceback" not in text
        return False
    for s in found:
        T, A = s.n_steps, s.n_agents
        assert s.ego.shape == (T, 5) and s.agents.shape == (A, T, 4) and s.agents_valid.shape == (A, T)
        assert s.ids.scenario_id and s.ids.drive_id and s.ids.area
        assert s.t_s[0] == 0 and (np.diff(s.t_s) > 0).all() and s.ego_valid.sum() >= 2
        assert all(np.isfinite(a).all() for a in (s.t_s, s.ego, s.agents, s.ego_size, s.agent_size, s.road.xy))
        assert (s.ego_size > 0).all() and (s.agent_size > 0).all() and s.agents_valid.any(axis=1).all()
        assert (np.abs(s.ego[:, 2]) < 3.1416).all() and len(set(s.agent_id.tolist())) == A
        assert ((s.agent_type >= 0) & (s.agent_type < 8)).all()
    return bool(found)


def outcome(fmt: str, files: dict[str, bytes]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        return check_outcome(fmt, Path(folder))


SCENE = [HEADER, *rows(n=15, agents=2)]
SCENE_BYTES = "\n".join(SCENE).encode()
MAP_BYTES = json.dumps(small_map()).encode()
FRAME = table(["vehicle", "pedestrian", "unknown"])
PARQUET = FRAME.to_parquet()


def zipped(data: bytes, compression: int) -> bytes:
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", compression) as archive:
            archive.writestr("1.csv", data)
        file.seek(0)
        return file.read()


def test_the_files_are_read_before_they_are_mutated():
    assert outcome("argoverse1", {"1.csv": SCENE_BYTES})
    assert outcome("argoverse2", {"scenario_abc.parquet": PARQUET, "log_map_archive_abc.json": MAP_BYTES})
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        assert outcome("argoverse1", {"1.zip": zipped(SCENE_BYTES, compression)})


@FUZZ
@given(mutated(SCENE_BYTES))
def test_csv_bytes(data):
    outcome("argoverse1", {"1.csv": data})


@FUZZ
@given(edited_csv(SCENE))
def test_csv_cells(data):
    outcome("argoverse1", {"1.csv": data})


@FUZZ
@given(st.sampled_from([zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED]), st.data())
def test_zip_bytes(compression, data):
    outcome("argoverse1", {"1.zip": data.draw(mutated(zipped(SCENE_BYTES, compression)))})


@FUZZ
@given(mutated(PARQUET))
def test_parquet_bytes(data):
    outcome("argoverse2", {"scenario_abc.parquet": data})


@FUZZ
@given(edited_table(FRAME))
def test_parquet_cells(frame):
    outcome("argoverse2", {"scenario_abc.parquet": frame.to_parquet(), "log_map_archive_abc.json": MAP_BYTES})


@FUZZ
@given(mutated(MAP_BYTES))
def test_map_bytes(data):
    outcome("argoverse2", {"scenario_abc.parquet": PARQUET, "log_map_archive_abc.json": data})


@FUZZ
@given(edited_map(small_map()))
def test_map_values(archive):
    outcome("argoverse2", {"scenario_abc.parquet": PARQUET, "log_map_archive_abc.json": json.dumps(archive).encode()})


class TestRealFiles:
    pytestmark = realdata

    @settings(FUZZ, max_examples=60)
    @given(st.sampled_from(["1.csv", "1478.csv", "2887.csv"]), st.booleans(), st.data())
    def test_csv(self, name, cells, data):
        with zipfile.ZipFile(REAL_CSV) as archive:
            text = archive.read(name)
        lines = text.decode().splitlines()
        outcome("argoverse1", {name: data.draw(edited_csv(lines) if cells else mutated(text))})

    @settings(FUZZ, max_examples=60)
    @given(st.integers(0, 3), st.booleans(), st.data())
    def test_scenario(self, k, in_map, data):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copytree(sorted(REAL_SCENARIOS.glob("*/"))[k], Path(folder) / "copy"))
            file = next(copy.glob("*.json" if in_map else "*.parquet"))
            file.write_bytes(data.draw(mutated(file.read_bytes())))
            check_outcome("argoverse2", copy)
