"""Data & models: corpora, uploads, imports, encoder, quality, ablation and jobs; and what goes wrong there."""

import inspect
import io
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.config import EncoderConfig
from avshift_core.encoder.weights import read_card
from avshift_core.errors import CorpusError, LogError
from avshift_core.jobs import shelf
from avshift_core.jobs.kinds import KINDS, job_key
from avshift_core.progress import finish
from avshift_core.quality.ablation import Ablation, Setting, Spread
from avshift_core.quality.rank import measure_rank
from avshift_core.quality.report import Quality
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig
from avshift_core.scenario.store.corpus import open_corpus
from avshift_core.workspace import Workspace
from tests.pages.conftest import QUICK, run_through, words

DATA = "pages/data.py"
EVIL = "<script>alert(1)</script>"


def latents(n=600, columns=(), seed=0) -> pd.DataFrame:
    """A table of latents of two periods in 30 drives, with a 0/1 column `event`."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["z_0", "z_1", "z_2"])
    table["scenario_id"], table["drive_id"] = [f"s{i}" for i in range(n)], [f"d{i % 30}" for i in range(n)]
    table["period"], table["area"] = np.where(np.arange(n) % 30 < 15, "2026-W10", "2026-W11"), "harbor"
    table["event"] = (rng.random(n) < 0.3).astype(float)
    return table.assign(**{name: rng.random(n) for name in columns})


def parquet(table: pd.DataFrame) -> bytes:
    data = io.BytesIO()
    table.to_parquet(data, index=False)
    return data.getvalue()


def plain(text: str) -> str:
    return text.replace("\\", "")


def errors(page) -> str:
    return plain("\n".join(e.value for e in page.error))


def button(page, label: str):
    return next(b for b in page.button if b.label == label)


def submit(page, form_button: str, **fields):
    for key, value in fields.items():
        page.text_input(key=key).set_value(value)
    button(page, form_button).click()
    return run_through(page)


@pytest.fixture
def shelf_as_it_was(home):
    before = home.corpora.read()
    yield home
    home.corpora.update(lambda _: before)


# Corpora ------------------------------------------------------------------------------------------------------------


def test_corpora_say_what_is_in_them(open_page, home):
    page = open_page(DATA)
    shown = plain(words(page))
    corpus = open_corpus(home.demo)
    assert "**Demo fleet** :blue-badge[in use]" in shown and "**Cases**" in shown
    assert "4,000 scenarios · 160 drives" in shown and corpus.fingerprint[:12] in shown
    assert "12,000 scenarios are ready-made latents" in shown.replace("12,000 of 12,000", "12,000")  # a warning
    assert "Old town 2,000" in shown and "Harbor 2,000" in shown  # half of the fleet each
    means = {row["Metric"]: row["Mean"] for table in page.table for _, row in table.value.iterrows()}
    mean = corpus.table(metrics=["hard_brake"])["hard_brake"].mean()
    assert float(means["hard\\_brake"]) == pytest.approx(mean, rel=1e-3)


def test_a_corpus_is_added_used_and_removed(open_page, shelf_as_it_was):
    page = submit(open_page(DATA, {"P": "period=P", "metric": "ell"}), "Add to the list", add_url=shelf_as_it_was.demo,
                  add_name="Another demo")
    assert "“Another demo” is on the list." in plain(words(page)) and not page.error
    assert shelf_as_it_was.corpora.read()["Another demo"] == shelf_as_it_was.demo
    page.button(key="use_Another demo").click().run()
    assert page.query_params["corpus"] == "Another demo"
    assert "P" not in page.query_params and "metric" not in page.query_params  # they were another corpus'
    page.button(key="remove_Another demo").click().run()
    assert "Another demo" not in shelf_as_it_was.corpora.read() and "corpus" not in page.query_params
    assert open_corpus(shelf_as_it_was.demo).n == 4000  # its files stay


@pytest.mark.parametrize(("url", "name", "sentence"), [
    ("", "x", "The folder of the corpus is empty text"), ("/no/such/folder", "x", "does not exist"),
    ("{folder}", "x", "is not a corpus"), ("{file}", "x", "is a file; give a folder"),
    ("{demo}", "Cases", "There is a corpus called 'Cases' already"), ("{demo}", EVIL, "is no name for a corpus"),
    ("nosuchprotocol://x/y", "x", "cannot be opened"), ("{demo}", "x" * 61, "at most 60"),
])
def test_what_cannot_be_added_is_a_sentence(open_page, home, tmp_path, url, name, sentence):
    (tmp_path / "file").write_text("no corpus")
    url = url.format(folder=tmp_path, file=tmp_path / "file", demo=home.demo)
    page = submit(open_page(DATA), "Add to the list", add_url=url, add_name=name)
    assert sentence in errors(page) and "x" not in home.corpora.read()
    assert button(page, "Add to the list")  # the way on


def test_a_corpus_that_vanished_is_told_and_can_be_removed(open_page, shelf_as_it_was, tmp_path):
    shelf_as_it_was.corpora.update(lambda old: {**old, "Gone": str(tmp_path / "gone")})
    page = open_page(DATA, {"corpus": "Gone"})
    assert "gone does not exist" in errors(page) and "4,000 scenarios" in words(page)  # the others are still there
    page.button(key="remove_Gone").click().run()
    assert not page.error and "Gone" not in shelf_as_it_was.corpora.read()


# Uploads ------------------------------------------------------------------------------------------------------------


def test_a_table_is_uploaded_imported_and_compared(open_page, shelf_as_it_was):
    page = open_page(DATA, {"data": "import"})
    page.file_uploader[0].set_value(("my latents.parquet", parquet(latents()), "application/octet-stream")).run()
    assert "600 scenarios · 3 numbers each · 30 drives" in words(page) and not page.error
    page.multiselect(key="upload_metrics").set_value(["event"])
    submit(page, "Import it", upload_name="Mine")
    end = time.monotonic() + 120
    while "Mine" not in shelf_as_it_was.corpora.read():
        assert time.monotonic() < end, words(page)
        time.sleep(0.3)
    corpus = open_corpus(shelf_as_it_was.corpora.read()["Mine"])
    assert corpus.n == 600 and corpus.metric_columns == ("event",)
    assert corpus.url.startswith(str(shelf_as_it_was.folder.resolve()))
    page = open_page(DATA, {"data": "import"})
    assert ":green-badge[:material/check: done] **Importing into “Mine”**" in plain(words(page))
    button(page, "Use “Mine”").click().run()
    assert page.query_params["corpus"] == "Mine"
    link = {"corpus": "Mine", **{k: str(v) for k, v in QUICK.items()}}
    assert "**300** scenarios a side · **15** drives" in words(open_page("pages/lab.py", {**link, "lab": "fleet"}))
    overview = open_page("app.py", link)  # without any day, so without a calendar
    assert "300 scenarios · 15 drives" in words(overview) and not overview.error


@pytest.mark.parametrize(("name", "data", "sentence"), [
    ("notes.csv", b"just some words\nwithout any table\n", "has no column 'z'"),
    ("noise.parquet", bytes(range(256)) * 20, "cannot be read"),
    ("cut.parquet", parquet(latents())[:-2000], "cannot be read"),
    ("empty.csv", b"", "empty"),
    ("evil.csv", f"z_0,{EVIL}\n1,2\nno number,3\n".encode(), "z_0"),
    ("twice.csv", b"z_0,scenario_id\n1,a\n2,a\n", "stands there twice"),
])
def test_an_upload_that_is_no_table_is_a_sentence(open_page, name, data, sentence):
    page = open_page(DATA, {"data": "import"})
    page.file_uploader[0].set_value((name, data, "text/csv")).run()
    assert not page.exception and sentence in errors(page), errors(page)
    assert EVIL not in words(page) and "upload it again" in words(page)
    assert not [b for b in page.button if b.label == "Import it"]


def test_script_in_names_is_shown_as_text_or_refused(open_page, shelf_as_it_was):
    page = open_page(DATA, {"data": "import"})
    page.file_uploader[0].set_value((f"{EVIL}.csv", latents(columns=[EVIL]).to_csv(index=False).encode(), "text/csv"))
    page.run()
    assert EVIL in page.multiselect(key="upload_metrics").options  # a list of plain text
    assert EVIL not in words(page) and not page.exception
    submit(page, "Import it", upload_name=EVIL)
    assert "is no name for a corpus" in errors(page) and EVIL not in words(page)
    submit(page, "Import it", upload_name="Demo fleet")
    assert "There is a corpus called 'Demo fleet' already" in errors(page)


def test_uploads_have_a_limit(open_page):
    uploader = open_page(DATA, {"data": "import"}).file_uploader[0]
    assert uploader.proto.max_upload_size_mb == shelf.MAX_UPLOAD_MB == 200
    assert list(uploader.proto.type) == [".parquet", ".csv"]


def test_peek_tells_what_a_table_lacks(tmp_path):
    table = latents().drop(columns=["drive_id", "period", "area"]).assign(flag=True, note="text", gap=np.nan)
    table.to_parquet(tmp_path / "t.parquet")
    peek = shelf.peek_table(tmp_path / "t.parquet")
    assert (peek.n, peek.d, peek.n_drives) == (600, 3, 0)
    assert set(peek.numeric) == {"event", "flag"} and set(peek.other) == {"note", "gap"}  # gap has no finite number
    assert peek.known == ()
    mapping = json.loads(Path(shelf.write_mapping(tmp_path / "t.parquet", ["event", "flag"])).read_text())
    assert mapping == {"metrics": {"columns": ["event", "flag"]}} and shelf.write_mapping(tmp_path / "t", []) == ""


# Imports ------------------------------------------------------------------------------------------------------------


def test_imports_of_a_path_that_is_not_there_are_refused_at_once(open_page):
    page = submit(open_page(DATA, {"data": "import"}), "Import", log_path="/no/such/logs", log_name="Logs")
    assert "/no/such/logs does not exist on this machine" in errors(page)
    page = submit(page, "Import", log_path="", log_name="Logs")
    assert "There is no path yet" in errors(page)


def test_an_import_that_fails_says_why_and_can_be_tried_again(open_page, home, tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    page = submit(open_page(DATA, {"data": "import"}), "Import", log_path=str(tmp_path / "log.csv"), log_name="Broken")
    assert "has no column" in plain(words(page)) and ":red-badge" in words(page)
    assert [b.label for b in page.button if b.label == "Try again"] and "Broken" not in home.corpora.read()
    page = open_page(DATA, {"data": "jobs"})  # a new session sees it too
    assert "Importing into “Broken”" in plain(words(page)) and "has no column" in plain(words(page))


def test_folders_of_imports_never_mix_sources(tmp_path):
    workspace = Workspace(tmp_path)
    one, other = (shelf.corpus_folder(workspace, "My fleet", source) for source in ("/logs/a", "/logs/b"))
    assert one != other and one == shelf.corpus_folder(workspace, "My fleet", "/logs/a")
    assert one.startswith(str(tmp_path.resolve())) and "my-fleet" in one
    workspace.corpora.update(lambda old: {"My fleet": "s3://bucket/fleet"})
    assert shelf.corpus_folder(workspace, "My fleet", "/logs/c") == "s3://bucket/fleet"  # a name on the list: added
    with pytest.raises(CorpusError, match="has no name yet"):
        shelf.check_name("  ")
    assert shelf.check_name("  Harbor,   spring (2) ") == "Harbor, spring (2)"
    with pytest.raises(LogError, match="does not exist"):
        shelf.check_source(str(tmp_path / "nothing"))


# Models -------------------------------------------------------------------------------------------------------------


def test_the_card_is_readable(open_page):
    page, card = open_page(DATA, {"data": "encoder"}), read_card()
    assert f"Trained on {card['data']['n']:,} scenarios" in words(page)
    assert {m.label: m.value for m in page.metric}["Model"] == card["model"][:8] and all(m.help for m in page.metric)
    aims = page.table[0].value
    assert len(aims) == len(card["quality"]["aims"])
    assert list(aims["Reached"]) == [f"{aim['value']:.3f}" for aim in card["quality"]["aims"]]
    assert "R² of Ego speed, mean" in set(aims["Aim"].map(plain))
    assert len(page.table[1].value) == len(card["config"]) and len(page.get("plotly_chart")) == 1


def test_quality_waits_for_a_click_and_shows_aims_and_figures(open_page, home):
    corpus = open_corpus(home.demo)
    arguments = {"url": corpus.url, "fingerprint": corpus.fingerprint, "view": "full", "most": 5000}
    page = open_page(DATA, {"data": "quality", "quality_most": "5000"})
    assert button(page, "Measure it") and not page.get("plotly_chart")
    z = np.random.default_rng(0).normal(size=(2000, 64)) @ np.diag(0.9 ** np.arange(64))
    rank = measure_rank(np.repeat(z[:, :10], 6, axis=1))  # ten directions: fewer than the aim of 16
    home.results.put(job_key("quality", arguments), Quality(
        corpus.url, corpus.fingerprint, "0" * 16, "full", "standardised", 0, 2000, 80, 4000, 0.25, rank,
        notes=(f"Left out {EVIL}.",)))
    page = open_page(DATA, {"data": "quality", "quality_most": "5000"})
    assert "0 of 1 aims are met." in words(page) and len(page.get("plotly_chart")) == 1
    assert page.table[0].value["Reached"][0] == f"{rank.effective:.3f}" and rank.effective == pytest.approx(10, abs=0.1)
    assert "trained on 25% of this corpus" in plain(words(page)) and EVIL not in words(page)
    assert "effective rank 10.0 of 60" in page.code[0].value
    home.results.path(job_key("quality", arguments)).unlink()


def test_a_corpus_without_states_needs_no_encoding_and_one_that_vanished_is_told(open_page, shelf_as_it_was, tmp_path):
    shelf_as_it_was.corpora.update(lambda old: {**old, "Gone": str(tmp_path / "gone")})
    page = open_page(DATA, {"data": "quality", "on": "Gone"})
    assert "does not exist" in errors(page)
    assert not [b for b in open_page(DATA).button if b.label.startswith("Encode")]


def test_the_ablation_warns_and_shows_its_table(open_page, home):
    corpus = open_corpus(home.demo)
    page = open_page(DATA, {"data": "ablation"})
    assert "37 minutes" in page.warning[0].value and button(page, "Train and compare")
    out = home.folder / "ablation" / f"{corpus.fingerprint[:12]}-6-8000"
    arguments = {"url": corpus.url, "fingerprint": corpus.fingerprint, "out": str(out.resolve()), "seeds": 3,
                 "epochs": 6, "most": 8000}
    one = Spread(0.55, 0.01, 3)
    row = Setting("latent10", one, Spread(0.4, 0.1, 3), 0.05, one, None, Spread(0.0123, 0.001, 2),
                  Spread(0.004, 0.002, 3), 0)
    home.results.put(job_key("ablate", arguments), Ablation(
        corpus.url, "period=2026-W11,area=harbor", "period=2026-W12,area=harbor", "discomfort", "", 8000,
        EncoderConfig(), 0.02, 0.16, True, 0.003, (), (), (row,)))
    page = open_page(DATA, {"data": "ablation"})
    shown = page.table[0].value.iloc[0]
    assert shown["Accuracy"] == "0.550 ± 0.010" and shown["LIS, off by"] == "—" and shown["With regions"] == "0 of 3"
    assert shown["Paper's LIS, off by"] == "1.23 ± 0.10 pp" and "without calibration 2.00 pp" in plain(words(page))
    home.results.path(job_key("ablate", arguments)).unlink()


@pytest.mark.slow
def test_a_corpus_is_encoded_by_a_job(open_page, shelf_as_it_was, tmp_path):
    url = str(tmp_path / "raw")
    finish(demo_steps(url, FleetConfig(scenarios=64, seed=9), jobs=1))
    shelf_as_it_was.corpora.update(lambda old: {**old, "Raw": url})
    page = open_page(DATA, {"data": "quality", "on": "Raw"})
    assert "Not all scenarios of this corpus are encoded yet." in words(page)
    button(page, "Encode it with the shipped model").click()
    run_through(page)
    model = read_card()["model"]
    assert open_corpus(url).models == {f"{model}.full": 64, f"{model}.context": 64}
    time.sleep(5)  # a corpus is looked at again within seconds
    assert not [b for b in open_page(DATA).button if b.key == f"encode_{url}"]


# Jobs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "arguments"), [
    ("line", {"n": 1, "seed": 0, "config": {}}),
    ("fleet_check", {"n": 1, "drives": 1, "event_rate": 0.1, "drive_share": 0.2, "shift": True, "repeats": 4}),
    ("demo_truth", {"comparison": "key"}),
    ("import", {"format": "latents", "paths": ["x"], "url": "u", "name": "n", "home": "h", "mapping": "", "area": "",
                "period": "", "version": "", "skip_bad": False}),
    ("encode", {"url": "u"}), ("quality", {"url": "u", "fingerprint": "f", "view": "full", "most": 5000}),
    ("ablate", {"url": "u", "fingerprint": "f", "out": "o", "seeds": 3, "epochs": 6, "most": 8000}),
])
def test_every_kind_of_job_takes_what_the_pages_send(kind, arguments):
    inspect.signature(KINDS[kind].load()).bind(**arguments)
    assert job_key(kind, arguments) == job_key(kind, json.loads(json.dumps(arguments)))  # plain values



def test_jobs_and_kept_results(open_page, home, monkeypatch):
    page = open_page(DATA, {"data": "jobs"})
    assert "result" in words(page) and "of at most 4.0 GB" in words(page)
    gone = []
    monkeypatch.setattr(type(home.results), "clear", lambda self: gone.append(self.folder))
    button(page, "Remove all kept results").click().run()
    assert gone == [home.results.folder] and "All kept results were removed." in words(page)


def test_uploads_are_counted_and_removed(open_page, home):
    home.save_upload("table.csv", b"x" * 5000)
    page = open_page(DATA, {"data": "jobs"})
    assert "**Uploads**" in words(page) and " kB" in words(page)
    button(page, "Remove all uploads").click().run()
    assert shelf.uploads_size(home) == 0 and "**Uploads**" not in words(page)


def test_an_unknown_part_counts_as_the_first(open_page):
    page = open_page(DATA, {"data": EVIL, "on": EVIL})
    assert "**Demo fleet**" in words(page) and EVIL not in words(page)
