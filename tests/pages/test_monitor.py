"""The monitor page: with an alarm, without one, with bad links; what is chosen stands in the link."""

import pytest

from avshift_core.jobs.kinds import job_key
from avshift_core.monitoring.watch import watch_steps
from avshift_core.progress import finish
from avshift_core.scenario.store.corpus import open_corpus
from tests.latent.weeks import add_week
from tests.pages.conftest import words

DAYS = ("2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23")
NAME = "Grown"
LINK = {"corpus": NAME}


@pytest.fixture(scope="module")
def grown(home):
    """Four weeks of 40 drives, the last with other traffic and another AV version."""
    url = str(home.folder.parent / "grown")
    for k, day in enumerate(DAYS):
        add_week(url, day, n=400, drives=40, move=2.5 * (k == 3), version="v2" if k == 3 else "v1")
    home.corpora.update(lambda old: {**old, NAME: url})
    yield url
    home.corpora.update(lambda old: {name: url for name, url in old.items() if name != NAME})


def plain(page) -> str:
    """All text, without the marks that keep markdown from reading it."""
    return words(page).replace("\\", "")


def metrics(page):
    return {m.label: m.value for m in page.metric}


@pytest.fixture
def alarmed(open_page, grown):
    return open_page("pages/monitor.py", LINK)


def test_an_alarm_is_the_first_line_and_leads_to_the_comparison(alarmed, home, grown):
    text = plain(alarmed)
    assert ":red-badge[:material/notifications_active: alarm]" in text
    assert "Traffic has changed: first alarm in 2026-W13." in text
    assert "2 weeks with 80 drives held against 2026-W10, 2026-W11" in text
    assert all(m.help for m in alarmed.metric) and list(metrics(alarmed)) == ["Traffic", "Discomfort", "Reference"]
    assert metrics(alarmed)["Reference"] == "80 drives"
    table = alarmed.dataframe[0].value
    assert table["Week"].tolist() == ["2026-W10 (reference)", "2026-W11 (reference)", "2026-W12", "2026-W13"]
    assert table["Traffic: wealth"].iloc[3].endswith("★") and table["AV"].iloc[3] == "v2"
    assert "AV versions differ" in alarmed.warning[0].value and "Global shift" in text
    assert len(alarmed.get("plotly_chart")) == 2
    links = {link.proto.label: link.proto.query_string for link in alarmed.get("page_link")}
    assert "Q=period%3D2026-W13" in links["Compare the reference with 2026-W13"]
    assert "P=period%3D2026-W10%7C2026-W11" in links["Compare the reference with 2026-W13"]


def test_numbers_on_the_page_are_those_of_the_engine(alarmed, grown):
    watch = finish(watch_steps(grown, "period=2026-W10|2026-W11", "", ["discomfort"], "full"))
    traffic = watch.monitor.streams[0]
    table = alarmed.dataframe[0].value
    rate = watch.monitor.streams[1].rates[2]
    assert table["Discomfort"].iloc[2].startswith(f"{100 * rate.mu:.2f}")
    assert f"p-value {watch.monitor.p_anytime(traffic):.2g}" in alarmed.metric[0].help


def test_choices_stand_in_the_link(open_page, grown):
    page = open_page("pages/monitor.py", {**LINK, "ref": "2026-W10", "in_version": "v1", "watch": "-", "level": "0.01"})
    assert "No alarm after 2 weeks." in words(page) and list(metrics(page)) == ["Traffic", "Reference"]
    assert "chance of at most 0.01" in words(page) and not page.warning
    page.multiselect(key="url_watch").set_value(["ttc_min_s<1.5"]).run()
    assert page.query_params["watch"] == "ttc_min_s<1.5"


@pytest.mark.parametrize(("link", "sentence"), [
    ({"level": "2"}, "alpha is 2; it is the largest chance of a false alarm"),
    ({"level": "often"}, "alpha is nan"),
    ({"ref": "2026-W13"}, "There is no week after the reference"),
    ({"ref": "-"}, "No reference is chosen"),
    ({"rank": "day"}, "The reference has 2 days"),
    ({"seed": "-4"}, "seed is -4"),
])
def test_a_link_that_cannot_be_is_a_sentence(open_page, grown, link, sentence):
    page = open_page("pages/monitor.py", {**LINK, **link})
    assert sentence in page.error[0].value.replace("\\", "")


def test_unknown_names_in_a_link_count_as_the_default(open_page, grown, alarmed):
    page = open_page("pages/monitor.py", {**LINK, "in_area": "<script>", "watch": "crash|discomfort", "traffic": "x"})
    assert "first alarm in 2026-W13" in plain(page) and "script" not in plain(page)


def test_the_demo_opens_with_its_own_reference(open_page, home):
    page = open_page("pages/monitor.py")
    key = job_key("monitor", {
        "corpus": home.demo, "fingerprint": open_corpus(home.demo).fingerprint, "where": "area=harbor",
        "reference": "period=2026-W10|2026-W11", "metrics": ["hard_brake", "discomfort"], "view": "context",
        "alpha": 0.05, "unit": "drive", "seed": 0})
    assert home.results.has(key)
    assert len(page.dataframe[0].value) == 8 and "AV versions differ" in page.warning[0].value
