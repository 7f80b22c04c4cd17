"""The law is what it says it is: densities, mixtures, effects."""

import itertools

import numpy as np
import pytest
from scipy import stats

from avshift_core.errors import ConfigError
from avshift_core.scenario.schema import CATEGORIES
from avshift_core.scenario.simulate.fleet import AREAS, WEEKS, FleetConfig, blocks, draw
from avshift_core.scenario.simulate.law import BASE_MIX, HOURS, ROUTES, Change, Contexts, cell_law, sample_drive
from avshift_core.scenario.simulate.situations import (
    CATEGORY_OF,
    PARAMETERS,
    ROAD_NAMES,
    SITUATION_NAMES,
    SITUATIONS,
    decode,
)


def sample(law, n, effect_share, seed, size=25):
    rng = np.random.default_rng(seed)
    drives = [sample_drive(law, size, effect_share=effect_share, vehicle_effect=rng.normal(size=8),
                           day_effect=rng.normal(size=8), n_noise=1, rng=rng) for _ in range(n // size)]
    joined = Contexts(*(np.concatenate([getattr(d.contexts, k) for d in drives])
                        for k in ("situation", "road", "z", "noise")))
    return joined, drives


def test_every_category_has_a_situation():
    assert set(CATEGORY_OF) == set(CATEGORIES)


def test_the_density_is_the_sum_over_routes_and_hours():
    law = cell_law((AREAS["harbor"],), effect_share=0.1, seed=3)
    contexts, _ = sample(law, 100, 0.1, 0)
    for i in range(5):
        k, j, z = contexts.situation[i], contexts.road[i], contexts.z[i]
        by_hand = 0.0
        for r in range(len(ROUTES)):
            for h in range(len(HOURS)):
                by_hand += (law.p_rh[r, h] * law.pi[r, h, k] * law.rho[r, k, j]
                            * stats.multivariate_normal(law.m[r, h, k], np.eye(8)).pdf(z))
        assert law.log_density(contexts)[i] == pytest.approx(np.log(by_hand), abs=1e-9)


def test_the_parts_of_the_law_are_probabilities():
    for law in FleetConfig().laws:
        assert law.p_rh.sum() == pytest.approx(1)
        np.testing.assert_allclose(law.pi.sum(axis=2), 1)
        np.testing.assert_allclose(law.rho.sum(axis=2), 1)
        for k, (_, roads) in enumerate(SITUATIONS.values()):
            impossible = [j for j, road in enumerate(ROAD_NAMES) if road not in roads]
            assert law.rho[:, k, impossible].max(initial=0) == 0


def route_and_hour(drives):
    return (np.repeat([ROUTES.index(d.route) for d in drives], [d.contexts.n for d in drives]),
            np.repeat([list(HOURS.values()).index(d.hour) for d in drives], [d.contexts.n for d in drives]))


def close(found, expected, n, design=1.0):
    """Shares as expected, class by class, within 4.5 standard errors."""
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-12) * design / n)
    assert (np.abs(found - expected) <= 4.5 * error + 1e-9).all(), np.abs(found - expected).max()


@pytest.mark.parametrize("effect_share", [0.0, 0.3])
def test_effects_leave_the_law_of_one_scenario_alone(effect_share):
    """Routes, hours, situations and roads as often as the law says, z with unit variance around its mean."""
    law = cell_law((AREAS["harbor"],), effect_share=effect_share, seed=1)
    size, n = 5, 40_000
    contexts, drives = sample(law, n, effect_share, 7, size)
    r, h = route_and_hour(drives)
    k, j = contexts.situation, contexts.road
    close(np.bincount(4 * r + h, minlength=16) / n, law.p_rh.ravel(), n / size)  # drawn once a drive
    # Correlation within a drive: the Dirichlet's, and what routes and hours add, which is under 0.02 for every class.
    close(np.bincount(k, minlength=law.pi.shape[2]) / n, np.einsum("rh,rhk->k", law.p_rh, law.pi), n,
          1 + (size - 1) * (0.7 * effect_share + 0.02))
    for situation in range(law.pi.shape[2]):
        for route in range(len(ROUTES)):
            rows = (k == situation) & (r == route)
            close(np.bincount(j[rows], minlength=len(ROAD_NAMES)) / rows.sum(), law.rho[route, situation], rows.sum())
    rest = contexts.z - law.m[r, h, k]
    assert np.abs(rest.mean(axis=0)).max() < 4.5 * np.sqrt((1 + (size - 1) * effect_share) / n)
    assert np.abs(rest.var(axis=0) - 1).max() < 4.5 * np.sqrt(2 * (1 + (size - 1) * effect_share) / n)


def test_the_mix_of_a_drive_is_as_uneven_as_the_dial_says():
    """Two scenarios of a drive are of the same situation more often: sum pi^2 + rho (1 - sum pi^2), rho = 0.7 share."""
    law = cell_law((), effect_share=0.3, seed=1)
    _, drives = sample(law, 40_000, 0.3, 2, size=2)
    alike = np.mean([d.contexts.situation[0] == d.contexts.situation[1] for d in drives])
    by_chance = np.einsum("rh,rhk->", law.p_rh, law.pi**2)
    assert alike == pytest.approx(by_chance + 0.21 * (1 - by_chance), abs=4.5 * np.sqrt(0.25 / len(drives)))


def test_the_noise_is_the_same_everywhere():
    """Everything else that is drawn is uniform, in every area and on every route."""
    config = FleetConfig(scenarios=16 * 500, seed=8)
    for cell in (0, 1, 7):
        contexts, ids = draw(config, next(block for block in blocks(config) if block.cell == cell))
        assert np.abs(contexts.noise.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / contexts.n)
        for route in ROUTES:
            rows = [i for i, item in enumerate(ids) if item.route == route]
            assert abs(contexts.noise[rows].mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / contexts.noise[rows].size)


def test_the_dial_is_the_share_of_variance_between_drives():
    law = cell_law((), effect_share=0.3, seed=1)
    _, drives = sample(law, 40_000, 0.3, 9, size=10)
    rest = np.array([d.contexts.z - law.m[ROUTES.index(d.route), list(HOURS.values()).index(d.hour),
                                          d.contexts.situation] for d in drives])  # (drives, 10, 8)
    within = rest.var(axis=1, ddof=1).mean()
    between = rest.mean(axis=1).var(axis=0, ddof=1).mean() - within / 10  # analysis of variance
    assert between / (between + within) == pytest.approx(0.3, abs=0.015)


@pytest.mark.parametrize("target", [
    (AREAS["harbor"], Change(mix={"u_turn": 4.5}, means={"density": 0.3})),
    (AREAS["old_town"],),
])
def test_weights_turn_p_into_q(target):
    """Weighted shares of situations and roads and means of z, against those of Q in closed form."""
    P, Q = (cell_law(changes, effect_share=0.0, seed=2) for changes in ((AREAS["harbor"],), target))
    contexts, _ = sample(P, 60_000, 0.0, 3, size=1)
    w = np.exp(Q.log_density(contexts) - P.log_density(contexts))
    situation, road = np.eye(len(SITUATION_NAMES))[contexts.situation], np.eye(len(ROAD_NAMES))[contexts.road]
    functions = np.concatenate([np.ones((contexts.n, 1)), situation, road, contexts.z], axis=1)
    expected = np.concatenate([
        [1.0], np.einsum("rh,rhk->k", Q.p_rh, Q.pi), np.einsum("rh,rhk,rkj->j", Q.p_rh, Q.pi, Q.rho),
        np.einsum("rh,rhk,rhkd->d", Q.p_rh, Q.pi, Q.m)])
    values = w[:, None] * functions
    error = values.std(axis=0) / np.sqrt(contexts.n)
    scores = (values.mean(axis=0) - expected) / np.maximum(error, 1e-12)
    assert np.abs(scores).max() < 4.5
    naive = (functions.mean(axis=0) - expected)[1:] / np.maximum(functions.std(axis=0) / np.sqrt(contexts.n), 1e-12)[1:]
    assert np.abs(naive).max() > 20  # without weights it is plainly wrong


def test_weeks_and_areas_differ_as_designed():
    """Half of the total variation between the laws, by Monte Carlo: none, inside of the paper's band, strong."""
    config = FleetConfig()
    laws = dict(zip(config.cells, config.laws, strict=True))

    def gamma(source, target):
        contexts, _ = sample(laws[source], 10_000, 0.1, 4)
        w = np.exp(laws[target].log_density(contexts) - laws[source].log_density(contexts))
        return np.abs(w - 1).mean() / 4

    weeks = list(WEEKS)
    for area in AREAS:
        assert gamma((area, weeks[0]), (area, weeks[1])) == 0
        for before, after in itertools.pairwise(weeks[1:]):
            assert 0.01 < gamma((area, before), (area, after)) < 0.1, (area, before, after)
    assert gamma(("harbor", weeks[0]), ("old_town", weeks[0])) > 0.15


def test_parameters_stay_in_their_ranges():
    values = decode(np.array([[-8.0] * 8, [0.0] * 8, [8.0] * 8]))
    for name, parameter in PARAMETERS.items():
        low, middle, high = values[name]
        assert low == pytest.approx(parameter.low) and high == pytest.approx(parameter.high)
        assert middle == pytest.approx((parameter.low + parameter.high) / 2)


def test_the_dial_has_a_range():
    with pytest.raises(ConfigError, match=r"effect_share is 0\.7"):
        cell_law((), effect_share=0.7, seed=0)
    assert set(BASE_MIX) == set(SITUATIONS)
