"""All of the real logs through the command line: counts by an independent reading, and no warning without a reason."""

import csv
import io
import json
import re
import sqlite3
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from avshift_core.__main__ import main

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.realdata

EXPLAINED = [  # what a reader of these logs has to know, and why
    r"have no period, so periods cannot be told",  # Argoverse and CommonRoad have no dates
    r"have no av_version, so AV versions cannot be told",  # no public log tells its software
    r"have no drive_id",  # the NGSIM table has no drives
    r"have fewer than 200 scenarios or 10 drives",  # small samples of large sets
    r"come from states below 5 Hz in 1% of the scenarios",  # 23 % of Argoverse 1 is not at 10 Hz
    r"^Derived, because the log lacks it",
    r"rest on typical sizes",  # Argoverse has no sizes
    r"are ready-made latents: they cannot be played back",
]


def imported(tmp_path, format, path, *more):
    """Summary of a corpus made by the command line from real logs; Python's own warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["import", format, str(path), "--corpus", str(tmp_path / "corpus"), *more]) == 0
    assert main(["corpus", str(tmp_path / "corpus"), "--json", str(tmp_path / "summary.json")]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    unexplained = [w for w in summary["warnings"] if not any(re.search(pattern, w) for pattern in EXPLAINED)]
    assert unexplained == []
    return summary


@pytest.mark.slow
def test_argoverse1(tmp_path):
    archive = DATA / "argoverse1" / "forecasting_csv.zip"
    cities = Counter()
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            rows = csv.DictReader(io.TextIOWrapper(files.open(name)))
            cities[next(rows)["CITY_NAME"]] += 1
    summary = imported(tmp_path, "argoverse1", archive)
    assert summary["n"] == sum(cities.values()) == 2000
    assert summary["by"]["area"] == {"miami": cities["MIA"], "pittsburgh": cities["PIT"]}
    assert 1500 < summary["drives"] < 2000  # some scenes overlap in time and place


def test_argoverse2(tmp_path):
    cities = Counter(pd.read_parquet(file, columns=["city"])["city"].iloc[0]
                     for file in (DATA / "argoverse2").rglob("*.parquet"))
    summary = imported(tmp_path, "argoverse2", DATA / "argoverse2", "--period", "2026-W10", "--version", "v1")
    assert summary["by"]["area"] == dict(cities)
    assert summary["by"]["period"] == {"2026-W10": 4} and summary["by"]["av_version"] == {"v1": 4}


def test_nuplan(tmp_path):
    seconds = {}
    for file in (DATA / "nuplan").rglob("*.db"):
        log = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
        first, last = log.execute("SELECT MIN(timestamp), MAX(timestamp) FROM lidar_pc").fetchone()
        seconds[log.execute("SELECT location FROM log").fetchone()[0]] = (last - first) / 1e6
    summary = imported(tmp_path, "nuplan", DATA / "nuplan")
    for area, length in seconds.items():
        assert length / 15 <= summary["by"]["area"][area] <= length / 10  # windows of 10 to 15 s
    assert summary["drives"] == len(seconds) == 2
    assert summary["by"]["day"] == {"2021-09-13": 5, "2021-09-29": 5}  # local days of the file names


def test_commonroad(tmp_path):
    with zipfile.ZipFile(DATA / "commonroad" / "ngsim_scenes.zip") as files:
        maps = Counter(name.split("-")[0].split("_")[1] for name in files.namelist())
    summary = imported(tmp_path, "commonroad", DATA / "commonroad")
    assert summary["n"] == sum(maps.values()) + 1
    assert summary["by"]["area"] == {"a9": 1, "lankershim": maps["Lanker"], "peachtree": maps["Peach"],
                                     "us101": maps["US101"]}


def test_table_of_features(tmp_path):
    file = DATA / "tables" / "ngsim_lane_change_decisions.csv"
    table = pd.read_csv(file)
    features = [name for name in table.columns if name not in ("site", "merge_after", "y")]
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(f'[columns]\narea = "site"\n[features]\ncolumns = {json.dumps(features)}\n'
                       '[metrics]\ncolumns = ["y"]\n')
    summary = imported(tmp_path, "latents", file, "--mapping", str(mapping))
    assert summary["by"]["area"] == table["site"].value_counts().to_dict()
    assert summary["metrics"]["y"]["mean"] == pytest.approx(table["y"].mean())
