"""One thread: processes that share a machine do not fight for its cores, and sums have the same last digit on any."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def threads_allowed() -> int:
    """Threads that libraries may use now: one inside of `one_thread`, else one for each core or what was announced."""
    from threadpoolctl import threadpool_info

    return max((pool["num_threads"] for pool in threadpool_info()), default=os.cpu_count() or 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS, OpenMP and torch with one thread each inside of it, as far as they are loaded."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    try:
        with threadpool_limits(1):
            if torch:
                torch.set_num_threads(1)
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def stay_with_one_thread() -> None:
    """The same for good, also for libraries that this process loads later."""
    from threadpoolctl import threadpool_limits

    announce_one_thread()
    threadpool_limits(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def announce_one_thread() -> None:
    """Libraries that this process, and those it starts, load later will use one thread."""
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
