"""The latent map: every verdict and colour, selections by link, kept ones, bad links; lasso and click in a browser."""

import json
import time
from urllib.parse import unquote

import numpy as np
import pytest
from playwright.sync_api import expect

from avshift_core.latent.pack import GRID, Lasso
from avshift_core.latent.principal import pca_axes
from avshift_core.shift.selected import region_code, row_of_scenario
from tests.pages.browsing import PATIENCE
from tests.pages.conftest import CASES, case_link, fleet_link, run_through, words
from tests.pages.test_overview import analysis_of

PAGE = "pages/latent_map.py"
LEFT = Lasso("pca12", ((0, 0), (GRID // 2, 0), (GRID // 2, GRID), (0, GRID)))


def maps(page) -> list[dict]:
    """The heads of all maps that a page sends."""
    found = []
    for element in page.main:
        if getattr(element.proto, "component_name", "") == "avshift_map":
            data = element.proto.bytes
            found.append(json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")]))
    return found


def run_of(page) -> str:
    return words(page).split("Run `")[1][:12]


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_its_map_and_its_first_line(open_page, case):
    page = open_page(PAGE, case_link(case))
    (head,) = maps(page)
    assert head["n"] == head["total"] == 4000 and head["space"] == "umap" and head["colour"]["title"] == "Cohort"
    first = {"none": "same places", "localized": "outlined on the map: R1", "global": "strongly (at least "}[case]
    assert first in words(page) and "a map is only a picture" in words(page)
    assert "within a sample of 2,000 scenarios: trustworthiness" in words(page)
    names = [shape["name"] for shape in head["shapes"]]
    assert ("R1" in names) == (case == "localized")
    assert ("Localization stopped on purpose" in words(page)) == (case != "localized")
    assert run_of(page) in head["stamp"]["run"] and run_of(page) in head["stamp"]["file"]


def test_every_colour_can_be_chosen(open_page):
    page = open_page(PAGE, fleet_link())
    options = page.selectbox(key="url_colour").options
    assert {"Cohort (P or Q)", "Category", "Cluster", "Score h", "Smoothed score", "Region", "Weight at the clip",
            "Event (chosen metric)", "Ego speed, mean"} <= set(options)
    titles = set()
    for key in ("category", "cluster", "h", "h_bar", "region", "weight", "event", "a.ego_speed_mps", "a.turn_type"):
        page.query_params["colour"] = key
        run_through(page)
        titles.add(maps(page)[0]["colour"]["title"])
    assert len(titles) == 9 and "Weight at clip 10" in titles


@pytest.mark.parametrize("axes", ["pca12", "pca34"])
def test_principal_axes_say_how_much_they_show(open_page, axes):
    page = open_page(PAGE, fleet_link(axes=axes))
    (head,) = maps(page)
    assert head["space"] == axes and "of the variance" in head["axes"][0]


def test_both_halves_of_the_drives_stand_side_by_side_on_one_grid(open_page, home):
    page = open_page(PAGE, fleet_link(halves=1, axes="pca12"))
    analysis = analysis_of(home, page)
    choose, confirm = maps(page)
    measures = np.concatenate([analysis.local.measure_P, analysis.local.measure_Q])
    assert (choose["n"], confirm["n"]) == ((~measures).sum(), measures.sum())
    assert choose["link"] == confirm["link"] != "" and choose["shapes"] == confirm["shapes"]


def test_a_line_in_the_link_selects_what_the_engine_says(open_page, home):
    plain = open_page(PAGE, fleet_link(axes="pca12"))
    page = open_page(PAGE, fleet_link(axes="pca12", sel=f"{run_of(plain)[:6]}.{LEFT.text}"))
    analysis = analysis_of(home, page)
    mask = LEFT.mask(pca_axes(analysis.space.X).scores[:, :2])
    n_P, n_Q = mask[: analysis.P.n].sum(), mask[analysis.P.n :].sum()
    assert f"**{mask.sum():,}** of {len(mask):,} scenarios" in words(page)
    shown = {m.label: m.value for m in page.metric}
    assert shown[f"Of P: {n_P:,}"] == f"{100 * n_P / analysis.P.n:.2f}\N{NO-BREAK SPACE}%" and f"Of Q: {n_Q:,}" in shown
    assert len(page.dataframe[0].value) == min(mask.sum(), 2000)
    assert set(page.dataframe[0].value["scenario_id"]) <= set(analysis.P.obs["scenario_id"]) | set(
        analysis.Q.obs["scenario_id"])
    assert maps(page)[0]["selection"]["corners"] == [v for corner in LEFT.corners for v in corner]
    assert "What sets them apart" in words(page) and "Scenes from it" in words(page)
    elsewhere = open_page(PAGE, fleet_link(axes="pca34", sel=f"{run_of(plain)[:6]}.{LEFT.text}"))
    assert f"**{mask.sum():,}** of" in words(elsewhere) and "highlight" in maps(elsewhere)[0]["blocks"]


def test_long_tables_come_in_pages_and_a_new_selection_begins_with_the_first(open_page):
    run = run_of(open_page(PAGE, case_link("localized", axes="pca12")))
    everything = Lasso("pca12", ((0, 0), (GRID, 0), (GRID, GRID), (0, GRID)))
    page = open_page(PAGE, case_link("localized", axes="pca12", sel=f"{run[:6]}.{everything.text}"))
    first = page.dataframe[0].value["scenario_id"]
    assert len(first) == 2000 and "First 2,000 of 4,000" in words(page)
    page.number_input(key="table_page").set_value(2).run()
    second = page.dataframe[0].value["scenario_id"]
    assert "2,001 to 4,000 of 4,000" in words(page) and len(set(first) | set(second)) == 4000
    page.query_params["sel"] = ""
    page.query_params["region"] = "1"
    page.run()
    assert not page.exception and "Mark a row" in words(page) and not page.number_input


def test_a_line_of_another_comparison_does_not_count(open_page):
    page = open_page(PAGE, fleet_link(axes="pca12", sel=f"000000.{LEFT.text}"))
    assert "Select scenarios" in words(page)


def test_a_region_can_be_shown_and_cleared(open_page, home):
    page = open_page(PAGE, case_link("localized", axes="pca12"))
    page.button(key="show_R1").click().run()
    analysis = analysis_of(home, page)
    code, titles = region_code(analysis)
    assert page.query_params["region"] in ("1", ["1"]) and titles[0] == "R1"
    assert f"**{(code == 0).sum():,}** of" in words(page) and "highlight" in maps(page)[0]["blocks"]
    page.button(key="clear_selection").click().run()
    assert "Select scenarios" in words(page) and "region" not in page.query_params


def test_a_selection_is_kept_for_everybody_and_removed(open_page, home):
    page = open_page(PAGE, case_link("localized", axes="pca12", region=1))
    page.text_input(key="keep_name").set_value("  ")
    page.button(key="keep").click().run()
    assert "Give the selection a name" in words(page)
    page.text_input(key="keep_name").set_value("Trucks <b>& more</b>")
    page.button(key="keep").click().run()
    assert not page.exception and "Trucks" in words(page)
    entry = home.selections.read()["Trucks <b>& more</b>"]
    analysis = analysis_of(home, page)
    region = analysis.local.regions[0]
    assert (entry["n_P"], entry["n_Q"]) == (region.n_source, region.n_target)
    other = open_page(PAGE, case_link("localized", axes="pca12", kept="Trucks <b>& more</b>"))
    assert f"**{region.n_source + region.n_target:,}** of" in words(other)
    other.button(key="remove_kept").click().run()
    assert "Trucks <b>& more</b>" not in home.selections.read() and "Select scenarios" in words(other)


@pytest.mark.parametrize(("change", "sentence"), [
    ({"kept": "nobody's"}, "There is no kept selection called"), ({"colour": "nothing"}, ""), ({"axes": "x"}, ""),
    ({"region": "99"}, ""), ({"region": "R1; drop"}, ""), ({"clusters": "-5", "colour": "cluster"}, ""),
    ({"cluster": "999", "colour": "cluster"}, ""), ({"scenario": "nobody"}, ""), ({"halves": "2"}, ""),
])
def test_a_hand_edited_link_shows_the_map_all_the_same(open_page, change, sentence):
    page = open_page(PAGE, fleet_link(**{"axes": "pca12", **change}))
    assert len(maps(page)) == 1 and sentence in words(page).replace("\\", "")


def test_a_damaged_line_in_the_link_is_told_and_can_be_cleared(open_page):
    run = run_of(open_page(PAGE, fleet_link(axes="pca12")))
    page = open_page(PAGE, fleet_link(axes="pca12", sel=f"{run[:6]}.pca12.%%%"))
    assert "is not a line on a map" in words(page).replace("\\", "") and len(maps(page)) == 1
    next(b for b in page.button if b.label == "Clear the selection").click().run()
    assert "is not a line" not in words(page) and "sel" not in page.query_params


# In a browser --------------------------------------------------------------------------------------------------------


def rings(one) -> None:
    expect(one.page.locator(".stage[data-draws]").first).to_be_visible(timeout=PATIENCE)
    one.settle()


def lasso(one, share=(0.5, 0.5), radius=0.3) -> float:
    """Draw a circle on the map; when the line was closed."""
    one.page.locator("[data-do='lasso']").first.click()
    box = one.page.locator(".stage").first.bounding_box()
    middle = box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"]
    angles = np.linspace(0, 2 * np.pi, 40)
    points = np.column_stack([np.cos(angles), np.sin(angles)]) * radius * box["height"] + middle
    one.page.mouse.move(*points[0])
    one.page.mouse.down()
    for point in points[1:]:
        one.page.mouse.move(*point)
    one.page.mouse.up()
    return time.monotonic()


@pytest.mark.browser
def test_a_lasso_fills_the_table_with_the_rows_inside(visit, home):
    one = visit("latent_map", fleet_link(axes="pca12"))
    rings(one)
    sent = len(one.sent)
    lasso(one)
    expect(one.page.get_by_text("Drawn on the map")).to_be_visible(timeout=PATIENCE)
    one.settle()
    assert sum(one.sent[sent:]) < 5000
    run = one.page.get_by_test_id("stSidebar").inner_text().split("Run")[1].split()[0]
    analysis = next(c.analysis for c in map(home.results.get, (p.stem for p in home.results.folder.glob(
        "comparison-*.avs"))) if c.run == run)
    line = Lasso.parse(unquote(one.link["sel"]).partition(".")[2])
    mask = line.mask(pca_axes(analysis.space.X).scores[:, :2])
    assert mask.sum() > 100
    expect(one.page.get_by_text(f"{mask.sum():,} of {len(mask):,} scenarios")).to_be_visible()
    expect(one.page.get_by_text("Scenes from it")).to_be_visible(timeout=PATIENCE)
    one.page.locator("[data-do='density']").click()
    one.page.wait_for_url("**density=1**", timeout=PATIENCE)
    again = visit("latent_map", one.link)  # the link in another browser
    expect(again.page.get_by_text(f"{mask.sum():,} of {len(mask):,} scenarios")).to_be_visible(timeout=PATIENCE)
    expect(again.page.locator("path.selection")).to_be_visible(timeout=PATIENCE)
    expect(again.page.locator("[data-do='density']")).to_have_attribute("aria-pressed", "true", timeout=PATIENCE)
    one.menu("Regions")  # and on another page and back
    expect(one.page.get_by_text("Overlap violations").first).to_be_visible(timeout=PATIENCE)
    one.menu("Latent map")
    expect(one.page.get_by_text("Drawn on the map")).to_be_visible(timeout=PATIENCE)


@pytest.mark.browser
def test_a_click_opens_the_scenario(visit, home):
    one = visit("latent_map", fleet_link(axes="pca12"))
    rings(one)
    box = one.page.locator(".stage").first.bounding_box()
    for share in np.linspace(0.3, 0.7, 9):  # somewhere on this line there is a scenario under the pointer
        one.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        one.page.wait_for_timeout(120)
        if "on-point" in one.page.locator(".stage").first.get_attribute("class"):
            break
    hint = one.page.locator(".hint").first.inner_text()
    one.page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
    one.page.wait_for_url("**/scenario?**", timeout=PATIENCE)
    one.settle()
    name = one.link["scenario"]
    run = one.page.get_by_test_id("stSidebar").inner_text().split("Run")[1].split()[0]
    analysis = next(c.analysis for c in map(home.results.get, (p.stem for p in home.results.folder.glob(
        "comparison-*.avs"))) if c.run == run)
    row = row_of_scenario(analysis, name)
    assert row is not None and ("P ·" if row < analysis.P.n else "Q ·") in hint
    one.page.go_back()
    expect(one.page.locator(".stage[data-draws]").first).to_be_visible(timeout=PATIENCE)


@pytest.mark.browser
def test_the_lasso_is_answered_within_a_second(visit):
    one = visit("latent_map", fleet_link(axes="pca12"))
    rings(one)
    taken = []
    for radius in (0.2, 0.25, 0.3, 0.22, 0.28):
        expect(one.page.get_by_test_id("stMain").get_by_text("of ").first).to_be_visible()
        before = one.page.get_by_test_id("stMain").get_by_text("scenarios, from").all_inner_texts()
        start = lasso(one, radius=radius)
        one.page.wait_for_function(
            "old => { const seen = [...document.querySelectorAll('[data-testid=stMarkdown]')].map(e => e.innerText)"
            ".filter(t => t.includes('scenarios, from')); return seen.length && seen[0] !== old }",
            arg=before[0] if before else "", timeout=PATIENCE, polling=20)
        expect(one.page.get_by_test_id("stDataFrame").first).to_be_visible(timeout=PATIENCE)
        taken.append(time.monotonic() - start)
        one.settle()
    assert sorted(taken)[2] < 0.8, taken  # the median of five
