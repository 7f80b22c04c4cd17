"""Numbers and sentences as a page shows them."""

from __future__ import annotations

import re
import unicodedata

from avshift_core.shift.estimate import Estimate

SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$<>:&-])")
# A bare address becomes a link, escaped or not, unless an invisible mark (at which no line breaks) stands in it.
ADDRESS = re.compile(r"//|(?<=www)\.|@", re.IGNORECASE)
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # marks that turn the direction of all that follows


def escape(text: str) -> str:
    """Text from data or from the engine as markdown that shows it as it is: no link, no formula, no HTML.

    >>> escape("R_1 <b>*x*</b>")
    'R\\\\_1 \\\\<b\\\\>\\\\*x\\\\*\\\\</b\\\\>'
    """
    return SPECIAL.sub(r"\\\1", ADDRESS.sub("\u2060\\g<0>", text))


def isolated(text: str) -> str:
    """Text of people that keeps its direction to itself: what stands beside it is not turned round.

    >>> isolated("cut-ins \\u202eright")
    'cut-ins right'
    """
    text = TURNING.sub("", text)
    turned = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"\u2068{text}\u2069" if turned else text


def percent(value: float) -> str:
    return f"{value:.2%}".replace("%", "\N{NO-BREAK SPACE}%")


def span(estimate: Estimate) -> str:
    """The interval of a rate; its ends, because at rates near 0 it is not even on both sides."""
    if estimate.lo == estimate.hi:
        return "no spread was seen: no interval"
    return f"{100 * estimate.lo:.2f} to {100 * estimate.hi:.2f} %"


def count(n: int, noun: str) -> str:
    """
    >>> count(1, "region"), count(1200, "region")
    ('1 region', '1,200 regions')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
