"""Stage II: where in latent space the cohorts differ. Drives choose the regions, other drives measure them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cells import OUTSIDE
from avshift_core.latent.space import Space
from avshift_core.shift.celltree import NodeTest, best_nodes, cell_counts, scale_penalty, test_nodes
from avshift_core.shift.drives import Pool, adjust_bh

TARGET_HEAVY, SOURCE_HEAVY = "target_heavy", "source_heavy"
TOUCHING_SHARE = 0.25  # two groups of cells touch when this share of the smaller borders on the other
FRINGE_Z = 0.75  # evidence that a cell on the border of a group needs to join it
LARGEST_REGION = 0.5  # a region with more of the scenarios than this is not a place but a change of everything


@dataclass(frozen=True, eq=False)
class Region:
    """One mismatch region R_k, a union of neighbouring cells.

    Attributes:
        k: number from 1, in order of evidence.
        cells: the cells it is made of.
        p_k, q_k: masses under P and Q, on the drives that confirmed it and had no part in choosing it.
        score: |log-odds| of the mean held-out h in the region (eq:local_effect_size).
        p_adj: adjusted p-value of the confirming drives.
        n_source, n_target, n_drives: all scenarios in the region, and the drives they come from.
        centre: (d,) in standardised latent units; radius: distance within which 95 % of its scenarios lie.
    """

    k: int
    cells: tuple[int, ...]
    direction: str
    p_k: float
    q_k: float
    score: float
    p_adj: float
    n_source: int
    n_target: int
    n_drives: int
    centre: np.ndarray
    radius: float

    @property
    def w_k(self) -> float:
        """q_k / p_k, not clipped (eq:localized_weight)."""
        return self.q_k / self.p_k if self.p_k > 0 else 1.0


@dataclass(frozen=True, eq=False)
class LocalTest:
    """Result of Stage II.

    Attributes:
        regions: R1..RK, disjoint, confirmed.
        overlap_violations: places where Q has scenarios and P next to none; listed, never weighted.
        region_P, region_Q: (n,) index into `regions` of each scenario, OUTSIDE if in none.
        measure_P, measure_Q: (n,) scenarios of the drives that measured the masses.
        n_candidates: unions of cells that the choosing drives proposed.
    """

    regions: tuple[Region, ...]
    overlap_violations: tuple[Region, ...]
    region_P: np.ndarray
    region_Q: np.ndarray
    measure_P: np.ndarray
    measure_Q: np.ndarray
    n_candidates: int
    space: Space
    region_of_cell: np.ndarray

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    def region_of(self, z) -> np.ndarray:
        """(m,) index into `regions` of any scenario, seen or not, from its raw latent; OUTSIDE if in none."""
        cell = self.space.cells.assign(self.space.standardise(z))
        return np.where(cell >= 0, self.region_of_cell[cell], OUTSIDE)


def choose_drives(sample: Pool, share: float, rng) -> np.ndarray:
    """(G,) True for the drives that choose; the same share of both cohorts."""
    chooses = np.zeros(sample.n_drives, dtype=bool)
    for label in (0, 1):
        members = rng.permutation(np.flatnonzero(sample.drive_y == label))
        chooses[members[: max(2, min(len(members) - 2, round(share * len(members))))]] = True
    of_P = dict(zip(sample.fold_key[sample.drive_y == 0], chooses[sample.drive_y == 0], strict=True))
    for d in np.flatnonzero(sample.drive_y == 1):  # the same drive on both sides: Q's part follows P's
        chooses[d] = of_P.get(sample.fold_key[d], chooses[d])
    return chooses


def localize(space: Space, sample: Pool, h, config: AnalysisConfig) -> LocalTest:
    """Find mismatch regions that hold on drives that had no part in choosing them.

    1. The cells and the tree over them are label-free: every node is a candidate region, at every scale.
    2. On the choosing drives each node's share is compared drive by drive; Benjamini-Hochberg over the nodes; the
       disjoint nodes with the largest sum of z^2 - 2 log(nodes) are proposed, and joined where they touch and lean
       the same way.
    3. The other drives confirm (same direction, masses apart by more than `min_ratio`, Benjamini-Hochberg over the
       proposed) and measure p_k and q_k.

    Departs from app:local_shift_detection, which tests balls around every point with a binomial model: with clustered
    drives that finds false regions in nearly every run (`python -m avshift_core benchmark`); it is kept as
    `localize_paper`.

    Args:
        h: (n,) held-out posterior of each scenario.
    """
    rng = np.random.default_rng([config.seed, 3])
    chooses = choose_drives(sample, config.choose_share, rng)
    cells, size = space.cells, sample.drive_size
    under = cells.members()
    leaf_counts = cell_counts(space.cell, sample.drive, cells.n, sample.n_drives)
    bare = _without_support(leaf_counts, size * chooses, sample, config)
    usable = ~bare
    member = sparse.csr_array((under & usable).astype(float))
    counts = member @ leaf_counts
    proposal = test_nodes(counts, size * chooses, sample.drive_y)
    allowed = _candidates(proposal, config)
    chosen = best_nodes(proposal.z, allowed, cells, scale_penalty(int(allowed.sum())))
    groups, lean = join_touching(under[chosen] & usable, np.sign(proposal.z[chosen]), space.touching)
    groups = grow(groups, lean, proposal.z[: cells.n], usable, space.touching)
    joined = sparse.csr_array(groups.astype(float)) @ leaf_counts
    confirmed = test_nodes(joined, size * ~chooses, sample.drive_y, config.min_ratio)
    p_adj = adjust_bh(confirmed.p_value)
    keep = (p_adj <= config.alpha_loc) & (np.sign(confirmed.z) == lean) & (confirmed.count_P > 0)

    region_of_cell = np.full(cells.n, OUTSIDE)
    regions = []
    for i in np.flatnonzero(keep):
        own = np.flatnonzero(groups[i])
        region_of_cell[own] = len(regions)
        regions.append(_describe(len(regions) + 1, own, confirmed, i, p_adj[i], space, sample, h, config))
    violations = _violations(bare, under, space, sample, h, config)
    region = np.where(space.cell >= 0, region_of_cell[space.cell], OUTSIDE)
    measures = ~chooses[sample.drive]
    P, Q = sample.y == 0, sample.y == 1
    return LocalTest(
        tuple(regions), violations, region[P], region[Q], measures[P], measures[Q], len(groups), space, region_of_cell
    )


def join_touching(groups, lean, touching) -> tuple[np.ndarray, np.ndarray]:
    """Join groups of cells that lean the same way and touch; strongest first stays first.

    Args:
        groups: (g, K) bool, cells of each group, disjoint.
        lean: (g,) sign of q - p.
        touching: (K, K) scenarios of cell a whose second nearest centre is b.

    >>> join_touching(np.eye(3, dtype=bool), np.array([1, -1, 1]), np.ones((3, 3)))[0].astype(int).tolist()
    [[1, 0, 1], [0, 1, 0]]
    """
    if len(groups) == 0:
        return groups, lean
    flow = groups.astype(float) @ touching @ groups.T
    inside = groups.astype(float) @ touching.sum(axis=1)
    strength = (flow + flow.T) / np.minimum.outer(inside, inside).clip(min=1)
    adjacent = (strength >= TOUCHING_SHARE) & np.equal.outer(lean, lean)
    label = connected_components(adjacent, directed=False)[1]
    _, first = np.unique(label, return_index=True)
    order = label[np.sort(first)]
    return np.stack([groups[label == k].any(axis=0) for k in order]), lean[np.sort(first)]


def grow(groups, lean, z, usable, touching) -> np.ndarray:
    """Add to each group the cells on its border that lean its way: the tree cuts fringes off.

    Args:
        groups: (g, K) bool, disjoint; lean: (g,) sign of q - p.
        z: (K,) statistic of each cell on the choosing drives; usable: (K,) cells that may join.
    """
    if len(groups) == 0:
        return groups
    border = touching + touching.T
    share = groups.astype(float) @ border / border.sum(axis=0).clip(min=1)  # (g, K) of the cell's border
    nearest = share.argmax(axis=0)
    joins = usable & ~groups.any(axis=0) & (share.max(axis=0) >= TOUCHING_SHARE) & (lean[nearest] * z >= FRINGE_Z)
    grown = groups.copy()
    grown[nearest[joins], np.flatnonzero(joins)] = True
    return grown


def _candidates(tested: NodeTest, config: AnalysisConfig) -> np.ndarray:
    """Nodes that the choosing drives may propose: of a workable size, significant after adjustment."""
    workable = (tested.count_P + tested.count_Q >= 20) & (tested.p + tested.q <= 2 * LARGEST_REGION)
    allowed = np.zeros(len(workable), dtype=bool)
    allowed[workable] = adjust_bh(tested.p_value[workable]) <= config.alpha_loc
    return allowed


def _without_support(leaf_counts, size, sample: Pool, config: AnalysisConfig) -> np.ndarray:
    """Cells in which Q is significantly present and P holds less than `support_eps` of both, in equal numbers."""
    tested = test_nodes(leaf_counts, size, sample.drive_y)
    share = tested.p / np.maximum(tested.p + tested.q, 1e-300)
    return (share < config.support_eps) & (tested.z > 0) & (adjust_bh(tested.p_value) <= config.alpha_loc)


def _violations(bare, under, space, sample, h, config) -> tuple[Region, ...]:
    """Cells without support, joined while the tree holds nothing else."""
    pure = (under & ~bare).sum(axis=1) == 0
    found, taken = [], np.zeros(space.cells.n, dtype=bool)
    tested = test_nodes(
        sparse.csr_array(under.astype(float)) @ cell_counts(space.cell, sample.drive, space.cells.n, sample.n_drives),
        sample.drive_size, sample.drive_y,
    )
    for node in np.flatnonzero(pure)[::-1]:  # parents come after their children
        own = np.flatnonzero(under[node])
        if not taken[own].any():
            taken[own] = True
            p_adj = min(1.0, tested.p_value[node] * space.cells.n)
            found.append(_describe(len(found) + 1, own, tested, node, p_adj, space, sample, h, config))
    return tuple(found)


def _describe(k, own, tested: NodeTest, i, p_adj, space: Space, sample: Pool, h, config) -> Region:
    inside = np.isin(space.cell, own)
    of_P, of_Q = inside & (sample.y == 0), inside & (sample.y == 1)
    n_P, n_Q = int(of_P.sum()), int(of_Q.sum())
    share_P = n_P / np.bincount(sample.y)[0]
    share_Q = n_Q / np.bincount(sample.y)[1]
    balanced_h = (share_P * h[of_P].sum() / max(n_P, 1) + share_Q * h[of_Q].sum() / max(n_Q, 1)) / (share_P + share_Q)
    mean_h = float(np.clip(balanced_h, config.posterior_eps, 1 - config.posterior_eps))
    points = space.X[inside]
    centre = points.mean(axis=0)
    return Region(
        k=k, cells=tuple(int(c) for c in own), direction=TARGET_HEAVY if tested.q[i] > tested.p[i] else SOURCE_HEAVY,
        p_k=float(tested.p[i]), q_k=float(tested.q[i]), score=abs(float(np.log(mean_h / (1 - mean_h)))),
        p_adj=float(p_adj), n_source=n_P, n_target=n_Q,
        n_drives=len(np.unique(sample.drive[inside])), centre=centre,
        radius=float(np.quantile(np.linalg.norm(points - centre, axis=1), 0.95)),
    )
