"""The board on which a server's jobs stand: who asks for what is there already joins it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from avshift_core.errors import AVShiftError
from avshift_core.jobs.kinds import KINDS, job_key
from avshift_core.workspace import Workspace

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
OVER = (DONE, FAILED, CANCELLED)
PLACES = 2  # jobs at a time, of which long ones take all but one
GRACE_S = 1.0  # from asking a process to end to ending it
KEPT = 200  # jobs that are over and still listed
ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "avshift_core.jobs")


@dataclass(frozen=True)
class Job:
    """A job as it stands now.

    Attributes:
        state: queued, running, done, failed or cancelled.
        share, text: progress. error: why it failed, in one sentence.
        damaged: it failed because a kept result that it needs could not be read; that one has been removed.
        created, ended: seconds since 1970, 0 while it is not over.
    """

    key: str
    kind: str
    title: str
    arguments: Mapping[str, Any]
    state: str = QUEUED
    share: float = 0.0
    text: str = "Waiting for its turn"
    error: str = ""
    damaged: bool = False
    created: float = 0.0
    ended: float = 0.0

    @property
    def over(self) -> bool:
        return self.state in OVER


class Board:
    """All jobs of one server. Every method may be called from any thread."""

    def __init__(self, workspace: Workspace, places: int = PLACES, warm: bool = True) -> None:
        self.workspace, self.places, self.warm = workspace, places, warm
        self._jobs: dict[str, Job] = {}
        self._processes: dict[str, subprocess.Popen] = {}
        self._lock = threading.RLock()
        self._idle: subprocess.Popen | None = _start(workspace) if warm else None
        atexit.register(self.close)

    def ask(self, kind: str, arguments: Mapping[str, Any], title: str = "") -> Job:
        """The job for this work: the one that is there, a finished one whose result is kept, or a new one."""
        key = job_key(kind, arguments)
        with self._lock:
            job = self._jobs.get(key)
            again = job is None or (job.state in (FAILED, CANCELLED)) or (
                job.state == DONE and (KINDS[kind].once or not self.workspace.results.has(key)))
            if not again:
                return job
            job = Job(key, kind, title or KINDS[kind].title, dict(arguments), created=time.time())
            if self.workspace.results.has(key) and not KINDS[kind].once:
                job = replace(job, state=DONE, share=1.0, text="Kept from before", ended=time.time())
            self._jobs.pop(key, None)
            self._jobs[key] = job
            self._forget()
            self._fill()
            return self._jobs[key]

    def find(self, key: str) -> Job | None:
        with self._lock:
            return self._jobs.get(key)

    def jobs(self) -> list[Job]:
        """Newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

    def cancel(self, key: str) -> None:
        """End a job, with all processes it has started."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.over:
                return
            self._jobs[key] = replace(job, state=CANCELLED, text="Cancelled", ended=time.time())
            process = self._processes.pop(key, None)
            self._fill()
        if process is not None:
            threading.Thread(target=_end, args=(process,), daemon=True).start()

    def close(self) -> None:
        """End everything; for the server's own end."""
        with self._lock:
            running, self._processes = list(self._processes.values()), {}
            running += [self._idle] if self._idle is not None else []
            idle, self._idle, self.places = self._idle, None, 0
        for process in running:
            _end(process, grace_s=0.0)
        if idle is not None:
            idle.stdout.close()
            idle.stdin.close()

    def _fill(self) -> None:
        """Start what may start. The lock is held."""
        for key, job in list(self._jobs.items()):
            if job.state != QUEUED:
                continue
            running = [j for j in self._jobs.values() if j.state == RUNNING]
            long = sum(KINDS[j.kind].long for j in running)
            if len(running) >= self.places or (KINDS[job.kind].long and long >= max(self.places - 1, 1)):
                continue
            self._jobs[key] = replace(job, state=RUNNING, text="Starting")
            threading.Thread(target=self._run, args=(key,), daemon=True).start()

    def _run(self, key: str) -> None:
        try:
            process = self._process_for(key)
            if process is None:
                return
            with process:  # its pipes close at the end
                for line in process.stdout:
                    self._note(key, process, line)
            code = process.returncode
            self._finish(key, process, state=FAILED, error="The work ended without an answer "
                         f"({_ending(code)}). Try again; if it happens again, narrow the cohorts.")
        except (OSError, AVShiftError) as error:
            self._finish(key, None, state=FAILED, error=f"The work could not be started: {error}. Try again.")

    def _process_for(self, key: str) -> subprocess.Popen | None:
        """A process that has got its order; None when the job was cancelled meanwhile."""
        with self._lock:
            job = self._jobs[key]
            if job.state != RUNNING:
                return None
            process, self._idle = self._idle, None
            if process is None or process.poll() is not None:
                process = _start(self.workspace)
            self._processes[key] = process
        folder = str(self.workspace.folder.resolve())
        order = {"kind": job.kind, "arguments": job.arguments, "key": key, "folder": folder}
        with contextlib.suppress(BrokenPipeError):  # it died: reading its output tells
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return process

    def _note(self, key: str, process: subprocess.Popen, line: str) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return  # a library's print
        if not isinstance(said, dict):
            return
        if "share" in said:
            with self._lock:
                if self._processes.get(key) is process:
                    self._jobs[key] = replace(self._jobs[key], share=float(said["share"]), text=str(said["text"]))
        elif "done" in said:
            self._finish(key, process, state=DONE, share=1.0, text="Done")
        elif "error" in said:
            self._finish(key, process, state=FAILED, error=str(said["error"]), damaged=bool(said.get("damaged")))
        elif "bug" in said:
            log = self.workspace.folder / "logs" / "jobs.log"
            self._finish(key, process, state=FAILED, error=f"Something went wrong that should not ({said['bug']}). "
                         f"The details are in {log}; nothing else was changed. Try again, or report it with that file.")

    def _finish(self, key: str, process: subprocess.Popen | None, **changes) -> None:
        with self._lock:
            if process is not None and self._processes.pop(key, None) is None:
                return  # cancelled, or finished already
            if not self._jobs[key].over:
                self._jobs[key] = replace(self._jobs[key], ended=time.time(), **changes)
            if self.warm and self._idle is None and self.places:
                with contextlib.suppress(OSError):
                    self._idle = _start(self.workspace)
            self._fill()

    def _forget(self) -> None:
        over = [key for key, job in self._jobs.items() if job.over]
        for key in over[: max(0, len(over) - KEPT)]:
            del self._jobs[key]


def _start(workspace: Workspace) -> subprocess.Popen:
    """A process that waits for its order, in a group of its own so that it ends with all it starts."""
    with (workspace.folder / "logs" / "jobs.log").open("a") as log:
        return subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": _with_root(), "OMP_WAIT_POLICY": "PASSIVE"},  # see shift/mlp.py
        )


def _with_root() -> str:
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


def _end(process: subprocess.Popen, grace_s: float = GRACE_S) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s if sign == signal.SIGTERM else 1.0)
            if sign == signal.SIGKILL:
                break


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return "killed, perhaps for lack of memory" if -code == signal.SIGKILL else f"signal {-code}"
