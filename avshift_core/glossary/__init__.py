"""Every statistic of the dashboard in words: formula, meaning, limits.

    for group, entries in GROUPS.items(): ...
    entry_of("check:ess").sentence
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache

from avshift_core.glossary import calibration, data, encoder, global_test, lab, local_test, monitor, trust, versions
from avshift_core.glossary.entry import Entry

__all__ = ["ENTRIES", "GROUPS", "Entry", "as_rows", "entry_of", "find"]

GROUPS: dict[str, tuple[Entry, ...]] = {
    "Data": data.ENTRIES,
    "Global test": global_test.ENTRIES,
    "Local test": local_test.ENTRIES,
    "Calibration": calibration.ENTRIES,
    "Trust": trust.ENTRIES,
    "Versions": versions.ENTRIES,
    "Encoder and maps": encoder.ENTRIES,
    "Metrics": data.metric_entries(),
    "Monitor": monitor.ENTRIES,
    "Lab": lab.ENTRIES,
}
ENTRIES: tuple[Entry, ...] = tuple(entry for group in GROUPS.values() for entry in group)


def find(words: str, group: str | None = None) -> dict[str, tuple[Entry, ...]]:
    """Entries that hold every one of the words, by group; all of them without words.

    >>> [entry.key for entries in find("pareto tail").values() for entry in entries]
    ['khat']
    """
    wanted = words.lower().split()
    found = {name: tuple(e for e in entries if all(word in e.text for word in wanted))
             for name, entries in GROUPS.items() if group in (None, name)}
    return {name: entries for name, entries in found.items() if entries}


def as_rows(found: Mapping[str, tuple[Entry, ...]]) -> list[dict[str, str]]:
    """What `find` gives, one row an entry."""
    return [{"part": group, **asdict(e), "codes": " ".join(e.codes)} for group, entries in found.items()
            for e in entries]


@cache
def entry_of(code: str) -> Entry | None:
    """The entry of what the engine calls so, such as `check:ess` or `estimator:lis`; None where there is none."""
    return next((entry for entry in ENTRIES if code in entry.codes), None)
