"""The command `ledger`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from avshift_core.config import AnalysisConfig
from avshift_core.files import check_writable, write_json
from avshift_core.notebook.book import Notebook, open_notebook
from avshift_core.notebook.entries import Look, chance_of_one
from avshift_core.scenario.store.summary import count


def add_ledger(commands) -> None:
    """`ledger DIR`."""
    parser = commands.add_parser("ledger", help="every comparison that was made on a corpus")
    parser.add_argument("corpus", metavar="DIR", help="folder or URL of a corpus")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it here, too")
    parser.set_defaults(run=run_ledger)


def run_ledger(arguments: argparse.Namespace) -> None:
    from avshift_core.scenario.store.corpus import open_corpus

    if arguments.json is not None:
        check_writable(arguments.json)
    corpus = open_corpus(arguments.corpus)
    notebook = open_notebook(arguments.corpus)
    looks, broken = notebook.looks(), notebook.broken_at()
    if arguments.json is not None:
        write_json({"schema": 1, "corpus": corpus.url, "fingerprint": corpus.fingerprint, "file": str(notebook.path),
                    "whole": broken is None, "looks": [asdict(look) for look in looks]}, arguments.json)
    print(describe(corpus.url, notebook, looks, broken))


def describe(url: str, notebook: Notebook, looks: tuple[Look, ...], broken: int | None) -> str:
    """The ledger for a terminal, the first look first."""
    if not looks:
        return f"No comparison was made on {url} yet."
    lines = [_line(look) for look in looks]
    alpha = AnalysisConfig.alpha
    lines.append(f"{count(len(looks), 'look')} at {url}, in {notebook.path}. If all had the full error level of "
                 f"{alpha:.0%} and were independent, at least one would show a shift that is not there with "
                 f"probability {chance_of_one(len(looks), alpha):.0%}.")
    lines.append(f"The last digest is {looks[-1].digest}." if broken is None else
                 f"caution: look {broken} does not fit its digest: somebody has changed the ledger by hand.")
    return "\n".join(lines)


def _line(look: Look) -> str:
    size = "" if look.gamma_hat is None else f" advantage {look.gamma_hat:.3f}"
    size += "" if look.gamma_lcb is None or look.gamma_ucb is None else f" [{look.gamma_lcb:.3f}, {look.gamma_ucb:.3f}]"
    told = "; ".join(filter(None, (f"{look.verdict}{size}", look.settings, f"metrics {look.metrics}" * bool(
        look.metrics))))
    text = (f"{look.number:>4} {look.when} {look.kind} {look.source or 'all'} -> {look.target or 'all'} by "
            f"{look.latents}: {told} (run {look.run}, config {look.config}, data {look.fingerprint[:12]})")
    return "".join(character if character.isprintable() else "?" for character in text)  # nothing steers the terminal
