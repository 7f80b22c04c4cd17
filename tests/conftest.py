"""Pairs of cohorts and analyses that many tests read; made once."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from avshift_core.latent.benchmark import line_case, manifold_case
from avshift_core.latent.cohort import make_cohort
from avshift_core.shift.analyze import analyze

# The same examples in every run: what fails here fails everywhere. Slow machines are no failure.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

DATA = Path(__file__).parents[2] / "shared" / "data"


LONGEST = ("test_readme_encoder.py", "test_readme.py", "test_browser.py")  # first: else one core has to finish alone


def pytest_collection_modifyitems(items):
    """Tests of real logs are skipped, with a sentence, where the logs are not beside the project."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
    if not DATA.is_dir():
        for item in items:
            if "realdata" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="the driving data is not in ../shared/data"))


@pytest.fixture(scope="session")
def line():
    return line_case("localized", n=3000, seed=1)


@pytest.fixture(scope="session")
def line_analysis(line):
    return analyze(line.P, line.Q, repeats=2)


@pytest.fixture(scope="session")
def clustered():
    return manifold_case(3000, 60, seed=2)


@pytest.fixture(scope="session")
def clustered_analysis(clustered):
    return analyze(clustered.P, clustered.Q, repeats=2, force_localize=True)


@pytest.fixture
def small_pair():
    """Two cohorts of 300 scenarios in 15 drives and 3 dimensions, the second moved a little."""
    rng = np.random.default_rng(0)

    def side(name, move):
        drive = np.repeat(np.arange(15), 20)
        z = rng.normal(size=(300, 3)) + move
        return make_cohort(name, z, drive_id=[f"{name}{d}" for d in drive], ell={"ell": rng.random(300) < 0.3})

    return side("P", 0.0), side("Q", 0.3)


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 256 kB, where we may mount one."""
    mount = tmp_path / "disk"
    mount.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "mount") or libc.mount(b"tmpfs", bytes(mount), b"tmpfs", 0, b"size=256k") != 0:
        pytest.skip("a small file system can only be mounted as root")
    yield mount
    libc.umount2(bytes(mount), 2)
