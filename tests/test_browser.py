"""The start page in a real Chromium: it draws, follows the keyboard, opens from a link and asks no other host."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect, sync_playwright

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUICK = {"case": "localized", "n": 2000, "classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}
PATIENCE = 180_000  # ms, for an analysis on a busy machine


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.address",
               "127.0.0.1", "--server.headless", "true"]
    with log.open("w") as out, subprocess.Popen(
        command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as process:
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
    assert "Traceback" not in log.read_text(), log.read_text()


def _wait_until_healthy(url, process, log) -> None:
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            with urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"The server did not start: {log.read_text()}")


@pytest.fixture(scope="module")
def chromium():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"No browser found among {', '.join(BROWSERS)}. Install chromium and run again.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


class Visit:
    """A page with what it asked for and complained about."""

    def __init__(self, browser, address: str, scheme: str, width: int) -> None:
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 1000})
        self.page = self.context.new_page()
        self.hosts, self.errors = set(), []
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))
        self.page.on("websocket", lambda socket: self.hosts.add(urlsplit(socket.url).hostname))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)

    def metric(self, label: str):
        return self.page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")

    def slider(self):
        return self.page.get_by_role("slider").first


@pytest.fixture
def visit(server, chromium):
    opened = []

    def open_(scheme="light", width=1440, **changes) -> Visit:
        opened.append(Visit(chromium, f"{server}?{urlencode({**QUICK, **changes})}", scheme, width))
        expect(opened[-1].metric("Effective sample")).to_be_visible(timeout=PATIENCE)
        return opened[-1]

    yield open_
    for one in opened:
        assert {h for h in one.hosts if h} <= {"127.0.0.1", "localhost"}
        assert one.errors == []
        one.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_with_marks_in_them(visit, scheme):
    one = visit(scheme)
    charts = one.page.locator(".js-plotly-plot")
    expect(charts).to_have_count(3, timeout=PATIENCE)
    for i in range(3):
        expect(charts.nth(i).locator(".scatterlayer .trace").first).to_be_attached()
        assert charts.nth(i).locator("svg.main-svg").first.bounding_box()["height"] > 200
    expect(one.page.get_by_text("R1", exact=True).first).to_be_visible()


def test_the_clip_follows_the_keyboard_and_the_link_reopens_the_view(visit):
    one = visit()
    before = one.metric("Calibrated to Q").inner_text()
    one.slider().focus()
    for _ in range(3):  # 10 -> 8 -> 6 -> 5
        one.page.keyboard.press("ArrowLeft")
    expect(one.metric("Calibrated to Q")).not_to_have_text(before, timeout=PATIENCE)
    one.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("B") == ["5"])
    expect(one.page.get_by_text("weight given to P at clip 5")).to_be_visible()
    after = one.metric("Calibrated to Q").inner_text()
    again = visit(B=5)
    expect(again.metric("Calibrated to Q")).to_have_text(after)


def test_no_old_result_stands_beside_a_new_choice(visit):
    one = visit(seed=3)
    # The page itself looks, every 20 ms: a look from outside may come when the analysis is over already.
    one.page.evaluate("""() => { window.seen = []; setInterval(() => window.seen.push(
        ["stProgress", "stMetric"].map(id => document.querySelectorAll(`[data-testid=${id}]`).length)), 20); }""")
    one.page.get_by_test_id("stSidebar").get_by_text("global", exact=True).click()
    expect(one.metric("Calibrated to Q")).to_have_text("withheld", timeout=PATIENCE)
    numbers_beside_the_bar = [numbers for bars, numbers in one.page.evaluate("window.seen") if bars]
    assert numbers_beside_the_bar and min(numbers_beside_the_bar) == numbers_beside_the_bar[-1] == 0
    assert parse_qs(urlsplit(one.page.url).query)["case"] == ["global"]


@pytest.mark.parametrize("width", [1440, 1024])
def test_no_number_is_cut_off(visit, width):
    one = visit(width=width, case="global")
    for value in one.page.get_by_test_id("stMetricValue").all():
        assert value.evaluate("e => [e, ...e.querySelectorAll('*')].every(x => x.scrollWidth <= x.clientWidth + 1 || "
                              "getComputedStyle(x).display === 'inline')"), value.inner_text()
    expect(one.page.get_by_text("Localization stopped on purpose")).to_be_visible()
    expect(one.metric("Calibrated to Q")).to_have_text("withheld")
