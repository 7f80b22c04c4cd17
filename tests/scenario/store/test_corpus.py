import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.errors import AVShiftError, CorpusError, LogError
from avshift_core.scenario.schema import DERIVABLE, ROAD_KINDS, Ids, Scenario, make_road, pad
from avshift_core.scenario.store import writer as writing
from avshift_core.scenario.store.columns import FIXED_POINT, batch_of, parquet_bytes, states_table
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from avshift_core.scenario.store.location import Location
from avshift_core.scenario.store.query import CohortQuery
from avshift_core.scenario.store.summary import describe

ROOT = Path(__file__).parents[3]
DAYS = {"2026-03-02": "2026-W10", "2026-03-03": "2026-W10", "2026-03-09": "2026-W11"}


def scenario(seed, ids=None, agents=None, steps=None):
    """Any states with any masks; where a mask is False the state is 0, as everywhere."""
    rng = np.random.default_rng(seed)
    A, T = rng.integers(0, 5) if agents is None else agents, rng.integers(2, 9) if steps is None else steps
    ego_valid, valid = rng.random(T) < 0.8, rng.random((A, T)) < rng.choice([0.1, 0.6, 1.0])
    ego = np.where(ego_valid[:, None], rng.normal(size=(T, 5)) * [300, 300, 1.5, 10, 2], 0).astype(np.float32)
    states = np.where(valid[..., None], rng.normal(size=(A, T, 4)) * [300, 300, 1.5, 10], 0).astype(np.float32)
    lines = [(rng.normal(size=(rng.integers(1, 5), 2)) * 50, str(rng.choice(ROAD_KINDS)), rng.choice([np.nan, 13.9]))
             for _ in range(rng.integers(0, 4))]
    return Scenario(
        ids or Ids(f"s{seed}", f"d{seed % 7}"), np.cumsum(rng.uniform(0.05, 0.2, T)) - 0.05, ego, ego_valid,
        rng.uniform(1, 5, 3).astype(np.float32), states, valid,
        np.array([f"a{i}" * (i + 1) for i in range(A)], dtype=str),
        rng.integers(0, 8, A).astype(np.int8), rng.uniform(0.3, 20, (A, 3)).astype(np.float32), make_road(lines),
        rng.normal(size=2) * 1e6, tuple(rng.choice(DERIVABLE, rng.integers(0, 3), replace=False).tolist()),
    )


def fleet(n=60, area=("harbor", "hill"), prefix="s", **fixed):
    """A batch of n small scenarios over three days, two areas, two versions; with attributes and metrics."""
    days = list(DAYS)
    scenarios = [
        scenario(i, Ids(f"{prefix}{i:04d}", f"d{i % 12}", f"car{i % 3}", days[i % 3], DAYS[days[i % 3]], i % 24,
                        area[i % len(area)], "r1", "v1" if i % 5 else "v2", "general"), **fixed)
        for i in range(n)
    ]
    rng = np.random.default_rng(n)
    attributes = {"ego_speed_mps": rng.uniform(0, 20, n), "turn": np.where(np.arange(n) % 4, "left", "none")}
    metrics = {"ttc_min_s": rng.uniform(0, 10, n), "comfort_score": rng.uniform(0, 2, n),
               "hard_brake": (rng.random(n) < 0.3) * 1.0, "distance_km": rng.uniform(0.05, 0.2, n),
               "duration_s": rng.uniform(10, 15, n)}
    return pad(scenarios), attributes, metrics


def write(url, *args, **kwargs):
    with create_or_open(url) as writer:
        writer.add(*fleet(*args, **kwargs), source="log-1")
    return open_corpus(url)


def everything(root):
    """All meta and metrics by plain pyarrow and pandas, without any of our own reading."""
    def frame(table):
        files = sorted(Path(root, table).rglob("*.parquet"))
        return pd.concat([pq.ParquetFile(f).read().to_pandas() for f in files], ignore_index=True)
    return frame("meta").merge(frame("metrics"), on="scenario_id", suffixes=("", "_metric"))


def contents(root):
    """Path -> bytes of every file, but for the lock."""
    files = [file for file in Path(root).rglob("*") if file.is_file() and file.name != ".lock"]
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


def damage(root, table, how):
    file = sorted(Path(root, table).rglob("*.parquet"))[0]
    data = bytearray(file.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 1
    file.write_bytes(data[:-7] if how == "truncate" else data)
    return file


def assert_same(a, b):
    """Equal to half a unit: 0.5 mm, 0.5 mm/s, 0.5 mm/s2, 0.05 mrad, 0.5 us; plus what float32 cannot hold."""
    assert a.ids == b.ids and a.derived == b.derived
    np.testing.assert_allclose(a.t_s, b.t_s, atol=0.51e-6, rtol=0)
    for mine, other, valid, mask in ((a.ego, b.ego, a.ego_valid, b.ego_valid),
                                     (a.agents, b.agents, a.agents_valid, b.agents_valid)):
        np.testing.assert_array_equal(valid, mask)
        linear = [k for k in range(mine.shape[-1]) if k != 2]
        np.testing.assert_allclose(mine[..., linear], other[..., linear], atol=0.5e-3, rtol=2e-7)
        turn = np.abs(mine[..., 2].astype(float) - other[..., 2])
        assert np.minimum(turn, np.abs(turn - 2 * np.pi)).max(initial=0) <= 0.5e-4 + 1e-6
        assert not mine[~valid].any()
    for name in ("ego_size", "agent_size"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=0.5e-3, rtol=2e-7)
    for name in ("agent_id", "agent_type", "origin_m"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_allclose(a.road.xy, b.road.xy, atol=0.5e-3, rtol=2e-7)
    np.testing.assert_allclose(a.road.speed_limit_mps, b.road.speed_limit_mps, atol=0.5e-3, equal_nan=True)
    np.testing.assert_array_equal(a.road.start, b.road.start)
    np.testing.assert_array_equal(a.road.kind, b.road.kind)


# States --------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True))
def test_ragged_states_come_back_to_half_a_unit(seeds):
    batch = pad([scenario(seed) for seed in seeds])
    data = parquet_bytes(states_table(batch), FIXED_POINT, row_group=2)
    back = batch_of(pq.read_table(pa.BufferReader(data)))
    assert back.t_s.shape == batch.t_s.shape and back.agents.shape == batch.agents.shape
    for i, seed in enumerate(seeds):
        assert_same(back.scenario(i), scenario(seed))
    again = batch_of(states_table(back))  # what was stored once is stored exactly from then on
    np.testing.assert_array_equal(again.agents, back.agents)
    np.testing.assert_array_equal(again.t_s, back.t_s)


def test_only_valid_samples_are_stored():
    one = scenario(1, agents=3, steps=6)
    valid = np.array([[1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0]], bool)
    one = replace(one, agents_valid=valid, agents=np.ones((3, 6, 4), np.float32) * valid[..., None])
    row = states_table(pad([one, scenario(2, agents=5, steps=9)])).slice(0, 1).to_pylist()[0]
    assert row["agents_run_agent"] == [0, 0, 2]  # by hand, from the mask above
    assert row["agents_run_first"] == [0, 4, 1]
    assert row["agents_run_length"] == [2, 2, 4]
    assert row["agents_x"] == [1000] * 8 and row["agents_heading"] == [10000] * 8
    assert len(row["t"]) == 6 and len(row["agent_id"]) == 3


def test_headings_are_wrapped():
    one = scenario(1, agents=1, steps=2)
    states = np.array([[[0, 0, 7.0, 0], [0, 0, -4.0, 0]]], np.float32)
    one = replace(one, agents=states, agents_valid=np.ones((1, 2), bool))
    row = states_table(pad([one])).to_pylist()[0]
    assert row["agents_heading"] == [7168, 22832]  # 7 - 2 pi = 0.71681, -4 + 2 pi = 2.28319


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e6])
def test_states_that_do_not_fit_name_their_scenario(value):
    bad = scenario(5, agents=1, steps=3)
    states = bad.agents.copy()
    states[0, 1, 0] = value
    bad = replace(bad, agents=states, agents_valid=np.ones((1, 3), bool))
    with pytest.raises(LogError, match="Scenario 's5' has a value of 'agents x'"):
        states_table(pad([scenario(4), bad]))


# Reading what was written --------------------------------------------------------------------------------------------


@pytest.fixture(params=["plain", "file", "memory"])
def url(request, tmp_path):
    if request.param == "memory":
        yield f"memory://{tmp_path.name}/fleet"
        fsspec.filesystem("memory").store.clear()
    else:
        yield str(tmp_path / "fleet [1]*") if request.param == "plain" else f"file://{tmp_path}/fleet"


def test_a_corpus_gives_back_what_was_added(url):
    batch, attributes, metrics = fleet(60)
    corpus = write(url)
    frame = corpus.table(metrics=["hard_brake", "ttc_min_s<1.5", "ego_speed_mps"])
    assert corpus.n == len(frame) == 60
    frame = frame.set_index("scenario_id").loc[[ids.scenario_id for ids in batch.ids]]
    for name in ("drive_id", "day", "period", "hour", "area", "av_version", "category"):
        assert frame[name].tolist() == [getattr(ids, name) for ids in batch.ids]
    np.testing.assert_array_equal(frame["hard_brake"], metrics["hard_brake"])
    np.testing.assert_array_equal(frame["ttc_min_s<1.5"], metrics["ttc_min_s"] < 1.5)
    np.testing.assert_array_equal(frame["ego_speed_mps"], attributes["ego_speed_mps"])
    np.testing.assert_allclose(frame["duration_h"], metrics["duration_s"] / 3600)
    assert frame["turn"].tolist() == attributes["turn"].tolist()
    names = ["s0007", "s0031", "s0000"]
    for name, got in zip(names, corpus.scenarios(names), strict=True):
        assert_same(got, batch.scenario(int(name[1:])))
    stored = {s.ids.scenario_id: s for b in corpus.batches(size=7) for s in map(b.scenario, range(b.n))}
    assert len(stored) == 60
    for i in range(60):
        assert_same(stored[f"s{i:04d}"], batch.scenario(i))


def test_row_i_is_the_same_scenario_in_all_tables(tmp_path):
    corpus = write(tmp_path / "c")
    for part in corpus.parts:
        files = [pq.ParquetFile(tmp_path / "c" / part.files[table].path) for table in ("states", "meta", "metrics")]
        ids = [file.read(columns=["scenario_id"])["scenario_id"].to_pylist() for file in files]
        assert ids[0] == ids[1] == ids[2] and len(ids[0]) == part.n


@pytest.mark.parametrize("text", [
    "", "period=2026-W10,area=harbor", "day=2026-03-09", "av_version=v2", "drive_id=d3|d5,hour=3|5|17",
    "category=general", "vehicle_id=car1,route=r1,area=hill",
])
def test_queries_agree_with_pandas(tmp_path, text):
    corpus, query = write(tmp_path / "c", 200), CohortQuery.parse(text)
    frame = everything(tmp_path / "c")
    for name, allowed in query.chosen().items():
        frame = frame[frame[name].isin(allowed)]
    got = corpus.table(query, columns=["scenario_id", "turn"], metrics=["comfort_score", "discomfort>1.3"])
    expected = frame.set_index("scenario_id").loc[got["scenario_id"]]
    assert len(got) == len(frame) > 0
    np.testing.assert_array_equal(got["comfort_score"], expected["comfort_score"])
    np.testing.assert_array_equal(got["discomfort>1.3"], expected["comfort_score"] > 1.3)
    assert got["turn"].tolist() == expected["turn"].tolist()
    batches = list(corpus.batches(query, size=16))
    assert [b.n for b in batches[:-1]] == [16] * (len(batches) - 1)
    assert [ids.scenario_id for b in batches for ids in b.ids] == got["scenario_id"].tolist()


def test_sums_agree_with_pandas(tmp_path):
    sums = write(tmp_path / "c", 200).sums(by=["area"], metrics=["hard_brake"]).set_index("area")
    frame = everything(tmp_path / "c").groupby("area")
    np.testing.assert_allclose(sums["sum:hard_brake"], frame["hard_brake"].sum())
    np.testing.assert_allclose(sums["km:hard_brake"], frame["distance_km"].sum())
    assert sums["n"].tolist() == frame.size().tolist()


def test_distinct_values_and_columns(tmp_path):
    corpus = write(tmp_path / "c")
    assert corpus.distinct("area") == ["harbor", "hill"] and corpus.distinct("hour") == list(range(24))
    assert {"scenario_id", "ego_speed_mps", "turn", "n_agents", "derived"} <= set(corpus.cohort_columns)
    assert "ttc_min_s" in corpus.metric_columns


def test_only_the_files_that_a_query_admits_are_read(tmp_path):
    root = tmp_path / "c"
    write(root)
    for file in [*root.glob("meta/*/area=hill/*"), *root.glob("metrics/*/area=hill/*"), *root.glob("states/*/*/*")]:
        data = bytearray(file.read_bytes())
        data[30] ^= 255
        file.write_bytes(data)
    corpus = open_corpus(root)
    assert len(corpus.table(CohortQuery(area="harbor"), metrics=["hard_brake"])) == 30
    with pytest.raises(CorpusError, match=r"area=hill.*\(wrong SHA-256\)"):
        corpus.table(CohortQuery(area="hill"))
    with pytest.raises(CorpusError, match="wrong SHA-256"):
        corpus.scenarios(["s0000"])
    with pytest.raises(CorpusError, match="wrong SHA-256"):
        open_corpus(root, verify=True)


def test_areas_of_any_name(tmp_path):
    names = ("../../up", "a/b", "Köln 'x'", "*?[", "x" * 400, "%2F", "..", "a=b", "C:\\")
    corpus = write(tmp_path / "c", 36, area=names)
    assert sorted(corpus.distinct("area")) == sorted(names)
    for name in names:
        assert corpus.table(CohortQuery(area=(name,)))["area"].tolist() == [name] * 4
        assert next(corpus.batches(CohortQuery(area=(name,)))).n == 4
    inside = {f.parts[len(tmp_path.parts)] for f in tmp_path.rglob("*")}
    assert inside == {"c"} and not list(tmp_path.parent.glob("up*"))


def test_latents_stand_beside_their_scenarios(url):
    corpus = write(url)
    with create_or_open(url) as writer:
        for part in corpus.parts[1:]:
            writer.write_latents("m1", part.id, np.zeros((part.n, 4)))
    partly = open_corpus(url)
    with pytest.raises(CorpusError, match="Encode the others"):
        partly.table(latents="m1")
    with create_or_open(url) as writer:
        writer.write_latents("m1", corpus.parts[0].id, np.zeros((corpus.parts[0].n, 4)))
        for part in corpus.parts:  # the latent tells its scenario: the number in its id
            ids = [i.scenario_id for b in corpus.batches(part=part.id) for i in b.ids]
            writer.write_latents("m2", part.id, np.array([[int(i[1:]), -1] for i in ids]))
    corpus = open_corpus(url, verify=True)
    assert corpus.models == {"m1": 60, "m2": 60} and corpus.fingerprint != partly.fingerprint
    frame, z = corpus.table(CohortQuery.parse("area=hill,hour=1|7|11"), columns=["scenario_id"], latents="m2")
    assert z.dtype == np.float32 and z[:, 0].tolist() == [int(name[1:]) for name in frame["scenario_id"]]
    assert len(frame) == 9  # i odd and i % 24 in 1, 7, 11: 1, 7, 11, 25, 31, 35, 49, 55, 59
    with pytest.raises(CorpusError, match="no latents of model 'm3'; found m1, m2"):
        corpus.table(latents="m3")


@pytest.mark.parametrize(("model", "shape", "part"), [
    ("m1", (3, 2), "one each"), ("../m", (20, 2), "cannot name a model"), ("", (20, 2), "cannot name"),
    ("m0", (10, 3), "have 2 numbers"), ("m0", (10, 2), "already"), ("nan", (10, 2), "NaN"),
])
def test_latents_that_do_not_fit_are_refused(tmp_path, model, shape, part):
    corpus = write(tmp_path / "c")
    with create_or_open(tmp_path / "c") as writer:
        writer.write_latents("m0", corpus.parts[0].id, np.zeros((corpus.parts[0].n, 2)))
    z = np.full(shape, np.nan if model == "nan" else 0.0)
    with pytest.raises(CorpusError, match=part), create_or_open(tmp_path / "c") as writer:
        writer.write_latents(model, corpus.parts[0].id, z)
    assert list(open_corpus(tmp_path / "c", verify=True).models) == ["m0"]


@pytest.mark.parametrize(("call", "part"), [
    (lambda c: c.table(CohortQuery(area="moon")), "No scenario of .* has area=moon. It holds area harbor, hill\\.$"),
    (lambda c: c.table("period=2026-W11,day=2026-03-02"), "period 2026-W10, 2026-W11; day .* but not these together"),
    (lambda c: c.table("foo=1"), "'foo' is no key of a cohort. Keys are period"),
    (lambda c: c.table(None), "write it as text"), (lambda c: c.table(metrics=None), "'metrics' holds None"),
    (lambda c: c.table(metrics=[5]), "'metrics' holds 5"), (lambda c: c.scenarios([3]), "'ids' holds 3"),
    (lambda c: c.table(columns=[None]), "'columns' holds None"), (lambda c: c.table(latents=["m"]), "no latents of"),
    (lambda c: next(c.batches(size=0)), "size of 1 or more"), (lambda c: next(c.batches(part="x")), "no part 'x'"),
    *((lambda c, text=text: c.table(metrics=text), r"write only > or < with a number inside of \[0, 10\]") for text in (
        "ttc_min_s<11", "ttc_min_s>-1", "ttc_min_s>=1", "ttc_min_s==1", "ttc_min_s<", "ttc_min_s<soon", "ttc_min_s<nan",
        "ttc_min_s<=1")),
    (lambda c: c.table(metrics="discomfort>"), r"inside of \[0, 5\]"),
    (lambda c: c.table(CohortQuery(route="r9")), "No scenario of .* has route=r9"),
    (lambda c: next(c.batches(CohortQuery(route="r9"))), "No scenario of .* has route=r9"),
    (lambda c: c.table(columns=["speed"]), "no column 'speed'; found scenario_id"),
    (lambda c: c.table(metrics=["risk"]), "no metric 'risk'; found ttc_min_s"),
    (lambda c: c.table(metrics=["turn"]), "'turn' is not a number in every scenario"),
    (lambda c: c.distinct("moon"), "no column"),
    (lambda c: c.scenarios(["s0001", "nobody"]), "no scenario 'nobody'"),
    (lambda c: c.table(columns=['"; DROP TABLE x; --']), "no column"),
])
def test_wrong_questions_get_one_sentence(tmp_path, call, part):
    with pytest.raises(CorpusError, match=part):
        call(write(tmp_path / "c"))


def test_text_counts_as_a_query_and_as_one_name(tmp_path):
    corpus = write(tmp_path / "c")
    expected = corpus.table(CohortQuery(area="hill"), columns=["scenario_id"], metrics=["hard_brake"])
    pd.testing.assert_frame_equal(corpus.table("area=hill", columns="scenario_id", metrics="hard_brake"), expected)
    assert [s.ids.scenario_id for s in corpus.scenarios("s0007")] == ["s0007"]
    assert corpus.distinct("area", "area=hill") == ["hill"]


def test_a_table_may_bring_its_own_discomfort(tmp_path):
    batch, attributes, _ = fleet(4)
    with create_or_open(tmp_path / "c") as writer:
        writer.add(batch, attributes, {"discomfort": np.array([0.2, 0.5, 0.7, 1.0])}, source="log-1")
    frame = open_corpus(tmp_path / "c").table(metrics="discomfort>0.5").sort_values("scenario_id")
    assert frame["discomfort>0.5"].tolist() == [0, 0, 1, 1]


def test_values_with_quotes_are_only_values(tmp_path):
    corpus = write(tmp_path / "c", area=("o'brien", 'x"; --'))
    assert len(corpus.table(CohortQuery(area=("o'brien",)))) == 30
    assert len(corpus.table(CohortQuery(area=('x"; --',)))) == 30


def test_parts_with_other_columns_stand_side_by_side(tmp_path, monkeypatch):
    write(tmp_path / "c")
    batch, _, metrics = fleet(20, prefix="t")
    with create_or_open(tmp_path / "c") as writer:
        writer.add(batch, {"weather": np.array(["rain"] * 20)}, {"risk": np.full(20, 0.5), **metrics}, source="log-2")
    corpus = open_corpus(tmp_path / "c")
    frame = corpus.table(metrics=["risk", "hard_brake"])
    assert frame["weather"].notna().sum() == 20 and frame["turn"].notna().sum() == 60
    assert frame["risk"].notna().sum() == 20 and frame["hard_brake"].notna().sum() == 80
    definition = replace(writing.KNOWN["ttc_min_s"], version=2)
    monkeypatch.setitem(writing.KNOWN, "ttc_min_s", definition)
    with create_or_open(tmp_path / "c") as writer:
        writer.add(*fleet(6, prefix="u"), source="log-3")
    corpus = open_corpus(tmp_path / "c")
    with pytest.raises(CorpusError, match=r"'ttc_min_s' was measured by versions 1, 2"):
        corpus.table(metrics=["ttc_min_s"])
    assert len(corpus.table(metrics=["hard_brake"])) == 86
    assert any("versions 1, 2" in sentence for sentence in corpus.summary()["warnings"])


@pytest.mark.parametrize("name", ["area", "Source", "file_index", "distance_km", "Turn"])
def test_columns_that_the_corpus_needs_itself_are_refused(tmp_path, name):
    batch, attributes, metrics = fleet(6)
    with pytest.raises(CorpusError, match="Rename"), create_or_open(tmp_path / "c") as writer:
        writer.add(batch, {**attributes, name: np.zeros(6)}, metrics)
    assert not (tmp_path / "c").exists()


def test_memory_does_not_grow_with_what_is_added(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "BUFFER_BYTES", 50_000)
    with create_or_open(tmp_path / "c") as writer:
        for k in range(12):
            writer.add(*fleet(40, prefix=f"k{k}-"), source=f"log-{k}")
            assert sum(writer._bytes.values()) <= 50_000
        first = json.loads((tmp_path / "c" / "manifest.json").read_text())  # spilled, not committed
        assert first["revision"] == 0 and first["parts"] == []
    assert open_corpus(tmp_path / "c", verify=True).n == 480


# Atomic writes -------------------------------------------------------------------------------------------------------


def test_what_is_not_committed_does_not_exist(tmp_path):
    root = tmp_path / "c"
    corpus, before = write(root), contents(root)
    with pytest.raises(RuntimeError), create_or_open(root) as writer:
        writer.add(*fleet(9, prefix="t"), source="log-2")
        for group in list(writer._buffers):
            writer._flush(group)
        assert len(contents(root)) > len(before) and open_corpus(root).n == 60
        raise RuntimeError
    assert contents(root) == before and open_corpus(root, verify=True).fingerprint == corpus.fingerprint


def test_leftovers_of_a_killed_writer_are_removed_by_the_next_and_nothing_else(tmp_path):
    root = tmp_path / "c"
    write(root)
    before = contents(root)
    folder = next(root.glob("meta/*/*"))
    left = [folder / "0123456789abcdef.parquet", folder / ".0123456789abcdef.parquet.01234567.tmp",
            root / ".manifest.json.01234567.tmp"]
    mine = [folder / "notes.parquet", root / "readme.txt"]
    for file in [*left, *mine]:
        file.write_text("x")
    assert open_corpus(root, verify=True).n == 60 and all(file.exists() for file in left)
    with create_or_open(root):
        pass
    assert not any(file.exists() for file in left) and all(file.exists() for file in mine)
    assert {path: data for path, data in contents(root).items() if path in before} == before


def test_an_interrupt_just_after_the_commit_keeps_its_parts(tmp_path, monkeypatch):
    root = tmp_path / "c"
    write(root)
    plain = Location.replace

    def interrupted(self, name, data):
        plain(self, name, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(Location, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), create_or_open(root) as writer:
        writer.add(*fleet(9, prefix="t"), source="log-2")
    assert open_corpus(root, verify=True).n == 69


@pytest.mark.parametrize("at", range(1, 20))
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_state(tmp_path, monkeypatch, call, at):
    """Call number `at` finds no space: 3 days x 2 areas x 3 tables and the manifest are 19 files."""
    root = tmp_path / "c"
    write(root)
    before, count, plain = contents(root), [0], getattr(os, call)

    def full(*args):
        count[0] += 1
        if count[0] == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(*args)

    monkeypatch.setattr(os, call, full)
    with pytest.raises(CorpusError, match="no space is left"), create_or_open(root) as writer:
        writer.add(*fleet(30, prefix="t"), source="log-2")
    assert contents(root) == before
    monkeypatch.setattr(os, call, plain)
    with create_or_open(root) as writer:
        assert not writer.done("log-2")
        writer.add(*fleet(30, prefix="t"), source="log-2")
    assert open_corpus(root, verify=True).n == 90


def test_a_disk_that_is_really_full(tiny_disk):
    root = tiny_disk / "c"
    write(root, 6)
    before = contents(root)
    with pytest.raises(CorpusError, match="no space is left"), create_or_open(root) as writer:
        writer.add(*fleet(60, prefix="t", agents=40, steps=60), source="log-2")
    assert contents(root) == before and open_corpus(root, verify=True).n == 6


@pytest.mark.parametrize("name", ["manifest.json", "all but parts"])
def test_parts_without_a_manifest_are_never_removed(tmp_path, name):
    root = tmp_path / "c"
    write(root)
    (root / "manifest.json").unlink()
    if name != "manifest.json":
        (root / ".lock").unlink()
    before = contents(root)
    with pytest.raises(CorpusError, match=r"holds parts of a corpus but no manifest.json. Restore manifest.json"), \
            create_or_open(root):
        pass
    assert contents(root) == before


def test_foreign_files_in_the_folders_of_a_corpus(tmp_path):
    (tmp_path / "states").mkdir()
    (tmp_path / "states" / "ohio.csv").write_text("x")
    with pytest.raises(CorpusError, match=r"but no manifest\.json"), create_or_open(tmp_path):
        pass
    assert (tmp_path / "states" / "ohio.csv").read_text() == "x"


def test_a_writer_killed_before_its_first_commit_leaves_a_manifest(tmp_path):
    code = f"""
import os
from avshift_core.scenario.store.corpus import create_or_open
from tests.scenario.store.test_corpus import fleet
with create_or_open({str(tmp_path / 'c')!r}) as writer:
    writer.add(*fleet(9))
    for group in list(writer._buffers):
        writer._flush(group)
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 9
    assert list((tmp_path / "c").rglob("*.parquet")) and open_corpus(tmp_path / "c").n == 0
    corpus = write(tmp_path / "c")
    assert corpus.n == 60 and {p for p in contents(tmp_path / "c")} == {*corpus.manifest.files, "manifest.json"}


def test_drafts_of_a_killed_first_manifest_are_no_parts(tmp_path):
    (tmp_path / ".manifest.json.01234567.tmp").write_text("x")
    (tmp_path / ".lock").write_text("x")
    assert write(tmp_path, 6).n == 6 and not list(tmp_path.glob(".manifest*"))


@pytest.mark.parametrize("name", ["c", "new/folders/c"])
def test_a_failed_first_import_leaves_nothing(tmp_path, name):
    with pytest.raises(RuntimeError), create_or_open(tmp_path / name) as writer:
        writer.add(*fleet(9))
        for group in list(writer._buffers):
            writer._flush(group)
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_the_second_writer_is_told_at_once_who_is_first(tmp_path):
    code = f"""
import sys
from avshift_core.errors import CorpusError
from avshift_core.scenario.store.corpus import create_or_open
try:
    with create_or_open({str(tmp_path / 'c')!r}):
        print("in")
except CorpusError as error:
    print(error)
"""
    second = lambda: subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,  # noqa: E731
                                    check=True, timeout=60).stdout
    with create_or_open(tmp_path / "c") as writer:
        answer = second()
        assert answer.startswith("Another import is writing") and f"process {os.getpid()}" in answer
        writer.add(*fleet(6), source="log-1")
    assert open_corpus(tmp_path / "c").n == 6 and second() == "in\n"


def test_two_writers_of_an_object_store(tmp_path):
    url = f"memory://{tmp_path.name}/two"
    with (pytest.raises(CorpusError, match=r"Another import has written .* \(revision 1; this one began at 0\)"),
          create_or_open(url) as slow):
        slow.add(*fleet(6), source="log-1")
        with create_or_open(url) as quick:
            quick.add(*fleet(9, prefix="t"), source="log-2")
    assert open_corpus(url, verify=True).n == 9
    assert len(fsspec.filesystem("memory").find(f"/{tmp_path.name}/two")) == 3 * 6 + 1


def test_sources_are_known_as_done_with_their_commit(tmp_path):
    with create_or_open(tmp_path / "c") as writer:
        writer.add(*fleet(6), source=["a"] * 4 + ["b"] * 2)
        writer.skip("c", ["c: row 3 is bad", "c: row 4 is bad"])
        assert not writer.done("a")
        writer.commit()
        assert writer.done("a") and writer.done("b") and writer.done("c") and not writer.done("d")
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    counts = {key: (entry["n"], entry["skipped"]) for key, entry in manifest["sources"].items()}
    assert counts == {"a": (4, 0), "b": (2, 0), "c": (0, 2)}
    assert manifest["n_skipped"] == 2 and manifest["skipped"][1] == "c: row 4 is bad" and manifest["revision"] == 1


@pytest.mark.parametrize("committed", [True, False])
def test_an_id_is_given_once(tmp_path, committed):
    with pytest.raises(CorpusError, match="Scenario 's0000' of log-2 is in the corpus already, from log-1"), \
            create_or_open(tmp_path / "c") as writer:
        writer.add(*fleet(6), source="log-1")
        if committed:
            writer.commit()
        writer.add(*fleet(3), source="log-2")
    assert (tmp_path / "c").exists() == committed


# What cannot be opened -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "part"), [
    (lambda root: None, "does not exist"), (lambda root: root.mkdir(), "is not a corpus"),
    (lambda root: root.write_text("x"), "is a file; give a folder"),
    (lambda root: (root.mkdir(), (root / "manifest.json").write_text("{}")), "not the manifest"),
])
def test_what_is_no_corpus(tmp_path, make, part):
    make(tmp_path / "c")
    with pytest.raises(CorpusError, match=part):
        open_corpus(tmp_path / "c")


@pytest.mark.parametrize("table", ["states", "meta", "metrics"])
@pytest.mark.parametrize(("how", "part"), [("truncate", "it is truncated or changed"), ("flip", "wrong SHA-256"),
                                           ("remove", "is missing")])
def test_damage_is_found_and_nothing_is_touched(tmp_path, table, how, part):
    root = tmp_path / "c"
    write(root)
    if how == "remove":
        sorted((root / table).rglob("*.parquet"))[0].unlink()
    else:
        damage(root, table, how)
    before = contents(root)
    with pytest.raises(CorpusError, match=part):
        open_corpus(root, verify=True)
    assert contents(root) == before


def test_a_truncated_manifest_and_a_newer_schema_stop_readers_and_writers(tmp_path):
    root = tmp_path / "c"
    write(root)
    file = root / "manifest.json"
    good = file.read_bytes()
    for data, part in ((good[:-40], "truncated or damaged"), (good.replace(b'"schema":1', b'"schema":7'), "schema 7"),
                       (b"", "truncated")):
        file.write_bytes(data)
        before = contents(root)
        with pytest.raises(CorpusError, match=part):
            open_corpus(root)
        with pytest.raises(CorpusError, match=part), create_or_open(root):
            pass
        assert contents(root) == before


def test_a_folder_of_something_else_is_not_written_to(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(CorpusError, match="holds files but no corpus"), create_or_open(tmp_path):
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(AVShiftError, match="is a file; give a folder"), create_or_open(tmp_path / "file"):
        pass


@pytest.mark.parametrize("url", ["nosuch://bucket/x", "s3fs-missing://x"])
def test_an_unknown_kind_of_url(url):
    with pytest.raises(CorpusError, match="cannot be opened"):
        open_corpus(url)


@pytest.mark.parametrize("url", ["", " "])
def test_an_empty_name_of_a_corpus(url):
    with pytest.raises(CorpusError, match="give a folder or a URL"):
        open_corpus(url)


def test_a_corpus_can_be_moved(tmp_path):
    fingerprint = write(tmp_path / "c").fingerprint
    shutil.move(tmp_path / "c", tmp_path / "d")
    assert open_corpus(tmp_path / "d", verify=True).fingerprint == fingerprint


# What is in it -------------------------------------------------------------------------------------------------------


def test_the_summary_counts_and_rates_as_pandas_does(tmp_path):
    summary = write(tmp_path / "c", 200).summary()
    frame = everything(tmp_path / "c")
    assert summary["n"] == 200 and summary["drives"] == 12
    for name in ("period", "area", "av_version", "category"):
        assert summary["by"][name] == frame[name].value_counts().to_dict()
    brake = summary["metrics"]["hard_brake"]
    assert brake["mean"] == pytest.approx(frame["hard_brake"].mean())
    assert brake["per_km"] == pytest.approx(frame["hard_brake"].sum() / frame["distance_km"].sum())
    assert brake["per_hour"] == pytest.approx(frame["hard_brake"].sum() / (frame["duration_s_metric"].sum() / 3600))
    assert summary["metrics"]["ttc_min_s"]["per_km"] is None and summary["metrics"]["ttc_min_s"]["unit"] == "s"


def test_the_summary_warns(tmp_path):
    scenarios = [scenario(i, Ids(f"s{i}", "d1" if i < 90 else f"d{i}"), agents=1, steps=12) for i in range(220)]
    slow = [replace(s, t_s=np.arange(12) * 0.5, derived=("agent_size",)) for s in scenarios]
    with create_or_open(tmp_path / "c") as writer:
        writer.add(pad(slow), {}, {"ttc_min_s": np.full(220, 9.0)}, source="log")
        writer.skip("log", ["log: row 9 has no time."])
    text = "\n".join(open_corpus(tmp_path / "c").summary()["warnings"])
    for part in ("220 of 220 scenarios have no period", "have no av_version", "have no area", "log: row 9 has no time",
                 "Drive 'd1' holds 41%", "ttc_min_s come from states below 5 Hz in 100%", "agent size in 220 of 220"):
        assert part in text, text
    assert "too few" not in text


def test_small_amounts_keep_their_digits(tmp_path):
    batch, attributes, metrics = fleet(12)
    metrics |= {"duration_s": np.full(12, 12.0), "hard_brake": np.full(12, 7e-15)}  # 144 s are 0.04 h
    with create_or_open(tmp_path / "c") as writer:
        writer.add(batch, attributes, metrics)
    lines = describe(open_corpus(tmp_path / "c").summary()).splitlines()
    assert " 0.04 h" in lines[0]
    brake = next(line for line in lines if line.startswith("hard_brake"))
    assert brake.split()[1:4] == ["0", "0", "0"]


@pytest.mark.parametrize("call", ["cat_file", "info", "find", "pipe_file"])
def test_a_store_that_does_not_answer_in_time_is_one_sentence_and_loses_nothing(tmp_path, monkeypatch, call):
    from fsspec.implementations.memory import MemoryFileSystem

    url = f"memory://{tmp_path.name}/slow"
    write(url)
    before = open_corpus(url).fingerprint

    def late(*args, **more):
        raise TimeoutError

    monkeypatch.setattr(MemoryFileSystem, call, late)
    with pytest.raises(CorpusError, match=r"it did not answer in time\. What was committed before is intact"):
        if call == "pipe_file":
            with create_or_open(url) as writer:
                writer.add(*fleet(9, prefix="t"), source="log-2")
        else:
            open_corpus(url, verify=True).table()
    monkeypatch.undo()
    assert open_corpus(url, verify=True).fingerprint == before


def test_a_store_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    url, asked = f"memory://{tmp_path.name}/dumb", threading.Event()
    write(url)
    monkeypatch.setattr("avshift_core.scenario.store.location.ANSWER_S", 0.2)
    monkeypatch.setattr(MemoryFileSystem, "exists", lambda *_, **__: asked.wait(20))
    for use in (open_corpus, lambda at: create_or_open(at).__enter__()):
        with pytest.raises(CorpusError, match=r"cannot be looked up: it did not answer in time"):
            use(url)
    asked.set()
    monkeypatch.undo()
    assert open_corpus(url, verify=True).n


def test_a_store_whose_folders_may_not_be_listed_is_read_all_the_same(tmp_path, monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    url = f"memory://{tmp_path.name}/closed"
    write(url)

    def refused(*_, **__):
        raise PermissionError("AccessDenied: ListObjectsV2")

    monkeypatch.setattr(MemoryFileSystem, "exists", refused)
    assert open_corpus(url).n
