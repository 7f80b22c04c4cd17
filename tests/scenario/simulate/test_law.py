"""The law is what it says it is: densities, mixtures, effects."""

import itertools

import numpy as np
import pytest
from scipy import stats

from avshift_core.errors import ConfigError
from avshift_core.scenario.schema import CATEGORIES
from avshift_core.scenario.simulate.fleet import AREAS, WEEKS, FleetConfig
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


@pytest.mark.parametrize("effect_share", [0.0, 0.3])
def test_effects_leave_the_law_of_one_scenario_alone(effect_share):
    """Situations as often as pi says, z with unit variance around its mean; tolerances are 4.5 standard errors."""
    law = cell_law((), effect_share=effect_share, seed=1)
    size, n = 5, 20_000
    contexts, drives = sample(law, n, effect_share, 7, size)
    expected = np.einsum("rh,rhk->k", law.p_rh, law.pi)
    found = np.bincount(contexts.situation, minlength=len(expected)) / n
    design = 1 + (size - 1) * 0.5  # intra-drive correlation of the mix stays below one half
    assert np.abs(found - expected).max() < 4.5 * np.sqrt(0.25 * design / n)
    means = np.concatenate([law.m[ROUTES.index(d.route), list(HOURS.values()).index(d.hour), d.contexts.situation]
                            for d in drives])
    rest = contexts.z - means
    assert np.abs(rest.mean(axis=0)).max() < 4.5 * np.sqrt((1 + (size - 1) * effect_share) / n)
    assert np.abs(rest.var(axis=0) - 1).max() < 4.5 * np.sqrt(2 * (1 + (size - 1) * effect_share) / n)


def test_the_dial_is_the_share_of_variance_between_drives():
    law = cell_law((), effect_share=0.3, seed=1)
    _, drives = sample(law, 40_000, 0.3, 9, size=10)
    rest = np.array([d.contexts.z - law.m[ROUTES.index(d.route), list(HOURS.values()).index(d.hour),
                                          d.contexts.situation] for d in drives])  # (drives, 10, 8)
    within = rest.var(axis=1, ddof=1).mean()
    between = rest.mean(axis=1).var(axis=0, ddof=1).mean() - within / 10  # analysis of variance
    assert between / (between + within) == pytest.approx(0.3, abs=0.015)


def test_a_weight_has_mean_one_and_turns_p_into_q():
    P = cell_law((AREAS["harbor"],), effect_share=0.1, seed=2)
    Q = cell_law((AREAS["harbor"], Change(mix={"u_turn": 4.5}, means={"density": 0.3})), effect_share=0.1, seed=2)
    contexts, _ = sample(P, 40_000, 0.1, 3)
    w = np.exp(Q.log_density(contexts) - P.log_density(contexts))
    u_turn = contexts.situation == SITUATION_NAMES.index("u_turn")
    expected = np.einsum("rh,rhk->k", Q.p_rh, Q.pi)[SITUATION_NAMES.index("u_turn")]
    assert w.mean() == pytest.approx(1, abs=0.03)
    assert (w * u_turn).mean() == pytest.approx(expected, rel=0.12)
    assert (w * contexts.z[:, 1]).mean() - contexts.z[:, 1].mean() == pytest.approx(0.3, abs=0.05)


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
