"""A real browser on a pack: it opens without a request, fits the screen, and prints without a cut figure."""

import pytest

from tests.pages.browsing import browser

PAGE_W, PAGE_H = (210 - 2 * 14) * 96 / 25.4, (297 - 15 - 16) * 96 / 25.4  # A4 less the margins of the style, in pixels

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


@pytest.fixture
def opened(chromium, packs, tmp_path):
    """opened(width, scheme) -> page of the localized case, its requests and complaints."""
    path = tmp_path / "pack.html"
    path.write_text(packs["localized"].html, encoding="utf-8")
    contexts = []

    def open_(width=1024, scheme="light"):
        context = chromium.new_context(viewport={"width": int(width), "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page, asked, errors = context.new_page(), [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri(), wait_until="load")
        return page, [url for url in asked if not url.startswith("data:")], errors

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (1024, "dark"), (420, "light")])
def test_it_opens_alone_and_fits_the_screen(opened, width, scheme):
    page, asked, errors = opened(width, scheme)
    assert asked == [page.url] and errors == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    drawn = page.evaluate("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)")
    assert len(drawn) >= 7 and min(drawn) > 50
    assert page.evaluate("[...document.images].length") == 0  # the maps are within their pictures


def test_a_policy_forbids_scripts_and_requests(opened):
    page, _, errors = opened()
    page.evaluate("""() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';
        document.head.append(s); const i = new Image(); i.src = 'https://example.org/x.png';
        document.body.append(i); }""")
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in errors)


def test_it_prints_whole_figures(opened):
    page, _, _ = opened(PAGE_W, "dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= PAGE_W + 1
    boxes = page.evaluate("""[...document.querySelectorAll('figure, article, .keep, tr')].map(e => {
        const b = e.getBoundingClientRect(); return [e.tagName, b.left, b.right, b.height,
        getComputedStyle(e).breakInside]; })""")
    assert len(boxes) > 60
    for name, left, right, height, inside in boxes:
        assert inside == "avoid" and height < PAGE_H and left >= -1 and right <= PAGE_W + 1, name
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert pdf.startswith(b"%PDF") and 8 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 40
