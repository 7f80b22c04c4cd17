import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from avshift_core.errors import CohortError, CorpusError, ModelError
from avshift_core.latent.corpora import choose_latents, cohort_of, metric_definitions, read_pair
from avshift_core.scenario.schema import Ids, pad
from avshift_core.scenario.store import writer as writing
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from avshift_core.scenario.store.query import CohortQuery
from tests.latent.weeks import DAYS, OTHER, OURS, add_latents, add_week, ship, weeks, write_card
from tests.scenario.scenes import along, scene, times, track

ROOT = Path(__file__).parents[2]
W10, W11 = "period=2026-W10", "period=2026-W11"


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "fleet")


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch, tmp_path):
    ship(monkeypatch, tmp_path / "nowhere")


# One cohort ----------------------------------------------------------------------------------------------------------


def test_a_cohort_holds_what_the_corpus_tells(url):
    corpus = weeks(url)
    metrics = ["discomfort", "ttc_min_s<1.5", "ego_speed_mps"]
    P = cohort_of(corpus, f"{W10},area=harbor", metrics=metrics, latents="mine")
    frame, z = corpus.table(W10, metrics=metrics, latents="mine")
    assert (P.name, P.n, P.n_drives, P.has_drives) == ("2026-W10 harbor", 300, 15, True)
    np.testing.assert_array_equal(P.z, z)
    assert P.drive_ids[P.drive].tolist() == frame["drive_id"].tolist()
    assert tuple(P.ell) == tuple(metrics)
    for name in metrics:
        np.testing.assert_array_equal(P.ell[name], frame[name])
    assert set(P.ell["ttc_min_s<1.5"]) == {0.0, 1.0}
    assert {"scenario_id", "hour", "av_version", "low_rate", "distance_km"} <= set(P.obs)
    assert not {"drive_id", *metrics} & set(P.obs)
    assert P.obs["scenario_id"].tolist() == frame["scenario_id"].tolist()


def test_unknown_drives_are_no_drives(url):
    P = cohort_of(weeks(url, known_drives=0), W10, latents="mine", name="mine")
    assert (P.name, P.has_drives, P.n_drives) == ("mine", False, 300)  # every scenario counts as independent


def test_drives_of_some_scenarios_only(url):
    corpus = weeks(url, known_drives=288)
    with pytest.raises(CohortError, match="'2026-W10' has 12 of 300 scenarios without a drive id"):
        cohort_of(corpus, W10, latents="mine")


# Which latents -------------------------------------------------------------------------------------------------------


def test_the_only_latents_are_taken(url):
    assert choose_latents(weeks(url)) == "mine"


def test_each_view_has_its_latents(url):
    weeks(url, model=f"{OURS}.full")
    corpus = add_latents(url, f"{OURS}.context")
    assert [choose_latents(corpus, None, view) for view in ("full", "context")] == [f"{OURS}.full", f"{OURS}.context"]


def test_among_several_models_the_shipped_ones_are_taken(url, monkeypatch, tmp_path):
    weeks(url)
    corpus = add_latents(url, f"{OTHER}.full", f"{OURS}.full")
    with pytest.raises(CorpusError, match=f"several latents of the view 'full'.*mine, {OTHER}.full, {OURS}.full. Choo"):
        choose_latents(corpus)
    ship(monkeypatch, write_card(tmp_path / "shipped", OURS))
    assert choose_latents(corpus) == f"{OURS}.full"


@pytest.mark.parametrize("how", ["id", "folder", "latents"])
def test_a_model_is_named_by_its_id_its_folder_or_its_latents(url, tmp_path, how):
    weeks(url, model=f"{OURS}.full")
    corpus = add_latents(url, f"{OTHER}.full")
    folder = write_card(tmp_path / "model", OTHER)
    assert choose_latents(corpus, {"id": OTHER, "folder": str(folder), "latents": f"{OTHER}.full"}[how]) == \
        f"{OTHER}.full"


def test_imported_latents_are_named(url):
    weeks(url)
    assert choose_latents(add_latents(url, f"{OTHER}.full", "ngsim"), "ngsim") == "ngsim"


@pytest.mark.parametrize(
    ("model", "view", "sentence"),
    [
        (None, "context", r"no latents of the view 'context'; found mine, 0.*\.full\. Run `python -m avshift_core enc"),
        ("mine", "context", "'mine' do not show the view 'context'"),
        (f"{OURS}.full", "context", "do not show the view 'context'"),
        (OTHER, "full", f"no latents '{OTHER}.full'; found mine, {OURS}.full. Give one of these ids"),
        ("model", "full", f"no latents '{OTHER}.full'.* encode .*fleet --model model` first"),
    ],
)
def test_latents_that_are_not_there(url, tmp_path, monkeypatch, model, view, sentence):
    weeks(url)
    corpus = add_latents(url, f"{OURS}.full")
    write_card(tmp_path / "model", OTHER)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorpusError, match=sentence):
        choose_latents(corpus, model, view)


def test_a_card_that_is_none(url, tmp_path):
    corpus = weeks(url)
    (write_card(tmp_path / "model", OTHER) / "card.json").write_text('["model"]')
    with pytest.raises(ModelError, match="is not the card of an encoder"):
        choose_latents(corpus, str(tmp_path / "model"))


def test_a_corpus_without_latents(url):
    with create_or_open(url) as writer:
        writer.skip("log", [])
    with pytest.raises(CorpusError, match="holds no scenarios"):
        choose_latents(open_corpus(url))
    states(url, [DAYS[0]])
    with pytest.raises(CorpusError, match=r"has no latents yet\. Run `python -m avshift_core encode .*fleet` first"):
        choose_latents(open_corpus(url))


def test_a_corpus_that_is_encoded_in_part(url):
    add_week(url, DAYS[0], model=f"{OURS}.full")
    add_week(url, DAYS[1], model="mine")
    with pytest.raises(CorpusError, match=f"300 of 600 scenarios have latents of model '{OURS}.full', but not all"):
        read_pair(open_corpus(url), W10, W11, model=OURS)


def test_latents_are_chosen_without_torch(url):
    add_week(url, DAYS[0])
    add_latents(url, f"{OURS}.full")
    code = ("import sys; from avshift_core.latent.corpora import choose_latents; from avshift_core import open_corpus\n"
            f"print(choose_latents(open_corpus({url!r}), {OURS!r}), 'torch' in sys.modules)")
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert out.split() == [f"{OURS}.full", "False"]


# Two cohorts ---------------------------------------------------------------------------------------------------------


def test_a_pair_knows_where_it_comes_from(url):
    corpus = weeks(url)
    pair = read_pair(corpus, W10, W11, metrics=["discomfort"])
    assert (pair.P.name, pair.Q.name, pair.P.n, pair.Q.n) == ("2026-W10", "2026-W11", 300, 300)
    assert (pair.source, pair.target) == (CohortQuery.parse(W10), CohortQuery.parse(W11))
    assert (pair.latents, pair.view, pair.cautions) == ("mine", None, ())


def test_the_same_query_twice(url):
    with pytest.raises(CohortError, match="both '2026-W10 harbor'; choose two different"):
        read_pair(weeks(url), f"{W10},area=harbor", f"area=harbor,{W10}")


def test_a_scenario_in_both_cohorts(url):
    with pytest.raises(CohortError, match=r"'2026-W10' and 'all scenarios' have 300 .* in common .*'2026-03-02-0-"):
        read_pair(weeks(url), W10, "")


def test_limits_come_from_the_definitions(url):
    texts = ["ttc_min_s", "ttc_min_s<1.5", "discomfort", "ego_speed_mps", "ego_speed_mps>10", "risk"]
    corpus = weeks(url, risk=np.full(300, 0.5))
    found = metric_definitions(corpus, (CohortQuery(),), texts)
    assert [found[text].M for text in texts] == [10.0, 1.0, 1.0, None, 1.0, None]  # TTC is cut at its horizon of 10 s


def test_cohorts_measured_by_two_versions_of_a_metric(url, monkeypatch):
    add_week(url, DAYS[0])
    monkeypatch.setitem(writing.KNOWN, "ttc_min_s", replace(writing.KNOWN["ttc_min_s"], version=2))
    add_week(url, DAYS[1])
    for metric in ("ttc_min_s", "ttc_min_s<1.5"):  # each cohort for itself is of one version
        with pytest.raises(CorpusError, match="'ttc_min_s' was measured by versions 1, 2"):
            read_pair(open_corpus(url), W10, W11, metrics=[metric])
    read_pair(open_corpus(url), W10, W11, metrics=["discomfort"])


# Cautions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latents", "view", "reading"),
    [
        ("mine", "full", "Imported latents may hold the AV's own reaction"),
        (f"{OURS}.full", "full", "The full view holds the AV's own reaction, so the shift may be the policy's"),
        (f"{OURS}.context", "context", "The context view leaves the AV's own reaction out"),
    ],
)
def test_two_versions(url, latents, view, reading):
    add_week(url, DAYS[0], model=latents, version="v1")
    add_week(url, DAYS[1], model=latents, version=["v1"] * 100 + ["v2"] * 200)
    caution, = read_pair(open_corpus(url), W10, W11, view=view).cautions
    assert "'2026-W10' has v1 (300); '2026-W11' has v1 (100), v2 (200). " + reading in caution
    assert read_pair(open_corpus(url), W10, f"{W11},av_version=v1", view=view).cautions == ()


def test_unknown_versions(url):
    caution, = read_pair(weeks(url, version=["unknown"] * 40 + ["v1"] * 260), W10, W11).cautions
    assert "The AV version of 80 of 600 scenarios is unknown" in caution


def states(url, days, hz=10.0):
    """Ten scenarios with states a day, all of version v1."""
    t = times(2.0, hz)
    with create_or_open(url) as writer:
        for day in days:
            one = scene(t, track(t, along(t, 10.0)))
            batch = pad([replace(one, ids=Ids(f"{day}-{i}", f"{day}-{i}", day=day, period=f"W{day[-2:]}",
                                              av_version="v1", area="harbor")) for i in range(10)])
            writer.add(batch, {}, {"discomfort": np.zeros(10), "gap_min_m": np.ones(10)}, source=day)
    return open_corpus(url)


@pytest.mark.parametrize("card", ["shipped", "folder", "of another model", "not at hand"])
def test_an_encoder_that_was_trained_on_a_cohort(url, monkeypatch, tmp_path, card):
    states(url, DAYS)
    corpus = add_latents(url, f"{OURS}.full")
    seen = [part.files["states"].sha256 for part in corpus.parts if part.day == DAYS[1]]
    assert len(seen) == 1
    folder = write_card(tmp_path / "model", OTHER if card == "of another model" else OURS, [*seen, "0" * 64])
    if card in ("shipped", "of another model"):
        ship(monkeypatch, folder)
    model = str(folder) if card == "folder" else None
    cautions = read_pair(corpus, f"day={DAYS[0]}", f"day={DAYS[1]}", model=model).cautions
    if card in ("shipped", "folder"):
        assert [f"Model {OURS} was trained on scenarios of '2026-03-09'; " in text for text in cautions] == [True]
    else:
        assert cautions == ()
    assert read_pair(corpus, f"day={DAYS[0]}", f"day={DAYS[2]}", model=model).cautions == ()


def test_metrics_that_need_a_higher_rate(url):
    states(url, [DAYS[0]])
    states(url, [DAYS[1]], hz=2.0)
    corpus = add_latents(url, "mine")
    read = lambda *metrics: read_pair(corpus, f"day={DAYS[0]}", f"day={DAYS[1]}", metrics=metrics).cautions  # noqa: E731
    assert ["discomfort miss short events" in text and "0% of '2026-03-02' and 100% of" in text
            for text in read("discomfort", "gap_min_m")] == [True]
    assert read("gap_min_m") == read() == ()


def test_every_column_of_the_corpus_is_there(url):
    corpus = weeks(url)
    P = cohort_of(corpus, W10, latents="mine")
    assert set(P.obs) | {"drive_id"} == set(corpus.cohort_columns)
    assert P.ell == {}
