"""Long work is a generator of progress; who runs it decides how to show it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")
LOG_EVERY_S = 30.0


@dataclass(frozen=True)
class Progress:
    """What is being done, and the share of the whole that is behind."""

    text: str
    share: float


def finish(
    steps: Generator[Progress, None, Result], show: Callable[[Progress], object] = lambda progress: None
) -> Result:
    """Run all steps and return the last value.

    >>> def work():
    ...     yield Progress("half", 0.5)
    ...     return 42
    >>> finish(work(), lambda p: print(p.text))
    half
    42
    """
    while True:
        try:
            progress = next(steps)
        except StopIteration as done:
            return done.value
        show(progress)


def within(
    steps: Generator[Progress, None, Result], first: float, last: float, text: str = ""
) -> Generator[Progress, None, Result]:
    """Steps of one stage as the part of a longer work from share `first` to share `last`.

    >>> def work():
    ...     yield Progress("half", 0.5)
    >>> list(within(work(), 0.2, 0.4, "Reading: "))
    [Progress(text='Reading: half', share=0.3)]
    """
    while True:
        try:
            progress = next(steps)
        except StopIteration as done:
            return done.value
        yield Progress(text + progress.text, round(first + (last - first) * progress.share, 6))


class _Log:
    """Progress for a file or a pipe."""

    def __init__(self) -> None:
        self.next = time.monotonic() + LOG_EVERY_S

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + LOG_EVERY_S
            print(f"{progress.share:4.0%} {progress.text}", file=sys.stderr, flush=True)


def finish_with_bar(steps: Generator[Progress, None, Result]) -> Result:
    """Run all steps under a bar in the terminal; where there is none, with a plain line every half minute."""
    from tqdm import tqdm

    if not sys.stderr.isatty():
        return finish(steps, _Log())
    with tqdm(total=100, bar_format="{percentage:3.0f}%|{bar:30}| {elapsed}<{remaining} {desc}", leave=False,
              disable=None) as bar:

        def show(progress: Progress) -> None:
            bar.n = round(100 * progress.share, 1)
            bar.set_description_str(progress.text)

        return finish(steps, show)
