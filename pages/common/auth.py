"""Whether a login is asked for, and who has one: the settings of [auth] and the claims of a login.

Streamlit itself takes a secrets file that it cannot read for one that is not there, and a missing cookie secret for a
wish for a random one. Here each of these is a `LoginError`: in doubt nobody enters.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config
from streamlit.errors import StreamlitSecretNotFoundError

from avshift_core import AVShiftError

UNNAMED = "default"  # Streamlit's name for the provider that stands in [auth] itself
PROVIDER = ("client_id", "client_secret", "server_metadata_url")
SHORTEST_SECRET = 32  # characters; whoever guesses the secret can sign a login of his own
HERE = ("localhost", "127.0.0.1", "::1")
COOKIE_S = 31 * 86400.0  # Streamlit takes the cookie of a login for 30 days and one more

_seen = False  # a login that was on stays on until the server ends, also while its secrets file is being replaced


class LoginError(AVShiftError):
    """A login is asked for but cannot work; closed until whoever runs the server has mended it."""


@dataclass(frozen=True)
class Login:
    """The login services by name, each with the address of its OpenID Connect description."""

    services: Mapping[str, str]


def login_settings() -> Login | None:
    """None where no login is asked for; `LoginError` where one is, was or may be, but the settings are not whole."""
    global _seen
    secrets = _secrets()
    names = [name for name in secrets if name.strip().lower() == "auth"]
    if not names:
        if _seen:
            raise LoginError("The section [auth] has gone from the secrets file while the server was running; put it "
                             "back, or restart the server.")
        return None
    _seen = True
    if names != ["auth"]:
        raise LoginError("The section of the login in the secrets file must be written [auth], in small letters.")
    return Login(_services(secrets["auth"]))


def _secrets() -> dict:
    paths = st.get_option("secrets.files")
    there = [os.path.exists(path) for path in paths]
    if config.is_manually_set("secrets.files") and not all(there):
        name = os.path.basename(paths[there.index(False)])
        raise LoginError(f"The secrets file {name!r} is named in the settings of the server but is not there.")
    try:
        return st.secrets.to_dict()
    except StreamlitSecretNotFoundError:
        if not any(there):
            return {}
        raise LoginError("The secrets file cannot be read: it is not valid TOML.") from None
    except (OSError, UnicodeError):
        raise LoginError("The secrets file cannot be read.") from None


def _services(auth) -> dict[str, str]:
    if not isinstance(auth, Mapping):
        raise LoginError("[auth] in the secrets file must be a section with settings of its own.")
    _need(auth, ("redirect_uri", "cookie_secret"), "[auth]")
    _need_address(auth["redirect_uri"], "redirect_uri")
    if not urlsplit(auth["redirect_uri"]).path.endswith("/oauth2callback"):
        raise LoginError("`redirect_uri` in [auth] must be the address of this dashboard, ending in /oauth2callback.")
    if len(auth["cookie_secret"]) < SHORTEST_SECRET:
        raise LoginError(f"`cookie_secret` in [auth] has {len(auth['cookie_secret'])} characters; at least "
                         f"{SHORTEST_SECRET} random ones are needed.")
    found = {name: part for name, part in auth.items() if isinstance(part, Mapping) and name != "client_kwargs"}
    if not found or any(key in auth for key in PROVIDER):
        found = {UNNAMED: auth, **found}
    for name, part in found.items():
        where = "[auth]" if part is auth else f"[auth.{name}]"
        if "_" in name:
            raise LoginError(f"{where} in the secrets file must have a name without an underscore.")
        _need(part, PROVIDER, where)
        _need_address(part["server_metadata_url"], "server_metadata_url")
    return {name: part["server_metadata_url"] for name, part in found.items()}


def _need(section: Mapping, keys: tuple[str, ...], where: str) -> None:
    bad = [f"`{key}`" for key in keys if not (isinstance(section.get(key), str) and section[key].strip())]
    if bad:
        raise LoginError(f"{where} in the secrets file lacks {', '.join(bad)}.")


def _need_address(text: str, key: str) -> None:
    try:
        url = urlsplit(text)
        whole, private = bool(url.hostname), url.scheme == "https" or (url.scheme == "http" and url.hostname in HERE)
    except ValueError:
        whole = private = False
    if not (whole and private):
        raise LoginError(f"`{key}` in the secrets file must be an address that begins with https:// (http:// only on "
                         "localhost).")


class Recent:
    """A memory that forgets: at most `size` entries, none older than `age_s`. Shared by all sessions."""

    def __init__(self, size: int, age_s: float) -> None:
        self._size, self._age_s = size, age_s
        self._entries: OrderedDict[str, tuple[float, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, value: Any) -> None:
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = time.monotonic(), value
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def get(self, key: str | None) -> Any:
        with self._lock:
            since, value = self._entries.get(key, (0.0, None))
            return value if value is not None and time.monotonic() - since < self._age_s else None

    def pop(self, key: str | None) -> Any:
        value = self.get(key)
        with self._lock:
            self._entries.pop(key, None)
        return value


_ended = Recent(100_000, COOKIE_S)


def is_member(claims: Mapping[str, Any]) -> bool:
    """Whether these claims are those of a login that has not been ended.

    Only a cookie that Streamlit signed holds a true bool; `server.trustedUserHeaders` fills in text.
    """
    return claims.get("is_logged_in") is True and not _ended.get(_login_id(claims))


def end_login(claims: Mapping[str, Any]) -> None:
    """A logout holds for every tab and every copy of the cookie, not only where the button was pressed."""
    name = _login_id(claims)
    if name is not None:
        _ended.put(name, True)


def _login_id(claims: Mapping[str, Any]) -> str | None:
    """One login of one person; None where the claims do not tell one login from the next."""
    if not (claims.get("nonce") or claims.get("iat")):
        return None
    return json.dumps([str(claims.get(key)) for key in ("iss", "sub", "nonce", "iat")])
