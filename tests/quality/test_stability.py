import numpy as np
import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.latent.cohort import make_cohort
from avshift_core.quality.stability import chance_jaccard, measure_stability, overlap, regions_of, thin


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    drive = np.repeat(np.arange(40), 30)
    z = rng.normal(size=(1200, 6)).astype(np.float32)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return rng, drive, z, (z @ turn).astype(np.float32)


def test_a_rotation_is_the_same_space(data):
    _, drive, z, turned = data
    cluster = (z[:, 0] > 0).astype(int)
    found = measure_stability(["a", "b"], [z, turned], [cluster, 1 - cluster], drive)
    assert found.overlap.mean > 0.999 and np.isnan(found.overlap.std)  # of one pair there is none
    assert found.rand.mean == 1  # names of clusters do not matter
    assert found.pair is None and found.regions is None


def test_unrelated_spaces_agree_by_chance(data):
    rng, drive, z, _ = data
    others = [rng.normal(size=z.shape).astype(np.float32) for _ in range(2)]
    clusters = [rng.integers(0, 5, len(z)) for _ in range(3)]
    found = measure_stability(["a", "b", "c"], [z, *others], clusters, drive)
    assert found.overlap.mean == pytest.approx(found.overlap.chance, abs=0.01)
    assert found.overlap.chance == pytest.approx(50 / 1200)
    assert abs(found.rand.mean) < 0.02


def pair(rng, noise):
    """More of Q near (1.5, 0, ...), where P has scenarios too: the same ones in two spaces."""
    n, drives = 1500, 50
    P, Q = rng.normal(size=(2, n, 4))
    Q[: n // 5] = [1.5, 0, 0, 0] + 0.4 * rng.normal(size=(n // 5, 4))
    Q = Q[rng.permutation(n)]
    drive = np.arange(n) % drives
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for z in ((P, Q), (P @ turn, Q @ turn)):
        yield [make_cohort(name, x + noise * rng.normal(size=x.shape), drive_id=[f"{name}{d}" for d in drive])
               for name, x in zip("PQ", z, strict=True)]


def test_regions_of_one_shift_are_found_by_both_models(data):
    rng, drive, z, turned = data
    analyses = [regions_of(P, Q, AnalysisConfig(repeats=1)) for P, Q in pair(rng, 0.1)]
    found = measure_stability(["a", "b"], [z, turned], [drive, drive], drive, pair="P -> Q", analyses=analyses)
    assert found.pair == "P -> Q" and len(found.verdicts) == 2
    assert found.target_heavy.mean > 0.4 and found.target_heavy.mean > 3 * found.target_heavy.chance
    assert all(0.05 < share < 0.5 for share in found.region_share)


def test_small_numbers_by_hand():
    assert overlap(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[3, 2, 1], [7, 8, 6]])) == pytest.approx(4 / 6)
    half = np.array([True, False])
    assert chance_jaccard(half, half) == pytest.approx(1 / 3)  # 1/4 over 3/4


def test_thin_keeps_whole_drives(data):
    _, drive, _, _ = data
    rows = thin(drive, 500, 0)
    assert 400 < len(rows) <= 500
    assert set(np.bincount(drive[rows])) <= {0, 30}
