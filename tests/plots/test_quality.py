"""The figures of the quality report carry its numbers; their pages need no network."""

from dataclasses import replace

import numpy as np
import pytest

from avshift_core.plots import theme
from avshift_core.plots.quality import (
    NAMES,
    agreement_figure,
    clusters_figure,
    figures_of,
    probes_figure,
    retrieval_figure,
    shifts_figure,
    spectrum_figure,
    write_figures,
)
from avshift_core.quality.clusters import measure_clusters
from avshift_core.quality.drivewise import Estimate
from avshift_core.quality.probes import Probe
from avshift_core.quality.rank import measure_rank
from avshift_core.quality.report import HAND_SPACE, MODEL_SPACE, PCA_SPACE, Quality
from avshift_core.quality.retrieval import CategoryPrecision, Retrieval
from avshift_core.quality.shifts import ShiftKept

WITHOUT_CORPUS = tuple(name for name in NAMES if name != "neighbours")  # that one reads scenarios: test_scenes.py


def around(value):
    return Estimate(value, value - 0.02, value + 0.02)


def space(name, value):
    parts = tuple(CategoryPrecision(c, 100, around(value - drop), 0.1)
                  for c, drop in (("ego_yielding", 0.0), ("general", 0.05)))
    return Retrieval(name, 10, around(value), value, 0.1, parts, {"ego_speed_mps": 0.3})


def shift(name, z, contexts, star):
    return ShiftKept(name, "full", 500, 500, around(z), "localize", 0.03, around(contexts), "localize", star, (z, z),
                     (contexts, contexts))


@pytest.fixture(scope="module")
def quality():
    rng = np.random.default_rng(0)
    cluster, drive = rng.integers(0, 9, 2000), np.repeat(np.arange(40), 50)
    event, second = (rng.random((2, 2000)) < (cluster[None] + 1) / 20).astype(float)
    return Quality(
        "corpus", "f" * 64, "0123456789abcdef", "full", "standardised", 0, 2000, 40, 2000, 0.0,
        measure_rank(rng.normal(size=(2000, 20))),
        probes=(Probe("ego_speed_mps", "r2", around(0.95), True, 2000, 40),
                Probe("n_large", "r2", around(0.2), False, 2000, 40),
                Probe("road_type", "auc", around(0.9), False, 2000, 40, 3)),
        retrieval=(space(MODEL_SPACE, 0.9), space(HAND_SPACE, 0.8), space(PCA_SPACE, 0.5)),
        clusters=measure_clusters(cluster, event, second, drive, names=("a<b", "c>d")),
        shifts=(shift("one", 0.05, 0.06, 0.07), shift("none", 0.0, 0.0, 0.0)),
    )


def test_every_figure_is_drawn_in_the_house_style(quality):
    drawn = figures_of(quality)
    assert tuple(drawn) == WITHOUT_CORPUS
    for title, sentence, draw in drawn.values():
        figure = draw()
        assert title and sentence.endswith(".")
        assert len(figure.data) > 0 and figure.layout.height >= 200
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == theme.CLEAR


def test_probes_tell_the_taught_from_the_others(quality):
    figure = probes_figure(quality.probes)
    traces = {trace.name: trace for trace in figure.data}
    assert traces["taught"].x == (0.95,) and traces["not taught"].x == (0.9, 0.2)
    assert traces["taught"].marker.symbol != traces["not taught"].marker.symbol  # told apart without colour, too
    assert traces["taught"].error_x.array[0] == pytest.approx(0.02)
    rows = list(figure.layout.yaxis.categoryarray)
    assert all(y in rows for trace in figure.data for y in trace.y)  # no row that nobody named
    assert len(rows) == len(quality.probes)


def test_retrieval_shows_all_spaces_and_chance(quality):
    figure = retrieval_figure(quality.retrieval)
    assert [t.name for t in figure.data] == [MODEL_SPACE, HAND_SPACE, PCA_SPACE, "chance"]
    assert figure.data[0].x[-1] == 0.9 and figure.data[0].y[-1] == "all scenarios"
    alone = retrieval_figure(quality.retrieval[:1])
    assert [t.name for t in alone.data] == [MODEL_SPACE, "chance"]


def test_spectrum_sums_to_one(quality):
    figure = spectrum_figure(quality.rank)
    assert figure.data[1].y[-1] == pytest.approx(1)
    assert any(f"effective rank {quality.rank.effective:.1f}" in a.text for a in figure.layout.annotations)


def test_clusters_come_in_order_of_their_rate(quality):
    shrunk = clusters_figure(quality.clusters).data[1]
    assert list(shrunk.y) == sorted(quality.clusters.shrunk_rate, reverse=True)
    figure = agreement_figure(quality.clusters)
    assert figure.data[0].x == quality.clusters.rates.first
    assert "a&lt;b" in figure.layout.xaxis.title.text  # `<` would begin a tag


def test_shifts_stand_beside_the_line_to_reach(quality):
    traces = {t.name: t for t in shifts_figure(quality.shifts).data}
    assert traces["a true shift"].y == (0.05,) and traces["the same traffic"].x == (0.0,)
    line = traces["80% of it"]
    assert line.y[1] / line.x[1] == pytest.approx(0.8)


def test_pages_stand_alone_and_stale_ones_go(quality, tmp_path):
    folder = tmp_path / "figures"
    write_figures(quality, folder)
    assert {p.name for p in folder.iterdir()} == {"index.html", *(f"{name}.html" for name in WITHOUT_CORPUS)}
    text = (folder / "index.html").read_text()
    assert "<script src=" not in text and "0123456789abcdef" in text
    assert "NOT MET" in text and "a&lt;b" in text
    write_figures(replace(quality, shifts=()), folder)
    assert not (folder / "shifts.html").exists()
