"""Do clusters of latent space differ in risk, and do two independent sources of events agree on which are risky?

The paper's cluster-level validation (27 clusters; standard deviation of event shares and rates; correlation of two
event sources), with what chance alone would give beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.errors import ConfigError
from avshift_core.quality.drivewise import MIN_DRIVES
from avshift_core.shift.drives import clustered_variance, permutation_p

N_CLUSTERS = 27  # the paper's
EVENT, SECOND_EVENT = "hard_brake", "ttc_min_s<1.5"
N_PERM = 499
SPLITS = 20  # random halves of the drives, to tell how much one split's correlation owes to chance
FEWEST = 10  # scenarios of each half that a cluster needs for a rate


@dataclass(frozen=True)
class Spread:
    """Standard deviation over the clusters, in the metric's own unit (0.03 is 3 percentage points).

    Attributes:
        raw: as counted; shrunk: after empirical Bayes.
        chance, chance_high: mean and 95 % quantile of `raw` when events are dealt out to other drives.
        p_value: of `raw` under that dealing.
    """

    raw: float
    shrunk: float
    chance: float
    chance_high: float
    p_value: float


@dataclass(frozen=True)
class Agreement:
    """Correlation over clusters of two different metrics, each measured on its own half of the drives.

    Attributes:
        of: "rates" or "shares"; shares follow the clusters' sizes, so rates are the harder test.
        n: clusters; first, second: their values; pearson, spearman with p-values: of these.
        pearson_mean, pearson_std, spearman_mean, spearman_std: over random halves.
        chance: mean Pearson correlation when the events of both halves are dealt out to other drives.
        same_metric: mean Pearson correlation of the first metric with itself on the other half: what two halves could
            agree on at best.
    """

    of: str
    n: int
    first: tuple[float, ...]
    second: tuple[float, ...]
    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float
    pearson_mean: float
    pearson_std: float
    spearman_mean: float
    spearman_std: float
    chance: float
    same_metric: float


@dataclass(frozen=True)
class Clusters:
    """Of one partition.

    Attributes:
        size, rate, shrunk_rate, share: of each cluster, for the first metric; rates are NaN in tiny clusters.
        phi: correlation of the two events scenario by scenario; where it is near 0 no partition can make them agree.
        design_effect: by how much drives widen the variance of a rate; counts are divided by it before shrinking.
    """

    n_clusters: int
    event: str
    second_event: str
    mean_rate: float
    phi: float
    size: tuple[int, ...]
    rate: tuple[float, ...]
    shrunk_rate: tuple[float, ...]
    share: tuple[float, ...]
    design_effect: float
    rate_spread: Spread
    share_spread: Spread
    rates: Agreement | None
    shares: Agreement | None


def cut(x, n_clusters: int = N_CLUSTERS, seed: int = 0) -> np.ndarray:
    """(n,) cluster of each row by k-means, without any label."""
    from sklearn.cluster import KMeans

    return KMeans(min(n_clusters, len(x)), n_init=3, max_iter=100, random_state=seed).fit_predict(x)


def measure_clusters(cluster, event, second, drive, *, names=(EVENT, SECOND_EVENT), seed: int = 0) -> Clusters | None:
    """
    Args:
        cluster: (n,); event, second: (n,) 0 or 1, NaN where unknown; drive: (n,) as 0..G-1.

    Returns:
        None where there are too few drives or no event.
    """
    for name, values in zip(names, (event, second), strict=True):
        if not np.isin(values[np.isfinite(values)], (0, 1)).all():
            raise ConfigError(f"'{name}' is no event: it has values other than 0 and 1. Give a threshold, such as "
                              f"'{name}>1'.")
    known = np.isfinite(event) & np.isfinite(second)
    K = int(cluster.max()) + 1
    cluster, event, second = cluster[known], event[known], second[known]
    drive = np.unique(drive[known], return_inverse=True)[1]
    if not len(drive) or drive.max() + 1 < 2 * MIN_DRIVES or not 0 < event.mean() < 1:
        return None
    size = np.bincount(cluster, minlength=K).astype(float)
    rate, share = _rates(cluster, event, K)
    deff = design_effect(cluster, event, drive, K)
    shrunk = shrink(np.bincount(cluster, event, minlength=K) / np.maximum(size, 1), size / deff)
    shrunk_share = size * shrunk / (size @ shrunk)
    null = _dealt(cluster, event, drive, K, seed)
    data = _Events(cluster, event, second, drive, K)
    return Clusters(
        K, *names, float(event.mean()), _phi(event, second), tuple(map(int, size)),
        *(tuple(v.tolist()) for v in (rate, shrunk, share)), deff,
        _spread(rate, shrunk, null[0]), _spread(share, shrunk_share, null[1]),
        *(_agreement(of, data, seed) for of in ("rates", "shares")),
    )


@dataclass(frozen=True, eq=False)
class _Events:
    cluster: np.ndarray
    event: np.ndarray
    second: np.ndarray
    drive: np.ndarray
    K: int

    def two_sources(self, of: str, half, other=None, cluster=None) -> tuple[np.ndarray, np.ndarray]:
        """Values of the clusters in which both are known: the first metric on half 0, `other` on half 1."""
        place, cluster = (0 if of == "rates" else 1), self.cluster if cluster is None else cluster
        a, b = (_rates(cluster[half == s], e[half == s], self.K)[place]
                for s, e in ((0, self.event), (1, self.second if other is None else other)))
        both = np.isfinite(a) & np.isfinite(b)
        return a[both], b[both]


def shrink(rate, count) -> np.ndarray:
    """Posterior means of a beta-binomial whose two parameters are found by the method of moments.

        rho = between-cluster variance / (m (1 - m)),   a + b = 1 / rho - 1,   (count r + (a + b) m) / (count + a + b)

    >>> shrink(np.array([0.2, 0.4]), np.array([1e9, 1e9])).round(6).tolist()             # nothing left to chance
    [0.2, 0.4]
    >>> shrink(np.array([0.2, 0.2, 0.2]), np.array([9.0, 5.0, 2.0])).round(6).tolist()   # nothing but chance
    [0.2, 0.2, 0.2]
    """
    some = count > 0
    r, n = rate[some], count[some]
    m, K = float(n @ r / n.sum()), len(r)
    shrunk = np.full(len(rate), m)
    if K < 2 or not 0 < m < 1:
        return shrunk
    n0 = (n.sum() - (n**2).sum() / n.sum()) / (K - 1)
    between = float(n @ (r - m) ** 2) / (K - 1)
    within = float(n @ (r * (1 - r))) / max(n.sum() - K, 1e-9)
    rho = np.clip((between - within) / (between + (n0 - 1) * within), 0, 1)  # analysis of variance of 0/1 values
    if rho > 0:
        prior = 1 / rho - 1
        shrunk[some] = (n * r + prior * m) / (n + prior)
    return shrunk


def design_effect(cluster, event, drive, K: int) -> float:
    """Variance of the clusters' rates when drives are the units, over that of independent scenarios; at least 1."""
    observed = expected = 0.0
    for k in range(K):
        rows = cluster == k
        n, drives = int(rows.sum()), len(np.unique(drive[rows]))
        if n < FEWEST or drives < 2:
            continue
        r = event[rows].mean()
        inner = np.unique(drive[rows], return_inverse=True)[1]
        observed += n * clustered_variance(event[rows] - r, inner, drives)
        expected += r * (1 - r)
    return max(1.0, observed / expected) if expected > 0 else 1.0


def _rates(cluster, event, K: int) -> tuple[np.ndarray, np.ndarray]:
    """(K,) events over scenarios, NaN in clusters of fewer than FEWEST, and (K,) share of all events."""
    size = np.bincount(cluster, minlength=K)
    count = np.bincount(cluster, event, minlength=K)
    rate = np.divide(count, size, out=np.full(K, np.nan), where=size >= FEWEST)
    return rate, count / max(count.sum(), 1e-300)


def _phi(event, second) -> float:
    return float(np.corrcoef(event, second)[0, 1]) if np.ptp(event) > 0 and np.ptp(second) > 0 else np.nan


def _spread(value, shrunk, null) -> Spread:
    raw = float(np.nanstd(value, ddof=1))
    return Spread(raw, float(np.std(shrunk[np.isfinite(value)], ddof=1)), float(np.mean(null)),
                  float(np.quantile(null, 0.95)), permutation_p(raw, null))


def dealt_rows(drive, rng) -> np.ndarray:
    """(n,) rows in another order: drives change places as a whole, scenarios within them too.

    Events in their order beside these rows keep how events and clusters gather in drives, and lose what ties them.
    """
    key = rng.permutation(int(drive.max()) + 1)[drive]
    return np.lexsort((rng.random(len(drive)), key))


def _dealt(cluster, event, drive, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(N_PERM,) standard deviations of rates and of shares of dealt-out events."""
    rng = np.random.default_rng([seed, 15])
    event = event[np.argsort(drive, kind="stable")]
    found = []
    for _ in range(N_PERM):
        rates, shares = _rates(cluster[dealt_rows(drive, rng)], event, K)
        found.append((np.nanstd(rates, ddof=1), np.std(shares, ddof=1)))
    return tuple(np.array(found).T)


def _halves(drive, times: int, seed: int) -> np.ndarray:
    """(times, n) 0 or 1: two halves of the drives."""
    rng = np.random.default_rng([seed, 16])
    G = int(drive.max()) + 1
    return np.stack([(rng.permutation(G) % 2)[drive] for _ in range(times)])


def _agreement(of: str, data: _Events, seed: int) -> Agreement | None:
    """None where the clusters' values do not vary, or are too few."""
    from scipy.stats import pearsonr, spearmanr

    rng = np.random.default_rng([seed, 17])
    halves = _halves(data.drive, SPLITS, seed)
    pairs = [data.two_sources(of, half) for half in halves]
    again = [data.two_sources(of, half, other=data.event) for half in halves]
    order, dealt = np.argsort(data.drive, kind="stable"), []
    for half in halves:
        mixed = np.empty_like(data.cluster)
        mixed[order] = data.cluster[dealt_rows(data.drive, rng)]
        dealt.append(data.two_sources(of, half, cluster=mixed))
    if not _varies(pairs[0]):
        return None
    usable = [pair for pair in pairs if _varies(pair)]
    pearson, spearman = pearsonr(*pairs[0]), spearmanr(*pairs[0])
    mean = lambda method, chosen: [float(method(*pair).statistic) for pair in chosen if _varies(pair)]  # noqa: E731
    each = [mean(method, usable) for method in (pearsonr, spearmanr)]
    return Agreement(
        of, len(pairs[0][0]), *(tuple(v.tolist()) for v in pairs[0]), float(pearson.statistic), float(pearson.pvalue),
        float(spearman.statistic), float(spearman.pvalue), *(float(f(v)) for v in each for f in (np.mean, np.std)),
        float(np.mean(mean(pearsonr, dealt) or [np.nan])), float(np.mean(mean(pearsonr, again) or [np.nan])),
    )


def _varies(pair) -> bool:
    return len(pair[0]) >= 4 and np.ptp(pair[0]) > 0 and np.ptp(pair[1]) > 0
