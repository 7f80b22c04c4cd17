"""README's commands on the encoder work as they are written; they take longest, and have a core of their own."""

import pytest

from tests.test_readme import commands, run


@pytest.mark.slow
def test_quality_and_training(tmp_path):
    for name in ("demo", "encode"):
        run(commands()[name], tmp_path)
    assert "Aims:" in run(commands()["quality"], tmp_path)
    assert (tmp_path / "figures" / "index.html").is_file()
    assert "best of 2 epochs" in run(commands()["train"], tmp_path)
