"""One statistic in words: what it is, its formula, when not to trust it, and where the paper has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """
    Attributes:
        key: anchor of the entry, unique, lower case.
        term: what pages call it.
        sentence: one plain sentence on what it says.
        distrust: when not to trust it.
        formula: LaTeX, "" where there is none.
        label: the paper's label or section, "" for what the paper does not have.
        codes: what the engine calls it, such as `check:ess`, `estimator:lis`, `metric:ttc_min_s`, `test:ks`.
        also: other words that a reader may look for.
    """

    key: str
    term: str
    sentence: str
    distrust: str
    formula: str = ""
    label: str = ""
    codes: tuple[str, ...] = ()
    also: str = ""

    @property
    def text(self) -> str:
        """All that a search looks through, in lower case."""
        parts = (self.term, self.key, self.also, self.sentence, self.distrust, self.label, *self.codes)
        return " ".join(parts).lower()
