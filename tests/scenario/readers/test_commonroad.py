import hashlib
import zipfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers import read_scenarios
from avshift_core.scenario.readers.commonroad import read, sources
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.schema import AGENT_TYPES, ROAD_KINDS

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "commonroad"
realdata = pytest.mark.realdata
missing = pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")
HEADER = '<commonRoad timeStepSize="0.1" commonRoadVersion="{version}" benchmarkID="{name}" date="2019-01-01">'
LANELET = """<lanelet id="1"><leftBound><point><x>0</x><y>4</y></point><point><x>100</x><y>4</y></point></leftBound>
<rightBound><point><x>0</x><y>0</y></point><point><x>50</x><y>0</y></point><point><x>100</x><y>0</y></point></rightBound>
{inside}</lanelet>"""


BEGIN = HEADER.format(version="2020a", name="USA_Test-1_1_T-1")


def state(tag, step, x, y, *, position=None, heading="<exact>0.0</exact>", speed="<exact>10.0</exact>", more=""):
    position = position or f"<point><x>{x}</x><y>{y}</y></point>"
    return (f"<{tag}><position>{position}</position><orientation>{heading}</orientation>"
            f"<time><exact>{step}</exact></time><velocity>{speed}</velocity>{more}</{tag}>")


def car(name, x0, y=2.0, *, steps=range(31), version="2020a", kind="car", length=4.5, shape=None, role="dynamic",
        pace_m=1.0, **more):
    """A car at 10 m/s along x: one metre a step of 0.1 s."""
    shape = shape or f"<rectangle><length>{length}</length><width>1.8</width></rectangle>"
    tag = "obstacle" if version == "2018b" else f"{role}Obstacle"
    said = f"<role>{role}</role>" if version == "2018b" else ""
    states = [state("initialState" if k == steps[0] else "state", k, x0 + k * pace_m, y, **more) for k in steps]
    way = f"<trajectory>{''.join(states[1:])}</trajectory>" if len(states) > 1 else ""
    return f'<{tag} id="{name}">{said}<type>{kind}</type><shape>{shape}</shape>{states[0]}{way}</{tag}>'


def problem(x=0.0, y=2.0, heading=0.0, step=0):
    first = state("initialState", step, x, y, heading=f"<exact>{heading}</exact>")
    return f'<planningProblem id="99">{first}<goalState/></planningProblem>'


def write(path, *parts, version="2020a", name="USA_Test-1_1_T-1"):
    path.write_text(HEADER.format(version=version, name=name) + "".join(parts) + "</commonRoad>")
    return path


def scenarios(path, **options):
    return [s for source in sources(path) for s in read(source, ReadOptions(**options))]


@pytest.mark.parametrize("version", ["2018b", "2020a"])
def test_a_file_by_hand(tmp_path, version):
    limit = {"2018b": "<speedLimit>27.78</speedLimit>", "2020a": '<trafficSignRef ref="7"/>'}[version]
    sign = ('<trafficSign id="7"><trafficSignElement><trafficSignID>R2-1</trafficSignID><additionalValue>27.78'
            "</additionalValue></trafficSignElement></trafficSign>") if version == "2020a" else ""
    middle = {"speed": "<intervalStart>9</intervalStart><intervalEnd>11</intervalEnd>"}
    (s,) = scenarios(write(
        tmp_path / "a.xml", LANELET.format(inside=limit), sign, car(1, 8.0, version=version),
        car(2, 40.0, version=version, length=12.0, **middle),
        car(3, 20.0, y=9, version=version, role="static", steps=range(1), kind="parkedVehicle",
            shape="<circle><radius>1.5</radius></circle>"), problem(), version=version))
    # car 1 is nearest to the planning problem at (0, 2), so it is the ego and no agent
    assert (s.ids.vehicle_id, s.agent_id.tolist()) == ("USA_Test/1", ["2", "3"])
    assert (s.ids.scenario_id, s.ids.drive_id, s.ids.area, s.ids.day) == ("USA_Test-1_1_T-1", "USA_Test-1", "usa_test",
                                                                          "unknown")
    np.testing.assert_allclose(s.t_s, np.arange(31) * 0.1, atol=1e-9)
    np.testing.assert_allclose(s.origin_m, [8, 2])
    np.testing.assert_allclose(s.ego[30], [30, 0, 0, 10, 0], atol=1e-4)  # no acceleration given: that of its speeds
    np.testing.assert_allclose(s.agents[0, 30], [62, 0, 0, 10], atol=1e-4)  # 40 + 30 - 8; the middle of 9 and 11 m/s
    np.testing.assert_allclose(s.agents[1, :, :2] + s.origin_m, np.tile([20.0, 9.0], (31, 1)), atol=1e-5)
    np.testing.assert_allclose(s.agent_size[:, :2], [[12, 1.8], [3, 3]], atol=1e-5)
    assert [AGENT_TYPES[k] for k in s.agent_type] == ["truck", "car"]  # a "car" of 12 m
    assert set(s.derived) == {"ego_acceleration", "agent_type"}  # the truck; heights are filled without a mark
    kinds = [ROAD_KINDS[k] for k in s.road.kind]
    assert kinds == ["lane_center", "lane_boundary", "lane_boundary"]
    # the centre line: mean of the bounds (y = 4 and 0) at 0, 50 and 100 m
    np.testing.assert_allclose(s.road.polyline(0) + s.origin_m, [[0, 2], [50, 2], [100, 2]], atol=1e-4)
    assert s.road.speed_limit_mps[0] == pytest.approx(27.78)


def test_given_acceleration_and_regions_as_positions(tmp_path):
    region = ("<rectangle><length>1</length><width>1</width><orientation>0</orientation>"
              "<center><x>{x}</x><y>2</y></center></rectangle>")
    parts = [state("initialState" if k == 0 else "state", k, 0, 0, position=region.format(x=float(k)),
                   more="<acceleration><exact>0.5</exact></acceleration>") for k in range(31)]
    corners = "".join(f"<point><x>{x}</x><y>{y}</y></point>" for x, y in ((-2, -1), (2, -1), (2, 1)))
    obstacle = (f'<dynamicObstacle id="1"><type>car</type><shape><polygon>{corners}</polygon></shape>'
                f"{parts[0]}<trajectory>{''.join(parts[1:])}</trajectory></dynamicObstacle>")
    (s,) = scenarios(write(tmp_path / "a.xml", obstacle, problem()))
    np.testing.assert_allclose(s.ego[:, 0], np.arange(31), atol=1e-5)
    np.testing.assert_allclose(s.ego[:, 4], 0.5)
    np.testing.assert_allclose(s.ego_size[:2], [4, 2])  # extent of the polygon
    assert "ego_acceleration" not in s.derived and s.n_agents == 0


@pytest.mark.parametrize(
    ("cars", "ego"),
    [
        ([car(1, 30.0), car(2, -5.0)], "2"),  # the nearest
        ([car(1, 3.0, steps=range(20)), car(2, 30.0)], "2"),  # 20 of 31 steps are too few
        ([car(1, 3.0, steps=range(25)), car(2, 30.0)], "1"),  # 25 of 31 are 81 %
        ([car(1, 3.0, steps=range(1, 31)), car(2, 30.0)], "2"),  # not there at the first step
        ([car(1, 3.0, kind="pedestrian"), car(2, 30.0)], "2"),
        ([car(1, 3.0, pace_m=0, heading="<exact>1.57</exact>", speed="<exact>0</exact>"), car(2, 30.0)], "2"),  # across
    ],
)
def test_who_stands_for_the_planning_problem(tmp_path, cars, ego):
    (s,) = scenarios(write(tmp_path / "a.xml", *cars, problem()))
    assert s.ids.vehicle_id == f"USA_Test/{ego}"
    assert s.ego_valid.all()  # the record is cut to the time in which the ego is there


def test_same_traffic_gives_other_egos_of_one_drive(tmp_path):
    cars = [car(1, 5.0), car(2, 30.0)]
    for k in (1, 2, 3):
        write(tmp_path / f"{k}.xml", *cars, problem(), name=f"USA_Test-1_{k}_T-1")
    write(tmp_path / "4.xml", car(2, 30.0), car(7, 60.0), problem(), name="USA_Test-8_1_T-1")  # shares car 2
    write(tmp_path / "5.xml", car(2, 30.0, length=4.0), problem(), name="USA_Test-9_1_T-1")  # another car 2
    told = []
    found = list(read_scenarios("commonroad", tmp_path, ReadOptions(skip_bad=True, on_skip=told.append)))
    assert [(s.ids.scenario_id, s.ids.drive_id, s.ids.vehicle_id) for s in found] == [
        ("USA_Test-1_1_T-1", "USA_Test-1", "USA_Test/1"), ("USA_Test-1_2_T-1", "USA_Test-1", "USA_Test/2"),
        ("USA_Test-8_1_T-1", "USA_Test-1", "USA_Test/7"), ("USA_Test-9_1_T-1", "USA_Test-9", "USA_Test/2")]
    assert len(told) == 1 and told[0].startswith("3.xml has no vehicle that could stand for the planning problem")


def test_many_agents(tmp_path):
    cars = [car(k, 5.0 + 6 * (k % 50), y=4.0 * (k // 50), steps=range(12)) for k in range(200)]
    (s,) = scenarios(write(tmp_path / "a.xml", *cars, problem()))
    assert s.n_agents == 199


BOMB = ('<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol">'
        + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9))
        + "]><commonRoad>&j;</commonRoad>")
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><commonRoad>&x;</commonRoad>'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not readable XML: no element found"),
        ("<commonRoad", "is not readable XML"),
        (BOMB, "declares a document type or entities"),
        (OUTSIDE, "declares a document type or entities"),
        ("<osm/>", "begins with <osm>"),
        ("<commonRoad/>", "timeStepSize is None; a number is needed"),
        ('<commonRoad timeStepSize="-1"/>', "timeStepSize of -1 s"),
        (BEGIN + "</commonRoad>", "holds no moving vehicle"),
        (BEGIN + car(1, 0.0) + car(1, 9.0) + "</commonRoad>", "two obstacles with the id"),
        (BEGIN + car(1, 0.0).replace("<x>7.0</x>", "<x>nan</x>") + "</commonRoad>",
         "dynamicObstacle 1: x is 'nan'; a number is needed"),
        (BEGIN + car(1, 0.0).replace("<x>7.0</x>", "<x>inf</x>") + "</commonRoad>",
         "x is 'inf'"),
        (BEGIN + car(1, 0.0).replace("<exact>7</exact>", "<exact>3</exact>")
         + "</commonRoad>", "time runs backwards or stands still, from step 6 to step 3"),
        (BEGIN + car(1, 0.0, steps=range(5)) + "</commonRoad>", "lasts 0.4 s"),
        (BEGIN + LANELET.format(inside="<speedLimit>130</speedLimit>") + car(1, 0.0) + "</commonRoad>",
         "lanelet 1 has a speed limit of 130; m/s are needed"),
        (BEGIN + car(1, 0.0, kind="pedestrian") + "</commonRoad>",
         "no vehicle that could stand for"),
        (BEGIN + car(1, 0.0, speed="<exact>36</exact>") + "</commonRoad>", "in km/h"),
        (BEGIN + car(1, 0.0, heading="<exact>90</exact>") + "</commonRoad>", "degrees"),
        (BEGIN + car(1, 0.0, length=14.8).replace("1.8", "5.9") + "</commonRoad>",
         "sizes seem to be in feet"),
    ],
)
def test_bad_files(tmp_path, text, sentence):
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(LogError, match=sentence):
        scenarios(tmp_path / "a.xml")


def test_archive_whose_names_climb_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../evil.xml", "<commonRoad/>")
    with pytest.raises(LogError, match="points outside of the archive"):
        sources(tmp_path / "a.zip")


@pytest.fixture(scope="module")
def trees():
    """Benchmark id -> ElementTree of the 50 files."""
    texts = [(DATA / "DEU_A9-3_1_T-1.xml").read_bytes()]
    with zipfile.ZipFile(DATA / "ngsim_scenes.zip") as archive:
        texts += [archive.read(name) for name in archive.namelist()]
    trees = [ElementTree.fromstring(text) for text in texts]
    return {tree.get("benchmarkID"): tree for tree in trees}


@pytest.fixture(scope="module")
def found():
    return scenarios(DATA)


@realdata
@missing
def test_real_states_against_element_tree(found, trees):
    assert len(found) == len(trees) == 50
    for s in found:
        tree = trees[s.ids.scenario_id]
        obstacles = {o.get("id"): o for tag in ("obstacle", "dynamicObstacle") for o in tree.findall(tag)}
        ego = s.ids.vehicle_id.split("/")[1]
        # one file lasts 16.6 s; its last seconds lie beyond the longest window of 15 s
        steps = np.round(s.t_s / float(tree.get("timeStepSize"))).astype(int)
        assert s.n_steps == (150 if s.ids.scenario_id == "USA_US101-22_3_T-1" else len(states_of(obstacles[ego])))
        for name, item in [*list(obstacles.items())[::5], (ego, obstacles[ego])]:
            states = states_of(item)
            mine = s.ego if name == ego else None
            valid = s.ego_valid
            if name != ego:
                if name not in s.agent_id:
                    assert not set(states) & set(steps.tolist())
                    continue
                a = s.agent_id.tolist().index(name)
                mine, valid = s.agents[a], s.agents_valid[a]
            assert steps[valid].tolist() == [k for k in steps.tolist() if k in states]
            expected = np.array([states[k] for k in steps[valid]])
            np.testing.assert_allclose(mine[valid, :2] + s.origin_m, expected[:, :2], atol=2e-3)
            assert (np.cos(mine[valid, 2] - expected[:, 2]) > 1 - 1e-6).all()
            np.testing.assert_allclose(mine[valid, 3], expected[:, 3], atol=1e-4)


@realdata
@missing
def test_real_areas_and_lengths(found):
    count = defaultdict(int)
    for s in found:
        count[s.ids.area] += 1
    assert count == {"a9": 1, "lankershim": 15, "peachtree": 4, "us101": 30}  # names in the archive
    assert {s.ids.day for s in found} == {"unknown"}
    assert min(s.t_s[-1] for s in found) == pytest.approx(1.0) and max(s.t_s[-1] for s in found) <= 15


@realdata
@missing
def test_real_lanelets_against_element_tree(found, trees):
    s = next(s for s in found if s.ids.area == "a9")
    bounds = [np.array([[float(p.findtext("x")), float(p.findtext("y"))] for p in lanelet.find(side)])
              for lanelet in trees["DEU_A9-3_1_T-1"].findall("lanelet") for side in ("leftBound", "rightBound")]
    for j in range(s.road.n):
        line = s.road.polyline(j) + s.origin_m
        if ROAD_KINDS[s.road.kind[j]] == "lane_boundary":  # a piece of one of the bounds in the file
            assert any(near(line, bound) for bound in bounds)
        assert s.road.speed_limit_mps[j] == pytest.approx(27.78)
    lanker = next(s for s in found if s.ids.area == "lankershim")
    known = lanker.road.speed_limit_mps[np.isfinite(lanker.road.speed_limit_mps)]
    assert set(np.round(known / 0.44704).tolist()) <= {8.0, 25.0, 30.0}  # mph on the signs R2-1 of Lankershim


@realdata
@missing
def test_real_the_vehicle_of_a_planning_problem_is_not_in_the_traffic(trees):
    """Why a substitute is needed: nobody starts within 2 m of the planning problem."""
    for tree in trees.values():
        start = tree.find("planningProblem/initialState")
        at = position_of(start)
        first = int(start.findtext("time/exact"))
        others = [states_of(o).get(first) for tag in ("obstacle", "dynamicObstacle") for o in tree.findall(tag)]
        assert min(np.hypot(o[0] - at[0], o[1] - at[1]) for o in others if o is not None) > 2


@realdata
@missing
def test_real_files_with_the_same_traffic_share_a_drive_and_no_ego(found, trees):
    by_traffic = defaultdict(list)
    for s in found:
        tree = trees[s.ids.scenario_id]
        traffic = sorted((o.get("id"), str(sorted(states_of(o).items())))
                         for tag in ("obstacle", "dynamicObstacle") for o in tree.findall(tag))
        by_traffic[hashlib.sha256(repr(traffic).encode()).hexdigest()].append(s)
    pairs = [group for group in by_traffic.values() if len(group) > 1]
    assert len(pairs) == 5  # Lanker-2_9/17, Peach-3_1/4, Peach-4_3/6, US101-8_1/4, US101-13_1/4
    for group in pairs:
        assert len({s.ids.drive_id for s in group}) == 1
    assert len({(s.ids.drive_id, s.ids.vehicle_id) for s in found}) == 50
    assert len({s.ids.scenario_id for s in found}) == 50


@realdata
@missing
def test_real_drives_share_no_vehicle(found, trees):
    drives = defaultdict(set)
    for s in found:
        tree = trees[s.ids.scenario_id]
        for o in [o for tag in ("obstacle", "dynamicObstacle") for o in tree.findall(tag)]:
            size = (o.findtext("shape/rectangle/length"), o.findtext("shape/rectangle/width"))
            drives[s.ids.area, o.get("id"), size].add(s.ids.drive_id)
    assert all(len(names) == 1 for names in drives.values())
    assert len({s.ids.drive_id for s in found}) == 8


def value_of(item):
    if item.find("exact") is not None:
        return float(item.findtext("exact"))
    return (float(item.findtext("intervalStart")) + float(item.findtext("intervalEnd"))) / 2


def position_of(item):
    point = item.find("position/point")
    point = item.find("position/rectangle/center") if point is None else point
    return float(point.findtext("x")), float(point.findtext("y"))


def states_of(obstacle):
    """Step -> x, y, heading, speed."""
    states = [obstacle.find("initialState"), *obstacle.findall("trajectory/state")]
    return {int(s.findtext("time/exact")): (*position_of(s), value_of(s.find("orientation")),
                                            value_of(s.find("velocity"))) for s in states}


def near(line, bound):
    return any(np.abs(bound[k:k + len(line)] - line).max() < 2e-3 for k in range(len(bound) - len(line) + 1))
