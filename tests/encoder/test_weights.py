import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from avshift_core.config import EncoderConfig
from avshift_core.encoder.encode import embed
from avshift_core.encoder.weights import SHIPPED, load_model, read_card, read_tensors, update_card
from avshift_core.errors import ModelError


@pytest.fixture
def copy(model, tmp_path):
    shutil.copytree(model.folder, tmp_path / "copy")
    return tmp_path / "copy"


def rewrite(folder, about=None, **tensors):
    """Write the weights again with other tensors or other words about them, and a card that fits."""
    import hashlib

    path = folder / "weights.safetensors"
    data = path.read_bytes()
    _, old = read_tensors(data)
    save_file({**load_file(path), **tensors}, path, metadata={"avshift": json.dumps({**old, **(about or {})})})
    card = json.loads((folder / "card.json").read_text())
    card["model"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    (folder / "card.json").write_text(json.dumps(card))


def test_a_model_comes_back_with_the_same_latents(model, copy, batch):
    again = load_model(copy)
    assert again.id == model.id and again.config == model.config
    assert np.array_equal(embed(model, [batch]), embed(again, [batch]))


def test_weights_of_another_model(model, copy):
    tensors = load_file(copy / "weights.safetensors")
    data = (copy / "weights.safetensors").read_bytes()
    (copy / "weights.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"is not the file that card\.json describes"):
        load_model(copy)
    assert tensors


@pytest.mark.parametrize("cut", [0, 5, 100, -10])
def test_truncated_or_foreign_files_are_never_opened(copy, cut):
    path = copy / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:cut] if cut else b"")
    with pytest.raises(ModelError, match="is not a safetensors file of AVShift, or it is truncated"):
        load_model(copy)


def test_a_pickle_is_refused(copy):
    torch.save({"a": torch.zeros(3)}, copy / "weights.safetensors")
    with pytest.raises(ModelError, match="is not a safetensors file"):
        load_model(copy)


def test_other_weights_shapes_and_schemas(copy):
    rewrite(copy, latent=torch.zeros(1), **{"latent.weight": torch.zeros(3, 3)})
    with pytest.raises(ModelError, match=r"'latent.weight' is of shape \(3, 3\), and \(8, 64\) is needed"):
        load_model(copy)
    rewrite(copy, {"schema": 9})
    with pytest.raises(ModelError, match="written with schema 9, and this version reads 1"):
        load_model(copy)
    rewrite(copy, {"schema": 1, "config": {"latent_dim": "many"}})
    with pytest.raises(ModelError, match=r"settings in .* are damaged"):
        load_model(copy)
    rewrite(copy, {"kind": "a language model"})
    with pytest.raises(ModelError, match="holds weights of something else"):
        load_model(copy)


def test_weights_that_are_not_numbers(copy):
    rewrite(copy, **{"latent.bias": torch.full((8,), torch.nan)})
    with pytest.raises(ModelError, match=r"holds not-a-number in 'latent\.bias'"):
        load_model(copy)


def test_missing_and_damaged_cards(copy, tmp_path):
    (copy / "card.json").write_text("{")
    with pytest.raises(ModelError, match="it is not JSON"):
        load_model(copy)
    (copy / "card.json").write_text("[]")
    with pytest.raises(ModelError, match="is not the card of an encoder"):
        load_model(copy)
    (copy / "card.json").unlink()
    with pytest.raises(ModelError, match=r"is no model: it has no card\.json"):
        load_model(copy)
    with pytest.raises(ModelError, match="is no model: it is not a folder"):
        load_model(tmp_path / "nowhere")


def test_the_card_takes_more_and_keeps_the_rest(copy):
    before = load_model(copy)
    update_card(before, quality={"precision": 0.9})
    after = load_model(copy)
    assert after.card["quality"] == {"precision": 0.9} and after.card["losses"] == before.card["losses"]


def test_the_shipped_model_is_the_papers():
    config = load_model().config
    assert (config.latent_dim, config.d_model, config.n_layers, config.n_heads) == (64, 128, 5, 8)
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 4 * 1024**2
    card = read_card()
    assert card["quality"]["trained_share"] == 0 and len(card["quality"]["aims"]) >= 9
    assert load_model().config == EncoderConfig()  # what the defaults give is what is shipped
