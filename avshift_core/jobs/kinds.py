"""Every kind of job: a generator of progress that takes plain values and returns what can be archived."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from avshift_core.errors import AVShiftError
from avshift_core.notebook import open_notebook
from avshift_core.progress import Progress
from avshift_core.versions import code_version
from avshift_core.workspace import Workspace

KEPT = ("comparison", "atlas", "projection", "sensitivity")  # arguments of such names are keys of kept results


@dataclass(frozen=True)
class Kind:
    """`steps` is module:function; `long` work leaves room for what somebody waits for in front of a screen.

    `once` work has effects on disk (a corpus, say): its result is not kept, and it is done again when asked again.
    `look` work compares cohorts of a corpus: `look()` of its result goes into the ledger of the corpus.
    """

    steps: str
    title: str
    long: bool = False
    once: bool = False
    look: bool = False

    def load(self) -> Callable[..., Generator[Progress, None, Any]]:
        module, _, name = self.steps.partition(":")
        return getattr(import_module(module), name)


KINDS: dict[str, Kind] = {
    "demo": Kind("avshift_core.jobs.work:demo_corpus_steps", "Preparing the demo corpus", long=True, once=True),
    "comparison": Kind("avshift_core.comparison:comparison_steps", "Comparing P and Q", look=True),
    "clusters": Kind("avshift_core.quality.cluster_report:cluster_steps", "Cutting latent space into clusters"),
    "cluster_events": Kind("avshift_core.quality.cluster_report:cluster_event_steps", "Events by cluster"),
    "sensitivity": Kind("avshift_core.shift.sensitivity:sensitivity_steps", "Sensitivity studies", long=True),
    "atlas": Kind("avshift_core.latent.atlas:atlas_steps", "Drawing the map of the corpus"),
    "map": Kind("avshift_core.latent.project:project_steps", "Placing P and Q on the map"),
    "index": Kind("avshift_core.latent.inverted:index_steps", "Preparing the search in the corpus"),
    "smoothed": Kind("avshift_core.latent.project:smooth_steps", "Smoothing the scores"),
    "monitor": Kind("avshift_core.monitoring.watch:watch_steps", "Looking at every week"),
    "evidence": Kind("avshift_core.evidence.pack:pack_steps", "Making the evidence pack"),
    "line": Kind("avshift_core.laboratory.line:line_steps", "The paper's three cases"),
    "fleet_check": Kind("avshift_core.laboratory.fleet:fleet_steps", "Fleets with known truth", long=True),
    "demo_truth": Kind("avshift_core.jobs.data:comparison_truth_steps", "Comparing with the truth"),
    "versions": Kind("avshift_core.jobs.data:comparison_versions_steps", "Comparing AV versions"),
    "versions_truth": Kind("avshift_core.jobs.data:versions_truth_steps", "Comparing versions with the truth"),
    "import": Kind("avshift_core.jobs.data:import_corpus_steps", "Importing", long=True, once=True),
    "encode": Kind("avshift_core.jobs.data:encode_corpus_steps", "Encoding", long=True, once=True),
    "quality": Kind("avshift_core.jobs.data:corpus_quality_steps", "Measuring the encoder", long=True),
    "ablate": Kind("avshift_core.jobs.data:corpus_ablation_steps", "Ablation of the latent", long=True),
}


def job_key(kind: str, arguments: Mapping[str, Any]) -> str:
    """Names a job: same kind, same arguments, same code. Data is in it by the fingerprints among the arguments."""
    if kind not in KINDS:
        raise AVShiftError(f"'{kind}' is no kind of job; there are {', '.join(KINDS)}.")
    text = json.dumps([kind, arguments, code_version()], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def enter_look(kind: str, result: Any, workspace: Workspace) -> None:
    """Write a comparison into the ledger of its corpus; the same one again changes nothing."""
    if KINDS[kind].look:
        url, look = result.look()
        open_notebook(url, workspace).record(look)


def steps_of(kind: str, arguments: Mapping[str, Any], workspace: Workspace) -> Generator[Progress, None, Any]:
    """The generator of a job, with the results it is about in place of their keys."""
    kept = {name: workspace.results.get(arguments[name]) for name in KEPT if arguments.get(name) is not None}
    return KINDS[kind].load()(**{**arguments, **kept})
