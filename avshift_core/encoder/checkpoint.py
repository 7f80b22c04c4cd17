"""The state of a training in one safetensors file: weights, both moments of Adam, and the loss so far."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from avshift_core.encoder.weights import ABOUT, read_tensors
from avshift_core.errors import AVShiftError, ModelError
from avshift_core.files import write_whole

CHECKPOINT, BEST, RECORDS = "checkpoint.safetensors", "best.safetensors", "scenes.bin"
KIND, SCHEMA = "avshift training", 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """tensors: of the networks and the optimizer; about: step, history, settings and data."""

    tensors: dict[str, torch.Tensor]
    about: dict[str, Any]

    def restore_weights(self, run) -> None:
        for name, net in (("encoder", run.encoder), ("decoder", run.decoder)):
            net.load_state_dict({key: self.tensors[f"{name}.{key}"] for key in net.state_dict()})

    def restore(self, run) -> None:
        """Put a run where this one was."""
        self.restore_weights(run)
        state = run.optimizer.state_dict()
        state["state"] = {i: {key: self.tensors[f"adam.{i}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
                          for i in range(len(state["param_groups"][0]["params"]))}
        run.optimizer.load_state_dict(state)
        run.step, run.history = self.about["step"], list(self.about["history"])
        run.sums = np.array(self.about["sums"])


def write_checkpoint(run, out: Path, name: str = CHECKPOINT) -> None:
    """The file appears whole, or the one before stays."""
    tensors = {f"{part}.{key}": value for part, net in (("encoder", run.encoder), ("decoder", run.decoder))
               for key, value in net.state_dict().items()}
    for i, state in run.optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{i}.{key}": value for key, value in state.items()}
    about = {"kind": KIND, "schema": SCHEMA, "step": run.step, "history": run.history, "sums": run.sums.tolist(),
             "config": asdict(run.config), "data": run.data}
    data = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()},
                metadata={ABOUT: json.dumps(about)})
    try:
        write_whole(out / name, lambda draft: Path(draft).write_bytes(data))
    except AVShiftError as error:
        raise ModelError(f"{error} The checkpoint before it is kept: go on with --resume.") from None


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file, or one sentence on why it is none."""
    try:
        tensors, about = read_tensors(path.read_bytes())
        if (about.get("kind"), about.get("schema")) != (KIND, SCHEMA):
            raise ValueError
        return Checkpoint(tensors, about)
    except (OSError, ValueError):
        raise ModelError(f"{path} is not a checkpoint of this version, or it is damaged. Begin anew in another "
                         "folder.") from None
