"""A home for the dashboard with two corpora: a small encoded fleet, and the paper's three cases as latents."""

import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from avshift_core.encoder.encode import encode_steps
from avshift_core.encoder.weights import load_model
from avshift_core.jobs.work import DEMO_SCENARIOS, demo_corpus_steps
from avshift_core.latent.benchmark import METRIC, line_case
from avshift_core.parallel import in_order
from avshift_core.progress import finish
from avshift_core.scenario.schema import ID_FIELDS, UNKNOWN
from avshift_core.scenario.simulate.demo import make_block
from avshift_core.scenario.simulate.fleet import FleetConfig, blocks
from avshift_core.scenario.store.writer import create_or_open
from avshift_core.workspace import HOME, Workspace
from tests.pages.browsing import Visit, browser
from tests.pages.visitor import Server

ROOT = Path(__file__).parents[2]
APP = ROOT / "app.py"
QUICK = {"classifier": "cells", "repeats": 1, "folds": 2, "n_perm": 99}  # settings that make an analysis quick
CASES = {"none": "no_shift", "localized": "localize", "global": "global_shift"}  # area of the corpus -> its verdict
N = 2000
PATIENCE_S = 180


def write_cases(url: str) -> None:
    """One area a case; period P holds its source, period Q its target; drives of 20, some readable attributes."""
    with create_or_open(url) as writer:
        for case in CASES:
            pair = line_case(case, N, seed=0)
            for side, cohort in (("P", pair.P), ("Q", pair.Q)):
                x = cohort.z[:, 0]
                ids = pd.DataFrame({name: np.full(N, UNKNOWN, dtype=object) for name in ID_FIELDS})
                ids["scenario_id"] = [f"{case}-{side}-{i:05d}" for i in range(N)]
                ids["drive_id"] = [f"{case}-{side}-{i % 100}" for i in range(N)]
                ids["day"], ids["period"] = ("2026-03-02" if side == "P" else "2026-03-09"), side
                ids["area"], ids["av_version"], ids["hour"] = case, "v1", np.arange(N) % 24
                ids["category"] = np.where(x > 1.5, "agent_cutting_in", "general")
                attributes = pd.DataFrame({"ego_speed_mps": 5 + np.abs(x),
                                           "road_type": np.where(x > 3, "town", "rural")})
                writer.add_table(ids, attributes, {METRIC: cohort.ell[METRIC], "ttc_min_s": np.clip(6 - x, 0, 10)},
                                 cohort.z, model="line", source=f"{case}-{side}")


@pytest.fixture(autouse=True)
def own_main():
    """AppTest leaves its script behind as the main module, which processes started later would try to import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """The dashboard's folder, with the fleet where the demo is looked for."""
    folder = tmp_path_factory.mktemp("avshift") / "dashboard"
    workspace = Workspace(folder)
    before = os.environ.get(HOME)
    os.environ[HOME] = str(folder)
    finish(demo_corpus_steps(workspace.demo, 4000))
    cases = str(folder.parent / "cases")
    write_cases(cases)
    workspace.corpora.update(lambda old: {**old, "Cases": cases})
    yield workspace
    os.environ.pop(HOME) if before is None else os.environ.__setitem__(HOME, before)


@pytest.fixture(scope="module")
def weeks(home):
    """Two weeks of the demo as they are there, in a corpus of their own: regions are found between them."""
    url, config = str(home.folder.parent / "weeks"), FleetConfig(DEMO_SCENARIOS, 0)
    wanted = [b for b in blocks(config) if config.cells[b.cell] in (("harbor", "2026-W11"), ("harbor", "2026-W12"))]
    with create_or_open(url) as writer:
        for block, made in zip(wanted, in_order(partial(make_block, config), wanted), strict=True):
            for part in made.measured:
                writer.add(part.batch, part.attributes, part.metrics, source=block.key, label="demo fleet")
    finish(encode_steps(url, load_model(), views=["full"]))
    home.corpora.update(lambda old: {**old, "Two weeks": url})
    yield {"corpus": "Two weeks", "P": "period=2026-W11,area=harbor", "Q": "period=2026-W12,area=harbor",
           "metric": "discomfort"}
    home.corpora.update(lambda old: {name: url for name, url in old.items() if name != "Two weeks"})


def case_link(case: str, **more) -> dict[str, str]:
    """What the URL says to compare a case."""
    return {"corpus": "Cases", "P": f"period=P,area={case}", "Q": f"period=Q,area={case}",
            **{name: str(value) for name, value in {**QUICK, **more}.items()}}


def fleet_link(**more) -> dict[str, str]:
    """What the URL says to compare two pairs of weeks of the fleet, the later with more cut-ins."""
    return {"P": "period=2026-W10|2026-W11|2026-W16,area=harbor", "Q": "period=2026-W12|2026-W17,area=harbor",
            "view": "context", "force_localize": "1", **{name: str(value) for name, value in {**QUICK, **more}.items()}}


def versions_link(**more) -> dict[str, str]:
    """What the URL says to compare two weeks of v4.1 with two of v4.2."""
    return {"P": "period=2026-W10|2026-W11,area=harbor", "Q": "period=2026-W16|2026-W17,area=harbor", "view": "context",
            "metric": "discomfort", **{name: str(value) for name, value in {**QUICK, **more}.items()}}


def run_through(page: AppTest) -> AppTest:
    """Run a page until no job of it is under way."""
    end = time.monotonic() + PATIENCE_S
    page.run()
    while page.get("progress"):
        assert time.monotonic() < end, page.get("progress")
        assert not page.exception, page.exception
        time.sleep(0.2)
        page.run()
    assert not page.exception, page.exception
    return page


@pytest.fixture
def open_page(home):
    """open_page("pages/regions.py", link) -> AppTest of that page when all its jobs are done."""
    def open_(path: str = "app.py", link: dict | None = None) -> AppTest:
        page = AppTest.from_file(str(APP), default_timeout=PATIENCE_S)
        for name, value in (link or {}).items():
            page.query_params[name] = value
        if path != "app.py":
            page.switch_page(path)
        return run_through(page)

    return open_


def words(page: AppTest) -> str:
    """All text on a page."""
    kinds = ("markdown", "caption", "info", "warning", "error", "success", "title", "header", "subheader")
    return "\n".join(str(e.value) for kind in kinds for e in page.get(kind))


# A real browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="package")  # its event loop would be in the way of tests elsewhere
def chromium():
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def dashboard(home, tmp_path_factory):
    """A server of the real dashboard on the home of the tests, new for each module: its first page is a cold one."""
    with Server(tmp_path_factory.mktemp("server"), home=home.folder) as server:
        yield server
        assert "Traceback" not in server.log, server.log


@pytest.fixture
def visit(dashboard, chromium):
    """visit("regions", link) -> Visit of that page; afterwards nobody else was asked and nothing complained."""
    opened = []

    def open_(page: str = "", link=None, **how) -> Visit:
        opened.append(Visit(chromium, dashboard.url, page, link, **how))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
