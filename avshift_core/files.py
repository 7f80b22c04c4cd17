"""Files that appear whole or not at all, and JSON without not-a-number."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from avshift_core.errors import AVShiftError


def write_json(value: dict, path: str | Path) -> None:
    """Write plain values, numpy scalars and arrays; not-a-number becomes null."""
    data = json_bytes(value)
    write_whole(path, lambda draft: Path(draft).write_bytes(data))


def json_bytes(value: dict) -> bytes:
    """What `write_json` writes."""
    return (json.dumps(plain(value), indent=2, allow_nan=False) + "\n").encode()


def check_writable(path: str | Path) -> None:
    """Refuse an output path before hours of work, not after."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise AVShiftError(f"{folder} is not a folder; make it first, or write {Path(path).name} elsewhere.")
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise AVShiftError(f"{path} cannot be written; choose a file in a folder you may write to.")


def write_whole(path: str | Path, writer: Callable[[str], object]) -> None:
    """Let `writer` fill a draft beside the file, then put the draft in its place."""
    path = Path(path)
    check_writable(path)
    draft = None
    try:
        handle, draft = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
        os.close(handle)
        writer(draft)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except OSError as error:
        raise AVShiftError(
            f"{path} could not be written: {error.strerror or error}. Free some space or choose another folder; "
            "nothing was left half written."
        ) from None
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)


def plain(value):
    """numpy values -> what JSON knows; not-a-number and infinity -> None.

    >>> plain({"a": np.float32(0.5), "b": (np.nan, np.int8(3))})
    {'a': 0.5, 'b': [None, 3]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
