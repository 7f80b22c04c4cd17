"""The shipped encoder, which never saw a real road, on 1,000 + 1,000 scenes of Argoverse 1."""

from pathlib import Path

import numpy as np
import pytest

from avshift_core.__main__ import main
from avshift_core.latent.cohort import make_cohort
from avshift_core.latent.corpora import cohort_of
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.shift.analyze import analyze

ARCHIVE = Path(__file__).parents[3] / "shared" / "data" / "argoverse1" / "forecasting_csv.zip"


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("real") / "corpus")
    assert main(["import", "argoverse1", str(ARCHIVE), "--corpus", url]) == 0
    assert main(["encode", url, "--view", "full"]) == 0
    corpus = open_corpus(url)
    (latents,) = corpus.models
    return [cohort_of(corpus, f"area={area}", latents=latents) for area in ("miami", "pittsburgh")]


@pytest.mark.slow
@pytest.mark.realdata
def test_two_cities_differ(cities):
    assert analyze(*cities, metrics=[]).verdict.name == "global_shift"


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_halves_of_one_city_do_not(cities, seed):
    miami = cities[0]
    half = np.random.default_rng(seed).permutation(miami.n_drives)[: miami.n_drives // 2]
    rows = np.isin(miami.drive, half)
    A, B = (make_cohort(name, miami.z[r], drive_id=miami.drive_ids[miami.drive[r]])
            for name, r in (("one half", rows), ("the other", ~rows)))
    assert analyze(A, B, metrics=[]).verdict.name == "no_shift"
