"""The whole way on an object store: `python benchmarks/object_store.py`.

Starts an S3 server on this machine (moto, which keeps everything in memory), simulates, encodes and compares a demo in
it, encoding on two Dask workers, does the same in a folder, and compares what was written, byte for byte. Then the
server stands still: what does a command say, and how soon? s3fs and moto are installed at first use from
benchmarks/requirements into benchmarks/.venvs; the product needs s3fs only for corpora on S3.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE / "contenders")]

from environments import packages_of  # noqa: E402

WEEKS = "--source", "period=2026-W10|2026-W11,area=harbor", "--target", "period=2026-W12|2026-W17,area=harbor"
FILES = """import json, sys
from avshift_core import open_corpus
corpus = open_corpus(sys.argv[1], verify=True)
print(json.dumps(sorted((table, file.sha256) for part in corpus.parts for table, file in part.files.items())))"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=int, default=8_000)
    scenarios = parser.parse_args().scenarios
    with tempfile.TemporaryDirectory() as folder:
        server, settings = start_server()
        try:
            there = everything("s3://fleet/demo", scenarios, Path(folder, "there.json"), settings)
            here = everything(str(Path(folder, "demo")), scenarios, Path(folder, "here.json"), settings)
            print(f"{scenarios:,} scenarios; s\n\n| | in a folder | on S3 |\n| --- | --- | --- |")
            for (what, a), b in zip(here["s"].items(), there["s"].values(), strict=True):
                print(f"| {what} | {a:.1f} | {b:.1f} |")
            same = "identical, byte for byte" if here["files"] == there["files"] else "DIFFERENT"
            print(f"\n{len(here['files'])} files: {same}; reports "
                  f"{'identical' if here['report'] == there['report'] else 'DIFFERENT'} but for the place and times.")
            server.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            done = run(["-m", "avshift_core", "corpus", "s3://fleet/demo"], settings, check=False)
            print(f"\nA store that stands still: after {time.monotonic() - began:.0f} s, exit {done.returncode}:\n"
                  f"{done.stderr.strip()}")
        finally:
            server.kill()
            server.wait()


def start_server() -> tuple[subprocess.Popen, dict[str, str]]:
    """The server with an empty bucket, and the environment of who uses it."""
    packages = packages_of("s3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), packages]), "AWS_ENDPOINT_URL": address,
                "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], env=settings,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urlopen(address, timeout=5).close()
            break
        except (URLError, OSError):
            time.sleep(0.1)
    run(["-c", "import fsspec; fsspec.filesystem('s3').mkdir('fleet')"], settings)
    return server, settings


def everything(url: str, scenarios: int, report: Path, settings: dict[str, str]) -> dict:
    """Seconds of each command, hashes of all files, and the report without what must differ."""
    commands = {
        "demo": ["demo", "--out", url, "--scenarios", str(scenarios)],
        "encode, two Dask workers": ["encode", url, "--scheduler", "local", "--jobs", "2"],
        "compare": ["compare", "--corpus", url, *WEEKS, "--metric", "discomfort", "--view", "context",
                    "--json", str(report)],
    }
    seconds = {}
    for what, command in commands.items():
        began = time.perf_counter()
        run(["-m", "avshift_core", *command], settings)
        seconds[what] = time.perf_counter() - began
    told = json.loads(report.read_text())
    told.pop("timings", None)
    text = json.dumps(told, sort_keys=True).replace(url, "URL")
    return {"s": seconds, "files": json.loads(run(["-c", FILES, url], settings).stdout), "report": text}


def run(command: list[str], settings: dict[str, str], check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, *command], env=settings, cwd=ROOT, capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-800:]}")
    return done


if __name__ == "__main__":
    main()
