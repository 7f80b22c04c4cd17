"""Whatever is done to a file of the formats nuplan, commonroad, table and latents, the outcome is sound scenarios or
one LogError: never another exception, never a hang."""

import re
import sqlite3
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from avshift_core.errors import LogError
from avshift_core.scenario.readers import READERS
from avshift_core.scenario.readers.latents import read_table
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.schema import AGENT_TYPES
from tests.scenario.readers.test_commonroad import LANELET, car, problem, write
from tests.scenario.readers.test_latents import frame as latent_frame
from tests.scenario.readers.test_nuplan import PITTSBURGH, write_log
from tests.scenario.readers.test_table import drive

DATA = Path(__file__).parents[3].parent / "shared" / "data"
fuzz = settings(max_examples=60, deadline=10_000, derandomize=True, phases=[Phase.explicit, Phase.generate],
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
realdata = pytest.mark.realdata
missing = pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")

NASTY = st.sampled_from([
    "", "nan", "inf", "-inf", "1e400", "-1", "0", "1e-320", "99999999999999999999", "1e15", "é", "\x00", "null", "true",
    "[]", "NaN,NaN", "'; DROP TABLE", "2021-01-01", "٣", "0x10", "1_000", " 7 ", "--1", "1e", "¼",
])
share = st.floats(0, 1, exclude_max=True)
byte_edits = st.lists(st.tuples(share, st.sampled_from(["flip", "cut", "insert", "zero"]), st.integers(0, 255)),
                      min_size=1, max_size=8)
picks = st.lists(st.tuples(share, NASTY), min_size=1, max_size=4)


def edited(data: bytes, edits) -> bytes:
    for where, how, value in edits:
        at = int(where * len(data))
        if how == "flip":
            data = data[:at] + bytes([value]) + data[at + 1:]
        elif how == "cut":
            data = data[:at] + data[at + 1 + value:]
        elif how == "insert":
            data = data[:at] + bytes([value]) * (value % 7 + 1) + data[at:]
        else:
            data = data[:at] + bytes(value) + data[at + value:]
    return data


def sound(s) -> None:
    """What every scenario must fulfil, whatever it was read from."""
    T, A = len(s.t_s), len(s.agents)
    assert T >= 2 and (np.diff(s.t_s) > 0).all() and s.t_s[0] == 0 and np.isfinite(s.t_s).all()
    assert s.ego.shape == (T, 5) and s.agents.shape == (A, T, 4) and s.agents_valid.shape == (A, T)
    for array in (s.ego, s.agents, s.ego_size, s.agent_size, s.origin_m, s.road.xy):
        assert np.isfinite(array).all()
    assert s.ego_valid.sum() >= 2 and s.agents_valid.any(axis=1).all()
    assert (s.ego[~s.ego_valid] == 0).all() and (s.agents[~s.agents_valid] == 0).all()
    assert ((s.agent_type >= 0) & (s.agent_type < len(AGENT_TYPES))).all() and len(set(s.agent_id)) == A
    assert s.ids.scenario_id and s.ids.drive_id


def check(format_name, path, mapping=None) -> None:
    """Reads once as it is, and once with `skip_bad`, which keeps at least as much."""
    kept = []
    for skip_bad in (False, True):
        found = []
        try:
            for source in READERS[format_name].sources(path):
                for s in READERS[format_name].read(source, ReadOptions(mapping=mapping, skip_bad=skip_bad)):
                    sound(s)
                    found.append(s.ids.scenario_id)
        except LogError as error:
            assert len(str(error)) > 20 and "\n" not in str(error).strip()
        kept.append(len(found))
    assert kept[1] >= kept[0]


def values_replaced(text: str, pattern: str, picks) -> str:
    """Replaces the matches of group 1 that `picks` ((share, value), ...) point at."""
    spans = [m.span(1) for m in re.finditer(pattern, text)]
    chosen = {spans[int(at * len(spans))]: value for at, value in picks}
    for (a, b), value in sorted(chosen.items(), reverse=True):
        text = text[:a] + value + text[b:]
    return text


@pytest.fixture(scope="module")
def small_log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("log") / "log.db", seconds=11, rate_hz=5)


@pytest.fixture(scope="module")
def small_scene(tmp_path_factory):
    return write(tmp_path_factory.mktemp("scene") / "a.xml", LANELET.format(inside="<speedLimit>13</speedLimit>"),
                 car(1, 5.0, steps=range(14)), car(2, 30.0, steps=range(14)), problem())


@fuzz
@given(edits=byte_edits)
def test_bytes_of_a_log(small_log, tmp_path, edits):
    (tmp_path / "log.db").write_bytes(edited(small_log.read_bytes(), edits))
    check("nuplan", tmp_path / "log.db")


@settings(fuzz, max_examples=15)
@given(edits=byte_edits)
@realdata
@missing
def test_bytes_of_a_real_log(tmp_path, edits):
    (tmp_path / "log.db").write_bytes(edited(PITTSBURGH.read_bytes(), edits))
    check("nuplan", tmp_path / "log.db")


@fuzz
@given(table=st.sampled_from(["log", "lidar_pc", "ego_pose", "lidar_box", "track", "category", "scenario_tag"]),
       value=st.one_of(NASTY, st.none(), st.integers(-(2**63), 2**63 - 1), st.binary(max_size=4), st.floats()),
       column=st.integers(0, 10), row=st.integers(0, 60), all_rows=st.booleans())
def test_values_of_a_log(small_log, tmp_path, table, column, value, row, all_rows):
    path = tmp_path / "log.db"
    path.write_bytes(small_log.read_bytes())
    connection = sqlite3.connect(path)
    names = [info[1] for info in connection.execute(f"PRAGMA table_info({table})")]
    where = "" if all_rows else f" WHERE rowid = {row}"
    connection.execute(f"UPDATE {table} SET {names[column % len(names)]} = ?{where}", (value,))
    connection.commit()
    connection.close()
    check("nuplan", path)


@fuzz
@given(edits=byte_edits)
def test_bytes_of_a_scene(small_scene, tmp_path, edits):
    (tmp_path / "a.xml").write_bytes(edited(small_scene.read_bytes(), edits))
    check("commonroad", tmp_path / "a.xml")


@settings(fuzz, max_examples=150)
@given(picks=picks)
def test_values_of_a_scene(small_scene, tmp_path, picks):
    changed = values_replaced(small_scene.read_text(), r'[>"]([^<>"\n]+)[<"]', picks)
    (tmp_path / "a.xml").write_bytes(changed.encode())
    check("commonroad", tmp_path / "a.xml")


@fuzz
@given(picks=st.lists(share, min_size=1, max_size=5))
def test_missing_elements_of_a_scene(small_scene, tmp_path, picks):
    text = small_scene.read_text()
    for pick in picks:
        elements = [m.span() for m in re.finditer(r"<(\w+)[^<>/]*>[^<>]*</\1>", text)]
        a, b = elements[int(pick * len(elements))]
        text = text[:a] + text[b:]
    (tmp_path / "a.xml").write_text(text)
    check("commonroad", tmp_path / "a.xml")


@settings(fuzz, max_examples=12)
@given(name=st.sampled_from(["USA_US101-14_2_T-1.xml", "USA_US101-31_1_T-1.xml", "USA_Peach-3_1_T-1.xml"]), picks=picks,
       edits=byte_edits)
@realdata
@missing
def test_real_scenes(tmp_path, name, picks, edits):
    with zipfile.ZipFile(DATA / "commonroad" / "ngsim_scenes.zip") as archive:
        text = archive.read(name).decode()
    (tmp_path / "a.xml").write_text(values_replaced(text, r">([^<>\n]+)<", picks))
    check("commonroad", tmp_path / "a.xml")
    (tmp_path / "a.xml").write_bytes(edited(text.encode(), edits))
    check("commonroad", tmp_path / "a.xml")


@settings(fuzz, max_examples=120)
@given(picks=picks, seconds=st.sampled_from([1.2, 3, 11]), edits=st.one_of(st.none(), byte_edits))
def test_text_of_a_table(tmp_path, picks, seconds, edits):
    text = values_replaced(drive(seconds=seconds, rate_hz=5).to_csv(index=False), r"([^,\n]+)", picks)
    data = text.encode()
    (tmp_path / "log.csv").write_bytes(edited(data, edits) if edits else data)
    check("table", tmp_path / "log.csv")


@fuzz
@given(edits=byte_edits, compression=st.sampled_from(["NONE", "snappy", "zstd"]))
def test_bytes_of_a_parquet_table(tmp_path, edits, compression):
    drive(seconds=3).to_parquet(tmp_path / "a.parquet", compression=compression, row_group_size=25)
    data = edited((tmp_path / "a.parquet").read_bytes(), edits)
    (tmp_path / "a.parquet").write_bytes(data)
    check("table", tmp_path / "a.parquet")


column_kinds = st.sampled_from(["text", "dates", "lists", "bools", "ints", "empty", "bytes", "decimals", "gone"])


@fuzz
@given(column=st.sampled_from([*drive(seconds=1).columns]), kind=column_kinds)
def test_columns_of_another_type(tmp_path, column, kind):
    frame = drive(seconds=3)
    n = len(frame)
    frame[column] = {
        "text": [f"v{k}" for k in range(n)], "dates": list(pd.date_range("2026-01-01", periods=n)),
        "lists": [[1.0, 2.0]] * n, "bools": [True] * n, "ints": list(range(n)), "empty": [None] * n,
        "bytes": [b"\xff"] * n, "decimals": [Decimal("1.5")] * n, "gone": [0] * n,
    }[kind]
    if kind == "gone":
        frame = frame.drop(columns=column)
    frame.to_parquet(tmp_path / "a.parquet")
    check("table", tmp_path / "a.parquet")


MAPPING = """[columns]
x = "x_m"
time = "t_s"
[units]
position = "ft"
time = "s"
[ego]
id = "ego"
[types]
truck = "truck"
[options]
sort = true
"""


@fuzz
@given(picks=picks, edits=st.one_of(st.none(), byte_edits))
def test_mapping_files(tmp_path, picks, edits):
    data = values_replaced(MAPPING, r'["\[]?([a-z_]+)["\]]?', picks).encode()
    (tmp_path / "m.toml").write_bytes(edited(data, edits) if edits else data)
    drive(seconds=2, rate_hz=5).to_csv(tmp_path / "log.csv", index=False)
    check("table", tmp_path / "log.csv", mapping=tmp_path / "m.toml")


@fuzz
@given(picks=picks, edits=st.one_of(st.none(), byte_edits), skip_bad=st.booleans())
def test_latents(tmp_path, picks, edits, skip_bad):
    data = values_replaced(latent_frame(20).to_csv(index=False), r"([^,\n]+)", picks).encode()
    (tmp_path / "t.csv").write_bytes(edited(data, edits) if edits else data)
    try:
        t = read_table(tmp_path / "t.csv", ReadOptions(skip_bad=skip_bad))
    except LogError as error:
        assert "\n" not in str(error).strip()
        return
    assert np.isfinite(t.z).all() and len(t.ids) == len(t.attributes) == t.n > 0


@settings(fuzz, max_examples=40)
@given(edits=byte_edits)
def test_bytes_of_an_archive(small_scene, tmp_path, edits):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(small_scene, "a.xml")
    (tmp_path / "a.zip").write_bytes(edited((tmp_path / "a.zip").read_bytes(), edits))
    check("commonroad", tmp_path / "a.zip")
