"""Notes on regions, saved views, permalinks and the ledger on the pages: two people, changed data, hostile text."""

import re
import sqlite3
from contextlib import closing
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from avshift_core.jobs.kinds import enter_look
from avshift_core.notebook import Look, open_notebook
from avshift_core.scenario.store.corpus import open_corpus
from pages.common.share import RUN
from tests.latent.weeks import DAYS, add_week, weeks
from tests.pages.browsing import PATIENCE
from tests.pages.conftest import QUICK, case_link, run_through, words
from tests.pages.test_overview import analysis_of

PAGE = "pages/regions.py"
LINK = case_link("localized", metric="ell")
EVIL = "<script>alert(1)</script> **x** [y](http://evil.example) $a$ & 'quoted'; DROP TABLE notes; --"


@pytest.fixture(autouse=True)
def fresh(home):
    """No notebook beside the cases: tests share their comparisons, which are kept, but not what people wrote."""
    path = book_of(home).path
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)


def plain(page) -> str:
    return bare(words(page))


def bare(text: str) -> str:
    """What a reader sees of escaped text."""
    return re.sub("[\\\\\u2060]", "", text)


def book_of(home, corpus="Cases"):
    return open_notebook(home.corpora.read()[corpus], home)


def run_of(page) -> str:
    return RUN.search(words(page).partition("Run `")[2])[1]


def press(page, label: str):
    next(b for b in page.button if b.label == label).click()
    return run_through(page)


def field(page, kind: str, part: str):
    return next(w for w in page.get(kind) if str(w.key).startswith("note_") and str(w.key).endswith(part))


def write(page, name: str | None = None, comment: str | None = None, status: str | None = None):
    """Fill in the note of the region that is shown, and save it."""
    for kind, part, value in (("text_input", "name", name), ("text_area", "comment", comment),
                              ("button_group", "status", status)):
        if value is not None:
            field(page, kind, part).set_value(value)
    return press(page, "Save the note")


def comparisons(home) -> list[tuple[str, int]]:
    """Every comparison that is kept, and its file: computed again, it is another one."""
    return sorted((path.name, path.stat().st_ino) for path in home.results.folder.glob("comparison-*"))


def queries(page) -> dict[str, dict[str, str]]:
    """Label -> what its link says, of the links on a page."""
    return {bare(link.proto.label): {k: v[0] for k, v in parse_qs(link.proto.query_string).items()}
            for link in page.get("page_link")}


# Notes ---------------------------------------------------------------------------------------------------------------


def test_a_regions_own_name_stands_everywhere_and_nothing_is_computed_again(open_page, home):
    page = open_page(PAGE, LINK)
    run, proposed = run_of(page), page.dataframe[0].value.loc[0, "Name"]
    kept = comparisons(home)
    write(page, EVIL, "Seen on video.\n# no heading", "accepted")
    assert all(text in plain(page) for text in ("The note is saved.", f"**R1: {EVIL}**", f"in 1 region: {EVIL}."))
    assert page.dataframe[0].value.loc[0, ["Name", "Status"]].tolist() == [EVIL, "accepted"]
    assert field(page, "text_input", "name").value == EVIL and field(page, "text_input", "name").placeholder == proposed
    for other in ("app.py", "pages/calibration.py", "pages/latent_map.py"):
        opened = open_page(other, {**LINK, "axes": "pca12"})
        shown = "\n".join([words(opened), *(b.label for b in opened.button),
                           *(str(t.value.to_dict()) for t in opened.get("table"))])
        assert EVIL in bare(shown.replace(r"\u2060", "")), other  # how Python writes it in a table's cells
        assert "<script>" not in shown and "[y](http" not in shown
    assert comparisons(home) == kept
    assert book_of(home).region_notes(run)[1].texts == (EVIL, "Seen on video.\n# no heading", "accepted")
    write(page, "", "", "none")  # and back to the proposed one
    assert f"**R1: {proposed}**" in plain(page) and len(book_of(home).history(run, 1)) == 2


def test_two_people_change_one_note_and_both_texts_stay(open_page, home):
    hers, his = open_page(PAGE, LINK), open_page(PAGE, LINK)
    write(hers, "Hers", "from the left")
    write(his, "His", "from the right")
    assert "changed while you were writing" in plain(his)
    assert "“Hers”" in plain(his) and "“from the left”" in plain(his)  # theirs in words, mine in the form
    assert field(his, "text_input", "name").value == "His" and "**R1: Hers**" in plain(his)
    run = run_of(his)
    assert [(n.name, n.aside) for n in book_of(home).history(run, 1)] == [("His", True), ("Hers", False)]
    assert any("kept aside" in c.value for c in his.caption)
    write(his)
    assert "The note is saved." in plain(his) and "**R1: His**" in plain(his)
    assert book_of(home).region_notes(run)[1].texts == ("His", "from the right", "none")
    write(hers, status="to be investigated")  # she still has hers before her, and changes another part
    assert "joined with what somebody else wrote" in plain(hers)
    assert book_of(home).region_notes(run)[1].texts == ("His", "from the right", "to be investigated")
    press(hers, "Put it back")  # the latest that is not what the note says
    assert book_of(home).region_notes(run)[1].texts[2] == "none"


def test_a_form_stays_as_it_is_while_somebody_else_writes(open_page, home):
    page, other = open_page(PAGE, LINK), open_page(PAGE, LINK)
    write(other, "Theirs")
    page.run()
    assert "Somebody has changed this note since you opened it" in plain(page) and "“Theirs”" in plain(page)
    assert field(page, "text_input", "name").value == "" and "**R1: Theirs**" in plain(page)
    press(page, "Take over what it says now")
    assert field(page, "text_input", "name").value == "Theirs" and "Somebody has changed" not in plain(page)


def test_notes_on_an_earlier_run_can_be_taken_over(open_page, home):
    cohorts = LINK["P"], LINK["Q"]
    book_of(home).record(Look("2026-03-02T09:30:00Z", "comparison", *cohorts, "line", "", "earlier", "data", ""))
    book_of(home).write_note("earlier", 1, name="Of last week", comment="says *more*", status="accepted")
    page = open_page(PAGE, LINK)
    assert field(page, "text_input", "name").value == "" and "Of last week" in [t.value for t in page.text]
    press(page, "Put it into the form")
    assert field(page, "text_input", "name").value == "Of last week" and not book_of(home).history(run_of(page), 1)
    write(page)
    assert book_of(home).region_notes(run_of(page))[1].texts == ("Of last week", "says *more*", "accepted")


def test_a_name_that_cannot_be_kept_is_a_sentence_and_stays_in_the_form(open_page, home):
    page = open_page(PAGE, LINK)
    write(page, "a\0b")
    assert "holds U+0000" in page.error[0].value.replace("\\", "")
    assert field(page, "text_input", "name").value == "a\0b" and not book_of(home).history(run_of(page), 1)


# Saved views and links -----------------------------------------------------------------------------------------------


def save_as(page, name: str):
    page.sidebar.text_input(key="save_view_as").set_value(name)
    return press(page, "Save")


def test_a_saved_view_opens_as_it_was(open_page, home):
    link = case_link("localized", metric="ttc_min_s<3", B=5, colour="category", img="svg")
    page = open_page(PAGE, link)
    run, fingerprint = run_of(page), open_corpus(home.corpora.read()["Cases"]).fingerprint
    save_as(page, EVIL[:60])
    assert f"Saved as “{EVIL[:60]}”" in plain(page)
    save_as(page, EVIL[:60])
    assert "already; choose another name" in plain(page)
    overview = open_page(link=LINK)
    saved = queries(overview)[EVIL[:60]]
    assert saved == {**link, "run": f"{run}.{fingerprint[:8]}"}
    again = open_page(PAGE, saved)
    assert run_of(again) == run and "since this was saved" not in plain(again)
    assert "Metric: Time to collision below 3 s; weights at clip 5." in plain(again)
    (view,) = (v for v in book_of(home).saved() if v.name == EVIL[:60])
    overview.text_input(key=f"rename_{view.id}_{view.version}").set_value("Renamed 🚚").run()
    assert "Renamed 🚚" in queries(overview)
    (view,) = (v for v in book_of(home).saved() if v.name == "Renamed 🚚")
    overview.button(key=f"remove_{view.id}_{view.version}").click().run()
    assert "Renamed 🚚" not in queries(overview) and view not in book_of(home).saved()


def test_the_link_to_copy_holds_what_the_address_leaves_to_defaults(open_page, home):
    link = {"corpus": "Cases", "P": "period=P,area=localized", "Q": "period=Q,area=localized", **{
        name: str(value) for name, value in QUICK.items()}}
    page = open_page(link=link)
    shown = {k: v[0] for k, v in parse_qs(urlsplit(page.code[0].value).query).items()}
    assert shown == {**link, "metric": analysis_of(home, page).metrics[0], "run": shown["run"]}
    assert RUN.fullmatch(shown["run"])[1] == run_of(page)
    page.select_slider(key="url_B").set_value(5.0).run()
    assert "B=5" in page.code[0].value
    opened = open_page(link=shown)
    assert opened.query_params["run"] == shown["run"] and "this was saved" not in plain(opened)
    opened.sidebar.multiselect(key="cohort_Q_period").set_value(["P"]).run()  # the same as P: nothing is computed
    assert "run" not in opened.query_params and opened.query_params["Q"] == link["P"]


@pytest.mark.parametrize(("run", "sentence"), [
    ("0123456789ab", "The data, the engine, the settings or the address have changed since this was saved: it was run "
     "`0123456789ab`"),
    ("0123456789ab.00000000", "The data has changed since this was saved (corpus `00000000` then, "),
    ("<script>alert(1)</script>", "names the run “<script>alert(1)</script>”, and no run is called so"),
    ("'; DROP TABLE looks", "no run is called so"), ("z" * 9000, "no run is called so"),
])
def test_a_link_that_names_another_run_says_so(open_page, run, sentence):
    page = open_page(link=case_link("localized", run=run))
    assert len(page.main.warning) == 1 and sentence in page.main.warning[0].value.replace("\\", "")
    assert len(page.main.warning[0].value) < 400 and page.metric
    assert "<script>" not in words(page).replace("\\<script\\>", "")


def test_sql_in_a_filter_finds_nothing_and_harms_nothing(open_page, home):
    before = book_of(home).looks()
    page = open_page(link=case_link("localized", P="period=P' OR 1=1; DROP TABLE looks; --,area=localized"))
    assert "has 0 scenarios" in page.error[0].value and book_of(home).looks() == before


def test_data_that_changed_beside_p_and_q_is_told(open_page):
    page = open_page(link=LINK)
    again = open_page(link={**LINK, "run": f"{run_of(page)}.00000000"})
    assert "The corpus has changed since this was saved (`00000000` then, " in plain(again)
    assert "but P and Q are the same, and so are their numbers." in plain(again) and not again.main.warning


def test_data_that_changed_since_is_told_by_its_fingerprints(open_page, home, tmp_path):
    url = str(tmp_path / "own")
    weeks(url)
    then = open_corpus(url).fingerprint
    link = {"P": "period=2026-W10", "Q": "period=2026-W11", **{name: str(value) for name, value in QUICK.items()}}
    open_notebook(url).save_view("Both weeks", "Overview", urlencode(link), fingerprint=then, run="0123456789ab")
    add_week(url, DAYS[0], seed=1)  # more of P
    home.corpora.update(lambda old: {**old, "Own": url})
    page = open_page(link={**link, "corpus": "Own"})
    now = open_corpus(url).fingerprint
    assert any("data has changed" in str(m.value) for m in page.markdown) and then != now
    page = open_page(link=queries(page)["Both weeks"])
    assert (f"The data has changed since this was saved (corpus `{then[:8]}` then, `{now[:8]}` now): it was run "
            f"`0123456789ab`, and this is run `{run_of(page)}`") in plain(page)
    home.corpora.update(lambda old: {name: url for name, url in old.items() if name != "Own"})


def test_a_saved_view_of_a_file_changed_by_hand_leads_nowhere_else(open_page, home):
    book = book_of(home)
    book.save_view("Hostile", "Regions", urlencode({"corpus": "../../etc", "P": "period=2026-W10", "embed": "true",
                                                     "x" * 50: "y"}), fingerprint="<b>", run="<script>")
    book.save_view("Nowhere", "pages/../../../etc/passwd", "P=1", fingerprint="", run="")
    page = open_page(link=LINK)
    assert queries(page)["Hostile"] == {"corpus": "Cases", "P": "period=2026-W10", "x" * 50: "y"}
    assert "Nowhere" not in queries(page) and "Nowhere · its page is not there any more" in plain(page)
    assert "<script>" not in words(page)


# The ledger ----------------------------------------------------------------------------------------------------------


def test_every_comparison_is_one_look(open_page, home):
    book = book_of(home)
    page = open_page(link=LINK)
    assert [look.run for look in book.looks()] == [run_of(page)]
    open_page("pages/global_test.py", LINK)  # the kept result is no second look
    page = open_page("pages/global_test.py", {**LINK, "seed": "5"})
    assert "2 looks at this corpus so far, 2 of them with this P and Q." in plain(page)
    first, second = book.looks()
    analysis = analysis_of(home, page)
    assert (second.run, second.verdict) == (run_of(page), analysis.verdict.name)
    assert (second.gamma_hat, second.gamma_lcb) == (analysis.global_test.gamma_hat, analysis.global_test.gamma_lcb)
    assert "seed=5" in second.settings and first.source == LINK["P"] and "ell" in first.metrics
    assert queries(page)["Ledger"]["data"] == "ledger"
    shown = open_page("pages/data.py", {"corpus": "Cases", "data": "ledger"})
    assert "### 2 looks at Cases" in plain(shown) and "**10%**" in plain(shown)  # 1 - 0.95^2
    table = shown.dataframe[0].value
    assert table["Look"].tolist() == [2, 1] and table["Run"].tolist() == [second.run, first.run]
    assert table.loc[1, "P"] == LINK["P"] and second.digest[:16] in plain(shown)


def test_a_job_enters_its_look_also_when_nobody_sees_it(open_page, home, fresh):
    run = run_of(open_page(link=LINK))
    fresh.unlink()
    found = (home.results.get(path.stem) for path in home.results.folder.glob("comparison-*"))
    comparison = next(c for c in found if c.run == run)
    for _ in range(2):
        enter_look("comparison", comparison, home)
    assert [look.run for look in book_of(home).looks()] == [run]
    enter_look("map", object(), home)  # other work is no look


def test_an_empty_ledger_and_a_corpus_that_is_not_on_the_list(open_page):
    assert "its ledger is empty" in plain(open_page("pages/data.py", {"corpus": "Cases", "data": "ledger"}))
    page = open_page("pages/data.py", {"corpus": "../../etc", "data": "ledger"})
    assert "no corpus called '../../etc'" in page.error[0].value.replace("\\", "")


def test_a_damaged_notebook_is_told_and_nothing_else_is_lost(open_page, home, fresh):
    fresh.write_bytes(b"damaged" * 2000)
    page = open_page(link=LINK)
    (warning,) = page.main.warning
    assert "is not in the ledger" in warning.value and "is damaged" in warning.value and page.metric
    assert "Saved views cannot be listed" in plain(page)
    save_as(page, "In vain")
    assert any("is damaged" in error.value for error in page.sidebar.error)
    assert page.sidebar.text_input(key="save_view_as").value == "In vain"
    regions = open_page(PAGE, LINK)
    assert "is damaged" in plain(regions) and "**R1: " in plain(regions)
    ledger = open_page("pages/data.py", {"corpus": "Cases", "data": "ledger"})
    assert "is damaged" in ledger.error[0].value
    assert fresh.read_bytes() == b"damaged" * 2000
    fresh.unlink()  # moved away, as the sentence says: the look is entered when it is next seen
    open_page(link=LINK)
    assert len(book_of(home).looks()) == 1


def test_a_ledger_changed_by_hand_is_told(open_page, home, fresh):
    book_of(home).record(Look("2026-03-02T09:30:00Z", "comparison", "P", "Q", "line", "", "run", "data", "localize"))
    with closing(sqlite3.connect(fresh)) as db:
        db.execute("DROP TRIGGER looks_update")
        db.execute("UPDATE looks SET verdict = 'no_shift'")
        db.commit()
    page = open_page("pages/data.py", {"corpus": "Cases", "data": "ledger"})
    assert "Look 1 does not fit its digest" in page.error[0].value


# A real browser ------------------------------------------------------------------------------------------------------


@pytest.mark.browser
def test_two_browsers_saving_at_once_lose_nothing(visit, home):
    tabs = [visit("regions", LINK) for _ in "ab"]
    names = [f"<img src=x onerror=alert({i})> **{who}** www.evil.example 🚚" for i, who in enumerate(("Ada", "Bob"))]
    said = []
    for tab, name in zip(tabs, names, strict=True):
        tab.page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        expect(tab.page.get_by_label("Own name", exact=True)).to_be_visible(timeout=PATIENCE)
        tab.settle()
        tab.page.get_by_label("Own name", exact=True).fill(name)
        tab.page.get_by_label("Comment", exact=True).fill(f"{name}\nsecond line")
    for tab in tabs:  # neither waits for the other
        tab.page.get_by_role("button", name="Save the note").click(no_wait_after=True)
    outcome = "The note is saved|changed while you were writing"
    for tab in tabs:
        expect(tab.page.get_by_test_id("stAlert").filter(has_text=re.compile(outcome))).to_be_visible(timeout=PATIENCE)
    run = re.search(r"Run\s+([0-9a-f]{12})", tabs[0].page.get_by_test_id("stSidebar").inner_text())[1]
    history = book_of(home).history(run, 1)
    assert {(n.name, n.comment) for n in history} == {(name, f"{name}\nsecond line") for name in names}
    assert [n.aside for n in history] == [True, False]
    late = next(tab for tab in tabs if tab.page.get_by_text("changed while you were writing").count())
    first, second = (note.name.partition(" www")[0] for note in (history[1], history[0]))
    expect(late.page.get_by_test_id("stAlert").filter(has_text=first)).to_be_visible()  # both texts are there
    expect(late.page.get_by_label("Own name", exact=True)).to_have_value(history[0].name)
    late.page.get_by_role("button", name="Save the note").click()
    expect(late.page.get_by_text("The note is saved").first).to_be_visible(timeout=PATIENCE)
    expect(late.page.get_by_text(f"R1: {second}").first).to_be_visible(timeout=PATIENCE)  # as plain text
    harmful = late.page.get_by_test_id("stMain").locator("a[href*='//'][href*=evil], img[src=x]")
    assert harmful.count() == 0 and said == []


@pytest.mark.browser
def test_a_view_is_saved_and_opened_in_another_browser(visit, home):
    one = visit("calibration", LINK)
    expect(one.metric("Calibrated to Q")).to_be_visible(timeout=PATIENCE)
    one.settle()
    one.page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    for _ in range(3):  # 10 -> 8 -> 6 -> 5
        one.page.keyboard.press("ArrowLeft")
    one.page.wait_for_url(lambda url: "B=5" in url)
    one.settle()
    shown = one.metric("Calibrated to Q").inner_text()
    one.page.get_by_role("button", name="Save or share this view").click()
    expect(one.page.get_by_test_id("stCode")).to_contain_text("B=5", timeout=PATIENCE)  # moved after the page was drawn
    address = one.page.get_by_test_id("stCode").inner_text().strip()
    one.page.get_by_placeholder("Harbor: lorries in W12").fill("Clip at 5")
    one.page.get_by_role("button", name="Save", exact=True).click()
    expect(one.page.get_by_text("Saved as “Clip at 5”")).to_be_visible(timeout=PATIENCE)
    other = visit("", LINK)
    other.page.get_by_text(re.compile(r"Saved views \(\d+\)")).click(timeout=PATIENCE)
    other.page.get_by_test_id("stPageLink").get_by_text("Clip at 5").click()
    expect(other.metric("Calibrated to Q")).to_have_text(shown, timeout=PATIENCE)
    assert other.link == {k: v[0] for k, v in parse_qs(urlsplit(address).query).items()}
    assert other.page.url.split("?")[0] == address.split("?")[0]
