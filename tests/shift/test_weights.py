"""Weights one by one: what the clip cuts, what is left of the sample, and where they lie."""

import numpy as np
import pytest

from avshift_core.errors import ConfigError
from avshift_core.shift.weights import choices, raw_weights, weight_histogram, weights_of
from tests.shift.test_breakdown import made


def test_weights_of_strata_by_hand():
    # p = (1/4, 3/4), q = (1/2, 1/2): weights 2 and 2/3. ESS = (sum w)^2 / sum w^2 = 16 / (4 + 3 * 4/9) = 3.
    a = made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1])
    found = weights_of(a, "strata", 10)
    assert found.w == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3]) and found.raw == pytest.approx(found.w)
    assert found.ess == pytest.approx(3) and found.ess_drives == pytest.approx(3)  # every scenario is a drive
    assert found.top_drive == pytest.approx(0.5) and found.clipped == found.lost == 0
    # clip 1.5: the first keeps 1.5 of its 2; 3.5 of 4 are left, and the mean is 1 again
    cut = weights_of(a, "strata", 1.5)
    assert cut.w == pytest.approx(np.array([1.5, 2 / 3, 2 / 3, 2 / 3]) / (3.5 / 4))
    assert cut.clipped == pytest.approx(1 / 4) and cut.lost == pytest.approx(0.5 / 4)


def test_scenarios_of_one_drive_count_together():
    a = made([1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], drive_P=[0, 0, 1, 1])
    found = weights_of(a, "strata", 10)  # drives weigh 8/3 and 4/3: (4)^2 / (64/9 + 16/9) = 1.8
    assert found.ess_drives == pytest.approx(1.8) and found.top_drive == pytest.approx(2 / 3)


def test_classifier_weights_are_cut_one_by_one():
    a = made([0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1], w=[0.5, 1.0, 4.0, 0.5])
    found = weights_of(a, "ipw", 2)
    assert found.w == pytest.approx(np.array([0.5, 1, 2, 0.5])) and found.raw.max() == 4
    assert found.lost == pytest.approx(2 / 6) and found.clipped == 1 / 4


def test_weights_of_an_analysis_give_its_estimates(line_analysis, line):
    for name in choices(line_analysis):
        w = weights_of(line_analysis, name, 3.0)
        mu = getattr(line_analysis.calibrate(3.0), name).mu
        assert w.w @ line.P.ell["ell"] / w.w.sum() == pytest.approx(mu), name
        assert not w.w.flags.writeable
    assert weights_of(line_analysis, "strata", 3.0).ess == pytest.approx(line_analysis.calibrate(3.0).ess)


def test_weights_of_regions_need_regions(line_analysis):
    assert choices(line_analysis) == ("strata", "lis", "ipw")
    from dataclasses import replace

    without = replace(line_analysis, calibrator=replace(line_analysis.calibrator, regions=None))
    assert choices(without) == ("strata", "ipw")
    with pytest.raises(ConfigError, match="no weights 'lis' here; choose one of strata, ipw"):
        weights_of(without, "lis", 10)


def test_the_histogram_holds_every_scenario(line_analysis):
    raw = raw_weights(line_analysis, "ipw")
    found = weight_histogram(raw)
    assert found.share.sum() == pytest.approx(1) and found.mass.sum() == pytest.approx(1)
    beyond = found.edges[:-1] >= 2  # whole bins beyond 2 hold what is at or above their lower edge
    assert found.share[beyond].sum() == pytest.approx((raw >= found.edges[:-1][beyond][0]).mean())
    assert weight_histogram(np.zeros(5)).share[0] == 1  # all weights 0
