"""Series of one scenario: by hand, and their minima against the metrics, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from avshift_core.scenario.measure.batch import measure
from avshift_core.scenario.measure.metrics import METRICS, compute_metrics
from avshift_core.scenario.measure.series import NOBODY, series_of
from avshift_core.scenario.readers import read_scenarios
from avshift_core.scenario.schema import pad
from avshift_core.scenario.simulate.fleet import Block, FleetConfig, draw, simulate
from avshift_core.scenario.simulate.policy import POLICIES
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from tests.scenario.scenes import CAR, along, scene, times, track

DATA = Path(__file__).parents[3].parent / "shared" / "data"


@pytest.fixture(scope="module")
def fleet():
    """A batch of 200 simulated scenarios."""
    contexts, ids = draw(FleetConfig(scenarios=16_000, seed=3), Block(0, 0, 8, 200))
    return [batch.scenario(i) for _, batch, _ in simulate(contexts, ids, POLICIES["v4.1"]) for i in range(batch.n)]


def least(series):
    """The two metrics as the series give them."""
    return tuple(min(float(values.min()), METRICS[name].M)
                 for name, values in (("ttc_min_s", series.ttc_s), ("gap_min_m", series.gap_m)))


def test_towards_a_standing_car():
    t = times(3.0)
    x = along(t, 10.0)
    series = series_of(scene(t, track(t, x), [track(t, np.full_like(t, 50.0), heading=0.0),
                                              track(t, x, 30.0)]))  # and one that drives along, 30 m to the left
    gap = 50 - x - CAR[0]  # from bumper to bumper
    assert np.allclose(series.t_s, t) and np.allclose(series.speed_mps, 10)
    assert np.allclose(series.leader_gap_m, gap, atol=1e-3) and (series.leader == 0).all()
    assert np.allclose(series.ttc_s[gap / 10 < 10], gap[gap / 10 < 10] / 10, atol=1e-3)
    assert (series.ttc_agent == 0).all()
    beside = 30 - CAR[1]  # between sides
    assert np.allclose(series.gap_m, np.minimum(gap, beside), atol=1e-3)
    assert series.gap_agent.tolist() == [0 if g < beside else 1 for g in gap]


def test_where_somebody_is_not_seen():
    t = times(2.0)
    seen = t >= 1.0
    ego, other = track(t, along(t, 10.0), valid=t < 1.55), track(t, np.full_like(t, 40.0), heading=0.0, valid=seen)
    series = series_of(scene(t, ego, [other]))
    both = seen & (t < 1.55)
    assert np.isfinite(series.gap_m).tolist() == both.tolist()
    assert np.isnan(series.speed_mps).tolist() == (t >= 1.55).tolist()
    assert series.gap_agent.tolist() == np.where(both, 0, NOBODY).tolist()
    assert (series.ttc_agent[~both] == NOBODY).all() and np.isinf(series.ttc_s[~both]).all()


def test_alone_on_the_road():
    t = times(1.0)
    series = series_of(scene(t, track(t, along(t, 5.0))))
    assert np.isinf(series.gap_m).all() and np.isinf(series.ttc_s).all() and (series.leader == NOBODY).all()
    with pytest.raises(ValueError, match="read-only"):
        series.gap_m[0] = 0


def test_the_smallest_values_are_the_metrics(fleet):
    metrics = compute_metrics(pad(fleet))
    found = np.array([least(series_of(one)) for one in fleet])
    assert np.array_equal(found[:, 0], metrics["ttc_min_s"]) and np.array_equal(found[:, 1], metrics["gap_min_m"])
    assert (found[:, 0] < 10).mean() > 0.2 and len(np.unique(found[:, 1])) > 100  # the fleet puts it to the test


def test_the_smallest_values_are_those_that_the_corpus_stores(fleet, tmp_path):
    """States are stored to the millimetre, metrics were taken before: a gap moves by a millimetre or two; a time moves
    with the closing speed, which is known to 1 mm/s or two at 0.05 m/s and more for times below 10 s."""
    done = measure(pad(fleet[:100]))
    with create_or_open(str(tmp_path / "fleet")) as writer:
        writer.add(done.batch, done.attributes, done.metrics, source="fleet")
    corpus = open_corpus(str(tmp_path / "fleet"))
    table = corpus.table(metrics=["ttc_min_s", "gap_min_m"])
    found = np.array([least(series_of(one)) for one in corpus.scenarios(list(table["scenario_id"]))])
    assert np.allclose(found[:, 1], table["gap_min_m"], atol=3e-3)
    assert np.allclose(found[:, 0], table["ttc_min_s"], atol=0.05)


@pytest.mark.realdata
@pytest.mark.parametrize("format", ["argoverse2", "nuplan", *(
    pytest.param(name, marks=pytest.mark.slow) for name in ("commonroad", "argoverse1"))])
def test_the_smallest_values_are_the_metrics_of_real_logs(format):
    path = DATA / format / ("forecasting_csv.zip" if format == "argoverse1" else "")
    scenarios = [one for one, _ in zip(read_scenarios(format, path), range(12), strict=False)]
    for one in scenarios:
        metrics = compute_metrics(pad([one]))
        assert least(series_of(one)) == (metrics["ttc_min_s"][0], metrics["gap_min_m"][0])
