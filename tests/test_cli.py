import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from avshift_core.__main__ import main
from avshift_core.latent.cohort import make_cohort
from avshift_core.latent.tables import write_cohort

FAST = ["--repeats", "1", "--classifier", "cells", "--n-perm", "99"]
KEYS = {
    "source": "n drives fingerprint", "target": "n drives fingerprint", "config": "seed", "timings": "total",
    "global_test": "acc acc_std gamma_hat gamma_lcb gamma_ucb gamma_lcb_wilson gamma_lcb_hoeffding tv_lower p_value "
                   "n_te repeats icc design_effect detectable_gamma aa verdict decided",
}
REGION = "k cells direction p_k q_k w_k w_k_unclipped score p_adj n_source n_target radius"
METRIC = "B naive target lis_paper lis ipw aipw balance headline ess ess_drives khat clipped_mass uncovered_mass"


@pytest.fixture
def tables(clustered, tmp_path):
    write_cohort(clustered.P, tmp_path / "P.parquet")
    write_cohort(clustered.Q, tmp_path / "Q.parquet")
    return tmp_path


def compare(folder, *more, source="P.parquet", target="Q.parquet"):
    return main(["compare", "--source", str(folder / source), "--target", str(folder / target), *FAST, *more])


def test_compare_writes_the_report_and_the_rows(tables, capsys):
    code = compare(tables, "--latent", "z", "--group", "drive_id", "--metric", "ell", "--clip", "8", "--force-localize",
                   "--json", str(tables / "r.json"), "--assignments", str(tables / "rows.parquet"))
    assert code == 0
    report = json.loads((tables / "r.json").read_text())
    assert report["schema"] == 1
    for part, keys in KEYS.items():
        assert set(keys.split()) <= set(report[part]), part
    assert set(report["global_test"]["aa"]) == {"source", "target"}
    assert set(METRIC.split()) <= set(report["metrics"]["ell"])
    assert report["metrics"]["ell"]["B"] == 8
    assert set(report["metrics"]["ell"]["naive"]) == {"mu", "lo", "hi"}
    for region in report["regions"]:
        assert set(REGION.split()) <= set(region)
    for check in report["trust"]:
        assert {"check", "value", "threshold", "status", "text"} <= set(check)
    rows = pd.read_parquet(tables / "rows.parquet")
    assert {"side", "row", "h", "region", "w_lis", "w_ipw"} <= set(rows)
    assert len(rows) == 6000
    assert rows["h"].between(0, 1).all()
    out = capsys.readouterr().out
    assert report["global_test"]["sentence"] in out
    weights = rows.loc[rows["side"] == "P", "w_lis"]
    assert weights.mean() == pytest.approx(1, abs=0.02)


def test_the_same_seed_gives_the_same_report_byte_for_byte(tables):
    texts = []
    for name in ("a.json", "b.json"):
        command = [sys.executable, "-m", "avshift_core", "compare", "--source", str(tables / "P.parquet"), "--target",
                   str(tables / "Q.parquet"), "--metric", "ell", "--repeats", "1", "--json", str(tables / name)]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parent.parent)
        report = json.loads((tables / name).read_text())
        del report["timings"]
        texts.append(json.dumps(report))
    assert texts[0] == texts[1]


def test_settings_come_back_from_a_report(tables):
    assert compare(tables, "--gamma-small", "0.02", "--json", str(tables / "r.json")) == 0
    assert compare(tables, "--settings", str(tables / "r.json"), "--json", str(tables / "s.json")) == 0
    first, second = (json.loads((tables / n).read_text())["config"] for n in ("r.json", "s.json"))
    assert first == second
    assert second["gamma_small"] == 0.02


def test_without_a_metric_only_the_tests_run(tables):
    assert compare(tables, "--json", str(tables / "r.json")) == 0
    assert json.loads((tables / "r.json").read_text())["metrics"] == {}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--metric", "crash"], "no column 'crash'"),
        (["--group", "trip"], "no column 'trip'"),
        (["--latent", "emb"], "no column 'emb'"),
        (["--clip", "0"], "B is 0"),
        (["--json", "nowhere/r.json"], "is not a folder"),
        (["--settings", "P.parquet"], "is not a report"),
    ],
)
def test_bad_calls_exit_with_2_and_one_sentence(tables, monkeypatch, capsys, more, sentence):
    monkeypatch.chdir(tables)
    assert compare(tables, *more) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err
    assert captured.err.strip().count("\n") == 0
    assert not list(tables.glob("*.json"))


def test_the_same_file_twice(tables, capsys):
    assert compare(tables, target="P.parquet") == 2
    assert "hold the same scenarios" in capsys.readouterr().err


def test_truncated_file(tables, capsys):
    whole = (tables / "Q.parquet").read_bytes()
    (tables / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    assert compare(tables, target="cut.parquet") == 2
    assert "cut.parquet cannot be read" in capsys.readouterr().err


def test_a_full_disk_leaves_no_file(tables, monkeypatch, capsys):
    import avshift_core.files as files

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    assert compare(tables, "--json", str(tables / "r.json")) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert {p.name for p in tables.iterdir()} == {"P.parquet", "Q.parquet"}


def test_sensitivity_has_the_papers_26_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name, move in (("P", 0.0), ("Q", 0.5)):
        z = rng.normal(size=(600, 4)) + move
        write_cohort(make_cohort(name, z, drive_id=np.arange(600) % 20), tmp_path / f"{name}.parquet")
    code = main(["sensitivity", "--source", str(tmp_path / "P.parquet"), "--target", str(tmp_path / "Q.parquet"),
                 "--seeds", "2", "--json", str(tmp_path / "s.json")])
    assert code == 0
    found = json.loads((tmp_path / "s.json").read_text())
    count = pd.Series([row["study"] for row in found["rows"]]).value_counts().to_dict()
    assert count == {
        "classifier family": 6, "training class ratio": 10, "training-set size": 6, "classifier capacity": 4,
    }
    for row in found["rows"]:
        assert len(row["values"]) == 2
        assert row["acc"] == pytest.approx(np.mean(row["values"]))
    widths = found["half_width"]
    assert widths[0]["half_width"] > widths[-1]["half_width"]  # falls as N_te grows
