"""The same work on a Dask cluster of several processes: the same bytes, whatever happens to its workers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import avshift_core.shift.sensitivity as studies
from avshift_core import benchmark, cluster, versions
from avshift_core.__main__ import main
from avshift_core.config import AnalysisConfig, EncoderConfig
from avshift_core.encoder.encode import encode_steps
from avshift_core.encoder.train import train_steps
from avshift_core.encoder.weights import load_model
from avshift_core.errors import ClusterError, CorpusError, LogError
from avshift_core.laboratory.fleet import fleet_steps
from avshift_core.latent.benchmark import manifold_case
from avshift_core.latent.space import make_space
from avshift_core.parallel import in_order
from avshift_core.progress import finish
from avshift_core.quality.ablation import _elsewhere_steps
from avshift_core.scenario import importing
from avshift_core.scenario.importing import import_steps
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.reading import _read_bundle
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.shift.drives import pool
from avshift_core.threads import one_thread
from tests.test_readme import drives

ROOT = Path(__file__).parent.parent
FLEET = FleetConfig(240, seed=3)


@contextmanager
def dask_processes(folder: Path, workers: int):
    """A scheduler and its workers as the README starts them, on loopback; its address and process."""
    file = folder / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    start = lambda *argv: subprocess.Popen(  # noqa: E731
        [sys.executable, "-m", "dask", *argv], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    running = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)]
    try:
        while not file.exists():
            assert running[0].poll() is None
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        if workers:
            running.append(start("worker", address, "--nworkers", str(workers), "--nthreads", "1", "--no-dashboard",
                                 "--local-directory", folder))
        yield address, running[0]
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(timeout=20)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Scheduler of two workers."""
    with dask_processes(tmp_path_factory.mktemp("dask"), workers=2) as (address, _):
        yield address


def on_scheduler(address, function):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return client.run_on_scheduler(function)


def contents(url):
    """Every byte of a corpus, but for the parts' names, which are drawn, and the number of commits, which is timed."""
    manifest = (Path(url) / "manifest.json").read_text()
    names = {part["id"]: f"part{i}" for i, part in enumerate(json.loads(manifest)["parts"])}
    named = lambda text: re.sub("[0-9a-f]{16}", lambda m: names.get(m[0], m[0]), text)  # noqa: E731
    files = {named(str(f.relative_to(url))): f.read_bytes() for f in Path(url).rglob("*.parquet")}
    body = json.loads(named(manifest))
    return {**files, "manifest.json": {k: v for k, v in body.items() if k not in ("revision", "digest")}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A small fleet, made here."""
    url = str(tmp_path_factory.mktemp("here") / "demo")
    finish(demo_steps(url, FLEET, jobs=1))
    return url


# The same bytes ------------------------------------------------------------------------------------------------------


def test_a_fleet_and_its_truth(fleet, address, tmp_path):
    finish(demo_steps(str(tmp_path / "demo"), FLEET, scheduler=address))
    assert contents(tmp_path / "demo") == contents(fleet) and len(contents(fleet)) > 16
    truth, there = Path(f"{fleet}-truth"), tmp_path / "demo-truth"
    assert {f.name: f.read_bytes() for f in there.iterdir()} == {f.name: f.read_bytes() for f in truth.iterdir()}


def test_latents_although_a_worker_is_killed(fleet, address, tmp_path, monkeypatch):
    for name in ("here", "there"):
        shutil.copytree(fleet, tmp_path / name)
    model = load_model()
    finish(encode_steps(str(tmp_path / "here"), model, jobs=1))
    monkeypatch.chdir(tmp_path)  # a path that means nothing where the workers are
    before = pids(address)
    steps = encode_steps("there", model, scheduler=address)
    next(steps)
    os.kill(before[0], signal.SIGKILL)
    finish(steps)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert before[0] not in pids(address)


def pids(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=20)
        return sorted(client.run(os.getpid).values())


def test_an_import_and_what_it_leaves_out(address, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "FIRST_COMMIT_S", np.inf)  # what is cut by the clock differs from run to run
    logs = tmp_path / "logs"
    logs.mkdir()
    for i in range(6):
        frame = drives(200).assign(drive_id=f"d{i}", day="2026-03-02")
        frame.iloc[7, frame.columns.get_loc("x_m")] += 1e30 * (i == 2)
        frame.to_csv(logs / f"log{i}.csv", index=False)
    (logs / "log4.csv").write_text("no,table")
    every = {"commit_scenarios": 3, "commit_s": np.inf}
    told, first = {}, None
    for name, where in (("here", {}), ("beside", {"jobs": 2}), ("there", {"jobs": None, "scheduler": address})):
        told[name] = []
        options = ReadOptions(skip_bad=True, on_skip=told[name].append)
        result = finish(import_steps("table", [logs], tmp_path / name, options, **every, **where))
        assert (result.n, result.n_done_before) == (9, 0)  # five files of two windows, of which one is left out
        first = first or result
        assert result == first and list(result.skipped) == told[name] and len(told[name]) == 2
        again = finish(import_steps("table", [logs], tmp_path / name, options, **every, **where))
        assert (again.n, again.n_done_before, again.skipped) == (0, 5, result.skipped[1:])  # log4 is read again
        assert contents(tmp_path / name) == contents(tmp_path / "here") and len(contents(tmp_path / "here")) > 6
    assert told["there"] == told["beside"] == told["here"]
    with pytest.raises(LogError, match=r"log2\.csv") as there:
        finish(import_steps("table", [logs], tmp_path / "new", scheduler=address))
    with pytest.raises(LogError, match=re.escape(str(there.value))):
        finish(import_steps("table", [logs], tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def small_run(seed):
    """As the runs of `benchmark`, but quick."""
    pair = manifold_case(400, 20, seed=seed)
    space = make_space(pair.P, pair.Q, 8, seed)
    return {"seed": seed, "mean": float((space.X @ space.X[0]).mean())}


def test_repeated_tests(address, small_pair, monkeypatch):
    for name, few in (("FAMILIES", ("forest",)), ("RATIOS", ()), ("TRAIN_SIZES", (50,)), ("CAPACITIES", {})):
        monkeypatch.setattr(studies, name, few)
    config = AnalysisConfig()
    space, sample = make_space(*small_pair, config.n_cells, 0), pool(*small_pair)
    here, there = (list(studies.sensitivity(space, sample, config, range(1), scheduler=s)) for s in (None, address))
    assert there == here and len(here) == 2
    settings = {"n": 200, "drives": 10, "repeats": 2, "config": {"classifier": "cells", "repeats": 1, "n_perm": 19}}
    with one_thread():
        here = finish(fleet_steps(**settings, jobs=1))
    there = finish(fleet_steps(**settings, scheduler=address))
    pd.testing.assert_frame_equal(there.estimates, here.estimates, check_exact=True)
    pd.testing.assert_frame_equal(there.runs.drop(columns="seconds"), here.runs.drop(columns="seconds"),
                                  check_exact=True)
    assert benchmark._map(small_run, [(1,), (2,)], None, address) == [small_run(1), small_run(2)]


def test_a_training_of_an_ablation(fleet, address, tmp_path):
    config = EncoderConfig(d_model=16, n_heads=2, n_layers=1, batch_size=64, epochs=1, valid_share=0.2)
    model = finish(train_steps(fleet, tmp_path / "here", config, jobs=1, most=300))
    finish(_elsewhere_steps(open_corpus(fleet), {"m": tmp_path / "there"}, {"m": config}, CohortQuery(), 300, None,
                            address))
    assert {f.name: f.read_bytes() for f in (tmp_path / "there").iterdir()} == {
        f.name: f.read_bytes() for f in model.folder.iterdir()}


# Items under way -----------------------------------------------------------------------------------------------------


def slowly(x):
    time.sleep(0.05)
    return x


def fatal(x):
    os.kill(os.getpid(), signal.SIGKILL)


def n_tasks(address):
    return on_scheduler(address, lambda dask_scheduler: len(dask_scheduler.tasks))


def test_a_few_items_are_under_way_and_none_when_nobody_listens(address):
    answers = in_order(slowly, range(100), scheduler=address)
    assert [next(answers) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert 0 < n_tasks(address) <= 2 * cluster.AHEAD + 2  # the work itself, and one that is just being released
    answers.close()
    for _ in range(100):
        if not (left := n_tasks(address)):
            break
        time.sleep(0.05)
    assert left == 0


def test_an_item_that_ends_every_worker(address):
    with pytest.raises(ClusterError, match=r"One item ended 2 workers one after the other, .* Start workers with more"):
        list(in_order(fatal, [1], scheduler=address))


# What can be wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["10.0.0.7:8786", "tcp://host", "http://host:80", "tcp://host:99999", "here", ""])
def test_an_address_that_is_none(fleet, wrong, capsys):
    assert main(["encode", fleet, "--scheduler", wrong]) == 2
    assert "is no address of a scheduler. Give tcp://HOST:PORT" in capsys.readouterr().err


def test_nobody_answers(fleet, monkeypatch, capsys):
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    assert main(["encode", fleet, "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert "avshift: No scheduler answers at tcp://127.0.0.1:9: " in capsys.readouterr().err
    with pytest.raises(ClusterError, match="needs certificates"):
        list(in_order(abs, [1], scheduler="tls://127.0.0.1:9"))


def test_a_worker_of_another_version(address, monkeypatch, request):
    monkeypatch.setattr(versions, "_version", lambda library: "1.0" if library == "numpy" else version(library))
    versions.environment.cache_clear()
    request.addfinalizer(versions.environment.cache_clear)
    with pytest.raises(ClusterError, match=rf"^Worker tcp://127.* has numpy {np.__version__}, and here it is 1\.0"):
        list(in_order(abs, [1], scheduler=address))
    monkeypatch.setattr(cluster, "_check_workers", lambda client, scheduler: 1)  # it comes in the middle
    with pytest.raises(ClusterError, match=rf"^The worker of process \d+ has numpy {np.__version__}"):
        list(in_order(abs, [1], scheduler=address))


def test_what_the_workers_cannot_see(fleet, address, tmp_path):
    import fsspec

    fsspec.filesystem("memory").put(fleet, "/unseen", recursive=True)
    with pytest.raises(CorpusError, match=r"^memory://unseen is not the same corpus on .* a URL that all workers can"):
        finish(encode_steps("memory://unseen", load_model(), scheduler=address))
    assert open_corpus("memory://unseen").models == {}
    (tmp_path / "a.csv").write_text("a")
    for path, reason in ((tmp_path / "a.csv", "It has another size or time"), (tmp_path / "b.csv", "cannot be read")):
        with pytest.raises(LogError, match=f"{path} is not the same file on .* read: .*{reason}.* all workers"):
            _read_bundle("table", ReadOptions(), [(Source(path), "key")])


def test_a_scheduler_without_workers_and_one_that_dies(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "WORKERS_S", 0.5)
    with dask_processes(tmp_path, workers=0) as (address, _), pytest.raises(ClusterError, match=r"has no workers\. St"):
        list(in_order(abs, [1], scheduler=address))
    shutil.copytree(fleet, tmp_path / "c")
    monkeypatch.setattr(cluster, "WORKERS_S", 20)
    with dask_processes(tmp_path, workers=1) as (address, scheduler):
        steps = encode_steps(str(tmp_path / "c"), load_model(), scheduler=address)
        next(steps)
        scheduler.kill()
        with pytest.raises(ClusterError, match=r"scheduler at .* was lost\. What was committed is kept; run the same"):
            finish(steps)
    assert 0 < finish(encode_steps(str(tmp_path / "c"), load_model(), jobs=1)).n_before < 240
