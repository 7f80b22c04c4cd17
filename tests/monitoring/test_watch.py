"""A corpus under watch, from Python and from the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest

from avshift_core.__main__ import main
from avshift_core.archive import load, save
from avshift_core.errors import AVShiftError
from avshift_core.jobs.kinds import KINDS
from avshift_core.monitoring.watch import default_view, metric_choices, watch_steps
from avshift_core.progress import finish
from avshift_core.scenario.store.corpus import open_corpus
from tests.latent.weeks import OURS, add_latents, add_week, ship, weeks

DAYS = ("2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23")
QUICK = ["--classifier", "logistic", "--reference", "period=2026-W10|2026-W11", "--where", "area=harbor"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Four weeks of 60 drives; in the last the traffic is another, and another AV version drives."""
    url = str(tmp_path_factory.mktemp("watch") / "fleet")
    for k, day in enumerate(DAYS):
        add_week(url, day, n=480, drives=60, move=2.0 * (k == 3), version="v2" if k == 3 else "v1")
    return url


@pytest.fixture(scope="module")
def watch(fleet):
    return finish(watch_steps(fleet, "period=2026-W10|2026-W11", "area=harbor", ["discomfort"], "full",
                              classifier="logistic"))


def report(path):
    return json.loads(path.read_text())


def test_an_alarm_says_when_and_where(watch):
    assert watch.sentence == "Traffic has changed: first alarm in 2026-W13."
    assert [str(query) for query in watch.cohorts] == ["period=2026-W10|2026-W11,area=harbor",
                                                       "period=2026-W13,area=harbor"]
    assert watch.verdict.startswith("Global shift") and watch.places == ()  # so much that no region explains it
    assert any("AV versions differ (v1, v2), so a change of a metric may be the car's" in c for c in watch.cautions)
    assert any("Imported latents may hold the AV's own reaction" in c for c in watch.cautions)


def test_alarms_of_one_week_are_one_sentence(watch):
    traffic, event = watch.monitor.streams
    both = replace(watch, monitor=replace(watch.monitor, streams=(traffic, replace(traffic, name=event.name))))
    assert both.sentence == "Traffic and “Discomfort” have changed: first alarm in 2026-W13."


def test_rows_and_report_hold_the_same(watch):
    rows, found = watch.week_rows(), watch.report()
    assert [row["week"] for row in rows] == ["2026-W10", "2026-W11", "2026-W12", "2026-W13"]
    assert [row["traffic: alarm"] for row in rows] == [False, False, False, True]
    traffic = found["streams"][0]
    assert rows[3]["traffic: wealth"] == traffic["wealth_by_week"]["2026-W13"] and rows[0]["traffic: wealth"] is None
    assert found["threshold"] == 40 and found["alarm"] and found["first_alarm"] == "2026-W13"
    table = watch.drive_table()
    assert len(table) == sum(len(s.week) for s in watch.monitor.streams)
    assert np.exp(table[table["stream"] == "traffic"]["log_wealth"].iloc[-1]) == rows[3]["traffic: wealth"]


def test_it_can_be_kept_and_is_a_kind_of_job(watch, tmp_path):
    save(watch, tmp_path / "w.avs")
    assert load(tmp_path / "w.avs").sentence == watch.sentence
    assert KINDS["monitor"].load() is watch_steps


def test_the_command_prints_weeks_and_the_sentence(fleet, tmp_path, capsys):
    out = tmp_path / "out.json"
    watched = ["--metric", "discomfort", "--metric", "ttc_min_s<1.5"]
    assert main(["monitor", fleet, *QUICK, *watched, "--json", str(out)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "Discomfort" in lines[1] and "Time to collision below 1.5 s" in lines[1]
    assert lines[2].split()[:4] == ["2026-W10", "60", "480", "reference"]
    assert "Alarm at a wealth of 60" in text and "Traffic has changed: first alarm in 2026-W13." in text
    assert f'More: compare --corpus {fleet} --source "period=2026-W10|2026-W11,area=harbor"' in text
    found = report(out)
    assert [s["name"] for s in found["streams"]] == ["traffic", "discomfort", "ttc_min_s<1.5"]
    assert found["config"] == {"alpha": 0.05, "seed": 0, "classifier": "logistic", "unit": "drive"}
    assert found["comparison"]["target"] == "period=2026-W13,area=harbor"


def test_metrics_alone_need_no_latents(fleet, capsys):
    assert main(["monitor", fleet, *QUICK, "--no-traffic", "--metric", "discomfort", "--alpha", "0.01"]) == 0
    text = capsys.readouterr().out
    assert "Traffic" not in text and "Alarm at a wealth of 100" in text and "No alarm after 2 weeks." in text


def test_one_week_to_watch_and_no_alarm(fleet, capsys):
    assert main(["monitor", fleet, *QUICK[:2], "--reference", "period=2026-W10|2026-W11", "--where",
                 "period=2026-W12"]) == 0
    assert "No alarm after 1 week." in capsys.readouterr().out


@pytest.mark.parametrize(("more", "sentence"), [
    (["--alpha", "0"], "alpha is 0; it is the largest chance of a false alarm and must lie between 0 and 1"),
    (["--alpha", "1.5"], "alpha is 1.5"),
    (["--seed", "-1"], "seed is -1"),
    (["--no-traffic"], "nothing to watch: leave out --no-traffic, or name a metric"),
    (["--metric", "crash"], "no metric 'crash'"),
    (["--metric", "discomfort", "--metric", "discomfort"], "A metric is named twice"),
    (["--where", "area=moon"], "has area=moon"),
    (["--reference", "period=2026-W13"], "no week after the reference"),
    (["--unit", "day"], r"The reference has 2 days"),
    (["--view", "context"], "no view 'context'"),
    (["--json", "/nowhere/at/all.json"], "is not a folder"),
])
def test_bad_calls_exit_with_2_and_one_sentence(fleet, capsys, more, sentence):
    assert main(["monitor", fleet, *QUICK, *more]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.strip().count("\n") == 0


def test_a_corpus_that_has_changed_is_refused(fleet):
    with pytest.raises(AVShiftError, match="has changed since this was asked for"):
        finish(watch_steps(fleet, "period=2026-W10", fingerprint="0" * 64, view="full"))


def test_the_context_is_watched_where_there_is_one(tmp_path, monkeypatch):
    ship(monkeypatch, tmp_path / "nowhere")
    corpus = weeks(str(tmp_path / "two"))
    assert default_view(corpus) == "full"
    corpus = add_latents(corpus.url, f"{OURS}.full", f"{OURS}.context")
    assert (default_view(corpus), default_view(corpus, OURS), default_view(corpus, "mine")) == (
        "context", "context", "full")


def test_what_can_be_watched_in_words(fleet):
    found = metric_choices(open_corpus(fleet))
    assert found["discomfort"] == "Discomfort" and found["ttc_min_s<1.5"] == "Time to collision below 1.5 s"
    assert next(iter(found)) == "discomfort"
