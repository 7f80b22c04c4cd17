"""The login against a real server and a real provider, down to the messages of a page: nothing opens without it."""

import json
import time
from urllib.parse import urlsplit

import httpx2
import pytest
from itsdangerous import URLSafeTimedSerializer
from itsdangerous.timed import TimestampSigner

from tests.pages.oidc import COOKIE_SECRET, FAULTS, Provider
from tests.pages.visitor import ROOT, Server, Visitor, small_app

pytestmark = pytest.mark.slow

PAGES = ["", *sorted(path.stem for path in (ROOT / "pages").glob("*.py"))]
ASKS = ["heading", "markdown", "button"]
USER, TOKENS = "_streamlit_user", "_streamlit_user_tokens"
CHEAP = "corpus=none"  # past the gate, but no work to do: the page says that there is no such corpus


@pytest.fixture(scope="module")
def provider():
    with Provider() as one:
        yield one


@pytest.fixture(autouse=True)
def well_behaved(provider):
    provider.user, provider.fault = "Ada Lovelace", ""


@pytest.fixture(scope="module")
def dashboard(provider, tmp_path_factory):
    with Server(tmp_path_factory.mktemp("dashboard"), provider.secrets()) as server:
        yield server


@pytest.fixture(scope="module")
def small(provider, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    with Server(folder, provider.secrets(), root=small_app(folder)) as server:
        yield server


@pytest.fixture
def visitor():
    opened = []

    def now(server, cookies=None) -> Visitor:
        opened.append(Visitor(server, cookies))
        return opened[-1]

    yield now
    for one in opened:
        one.__exit__()


def asks(seen) -> bool:
    """The page that asks for the login, and nothing else at all."""
    return [kind for kind in seen.elements if kind != "alert"] == ASKS and list(seen.buttons) == ["Log in"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page or "start")
def test_no_page_opens_and_no_job_starts_on_a_cold_server(provider, tmp_path, visitor, page):
    with Server(tmp_path, provider.secrets()) as server:
        seen = visitor(server).open(page, "P=harbor&scenario=1")
        assert asks(seen), seen.text
        assert "/media/" not in str(seen.messages)
        assert server.children() == [] and not server.home.exists()
        assert "Traceback" not in server.log, server.log


def test_no_page_opens_beside_a_member_and_each_opens_for_one(dashboard, visitor):
    member, stranger = visitor(dashboard), visitor(dashboard)
    member.log_in()
    for page in PAGES:
        opened = member.open(page, CHEAP)
        assert "Log out" in opened.buttons and "Ada Lovelace" in opened.text, opened.text
        assert "page_link" in opened.elements
        assert asks(stranger.open(page, CHEAP))
        assert asks(stranger.rerun())


def test_a_member_starts_work_where_a_stranger_starts_none(provider, tmp_path, visitor):
    with Server(tmp_path, provider.secrets()) as server:
        visitor(server).open()
        assert server.children() == [] and not server.home.exists()
        visitor(server).log_in()
        assert server.home.exists() and server.children()


def test_a_logout_holds_in_other_tabs_and_for_copies_of_the_cookie(small, visitor):
    one = visitor(small)
    assert "This is app" in one.log_in().text
    copy, other_tab = visitor(small, one.cookies), visitor(small, one.cookies)
    assert "This is pages/two" in other_tab.open("two").text
    address = _file(one.open())
    gone = one.rerun(press=one.open().buttons["Log out"])
    assert "This is app" not in gone.text and urlsplit(gone.redirect).path == "/auth/logout"
    assert one.http.get(gone.redirect, follow_redirects=True).status_code == 200
    assert USER not in one.cookies and asks(one.open()) and asks(one.open("two"))
    assert asks(other_tab.rerun()) and asks(copy.open()) and asks(copy.open("two"))
    assert copy.http.get(address).status_code == 403
    assert "This is app" in one.log_in().text, "the same person may come back"


def test_the_login_leads_back_to_the_link(small, visitor):
    seen = visitor(small).log_in("two", "P=harbor&B=5")
    assert "This is pages/two with P=harbor&B=5" in seen.text
    assert "This is app with B=7" in visitor(small).log_in("", "B=7").text
    one, two = visitor(small), visitor(small)
    one.rerun(press=one.open("two").buttons["Log in"])
    assert "This is app" in two.log_in().text, "the way back is that of the browser which asked"


def _file(seen) -> str:
    return next(m.delta.new_element.download_button.url for m in seen.messages
                if m.delta.new_element.WhichOneof("type") == "download_button")


def test_files_uploads_and_statistics_are_behind_the_login_too(small, visitor):
    member, stranger = visitor(small), visitor(small)
    address = _file(member.log_in())
    assert member.http.get(address).text == "the rows of app"
    closed = (address, f"{address}?x=1", address.replace("media", "%6dedia"), "/_stcore/metrics", "/_stcore/metrics/",
              "/_stcore/agent/openapi.json", "/_stcore/agent/interact")
    assert [stranger.http.get(way).status_code for way in closed] == [403] * len(closed)
    assert stranger.http.head(address).status_code == 403
    assert "the rows" not in stranger.http.get(f"/{address}").text + stranger.http.get(f"/x/..{address}").text
    assert member.http.get("/_stcore/metrics").status_code == 200 == stranger.http.get("/_stcore/health").status_code
    assert [_give(one, one.open()) for one in (member, stranger)] == [204, 403]


def _give(one: Visitor, seen) -> int:
    session = next(m.new_session.initialize.session_id for m in seen.messages if m.WhichOneof("type") == "new_session")
    return one.http.put(f"/_stcore/upload_file/{session}/1", files={"file": b"x"},
                        headers={"X-Xsrftoken": one.cookies["_streamlit_xsrf"]}).status_code


def test_without_a_login_everything_is_open(provider, tmp_path, visitor):
    for script in ("serve.py", "app.py"):
        folder = tmp_path / script
        folder.mkdir()
        with Server(folder, None, script, small_app(folder)) as server:
            seen = visitor(server).open("two")
            assert seen.elements == ["text", "download_button", "file_uploader"]
            assert visitor(server).http.get(_file(seen)).text == "the rows of pages/two"


def signed(claims: str, secret: str = COOKIE_SECRET, name: str = USER, age_s: float = 0.0) -> str:
    class Past(TimestampSigner):
        def get_timestamp(self) -> int:
            return int(time.time() - age_s)

    return URLSafeTimedSerializer(secret, salt=name, signer=Past).dumps(claims)


def test_a_forged_an_old_or_a_foreign_cookie_does_not_open(small, visitor):
    def tries(cookie: str, origin: str | None = None) -> tuple[bool, int]:
        one = visitor(small, {USER: cookie})
        return "This is app" in one.open(origin=origin).text, one.http.get("/_stcore/metrics").status_code

    claims = {"is_logged_in": True, "sub": "1", "nonce": "forged", "origin": small.url, "provider": "default"}
    good = json.dumps(claims)
    assert tries(signed(good)) == (True, 200), "the cookie is made as Streamlit makes it"
    closed = (False, 403)
    assert tries(signed(good, secret="another" * 8)) == closed
    assert tries(signed(good, name=TOKENS)) == closed
    assert tries(signed(good, age_s=32 * 86400)) == closed
    assert tries(signed(good)[::-1]) == closed and tries(signed(good).replace(".", ".A", 1)) == closed
    assert tries(good.replace('"', "'")) == closed
    assert tries(signed(json.dumps({**claims, "origin": "https://evil.example"}))) == closed
    assert tries(signed(json.dumps({**claims, "is_logged_in": "true"}))) == closed
    assert tries(signed("[1]")) == closed and tries(signed("chunks-2")) == closed


def test_a_cookie_without_the_xsrf_token_of_the_page_does_not_open(small, visitor):
    one = visitor(small)
    one.log_in()
    one.http.cookies.delete("_streamlit_xsrf")
    assert asks(one.open())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_login_that_fails_leaves_it_closed_and_says_so(small, visitor, provider, fault):
    provider.fault = fault
    one = visitor(small)
    seen = one.log_in("two", "B=5")
    assert asks(seen) and "The last login was not completed" in seen.text
    assert USER not in one.cookies and asks(one.open("two"))
    provider.fault = ""
    assert "This is pages/two" in one.log_in().text, "the next try leads to the first link"


def test_a_provider_that_is_down_gives_a_sentence(tmp_path, visitor):
    with Provider() as gone:
        secrets = gone.secrets()
    with Server(tmp_path, secrets, root=small_app(tmp_path)) as server:
        one = visitor(server)
        seen = one.rerun(press=one.open().buttons["Log in"])
        assert asks(seen) and "does not answer. Please try again" in seen.text and not seen.redirect


@pytest.mark.parametrize("change", ["broken", "gone"])
def test_damaged_secrets_close_a_running_server(provider, tmp_path, visitor, change):
    secrets = {"broken": "[auth\n", "scalar": "auth = true\n", "gone": provider.secrets()}[change]
    with Server(tmp_path, secrets, root=small_app(tmp_path)) as server:
        if change == "gone":
            assert asks(visitor(server).open())
            server.secrets.unlink()
        try:
            seen = visitor(server).open()
        except Exception as error:
            assert change == "scalar", error  # Streamlit itself ends the connection
            return
        assert seen.elements == ["heading", "alert"] and "nobody can enter" in seen.text, seen.text
        assert visitor(server).http.get("/_stcore/metrics").status_code == 403


def test_a_server_without_the_door_stays_closed(provider, tmp_path, visitor):
    with Server(tmp_path, provider.secrets(), "app.py", small_app(tmp_path)) as server:
        seen = visitor(server).open()
        assert seen.elements == ["heading", "alert"] and "serve.py" in seen.text


def test_a_session_cannot_be_taken_over_by_its_name(small, visitor):
    member, stranger = visitor(small), visitor(small)
    session = next(m.new_session.initialize.session_id for m in member.log_in().messages
                   if m.WhichOneof("type") == "new_session")
    assert asks(stranger.open(session=session))
    assert "This is app" in member.rerun().text


def test_the_provider_is_a_strict_one(provider):
    """A provider that took everything would prove nothing."""
    form = {"grant_type": "authorization_code", "code": "x", "redirect_uri": "http://127.0.0.1/oauth2callback",
            "client_id": provider.client_id, "client_secret": provider.client_secret}
    assert httpx2.post(f"{provider.issuer}/token", data=form).status_code == 400
    ask = {"client_id": provider.client_id, "response_type": "code", "scope": "openid", "state": "s", "nonce": "n",
           "redirect_uri": form["redirect_uri"], "code_challenge_method": "S256", "code_challenge": "another"}
    assert httpx2.get(f"{provider.issuer}/authorize", params={**ask, "client_id": "x"}).status_code == 400
    code = httpx2.get(f"{provider.issuer}/authorize", params=ask).headers["Location"].split("code=")[1].split("&")[0]
    assert httpx2.post(f"{provider.issuer}/token", data={**form, "code": code, "code_verifier": "v"}).status_code == 400
