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


def half(cohort, seed, name):
    """A random half of the drives, and the other."""
    chosen = np.random.default_rng(seed).permutation(cohort.n_drives)[: cohort.n_drives // 2]
    rows = np.isin(cohort.drive, chosen)
    return [make_cohort(f"{name} {k}", cohort.z[r], drive_id=cohort.drive_ids[cohort.drive[r]])
            for k, r in enumerate((rows, ~rows))]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_halves_of_one_city_do_not_differ_and_halves_of_two_do(cities, seed):
    one, other = half(cities[0], seed, "miami")
    assert analyze(one, other, metrics=[]).verdict.name == "no_shift"
    away, _ = half(cities[1], seed, "pittsburgh")  # as few scenes can show a shift
    assert analyze(one, away, metrics=[]).verdict.name != "no_shift"
