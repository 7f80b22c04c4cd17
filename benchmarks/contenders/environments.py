"""Environments of the peers, made at first use; nothing of them is ever installed into the product's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]


def python_of(name: str) -> str:
    """The Python of an environment that holds exactly benchmarks/requirements/NAME.txt.

    Raises:
        OSError: the installation failed; the message is pip's last word.
    """
    wanted = (BENCHMARKS / "requirements" / f"{name}.txt").read_text()
    folder = BENCHMARKS / ".venvs" / name
    stamp, python = folder / "installed.txt", folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"installing the environment {name} ...", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _call(sys.executable, "-m", "venv", folder)
    _call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
          "-r", BENCHMARKS / "requirements" / f"{name}.txt")
    stamp.write_text(wanted)
    return str(python)


def _call(*command) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise OSError(" ".join(errors[:1])[:200] or f"exit code {done.returncode}")
