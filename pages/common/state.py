"""What a link carries. The URL is the truth of everything that pages share; widgets only show and change it.

Streamlit's own binding of widgets to the URL forgets values when the page changes, so it is done here: a widget is set
from the URL before it is drawn, and its change is written to the URL before the page runs again. Back, forward, reload
and a link in another browser then all come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState, get_script_run_ctx

from avshift_core.config import AnalysisConfig

# How to draw the menu, what its links carry, the page it is on, and what the URL says since.
MENU, CARRIED, PAGE, LAST = "_menu", "_carried", "_page", "_last"
CLIPS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0)
# What makes a run; the clip moves live, and events have M = 1. A link that names its run no longer does so when one of
# these is changed.
OF_RUN = ("corpus", "P", "Q", "view", *(f.name for f in fields(AnalysisConfig) if f.name not in ("B", "M")))
LONGEST = 4000  # characters of one value; nobody needs more, and a hostile link might have it


def values() -> dict[str, str]:
    """All that the URL says."""
    return {name: value[:LONGEST] for name, value in st.query_params.to_dict().items()}


def value(name: str, default: str = "") -> str:
    return values().get(name, default)


def integer(name: str, default: int = 0) -> int:
    """A whole number of the URL; what is none counts as the default."""
    try:
        return int(value(name, str(default)))
    except ValueError:
        return default


def real(name: str, default: float) -> float:
    """A finite number of the URL; what is none counts as the default."""
    try:
        found = float(value(name, str(default)))
    except ValueError:
        return default
    return found if abs(found) < 1e12 else default  # also False for not-a-number


def go(**changes: Any) -> None:
    """Write to the URL; None and "" remove a value."""
    for name, text in _changed(changes).items():
        if text:
            if st.query_params.get(name) != text:
                st.query_params[name] = text
        elif name in st.query_params:
            del st.query_params[name]
    st.session_state[LAST] = values()


# Links that follow ---------------------------------------------------------------------------------------------------


def arrive(page: str) -> None:
    """Take over what was changed after the menu was drawn, if it was the menu that led here.

    Fragments change the URL first and the menu's links last, so that a quick click may find them old. Back and forward
    lead to URLs that the menu did not have, and there the URL is right.
    """
    before, carried, last = (st.session_state.get(name) for name in (PAGE, CARRIED, LAST))
    if before not in (None, page) and carried == values() and last not in (None, carried):
        go(**{**dict.fromkeys(carried), **last})
    st.session_state[PAGE] = page


def draw_menu(draw: Callable[[], None]) -> None:
    """Draw links that carry all that the URL says; `fragment` draws them again when it has changed."""
    draw()
    st.session_state[MENU] = draw
    st.session_state[CARRIED] = st.session_state[LAST] = values()


def fragment(function: Callable) -> Callable:
    """st.fragment, at whose end the menu's links follow what it has changed in the URL."""
    @wraps(function)
    def drawn(*args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        if MENU in st.session_state and st.session_state[CARRIED] != values():
            with ThreadState.scoped(fragment_id=None):  # the links stand outside of the fragment
                draw_menu(st.session_state[MENU])
        return result

    return st.fragment(drawn)


def link(page: str, label: str, *, icon: str | None = None, help: str | None = None, **changes: Any) -> None:
    """A link to another page that keeps everything but `changes`."""
    st.page_link(page, label=label, icon=icon, help=help, query_params=_merged(changes))


def open_page(page: str, **changes: Any) -> None:
    """Go to another page now."""
    st.switch_page(page, query_params=_merged(changes))


def _merged(changes: dict[str, Any]) -> dict[str, str]:
    return {name: text for name, text in {**values(), **_changed(changes)}.items() if text}


def _changed(changes: dict[str, Any]) -> dict[str, str]:
    """Changes of the URL as it has them, "" for what goes; with what makes a run, the run that a link names goes."""
    texts = {name: "" if new is None else _text(new) for name, new in changes.items()}
    other = any(name in OF_RUN and text != st.query_params.get(name, "") for name, text in texts.items())
    return {"run": "", **texts} if other else texts


def _text(new: Any) -> str:
    if isinstance(new, bool):
        return "1" if new else "0"
    return f"{new:g}" if isinstance(new, float) else str(new)


# Widgets -----------------------------------------------------------------------------------------------------------


def show(key: str, shown: Any) -> None:
    """Let the widget with this key show a value.

    In a whole run it is set again even if it has not changed: a run that the next one cut short has set it too, but may
    never have reached the browser, which would then show the widget's first value and send it back as a choice.
    """
    whole = not get_script_run_ctx().fragment_ids_this_run
    if whole or key not in st.session_state or st.session_state[key] != shown:
        st.session_state[key] = shown


def _bind(name: str, shown: Any, write: Callable[[Any], Any] = lambda new: new) -> dict[str, Any]:
    """Key and callback of a widget that shows a value of the URL."""
    key = f"url_{name}"
    show(key, shown)

    def changed() -> None:
        go(**{name: write(st.session_state[key])})

    return {"key": key, "on_change": changed}


def _chosen(name: str, options: Sequence[Any], default: Any) -> Any:
    """The option that the URL names; unknown ones count as the default."""
    wanted = value(name, _text(default))
    return next((option for option in options if _text(option) == wanted), default)


def select(name: str, label: str, options: Sequence[Any], default: Any, **more: Any) -> Any:
    """A select box."""
    return st.selectbox(label, options, **_bind(name, _chosen(name, options, default)), **more)


def segmented(name: str, label: str, options: Sequence[Any], default: Any, **more: Any) -> Any:
    """A row of buttons, one of which is on."""
    shown = _chosen(name, options, default)
    return st.segmented_control(label, options, required=True, **_bind(name, shown), **more)


def slider(name: str, label: str, options: Sequence[Any], default: Any, **more: Any) -> Any:
    """A slider over given values."""
    return st.select_slider(label, options, **_bind(name, _chosen(name, options, default)), **more)


def clip_value() -> float:
    """The clip B that the URL says."""
    return _chosen("B", CLIPS, 10.0)


def clip_notice() -> None:
    """Say so where the URL names a clip that there is not."""
    said = value("B")
    if said and said != _text(clip_value()):
        st.warning(f"The link says B={said[:40]!r}, which is no place of the slider. Shown: clip {clip_value():g}.")


def clip() -> float:
    """The clip B, log-spaced."""
    return slider(
        "B", "Clip B: the largest weight a scenario may get", CLIPS, 10.0, format_func=lambda b: f"{b:g}",
        help="Largest weight that a scenario of P may get. Low: steady, but leaning towards P. High: closer to Q, but "
        "a few scenarios may dominate.",
    )


def several(name: str, label: str, options: Sequence[Any], default: Sequence[Any] = (), **more: Any) -> list[Any]:
    """A choice of several values, joined by | in the URL; with a default, "-" stands for none of them."""
    wanted = value(name).split("|") if value(name) else list(map(_text, default))
    shown = [option for option in options if _text(option) in wanted]
    none = "-" if default else ""
    return st.multiselect(label, options, **_bind(name, shown, lambda new: "|".join(map(_text, new)) or none), **more)


def toggle(name: str, label: str, default: bool = False, **more: Any) -> bool:
    """A switch."""
    shown = {"1": True, "0": False}.get(value(name), default)
    return st.toggle(label, **_bind(name, shown, lambda new: None if new == default else new), **more)


def text(name: str, label: str, default: str = "", **more: Any) -> str:
    """A line of text."""
    return st.text_input(label, **_bind(name, value(name, default)), **more)


def number(name: str, label: str, default: float, **more: Any) -> float:
    """A field for a number."""
    shown = type(default)(real(name, default))
    low, high = more.get("min_value"), more.get("max_value")
    if (low is not None and shown < low) or (high is not None and shown > high):
        shown = default
    return st.number_input(label, **_bind(name, shown, lambda new: None if new == default else new), **more)
