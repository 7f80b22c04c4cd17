"""Numbers as the pack writes them."""

from __future__ import annotations

from collections.abc import Mapping

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def rate(value: float) -> str:
    """
    >>> rate(0.12345)
    '12.35\\xa0%'
    """
    return f"{100 * value:.2f}{SPACE}%"


def span(e: Mapping) -> str:
    """The interval of a rate; its ends, because near 0 it is not even on both sides."""
    if e["lo"] == e["hi"]:
        return "no spread was seen: no interval"
    return f"{100 * e['lo']:.2f} to {100 * e['hi']:.2f}{SPACE}%"


def signed(value: float, places: int = 2) -> str:
    """
    >>> signed(0.1234), signed(-1.0)
    ('+0.12', '−1.00')
    """
    return f"{value:+.{places}f}".replace("-", MINUS)


def decimal(value: float, places: int = 2) -> str:
    """
    >>> decimal(-0.481)
    '−0.48'
    """
    return f"{value:.{places}f}".replace("-", MINUS)


def points(e: Mapping) -> str:
    """A difference of rates in percentage points, with its interval."""
    return (f"{signed(100 * e['mu'])} points ({signed(100 * e['lo'])} to {signed(100 * e['hi'])})")


def with_span(e: Mapping | None, missing: str = "–") -> str:
    return missing if e is None else f"{rate(e['mu'])} ({span(e)})"


def count(n: int, noun: str) -> str:
    """
    >>> count(1, "region"), count(1200, "region")
    ('1 region', '1,200 regions')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def p_value(p: float) -> str:
    """
    >>> p_value(0.001), p_value(0.25), p_value(0.0)
    ('0.001', '0.25', 'below 1e-300')
    """
    return f"{p:.3g}" if p > 0 else "below 1e-300"


def amount(value: float | None, unit: str) -> str:
    """A distance or a time; what nobody recorded says so."""
    if value is None:
        return "not recorded"
    return f"{value:,.0f}{SPACE}{unit}" if value >= 100 else f"{value:,.1f}{SPACE}{unit}"
