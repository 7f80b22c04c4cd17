"""The command line: corpora, encoders, comparisons, and the studies behind them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from avshift_core.errors import AVShiftError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it is done, 2 with one sentence when the input does not allow it."""
    arguments = _parser().parse_args(argv)
    try:
        with _terminated_like_interrupted():
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the interpreter's end
        return 128 + signal.SIGPIPE
    except AVShiftError as error:
        print(f"avshift: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("avshift: stopped; no output was written.", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a command in good order, as Ctrl-C does; only the main thread may say so."""
    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m avshift_core", description="Is it the car, or the traffic it met?")
    commands = parser.add_subparsers(required=True)

    from avshift_core.commands import add_benchmark, add_compare, add_report, add_sensitivity, add_versions
    from avshift_core.encoder.commands import add_encode, add_train
    from avshift_core.monitoring.commands import add_monitor
    from avshift_core.notebook.commands import add_ledger
    from avshift_core.quality.commands import add_ablate, add_quality
    from avshift_core.scenario.commands import add_corpus, add_demo, add_import

    for add in (add_demo, add_import, add_corpus, add_train, add_encode, add_compare, add_versions, add_monitor,
                add_report, add_ledger, add_sensitivity, add_benchmark, partial(add_quality, draw=_draw_quality),
                add_ablate):
        add(commands)
    return parser


def _draw_quality(quality, folder) -> None:
    from avshift_core.plots.quality import write_figures

    write_figures(quality, folder)


if __name__ == "__main__":
    sys.exit(main())
