"""What can be taken away: from every page tables as CSV and Parquet and a report as JSON, each with its identity."""

import io
import json

import pandas as pd
import pytest

from avshift_core.report import table_bytes
from avshift_core.scenario.store.corpus import open_corpus
from pages.common.exports import _report, identity
from pages.common.frame import PAGES
from tests.pages.conftest import fleet_link, versions_link

PARTS = [*((file, {}) for file, *_ in PAGES.values()), ("pages/data.py", {"data": "encoder"}),
         ("pages/data.py", {"data": "jobs"})]
WITHOUT_REPORT = ("jobs",)  # a list that moves


@pytest.mark.parametrize("file, more", PARTS, ids=[f"{file} {''.join(more.values())}" for file, more in PARTS])
def test_every_page_has_tables_and_a_report_to_take_away(open_page, home, file, more):
    link = {**fleet_link(), **more}
    if file == "pages/scenario.py":
        link["scenario"] = open_corpus(home.demo).table(link["P"], columns=["scenario_id"])["scenario_id"].iloc[0]
    if file == "pages/versions.py":
        link = versions_link()  # each cohort of one version
    page = open_page(file, link)
    labels = [button.label for button in page.get("download_button")]
    assert {"CSV", "Parquet"} <= set(labels)
    assert ("Report (JSON)" in labels) == (more.get("data") not in WITHOUT_REPORT)


def test_rows_become_a_table_with_the_identity_of_the_code():
    rows = [{"name": "=1+1", "value": {"mean": 0.5, "n": 3}}, {"name": "b", "value": {"mean": None, "n": 1}}]
    run = identity(None)
    assert run.startswith("engine-")
    csv = pd.read_csv(io.BytesIO(table_bytes(rows, "csv", run)))
    assert list(csv.columns) == ["name", "value.mean", "value.n", "run"]
    assert csv["name"][0] == "'=1+1" and set(csv["run"]) == {run}
    parquet = pd.read_parquet(io.BytesIO(table_bytes(rows, "parquet", run)))
    assert parquet["name"][0] == "=1+1" and parquet["value.n"].tolist() == [3, 1]
    assert len(pd.read_parquet(io.BytesIO(table_bytes([], "parquet", run)))) == 0


def test_a_report_of_no_run_names_its_code():
    assert json.loads(_report(None, lambda: {"value": float("nan")})) == {"run": identity(None), "value": None}
