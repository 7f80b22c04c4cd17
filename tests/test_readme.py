"""What README tells a newcomer to type works as it is written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def blocks(language=""):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def run(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path):
    shell = [shlex.split(line) for block in blocks() for line in _joined(block) if line.startswith(".venv/bin/python")]
    by_name = {c[3] if c[1] == "-m" else "write": c[1:] for c in shell}
    assert set(by_name) == {"write", "compare", "sensitivity", "benchmark"}
    run(by_name["write"], tmp_path)
    assert " regions:" in run(by_name["compare"], tmp_path)
    assert (tmp_path / "report.json").is_file() and (tmp_path / "rows.parquet").is_file()
    run(["-c", blocks("python")[0]], tmp_path)


def test_every_command_and_file_named_exists():
    from avshift_core.__main__ import _parser

    for name in ("compare", "sensitivity", "benchmark"):
        assert f"-m avshift_core {name}" in TEXT
    for path in re.findall(r"`((?:avshift_core|latent|shift)/[\w/]+\.py)`", TEXT):
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
