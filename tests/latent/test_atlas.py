"""The map of a corpus: clouds stay apart, a scenario has one place in every comparison, and the others are placed."""

import numpy as np
import pytest

from avshift_core import archive
from avshift_core.errors import CorpusError
from avshift_core.latent import atlas as module
from avshift_core.latent.atlas import atlas_steps, draw_steps
from avshift_core.latent.corpora import read_pair
from avshift_core.latent.neighbors import nearest
from avshift_core.latent.project import measure_faith
from avshift_core.progress import finish
from tests.latent.weeks import DAYS, add_latents, add_week, weeks

N, GROUPS = 600, 6


@pytest.fixture(scope="module")
def clouds():
    """Six clouds far apart in 40 dimensions, the latents of groups 0..5 in turn."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % GROUPS
    z = (rng.normal(size=(GROUPS, 40))[group] * 4 + rng.normal(size=(N, 40))).astype(np.float32)
    return np.array([f"s{i:04d}" for i in range(N)]), z, group


@pytest.fixture(scope="module")
def drawn(clouds):
    ids, z, group = clouds
    seen = []
    return finish(draw_steps(ids, z, group, N), seen.append), seen


def test_the_map_keeps_the_clouds_apart(clouds, drawn):
    _, _, group = clouds
    atlas, _ = drawn
    assert atlas.xy.shape == (N, 2) and atlas.xy.dtype == np.float32 and np.isfinite(atlas.xy).all()
    assert (group[nearest(atlas.xy, 5)[1]] == group[:, None]).all()
    assert atlas.recall == 1 and not atlas.landmarks and not atlas.xy.flags.writeable
    assert atlas.axes.shape == (40, 30) and 0.7 < atlas.explained < 1


def test_umap_keeps_more_neighbours_than_two_straight_axes(clouds, drawn):
    _, z, _ = clouds
    flat = ((z - drawn[0].mean) / drawn[0].scale) @ drawn[0].axes[:, :2]
    rows = np.arange(N)
    assert measure_faith(z, drawn[0].xy, rows).kept > measure_faith(z, flat, rows).kept


def test_the_same_seed_gives_the_same_map_and_another_one_another(clouds, drawn):
    again, other = (finish(draw_steps(*clouds, N, seed=seed)) for seed in (0, 1))
    assert np.array_equal(again.xy, drawn[0].xy) and not np.array_equal(other.xy, drawn[0].xy)


def test_progress_goes_up_and_tells_the_rounds(drawn):
    shares = [p.share for p in drawn[1]]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert any("of 500 rounds" in p.text and not p.text.startswith("Drawing the map, 0 ") for p in drawn[1])


def test_who_was_drawn_stands_there_and_who_was_not_stands_in_its_own_cloud(clouds, drawn):
    ids, z, group = clouds
    atlas, _ = drawn
    order = np.random.default_rng(2).permutation(N)
    assert np.array_equal(atlas.places(ids[order], z[order]), atlas.xy[order])
    names = np.array([f"new{i}" for i in range(N)])
    moved = z + np.random.default_rng(3).normal(scale=0.1, size=z.shape).astype(np.float32)
    placed = atlas.places(names, moved)
    assert not atlas.drawn(names).any() and atlas.drawn(ids).all() and placed.dtype == np.float32
    assert (group[nearest(atlas.xy, 5, placed)[1]] == group[:, None]).all()
    half = np.where(np.arange(N) % 2, ids, names)
    assert np.array_equal(atlas.places(half, moved)[1::2], atlas.xy[1::2])


def test_the_place_is_the_mean_of_the_nearest_anchors_by_hand():
    atlas = module.Atlas(np.array(["a", "b"]), np.array([[0, 0], [6, 3]], np.float32), 3, np.zeros(1), np.ones(1),
                         np.ones((1, 1)), 1.0, np.array([0, 1]), np.array([[0.0], [3.0]]), 1.0, False, 0)
    assert atlas.places(["c"], [[1.0]]).tolist() == [[2, 1]]  # distances 1 and 2: a third of the way to the second
    assert atlas.places(["b", "c"], [[9.0], [0.0]])[0].tolist() == [6, 3]


def test_a_scenario_has_one_place_in_every_comparison(tmp_path):
    corpus = weeks(tmp_path / "c", n_weeks=3)
    atlas = finish(atlas_steps(corpus.url, corpus.fingerprint, "mine"))
    assert (len(atlas.xy), atlas.n) == (900, 900) and (np.diff(atlas.scenario_id.argsort()) == 1).all()
    first, second = (read_pair(corpus, "period=2026-W11", f"period=2026-W{w}").P for w in (10, 12))
    here, there = (atlas.places(c.obs["scenario_id"], c.z) for c in (first, second))
    assert np.array_equal(here, there) and len(here) == 300 and atlas.drawn(first.obs["scenario_id"]).all()


def test_of_a_large_corpus_every_part_is_drawn_by_its_share(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST", 200)
    monkeypatch.setattr(module, "ANCHORS", 50)
    for day, n in zip(DAYS, (300, 600, 100), strict=True):
        add_week(tmp_path / "c", day, n=n)
    corpus = add_latents(tmp_path / "c")
    atlas = finish(atlas_steps(corpus.url, corpus.fingerprint, "mine"))
    assert [sum(name.startswith(day) for name in atlas.scenario_id) for day in DAYS] == [60, 120, 20]
    assert atlas.n == 1000 and len(atlas.anchor) == 50
    table, z = corpus.table(latents="mine")
    xy = atlas.places(table["scenario_id"], z)
    assert xy.shape == (1000, 2) and np.isfinite(xy).all() and atlas.drawn(table["scenario_id"]).sum() == 200


def test_latents_that_only_a_part_has(tmp_path):
    weeks(tmp_path / "c", n_weeks=2)
    add_latents(tmp_path / "c", "half")
    add_week(tmp_path / "c", DAYS[2])
    corpus = add_latents(tmp_path / "c")
    assert finish(atlas_steps(corpus.url, corpus.fingerprint, "half")).n == 600
    with pytest.raises(CorpusError, match="has no latents 'other'"):
        finish(atlas_steps(corpus.url, corpus.fingerprint, "other"))
    with pytest.raises(CorpusError, match="has changed since this was asked for"):
        finish(atlas_steps(corpus.url, "0" * 64, "half"))


def test_a_result_can_be_kept(clouds, drawn, tmp_path):
    archive.save(drawn[0], tmp_path / "map.avs")
    again = archive.load(tmp_path / "map.avs")
    assert np.array_equal(again.places(clouds[0], clouds[1]), drawn[0].xy) and again.extent == drawn[0].extent


@pytest.mark.parametrize(("n", "d"), [(12, 3), (200, 1), (60, 64)])
def test_small_and_flat_spaces_have_a_map_too(n, d):
    z = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    z[: n // 4] = z[0]  # twins
    atlas = finish(draw_steps(np.arange(n).astype(str), z, np.zeros(n), n))
    assert atlas.xy.shape == (n, 2) and np.isfinite(atlas.xy).all() and atlas.axes.shape[1] == min(d, 30)
