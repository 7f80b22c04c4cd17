"""Real tables: lane-change decisions of NGSIM, "bring your own features"."""

from pathlib import Path

import pandas as pd
import pytest

from avshift_core.latent.cohort import make_cohort
from avshift_core.shift.analyze import analyze

TABLE = Path(__file__).parent.parent.parent / "shared" / "data" / "tables" / "ngsim_lane_change_decisions.csv"


@pytest.mark.realdata
@pytest.mark.skipif(not TABLE.is_file(), reason="the NGSIM table is not beside the project")
def test_two_highways_differ_and_a_highway_does_not_differ_from_itself():
    table = pd.read_csv(TABLE)
    features = ["u0_mps", "du0", "du1", "du2", "dx0", "dx1", "dx2", "dy0", "dy1", "dy2"]
    sides = [group[features].dropna() for _, group in table.groupby("site")]
    assert len(sides) == 2
    P, Q = (make_cohort(n, side.to_numpy()) for n, side in zip(("I-80", "US-101"), sides, strict=True))
    analysis = analyze(P, Q, metrics=[], repeats=1)
    assert analysis.verdict.name == "global_shift"
    shuffled = sides[0].sample(frac=1, random_state=0)
    half = len(shuffled) // 2
    A, B = (make_cohort(n, s.to_numpy()) for n, s in (("A", shuffled[:half]), ("B", shuffled[half:])))
    assert analyze(A, B, metrics=[], repeats=1).verdict.name == "no_shift"
