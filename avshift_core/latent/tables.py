"""Tables of latents -> Cohort: Parquet or CSV, the latent as one list column or as columns z_0, z_1, ..."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from avshift_core.errors import TableError
from avshift_core.latent.cohort import Cohort, make_cohort

DEFAULT_GROUP = "drive_id"


def read_cohort(
    path: str | Path, *, latent: str = "z", group: str | None = None, metrics: Sequence[str] = (),
    name: str | None = None,
) -> Cohort:
    """Read one cohort from a table.

    Args:
        path: a .parquet or .csv file.
        latent: a column of lists, or the prefix of columns `<latent>_0`, `<latent>_1`, ...
        group: the drive column; without it `drive_id` is used when there is one.
        metrics: columns to read as metrics; every further column becomes an attribute.
        name: what the cohort is called in results; the file's stem without it.
    """
    path = Path(path)
    table = _read_table(path)
    z, latent_columns = _latents(table, latent, path.name)
    if group is None and DEFAULT_GROUP in table.columns:
        group = DEFAULT_GROUP
    for column in [*metrics, *([group] if group else [])]:
        if column not in table.columns:
            others = [str(c) for c in table.columns if c not in latent_columns]
            raise TableError(f"{path.name} has no column '{column}'; found {', '.join(others) or 'no others'}.")
    ell = {}
    for column in metrics:
        try:
            ell[column] = table[column].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise TableError(
                f"Metric '{column}' of {path.name} is not a number in every row. Give 0 and 1, or a value in [0, M]."
            ) from None
    obs = table.drop(columns=[*latent_columns, *metrics, *([group] if group else [])])
    return make_cohort(
        name or path.stem, z, drive_id=table[group].to_numpy() if group else None, ell=ell, obs=obs
    )


def write_cohort(cohort: Cohort, path: str | Path, *, latent: str = "z") -> None:
    """Write a cohort as Parquet, so that `read_cohort` gives it back."""
    columns = {latent: pa.FixedSizeListArray.from_arrays(pa.array(cohort.z.ravel()), cohort.z.shape[1])}
    if cohort.has_drives:
        columns[DEFAULT_GROUP] = pa.array(cohort.drive_ids[cohort.drive])
    columns |= {name: pa.array(value) for name, value in cohort.ell.items()}
    columns |= {str(name): pa.array(cohort.obs[name]) for name in cohort.obs.columns}
    pq.write_table(pa.table(columns), path)


def _read_table(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise TableError(f"{path} is not a file. Give the path of a Parquet or CSV table.")
    try:
        if path.suffix.lower() == ".csv":
            table = pd.read_csv(path)
        elif path.suffix.lower() in (".parquet", ".pq"):
            table = pq.read_table(path).to_pandas()
        else:
            raise TableError(f"{path.name} is neither .parquet nor .csv. Convert it to one of the two.")
    except (OSError, ValueError, pa.ArrowException) as error:  # pandas' parser errors are ValueErrors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(
            f"{path.name} cannot be read: {reason.rstrip('.')}. It may be truncated; write or copy it again."
        ) from None
    if len(table) == 0:
        raise TableError(f"{path.name} holds no rows. Choose a file with scenarios.")
    return table


def _latents(table: pd.DataFrame, latent: str, file: str) -> tuple[np.ndarray, list[str]]:
    if latent in table.columns:
        return _list_column(table[latent], latent, file), [latent]
    numbered = {int(m.group(1)): c for c in table.columns if (m := re.fullmatch(re.escape(latent) + r"_(\d+)", str(c)))}
    if not numbered:
        raise TableError(
            f"{file} has no column '{latent}' and no columns '{latent}_0', '{latent}_1', ...; found "
            f"{', '.join(map(str, list(table.columns)[:12]))}. Name the latent with --latent."
        )
    missing = sorted(set(range(max(numbered) + 1)) - set(numbered))
    if missing:
        raise TableError(f"{file} has '{latent}_{max(numbered)}' but not '{latent}_{missing[0]}'; all are needed.")
    columns = [numbered[i] for i in range(len(numbered))]
    try:
        return table[columns].to_numpy(dtype=np.float32), columns
    except (TypeError, ValueError):
        raise TableError(f"Columns '{latent}_*' of {file} hold text; latents must be numbers.") from None


def _list_column(column: pd.Series, latent: str, file: str) -> np.ndarray:
    rows = column.tolist()
    try:
        if isinstance(rows[0], str):  # CSV keeps lists as text: "[0.1, 0.2]"
            rows = [json.loads(row) for row in rows]
        widths = {len(row) for row in rows}
    except (TypeError, ValueError):
        raise TableError(
            f"Column '{latent}' of {file} is not a list of numbers in every row; give lists such as [0.1, 0.2], or "
            f"columns '{latent}_0', '{latent}_1', ..."
        ) from None
    if len(widths) > 1:
        raise TableError(
            f"Latents in column '{latent}' of {file} have different widths ({min(widths)} to {max(widths)}); "
            "encode all scenarios with one model."
        )
    if widths == {0}:
        raise TableError(f"Latents in column '{latent}' of {file} are empty lists; at least one number each is needed.")
    try:
        return np.array(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise TableError(f"Column '{latent}' of {file} holds something that is not a number.") from None
