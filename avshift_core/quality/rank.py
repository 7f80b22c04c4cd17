"""How many directions of latent space are in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avshift_core.encoder.output import effective_rank
from avshift_core.quality.drivewise import standardise


@dataclass(frozen=True)
class Rank:
    """Of the covariance of standardised latents; what the model gave before any standardising is not stored.

    Attributes:
        dimensions: of z; constant: how many of them do not vary.
        effective: exp of the entropy of the normalised eigenvalues; participation: (sum l)^2 / sum l^2.
        for_90: directions that hold 90 % of the variance.
        eigenvalues: d shares of the variance, largest first.
        output: what the model's card says was done to z; of whitened latents the rank is d whatever they hold.
    """

    dimensions: int
    constant: int
    effective: float
    participation: float
    for_90: int
    eigenvalues: tuple[float, ...]
    output: str = "standardised"

    @property
    def tells(self) -> bool:
        """False for whitened latents: their rank was made, not learned."""
        return self.output != "whitened"


def measure_rank(z, output: str = "standardised") -> Rank:
    """
    >>> z = np.random.default_rng(0).normal(size=(5000, 4))
    >>> round(measure_rank(np.concatenate([z, z], axis=1)).effective, 1)       # four directions, each twice
    4.0
    """
    x = standardise(z).astype(np.float64)
    share = np.linalg.eigvalsh(x.T @ x / len(x))[::-1].clip(min=0)
    share = share / share.sum() if len(share) else np.ones(1)
    return Rank(
        dimensions=int(np.shape(z)[1]), constant=int(np.shape(z)[1] - x.shape[1]),
        effective=effective_rank(x), participation=float(1 / (share**2).sum()),
        for_90=int(np.searchsorted(np.cumsum(share), 0.9 - 1e-12) + 1), eigenvalues=tuple(share.tolist()),
        output=output,
    )
