"""Has anything changed since the reference? Week by week, for the traffic and for each metric, however often one looks.

A stream ranks drives in time order and bets on the ranks (eprocess.py). That of the traffic halves the drives by a hash
of their ids: one half trains, in each week anew, a classifier of the reference against all weeks since; the other half
is ranked by its log-odds. Streams of metrics train nothing, and rank every drive by its rate, on both sides.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import log

import numpy as np
from scipy import stats

from avshift_core.config import CLASSIFIERS
from avshift_core.errors import CohortError, ConfigError
from avshift_core.latent.history import DRIVE, UNITS, History
from avshift_core.progress import Progress
from avshift_core.shift.drives import clustered_variance
from avshift_core.shift.eprocess import log_wealth, rank_p_values, tie_breaker, units_of
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.rates import design_effect_of_mean, rate_interval
from avshift_core.shift.scoring import train_and_score

TRAFFIC = "traffic"
FEWEST = 5  # units of the reference that are ranked, and as many to train on
MOST_ROWS = 20_000  # scenarios a class that a classifier is trained on; more of them hardly teach it more
THIS_WEEK = 0.5  # share of the later class that the newest week has in training: a change may be new, or go on
GOLDEN = 0.6180339887498949  # multiples of the golden ratio, modulo 1, fill (0, 1) most evenly
LEVEL = 0.95  # of the intervals of rates
ASSUMED = {  # what the promise rests on, by unit
    "drive": "weeks are complete when they are looked at, and drives alike but for chance: days that differ, by "
             "weather say, count as a change (rank days then)",
    "day": "weeks are complete when they are looked at, and days alike but for chance",
}


@dataclass(frozen=True)
class MonitorConfig:
    """Settings of a monitor; another one of them makes another monitor.

    Attributes:
        alpha: largest chance of ever raising an alarm without a change, over all streams.
        seed: of ties, halves and trainings; unit: what is ranked as a whole.
        classifier: one of config.CLASSIFIERS.
    """

    alpha: float = 0.05
    seed: int = 0
    classifier: str = "auto"
    unit: str = DRIVE

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigError(f"alpha is {self.alpha:g}; it is the largest chance of a false alarm and must lie "
                              "between 0 and 1, such as 0.05.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be 0 or more.")
        for name, value, choices in (("classifier", self.classifier, CLASSIFIERS), ("unit", self.unit, UNITS)):
            if value not in choices:
                raise ConfigError(f"{name} is {value!r}; choose one of {', '.join(choices)}.")


@dataclass(frozen=True)
class Week:
    """What a week holds. `reference` weeks are what later ones are held against."""

    period: str
    reference: bool
    scenarios: int
    drives: int
    versions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Stream:
    """The evidence about one thing.

    Attributes:
        name: `traffic`, or a metric.
        week: (m,) week, as an index into Monitor.weeks, of each ranked drive after the reference.
        p_value, log_wealth: (m,) rank of each of these drives, and the wealth after it.
        ranked: ranked drives of every week; those of the reference are what the first ones are ranked among.
        rates: mean of the metric in every week; () for the traffic.
    """

    name: str
    week: np.ndarray
    p_value: np.ndarray
    log_wealth: np.ndarray
    ranked: tuple[int, ...]
    rates: tuple[Estimate, ...] = ()

    @property
    def largest(self) -> float:
        """Natural logarithm of the largest wealth so far, at least that of the start."""
        return max(0.0, float(self.log_wealth.max(initial=0.0)))

    def at_end_of(self, week: int) -> float:
        """Logarithm of the wealth after the last drive of a week; as before where it has none."""
        upto = np.flatnonzero(self.week <= week)
        return float(self.log_wealth[upto[-1]]) if len(upto) else 0.0

    def first_alarm(self, threshold: float) -> int | None:
        """Week in which the wealth first reached the threshold."""
        reached = np.flatnonzero(self.log_wealth >= log(threshold))
        return int(self.week[reached[0]]) if len(reached) else None


@dataclass(frozen=True, eq=False)
class Monitor:
    """All streams over all weeks."""

    config: MonitorConfig
    weeks: tuple[Week, ...]
    streams: tuple[Stream, ...]

    @property
    def threshold(self) -> float:
        """Wealth at which a stream alarms: streams / alpha."""
        return len(self.streams) / self.config.alpha

    @property
    def alarms(self) -> dict[str, int]:
        """Streams that have raised an alarm -> its week, the earliest first."""
        found = {s.name: s.first_alarm(self.threshold) for s in self.streams}
        return dict(sorted(((name, week) for name, week in found.items() if week is not None), key=lambda a: a[1]))

    @property
    def first_alarm(self) -> int | None:
        """Week of the first alarm of any stream."""
        return min(self.alarms.values(), default=None)

    @property
    def watched(self) -> tuple[int, ...]:
        """Weeks after the reference."""
        return tuple(k for k, week in enumerate(self.weeks) if not week.reference)

    def p_anytime(self, stream: Stream) -> float:
        """Smallest level at which this stream would have raised an alarm: streams over its largest wealth."""
        return min(1.0, len(self.streams) * float(np.exp(-stream.largest)))


def monitor_steps(
    history: History, config: MonitorConfig | None = None, *, traffic: bool = True
) -> Generator[Progress, None, Monitor]:
    """Watch a history; the same history with a week more gives the same p-values and wealth for the earlier weeks.

    Args:
        traffic: whether to watch the traffic, which needs latents; all metrics of the history are watched.
    """
    config = config or MonitorConfig()
    if not traffic and not history.ell:
        raise ConfigError("There is nothing to watch: choose the traffic, a metric, or both.")
    count = int(traffic) + len(history.ell)
    _check_reference(history, config, traffic, count / config.alpha)
    streams = []
    if traffic:
        streams.append((yield from _traffic(history, config)))
    for i, (name, value) in enumerate(history.ell.items()):
        yield Progress(f"Ranking drives by {name}", 0.9 + 0.1 * i / len(history.ell))
        streams.append(_metric(history, name, np.asarray(value, dtype=float), config))
    scenarios = np.bincount(history.week, minlength=len(history.periods))
    weeks = tuple(Week(period, k < history.n_reference, int(scenarios[k]), history.drives[k], history.versions[k])
                  for k, period in enumerate(history.periods))
    return Monitor(config, weeks, tuple(streams))


def trains(history: History, config: MonitorConfig) -> np.ndarray:
    """(units,) True for those that train the classifier; the others are ranked.

    Drives by a hash of their name. Days, of which there are few, in turn: every other one trains, so that the halves
    are even and each weekday is in both.
    """
    if config.unit != DRIVE:
        return np.arange(history.n_units) % 2 == 0
    return np.array([tie_breaker(config.seed, "half", name) <= 0.5 for name in history.unit_ids])


def _traffic(history: History, config: MonitorConfig) -> Generator[Progress, None, Stream]:
    training = trains(history, config)
    ranked = np.flatnonzero(~training)
    week = history.unit_week[ranked]
    place = np.full(history.n_units, -1)
    place[ranked] = np.arange(len(ranked))
    u = _tie_breakers(history, ranked, TRAFFIC, config)
    p = []
    for t in range(history.n_reference, len(history.periods)):
        done = (t - history.n_reference) / (len(history.periods) - history.n_reference)
        yield Progress(f"{history.periods[t]}: training and ranking", 0.05 + 0.85 * done)
        rows = np.flatnonzero(~training[history.unit] & (history.week <= t))
        score = _scores(history, training, t, rows, config)
        n = int((week <= t).sum())
        p.append(rank_p_values(units_of(score, place[history.unit[rows]], n), u[:n], int((week < t).sum())))
    p = np.concatenate(p)
    counts = tuple(np.bincount(week, minlength=len(history.periods)).tolist())
    return Stream(TRAFFIC, week[week >= history.n_reference], p, log_wealth(p, two_sided=False), counts)


def _scores(history: History, training, t: int, rows, config: MonitorConfig) -> np.ndarray:
    """Log-odds of these rows, by a classifier of the training drives of the reference against those of weeks up to t.

    Where no later drive trains yet, all rows score the same, and ranks are those of the tie breakers.
    """
    learn = np.flatnonzero(training[history.unit] & (history.week <= t))
    y = (history.week[learn] >= history.n_reference).astype(int)
    if not y.any():
        return np.zeros(len(rows))
    rng = np.random.default_rng([config.seed, t])
    keep = np.sort(np.concatenate([_thinned(learn[y == c], rng) for c in (0, 1)]))
    y, week = (history.week[keep] >= history.n_reference).astype(int), history.week[keep]
    weight = np.ones(len(keep))
    newest, before = week == t, (y == 1) & (week < t)
    if newest.any() and before.any():
        weight[newest] = THIS_WEEK / newest.sum()
        weight[before] = (1 - THIS_WEEK) / before.sum()
    unit = np.unique(history.unit[keep], return_inverse=True)[1]
    return train_and_score(config.classifier, history.z[keep], y, unit, history.z[rows], weight=weight,
                           seed=config.seed)


def _thinned(rows, rng) -> np.ndarray:
    return rows if len(rows) <= MOST_ROWS else rng.choice(rows, MOST_ROWS, replace=False)


def _metric(history: History, name: str, value, config: MonitorConfig) -> Stream:
    u = _tie_breakers(history, np.arange(history.n_units), name, config)
    first = int((history.unit_week < history.n_reference).sum())
    p = rank_p_values(units_of(value, history.unit, history.n_units), u, first)
    ranked = tuple(np.bincount(history.unit_week, minlength=len(history.periods)).tolist())
    return Stream(name, history.unit_week[first:], p, log_wealth(p, two_sided=True), ranked, _rates(history, value))


def _tie_breakers(history: History, units, name: str, config: MonitorConfig) -> np.ndarray:
    return np.array([tie_breaker(config.seed, name, f"{history.periods[history.unit_week[k]]}\0{history.unit_ids[k]}")
                     for k in units])


def _rates(history: History, value) -> tuple[Estimate, ...]:
    """Mean of every week with its interval by drive: Korn and Graubard's for events, Student's for other values."""
    event = bool(np.isin(value, (0, 1)).all())
    found = []
    for k in range(len(history.periods)):
        rows = np.flatnonzero(history.week == k)
        unit, drive = np.unique(history.unit[rows], return_inverse=True)
        mu = float(value[rows].mean())
        se = float(np.sqrt(clustered_variance(value[rows] - mu, drive, len(unit))))
        if event:
            upto = history.week <= k  # where a week has no event: how alike drives were until then
            design = design_effect_of_mean(history.unit[upto], value[upto]) if se == 0 else 1.0
            lo, hi = rate_interval(mu, se, len(rows), len(unit), LEVEL, design)
        else:
            reach = float(stats.t.ppf((1 + LEVEL) / 2, max(len(unit) - 1, 1))) * se
            lo, hi = mu - reach, mu + reach
        found.append(Estimate(mu, lo, hi, se))
    return tuple(found)


def least_reference(n_new: int, threshold: float, two_sided: bool) -> int | None:
    """Reference drives from which on `n_new` drives that all lie outside of them raise an alarm; None: never.

    The j-th of them ranks anywhere among the j new ones: p = v_j j / (m + j), with v_j evenly spread over (0, 1).
    """
    j = np.arange(1, n_new + 1)
    v = j * GOLDEN % 1
    enough = lambda m: log_wealth(v * j / (m + j), two_sided=two_sided).max() >= log(threshold)  # noqa: E731
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > 10**6:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check_reference(history: History, config: MonitorConfig, traffic: bool, threshold: float) -> None:
    of = history.unit_week < history.n_reference
    training = trains(history, config) if traffic else np.zeros(history.n_units, dtype=bool)
    have = int((of & ~training).sum())
    learn = int((of & training).sum()) if traffic else FEWEST
    if min(have, learn) >= FEWEST:
        return
    a_week = max(1, int(np.median(np.bincount(history.unit_week[~of & ~training], minlength=1)[history.n_reference:])))
    least = least_reference(a_week, threshold, two_sided=not traffic)
    possible = (f"Even if everything changed, {a_week:,} {config.unit}s a week could raise an alarm within a week only "
                + (f"from {least:,} ranked ones on." if least else "with more of them a week."))
    halves = f" ({learn} to train on and {have} to rank)" if traffic else ""
    raise CohortError(f"The reference has {int(of.sum())} {config.unit}s{halves}; at least {FEWEST} "
                      f"{'of each' if traffic else 'of them'} are needed. {possible} Choose a longer reference.")
