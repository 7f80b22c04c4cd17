"""Who may look: with a section [auth] in Streamlit's secrets every page asks for a login (OpenID Connect).

    require_login()     # the first call of every page after st.set_page_config; off without [auth]

Streamlit reads the signed cookie of a login when a browser connects, and brings everybody back to the start page after
logging in. Here is what it leaves to the app: the page that asks, the way back to the link that was opened, a sentence
when a login fails, and a logout that also holds in other tabs and for copies of the cookie.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import streamlit as st
from streamlit.errors import StreamlitAuthError
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from pages.common import door
from pages.common.auth import UNNAMED, Login, LoginError, Recent, end_login, is_member, login_settings

START = "app.py"
PAGES = Path(__file__).parents[1]
ASK_S = 5.0  # for a first answer of the login service
BACK_S = 15 * 60.0  # a login takes no longer
LONGEST_LINK = 8000  # characters


_under_way = Recent(1000, BACK_S)  # browser -> (page, query) it wanted when it left for the login service


def require_login() -> None:
    """Go on for members, and for everybody where no login is set up; else ask for the login and stop the page."""
    try:
        login = login_settings()
        if login is not None and not door.in_place():
            raise LoginError("The login needs the dashboard to be started with `streamlit run serve.py`; started in "
                             "another way, files for download would be open to everybody.")
    except LoginError as error:
        _closed(f"The login is not set up correctly, so nobody can enter. {error}")
    if login is None:
        return
    if not is_member(st.user):
        _ask(login)
    _back_to_where_it_began()
    _member_line()


def _closed(sentence: str) -> NoReturn:
    st.title("AVShift")
    st.error(sentence, icon=":material/lock:")
    st.stop()


def _ask(login: Login) -> NoReturn:
    st.title("AVShift")
    st.write("This dashboard is open to people with an account. Please log in to go on.")
    place = st.container()
    if _under_way.get(_browser()) and not st.session_state.get("login_started"):
        place.warning("The last login was not completed. Please try again; if it fails again, tell whoever runs this "
                      "dashboard: the log of the server has the reason.", icon=":material/warning:")
    for name, address in login.services.items():
        label = "Log in" if name == UNNAMED else f"Log in with {name.capitalize()}"
        if st.button(label, key=f"login-{name}", type="primary"):
            _start(name, address, place)
    st.stop()


def _start(name: str, address: str, place) -> None:
    """Send the browser to the login service, once it is known to answer: Streamlit's own error page is a dead end."""
    trouble = _trouble_with(address)
    if trouble:
        place.error(trouble, icon=":material/cloud_off:")
        return
    _remember_the_way()
    try:
        st.login(None if name == UNNAMED else name)
    except StreamlitAuthError:
        place.error("The login could not be started. Please tell whoever runs this dashboard.", icon=":material/lock:")


def _trouble_with(address: str) -> str:
    import httpx2  # what Streamlit's login uses too: the same certificates and proxies

    host = urlsplit(address).hostname
    try:
        answer = httpx2.get(address, timeout=ASK_S)
        answer.raise_for_status()
        if "authorization_endpoint" in answer.json():
            return ""
    except httpx2.TransportError:
        return f"The login service {host} does not answer. Please try again in a minute."
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        pass
    return f"The login service {host} does not answer as it should. Please tell whoever runs this dashboard."


def _browser() -> str | None:
    """What stays the same while a browser is sent to the login service and back: its XSRF token, unmasked."""
    token, since = decode_xsrf_token_string(st.context.cookies.get("_streamlit_xsrf", ""))
    return f"{token.hex()}|{since}" if token else None


def _remember_the_way() -> None:
    st.session_state["login_started"] = True
    browser, here = _browser(), (_page(), st.query_params.to_dict())
    if browser is None or len(str(here)) > LONGEST_LINK:
        return
    if here == (START, {}):  # where a failed login ends: the next one still leads to the first link
        here = _under_way.get(browser) or here
    _under_way.put(browser, here)


def _page() -> str:
    name = urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[2]
    return f"pages/{name}.py" if name in {path.stem for path in PAGES.glob("*.py")} else START


def _back_to_where_it_began() -> None:
    wanted = _under_way.pop(_browser())
    here = _page(), st.query_params.to_dict()
    if wanted and here == (START, {}) and wanted != here:
        page, query = wanted
        st.switch_page(page, query_params=query)


def _member_line() -> None:
    claims = st.user.to_dict()
    name = next((str(claims[key]) for key in ("name", "email", "preferred_username") if claims.get(key)), "Logged in")
    name = " ".join(name.split())
    with st.sidebar.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.text(name if len(name) <= 40 else f"{name[:39]}…", width="content")
        if st.button("Log out", key="logout", type="tertiary"):
            end_login(claims)
            st.logout()
            st.stop()
