"""The commands `quality` and `ablate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from avshift_core.config import VIEWS
from avshift_core.errors import ConfigError
from avshift_core.files import check_writable, write_json
from avshift_core.quality.clusters import EVENT, SECOND_EVENT
from avshift_core.scenario.commands import add_scheduler, finish_or_stop


def add_quality(commands, draw: Callable[[object, Path], object]) -> None:
    """`quality CORPUS`.

    Args:
        draw: (quality, folder) -> figures in that folder; plots stand to the right of this layer and are handed in.
    """
    parser = commands.add_parser("quality", help="can this latent space be trusted?")
    parser.add_argument("corpus", metavar="CORPUS", help="folder or URL of a corpus with states, best one that the "
                        "encoder was not trained on")
    parser.add_argument("--model", type=Path, metavar="MODEL", help="folder of a model (default: the shipped one)")
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="MODEL", help="model of another "
                        "training seed, for stability; may be repeated")
    parser.add_argument("--view", choices=VIEWS, default=VIEWS[0], help=f"which latents (default: {VIEWS[0]})")
    parser.add_argument("--most", type=int, default=20_000, metavar="N", help="scenarios of the sample, whole drives "
                        "(default: 20000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of every random choice (default: 0)")
    parser.add_argument("--event", default=EVENT, metavar="METRIC", help="events of the clusters, such as hard_brake "
                        f"or ttc_min_s<1.5 (default: {EVENT})")
    parser.add_argument("--second-event", default=SECOND_EVENT, metavar="METRIC", help="the second source of events, "
                        f"measured on other drives (default: {SECOND_EVENT})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report here, too")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write the figures here; made when it is not there")
    parser.add_argument("--write-card", action="store_true", help="write a summary into the model's card")
    add_scheduler(parser)
    parser.set_defaults(run=partial(run_quality, draw=draw))


def run_quality(arguments: argparse.Namespace, draw: Callable[[object, Path], object]) -> None:
    from avshift_core.encoder.weights import load_model, update_card
    from avshift_core.quality.describe import describe
    from avshift_core.quality.report import quality_steps, summary, to_json

    if arguments.json is not None:
        check_writable(arguments.json)
    if arguments.figures is not None:
        check_writable(arguments.figures.with_name(f".{arguments.figures.name}.draft"))
        if arguments.figures.exists() and not arguments.figures.is_dir():
            raise ConfigError(f"{arguments.figures} is a file; give a folder for the figures.")
    model, also = load_model(arguments.model), [load_model(path) for path in arguments.also]
    steps = quality_steps(arguments.corpus, model, also=also, view=arguments.view, most=arguments.most,
                          seed=arguments.seed, events=(arguments.event, arguments.second_event),
                          scheduler=arguments.scheduler)
    quality = finish_or_stop(steps, lambda: f"{arguments.corpus} is sound and keeps the latents that were committed; "
                                            "no report was written.")
    if arguments.json is not None:
        write_json(to_json(quality), arguments.json)
    if arguments.figures is not None:
        draw(quality, arguments.figures)
    print(describe(quality))
    if arguments.write_card and quality.trained_share > 0:
        raise ConfigError(f"The card of {model.id} was left as it is: the model was trained on "
                          f"{quality.trained_share:.0%} of this corpus, so nothing here is held out. Measure it on "
                          "another one.")
    if arguments.write_card:
        update_card(model, quality=summary(quality))


def add_ablate(commands) -> None:
    """`ablate CORPUS`."""
    from avshift_core.encoder.commands import add_settings
    from avshift_core.quality.ablation import MOST, REPLACED, SMALL

    parser = commands.add_parser("ablate", help="the paper's table of latent sizes, over training seeds")
    parser.add_argument("corpus", metavar="CORPUS", help="folder or URL of a corpus with states and several periods")
    parser.add_argument("--out", type=Path, default=Path("build/ablation"), metavar="DIR", help="folder of the models; "
                        "those that are finished there are used again (default: build/ablation)")
    parser.add_argument("--source", metavar="P", help="cohort, such as period=2026-W11,area=harbor (default: the "
                        "second period of the first area)")
    parser.add_argument("--target", metavar="Q", help="cohort (default: the third period of the first area)")
    parser.add_argument("--metric", default="discomfort", help="metric of LIS-L1 (default: discomfort)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="trainings of each setting (default: 3)")
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help="scenarios to train on, of the other "
                        f"periods (default: {MOST})")
    parser.add_argument("--jobs", type=int, metavar="K", help="processes (default: one a core)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table here, too")
    add_scheduler(parser)
    add_settings(parser, leave_out=REPLACED, defaults=SMALL)
    parser.set_defaults(run=run_ablate)


def run_ablate(arguments: argparse.Namespace) -> None:
    from avshift_core.encoder.commands import config_of
    from avshift_core.quality.ablation import ablation_steps, describe, to_json

    if arguments.json is not None:
        check_writable(arguments.json)
    steps = ablation_steps(arguments.corpus, arguments.out, config_of(arguments), source=arguments.source,
                           target=arguments.target, metric=arguments.metric, seeds=range(arguments.seeds),
                           most=arguments.most, jobs=arguments.jobs, scheduler=arguments.scheduler)
    ablation = finish_or_stop(steps, lambda: f"the trainings that are finished are in {arguments.out}. Run the same "
                                             "command again to go on.")
    if arguments.json is not None:
        write_json(to_json(ablation), arguments.json)
    print(describe(ablation))
