"""A cohort: the latents, metrics and drives of one period or area, read-only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from avshift_core.errors import CohortError, TableError

MIN_SCENARIOS = 200  # below, the half-width of the advantage exceeds 0.08: no verdict but "undecided" is possible
MIN_DRIVES = 10  # five folds by drive, and two halves for the regions, need two drives each
MAX_IMBALANCE = 1000  # beyond, the smaller cohort is a rounding error of the larger


@dataclass(frozen=True, eq=False)
class Rest:
    """Drives of a cohort that were not drawn for a comparison; arrays of one entry a drive.

    Attributes:
        n: scenarios; ell: metric name -> sum of its values.
    """

    n: np.ndarray
    ell: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Cohort:
    """Scenarios of one side of a comparison, as a structure of arrays.

    Attributes:
        name: what the reader calls it ("W10 harbor").
        z: (n, d) float32 latents.
        drive: (n,) drive of each scenario as 0..n_drives-1; one drive a row when there are no drive ids.
        drive_ids: (n_drives,) the ids behind `drive`, as strings.
        ell: metric name -> (n,) float64 values.
        obs: all other columns, one row a scenario.
        has_drives: False when no drive ids were given and independence is assumed.
        fingerprint: SHA-256 over every byte of the latents, metrics, drives and attributes.
        rest: sums of the drives that were not drawn, where the cohort is a sample; None where it is whole.
    """

    name: str
    z: np.ndarray
    drive: np.ndarray
    drive_ids: np.ndarray
    ell: Mapping[str, np.ndarray]
    obs: pd.DataFrame
    has_drives: bool = True
    fingerprint: str = field(default="", compare=False)
    rest: Rest | None = None

    @property
    def n(self) -> int:
        return len(self.z)

    @property
    def n_drives(self) -> int:
        return len(self.drive_ids)


def make_cohort(name, z, *, drive_id=None, ell=None, obs=None) -> Cohort:
    """Check and freeze the arrays of one cohort.

    Args:
        z: (n, d) latents, finite.
        drive_id: (n,) any labels, or None: every scenario then counts as independent.
        ell: metric name -> (n,) values.
        obs: attributes, one row a scenario.

    >>> make_cohort("P", [[0.0], [1.0], [2.0]], drive_id=["a", "a", "b"]).n_drives
    2
    """
    z = np.array(z, dtype=np.float32, ndmin=2, order="C")
    if z.ndim != 2 or z.size == 0:
        raise CohortError(f"Cohort '{name}' is empty. Choose a period or area, or a file, that holds scenarios.")
    n = len(z)
    bad = np.flatnonzero(~np.isfinite(z).all(axis=1))
    if len(bad):
        raise TableError(
            f"Cohort '{name}' has NaN or infinite latents in {len(bad):,} of {n:,} scenarios (first: row {bad[0]}). "
            "Drop these rows or encode them again."
        )
    ell = {key: np.array(value, dtype=np.float64) for key, value in (ell or {}).items()}
    obs = pd.DataFrame(index=range(n)) if obs is None else obs.reset_index(drop=True)
    has_drives = drive_id is not None
    if has_drives:
        labels = pd.Series(drive_id)
        if labels.isna().any():
            raise TableError(
                f"Cohort '{name}' has {int(labels.isna().sum()):,} scenarios without a drive id. "
                "Fill them in, or leave the drive column out to assume independence."
            )
        drive_ids, drive = np.unique(labels.astype(str).to_numpy(dtype=str), return_inverse=True)
    else:
        drive_ids, drive = np.arange(n).astype(str), np.arange(n)
    for label, length in [("drive ids", len(drive)), ("attributes", len(obs)), *((k, len(v)) for k, v in ell.items())]:
        if length != n:
            raise CohortError(f"Cohort '{name}' has {n:,} latents but {length:,} {label}; one each is needed.")
    fingerprint = _fingerprint(z, drive_ids[drive] if has_drives else None, ell, obs)
    for array in (z, drive, drive_ids, *ell.values()):
        array.setflags(write=False)
    return Cohort(name, z, drive, drive_ids, ell, obs, has_drives, fingerprint)


def with_rest(cohort: Cohort, rest: Rest) -> Cohort:
    """A cohort that is a sample, with the sums of the drives that were not drawn; they are part of its fingerprint."""
    digest = hashlib.sha256(cohort.fingerprint.encode() + rest.n.tobytes())
    for key in sorted(rest.ell):
        digest.update(key.encode() + rest.ell[key].tobytes())
    for array in (rest.n, *rest.ell.values()):
        array.setflags(write=False)
    return replace(cohort, rest=rest, fingerprint=digest.hexdigest())


def _fingerprint(z, drive, ell, obs) -> str:
    digest = hashlib.sha256(repr(z.shape).encode())
    digest.update(z.tobytes())
    if drive is not None:
        digest.update("\0".join(drive).encode())
    for key in sorted(ell):
        digest.update(key.encode() + ell[key].tobytes())
    for column in sorted(obs.columns, key=str):
        digest.update(str(column).encode() + pd.util.hash_pandas_object(obs[column], index=False).to_numpy().tobytes())
    return digest.hexdigest()


def check_pair(P: Cohort, Q: Cohort) -> None:
    """Refuse a pair on which no statement about a shift could be trusted."""
    for cohort in (P, Q):
        if cohort.n < MIN_SCENARIOS:
            raise CohortError(
                f"Cohort '{cohort.name}' has {cohort.n:,} scenarios; at least {MIN_SCENARIOS} are needed to see any "
                "shift. Widen the period or the area."
            )
        if cohort.has_drives and cohort.n_drives < MIN_DRIVES:
            raise CohortError(
                f"Cohort '{cohort.name}' has {cohort.n_drives} drives; at least {MIN_DRIVES} are needed, because "
                "scenarios of one drive are alike. Widen the period, or leave the drive column out."
            )
        share = np.bincount(cohort.drive).max() / cohort.n
        if share >= 0.5:
            top = cohort.drive_ids[np.bincount(cohort.drive).argmax()]
            raise CohortError(
                f"Drive '{top}' holds {share:.0%} of cohort '{cohort.name}'; a comparison would be about that drive. "
                "Add drives or leave it out."
            )
    if P.z.shape[1] != Q.z.shape[1]:
        raise CohortError(
            f"Latents of '{P.name}' have {P.z.shape[1]} dimensions and those of '{Q.name}' {Q.z.shape[1]}; "
            "encode both with the same model."
        )
    if P.has_drives != Q.has_drives:
        without = Q.name if P.has_drives else P.name
        raise CohortError(
            f"Cohort '{without}' has no drive ids but the other one has; give drive ids for both or for neither."
        )
    if P.fingerprint == Q.fingerprint:
        raise CohortError(
            f"'{P.name}' and '{Q.name}' hold the same scenarios (fingerprint {P.fingerprint[:12]}); "
            "choose two different cohorts."
        )
    ratio = max(P.n, Q.n) / min(P.n, Q.n)
    if ratio > MAX_IMBALANCE:
        raise CohortError(
            f"'{P.name}' has {P.n:,} scenarios and '{Q.name}' {Q.n:,}, {ratio:,.0f} to one; at most "
            f"{MAX_IMBALANCE:,} to one can be compared. Narrow the larger cohort."
        )
    if np.all(np.concatenate([P.z.min(0), Q.z.min(0)]) == np.concatenate([P.z.max(0), Q.z.max(0)])) and np.all(
        P.z[0] == Q.z[0]
    ):
        raise CohortError("All latents are the same constant; there is nothing to compare. Check the encoder's output.")


def check_metric(P: Cohort, Q: Cohort, name: str, M: float) -> None:
    """Refuse a metric that is missing, not a number, outside [0, M], or constant."""
    for cohort in (P, Q):
        if name not in cohort.ell:
            known = ", ".join(cohort.ell) or "none"
            raise CohortError(f"Cohort '{cohort.name}' has no metric '{name}'; found {known}.")
        value = cohort.ell[name]
        if not np.isfinite(value).all():
            count = int((~np.isfinite(value)).sum())
            raise CohortError(
                f"Metric '{name}' is missing or infinite in {count:,} of {cohort.n:,} scenarios of '{cohort.name}'. "
                "Fill these in or leave the scenarios out."
            )
        if value.min() < 0 or value.max() > M:
            raise CohortError(
                f"Metric '{name}' of '{cohort.name}' runs from {value.min():g} to {value.max():g}; it must lie in "
                f"[0, {M:g}]. Rescale it, or set --M to its largest possible value."
            )
        if cohort.rest is not None and not np.isfinite(cohort.rest.ell[name]).all():
            count = int((~np.isfinite(cohort.rest.ell[name])).sum())
            raise CohortError(
                f"Metric '{name}' is missing or infinite in scenarios of {count:,} drives of '{cohort.name}' that were "
                "not drawn. Fill these in or leave the scenarios out."
            )
    both = np.concatenate([P.ell[name], Q.ell[name]])
    if both.min() == both.max():
        drawn = " that was drawn" if P.rest is not None or Q.rest is not None else ""
        raise CohortError(
            f"Metric '{name}' is {both[0]:g} in every scenario{drawn} of both cohorts; there is nothing to calibrate. "
            "Choose another metric."
        )
