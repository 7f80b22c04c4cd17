"""Figures of the global test and of calibration carry the engine's numbers and leave text colours to the theme."""

import json
import re
from dataclasses import replace
from math import log10

import numpy as np
import pytest

from avshift_core.latent.cohort import Rest
from avshift_core.plots import theme
from avshift_core.plots.classifier import (
    BOUND_NAMES,
    VARIANCE_PARTS,
    bounds_figure,
    permutation_figure,
    reference_figure,
    reliability_figure,
    repeats_figure,
    roc_figure,
    saturation_figure,
    variance_figure,
)
from avshift_core.plots.love import SMALL, differences_figure, love_figure
from avshift_core.plots.metrics import LABELS
from avshift_core.plots.sensitivity import CAPACITY, FAMILY, NAMES, RATIO, SIZE, studies_figure, widths_figure
from avshift_core.plots.waterfall import CALIBRATED, LEFT_OVER, OBSERVED, TARGET, category_figure, waterfall_figure
from avshift_core.plots.weights import SWEPT, sweep_figure, weights_figure
from avshift_core.shift.breakdown import GroupRate, contributions, sweep
from avshift_core.shift.calibrate import ESTIMATORS
from avshift_core.shift.curves import held_out_curves, variance_split
from avshift_core.shift.differences import Difference
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.sensitivity import CAPACITIES, FAMILIES, Row, Sensitivity, Width
from avshift_core.shift.weights import raw_weights, weight_histogram

CLIPS = (0.5, 1.0, 2.0, 10.0)


def difference(label, smd, after=None, half=0.05, unit="m"):
    made = Difference("x", None, "number", label, unit, 2.0, 1.0, smd, smd - half, smd + half, None, 10, 10, 0, 0)
    return made if after is None else replace(made, after=replace(made, smd=after, lo=after - half, hi=after + half))


DIFFERENCES = (difference("Speed", 0.6, 0.02), difference("Gap", -0.3, -0.01), difference("Noise", 0.02, 0.01))
GROUPS = (
    GroupRate("agent_cutting_in", Estimate(0.2, 0.1, 0.3, 0.05), Estimate(0.25, 0.1, 0.4, 0.07),
              Estimate(0.3, 0.2, 0.4, 0.05), 50, 60, 10, 11),
    GroupRate("<b>rare</b>", None, None, Estimate(0.1, 0.0, 0.2, 0.05), 4, 40, 2, 9),
)
STUDIES = Sensitivity(
    tuple(Row(study, setting, 0.55, 0.01, 0.05, 3, (0.54, 0.55, 0.56)) for study, setting in (
        *((FAMILY, f) for f in FAMILIES), (RATIO, "1:10 natural"), (RATIO, "1:10 balanced"),
        (SIZE, "100 a class"), (SIZE, "1,250 a class (all there are; 2,000 asked)"),
        *((CAPACITY, c) for c in CAPACITIES),
    )),
    (Width(250, 0.06, 0.05), Width(500, 0.04, 0.035)),
)


@pytest.fixture(scope="module")
def parts(line_analysis):
    a = line_analysis
    swept = sweep(a, "ell", CLIPS)
    return a, swept, swept[-1], contributions(a, "ell", 10.0), held_out_curves(a)


@pytest.fixture(scope="module")
def figures(parts):
    a, swept, c, steps, curves = parts
    test = a.global_test
    return {
        "roc": roc_figure(curves.roc), "reliability": reliability_figure(curves.reliability, curves.scores),
        "repeats": repeats_figure(test), "bounds": bounds_figure(curves.bounds, test, a.config),
        "permutations": permutation_figure(test), "variance": variance_figure(variance_split(test)),
        "tests": reference_figure([("Classifier", 0.001, 0.001, None), ("KS", 0.005, 0.005, 0.0)]),
        "saturation": saturation_figure(curves.saturation), "differences": differences_figure(DIFFERENCES),
        "love": love_figure(DIFFERENCES), "weights": weights_figure(weight_histogram(raw_weights(a, "ipw")), 2.0),
        "sweep": sweep_figure(swept, c, "strata", a.P.n), "waterfall": waterfall_figure(steps, c, "strata"),
        "categories": category_figure(GROUPS), "studies": studies_figure(STUDIES, a.config),
        "widths": widths_figure(STUDIES.widths),
    }


def test_no_figure_is_empty_or_sets_a_background_or_a_text_colour_of_one_theme(figures):
    for name, figure in figures.items():
        assert len(figure.data) > 0 and figure.layout.height >= 150, name
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == theme.CLEAR
        text = json.dumps(figure.to_plotly_json()["layout"].get("annotations", []), default=str)
        colors = set(re.findall(r'"color": "([^"]+)"', text)) | {figure.layout.font.color} - {None}
        assert colors <= {None, theme.NEUTRAL}, name


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def ends(t, axis="x"):
    """Lower and upper ends of the error bars of a trace."""
    bar, value = (t.error_x, t.x) if axis == "x" else (t.error_y, t.y)
    return [(v - a, v + b) for v, a, b in zip(value, bar.arrayminus, bar.array, strict=True)]


def test_the_curve_and_its_bins_are_the_engines(parts, figures):
    *_, curves = parts
    assert list(figures["roc"].data[1].y) == curves.roc.tpr.tolist()
    dots = trace(figures["reliability"], "held-out scenarios")
    assert list(dots.y) == curves.reliability.share.tolist()
    assert trace(figures["reliability"], "P").line.color == theme.P
    assert trace(figures["reliability"], "Q").line.dash == "dash"  # told apart without colour


def test_repeats_show_accuracy_and_advantage_on_one_scale(parts, figures):
    test, figure = parts[0].global_test, figures["repeats"]
    assert list(trace(figure, "accuracy").y) == test.acc_repeats.tolist()
    left, right = figure.layout.yaxis.range, figure.layout.yaxis2.range
    assert [a - 0.5 for a in left] == pytest.approx(list(right))


def test_bounds_are_drawn_from_their_lower_to_their_upper_end(parts, figures):
    curves = parts[-1]
    for bound in curves.bounds:
        t = trace(figures["bounds"], BOUND_NAMES[bound.name])
        assert ends(t)[0] == pytest.approx((bound.gamma_lcb, bound.gamma_ucb))
        assert (t.marker.color == theme.HEADLINE) == bound.used
        assert any(f"{bound.gamma_lcb:.3f}" == n.text for n in figures["bounds"].layout.annotations)


def test_the_observed_statistic_stands_in_the_permutations(parts, figures):
    test, figure = parts[0].global_test, figures["permutations"]
    assert len(figure.data[0].x) == len(test.null)
    assert figure.layout.shapes[0].x0 == test.statistic
    low, high = figure.layout.xaxis.range
    assert low < min(test.null.min(), test.statistic) and max(test.null.max(), test.statistic) < high


def test_variance_parts_are_shares_of_one(figures):
    assert sum(figures["variance"].data[0].x) == pytest.approx(1)
    assert list(figures["variance"].data[0].y) == list(VARIANCE_PARTS.values())


def test_a_closed_form_p_of_zero_is_drawn_at_the_edge(figures):
    t = trace(figures["tests"], "in closed form, as if scenarios were independent")
    assert t.y == ("KS",) and t.x[0] > 0
    low, high = figures["tests"].layout.xaxis.range  # small p on the right
    assert high < log10(t.x[0]) < low


def test_differences_are_coloured_by_the_cohort_that_has_more(figures):
    by_name = {t.name: t for t in figures["differences"].data}
    assert (by_name["more in Q"].marker.color, by_name["more in Q"].y) == (theme.Q, ("Speed",))
    assert (by_name["more in P"].marker.color, by_name["more in P"].y) == (theme.P, ("Gap",))
    assert by_name["not clear"].y == ("Noise",)
    assert figures["differences"].layout.yaxis.categoryarray == ("Noise", "Gap", "Speed")  # the first on top


def test_the_love_plot_has_every_attribute_before_and_after(figures):
    before, after = figures["love"].data
    assert before.x == (0.6, -0.3, 0.02) and after.x == (0.02, -0.01, 0.01)
    assert ends(after)[0] == pytest.approx((-0.03, 0.07))
    assert (figures["love"].layout.shapes[0].x0, figures["love"].layout.shapes[0].x1) == (-SMALL, SMALL)


def test_text_from_data_is_not_markup():
    figure = differences_figure([difference("<a href='x'>y</a>", 0.6, unit="<b>")])
    assert figure.data[0].y == ("&lt;a href='x'&gt;y&lt;/a&gt;",) and "<b>" not in figure.data[0].customdata[0]
    assert "&lt;b&gt;rare" in category_figure(GROUPS).layout.yaxis.ticktext[0]


def test_weights_beyond_the_clip_are_told_apart(parts, figures):
    raw = raw_weights(parts[0], "ipw")
    kept, cut = figures["weights"].data
    assert max(kept.x) <= 2.0 < min(cut.x) and cut.name == "cut to 2"
    assert sum(kept.y) + sum(cut.y) == pytest.approx(1)
    assert sum(cut.y) == pytest.approx((raw > 2).mean(), abs=max(kept.y))  # up to the bin of the clip
    assert any(s.x0 == 2.0 and s.line.color == theme.HEADLINE for s in figures["weights"].layout.shapes)


def test_the_sweep_has_every_estimator_and_the_chosen_clip(parts, figures):
    a, swept, chosen, *_ = parts
    assert set(SWEPT) == set(ESTIMATORS)
    for name in ESTIMATORS:
        assert list(trace(figures["sweep"], LABELS[name]).y) == [getattr(c, name).mu for c in swept]
    mark = trace(figures["sweep"], "clip 10")
    assert (mark.x[0], mark.y[0]) == (10.0, chosen.strata.mu)
    assert ends(mark, "y")[0] == pytest.approx((chosen.strata.lo, chosen.strata.hi))
    assert figures["sweep"].layout.shapes[0].x0 == 10.0
    assert trace(figures["sweep"], "effective share of P").y[-1] == pytest.approx(chosen.ess / a.P.n)
    styles = [(trace(figures["sweep"], LABELS[n]).line.dash, trace(figures["sweep"], LABELS[n]).marker.symbol)
              for n in ESTIMATORS]
    assert len(set(styles)) == len(styles)  # told apart without colour


def test_the_waterfall_leads_from_p_to_q_without_a_gap(parts, figures):
    _, _, c, steps, _ = parts
    bars = [t for t in figures["waterfall"].data if t.type == "bar"]
    level = c.naive.mu
    for bar, step in zip(bars, [*(s.move for s in steps), c.residual], strict=True):
        assert bar.base[0] == pytest.approx(level) and bar.y[0] == step.mu
        assert ends(bar, "y")[0] == pytest.approx((step.lo, step.hi))
        level += step.mu
    assert level == pytest.approx(c.target.mu)
    order = list(figures["waterfall"].layout.xaxis.categoryarray)
    assert order == [OBSERVED, "<b>R1</b>", "Else-<br>where", CALIBRATED, LEFT_OVER, TARGET]
    assert trace(figures["waterfall"], CALIBRATED).y[0] == c.strata.mu
    withheld = waterfall_figure(steps, c, None)
    assert theme.HEADLINE not in {t.marker.color for t in withheld.data if t.type == "scatter" and t.marker}


def test_categories_with_too_little_have_no_dot(figures):
    by_name = {t.name: t for t in figures["categories"].data}
    assert len(by_name["Observed in P"].x) == 1 and len(by_name["Observed in Q"].x) == 2
    assert figures["categories"].layout.yaxis.ticktext == ("&lt;b&gt;rare&lt;/b&gt; (too few)", "Agent cuts in")
    assert by_name["Calibrated to Q"].marker.symbol != by_name["Observed in P"].marker.symbol


def test_the_studies_have_the_papers_four_panels(figures):
    figure = figures["studies"]
    boxes = [t.name for t in figure.data if t.type == "box"]
    assert boxes == [NAMES[f] for f in (*FAMILIES, *CAPACITIES)]  # every setting has a name for people
    natural, balanced = trace(figure, "class ratio: natural"), trace(figure, "class ratio: balanced")
    assert natural.x == balanced.x == ("1:10",)
    sizes = next(t for t in figure.data if t.type == "scatter" and t.showlegend is False)
    assert list(sizes.x) == [100, 1250]
    assert {s.y0 for s in figure.layout.shapes} == {0.5, 0.51, 0.6}  # chance and the band's edges


def test_half_widths_stand_beside_the_binomial_ones(figures):
    binomial, drives = figures["widths"].data
    assert list(drives.y) == [0.06, 0.04] and list(binomial.y) == [0.05, 0.035]
    assert figures["widths"].layout.xaxis.type == figures["widths"].layout.yaxis.type == "log"


def test_a_comparison_without_regions_has_one_step(parts):
    a, _, c, *_ = parts
    steps = contributions(replace(a, local=None), "ell", 10.0)
    figure = waterfall_figure(steps, c, "strata")
    assert [t.name for t in figure.data if t.type == "bar"] == ["Else-<br>where", LEFT_OVER]
    assert np.isclose(figure.data[0].y[0], c.traffic.mu)


def test_what_was_not_drawn_is_a_step_of_its_own(parts):
    a, *_ = parts
    rest = Rest(np.full(60, 20.0), {"ell": np.full(60, 4.0)})
    drawn = replace(a, calibrator=replace(a.calibrator, rest_P=rest))
    steps, c = contributions(drawn, "ell", 10.0), drawn.calibrate(10.0, "ell")
    *_, step, left = (t for t in waterfall_figure(steps, c, "strata").data if t.type == "bar")
    assert (step.name, left.name) == ("Not<br>drawn", LEFT_OVER) and step.y[0] == steps[-1].move.mu
    assert np.isclose(step.base[0] + step.y[0], c.strata.mu)


def test_a_classifier_that_says_the_same_of_everything_can_be_drawn(parts):
    a, *_ = parts
    zero = np.zeros(a.P.n)
    test = replace(a.global_test, acc=0.5, acc_repeats=np.full(2, 0.5), se=0.0, var_test=0.0, var_training=0.0, auc=0.5,
                   statistic=0.0, p_value=1.0, null=np.zeros(19), logit_P=zero, logit_Q=zero, design_effect=0.0)
    same = replace(a, global_test=test)
    curves = held_out_curves(same)
    assert np.isnan(curves.roc.lo) and curves.scores.P.sum() == pytest.approx(1)
    for figure in (repeats_figure(test), permutation_figure(test), variance_figure(variance_split(test))):
        axis = figure.layout.xaxis.range
        assert axis[1] - axis[0] >= 1
    low, high = repeats_figure(test).layout.yaxis.range
    assert high - low >= 0.02
    assert curves.scores.edges[-1] - curves.scores.edges[0] >= 0.04


def test_a_withheld_number_is_grey_everywhere(parts):
    a, swept, c, *_ = parts
    shown = trace(sweep_figure(swept, c, None, a.P.n), LABELS["strata"])
    assert shown.line.color == theme.NEUTRAL
    calibrated = trace(category_figure(GROUPS, withheld=True), "Calibrated to Q")
    assert (calibrated.marker.color, calibrated.marker.symbol) == (theme.NEUTRAL, "diamond-open")
