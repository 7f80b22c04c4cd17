import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import AVShiftError, CohortError, TableError
from avshift_core.latent.cohort import MIN_SCENARIOS, check_metric, check_pair, make_cohort


def cohort(name="P", n=400, d=3, drives=20, seed=0, **more):
    rng = np.random.default_rng(seed)
    drive = None if drives is None else np.arange(n) % drives
    return make_cohort(name, rng.normal(size=(n, d)), drive_id=drive, **more)


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        cohort().z[0, 0] = 1.0


@pytest.mark.parametrize("change", ["latent", "drive", "metric", "attribute"])
def test_fingerprint_covers_every_byte(change):
    rng = np.random.default_rng(0)
    z, drive, ell, speed = rng.normal(size=(60_000, 2)), np.arange(60_000) % 50, np.zeros(60_000), np.arange(60_000.0)
    make = lambda: make_cohort("P", z, drive_id=drive, ell={"e": ell}, obs=pd.DataFrame({"speed": speed}))  # noqa: E731
    before = make().fingerprint
    assert before == make().fingerprint
    if change == "latent":
        z[43_210, 1] += 1e-3
    elif change == "drive":
        drive[43_210] += 1
    elif change == "metric":
        ell[43_210] = 1
    else:
        speed[43_210] = -1
    assert make().fingerprint != before


def test_nan_latents_name_the_first_row():
    z = np.zeros((300, 2))
    z[7, 1] = np.nan
    with pytest.raises(TableError, match=r"1 of 300 scenarios \(first: row 7\)"):
        make_cohort("P", z)


def test_empty_cohort():
    with pytest.raises(CohortError, match="is empty"):
        make_cohort("P", np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("P", "Q", "sentence"),
    [
        (cohort(n=MIN_SCENARIOS - 1), cohort("Q", seed=1), "has 199 scenarios; at least 200"),
        (cohort(drives=9), cohort("Q", seed=1), "has 9 drives; at least 10"),
        (cohort(d=3), cohort("Q", d=4, seed=1), "3 dimensions and those of 'Q' 4"),
        (cohort(drives=None), cohort("Q", seed=1), "'P' has no drive ids"),
        (cohort(), cohort("other name"), "hold the same scenarios"),
        (cohort(), cohort("Q", n=400_400, seed=1), "1,001 to one"),
    ],
)
def test_pairs_that_cannot_be_compared(P, Q, sentence):
    with pytest.raises(CohortError, match=sentence):
        check_pair(P, Q)


def test_one_drive_holding_half():
    drive = np.arange(400) % 20
    drive[:250] = 3
    P = make_cohort("P", np.random.default_rng(0).normal(size=(400, 2)), drive_id=drive)
    with pytest.raises(CohortError, match="Drive '3' holds 6"):
        check_pair(P, cohort("Q", d=2, seed=1))


def test_constant_latents():
    P, Q = (make_cohort(n, np.ones((300, 2)), ell={"e": np.full(300, v)}) for n, v in (("P", 0), ("Q", 1)))
    with pytest.raises(CohortError, match="same constant"):
        check_pair(P, Q)


@pytest.mark.parametrize(
    ("p", "q", "sentence"),
    [
        (np.full(400, -0.1), np.zeros(400), r"runs from -0.1 to -0.1; it must lie in \[0, 1\]"),
        (np.linspace(0, 1.5, 400), np.zeros(400), "Rescale it, or set --M"),
        (np.ones(400), np.ones(400), "is 1 in every scenario"),
        (np.r_[np.nan, np.zeros(399)], np.ones(400), "missing or infinite in 1 of 400"),
    ],
)
def test_metrics_that_cannot_be_used(p, q, sentence):
    P, Q = cohort(ell={"e": p}), cohort("Q", seed=1, ell={"e": q})
    with pytest.raises(CohortError, match=sentence):
        check_metric(P, Q, "e", 1.0)


def test_unknown_metric_lists_the_known_ones():
    with pytest.raises(AVShiftError, match="no metric 'x'; found e"):
        check_metric(cohort(ell={"e": np.zeros(400)}), cohort("Q"), "x", 1.0)
