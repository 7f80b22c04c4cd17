"""The commands `train` and `encode`."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from avshift_core.config import VIEWS, EncoderConfig
from avshift_core.scenario.commands import add_scheduler, finish_or_stop

NONE: Mapping = MappingProxyType({})


def add_train(commands) -> None:
    """`train CORPUS --out MODEL`."""
    parser = commands.add_parser("train", help="train an encoder on a corpus")
    parser.add_argument("corpus", metavar="CORPUS", help="folder or URL of a corpus with states")
    parser.add_argument("--out", required=True, type=Path, metavar="MODEL", help="folder of the model; made when it is "
                        "not there")
    parser.add_argument("--resume", action="store_true", help="go on with an unfinished training in MODEL, or begin "
                        "one where there is none")
    parser.add_argument("--only", default="", metavar="QUERY", help="train on these scenarios, such as "
                        "period=2026-W10|2026-W11 (default: all)")
    parser.add_argument("--most", type=int, metavar="N", help="train on about N scenarios, whole drives (default: all)")
    parser.add_argument("--jobs", type=int, metavar="K", help="processes (default: one a core)")
    add_settings(parser)
    parser.set_defaults(run=run_train)


def add_settings(parser: argparse.ArgumentParser, leave_out: Collection[str] = (), defaults: Mapping = NONE) -> None:
    """One flag for each field of the encoder's config, but for those left out; some with other defaults."""
    for setting in fields(EncoderConfig):
        if setting.name in leave_out:
            continue
        default = defaults.get(setting.name, setting.default)
        text = f"{setting.metadata['help']} (default: {default})".replace("%", "%%")
        parser.add_argument(f"--{setting.name.replace('_', '-')}", dest=setting.name, type=type(setting.default),
                            default=default, choices=setting.metadata["choices"], help=text)


def config_of(arguments: argparse.Namespace) -> EncoderConfig:
    """The settings that the flags give; the defaults for those without one."""
    return EncoderConfig(**{f.name: getattr(arguments, f.name) for f in fields(EncoderConfig) if f.name in arguments})


def add_encode(commands) -> None:
    """`encode CORPUS`."""
    parser = commands.add_parser("encode", help="write the latents of a corpus beside it")
    parser.add_argument("corpus", metavar="CORPUS", help="folder or URL of a corpus with states")
    parser.add_argument("--model", type=Path, metavar="MODEL", help="folder of a model (default: the shipped one)")
    parser.add_argument("--view", action="append", choices=VIEWS, help="only this view; may be repeated "
                        "(default: both)")
    parser.add_argument("--jobs", type=int, metavar="K", help="processes (default: one a core)")
    add_scheduler(parser)
    parser.set_defaults(run=run_encode)


def run_train(arguments: argparse.Namespace) -> None:
    from avshift_core.encoder.checkpoint import CHECKPOINT
    from avshift_core.encoder.train import train_steps

    config = config_of(arguments)
    steps = train_steps(arguments.corpus, arguments.out, config, query=arguments.only, most=arguments.most,
                        resume=arguments.resume, jobs=arguments.jobs)
    model = finish_or_stop(steps, lambda: (
        f"the last checkpoint is in {arguments.out}. Run the same command with --resume to go on."
        if (arguments.out / CHECKPOINT).exists() else "there was no checkpoint yet. Run the same command again."))
    data, losses = model.card["data"], model.card["losses"]
    best = losses[model.card["best_epoch"] - 1]
    print(f"Model {model.id} in {model.folder}: {data['n']:,} scenarios of {data['drives']:,} drives, best of "
          f"{len(losses)} epochs was {best['epoch']}, with a loss of {best['held_out']:.3f} on "
          f"{data['n_valid_drives']:,} held-out drives.")


def run_encode(arguments: argparse.Namespace) -> None:
    from avshift_core.encoder.encode import encode_steps
    from avshift_core.encoder.weights import load_model

    model = load_model(arguments.model)
    steps = encode_steps(arguments.corpus, model, views=tuple(arguments.view or VIEWS), jobs=arguments.jobs,
                         scheduler=arguments.scheduler)
    done = finish_or_stop(steps, lambda: f"{arguments.corpus} is sound and keeps the latents that were committed. Run "
                                         "the same command again to go on.")
    before = f" ({done.n_before:,} had them already)" if done.n_before else ""
    print(f"Scenarios of {arguments.corpus} encoded by model {model.id}: {done.n:,}{before}.")
    if done.n_without_states:
        print(f"{done.n_without_states:,} scenarios come from tables of latents and have no states to encode.")
