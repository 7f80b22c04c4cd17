"""`compare` and `sensitivity` on cohorts of a corpus."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.__main__ import main
from avshift_core.latent.corpora import cohort_of
from avshift_core.latent.tables import write_cohort
from tests.latent.weeks import DAYS, OTHER, OURS, add_latents, add_week, ship, weeks, write_card

FAST = ["--repeats", "1", "--classifier", "cells", "--n-perm", "99"]
W10, W11 = "period=2026-W10,area=harbor", "period=2026-W11,area=harbor"


@pytest.fixture(autouse=True)
def fleet(monkeypatch, tmp_path):
    """Two weeks of 300 scenarios in the folder `fleet` of the working folder."""
    monkeypatch.chdir(tmp_path)
    ship(monkeypatch, tmp_path / "nowhere")
    weeks("fleet")
    return tmp_path


def compare(*more, source=W10, target=W11, corpus="fleet"):
    return main(["compare", "--corpus", corpus, "--source", source, "--target", target, *FAST, *more])


def report(path="r.json"):
    with open(path) as file:
        return json.load(file)


def test_the_report_says_where_the_cohorts_come_from(capsys):
    assert compare("--metric", "discomfort", "--metric", "ttc_min_s<1.5", "--json", "r.json") == 0
    found = report()
    assert found["schema"] == 1
    assert found["corpus"] == {"url": "fleet", "latents": "mine", "view": None,
                               "fingerprint": found["corpus"]["fingerprint"]}
    assert len(found["corpus"]["fingerprint"]) == 64
    assert (found["source"]["query"], found["target"]["query"]) == (W10, W11)
    assert (found["source"]["name"], found["source"]["n"], found["source"]["drives"]) == ("2026-W10 harbor", 300, 15)
    assert list(found["metrics"]) == ["discomfort", "ttc_min_s<1.5"]
    assert found["cautions"] == []
    assert "latents: mine of fleet" in capsys.readouterr().out


def test_the_same_numbers_as_on_tables():
    from avshift_core.scenario.store.corpus import open_corpus

    metrics = ["discomfort", "ttc_min_s<1.5"]
    flags = [flag for name in metrics for flag in ("--metric", name)]
    for side, query in (("P", W10), ("Q", W11)):
        write_cohort(cohort_of(open_corpus("fleet"), query, metrics=metrics, latents="mine"), f"{side}.parquet")
    assert compare(*flags, "--force-localize", "--json", "corpus.json") == 0
    assert main(["compare", "--source", "P.parquet", "--target", "Q.parquet", *FAST, *flags, "--force-localize",
                 "--json", "tables.json"]) == 0
    ours, theirs = report("corpus.json"), report("tables.json")
    assert set(ours) == set(theirs)
    for part in ("global_test", "reference_tests", "regions", "metrics", "trust", "config"):
        assert ours[part] == theirs[part], part
    assert ours["source"]["fingerprint"] == theirs["source"]["fingerprint"]
    assert (theirs["corpus"], theirs["cautions"]) == (None, [])


def test_rows_carry_the_scenario(fleet):
    from avshift_core.scenario.store.corpus import open_corpus

    assert compare("--assignments", "rows.parquet") == 0
    rows = pd.read_parquet("rows.parquet")
    ids = [open_corpus("fleet").table(query, columns=["scenario_id"])["scenario_id"].tolist() for query in (W10, W11)]
    assert list(rows.columns[:3]) == ["side", "row", "scenario_id"]
    assert rows["scenario_id"].tolist() == ids[0] + ids[1]


def test_the_limit_of_a_metric_comes_from_its_definition():
    assert compare("--metric", "ttc_min_s", "--json", "r.json") == 0
    found = report()
    assert found["config"]["M"] == 10
    assert found["metrics"]["ttc_min_s"]["naive"]["hi"] == pytest.approx(5, abs=1)  # uniform in [0, 10]
    assert compare("--metric", "ttc_min_s", "--M", "12", "--json", "r.json") == 0
    assert report()["config"]["M"] == 12
    assert compare("--metric", "ttc_min_s", "--settings", "r.json", "--json", "s.json") == 0
    assert report("s.json")["config"]["M"] == 12


def test_the_view_and_the_model_choose_the_latents(capsys):
    add_latents("fleet", f"{OURS}.full", f"{OURS}.context", f"{OTHER}.full")
    write_card(Path("model"), OTHER)
    for flags, latents, view in ((["--view", "context"], f"{OURS}.context", "context"),
                                 (["--model", OURS], f"{OURS}.full", "full"),
                                 (["--model", "model"], f"{OTHER}.full", "full"), (["--model", "mine"], "mine", None)):
        assert compare(*flags, "--json", "r.json") == 0
        assert (report()["corpus"]["latents"], report()["corpus"]["view"]) == (latents, view)
    assert compare() == 2
    assert f"mine, {OURS}.full, {OTHER}.full. Choose one with --model" in capsys.readouterr().err


def test_cautions_are_printed_and_written(capsys):
    add_week("fleet", DAYS[2], version="v2")
    assert compare("--json", "r.json", target="period=2026-W12") == 0
    caution, = report()["cautions"]
    assert "'2026-W12' has v2 (300)" in caution
    assert f"caution: {caution}" in capsys.readouterr().out


def test_without_drives_independence_is_assumed(capsys):
    weeks("loose", known_drives=0)
    assert compare("--json", "r.json", corpus="loose") == 0
    assert report()["source"]["drives"] is None and report()["global_test"]["independence_assumed"]
    assert "No drive ids: independence is assumed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--latent", "z"], "--latent speaks of tables"),
        (["--group", "drive_id"], "--group speaks of tables"),
        (["--metric", "crash"], "no metric 'crash'; found"),
        (["--metric", "ttc_min_s", "--metric", "discomfort"], "ttc_min_s in [0, 10], discomfort in [0, 1]. Compare"),
        (["--metric", "ego_speed_mps"], "it must lie in [0, 1]. Rescale it, or set --M"),
        (["--target", W10], "both '2026-W10 harbor'"),
        (["--target", "area=harbor"], "have 300 scenarios in common"),
        (["--target", "period=2026-W40"], "No scenario of fleet has period=2026-W40"),
        (["--target", "week=11"], "'week' is no key of a cohort"),
        (["--view", "context"], "holds ready-made latents (mine) and no states, so there is no view 'context'"),
        (["--model", OURS], f"no latents '{OURS}.full'; found mine"),
        (["--corpus", "nowhere"], "nowhere does not exist"),
    ],
)
def test_bad_calls_exit_with_2_and_one_sentence(fleet, capsys, more, sentence):
    assert compare("--json", "r.json", *more) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.strip().count("\n") == 0
    assert not list(fleet.glob("*.json"))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--view", "full"], "--view speaks of the latents of a corpus. Name it with --corpus"),
        (["--model", OURS], "--model speaks of the latents of a corpus"),
        ([], f"'{W10}' is no table. To choose these scenarios of a corpus, name it with --corpus"),
    ],
)
def test_a_forgotten_corpus(capsys, flags, sentence):
    assert main(["compare", "--source", W10, "--target", W11, *flags]) == 2
    assert sentence in capsys.readouterr().err


def test_sensitivity_on_a_corpus(monkeypatch, capsys):
    import avshift_core.shift.sensitivity as studies

    monkeypatch.setattr(studies, "FAMILIES", ("logistic",))  # the studies themselves are tested on tables
    monkeypatch.setattr(studies, "RATIOS", ())
    monkeypatch.setattr(studies, "TRAIN_SIZES", ())
    monkeypatch.setattr(studies, "CAPACITIES", {})
    code = main(["sensitivity", "--corpus", "fleet", "--source", W10, "--target", W11, "--seeds", "2",
                 "--classifier", "cells", "--json", "s.json"])
    assert code == 0
    found = report("s.json")
    assert (found["corpus"]["latents"], found["source"], found["target"]) == ("mine", W10, W11)
    assert found["cautions"] == [] and len(found["rows"]) == 1 and found["half_width"]
    assert np.isfinite(found["rows"][0]["acc"])
