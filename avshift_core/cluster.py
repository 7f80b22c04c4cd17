"""The map of parallel.py on a Dask cluster: other machines do the items, and this process takes their answers in order.

What crosses is pickled as for a process of this machine, so that answers are the same; Dask gives the items of a
worker that is lost to another one.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from avshift_core.errors import ClusterError, ConfigError
from avshift_core.threads import stay_with_one_thread
from avshift_core.versions import environment

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")
Answer = TypeVar("Answer")
LOCAL = "local"
ANSWER_S, WORKERS_S = 10.0, 10.0  # until a scheduler answers, and until the first of its workers is there
ALONE_S, LOOK_S = 60.0, 5.0  # without any worker in the middle of the work; between two looks for them
AHEAD = 2  # items under way for each thread of the cluster: one in work, one at hand
ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(\d{1,5})")
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # to Ctrl-C, which this process answers for all
AGAIN = "What was committed is kept; run the same command again to go on."
CONFIG = {"distributed.admin.large-graph-warning-threshold": "4 GB"}  # the work itself, sent once


def check_scheduler(scheduler: str | None) -> None:
    """Refuse what cannot be a scheduler, before any work.

    >>> check_scheduler("10.0.0.7")
    Traceback (most recent call last):
    ...
    avshift_core.errors.ConfigError: '10.0.0.7' is no address of a scheduler. Give tcp://HOST:PORT, tls://HOST:PORT, \
or 'local' for a cluster on this machine.
    """
    match = ADDRESS.fullmatch(scheduler or "")
    if scheduler not in (None, LOCAL) and not (match and 0 < int(match[3]) < 65536):
        raise ConfigError(f"'{scheduler}' is no address of a scheduler. Give tcp://HOST:PORT, tls://HOST:PORT, or "
                          f"'{LOCAL}' for a cluster on this machine.")


def in_order_on(
    scheduler: str, work: Callable[[Item], Answer], items: Sequence[Item], jobs: int | None = None
) -> Iterator[Answer]:
    """work(item) of every item, done by the workers of a scheduler.

    Args:
        jobs: workers of a local cluster; elsewhere items that may be under way, two a thread without it.
    """
    if not items:
        return
    with _connected(scheduler, jobs) as client:
        threads = _check_workers(client, scheduler)
        shared = client.submit(pickle.loads, pickle.dumps(work), pure=False)
        start = lambda item: client.submit(_do, shared, pickle.dumps(item), environment(), pure=False)  # noqa: E731
        waiting = deque(items)
        most = min(jobs if jobs and scheduler != LOCAL else AHEAD * threads, len(items))
        under_way = deque(start(waiting.popleft()) for _ in range(most))
        while under_way:
            answer = _answer(client, under_way.popleft(), scheduler)
            if waiting:
                under_way.append(start(waiting.popleft()))
            yield pickle.loads(answer)


def _do(work: Callable[[Item], Answer], item: bytes, expected: dict[str, str]) -> bytes:
    """One item, in a worker; one that came late, or again, may be of another version."""
    if sentence := _difference(f"The worker of process {os.getpid()}", environment(), expected):
        raise ClusterError(sentence)
    stay_with_one_thread()
    _keep_freed_memory()
    return pickle.dumps(work(pickle.loads(item)), protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Dask lets its workers give freed memory back at once, and take it anew for every array: much of their time."""
    import ctypes

    with suppress(AttributeError, OSError):  # of the GNU C library alone
        libc = ctypes.CDLL(None)
        libc.mallopt(M_TRIM_THRESHOLD, 256 * 1024**2)
        libc.mallopt(M_MMAP_THRESHOLD, 32 * 1024**2)


@contextmanager
def _connected(scheduler: str, jobs: int | None) -> Iterator[Client]:
    """A client; what it has asked for is cancelled on the way out, and a cluster of its own is ended."""
    import dask
    from distributed import Client, LocalCluster  # sets defaults, which `config.set` would take back again

    with dask.config.set(CONFIG), _without_logs(), ExitStack() as closing:
        _check_certificates(scheduler)
        try:
            if scheduler == LOCAL:
                scheduler = closing.enter_context(LocalCluster(
                    n_workers=jobs or os.cpu_count() or 1, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL, preload=[DEAF]))
            client = Client(scheduler, timeout=ANSWER_S, set_as_default=False)
        except (OSError, RuntimeError) as error:
            raise ClusterError(f"No scheduler answers at {scheduler}: {_first_line(error)}. Start one with 'python -m "
                               "dask scheduler', or give the address that it prints.") from None
        try:
            yield client
        finally:
            with suppress(Exception):  # a scheduler that is gone has nothing to cancel
                client.close(timeout=2)


@contextmanager
def _without_logs() -> Iterator[None]:
    """What is wrong is said once, in a sentence."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    before = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in before:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in before.items():
            logger.setLevel(level)


def _check_certificates(scheduler: str) -> None:
    from distributed.security import Security

    if scheduler.startswith("tls:") and Security().get_connection_args("client").get("ssl_context") is None:
        raise ClusterError(f"{scheduler} needs certificates. Name them under distributed.comm.tls in Dask's own "
                           "configuration, here and for every worker.")


def _check_workers(client: Client, scheduler: str) -> int:
    """Threads of all workers, each of which must give the answers that this process would."""
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        raise ClusterError(f"The scheduler at {scheduler} has no workers. Start some with 'python -m dask worker "
                           f"{scheduler} --nworkers -1 --nthreads 1' in the project's folder.") from None
    try:
        found = client.run(environment, on_error="return")
        for worker, versions in sorted(found.items()):
            if isinstance(versions, Exception):
                raise ClusterError(f"Worker {worker} cannot load AVShift: {_first_line(versions)}. Start it in the "
                                   "project's folder, with the same environment.")
            if sentence := _difference(f"Worker {worker}", versions, environment()):
                raise ClusterError(sentence)
        return max(1, sum(client.nthreads().values()))
    except OSError:
        raise _lost(scheduler) from None


def _difference(worker: str, found: dict[str, str], expected: dict[str, str]) -> str | None:
    """What is different there, as a sentence.

    >>> _difference("Worker tcp://10.0.0.8:4000", {"numpy": "1.0"}, {"numpy": "2.0"})
    'Worker tcp://10.0.0.8:4000 has numpy 1.0, and here it is 2.0: its answers might differ. Install the same \
requirements and sources there, and start it again.'
    """
    other = next((name for name in expected if found.get(name) != expected[name]), None)
    return other and (f"{worker} has {other} {found.get(other, 'none')}, and here it is {expected[other]}: its answers "
                      "might differ. Install the same requirements and sources there, and start it again.")


def _answer(client: Client, future: Future, scheduler: str) -> bytes:
    """The answer of one item; an error of the work arrives as itself."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    seen = time.monotonic()
    try:
        while not _is_done(future):
            seen = time.monotonic() if client.nthreads() else seen
            if time.monotonic() - seen > ALONE_S:
                raise ClusterError(f"All workers of {scheduler} are gone. Start some again. {AGAIN}")
    except OSError:
        raise _lost(scheduler) from None
    try:
        return future.result()
    except KilledWorker as error:
        raise ClusterError(f"One item ended {error.allowed_failures + 1} workers one after the other, the last at "
                           f"{getattr(error.last_worker, 'address', scheduler)}: perhaps their memory is too small for "
                           f"it. Start workers with more memory each. {AGAIN}") from None
    except (CancelledError, CommClosedError):
        raise _lost(scheduler) from None


def _is_done(future: Future) -> bool:
    """Whether an item is done, or lost, after a while."""
    from distributed import wait

    try:
        with future.client.as_current():
            wait(future, timeout=LOOK_S)
    except CancelledError:
        return True
    except TimeoutError:
        return False
    return True


def _lost(scheduler: str) -> ClusterError:
    return ClusterError(f"The connection to the scheduler at {scheduler} was lost. {AGAIN}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
