"""Files behind the login too: what Streamlit hands out beside its pages, only with the cookie of a login.

    app = st.App("app.py", middleware=[Middleware(MembersOnly)])     # serve.py

Streamlit gives a file for download to whoever knows its address, takes uploads from every open page, also from the one
that asks for the login, and tells everybody its statistics. A login in the pages alone does not change that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit.auth_util import get_cookie_with_chunks, get_origin_from_redirect_uri
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

from pages.common.auth import LoginError, is_member, login_settings

COOKIE = "_streamlit_user"
BEHIND = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics", "/_stcore/agent/")

_in_place = False


def in_place() -> bool:
    """Whether this server was started with the door."""
    return _in_place


class MembersOnly:
    """ASGI middleware; lets everything through where no login is set up."""

    def __init__(self, app) -> None:
        global _in_place
        self.app = app
        _in_place = True

    async def __call__(self, scope, receive, send) -> None:
        # Anywhere in the path: a server may run under a base path, and no page has such a name.
        closed = scope["type"] == "http" and any(part in scope["path"] for part in BEHIND)
        if closed and not _may_pass(Request(scope).cookies):
            await PlainTextResponse("Please log in.", 403, {"Cache-Control": "no-store"})(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _may_pass(cookies: Mapping[str, str]) -> bool:
    try:
        return login_settings() is None or is_member(claims_of(cookies))
    except LoginError:
        return False


def claims_of(cookies: Mapping[str, str]) -> dict[str, Any]:
    """The claims of the login whose signed cookie is among these; none without one, or with that of another address."""

    def signed(name: str) -> bytes | None:
        return decode_signed_value(get_cookie_secret(), name, cookies.get(name, ""))

    try:
        claims = json.loads(get_cookie_with_chunks(signed, COOKIE) or b"{}")
    except ValueError:
        return {}
    ours = isinstance(claims, dict) and claims.get("origin") == get_origin_from_redirect_uri()
    return claims if ours else {}
