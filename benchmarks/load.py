"""Many people on one server: python benchmarks/load.py [--sessions 20] [--minutes 10] [--folder DIR]

Prepares two synthetic cohorts as benchmarks/dashboard.py does, starts the real server and opens a browser tab for each
person, one after the other over two minutes. Everybody reads, moves the clip or goes to another page by the menu, and
so on to the end. Prints the time from a step of the slider to new numbers, errors of every kind, and how the server's
memory has grown since the third minute. Server and browsers share this machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from dashboard import BROWSERS, NUMBERS, STOPWATCH, Server, prepare

PAGES = {"Calibration": 8, "Overview": 4, "Regions": 1, "Global test": 1, "Latent map": 1, "Scenario": 1}  # how often
CLIPPED = ("Calibration", "Overview")  # pages with the slider
READING_S = (5.0, 15.0)
PATIENCE_MS = 60_000
ARRIVAL_S = 120.0  # until the last of them is there
WARM_S = 180.0  # caches fill and libraries load before memory is compared


@dataclass
class Seen:
    """What all sessions have seen; `slider` in milliseconds, `pages` in seconds."""

    slider: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def person(browser, server: Server, seed: int, arrives_s: float, end: float, seen: Seen) -> None:
    """One tab with its own cookies and session, used until the end."""
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
    await context.close()


async def move_the_clip(page, choose: random.Random, end: float, seen: Seen) -> None:
    await page.get_by_test_id("stMetricValue").first.wait_for(timeout=PATIENCE_MS)
    await page.evaluate(STOPWATCH, ["keydown", NUMBERS])
    await page.get_by_test_id("stMain").get_by_role("slider").first.focus()
    for step in range(choose.randint(3, 8)):
        if time.monotonic() > end:
            break
        await page.keyboard.press("ArrowLeft" if step % 4 < 2 else "ArrowRight")
        await asyncio.sleep(choose.uniform(*READING_S))
    seen.slider += await page.evaluate("window.times")


def memory_mb(server: Server) -> float:
    """Resident memory of the server's own process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


async def use(server: Server, sessions: int, minutes: float) -> tuple[Seen, float, float]:
    from playwright.async_api import async_playwright

    seen, end = Seen(), time.monotonic() + 60 * minutes
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS))),
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        pause = min(ARRIVAL_S, 20 * minutes) / sessions
        people = [asyncio.create_task(person(browser, server, i, pause * i, end, seen)) for i in range(sessions)]
        await asyncio.sleep(min(WARM_S, 30 * minutes))
        before = memory_mb(server)
        await asyncio.gather(*people)
        after = memory_mb(server)
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
    print(f"{arguments.sessions} sessions for {arguments.minutes:g} minutes, {n:,} + {n:,} scenarios")
    for text, value, aim in (
        ("slider to new numbers, median", f"{np.median(seen.slider):.0f} ms", ""),
        (f"   95th percentile of {len(seen.slider):,}", f"{np.quantile(seen.slider, 0.95):.0f} ms", "1,500 ms"),
        (f"page by the menu, median of {len(seen.pages):,}", f"{np.median(seen.pages):.1f} s", ""),
        ("errors", f"{len(seen.errors) + died}", "0"),
        ("memory of the server after three minutes", f"{before:.0f} MB", ""),
        ("   growth to the end", f"{after / before - 1:+.1%}", "10 %"),
    ):
        print(f"{text:<52} {value:>14}  {aim}")


if __name__ == "__main__":
    main()
