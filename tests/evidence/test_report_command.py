"""`report`: both files from the command line, the same from another process, and one sentence for a bad call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from avshift_core.__main__ import main
from tests.latent.weeks import ship, weeks

ROOT = Path(__file__).parents[2]
CALL = ["report", "--corpus", "fleet", "--source", "period=2026-W10", "--target", "period=2026-W11", "--repeats", "1",
        "--classifier", "cells", "--folds", "2", "--n-perm", "99"]


@pytest.fixture(autouse=True)
def fleet(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ship(monkeypatch, tmp_path / "nowhere")
    weeks("fleet", ttc_min_s=np.full(300, 10.0))  # one event varies, which is quick
    return tmp_path


def test_another_process_writes_the_same_files(capsys):
    flags = ["--metric", "discomfort", "--clip", "5", "--threshold", "0.4"]
    assert main([*CALL, *flags, "--html", "a.html", "--json", "a.json"]) == 0
    out = capsys.readouterr().out
    assert "a.html: 0." in out and "Run " in out
    subprocess.run([sys.executable, "-m", "avshift_core", *CALL, *flags, "--html", "b.html", "--json", "b.json"],
                   check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    for kind in ("html", "json"):
        pair = [Path(f"{name}.{kind}").read_text().splitlines() for name in "ab"]
        different = [a for a, b in zip(*pair, strict=True) if a != b]
        assert len(different) <= 1 and all("ade" in line for line in different)  # the dated line, at most
    facts = json.loads(Path("a.json").read_text())
    assert facts["metric"]["B"] == 5 and facts["config"]["B"] == 5 and facts["threshold"] == 0.4
    assert facts["source"]["query"] == "period=2026-W10" and facts["corpus"]["latents"] == "mine"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "give --corpus DIR, and --html FILE or --json FILE or both"),
        (["--html", "no/folder/a.html"], "is not a folder; make it first"),
        (["--html", "a.html", "--json", "fleet"], "fleet cannot be written"),
        (["--html", "a.html", "--metric", "crash"], "There is no event 'crash' in this comparison; found discomfort"),
        (["--html", "a.html", "--metric", "ttc_min_s<3"], "cannot be shown: Metric 'ttc_min_s<3' is 0 in every"),
        (["--html", "a.html", "--threshold", "3"], "The threshold of the claim is 3"),
        (["--html", "a.html", "--group", "drive_id"], "--group speaks of tables"),
        (["--html", "a.html", "--target", "period=2026-W40"], "No scenario of fleet has period=2026-W40"),
        (["--html", "a.html", "--clip", "0"], "B is 0; it must be"),
        (["--html", "a.html", "--sensitivity", "nothing.json"], "nothing.json holds no sensitivity studies"),
    ],
)
def test_bad_calls_exit_with_2_and_one_sentence(fleet, capsys, more, sentence):
    assert main([*CALL, *more]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.strip().count("\n") == 0
    assert not list(fleet.glob("*.html")) and not list(fleet.glob("*.json"))


def test_studies_of_other_cohorts_are_refused(fleet, capsys):
    row = {"study": "s", "setting": "x", "acc": 0.6, "acc_std": 0.0, "gamma_hat": 0.1, "seeds": 1, "values": [0.6]}
    studies = {"rows": [row], "half_width": [], "source": "period=2026-W10", "target": "period=2026-W12",
               "corpus": {"fingerprint": "x", "latents": "mine"}}
    (fleet / "s.json").write_text(json.dumps(studies))
    assert main([*CALL, "--html", "a.html", "--sensitivity", "s.json"]) == 2
    assert "is about another target: period=2026-W12" in capsys.readouterr().err
    from avshift_core.scenario.store.corpus import open_corpus

    studies |= {"target": "period=2026-W11", "corpus": {"fingerprint": open_corpus("fleet").fingerprint,
                                                       "latents": "mine"}}
    (fleet / "s.json").write_text(json.dumps(studies))
    assert main([*CALL, "--html", "a.html", "--sensitivity", "s.json"]) == 0
    assert "0.6000" in (fleet / "a.html").read_text()
