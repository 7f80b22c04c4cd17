"""Cohorts that are too large are drawn by drive: whole drives, the same ones again, and intervals that hold."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from avshift_core.comparison import comparison_steps
from avshift_core.errors import CohortError
from avshift_core.latent.cohort import check_metric
from avshift_core.latent.corpora import read_pair
from avshift_core.latent.sampling import draw_drives
from avshift_core.progress import finish
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.shift.analyze import analyze
from tests.latent.weeks import weeks

W10, W11 = CohortQuery(period="2026-W10"), CohortQuery(period="2026-W11")


def test_a_cohort_that_fits_is_taken_whole(tmp_path):
    corpus = weeks(str(tmp_path / "fleet"))
    assert draw_drives(corpus, W10, "W10", most=300) == (W10, None)
    assert not any("sample" in caution for caution in read_pair(corpus, W10, W11).cautions)


def test_whole_drives_are_drawn_and_always_the_same(tmp_path):
    corpus = weeks(str(tmp_path / "fleet"), n=1500, drives=150)
    query, drawn = draw_drives(corpus, W10, "W10", most=604)
    assert (drawn.n, drawn.n_all, drawn.drives, drawn.drives_all) == (600, 1500, 60, 150)
    table = corpus.table(query, columns=["drive_id"])
    assert len(table) == 600 and (table["drive_id"].value_counts() == 10).all()
    assert draw_drives(corpus, W10, "W10", most=604)[0] == query
    assert draw_drives(corpus, W10, "W10", most=604, seed=1)[0] != query
    pair = read_pair(corpus, W10, W11, metrics=["discomfort"], most=604)
    assert (pair.P.n, pair.P.n_drives, pair.P.name, pair.source) == (600, 60, "2026-W10", W10)
    assert pair.cautions[0] == ("'2026-W10' is a sample of 60 of its 150 drives, drawn at random: 600 of 1,500 "
                                "scenarios. Bounds, regions and weights are those of the sample; the observed rate is "
                                "that of all drives.")


def test_sums_of_all_other_drives_come_with_a_sample(tmp_path):
    corpus = weeks(str(tmp_path / "fleet"), n=1500, drives=150)
    metrics = ["discomfort", "ttc_min_s<1.5"]
    pair = read_pair(corpus, W10, W11, metrics=metrics, most=604)
    everything = corpus.table(W10, metrics=metrics)
    assert len(pair.P.rest.n) == 90 and pair.P.rest.n.sum() == 900
    for name in metrics:
        assert pair.P.ell[name].sum() + pair.P.rest.ell[name].sum() == everything[name].sum()
    sampled = read_pair(corpus, W10, W11, metrics=metrics, most=604, sums=False)
    assert sampled.P.rest is None and sampled.P.fingerprint != pair.P.fingerprint
    found = analyze(pair.P, pair.Q, classifier="cells", repeats=1, folds=2, n_perm=19).calibrations["discomfort"]
    assert found.naive.mu == pytest.approx(everything["discomfort"].mean())
    assert found.target.mu == pytest.approx(corpus.table(W11, metrics=metrics)["discomfort"].mean())


def test_a_comparison_of_samples_observes_all_drives(tmp_path, monkeypatch):
    corpus = weeks(str(tmp_path / "fleet"), n=1500, drives=150)
    monkeypatch.setattr("avshift_core.comparison.read_pair", partial(read_pair, most=604))
    made = finish(comparison_steps(corpus.url, "period=2026-W10", "period=2026-W11", config={
        "classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 19}))
    everything = corpus.table(W10, metrics=["ttc_min_s<1.5"])
    assert made.analysis.P.n == 600 and "a sample of 60 of its 150 drives" in made.cautions[0]
    assert made.analysis.calibrate(10.0, "ttc_min_s<1.5").naive.mu == pytest.approx(everything["ttc_min_s<1.5"].mean())


def test_a_metric_that_is_missing_in_drives_that_were_not_drawn_is_refused(tmp_path):
    url = str(tmp_path / "fleet")
    corpus = weeks(url, n=1500, drives=150)
    kept = set(draw_drives(corpus, W10, "W10", most=604)[0].drive_id)
    drive = [f"2026-03-02-d{i % 150}" for i in range(1500)]
    risk = np.where([d == min(set(drive) - kept) for d in drive], np.nan, 0.5)
    other = weeks(str(tmp_path / "other"), n=1500, drives=150, risk=risk)
    pair = read_pair(other, W10, W11, metrics=["risk"], most=604)
    with pytest.raises(CohortError, match="'risk' is missing or infinite in scenarios of 1 drives"):
        check_metric(pair.P, pair.Q, "risk", 1.0)


@pytest.mark.parametrize(("options", "most", "said"), [
    ({"known_drives": 290}, 200, "300 scenarios; beyond 200 a sample is drawn by drive"),
    ({"drives": 15}, 200, "would be 10 drives, and fewer than 50"),
])
def test_what_cannot_be_drawn_is_refused(tmp_path, options, most, said):
    corpus = weeks(str(tmp_path / "fleet"), **options)
    with pytest.raises(CohortError, match=said):
        draw_drives(corpus, W10, "W10", most=most)


@pytest.mark.slow
def test_intervals_of_a_sample_hold_the_rate_of_all(tmp_path):
    """Events cluster by drive, and 60 of 600 drives are drawn."""
    rng, n, drives = np.random.default_rng(0), 12_000, 600
    url, rate = str(tmp_path / "fleet"), rng.beta(2, 6, drives)
    ids = pd.DataFrame({name: np.full(2 * n, UNKNOWN, dtype=object) for name in ID_FIELDS})
    drive = np.arange(2 * n) % (2 * drives)
    ids["scenario_id"], ids["drive_id"] = [f"s{i}" for i in range(2 * n)], [f"d{d:04d}" for d in drive]
    ids["period"] = np.where(drive < drives, "P", "Q")
    ids["day"], ids["area"], ids["av_version"], ids["hour"] = "2026-03-02", "harbor", "v1", 8
    event = (rng.random(2 * n) < np.tile(rate, 2)[drive]) * 1.0
    with create_or_open(url) as writer:
        writer.add_table(ids, pd.DataFrame(index=ids.index), {"event": event}, rng.normal(size=(2 * n, 2)),
                         model="mine", source="one")
    corpus, truth, held = open_corpus(url), event[drive < drives].mean(), []
    for seed in range(16):
        query, _ = draw_drives(corpus, CohortQuery(period="P"), "P", most=1200, seed=seed)
        other, _ = draw_drives(corpus, CohortQuery(period="Q"), "Q", most=1200, seed=seed)
        pair = read_pair(corpus, query, other, metrics=["event"])
        naive = analyze(pair.P, pair.Q, classifier="cells", repeats=1, folds=2, n_perm=19).calibrations["event"].naive
        held.append(naive.lo <= truth <= naive.hi)
    assert sum(held) >= 12  # of 16; fewer than 12 have probability 0.001 at a coverage of 0.95
