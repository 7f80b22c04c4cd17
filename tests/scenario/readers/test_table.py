import json
import tomllib
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.readers.table import read, sources
from avshift_core.scenario.schema import AGENT_TYPES


def drive(name="d1", seconds=12.0, rate_hz=10, start_s=0.0, agents=("a",)):
    """The ego drives along x at 10 m/s; agent k drives 20 m ahead and 4 k m to the left, at 12 m/s."""
    t = start_s + np.arange(int(seconds * rate_hz)) / rate_hz
    ego = pd.DataFrame({"drive_id": name, "agent_id": "ego", "t_s": t, "x_m": 500 + 10 * (t - start_s), "y_m": 100.0,
                        "heading_rad": 0.0, "speed_mps": 10.0, "type": "car", "is_ego": True})
    others = [ego.assign(agent_id=agent, x_m=520 + 12 * (t - start_s), y_m=100 + 4.0 * k, speed_mps=12.0, type="truck",
                         is_ego=False) for k, agent in enumerate(agents, start=1)]
    return pd.concat([ego, *others], ignore_index=True)


def save(frame, path, **how):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False, **how)
    return path


def scenarios(path, mapping=None, **options):
    if mapping is not None:
        options["mapping"] = path.parent / ("mapping.json" if mapping.startswith("{") else "mapping.toml")
        options["mapping"].write_text(mapping)
    return [s for source in sources(path) for s in read(source, ReadOptions(**options))]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_own_names_need_no_mapping(tmp_path, suffix):
    (s,) = scenarios(save(drive(), tmp_path / f"log{suffix}"))
    assert (s.ids.drive_id, s.ids.scenario_id, s.n_steps, s.n_agents) == ("d1", "d1_t0.0", 120, 1)
    np.testing.assert_allclose(s.t_s, np.arange(120) / 10, atol=1e-6)
    np.testing.assert_allclose(s.origin_m, [500, 100])
    np.testing.assert_allclose(s.ego[-1, :4], [119, 0, 0, 10], atol=1e-4)  # 11.9 s at 10 m/s
    np.testing.assert_allclose(s.agents[0, -1], [20 + 142.8, 4, 0, 12], atol=1e-4)  # 11.9 s at 12 m/s
    assert AGENT_TYPES[s.agent_type[0]] == "truck"
    assert set(s.derived) == {"ego_acceleration", "ego_size", "agent_size"}


MAPPING = """
[columns]
time = "stamp"
agent_id = "track"
x = "east"
y = "north"
heading = "course"
speed = "v"
length = "len"
type = "class"
drive_id = "trip"
area = "city"
av_version = "sw"
day = "date"
hour = "h"
[units]
time = "ms"
position = "ft"
size = "cm"
speed = "kmh"
angle = "deg"
heading = "compass"
[ego]
column = "role"
value = "AV"
[types]
LGV = "truck"
PC = "car"
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_mapping_names_columns_and_units(tmp_path, as_json):
    t = np.arange(120) / 10
    ego = pd.DataFrame({"stamp": 1000 * t, "track": 1, "east": (500 + 10 * t) / 0.3048, "north": 100 / 0.3048,
                        "course": 90.0, "v": 36.0, "len": 480.0, "class": "PC", "role": "AV"})  # east is 90 degrees
    other = ego.assign(track=2, north=(100 + 8 * t) / 0.3048, course=51.3402, v=46.1, role="x", len=950.0)
    other["class"] = "LGV"
    frame = pd.concat([ego, other]).assign(trip="t1", city="harbor", sw="v4.2", date="2026-03-02", h=14)
    path = save(frame, tmp_path / "log.csv")
    (s,) = scenarios(path, json.dumps(tomllib.loads(MAPPING)) if as_json else MAPPING)
    np.testing.assert_allclose(s.origin_m, [500, 100], atol=1e-9)
    np.testing.assert_allclose(s.ego[-1, :4], [119, 0, 0, 10], atol=1e-4)
    # north-east by atan(8 / 10) = 38.66 degrees, at hypot(8, 10) = 12.806 m/s = 46.1 km/h
    np.testing.assert_allclose(s.agents[0, -1], [119, 95.2, np.radians(38.6598), 12.8056], atol=1e-3)
    assert s.agent_size[0, 0] == pytest.approx(9.5) and s.ego_size[0] == pytest.approx(4.8)
    assert AGENT_TYPES[s.agent_type[0]] == "truck"
    ids = s.ids
    assert (ids.drive_id, ids.area, ids.av_version, ids.day, ids.hour, ids.period) == (
        "t1", "harbor", "v4.2", "2026-03-02", 14, "2026-W10")


@pytest.mark.parametrize(
    ("unit", "factor"), [("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_units_of_time(tmp_path, unit, factor):
    frame = drive().assign(t=lambda f: f.t_s * factor).drop(columns="t_s")
    (s,) = scenarios(save(frame, tmp_path / "log.parquet"), f'[columns]\ntime = "t"\n[units]\ntime = "{unit}"')
    np.testing.assert_allclose(s.t_s, np.arange(120) / 10, atol=1e-6)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_dates_as_times(tmp_path, suffix):
    frame = drive()
    frame["t_s"] = pd.Timestamp("2026-03-02T14:59:58+01:00") + pd.to_timedelta(frame.t_s, unit="s")
    mapping = '[columns]\ntime = "t_s"\n[units]\ntime = "iso"' if suffix == ".csv" else None
    if suffix == ".csv":
        frame["t_s"] = [moment.isoformat() for moment in frame.t_s]
    (s,) = scenarios(save(frame, tmp_path / f"log{suffix}"), mapping)
    assert (s.ids.day, s.ids.hour, s.n_steps) == ("2026-03-02", 14, 120)


def test_an_empty_date_is_named(tmp_path):
    frame = drive().assign(t_s=lambda f: [f"2026-03-02T14:00:{s:06.3f}" for s in f.t_s])
    frame.loc[7, "t_s"] = None
    with pytest.raises(LogError, match=r"row 9: 't_s' is empty\. Every row needs a time"):
        scenarios(save(frame, tmp_path / "log.csv"), '[columns]\ntime = "t_s"\n[units]\ntime = "iso"')


def test_long_drives_are_cut_and_no_window_crosses_two(tmp_path):
    frame = pd.concat([drive("d1", 30), drive("d2", 24, start_s=100), drive("d3", 5)])
    found = scenarios(save(frame, tmp_path / "log.csv"))
    # 30 s: two of 15 or three of 10; 24 s: two of 12; 5 s: as it is
    assert [(s.ids.drive_id, s.n_steps) for s in found][-3:] == [("d2", 120), ("d2", 120), ("d3", 50)]
    assert sum(s.n_steps for s in found if s.ids.drive_id == "d1") == 300
    assert found[-2].ids.scenario_id == "d2_t112.0"
    assert len({s.ids.scenario_id for s in found}) == len(found)


def test_scenario_ids_are_not_cut(tmp_path):
    frame = pd.concat([drive("d1", 20).assign(scenario_id="s1"), drive("d1", 3, start_s=50).assign(scenario_id="s2")])
    found = scenarios(save(frame, tmp_path / "log.csv"))
    assert [(s.ids.scenario_id, s.ids.drive_id, s.n_steps) for s in found] == [("s1", "d1", 200), ("s2", "d1", 30)]
    frame = pd.concat([drive("d1", 3).assign(scenario_id="s1"), drive("d2", 3).assign(scenario_id="s1")])
    with pytest.raises(LogError, match="scenario 's1' has rows in two drives"):
        scenarios(save(frame, tmp_path / "log.csv"))


@pytest.mark.parametrize("rows", [7, 100, 1000])
def test_parquet_in_row_groups_reads_as_whole(tmp_path, rows):
    frame = pd.concat([drive(f"d{k}", 11, agents=("a", "b")) for k in range(4)], ignore_index=True)
    frame["x_m"] += np.arange(len(frame)) % 5 * 0.001
    streamed = scenarios(save(frame, tmp_path / "a.parquet", row_group_size=rows))
    mixed = frame.sort_values("t_s", kind="stable")  # all drives interleaved: cannot be streamed
    whole = scenarios(save(mixed, tmp_path / "b.parquet"))
    assert len(streamed) == len(whole) == 4
    for a, b in zip(streamed, whole, strict=True):
        assert a.ids == b.ids
        np.testing.assert_array_equal(a.ego, b.ego)
        order = [b.agent_id.tolist().index(name) for name in a.agent_id]
        np.testing.assert_array_equal(a.agents, b.agents[order])


def test_without_a_drive_column_the_file_is_the_drive(tmp_path):
    (s,) = scenarios(save(drive().drop(columns="drive_id"), tmp_path / "tuesday.csv"))
    assert (s.ids.drive_id, s.ids.scenario_id) == ("tuesday", "tuesday_t0.0")


@pytest.mark.parametrize("n", [0, 200])
def test_no_agents_and_very_many(tmp_path, n):
    (s,) = scenarios(save(drive(agents=[f"a{k}" for k in range(n)]), tmp_path / "log.parquet"))
    assert s.n_agents == n


def test_ego_missing_in_part(tmp_path):
    frame = drive()
    frame = frame[~(frame.is_ego & frame.t_s.between(3, 4.95))]
    (s,) = scenarios(save(frame, tmp_path / "log.csv"))
    assert np.flatnonzero(~s.ego_valid).tolist() == list(range(30, 50))


def test_rows_out_of_order(tmp_path):
    frame = drive().iloc[np.random.default_rng(0).permutation(240)].reset_index(drop=True)
    path = save(frame, tmp_path / "log.csv")
    with pytest.raises(LogError, match=r"time runs backwards for agent .* sort = true"):
        scenarios(path)
    (s,) = scenarios(path, "[options]\nsort = true")
    np.testing.assert_array_equal(s.ego, scenarios(save(drive(), tmp_path / "sorted.csv"))[0].ego)


def test_ego_by_id_and_labels_as_written(tmp_path):
    frame = drive(agents=("007",)).drop(columns="is_ego")
    (s,) = scenarios(save(frame, tmp_path / "log.csv"), '[ego]\nid = "ego"')
    assert s.agent_id.tolist() == ["007"]


def cell(column, value, row=7):  # row 7 of the frame is line 9 of the CSV: the header is line 1
    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame
    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.drop(columns="x_m"), r"log\.csv has no column 'x_m'; found drive_id, agent_id, .* \[columns\] x"),
        (lambda f: f.rename(columns={"t_s": "time"}), "no column 't_s'"),
        (lambda f: f.drop(columns="is_ego"), r"does not tell who the ego is; found .*\[ego\] id"),
        (lambda f: f.assign(is_ego=False), "drive 'd1' has no ego; exactly one"),
        (lambda f: f.assign(is_ego=True), r"drive 'd1' has 2 egos \(a, ego\)"),
        (cell("is_ego", "maybe"), "row 9: 'is_ego' is 'maybe'"),
        (lambda f: f.assign(heading_rad=90.0), "degrees"),
        (lambda f: f.assign(speed_mps=f.speed_mps * 3.6),
         r'speeds are in km/h\. In a mapping file, say \[columns\] speed = "speed_mps" and \[units\] speed = "kmh"\.'),
        (lambda f: f.assign(x_m=f.x_m / 0.3048, y_m=f.y_m / 0.3048),
         r'in feet\. In a mapping file, say \[columns\] x = "x_m", y = "y_m" and \[units\] position = "ft"\.'),
        (lambda f: f.assign(t_s=f.t_s * 1000), r'times seem to be in milliseconds\. .*\[units\] time = "ms"'),
        (lambda f: f.assign(t_s=f.t_s * 1000 + 1.77e12),
         r'row 2: .* milliseconds since 1970\. .*\[units\] time = "ms"'),
        (lambda f: f.assign(t_s=(f.t_s + 1.77e9).where(f.index != 7, 1.77e9)), r"from 1770000000\.6 s to 1770000000 s"),
        (lambda f: f.assign(length_m=14.8, width_m=6.1), "sizes seem to be in feet"),
        (cell("x_m", np.nan), "row 9: 'x_m' is empty. Give a number, or leave the row out"),
        (cell("y_m", np.inf, 130), "row 132: 'y_m' is inf"),
        (cell("speed_mps", -np.inf), "row 9: 'speed_mps' is -inf. Give a number, or leave it empty"),
        (cell("speed_mps", "fast"), "'fast', which is no number. Give a number, or leave it empty"),
        (cell("x_m", "far"), "row 9: 'x_m' is 'far', which is no number. Give a number, or leave the row out"),
        (cell("t_s", np.nan), "row 9: 't_s' is empty. Every row needs a time"),
        (cell("agent_id", None), "row 9: 'agent_id' is empty"),
        (cell("drive_id", None), "row 9: 'drive_id' is empty"),
        (cell("type", "hovercraft", 130), "row 132: the type 'hovercraft' is not known"),
        (cell("t_s", 0.3), "row 9: time runs backwards for agent 'ego', from 0.6 s to 0.3 s"),
        (lambda f: pd.concat([f, f.iloc[[-1]]]), "rows 241 and 242 are both of agent 'a' at 11.9 s"),
        (lambda f: f.assign(day="2 March"), "the day is '2 March'"),
        (lambda f: f.assign(hour=24), "the hour is 24"),
        (lambda f: f.assign(category="drifting"), "the category 'drifting' is not known"),
        (lambda f: f[f.t_s < 0.5], "lasts 0.4 s; at least 1 s"),
        (lambda f: f.iloc[:0], "holds no rows"),
    ],
)
def test_bad_tables(tmp_path, change, sentence):
    path = save(change(drive()), tmp_path / "log.csv")
    with pytest.raises(LogError, match=sentence):
        scenarios(path)


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ('[columns]\nx = "east"', "no column 'east'; found .* The mapping file says that it holds x; correct it there"),
        ('[columns]\nlatitude = "y"', "Section 'columns' .* has a key 'latitude'; known are time"),
        ('[column]\nx = "y"', "has a section 'column'; known are columns, units"),
        ('[units]\nspeed = "furlongs"', "unit 'furlongs' for speed; known are mps, kmh"),
        ('[types]\nLGV = "lorry"', "maps a type to 'lorry'; known are car"),
        ('[ego]\ncolumn = "role"\nvalue = 1', r"no column 'role'.*\[ego\]"),
        ("[columns\n", "mapping.toml cannot be read"),
        ("columns = 3", "Section 'columns' of the mapping file mapping.toml is 3"),
    ],
)
def test_bad_mappings(tmp_path, mapping, sentence):
    path = save(drive(), tmp_path / "log.csv")
    with pytest.raises(LogError, match=sentence):
        scenarios(path, mapping)


def test_skip_bad_keeps_other_windows_and_drives(tmp_path):
    frame = pd.concat([drive("d1", 24), drive("d2", 12), drive("d3", 12)], ignore_index=True)
    frame.loc[frame.index[(frame.drive_id == "d1") & (frame.t_s == 5.0)][0], "x_m"] = np.nan
    frame.loc[frame.index[frame.drive_id == "d2"], "is_ego"] = False
    told = []
    found = scenarios(save(frame, tmp_path / "log.parquet"), skip_bad=True, on_skip=told.append)
    assert [s.ids.scenario_id for s in found] == ["d1_t12.0", "d3_t0.0"]
    assert len(told) == 2 and "row 50: 'x_m' is empty" in told[0]
    assert "drive 'd2' has no ego" in told[1] and told[1].endswith("All of drive 'd2' is left out.")


def test_skip_bad_keeps_the_other_scenarios_of_a_drive(tmp_path):
    frame = pd.concat([drive("d1", 3, start_s=20.0 * k).assign(scenario_id=f"s{k}") for k in range(3)])
    frame.loc[frame.scenario_id == "s1", "is_ego"] = False
    told = []
    found = scenarios(save(frame, tmp_path / "log.csv"), skip_bad=True, on_skip=told.append)
    assert [s.ids.scenario_id for s in found] == ["s0", "s2"]
    assert len(told) == 1 and told[0].endswith("All of scenario 's1' is left out.")


def course(degrees, speed_mps=10.0):
    """A drive straight on along a compass course, positions in m, and its speed in m/s."""
    frame = drive(agents=())
    frame["x_m"] = speed_mps * frame.t_s * np.sin(np.radians(degrees))
    frame["y_m"] = speed_mps * frame.t_s * np.cos(np.radians(degrees))
    return frame.assign(heading_rad=np.radians(90 - degrees), speed_mps=speed_mps)


@pytest.mark.parametrize(
    ("change", "units", "sentence"),
    [
        ({"v": 36.0}, 'speed = "mph"', r'1\.609 times .* speeds are in km/h\. .* say \[units\] speed = "kmh"\.$'),
        ({"v": 22.37}, 'speed = "kmh"', r'0\.6214 times .* in mph\. .* say \[units\] speed = "mph"\.$'),
        ({"v": 10.0}, 'speed = "kmh"', r'0\.2778 times .* in m/s\. .* say \[units\] speed = "mps"\.$'),
        ({"v": 13.0}, 'speed = "mps"', r"1\.3 times what positions and times give; check the units"),
        ({"v": 32.81}, 'speed = "mps"\nposition = "ft"', "10.76 times .* check the units"),
        ({"c": 37.0}, 'angle = "deg"', r'if they are clockwise from north\. .* say \[units\] heading = "compass"\.$'),
        ({"c": 53.0}, 'angle = "deg"\nheading = "compass"', r'counter-clockwise .* say \[units\] heading = "math"\.$'),
        ({"c": 53.0}, 'angle = "rad"', r'reach 53, .* degrees\. .* say \[units\] angle = "deg"\.$'),
        ({"c": 37.0}, 'heading = "compass"', r'reach 37, .* degrees\. .* say \[units\] angle = "deg"\.$'),
    ],
)
def test_units_that_the_motion_contradicts(tmp_path, change, units, sentence):
    """Course 37 at 10 m/s = 36 km/h = 22.37 mph = 32.81 ft/s; 10.76 is 3.281 squared: feet for m, and m/s for ft/s."""
    frame = course(37).assign(v=10.0, c=np.radians(53)).assign(**change)
    used = 'speed = "v"' if "v" in change else 'heading = "c"'
    if "position" in units:
        used += '\nx = "x_m"\ny = "y_m"'
    path = save(frame.drop(columns=["speed_mps", "heading_rad"]), tmp_path / "log.csv")
    with pytest.raises(LogError, match=sentence):
        scenarios(path, f"[columns]\n{used}\n[units]\n{units}")


@pytest.mark.parametrize(("mark", "said"), [(";", "separated by ';'"), ("\t", "separated by tabs")])
def test_other_separators_are_recognised(tmp_path, mark, said):
    drive().to_csv(tmp_path / "log.csv", index=False, sep=mark)
    with pytest.raises(LogError, match=said):
        scenarios(tmp_path / "log.csv")


def test_times_that_no_two_agents_share(tmp_path):
    n = 3000  # every agent has a single row at a time of its own: 9 million cells for 3,000 rows
    rng = np.random.default_rng(0)
    others = pd.DataFrame({"drive_id": "d1", "agent_id": [f"a{k}" for k in range(n)], "t_s": rng.uniform(0, 11, n),
                           "x_m": 510.0, "y_m": 90.0, "heading_rad": 0.0, "speed_mps": 0.0, "type": "car",
                           "is_ego": False})
    frame = pd.concat([drive(agents=()), others])
    with pytest.raises(LogError, match=r"3,001 agents at .* different times\. Ego and agents must be logged"):
        scenarios(save(frame, tmp_path / "log.csv"))


@pytest.mark.parametrize("size", [0, 4, 100, 3000])
def test_truncated_parquet(tmp_path, size):
    data = save(drive(), tmp_path / "log.parquet").read_bytes()
    (tmp_path / "short.parquet").write_bytes(data[:size])
    with pytest.raises(LogError, match=r"short\.parquet cannot be read"):
        scenarios(tmp_path / "short.parquet")


def test_other_files(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(LogError, match=r"empty\.csv is empty"):
        scenarios(tmp_path / "empty.csv")
    (tmp_path / "log.xlsx").write_text("x")
    with pytest.raises(LogError, match=r"neither \.parquet nor \.csv"):
        sources(tmp_path / "log.xlsx")
    with pytest.raises(LogError, match="does not exist"):
        sources(tmp_path / "nothing")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../log.csv", "x")
    with pytest.raises(LogError, match="points outside of the archive"):
        sources(tmp_path / "bad.zip")
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["x_m", "x_m"]), tmp_path / "twice.parquet")
    with pytest.raises(LogError, match="two columns 'x_m'"):
        scenarios(tmp_path / "twice.parquet")


def test_text_that_is_not_utf8(tmp_path):
    table = pa.Table.from_pandas(drive(), preserve_index=False)
    names = pa.array([b"\xff\xfe"] * table.num_rows).view(pa.string())
    pq.write_table(table.drop_columns("agent_id").append_column("agent_id", names), tmp_path / "a.parquet")
    with pytest.raises(LogError, match=r"a\.parquet cannot be read: .*UTF8"):
        scenarios(tmp_path / "a.parquet")


def test_zip_of_tables(tmp_path):
    path = save(drive(), tmp_path / "log.parquet")
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.write(path, "a/log.parquet")
        archive.writestr("b.csv", drive("d2").to_csv(index=False))
    assert [s.ids.drive_id for s in scenarios(tmp_path / "logs.zip")] == ["d1", "d2"]
