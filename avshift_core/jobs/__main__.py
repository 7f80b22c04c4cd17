"""The process of one job: reads what to do from standard input, tells its progress on standard output.

One JSON object in: kind, arguments, key, folder of the workspace. JSON lines out: {"share", "text"} as it goes, then
{"done": true} with the result archived under the key, or {"error": sentence}, or {"bug": last line of a traceback}.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from select import select

TELL_EVERY_S = 0.1
PAGE_S = 6.0  # to wait for an order before warming up: the first page of a new server needs the cores
WARM = ("avshift_core.comparison", "torch", "sklearn.cluster", "sklearn.neighbors")


def main() -> int:
    ordered, _, _ = select([sys.stdin], [], [], PAGE_S)
    if not ordered:
        _warm_up()
    line = sys.stdin.readline()
    if not line:
        return 0  # the server went before there was anything to do
    threading.Thread(target=_end_with_server, daemon=True).start()
    return work(json.loads(line))


def _warm_up() -> None:
    """Import what nearly every job needs while nobody waits yet."""
    for name in WARM:
        import_module(name)


def _end_with_server() -> None:
    """Standard input ends when the server does, however hard it was stopped."""
    while sys.stdin.readline():
        pass
    os._exit(1)


def work(order: dict) -> int:
    from avshift_core.archive import ArchiveError
    from avshift_core.errors import AVShiftError
    from avshift_core.jobs.kinds import steps_of
    from avshift_core.progress import finish
    from avshift_core.workspace import Workspace

    try:
        workspace = Workspace(Path(order["folder"]))
        result = finish(steps_of(order["kind"], order["arguments"], workspace), _Teller())
        workspace.results.put(order["key"], result)
        _enter_look(order["kind"], result, workspace)
        _tell({"done": True})
        return 0
    except AVShiftError as error:
        _tell({"error": str(error), "damaged": isinstance(error, ArchiveError)})
        return 2
    except MemoryError:
        _tell({"error": "There was not enough memory for this. Narrow the cohorts, or close other work."})
        return 2
    except Exception as error:
        traceback.print_exc()
        _tell({"bug": f"{type(error).__name__}: {error}"})
        return 1


def _enter_look(kind: str, result, workspace) -> None:
    """A ledger that cannot be written is no reason to lose a result: the page that shows it tries again, and tells."""
    from avshift_core.errors import AVShiftError
    from avshift_core.jobs.kinds import enter_look

    try:
        enter_look(kind, result, workspace)
    except AVShiftError as error:
        print(error, file=sys.stderr)


class _Teller:
    """Progress now and then; a line for each of 40,000 steps would be slower than the work."""

    def __init__(self) -> None:
        self.next = 0.0

    def __call__(self, progress) -> None:
        if time.monotonic() >= self.next or progress.share >= 1:
            self.next = time.monotonic() + TELL_EVERY_S
            _tell({"share": progress.share, "text": progress.text})


def _tell(value: dict) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    sys.exit(main())
