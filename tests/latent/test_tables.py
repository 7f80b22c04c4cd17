import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import TableError
from avshift_core.latent.tables import read_cohort, write_cohort


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "z": list(rng.normal(size=(50, 4)).astype(np.float32)),
        "drive_id": [f"d{i % 5}" for i in range(50)],
        "ell": rng.integers(0, 2, 50),
        "speed": rng.random(50),
    })


def test_list_column_and_numbered_columns_are_the_same_cohort(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    wide = frame.drop(columns="z").assign(**{f"z_{j}": np.stack(frame["z"])[:, j] for j in range(4)})
    wide.to_parquet(tmp_path / "b.parquet")
    a, b = (read_cohort(tmp_path / f, metrics=["ell"]) for f in ("a.parquet", "b.parquet"))
    assert a.fingerprint == b.fingerprint
    assert (a.n, a.n_drives, list(a.ell), list(a.obs)) == (50, 5, ["ell"], ["speed"])


def test_csv_with_lists_and_with_columns(frame, tmp_path):
    as_text = frame.assign(z=[str([float(v) for v in row]) for row in frame["z"]])
    as_text.to_csv(tmp_path / "a.csv", index=False)
    cohort = read_cohort(tmp_path / "a.csv", metrics=["ell"])
    np.testing.assert_allclose(cohort.z, np.stack(frame["z"]), rtol=1e-6)


def test_written_cohort_reads_back_the_same(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    cohort = read_cohort(tmp_path / "a.parquet", metrics=["ell"])
    write_cohort(cohort, tmp_path / "b.parquet")
    assert read_cohort(tmp_path / "b.parquet", metrics=["ell"]).fingerprint == cohort.fingerprint


def test_without_a_drive_column_independence_is_assumed(frame, tmp_path):
    frame.drop(columns="drive_id").to_parquet(tmp_path / "a.parquet")
    assert not read_cohort(tmp_path / "a.parquet").has_drives


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda f: f, {"metrics": ["crash"]}, "no column 'crash'; found drive_id, ell, speed"),
        (lambda f: f, {"group": "trip"}, "no column 'trip'"),
        (lambda f: f, {"latent": "emb"}, "no column 'emb' and no columns 'emb_0'"),
        (lambda f: f.rename(columns={"z": "z_1"}), {}, "has 'z_1' but not 'z_0'"),
        (lambda f: f.assign(z=[row[: 3 + i % 2] for i, row in enumerate(f["z"])]), {}, r"different widths \(3 to 4\)"),
        (lambda f: f.assign(z=1.0), {}, "is not a list of numbers"),
        (lambda f: f.assign(ell=["yes"] * 50), {"metrics": ["ell"]}, "is not a number in every row"),
        (lambda f: f.iloc[:0], {}, "holds no rows"),
        (lambda f: f.assign(drive_id=[None] + ["a"] * 49), {}, "1 scenarios without a drive id"),
    ],
)
def test_tables_that_cannot_be_used(frame, tmp_path, change, options, sentence):
    change(frame).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match=sentence):
        read_cohort(tmp_path / "a.parquet", **options)


def test_unreadable_files(frame, tmp_path):
    frame.to_parquet(tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-100])
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "table.xlsx").write_text("x")
    for name, sentence in [("cut.parquet", "cannot be read"), ("noise.csv", "cannot be read|no column"),
                           ("empty.csv", "cannot be read"), ("table.xlsx", "neither .parquet nor .csv"),
                           ("absent.parquet", "is not a file")]:
        with pytest.raises(TableError, match=sentence):
            read_cohort(tmp_path / name)
