import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import avshift_core.encoder.train as train
from avshift_core.__main__ import main
from avshift_core.encoder.checkpoint import CHECKPOINT, RECORDS
from avshift_core.encoder.records import prepare_steps
from avshift_core.encoder.team import Team
from avshift_core.encoder.train import train_steps
from avshift_core.encoder.weights import load_model
from avshift_core.errors import AVShiftError, ModelError
from avshift_core.progress import finish
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from tests.encoder.conftest import SMALL


def test_the_loss_falls_and_the_card_tells_how(model, fleet):
    losses = model.card["losses"]
    assert losses[-1]["held_out"] < losses[0]["held_out"]
    corpus = open_corpus(fleet)
    data = model.card["data"]
    assert data["fingerprint"] == corpus.fingerprint
    assert data["n"] + 1 <= corpus.n and data["n_valid_drives"] >= 1
    assert set(data["states"]) == {part.files["states"].sha256 for part in corpus.parts}
    assert model.card["config"]["latent_dim"] == 8 and model.card["seed"] == SMALL.seed
    assert {"torch", "numpy", "avshift"} <= set(model.card["libraries"])
    assert sorted(p.name for p in model.folder.iterdir()) == ["card.json", "weights.safetensors"]


def test_a_training_that_is_stopped_goes_on_to_the_same_result(fleet, model, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 4)
    steps = train_steps(fleet, tmp_path / "m", SMALL, jobs=1)
    for progress in steps:
        if progress.text.startswith("epoch 2"):  # in the middle of an epoch, some steps after a checkpoint
            break
    steps.close()
    assert (tmp_path / "m" / CHECKPOINT).exists()
    again = finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1, resume=True))
    assert again.id == model.id
    assert again.card["losses"] == model.card["losses"]


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_to_the_same_weights(fleet, tmp_path):
    """SIGKILL between two checkpoints, with two processes; the second one must not live on."""
    flags = ["--latent-dim", "6", "--d-model", "32", "--n-heads", "2", "--n-layers", "1", "--batch-size", "32",
             "--epochs", "8", "--patience", "8", "--valid-share", "0.2", "--jobs", "2"]
    command = lambda out, *more: [sys.executable, "-m", "avshift_core", "train", fleet, "--out",  # noqa: E731
                                  str(tmp_path / out), *flags, *more]
    root = Path(__file__).parents[2]
    killed = subprocess.Popen(command("a"), cwd=root, start_new_session=True)
    while not (tmp_path / "a" / CHECKPOINT).exists():
        assert killed.poll() is None
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "a" / "weights.safetensors").exists()
    for out, *more in (("a", "--resume"), ("b",)):
        subprocess.run(command(out, *more), cwd=root, check=True, capture_output=True)
    assert load_model(tmp_path / "a").id == load_model(tmp_path / "b").id
    with pytest.raises(ProcessLookupError):  # nobody of the killed session is left
        os.killpg(killed.pid, 0)


def test_another_seed_gives_another_model(fleet, model, tmp_path):
    other = finish(train_steps(fleet, tmp_path / "m", replace(SMALL, seed=1, epochs=1), jobs=1))
    assert other.id != model.id


def test_the_gradient_does_not_depend_on_the_number_of_processes(fleet, tmp_path):
    records = finish(prepare_steps(open_corpus(fleet), tmp_path / "scenes.bin", 0.2))
    rows = np.flatnonzero(~records.held_out)[:200]
    found = []
    for jobs in (1, 2):
        team = Team(replace(SMALL, batch_size=200), records, jobs)
        try:
            numbers = team.gradient(rows, 5)
            found.append((numbers, team.held_out(rows, "context"), team.desk.flat_gradient()))
            shares = np.array_split(rows, 3)  # 200 scenarios in shares of about 64
            mean = sum(team.desk.gradient(share, (5, k)) * len(share) / 200 for k, share in enumerate(shares))
            assert np.allclose(numbers, mean, rtol=1e-6)
        finally:
            team.close()
    assert np.array_equal(found[0][0], found[1][0]) and found[0][1] == pytest.approx(found[1][1], rel=1e-6)
    assert torch.equal(found[0][2], found[1][2]) and found[0][2].abs().max() > 0


def test_a_process_that_is_lost_is_said(fleet, tmp_path):
    records = finish(prepare_steps(open_corpus(fleet), tmp_path / "scenes.bin", 0.2))
    team = Team(replace(SMALL, batch_size=128), records, 2)
    try:
        team._others[0][0].kill()
        team._others[0][0].join()
        with pytest.raises(ModelError, match="was ended from outside"):
            team.gradient(np.arange(128), 0)
    finally:
        team.close()


def test_held_out_drives_are_whole_and_the_same_for_every_model(fleet, tmp_path):
    corpus = open_corpus(fleet)
    records = finish(prepare_steps(corpus, tmp_path / "a", 0.3))
    assert records.n == corpus.n
    drives = [corpus.table(columns=["drive_id"], part=part.id)["drive_id"].tolist() for part in corpus.parts]
    of = np.array([drives[p][r] for p, r in zip(records.part, records.row, strict=True)])
    assert not set(of[records.held_out]) & set(of[~records.held_out])
    fewer = finish(prepare_steps(corpus, tmp_path / "b", 0.3, most=400))
    some = np.array([drives[p][r] for p, r in zip(fewer.part, fewer.row, strict=True)])
    assert 200 < fewer.n < 600
    assert set(some[fewer.held_out]) <= set(of[records.held_out])
    scenes, extra = records.read(np.array([5, 3]))
    alone, _ = records.read(np.array([3]))
    assert scenes.n == 2 and np.array_equal(scenes.ego[1], alone.ego[0]) and extra.shape[0] == 2


def test_a_loss_that_is_not_a_number_names_the_batch_and_keeps_the_checkpoint(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 2)
    honest = Team.gradient

    def poisoned(self, rows, step):
        numbers = honest(self, rows, step)
        return numbers * np.nan if step == 5 else numbers

    monkeypatch.setattr(Team, "gradient", poisoned)
    out = tmp_path / "m"
    with pytest.raises(ModelError, match=r"not a number in batch 6 of epoch 1, with scenarios '.+', '.+', '.+' and 61"):
        finish(train_steps(fleet, out, SMALL, jobs=1))
    kept = (out / CHECKPOINT).read_bytes()
    with pytest.raises(ModelError, match=r"unfinished training\. Go on with --resume"):
        finish(train_steps(fleet, out, SMALL, jobs=1))
    assert (out / CHECKPOINT).read_bytes() == kept
    monkeypatch.setattr(Team, "gradient", honest)
    finish(train_steps(fleet, out, replace(SMALL, learning_rate=5e-4), jobs=1, resume=True))


def test_gradients_that_are_not_numbers_never_reach_the_weights(fleet, tmp_path, monkeypatch):
    honest = Team.gradient

    def poisoned(self, rows, step):
        numbers = honest(self, rows, step)
        if step == 3:
            self.desk.parameters[0].grad[0] = np.nan
        return numbers

    monkeypatch.setattr(Team, "gradient", poisoned)
    with pytest.raises(ModelError, match="batch 4 of epoch 1"):
        finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1))


def test_a_full_disk_at_a_checkpoint_keeps_the_one_before(fleet, tmp_path, monkeypatch):
    import avshift_core.files as files

    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 3)
    honest, calls = files.os.replace, []

    def full(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return honest(*arguments)

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(ModelError, match=r"No space left on device.*The checkpoint before it is kept"):
        finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1))
    monkeypatch.undo()
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [CHECKPOINT, RECORDS]
    assert finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1, resume=True)).id


def test_going_on_with_other_scenarios_is_refused(fleet, tmp_path):
    steps = train_steps(fleet, tmp_path / "m", SMALL, jobs=1)
    while not (tmp_path / "m" / CHECKPOINT).exists():
        next(steps)
    steps.close()
    for other in ({"most": 300}, {"query": "area=harbor"}):
        with pytest.raises(ModelError, match="began on other scenarios"):
            finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1, resume=True, **other))


def test_a_full_disk_between_weights_and_card_loses_nothing(fleet, model, tmp_path, monkeypatch):
    import avshift_core.encoder.weights as weights

    def full(*_):
        raise AVShiftError("card.json could not be written: No space left on device.")

    monkeypatch.setattr(weights, "write_json", full)
    with pytest.raises(ModelError, match="No space left"):
        finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1))
    monkeypatch.undo()
    assert finish(train_steps(fleet, tmp_path / "m", SMALL, jobs=1, resume=True)).id == model.id


@pytest.mark.parametrize("batch_size", [2, 57])
def test_batches_and_shares_of_any_size(fleet, tmp_path, batch_size):
    config = replace(SMALL, batch_size=batch_size, epochs=1)
    found = finish(train_steps(fleet, tmp_path / "m", config, jobs=2, most=130))
    assert np.isfinite([entry["held_out"] for entry in found.card["losses"]]).all()


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"latent_dim": 9}, "began with latent_dim 8, and now it is 9"),
    ({"seed": 4}, "began with seed 0, and now it is 4"),
    ({"epochs": 2}, "began with epochs 3, and now it is 2"),
])
def test_going_on_with_other_settings_is_refused(fleet, tmp_path, changes, sentence):
    steps = train_steps(fleet, tmp_path / "m", SMALL, jobs=1)
    while not (tmp_path / "m" / CHECKPOINT).exists():
        next(steps)
    steps.close()
    with pytest.raises(ModelError, match=sentence):
        finish(train_steps(fleet, tmp_path / "m", replace(SMALL, **changes), jobs=1, resume=True))


def test_what_cannot_be_trained_on(fleet, model, tmp_path, capsys):
    run = lambda *more: main(["train", *map(str, more)])  # noqa: E731
    assert run(fleet, "--out", model.folder) == 2
    assert "holds a finished model already" in capsys.readouterr().err
    assert run(tmp_path / "nothing", "--out", tmp_path / "m") == 2
    assert "does not exist" in capsys.readouterr().err
    assert run(fleet, "--out", tmp_path / "m", "--d-model", "30") == 2
    assert "multiple of the heads" in capsys.readouterr().err
    assert run(fleet, "--out", tmp_path / "m", "--batch-size", "5000") == 2
    assert "at least one batch of 5000" in capsys.readouterr().err
    assert run(fleet, "--out", tmp_path / "m", "--latent-dim", "1") == 2
    assert "latent_dim is 1; it must be from 2 to 1024" in capsys.readouterr().err
    assert run(fleet, "--out", fleet) == 2  # into the corpus itself
    assert "holds other files" in capsys.readouterr().err
    assert run(fleet, "--out", tmp_path / "n", "--only", "area=old_town,period=2026-W10", "--most", "1") == 2
    assert "to train on" in capsys.readouterr().err
    (tmp_path / "m" / CHECKPOINT).write_bytes(b"something else")
    assert run(fleet, "--out", tmp_path / "m", "--resume") == 2
    assert "is not a checkpoint" in capsys.readouterr().err


def test_a_corpus_without_drives(fleet, tmp_path, capsys):
    source = open_corpus(fleet)
    with create_or_open(str(tmp_path / "c")) as writer:
        for batch in source.batches(size=400):
            ids = tuple(replace(i, drive_id="unknown") for i in batch.ids)
            n = batch.n
            writer.add(replace(batch, ids=ids), {"actor": np.full(n, -1)}, {"ttc_min_s": np.ones(n)}, source=ids[0].day)
    assert main(["train", str(tmp_path / "c"), "--out", str(tmp_path / "m")]) == 2
    assert "without a drive id" in capsys.readouterr().err


def test_the_command_trains_a_model_that_loads(fleet, tmp_path, capsys):
    flags = ["--latent-dim", "6", "--d-model", "16", "--n-heads", "2", "--n-layers", "1", "--batch-size", "64",
             "--epochs", "1", "--valid-share", "0.2", "--jobs", "2", "--most", "500"]
    assert main(["train", fleet, "--out", str(tmp_path / "m"), *flags]) == 0
    found = load_model(tmp_path / "m")
    assert found.id in capsys.readouterr().out
    assert json.loads((tmp_path / "m" / "card.json").read_text())["data"]["most"] == 500
