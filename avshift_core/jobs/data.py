"""Jobs on data and models: imports, encoding, quality, ablation, and the truth of a comparison."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from avshift_core.config import VIEWS
from avshift_core.jobs.work import Done
from avshift_core.progress import Progress

if TYPE_CHECKING:
    from avshift_core.comparison import Comparison
    from avshift_core.laboratory.demo import DemoTruth, Untold
    from avshift_core.laboratory.versions import VersionTruth
    from avshift_core.quality.ablation import Ablation
    from avshift_core.quality.report import Quality
    from avshift_core.shift.versions import VersionComparison

TOLD = 20  # sentences about what was left out that a result keeps


@dataclass(frozen=True)
class Imported:
    """What an import has added; `skipped` are the first sentences about what was left out."""

    sentence: str
    name: str
    url: str
    n: int
    n_skipped: int
    skipped: tuple[str, ...]


def import_corpus_steps(
    format: str, paths: Sequence[str], url: str, name: str, home: str, area: str = "", period: str = "",
    version: str = "", mapping: str = "", skip_bad: bool = False,
) -> Generator[Progress, None, Imported]:
    """Import logs or tables into a corpus, and put it on the dashboard's list.

    Args:
        format, paths, url: as in scenario/importing.py import_steps.
        name, home: what the list in this workspace calls the corpus.
        area, period, version, mapping, skip_bad: as in ReadOptions; "" says nothing.
    """
    from avshift_core.scenario.importing import import_steps
    from avshift_core.scenario.readers.source import ReadOptions
    from avshift_core.scenario.store.summary import count
    from avshift_core.workspace import Workspace

    yield Progress("Looking through the logs", 0.0)
    options = ReadOptions(area, period, version, Path(mapping) if mapping else None, skip_bad)
    result = yield from import_steps(format, paths, url, options)
    Workspace(Path(home)).corpora.update(lambda old: {**old, name: url})
    before = f"; {count(result.n_done_before, 'file')} had been imported before" if result.n_done_before else ""
    return Imported(f"{count(result.n, 'scenario')} of {count(result.n_sources, 'file')} added to '{name}'{before}.",
                    name, url, result.n, len(result.skipped), result.skipped[:TOLD])


def encode_corpus_steps(
    url: str, views: Sequence[str] = VIEWS, model: str | None = None
) -> Generator[Progress, None, Done]:
    """Write the latents of a corpus beside it; what has them already is left alone."""
    from avshift_core.encoder.encode import encode_steps
    from avshift_core.encoder.weights import load_model

    yield Progress("Loading the encoder", 0.0)
    loaded = load_model(model)
    done = yield from encode_steps(url, loaded, views=tuple(views))
    before = f" {done.n_before:,} had them already." if done.n_before else ""
    return Done(f"{done.n:,} scenarios of {url} encoded by model {loaded.id}.{before}")


def corpus_quality_steps(
    url: str, fingerprint: str, view: str = VIEWS[0], most: int = 20_000, seed: int = 0, model: str | None = None
) -> Generator[Progress, None, Quality]:
    """The quality report of a model on a corpus; what is not encoded yet is encoded first.

    Args:
        fingerprint: of the corpus that is meant; part of the job's name, so that other data is another report.
    """
    from avshift_core.encoder.weights import load_model
    from avshift_core.quality.report import quality_steps

    yield Progress("Loading the encoder", 0.0)
    return (yield from quality_steps(url, load_model(model), view=view, most=most, seed=seed))


def corpus_ablation_steps(
    url: str, fingerprint: str, out: str, source: str | None = None, target: str | None = None,
    metric: str = "discomfort", seeds: int = 3, epochs: int = 0, most: int = 0,
) -> Generator[Progress, None, Ablation]:
    """The paper's table of latent sizes. Trained models stay in `out`, so that a stopped one goes on.

    Args:
        fingerprint: as in corpus_quality_steps. epochs, most: 0 is the default of the command `ablate`.
    """
    from avshift_core.config import EncoderConfig
    from avshift_core.quality.ablation import MOST, SMALL, ablation_steps

    yield Progress("Reading the corpus", 0.0)
    Path(out).mkdir(parents=True, exist_ok=True)
    config = EncoderConfig(**{**SMALL, **({"epochs": epochs} if epochs else {})})
    return (yield from ablation_steps(url, out, config, source=source, target=target, metric=metric,
                                      seeds=range(seeds), most=most or MOST))


def comparison_truth_steps(comparison: Comparison) -> Generator[Progress, None, DemoTruth | Untold]:
    """What is true of a comparison on a simulated corpus, or why it cannot be told."""
    from avshift_core.laboratory.demo import truth_steps

    return (yield from truth_steps(comparison.analysis, comparison.corpus_url))


def comparison_versions_steps(comparison: Comparison) -> Generator[Progress, None, VersionComparison]:
    """The AV version of P against that of Q, for all metrics of a comparison."""
    from avshift_core.shift.versions import version_steps

    return (yield from version_steps(comparison.analysis, comparison.view, cautions=comparison.cautions))


def versions_truth_steps(comparison: Comparison) -> Generator[Progress, None, VersionTruth | Untold]:
    """The true parts of the difference of two versions on a simulated corpus, or why they cannot be told."""
    from avshift_core.laboratory.versions import version_truth_steps

    return (yield from version_truth_steps(comparison.analysis, comparison.corpus_url))
