import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers import read_scenarios
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS

FOLDER = Path(__file__).parents[3].parent / "shared" / "data" / "argoverse2"
realdata = [pytest.mark.realdata, pytest.mark.skipif(not FOLDER.exists(), reason="needs the data in ../shared/data")]
N = 110


def table(types=("vehicle",), speed=9.0):
    """A scenario in the layout of the data set: the AV along x, agents beside it; one row per track and timestep."""
    frames = []
    for k, (track, kind) in enumerate([("AV", "vehicle"), *((f"{7000 + i}", t) for i, t in enumerate(types))]):
        step = np.arange(N)
        frames.append(pd.DataFrame({
            "observed": step < 50, "track_id": track, "object_type": kind, "object_category": 1, "timestep": step,
            "position_x": 1000 + 12.0 * (k > 0) + speed * step / 10, "position_y": 500 + 3.5 * k, "heading": 0.0,
            "velocity_x": speed, "velocity_y": 0.0, "scenario_id": "abc", "start_timestamp": 3.1597e17,
            "end_timestamp": 3.1597e17 + 10.9e9, "num_timestamps": N, "focal_track_id": "7000", "city": "Austin",
        }))
    return pd.concat(frames, ignore_index=True)


def points(*xy):
    return [{"x": x, "y": y, "z": 0.0} for x, y in xy]


def small_map():
    lane = {"id": 1, "lane_type": "VEHICLE", "is_intersection": False,
            "centerline": points((990, 500), (1100, 500)),
            "left_lane_boundary": points((990, 502), (1100, 502)),
            "right_lane_boundary": points((990, 498), (1100, 498))}
    neighbour = {"id": 2, "lane_type": "VEHICLE",      # no centre line: the middle of its boundaries
                 "left_lane_boundary": points((1100, 502), (990, 502)),
                 "right_lane_boundary": points((1100, 506), (990, 506))}
    bicycle = lane | {"id": 3, "lane_type": "BIKE", "centerline": points((990, 497), (1100, 497)),
                      "left_lane_boundary": points((990, 498), (1100, 498)),
                      "right_lane_boundary": points((990, 496), (1100, 496))}
    far = lane | {key: points((9000, 0), (9100, 0)) for key in
                  ("centerline", "left_lane_boundary", "right_lane_boundary")}
    return {
        "lane_segments": {"1": lane, "2": neighbour, "3": bicycle, "4": far},
        "pedestrian_crossings": {"8": {"id": 8, "edge1": points((1050, 495), (1050, 507)),
                                       "edge2": points((1053, 495), (1053, 507))}},
        "drivable_areas": {"9": {"id": 9, "area_boundary": points((980, 490), (1110, 490), (1110, 510), (980, 510))}},
    }


def write(folder, frame, archive=None, name="abc"):
    folder.mkdir(exist_ok=True)
    frame.to_parquet(folder / f"scenario_{name}.parquet")
    if archive is not None:
        (folder / f"log_map_archive_{name}.json").write_text(json.dumps(archive))
    return folder


def scenario(path):
    (found,) = read_scenarios("argoverse2", path)
    return found


def test_a_scenario(tmp_path):
    s = scenario(write(tmp_path / "s", table()))
    assert (s.ids.scenario_id, s.ids.drive_id, s.ids.area, s.ids.day) == ("abc", "abc", "austin", "unknown")
    assert s.n_steps == N and s.rate_hz == pytest.approx(10) and s.t_s[-1] == pytest.approx(10.9)
    np.testing.assert_allclose(s.ego[:, [0, 1, 2, 3]], [[0.9 * i, 0, 0, 9] for i in range(N)], atol=1e-4)
    np.testing.assert_allclose(s.agents[0, -1], [12 + 98.1, 3.5, 0, 9], atol=1e-4)
    assert s.derived == ("ego_acceleration", "ego_size", "agent_size")
    assert s.road.n == 0


def test_types(tmp_path):
    kinds = ["vehicle", "bus", "motorcyclist", "cyclist", "pedestrian", "static", "background", "construction",
             "riderless_bicycle", "unknown"]
    s = scenario(write(tmp_path / "s", table(kinds)))
    assert [AGENT_TYPES[k] for k in s.agent_type] == [
        "car", "bus", "motorcycle", "bicycle", "pedestrian", "static", "static", "static", "static", "car"]
    assert "agent_type" in s.derived     # the unknown one moves at 9 m/s: told by its motion


def test_the_slice_is_the_drive(tmp_path):
    assert scenario(write(tmp_path / "s", table().assign(slice_id="log 5"))).ids.drive_id == "log 5"
    assert scenario(write(tmp_path / "t", table().assign(slice_id=None))).ids.drive_id == "abc"


def test_road(tmp_path):
    """By hand, relative to (1000, 500): the boundary that lanes 1 and 2 share, and 1 and 3, is there once."""
    s = scenario(write(tmp_path / "s", table(), small_map()))
    lines = [(ROAD_KINDS[s.road.kind[j]], s.road.polyline(j).tolist()) for j in range(s.road.n)]
    assert [kind for kind, _ in lines].count("lane_boundary") == 4
    centers = [xy for kind, xy in lines if kind == "lane_center"]
    assert len(centers) == 2
    assert centers[0] == [[-10, 0], [100, 0]]
    np.testing.assert_allclose(centers[1], [[100 - 110 * i / 9, 4] for i in range(10)], atol=1e-4)
    assert [xy for kind, xy in lines if kind == "crosswalk"] == [[[50, -5], [50, 7], [53, 7], [53, -5], [50, -5]]]
    assert [xy for kind, xy in lines if kind == "road_edge"] == [
        [[-20, -10], [110, -10], [110, 10], [-20, 10], [-20, -10]]]
    assert np.isnan(s.road.speed_limit_mps).all()


def test_in_a_zip_archive(tmp_path):
    folder = write(tmp_path / "s", table(), small_map())
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"train/abc/{file.name}")
    s = scenario(tmp_path / "all.zip")
    assert s.ids.scenario_id == "abc" and s.road.n == 8


def test_ego_alone_and_a_crowd(tmp_path):
    assert scenario(write(tmp_path / "a", table(()))).n_agents == 0
    assert scenario(write(tmp_path / "b", table(["vehicle"] * 140))).n_agents == 140


def test_ego_missing_in_part(tmp_path):
    frame = table()
    s = scenario(write(tmp_path / "s", frame[(frame.track_id != "AV") | (frame.timestep >= 20)]))
    assert s.ego_valid.tolist() == [False] * 20 + [True] * 90
    np.testing.assert_allclose(s.origin_m, [1018, 500])


def test_speeds_that_break_off_at_the_edges(tmp_path):
    """As in the data: two wrong velocities at the start and one at the end; the agent's are left alone."""
    frame = table()
    frame.loc[frame.timestep.isin([0, 1]), "velocity_x"] = 4.0
    frame.loc[frame.timestep == N - 1, "velocity_x"] = 0.0
    s = scenario(write(tmp_path / "s", frame))
    np.testing.assert_allclose(s.ego[:, 3], 9, atol=1e-5)
    np.testing.assert_allclose(s.agents[0, [0, 1, 2, -1], 3], [4, 4, 9, 0])
    assert np.abs(s.ego[:, 4]).max() < 1e-3 and "ego_speed" in s.derived


@pytest.mark.parametrize("column", ["track_id", "object_type", "timestep", "position_x", "position_y", "heading",
                                    "velocity_x", "velocity_y", "scenario_id", "start_timestamp", "end_timestamp",
                                    "num_timestamps", "city"])
def test_renamed_columns(tmp_path, column):
    with pytest.raises(LogError, match=rf"scenario_abc\.parquet has no column '{column}'; found .*other"):
        scenario(write(tmp_path / "s", table().rename(columns={column: "other"})))


def put(row, column, value):
    def change(frame):
        frame = frame.copy()
        frame.loc[row, column] = value
        return frame
    return change


def turned(frame, angle):
    """The same drives in another direction."""
    x, y = frame.position_x - 1000, frame.position_y
    return frame.assign(position_x=x * np.cos(angle), position_y=y + x * np.sin(angle))


WRONG = [
    (put(7, "position_x", np.nan), "row 7: position_x is nan"),
    (put(8, "velocity_y", np.inf), "row 8: velocity_y is inf"),
    (put(9, "heading", -np.inf), "row 9: heading is -inf"),
    (lambda f: f.assign(position_x=f.position_x.astype(str)), "column 'position_x' holds .*string; numbers are needed"),
    (lambda f: f.assign(track_id=[b"\xff"] * len(f)), "column 'track_id' holds binary that is no text"),
    (lambda f: pd.concat([f, f.iloc[[30]]]), "rows 30 and 220 hold agent 'AV' at the same time"),
    (put(5, "timestep", 110), r"row 5: timestep is 110; whole numbers from 0 to 109"),
    (put(5, "timestep", -1), "row 5: timestep is -1"),
    (lambda f: f.assign(end_timestamp=f.start_timestamp - 1e9), r"time runs from .* at least 2, and an end after"),
    (lambda f: f.assign(num_timestamps=1, timestep=0), "an end after the start|hold agent 'AV'"),
    (lambda f: f.assign(start_timestamp=3e8, end_timestamp=3e8 + 10.9), "lasts 1.09e-08 s; at least 1 s"),
    (put(0, "num_timestamps", 50), "has 2 values of 'num_timestamps'"),
    (put(0, "scenario_id", "xyz"), r"has 2 values of 'scenario_id' \(abc, xyz"),
    (lambda f: f.assign(scenario_id=""), "scenario_id is empty"),
    (lambda f: f[f.track_id != "AV"], "has no track 'AV', the ego; found 7000"),
    (lambda f: f[f.timestep < 5], r"lasts 0\.4 s"),
    (lambda f: f.iloc[:0], "holds no rows"),
    (lambda f: turned(f, 1.0).assign(heading=np.degrees(1.0)), r"headings of the ego reach 57\.3, .* in degrees"),
    (lambda f: f.assign(velocity_x=f.velocity_x * 3.6), "speeds of the ego are 3.6 times .* km/h"),
    (lambda f: f.assign(position_x=f.position_x / 0.3048, position_y=f.position_y / 0.3048), "positions are in feet"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[s for _, s in WRONG])
def test_wrong_states_are_named(tmp_path, change, sentence):
    with pytest.raises(LogError, match=r"^scenario_abc\.parquet.*(" + sentence + ")"):
        scenario(write(tmp_path / "s", change(table())))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 0.99])
def test_truncated_parquet(tmp_path, share):
    path = write(tmp_path / "s", table()) / "scenario_abc.parquet"
    path.write_bytes(path.read_bytes()[:int(share * path.stat().st_size)])
    with pytest.raises(LogError, match=r"scenario_abc\.parquet is not a readable Parquet file: .*copy it again"):
        scenario(path)


def broken(archive, *path):
    """The map with the last key of `path` replaced by the value after it."""
    *keys, last, value = path
    inner = archive
    for key in keys:
        inner = inner[key]
    inner[last] = value
    return archive


LANE = ("lane_segments", "1")
MAPS = [
    ([], "is no map: 'lane_segments'"),
    ({"lane_segments": []}, "is no map: 'lane_segments'"),
    (broken(small_map(), "lane_segments", "1", 5), "lane_segments '1' is no object"),
    (broken(small_map(), *LANE, "centerline", None), "lane 1: centerline is no list of points"),
    (broken(small_map(), *LANE, "centerline", [{"x": 1}, {"x": 2}]), "lane 1: centerline is no list of points"),
    (broken(small_map(), *LANE, "centerline", points((0, 0))), "centerline needs two points or more"),
    (broken(small_map(), *LANE, "left_lane_boundary", points((0, 0), (np.nan, 0))), "left_lane_boundary needs two"),
    (broken(small_map(), "pedestrian_crossings", "8", {}), "crossing 8: edge1 is no list of points"),
    (broken(small_map(), "drivable_areas", "9", "area_boundary", "abc"), "drivable area 9: area_boundary is no list"),
]


@pytest.mark.parametrize(("archive", "sentence"), MAPS, ids=[s for _, s in MAPS])
def test_maps_that_cannot_be_read(tmp_path, archive, sentence):
    with pytest.raises(LogError, match=r"^log_map_archive_abc\.json.*" + sentence):
        scenario(write(tmp_path / "s", table(), archive))


@pytest.mark.parametrize("text", ["", '{"lane_segments": {"1": {"center', "[" * 200_000, "\xff\xfe"])
def test_truncated_maps(tmp_path, text):
    folder = write(tmp_path / "s", table())
    (folder / "log_map_archive_abc.json").write_text(text, encoding="latin-1")
    with pytest.raises(LogError, match=r"log_map_archive_abc\.json is not a readable map: .*copy it again"):
        scenario(folder)


def test_a_folder_without_scenarios(tmp_path):
    (tmp_path / "other.parquet").write_bytes(b"")
    with pytest.raises(LogError, match=r"holds no scenario_<id>\.parquet file"):
        scenario(tmp_path)


def test_one_bad_scenario_among_good_ones(tmp_path):
    write(tmp_path / "a", table().assign(scenario_id="a"), name="a")
    (write(tmp_path / "b", table(), name="b") / "scenario_b.parquet").write_bytes(b"PAR1")
    write(tmp_path / "c", table().assign(scenario_id="c"), name="c")
    told = []
    good = read_scenarios("argoverse2", tmp_path, ReadOptions(skip_bad=True, on_skip=told.append))
    assert [s.ids.scenario_id for s in good] == ["a", "c"]
    assert len(told) == 1 and told[0].startswith("scenario_b.parquet ")


REAL = sorted(FOLDER.glob("*/scenario_*.parquet"))


@pytest.fixture(scope="module")
def scenarios():
    return {s.ids.scenario_id: s for s in read_scenarios("argoverse2", FOLDER)}


class TestRealScenarios:
    pytestmark = realdata

    def test_counts_and_ids(self, scenarios):
        assert len(scenarios) == len(REAL) == 4
        for path in REAL:
            frame = pd.read_parquet(path)
            s = scenarios[frame.scenario_id.iloc[0]]
            assert s.n_agents == frame.track_id.nunique() - 1 and s.n_steps == 110
            assert s.agents_valid.sum() + s.ego_valid.sum() == len(frame)
            assert s.ids.area == frame.city.iloc[0]
            assert s.ids.drive_id == (frame.slice_id.iloc[0] if "slice_id" in frame else frame.scenario_id.iloc[0])
            assert s.t_s[-1] == pytest.approx((frame.end_timestamp - frame.start_timestamp).iloc[0] / 1e9)

    @pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem[9:17])
    def test_states(self, scenarios, path):
        frame = pd.read_parquet(path)
        s = scenarios[frame.scenario_id.iloc[0]]
        agents = zip(s.agent_id, s.agents, s.agents_valid, strict=True)
        for name, states, valid in [("AV", s.ego, s.ego_valid), *agents]:
            track = frame[frame.track_id == str(name)].sort_values("timestep")
            xy = track[["position_x", "position_y"]]
            assert np.flatnonzero(valid).tolist() == track.timestep.tolist()
            np.testing.assert_allclose(states[valid][:, :2] + s.origin_m, xy, atol=1e-3)
            np.testing.assert_allclose(np.cos(states[valid][:, 2] - track.heading), 1, atol=1e-6)
            inner = slice(3, -3) if name == "AV" else slice(None)    # the AV's speeds break off at both ends
            speed = np.sqrt(track.velocity_x**2 + track.velocity_y**2)
            np.testing.assert_allclose(states[valid][inner, 3], speed[inner], atol=1e-4)

    @pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem[9:17])
    def test_types(self, scenarios, path):
        frame = pd.read_parquet(path)
        s = scenarios[frame.scenario_id.iloc[0]]
        kinds = frame.groupby("track_id").object_type.first()
        for name, kind in zip(s.agent_id, s.agent_type, strict=True):
            if kinds[name] == "pedestrian":
                assert AGENT_TYPES[kind] == "pedestrian"
            if kinds[name] in ("static", "background", "riderless_bicycle"):
                assert AGENT_TYPES[kind] == "static"
            if kinds[name] == "vehicle":
                assert AGENT_TYPES[kind] == "car"
        assert ("agent_type" in s.derived) == bool((kinds == "unknown").any())

    @pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem[9:17])
    def test_road(self, scenarios, path):
        """Every vehicle lane that comes within 100 m of the ego is there, none that stays beyond 150 m."""
        s = scenarios[path.stem.removeprefix("scenario_")]
        archive = json.loads(path.with_name(path.stem.replace("scenario", "log_map_archive") + ".json").read_text())
        centers = {s.road.polyline(j).tobytes() for j in range(s.road.n) if ROAD_KINDS[s.road.kind[j]] == "lane_center"}
        ego = s.ego[s.ego_valid][:, :2] + s.origin_m
        near = 0
        for lane in archive["lane_segments"].values():
            xy = np.array([[p["x"], p["y"]] for p in lane["centerline"]])
            gap = np.hypot(*np.moveaxis(xy[:, None] - ego[None], 2, 0))
            if lane["lane_type"] != "BIKE" and gap.max(axis=0).min() < 100:
                near += 1
                assert (xy - s.origin_m).astype(np.float32).tobytes() in centers
        assert 10 < near <= len(centers)
        for j in range(s.road.n):
            if ROAD_KINDS[s.road.kind[j]] == "lane_center":
                assert np.hypot(*np.moveaxis(s.road.polyline(j)[:, None] + s.origin_m - ego[None], 2, 0)).min() < 150

    def test_acceleration_is_that_of_a_car(self, scenarios):
        """Without the breaks at the edges no AV of a test fleet accelerates or brakes beyond 6 m/s2."""
        assert max(np.abs(s.ego[:, 4]).max() for s in scenarios.values()) < 6

    def test_without_its_map(self, tmp_path):
        shutil.copy(REAL[0], tmp_path)
        assert scenario(tmp_path).road.n == 0
