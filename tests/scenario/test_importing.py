import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import AVShiftError, CorpusError, LogError
from avshift_core.scenario import importing, readers
from avshift_core.scenario.commands import add_corpus, add_import
from avshift_core.scenario.importing import import_logs, import_steps
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.schema import CATEGORIES, Ids
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from tests.scenario.store.test_corpus import assert_same, contents, scenario

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
needs_data = [pytest.mark.realdata, pytest.mark.skipif(not DATA.is_dir(), reason="no driving data in ../shared/data")]
PER_FILE = 3


def toy_scenario(name, k):
    """A scenario of the toy format: `k` of file `name`, the same whenever it is read."""
    seed = int(name.strip("abcdefghijklmnopqrstuvwxyz.")) * 100 + k
    return scenario(seed, Ids(f"{name}-{k}", f"drive of {name}", day="2026-03-02", period="2026-W10", area="harbor",
                              category="general" if k else ""), agents=2, steps=12)


def toy_read(source, options):
    """A file of text: `slow` sleeps at each scenario, `bad` lacks one, `broken` all, `double` repeats an id."""
    text = source.path.read_text()
    for k in range(PER_FILE):
        if text == "bad" and k == 1:
            options.leave_out(LogError(f"{source.label} row 7: x is not a number."))
            continue
        if text == "broken":
            options.leave_out(LogError(f"{source.label}: is broken."))
            return
        time.sleep(0.01 if text == "slow" else 0)
        found = toy_scenario("log0" if text == "double" else source.stem, k)
        yield replace(found, ids=options.apply(found.ids))


def toy_sources(path):
    return [Source(file) for file in (sorted(Path(path).glob("*.toy")) if Path(path).is_dir() else [Path(path)])]


@pytest.fixture(autouse=True)
def toy_format(monkeypatch):
    monkeypatch.setitem(readers.READERS, "toy", readers.Reader("toy", toy_sources, toy_read, "for tests"))


def logs(folder, texts):
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / f"log{i}.toy").write_text(text)
    return folder


def rows(corpus):
    """All ids, attributes and metrics, in the order of the ids: the content of a corpus, however it is cut in parts."""
    frame = corpus.table(metrics=corpus.metric_columns)
    return frame.sort_values("scenario_id").reset_index(drop=True)


def assert_same_content(a, b):
    pd.testing.assert_frame_equal(rows(a), rows(b))
    ids = a.table(columns=["scenario_id"])["scenario_id"].tolist()
    for one, other in zip(a.scenarios(ids), b.scenarios(ids), strict=True):
        np.testing.assert_array_equal(one.agents, other.agents)
        assert_same(one, other)


def test_an_import_measures_and_fills_in_the_category(tmp_path):
    folder = logs(tmp_path / "logs", ["good"] * 4)
    steps = list(import_steps("toy", [folder], tmp_path / "c"))
    assert steps[-1].share == 1 and "12 scenarios" in steps[-1].text
    assert [s.share for s in steps] == sorted(s.share for s in steps)
    corpus = open_corpus(tmp_path / "c", verify=True)
    frame = rows(corpus)
    assert frame["scenario_id"].tolist() == [f"log{i}-{k}" for i in range(4) for k in range(3)]
    assert set(frame["category"]) <= set(CATEGORIES) and frame["source"].tolist() == [
        f"log{i}.toy" for i in range(4) for _ in range(3)]
    assert frame[["ttc_min_s", "comfort_score", "distance_km"]].notna().all(axis=None)
    assert_same(corpus.scenarios(["log2-1"])[0], toy_scenario("log2", 1))


def test_batches_and_commits_do_not_change_the_content(tmp_path, monkeypatch):
    folder = logs(tmp_path / "logs", ["good"] * 7)
    import_logs("toy", [folder], tmp_path / "one")
    monkeypatch.setattr(importing, "BATCH_CELLS", 60)  # two scenarios of 2 agents and 12 steps
    list(import_steps("toy", [folder], tmp_path / "many", commit_scenarios=5))
    one, many = open_corpus(tmp_path / "one"), open_corpus(tmp_path / "many")
    assert len(one.parts) == 1 and len(many.parts) == 4  # commits after files 2, 4, 6 and at the end
    assert_same_content(one, many)


def test_what_is_in_it_is_not_imported_twice(tmp_path):
    folder = logs(tmp_path / "logs", ["good"] * 3)
    import_logs("toy", [folder], tmp_path / "c")
    before = contents(tmp_path / "c")
    result = import_logs("toy", [folder, folder], tmp_path / "c")
    assert (result.n, result.n_sources, result.n_done_before) == (0, 6, 6)
    assert contents(tmp_path / "c") == before
    (folder / "log3.toy").write_text("good")
    assert import_logs("toy", [folder], tmp_path / "c").n == 3
    assert open_corpus(tmp_path / "c").n == 12


def test_overrides_are_part_of_what_was_said(tmp_path):
    folder = logs(tmp_path / "logs", ["good"])
    options = ReadOptions(area="hill", period="before", version="v9")
    import_logs("toy", [folder], tmp_path / "c", options)
    frame = rows(open_corpus(tmp_path / "c"))
    assert set(frame["area"]) == {"hill"} and set(frame["period"]) == {"before"} and set(frame["av_version"]) == {"v9"}
    before = contents(tmp_path / "c")
    other = replace(options, area="harbor")
    with pytest.raises(CorpusError, match=r"log0.toy is in the corpus already, .* A new corpus is needed to change"):
        import_logs("toy", [folder], tmp_path / "c", other)
    result = import_logs("toy", [folder], tmp_path / "c", replace(other, skip_bad=True))
    assert (result.n, result.n_done_before) == (0, 1) and "A new corpus is needed" in result.skipped[0]
    assert contents(tmp_path / "c") == before


def test_the_first_bad_thing_stops_an_import_and_leaves_nothing(tmp_path):
    folder = logs(tmp_path / "logs", ["good", "bad", "good"])
    with pytest.raises(LogError, match=r"log1.toy row 7"):
        import_logs("toy", [folder], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_skip_bad_keeps_the_good_ones_and_the_list(tmp_path):
    folder, told = logs(tmp_path / "logs", ["good", "bad", "good", "double"]), []
    result = import_logs("toy", [folder], tmp_path / "c", ReadOptions(skip_bad=True, on_skip=told.append))
    assert result.n == 8  # 3 + 2 + 3 + 0
    assert list(result.skipped) == ["log1.toy row 7: x is not a number.", *(
        f"log3.toy: scenario 'log0-{k}' is in the corpus already, from log0.toy." for k in range(3))]
    assert sorted(told) == sorted(result.skipped)
    corpus = open_corpus(tmp_path / "c")
    assert corpus.manifest.n_skipped == 4 and corpus.manifest.skipped == result.skipped
    again = import_logs("toy", [folder], tmp_path / "c", ReadOptions(skip_bad=True))
    assert again.n_done_before == 3 and len(again.skipped) == 3  # log3.toy gave nothing, so it is read again
    assert sorted(open_corpus(tmp_path / "c").manifest.skipped) == sorted(corpus.manifest.skipped)


def test_what_was_left_out_of_a_repaired_file_is_forgotten(tmp_path):
    folder = logs(tmp_path / "logs", ["good", "broken", "broken"])
    skip_bad = ReadOptions(skip_bad=True)
    import_logs("toy", [folder], tmp_path / "c", skip_bad)
    assert open_corpus(tmp_path / "c").manifest.n_skipped == 2
    (folder / "log1.toy").write_text("good")
    result = import_logs("toy", [folder], tmp_path / "c", skip_bad)
    assert (result.n, result.n_done_before) == (3, 1)
    manifest = open_corpus(tmp_path / "c", verify=True).manifest
    assert manifest.n_skipped == 1 and manifest.skipped == ("log2.toy: is broken.",)
    assert len(manifest.sources) == 3 and sum(entry.skipped for entry in manifest.sources.values()) == 1


def test_an_import_that_gives_nothing_leaves_no_folder(tmp_path):
    folder = logs(tmp_path / "logs", ["broken"])
    for commit_s in (0.0, 10.0):
        with pytest.raises(LogError, match=r"^The file gave no scenario: log0.toy: is broken\.$"):
            list(import_steps("toy", [folder], tmp_path / "new" / "c", ReadOptions(skip_bad=True), commit_s=commit_s))
        assert not (tmp_path / "new").exists()


def test_work_is_committed_every_few_seconds_or_a_thousand_scenarios():
    assert importing.COMMIT_S <= 5 and importing.COMMIT_SCENARIOS <= 1000
    assert importing.import_steps.__kwdefaults__ == {
        "commit_scenarios": 1000, "commit_s": 5.0, "jobs": 1, "scheduler": None}


def test_the_first_commit_comes_sooner(tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "FIRST_COMMIT_S", 0.0)
    steps = import_steps("toy", [logs(tmp_path / "logs", ["good"] * 3)], tmp_path / "c", commit_s=60.0)
    next(steps)
    assert open_corpus(tmp_path / "c").n == PER_FILE
    next(steps)
    steps.close()
    assert open_corpus(tmp_path / "c", verify=True).n == PER_FILE


@pytest.mark.parametrize(("options", "part"), [
    (ReadOptions(period="2026-W99"), "2026-W99 is no ISO week of 2026"),
    (ReadOptions(period="2025-W53"), "no ISO week"),  # 2025 has 52, 2026 has 53
    (ReadOptions(mapping=Path("m.toml")), "takes no mapping file"),
])
def test_options_that_cannot_be_meant(tmp_path, options, part):
    with pytest.raises(LogError, match=part):
        import_logs("toy", [logs(tmp_path / "logs", ["good"])], tmp_path / "c", options)
    assert not (tmp_path / "c").exists()
    import_logs("toy", [tmp_path / "logs"], tmp_path / "c", ReadOptions(period="2026-W53"))


@pytest.mark.parametrize("flag", ["--area", "--period", "--version", "--corpus"])
def test_empty_flags_are_refused(tmp_path, flag):
    folder = logs(tmp_path / "logs", ["good"])
    with pytest.raises(AVShiftError, match="empty"):
        parse("import", "toy", folder, "--corpus", tmp_path / "c", flag, "")()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("committed", [True, False])
def test_duplicate_ids_name_both_files(tmp_path, committed):
    folder = logs(tmp_path / "logs", ["good", "double"])
    with pytest.raises(CorpusError, match=r"'log0-0' of log1.toy is in the corpus already, from log0.toy"):
        list(import_steps("toy", [folder], tmp_path / "c", commit_scenarios=1 if committed else 100))
    assert (open_corpus(tmp_path / "c").n if committed else not (tmp_path / "c").exists()) == (3 if committed else True)


def test_nothing_to_import_is_said(tmp_path):
    with pytest.raises(LogError, match=r"no format 'xml'\. Choose one of table"):
        import_logs("xml", ["x"], tmp_path / "c")
    with pytest.raises(LogError, match=r"nowhere.toy cannot be read"):
        import_logs("toy", [tmp_path / "nowhere.toy"], tmp_path / "c")
    with pytest.raises(LogError, match="None of the 0 files gave a scenario"):
        import_logs("toy", [logs(tmp_path / "empty", [])], tmp_path / "c")
    assert not (tmp_path / "c").exists()


# Killed and interrupted ----------------------------------------------------------------------------------------------

CHILD = """
import sys, pytest
sys.path.insert(0, {root!r})
from avshift_core.scenario import readers
from tests.scenario import test_importing as toy
readers.READERS["toy"] = readers.Reader("toy", toy.toy_sources, toy.toy_read, "")
from avshift_core.scenario.importing import import_steps
for progress in import_steps("toy", [{folder!r}], {corpus!r}, commit_scenarios=6):
    print(progress.text, flush=True)
"""


def start(folder, corpus):
    code = CHILD.format(root=str(ROOT), folder=str(folder), corpus=str(corpus))
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def wait_for_commits(corpus, count):
    for _ in range(3000):
        file = corpus / "manifest.json"
        if file.exists() and json.loads(file.read_text())["revision"] >= count:
            return
        time.sleep(0.01)
    raise AssertionError("the import commits nothing")


@pytest.mark.parametrize("commits", [1, 3])
def test_a_killed_import_goes_on_where_it_stopped(tmp_path, commits):
    folder, corpus = logs(tmp_path / "logs", ["slow"] * 30), tmp_path / "c"
    child = start(folder, corpus)
    wait_for_commits(corpus, commits)
    child.kill()
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGKILL
    stopped = open_corpus(corpus, verify=True)
    assert 0 < stopped.n < 90 and stopped.n % PER_FILE == 0  # whole files only
    result = import_logs("toy", [folder], corpus)
    assert result.n == 90 - stopped.n and result.n_done_before == stopped.n // PER_FILE
    import_logs("toy", [folder], tmp_path / "undisturbed")
    whole = open_corpus(corpus, verify=True)
    assert_same_content(whole, open_corpus(tmp_path / "undisturbed"))
    on_disk = {str(f.relative_to(corpus)) for f in corpus.rglob("*") if f.is_file()} - {".lock", "manifest.json"}
    assert on_disk == set(whole.manifest.files)


def test_two_imports_at_once(tmp_path):
    folder, corpus = logs(tmp_path / "logs", ["slow"] * 20), tmp_path / "c"
    child = start(folder, corpus)
    wait_for_commits(corpus, 1)
    with pytest.raises(CorpusError, match=f"Another import is writing .*process {child.pid}"):
        import_logs("toy", [folder], corpus)
    child.communicate(timeout=60)
    assert child.returncode == 0 and open_corpus(corpus, verify=True).n == 60


def parse(*argv):
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    add_import(commands)
    add_corpus(commands)
    arguments = parser.parse_args([str(arg) for arg in argv])
    return lambda: arguments.run(arguments)


def test_ctrl_c_leaves_a_sound_corpus(tmp_path, monkeypatch, capsys, request):
    folder, count = logs(tmp_path / "logs", ["good"] * 10), [0]
    plain = readers.READERS["toy"].read
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, handler))

    def interrupted(source, options):
        count[0] += 1
        for k, one in enumerate(plain(source, options)):
            if count[0] == 6 and k == 1:
                os.kill(os.getpid(), signal.SIGINT)
            yield one

    monkeypatch.setitem(readers.READERS, "toy", replace(readers.READERS["toy"], read=interrupted))
    monkeypatch.setattr(importing.import_steps, "__kwdefaults__", {
        **importing.import_steps.__kwdefaults__, "commit_scenarios": 5, "commit_s": 10.0})
    with pytest.raises(SystemExit) as stop:
        parse("import", "toy", folder, "--corpus", tmp_path / "c")()
    assert stop.value.code == 130 and "is sound and holds all that was committed: 12 s" in capsys.readouterr().err
    assert open_corpus(tmp_path / "c", verify=True).n == 12
    with create_or_open(tmp_path / "c"):  # the lock is free
        pass
    assert import_logs("toy", [folder], tmp_path / "c").n == 18


def test_ctrl_c_before_the_first_commit_says_so(tmp_path, monkeypatch, capsys):
    def interrupted(source, options):
        raise KeyboardInterrupt
        yield

    monkeypatch.setitem(readers.READERS, "toy", replace(readers.READERS["toy"], read=interrupted))
    with pytest.raises(SystemExit):
        parse("import", "toy", logs(tmp_path / "logs", ["good"]), "--corpus", tmp_path / "c")()
    assert f"nothing was committed to {tmp_path / 'c'} yet" in capsys.readouterr().err and not (tmp_path / "c").exists()


# Commands ------------------------------------------------------------------------------------------------------------


def test_the_commands_print_and_write(tmp_path, capsys):
    folder = logs(tmp_path / "logs", ["good", "bad"])
    parse("import", "toy", folder, "--corpus", tmp_path / "c", "--area", "hill", "--skip-bad", "--skipped",
          tmp_path / "skipped.txt")()
    out = capsys.readouterr().out
    assert ": 5; files: 2" in out and "log1.toy row 7" in out
    assert (tmp_path / "skipped.txt").read_text() == "log1.toy row 7: x is not a number.\n"
    (folder / "log1.toy").unlink()
    parse("import", "toy", folder, "--corpus", tmp_path / "c", "--area", "hill")()
    assert ": 0; files: 1 (1 was in it already)." in capsys.readouterr().out
    parse("corpus", tmp_path / "c", "--json", tmp_path / "c.json")()
    out, summary = capsys.readouterr().out, json.loads((tmp_path / "c.json").read_text())
    assert "5 scenarios" in out and "hill 5" in out and "warning: 1 scenario or file was left out" in out
    assert summary["n"] == 5 and summary["drives"] == 2 and summary["by"]["area"] == {"hill": 5}
    assert summary["metrics"]["ttc_min_s"]["version"] >= 1 and len(summary["warnings"]) >= 2


def test_corpus_verifies_every_hash(tmp_path):
    import_logs("toy", [logs(tmp_path / "logs", ["good"])], tmp_path / "c")
    file = next((tmp_path / "c" / "states").rglob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorpusError, match="wrong SHA-256"):
        parse("corpus", tmp_path / "c")()


# Ready-made latents --------------------------------------------------------------------------------------------------


def test_latents_are_imported_without_states(tmp_path):
    table = pd.DataFrame({"scenario_id": [f"s{i}" for i in range(40)], "drive_id": [f"d{i % 8}" for i in range(40)],
                          "area": ["harbor", "hill"] * 20, "speed": np.arange(40.0),
                          **{f"z_{k}": np.arange(40) * 10.0 + k for k in range(3)}})
    table.to_csv(tmp_path / "features.csv", index=False)
    assert import_logs("latents", [tmp_path / "features.csv"], tmp_path / "c").n == 40
    corpus = open_corpus(tmp_path / "c", verify=True)
    (model,) = corpus.models
    frame, z = corpus.table(metrics=["speed>10"], latents=model)
    number = frame["scenario_id"].str[1:].astype(int).to_numpy()
    np.testing.assert_array_equal(z, number[:, None] * 10 + np.arange(3))
    np.testing.assert_array_equal(frame["speed>10"], number > 10)
    with pytest.raises(CorpusError, match="come from a table of latents"):
        next(corpus.batches())
    summary = corpus.summary()
    assert summary["n"] == 40 and summary["drives"] == 8 and summary["latents"] == {model: 40}
    assert any("ready-made latents" in sentence for sentence in summary["warnings"])
    assert import_logs("latents", [tmp_path / "features.csv"], tmp_path / "c").n_done_before == 1


@pytest.mark.parametrize(("format", "name", "n"), [
    pytest.param("argoverse2", "argoverse2", 4, marks=needs_data),  # four folders
    pytest.param("nuplan", "nuplan", 10, marks=needs_data),  # 61 s and 69 s, each five windows of at most 15 s
])
def test_real_logs_come_back_as_they_were_read(tmp_path, format, name, n):
    import_logs(format, [DATA / name], tmp_path / "c")
    corpus = open_corpus(tmp_path / "c", verify=True)
    assert corpus.n == n
    for read in readers.read_scenarios(format, DATA / name):
        stored = corpus.scenarios([read.ids.scenario_id])[0]
        assert_same(stored, read.with_ids(category=stored.ids.category))
