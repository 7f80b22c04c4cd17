import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers import READERS, read_scenarios
from avshift_core.scenario.readers import source as source_module
from avshift_core.scenario.readers.source import ReadOptions, Source, find_sources
from avshift_core.scenario.schema import Ids

ROOT = Path(__file__).parents[3]


def write_zip(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_files_of_a_folder_and_of_the_archives_in_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.CSV").write_text("b")
    (tmp_path / "a.csv").write_text("a")
    (tmp_path / "._a.csv").write_text("left behind by a file manager")
    write_zip(tmp_path / "c.zip", {"x/2.csv": "two", "1.csv": "one", "note.txt": "", "__MACOSX/._1.csv": ""})
    found = find_sources(tmp_path, ".csv")
    assert [s.label for s in found] == ["a.csv", "b.CSV", "c.zip:1.csv", "c.zip:x/2.csv"]
    assert [s.read_bytes() for s in found] == [b"a", b"b", b"one", b"two"]
    assert [s.stem for s in found] == ["a", "b", "1", "2"]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_every_compression(tmp_path, compression):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "one " * 99}, compression)
    assert Source(path, "1.csv").read_bytes() == b"one " * 99


def test_the_archive_is_opened_once_and_again_when_it_changes(tmp_path, monkeypatch):
    opened = []
    original = zipfile.ZipFile
    monkeypatch.setattr(source_module.zipfile, "ZipFile", lambda *args: opened.append(args) or original(*args))
    path = tmp_path / "c.zip"
    write_zip(path, {f"{i}.csv": str(i) for i in range(50)})
    opened.clear()
    assert [s.read_bytes() for s in find_sources(path, ".csv")][:2] == [b"0", b"1"]
    assert len(opened) == 1
    write_zip(path, {"0.csv": "changed"})
    assert Source(path, "0.csv").read_bytes() == b"changed"


@pytest.mark.parametrize("name", ["../evil.csv", "a/../../evil.csv", "/etc/evil.csv", "..\\evil.csv", "C:/evil.csv"])
def test_names_that_climb_out(tmp_path, name):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "one", name: "evil"})
    with pytest.raises(LogError, match="points outside of the archive"):
        find_sources(path, ".csv")


def test_a_bomb_is_not_unpacked(tmp_path):
    path = write_zip(tmp_path / "c.zip", {"1.csv": b"0" * 20_000_000})
    with pytest.raises(LogError, match=r"c\.zip:1\.csv would unpack to 20,000,000 bytes from"):
        find_sources(path, ".csv")


def test_a_bomb_that_lies_about_its_size_gives_no_more_than_it_says(tmp_path):
    path = write_zip(tmp_path / "c.zip", {"1.csv": b"0" * 20_000_000})
    data = path.read_bytes().replace(struct.pack("<I", 20_000_000), struct.pack("<I", 1000))
    path.write_bytes(data)
    with pytest.raises(LogError, match=r"c\.zip:1\.csv cannot be read"):
        find_sources(path, ".csv")[0].read_bytes()


def test_encrypted_members(tmp_path):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "one"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # APPNOTE 4.3.7 and 4.3.12: bit 0 of the flags
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(LogError, match=r"c\.zip:1\.csv is encrypted"):
        find_sources(path, ".csv")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_truncated_archives(tmp_path, share):
    path = write_zip(tmp_path / "c.zip", {f"{i}.csv": f"{i}" * 100 for i in range(20)})
    path.write_bytes(path.read_bytes()[:int(share * path.stat().st_size)])
    with pytest.raises(LogError, match=r"c\.zip is not a readable zip archive"):
        find_sources(path, ".csv")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damaged_members(tmp_path, compression):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "".join(str(i * i) for i in range(2000))}, compression)
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(LogError, match=r"c\.zip:1\.csv cannot be read: .*Copy it again"):
        find_sources(path, ".csv")[0].read_bytes()


def test_the_same_name_twice(tmp_path):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("1.csv", "one")
        archive.writestr("1.csv", "another")
    with pytest.raises(LogError, match=r"holds '1\.csv' twice"):
        find_sources(path, ".csv")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("none.csv", "does not exist"), ("note.txt", r"neither a \.csv file nor"), ("empty", r"holds no \.csv file")],
)
def test_paths_without_a_log(tmp_path, name, sentence):
    (tmp_path / "note.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match=sentence):
        find_sources(tmp_path / name, ".csv")


def test_a_file_that_went_away_has_a_sentence(tmp_path):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "one"})
    for gone in (Source(tmp_path / "none.csv"), Source(path, "2.csv")):
        for use in (Source.read_bytes, lambda s: s.key):
            with pytest.raises(LogError, match="cannot be read"):
                use(gone)
        assert not gone.exists()


def test_keys_tell_pieces_and_states_apart(tmp_path):
    path = write_zip(tmp_path / "c.zip", {"1.csv": "one", "2.csv": "two"})
    first, second = find_sources(path, ".csv")
    assert first.key != second.key
    before = first.key
    write_zip(path, {"1.csv": "ONE", "2.csv": "two"})
    assert (first.key != before, second.key) == (True, find_sources(path, ".csv")[1].key)


def test_options_say_what_the_log_does_not():
    ids = Ids("s", "d", day="2026-03-02", area="harbor", av_version="v1")
    assert ReadOptions().apply(ids).period == "2026-W10"
    said = ReadOptions(area="old town", period="spring", version="v2").apply(ids)
    assert (said.area, said.period, said.av_version, said.day) == ("old town", "spring", "v2", "2026-03-02")
    assert ReadOptions().apply(Ids("s", "d")).period == "unknown"


def test_skip_bad_goes_on_and_tells(tmp_path):
    (tmp_path / "1.csv").write_text("TIMESTAMP\n1\n")
    (tmp_path / "2.csv").write_text("")
    told = []
    assert list(read_scenarios("argoverse1", tmp_path, ReadOptions(skip_bad=True, on_skip=told.append))) == []
    assert [sentence.split()[0] for sentence in told] == ["1.csv", "2.csv"]
    with pytest.raises(LogError, match=r"1\.csv has no column"):
        list(read_scenarios("argoverse1", tmp_path))


def test_a_sentence_stays_one_line_whatever_it_quotes(tmp_path):
    (tmp_path / "1.csv").write_text('"TIME\n' + "x" * 10_000 + '",TRACK_ID\n1,2\n')
    with pytest.raises(LogError) as caught:
        list(read_scenarios("argoverse1", tmp_path))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 900


def test_the_registry_holds_six_formats():
    assert list(READERS) == ["table", "argoverse1", "argoverse2", "nuplan", "commonroad", "latents"]
    assert all(reader.name == name and reader.text for name, reader in READERS.items())
    with pytest.raises(LogError, match=r"no format 'waymo'\. Choose one of table, argoverse1"):
        next(read_scenarios("waymo", "."))


def test_the_registry_is_light():
    code = ("import sys, avshift_core.scenario.readers; "
            "print([m for m in ('sqlite3', 'duckdb', 'defusedxml', 'pyarrow.csv') if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
