"""The map by itself in a real Chromium: quick, in no order, selected as the engine says, kept on recolour."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from avshift_core.latent.outline import density_difference, inside, outlines
from avshift_core.latent.pack import GRID, Categories, Scale, Stamp, Words, pack
from tests.pages.browsing import PATIENCE, Visit
from tests.pages.visitor import Server

ROOT = Path(__file__).parents[2]
EVIL = "<img src=x onerror=document.title='cracked'>"
P, Q = "#0072B2", "#D55E00"
SCRIPT = """
import json
import streamlit as st
from avshift_core.latent.pack import Lasso
from pages.common.map import Layers, drawn, latent_map, layers_of
from tests.pages.test_map_component import shown, stamp

st.set_page_config(layout="wide")
colour = st.radio("Colour", ["cohort", "swapped", "level"], horizontal=True)
link = st.query_params


@st.fragment
def board():
    packed, lines, density, xy = shown(int(link.get("n", 400)), colour, link.get("order", ""))
    wanted = Lasso.parse(link["sel"]) if "sel" in link else None

    def kept():
        line = drawn("map")
        if line is None:
            link.pop("sel", None)
        else:
            link["sel"] = line.text

    found = latent_map(packed, key="map", height=500, outlines=lines, density=density, selection=wanted,
                       on_selection=kept, alt="Test map", stamp=stamp())
    rows = [] if found.lasso is None else found.lasso.mask(xy).nonzero()[0].tolist()
    st.text("rows " + json.dumps([len(rows), sum(rows)]))
    if found.row is not None:
        st.text(f"clicked {found.row}")
    st.button("Clear from here", on_click=lambda: link.pop("sel", None))


board()
"""


def places(n: int):
    """Two clouds, and the cohorts in them: the right one holds more of Q."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.5).astype(np.uint8)
    right = rng.random(n) < np.where(y == 1, 0.7, 0.3)
    xy = rng.normal(size=(n, 2)) + np.where(right[:, None], [4, 1], [-4, -1])
    return xy.astype(np.float32), y


def shown(n: int, colour: str, order: str = ""):
    xy, y = places(n)
    rows = np.arange(n)[::-1] if order == "reversed" else None
    count = tuple(np.bincount(y, minlength=2).tolist())
    hues = (Q, P) if colour == "swapped" else (P, Q)
    colours = Categories("Cohort", (f"P {EVIL}", "Q"), hues, ("#3D9BE0", "#F28C38"), y, (1, 1), count)
    if colour == "level":
        level = np.rint((xy[:, 0] - xy[:, 0].min()) / np.ptp(xy[:, 0]) * 254).astype(np.uint8)
        level[:10] = 255
        colours = Scale("Speed", "m/s", level, 0.0, 30.0, False, ((0, "0"), (127, "15"), (254, "30")), (P, Q),
                        ("#3D9BE0", "#F28C38"), 10)
    words = [Words("Category", (EVIL, "plain"), y)]
    packed = pack(xy, colours, space="umap", axes=("UMAP 1", "UMAP 2"), words=words, rows=rows)
    return packed, outlines(xy, (xy[:, 0] > 0).astype(int), ["R1", "R2"]), density_difference(xy, y), xy


def stamp() -> Stamp:
    return Stamp("A map & its title", "AVShift run 0123456789ab", "avshift_map_test")


def test_the_page_sends_bytes_and_no_html(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SCRIPT)
    page = AppTest.from_file(str(path), default_timeout=60).run()
    assert not page.exception
    (sent,) = [e.proto for e in page.main if getattr(e.proto, "component_name", "") == "avshift_map"]
    assert sent.WhichOneof("data") == "bytes" and EVIL.encode() in sent.bytes and EVIL not in sent.html_content
    assert page.text[0].value == "rows [0, 0]"


def test_nothing_in_the_map_makes_html_of_text_or_asks_for_anything():
    for path in sorted((ROOT / "pages/common").glob("map*.js")):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp|import\(|"
                             r"https?://(?!www\.w3\.org)", path.read_text()), path


# In a browser --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    (folder / "small.py").write_text(SCRIPT)
    with Server(folder, script=str(folder / "small.py")) as running:
        yield running.url
        assert "Traceback" not in running.log, running.log


class Shown(Visit):
    """A page with the map on it."""

    def __init__(self, chromium, server, link, scheme="light", width=1200) -> None:
        self.received = []
        super().__init__(chromium, server, link=link, scheme=scheme, width=width, height=900)
        self.stage = self.page.locator(".stage[data-draws]")
        expect(self.stage).to_be_visible(timeout=PATIENCE)
        expect(self.page.get_by_text("rows [")).to_be_visible(timeout=PATIENCE)
        self.page.wait_for_timeout(400)

    def _listen(self, socket) -> None:
        super()._listen(socket)
        socket.on("framereceived", lambda data: self.received.append(len(data)))

    def data(self, name: str) -> str:
        return self.stage.get_attribute(f"data-{name}")

    def number(self, name: str) -> float:
        return float(self.data(name))

    def press(self, name: str) -> None:
        self.page.locator(f"[data-do='{name}']").click()

    def pick(self, colour: str) -> None:
        draws = self.data("draws")
        self.page.get_by_test_id("stRadio").get_by_text(colour, exact=True).click()
        expect(self.stage).not_to_have_attribute("data-draws", draws, timeout=PATIENCE)
        self.page.wait_for_timeout(300)

    def pixels(self) -> dict:
        """Every pixel of the points as hashes, for all channels and for the opacity alone."""
        return self.page.locator("canvas.points").evaluate("""c => {
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let all = 7, alpha = 7, ink = 0;
            for (let i = 0; i < d.length; i += 4) {
              alpha = (alpha * 31 + d[i + 3]) % 1000000007;
              for (let k = 0; k < 4; k++) all = (all * 31 + d[i + k]) % 1000000007;
              if (d[i + 3]) ink++;
            }
            return { all, alpha, ink }; }""")

    def screen(self, xy) -> np.ndarray:
        """(n, 2) where points of the map are in the window."""
        x, y, scale = map(float, self.data("view").split())
        packed, *_ = shown(len(xy), "cohort")
        x0, x1, y0, y1 = packed.extent
        grid = (np.asarray(xy) - [x0, y0]) * [GRID / (x1 - x0), GRID / (y1 - y0)]
        box = self.stage.bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        return np.column_stack([(grid[:, 0] - x) * scale, (y - grid[:, 1]) * scale]) + middle

    def drag(self, points) -> None:
        self.page.mouse.move(*points[0])
        self.page.mouse.down()
        for point in points[1:]:
            self.page.mouse.move(*point)
        self.page.mouse.up()

    def lasso(self, middle, radius: float) -> np.ndarray:
        """Draw a circle of so many pixels; its corners."""
        self.press("lasso")
        angle = np.linspace(0, 2 * np.pi, 60)
        corners = np.column_stack([np.cos(angle), np.sin(angle)]) * radius + middle
        self.drag(corners.tolist())
        return corners

    def rows(self) -> list[int]:
        """How many rows the server has selected, and their sum."""
        return json.loads(self.page.get_by_text("rows [").inner_text().removeprefix("rows "))

    def expect_rows(self, rows) -> None:
        expect(self.page.get_by_text(f"rows [{len(rows)}, {int(sum(rows))}]")).to_be_visible(timeout=PATIENCE)


@pytest.fixture
def show(server, chromium):
    opened = []

    def show_(scheme="light", width=1200, **link) -> Shown:
        opened.append(Shown(chromium, server, link, scheme, width))
        return opened[-1]

    yield show_
    for one in opened:
        assert one.page.title() != "cracked"
        one.close()


@pytest.mark.browser
def test_180_000_points_are_drawn_within_two_seconds_of_their_arrival(show):
    one = show(n=180_000)
    assert one.number("n") == 180_000 and one.number("arrived-ms") < 2000
    expect(one.page.get_by_text("180,000 of 180,000 shown")).to_be_visible()
    assert one.pixels()["ink"] > 20_000
    assert max(one.received) < 1_400_000


@pytest.mark.browser
def test_the_order_of_the_points_does_not_change_a_pixel(show):
    forward, backward = show(n=30_000), show(n=30_000, order="reversed")
    assert forward.pixels() == backward.pixels()
    for colour in ("swapped", "level"):
        forward.pick(colour)
        backward.pick(colour)
        assert forward.pixels() == backward.pixels()


@pytest.mark.browser
def test_swapping_the_colours_moves_no_point_and_twice_is_the_same_picture(show):
    one = show(n=30_000)
    before = one.pixels()
    one.pick("swapped")
    swapped = one.pixels()
    assert swapped["alpha"] == before["alpha"] and swapped["all"] != before["all"]
    one.pick("cohort")
    assert one.pixels() == before


@pytest.mark.browser
def test_a_lasso_selects_the_rows_inside_and_sends_next_to_nothing(show):
    n = 4000
    one = show(n=n)
    xy, _ = places(n)
    at = one.screen(xy)
    middle = at[(xy[:, 0] > 0)].mean(axis=0)
    one.page.wait_for_timeout(500)
    sent, received = len(one.sent), len(one.received)
    corners = one.lasso(middle, 60)
    expect(one.page.get_by_text("rows [0, 0]")).to_have_count(0, timeout=PATIENCE)
    count, total = one.rows()
    expected = np.flatnonzero(inside(at, corners))
    distance = np.hypot(*(at - middle).T)
    doubtful = np.flatnonzero(np.abs(distance - 60) < 2)  # within two pixels of the line
    assert abs(count - len(expected)) <= len(doubtful) and count > 200
    assert abs(total - expected.sum()) <= doubtful.sum()
    assert sum(one.sent[sent:]) < 5000
    assert sum(one.received[received:]) < 20_000  # the points are not sent again


@pytest.mark.browser
def test_a_box_selects_and_escape_clears(show):
    one = show(n=400)
    xy, _ = places(400)
    at = one.screen(xy)
    x, y = np.median(at, axis=0)
    one.press("box")
    box = one.stage.bounding_box()
    one.drag([(box["x"] + 4, box["y"] + 4), (x, y), (x + 0.4, y + 0.4)])
    left = np.flatnonzero((at[:, 0] < x + 0.4) & (at[:, 1] < y + 0.4))
    near = ((np.abs(at - [x, y]) < 1.5).any(axis=1)).sum()
    expect(one.page.get_by_text("rows [0, 0]")).to_have_count(0, timeout=PATIENCE)
    assert abs(one.rows()[0] - len(left)) <= near
    one.page.keyboard.press("Escape")
    one.expect_rows([])
    assert "sel" not in one.link


@pytest.mark.browser
def test_a_click_finds_its_scenario_and_a_double_click_none(show):
    one = show(n=400)
    xy, _ = places(400)
    at = one.screen(xy)
    gaps = np.linalg.norm(at[:, None] - at[None], axis=-1) + np.eye(400) * 1e9
    alone = int(gaps.min(axis=1).argmax())  # nobody else is near this one
    one.page.mouse.dblclick(*at[alone])
    one.page.wait_for_timeout(700)
    assert one.page.get_by_text("clicked").count() == 0
    one.page.mouse.move(*(at[alone] + 2))
    expect(one.page.locator(".hint")).to_contain_text("Category")
    one.page.mouse.click(*(at[alone] + 2))
    expect(one.page.get_by_text(f"clicked {alone}", exact=True)).to_be_visible(timeout=PATIENCE)
    other = show(n=400, order="reversed")  # rows, not places in the message
    other.page.mouse.click(*(other.screen(xy)[alone] + 2))
    expect(other.page.get_by_text(f"clicked {alone}", exact=True)).to_be_visible(timeout=PATIENCE)


@pytest.mark.browser
def test_zoom_and_selection_stay_when_the_colours_change(show):
    one = show(n=4000)
    xy, _ = places(4000)
    one.lasso(one.screen(xy)[xy[:, 0] > 0].mean(axis=0), 60)
    expect(one.page.get_by_text("rows [0, 0]")).to_have_count(0, timeout=PATIENCE)
    rows, line = one.rows(), one.page.locator("path.selection").get_attribute("d")
    one.stage.hover(position={"x": 200, "y": 200})
    one.page.mouse.wheel(0, -300)
    one.page.wait_for_timeout(300)
    view, moved = one.data("view"), one.page.locator("path.selection").get_attribute("d")
    assert moved != line
    one.pick("level")
    assert one.data("view") == view and one.rows() == rows
    assert one.page.locator("path.selection").get_attribute("d") == moved
    expect(one.page.locator(".legend .ticks")).to_contain_text("15")
    expect(one.page.locator(".legend")).to_contain_text("no value")


@pytest.mark.browser
def test_a_link_brings_the_line_and_the_server_may_clear_it(show):
    first = show(n=400)
    xy, _ = places(400)
    first.lasso(first.screen(xy)[xy[:, 0] > 0].mean(axis=0), 80)
    expect(first.page.get_by_text("rows [0, 0]")).to_have_count(0, timeout=PATIENCE)
    first.page.wait_for_timeout(500)
    second = show(n=400, sel=first.link["sel"])
    assert second.page.locator("path.selection").get_attribute("d") == first.page.locator(
        "path.selection").get_attribute("d")
    first.page.get_by_text("Clear from here").click()
    expect(first.page.locator("path.selection")).to_have_count(0, timeout=PATIENCE)


@pytest.mark.browser
def test_the_keyboard_zooms_and_moves(show):
    one = show(n=400)
    start = one.data("view")
    one.stage.focus()
    scale = float(start.split()[2])
    for key, change in (("+", 1.4), ("-", 1.0), ("-", 1 / 1.4)):
        one.page.keyboard.press(key)
        one.page.wait_for_timeout(150)
        assert float(one.data("view").split()[2]) == pytest.approx(scale * change, rel=1e-4)
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_timeout(150)
    assert float(one.data("view").split()[0]) > float(start.split()[0])
    one.page.keyboard.press("0")
    one.page.wait_for_timeout(150)
    assert one.data("view") == start


@pytest.mark.browser
def test_the_difference_layer_and_the_outlines_can_be_switched(show):
    one = show(n=4000)
    under = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0)"
    assert one.page.locator("text.label").all_text_contents() == ["R1", "R2"]
    assert not one.page.locator("canvas.under").evaluate(under)
    one.press("density")
    one.page.wait_for_timeout(600)
    assert one.page.locator("canvas.under").evaluate(under)
    expect(one.page.locator(".legend")).to_contain_text("more of Q")
    one.press("shapes")
    one.page.wait_for_timeout(600)
    assert one.page.locator("text.label").count() == 0
    assert one.page.locator("[data-do='density']").get_attribute("aria-pressed") == "true"


@pytest.mark.browser
def test_a_name_in_the_legend_brings_its_scenarios_to_the_front(show):
    one = show(n=4000)
    before = one.pixels()
    chip = one.page.locator(".legend .chip").nth(1)
    expect(one.page.locator(".legend .chip").first).to_contain_text("<img")  # as text
    chip.click()
    one.page.wait_for_timeout(300)
    assert one.pixels()["all"] != before["all"] and one.pixels()["ink"] == before["ink"]
    chip.click()
    one.page.wait_for_timeout(300)
    assert one.pixels() == before


@pytest.mark.browser
def test_dark_pages_have_brighter_colours(show):
    light, dark = show(n=400), show("dark", n=400)
    hue = "e => getComputedStyle(e).backgroundColor"
    assert light.page.locator(".swatch").first.evaluate(hue) == "rgb(0, 114, 178)"
    assert dark.page.locator(".swatch").first.evaluate(hue) == "rgb(61, 155, 224)"
    assert light.pixels()["all"] != dark.pixels()["all"] and light.pixels()["alpha"] == dark.pixels()["alpha"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 760])
def test_tools_and_legend_stay_within_the_map(show, width):
    one = show(n=400, width=width)
    stage = one.stage.bounding_box()
    for part in one.page.locator(".bar button:visible, .legend > *").all():
        box = part.bounding_box()
        assert box["x"] >= stage["x"] - 1 and box["x"] + box["width"] <= stage["x"] + stage["width"] + 1


@pytest.mark.browser
def test_pictures_to_save_have_title_legend_and_run(show, tmp_path):
    one = show(n=400)
    for kind in ("svg", "png"):
        with one.page.expect_download() as waiting:
            one.press(kind)
        assert waiting.value.suggested_filename == f"avshift_map_test.{kind}"
        waiting.value.save_as(tmp_path / f"map.{kind}")
    text = (tmp_path / "map.svg").read_text()
    words = [e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert {"A map & its title", "R1", "R2", "Cohort"} <= set(words)
    assert any("AVShift run 0123456789ab" in w for w in words) and any(EVIL in w for w in words)
    assert "data:image/png;base64," in text and "<img" not in text
    picture = (tmp_path / "map.png").read_bytes()
    width = int.from_bytes(picture[16:20], "big")  # of the header of a PNG
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and width == 2 * round(one.stage.bounding_box()["width"] - 2)
