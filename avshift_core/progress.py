"""Long work is a generator of progress; who runs it decides how to show it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


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


def finish_with_bar(steps: Generator[Progress, None, Result]) -> Result:
    """Run all steps under a bar in the terminal; silent where there is none."""
    from tqdm import tqdm

    with tqdm(total=100, bar_format="{percentage:3.0f}%|{bar:30}| {elapsed}<{remaining} {desc}", leave=False,
              disable=None) as bar:

        def show(progress: Progress) -> None:
            bar.n = round(100 * progress.share, 1)
            bar.set_description_str(progress.text)

        return finish(steps, show)
