"""A small fleet and small models that many tests read; made once."""

import pytest

from avshift_core.config import EncoderConfig
from avshift_core.encoder.train import train_steps
from avshift_core.progress import finish
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.store.corpus import open_corpus

SMALL = EncoderConfig(latent_dim=8, d_model=32, n_layers=1, n_heads=4, batch_size=64, epochs=3, valid_share=0.2)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory):
    """URL of 800 scenarios of the demo fleet."""
    url = str(tmp_path_factory.mktemp("fleet") / "corpus")
    finish(demo_steps(url, FleetConfig(800, seed=3), jobs=1))
    return url


@pytest.fixture(scope="session")
def batch(fleet):
    """96 scenarios of it."""
    return next(open_corpus(fleet).batches(size=96))


@pytest.fixture(scope="session")
def model(fleet, tmp_path_factory):
    """A small trained model."""
    return finish(train_steps(fleet, tmp_path_factory.mktemp("model") / "m", SMALL, jobs=1))
