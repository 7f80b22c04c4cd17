"""What README tells a newcomer to type works as it is written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def blocks(language=""):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def run(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands():
    """Name -> arguments of every command that README shows."""
    shell = [shlex.split(line) for block in blocks() for line in _joined(block) if line.startswith(".venv/bin/python")]
    return {_name(command): command[1:] for command in shell}


def test_every_command_of_the_readme_is_known():
    assert set(commands()) == {"write", "compare", "sensitivity", "benchmark", "demo", "corpus", "import", "encode",
                               "compare --corpus", "versions", "monitor", "report", "ledger", "quality", "train",
                               "scheduler", "worker", "encode --scheduler"}


@pytest.mark.slow
def test_the_commands_on_tables(tmp_path):
    run(commands()["write"], tmp_path)
    assert " regions:" in run(commands()["compare"], tmp_path)
    assert (tmp_path / "report.json").is_file() and (tmp_path / "rows.parquet").is_file()
    run(["-c", blocks("python")[0]], tmp_path)


@pytest.mark.slow
def test_the_commands_on_a_corpus(tmp_path):
    """Training and quality: tests/test_readme_encoder.py."""
    assert "4,000 scenarios added" in run(commands()["demo"], tmp_path)
    assert "2026-W17" in run(commands()["corpus"], tmp_path)
    drives(200).to_parquet(tmp_path / "drives.parquet")
    assert "fleet: 2" in run(commands()["import"], tmp_path)
    assert "4,000" in run(commands()["encode"], tmp_path)
    assert "2026-W11 harbor" in run(commands()["compare --corpus"], tmp_path)
    assert "performance" in run(commands()["versions"], tmp_path)
    assert "2026-W12" in run(commands()["monitor"], tmp_path)
    run(commands()["report"], tmp_path)
    assert (tmp_path / "pack.html").read_text().startswith("<!doctype html>")
    assert "2026-W11" in run(commands()["ledger"], tmp_path)
    for program in blocks("python")[1:]:
        run(["-c", program], tmp_path)


def _name(command):
    """What tells a command from the others; `dask` has some, too (tests/test_cluster.py)."""
    if command[1] != "-m":
        return "write"
    flag = {"compare": "--corpus", "encode": "--scheduler"}.get(command[3])
    return f"{command[3]} {flag}" if flag in command else command[3]


def drives(steps):
    """Two cars that drive one behind the other for 20 s (two windows), with the names that need no mapping."""
    t = np.arange(steps) / 10
    ego = pd.DataFrame({"t_s": t, "agent_id": "ego", "is_ego": True, "x_m": 10 * t, "y_m": 0.0})
    return pd.concat([ego, ego.assign(agent_id="lead", is_ego=False, x_m=10 * t + 25)]).assign(drive_id="d1")


def test_every_command_and_file_named_exists():
    from avshift_core.__main__ import _parser

    for path in re.findall(r"`((?:avshift_core|latent|shift|scenario|encoder|quality)/[\w/]+\.py)`", TEXT):
        found = ROOT / path if path.startswith("avshift_core") else ROOT / "avshift_core" / path
        assert found.is_file(), path
    for image in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", TEXT):
        assert (ROOT / image).is_file(), image
    assert _parser()


def _joined(block):
    """Shell lines with their continuations, a quoted program over several lines as one."""
    lines, open_line = [], ""
    for line in block.replace("\\\n", " ").splitlines():
        open_line = f"{open_line}\n{line}" if open_line else line
        if open_line.count('"') % 2 == 0:
            lines.append(open_line.split("  #")[0])
            open_line = ""
    return lines
