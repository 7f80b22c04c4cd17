"""Comparisons of small corpora of latents: the paper's three cases, and two weeks with less than usual."""

import numpy as np
import pytest

from avshift_core.comparison import comparison_steps
from avshift_core.evidence.pack import pack_steps
from avshift_core.progress import finish
from tests.latent.weeks import weeks
from tests.pages.conftest import CASES, QUICK, write_cases

MADE = "2026-11-18 09:00 UTC"


def pack_of(comparison, metric=None, B=None, **more):
    return finish(pack_steps(comparison, metric, B, **{"made": MADE, **more}))


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    """Case -> its comparison."""
    url = str(tmp_path_factory.mktemp("evidence") / "cases")
    write_cases(url)
    return {case: finish(comparison_steps(url, f"period=P,area={case}", f"period=Q,area={case}", config=QUICK))
            for case in CASES}


@pytest.fixture(scope="session")
def packs(cases):
    """Case -> its pack, of the paper's own metric."""
    return {case: pack_of(comparison, "ell") for case, comparison in cases.items()}


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """Two weeks without drives and without an event that varies."""
    url, n = str(tmp_path_factory.mktemp("evidence") / "bare"), 300
    weeks(url, known_drives=0, discomfort=np.zeros(n), ttc_min_s=np.full(n, 10.0))
    return finish(comparison_steps(url, "period=2026-W10", "period=2026-W11", config=QUICK))
