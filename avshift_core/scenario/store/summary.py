"""What is in a corpus: counts, metric rates, and what a reader should know before trusting them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.scenario.store.manifest import STATES
from avshift_core.scenario.store.rows import EXPOSURE

if TYPE_CHECKING:
    from avshift_core.scenario.store.corpus import Corpus

COUNTED = ("period", "area", "av_version", "category", "route", "vehicle_id", "day")
MUST_BE_KNOWN = {
    "period": ("periods", "name it with --period"), "av_version": ("AV versions", "name it with --version"),
    "area": ("areas", "name it with --area"), "drive_id": ("drives", "scenarios then count as independent"),
}
MIN_DRIVES, MIN_SCENARIOS = 10, 200  # what a comparison of two cohorts needs at least
DOMINANT = 0.25  # share of a period and area that one drive may hold before its scenarios speak for all
RATED = ("0/1", "")  # units of indicators and counts; a rate of a smallest gap per kilometre would mean nothing
NOISE = 1e-9  # what sums of zeros leave behind; no metric or rate means anything there
SHOWN = 12  # values of a column on the terminal; the JSON has all


def summarize(corpus: Corpus) -> dict:
    """Counts, rates and warnings as plain values; the keys are those of `corpus --json`."""
    cells = corpus.sums(by=["period", "area", "drive_id"]) if corpus.n else pd.DataFrame(
        columns=["period", "area", "drive_id", "n"])
    by = {name: dict(corpus.sums(by=[name])[[name, "n"]].itertuples(index=False)) if corpus.n else {}
          for name in COUNTED}
    metrics = _metrics(corpus)
    total = corpus.sums(metrics=["distance_km"]).fillna(0).iloc[0] if corpus.n else {}
    drives = set(cells["drive_id"]) - {UNKNOWN}
    return {
        "schema": 1, "corpus": corpus.url, "revision": corpus.manifest.revision, "fingerprint": corpus.fingerprint,
        "n": corpus.n, "drives": len(drives), "km": float(total.get("sum:distance_km", 0.0)),
        "hours": float(total.get("h:distance_km", 0.0)),
        "by": by, "metrics": metrics, "latents": corpus.models, "parts": len(corpus.parts),
        "sources": len(corpus.manifest.sources), "skipped": {"n": corpus.manifest.n_skipped,
                                                             "first": list(corpus.manifest.skipped)},
        "warnings": list(_warnings(corpus, cells, by, metrics)),
    }


def describe(summary: dict) -> str:
    """The summary for the terminal."""
    lines = [f"{summary['corpus']}: {count(summary['n'], 'scenario')}, {count(summary['drives'], 'drive')}, "
             f"{_amount(summary['km'])} km, {_amount(summary['hours'])} h, revision {summary['revision']}"]
    for name, counts in summary["by"].items():
        ranked = list(counts.items()) if len(counts) <= SHOWN else Counter(counts).most_common(SHOWN)
        rest = f", {len(counts) - SHOWN:,} more" if len(counts) > SHOWN else ""
        lines.append(f"{name:<11} " + ", ".join(f"{value} {n:,}" for value, n in ranked) + rest)
    if summary["metrics"]:
        lines.append(f"{'metric':<32} {'mean':>9} {'per km':>9} {'per hour':>9}  unit, version")
    for name, m in summary["metrics"].items():
        values = [m[key] for key in ("mean", "per_km", "per_hour")]
        numbers = " ".join(f"{_number(value):>9}" for value in values)
        low = f", low-rate in {m['low_rate']:.0%}" if m["low_rate"] else ""
        lines.append(f"{name:<32} {numbers}  {m['unit'] or '-'}, {m['version']}{low}")
    lines += [f"latents {model}: {count(n, 'scenario')}" for model, n in summary["latents"].items()]
    return "\n".join([*lines, *(f"warning: {sentence}" for sentence in summary["warnings"])])


def count(n: int, what: str) -> str:
    """
    >>> count(1, "drive"), count(1200, "drive")
    ('1 drive', '1,200 drives')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _amount(value: float) -> str:
    """
    >>> _amount(0.0417), _amount(3.26), _amount(1234.56), _amount(0)
    ('0.042', '3.3', '1,234.6', '0')
    """
    return f"{value:,.1f}" if value >= 10 else f"{value:.2g}"


def _number(value: float | None) -> str:
    """
    >>> _number(None), _number(7.033e-15), _number(0.12345)
    ('-', '0', '0.1235')
    """
    return "-" if value is None else f"{0 if abs(value) < NOISE else value:.4g}"


def _metrics(corpus: Corpus) -> dict[str, dict]:
    """Metric -> mean over scenarios, events per km and hour (indicators only), definition, share at a low rate."""
    names = [name for name in corpus.metric_columns if name not in (*EXPOSURE, "duration_s")]
    if not names:
        return {}
    sums = corpus.sums(metrics=[*names, "low_rate"]).iloc[0]
    rate = lambda over, part: float(over / part) if part and part > 0 else None  # noqa: E731
    result = {}
    for name in names:
        definitions = [group[name] for group in corpus.manifest.metric_sets if name in group]
        last, rated = definitions[-1], definitions[-1].unit in RATED
        total = sums[f"sum:{name}"]
        result[name] = {
            "mean": rate(total, sums[f"count:{name}"]),
            "per_km": rate(total, sums[f"km:{name}"]) if rated else None,
            "per_hour": rate(total, sums[f"h:{name}"]) if rated else None,
            "n": int(sums[f"count:{name}"]), "unit": last.unit, "M": last.M, "version": last.version,
            "versions": sorted({d.version for d in definitions}),
            "low_rate": rate(sums["sum:low_rate"], sums["count:low_rate"]) if last.needs_hz else 0.0,
        }
    return result


def _warnings(corpus: Corpus, cells: pd.DataFrame, by: dict, metrics: dict) -> Iterator[str]:
    if not corpus.n:
        yield "The corpus holds no scenarios."
        return
    yield from _about_ids(corpus, cells, by)
    yield from _about_drives(cells)
    yield from _about_metrics(corpus, metrics)
    yield from _about_states(corpus)
    if corpus.manifest.n_skipped:
        n, first = corpus.manifest.n_skipped, "".join(corpus.manifest.skipped[:1])
        yield (f"{n:,} {'scenario or file was' if n == 1 else 'scenarios or files were'} left out by --skip-bad; the "
               f"first: {first}")
    for model, n in corpus.models.items():
        if n < corpus.n:
            yield f"Only {n:,} of {corpus.n:,} scenarios have latents of model '{model}'; encode the others."


def _about_ids(corpus: Corpus, cells: pd.DataFrame, by: dict) -> Iterator[str]:
    for column, (compared, advice) in MUST_BE_KNOWN.items():
        no_drive = cells.loc[cells["drive_id"] == UNKNOWN, "n"].sum()
        unknown = int(no_drive if column == "drive_id" else by[column].get(UNKNOWN, 0))
        if unknown:
            yield f"{unknown:,} of {corpus.n:,} scenarios have no {column}, so {compared} cannot be told: {advice}."


def _about_drives(cells: pd.DataFrame) -> Iterator[str]:
    known = cells[cells["drive_id"] != UNKNOWN]
    groups = known.groupby(["period", "area"])["n"].agg(["sum", "size", "max"])
    few = groups[(groups["sum"] < MIN_SCENARIOS) | (groups["size"] < MIN_DRIVES)]
    if len(few):
        (period, area), first = few.index[0], few.iloc[0]
        yield (f"{len(few):,} of {len(groups):,} pairs of period and area have fewer than {MIN_SCENARIOS} scenarios or "
               f"{MIN_DRIVES} drives, too few to compare alone; the first: {period} {area} with "
               f"{count(first['sum'], 'scenario')} of {count(first['size'], 'drive')}.")
    top = groups[(groups["max"] > DOMINANT * groups["sum"]) & (groups["size"] >= MIN_DRIVES)]
    for (period, area), row in top.iterrows():
        drives = known[(known["period"] == period) & (known["area"] == area)]
        name = drives.loc[drives["n"].idxmax(), "drive_id"]
        share = row["max"] / row["sum"]
        yield f"Drive '{name}' holds {share:.0%} of {period} {area}; results there would be about that drive."


def _about_metrics(corpus: Corpus, metrics: dict) -> Iterator[str]:
    low = {name: m["low_rate"] for name, m in metrics.items() if m["low_rate"]}
    if low:
        yield (f"{', '.join(low)} come from states below 5 Hz in {max(low.values()):.0%} of the scenarios and miss "
               "short events there; do not compare them with others.")
    for name, m in metrics.items():
        if len(m["versions"]) > 1:
            versions = ", ".join(map(str, m["versions"]))
            yield (f"Metric '{name}' was measured by versions {versions} of its definition; import all "
                   "logs again into a new corpus to compare them.")
        elif name in METRICS and METRICS[name].version > m["version"]:
            yield (f"Metric '{name}' was measured by version {m['version']} of its definition, and now there is "
                   f"{METRICS[name].version}; import again to have it.")
        if m["n"] < corpus.n:
            yield f"Metric '{name}' is missing in {corpus.n - m['n']:,} of {corpus.n:,} scenarios."


def _about_states(corpus: Corpus) -> Iterator[str]:
    without = sum(part.n for part in corpus.parts if STATES not in part.files)
    if without:
        yield f"{without:,} of {corpus.n:,} scenarios are ready-made latents: they cannot be played back or encoded."
    if "derived" not in corpus.cohort_columns:
        return
    counts: Counter = Counter()
    for names, n in corpus.sums(by=["derived"])[["derived", "n"]].dropna().itertuples(index=False):
        counts.update({name: int(n) for name in names.split(",") if name})
    if counts:
        listed = ", ".join(f"{name.replace('_', ' ')} in {n:,}" for name, n in counts.most_common())
        yield f"Derived, because the log lacks it: {listed} of {corpus.n:,} scenarios."
    if counts["agent_size"]:
        yield (f"Gaps, TTC and collisions rest on typical sizes in {counts['agent_size']:,} of {corpus.n:,} scenarios: "
               "compare them among such logs only, and do not read a collision as contact.")
