"""Clusters of a comparison for the analyst: what they are, how P and Q fill them, and where events happen."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from avshift_core.errors import ConfigError
from avshift_core.progress import Progress
from avshift_core.quality.clusters import N_CLUSTERS, Clusters, measure_clusters
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.celltree import cell_counts, test_nodes
from avshift_core.shift.drives import adjust_bh, clustered_variance
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.naming import name_sets
from avshift_core.shift.rates import design_effect_of_mean, rate_interval
from avshift_core.shift.regions import Shares, pooled_attributes, shares_of
from avshift_core.shift.representatives import representatives

FEWEST, MOST = 5, 60  # clusters that can be asked for
FITTED = 20_000  # rows that k-means is fitted on; more move no centre by what a picture shows
GROUPS = (2, 8)  # fewest and most groups of clusters


@dataclass(frozen=True, eq=False)
class Partition:
    """Latent space cut without looking at P, Q or any label.

    Attributes:
        cluster: (n,) cluster 0..K-1 of each pooled row, the largest cluster first.
        centres: (K, d) in standardised latent units; place: (K, 2) the centres on the first two principal axes.
        names: proposed from the attributes; group: (K,) group of each cluster; group_names, group_shares.
        share_P, share_Q: share of each cohort's scenarios, with drive-level intervals; ratio: share_Q / share_P.
        p_adj: of the drive-level test that the shares are equal, adjusted over the clusters.
        n_P, n_Q, drives: scenarios and drives of each cluster.
        scenes_P, scenes_Q: rows of each cohort that stand for each cluster.
    """

    n_clusters: int
    seed: int
    cluster: np.ndarray
    centres: np.ndarray
    place: np.ndarray
    names: tuple[str, ...]
    group: np.ndarray
    group_names: tuple[str, ...]
    group_shares: tuple[Shares, ...]
    share_P: tuple[Estimate, ...]
    share_Q: tuple[Estimate, ...]
    ratio: tuple[Estimate | None, ...]
    p_adj: tuple[float, ...]
    n_P: tuple[int, ...]
    n_Q: tuple[int, ...]
    drives: tuple[int, ...]
    scenes_P: tuple[tuple[int, ...], ...]
    scenes_Q: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> tuple[int, ...]:
        return tuple(p + q for p, q in zip(self.n_P, self.n_Q, strict=True))


@dataclass(frozen=True, eq=False)
class ClusterEvents:
    """Events by cluster, over both cohorts.

    Attributes:
        measured: sizes, rates, shrunk rates, shares, spread and agreement; None where there are too few drives or no
            event, with `reason`.
        rate, second_rate: of each cluster, with drive-level intervals; None in clusters without a known scenario.
    """

    event: str
    second_event: str
    measured: Clusters | None
    rate: tuple[Estimate | None, ...]
    second_rate: tuple[Estimate | None, ...]
    reason: str = ""


def cluster_steps(
    comparison, n_clusters: int = N_CLUSTERS, seed: int = 0
) -> Generator[Progress, None, Partition]:
    """Cut the latent space of a comparison and describe the clusters. Job kind `clusters`."""
    analysis = comparison.analysis
    yield Progress("Cutting the latent space", 0.05)
    cluster, centres = cut_space(analysis.space.X, n_clusters, seed)
    K = len(centres)
    yield Progress("Reading the attributes", 0.45)
    attributes, sample = pooled_attributes(analysis), analysis.sample
    yield Progress("Naming the clusters", 0.55)
    names = name_sets(attributes, [cluster == k for k in range(K)], sample.drive,
                      fallbacks=[f"cluster {k + 1}" for k in range(K)])
    group = group_centres(centres, np.bincount(cluster, minlength=K))
    groups = [group[cluster] == g for g in range(group.max() + 1)]
    group_names = name_sets(attributes, groups, sample.drive, fallbacks=[f"group {g + 1}" for g in range(len(groups))])
    yield Progress("P against Q", 0.85)
    shares = [shares_of(analysis, cluster == k) for k in range(K)]
    tested = test_nodes(cell_counts(cluster, sample.drive, K, sample.n_drives), sample.drive_size, sample.drive_y)
    scenes = [[representatives(analysis.space.X, np.flatnonzero((cluster == k) & (sample.y == c)), sample.drive)
               for k in range(K)] for c in (0, 1)]
    yield Progress("Done", 1.0)
    return Partition(
        K, seed, cluster, centres, on_axes(analysis.space.X, centres), names, group, group_names,
        tuple(shares_of(analysis, rows) for rows in groups), tuple(s.p for s in shares), tuple(s.q for s in shares),
        tuple(s.ratio for s in shares),
        tuple(adjust_bh(tested.p_value).tolist()), *(tuple(np.bincount(cluster[sample.y == c], minlength=K).tolist())
                                                     for c in (0, 1)),
        tuple(tested.drives.tolist()), tuple(scenes[0]),
        tuple(tuple(row - analysis.P.n for row in rows) for rows in scenes[1]),
    )


def cluster_event_steps(
    comparison, event: str, second: str, n_clusters: int = N_CLUSTERS, seed: int = 0
) -> Generator[Progress, None, ClusterEvents]:
    """Event rates of the clusters and their agreement with a second source of events. Job kind `cluster_events`."""
    analysis = comparison.analysis
    for name in (event, second):
        if name not in analysis.P.ell:
            raise ConfigError(f"There is no event '{name}' in this comparison; found {', '.join(analysis.P.ell)}.")
    yield Progress("Cutting the latent space", 0.05)
    cluster, centres = cut_space(analysis.space.X, n_clusters, seed)
    yield Progress("Counting events", 0.3)
    values = {name: np.concatenate([analysis.P.ell[name], analysis.Q.ell[name]]) for name in (event, second)}
    rates = [cluster_rates(cluster, len(centres), values[name], analysis) for name in (event, second)]
    yield Progress("What would chance alone give?", 0.4)
    measured = measure_clusters(cluster, values[event], values[second], analysis.sample.drive, names=(event, second),
                                seed=seed)
    yield Progress("Done", 1.0)
    reason = "" if measured else (
        f"There are {analysis.sample.n_drives:,} drives, too few to tell clusters from chance, or “{event}” never or "
        "always happens. Widen P and Q, or choose another event.")
    return ClusterEvents(event, second, measured, *rates, reason)


def cut_space(X, n_clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) cluster of each row by k-means, and (K, d) centres; the largest cluster is number 0.

    Fitted on at most 20,000 rows, evenly spread, and applied to all.
    """
    from sklearn.cluster import KMeans

    if not FEWEST <= n_clusters <= MOST:
        raise ConfigError(f"{n_clusters} clusters were asked for; choose from {FEWEST} to {MOST}.")
    X = np.asarray(X, dtype=np.float32)
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), FITTED)).astype(int))
    n_clusters = min(n_clusters, len(np.unique(X[rows], axis=0)))
    model = KMeans(n_clusters, n_init=3, max_iter=100, random_state=seed).fit(X[rows])
    cluster = model.predict(X)
    order = np.argsort(-np.bincount(cluster, minlength=n_clusters), kind="stable")
    rank = np.empty(n_clusters, dtype=np.int32)
    rank[order] = np.arange(n_clusters)
    return rank[cluster], model.cluster_centers_[order].astype(np.float64)


def group_centres(centres, size) -> np.ndarray:
    """(K,) group of each cluster, about a quarter as many: Ward's tree on the centres, the largest group first."""
    from scipy.cluster.hierarchy import fcluster, linkage

    K = len(centres)
    if K < 3:
        return np.zeros(K, dtype=np.int32)
    wanted = int(np.clip(round(K / 4), *GROUPS))
    label = fcluster(linkage(centres, "ward"), wanted, "maxclust") - 1
    order = np.argsort(-np.bincount(label, size), kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[label]


def on_axes(X, centres) -> np.ndarray:
    """(K, 2) centres on the first two principal axes of all rows; signs are fixed by the largest loading."""
    X = np.asarray(X[np.linspace(0, len(X) - 1, min(len(X), FITTED)).astype(int)], dtype=np.float64)
    mean = X.mean(axis=0)
    axes = np.linalg.eigh((X - mean).T @ (X - mean))[1][:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    place = (centres - mean) @ axes
    return np.pad(place, ((0, 0), (0, 2 - place.shape[1])))


def cluster_rates(cluster, K: int, value, analysis: Analysis) -> tuple[Estimate | None, ...]:
    """Mean of an event in each cluster with a drive-level interval (Korn and Graubard)."""
    drive, level, known = analysis.sample.drive, analysis.config.level, np.isfinite(value)
    design = design_effect_of_mean(drive[known], value[known]) if known.any() else 1.0
    found = []
    for k in range(K):
        rows = np.flatnonzero((cluster == k) & known)
        if not len(rows):
            found.append(None)
            continue
        mu = float(value[rows].mean())
        own = np.unique(drive[rows], return_inverse=True)[1]
        D = int(own.max()) + 1
        se = float(np.sqrt(clustered_variance(value[rows] - mu, own, D)))
        lo, hi = rate_interval(mu, se, len(rows), D, level, design)
        found.append(Estimate(mu, min(lo, mu), max(hi, mu), se))
    return tuple(found)


def cluster_table(partition: Partition, events: ClusterEvents | None = None) -> pd.DataFrame:
    """One row a cluster, numbered from 1."""
    rows = []
    for k in range(partition.n_clusters):
        row = {
            "cluster": k + 1, "name": partition.names[k], "group": partition.group_names[partition.group[k]],
            "scenarios": partition.size[k], "n_P": partition.n_P[k], "n_Q": partition.n_Q[k],
            "drives": partition.drives[k], **_columns("share_P", partition.share_P[k]),
            **_columns("share_Q", partition.share_Q[k]), **_columns("ratio", partition.ratio[k]),
            "p_adj": partition.p_adj[k],
        }
        if events is not None:
            row |= {"event": events.event, **_columns("rate", events.rate[k])}
            m = events.measured
            row |= {"rate_shrunk": m.shrunk_rate[k] if m else np.nan, "share_of_events": m.share[k] if m else np.nan}
            row |= {"second_event": events.second_event, **_columns("second_rate", events.second_rate[k])}
        rows.append(row)
    return pd.DataFrame(rows)


def _columns(name: str, value: Estimate | None) -> dict[str, float]:
    mu, lo, hi = (np.nan,) * 3 if value is None else (value.mu, value.lo, value.hi)
    return {name: mu, f"{name}_lo": lo, f"{name}_hi": hi}
