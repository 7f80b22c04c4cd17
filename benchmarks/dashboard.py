"""The dashboard at the field's size in a real browser: python benchmarks/dashboard.py [--n 90000] [--folder DIR]

Makes two synthetic cohorts of n scenarios in 64 dimensions, compares and maps them as the dashboard's own jobs do,
then starts the server and measures what an analyst feels: the first page, the clip slider, the map, the lasso. Prints a
table; times are this machine's, so read them against the aims beside them. With --folder what was prepared is reused.
With --first-start: only the way from an empty folder to the demo and its first verdict.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from avshift_core.jobs.board import DONE, Board  # noqa: E402
from avshift_core.latent.benchmark import METRIC, manifold_case  # noqa: E402
from avshift_core.latent.corpora import choose_latents  # noqa: E402
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN  # noqa: E402
from avshift_core.scenario.store.corpus import open_corpus  # noqa: E402
from avshift_core.scenario.store.writer import create_or_open  # noqa: E402
from avshift_core.workspace import Workspace  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LINK = {"corpus": "Large", "P": "period=P", "Q": "period=Q", "metric": METRIC, "axes": "umap"}
MOVES, LASSOS = 20, 7
PAUSES_MS = 2000, 1000  # between two steps of the slider; figures are still being drawn when the numbers are there
WAIT_MS = 120_000


def write_corpus(url: str, n: int, drives: int) -> None:
    """Both cohorts as a corpus of ready-made latents, with a few readable attributes."""
    pair = manifold_case(n, drives, seed=1)
    with create_or_open(url) as writer:
        for side, cohort, day in (("P", pair.P, "2026-03-02"), ("Q", pair.Q, "2026-03-09")):
            if writer.done(side):
                continue
            ids = pd.DataFrame({name: np.full(n, UNKNOWN, dtype=object) for name in ID_FIELDS})
            ids["scenario_id"] = [f"{side}{i:06d}" for i in range(n)]
            ids["drive_id"], ids["day"], ids["period"] = cohort.drive_ids[cohort.drive], day, side
            ids["area"], ids["av_version"], ids["hour"] = "town", "v1", np.arange(n) % 24
            ids["category"] = np.where(cohort.z[:, 0] > 0, "agent_cutting_in", "general")
            attributes = pd.DataFrame({f"feature_{j}": cohort.z[:, j] for j in range(8)})
            writer.add_table(ids, attributes, {METRIC: cohort.ell[METRIC]}, cohort.z, model="bench", source=side)


def run_job(board: Board, kind: str, **arguments) -> tuple[str, float]:
    """Key and seconds of a job, run as the dashboard runs it."""
    began = time.perf_counter()
    job = board.ask(kind, arguments)
    while not board.find(job.key).over:
        time.sleep(0.2)
    job = board.find(job.key)
    if job.state != DONE:
        raise SystemExit(f"{kind}: {job.error}")
    return job.key, time.perf_counter() - began


def prepare(folder: Path, n: int, drives: int, rows: list) -> None:
    workspace = Workspace(folder / "dashboard")
    url = str(folder / f"large-{n}")
    write_corpus(url, n, drives)
    workspace.corpora.update(lambda old: {"Large": url})
    Path(workspace.demo).exists() or write_corpus(workspace.demo, 2000, 40)
    board = Board(workspace, warm=False)
    corpus = open_corpus(url)
    key, seconds = run_job(board, "comparison", corpus=corpus.url, fingerprint=corpus.fingerprint, source=LINK["P"],
                           target=LINK["Q"], view="full", config={})
    rows.append(("compare P and Q, every stage", f"{seconds:.0f} s", ""))
    atlas, seconds = run_job(board, "atlas", url=corpus.url, fingerprint=corpus.fingerprint,
                             latents=choose_latents(corpus))
    rows.append(("PCA and UMAP of the corpus", f"{seconds:.0f} s", ""))
    placed, seconds = run_job(board, "map", comparison=key, atlas=atlas)
    rows.append(("P and Q on its map", f"{seconds:.1f} s", ""))
    index, seconds = run_job(board, "index", url=corpus.url, fingerprint=corpus.fingerprint,
                             latents=choose_latents(corpus))
    rows.append(("lists for the search in the whole corpus", f"{seconds:.1f} s", ""))
    board.close()
    lists = workspace.results.get(index)
    rows.append(("the 10 nearest of all, by the lists", f"{1000 * search_s(lists):.0f} ms", ""))
    rows.append((f"   recall, on {lists.reach.anchors} scenarios", f"{lists.reach.recall:.4f}", "0.99"))
    began = time.perf_counter()
    workspace.results.get(placed)
    rows.append(("the map from what is kept", f"{1000 * (time.perf_counter() - began):.0f} ms", "1,000 ms"))
    seconds = calibrate_s(workspace.results.get(key))
    rows.append(("calibrate at another clip, engine", f"{1000 * seconds:.1f} ms", "20 ms"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    rows.append(("largest memory of a job's process", f"{peak:.1f} GB", ""))
    rows.append(("comparison on disk", f"{workspace.results.path(key).stat().st_size / 2**20:.0f} MB", ""))


def search_s(index) -> float:
    """Median seconds of a search for the nearest scenarios of one."""
    times = []
    for row in np.random.default_rng(0).integers(0, len(index.obs), 21):
        z = index.lists.X[row] * index.scale + index.mean
        began = time.perf_counter()
        index.search(z, 10, scenario_id=index.obs["scenario_id"].iloc[row])
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def calibrate_s(comparison) -> float:
    """Median seconds of every estimate of one metric at another clip."""
    times = []
    for B in np.geomspace(1.5, 50, 21):
        began = time.perf_counter()
        comparison.analysis.calibrate(float(B))
        times.append(time.perf_counter() - began)
    return statistics.median(times)


class Server:
    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "streamlit", "run", "serve.py", "--server.port", str(self.port),
                   "--server.address", "127.0.0.1", "--server.headless", "true"]
        environment = {**os.environ, "AVSHIFT_HOME": str(folder / "dashboard")}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/_stcore/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (URLError, OSError):
                time.sleep(0.05)

    def url(self, page: str = "", **more: str) -> str:
        return f"http://127.0.0.1:{self.port}/{page}?{urlencode({**LINK, **more})}"

    def libraries(self) -> set[str]:
        """Which heavy libraries the server's process has loaded."""
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return {name for name, trace in (("torch", "libtorch"), ("umap", "llvmlite")) if trace in maps}


def measure(browser, server: Server, began: float, rows: list) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(server.url())
    page.get_by_test_id("stMetricValue").first.wait_for(timeout=WAIT_MS)
    rows.append(("start of the server to the first numbers", f"{time.perf_counter() - began:.1f} s", ""))
    rows.append(("torch or umap in the server", ", ".join(server.libraries()) or "none", "none"))
    measure_slider(page, server, rows)
    measure_map(browser.new_page(viewport={"width": 1440, "height": 1000}), server, rows)
    measure_cancel(page, server, rows)


GIVEN_UP_MS = 5000
# The page itself takes the time from an event to what changes on it, so that this script's own pauses do not count.
# A step that changes nothing, such as a clip above every weight, does not count.
STOPWATCH = """([event, seen]) => { window.times = []; const shown = new Function(seen); let stop = () => {};
    window.addEventListener(event, () => { const t = performance.now(), before = shown(); stop();
        const look = new MutationObserver(() => { const now = shown();
            if (now && now !== before) { stop();
                requestAnimationFrame(() => window.times.push(performance.now() - t)); } });
        stop = () => look.disconnect();
        look.observe(document.body, {subtree: true, childList: true, characterData: true});
        setTimeout(() => look.disconnect(), GIVEN_UP_MS); }, true); }""".replace("GIVEN_UP_MS", str(GIVEN_UP_MS))
NUMBERS = "return [...document.querySelectorAll('[data-testid=stMetric]')].map(e => e.textContent).join('|')"
CANCELLED = "return document.body.innerText.includes('cancelled. Nothing was lost') ? 'yes' : ''"
TABLE = """if (!document.querySelector('.st-key-selected_rows canvas')) return '';
    return [...document.querySelectorAll('[data-testid=stMain] p')].map(e => e.textContent)
        .find(text => text.includes('scenarios, from')) || ''"""


def timed(page, act, pause_ms: int = 1000) -> None:
    """Do something, wait until the stopwatch has seen its effect, then as long as it takes to read it."""
    before = len(page.evaluate("window.times"))
    act()
    for _ in range(100):
        page.wait_for_timeout(50)
        if len(page.evaluate("window.times")) > before:
            break
    page.wait_for_timeout(pause_ms)


def measure_slider(page, server: Server, rows: list) -> None:
    page.goto(server.url("calibration", B="3"))  # below the largest weight, where every step changes numbers
    value = page.get_by_test_id("stMetric").filter(has_text="Calibrated").get_by_test_id("stMetricValue")
    value.wait_for(timeout=WAIT_MS)
    page.wait_for_timeout(4000)
    page.evaluate(STOPWATCH, ["keydown", NUMBERS])
    page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    for pause_ms in PAUSES_MS:
        page.evaluate("window.times.length = 0")
        for i in range(MOVES):
            key = "ArrowLeft" if i // 5 % 2 == 0 else "ArrowRight"
            timed(page, lambda key=key: page.keyboard.press(key), pause_ms)
        times = page.evaluate("window.times")
        rows.append((f"clip slider to new numbers, a step every {pause_ms / 1000:g} s",
                     f"{statistics.median(times):.0f} ms", "250 ms"))
        rows.append((f"   the slowest of {len(times)}", f"{max(times):.0f} ms", ""))


def measure_map(page, server: Server, rows: list) -> None:
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    page.goto(server.url("latent_map"))
    canvas = page.locator("[data-arrived-ms]").first
    canvas.wait_for(state="attached", timeout=WAIT_MS)
    page.wait_for_timeout(4000)
    rows.append((f"draw {int(canvas.get_attribute('data-n')):,} points, after arrival",
                 f"{float(canvas.get_attribute('data-arrived-ms')):.0f} ms", "2,000 ms"))
    began = time.perf_counter()
    page.goto(server.url("latent_map"))
    page.locator("[data-arrived-ms]").first.wait_for(state="attached", timeout=WAIT_MS)
    rows.append(("map by its link a second time, page and all", f"{time.perf_counter() - began:.1f} s", ""))
    page.wait_for_timeout(4000)
    page.locator("[data-do=lasso]").first.click()
    box = canvas.bounding_box()
    page.evaluate(STOPWATCH, ["mouseup", TABLE])
    sent.clear()
    for i in range(LASSOS):
        timed(page, lambda i=i: draw(page, box, 0.1 + 0.03 * i))
    times = page.evaluate("window.times")
    rows.append(("lasso to table, the first", f"{times[0]:.0f} ms", "800 ms"))
    rows.append((f"lasso to table, median of {len(times)}", f"{statistics.median(times):.0f} ms", "800 ms"))
    rows.append(("sent by the browser for a lasso, most", f"{max(sent, default=0):,} bytes", "5,000 bytes"))


def measure_cancel(page, server: Server, rows: list) -> None:
    """A comparison that has begun to train, cancelled."""
    page.goto(server.url(seed="7", classifier="mlp", repeats="50"))
    cancel = page.get_by_role("button", name="Cancel")
    cancel.wait_for(timeout=WAIT_MS)
    page.wait_for_timeout(20_000)
    page.evaluate(STOPWATCH, ["click", CANCELLED])
    timed(page, cancel.click)
    rows.append(("cancel to \"cancelled\" on the page", f"{page.evaluate('window.times')[0]:.0f} ms", "3,000 ms"))


def draw(page, box, radius: float) -> None:
    """A circle of many points around the middle of the map."""
    turn = np.linspace(0, 2 * np.pi, 60)
    x = box["x"] + box["width"] * (0.5 + radius * np.cos(turn))
    y = box["y"] + box["height"] * (0.5 + radius * np.sin(turn))
    page.mouse.move(x[0], y[0])
    page.mouse.down()
    for across, down in zip(x[1:], y[1:], strict=True):
        page.mouse.move(across, down)
    page.mouse.up()


def measure_first_start(browser, server: Server, began: float, rows: list) -> None:
    """From an empty folder to the demo and its verdict, as who opens the dashboard for the first time sees it."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(f"http://127.0.0.1:{server.port}/")
    for what, text, aim in (("the first page", "Preparing the demo", ""), ("the demo, simulated", "Encoding:", ""),
                            ("the demo, encoded", "What is loaded", "180 s"), ("its verdict", "Observed rate", "")):
        page.get_by_text(text).first.wait_for(timeout=4 * WAIT_MS)
        rows.append((f"start of the server to {what}", f"{time.perf_counter() - began:.0f} s", aim))


def in_a_browser(folder: Path, rows: list, measure) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS))),
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        began = time.perf_counter()
        server = Server(folder)
        try:
            measure(browser, server, began, rows)
        finally:
            server.process.terminate()
            server.process.wait()
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=90_000, help="scenarios a side (default: 90000)")
    parser.add_argument("--drives", type=int, default=900, help="drives a side (default: 900)")
    parser.add_argument("--folder", type=Path, help="keep what was prepared here, and go on with it")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--prepare", action="store_true", help="only prepare the folder")
    only.add_argument("--first-start", action="store_true", help="only measure the first start, in an empty folder")
    arguments = parser.parse_args()
    rows: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.first_start:
            in_a_browser(Path(temporary), rows, measure_first_start)
        else:
            prepare(folder, arguments.n, arguments.drives, rows)
            if not arguments.prepare:
                in_a_browser(folder, rows, measure)
    print("The demo, " + f"{os.cpu_count()} cores" if arguments.first_start else
          f"{arguments.n:,} + {arguments.n:,} scenarios, 64 dimensions, {os.cpu_count()} cores")
    for name, value, limit in [("what", "measured", "aim"), *rows]:
        print(f"{name:<52} {value:>14}  {limit}")


if __name__ == "__main__":
    main()
