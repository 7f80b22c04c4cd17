"""The space in which two cohorts are compared: standardised latents and a label-free partition of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.latent.cells import Cells, partition


@dataclass(frozen=True, eq=False)
class Space:
    """Both cohorts, P first, in units of the pooled standard deviation.

    Attributes:
        X: (n, d) standardised latents; constant dimensions are left out.
        mean, scale: (d0,) of the raw latents; kept: (d0,) dimensions that vary.
        cells: the partition; cell: (n,) cell of each row.
        touching: (K, K) scenarios of cell a whose second nearest centre is b.
    """

    X: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    kept: np.ndarray
    cells: Cells
    cell: np.ndarray
    touching: np.ndarray

    def standardise(self, z) -> np.ndarray:
        """(m, d0) raw latents -> (m, d) in this space."""
        z = np.asarray(z, dtype=np.float64)
        return ((z - self.mean) / self.scale)[:, self.kept].astype(np.float32)

    def raw(self, x) -> np.ndarray:
        """(d,) of this space -> (d0,) raw latent; a dimension that was left out for being constant has its mean."""
        z = self.mean.copy()
        z[self.kept] += np.asarray(x, dtype=np.float64) * self.scale[self.kept]
        return z


def make_space(P, Q, n_cells: int, seed: int) -> Space:
    """Standardise with equal say of both cohorts, and cut the space into cells without looking at the labels."""
    mean = (P.z.mean(axis=0, dtype=np.float64) + Q.z.mean(axis=0, dtype=np.float64)) / 2
    spread = [((c.z - mean) ** 2).mean(axis=0, dtype=np.float64) for c in (P, Q)]
    scale = np.sqrt((spread[0] + spread[1]) / 2)
    kept = scale > 1e-7 * np.maximum(1.0, np.abs(mean))
    scale = np.where(kept, scale, 1.0)
    X = np.concatenate([((c.z - mean) / scale)[:, kept] for c in (P, Q)]).astype(np.float32)
    y = np.repeat([0, 1], [P.n, Q.n])
    cells = partition(X, y, n_cells, seed)
    X.setflags(write=False)
    return Space(X, mean, scale, kept, cells, cells.assign(X), cells.borders(X))
