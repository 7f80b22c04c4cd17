"""A pulse: it runs the fragment it stands in again and again, for as long as it stands on the page.

Streamlit's own `run_every` keeps its timers apart from the page: the start of a whole run ends them, and the message
that starts them again is dropped when the session's next run begins before it was sent. A page whose job has just made
room for the next one then stood still until somebody reloaded it. Here the timer belongs to the element: a message that
is lost costs one beat.
"""

from __future__ import annotations

import streamlit as st

_component = st.components.v2.component("avshift_pulse", html="", js="""
const timers = new WeakMap();  // this runs again whenever the theme changes
export default function ({ data, parentElement, setTriggerValue }) {
  clearInterval(timers.get(parentElement));
  timers.set(parentElement, setInterval(() => setTriggerValue("beat", Date.now()), 1000 * data.every_s));
  return () => clearInterval(timers.get(parentElement));
}
""")


def pulse(key: str, every_s: float) -> None:
    """Run the enclosing fragment every so many seconds."""
    _component(key=f"pulse_{key}", data={"every_s": every_s}, height=1, on_beat_change=lambda: None)
