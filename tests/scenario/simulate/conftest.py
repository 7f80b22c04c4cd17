"""Contexts and runs of the fleet that many tests read; made once."""

import pytest

from avshift_core.scenario.simulate.fleet import Block, FleetConfig, draw, simulate
from avshift_core.scenario.simulate.policy import POLICIES


@pytest.fixture(scope="session")
def contexts():
    """1,000 contexts of each area: (contexts, ids)."""
    config = FleetConfig(scenarios=16_000, seed=5)
    return [draw(config, Block(cell, 0, 40, 1000)) for cell in (0, 1)]


@pytest.fixture(scope="session")
def runs(contexts):
    """The same contexts under the first version: (rows, batch, collided) of every piece, by area."""
    return [list(simulate(*drawn, POLICIES["v4.1"])) for drawn in contexts]
