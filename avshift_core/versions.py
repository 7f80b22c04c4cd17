"""What a result depends on besides data and settings: the engine's own sources, Python and the libraries."""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "torch", "dask", "distributed")


@lru_cache(maxsize=1)
def code_version() -> str:
    """Hash of the engine's sources: a result of other code is not this code's result."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Name -> version of all that must be the same where parts of one work are done."""
    return {"Python": ".".join(platform.python_version_tuple()[:2]), "processor": platform.machine(),
            "AVShift code": code_version(), **{name: _version(name) for name in LIBRARIES}}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
