"""The notebook of a corpus: what is written stays, whoever writes at once, whatever is killed or damaged."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.__main__ import main
from avshift_core.errors import AVShiftError
from avshift_core.notebook import STATUSES, Look, Notebook, NotebookError, chance_of_one, open_notebook
from avshift_core.notebook import file as notebook_file
from avshift_core.notebook.book import MOST_SAVED
from avshift_core.notebook.entries import ASIDE, LONGEST_COMMENT, LONGEST_NAME, MERGED, SAME, SAVED, SavedView
from avshift_core.workspace import Workspace
from tests.latent.weeks import ship, weeks

ROOT = Path(__file__).parent.parent
LOOK = Look("2026-03-02T09:30:00Z", "comparison", "period=P", "period=Q", "mine", "seed=1", "run-0", "data", "localize",
            0.05, 0.02, 0.08, "ell", "config", "0.4.0")
HOSTILE = (
    "<script>alert(1)</script>", "'); DROP TABLE looks; --", "../../etc/passwd", "**bold** [x](http://evil.example)",
    "🚚🚧 cut-ins", "‮right-to-left‬", "משאיות", "{{7*7}} ${x} %s %00", "a" * LONGEST_NAME, "ß" * LONGEST_NAME,
)


@pytest.fixture
def book(tmp_path):
    (tmp_path / "fleet").mkdir()
    return open_notebook(str(tmp_path / "fleet"))


def by_hand(book, *statements):
    """What somebody with another tool does to the file."""
    with closing(sqlite3.connect(book.path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


# Where it lies -------------------------------------------------------------------------------------------------------


def test_it_lies_beside_the_corpus_by_whatever_path_that_is_named(tmp_path, monkeypatch):
    (tmp_path / "fleet").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fleet")
    monkeypatch.chdir(tmp_path)
    names = ("fleet", "./fleet/", str(tmp_path / "fleet"), f"file://{tmp_path}/fleet", "link")
    assert {open_notebook(name).path for name in names} == {tmp_path / "fleet-notes.sqlite"}


def test_without_a_folder_to_write_to_it_lies_in_the_dashboards_own(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path / "home")
    first, other = (open_notebook(f"memory://{name}/fleet", workspace).path for name in "ab")
    assert first.parent == other.parent == tmp_path / "home" / "notebooks" and first != other
    (tmp_path / "fleet").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)  # a folder that cannot be written to, also for root
    own = open_notebook(str(tmp_path / "fleet"), workspace)
    assert own.path.parent == first.parent
    own.record(LOOK)
    assert len(own.looks()) == 1 and not (tmp_path / "fleet-notes.sqlite").exists()


def test_reading_makes_nothing(book):
    assert (book.looks(), book.saved(), book.region_notes("r"), book.history("r", 1)) == ((), (), {}, ())
    assert book.count("P", "Q").all == 0 and book.broken_at() is None and not book.path.exists()


# The ledger ----------------------------------------------------------------------------------------------------------


def test_the_same_run_again_is_no_second_look(book):
    first = book.record(LOOK)
    again = book.record(replace(LOOK, when="2027-01-01T00:00:00Z", fingerprint="more data"))
    assert first == again and book.looks() == (first,) and first.number == 1
    book.record(replace(LOOK, run="run-1", settings="seed=2"))
    book.record(replace(LOOK, run="run-2", source=LOOK.target, target=LOOK.source))
    book.record(replace(LOOK, run="run-3", target="period=R"))
    assert book.count(LOOK.source, LOOK.target) == book.count(LOOK.target, LOOK.source)
    assert (book.count(LOOK.source, LOOK.target).all, book.count(LOOK.source, LOOK.target).same_pair) == (4, 3)
    assert [look.number for look in book.looks()] == [1, 2, 3, 4]


def test_numbers_come_back_as_they_were(book):
    exact = replace(LOOK, gamma_hat=0.1 + 0.2, gamma_lcb=5e-324, gamma_ucb=float("nan"))
    found = book.record(exact)
    assert (found.gamma_hat, found.gamma_lcb, found.gamma_ucb) == (0.1 + 0.2, 5e-324, None)
    assert book.looks() == (found,) and book.broken_at() is None


@pytest.mark.parametrize("statement", [
    "UPDATE looks SET verdict = 'no_shift'", "DELETE FROM looks", "DELETE FROM looks WHERE number = 2",
    "INSERT OR REPLACE INTO looks SELECT number, \"when\", kind, source, target, latents, settings, run, fingerprint, "
    "'no_shift', gamma_hat, gamma_lcb, gamma_ucb, metrics, config, engine, digest FROM looks WHERE number = 2",
    "UPDATE notes SET name = 'other'", "DELETE FROM notes",
    "INSERT OR REPLACE INTO notes SELECT id, run, region, version, 'other', comment, status, changed, aside FROM notes",
])
def test_looks_and_notes_can_only_be_added(book, statement):
    for k in range(3):
        book.record(replace(LOOK, run=f"run-{k}"))
    book.write_note("run-0", 1, name="mine")
    before = book.looks(), book.history("run-0", 1)
    with pytest.raises(sqlite3.IntegrityError, match="can only be added to"):
        by_hand(book, statement)
    assert (book.looks(), book.history("run-0", 1)) == before


@pytest.mark.parametrize("change", ["UPDATE looks SET verdict = 'no_shift' WHERE number = 2",
                                    "DELETE FROM looks WHERE number = 2"])
def test_a_ledger_changed_by_hand_shows_where(book, change):
    for k in range(4):
        book.record(replace(LOOK, run=f"run-{k}"))
    assert book.broken_at() is None
    by_hand(book, "DROP TRIGGER looks_update", "DROP TRIGGER looks_delete", change)
    assert book.broken_at() == 2
    book.record(replace(LOOK, run="run-9"))  # what is added afterwards does not hide it
    assert book.broken_at() == 2


def test_the_chance_of_one_false_alarm():
    """Sum over k >= 1 of the binomial probabilities, here for three looks by hand: 3(0.05)(0.95^2) + 3(0.05^2)(0.95) +
    0.05^3."""
    assert chance_of_one(3, 0.05) == pytest.approx(3 * 0.05 * 0.95**2 + 3 * 0.05**2 * 0.95 + 0.05**3)


# Notes ---------------------------------------------------------------------------------------------------------------


def test_a_note_says_what_was_written_last_and_keeps_its_history(book):
    first = book.write_note("r", 1, name="cut-ins", status="accepted")
    second = book.write_note("r", 1, name="cut-ins by lorries", comment="From the right.\nAsk the fleet.", seen=1)
    assert (first.outcome, second.outcome) == (SAVED, SAVED)
    assert book.region_notes("r") == {1: second.note} and book.region_notes("other") == {}
    assert second.note.comment == "From the right.\nAsk the fleet." and second.note.status == "none"
    assert [(n.version, n.name) for n in book.history("r", 1)] == [(2, "cut-ins by lorries"), (1, "cut-ins")]
    assert book.write_note("r", 1, name=" cut-ins   by lorries", comment=second.note.comment, seen=2).outcome == SAME
    assert book.write_note("r", 2).outcome == SAME  # nothing to say about a region without a note
    assert len(book.history("r", 1)) == 2 and list(book.region_notes("r")) == [1]


def test_whoever_writes_second_loses_nothing(book):
    book.write_note("r", 1, name="old", comment="as it was")
    book.write_note("r", 1, name="hers", comment="as it was", seen=1)
    late = book.write_note("r", 1, name="his", comment="as it was", seen=1)
    assert late.outcome == ASIDE and (late.note.name, late.mine.name) == ("hers", "his")
    assert book.region_notes("r")[1].name == "hers"
    assert [(n.name, n.aside) for n in book.history("r", 1)] == [("his", True), ("hers", False), ("old", False)]
    again = book.write_note("r", 1, name="his", comment="as it was", seen=late.note.version)
    assert again.outcome == SAVED and book.region_notes("r")[1].name == "his"


def test_changes_of_different_parts_are_joined(book):
    book.write_note("r", -1, name="old")
    book.write_note("r", -1, name="old", status="accepted", seen=1)
    joined = book.write_note("r", -1, name="new", comment="seen on video", seen=1)
    assert joined.outcome == MERGED and joined.note.texts == ("new", "seen on video", "accepted")
    assert book.write_note("r", -1, name="new", seen=1).outcome == SAME  # both made the same change


def test_notes_on_earlier_runs_of_the_same_cohorts_are_found(book):
    for run, source in (("old", "period=P"), ("new", "period=P"), ("other", "period=X")):
        book.record(replace(LOOK, run=run, source=source))
        book.write_note(run, 1, name=f"of {run}")
    book.write_note("old", 1, name="of old, renamed", seen=1)
    book.write_note("old", 1, name="at the same time", seen=1)  # kept aside
    book.write_note("old", 2, name="x")
    book.write_note("old", 2, seen=1)  # says nothing any more
    assert [(run, n.region, n.name) for run, n in book.earlier_notes("new", "period=P", "period=Q")] == [
        ("old", 1, "of old, renamed")]
    assert book.earlier_notes("new", "period=P", "period=R") == ()


texts = st.sampled_from(["", "a", "b", "c"])
writes = st.lists(st.tuples(texts, texts, st.sampled_from(STATUSES), st.integers(0, 6)), max_size=6)


@settings(max_examples=40)
@given(writes)
def test_whatever_the_order_every_text_is_in_the_note_or_its_history(tmp_path_factory, sequence):
    book = Notebook(tmp_path_factory.mktemp("n") / "n.sqlite")
    for name, comment, status, seen in sequence:
        before = book.region_notes("r").get(1)
        written = book.write_note("r", 1, name=name, comment=comment, status=status, seen=seen)
        kept = book.history("r", 1)
        said = [part for part in (name, comment, status) if part not in ("", "none")]
        assert all(any(part in old.texts for old in kept) for part in said)
        assert before is None or before in kept  # what somebody else wrote is never gone
        if kept:
            assert written.note == book.region_notes("r")[1]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_people_comes_back_as_it_was(book, text):
    book.write_note(text, 1, name=text, comment=f"{text}\n{text}")
    view = book.save_view(text, text, f"P={'x' * 50}", fingerprint=text, run=text)
    book.record(replace(LOOK, source=text, run=text))
    assert book.region_notes(text)[1].texts == (text, f"{text}\n{text}", "none")
    assert book.saved() == (view,) and view.name == text
    assert book.looks()[0].source == text and book.count(text, LOOK.target).same_pair == 1
    book.rename_view(view, f"{text[:-1]}!")
    assert book.saved()[0].name == f"{text[:-1]}!"


@pytest.mark.parametrize(("texts", "sentence"), [
    ({"name": "a\0b"}, "holds U+0000, which no page can show"), ({"comment": "a\x1b[2J"}, "holds U+001B"),
    ({"name": "\ud800"}, "holds U+D800"), ({"name": "x" * (LONGEST_NAME + 1)}, "has 121 characters, and at most 120"),
    ({"comment": "x" * (LONGEST_COMMENT + 1)}, "4,001 characters"), ({"status": "ignored"}, "'ignored' is no status"),
])
def test_text_that_cannot_be_kept_is_a_sentence(book, texts, sentence):
    with pytest.raises(NotebookError) as raised:
        book.write_note("r", 1, **texts)
    assert sentence in str(raised.value) and not book.path.exists()


# Saved views ---------------------------------------------------------------------------------------------------------


def test_views_are_saved_renamed_and_removed(book):
    query = "P=period%3D2026-W11&Q=period%3D2026-W12&metric=ttc_min_s%3C1.5&scenario=a%26b"
    view = book.save_view("  Lorries   in W12 ", "Regions", query, fingerprint="f", run="r")
    other = book.save_view("Another", "Overview", "", fingerprint="f", run="r")
    assert book.saved() == (other, view) and view.name == "Lorries in W12"
    assert view.query == {"P": "period=2026-W11", "Q": "period=2026-W12", "metric": "ttc_min_s<1.5", "scenario": "a&b"}
    with pytest.raises(NotebookError, match="called 'Another' already"):
        book.rename_view(view, "Another")
    with pytest.raises(NotebookError, match="called 'Another' already"):
        book.save_view("Another", "Regions", "", fingerprint="f", run="r")
    with pytest.raises(NotebookError, match="no name yet"):
        book.save_view(" \t", "Regions", "", fingerprint="f", run="r")
    with pytest.raises(NotebookError, match="has 9,000 characters"):
        book.save_view("Long", "Regions", "x" * 9000, fingerprint="f", run="r")
    book.rename_view(view, "Lorries")
    assert [(v.name, v.version) for v in book.saved()] == [("Another", 1), ("Lorries", 2)]
    with pytest.raises(NotebookError, match="it is called 'Lorries' now"):
        book.remove_view(view)  # somebody had it under its old name
    book.remove_view(book.saved()[1])
    with pytest.raises(NotebookError, match="removed meanwhile"):
        book.rename_view(view, "Gone")
    assert [v.name for v in book.saved()] == ["Another"]


@pytest.mark.parametrize("address", ["", "&&&", "=", "%", "x" * 99_999, "a=1&" * 5000, "embed=true&embed_options=x"])
def test_an_address_that_is_none_is_empty(address):
    assert set(SavedView(1, "n", "p", address, "f", "r", "", "", 1).query) <= {"a"}


def test_there_is_an_end_to_views(book, monkeypatch):
    monkeypatch.setattr("avshift_core.notebook.book.MOST_SAVED", 2)
    for name in "ab":
        book.save_view(name, "Overview", "", fingerprint="f", run="r")
    with pytest.raises(NotebookError, match="2 views are saved already"):
        book.save_view("c", "Overview", "", fingerprint="f", run="r")
    assert MOST_SAVED == 1000


# Several at once, and hard ends --------------------------------------------------------------------------------------


def hammer(path: Path, who: int, n: int) -> list[str]:
    """One of several people who write as fast as they can; returns what was acknowledged."""
    book, told = Notebook(path), []
    for i in range(n):
        text = f"{who}-{i}"
        seen = book.region_notes("run").get(1)
        book.write_note("run", 1, name=text, seen=seen.version if seen else 0)
        book.record(replace(LOOK, run=text))
        book.save_view(text, "Overview", "", fingerprint="f", run=text)
        told.append(text)
    return told


@pytest.mark.parametrize("pool", ["threads", "processes"])
def test_many_who_write_at_once_lose_nothing(book, pool):
    people, each = 4, 12
    executor = ThreadPoolExecutor(people) if pool == "threads" else ProcessPoolExecutor(people, get_context("spawn"))
    with executor:
        told = [text for found in executor.map(hammer, [book.path] * people, range(people), [each] * people)
                for text in found]
    assert len(told) == people * each
    assert {note.name for note in book.history("run", 1)} == {look.run for look in book.looks()} == set(told)
    assert {view.name for view in book.saved()} == set(told)
    versions = [note.version for note in book.history("run", 1)]
    assert versions == list(range(len(told), 0, -1)) and book.broken_at() is None


WRITER = """
import sys
from pathlib import Path
from avshift_core.notebook import Notebook
book, i = Notebook(Path(sys.argv[1])), int(sys.argv[2])
while True:
    seen = book.region_notes("run").get(1)
    book.write_note("run", 1, name=f"note {i}", comment="x" * 3000, seen=seen.version if seen else 0)
    print(i, flush=True)
    i += 1
"""


def test_a_killed_server_keeps_all_that_was_acknowledged(book):
    acknowledged = []
    for moment in (0.05, 0.13, 0.21, 0.08):  # after the first acknowledgement; kills fall into the middle of writes
        process = subprocess.Popen([sys.executable, "-c", WRITER, book.path, str(10_000 * len(acknowledged))], cwd=ROOT,
                                   stdout=subprocess.PIPE, text=True)
        acknowledged.append(process.stdout.readline().strip())
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split()
        process.stdout.close()
        process.wait()
    kept = {note.name.removeprefix("note ") for note in book.history("run", 1)}
    assert len(acknowledged) > 8 and set(acknowledged) <= kept
    assert len(kept) <= len(acknowledged) + 4  # at most one a kill was written and not told
    with closing(sqlite3.connect(book.path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


HALF = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")  # what is written goes to the file before it is committed
db.execute("BEGIN IMMEDIATE")
for k in range(300):
    db.execute("INSERT INTO saved VALUES (NULL, ?, 'p', ?, 'f', 'r', '', '', 1)", (str(k), "x" * 4000))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_half_done_is_undone_by_whoever_reads(book):
    view = book.save_view("Whole", "Overview", "", fingerprint="f", run="r")
    before = book.path.read_bytes()
    subprocess.run([sys.executable, "-c", HALF, book.path], check=False)
    journal = Path(f"{book.path}-journal")
    assert journal.exists() and book.path.read_bytes() != before  # it had begun to change the file
    assert book.saved() == (view,) and not journal.exists()


# A file that cannot be used ------------------------------------------------------------------------------------------


def every_way(book):
    """All that a notebook can be asked."""
    view = SavedView(1, "n", "p", "", "f", "r", "", "", 1)
    return {
        "looks": book.looks, "count": lambda: book.count("P", "Q"), "notes": lambda: book.region_notes("r"),
        "history": lambda: book.history("r", 1), "saved": book.saved, "record": lambda: book.record(LOOK),
        "write": lambda: book.write_note("r", 1, name="x"), "rename": lambda: book.rename_view(view, "m"),
        "save": lambda: book.save_view("n", "p", "", fingerprint="f", run="r"),
        "remove": lambda: book.remove_view(view),
    }


def damage_header(path):
    path.write_bytes(b"not a database at all" * 500)


def damage_middle(path):
    data = bytearray(path.read_bytes())
    data[4096:4096 * 3] = b"\xff" * 8192
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:5000])


def newer(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def of_others(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")


def without_tables(path):
    with closing(sqlite3.connect(path)) as db:
        for table in ("looks", "notes", "saved"):
            db.execute(f"DROP TABLE {table}")


@pytest.mark.parametrize(("harm", "sentence"), [
    (damage_header, "is damaged"), (damage_middle, "is damaged"), (cut, "is damaged"), (without_tables, "is damaged"),
    (newer, "was written with schema 99, and this version reads up to 1. Update AVShift"),
    (of_others, "is not a notebook of AVShift. Move it elsewhere"),
])
def test_a_file_that_cannot_be_used_is_a_sentence_and_is_never_touched(book, harm, sentence):
    for k in range(20):
        book.record(replace(LOOK, run=f"run-{k}"))
        book.write_note("r", k, name="n" * 100)
    book.save_view("n", "p", "", fingerprint="f", run="r")
    harm(book.path)
    before, said = book.path.read_bytes(), []
    for ask in every_way(book).values():
        try:
            ask()
        except NotebookError as error:
            said.append(str(error))
    assert len(said) >= 5  # of a damaged page, what lies elsewhere can still be read
    assert all(sentence in text and str(book.path) in text and "not touched" in text for text in said)
    assert book.path.read_bytes() == before


def test_rows_that_no_notebook_has_are_damage(book):
    book.write_note("r", 1, name="x")
    by_hand(book, "INSERT INTO notes VALUES (9, 'r', 'one', 2, 'x', '', 'none', '', 0)")
    with pytest.raises(NotebookError, match="is damaged"):
        book.region_notes("r")


def test_a_file_that_may_only_be_read_is_read(book, monkeypatch):
    book.write_note("r", 1, name="x")
    connect = notebook_file._connect
    monkeypatch.setattr(notebook_file, "_connect", lambda path, mode: connect(path, "ro"))  # what root is never told
    assert book.region_notes("r")[1].name == "x"
    with pytest.raises(NotebookError, match=r"cannot be written .* see that the file and its folder may be written to"):
        book.write_note("r", 1, name="y", seen=1)


def test_a_folder_that_is_gone_or_a_file_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotebookError, match="cannot be written"):
        Notebook(tmp_path / "file" / "n.sqlite").record(LOOK)
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotebookError, match="folder"):
        Notebook(tmp_path / "folder").record(LOOK)


def test_a_full_disk_is_a_sentence_and_what_was_saved_stays(book, monkeypatch):
    book.write_note("r", 1, name="kept")
    connect = notebook_file._connect

    def full(path, mode):
        db = connect(path, mode)
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
        return db

    monkeypatch.setattr(notebook_file, "_connect", full)
    with pytest.raises(NotebookError, match=r"no space is left. What was saved before is intact"):
        for k in range(100):
            book.write_note("r", 2, name=f"n{k}", comment="x" * LONGEST_COMMENT, seen=k)
    monkeypatch.undo()
    assert book.region_notes("r")[1].name == "kept"
    seen = book.region_notes("r")[2].version if 2 in book.region_notes("r") else 0
    assert book.write_note("r", 2, name="later", seen=seen).outcome == SAVED


def test_a_writer_that_does_not_end_is_a_sentence(book, monkeypatch):
    book.record(LOOK)
    monkeypatch.setattr(notebook_file, "BUSY_S", 0.1)
    with closing(sqlite3.connect(book.path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotebookError, match=r"being written by somebody else for more than 0.1 s. Try again."):
            book.write_note("r", 1, name="x")
        assert len(book.looks()) == 1  # readers do not wait for it
    assert book.write_note("r", 1, name="x").outcome == SAVED


def test_an_empty_file_is_an_empty_notebook(book):
    book.path.touch()
    assert book.looks() == () and book.record(LOOK).number == 1 and len(book.looks()) == 1


# The command line ----------------------------------------------------------------------------------------------------

W10, W11 = "period=2026-W10,area=harbor", "period=2026-W11,area=harbor"


@pytest.fixture
def fleet(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ship(monkeypatch, tmp_path / "nowhere")
    return weeks("fleet")


def compare(*more):
    return main(["compare", "--corpus", "fleet", "--source", W10, "--target", W11, "--repeats", "1", "--classifier",
                 "cells", "--n-perm", "99", *more])


def test_compare_writes_the_ledger_and_ledger_prints_it(fleet, capsys):
    assert main(["ledger", "fleet"]) == 0
    assert capsys.readouterr().out == "No comparison was made on fleet yet.\n"
    assert not Path("fleet-notes.sqlite").exists()
    assert compare("--json", "r.json") == compare() == compare("--seed", "1") == 0
    assert "Look 2 at fleet; 2 of 2 with these two cohorts" in capsys.readouterr().out
    assert main(["ledger", "fleet", "--json", "l.json"]) == 0
    out, found, report = capsys.readouterr().out, json.loads(Path("l.json").read_text()), json.loads(
        Path("r.json").read_text())
    first, second = found["looks"]
    assert (first["source"], first["target"], first["latents"], first["kind"]) == (W10, W11, "mine", "comparison")
    assert first["fingerprint"] == found["fingerprint"] == fleet.fingerprint and found["whole"]
    test = report["global_test"]
    assert [first[key] for key in ("verdict", "gamma_hat", "gamma_lcb", "gamma_ucb")] == [
        test[key] for key in ("verdict", "gamma_hat", "gamma_lcb", "gamma_ucb")]
    assert first["settings"] == "classifier=cells, repeats=1, n_perm=99" and second["settings"].startswith("seed=1")
    assert first["config"] != second["config"] and first["run"] != second["run"]
    assert out.count("\n") == 4 and f"-> {W11} by mine: {test['verdict']} advantage" in out
    assert "2 looks at fleet" in out and "with probability 10%" in out  # 1 - 0.95^2


def test_a_ledger_that_cannot_be_written_loses_no_result(fleet, capsys):
    Path("fleet-notes.sqlite").write_text("damaged, and long enough to be looked at" * 100)
    assert compare("--json", "r.json") == 0
    captured = capsys.readouterr()
    assert "this look is not in the ledger of fleet" in captured.err and "is damaged" in captured.err
    assert Path("r.json").exists() and "advantage" in captured.out
    assert main(["ledger", "fleet"]) == 2 and "is damaged" in capsys.readouterr().err
    assert main(["ledger", "nowhere"]) == 2 and "nowhere does not exist" in capsys.readouterr().err
    assert main(["ledger", "fleet", "--json", "no/l.json"]) == 2


def test_nothing_in_a_ledger_steers_the_terminal(fleet, capsys):
    open_notebook("fleet").record(replace(LOOK, source="\x1b[2J\x07evil\n"))
    assert main(["ledger", "fleet"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out and "?[2J?evil?" in out


def test_a_newer_ledger_is_a_sentence_of_the_engine(book):
    book.record(LOOK)
    newer(book.path)
    with pytest.raises(AVShiftError, match="Update AVShift"):
        book.looks()
