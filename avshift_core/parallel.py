"""Work on several cores: one function over many items, a process each core, answers in the order of the items.

The same on other machines, with a scheduler: cluster.py.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import TypeVar

from avshift_core.cluster import check_scheduler, in_order_on
from avshift_core.errors import ConfigError
from avshift_core.threads import announce_one_thread

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def check_jobs(jobs: int | None, scheduler: str | None = None) -> None:
    """Refuse what `in_order` cannot work with, before anything is begun."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs is {jobs}; it must be 1 or more.")
    check_scheduler(scheduler)


def in_order(
    work: Callable[[Item], Answer], items: Sequence[Item], jobs: int | None = None, ready: int = 0,
    scheduler: str | None = None,
) -> Iterator[Answer]:
    """work(item) of every item, a few of them under way at a time.

    Args:
        work: a function that processes can be sent: a module's own, or a partial of one.
        jobs: processes; None is one for each core. With 1 the work is done in this process.
        ready: items that may wait for the reader beyond those under way.
        scheduler: address of a Dask scheduler whose workers do the work, or `local` for `jobs` workers on this machine.
    """
    check_jobs(jobs, scheduler)
    if scheduler is not None:
        yield from in_order_on(scheduler, work, items, jobs)
        return
    jobs = min(jobs or os.cpu_count() or 1, len(items))
    if jobs <= 1:
        yield from map(work, items)
        return
    waiting = deque(items)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        try:
            under_way = deque(pool.submit(work, waiting.popleft()) for _ in range(min(jobs + ready, len(waiting))))
            while under_way:
                done = under_way.popleft().result()
                if waiting:
                    under_way.append(pool.submit(work, waiting.popleft()))
                yield done
        finally:  # work under way is awaited: a worker that ends while it sends an answer would block the pool for ever
            pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Let this worker, of one thread, end when the process that started it is gone, and only then."""
    announce_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent ends the work

    def watch() -> None:
        parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
