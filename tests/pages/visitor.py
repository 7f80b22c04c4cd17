"""The real dashboard in a process of its own, and a visitor who speaks Streamlit's protocol and sees all it sends.

    with Server(folder, secrets) as server:
        seen = Visitor(server).open("regions", "P=harbor")
        seen.text, seen.buttons

A browser shows what it draws; here is every byte that a page sends, for a fraction of the time.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0  # of a machine with other work to do
SMALL_PAGE = '''
import streamlit as st
from pages.common.gate import require_login

st.set_page_config(page_title="Small")
require_login()
st.text("This is {name} with " + "&".join(map("=".join, st.query_params.items())))
st.download_button("Take", "the rows of {name}", "rows.csv")
st.file_uploader("Give")
'''


def small_app(folder: Path) -> Path:
    """A dashboard of two pages, each with a download and an upload behind the project's gate."""
    root = folder / "small"
    (root / "pages").mkdir(parents=True)
    for name in ("avshift_core", "pages/common"):
        (root / name).symlink_to(ROOT / name)
    (root / "serve.py").write_text((ROOT / "serve.py").read_text())
    for name in ("app", "pages/two"):
        (root / f"{name}.py").write_text(SMALL_PAGE.format(name=name))
    return root


class Server:
    """`streamlit run SCRIPT` with these secrets and this home, an empty one without; `log` is what it printed."""

    def __init__(
        self, folder: Path, secrets: str | None = None, script: str = "serve.py", root: Path = ROOT,
        home: Path | None = None,
    ) -> None:
        self.folder, self.root, self.script = folder, root, script
        self.secrets, self.home, self._log = folder / "secrets.toml", home or folder / "home", folder / "log.txt"
        if secrets is not None:
            self.secrets.write_text(secrets)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        command = [sys.executable, "-m", "streamlit", "run", self.script, "--server.port", str(self.port),
                   "--server.address", "127.0.0.1", "--server.headless", "true"]
        if self.secrets.exists():
            command += ["--secrets.files", str(self.secrets)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "AVSHIFT_HOME": str(self.home), "HOME": str(self.folder)}
        with self._log.open("w") as out:
            self.process = subprocess.Popen(command, cwd=self.root, stdout=out, stderr=subprocess.STDOUT,
                                            env=environment)
        try:
            self._wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def _wait_until_healthy(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log
            try:
                if httpx2.get(f"{self.url}/_stcore/health", timeout=5).status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.1)
        raise AssertionError(f"The server did not start: {self.log}")

    def children(self) -> list[str]:
        """Commands of the processes that the server has started and that still run."""
        found = []
        for line in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = line.read_text().rpartition(")")
                if int(rest.split()[1]) == self.process.pid and rest.split()[0] != "Z":
                    found.append(name)
            except (OSError, ValueError):
                continue
        return found


@dataclass
class Seen:
    """All that one run of a page sent."""

    messages: list[ForwardMsg] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What the page drew, as text, with every label, address and value in it."""
        return "\n".join(str(m.delta) for m in self.messages if m.WhichOneof("type") == "delta")

    @property
    def buttons(self) -> dict[str, str]:
        """Label -> id of the buttons."""
        elements = [m.delta.new_element for m in self.messages if m.WhichOneof("type") == "delta"]
        return {e.button.label: e.button.id for e in elements if e.WhichOneof("type") == "button"}

    @property
    def redirect(self) -> str:
        return next((m.auth_redirect.url for m in self.messages if m.WhichOneof("type") == "auth_redirect"), "")

    @property
    def elements(self) -> list[str]:
        """Kinds of the elements drawn."""
        deltas = [m.delta for m in self.messages if m.WhichOneof("type") == "delta"]
        return [d.new_element.WhichOneof("type") for d in deltas if d.WhichOneof("type") == "new_element"]


class Visitor:
    """One browser: its cookies stay, each `open` is a new session like a reload or a new tab."""

    def __init__(self, server: Server, cookies: dict[str, str] | None = None) -> None:
        self.server = server
        self.http = httpx2.Client(base_url=server.url, timeout=PATIENCE_S)
        for name, value in (cookies or {}).items():
            self.http.cookies.set(name, value, domain="127.0.0.1")
        self.http.get("/_stcore/health")  # brings the XSRF cookie, as for a browser
        self._open = ExitStack()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_) -> None:
        self.leave()
        self.http.close()

    def leave(self) -> None:
        self._open.close()

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self.http.cookies)

    def open(self, page: str = "", query: str = "", origin: str | None = None, session: str = "") -> Seen:
        """A new session; `session` asks for that of an earlier connection, as a browser does after a break."""
        self.leave()
        self.page, self.query = page, query
        cookies = self.cookies
        self.socket = self._open.enter_context(connect(
            f"ws://{urlsplit(self.server.url).netloc}/_stcore/stream", origin=origin or self.server.url,
            subprotocols=["streamlit", cookies.get("_streamlit_xsrf", "none"), *filter(None, [session])],
            max_size=None, open_timeout=PATIENCE_S,
            additional_headers={"Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())},
        ))
        return self.rerun()

    def rerun(self, press: str = "") -> Seen:
        """Run the page again; `press` is the id of a button."""
        ask = BackMsg()
        ask.rerun_script.page_name, ask.rerun_script.query_string = self.page, self.query
        ask.rerun_script.context_info.url = f"{self.server.url}/{self.page}"
        if press:
            ask.rerun_script.widget_states.widgets.add(id=press, trigger_value=True)
        self.socket.send(ask.SerializeToString())
        seen, end = Seen(), time.monotonic() + PATIENCE_S
        while True:
            message = ForwardMsg.FromString(self.socket.recv(timeout=max(0.1, end - time.monotonic())))
            seen.messages.append(message)
            kind = message.WhichOneof("type")
            if kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return seen

    def log_in(self, page: str = "", query: str = "") -> Seen:
        """Press the button and follow the way to the login service and back; what the start page then sends."""
        seen = self.open(page, query)
        seen = self.rerun(press=seen.buttons["Log in"])
        self.http.get(seen.redirect, follow_redirects=True)
        return self.open()
