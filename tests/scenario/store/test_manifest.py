import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avshift_core.errors import CorpusError
from avshift_core.scenario.store.manifest import (
    Definition,
    FileEntry,
    Manifest,
    Part,
    SourceEntry,
    from_bytes,
    to_bytes,
)
from avshift_core.scenario.store.query import CohortQuery

ID = "0123456789abcdef"


def part(identity=ID, **changes):
    files = {table: FileEntry(f"{table}/day=2026-03-02/area=harbor/{identity}.parquet", 10, "00" * 32)
             for table in ("states", "meta", "metrics")}
    values = {"id": identity, "day": "2026-03-02", "area": "harbor", "n": 3, "files": files, "periods": ("2026-W10",),
              "av_versions": ("v1", "v2"), "metric_set": 0, "column_set": 0}
    return Part(**(values | changes))


def manifest(*parts):
    return Manifest(3, parts, ({"ttc_min_s": Definition(1, "s", 10.0, True)},), ({"scenario_id": "string"},), {"m": 64},
                    {"log": SourceEntry(3, 1)}, ("log: row 7 is bad",), 1, "0.1.0")


def sealed(body):
    """A manifest with a digest that fits: SHA-256 of all that stands before `,"digest"`."""
    text = json.dumps(body)[:-1]
    return f'{text},"digest":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n'.encode()


def body_of(value):
    body = json.loads(to_bytes(value))
    del body["digest"]
    return body


def test_bytes_give_the_manifest_back():
    written = manifest(part())
    assert from_bytes(to_bytes(written), "fleet") == written


def test_it_is_json_with_the_promised_keys():
    body = json.loads(to_bytes(manifest(part())))
    assert body["kind"] == "avshift corpus" and body["schema"] == 1 and body["revision"] == 3
    assert body["parts"][0]["files"]["states"] == {
        "path": f"states/day=2026-03-02/area=harbor/{ID}.parquet", "bytes": 10, "sha256": "00" * 32}
    assert body["metric_sets"] == [{"ttc_min_s": {"version": 1, "unit": "s", "M": 10.0, "needs_hz": True}}]
    assert body["sources"] == {"log": {"n": 3, "skipped": 1}}


def test_fingerprint_changes_with_any_file():
    one = part()
    other = replace(one, files={**one.files, "meta": replace(one.files["meta"], sha256="01" * 32)})
    assert manifest(one).fingerprint != manifest(other).fingerprint
    assert manifest(one).fingerprint == replace(manifest(one), revision=9).fingerprint


@pytest.mark.parametrize(("query", "admitted"), [
    ("", True), ("period=2026-W10", True), ("period=2026-W11", False), ("period=2026-W11|2026-W10", True),
    ("area=hill", False), ("day=2026-03-02,area=harbor,av_version=v2", True), ("av_version=v3", False),
    ("category=general", True), ("day=2026-03-03", False),
])
def test_a_part_is_opened_only_when_it_may_hold_something(query, admitted):
    assert part().admits(CohortQuery.parse(query)) is admitted


@pytest.mark.parametrize("path", [
    "../../etc/passwd", "/etc/passwd", f"states/../../{ID}.parquet", f"states\\..\\{ID}.parquet", f"other/{ID}.parquet",
    f"C:/{ID}.parquet", "states/day=1/area=2/another.parquet", "", f"states/\0/{ID}.parquet",
])
def test_paths_stay_inside_of_the_corpus(path):
    body = body_of(manifest(part()))
    body["parts"][0]["files"]["states"]["path"] = path
    with pytest.raises(CorpusError, match="damaged"):
        from_bytes(sealed(body), "fleet")


@pytest.mark.parametrize("change", [
    lambda b: b.pop("parts"), lambda b: b.update(parts=3), lambda b: b.update(parts=[7]), lambda b: b.update(extra=1),
    lambda b: b["parts"][0].pop("n"), lambda b: b["parts"][0]["files"].pop("meta"), lambda b: b.update(sources=[]),
    lambda b: b["parts"][0].update(metric_set=5), lambda b: b["parts"].append(b["parts"][0]),
    lambda b: b["parts"][0]["files"]["meta"].update(bytes="many"), lambda b: b.update(skipped=None),
])
def test_a_manifest_that_makes_no_sense_is_one_sentence(change):
    body = body_of(manifest(part()))
    change(body)
    with pytest.raises(CorpusError, match=r"manifest\.json of fleet is damaged"):
        from_bytes(sealed(body), "fleet")


def test_a_newer_schema_asks_for_an_update():
    with pytest.raises(CorpusError, match=r"schema 2, and this version reads up to 1\. Update AVShift"):
        from_bytes(sealed({**body_of(manifest(part())), "schema": 2}), "fleet")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_called_truncated(data):
    with pytest.raises(CorpusError, match="truncated or damaged"):
        from_bytes(data, "fleet")


@pytest.mark.parametrize("data", [b"3", b"[]", b'{"a": 1}', b"null"])
def test_other_json_is_no_corpus(data):
    with pytest.raises(CorpusError, match="not the manifest of a corpus"):
        from_bytes(data, "fleet")


@given(st.data())
def test_no_change_of_a_byte_goes_unnoticed(data):
    good = to_bytes(manifest(part()))
    at = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != good[at]))
    with pytest.raises(CorpusError):
        from_bytes(good[:at] + bytes([byte]) + good[at + 1:], "fleet")


@given(st.integers(0, 600))
def test_no_truncation_goes_unnoticed(length):
    good = to_bytes(manifest(part()))
    with pytest.raises(CorpusError):
        from_bytes(good[:min(length, len(good) - 1)], "fleet")
