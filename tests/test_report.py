import json

import numpy as np

from avshift_core.files import write_json
from avshift_core.report import to_report, to_rows


def test_reports_are_json_without_nan(line_analysis):
    json.dumps(to_report(line_analysis), allow_nan=False)


def test_rows_follow_the_input(line_analysis, line):
    rows = to_rows(line_analysis)
    assert rows["side"].tolist() == ["P"] * line.P.n + ["Q"] * line.Q.n
    assert rows["row"].tolist() == [*range(line.P.n), *range(line.Q.n)]
    inside = rows[(rows["side"] == "P") & (rows["region"] == 1)]
    assert len(inside) == line_analysis.local.regions[0].n_source
    assert inside["w_lis"].nunique() == 1
    assert rows.loc[rows["side"] == "Q", "w_lis"].isna().all()


def test_rows_reproduce_the_estimate(line_analysis, line):
    rows = to_rows(line_analysis)
    of_P = rows[rows["side"] == "P"]
    c = line_analysis.calibrate(line_analysis.config.B)
    for column, estimate in (("w_lis", c.lis), ("w_ipw", c.ipw), ("w_strata", c.strata)):
        w = of_P[column].to_numpy()
        assert abs(w @ line.P.ell["ell"] / w.sum() - estimate.mu) < 1e-9


def test_not_a_number_is_written_as_null(tmp_path):
    write_json({"rows": [{"a": float("nan"), "b": np.float64(1.5), "c": np.bool_(True)}]}, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == {"rows": [{"a": None, "b": 1.5, "c": True}]}
