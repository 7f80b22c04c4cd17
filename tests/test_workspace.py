"""The dashboard's own folder: lists that two people may change, results that stay within their size, safe names."""

import ctypes
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from avshift_core.errors import AVShiftError
from avshift_core.shift.gate import Verdict
from avshift_core.workspace import Results, SharedList, Workspace, WorkspaceError

MS_RDONLY, MS_REMOUNT = 1, 32  # of mount(2)


def test_changes_of_several_people_are_all_kept(tmp_path):
    names = [f"filter {i}" for i in range(40)]

    def add(name):
        SharedList(tmp_path / "list.json").update(lambda old: {**old, name: name.upper()})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, names))
    assert SharedList(tmp_path / "list.json").read() == {name: name.upper() for name in names}


def test_a_damaged_list_is_not_overwritten(tmp_path):
    path = tmp_path / "list.json"
    path.write_text('{"a": ')
    with pytest.raises(WorkspaceError, match="Restore it"):
        SharedList(path).update(lambda old: {**old, "b": 1})
    assert path.read_text() == '{"a": '


def test_the_least_recently_used_results_go(tmp_path):
    results = Results(tmp_path)
    for i in range(4):
        results.put(str(i), Verdict("x" * 1000, True, ""))
        os.utime(results.path(str(i)), (i, i))
    results.get("0")  # used just now
    results.max_bytes = 2 * results.path("0").stat().st_size
    results.tidy()
    assert [key for key in "0123" if results.has(key)] == ["0", "3"]
    results.clear()
    assert results.count() == results.size() == 0


def test_a_damaged_result_is_removed(tmp_path):
    results = Results(tmp_path)
    results.path("k").write_bytes(b"PK not really")
    with pytest.raises(Exception, match="Compute the result again"):
        results.get("k")
    assert not results.has("k")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a<script>.parquet", "..", "", "con\0trol.csv",
                                  "é ü.csv"])
def test_uploads_stay_in_their_folder(name, tmp_path):
    workspace = Workspace(tmp_path / "home")
    path = workspace.save_upload(name, b"data")
    assert path.read_bytes() == b"data"
    assert path.resolve().parent.parent == (tmp_path / "home" / "uploads").resolve()
    assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="Set AVSHIFT_HOME"):
        Workspace(tmp_path / "file" / "home")


def test_a_folder_that_cannot_be_written_to_is_one_sentence_and_what_is_kept_can_be_read(tiny_disk):
    workspace = Workspace(tiny_disk / "home")
    workspace.results.put("k", Verdict("kept", True, ""))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mount(b"tmpfs", bytes(tiny_disk), b"tmpfs", MS_REMOUNT | MS_RDONLY, b"size=256k") == 0
    assert workspace.results.get("k").name == "kept"
    with pytest.raises(WorkspaceError, match=r"cannot be written to\. Set AVSHIFT_HOME"):
        Workspace(tiny_disk / "home")
    with pytest.raises(AVShiftError, match="cannot be written"):
        workspace.results.put("other", Verdict("new", True, ""))


def test_a_full_disk_loses_nothing(tiny_disk):
    workspace = Workspace(tiny_disk / "home")
    workspace.results.put("k", Verdict("kept", True, ""))
    with pytest.raises(AVShiftError, match=r"No space left on device\. Free some space"):
        workspace.results.put("large", Verdict("x" * 500_000, True, ""))
    with pytest.raises(AVShiftError, match="Free some space"):
        workspace.filters.update(lambda old: {**old, "long": "x" * 500_000})
    assert workspace.results.get("k").name == "kept" and not workspace.results.has("large")
    assert workspace.filters.read() == {} and workspace.results.count() == 1
    assert not [path for path in workspace.folder.rglob(".*") if "lock" not in path.name]


def test_lists_are_plain_json(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.filters.update(lambda old: {**old, "<script>": "period=2026-W10"})
    assert json.loads((tmp_path / "filters.json").read_text()) == {"<script>": "period=2026-W10"}
