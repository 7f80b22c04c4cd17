"""Many people on one server: python benchmarks/load.py [--sessions 20] [--minutes 10] [--folder DIR]

Prepares two synthetic cohorts as benchmarks/dashboard.py does, starts the real server and opens a browser tab for each
person, one after the other over two minutes. Everybody reads, moves the clip or goes to another page by the menu, and
so on to the end. Prints the time from a step of the slider to new numbers, errors of every kind, and how the server's
memory has grown since the third minute, while everybody is still there. A step that shows no new number within five
seconds counts as one of five: it was late, or it changed no number. Server and browsers share this machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from dashboard import BROWSERS, GIVEN_UP_MS, NUMBERS, STOPWATCH, Server, prepare

PAGES = {"Calibration": 8, "Overview": 4, "Regions": 1, "Global test": 1, "Latent map": 1, "Scenario": 1}  # how often
CLIPPED = ("Calibration", "Overview")  # pages with the slider
LOWEST, HIGHEST = 1.0, 3.0  # clips
READING_S = (5.0, 15.0)
PATIENCE_MS = 60_000
ARRIVAL_S = 120.0  # until the last of them is there
WARM_S = 180.0  # caches fill and libraries load before memory is compared


@dataclass
class Seen:
    """What all sessions have seen; `slider` in milliseconds, one for each of `steps` that was answered, `pages` in
    seconds."""

    steps: int = 0
    slider: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cores: np.ndarray | None = None  # busy after the third minute: with the server, with everything


async def person(browser, server: Server, seed: int, arrives_s: float, end: float, seen: Seen, leave) -> None:
    """One tab with its own cookies and session, used until the end and open until all may leave."""
    choose = random.Random(seed)
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    page.on("pageerror", lambda error: seen.errors.append(f"page: {error}"))
    await asyncio.sleep(arrives_s)
    name = "Overview"
    try:
        await page.goto(server.url(B="3"), timeout=PATIENCE_MS)
    except Exception as error:
        seen.errors.append(f"first page: {str(error).splitlines()[0]}")
    while time.monotonic() < end:
        try:
            began = time.perf_counter()
            open_page = page.get_by_test_id("stPageLink").locator("strong").get_by_text(name, exact=True).first
            await open_page.wait_for(timeout=PATIENCE_MS)
            seen.pages.append(time.perf_counter() - began)
            if name in CLIPPED:
                await move_the_clip(page, choose, end, seen)
            await asyncio.sleep(choose.uniform(*READING_S))
            if await page.get_by_test_id("stException").count():
                seen.errors.append(f"{name}: an exception on the page")
            name = choose.choices(list(PAGES), list(PAGES.values()))[0]
            await page.get_by_test_id("stPageLink").get_by_text(name, exact=True).first.click(timeout=PATIENCE_MS)
        except Exception as error:
            if time.monotonic() < end:
                seen.errors.append(f"{name}: {' '.join(str(error).split())[:1500]}")
    await leave.wait()
    await context.close()


async def move_the_clip(page, choose: random.Random, end: float, seen: Seen) -> None:
    await page.get_by_test_id("stMetricValue").first.wait_for(timeout=PATIENCE_MS)
    if not await page.evaluate("'times' in window"):
        await page.evaluate(STOPWATCH, ["keydown", NUMBERS])
    before = await page.evaluate("window.times.length")
    await page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    for _ in range(choose.randint(3, 8)):
        if time.monotonic() > end - GIVEN_UP_MS / 1000:
            break
        clip = float(parse_qs(urlsplit(page.url).query)["B"][-1])  # within these bounds every step changes numbers
        await page.keyboard.press("ArrowLeft" if clip >= HIGHEST or (clip > LOWEST and choose.random() < 0.5) else
                                  "ArrowRight")
        seen.steps += 1
        await asyncio.sleep(choose.uniform(*READING_S))
    seen.slider += (await page.evaluate("window.times"))[before:]


def memory_mb(server: Server) -> float:
    """Resident memory of the server's own process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def busy_s(server: Server) -> np.ndarray:
    """Seconds of processor time so far: of the server's own process, and of the whole machine."""
    own = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return np.array([int(own[11]) + int(own[12]), int(user) + int(nice) + int(system)]) / os.sysconf("SC_CLK_TCK")


async def use(server: Server, sessions: int, minutes: float) -> tuple[Seen, float, float]:
    from playwright.async_api import async_playwright

    seen, end, leave = Seen(), time.monotonic() + 60 * minutes, asyncio.Event()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS))),
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        pause = min(ARRIVAL_S, 20 * minutes) / sessions
        people = [asyncio.create_task(person(browser, server, i, pause * i, end, seen, leave)) for i in range(sessions)]
        await asyncio.sleep(min(WARM_S, 30 * minutes))
        before, busy, began = memory_mb(server), busy_s(server), time.monotonic()
        await asyncio.sleep(end - began)
        after = memory_mb(server)
        seen.cores = (busy_s(server) - busy) / (time.monotonic() - began)
        leave.set()
        await asyncio.gather(*people)
        await browser.close()
    return seen, before, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--n", type=int, default=20_000, help="scenarios a side (default: 20000)")
    parser.add_argument("--folder", type=Path, help="keep what was prepared here, and go on with it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, arguments.n, arguments.n // 100, [])
        server = Server(folder)
        try:
            seen, before, after = asyncio.run(use(server, arguments.sessions, arguments.minutes))
            died = server.process.poll() is not None
        finally:
            server.process.terminate()
            server.process.wait()
    n = arguments.n
    for error in seen.errors[:10]:
        print("  ", error)
    if not seen.slider or not seen.pages:
        sys.exit("Nobody has seen a number change: there is nothing to tell.")
    waited = np.sort([*seen.slider, *[GIVEN_UP_MS] * (seen.steps - len(seen.slider))])
    print(f"{arguments.sessions} sessions for {arguments.minutes:g} minutes, {n:,} + {n:,} scenarios")
    for text, value, aim in (
        (f"slider to new numbers, median of {seen.steps:,} steps", f"{np.median(waited):.0f} ms", ""),
        ("   95th percentile", f"{np.quantile(waited, 0.95):.0f} ms", "1,500 ms"),
        ("   steps that showed no new number in 5 s", f"{seen.steps - len(seen.slider):,}", ""),
        (f"page by the menu, median of {len(seen.pages):,}", f"{np.median(seen.pages):.1f} s", ""),
        ("cores busy: server / everything else", f"{seen.cores[0]:.2f} / {seen.cores[1] - seen.cores[0]:.2f}", ""),
        ("errors", f"{len(seen.errors) + died}", "0"),
        ("memory of the server after three minutes", f"{before:.0f} MB", ""),
        ("   growth to the end", f"{after / before - 1:+.1%}", "10 %"),
    ):
        print(f"{text:<52} {value:>14}  {aim}")


if __name__ == "__main__":
    main()
