"""A small OpenID Connect provider on this machine: code flow with PKCE, signed identity tokens, planned faults.

    with Provider() as provider:
        provider.metadata_url, provider.client_id, provider.client_secret
        provider.user = "Grace Hopper"      # who is logged in from now on, without being asked
        provider.fault = "refuse"           # what goes wrong from now on; see FAULTS
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

FAULTS = ("refuse", "wrong key", "wrong nonce", "wrong audience", "expired", "no token")
TOKEN_S = 300
COOKIE_SECRET = secrets.token_hex(32)


class Provider(ThreadingHTTPServer):
    """Answers on a free port of the loopback until the `with` block ends."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.metadata_url = f"{self.issuer}/.well-known/openid-configuration"
        self.client_id, self.client_secret = "avshift", secrets.token_hex(16)
        self.key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self.codes: dict[str, dict[str, str]] = {}
        self.seen: list[str] = []  # paths asked for, in order
        self.user, self.fault = "Ada Lovelace", ""

    def secrets(self, **changes: str | None) -> str:
        """A secrets.toml for this provider; `None` leaves a setting out. Streamlit fills in {port}."""
        settings = {"redirect_uri": "http://127.0.0.1:{port}/oauth2callback", "cookie_secret": COOKIE_SECRET,
                    "client_id": self.client_id, "client_secret": self.client_secret,
                    "server_metadata_url": self.metadata_url, **changes}
        return "[auth]\n" + "".join(f'{key} = "{value}"\n' for key, value in settings.items() if value is not None)

    def __enter__(self) -> Provider:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.shutdown()
        self.server_close()

    def metadata(self) -> dict:
        return {
            "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token", "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo", "end_session_endpoint": f"{self.issuer}/end",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"], "code_challenge_methods_supported": ["S256"],
        }

    def claims(self) -> dict:
        return {"sub": hashlib.sha256(self.user.encode()).hexdigest()[:16], "name": self.user,
                "email": f"{self.user.split()[0].lower()}@example.org"}

    def id_token(self, nonce: str) -> str:
        now = int(time.time()) - (3600 if self.fault == "expired" else 0)
        claims = {**self.claims(), "iss": self.issuer, "iat": now, "exp": now + TOKEN_S,
                  "aud": "another" if self.fault == "wrong audience" else self.client_id,
                  "nonce": "another" if self.fault == "wrong nonce" else nonce}
        key = RSAKey.generate_key(2048, {"kid": "1"}) if self.fault == "wrong key" else self.key
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, key)


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.seen.append(url.path)
        query = dict(parse_qsl(url.query))
        match url.path:
            case "/.well-known/openid-configuration":
                self._json(self.server.metadata())
            case "/jwks":
                self._json({"keys": [self.server.key.as_dict(private=False)]})
            case "/userinfo":
                self._json(self.server.claims())
            case "/authorize":
                self._authorize(query)
            case "/end":
                self._go(query["post_logout_redirect_uri"])
            case _:
                self.send_error(404)

    def do_POST(self) -> None:
        self.server.seen.append(self.path)
        form = {k: v[0] for k, v in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()}
        asked = self.server.codes.pop(form.get("code", ""), None)  # a code is good once
        if self.path != "/token" or not self._is_client(form) or asked is None or not _proves(form, asked):
            self._json({"error": "invalid_grant"}, 400)
            return
        answer = {"access_token": secrets.token_hex(8), "token_type": "Bearer", "expires_in": TOKEN_S}
        if self.server.fault != "no token":
            answer["id_token"] = self.server.id_token(asked["nonce"])
        self._json(answer)

    def _authorize(self, query: dict[str, str]) -> None:
        good = query.get("client_id") == self.server.client_id and query.get("response_type") == "code"
        if not good or "openid" not in query.get("scope", "") or query.get("code_challenge_method") != "S256":
            self.send_error(400)
        elif self.server.fault == "refuse":
            self._go(query["redirect_uri"], error="access_denied", state=query["state"])
        else:
            code = secrets.token_hex(8)
            self.server.codes[code] = query
            self._go(query["redirect_uri"], code=code, state=query["state"])

    def _is_client(self, form: dict[str, str]) -> bool:
        kind, _, both = self.headers.get("Authorization", "").partition(" ")
        in_form = f"{form.get('client_id')}:{form.get('client_secret')}"
        given = base64.b64decode(both).decode() if kind == "Basic" else in_form
        return given == f"{self.server.client_id}:{self.server.client_secret}"

    def _json(self, value: dict, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _go(self, address: str, **query: str) -> None:
        self.send_response(302)
        self.send_header("Location", f"{address}?{urlencode(query)}" if query else address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_) -> None:
        """The tests look at what was asked, not at a log."""


def _proves(form: dict[str, str], asked: dict[str, str]) -> bool:
    """RFC 7636: the verifier hashes to the challenge of the request, and the answer goes where the code went."""
    digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return challenge == asked["code_challenge"] and form.get("redirect_uri") == asked["redirect_uri"]
