"""The band-pass verdict (paper, app:bandpass_thresholds), with what the interval leaves open."""

from __future__ import annotations

from dataclasses import dataclass

from avshift_core.config import AnalysisConfig
from avshift_core.shift.c2st import GlobalTest

NO_SHIFT, LOCALIZE, GLOBAL_SHIFT = "no_shift", "localize", "global_shift"
TITLES = {NO_SHIFT: "No detectable shift", LOCALIZE: "Moderate shift: localize", GLOBAL_SHIFT: "Global shift"}


@dataclass(frozen=True)
class Verdict:
    """`name` is no_shift, localize or global_shift; `decided` says whether the whole interval lies in that band."""

    name: str
    decided: bool
    sentence: str
    n_needed: int | None = None

    @property
    def title(self) -> str:
        return TITLES[self.name]


def band(gamma: float, config: AnalysisConfig) -> str:
    """The verdict of one value of the advantage.

    >>> [band(g, AnalysisConfig()) for g in (0.009, 0.01, 0.1, 0.11)]
    ['no_shift', 'localize', 'localize', 'global_shift']
    """
    if gamma < config.gamma_small:
        return NO_SHIFT
    return LOCALIZE if gamma <= config.gamma_large else GLOBAL_SHIFT


def verdict(test: GlobalTest, config: AnalysisConfig) -> Verdict:
    """The verdict of the lower bound, and whether the upper bound agrees."""
    name = band(test.gamma_lcb, config)
    upper = band(test.gamma_ucb, config)
    decided = name == upper
    interval = (f"advantage {test.gamma_hat:.3f}, between {test.gamma_lcb:.3f} and {test.gamma_ucb:.3f} with "
                f"{1 - 2 * config.alpha:.0%} confidence")
    sentence = {
        NO_SHIFT: f"No shift of {config.gamma_small:g} or more is shown ({interval}); an advantage of "
        f"{test.detectable_gamma:.3f} would have been seen in four of five such comparisons.",
        LOCALIZE: f"The cohorts differ moderately ({interval}): it pays to look where.",
        GLOBAL_SHIFT: f"The cohorts differ strongly ({interval}), by at least {test.tv_lower:.0%} in total variation: "
        "localization stops here, because regions would be most of the space.",
    }[name]
    if decided:
        return Verdict(name, True, sentence)
    maybe = {LOCALIZE: "a moderate shift", GLOBAL_SHIFT: "a global shift"}[upper]
    edge = config.gamma_small if name == NO_SHIFT else config.gamma_large
    half_width = test.gamma_hat - test.gamma_lcb if edge < test.gamma_hat else test.gamma_ucb - test.gamma_hat
    distance = max(abs(test.gamma_hat - edge), 1e-4)
    n_needed = int(round(test.n_te / 2 * (half_width / distance) ** 2, -2))
    if n_needed > test.n_te / 2:
        sentence += (f" Undecided: it may be {maybe}; about n = {n_needed:,} scenarios a side, in as many more drives, "
                     "needed.")
    else:
        n_needed = None
        sentence += f" Undecided: it may be {maybe}."
    return Verdict(name, False, sentence, n_needed)
