"""Jobs: asked for twice and done once, cancelled within seconds with all they started, and what failing looks like."""

import os
import time

import pytest

from avshift_core.errors import AVShiftError
from avshift_core.jobs import board as boards
from avshift_core.jobs import kinds
from avshift_core.jobs.board import CANCELLED, DONE, FAILED, QUEUED, RUNNING, Board
from avshift_core.jobs.kinds import Kind
from avshift_core.workspace import Workspace

PATIENCE_S = 60
HERE = "tests.jobs.kinds_for_tests"


@pytest.fixture
def board(tmp_path, monkeypatch):
    """A board whose processes know the kinds of the tests."""
    for name in ("quick", "slow", "refuse", "bug", "die", "chatty"):
        monkeypatch.setitem(kinds.KINDS, name, Kind(f"{HERE}:{name}", name, long=name == "slow"))
    runner = tmp_path / "runner.py"
    runner.write_text(
        "import sys\nfrom avshift_core.jobs import __main__ as job, kinds\n"
        f"for name in ('quick', 'slow', 'refuse', 'bug', 'die', 'chatty'):\n"
        f"    kinds.KINDS[name] = kinds.Kind('{HERE}:' + name, name)\n"
        "job._warm_up = lambda: None\nsys.exit(job.main())\n")
    command = boards.COMMAND
    monkeypatch.setattr(boards, "COMMAND", (command[0], str(runner)))
    made = Board(Workspace(tmp_path / "home"), warm=False)
    yield made
    made.close()


def wait(board, key, *states, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job = board.find(key)
        if job.state in states:
            return job
        time.sleep(0.02)
    raise AssertionError(f"{job} is not {states} after {seconds} s")


def alive(pid) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it ended just now
        return False


def test_a_job_is_done_once_for_all_who_ask(board):
    first, second = (board.ask("quick", {"text": "a"}) for _ in range(2))
    assert first.key == second.key and len(board.jobs()) == 1
    assert wait(board, first.key, DONE).share == 1.0
    assert board.workspace.results.get(first.key).sentence == "a"
    assert board.ask("quick", {"text": "a"}).state == DONE
    assert board.ask("quick", {"text": "b"}).key != first.key


def test_a_result_outlives_the_server(board):
    key = board.ask("quick", {"text": "a"}).key
    wait(board, key, DONE)
    other = Board(board.workspace, warm=False)
    assert other.ask("quick", {"text": "a"}).state == DONE and other.jobs()[0].text == "Kept from before"
    other.close()


def test_cancel_ends_the_job_and_all_it_started_within_three_seconds(board, tmp_path):
    key = board.ask("slow", {"pid_file": str(tmp_path / "pids")}).key
    wait(board, key, RUNNING)
    end = time.monotonic() + PATIENCE_S
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(map(alive, pids))
    asked = time.monotonic()
    board.cancel(key)
    assert board.find(key).state == CANCELLED
    while any(map(alive, pids)):
        assert time.monotonic() < asked + 3.0
        time.sleep(0.05)
    assert board.ask("slow", {"pid_file": str(tmp_path / "pids")}).state in (QUEUED, RUNNING)  # it may be asked again


def test_what_an_analyst_can_cause_is_the_jobs_sentence(board):
    job = wait(board, board.ask("refuse", {"text": "Choose another."}).key, FAILED)
    assert job.error == "Choose another."


def test_a_bug_is_told_and_its_details_are_kept(board):
    job = wait(board, board.ask("bug", {}).key, FAILED)
    assert "ZeroDivisionError: a bug" in job.error
    assert "Traceback" in (board.workspace.folder / "logs" / "jobs.log").read_text()


def test_a_process_that_dies_fails_its_job_and_no_other(board):
    dead, well = board.ask("die", {}), board.ask("quick", {"text": "well"})
    assert "exit code 7" in wait(board, dead.key, FAILED).error
    wait(board, well.key, DONE)


def test_what_libraries_print_is_no_progress(board):
    wait(board, board.ask("chatty", {}).key, DONE)


def test_long_work_leaves_a_place_for_who_waits(board, tmp_path):
    slow = [board.ask("slow", {"pid_file": str(tmp_path / str(i))}) for i in range(2)]
    wait(board, slow[0].key, RUNNING)
    assert board.find(slow[1].key).state == QUEUED
    wait(board, board.ask("quick", {"text": "between"}).key, DONE)
    assert board.find(slow[1].key).state == QUEUED
    board.cancel(slow[0].key)
    wait(board, slow[1].key, RUNNING)
    board.cancel(slow[1].key)


def test_a_full_disk_is_a_sentence(board, monkeypatch, tmp_path):
    (board.workspace.results.folder).rmdir()
    (board.workspace.results.folder).write_text("in the way")  # nothing can be written there
    job = wait(board, board.ask("quick", {"text": "a"}).key, FAILED)
    assert "cannot be made" in job.error or "could not be written" in job.error


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(path.read_bytes()[:-40]), lambda path: path.unlink()],
                         ids=["truncated", "tidied away"])
def test_a_kept_result_that_is_damaged_is_told_apart_and_removed(board, damage):
    kept = board.ask("quick", {"text": "a"}).key
    wait(board, kept, DONE)
    path = board.workspace.results.path(kept)
    damage(path)
    job = wait(board, board.ask("map", {"comparison": kept, "atlas": kept}).key, FAILED)
    assert job.damaged and "Compute the result again" in job.error and not path.exists()
    assert not wait(board, board.ask("refuse", {"text": "No."}).key, FAILED).damaged


def test_an_unknown_kind_is_refused(board):
    with pytest.raises(AVShiftError, match="no kind of job"):
        board.ask("mine_bitcoin", {})


def test_every_kind_can_be_loaded():
    for name, kind in kinds.KINDS.items():
        assert callable(kind.load()), name


def test_another_code_is_another_job(monkeypatch):
    before = kinds.job_key("comparison", {"source": "a"})
    monkeypatch.setattr(kinds, "code_version", lambda: "other")
    assert kinds.job_key("comparison", {"source": "a"}) != before
