"""The settings of the login: off without [auth], on with a whole one, and closed with anything in between."""

import pytest
import streamlit as st
from streamlit import config
from streamlit.runtime.secrets import Secrets
from streamlit.testing.v1 import AppTest

from pages.common import auth, door
from pages.common.auth import LoginError, Recent, end_login, is_member, login_settings

WHOLE = {
    "redirect_uri": "http://localhost:8501/oauth2callback", "cookie_secret": "0123456789abcdef" * 4,
    "client_id": "avshift", "client_secret": "x",
    "server_metadata_url": "https://login.example.org/.well-known/openid-configuration",
}
ADA = {"is_logged_in": True, "iss": "https://login.example.org", "sub": "1", "nonce": "n1", "iat": 1, "name": "Ada"}


def toml(**changes) -> str:
    settings = {**WHOLE, **changes}
    return "[auth]\n" + "".join(f'{key} = "{value}"\n' for key, value in settings.items() if value is not None)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Secrets where Streamlit looks for them: .streamlit/secrets.toml in the working directory."""
    config.get_config_options()  # of the project, before the working directory is another
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(auth, "_seen", False)
    monkeypatch.setattr(Secrets, "_maybe_install_file_watchers", lambda self: None)
    (tmp_path / ".streamlit").mkdir()

    def now(content: str | bytes | None) -> None:
        path = tmp_path / ".streamlit" / "secrets.toml"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr(st, "secrets", Secrets())

    return now


@pytest.mark.parametrize("content", [None, "", "[database]\nuser = 'x'\n"])
def test_without_a_section_auth_no_login_is_asked_for(write, content):
    write(content)
    assert login_settings() is None


def test_a_whole_section_switches_the_login_on(write):
    write(toml())
    assert login_settings().services == {"default": WHOLE["server_metadata_url"]}
    keys = ("client_id", "client_secret", "server_metadata_url")
    named = "".join(f'{key} = "{WHOLE[key]}"\n' for key in keys)
    write(toml(**dict.fromkeys(keys)) + f"[auth.okta]\n{named}[auth.google]\n{named}")
    assert list(login_settings().services) == ["okta", "google"]


@pytest.mark.parametrize("content, sentence", [
    ("[auth\n", "not valid TOML"),
    (b"[auth]\ncookie_secret = '\xff'\n", "cannot be read"),
    ("[auth]\n", "lacks `redirect_uri`, `cookie_secret`"),
    ("auth = true\n", "section with settings"),
    ("[[auth]]\nclient_id = 'x'\n", "section with settings"),
    (toml().replace("[auth]", "[Auth]"), "small letters"),
    (toml(cookie_secret=None), "lacks `cookie_secret`"),
    (toml(cookie_secret=" " * 40), "lacks `cookie_secret`"),
    (toml().replace(f'"{WHOLE["cookie_secret"]}"', "7"), "lacks `cookie_secret`"),
    (toml(cookie_secret="xxx"), "has 3 characters; at least 32"),
    (toml(redirect_uri=None), "lacks `redirect_uri`"),
    (toml(redirect_uri="http://localhost:8501/"), "ending in /oauth2callback"),
    (toml(redirect_uri="http://avshift.example.org/oauth2callback"), "begins with https://"),
    (toml(redirect_uri="/oauth2callback"), "begins with https://"),
    (toml(redirect_uri="http://[::1/oauth2callback"), "begins with https://"),
    (toml(client_id=None), r"[auth] in the secrets file lacks `client_id`"),
    (toml(client_secret=""), "lacks `client_secret`"),
    (toml(server_metadata_url=None), "lacks `server_metadata_url`"),
    (toml(server_metadata_url="http://login.example.org/x"), "begins with https://"),
    (toml() + "[auth.okta]\nclient_id = 'x'\n", "[auth.okta] in the secrets file lacks `client_secret`"),
    (toml() + "[auth.my_okta]\nclient_id = 'x'\n", "without an underscore"),
])
def test_a_damaged_section_closes_with_a_sentence(write, content, sentence):
    write(content)
    with pytest.raises(LoginError) as error:
        login_settings()
    assert sentence in str(error.value)
    assert WHOLE["cookie_secret"] not in str(error.value)


@pytest.mark.parametrize("after", [None, "", "[database]\nuser = 'x'\n", "[auth]\n"])
def test_a_login_that_was_on_does_not_open_when_its_settings_go(write, after):
    write(toml())
    assert login_settings()
    write(after)
    with pytest.raises(LoginError):
        login_settings()


def test_a_secrets_file_that_was_named_must_be_there(write, tmp_path, monkeypatch):
    write(None)
    named = [str(tmp_path / "vault" / "login.toml")]
    monkeypatch.setattr(st, "get_option", {"secrets.files": named}.get)
    monkeypatch.setattr(config, "is_manually_set", lambda option: option == "secrets.files")
    with pytest.raises(LoginError, match=r"'login\.toml' is named in the settings of the server but is not there"):
        login_settings()


@pytest.mark.parametrize("claims, member", [
    (ADA, True), ({}, False), ({"is_logged_in": False}, False), ({"is_logged_in": "True"}, False),
    ({"is_logged_in": 1}, False), ({"email": "ada@example.org"}, False),
])
def test_only_a_true_bool_is_a_login(claims, member):
    assert is_member(claims) is member


def test_a_logout_ends_one_login_and_no_other(monkeypatch):
    monkeypatch.setattr(auth, "_ended", Recent(10, 60))
    end_login(ADA)
    assert not is_member(ADA)
    assert is_member({**ADA, "nonce": "n2"}) and is_member({**ADA, "sub": "2"})
    bare = {"is_logged_in": True, "sub": "3"}  # nothing tells one login from the next: the cookie's end must do
    end_login(bare)
    assert is_member(bare)


def test_the_memory_is_bounded_and_forgets(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(auth.time, "monotonic", lambda: clock[0])
    memory = Recent(2, 10)
    for name in "abc":
        memory.put(name, name.upper())
    assert [memory.get(name) for name in "abc"] == [None, "B", "C"]
    assert memory.pop("b") == "B" and memory.get("b") is None and memory.get(None) is None
    clock[0] = 10.0
    assert memory.get("c") is None


def page():
    import streamlit as st

    from pages.common.gate import require_login

    st.set_page_config(page_title="x")
    require_login()
    st.write("behind the gate")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(auth, "_seen", False)
    monkeypatch.setattr(auth, "_ended", Recent(10, 60))
    monkeypatch.setattr(door, "_in_place", True)

    def now(settings: dict | None, user: dict | None = None, press: str = "") -> AppTest:
        app = AppTest.from_function(page, default_timeout=30)
        if settings is not None:
            app.secrets["auth"] = settings
        app.user = user or {}
        app.run()
        if press:
            next(button for button in app.button if button.label == press).click().run()
        assert not app.exception
        return app

    return now


def drawn(app) -> list[str]:
    return [*(t.value for t in app.title), *(m.value for m in app.markdown), *(e.value for e in app.error)]


def test_the_gate_draws_nothing_where_no_login_is_set_up(run):
    app = run(None)
    assert drawn(app) == ["behind the gate"] and not app.button and not app.sidebar.children


def test_the_gate_asks_and_stops(run):
    app = run(WHOLE)
    assert drawn(app)[0] == "AVShift" and "log in" in drawn(app)[1] and len(drawn(app)) == 2
    assert [button.label for button in app.button] == ["Log in"]


def test_members_pass_and_see_their_name_as_plain_text(run):
    app = run(WHOLE, {**ADA, "name": "<b>**Ada**</b> $x$"})
    assert drawn(app) == ["behind the gate"]
    assert [text.value for text in app.sidebar.text] == ["<b>**Ada**</b> $x$"]
    assert [button.label for button in app.sidebar.button] == ["Log out"]


def test_a_logout_closes_the_page_at_once_and_the_login_for_good(run):
    app = run(WHOLE, ADA, press="Log out")
    assert "behind the gate" not in drawn(app)
    assert "behind the gate" not in drawn(run(WHOLE, ADA))
    assert "behind the gate" in drawn(run(WHOLE, {**ADA, "nonce": "n2"}))


@pytest.mark.parametrize("user", [{}, {"email": "ada@example.org"}, {"is_logged_in": "true"}])
def test_a_damaged_login_is_closed_for_everybody(run, user):
    for who in (user, ADA):
        app = run({**WHOLE, "cookie_secret": "short"}, who)
        assert len(app.error) == 1 and "nobody can enter" in app.error[0].value and not app.button
        assert "behind the gate" not in drawn(app)


def test_a_login_without_the_door_for_files_is_closed(run, monkeypatch):
    monkeypatch.setattr(door, "_in_place", False)
    app = run(WHOLE, ADA)
    assert "serve.py" in app.error[0].value and "behind the gate" not in drawn(app)


def test_without_a_login_the_door_is_not_needed(run, monkeypatch):
    monkeypatch.setattr(door, "_in_place", False)
    assert drawn(run(None)) == ["behind the gate"]


def test_several_services_have_a_button_each(run):
    service = {key: WHOLE[key] for key in ("client_id", "client_secret", "server_metadata_url")}
    shared = {key: WHOLE[key] for key in ("redirect_uri", "cookie_secret")}
    app = run({**shared, "okta": service, "google": service})
    assert [button.label for button in app.button] == ["Log in with Okta", "Log in with Google"]


def test_a_service_that_is_down_gives_a_sentence(run):
    app = run({**WHOLE, "server_metadata_url": "http://127.0.0.1:9/x"}, press="Log in")
    assert app.error[0].value == "The login service 127.0.0.1 does not answer. Please try again in a minute."
    assert [button.label for button in app.button] == ["Log in"]
