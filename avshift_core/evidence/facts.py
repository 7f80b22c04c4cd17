"""A comparison as the facts of a pack: plain values that JSON can hold, everything that the page shows.

    facts = gather(comparison, "discomfort", 10.0, Given(made="2026-11-18"))

The same comparison and the same extras give the same facts, but for `made`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

from avshift_core import __version__
from avshift_core.comparison import Comparison
from avshift_core.config import AnalysisConfig
from avshift_core.encoder import weights
from avshift_core.errors import AVShiftError
from avshift_core.evidence import sentences
from avshift_core.evidence.places import MapLayers, map_facts, place_facts
from avshift_core.evidence.rates import every_metric, metric_facts
from avshift_core.files import plain
from avshift_core.latent.cohort import Cohort
from avshift_core.report import SCHEMA, to_report
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.shift.regions import pooled_attributes
from avshift_core.shift.sensitivity import Sensitivity
from avshift_core.versions import environment

KIND = "avshift evidence pack"
COUNTED = ("period", "area", "av_version", "category")
LISTED = 14  # values of a column; the rest is one line
LOOKS = 40  # of the ledger that are listed, the last ones
OF_LOOK = ("when", "kind", "source", "target", "latents", "settings", "run", "fingerprint", "verdict", "gamma_hat",
           "gamma_lcb", "gamma_ucb")
OF_LEVEL = ("alpha=", "bound=", "split_by=", "gamma_small=")  # settings that change how often a test errs
OF_NOTE = ("region", "name", "comment", "status", "changed")


@dataclass(frozen=True)
class Given:
    """What a pack may hold beside the comparison.

    Attributes:
        made: when it was made; the one line that differs between two packs of the same.
        threshold: rate in the traffic of Q that a claim allows at most, None where nobody made one.
        sensitivity: the studies of the global test, None where they were not run.
        looks: every look at this corpus in the order they were made, as objects or mappings with the fields OF_LOOK;
            None where no ledger is kept.
        notes: what reviewers said of regions, with the fields OF_NOTE, also as a mapping from region to note; None
            where no notes are kept.
    """

    made: str
    threshold: float | None = None
    sensitivity: Sensitivity | None = None
    looks: Sequence[Any] | None = None
    notes: Mapping[Any, Any] | Sequence[Any] | None = None


def check_choice(comparison: Comparison, metric: str | None, B: float, threshold: float | None = None) -> str | None:
    """The metric of a pack: the first there is without one; None where the cohorts have none."""
    if metric is None:
        metric = comparison.metrics[0] if comparison.metrics else None
    elif metric in comparison.left_out:
        raise AVShiftError(f"'{metric}' cannot be shown: {comparison.left_out[metric]}")
    elif metric not in comparison.metrics:
        known = ", ".join(comparison.metrics) or "none"
        raise AVShiftError(f"There is no event '{metric}' in this comparison; found {known}. Choose one of them.")
    if not 0 < B < float("inf"):
        raise AVShiftError(f"The clip is {B:g}; it must be above 0.")
    check_threshold(threshold)
    return metric


def check_threshold(threshold: float | None) -> None:
    """Refuse what is no rate."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise AVShiftError(f"The threshold of the claim is {threshold:g}; it is a rate, so give a number from 0 to 1.")


def gather(comparison: Comparison, metric: str | None, B: float, layers: MapLayers, given: Given) -> dict:
    """Everything that a pack shows.

    Args:
        metric: one of `comparison.metrics`, or None where there is none; see check_choice.
        layers: of the map, from places.map_layers.
    """
    analysis = comparison.analysis
    attributes = pooled_attributes(analysis)
    notes = None if given.notes is None else _notes(given.notes)
    report = to_report(analysis)
    facts = {
        "kind": KIND, "schema": SCHEMA, "made": given.made, "run": comparison.run, "engine": __version__,
        "source": _cohort(analysis.P, comparison.source), "target": _cohort(analysis.Q, comparison.target),
        "corpus": {"url": comparison.corpus_url, "fingerprint": comparison.corpus_fingerprint,
                   "latents": comparison.latents, "view": comparison.view, "model": _model(comparison.latents)},
        "cautions": list(comparison.cautions), "config": asdict(analysis.config), "versions": environment(),
        "verdict": {**report["global_test"], "title": analysis.verdict.title,
                    "reference_tests": report["reference_tests"]},
        "map": map_facts(layers),
        "places": place_facts(comparison, metric, B, attributes, notes or {}),
        "metric": None if metric is None else metric_facts(comparison, metric, B, attributes),
        "metrics": every_metric(comparison, B), "left_out": dict(comparison.left_out),
        "sensitivity": None if given.sensitivity is None else _sensitivity(given.sensitivity),
        "ledger": None if given.looks is None else _ledger(comparison, given.looks),
        "notes": None if notes is None else list(notes.values()),
        "threshold": given.threshold,
    }
    facts = plain(facts)
    return {**facts, "words": plain(sentences.words(facts))}


def settings_table(config: Mapping[str, Any]) -> list[tuple[str, Any, Any, str]]:
    """(name, value, default, what it does) of every setting."""
    return [(f.name, config[f.name], f.default, f.metadata["help"]) for f in fields(AnalysisConfig)]


def _cohort(cohort: Cohort, query: str) -> dict:
    """Counts, days and exposure; None for what nobody recorded."""
    days = sorted(set(_known(cohort, "day")))
    exposure = {}
    for column, name in (("distance_km", "km"), ("duration_h", "hours")):
        known = cohort.obs[column].dropna() if column in cohort.obs else ()
        exposure[name] = float(known.sum()) if len(known) else None
        exposure[f"{name}_of"] = len(known)
    return {
        "name": cohort.name, "query": query, "n": cohort.n, "drives": cohort.n_drives if cohort.has_drives else None,
        "first_day": days[0] if days else None, "last_day": days[-1] if days else None, "days": len(days), **exposure,
        "by": {column: _counts(cohort, column) for column in COUNTED if column in cohort.obs},
        "dimensions": cohort.z.shape[1], "fingerprint": cohort.fingerprint,
    }


def _known(cohort: Cohort, column: str) -> list[str]:
    return [] if column not in cohort.obs else [str(v) for v in cohort.obs[column] if str(v) != UNKNOWN]


def _counts(cohort: Cohort, column: str) -> dict[str, int]:
    """Scenarios by value, the most frequent first; equal ones in the order of their names."""
    counts = cohort.obs[column].astype(str).value_counts()
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(n for _, n in ranked[LISTED:])
    return {**dict(ranked[:LISTED]), **({f"{len(ranked) - LISTED:,} others": rest} if rest else {})}


def _model(latents: str) -> dict | None:
    """What the shipped model's card says, where the latents are its own; None for all others."""
    try:
        card = weights.read_card()
    except AVShiftError:
        return None
    if latents.partition(".")[0] != card.get("model"):
        return None
    data = card.get("data", {})
    return {"id": card["model"], "seed": card.get("seed"), "trained_on": {
        name: data.get(name) for name in ("fingerprint", "n", "drives")}}


def _sensitivity(studies: Sensitivity) -> dict:
    return {"summary": [asdict(s) for s in studies.summary()], "rows": [asdict(row) for row in studies.rows],
            "half_widths": [asdict(w) for w in studies.widths]}


def _ledger(comparison: Comparison, looks: Sequence[Any]) -> dict:
    rows = _plain_rows(looks, OF_LOOK)
    pair = {comparison.source, comparison.target}
    other = [r for r in rows if any(name in str(r["settings"]) for name in OF_LEVEL)]
    return {"looks": len(rows), "of_these_cohorts": sum({r["source"], r["target"]} == pair for r in rows),
            "other_levels": len(other),
            "listed": rows[-LOOKS:]}


def _notes(notes: Mapping | Sequence[Any]) -> dict[str, dict]:
    """Title of a region -> what reviewers said of it."""
    rows = _plain_rows(list(notes.values()) if isinstance(notes, Mapping) else notes, OF_NOTE)
    return {(title := _region_title(row["region"])): {**row, "region": title} for row in rows}


def _plain_rows(rows: Sequence[Any], names: Sequence[str]) -> list[dict]:
    """Objects or mappings as mappings of these fields; what one does not have is None."""
    found = []
    for row in rows:
        values = row if isinstance(row, Mapping) else vars(row) if not is_dataclass(row) else {
            f.name: getattr(row, f.name) for f in fields(row)}
        found.append({name: _simple(values.get(name)) for name in names})
    return found


def _simple(value: Any) -> Any:
    """Numbers and words stay, everything else becomes words."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _region_title(region: Any) -> str:
    """What the pack calls a region of a note: k is Rk, -k the place Vk without support.

    >>> _region_title("R2"), _region_title(2), _region_title(-1)
    ('R2', 'R2', 'V1')
    """
    return f"{'R' if region > 0 else 'V'}{abs(region)}" if isinstance(region, int) else str(region)
