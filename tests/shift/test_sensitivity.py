"""The sensitivity studies as a job: every row, progress to the end, an archive, and the paper's table by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import avshift_core.shift.sensitivity as studies
from avshift_core.archive import load, save
from avshift_core.shift.analyze import analyze
from avshift_core.shift.sensitivity import Row, Sensitivity, Summary, count_rows, sensitivity_steps
from avshift_core.shift.tables import sensitivity_tables


@pytest.fixture
def quick(monkeypatch):
    """One configuration of each study, none of which trains long."""
    monkeypatch.setattr(studies, "FAMILIES", ("logistic",))
    monkeypatch.setattr(studies, "RATIOS", (0.5,))
    monkeypatch.setattr(studies, "TRAIN_SIZES", (50,))
    monkeypatch.setattr(studies, "CAPACITIES", {"linear": ("svm", {})})
    monkeypatch.setattr(studies, "TEST_SIZES", (100, 200, 100_000))


def test_the_job_goes_through_all_configurations(quick, small_pair, tmp_path):
    comparison = SimpleNamespace(analysis=analyze(*small_pair, classifier="logistic", repeats=1, n_perm=19))
    steps, shares = sensitivity_steps(comparison, seeds=2), []
    while True:
        try:
            shares.append(next(steps).share)
        except StopIteration as done:
            found = done.value
            break
    assert shares[0] == 0 and shares[-1] == 1 and (np.diff(shares) > 0).all()
    assert len(found.rows) == count_rows() == 5 and all(len(row.values) == 2 for row in found.rows)
    assert [w.n_te for w in found.widths] == [100, 200]  # 600 scenarios are there
    save(found, tmp_path / "it.avs")
    assert load(tmp_path / "it.avs") == found


def test_the_papers_table_by_hand():
    # mean of 0.5, 0.6, 0.7, 0.8 is 0.65; deviations 0.15, 0.05, 0.05, 0.15: sqrt(0.05 / 3) = 0.1291
    rows = (Row("a", "x", 0.55, 0.0, 0.05, 2, (0.5, 0.6)), Row("a", "y", 0.75, 0.0, 0.25, 2, (0.7, 0.8)),
            Row("b", "z", 0.5, 0.0, 0.0, 1, (0.5,)))
    first, second = Sensitivity(rows, ()).summary()
    assert (first.study, first.configs) == ("a", 2)
    assert (first.acc, first.acc_std) == pytest.approx((0.65, 0.129099), abs=1e-6)
    assert second == Summary("b", 1, 0.5, 0.0)
    tables = sensitivity_tables(Sensitivity(rows, ()))
    assert tables["sensitivity"]["values"].tolist() == ["0.500000 0.600000", "0.700000 0.800000", "0.500000"]
    assert tables["sensitivity_summary"]["configs"].tolist() == [2, 1]
