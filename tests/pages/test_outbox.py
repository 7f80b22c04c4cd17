"""What is not sent yet when a part of a page runs again."""

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

import pages.common.frame  # noqa: F401 - every page begins with it
from pages.common.outbox import _streamlits_clear


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
