"""Results on disk without pickle: frozen dataclasses of this package as one ZIP of JSON, npy and Parquet.

Reading an archive makes nothing but dataclasses of `avshift_core`, arrays, tables and plain values.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from avshift_core.errors import AVShiftError
from avshift_core.files import write_whole

SCHEMA, TREE, PACKAGE = 1, "value.json", "avshift_core"
KIND = "$"  # key of a JSON object that stands for something JSON does not know


class ArchiveError(AVShiftError):
    """A file is no archive, or not a whole one."""


def save(value: Any, path: str | Path) -> None:
    """Write a dataclass; what it holds twice is written once. The file appears whole or not at all."""
    write_whole(path, lambda draft: _write(value, draft))


def load(path: str | Path) -> Any:
    """The value of `save`, with read-only arrays."""
    try:
        with zipfile.ZipFile(path) as file:
            return _Reader(file).value(json.loads(file.read(TREE))["value"])
    except FileNotFoundError:
        raise ArchiveError(f"{path} does not exist. Compute the result again.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, zipfile.BadZipFile) as error:
        reason = error or type(error).__name__
        raise ArchiveError(f"{path} cannot be read: {reason}. Compute the result again.") from None


def _write(value: Any, draft: str) -> None:
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as file:
        tree = _Writer(file).value(value)
        file.writestr(TREE, json.dumps({"schema": SCHEMA, "value": tree}))


class _Writer:
    def __init__(self, file: zipfile.ZipFile) -> None:
        self.file, self.seen = file, {}  # id of a value -> its number, and the value, so that the id stays its own

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, tuple):
            return {KIND: "tuple", "items": [self.value(item) for item in value]}
        if isinstance(value, Mapping):
            return {KIND: "dict", "items": [[self.value(k), self.value(v)] for k, v in value.items()]}
        if id(value) in self.seen:
            return {KIND: "same", "number": self.seen[id(value)][0]}
        number = len(self.seen)
        self.seen[id(value)] = number, value
        return {"number": number, **self._new(value, number)}

    def _new(self, value: Any, number: int) -> dict:
        if isinstance(value, np.ndarray):
            with self.file.open(f"{number}.npy", "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.asarray(value, str) if value.dtype == object else value,
                                          allow_pickle=False)
            return {KIND: "array"}
        if isinstance(value, pd.DataFrame):
            data = io.BytesIO()
            value.to_parquet(data, index=False)
            self.file.writestr(f"{number}.parquet", data.getvalue())
            return {KIND: "table", "rows": len(value)}
        if is_dataclass(value) and type(value).__module__.startswith(PACKAGE):
            return {KIND: f"{type(value).__module__}:{type(value).__qualname__}",
                    "fields": {f.name: self.value(getattr(value, f.name)) for f in fields(value)}}
        raise TypeError(f"{type(value).__name__} has no place in an archive")


class _Reader:
    def __init__(self, file: zipfile.ZipFile) -> None:
        self.file, self.made = file, {}

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree[KIND]
        if kind == "tuple":
            return tuple(self.value(item) for item in tree["items"])
        if kind == "dict":
            return {self.value(k): self.value(v) for k, v in tree["items"]}
        if kind == "same":
            return self.made[tree["number"]]
        made = self.made[tree["number"]] = self._new(kind, tree)
        return made

    def _new(self, kind: str, tree: dict) -> Any:
        if kind == "array":
            array = np.lib.format.read_array(io.BytesIO(self.file.read(f"{tree['number']}.npy")), allow_pickle=False)
            array.setflags(write=False)
            return array
        if kind == "table":
            table = pd.read_parquet(io.BytesIO(self.file.read(f"{tree['number']}.parquet")))
            return table if len(table.columns) else pd.DataFrame(index=range(tree["rows"]))
        module, _, name = kind.partition(":")
        if module.split(".")[0] != PACKAGE:
            raise ValueError(f"'{kind}' is not of this package")
        made = import_module(module)
        for part in name.split("."):
            made = getattr(made, part)
        if not (isinstance(made, type) and is_dataclass(made)):
            raise ValueError(f"'{kind}' is no dataclass")
        return made(**{name: self.value(item) for name, item in tree["fields"].items()})
