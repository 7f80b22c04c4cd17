"""Which scenarios belong to a cohort: allowed values of the id columns, as a hashable value and as one line of text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from urllib.parse import unquote

from avshift_core.errors import CorpusError


@dataclass(frozen=True)
class CohortQuery:
    """Allowed values by column, () = all. Equal choices are equal values, whatever their order.

    >>> CohortQuery(period=["2026-W11", "2026-W10"], area="harbor") == CohortQuery.parse("area=harbor,period=2026-W10|2026-W11")
    True

    Attributes:
        hour: local hours 0..23 as integers, -1 for unknown; all others are strings.
    """  # noqa: E501

    period: tuple[str, ...] = ()
    area: tuple[str, ...] = ()
    av_version: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    route: tuple[str, ...] = ()
    day: tuple[str, ...] = ()
    hour: tuple[int, ...] = ()
    drive_id: tuple[str, ...] = ()
    vehicle_id: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            several = isinstance(value, Iterable) and not isinstance(value, str)
            items = list(value) if several else [value]
            unique = {_hour(item) if field.name == "hour" else str(item) for item in items}
            if "" in unique or None in items:
                raise CorpusError(f"A cohort's '{field.name}' has an empty value; give a value or leave it out.")
            object.__setattr__(self, field.name, tuple(sorted(unique)))

    @classmethod
    def parse(cls, text: str) -> CohortQuery:
        """`period=2026-W10|2026-W11,area=harbor` -> query; "" is all scenarios. `%2C`, `%7C` stand for `,` and `|`.

        >>> str(CohortQuery.parse("area=harbor, period=2026-W11|2026-W10"))
        'period=2026-W10|2026-W11,area=harbor'
        """
        if not isinstance(text, str):
            raise CorpusError(f"A cohort is {text!r:.60}; write it as text such as period=2026-W10,area=harbor.")
        names = [field.name for field in fields(cls)]
        chosen: dict[str, list[str]] = {}
        for term in text.split(",") if text.strip() else []:
            name, equals, values = (piece.strip() for piece in term.partition("="))
            if equals and name not in names:
                raise CorpusError(f"'{name}' is no key of a cohort. Keys are {', '.join(names)}.")
            if not equals:
                raise CorpusError(f"'{term.strip()}' does not say which scenarios; write key=value, or key=a|b. Keys "
                                  f"are {', '.join(names)}.")
            if name in chosen:
                raise CorpusError(f"'{name}' is given twice; write {name}=a|b for several values.")
            chosen[name] = [unquote(value.strip()) for value in values.split("|")]
            if "" in chosen[name]:
                raise CorpusError(f"'{term.strip()}' has an empty value; give one, or leave {name} out for all. Keys "
                                  f"are {', '.join(names)}.")
        return cls(**chosen)

    def __str__(self) -> str:
        return ",".join(f"{name}={'|'.join(map(_escaped, values))}" for name, values in self.chosen().items())

    def chosen(self) -> dict[str, tuple]:
        """Only the columns that are restricted, with their allowed values."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}


def as_query(value: CohortQuery | str) -> CohortQuery:
    """A query, or the text of one, as a query."""
    return value if isinstance(value, CohortQuery) else CohortQuery.parse(value)


def _hour(value) -> int:
    try:
        hour = int(value)
    except (TypeError, ValueError):
        hour = None
    if hour is None or not -1 <= hour <= 23 or str(value).strip() == "":
        raise CorpusError(f"'{value}' is no hour; hours run from 0 to 23, and -1 is unknown.")
    return hour


def _escaped(value) -> str:
    """
    >>> _escaped("50%|a, b ")
    '50%25%7Ca%2C b%20'
    """
    return re.sub(r"[%,|]|^\s|\s$", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), str(value))
