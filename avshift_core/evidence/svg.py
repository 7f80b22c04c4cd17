"""Small parts of static pictures: scales, ticks, marks. Sizes are in pixels of a picture 680 wide; colours are classes
of the style sheet, so that screen, dark screen and paper each have their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10

from avshift_core.evidence.markup import Safe, join, tag

WIDTH = 680
LETTER = 6.3  # pixels of a letter at 12 pixels, on average; longer labels are cut by it
Scale = Callable[[float], float]


def picture(height: float, *parts: object, alt: str, width: float = WIDTH, class_: str = "chart") -> Safe:
    """A picture as wide as its place; `alt` is what a reader hears who does not see it."""
    return tag("svg", tag("title", alt), *parts, viewBox=f"0 0 {number(width)} {number(height)}", role="img",
               aria_label=alt, class_=class_)


def number(value: float) -> str:
    """A coordinate: two decimals, none where there are none, and no minus zero.

    >>> number(3.0), number(-0.001), number(1 / 3)
    ('3', '0', '0.33')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def linear(low: float, high: float, first: float, last: float) -> Scale:
    """Values low..high to places first..last; one value alone lies in the middle.

    >>> linear(0, 10, 100, 200)(2.5)
    125.0
    """
    if high <= low:
        return lambda value: (first + last) / 2
    return lambda value: first + (value - low) * (last - first) / (high - low)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round values between two ends, about so many.

    >>> ticks(0.013, 0.058), ticks(-1, 1, 4)
    ([0.02, 0.03, 0.04, 0.05], [-1.0, -0.5, 0.0, 0.5, 1.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * (1 - 1e-9))
    return [round(k * step, 12) + 0.0 for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def padded(values: Sequence[float], least: float = 0.0, share: float = 0.06) -> tuple[float, float]:
    """The range of some values with a margin, at least `least` wide."""
    low, high = min(values), max(values)
    margin = max((high - low) * share, (least - (high - low)) / 2, 1e-9)
    return low - margin, high + margin


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Safe:
    return tag("line", x1=number(x1), y1=number(y1), x2=number(x2), y2=number(y2), class_=class_)


def text(x: float, y: float, words: object, *, at: str = "start", class_: str | None = None) -> Safe:
    """Words; `at` is the end or the middle that lies at x."""
    return tag("text", words, x=number(x), y=number(y), text_anchor=None if at == "start" else at, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str) -> Safe:
    return tag("rect", x=number(x), y=number(y), width=number(max(width, 0)), height=number(max(height, 0)),
               class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str, closed: bool = False) -> Safe:
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return tag("polygon" if closed else "polyline", points=places, class_=class_)


def mark(shape: str, x: float, y: float, class_: str, size: float = 5) -> Safe:
    """A circle, square, diamond or triangle; whether it is open is a matter of its class."""
    r = size
    corners = {"square": [(-r, -r), (r, -r), (r, r), (-r, r)], "diamond": [(0, -r), (r, 0), (0, r), (-r, 0)],
               "up": [(0, -r), (r, r), (-r, r)], "down": [(0, r), (r, -r), (-r, -r)]}
    if shape == "circle":
        return tag("circle", cx=number(x), cy=number(y), r=number(r), class_=f"mark {class_}")
    return path([(x + dx, y + dy) for dx, dy in corners[shape]], f"mark {class_}", closed=True)


def across(low: float, high: float, y: float, class_: str, cap: float = 4) -> Safe:
    """An interval from left to right."""
    return join([line(low, y, high, y, f"bar {class_}"), line(low, y - cap, low, y + cap, f"bar {class_}"),
                 line(high, y - cap, high, y + cap, f"bar {class_}")])


def upright(low: float, high: float, x: float, class_: str, cap: float = 4) -> Safe:
    """An interval from bottom to top."""
    return join([line(x, low, x, high, f"bar {class_}"), line(x - cap, low, x + cap, low, f"bar {class_}"),
                 line(x - cap, high, x + cap, high, f"bar {class_}")])


def fitted(words: str, room: float) -> str:
    """Words that fit into so many pixels; what is cut ends with an ellipsis.

    >>> fitted("Region by region", 50), fitted("short", 50)
    ('Region…', 'short')
    """
    letters = max(int(room / LETTER), 2)
    return words if len(words) <= letters else f"{words[: letters - 1].rstrip()}…"


def percent_axis(scale: Scale, low: float, high: float, top: float, bottom: float, title: str) -> Safe:
    """Grid lines and labels of shares, from left to right."""
    found = ticks(low, high)
    places = decimals(found)
    parts = [join([line(scale(t), top, scale(t), bottom, "grid"),
                   text(scale(t), bottom + 15, f"{100 * t:.{places}f} %", at="middle", class_="tick")]) for t in found]
    return join([*parts, text((scale(low) + scale(high)) / 2, bottom + 33, title, at="middle", class_="axis")])


def decimals(shares: Sequence[float]) -> int:
    """Decimals that tell these shares apart as percentages.

    >>> decimals([0.1, 0.2]), decimals([0.015, 0.02])
    (0, 1)
    """
    return next((k for k in range(4) if all(abs(round(100 * s, k) - 100 * s) < 1e-6 for s in shares)), 4)
