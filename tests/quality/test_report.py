"""Whole reports on fleets whose latents are made from the true contexts, so that every answer is known."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError
from avshift_core.progress import Progress, finish
from avshift_core.quality import report
from avshift_core.quality.aims import judge, not_measured
from avshift_core.quality.describe import describe
from avshift_core.quality.report import measure_steps, quality_steps, to_json, trained_share
from avshift_core.quality.sample import choose_drives, read_sample
from avshift_core.scenario.store.corpus import open_corpus
from tests.quality.fleet import write_fleet

NAMES = {"full": "m.full", "context": "m.context"}
CARD = {"attributes": ["ego_speed_mps"], "output": "standardised", "data": {"states": []}}
NEW = "v4.2"
QUICK = AnalysisConfig(classifier="logistic", repeats=1, n_perm=19)


def exact(x, table, rng):
    return x


def with_version(x, table, rng):
    """The contexts and what the AV did."""
    trace = 2.5 * (table["av_version"].to_numpy() == NEW) + rng.normal(size=len(x))
    return np.concatenate([x, trace[:, None]], axis=1)


def noisy(x, table, rng):
    return x + 0.2 * rng.normal(size=x.shape)


@pytest.fixture(scope="module")
def quality(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("fleet") / "corpus")
    write_fleet(url, {"m.full": with_version, "m.context": exact, "n.full": noisy}, scenarios=4800)
    steps = measure_steps(open_corpus(url), NAMES, view="full", model="m", card=CARD, also=[("n", "n.full")],
                          config=QUICK)
    seen = []
    result = finish(steps, seen.append)
    shares = [p.share for p in seen]
    assert shares == sorted(shares) and shares[-1] == 1
    return result


def test_what_was_built_in_is_found(quality):
    probes = {p.name: p for p in quality.probes}
    assert probes["ego_speed_mps"].score.value > 0.99 and probes["ego_speed_mps"].trained_on
    assert not probes["hard_brake"].trained_on and probes["hard_brake"].score.value > 0.6
    assert quality.retrieval[0].precision.value > 0.9  # categories are situations, which the contexts hold
    assert quality.clusters.rate_spread.p_value < 0.01
    assert quality.clusters.phi > 0.1 and quality.clusters.rates.pearson > 0.5  # both follow one risk
    version, area = quality.leaks
    assert (version.label, area.label) == ("av_version", "area")
    assert version.excess.lo > 0.1 and area.excess.hi < 0.03 and version.exact
    assert quality.stability.overlap.mean > 0.3 and quality.stability.models == ("m", "n")


def test_shifts_and_versions_have_the_verdicts_built_in(quality):
    assert len(quality.shifts) == 14
    areas = [s for s in quality.shifts if "harbor ->" in s.name]
    assert all(s.gamma_star > 0.2 and s.gamma_z.lo > 0.05 for s in areas)
    assert 0.9 < quality.kept.lo <= quality.kept.value < 1.1  # one dimension of noise more than the contexts
    assert sum(s.is_same for s in quality.shifts) == 2
    verdicts = {s.view: s.verdict_z for s in quality.versions}
    assert verdicts == {"full": "global_shift", "context": "no_shift"}
    context = next(s for s in quality.versions if s.view == "context")
    assert context.gamma_z == context.gamma_contexts  # the same numbers, the same engine, the same seed


def test_aims_are_judged_by_their_numbers(quality):
    aims = {aim.name: aim for aim in judge(quality)}
    assert aims["R2 of ego_speed_mps"].met and "was taught" in aims["R2 of ego_speed_mps"].note
    name = "no shift between AV versions in the context view"
    assert name not in aims and name in not_measured(judge(quality))  # a few hundred scenarios could not show one
    able = tuple(replace(s, detectable=0.03) for s in quality.versions)
    (aim,) = [aim for aim in judge(replace(quality, versions=able)) if aim.name == name]
    assert aim.met and "0.030 would have been seen" in aim.note
    found = tuple(replace(s, verdict_z="localize") for s in able)
    assert not next(aim for aim in judge(replace(quality, versions=found)) if aim.name == name).met
    assert all(aim.met == (aim.value >= aim.least) for aim in aims.values())
    assert "precision@10 over the better baseline's" not in aims  # no states, no baselines
    assert aims["precision@10 by category"].note == "the encoder was not taught the category"


def test_an_aim_that_nobody_can_reach_says_so(quality):
    from dataclasses import replace

    own = quality.retrieval[0]
    base = replace(own, space="hand-made features", precision=replace(own.precision, value=0.9))
    aim = next(a for a in judge(replace(quality, retrieval=(own, base))) if "better baseline" in a.name)
    assert not aim.met and aim.least == pytest.approx(1.17)
    assert "no latent space can reach it: at most 1.11 x" in aim.note  # 1 / 0.9


def test_what_is_missing_is_told_in_one_sentence(quality):
    text = "\n".join(quality.notes)
    assert "baselines were left out" in text and "have no states" in text
    assert all(note.endswith(".") for note in quality.notes)


def test_json_and_text_carry_the_numbers(quality):
    body = json.loads(json.dumps(to_json(quality), allow_nan=False))
    assert body["schema"] == 1 and body["n"] == 4800 and len(body["aims"]) == len(quality.aims)
    assert body["kept"]["value"] == pytest.approx(quality.kept.value)
    assert "drawn_z" not in body["shifts"][0]
    text = describe(quality)
    for piece in ("Aims:", "met     R2 of", "the encoder was taught these", "2026-W11 v4.1 -> 2026-W16 v4.2",
                  "Left out:", "effective rank", "Stability over 2 trainings", f"z keeps {quality.kept.value:.0%}"):
        assert piece in text
    assert max(map(len, text.splitlines())) < 260


def test_the_same_seed_gives_the_same_report(tmp_path):
    url = write_fleet(str(tmp_path / "c"), {"m.full": noisy, "m.context": exact}, scenarios=640, with_truth=False)
    texts = [json.dumps(to_json(finish(measure_steps(open_corpus(url), NAMES, view="full", model="m", card={}))))
             for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_small_corpus_without_truth_drops_parts_and_does_not_fail(tmp_path):
    url = write_fleet(str(tmp_path / "c"), {"m.full": noisy, "m.context": exact}, scenarios=640, with_truth=False)
    found = finish(measure_steps(open_corpus(url), NAMES, view="context", model="m", card={}))
    text = "\n".join(found.notes)
    assert "No truth lies beside the corpus" in text
    assert "14 pairs of cohorts were left out" in text and text.count("at least 200 are needed") == 1
    assert "--also MODEL" in text and found.stability is None and found.shifts == () and found.kept is None
    assert found.leaks and not found.leaks[0].exact
    assert "readable attributes" in describe(found)


def test_a_handful_of_drives_gives_the_rank_alone(tmp_path):
    url = write_fleet(str(tmp_path / "c"), {"m.full": noisy, "m.context": exact}, scenarios=640, with_truth=False)
    found = finish(measure_steps(open_corpus(url), NAMES, view="full", model="m", card={}, most=250))
    assert found.probes == () and found.rank.effective > 5
    assert "drives: at least 20 are needed" in found.notes[0]


def test_samples_are_whole_drives(tmp_path):
    url = write_fleet(str(tmp_path / "c"), {"m.full": noisy, "m.context": exact}, scenarios=640)
    corpus = open_corpus(url)
    query = choose_drives(corpus, 300, seed=1)
    sample = read_sample(corpus, "m.full", most=300, seed=1, events=("ttc_min_s<1.5", "no_such<1"))
    assert 200 < sample.n <= 300 and sample.n_corpus == 640
    assert set(sample.table["drive_id"]) == set(query.drive_id)
    whole = corpus.table(columns=["drive_id"])["drive_id"].value_counts().to_dict()
    assert sample.table["drive_id"].value_counts().to_dict() == {name: whole[name] for name in query.drive_id}
    assert {"hard_brake", "ttc_min_s<1.5"} <= set(sample.table) and "no_such<1" not in sample.table
    assert choose_drives(corpus, 640, seed=1).drive_id == ()


def test_training_data_is_recognised_by_the_hash_of_its_states():
    part = SimpleNamespace(n=30, files={"states": SimpleNamespace(sha256="abc")})
    other = SimpleNamespace(n=10, files={"states": SimpleNamespace(sha256="xyz")})
    corpus = SimpleNamespace(parts=(part, other), n=40)
    assert trained_share(corpus, {"data": {"states": ["abc"]}}) == 0.75
    assert trained_share(corpus, {}) == 0


def test_missing_latents_are_encoded_first(tmp_path, monkeypatch):
    url = write_fleet(str(tmp_path / "c"), {"m.full": noisy, "m.context": exact}, scenarios=640, with_truth=False)
    called = []

    def encode_steps(url, model, *, views, jobs, scheduler):
        called.append((model.id, tuple(views)))
        yield Progress("half", 0.5)

    monkeypatch.setattr("avshift_core.encoder.encode.encode_steps", encode_steps)
    monkeypatch.setattr(report, "measure_steps", lambda *a, **k: iter([]))
    models = [SimpleNamespace(id=i, card={}) for i in "mn"]
    finish(quality_steps(url, models[0], also=models[1:], view="context"))
    assert called == [("n", ("context",))]  # those of m are there
    finish(quality_steps(url, models[1]))
    assert called[1:] == [("n", ("full", "context"))]
    with pytest.raises(ConfigError, match="most is 3"):
        finish(quality_steps(url, models[0], most=3))
