import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers.nuplan import read, sources
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.schema import AGENT_TYPES

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "nuplan"
realdata = [pytest.mark.realdata, pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")]
PITTSBURGH = DATA / "train_pittsburgh" / "2021.09.13.19.54.06_veh-45_00781_00843.db"
SINGAPORE = DATA / "train_singapore" / "2021.09.29.01.04.10_veh-49_00808_00872.db"
START_US = 1_631_563_698_000_000  # Monday 2021-09-13 20:08:18 UTC (date -u -d @1631563698)
TABLES = {
    "log": "token, vehicle_name, date, timestamp, logfile, location, map_version",
    "lidar_pc": "token, ego_pose_token, timestamp",
    "ego_pose": "token, log_token, x, y, qw, qx, qy, qz, vx, vy, acceleration_x",
    "lidar_box": "lidar_pc_token, track_token, x, y, yaw, vx, vy",
    "track": "token, category_token, length, width, height",
    "category": "token, name",
    "scenario_tag": "lidar_pc_token, type",
}


def write_log(path, *, seconds=24.0, rate_hz=20, drop=(), tags=(), trucks=False, statements=()):
    """A log of an ego that drives north at 10 m/s, followed by a car 20 m behind and past a cone."""
    connection = sqlite3.connect(path)
    for table, columns in TABLES.items():
        if table not in drop:
            connection.execute(f"CREATE TABLE {table} ({columns})")
    insert = lambda table, *row: table not in drop and connection.execute(  # noqa: E731
        f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    insert("log", b"L", "veh-7", "2021-09-13", START_US, "2021.09.13.20.08.00_veh-7_00010_00034",
           "us-pa-pittsburgh-hazelwood", "map")
    for k, name in enumerate(("vehicle", "traffic_cone", "bicycle", "unheard_of")):
        insert("category", bytes([k]), name)
    insert("track", b"car", bytes([0]), 12.0 if trucks else 4.5, 1.9, 1.6)
    insert("track", b"cone", bytes([1]), 0.4, 0.4, 1.0)
    half = np.sqrt(0.5)  # quaternion of a quarter turn to the left: heading north
    for i in range(int(seconds * rate_hz)):
        t = i / rate_hz
        insert("lidar_pc", f"f{i}".encode(), f"p{i}".encode(), START_US + round(t * 1e6))
        insert("ego_pose", f"p{i}".encode(), b"L", 1000.0, 10 * t, half, 0.0, 0.0, half, 10.0, 0.0, 0.25)
        insert("lidar_box", f"f{i}".encode(), b"car", 1000.0, 10 * t - 20, np.pi / 2, 0.0, 10.0)
        if i == 0:
            insert("lidar_box", f"f{i}".encode(), b"cone", 1003.0, 50.0, 0.0, 0.0, 0.0)
    for first, last, kind in tags:
        for i in range(first, last):
            insert("scenario_tag", f"f{i}".encode(), kind)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def scenarios(path, **options):
    return [s for source in sources(path) for s in read(source, ReadOptions(**options))]


def test_a_log_by_hand(tmp_path):
    first, second = scenarios(write_log(tmp_path / "log.db"))
    # 480 frames at 20 Hz are 24 s: two windows of 12 s
    assert (first.n_steps, second.n_steps) == (240, 240)
    assert first.ids.scenario_id != second.ids.scenario_id
    assert first.ids.drive_id == "2021.09.13.20.08.00_veh-7"  # without the seconds of the piece
    # 20:08 UTC is 16:08 in Pittsburgh in summer; 13 September 2021 lies in ISO week 37
    assert (first.ids.vehicle_id, first.ids.day, first.ids.hour, first.ids.period) == ("veh-7", "2021-09-13", 16,
                                                                                      "2021-W37")
    assert first.ids.area == "us-pa-pittsburgh-hazelwood" and first.ids.category == ""
    # the pose is that of the rear axle; the centre lies 4.049 - 5.176 / 2 = 1.461 m before it, here to the north
    np.testing.assert_allclose(first.origin_m, [1000.0, 1.461], atol=1e-6)
    np.testing.assert_allclose(first.ego[-1], [0, 119.5, np.pi / 2, 10, 0.25], atol=1e-4)
    np.testing.assert_allclose(first.ego_size, [5.176, 2.297, 1.777], atol=1e-6)
    car, cone = first.agent_id.tolist().index(b"car".hex()), first.agent_id.tolist().index(b"cone".hex())
    np.testing.assert_allclose(first.agents[car, 0], [0, -21.461, np.pi / 2, 10], atol=1e-4)
    assert first.agents_valid[cone].sum() == 1 and first.agents_valid[car].all()
    assert [AGENT_TYPES[first.agent_type[k]] for k in (car, cone)] == ["car", "static"]
    assert second.n_agents == 1  # the cone was only seen in the first frame
    assert first.derived == ("agent_type",)


def test_long_vehicles_are_trucks(tmp_path):
    assert AGENT_TYPES[scenarios(write_log(tmp_path / "log.db", trucks=True))[1].agent_type[0]] == "truck"


@pytest.mark.parametrize(
    ("tags", "category"),
    [
        ([(5, 6, "changing_lane_to_left")], "ego_lane_changing"),
        ([(5, 6, "stopping_at_stop_sign_with_lead")], "ego_yielding"),
        ([(5, 6, "crossed_by_vehicle"), (0, 240, "following_lane_with_lead")], "ego_yielding"),
        ([(5, 6, "crossed_by_vehicle"), (8, 9, "changing_lane")], "ego_lane_changing"),
        ([(0, 120, "following_lane_with_lead")], "ego_lane_keeping"),
        ([(0, 119, "following_lane_with_lead")], ""),  # less than half of the 240 frames
        ([(0, 60, "following_lane_with_lead"), (60, 120, "following_lane_without_lead")], "ego_lane_keeping"),
        ([(0, 240, "starting_left_turn"), (0, 240, "on_intersection")], ""),
        ([(240, 480, "changing_lane")], ""),  # in the other window
    ],
)
def test_category_of_tags(tmp_path, tags, category):
    assert scenarios(write_log(tmp_path / "log.db", tags=tags))[0].ids.category == category


def test_zip_and_names_that_need_quoting(tmp_path):
    path = write_log(tmp_path / "a log? 100%#1.db")
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.write(path, "deep/log.db")
    plain, packed = scenarios(path), scenarios(tmp_path / "logs.zip")
    assert len(plain) == len(packed) == 2
    np.testing.assert_array_equal(plain[0].ego, packed[0].ego)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a log? 100%#1.db", "logs.zip"]  # no journal beside it


def test_ego_missing_in_part_is_masked(tmp_path):
    # poses of frames 100 to 139 are gone
    tokens = ", ".join(f"x'{f'p{i}'.encode().hex()}'" for i in range(100, 140))
    gone = f"DELETE FROM ego_pose WHERE token IN ({tokens})"
    first, second = scenarios(write_log(tmp_path / "log.db", statements=[gone]))
    assert np.flatnonzero(~first.ego_valid).tolist() == list(range(100, 140)) and second.ego_valid.all()


def test_a_record_without_agents(tmp_path):
    path = write_log(tmp_path / "log.db", statements=["DELETE FROM lidar_box"])
    assert [s.n_agents for s in scenarios(path)] == [0, 0]


def test_two_logs_in_one_file_are_two_drives(tmp_path):
    other = [
        "INSERT INTO log VALUES (x'4d', 'veh-8', '2021-09-13', 0, 'other_00000_00012', 'us-nv-las-vegas-strip', '')",
        "UPDATE ego_pose SET log_token = x'4d' WHERE y >= 120",  # the second 12 s
    ]
    first, second = scenarios(write_log(tmp_path / "log.db", statements=other))
    assert (first.ids.drive_id, second.ids.drive_id) == ("2021.09.13.20.08.00_veh-7", "other")
    assert second.ids.hour == 13  # 20:08 UTC in Las Vegas


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"drop": ["lidar_box"]}, "has no table 'lidar_box'; found category, ego_pose"),
        ({"statements": ["ALTER TABLE ego_pose RENAME COLUMN qw TO w"]}, "ego_pose of .* has no column 'qw'"),
        ({"statements": ["UPDATE lidar_pc SET timestamp = NULL WHERE rowid = 5"]}, "lidar_pc, row 4: no timestamp"),
        ({"statements": ["UPDATE lidar_pc SET timestamp = timestamp / 1000000"]}, "have the same time"),
        ({"statements": ["UPDATE lidar_pc SET timestamp = timestamp - 1631563698000000"]}, "not in microseconds since"),
        ({"statements": ["UPDATE lidar_box SET x = 'far' WHERE rowid = 3"]}, "lidar_box, row 2: x is 'far'"),
        ({"statements": ["UPDATE ego_pose SET vx = vx * 3.6"]}, "seems that speeds are in km/h"),
        ({"statements": ["UPDATE ego_pose SET y = y / 0.3048, x = x / 0.3048"]}, "positions are in feet"),
        ({"statements": ["UPDATE lidar_box SET yaw = yaw * 57.2958"]}, "seem to be in degrees"),
        ({"statements": ["UPDATE lidar_box SET x = 9e999 WHERE rowid = 3"]}, "window 0.*inf"),
        ({"statements": ["INSERT INTO lidar_box SELECT * FROM lidar_box WHERE rowid = 3"]}, "rows 2 and 481 are"),
        ({"statements": ["UPDATE ego_pose SET qz = 1e200 WHERE rowid = 9"]}, "quaternion at step 8 is .*must be 1"),
        ({"statements": ["DELETE FROM ego_pose"]}, "Table ego_pose of log.db is empty"),
        ({"statements": ["DELETE FROM lidar_pc"]}, "Table lidar_pc of log.db is empty"),
        ({"statements": ["UPDATE ego_pose SET token = NULL"]}, "the ego has 0 valid states"),
        ({"seconds": 0.5}, "lasts 0.45 s; at least 1 s"),
    ],
)
def test_bad_logs(tmp_path, change, sentence):
    path = write_log(tmp_path / "log.db", **change)
    with pytest.raises(LogError, match=sentence):
        scenarios(path)


def test_skip_bad_keeps_the_good_window(tmp_path):
    told = []
    path = write_log(tmp_path / "log.db", statements=["UPDATE lidar_box SET x = 9e999 WHERE rowid = 3"])
    (kept,) = scenarios(path, skip_bad=True, on_skip=told.append)
    assert kept.ids.scenario_id.endswith("_w01") and len(told) == 1 and "window 0" in told[0]


@pytest.mark.parametrize("size", [0, 1, 100, 5000, 20_000])
def test_truncated_file(tmp_path, size):
    data = write_log(tmp_path / "log.db").read_bytes()
    (tmp_path / "short.db").write_bytes(data[:size])
    with pytest.raises(LogError, match=r"short\.db"):
        scenarios(tmp_path / "short.db")


def test_not_a_database(tmp_path):
    (tmp_path / "text.db").write_text("this is no database\n" * 100)
    with pytest.raises(LogError, match="cannot be read as an SQLite log: file is not a database"):
        scenarios(tmp_path / "text.db")


@pytest.mark.parametrize("path", [
    pytest.param(PITTSBURGH, marks=realdata, id="pittsburgh"), pytest.param(SINGAPORE, marks=realdata, id="singapore")])
def test_real_log_against_plain_sql(path):
    found = scenarios(path)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    frames = connection.execute(
        "SELECT p.token, p.timestamp, e.x, e.y, e.vx, e.vy, e.acceleration_x FROM lidar_pc p JOIN ego_pose e "
        "ON e.token = p.ego_pose_token ORDER BY p.timestamp").fetchall()
    # 1,240 frames (62 s) and 1,280 (64 s) at 20 Hz: five windows of 12.4 and 12.8 s
    assert [s.n_steps for s in found] == [len(frames) // 5] * 5
    start = 0
    for s in found:
        window = frames[start:start + s.n_steps]
        start += s.n_steps
        np.testing.assert_allclose(s.t_s, [(f[1] - window[0][1]) / 1e6 for f in window], atol=1e-6)
        np.testing.assert_allclose(s.ego[:, 3], [np.hypot(f[4], f[5]) for f in window], atol=1e-4)
        np.testing.assert_allclose(s.ego[:, 4], [f[6] for f in window], atol=1e-5)
        # the centre is always 1.461 m away from the rear axle, and before it
        away = s.ego[:, :2] + s.origin_m - np.array([f[2:4] for f in window])
        np.testing.assert_allclose(np.hypot(*away.T), 1.461, atol=2e-3)
        assert (np.sum(away * np.stack([np.cos(s.ego[:, 2]), np.sin(s.ego[:, 2])], 1), axis=1) > 1.45).all()
        boxes = connection.execute(
            "SELECT hex(b.track_token), p.timestamp, b.x, b.y, b.yaw, b.vx, b.vy, c.name, k.length FROM lidar_box b "
            "JOIN lidar_pc p ON p.token = b.lidar_pc_token JOIN track k ON k.token = b.track_token "
            "JOIN category c ON c.token = k.category_token WHERE p.timestamp BETWEEN ? AND ?",
            (window[0][1], window[-1][1])).fetchall()
        assert s.agents_valid.sum() == len(boxes) and s.n_agents == len({b[0] for b in boxes})
        row = {name.upper(): a for a, name in enumerate(s.agent_id)}
        step = {f[1]: t for t, f in enumerate(window)}
        for token, stamp, x, y, yaw, vx, vy, name, length in boxes[::17]:
            a, t = row[token], step[stamp]
            np.testing.assert_allclose(s.agents[a, t, :2] + s.origin_m, [x, y], atol=2e-3)
            assert np.cos(s.agents[a, t, 2] - yaw) > 1 - 1e-6
            assert s.agents[a, t, 3] == pytest.approx(np.hypot(vx, vy), abs=1e-4)
            assert s.agent_size[a, 0] == pytest.approx(length, abs=1e-4)
            expected = {"pedestrian": "pedestrian", "bicycle": "bicycle", "vehicle": "truck" if length > 6.5 else "car"}
            assert AGENT_TYPES[s.agent_type[a]] == expected.get(name, "static")
    connection.close()


@pytest.mark.realdata
@pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")
def test_real_ids():
    found = scenarios(DATA)
    assert len(found) == 10 and len({s.ids.scenario_id for s in found}) == 10
    # UTC 20:08:18 and 01:19:31 (date -u -d @...), in Pittsburgh (UTC-4 in September) and Singapore (UTC+8)
    assert {(s.ids.drive_id, s.ids.vehicle_id, s.ids.day, s.ids.hour, s.ids.area) for s in found} == {
        ("2021.09.13.19.54.06_veh-45", "veh-45", "2021-09-13", 16, "us-pa-pittsburgh-hazelwood"),
        ("2021.09.29.01.04.10_veh-49", "veh-49", "2021-09-29", 9, "sg-one-north"),
    }
    assert all(s.road.n == 0 for s in found)  # nuPlan keeps its maps in other files


@pytest.mark.realdata
@pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")
def test_real_categories_against_plain_sql():
    found = scenarios(PITTSBURGH)
    connection = sqlite3.connect(f"{PITTSBURGH.as_uri()}?mode=ro&immutable=1", uri=True)
    stamps = [row[0] for row in connection.execute("SELECT timestamp FROM lidar_pc ORDER BY timestamp")]
    for k, s in enumerate(found):
        first, last = stamps[248 * k], stamps[248 * k + 247]
        kinds = dict(connection.execute(
            "SELECT t.type, count(DISTINCT t.lidar_pc_token) FROM scenario_tag t JOIN lidar_pc p "
            "ON p.token = t.lidar_pc_token WHERE p.timestamp BETWEEN ? AND ? GROUP BY t.type", (first, last)))
        assert not any(kind.startswith(("changing_lane", "stopping", "waiting", "crossed")) for kind in kinds)
        keeps = kinds.get("following_lane_without_lead", 0) >= 124
        assert s.ids.category == ("ego_lane_keeping" if keeps else "")
    assert [s.ids.category for s in found].count("ego_lane_keeping") == 2
    connection.close()
