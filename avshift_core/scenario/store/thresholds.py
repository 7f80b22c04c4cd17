"""What a metric's text means: `hard_brake` is the column itself, `ttc_min_s<1.5` tells whether it lies below 1.5."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from avshift_core.errors import CorpusError
from avshift_core.scenario.measure.metrics import METRICS, exceedance

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
    name, sign, number = text, "", ""
    known = {*metrics, *attributes}
    if text not in known and (match := re.fullmatch(r"(.+?)\s*([<>=!]+)\s*(.*)", text)):
        name, sign, number = match.groups()
        name = INDICATORS[name] if INDICATORS.get(name) in known else name
    if name not in known:
        raise CorpusError(f"The corpus has no metric '{name}'; found {', '.join(metrics) or 'none'}. A number among "
                          "the attributes can be a metric too.")
    if not sign:
        return MetricChoice(name, name in metrics)
    threshold = _threshold(text, sign, number, METRICS[name].M if name in metrics and name in METRICS else math.inf)
    return MetricChoice(name, name in metrics, sign == ">", threshold)


def _threshold(text: str, sign: str, number: str, largest: float) -> float:
    try:
        threshold = float(number)
    except ValueError:
        threshold = math.nan
    if sign not in ("<", ">") or not math.isfinite(threshold) or (largest < math.inf and not 0 <= threshold <= largest):
        inside = f" inside of [0, {largest:g}]" if largest < math.inf else ""
        raise CorpusError(f"'{text}' is no threshold; write only > or < with a number{inside}.")
    return threshold
