"""One scenario of a corpus: ids, attributes, metrics and latent are those of the table."""

import numpy as np
import pytest

from avshift_core.errors import CorpusError
from avshift_core.scenario.measure.batch import measure
from avshift_core.scenario.schema import pad
from avshift_core.scenario.store.corpus import create_or_open, open_corpus
from avshift_core.scenario.store.record import read_latent, read_record
from tests.latent.weeks import add_week
from tests.scenario.scenes import along, scene, times, track


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two weeks of latents without states, and three scenarios with states."""
    url = str(tmp_path_factory.mktemp("record") / "mixed")
    add_week(url, "2026-03-02")
    add_week(url, "2026-03-09", extra=np.arange(300.0))
    t = times(6.0)
    same = {"drive_id": "d1", "area": "old_town", "day": "2026-03-03", "period": "2026-W10"}
    played = [scene(t, track(t, along(t, v)), [track(t, along(t, 8.0) + 30)]).with_ids(
        scenario_id=f"drive 1/{v}", **same) for v in (7, 9, 11)]
    done = measure(pad(played))
    with create_or_open(url) as writer:
        writer.add(done.batch, done.attributes, done.metrics, source="log")
    return open_corpus(url)


def test_a_scenario_with_states(corpus):
    found = read_record(corpus, "drive 1/9")
    assert found.has_states and found.models == () and found.values["area"] == "old_town"
    assert found.values["ego_speed_mps"] == pytest.approx(9) and "cutin_type" not in found.values  # it has none
    (states,) = corpus.scenarios(["drive 1/9"])
    assert found.values["drive_id"] == states.ids.drive_id
    # 30 m ahead at 8 m/s against 9 m/s: after 6 s 1 m/s has closed 6 m of the 25.2 m between the bumpers
    assert found.metrics["gap_min_m"] == pytest.approx(19.2, abs=0.01)
    assert found.definitions["gap_min_m"].unit == "m"


def test_a_scenario_of_latents_only(corpus):
    found = read_record(corpus, "2026-03-09-0-0007")
    assert not found.has_states and found.models == ("mine",) and found.metrics["extra"] == 7
    assert "extra" not in read_record(corpus, "2026-03-02-0-0007").metrics
    table, z = corpus.table("period=2026-W11", metrics=["discomfort"], latents="mine")
    row = table.index[table["scenario_id"] == "2026-03-09-0-0007"][0]
    assert np.array_equal(read_latent(corpus, found, "mine"), z[row])
    assert found.metrics["discomfort"] == table["discomfort"][row] and found.values["hour"] == 7


def test_a_query_narrows_where_it_is_looked_for(corpus):
    assert read_record(corpus, "drive 1/7", "area=old_town").scenario_id == "drive 1/7"
    with pytest.raises(CorpusError, match=r"has no scenario 'drive 1/7' .*harbor"):
        read_record(corpus, "drive 1/7", "area=harbor")


@pytest.mark.parametrize("name", ["nobody", "", "' OR 1=1 --", "x" * 3000])
def test_an_unknown_id_is_a_sentence(corpus, name):
    with pytest.raises(CorpusError, match="has no scenario '"):
        read_record(corpus, name)


def test_rows_of_some_ids_keep_the_order_of_the_corpus(corpus):
    wanted = ["2026-03-09-0-0100", "2026-03-02-0-0005", "2026-03-09-0-0003"]
    table = corpus.table(columns=["scenario_id"], ids=wanted)
    everything = corpus.table(columns=["scenario_id"])["scenario_id"]
    assert table["scenario_id"].tolist() == [name for name in everything if name in wanted]
    with pytest.raises(CorpusError, match="has no scenario 'nobody'"):
        corpus.table(columns=["scenario_id"], ids="nobody")
