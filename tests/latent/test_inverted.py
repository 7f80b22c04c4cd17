"""A search in the whole corpus: exact when all lists are opened, with the recall that it claims when some are."""

from dataclasses import replace

import numpy as np
import pytest

from avshift_core import archive
from avshift_core.errors import CorpusError
from avshift_core.latent import inverted
from avshift_core.latent.inverted import index_steps
from avshift_core.latent.lists import MEASURED, Reach
from avshift_core.progress import finish
from tests.latent.weeks import weeks


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return weeks(tmp_path_factory.mktemp("c") / "c", n_weeks=3, n=2000, drives=40)


@pytest.fixture(scope="module")
def index(corpus):
    return finish(index_steps(corpus.url, corpus.fingerprint, "mine"))


def by_all_distances(corpus, scenario_id, k, other_drives=False):
    """Ids and distances by sorting all distances in units of the corpus' standard deviations."""
    table, z = corpus.table(latents="mine")
    x = (z - z.mean(axis=0)) / z.std(axis=0)
    row = np.flatnonzero(table["scenario_id"] == scenario_id)[0]
    distance = np.linalg.norm(x - x[row], axis=1)
    distance[table["drive_id"] == table["drive_id"].iloc[row] if other_drives else row] = np.inf
    order = np.argsort(distance)[:k]
    return table["scenario_id"].to_numpy()[order].tolist(), distance[order], z[row], table["drive_id"].iloc[row]


@pytest.mark.parametrize("other_drives", [False, True])
def test_all_lists_opened_give_the_true_neighbours(corpus, index, other_drives):
    whole = replace(index, reach=Reach(len(index.lists.centre), 1.0, 0))
    for scenario_id in ("2026-03-02-0-0007", "2026-03-16-0-1999"):
        ids, distance, z, drive = by_all_distances(corpus, scenario_id, 12, other_drives)
        found = whole.search(z, 12, scenario_id=scenario_id, drive_id=drive if other_drives else "")
        assert found.scenario_id.tolist() == ids and found.distance == pytest.approx(distance, abs=1e-4)
        assert found.looked_at == 1


def test_the_recall_is_what_it_says_and_most_of_the_corpus_stays_closed(corpus, index):
    assert index.reach.recall >= 0.96 and index.reach.anchors == MEASURED
    ids = index.obs["scenario_id"].sample(150, random_state=3)
    hits, looked = 0, []
    for scenario_id in ids:
        true, _, z, _ = by_all_distances(corpus, scenario_id, 10)
        found = index.search(z, 10, scenario_id=scenario_id)
        hits += len(set(true) & set(found.scenario_id))
        looked.append(found.looked_at)
    assert hits / 1500 == pytest.approx(index.reach.recall, abs=0.02)  # both are of about 1,500 neighbours near 0.99
    assert np.mean(looked) < 0.3


def test_every_scenario_is_in_one_list_and_the_result_can_be_kept(corpus, index, tmp_path):
    assert sorted(index.obs["scenario_id"]) == sorted(corpus.table()["scenario_id"])
    start = index.lists.start
    assert start[0] == 0 and start[-1] == corpus.n == len(index.lists.X) and (np.diff(start) > 0).all()
    archive.save(index, tmp_path / "index.avs")
    again, z = archive.load(tmp_path / "index.avs"), np.zeros(3)
    assert again.search(z, 5).scenario_id.tolist() == index.search(z, 5).scenario_id.tolist()
    other = finish(index_steps(corpus.url, corpus.fingerprint, "mine"))
    assert np.array_equal(other.lists.X, index.lists.X) and other.reach == index.reach


def test_what_cannot_be_searched(corpus, index, monkeypatch):
    with pytest.raises(CorpusError, match=r"latent of 'a' has 2 dimensions and those of the corpus 3"):
        index.search([0.0, 1.0], 5, scenario_id="a")
    monkeypatch.setattr(inverted, "MOST", 100)
    with pytest.raises(CorpusError, match="6,000 scenarios, and at most 100 can be searched at once"):
        finish(index_steps(corpus.url, corpus.fingerprint, "mine"))


def test_twins_and_few_scenarios(tmp_path):
    small = weeks(tmp_path / "c", n_weeks=1, n=9)
    index = finish(index_steps(small.url, small.fingerprint, "mine"))
    found = index.search(np.zeros(3), 50)
    assert len(set(found.scenario_id)) == len(found.scenario_id) <= 9
