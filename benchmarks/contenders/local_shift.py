"""Where do the cohorts differ? Rows in regions against the shifted set."""

from __future__ import annotations

import engine
import numpy as np
from measure import Contender, Data, measure

COLUMNS = {"precision": "precision", "recall": "recall", "rows": "rows in regions"}
NULLS = {"rows": "rows in regions, no shift"}
LEVEL = 0.05
MILO_NEIGHBORS = 50


def quality(data: Data, inside) -> dict:
    hit = float((inside & data.shifted).sum())
    return {"": {
        "precision": hit / inside.sum() if inside.any() else None,
        "recall": hit / data.shifted.sum() if data.shifted.any() else None, "rows": float(inside.mean()),
    }}


def milo(data: Data) -> np.ndarray:
    """Rows in a neighbourhood whose spatial false discovery rate is below the level; drives are the samples."""
    import pandas as pd
    import pertpy
    import scanpy
    from anndata import AnnData

    obs = pd.DataFrame({"drive": data.drive.astype(str), "cohort": np.where(data.y == 1, "Q", "P")})
    obs.index = obs.index.astype(str)
    cells = AnnData(data.X, obs=obs, obsm={"latent": data.X})
    scanpy.pp.neighbors(cells, n_neighbors=MILO_NEIGHBORS, use_rep="latent")
    tool = pertpy.tl.Milo()
    both = tool.load(cells)
    tool.make_nhoods(both["rna"])
    both = tool.count_nhoods(both, sample_col="drive")
    tool.da_nhoods(both, design="~cohort", solver="pydeseq2")
    changed = both["milo"].var["SpatialFDR"].to_numpy(dtype=float) < LEVEL
    return np.asarray(both["rna"].obsm["nhoods"][:, changed].sum(axis=1)).ravel() > 0


CONTENDERS = (
    Contender("AVShift", engine.regions, note="global test and regions, without the verdict's veto"),
    Contender("AVShift, the paper's regions", engine.paper_regions, note="the same global test"),
    Contender("Milo in pertpy", milo, "milo", f"{MILO_NEIGHBORS} neighbours, drives as samples, pydeseq2"),
)

if __name__ == "__main__":
    measure(CONTENDERS, quality)
