"""Numbers and sentences as a page shows them."""

from __future__ import annotations

import re

from avshift_core.shift.calibrate import Estimate

SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$<>:-])")


def escape(text: str) -> str:
    """Text from data or from the engine as markdown that shows it as it is: no link, no formula, no HTML.

    >>> escape("R_1 <b>*x*</b>")
    'R\\\\_1 \\\\<b\\\\>\\\\*x\\\\*\\\\</b\\\\>'
    """
    return SPECIAL.sub(r"\\\1", text)


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
