"""`versions` on cohorts of a corpus: the parts, and one sentence for whatever cannot be compared."""

import json

import numpy as np
import pytest

from avshift_core.__main__ import main
from tests.latent.weeks import DAYS, OURS, add_latents, add_week, ship

FAST = ["--repeats", "1", "--classifier", "cells", "--n-perm", "99", "--folds", "2"]
P, Q = "period=2026-W10,area=harbor,av_version=v1", "period=2026-W11,area=harbor,av_version=v2"


@pytest.fixture(autouse=True)
def fleet(monkeypatch, tmp_path):
    """A week of v1 and a week of v2 with half of its events, in context latents."""
    monkeypatch.chdir(tmp_path)
    ship(monkeypatch, tmp_path / "nowhere")
    rng = np.random.default_rng(0)
    for day, version, rate in zip(DAYS, ("v1", "v2"), (0.4, 0.1), strict=False):
        add_week("fleet", day, version=version, model=f"{OURS}.context", discomfort=(rng.random(300) < rate) * 1.0)


def versions(*more, source=P, target=Q, corpus="fleet", metric="discomfort"):
    return main(["versions", "--corpus", corpus, "--source", source, "--target", target, "--metric", metric, *FAST,
                 *more])


def test_the_parts_are_told_and_written(capsys):
    assert versions("--json", "out.json") == 0
    told = capsys.readouterr().out
    assert "discomfort: v2 is better than v1" in told and "leakage probe, " in told and "more of v" in told
    with open("out.json") as file:
        found = json.load(file)
    own = found["metrics"]["discomfort"]
    assert found["versions"] == {"A": "v1", "B": "v2", "view": "context"} and own["verdict"] == "better"
    assert found["corpus"]["latents"] == f"{OURS}.context" and found["source"]["query"] == P
    total = own["not_comparable"]["mu"] + own["exposure"]["Q"]["mu"] + own["performance"]["Q"]["mu"]
    assert total == pytest.approx(own["raw"]["mu"], abs=1e-12)
    assert own["power"]["decided"] and found["leakage_probe"]["status"] in ("ok", "caution", "refuse")
    assert {"group", "version", "gain", "effective"} <= set(own["collection"]["rows"][0])


def test_a_metric_of_which_less_is_bad_is_worse_when_it_falls(capsys):
    assert versions(metric="ttc_min_s") == 0  # in [0, 10] seconds: shown in its own unit
    assert "ttc_min_s: " in capsys.readouterr().out


def refused(capsys, words, *more, **how):
    assert versions(*more, **how) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1, told


def test_the_full_view_is_refused(capsys):
    add_latents("fleet", f"{OURS}.full")
    refused(capsys, "The full view holds the AV's own reaction", "--view", "full")


def test_imported_latents_are_refused(capsys):
    add_week("other", DAYS[0], version="v1")
    add_week("other", DAYS[1], version="v2")
    refused(capsys, "imported, and nobody knows", corpus="other")
    add_latents("fleet", "mine")
    refused(capsys, "imported, and nobody knows", "--model", "mine")


def test_mixed_versions_are_refused_with_their_counts(capsys):
    add_week("fleet", DAYS[0], version="v2", model=f"{OURS}.context", seed=1, n=40)
    refused(capsys, "mixes AV versions v1 (300 scenarios), v2 (40 scenarios)", source="period=2026-W10,area=harbor")


def test_a_version_that_was_not_driven_there_is_named(capsys):
    refused(capsys, "v2", source="period=2026-W10,area=harbor,av_version=v2")


def test_a_metric_that_one_cohort_lacks_is_refused(capsys):
    refused(capsys, "no_such", metric="no_such")


def test_overlapping_cohorts_are_refused(capsys):
    refused(capsys, "in common", target="area=harbor,av_version=v1")
