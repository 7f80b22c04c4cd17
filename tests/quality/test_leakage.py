import numpy as np
import pandas as pd
import pytest

from avshift_core.quality.leakage import drive_leak, leak

DRIVES, EACH = 60, 40
N = DRIVES * EACH


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    drive = np.repeat(np.arange(DRIVES), EACH)
    version = (np.arange(DRIVES) % 2)[drive]
    context = rng.normal(size=(N, 3))
    context[:, 0] += 0.8 * version  # the newer version met other traffic
    return rng, drive, pd.Series(np.array(["v1", "v2"])[version], name="av_version"), version, context


def test_z_that_follows_from_the_context_leaks_nothing(data):
    rng, drive, label, _, context = data
    z = np.concatenate([np.sin(context), context**2, rng.normal(size=(N, 2))], axis=1)  # bent, but no more
    found = leak(label, z, context, drive, exact=True)
    assert found.classes == ("v1", "v2")
    assert found.context.value == pytest.approx(0.714, abs=0.04)  # Phi(0.8 / sqrt 2), less what 2,400 rows cost
    assert found.excess.value < 0.015


def test_a_trace_of_the_version_is_an_excess(data):
    rng, drive, label, version, context = data
    z = np.concatenate([context, (1.5 * version + rng.normal(size=N))[:, None]], axis=1)
    found = leak(label, z, context, drive, exact=True)
    assert found.excess.lo > 0.1
    assert found.both.value == pytest.approx(0.885, abs=0.03)  # Phi(sqrt(0.8^2 + 1.5^2) / sqrt 2)


def test_knowing_the_drive_does_not_help_on_other_drives(data):
    rng, drive, label, _, context = data
    z = 5 * rng.normal(size=(DRIVES, 8))[drive] + rng.normal(size=(N, 8))
    assert leak(label, z, context, drive, exact=True).z.value < 0.75  # folds by row would give 1; 60 drives, 0.5 +- 0.1


def test_one_value_or_too_few_drives_of_one_are_left_out(data):
    _, drive, _, _, context = data
    assert leak(pd.Series(["v1"] * N, name="av_version"), context, context, drive, exact=True) is None
    rare = pd.Series(np.where(drive < 5, "v2", "v1"), name="av_version")
    assert leak(rare, context, context, drive, exact=True) is None


def test_three_areas_are_each_told_from_the_rest(data):
    rng, drive, _, _, _ = data
    area = drive % 3
    context = np.eye(3)[area] * 4 + rng.normal(size=(N, 3))
    found = leak(pd.Series(np.array(["a", "b", "c"])[area], name="area"), context, context, drive, exact=False)
    assert found.classes == ("a", "b", "c") and found.z.value > 0.97 and not found.exact


def places(drive, per_group):
    group = drive // per_group
    return pd.DataFrame({"area": "a", "period": "w", "route": group.astype(str)})


def test_no_trace_of_the_drive_is_a_ratio_of_one(data):
    rng, drive, _, _, _ = data
    z, context = rng.normal(size=(N, 4)), rng.normal(size=(N, 4))
    found = drive_leak(places(drive, 10), z, context, drive, exact=True)
    assert found.z.lo < 1 < found.z.hi
    assert found.expected == pytest.approx((EACH - 1) / (10 * EACH - 1))  # of a group of ten drives


def test_a_trace_of_the_drive_is_seen_in_z_and_not_in_the_context(data):
    rng, drive, _, _, _ = data
    z = 3 * rng.normal(size=(DRIVES, 4))[drive] + rng.normal(size=(N, 4))
    found = drive_leak(places(drive, 10), z, rng.normal(size=(N, 4)), drive, exact=True)
    assert found.z.lo > 3 and found.context.lo < 1.1


def test_groups_of_one_drive_tell_nothing(data):
    rng, drive, _, _, _ = data
    z = rng.normal(size=(N, 2))
    assert drive_leak(places(drive, 1), z, z, drive, exact=True) is None
