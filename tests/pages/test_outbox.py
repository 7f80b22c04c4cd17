"""What is not sent yet when a part of a page runs again."""

import time

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

import pages.common.frame  # noqa: F401 - every page begins with it
from pages.common.outbox import _streamlits_clear
from tests.pages.visitor import PATIENCE_S, ROOT, Server, Visitor

SERVE = """
import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue as Queue

enqueue, flush = Queue.enqueue, Queue.flush

def counted(queue, message):
    queue.runs = getattr(queue, "runs", 0) + message.HasField("new_session")
    queue.over = getattr(queue, "over", False) or \\
        message.script_finished == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
    enqueue(queue, message)

def held(queue):  # from the second run on nothing is sent before a part has run
    return [] if getattr(queue, "runs", 0) > 1 and not queue.over else flush(queue)

Queue.enqueue, Queue.flush = counted, held
app = st.App("app.py")
"""
PAGE = """
import streamlit as st
from pages.common import outbox
{mend}
@st.fragment
def part():
    with st.container(border=True):
        st.text("a figure " * 5000)  # so large that a browser keeps it

part()
"""


def message(path: tuple[int, ...], fragment: str = "", block: bool = False) -> ForwardMsg:
    made = ForwardMsg()
    made.metadata.delta_path.extend(path)
    made.delta.fragment_id = fragment
    if block:
        made.delta.add_block.allow_empty = True
    else:
        made.delta.new_element.text.body = "a figure"
    return made


def kept_by_the_browser(path: tuple[int, ...], fragment: str = "") -> ForwardMsg:
    figure = message(path, fragment)
    figure.hash = "seen before"
    return create_reference_msg(figure)


def waiting(*messages: ForwardMsg) -> ForwardMsgQueue:
    queue = ForwardMsgQueue()
    for one in messages:
        queue.enqueue(one)
    return queue


def sent(queue: ForwardMsgQueue) -> list[tuple[int, ...]]:
    return [tuple(one.metadata.delta_path) for one in queue.flush()]


def part_of_a_page() -> ForwardMsgQueue:
    return waiting(message((0, 1), "F", block=True), kept_by_the_browser((0, 1, 0), "F"))


def test_streamlit_alone_keeps_what_lies_in_a_block_that_it_takes_back():
    """When this fails, Streamlit has mended it, and pages/common/outbox.py can go."""
    queue = part_of_a_page()
    _streamlits_clear(queue, retain_lifecycle_msgs=True, fragment_ids_this_run=["F"])
    assert sent(queue) == [(0, 1, 0)]


def test_a_figure_goes_with_its_block():
    queue = part_of_a_page()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["F"])
    assert sent(queue) == []


def test_a_fragment_inside_goes_with_the_outer_one():
    queue = waiting(message((0, 1), "F", block=True), message((0, 1, 0), "G", block=True), message((0, 1, 0, 2), "G"))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["F"])
    assert sent(queue) == []


@pytest.mark.parametrize("figure", [kept_by_the_browser((0, 1, 0), "F"), kept_by_the_browser((0, 11, 0))])
def test_what_has_a_block_stays(figure):
    """The first one's block was sent before; the second one's stays, though its place begins with the same digit."""
    queue = waiting(message((0, 11), block=True), message((0, 1, 5), "F", block=True), figure)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["F"])
    assert sent(queue) == [(0, 11), tuple(figure.metadata.delta_path)]


def test_a_run_of_the_whole_page_and_sending_are_as_before():
    begins = ForwardMsg()
    begins.new_session.page_script_hash = "page"
    queue = part_of_a_page()
    queue.enqueue(begins)
    queue.clear(retain_lifecycle_msgs=True)
    assert [one.WhichOneof("type") for one in queue.flush()] == ["new_session"]
    assert queue.is_empty()
    assert sent(part_of_a_page()) == [(0, 1), (0, 1, 0)]


def runs_again_before_it_is_sent(folder, mend: str) -> list[ForwardMsg]:
    """All that a browser gets that has kept the figure, when its part runs again right after the page."""
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "common").symlink_to(ROOT / "pages" / "common")
    (folder / "app.py").write_text(PAGE.format(mend=mend))
    (folder / "serve.py").write_text(SERVE)
    with Server(folder, root=folder) as server, Visitor(server) as visitor:
        deltas = [m for m in visitor.open().messages if m.HasField("delta")]
        page, part = BackMsg(), BackMsg()
        page.rerun_script.cached_message_hashes.extend(m.hash for m in deltas if m.metadata.cacheable)
        part.rerun_script.fragment_id = next(m.delta.fragment_id for m in deltas if m.delta.fragment_id)
        assert page.rerun_script.cached_message_hashes
        visitor.socket.send(page.SerializeToString())
        got, end = [], time.monotonic() + PATIENCE_S
        while not got or got[-1].script_finished != ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
            assert time.monotonic() < end
            try:
                got.append(ForwardMsg.FromString(visitor.socket.recv(timeout=1)))
            except TimeoutError:  # the page has run, or the part waits for it
                visitor.socket.send(part.SerializeToString())
        return got


def orphans(messages: list[ForwardMsg]) -> int:
    """Messages for a block that a browser has not been sent on this page."""
    blocks, count = set(), 0
    for one in messages:
        path = tuple(one.metadata.delta_path)
        count += len(path) > 2 and path[:-1] not in blocks
        if one.delta.HasField("add_block"):
            blocks.add(path)
    return count


@pytest.mark.parametrize(("mend", "expected"), [("", True), ("outbox.mend()", False)])
def test_a_browser_gets_nothing_for_a_block_that_it_has_never_seen(tmp_path, mend, expected):
    got = runs_again_before_it_is_sent(tmp_path / "app", mend)
    assert (orphans(got) > 0) == expected
    assert any(m.HasField("ref_hash") or m.delta.new_element.text.body for m in got)  # the figure is there
