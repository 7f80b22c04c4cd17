import numpy as np
import pytest
from sklearn.decomposition import PCA

from avshift_core.quality.features import flatten, make_baselines, principal_components
from avshift_core.quality.handmade import FAR_M, NO_TTC_S, handmade, named_features
from avshift_core.scenario.schema import make_road
from avshift_core.scenario.view import tensor_view
from tests.scenario.scenes import CAR, along, batch_of, lane_change, moved, scene, times, track

T = times(12.0)
ROAD = make_road([([(-50, 0), (150, 0)], "lane_center", 13.9), ([(-50, 3.5), (150, 3.5)], "lane_center", 13.9),
                  ([(150, 7), (-50, 7)], "lane_center", 13.9)])
EMPTY_T = scene(T, track(T, along(T, 10.0)))


def features(*scenarios):
    view = tensor_view(batch_of(*scenarios), max_agents=32)
    found = named_features(view)
    np.testing.assert_array_equal(handmade(view), np.stack(list(found.values()), axis=1).astype(np.float32))
    return found


def test_gaps_speeds_and_ttc_of_a_car_ahead():
    ahead = track(T, 75 + along(T, 5.0))  # the ego drives 10 m/s: 60 m nearer after 12 s
    found = features(scene(T, track(T, along(T, 10.0)), [ahead]))
    assert found["front_first"][0] == pytest.approx(75 - CAR[0], abs=0.01)
    assert found["front_last"][0] == found["front_min"][0] == pytest.approx(15 - CAR[0], abs=0.01)
    assert found["front_closing"][0] == pytest.approx(5, abs=0.01)
    assert found["ttc_min"][0] == pytest.approx((15 - CAR[0]) / 5, abs=0.01)
    assert found["speed_mean"][0] == pytest.approx(10, abs=0.01)
    assert found["behind_min"][0] == found["left_min"][0] == found["right_min"][0] == FAR_M


def test_a_car_that_moves_over_is_seen_with_its_side():
    entering = track(T, 20 + along(T, 9.0), lane_change(T, 4.0, 3.0, -3.5) + 3.5)
    found = features(scene(T, track(T, along(T, 10.0)), [entering]), EMPTY_T)
    assert found["enter_side"].tolist() == [1, 0]  # from the left; nobody
    assert 12 < found["enter_gap"][0] < 17 and found["enter_gap"][1] == FAR_M  # 20 m less 1 m/s, 4 to 7 s later
    assert found["enter_speed"][0] == pytest.approx(9, abs=0.3)


def test_a_scene_without_agents_has_the_same_features_alone_and_beside_others():
    crowded = scene(T, track(T, along(T, 10.0)), [track(T, 30 + along(T, 8.0))])
    alone, beside = features(EMPTY_T), features(EMPTY_T, crowded)
    assert {name: float(v[0]) for name, v in alone.items()} == {name: float(v[0]) for name, v in beside.items()}


def test_no_agent_at_all_gives_finite_numbers():
    found = features(EMPTY_T)
    assert all(np.isfinite(v).all() for v in found.values())
    assert found["ttc_min"][0] == NO_TTC_S and found["n_all"][0] == 0


def test_place_and_heading_of_the_log_do_not_matter():
    one = scene(T, track(T, along(T, 10.0)), [track(T, 30 + along(T, 8.0))], road=[
        (ROAD.polyline(j), "lane_center", 13.9) for j in range(3)])
    a, b = features(one), features(moved(one, 1000.0, -500.0, 1.2))
    for name in a:
        assert a[name] == pytest.approx(b[name], abs=0.05), name


def test_flattened_tensors_have_one_width_whatever_the_number_of_agents():
    few = scene(T, track(T, along(T, 10.0)), [track(T, 30 + along(T, 8.0))])
    many = scene(T, track(T, along(T, 10.0)), [track(T, 10.0 * i + along(T, 8.0)) for i in range(1, 25)])
    widths = {flatten(tensor_view(batch_of(s), max_agents=32)).shape[1] for s in (EMPTY_T, few, many)}
    assert len(widths) == 1


def test_principal_components_are_sklearns():
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(500, 3)) @ rng.normal(size=(3, 20)) + 0.01 * rng.normal(size=(500, 20)))
    flat = flat.astype(np.float16)
    found = principal_components(flat, seed=0, components=3)
    x = flat.astype(float)
    expected = PCA(3).fit_transform((x - x.mean(0)) / x.std(0))
    for a, b in zip(found.T, expected.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) > 0.999


def test_both_baselines_come_in_the_order_of_the_batches():
    rng = np.random.default_rng(1)
    scenes = [scene(T, track(T, along(T, v)), [track(T, g + along(T, 8.0))]) for v, g in
              zip(rng.uniform(5, 15, 20), rng.uniform(15, 60, 20), strict=True)]
    whole, cut = make_baselines([batch_of(*scenes)]), make_baselines([batch_of(*scenes[:7]), batch_of(*scenes[7:])])
    np.testing.assert_allclose(whole.hand, cut.hand, atol=1e-4)
    np.testing.assert_allclose(np.abs(whole.pca[:, :2]), np.abs(cut.pca[:, :2]), rtol=0.02, atol=0.05)
    assert len(whole.pca) == 20
