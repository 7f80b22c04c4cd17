import numpy as np
import pandas as pd
import pytest

from avshift_core.quality.retrieval import (
    attribute_distances,
    chance_of_categories,
    examples,
    measure_retrieval,
    nearest_ten,
)

N = 1200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    kind = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    drive = np.repeat(np.arange(40), 30)
    table = pd.DataFrame({"category": np.array(list("abcd"))[kind], "ego_speed_mps": rng.normal(size=N)})
    return rng, kind, drive, table


def test_categories_far_apart_are_found_again(data):
    rng, kind, drive, table = data
    found = measure_retrieval("z", nearest_ten(np.eye(4)[kind] * 50 + rng.normal(size=(N, 4)), drive), table, drive)
    assert found.precision.value == found.macro == 1
    assert [c.category for c in found.categories] == list("abcd")
    assert sum(c.n for c in found.categories) == N


def test_noise_gives_chance(data):
    rng, kind, drive, table = data
    found = measure_retrieval("z", nearest_ten(rng.normal(size=(N, 4)), drive), table, drive)
    share = np.bincount(kind) / N
    assert found.chance == pytest.approx((share**2).sum(), abs=0.01)
    assert found.precision.value == pytest.approx(found.chance, abs=0.02)
    assert found.precision.lo < found.chance < found.precision.hi
    for c, p in zip(found.categories, share, strict=True):
        assert c.chance == pytest.approx(p, abs=0.01)


def test_a_space_that_only_knows_the_drive_gets_nothing_for_it():
    drive = np.repeat(np.arange(40), 30)
    table = pd.DataFrame({"category": np.array(list("abcdefgh"))[drive % 8]})  # one category a drive
    x = np.random.default_rng(1).normal(size=(40, 8))[drive] * 10
    found = measure_retrieval("z", nearest_ten(x, drive), table, drive)
    assert found.precision.value < 0.4  # 1 if the own drive counted


def test_scenarios_without_a_category_neither_ask_nor_answer(data):
    rng, kind, drive, table = data
    some = table.assign(category=np.where(np.arange(N) % 2, table["category"], ""))
    near = nearest_ten(np.eye(4)[kind] * 50 + rng.normal(size=(N, 4)), drive)
    found = measure_retrieval("z", near, some, drive)
    assert found.precision.value == 1 and len(found.categories) == 4


def test_chance_leaves_out_the_own_drive():
    chance = chance_of_categories(np.array(["a", "a", "b", "a"]), np.array([0, 0, 1, 1]))
    assert chance.tolist() == [0.5, 0.5, 0.0, 1.0]  # by hand: others are rows 2, 3 or rows 0, 1


def test_attribute_distance_is_zero_for_twins_and_one_for_strangers(data):
    rng, _, drive, table = data
    speed = table["ego_speed_mps"].to_numpy()
    order = np.argsort(speed)
    twins = np.empty((N, 1), int)
    twins[order, 0] = np.roll(order, -1)
    assert attribute_distances(twins, table, drive, 0)["ego_speed_mps"] < 0.02
    strangers = rng.integers(0, N, (N, 10))
    assert attribute_distances(strangers, table, drive, 0)["ego_speed_mps"] == pytest.approx(1, abs=0.05)
    gaps = table.assign(ego_speed_mps=np.where(np.arange(N) < 600, speed, np.nan))
    assert attribute_distances(strangers, gaps, drive, 0)["ego_speed_mps"] == pytest.approx(1, abs=0.08)


def test_examples_are_random_scenarios_of_different_categories_with_their_nearest():
    table = pd.DataFrame({"scenario_id": [f"s{i}" for i in range(N)], "category": np.repeat(list("abcd"), N // 4)})
    near = (np.arange(N)[:, None] + np.arange(1, 11)) % N
    rows = examples(near, table, seed=0)
    assert [len(row) for row in rows] == [6, 6, 6]
    for row in rows:
        first = int(row[0][1:])
        assert list(row[1:]) == [f"s{(first + j) % N}" for j in range(1, 6)]
    assert len({table["category"][int(row[0][1:])] for row in rows}) == 3
    assert examples(near, table, seed=1) != rows
