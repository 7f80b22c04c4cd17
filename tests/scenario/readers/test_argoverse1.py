import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers import read_scenarios
from avshift_core.scenario.readers.argoverse1 import read, sources
from avshift_core.scenario.readers.drives import Passage, name_drives
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.schema import AGENT_TYPES, DERIVABLE

ARCHIVE = Path(__file__).parents[3].parent / "shared" / "data" / "argoverse1" / "forecasting_csv.zip"
realdata = [pytest.mark.realdata, pytest.mark.skipif(not ARCHIVE.exists(), reason="needs the data in ../shared/data")]
HEADER = "TIMESTAMP,TRACK_ID,OBJECT_TYPE,X,Y,CITY_NAME"


def rows(n=50, start=3.15e8, city="PIT", agents=1, speed=8.0):
    """Lines of a scene: the AV along x, and agents beside it."""
    lines = []
    for i in range(n):
        t = start + i / 10
        lines.append(f"{t:.3f},av,AV,{1000 + speed * i / 10:.4f},2000.0,{city}")
        lines += [f"{t:.3f},id{a},OTHERS,{1010 + speed * i / 10:.4f},{2003.5 + a},{city}" for a in range(agents)]
    return lines


def write(path, lines):
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def scenario(path, **options):
    (found,) = read_scenarios("argoverse1", path, ReadOptions(**options))
    return found


def test_a_scene(tmp_path):
    s = scenario(write(tmp_path / "7.csv", rows()))
    assert (s.ids.scenario_id, s.ids.drive_id, s.ids.area) == ("pittsburgh-7-315000000",) * 2 + ("pittsburgh",)
    assert (s.ids.day, s.ids.period, s.ids.hour, s.ids.vehicle_id) == ("unknown", "unknown", -1, "unknown")
    assert s.agent_id.tolist() == ["id0"] and s.derived == DERIVABLE
    np.testing.assert_allclose(s.origin_m, [1000, 2000])
    np.testing.assert_allclose(s.ego[:, [0, 1, 3]], [[0.8 * i, 0, 8] for i in range(50)], atol=1e-3)
    np.testing.assert_allclose(s.agents[0, 0], [10, 3.5, 0, 8], atol=1e-3)
    assert AGENT_TYPES[s.agent_type[0]] == "car"


def test_what_the_analyst_says_counts(tmp_path):
    s = scenario(write(tmp_path / "7.csv", rows()), area="harbor", period="spring", version="v9")
    assert (s.ids.area, s.ids.period, s.ids.av_version) == ("harbor", "spring", "v9")


def test_unknown_cities_are_kept(tmp_path):
    assert scenario(write(tmp_path / "1.csv", rows(city="ATX"))).ids.area == "atx"


def test_fragments_are_kept_with_masks(tmp_path):
    lines = [line for line in rows(agents=2) if ",id1," not in line or line.startswith("315000001.2")]
    s = scenario(write(tmp_path / "1.csv", lines))
    assert s.agent_id.tolist() == ["id0", "id1"]
    assert s.agents_valid.sum(axis=1).tolist() == [50, 1] and s.agents_valid[1, 12]


def test_ego_alone_and_a_crowd(tmp_path):
    assert scenario(write(tmp_path / "1.csv", rows(agents=0))).n_agents == 0
    assert scenario(write(tmp_path / "2.csv", rows(agents=150))).n_agents == 150


def test_columns_in_another_order_and_more_of_them(tmp_path):
    path = write(tmp_path / "1.csv", rows())
    table = pd.read_csv(path)
    table.assign(EXTRA="x")[["EXTRA", "Y", "X", "CITY_NAME", "TIMESTAMP", "OBJECT_TYPE", "TRACK_ID"]].to_csv(
        path, index=False)
    np.testing.assert_allclose(scenario(path).ego[10, :2], [8, 0], atol=1e-3)


def edited(change):
    lines = rows()
    change(lines)
    return lines


def replaced(row, old, new):
    return lambda lines: lines.__setitem__(row, lines[row].replace(old, new))


WRONG = [  # rows are counted as in an editor: the header is row 1, lines[0] is row 2
    (replaced(6, "1002.4000", "far"), r"1\.csv, row 8: X is 'far'\. A plausible number is needed"),
    (replaced(6, "2000.0", ""), r"row 8: Y is ''"),
    (replaced(6, "2000.0", "nan"), r"row 8: Y is 'nan'"),
    (replaced(6, "2000.0", "inf"), r"row 8: Y is 'inf'"),
    (replaced(6, "2000.0", "1e15"), r"the ego's position at step 3 is \(1002.4, 1e\+15\)"),
    (replaced(6, "2000.0", "1e200"), r"row 8: Y is '1e\+200'"),
    (lambda lines: lines.insert(11, lines[7]), r"time runs backwards, from 315000000\.500 s in row 12 to .* in row 13"),
    (lambda lines: lines.insert(10, lines[10]), r"rows 12 and 13 hold agent 'av' at the same time"),
    (lambda lines: lines.reverse(), "time runs backwards"),
    (lambda lines: lines.__setitem__(slice(None), [x.replace(",AV,", ",OTHERS,") for x in lines]),
     "has no track with OBJECT_TYPE AV.*Found types: OTHERS"),
    (lambda lines: lines.__setitem__(slice(None), [x.replace(",OTHERS,", ",AV,") for x in lines]),
     "has 2 tracks with OBJECT_TYPE AV"),
    (replaced(8, ",AV,", ",OTHERS,"), "track 'av' is AV in some rows and something else"),
    (replaced(8, "PIT", "MIA"), r"names 2 cities \(MIA, PIT\)"),
    (lambda lines: lines.__delitem__(slice(None)), "holds no rows"),
    (lambda lines: lines.__delitem__(slice(12, None)), r"lasts 0\.5 s; at least 1 s"),
    (replaced(6, ",PIT", ""), "is not a CSV table: .*Expected 6 columns, got 5"),
    (lambda lines: lines.__delitem__(slice(2, None)), "holds 1 time step; at least 2"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[s for _, s in WRONG])
def test_wrong_rows_are_named(tmp_path, change, sentence):
    with pytest.raises(LogError, match=r"^1\.csv.*" + sentence.removeprefix(r"1\.csv")):
        scenario(write(tmp_path / "1.csv", edited(change)))


@pytest.mark.parametrize("column", HEADER.split(","))
def test_renamed_columns(tmp_path, column):
    path = write(tmp_path / "1.csv", rows())
    pd.read_csv(path).rename(columns={column: "OTHER"}).to_csv(path, index=False)
    with pytest.raises(LogError, match=rf"1\.csv has no column '{column}'; found .*OTHER"):
        scenario(path)


@pytest.mark.parametrize("text", ["", "\n", "\0\0\0", HEADER, "\xff\xfe\x00", '"' * 99])
def test_files_that_are_no_table(tmp_path, text):
    (tmp_path / "1.csv").write_text(text, encoding="latin-1")
    with pytest.raises(LogError, match=r"^1\.csv "):
        scenario(tmp_path / "1.csv")


def test_milliseconds_and_centimetres_are_named(tmp_path):
    table = pd.read_csv(write(tmp_path / "1.csv", rows()))
    (table.assign(TIMESTAMP=table.TIMESTAMP * 1000)).to_csv(tmp_path / "ms.csv", index=False)
    (table.assign(X=table.X * 100, Y=table.Y * 100)).to_csv(tmp_path / "cm.csv", index=False)
    with pytest.raises(LogError, match=r"ms\.csv.*milliseconds"):
        scenario(tmp_path / "ms.csv")
    with pytest.raises(LogError, match=r"cm\.csv.*centimetres"):
        scenario(tmp_path / "cm.csv")


def test_one_bad_scene_in_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for name, lines in (("1", rows()), ("2", [*rows()[:30], "text"]), ("3", rows(start=3.2e8))):
            archive.writestr(f"{name}.csv", "\n".join([HEADER, *lines]))
    with pytest.raises(LogError, match=r"s\.zip:2\.csv"):
        list(read_scenarios("argoverse1", tmp_path / "s.zip"))
    told = []
    good = list(read_scenarios("argoverse1", tmp_path / "s.zip", ReadOptions(skip_bad=True, on_skip=told.append)))
    assert len(good) == 2 and len(told) == 1 and told[0].startswith("s.zip:2.csv ")


def passage(name, t0, x0, *, speed=10.0, area="a", tracks=(1, 2, 3), n=50):
    t = t0 + np.arange(n) / 10
    return Passage(name, area, t, np.column_stack([x0 + speed * (t - t0), 0 * t]), np.array(tracks))


def test_scenes_of_one_drive():
    """By hand: at 10 m/s a scene of 4.9 s ends 49 m on; one that begins 5.1 s later is 51 m further."""
    first = passage("first", 0, 0)
    assert name_drives([first, passage("overlap", 3, 30)]) == ["first"] * 2
    assert name_drives([passage("later", 10, 100), first]) == ["first"] * 2
    assert name_drives([first, passage("same time elsewhere", 3, 300)]) == ["first", "same time elsewhere"]
    assert name_drives([first, passage("too far", 10, 130)]) == ["first", "too far"]
    assert name_drives([first, passage("other agents", 10, 100, tracks=(3, 9))]) == ["first", "other agents"]
    assert name_drives([first, passage("other area", 3, 30, area="b")]) == ["first", "other area"]
    assert name_drives([first, passage("too late", 30, 300)]) == ["first", "too late"]
    chain = [passage(str(k), 10 * k, 100 * k) for k in range(5)]
    assert name_drives([chain[3], None, chain[0], chain[4], chain[2], chain[1]]) == ["0", "", "0", "0", "0", "0"]
    assert name_drives([]) == []


@pytest.fixture(scope="module")
def table():
    """All rows, read with plain pandas."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        frames = {name: pd.read_csv(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    return pd.concat(frames, names=["file"]).reset_index("file")


@pytest.fixture(scope="module")
def scenarios():
    began = time.process_time()
    found = {s.member: next(iter(read(s, ReadOptions()))) for s in sources(ARCHIVE)}
    assert time.process_time() - began < 110   # well under two minutes of one core; about 15 s
    return found


class TestRealScenes:
    pytestmark = realdata

    def test_counts(self, table, scenarios):
        assert len(scenarios) == table.file.nunique() == 2000
        assert len({s.ids.scenario_id for s in scenarios.values()}) == 2000
        by_city = pd.Series({name: s.ids.area for name, s in scenarios.items()}).value_counts()
        assert by_city.to_dict() == {"miami": 1000, "pittsburgh": 1000}
        states = table.groupby("file").size()
        tracks = table.groupby("file").TRACK_ID.nunique()
        for name, s in scenarios.items():
            assert s.ego_valid.sum() + s.agents_valid.sum() == states[name]
            assert s.n_agents == tracks[name] - 1
        assert sum(s.n_agents > 128 for s in scenarios.values()) == (tracks - 1 > 128).sum() > 0

    def test_rates_by_the_timestamps(self, table, scenarios):
        ego = table[table.OBJECT_TYPE == "AV"]
        rate = 1 / ego.groupby("file").TIMESTAMP.apply(lambda t: t.diff().median())
        ours = pd.Series({name: s.rate_hz for name, s in scenarios.items()})
        np.testing.assert_allclose(ours[rate.index], rate, rtol=1e-6)
        assert 0.2 < (np.abs(rate - 10) > 0.5).mean() < 0.3    # 23 % are not at 10 Hz

    @pytest.mark.parametrize("name", ["1.csv", "1478.csv", "2887.csv", "4000.csv"])
    def test_positions_and_times(self, table, scenarios, name):
        rows, s = table[table.file == name], scenarios[name]
        ego = rows[rows.OBJECT_TYPE == "AV"]
        np.testing.assert_allclose(s.t_s, ego.TIMESTAMP - ego.TIMESTAMP.iloc[0], atol=1e-6)
        np.testing.assert_allclose(s.ego[:, :2] + s.origin_m, ego[["X", "Y"]], atol=1e-3)
        assert (s.ego[0, :2] == 0).all()
        for a in range(s.n_agents):
            track = rows[s.agent_id[a] == rows.TRACK_ID]
            np.testing.assert_allclose(s.agents[a][s.agents_valid[a]][:, :2] + s.origin_m, track[["X", "Y"]], atol=1e-3)
            np.testing.assert_allclose(s.t_s[s.agents_valid[a]] + ego.TIMESTAMP.iloc[0], track.TIMESTAMP, atol=1e-6)

    def test_derived_speed_and_heading_of_the_ego(self, table, scenarios):
        """Against displacement over the whole scene, on scenes that go straight: where it is as long as the way."""
        ego = table[table.OBJECT_TYPE == "AV"]
        checked = 0
        for name, rows in ego.groupby("file"):
            step = np.diff(rows[["X", "Y"]].to_numpy(), axis=0)
            way, chord = np.hypot(*step.T).sum(), step.sum(axis=0)
            if np.hypot(*chord) > max(0.9999 * way, 20):
                s, checked = scenarios[name], checked + 1
                off = s.ego[:, 2] - np.arctan2(chord[1], chord[0])
                assert np.abs(np.angle(np.exp(1j * off))).max() < 0.1
                assert np.trapezoid(s.ego[:, 3], s.t_s) == pytest.approx(way, rel=0.02), name
        assert checked > 300

    def test_city_coordinates_are_gone(self, scenarios):
        """On the maps the cities lie apart; relative to the ego nothing is farther than sensors see."""
        for s in scenarios.values():
            assert np.abs(s.agents[s.agents_valid][:, :2]).max(initial=0) < 400
            assert s.derived == DERIVABLE

    def test_drives(self, table, scenarios):
        """Scenes that share a state of the AV (same time and place) belong to one drive; ids by plain pandas."""
        ego = table[table.OBJECT_TYPE == "AV"]
        shared = ego.groupby(["CITY_NAME", "TIMESTAMP", "X", "Y"]).file.agg(["nunique", "first", "last"])
        pairs = set(map(tuple, shared[shared["nunique"] > 1][["first", "last"]].to_numpy()))
        drive = {name: s.ids.drive_id for name, s in scenarios.items()}
        assert len(pairs) == 27
        assert all(drive[a] == drive[b] for a, b in pairs)
        sizes = pd.Series(drive).value_counts()
        assert 1800 < len(sizes) < 1950 and sizes.max() <= 5
        cities = table.groupby("file").CITY_NAME.first()
        assert (pd.Series(drive).groupby(pd.Series(drive)).apply(lambda d: cities[d.index].nunique()) == 1).all()

    def test_a_scene_alone_is_its_own_drive(self):
        (s,) = read(Source(ARCHIVE, "2887.csv"), ReadOptions())
        assert s.ids.drive_id == s.ids.scenario_id
