"""Results on disk: what is written comes back, nothing but this package's values is ever made, damage is told."""

import json
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest

from avshift_core.archive import ArchiveError, load, save
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.gate import Verdict


def same(a, b) -> bool:
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, np.ndarray):
        return a.dtype.kind == b.dtype.kind and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, pd.DataFrame):
        return a.equals(b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def test_a_whole_analysis_comes_back(clustered_analysis, tmp_path):
    save(clustered_analysis, tmp_path / "a.avs")
    back = load(tmp_path / "a.avs")
    assert same(clustered_analysis, back)
    assert back.local.space is back.space  # what was one object is one again
    assert back.calibrate(3.0) == clustered_analysis.calibrate(3.0)
    assert not back.space.X.flags.writeable


def test_numbers_that_json_does_not_know(tmp_path):
    save(Estimate(np.float64(0.1), float("nan"), float("inf"), np.float32(0.5)), tmp_path / "e.avs")
    back = load(tmp_path / "e.avs")
    assert back.mu == 0.1 and np.isnan(back.lo) and back.hi == np.inf and back.se == 0.5


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text", "missing"])
def test_damage_is_one_sentence(damage, tmp_path, line_analysis):
    path = tmp_path / "a.avs"
    save(line_analysis, path)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[len(data) // 3] ^= 0xFF  # inside of an array: the ZIP's checksum tells
    path.write_bytes({"truncated": data[: len(data) // 2], "flipped": data, "empty": b"", "text": b"no archive",
                      "missing": b""}[damage])
    if damage == "missing":
        path.unlink()
    with pytest.raises(ArchiveError, match="Compute the result again"):
        load(path)


@pytest.mark.parametrize("kind", ["os:system", "subprocess:Popen", "avshift_core.files:write_json", "builtins:eval"])
def test_nothing_but_dataclasses_of_this_package_is_made(kind, tmp_path):
    path = tmp_path / "evil.avs"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("value.json", json.dumps({"schema": 1, "value": {"$": kind, "number": 0, "fields": {}}}))
    with pytest.raises(ArchiveError):
        load(path)


def test_arrays_of_objects_become_text_and_strangers_are_refused(tmp_path):
    save(Verdict("a", True, "b"), tmp_path / "v.avs")
    assert load(tmp_path / "v.avs") == Verdict("a", True, "b")
    with pytest.raises(TypeError, match="set has no place"):
        save(Verdict("a", True, {"b"}), tmp_path / "v.avs")
    assert load(tmp_path / "v.avs") == Verdict("a", True, "b")  # the old one is still there, whole
