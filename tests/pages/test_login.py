"""The login in a real Chromium: a link, the way to the login service and back, the logout, and what goes wrong."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.pages.oidc import Provider
from tests.pages.visitor import ROOT, Server

pytestmark = pytest.mark.browser

PATIENCE = 60_000  # ms, on a busy machine
PAGES = ["", *sorted(path.stem for path in (ROOT / "pages").glob("*.py"))]
CHEAP = "corpus=none"  # a page past the gate that has nothing to work on


@pytest.fixture(scope="module")
def provider():
    with Provider() as one:
        yield one


@pytest.fixture(scope="module")
def server(provider, tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server"), provider.secrets()) as one:
        yield one
        assert "Traceback" not in one.log, one.log


@pytest.fixture
def browse(chromium, provider):
    """A fresh browser; afterwards: it asked no other host and complained about nothing."""
    provider.user, provider.fault = "Ada Lovelace", ""
    opened, hosts, errors = [], set(), []

    def new():
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        page.on("pageerror", lambda error: errors.append(str(error)))
        opened.append(context)
        return page

    yield new
    for context in opened:
        context.close()
    assert {host for host in hosts if host} <= {"127.0.0.1", "localhost"} and errors == []


def login_button(page):
    return page.get_by_role("button", name="Log in", exact=True)


def expect_closed(page) -> None:
    expect(login_button(page)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("heading", name="AVShift")).to_be_visible()
    sidebar = page.get_by_test_id("stSidebarUserContent")  # Streamlit may leave its empty frame standing
    expect(sidebar.get_by_text(re.compile(r"\S"))).to_have_count(0, timeout=PATIENCE)  # gone when it has run
    for name in ("stPageLink", "stDownloadButton"):
        expect(page.get_by_test_id(name)).to_have_count(0, timeout=PATIENCE)


def expect_open(page, name: str = "Ada Lovelace") -> None:
    expect(page.get_by_test_id("stSidebar").get_by_text(name, exact=True)).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_test_id("stPageLink").first).to_be_visible(timeout=PATIENCE)


def test_a_link_asks_for_a_login_leads_there_and_a_logout_closes_it(server, browse):
    page = browse()
    page.goto(f"{server.url}/calibration?{CHEAP}&B=5")
    expect_closed(page)
    login_button(page).click()
    expect_open(page)
    page.wait_for_url(lambda url: urlsplit(url).path == "/calibration")
    assert parse_qs(urlsplit(page.url).query) == {"corpus": ["none"], "B": ["5"]}
    page.reload()
    expect_open(page)
    second = page.context.new_page()  # another tab of the same browser is logged in as well
    second.goto(f"{server.url}/glossary?{CHEAP}")
    expect_open(second)
    page.get_by_role("button", name="Log out").click()
    expect_closed(page)
    second.get_by_test_id("stPageLink").first.get_by_role("link").click()  # and logged out as well
    expect_closed(second)
    page.goto(f"{server.url}/calibration?{CHEAP}")
    expect_closed(page)
    page.go_back()
    expect_closed(page)


def test_every_page_is_open_to_members_and_closed_to_strangers(server, browse, provider):
    provider.user = "Grace Hopper"
    member, stranger = browse(), browse()
    member.goto(f"{server.url}/?{CHEAP}")
    login_button(member).click()
    expect_open(member, "Grace Hopper")
    for name in PAGES:
        member.goto(f"{server.url}/{name}?{CHEAP}")
        expect_open(member, "Grace Hopper")
        stranger.goto(f"{server.url}/{name}?{CHEAP}")
        expect_closed(stranger)


def test_a_refused_login_is_a_sentence_and_may_be_tried_again(server, browse, provider):
    page = browse()
    provider.fault = "refuse"
    page.goto(f"{server.url}/glossary?{CHEAP}")
    login_button(page).click()
    expect(page.get_by_text("The last login was not completed.")).to_be_visible(timeout=PATIENCE)
    expect_closed(page)
    provider.fault = ""
    login_button(page).click()
    expect_open(page)
    page.wait_for_url(lambda url: urlsplit(url).path == "/glossary")


def test_a_login_service_that_is_down_is_a_sentence(browse, tmp_path):
    with Provider() as gone:
        secrets = gone.secrets()
    with Server(tmp_path, secrets) as server:
        page = browse()
        page.goto(f"{server.url}/regions")
        login_button(page).click()
        expect(page.get_by_text("does not answer. Please try again in a minute.")).to_be_visible(timeout=PATIENCE)
        expect_closed(page)
