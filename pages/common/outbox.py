"""What waits to be sent to a browser when a part of the page runs again: Streamlit's queue, mended.

A run of a fragment takes back what an earlier run of it has not sent yet, by the fragment's id. Messages that only
point to what the browser has kept, such as a figure seen before, carry no id and stay; so do those of fragments inside.
Their block is gone, and a browser that gets something for a block it has never seen shows an error ("Cannot set a node
at a delta path") and nothing any more. Here what lies in a block goes with it: the run that took it back draws it anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_streamlits_clear = ForwardMsgQueue.clear


def mend() -> None:
    """From now on, for every session of this process."""
    ForwardMsgQueue.clear = _clear


def _clear(self: ForwardMsgQueue, *args, **named) -> None:
    before = self._queue
    _streamlits_clear(self, *args, **named)
    if self._queue:
        self._queue = without_orphans(before, self._queue)


def without_orphans(before: Sequence[ForwardMsg], kept: list[ForwardMsg]) -> list[ForwardMsg]:
    """Of the messages that were kept, those whose blocks were not taken back."""
    stays = set(map(id, kept))
    gone = {tuple(m.metadata.delta_path) for m in before if id(m) not in stays and m.delta.HasField("add_block")}
    return [message for message in kept if not _lies_in(message, gone)]


def _lies_in(message: ForwardMsg, blocks: set[tuple[int, ...]]) -> bool:
    path = tuple(message.metadata.delta_path)
    return any(path[:depth] in blocks for depth in range(1, len(path)))
