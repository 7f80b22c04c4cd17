"""Clusters with and without events, chosen and counted."""

import pytest

from avshift_core.jobs.kinds import KINDS
from pages.common.cached import board
from tests.pages.conftest import N, case_link, fleet_link, run_through, words

PAGE = "pages/clusters.py"


def plain(page) -> str:
    return words(page).replace("\\", "")


def clusters_of(page):
    return page.dataframe[0].value


def first_number(column):
    return column.str.split("%").str[0].astype(float)


@pytest.fixture
def cases(open_page):
    return lambda case="localized", **more: open_page(PAGE, case_link(case, metric="ell", clusters=6, **more))


def test_all_scenarios_are_in_clusters_with_shares_and_rates(cases):
    page = cases()
    table = clusters_of(page)
    assert len(table) == 6 and table["Scenarios"].sum() == 2 * N
    assert table["Share of P"].str.fullmatch(r" *\d+\.\d % \(\d+\.\d to \d+\.\d\)").all()
    share = {side: first_number(table[f"Share of {side}"]) for side in "PQ"}
    assert share["P"].sum() == pytest.approx(100, abs=0.3) and share["Q"].sum() == pytest.approx(100, abs=0.3)
    assert sorted(table["Share of P"]) == table["Share of P"].iloc[share["P"].argsort(kind="stable")].tolist()
    assert table["Events %"].sum() == pytest.approx(100)
    rate = (first_number(table["Rate"]) * table["Scenarios"]).sum() / (2 * N)
    assert 30 < rate < 45  # between mu_P = 34.6 % and mu_Q = 41.2 % of the case, see METHOD
    assert f"{2 * N:,} scenarios of P and Q in 6 clusters" in plain(page)


def test_a_localized_shift_shows_in_a_cluster_and_none_without(cases):
    assert "clusters has another share in Q than in P" in plain(cases()) or "clusters have" in plain(cases())
    assert "None of the 6 clusters has a clearly different share" in plain(cases("none"))


def test_the_sentence_on_agreement_names_chance_and_the_same_event(cases):
    page = cases()
    text = plain(page)
    assert "by chance would give" in text and "the same event on both halves gives" in text
    assert "**Agreement on which clusters are risky cannot be shown.**" in text  # +0.48 over 6 clusters: p is 0.3
    page.segmented_control(key="url_agree").set_value("shares").run()
    assert page.query_params["agree"] == "shares" and "Correlation over 6 clusters" in plain(page)


def test_more_clusters_can_show_that_two_sources_agree(open_page):
    page = open_page(PAGE, case_link("localized", metric="ell", clusters=27))
    assert "**The two agree on which clusters are risky.**" in plain(page)  # both follow the one dimension there is


def test_another_number_of_clusters_is_another_partition(cases):
    page = cases()
    page.number_input(key="url_clusters").set_value(9)
    run_through(page)
    assert page.query_params["clusters"] == "9" and len(clusters_of(page)) == 9


@pytest.mark.parametrize("more", [{"clusters": "4"}, {"clusters": "many"}, {"clusters": "6e9"}])
def test_a_number_that_cannot_be_falls_back(open_page, more):
    page = open_page(PAGE, case_link("localized", **more))
    assert page.number_input(key="url_clusters").value == 27 and len(clusters_of(page)) == 27


def test_a_cluster_is_chosen_by_the_link(cases):
    assert "**Cluster 3: " in plain(cases(cluster=3)) and "**Cluster 1: " in plain(cases(cluster=77))


def test_the_fleet_has_names_groups_and_scenes(open_page):
    page = open_page(PAGE, fleet_link(clusters=12))
    table = clusters_of(page)
    assert any("cut-ins" in name for name in table["Name"]) and table["Group"].nunique() >= 2
    assert table["Name"].nunique() == 12 and "Groups of clusters" in plain(page)
    assert len([c for c in page.get("plotly_chart") if "scene_" in str(c.proto.id)]) >= 6


def test_the_jobs_of_the_page_are_known():
    assert {"clusters", "cluster_events"} <= set(KINDS)


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(path.read_bytes()[:-40]), lambda path: path.unlink()],
                         ids=["truncated", "tidied away"])
def test_a_comparison_that_is_gone_from_the_disk_is_computed_again_behind_the_page(cases, home, damage):
    page = cases(seed=17)  # the server now has the comparison in memory
    before = clusters_of(page)
    compared = [job for job in board().jobs() if job.kind == "comparison"]
    damage(home.results.path(next(job.key for job in compared if job.arguments["config"].get("seed") == 17)))
    page.query_params["clusters"] = "7"
    run_through(page)
    assert len(clusters_of(page)) == 7 and not page.error
    assert clusters_of(page)["Scenarios"].sum() == before["Scenarios"].sum()
