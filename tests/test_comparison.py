"""A comparison of a corpus: every metric as events, values kept as attributes, identity, and what is left out."""

import numpy as np
import pytest

from avshift_core.comparison import THRESHOLDS, comparison_steps
from avshift_core.errors import AVShiftError
from avshift_core.progress import finish
from avshift_core.report import to_report
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.store.corpus import open_corpus
from tests.latent.weeks import add_week, ship, weeks

QUICK = {"classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}
P, Q = "period=2026-W10", "period=2026-W11"


@pytest.fixture
def url(tmp_path, monkeypatch):
    ship(monkeypatch, tmp_path / "nowhere")
    n = 300
    weeks(str(tmp_path / "fleet"), collision=np.zeros(n), spread=np.linspace(0, 40, n))
    return str(tmp_path / "fleet")


def compare(url, **changes):
    return finish(comparison_steps(url, P, Q, config={**QUICK, **changes.pop("config", {})}, **changes))


def test_every_metric_is_an_event_and_its_values_stay(url):
    c = compare(url)
    table = open_corpus(url).table(P, metrics=["ttc_min_s", "discomfort"])
    ttc = table["ttc_min_s"].to_numpy()
    family = c.family("ttc_min_s<1.5")
    assert family.thresholds == THRESHOLDS["ttc_min_s"] and family.direction == "<"  # small values are the bad ones
    np.testing.assert_array_equal(c.analysis.P.ell["ttc_min_s<1.5"], ttc < 1.5)
    np.testing.assert_array_equal(c.analysis.P.obs["ttc_min_s"], ttc)
    np.testing.assert_array_equal(c.analysis.P.ell["discomfort"], table["discomfort"])
    assert c.phrase("ttc_min_s<1.5") == "Time to collision below 1.5 s" and c.phrase("discomfort") == "Discomfort"
    assert c.metrics[0] == "discomfort"  # what is shown when nobody has chosen
    assert all(set(np.unique(v)) <= {0.0, 1.0} for v in c.analysis.P.ell.values())
    assert c.definitions["ttc_min_s<1.5"].unit == "0/1"


def test_a_column_that_nobody_set_limits_for_takes_its_quantiles(url):
    family = compare(url).family("spread>20")  # 0 to 40 evenly: the median is 20, the quartiles are 10 and 30
    assert {10.0, 20.0, 30.0} <= set(family.thresholds) and family.direction == ">"


def test_what_never_happens_is_left_out_with_a_reason(url):
    c = compare(url)
    assert "collision" not in c.metrics and "0 in every scenario" in c.left_out["collision"]


def test_the_same_comparison_has_the_same_run_and_another_has_another(url):
    first = compare(url)
    assert first.run == compare(url).run
    assert first.run != compare(url, config={"seed": 1}).run
    add_week(url, "2026-03-16", seed=7)
    assert first.run == compare(url).run  # another week came, but not to these cohorts
    add_week(url, "2026-03-09", seed=8)
    assert first.run != compare(url).run


def test_data_that_changed_meanwhile_is_refused(url):
    before = open_corpus(url).fingerprint
    add_week(url, "2026-03-16", seed=7)
    with pytest.raises(AVShiftError, match="has changed since"):
        compare(url, fingerprint=before)


def test_the_report_takes_it(url):
    c = compare(url)
    report = to_report(c.analysis, c.pair(open_corpus(url)))
    assert report["source"]["query"] == P and set(report["metrics"]) == set(c.metrics)


def test_every_threshold_belongs_to_a_metric_and_lies_in_its_range():
    for column, thresholds in THRESHOLDS.items():
        assert list(thresholds) == sorted(set(thresholds))
        assert thresholds[0] > 0 and thresholds[-1] < METRICS[column].M
