"""Work that tests give to a board: quick, slow, failing, dying, and starting processes of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

from avshift_core.errors import AVShiftError
from avshift_core.jobs.work import Done
from avshift_core.progress import Progress


def quick(text):
    yield Progress("half", 0.5)
    return Done(text)


def slow(pid_file, seconds=60.0):
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    Path(pid_file).write_text(f"{os.getpid()} {child.pid}")
    yield Progress("on its way", 0.25)
    time.sleep(seconds)
    return Done("late")


def refuse(text):
    yield Progress("half", 0.5)
    raise AVShiftError(text)


def bug():
    yield Progress("half", 0.5)
    raise ZeroDivisionError("a bug")


def die():
    yield Progress("half", 0.5)
    os._exit(7)


def chatty():
    print("a library says something")
    print("[1, 2]")
    print('"text"')
    yield Progress("half", 0.5)
    return Done("through")
