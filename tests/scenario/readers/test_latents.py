from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers.latents import read, read_table, sources
from avshift_core.scenario.readers.source import ReadOptions
from avshift_core.scenario.schema import ID_FIELDS

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "tables"
NGSIM = """
[columns]
area = "site"
[features]
columns = ["u0_mps", "du0", "du1", "du2", "dx0", "dx1", "dx2", "dy0", "dy1", "dy2"]
[metrics]
columns = ["y"]
"""


def table(path, frame, mapping=None, **options):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)
    if mapping is not None:
        options["mapping"] = path.parent / "mapping.toml"
        options["mapping"].write_text(mapping)
    return read_table(path, ReadOptions(**options))


def frame(n=6):
    return pd.DataFrame({"scenario_id": [f"s{k}" for k in range(n)], "drive_id": ["d1", "d2"] * (n // 2),
                         "day": "2026-03-02", "z_0": np.arange(n) * 0.5, "z_1": 1.0, "brake": [0.0, 1.0] * (n // 2),
                         "note": "x"})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_own_names(tmp_path, suffix):
    t = table(tmp_path / f"t{suffix}", frame(), '[metrics]\ncolumns = ["brake"]')
    assert (t.name, t.n, t.has_drives, t.features, t.skipped) == ("t", 6, True, ("z_0", "z_1"), 0)
    np.testing.assert_array_equal(t.z, np.stack([np.arange(6) * 0.5, np.ones(6)], 1).astype(np.float32))
    assert t.z.dtype == np.float32 and not t.z.flags.writeable
    assert tuple(t.ids.columns) == ID_FIELDS
    assert t.ids.drive_id.tolist() == ["d1", "d2"] * 3
    assert set(t.ids.period) == {"2026-W10"} and set(t.ids.hour) == {-1}  # 2 March 2026 is the Monday of week 10
    assert t.metrics["brake"].tolist() == [0, 1] * 3
    assert list(t.attributes.columns) == ["note"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_lists_as_latents(tmp_path, suffix):
    rows = [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]
    column = [str(row) for row in rows] if suffix == ".csv" else rows
    t = table(tmp_path / f"t{suffix}", pd.DataFrame({"z": column, "area": ["a", "b"]}))
    np.testing.assert_allclose(t.z, rows, rtol=1e-6)
    assert t.attributes.shape == (2, 0) and t.ids.area.tolist() == ["a", "b"]


def test_ten_columns_stand_in_order_of_their_numbers(tmp_path):
    t = table(tmp_path / "t.csv", pd.DataFrame({f"z_{k}": [float(k)] for k in (10, 2, 1, 0)}))
    assert t.z.tolist() == [[0, 1, 2, 10]]


def test_without_drives_rows_are_marked_as_independent(tmp_path):
    t = table(tmp_path / "t.csv", frame().drop(columns="drive_id"))
    assert not t.has_drives and set(t.ids.drive_id) == {"unknown"}


def test_the_analyst_names_area_period_and_version(tmp_path):
    t = table(tmp_path / "t.csv", frame(), area="harbor", period="before", version="v1")
    assert set(t.ids.area) == {"harbor"} and set(t.ids.period) == {"before"} and set(t.ids.av_version) == {"v1"}


def test_standardized_only_if_asked(tmp_path):
    t = table(tmp_path / "t.csv", frame(), "[features]\nstandardize = true")
    # 0, 0.5, ..., 2.5: mean 1.25, variance 35 / 48; the constant column becomes 0
    np.testing.assert_allclose(t.z[:, 0], (np.arange(6) * 0.5 - 1.25) / np.sqrt(35 / 48), rtol=1e-5)
    assert t.standardized and (t.z[:, 1] == 0).all()


def test_rows_that_are_not_finite(tmp_path):
    bad = frame()
    bad.loc[3, "z_1"], bad.loc[4, "brake"] = np.nan, np.inf
    metrics = '[metrics]\ncolumns = ["brake"]'
    with pytest.raises(LogError, match=r"t\.csv, row 5: 'z_1' is nan\. 2 of 6 rows"):
        table(tmp_path / "t.csv", bad, metrics)
    told = []
    t = table(tmp_path / "t.csv", bad, metrics, skip_bad=True, on_skip=told.append)
    assert (t.n, t.skipped, len(told)) == (4, 2, 1) and t.ids.scenario_id.tolist() == ["s0", "s1", "s2", "s5"]


@pytest.mark.parametrize(
    ("change", "mapping", "sentence"),
    [
        (lambda f: f.drop(columns=["z_0", "z_1"]), None, r"no column 'z' and no columns 'z_0'.*found scen"),
        (lambda f: f, '[features]\ncolumns = ["u"]', "no column 'u'; found .*names it as a feature"),
        (lambda f: f, '[metrics]\ncolumns = ["crash"]', "no column 'crash'.*names it as a metric"),
        (lambda f: f, '[columns]\narea = "site"', "no column 'site'.*says that it holds area"),
        (lambda f: f, '[metrics]\ncolumns = "brake"', "a list of names is needed"),
        (lambda f: f, '[features]\ncolumns = ["z_0", "z_0"]', "twice"),
        (lambda f: f.assign(z_0="x"), None, "row 2: 'z_0' is 'x', which is no number"),
        (lambda f: f.assign(scenario_id="s"), None, "row 3: scenario 's' stands there twice"),
        (lambda f: f.assign(drive_id=None), None, "row 2: 'drive_id' is empty"),
        (lambda f: f.assign(day="yesterday"), None, "row 2: the day is 'yesterday'"),
        (lambda f: f.assign(hour=25), None, "row 2: the hour is 25"),
        (lambda f: f.assign(category="odd"), None, "category 'odd' is not known"),
        (lambda f: f.assign(z_0=np.nan), None, "6 of 6 rows"),
        (lambda f: f.drop(columns=["z_0", "z_1"]).assign(z="[1, 2"), None, r"row 2: 'z' is '\[1, 2', which is no list"),
        (lambda f: f.iloc[:0], None, "holds no rows"),
    ],
)
def test_bad_tables(tmp_path, change, mapping, sentence):
    with pytest.raises(LogError, match=sentence):
        table(tmp_path / "t.csv", change(frame()), mapping)


def test_nothing_finite_with_skip_bad(tmp_path):
    with pytest.raises(LogError, match="no row in which all features"):
        table(tmp_path / "t.csv", frame().assign(z_0=np.nan), skip_bad=True)


def test_lists_of_different_lengths(tmp_path):
    with pytest.raises(LogError, match=r"row 1: 'z' is .*3 as in the first row are needed"):
        table(tmp_path / "t.parquet", pd.DataFrame({"z": [[1.0, 2.0, 3.0], [1.0]]}))


def test_latents_are_no_scenarios(tmp_path):
    frame().to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(LogError, match="holds latents and no states"):
        list(read(sources(tmp_path / "t.csv")[0], ReadOptions()))


def test_truncated(tmp_path):
    frame().to_parquet(tmp_path / "t.parquet")
    (tmp_path / "s.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
    with pytest.raises(LogError, match=r"s\.parquet cannot be read"):
        read_table(tmp_path / "s.parquet")


@pytest.mark.realdata
@pytest.mark.skipif(not DATA.is_dir(), reason="the driving data is not in ../shared")
def test_real_lane_change_decisions(tmp_path):
    path = DATA / "ngsim_lane_change_decisions.csv"
    (tmp_path / "m.toml").write_text(NGSIM)
    t = read_table(path, ReadOptions(mapping=tmp_path / "m.toml"))
    lines = path.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    # 2,849 lines with the header; no value of the file is missing, so no row is left out
    assert t.n == len(rows) == 2848 and t.skipped == 0 and not any("" in row for row in rows)
    np.testing.assert_allclose(t.z, np.array([row[2:12] for row in rows], dtype=float), rtol=1e-6)
    assert t.ids.area.tolist() == [row[0] for row in rows]
    assert t.ids.area.value_counts().to_dict() == {"I-80": 1558, "US-101": 1290}
    np.testing.assert_array_equal(t.metrics["y"], [float(row[12]) for row in rows])
    assert list(t.attributes.columns) == ["merge_after"] and not t.has_drives
    # why merge_after is no feature: it tells the outcome, y is 0 wherever it is 1
    assert t.metrics["y"][t.attributes.merge_after.to_numpy() == 1].max() == 0
    assert t.ids.scenario_id.is_unique
