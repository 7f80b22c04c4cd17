"""The scenario player: what it is given, and in a real Chromium that it moves, stops, steps and keeps one clock."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from pages.common.player import SCRIPTS
from tests.pages.browsing import PATIENCE, Visit
from tests.pages.visitor import Server
from tests.scenario.scenes import PERSON, along, scene, times, track

ROOT = Path(__file__).parents[2]
LANES = [(np.array([[-200.0, y], [300, y]]), "lane_center", 13.9) for y in (0, 3.5)] + [
    (np.array([[-200.0, y], [300, y]]), "road_edge", np.nan) for y in (-1.75, 5.25)] + [
    (np.array([[60.0, -1.75], [63, -1.75], [63, 5.25], [60, 5.25], [60, -1.75]]), "crosswalk", np.nan)]
EVIL = "<img src=x onerror=document.title='cracked'>"
SCRIPT = """
import streamlit as st
from avshift_core.scenario.playback import playback
from pages.common.player import player
from tests.pages.test_player import EVIL, one, two

st.set_page_config(layout="wide")
beside = st.toggle("beside")
scenes = [playback(one(), title=EVIL, note="left", tag="P", actor=0, actor_name="cuts in")]
if beside or "pair" in st.query_params:
    scenes.append(playback(two(), title="right", tag="Q"))
player(scenes, stamp="AVShift run 0123456789ab")
"""


def one():
    """6 s at 10 Hz: a car 25 m ahead at 6 m/s that the ego at 10 m/s closes in on, a bus seen from 2 s on, a person."""
    t = times(6.0)
    slow = track(t, along(t, 6.0) + 25)
    bus = track(t, along(t, -8.0) + 90, 3.5, heading=np.pi, kind="bus", size=(12.0, 2.5, 3.2), valid=t >= 2)
    person = track(t, np.full_like(t, 40.0), along(t, 1.0) - 6, kind="pedestrian", size=PERSON)
    return scene(t, track(t, along(t, 10.0)), [slow, bus, person], LANES)


def two():
    """4 s at 20 Hz with one motionless car."""
    t = times(4.0, hz=20.0)
    return scene(t, track(t, along(t, 8.0)), [track(t, np.full_like(t, 30.0), 3.5, heading=0.0)], LANES)


def test_the_page_sends_it_once_and_text_stays_text(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SCRIPT)
    page = AppTest.from_file(str(path), default_timeout=60).run()
    assert not page.exception
    (sent,) = [e.proto for e in page.main if getattr(e.proto, "component_name", "") == "avshift_player"]
    assert json.loads(sent.json)["scenes"][0]["title"] == EVIL and EVIL not in sent.html_content
    assert len(sent.json) < 60_000


def test_nothing_in_the_player_makes_html_of_text():
    source = "\n".join((ROOT / "pages/common" / name).read_text() for name in SCRIPTS)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?://(?!www\.w3\.org)", source)


# In a browser --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("player")
    (folder / "small.py").write_text(SCRIPT)
    with Server(folder, script=str(folder / "small.py")) as running:
        yield running.url
        assert "Traceback" not in running.log, running.log


class Shown(Visit):
    """A page with the player on it."""

    def __init__(self, chromium, server, link, scheme) -> None:
        super().__init__(chromium, server, link=link, scheme=scheme, width=1200, height=1100)
        self.root = self.page.locator(".avs-player[data-time]")
        expect(self.root).to_be_visible(timeout=PATIENCE)

    def now(self, name="time"):
        return self.root.get_attribute(f"data-{name}")

    def time(self) -> float:
        return float(self.now())

    def press(self, name) -> None:
        self.page.locator(f".avs-player [data-do='{name}']").click()

    def pixels(self, selector=".avs-player canvas.view") -> int:
        """A number that changes with the picture."""
        return self.page.locator(selector).first.evaluate(
            "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.reduce((s, v, i) => "
            "(s * 31 + v * (i % 8191)) % 1000000007, 7)")

    def colours(self, selector=".avs-player canvas.view") -> set:
        """Colours that fill at least twenty pixels."""
        return set(self.page.locator(selector).first.evaluate(
            """c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, n = {};
            for (let i = 0; i < d.length; i += 4) { const k = d[i] + ',' + d[i + 1] + ',' + d[i + 2];
              n[k] = (n[k] ?? 0) + 1; }
            return Object.keys(n).filter(k => n[k] >= 20); }"""))


@pytest.fixture
def show(server, chromium):
    opened = []

    def show_(scheme="light", **link) -> Shown:
        opened.append(Shown(chromium, server, link, scheme))
        return opened[-1]

    yield show_
    for shown in opened:
        assert shown.page.title() != "cracked"
        shown.close()


@pytest.mark.browser
def test_play_moves_pause_stops_and_the_server_is_not_asked(show):
    shown = show()
    shown.page.wait_for_timeout(500)
    picture, sent = shown.pixels(), len(shown.sent)
    assert shown.now("playing") == "false" and shown.time() == 0
    shown.press("play")
    expect(shown.root).to_have_attribute("data-playing", "true")
    shown.page.wait_for_function("() => { const r = [...document.querySelectorAll('*')].map(e => e.shadowRoot).find("
                                 "s => s?.querySelector('.avs-player')); return Number(r.querySelector('.avs-player')"
                                 ".dataset.time) > 0.8 }", timeout=PATIENCE)
    shown.press("play")
    expect(shown.root).to_have_attribute("data-playing", "false")
    stopped = shown.time()
    shown.page.wait_for_timeout(400)
    assert shown.time() == stopped > 0.8
    assert shown.pixels() != picture and len(shown.sent) == sent


@pytest.mark.browser
def test_four_times_the_speed_is_quicker_and_the_end_stops(show):
    shown = show()
    shown.press("rate-4")
    began = time.monotonic()
    shown.press("play")
    expect(shown.root).to_have_attribute("data-playing", "false", timeout=PATIENCE)
    assert shown.time() == 6.0 and time.monotonic() - began < 5  # 1.5 s and patience; at its own speed it takes 6 s
    shown.press("play")  # again from the start
    shown.press("play")
    assert shown.time() < 6.0


@pytest.mark.browser
def test_a_step_is_a_step_of_the_log(show):
    shown = show()
    for expected in (0.1, 0.2, 0.3):
        shown.press("forward")
        assert shown.time() == pytest.approx(expected, abs=1e-9)
    shown.press("back")
    assert shown.time() == pytest.approx(0.2, abs=1e-9)
    shown.press("play")
    shown.page.wait_for_timeout(330)
    shown.press("forward")  # from between two steps to the next one, and it stops
    assert shown.now("playing") == "false"
    assert shown.time() * 10 == pytest.approx(round(shown.time() * 10), abs=1e-6)


@pytest.mark.browser
def test_as_many_road_users_are_drawn_as_are_seen(show):
    shown = show(pair=1)
    left, right = one(), two()
    for t in (0.0, 1.9, 2.0, 3.0, 5.0):
        shown.page.locator(".avs-player input.time").evaluate(
            "(e, t) => { e.value = t; e.dispatchEvent(new Event('input')); }", str(t))
        seen = [int(s.agents_valid[:, np.abs(s.t_s - min(t, s.t_s[-1])).argmin()].sum()) for s in (left, right)]
        assert shown.now("agents") == f"{seen[0]},{seen[1]}"
    assert shown.page.locator("figure.scene").nth(1).get_attribute("data-ended") == "true"  # it lasts 4 s


@pytest.mark.browser
def test_both_scenes_show_one_clock_and_the_anchor_keeps_its_time(show):
    shown = show()
    shown.press("tight")  # the ego closes in on the car ahead until they meet after 20.2 m at 4 m/s
    expect(shown.root).to_have_attribute("data-time", re.compile(r"5\.[01]00"))
    before = shown.time()
    shown.page.get_by_text("beside", exact=True).click()
    figures = shown.page.locator("figure.scene")
    expect(figures).to_have_count(2, timeout=PATIENCE)
    assert shown.time() == before
    shown.press("rate-0.25")  # so slowly that it does not come to its end, and begin anew, on a busy machine
    shown.press("play")
    shown.page.wait_for_timeout(300)
    clocks = shown.page.locator(".avs-player").evaluate(
        "e => [...e.querySelectorAll('figure.scene')].map(f => f.dataset.time)")
    assert clocks[0] == clocks[1]
    shown.press("play")
    assert figures.nth(0).get_attribute("data-time") == figures.nth(1).get_attribute("data-time") == shown.now()


@pytest.mark.browser
def test_the_keyboard_works_where_the_focus_is_and_nowhere_else(show):
    shown = show()
    keys = shown.page.keyboard
    keys.press("Space")
    keys.press("ArrowRight")
    assert shown.time() == 0 and shown.now("playing") == "false"
    shown.root.focus()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("ArrowLeft")
    assert shown.time() == pytest.approx(0.1)
    keys.press("End")
    assert shown.time() == 6.0
    keys.press("Home")
    keys.press("+")
    assert float(shown.now("zoom")) == 1.25
    keys.press("-")
    assert float(shown.now("zoom")) == 1 and shown.time() == 0
    keys.press("Space")
    expect(shown.root).to_have_attribute("data-playing", "true")
    keys.press("Space")
    expect(shown.root).to_have_attribute("data-playing", "false")


@pytest.mark.browser
def test_wheel_drag_camera_and_trails_change_the_picture(show):
    shown = show()
    canvas = shown.page.locator(".avs-player canvas.view").first
    box = canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(*middle)
    shown.page.mouse.wheel(0, -300)
    assert float(shown.now("zoom")) == 1  # without a click the wheel is the page's
    canvas.click()
    shown.page.mouse.wheel(0, -300)
    expect(shown.root).not_to_have_attribute("data-zoom", "1.000")
    seen = {shown.pixels()}
    for do in ("fixed", "follow", "trails"):
        shown.page.locator(".avs-player input.time").evaluate(
            "e => { e.value = 3; e.dispatchEvent(new Event('input')); }")
        shown.press(do)
        seen.add(shown.pixels())
    assert len(seen) == 4 and shown.now("camera") == "ego" and shown.now("trails") == "false"
    shown.page.mouse.move(*middle)
    shown.page.mouse.down()
    shown.page.mouse.move(middle[0] + 60, middle[1] + 20)
    shown.page.mouse.up()
    assert shown.pixels() not in seen


@pytest.mark.browser
def test_the_strips_can_be_dragged_to_a_time(show):
    shown = show()
    box = shown.page.locator(".avs-player canvas.strips").bounding_box()
    y, width = box["y"] + 60, box["width"] - 44 - 92  # between the axis at the left and the numbers at the right
    shown.page.mouse.move(box["x"] + 44, y)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 44 + width / 2, y)
    shown.page.mouse.up()
    assert shown.time() == pytest.approx(3.0, abs=0.02)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_types_have_their_colours_in_light_and_dark(show, scheme):
    shown = show(scheme=scheme)
    shown.page.locator(".avs-player input.time").evaluate("e => { e.value = 3; e.dispatchEvent(new Event('input')); }")
    lifted = {"light": 0, "dark": 0.22}[scheme]  # towards white
    for color in ("#B05CC0", "#0072B2", "#D55E00", "#009E73"):  # ego, car, bus, person
        rgb = [int(color[i:i + 2], 16) for i in (1, 3, 5)]
        assert ",".join(str(int(v + lifted * (255 - v) + 0.5)) for v in rgb) in shown.colours()
    ground = shown.page.locator("[data-testid=stApp]").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 300) == (scheme == "dark")


@pytest.mark.browser
def test_a_picture_can_be_saved_and_text_from_data_is_only_text(show):
    shown = show(pair=1)
    with shown.page.expect_download() as download:
        shown.press("picture")
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) > 20_000
    assert download.value.suggested_filename.endswith("_0.0s.png")
    expect(shown.page.locator("figure.scene .title").first).to_have_text(EVIL)
    assert shown.page.locator(".avs-player img").count() == 0
