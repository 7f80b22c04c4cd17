"""A model on disk: a folder with the weights (safetensors) and a card in JSON that says how they came about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from avshift_core.config import EncoderConfig
from avshift_core.errors import AVShiftError, ModelError
from avshift_core.files import write_json, write_whole

SHIPPED = Path(__file__).parent / "shipped"
WEIGHTS, CARD = "weights.safetensors", "card.json"
KIND, SCHEMA, ABOUT = "avshift encoder", 1, "avshift"


@dataclass(frozen=True, eq=False)
class Model:
    """An encoder that can be used.

    Attributes:
        id: the first 16 hex digits of the SHA-256 of the weights' file; latents carry it.
        card: data fingerprint, settings, losses, library versions, quality.
        net: the network (encoder/model.py Encoder), in evaluation mode.
    """

    id: str
    folder: Path
    config: EncoderConfig
    card: Mapping[str, Any]
    net: Any


@dataclass(frozen=True)
class ModelFiles:
    """The bytes of a model's two files: what is sent to where its folder is not."""

    folder: str
    weights: bytes = field(repr=False)
    card: bytes = field(repr=False)


def latents_name(model_id: str, view: str) -> str:
    """What a corpus calls the latents of a model and view: latents of two models never share a name.

    >>> latents_name("0123456789abcdef", "context")
    '0123456789abcdef.context'
    """
    return f"{model_id}.{view}"


def load_model(path: str | Path | ModelFiles | None = None) -> Model:
    """The model in a folder; the shipped one without a path. Nothing but safetensors and JSON is ever read."""
    from avshift_core.encoder.model import Encoder

    files = path if isinstance(path, ModelFiles) else read_files(path)
    folder, data = Path(files.folder), files.weights
    card = _parse_card(files.card, folder)
    identity = hashlib.sha256(data).hexdigest()[:16]
    tensors, config = _parse(data, folder / WEIGHTS)
    if card.get("model") != identity:
        raise ModelError(f"{folder / WEIGHTS} is not the file that {CARD} describes: its hash is {identity}, and "
                         f"{card.get('model')} was written. Copy the whole folder again.")
    net = Encoder(config)
    expected = net.state_dict()
    for name, tensor in expected.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            found = "missing" if name not in tensors else f"of shape {tuple(tensors[name].shape)}"
            raise ModelError(f"{folder / WEIGHTS} does not fit this version of AVShift: '{name}' is {found}, and "
                             f"{tuple(tensor.shape)} is needed. Train a model with this version, or use the shipped "
                             "one.")
        if not bool(tensors[name].isfinite().all()):
            raise ModelError(f"{folder / WEIGHTS} holds not-a-number in '{name}'; train again, or use another copy.")
    net.load_state_dict({name: tensors[name].float() for name in expected})
    return Model(identity, folder, config, card, net.eval())


def read_files(folder: str | Path | None = None, identity: str | None = None) -> ModelFiles:
    """The files of a model; with its identity only if the weights are still those."""
    folder = SHIPPED if folder is None else Path(folder)
    card = _read_card(folder)
    _parse_card(card, folder)
    weights = _read(folder / WEIGHTS)
    if identity not in (None, hashlib.sha256(weights).hexdigest()[:16]):
        raise ModelError(f"{folder} has changed since its model was loaded. Start again.")
    return ModelFiles(str(folder), weights, card)


def write_files(files: ModelFiles, folder: Path) -> None:
    """A model into a folder of its own; the card, which makes it one, comes last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in ((WEIGHTS, files.weights), (CARD, files.card)):
            write_whole(folder / name, lambda draft, data=data: Path(draft).write_bytes(data))
    except OSError as error:
        raise ModelError(f"{folder} cannot be made: {error.strerror or error}. Choose another folder.") from None


def read_card(folder: str | Path | None = None) -> dict:
    """The card of a model, without its weights."""
    folder = SHIPPED if folder is None else Path(folder)
    return _parse_card(_read_card(folder), folder)


def _read_card(folder: Path) -> bytes:
    if not (folder / CARD).is_file():
        what = f"it has no {CARD}" if folder.is_dir() else "it is not a folder"
        raise ModelError(f"{folder} is no model: {what}. Give the folder that 'train --out' has written.")
    return _read(folder / CARD)


def _parse_card(data: bytes, folder: Path) -> dict:
    try:
        card = json.loads(data)
    except ValueError:
        raise ModelError(f"{folder / CARD} is damaged: it is not JSON. Copy the whole folder again.") from None
    if not isinstance(card, dict) or card.get("kind") != KIND:
        raise ModelError(f"{folder / CARD} is not the card of an encoder. Give the folder that 'train --out' has "
                         "written.")
    return card


def save_model(folder: Path, net, card: Mapping[str, Any]) -> Model:
    """Write weights, rounded to 16 bits, and the card; then read them back as every user will."""
    from safetensors.torch import save

    net.float()
    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in net.state_dict().items()}
    about = {"kind": KIND, "schema": SCHEMA, "config": asdict(net.config)}
    data = save(tensors, metadata={ABOUT: json.dumps(about)})  # one entry: safetensors writes several in any order
    identity = hashlib.sha256(data).hexdigest()[:16]
    try:
        write_whole(folder / WEIGHTS, lambda draft: Path(draft).write_bytes(data))
        write_json({"kind": KIND, "schema": SCHEMA, "model": identity, **card}, folder / CARD)
    except ModelError:
        raise
    except AVShiftError as error:
        raise ModelError(str(error)) from None
    return load_model(folder)


def update_card(model: Model, **entries: Any) -> None:
    """Write more into a model's card, such as its measured quality; the weights stay as they are."""
    write_json({**model.card, **entries}, model.folder / CARD)


def round_weights(net) -> None:
    """What 16 bits keep of the weights, in place: the network then answers as its saved copy will."""
    for tensor in (*net.parameters(), *net.buffers()):
        tensor.data = tensor.data.half().float()


def read_tensors(data: bytes) -> tuple[dict, dict]:
    """Tensors of a safetensors file, and what our own entry in it says; ValueError when it is no such file."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        about = json.loads(header["__metadata__"][ABOUT])
        if not isinstance(about, dict):
            raise ValueError
        return load(data), about
    except (SafetensorError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}. Give the folder that 'train --out' has "
                         "written.") from None


def _parse(data: bytes, path: Path) -> tuple[dict, EncoderConfig]:
    """Tensors and settings of a weights' file."""
    try:
        tensors, about = read_tensors(data)
    except ValueError:
        raise ModelError(f"{path} is not a safetensors file of AVShift, or it is truncated. Copy it again; files of "
                         "other kinds are never opened.") from None
    if about.get("kind") != KIND:
        raise ModelError(f"{path} holds weights of something else, not of an AVShift encoder. Give another folder.")
    if about.get("schema") != SCHEMA:
        raise ModelError(f"{path} was written with schema {about.get('schema')}, and this version reads {SCHEMA}. "
                         "Update AVShift, or train again.")
    try:
        settings = about["config"]
        config = EncoderConfig(**{f.name: settings[f.name] for f in fields(EncoderConfig) if f.name in settings})
    except (KeyError, TypeError, AVShiftError):
        raise ModelError(f"The settings in {path} are damaged. Copy it again, or train again.") from None
    return tensors, config
