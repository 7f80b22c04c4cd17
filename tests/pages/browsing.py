"""A real Chromium on the dashboard, with what it asked for and complained about."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 180_000  # ms, for an analysis on a busy machine
BUSY = ("stProgress", "stStatusWidget", "stSkeleton")
# Below a page's address Streamlit's client looks for the server first, and takes the answer "not here" as it should.
EXPECTED = ("404 (Not Found)",)


@contextmanager
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"No browser found among {', '.join(BROWSERS)}. Install chromium and run again.")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


class Visit:
    """One tab of a browser of its own."""

    def __init__(self, chromium, server: str, page: str = "", link=None, *, scheme="light", width=1440, height=1000):
        self.context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.hosts, self.errors, self.sent = set(), [], []
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))
        self.page.on("websocket", self._listen)
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" and not any(
            text in m.text for text in EXPECTED) else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{server}/{page}?{urlencode(link or {})}")

    def _listen(self, socket) -> None:
        self.hosts.add(urlsplit(socket.url).hostname)
        socket.on("framesent", lambda data: self.sent.append(len(data)))

    @property
    def link(self) -> dict[str, str]:
        """What the address says now."""
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.page.url).query).items()}

    def metric(self, label: str):
        return self.page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")

    def menu(self, title: str) -> None:
        self.page.get_by_test_id("stPageLink").get_by_text(title, exact=True).first.click()

    def settle(self) -> None:
        """Wait until no job is under way and the server has nothing more to say."""
        quiet = 0
        while quiet < 4:
            busy = sum(self.page.get_by_test_id(name).count() for name in BUSY)
            quiet = 0 if busy else quiet + 1
            self.page.wait_for_timeout(250)

    def shoot(self, path: Path) -> None:
        """The whole page as a picture, as high as it is."""
        height = self.page.evaluate("Math.max(...[...document.querySelectorAll('section, [data-testid=stMain]')]"
                                    ".map(e => e.scrollHeight))")
        width = self.page.viewport_size["width"]
        self.page.set_viewport_size({"width": width, "height": min(int(height) + 10, 2400)})
        self.page.wait_for_timeout(800)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)

    def close(self) -> None:
        self.context.close()
        assert {host for host in self.hosts if host} <= {"127.0.0.1", "localhost"}, "asked another host"
        assert self.errors == []
