import argparse
import json
from types import SimpleNamespace

import pytest

from avshift_core.errors import AVShiftError
from avshift_core.quality.commands import add_quality
from tests.quality.fleet import write_fleet


def nothing_to_encode(url, model, *, views, jobs):
    return
    yield


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`quality ...` with latents that are there already; figures go to a list."""
    latents = {"m.full": lambda x, *_: x, "m.context": lambda x, *_: x}
    url = write_fleet(str(tmp_path / "corpus"), latents, scenarios=640, with_truth=False)
    monkeypatch.setattr("avshift_core.encoder.encode.encode_steps", nothing_to_encode)
    monkeypatch.setattr("avshift_core.encoder.weights.load_model", lambda path: SimpleNamespace(id="m", card={}))
    drawn = []

    def call(*flags):
        parser = argparse.ArgumentParser()
        add_quality(parser.add_subparsers(), lambda quality, folder: drawn.append(folder))
        arguments = parser.parse_args(["quality", url, *map(str, flags)])
        arguments.run(arguments)
        return drawn

    return call


def test_the_report_is_printed_written_and_drawn(run, tmp_path, capsys):
    drawn = run("--json", tmp_path / "q.json", "--figures", tmp_path / "figures", "--event", "ttc_min_s<2")
    body = json.loads((tmp_path / "q.json").read_text())
    assert body["model"] == "m" and body["clusters"]["event"] == "ttc_min_s<2"
    assert drawn == [tmp_path / "figures"]
    assert "Aims:" in capsys.readouterr().out


def test_a_bad_path_is_refused_before_the_work(run, tmp_path):
    with pytest.raises(AVShiftError, match="is not a folder"):
        run("--json", tmp_path / "nowhere" / "q.json")
    with pytest.raises(AVShiftError, match="is not a folder"):
        run("--figures", tmp_path / "nowhere" / "figures")
