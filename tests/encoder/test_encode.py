import shutil
from dataclasses import replace

import numpy as np
import pytest

import avshift_core.encoder.encode as encode
from avshift_core.__main__ import main
from avshift_core.encoder.encode import embed, encode_steps
from avshift_core.encoder.weights import latents_name
from avshift_core.errors import AVShiftError
from avshift_core.progress import finish
from avshift_core.scenario.store.corpus import open_corpus


@pytest.fixture
def corpus(fleet, tmp_path):
    """A copy of the fleet, to be written to."""
    shutil.copytree(fleet, tmp_path / "corpus")
    return str(tmp_path / "corpus")


def stored(url, model, view):
    return open_corpus(url).table(columns=["scenario_id"], latents=latents_name(model.id, view))


def test_both_views_are_stored_and_are_those_of_embed(corpus, model):
    assert finish(encode_steps(corpus, model, jobs=1)).n == 800
    for view in ("full", "context"):
        table, z = stored(corpus, model, view)
        assert z.dtype == np.float32 and z.shape == (800, 8)
        scenarios = open_corpus(corpus).batches(size=100)
        again = embed(model, scenarios, view)
        ids = [i.scenario_id for b in open_corpus(corpus).batches(size=100) for i in b.ids]
        assert table["scenario_id"].tolist() == ids
        assert np.abs(again - z).max() < 1e-5
    assert np.abs(stored(corpus, model, "full")[1] - stored(corpus, model, "context")[1]).max() > 0.1


def test_two_processes_write_what_one_writes(corpus, fleet, model, tmp_path):
    shutil.copytree(fleet, tmp_path / "other")
    finish(encode_steps(corpus, model, jobs=1, views=["full"]))
    finish(encode_steps(str(tmp_path / "other"), model, jobs=2, views=["full"]))
    assert np.array_equal(stored(corpus, model, "full")[1], stored(tmp_path / "other", model, "full")[1])


def test_an_encoding_that_is_stopped_goes_on(corpus, model, monkeypatch):
    monkeypatch.setattr(encode, "COMMIT_S", 0.0)
    steps = encode_steps(corpus, model, jobs=1, views=["full"])
    next(steps), next(steps)
    steps.close()
    name = latents_name(model.id, "full")
    before = open_corpus(corpus).models[name]
    assert 0 < before < 800
    done = finish(encode_steps(corpus, model, jobs=1, views=["full"]))
    assert done.n == 800 - before and done.n_before == before
    assert open_corpus(corpus).models[name] == 800
    assert finish(encode_steps(corpus, model, jobs=1, views=["full"])).n == 0


def test_the_command_and_the_model_it_names(corpus, model, capsys):
    assert main(["encode", corpus, "--model", str(model.folder), "--jobs", "1", "--view", "context"]) == 0
    out = capsys.readouterr().out
    assert model.id in out and "800" in out
    assert list(open_corpus(corpus).models) == [f"{model.id}.context"]


def test_what_cannot_be_encoded(fleet, model, tmp_path, capsys):
    assert main(["encode", str(tmp_path / "none"), "--model", str(model.folder)]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["encode", str(tmp_path / "empty"), "--model", str(model.folder)]) == 2
    assert "is not a corpus" in capsys.readouterr().err
    assert not list((tmp_path / "empty").iterdir())
    with pytest.raises(AVShiftError, match="'half' is no view"):
        finish(encode_steps(fleet, model, views=["half"]))
    with pytest.raises(AVShiftError, match="jobs is 0"):
        finish(encode_steps(fleet, model, jobs=0))


def test_a_latent_that_is_not_a_number_names_its_scenario(model, batch):
    ego = batch.ego.copy()
    ego[7, :, 3] = 1e30  # no reader lets such a speed through
    with pytest.raises(AVShiftError, match=f"scenario '{batch.ids[7].scenario_id}' is not a number"):
        embed(model, [replace(batch, ego=ego)])


def test_a_full_disk_leaves_the_corpus_as_it_was(corpus, model, monkeypatch):
    import avshift_core.scenario.store.location as location

    before = open_corpus(corpus).manifest

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(location.os, "replace", full)
    with pytest.raises(AVShiftError, match="no space is left"):
        finish(encode_steps(corpus, model, jobs=1))
    monkeypatch.undo()
    assert open_corpus(corpus, verify=True).manifest == before
