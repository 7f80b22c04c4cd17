"""The commands `demo`, `import` and `corpus`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from avshift_core.errors import AVShiftError
from avshift_core.files import check_writable, write_json, write_whole
from avshift_core.progress import finish_with_bar

DEMO = "build/demo"  # build/ is ignored by git
SHOWN = 20  # sentences about what was left out; --skipped writes all


def add_import(commands) -> None:
    """`import FORMAT PATH... --corpus DIR`."""
    from avshift_core.scenario.readers import READERS

    parser = commands.add_parser("import", help="read logs into a corpus", epilog="formats: " + "; ".join(
        f"{name}: {reader.text}" for name, reader in READERS.items()))
    parser.add_argument("format", choices=list(READERS), metavar="FORMAT", help=", ".join(READERS))
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or zip archives")
    parser.add_argument("--corpus", required=True, metavar="DIR", help="folder or URL; made when it is not there")
    parser.add_argument("--area", help="area of all scenarios, instead of the log's")
    parser.add_argument("--period", help="period of all scenarios, instead of the ISO week of their day")
    parser.add_argument("--version", help="AV version of all scenarios, instead of the log's")
    parser.add_argument("--mapping", type=Path, metavar="FILE", help="which column is what (formats table and latents)")
    parser.add_argument("--skip-bad", action="store_true", help="leave out what cannot be read, and tell")
    parser.add_argument("--skipped", type=Path, metavar="FILE", help="write one line for each thing left out here")
    parser.add_argument("--jobs", type=int, metavar="K", help="processes that read files, each of which holds a whole "
                        "one (default: 1)")
    add_scheduler(parser)
    parser.set_defaults(run=run_import)


def add_corpus(commands) -> None:
    """`corpus DIR`."""
    parser = commands.add_parser("corpus", help="what is in a corpus; every file is compared with its hash")
    parser.add_argument("corpus", metavar="DIR", help="folder or URL of a corpus")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it here, too")
    parser.set_defaults(run=run_corpus)


def add_demo(commands) -> None:
    """`demo`."""
    parser = commands.add_parser("demo", help="simulate a fleet with known truth")
    parser.add_argument("--out", default=DEMO, metavar="DIR", help=f"folder or URL of the corpus (default: {DEMO})")
    parser.add_argument("--scenarios", type=int, default=40_000, metavar="N", help="in all (default: 40000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of every random choice (default: 0)")
    parser.add_argument("--effect-share", type=float, default=0.1, metavar="X", help="share of the contexts' variance "
                        "that lies between drives, days and vehicles, 0 to 0.5 (default: 0.1)")
    parser.add_argument("--jobs", type=int, default=None, metavar="K", help="processes (default: one a core)")
    add_scheduler(parser)
    parser.set_defaults(run=run_demo)


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """`--scheduler ADDRESS`, of every command whose work can be done elsewhere."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers do the work, such as "
                        "tcp://10.0.0.7:8786, or 'local' for a cluster on this machine (default: processes of this "
                        "machine)")


def run_import(arguments: argparse.Namespace) -> None:
    from avshift_core.scenario.importing import import_steps
    from avshift_core.scenario.readers.source import ReadOptions

    if arguments.skipped is not None:
        check_writable(arguments.skipped)
    said = {name: _said(name, getattr(arguments, name)) for name in ("area", "period", "version")}
    options = ReadOptions(**said, mapping=arguments.mapping, skip_bad=arguments.skip_bad)
    jobs = 1 if arguments.jobs is None and arguments.scheduler is None else arguments.jobs
    steps = import_steps(arguments.format, arguments.paths, arguments.corpus, options, jobs=jobs,
                         scheduler=arguments.scheduler)
    result = _sound_when_stopped(steps, arguments.corpus)
    was = "was" if result.n_done_before == 1 else "were"
    before = f" ({result.n_done_before:,} {was} in it already)" if result.n_done_before else ""
    print(f"Scenarios added to {arguments.corpus}: {result.n:,}; files: {result.n_sources:,}{before}.")
    _tell_skipped(result.skipped, arguments.skipped)


def run_demo(arguments: argparse.Namespace) -> None:
    from avshift_core.scenario.simulate.demo import demo_steps
    from avshift_core.scenario.simulate.fleet import FleetConfig
    from avshift_core.scenario.store.summary import count

    config = FleetConfig(arguments.scenarios, arguments.seed, arguments.effect_share)
    steps = demo_steps(arguments.out, config, jobs=arguments.jobs, scheduler=arguments.scheduler)
    added = _sound_when_stopped(steps, arguments.out)
    print(f"{count(added, 'scenario')} added to {arguments.out}, their truth to {arguments.out}-truth." if added else
          f"{arguments.out} holds this fleet already.")


def _sound_when_stopped(steps, corpus: str):
    return finish_or_stop(steps, lambda: f"{_state(corpus)} Run the same command again to go on.")


def finish_or_stop(steps, kept: Callable[[], str]):
    """Run the steps under a bar; Ctrl-C ends them in good order, with one sentence on what is kept."""
    try:
        return finish_with_bar(steps)
    except KeyboardInterrupt:
        steps.close()
        print(f"avshift: stopped; {kept()}", file=sys.stderr)
        raise SystemExit(130) from None


def _state(corpus: str) -> str:
    from avshift_core.scenario.store.corpus import open_corpus
    from avshift_core.scenario.store.summary import count

    try:
        n = open_corpus(corpus).n
    except AVShiftError:
        n = 0
    if not n:
        return f"nothing was committed to {corpus} yet."
    return f"{corpus} is sound and holds all that was committed: {count(n, 'scenario')}."


def _said(name: str, value: str | None) -> str:
    if value is not None and not value.strip():
        raise AVShiftError(f"--{name} is empty; give a value, or leave it out to keep what the log says.")
    return value or ""


def _tell_skipped(skipped: tuple[str, ...], path: Path | None) -> None:
    if path is not None:
        write_whole(path, lambda draft: Path(draft).write_text("".join(f"{s}\n" for s in skipped), encoding="utf-8"))
    if skipped:
        print(f"{len(skipped):,} left out:", *(f"  {sentence}" for sentence in skipped[:SHOWN]), sep="\n")
    if len(skipped) > SHOWN:
        print(f"  and {len(skipped) - SHOWN:,} more (--skipped FILE writes all)")


def run_corpus(arguments: argparse.Namespace) -> None:
    from avshift_core.scenario.store.corpus import open_corpus
    from avshift_core.scenario.store.summary import describe

    if arguments.json is not None:
        check_writable(arguments.json)
    summary = open_corpus(arguments.corpus, verify=True).summary()
    if arguments.json is not None:
        write_json(summary, arguments.json)
    print(describe(summary))
