"""Figures of the version comparison: what they draw is what the result says."""

from itertools import pairwise

import pytest

from avshift_core.plots import versions as figures
from avshift_core.shift.c2st import Advantage
from avshift_core.shift.power import PlanGroup, PlanRow, Power
from avshift_core.shift.version_probe import LeakageProbe
from avshift_core.shift.version_split import split_of
from tests.shift.test_versions import by_hand


@pytest.fixture(scope="module")
def split():
    analysis, fit = by_hand([1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0, 1], [0, 1, 1, 1, 2], [True, True, False])
    return split_of(analysis, fit, "ell")


@pytest.mark.parametrize("reference", figures.REFERENCE_NAMES)
def test_the_waterfall_leads_from_the_first_rate_to_the_last(split, reference):
    figure = figures.waterfall_figure(split, reference, ("v1", "v2"))
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [bar.x[0] for bar in bars] == ["Not<br>comparable", "Exposure", "Performance"]
    assert bars[0].base[0] == split.A_P.mu
    assert bars[-1].base[0] + bars[-1].y[0] == pytest.approx(split.B_Q.mu)
    for one, two in pairwise(bars):
        assert one.base[0] + one.y[0] == pytest.approx(two.base[0])


def test_true_steps_are_stars_and_distrust_is_drawn(split):
    truth = {"exposure": 0.02, "performance": -0.05}
    figure = figures.waterfall_figure(split, "Q", ("v1", "v2"), truth, trusted=False)
    stars = next(trace for trace in figure.data if trace.name == "where the true step ends")
    bars = {trace.x[0]: trace for trace in figure.data if trace.type == "bar"}
    assert stars.y == pytest.approx([bars["Exposure"].base[0] + 0.02, bars["Performance"].base[0] - 0.05])
    assert all(bar.marker.color == figures.theme.CLEAR for bar in bars.values())


def test_references_and_groups_are_in_points(split):
    figure = figures.references_figure(split, {"exposure": dict.fromkeys("PQ", 0.1) | {"mean": 0.1},
                                               "performance": dict.fromkeys("PQ", -0.1) | {"mean": -0.1}})
    first = next(t for t in figure.data if t.name == "Performance, Q's traffic")
    assert first.x[0] == pytest.approx(100 * split.performance["Q"].mu)
    assert next(t for t in figure.data if t.name == "truth").x[0] == pytest.approx(-10)
    forest = figures.groups_figure([split, split], ["<b>cut-in</b>", "<b>cut-in</b>"], "mean")
    labels = forest.layout.yaxis.categoryarray
    assert len(set(labels)) == 2 and not any("<b>" in label for label in labels)


def test_the_probe_shows_its_threshold():
    a = Advantage(0.53, 0.03, 0.01, 0.05)
    probe = LeakageProbe(a, a, a, a, 0.05, 0.02, "ok", "")
    figure = figures.probe_figure(probe)
    assert figure.layout.shapes[0].x0 == 0.02 and len(figure.data) == 4
    assert all(trace.x[0] == 0.03 for trace in figure.data)


def test_power_falls_with_the_root_of_the_drives():
    power = Power("ell", 0.01, 0.028, -0.01, False, 7.84, 1, 1, 1, 1)
    curve = figures.power_figure(power).data[0]
    assert curve.y[0] * curve.x[0] ** 0.5 == pytest.approx(2.8) and curve.x[-1] >= 7.84


def test_the_plan_has_a_bar_for_each_version():
    groups = [PlanGroup(name, "", (0,), True, "", 1, 1, 0.5, 0.5, 0) for name in ("cut-ins", "cut-ins")]
    rows = [PlanRow(g, version, 10, 0.1, 0.01, 0.001 * (g + 1), 0.1) for g in (1, 0) for version in "AB"]
    figure = figures.plan_figure(rows, groups, ("v1", "v2"))
    assert [trace.name for trace in figure.data] == ["driven by v1", "driven by v2"]
    assert list(figure.data[0].x) == pytest.approx([0.2, 0.1]) and len(set(figure.data[0].y)) == 2
    assert figure.data[1].marker.pattern.shape == "/"  # told apart without colours, too
