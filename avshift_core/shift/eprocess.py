"""Evidence that may be looked at as often as one likes: ranks of drives in time order, and bets on these ranks.

Drives come one after the other. Each is ranked, by some score, among all that came before it:

    p_n = (#{i < n: s_i > s_n} + U_n #{i <= n: s_i = s_n}) / n,     U_n uniform on (0, 1]

If nothing changes, the drives are exchangeable: any order of them is as likely as any other. Then p_1, p_2, ... are
independent and uniform (Vovk, Gammerman and Shafer 2005, "Algorithmic Learning in a Random World"). The reason also
covers scores that differ from drive to drive: given *which* drives the first n are (the bag of them, not their order),
all that comes later and the later U, the last of the n is each of them with the same chance, so p_n is uniform. The
later p-values depend on the first n drives through the bag alone. So p_n is uniform whatever the later ones are, for
every n: all are independent. A score may depend on n, on the bag, and on anything apart from the ranked drives, such as
a classifier trained on other drives; never on the order of the ranked drives.

A bettor starts with a wealth of 1 and multiplies it by f_n(p_n), where f_n >= 0 integrates to 1 and is chosen before
p_n is seen. Without a change the wealth is a martingale, and by Ville's inequality (1939)

    P(the wealth ever reaches 1 / alpha) <= alpha,

however often and whenever somebody looks. Such a wealth is called an e-process.

Several streams of one fleet have several p-values a drive. Each wealth is a martingale in the light of its own
p-values, but not of those of all streams: whether two scores agree on the past drives can tell which drives they were,
and so which are still to come (tests/shift/test_eprocess.py has a case). So the mean of the streams need not obey
Ville's inequality, and is not used. Each stream alarms at streams / alpha instead; by the union bound, the chance that
any of them ever does is at most alpha.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

POWERS = (0.25, 0.5, 0.75)  # bets e p^(e-1): on a few far-off drives, on a clear move, on a slight one
BINS, MEMORIES = 8, (30.0, 150.0)  # bets on the ranks seen lately: bins, and drives after which a rank counts 1/e
IDLE = 0.5  # share of the wealth that is not betted, at the start and whenever it is dealt out again
DEALS = (0.0005, 0.005)  # share of the wealth that is dealt out again after each drive; half of the wealth each


def tie_breaker(seed: int, stream: str, unit: str) -> float:
    """U of a drive, uniform on (0, 1]: by its name, so that it is the same whatever else is in the history.

    >>> tie_breaker(0, "traffic", "drive-1") == tie_breaker(0, "traffic", "drive-1") != tie_breaker(1, "traffic", "drive-1")
    True
    """  # noqa: E501
    digest = hashlib.sha256(f"{seed}\0{stream}\0{unit}".encode()).digest()
    return ((int.from_bytes(digest[:8], "big") >> 11) + 1) / 2**53


@dataclass(frozen=True, eq=False)
class Units:
    """Values of the scenarios of each drive, drives in time order; arrays of one entry a drive.

    Attributes:
        n: scenarios; mean: their mean value; spread: sum of squares around that mean.
    """

    n: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def units_of(value, unit, n_units: int) -> Units:
    """Values (m,) of scenarios -> their drives 0..n_units-1, each of which has at least one."""
    n = np.bincount(unit, minlength=n_units).astype(float)
    mean = np.bincount(unit, value, minlength=n_units) / n
    return Units(n, mean, np.bincount(unit, (value - mean[unit]) ** 2, minlength=n_units))


def rank_p_values(units: Units, u, first: int) -> np.ndarray:
    """p_n of the drives from `first` on, each ranked among all before it; small where its values are high.

    Means of few scenarios vary more. Drives are ranked by

        s_i = (mean_i - c) / sqrt(tau^2 + sigma^2 / n_i),

    c, tau^2 (between drives) and sigma^2 (within) by analysis of variance of the bag of all n drives, so that a short
    drive is no more likely to be far off than a long one. Exact when the drives with their lengths are exchangeable;
    when only their lengths change, the scores still have the same mean and variance.

    Args:
        u: (n,) tie breakers.
    """
    n, m = units.n, units.mean - units.mean[0]
    k = np.arange(1, len(n) + 1)
    N, squares = np.cumsum(n), np.cumsum(n * n)
    c = np.cumsum(n * m) / N
    between = np.maximum(np.cumsum(n * m * m) - N * c * c, 0.0) / np.maximum(k - 1, 1)
    within = np.cumsum(units.spread) / np.maximum(N - k, 1)
    size = np.maximum((N - squares / N) / np.maximum(k - 1, 1), 1.0)
    tau2 = np.maximum(between - within, 0.0) / size
    nothing = 1e-18 * np.maximum.accumulate(np.abs(units.mean)) ** 2  # rounding of equal means
    p = np.empty(len(n) - first)
    for i in range(first, len(n)):
        variance = tau2[i] + within[i] / n[: i + 1]
        s = np.zeros(i + 1) if variance.max() <= nothing[i] else (m[: i + 1] - c[i]) / np.sqrt(
            np.maximum(variance, 1e-300))
        p[i - first] = (np.count_nonzero(s > s[i]) + u[i] * np.count_nonzero(s == s[i])) / (i + 1)
    return p


def log_wealth(p, *, two_sided: bool) -> np.ndarray:
    """(n,) natural logarithm of the wealth after each p-value.

    The wealth lies in several purses: power bets on small p (with `two_sided` also on large p), bets on a histogram of
    the ranks seen lately, and IDLE of it nowhere. After each drive a share of all purses is dealt out again
    (Herbster and Warmuth 1998, "Tracking the best expert"): purses that have lost can bet on the next change, and after
    years without one the wealth has not dwindled. Dealing out leaves the sum as it is: the wealth stays a martingale.

    Args:
        p: (n,) in time order.
        two_sided: whether drives may move either way.
    """
    p = np.asarray(p, dtype=float)
    bets = np.concatenate([np.ones((len(p), 1)), _power_bets(p, two_sided), _histogram_bets(p)], axis=1)
    purses = bets.shape[1]
    start = np.full(purses, (1 - IDLE) / (purses - 1))
    start[0] = IDLE
    deal = np.array(DEALS)[:, None]
    held = np.tile(start, (len(DEALS), 1)) / len(DEALS)
    gains = np.empty(len(p))
    for i, bet in enumerate(bets):
        held *= bet
        each = held.sum(axis=1, keepdims=True)
        gains[i] = each.sum()
        held = ((1 - deal) * held + deal * each * start) / gains[i]
    return np.cumsum(np.log(gains))


def _power_bets(p: np.ndarray, two_sided: bool) -> np.ndarray:
    """(n, bets) factors e p^(e-1)."""
    sides = [p, 1 - p] if two_sided else [p]
    return np.stack([e * np.maximum(side, 1e-300) ** (e - 1) for side in sides for e in POWERS], axis=1)


def _histogram_bets(p: np.ndarray) -> np.ndarray:
    """(n, bets) density, at each p, of a histogram of those before it, the older ones fading.

    One drive stands in each bin before any is seen, so that no bin is ever bet against with all there is.
    """
    bin_ = np.minimum((p * BINS).astype(int), BINS - 1)
    found = []
    for memory in MEMORIES:
        upto = lfilter([1.0], [1.0, -np.exp(-1 / memory)], np.eye(BINS)[bin_], axis=0)
        before = 1 + np.concatenate([np.zeros((1, BINS)), upto[:-1]])
        found.append(BINS * before[np.arange(len(p)), bin_] / before.sum(axis=1))
    return np.stack(found, axis=1)
