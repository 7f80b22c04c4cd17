"""Figures carry the numbers of the results, name P and Q in their colours, and leave text colours to the theme."""

import json
import re
from math import sqrt

import numpy as np
import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.latent.benchmark import LINE_TARGETS, line_case
from avshift_core.plots import theme
from avshift_core.plots.band import ROWS, band_figure
from avshift_core.plots.line import line_figure, weight_steps
from avshift_core.plots.metrics import LABELS, metrics_figure
from avshift_core.shift.analyze import analyze
from avshift_core.shift.calibrate import ESTIMATORS, HEADLINE

QUICK = AnalysisConfig(classifier="cells", repeats=1, folds=2, n_perm=19)


@pytest.fixture(scope="module", params=LINE_TARGETS)
def result(request):
    pair = line_case(request.param, 2000, 0)
    return request.param, pair, analyze(pair.P, pair.Q, QUICK)


def figures(case, pair, analysis, B=10.0):
    calibration = analysis.calibrate(B)
    return (
        band_figure(analysis.global_test, analysis.config), line_figure(analysis, case, B),
        metrics_figure(calibration, HEADLINE, pair.truth.mu_Q),
    )


def test_no_figure_is_empty_or_sets_a_background_or_a_text_colour_of_one_theme(result):
    for figure in figures(*result):
        assert len(figure.data) > 0 and figure.layout.height >= 200
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == theme.CLEAR
        text = json.dumps(figure.to_plotly_json()["layout"].get("annotations", []), default=str)
        colors = set(re.findall(r'"color": "([^"]+)"', text)) | {figure.layout.font.color} - {None}
        assert colors <= {None, theme.NEUTRAL}


def test_band_shows_the_advantage_its_bounds_and_both_controls(result):
    *_, analysis = result
    test = analysis.global_test
    rows = {trace.y[0]: trace for trace in band_figure(test, analysis.config).data}
    for name, value in zip(ROWS, (test, test.aa_source, test.aa_target), strict=True):
        trace = rows[name]
        assert trace.x[0] == sqrt(value.gamma_hat)  # the axis is a square root, as its title says
        assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(sqrt(value.gamma_lcb))
        assert trace.x[0] + trace.error_x.array[0] == pytest.approx(sqrt(value.gamma_ucb))
        assert f"{value.gamma_hat:.4f}" in trace.hovertemplate
    assert rows[ROWS[1]].marker.color == theme.P and rows[ROWS[2]].marker.color == theme.Q


def test_line_shades_every_region_and_labels_it(result):
    case, _, analysis = result
    figure = line_figure(analysis, case, 10.0)
    texts = [a.text for a in figure.layout.annotations]
    regions = () if analysis.local is None else analysis.local.regions
    assert [t for t in texts if t.startswith("<b>R")] == [f"<b>R{r.k}</b>" for r in regions]
    assert (case == "localized") == bool(regions)
    fills = [s for s in figure.layout.shapes if s.fillcolor == theme.TARGET_HEAVY_FILL]
    assert bool(fills) == bool(regions)
    if regions:
        assert all(1.3 < s.x0 <= s.x1 < 2.7 for s in fills)  # the bump of Q is at 2 with sd 0.12
    assert figure.data[0].line.color == theme.P and figure.data[1].line.color == theme.Q
    assert figure.data[0].line.dash != figure.data[1].line.dash  # told apart without colour, too


def test_line_draws_the_weights_of_the_scenarios_at_the_clip(result):
    *_, analysis = result
    w = analysis.calibrator.cells.weights(1.5)
    x, drawn = weight_steps(analysis, 1.5)
    assert set(drawn) == set(w) and (np.diff(x) >= 0).all()
    at = {float(z): value for z, value in zip(analysis.P.z[:, 0], w, strict=True)}
    assert all(at[float(z)] == value for z, value in zip(x, drawn, strict=True))


def test_metrics_show_every_estimator_and_emphasise_the_headline(result):
    _, pair, analysis = result
    calibration = analysis.calibrate(10.0)
    figure = metrics_figure(calibration, HEADLINE, pair.truth.mu_Q)
    rows = {trace.y[0]: trace for trace in figure.data}
    assert set(LABELS) == {"naive", "target", *ESTIMATORS}
    for name, estimate in calibration.estimates().items():
        trace = rows[LABELS[name]]
        assert trace.x[0] == (None if estimate is None else estimate.mu)
        if estimate is not None:
            assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(estimate.lo)
            assert trace.x[0] + trace.error_x.array[0] == pytest.approx(estimate.hi)
    assert rows[LABELS[HEADLINE]].marker.color == theme.HEADLINE
    assert any("true rate of Q" in a.text for a in figure.layout.annotations)
    missing = sum(a.text == "not available" for a in figure.layout.annotations)
    assert missing == sum(e is None for e in calibration.estimates().values())


def test_a_withheld_headline_is_not_emphasised(result):
    *_, analysis = result
    figure = metrics_figure(analysis.calibrate(10.0), None)
    assert all(trace.marker.color != theme.HEADLINE for trace in figure.data)
