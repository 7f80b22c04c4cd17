"""The demo fleet as a corpus, and its truth: exact weights, counterfactuals, stops and restarts."""

import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.__main__ import main
from avshift_core.errors import ConfigError, CorpusError
from avshift_core.progress import finish
from avshift_core.scenario.simulate import fleet
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import AREAS, WEEKS, FleetConfig, blocks
from avshift_core.scenario.simulate.truth import read_truth
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.scenario.store.query import CohortQuery

ROOT = Path(__file__).parents[3]
SMALL = FleetConfig(scenarios=16 * 25, seed=3)


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A fleet of 400 scenarios."""
    url = str(tmp_path_factory.mktemp("fleet") / "demo")
    assert finish(demo_steps(url, SMALL, jobs=1)) == 400
    return url


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """A fleet of 16,000 scenarios, 1,000 in each week and area, without effects of days and vehicles.

    With them the 7 days and 12 vehicles of a week, not its scenarios, limit how well its mean is known.
    """
    url = str(tmp_path_factory.mktemp("fleet") / "demo")
    finish(demo_steps(url, FleetConfig(scenarios=16_000, seed=11, effect_share=0.0)))
    return url


def test_the_corpus_holds_the_fleet(small):
    corpus = open_corpus(small, verify=True)
    assert corpus.n == 400
    table = corpus.table(CohortQuery(), metrics=["discomfort", "hard_brake"])
    assert set(table["period"]) == set(WEEKS) and set(table["area"]) == set(AREAS)
    assert table.groupby("period")["av_version"].unique().map(list).to_dict() == {
        period: [version] for period, (_, version) in WEEKS.items()}
    assert table["scenario_id"].is_unique and not (table["category"] == "").any()
    assert table["drive_id"].nunique() == 16
    scene = corpus.scenarios(table["scenario_id"].tolist()[:1])[0]
    assert scene.rate_hz == pytest.approx(10) and 10 <= scene.t_s[-1] <= 15 and scene.road.n >= 4


def test_metrics_of_the_corpus_are_those_of_its_own_version_in_the_truth(small):
    truth = read_truth(small).table.set_index("scenario_id")
    table = open_corpus(small).table(CohortQuery(), metrics=["discomfort", "gap_min_m"]).set_index("scenario_id")
    for version, part in table.groupby("av_version"):
        for name in ("discomfort", "gap_min_m"):
            np.testing.assert_array_equal(part[name], truth.loc[part.index, f"{name}@{version}"])


def test_the_truth_lies_beside_the_corpus_and_not_in_it(small):
    assert Path(f"{small}-truth", "truth.json").is_file()
    assert not [p for p in Path(small).rglob("*") if "truth" in p.name]
    assert not any("@v" in name for name in open_corpus(small).metric_columns)
    plan = json.loads(Path(f"{small}-truth", "truth.json").read_text())
    assert plan["weeks"]["2026-W12"]["mix"] == {"cut_in_large": 3.4}
    assert plan["versions"]["v4.1"] != plan["versions"]["v4.2"]


def _mean_and_error(values, weights, drives):
    """Weighted mean and its standard error with whole drives as the independent units."""
    mean = values @ weights / weights.sum()
    residual = pd.Series(weights * (values - mean)).groupby(drives).sum().to_numpy()
    return mean, np.sqrt((residual**2).sum()) / weights.sum()


@pytest.mark.slow
def test_exact_weights_turn_every_week_into_every_other(large):
    """All 112 pairs of weeks of an area: differences in units of their Monte-Carlo error, under one version.

    Two metrics, and the situations that the weeks change, which show whether the test could see wrong weights. 4.5 is
    exceeded by one of 672 standard normals with probability 0.5 %.
    """
    truth = read_truth(large)
    drive = truth.table["drive_id"].to_numpy()
    values = [truth.table[f"{metric}@v4.1"].to_numpy() for metric in ("discomfort", "hard_brake")]
    changed = ("cut_in_large", "work_zone", "u_turn", "jaywalk")
    values += [(truth.table["situation"] == name).to_numpy(float) for name in changed]
    exact, naive = [], []
    for area in AREAS:
        for p, q in itertools.permutations(WEEKS, 2):
            P, Q = truth.rows([(area, p)]), truth.rows([(area, q)])
            for scores, w in ((exact, truth.weights([(area, p)], [(area, q)])), (naive, np.ones(len(P)))):
                for value in values:
                    estimate, error = _mean_and_error(value[P], w, drive[P])
                    target, target_error = _mean_and_error(value[Q], np.ones(len(Q)), drive[Q])
                    scores.append((estimate - target) / np.hypot(error, target_error))
    exact, naive = (np.reshape(scores, (112, len(values))) for scores in (exact, naive))
    assert np.abs(exact).max() < 4.5
    assert np.sqrt((exact**2).mean(axis=0)).max() < 1.5
    assert np.sqrt((exact[:, 2:] ** 2).mean()) < 1.3 < 2 < np.sqrt((naive[:, 2:] ** 2).mean())
    assert np.abs(naive).max() > 6


@pytest.mark.slow
def test_means_from_the_whole_fleet_agree_with_each_weeks_own(large):
    truth = read_truth(large)
    scores = []
    for cell in truth.cells:
        rows = truth.rows([cell])
        own, error = _mean_and_error(truth.table["hard_brake@v4.1"].to_numpy()[rows], np.ones(len(rows)),
                                     truth.table["drive_id"].to_numpy()[rows])
        scores.append((truth.mean("hard_brake", "v4.1", cell) - own) / error)
    assert np.abs(scores).max() < 4
    assert truth.mean("discomfort", "v4.2", truth.cells[0]) < truth.mean("discomfort", "v4.1", truth.cells[0])
    assert truth.gamma_star([truth.cells[0]], [truth.cells[2]]) == 0  # harbor in the first two weeks
    assert 0.01 < truth.gamma_star([truth.cells[2]], [truth.cells[4]]) < 0.1


def test_a_fleet_that_is_there_is_left_alone(small):
    before = {p: p.stat().st_mtime_ns for p in Path(small).rglob("*.parquet")}
    assert finish(demo_steps(small, SMALL, jobs=1)) == 0
    assert {p: p.stat().st_mtime_ns for p in Path(small).rglob("*.parquet")} == before


def test_another_fleet_is_refused(small):
    with pytest.raises(CorpusError, match="holds another corpus or fleet"):
        finish(demo_steps(small, FleetConfig(scenarios=400, seed=4), jobs=1))
    with pytest.raises(CorpusError, match="not a simulated fleet"):
        read_truth(str(Path(small).parent / "nowhere"))


def test_two_processes_make_the_same_fleet_as_one(small, tmp_path):
    url = str(tmp_path / "again")
    finish(demo_steps(url, SMALL, jobs=2))
    one, two = (open_corpus(u).table(CohortQuery(), metrics=["gap_min_m", "comfort_score"]).sort_values(
        "scenario_id", ignore_index=True) for u in (small, url))
    pd.testing.assert_frame_equal(one, two)
    pd.testing.assert_frame_equal(read_truth(small).table, read_truth(url).table)


def test_a_drive_does_not_depend_on_its_block(monkeypatch):
    config = FleetConfig(scenarios=16 * 100, seed=3)
    whole = [fleet.draw(config, block) for block in blocks(config) if block.cell == 0]
    monkeypatch.setattr(fleet, "BLOCK", 50)
    pieces = [fleet.draw(config, block) for block in fleet.blocks(config) if block.cell == 0]
    assert len(whole) == 1 and len(pieces) == 2
    np.testing.assert_array_equal(whole[0][0].z, np.concatenate([contexts.z for contexts, _ in pieces]))
    assert whole[0][1] == tuple(item for _, ids in pieces for item in ids)
    assert sum(block.n for block in fleet.blocks(config)) == 1600


def _commits(url):
    file = Path(url, "manifest.json")
    return json.loads(file.read_text())["revision"] if file.is_file() else 0


def test_a_killed_fleet_goes_on_to_the_same_end(small, tmp_path):
    url = tmp_path / "killed"
    command = [sys.executable, "-m", "avshift_core", "demo", "--out", str(url), "--scenarios", "400", "--seed", "3",
               "--jobs", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not _commits(url) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < open_corpus(url, verify=True).n < 400
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two = (open_corpus(u, verify=True).table(CohortQuery(), metrics=["gap_min_m"]).sort_values(
        "scenario_id", ignore_index=True) for u in (small, url))
    pd.testing.assert_frame_equal(one, two)
    read_truth(str(url))


def test_settings_are_checked_before_anything_is_written(tmp_path, capsys):
    url = tmp_path / "demo"
    for flags, part in ((["--effect-share", "0.9"], "effect_share is 0.9"), (["--jobs", "0"], "jobs is 0"),
                        (["--jobs", "-2"], "jobs is -2"), (["--out", ""], "give a folder")):
        assert main(["demo", "--out", str(url), "--scenarios", "16", *flags]) == 2
        assert part in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_truth_of_a_fleet_that_is_not_there_is_replaced(tmp_path):
    url = str(tmp_path / "demo")
    finish(demo_steps(url, FleetConfig(16, seed=1), jobs=1))
    shutil.rmtree(url)
    finish(demo_steps(url, FleetConfig(16, seed=2), jobs=1))
    assert json.loads(Path(f"{url}-truth", "truth.json").read_text())["seed"] == 2
    assert sorted(read_truth(url).table["scenario_id"]) == sorted(open_corpus(url).table()["scenario_id"])
    finish(demo_steps(again := str(tmp_path / "again"), FleetConfig(16, seed=2), jobs=1))
    pd.testing.assert_frame_equal(read_truth(url).table, read_truth(again).table)


def test_a_truth_in_one_table_is_read_too(tmp_path):
    """As 0.3 wrote it: every version in the part itself."""
    url = str(tmp_path / "demo")
    finish(demo_steps(url, FleetConfig(16, seed=1), jobs=1))
    truth = read_truth(url).table
    for part in Path(f"{url}-truth").glob("part-*"):
        others = Path(str(part).replace("part-", "others-"))
        pd.concat([pd.read_parquet(part), pd.read_parquet(others)], axis=1).to_parquet(part, index=False)
    pd.testing.assert_frame_equal(read_truth(url).table, truth)


def test_truth_that_is_missing_or_damaged_is_made_again(tmp_path):
    url, config = str(tmp_path / "demo"), FleetConfig(16, seed=1)
    finish(demo_steps(url, config, jobs=1))
    before = read_truth(url).table
    for kind in ("part", "others"):
        files = sorted(Path(f"{url}-truth").glob(f"{kind}-*"))
        assert len(files) == 16
        files[3].unlink()
        files[5].write_bytes(files[5].read_bytes()[:-9])
    revision = _commits(url)
    assert finish(demo_steps(url, config, jobs=1)) == 0 and _commits(url) == revision
    pd.testing.assert_frame_equal(read_truth(url).table, before)
    Path(f"{url}-truth", "truth.json").write_text("{")
    with pytest.raises(CorpusError, match=r"damaged\. Remove"):
        finish(demo_steps(url, config, jobs=1))


def test_other_versions_can_wait(small, tmp_path):
    """The corpus is the same with and without them; its truth is completed later, and then it is the same too."""
    url = str(tmp_path / "demo")
    assert finish(demo_steps(url, SMALL, every_version=False, jobs=1)) == 400
    assert _digests(url) == _digests(small)
    early, cells = read_truth(url), [[("harbor", "2026-W11")], [("harbor", "2026-W12")]]
    assert not [name for name in early.table if "@" in name]
    assert early.gamma_star(*cells) == read_truth(small).gamma_star(*cells)
    with pytest.raises(CorpusError, match=r"does not know 'discomfort' under v4\.1\. Run the fleet's 'demo' command"):
        early.mean("discomfort", "v4.1", cells[0][0])
    assert finish(demo_steps(url, SMALL, jobs=1)) == 0
    pd.testing.assert_frame_equal(read_truth(url).table, read_truth(small).table)


def _digests(url):
    """Of every table; their names are drawn."""
    return sorted(hashlib.sha256(p.read_bytes()).hexdigest() for p in Path(url).rglob("*.parquet"))


def _children(pid):
    """Processes whose parent this is, from /proc: the field after the state."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return found


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed in /proc only on Linux")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path, how):
    url = tmp_path / "demo"
    command = [sys.executable, "-m", "avshift_core", "demo", "--out", str(url), "--scenarios", "6400", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not _commits(url) and time.monotonic() < until:
        time.sleep(0.02)
    workers = _children(process.pid)
    os.kill(process.pid, how)
    error = process.communicate(timeout=60)[1]
    assert len(workers) >= 2 and 0 < open_corpus(url, verify=True).n < 6400
    if how == signal.SIGTERM:
        assert process.returncode == 130 and "is sound" in error and "Traceback" not in error
    until = time.monotonic() + 20
    while any(map(_alive, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(_alive, workers))


def test_a_reader_that_has_seen_enough_ends_a_command_quietly(small):
    command = f"{sys.executable} -m avshift_core corpus {small} | true"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_the_command_line(tmp_path, capsys):
    url = str(tmp_path / "demo")
    assert main(["demo", "--out", url, "--scenarios", "32", "--jobs", "1"]) == 0
    assert "32 scenarios added" in capsys.readouterr().out
    assert main(["demo", "--out", url, "--scenarios", "32", "--jobs", "1"]) == 0
    assert "holds this fleet already" in capsys.readouterr().out
    assert main(["corpus", url, "--json", str(tmp_path / "c.json")]) == 0
    summary = json.loads((tmp_path / "c.json").read_text())
    assert summary["n"] == 32 and {"n", "drives", "by", "metrics", "warnings"} <= set(summary)
    assert main(["demo", "--out", url, "--scenarios", "3"]) == 2
    assert "3 scenarios cannot fill 16" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="seed is -1"):
        FleetConfig(seed=-1)
