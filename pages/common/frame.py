"""The frame of every page: set-up, login, menu, the choice of P and Q, and errors as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields

import streamlit as st

from avshift_core import AVShiftError, __version__
from avshift_core.config import VIEWS, AnalysisConfig
from avshift_core.jobs.kinds import code_version, job_key
from avshift_core.latent.corpora import choose_latents, cohort_name
from avshift_core.scenario.store.corpus import Corpus
from avshift_core.scenario.store.query import CohortQuery
from pages.common import cohorts, outbox, state
from pages.common.cached import Loaded, board, corpus, settle, workspace
from pages.common.gate import require_login
from pages.common.jobs import result_of
from pages.common.notes import enter
from pages.common.share import run_notice, share
from pages.common.text import escape

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" fill="none" stroke-width="7">
<path d="M4 52 C18 52 18 14 28 14 S38 52 60 52" stroke="#0072B2"/>
<path d="M4 52 C26 52 28 26 38 26 S46 52 60 52" stroke="#D55E00"/></svg>"""
PAGES = {  # title -> file, icon, help
    "Overview": ("app.py", "dashboard", "What is loaded, P and Q, the verdict and its headline numbers."),
    "Global test": ("pages/global_test.py", "balance", "How far P and Q differ, and how sure that is."),
    "Latent map": ("pages/latent_map.py", "scatter_plot", "All scenarios as a map, to select and look into."),
    "Regions": ("pages/regions.py", "my_location", "Where P and Q differ, named and drawn."),
    "Scenario": ("pages/scenario.py", "play_circle", "Replay a scenario and its nearest neighbours."),
    "Calibration": ("pages/calibration.py", "tune", "What P's metric would be in the traffic of Q."),
    "Versions": ("pages/versions.py", "compare_arrows", "Is one AV version better, or did it meet easier traffic?"),
    "Clusters": ("pages/clusters.py", "workspaces", "Kinds of scenarios and their event rates."),
    "Monitor": ("pages/monitor.py", "monitoring", "Has anything changed since the reference, week by week?"),
    "Lab": ("pages/lab.py", "science", "How far from the truth, where it is known."),
    "Data & models": ("pages/data.py", "database", "Corpora, imports, encoder, jobs."),
    "Glossary": ("pages/glossary.py", "menu_book", "Every statistic: formula, meaning, limits."),
}
DEMO = "Demo fleet"
VIEW_NAMES = {"full": "Whole scenario", "context": "Context only"}
IN_URL = tuple(f.name for f in fields(AnalysisConfig) if f.name in state.OF_RUN)

outbox.mend()


@dataclass(frozen=True, eq=False)
class Desk:
    """What a page works on. `corpus` is None on pages that need none."""

    title: str
    corpus: Corpus | None = None
    source: CohortQuery | None = None
    target: CohortQuery | None = None
    view: str = VIEWS[0]

    @property
    def names(self) -> tuple[str, str]:
        return cohort_name(self.source), cohort_name(self.target)


def frame(title: str, *, needs_corpus: bool = True) -> Desk:
    """Set up the page; the first statement of every page."""
    st.set_page_config(page_title=f"{title} · AVShift", page_icon=ICON, layout="wide")
    require_login()
    state.arrive(title)
    settle(title)
    with errors_as_sentences():
        board()
    with st.sidebar:
        st.markdown("### AVShift")
        st.caption("Is it the car, or the traffic it met?")
    _menu(title)
    body = st.container()
    if not needs_corpus:
        st.sidebar.caption(f"engine {__version__} · code `{code_version()[:8]}`", help="Version of the software, and a "
                           "fingerprint of its sources: equal ones give equal numbers.")
        return Desk(title)
    with body, errors_as_sentences():
        opened = _corpus_or_stop()
    with body, errors_as_sentences(_offer_default):
        source, target = cohorts.chosen("P", opened), cohorts.chosen("Q", opened)
    with st.sidebar:
        return Desk(title, opened, source, target, _choose(opened, source, target))


def _offer_default() -> None:
    st.button("Compare the default cohorts", on_click=state.go, kwargs={"P": None, "Q": None})


def _menu(title: str) -> None:
    with st.container(horizontal=True, gap=None, key="menu"):
        places = {name: st.empty() for name in PAGES}

    def draw() -> None:
        for name, (page, _, text) in PAGES.items():  # without icons twelve titles stand in one line of 1,440 pixels
            places[name].page_link(page, label=f"**{name}**" if name == title else name, help=text,
                                   query_params=state.values())

    state.draw_menu(draw)


def corpora() -> dict[str, str]:
    """Name -> folder or URL of every corpus on offer, the demo first."""
    return {DEMO: workspace().demo, **workspace().corpora.read()}


def _corpus_or_stop() -> Corpus:
    offered = corpora()
    name = state.value("corpus", DEMO)
    with st.sidebar:
        if len(offered) > 1 or name not in offered:
            state.select("corpus", "Corpus", list(offered), DEMO, help="More under Data & models.")
    if name not in offered:
        raise AVShiftError(f"There is no corpus called '{name}' here. It may have been removed from the list; choose "
                           "another in the sidebar, or add it again under Data & models.")
    if name == DEMO:
        _demo_or_stop(offered[name])
    return corpus(offered[name])


def _demo_or_stop(url: str) -> None:
    """The demo corpus is made and encoded on the first start."""
    try:
        encoded = list(corpus(url).models.values())
        ready = len(encoded) == len(VIEWS) and all(n == corpus(url).n for n in encoded)
    except AVShiftError:
        ready = False
    running = board().find(job_key("demo", {"url": url}))
    if ready and (running is None or running.over):
        return
    st.markdown("### Preparing the demo")
    st.markdown("On the first start a fleet of 40,000 scenarios is simulated and encoded. It takes a few minutes, and "
                "afterwards the dashboard opens at once. A reload loses nothing.")
    if result_of("demo", "Preparing the demo corpus", url=url) is None:
        st.stop()


def _choose(opened: Corpus, source: CohortQuery, target: CohortQuery) -> str:
    """Widgets of both cohorts; the answer is the view of the scenarios to compare."""
    cohorts.choose("P", opened, source)
    st.button("Swap P and Q", icon=":material/swap_vert:", on_click=cohorts.swap, args=(opened,), width="stretch")
    cohorts.choose("Q", opened, target)
    return state.select(
        "view", "Compare by", VIEWS, VIEWS[0], format_func=VIEW_NAMES.get,
        help="Whole scenario: everything that happened, the AV's own reaction included. Context only: what the AV did "
        "not cause; the one to compare AV versions by.",
    )


def settings() -> dict:
    """Settings of the analysis in the URL that differ from the defaults."""
    found = {}
    for setting in fields(AnalysisConfig):
        text = state.value(setting.name)
        if setting.name in IN_URL and text:
            kind = type(setting.default)
            try:
                found[setting.name] = text == "1" if kind is bool else kind(float(text)) if kind is int else kind(text)
            except (ValueError, OverflowError):
                raise AVShiftError(f"The link says {setting.name}={text!r:.40}, which is no value for it. Remove it "
                                   "from the address, or set it under Settings.") from None
    plain = asdict(AnalysisConfig(**found))  # outside of its range: refused here
    return {name: plain[name] for name in found}


def comparison_or_stop(desk: Desk) -> Loaded:
    """The comparison of P and Q; while there is none, its progress or its error stands here and the page ends."""
    with errors_as_sentences():
        cohorts.check(desk.corpus, desk.source, desk.target)
        choose_latents(desk.corpus, None, desk.view)
        arguments = {
            "corpus": desk.corpus.url, "fingerprint": desk.corpus.fingerprint, "source": str(desk.source),
            "target": str(desk.target), "view": desk.view, "config": settings(),
        }
        found = result_of("comparison", "Comparing {} with {}".format(*desk.names), **arguments)
    if found is None:
        st.stop()
    loaded = Loaded(job_key("comparison", arguments), found)
    with st.sidebar:
        state.clip_notice()
        _metric(loaded)
        _identity(loaded)
        share(desk, loaded, metric_of(loaded) if loaded.comparison.metrics else "")
    enter(loaded)
    run_notice(loaded)
    return loaded


def metric_of(loaded: Loaded) -> str:
    """The metric that the URL names, or the first there is."""
    wanted = state.value("metric")
    return wanted if wanted in loaded.comparison.metrics else loaded.comparison.metrics[0]


def _metric(loaded: Loaded) -> None:
    """Event and, where it has one, its threshold."""
    c = loaded.comparison
    if not c.metrics:
        st.warning("No metric of these cohorts varies: there is nothing to calibrate.")
        return
    wanted = state.value("metric")
    if wanted and wanted not in c.metrics:
        reason = c.left_out.get(wanted, f"There is no metric '{wanted}' in this comparison.")
        st.warning(f"{reason} Shown instead: {c.phrase(metric_of(loaded))}.")
    family = c.family(metric_of(loaded))
    labels = {f.column: f.label for f in c.families}

    def family_changed() -> None:
        new = next(f for f in c.families if f.column == st.session_state["family"])
        state.go(metric=new.texts[len(new.texts) // 2])

    state.show("family", family.column)
    st.selectbox("Metric", list(labels), key="family", format_func=labels.get, on_change=family_changed,
                 help="The event whose rate is calibrated.")
    if family.thresholds:
        word = "below" if family.direction == "<" else "above"
        state.slider("metric", f"Event: {word} … {family.unit}", family.texts, metric_of(loaded),
                     format_func=lambda t: f"{family.thresholds[family.texts.index(t)]:g}")


def _identity(loaded: Loaded) -> None:
    a, c = loaded.analysis, loaded.comparison
    st.caption(
        f"Run `{loaded.run}`  \nP `{a.P.fingerprint[:8]}` · {a.P.n:,}  \nQ `{a.Q.fingerprint[:8]}` · {a.Q.n:,}  \n"
        f"latents `{c.latents[:8]}` · seed {a.config.seed} · engine {__version__}",
        help="The run names data, latents, settings and engine: equal runs, equal numbers. Fingerprints are taken over "
        "every byte of a cohort.",
    )


@contextmanager
def errors_as_sentences(way_on: Callable[[], None] | None = None) -> Iterator[None]:
    """Show what an analyst can cause as its own text, with a way on, and end there; a bug keeps its traceback."""
    try:
        yield
    except AVShiftError as error:
        st.error(escape(str(error)), icon=":material/error:")
        if way_on is not None:
            way_on()
        st.stop()
