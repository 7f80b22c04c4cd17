"""The glossary page: everything by default, search, parts, formulas that a browser can set."""

import pytest

from avshift_core.glossary import ENTRIES, GROUPS, find
from tests.pages.conftest import words

PAGE = "pages/glossary.py"


def test_every_entry_stands_there_with_formula_and_limits(open_page):
    page = open_page(PAGE)
    assert [h.value for h in page.header] == list(GROUPS)
    assert [h.value for h in page.subheader] == [entry.term for entry in ENTRIES]
    assert [h.anchor for h in page.subheader] == [entry.key for entry in ENTRIES]
    assert len(page.latex) == sum(bool(entry.formula) for entry in ENTRIES)
    assert words(page).count("When not to trust it.") == len(ENTRIES)


def test_search_and_part_narrow_it_and_stand_in_the_link(open_page):
    page = open_page(PAGE, {"find": "tail weights"})
    expected = [entry.term for entries in find("tail weights").values() for entry in entries]
    assert [h.value for h in page.subheader] == expected and 0 < len(expected) < 10
    page.text_input(key="url_find").set_value("drives").run()
    page.selectbox(key="url_part").set_value("Trust").run()
    assert (page.query_params["find"], page.query_params["part"]) == ("drives", "Trust")
    assert [h.value for h in page.header] == ["Trust"]


@pytest.mark.parametrize("link", [{"find": "<script>alert(1)</script>"}, {"find": "nothing has this", "part": "Lab"}])
def test_nothing_found_says_so_and_goes_back(open_page, link):
    page = open_page(PAGE, link)
    assert "Nothing in the glossary" in page.info[0].value and "<script>" not in words(page)
    page.button[0].click().run()
    assert len(page.subheader) == len(ENTRIES) and "find" not in page.query_params


def test_it_opens_without_a_corpus(open_page):
    assert not open_page(PAGE, {"corpus": "gone", "P": "?!"}).error


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1024)])
def test_every_formula_is_set(visit, scheme, width):
    tab = visit("glossary", {}, scheme=scheme, width=width)
    wanted = sum(bool(entry.formula) for entry in ENTRIES)
    tab.page.wait_for_function(f"document.querySelectorAll('.katex-display').length >= {wanted}")
    tab.settle()
    assert tab.page.locator(".katex-error").count() == 0
    too_wide = tab.page.evaluate("[...document.querySelectorAll('.katex-display')]"
                                 ".filter(e => e.scrollWidth > e.clientWidth + 2).map(e => e.innerText)")
    assert too_wide == []


@pytest.mark.browser
def test_an_anchor_leads_to_its_entry(visit):
    tab = visit("glossary", {})
    tab.page.locator("#khat").wait_for()
    assert tab.page.locator("#khat").inner_text().startswith("Tail of the weights")
