"""Environments of the peers, made at first use; nothing of them is ever installed into the product's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]


def python_of(name: str) -> str:
    """The Python of an environment that holds exactly benchmarks/requirements/NAME.txt.

    Raises:
        OSError: the installation failed; the message is pip's last word.
    """
    def make(folder: Path) -> None:
        _call(sys.executable, "-m", "venv", folder)
        _install(folder / "bin" / "python", name)

    return str(_made(name, make) / "bin" / "python")


def packages_of(name: str) -> str:
    """A folder with what benchmarks/requirements/NAME.txt adds to this Python's own packages."""
    return str(_made(name, lambda folder: _install(sys.executable, name, "--target", folder)))


def _made(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of an environment, made when it is not there or was made from other requirements."""
    wanted = (BENCHMARKS / "requirements" / f"{name}.txt").read_text()
    folder = BENCHMARKS / ".venvs" / name
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing the environment {name} ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        make(folder)
        stamp.write_text(wanted)
    return folder


def _install(python, name: str, *where) -> None:
    _call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *where,
          "-r", BENCHMARKS / "requirements" / f"{name}.txt")


def _call(*command) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise OSError(" ".join(errors[:1])[:200] or f"exit code {done.returncode}")
