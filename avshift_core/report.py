"""Analysis -> JSON and row tables, written whole or not at all; and the config back from JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core import __version__
from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError
from avshift_core.files import json_bytes, plain, write_whole
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.calibrate import Calibration
from avshift_core.shift.local import Region

if TYPE_CHECKING:
    from avshift_core.latent.corpora import CorpusPair

SCHEMA = 1


def to_report(analysis: Analysis, pair: CorpusPair | None = None) -> dict:
    """The report as plain values. The same data, config and seed give the same report, but for `timings`.

    Args:
        pair: where P and Q come from, when that is a corpus.
    """
    test, decision = analysis.global_test, analysis.verdict
    report = {
        "schema": SCHEMA,
        "source": _cohort(analysis.P) | ({"query": str(pair.source)} if pair else {}),
        "target": _cohort(analysis.Q) | ({"query": str(pair.target)} if pair else {}),
        "corpus": origin(pair) if pair else None,
        "cautions": list(pair.cautions) if pair else [],
        "config": asdict(analysis.config),
        "global_test": {
            **{name: getattr(test, name) for name in (
                "acc", "acc_std", "gamma_hat", "gamma_lcb", "gamma_ucb", "gamma_lcb_wilson", "gamma_lcb_hoeffding",
                "tv_lower", "p_value", "p_neighbors", "auc", "statistic", "n_te", "repeats", "icc", "design_effect",
                "var_test", "var_training", "detectable_gamma", "independence_assumed",
            )},
            "aa": {"source": asdict(test.aa_source), "target": asdict(test.aa_target)},
            "verdict": decision.name, "decided": decision.decided, "sentence": decision.sentence,
            "n_needed": decision.n_needed,
        },
        "reference_tests": [asdict(r) for r in analysis.reference],
        "localized": analysis.local is not None,
        "regions": [], "overlap_violations": [], "paper_regions": None,
        "metrics": {name: _metric(analysis, name, c) for name, c in analysis.calibrations.items()},
        "trust": [asdict(check) for check in analysis.trust],
        "timings": dict(analysis.timings),
    }
    if analysis.local is not None:
        report["regions"] = [_region(r, analysis.config.B) for r in analysis.local.regions]
        report["overlap_violations"] = [_region(r, analysis.config.B) for r in analysis.local.overlap_violations]
        report["paper_regions"] = {
            "n_regions": analysis.local_paper.n_regions, "n_violations": analysis.local_paper.n_violations,
            "share_source": float((analysis.local_paper.region_P >= 0).mean()),
            "share_target": float((analysis.local_paper.region_Q >= 0).mean()),
        }
    return plain(report)


def origin(pair: CorpusPair) -> dict:
    """The corpus of a pair at the revision that was read, and which of its latents were compared."""
    return {"url": pair.corpus.url, "fingerprint": pair.corpus.fingerprint, "latents": pair.latents, "view": pair.view}


def to_rows(analysis: Analysis) -> pd.DataFrame:
    """One row a scenario: side, row, h, region (1..K as in the report, -1 outside), w_lis, w_ipw (P only).

    `scenario_id` follows `row` when both cohorts have one.
    """
    test, calibrator, B = analysis.global_test, analysis.calibrator, analysis.config.B
    n_P, n_Q = analysis.P.n, analysis.Q.n
    none = [np.full(n_P, -1), np.full(n_Q, -1)]
    index = none if analysis.local is None else [analysis.local.region_P, analysis.local.region_Q]
    region = np.where(np.concatenate(index) >= 0, np.concatenate(index) + 1, -1)
    w_lis = np.ones(n_P) if calibrator.regions is None else calibrator.regions.weights(B)
    blank = np.full(n_Q, np.nan)
    sides = analysis.P.obs, analysis.Q.obs
    named = all("scenario_id" in obs for obs in sides)
    return pd.DataFrame({
        "side": ["P"] * n_P + ["Q"] * n_Q,
        "row": np.concatenate([np.arange(n_P), np.arange(n_Q)]),
        **({"scenario_id": np.concatenate([obs["scenario_id"].astype(str) for obs in sides])} if named else {}),
        "h": np.concatenate([test.h_P, test.h_Q]),
        "region": region,
        "cell": analysis.space.cell,
        "w_lis": np.concatenate([w_lis, blank]),
        "w_ipw": np.concatenate([np.minimum(calibrator.w_ipw, B), blank]),
        "w_strata": np.concatenate([calibrator.cells.weights(B), blank]),
    })


def config_from_report(path: str | Path) -> AnalysisConfig:
    """The settings of an earlier report, to run it again."""
    try:
        settings = json.loads(Path(path).read_text())["config"]
        return AnalysisConfig(**{f.name: settings[f.name] for f in fields(AnalysisConfig) if f.name in settings})
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(f"{path} is not a report of AVShift; give a file written with --json.") from None


def write_rows(rows: pd.DataFrame, path: str | Path) -> None:
    """Write row assignments as Parquet; the file appears whole or not at all."""
    write_whole(path, lambda file: rows.to_parquet(file, index=False))


def region_table(analysis: Analysis, B: float) -> pd.DataFrame:
    """Every region and overlap violation, one row each."""
    if analysis.local is None:
        return pd.DataFrame(columns=["kind", "k"])
    kinds = {"region": analysis.local.regions, "overlap violation": analysis.local.overlap_violations}
    rows = [{"kind": kind, **_region(r, B)} for kind, regions in kinds.items() for r in regions]
    return pd.DataFrame(rows, columns=None if rows else ["kind", "k"])


def report_bytes(analysis: Analysis, pair: CorpusPair | None, run: str) -> bytes:
    """The report as a JSON file, with the identity of its run."""
    return json_bytes({"run": run, "engine": __version__, **to_report(analysis, pair)})


def table_bytes(table: pd.DataFrame | Sequence[Mapping], kind: str, run: str = "") -> bytes:
    """A table, or its rows, as a CSV or Parquet file; values within values get columns of their own.

    The run stands in a column of its own, and in Parquet's metadata too.
    Text that a spreadsheet would take for a formula is led by an apostrophe in CSV.
    """
    table = table if isinstance(table, pd.DataFrame) else pd.json_normalize(list(table))
    table = table.assign(run=run) if run else table
    if kind == "csv":
        safe = table.copy()
        for name in safe.columns[[not pd.api.types.is_numeric_dtype(t) for t in safe.dtypes]]:
            safe[name] = [f"'{v}" if isinstance(v, str) and v[:1] in ("=", "+", "-", "@", "\t", "\r") else v
                          for v in safe[name]]
        return safe.to_csv(index=False).encode()
    data, arrow = io.BytesIO(), pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), "avshift_run": run,
                                                  "avshift_engine": __version__}), data)
    return data.getvalue()


def _cohort(cohort) -> dict:
    return {"name": cohort.name, "n": cohort.n, "drives": cohort.n_drives if cohort.has_drives else None,
            "fingerprint": cohort.fingerprint}


def _region(region: Region, B: float) -> dict:
    return {
        "k": region.k, "cells": list(region.cells), "direction": region.direction, "p_k": region.p_k,
        "q_k": region.q_k, "w_k": min(region.w_k, B), "w_k_unclipped": region.w_k, "score": region.score,
        "p_adj": region.p_adj, "n_source": region.n_source, "n_target": region.n_target,
        "n_drives": region.n_drives, "radius": region.radius,
    }


def _metric(analysis: Analysis, name: str, c: Calibration) -> dict:
    estimate = lambda e: None if e is None else {"mu": e.mu, "lo": e.lo, "hi": e.hi}  # noqa: E731
    return {
        "B": c.B,
        **{key: estimate(value) for key, value in c.estimates().items()},
        "traffic": estimate(c.traffic), "residual": estimate(c.residual),
        "headline": analysis.headline(name),
        **{key: getattr(c, key) for key in ("ess", "ess_drives", "khat", "clipped_mass", "uncovered_mass")},
    }
