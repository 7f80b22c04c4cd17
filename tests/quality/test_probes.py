import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from avshift_core.quality.probes import IDS, TARGETS, held_out_ridge, numbers_of, probe, probe_all

N, DRIVES = 3000, 60


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z, drive = rng.normal(size=(N, 6)).astype(np.float32), np.repeat(np.arange(DRIVES), N // DRIVES)
    return rng, z, drive


def test_r2_is_the_share_of_variance_that_was_built_in(data):
    rng, z, drive = data
    y = pd.Series(2 * z[:, 0] + rng.normal(size=N), name="ego_speed_mps")  # R2 = 4 / 5
    found = probe(z, y, drive, taught=True)
    assert (found.kind, found.trained_on, found.n, found.classes) == ("r2", True, N, 0)
    assert found.score.value == pytest.approx(0.8, abs=0.02)
    assert found.score.lo < 0.8 < found.score.hi


def test_auc_of_two_classes_is_that_of_the_normal_model(data):
    rng, z, drive = data
    y = (z[:, 1] + rng.normal(size=N) > 0).astype(float)
    found = probe(z, pd.Series(y, name="hard_brake"), drive)
    assert (found.kind, found.classes) == ("auc", 2)
    # P(z - z' > 0, z + e > 0, z' + e' < 0) of three normals with correlations 1/2, 1/2, 0 is 1/8 + 2 asin(1/2) / 4 pi
    # = 5/24 (Sheppard), over P(y = 1, y' = 0) = 1/4
    assert found.score.value == pytest.approx(5 / 6, abs=0.02)


def test_noise_cannot_be_read_even_when_drives_differ(data):
    rng, z, drive = data
    trace = z + 3 * rng.normal(size=(DRIVES, 6))[drive]  # latents that know the drive
    y = pd.Series(rng.normal(size=DRIVES)[drive] + 0.1 * rng.normal(size=N), name="n_agents")  # and so does y
    assert probe(trace, y, drive).score.value < 0.1  # folds by row would give nearly 1


def test_missing_values_and_rare_classes_are_left_out(data):
    _, z, drive = data
    text = np.where(z[:, 2] > 0, "truck", "car").astype(object)
    text[:500] = ""
    text[500:510] = "bus"  # fewer than 20
    found = probe(z, pd.Series(text, name="cutin_type"), drive)
    assert (found.n, found.classes) == (N - 510, 2)
    assert found.score.value > 0.99
    number = pd.Series(z[:, 0].astype(float), name="decel_onset_s").where(z[:, 1] > 0)
    assert probe(z, number, drive).n == (z[:, 1] > 0).sum()


@pytest.mark.parametrize("values", [np.full(N, 3.0), np.full(N, np.nan), np.full(N, "", dtype=object)])
def test_what_does_not_vary_has_no_probe(data, values):
    _, z, drive = data
    assert probe(z, pd.Series(values, name="stop_s"), drive) is None


def test_too_few_drives_have_no_probe(data):
    _, z, drive = data
    assert probe(z, pd.Series(z[:, 0], name="stop_s"), drive // 10) is None  # 6 drives


def test_ridge_is_sklearns(data):
    rng, z, _ = data
    y, fold = z[:, 0] + rng.normal(size=N), np.arange(N) % 2
    expected = Ridge(alpha=1.0).fit(z[fold != 0], y[fold != 0]).predict(z[fold == 0])
    np.testing.assert_allclose(held_out_ridge(z, y, fold)[fold == 0], expected, atol=1e-4)


def test_every_attribute_but_ids_is_a_target():
    assert {"ego_speed_mps", "cutin_distance_m", "road_type", "ttc_min_s", "discomfort", "category"} <= set(TARGETS)
    assert not set(IDS) & set(TARGETS)


def test_probe_all_takes_what_the_table_has(data):
    _, z, drive = data
    table = pd.DataFrame({"ego_speed_mps": z[:, 0], "actor": z[:, 1], "hour": z[:, 2]})
    found = probe_all(z, table, drive, taught=["ego_speed_mps"])
    assert [(p.name, p.trained_on) for p in found] == [("ego_speed_mps", True)]


def test_zero_and_one_are_classes_and_other_integers_are_not():
    assert numbers_of(pd.Series([0, 1] * 30))[1]
    assert not numbers_of(pd.Series([0, 1, 2] * 30))[1]
