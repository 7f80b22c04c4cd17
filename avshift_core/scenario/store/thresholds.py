"""What a metric's text means: `hard_brake` is the column itself, `ttc_min_s<1.5` tells whether it lies below 1.5."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from avshift_core.errors import CorpusError
from avshift_core.scenario.measure.metrics import exceedance

INDICATORS = {"discomfort": "comfort_score"}  # an indicator whose threshold can be moved -> the score it is taken of


@dataclass(frozen=True)
class MetricChoice:
    """One metric of a cohort.

    Attributes:
        column: where the values come from.
        measured: whether the column is one of the corpus' metrics; otherwise it is an attribute.
        above: True for `>`, False for `<`, None for the values themselves.
    """

    column: str
    measured: bool
    above: bool | None = None
    threshold: float = math.nan

    def values(self, column: np.ndarray) -> np.ndarray:
        """(n,) the values, or 0 and 1; what is missing stays NaN.

        >>> MetricChoice("ttc_min_s", True, above=False, threshold=1.5).values(np.array([1.0, 1.5, np.nan]))
        array([ 1.,  0., nan])
        """
        if self.above is None:
            return column
        return exceedance(column, ">" if self.above else "<", self.threshold)


def parse_metric(text: str, metrics: Sequence[str], attributes: Sequence[str]) -> MetricChoice:
    """Text -> choice; `discomfort>1.3` moves the threshold of discomfort, which is taken of the comfort score.

    >>> parse_metric("gap_min_m < 2", ["gap_min_m"], [])
    MetricChoice(column='gap_min_m', measured=True, above=False, threshold=2.0)
    """
    name, above, threshold = text, None, math.nan
    if text not in metrics and text not in attributes and (match := re.fullmatch(r"(.+?)\s*([<>])\s*(\S+)", text)):
        name, above = INDICATORS.get(match[1], match[1]), match[2] == ">"
        try:
            threshold = float(match[3])
        except ValueError:
            threshold = math.nan
        if not math.isfinite(threshold):
            raise CorpusError(f"'{match[3]}' in '{text}' is not a number; write a threshold such as {match[1]}"
                              f"{match[2]}1.5.")
    if name not in metrics and name not in attributes:
        raise CorpusError(f"The corpus has no metric '{name}'; found {', '.join(metrics) or 'none'}. A number among "
                          "the attributes can be a metric too.")
    return MetricChoice(name, name in metrics, above, threshold)
