from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avshift_core.errors import LogError
from avshift_core.scenario.readers.windows import cut_windows


def lengths(windows):
    return [w.stop - w.start for w in windows]


@pytest.mark.parametrize(
    ("states", "expected"),
    [  # at 10 Hz; by hand: the number of windows whose length is nearest to 12.5 s
        (50, [50]),                          # 5 s: taken as it is
        (100, [100]),
        (150, [150]),
        (180, [150]),                        # 18 s: two of 9 s would be too short
        (200, [100, 100]),
        (300, [150, 150]),                   # two of 15 are as near to 12.5 as three of 10: the fewer
        (610, [122] * 5),                    # 61 / 12.5 = 4.9
        (690, [115] * 6),                    # 69 / 6 = 11.5 is nearer than 69 / 5 = 13.8
    ],
)
def test_even_windows_of_10_to_15_s(states, expected):
    assert lengths(cut_windows(np.arange(states) / 10)) == expected


def test_no_window_crosses_a_gap():
    t = np.r_[0:26:0.1, 30:41:0.1]           # 26 s, nothing for 4 s, 11 s
    assert cut_windows(t) == [slice(0, 130), slice(130, 260), slice(260, 370)]


def test_gap_of_one_second_is_no_gap():
    t = np.r_[0:5:0.5, 5.5:10.1:0.5]
    assert cut_windows(t) == [slice(0, len(t))]


def test_crumbs_beside_a_gap_are_left_out():
    t = np.r_[0:12:0.1, 20, 20.1, 20.2]
    assert cut_windows(t) == [slice(0, 120)]


def test_nothing_but_crumbs_gives_the_longest():
    assert cut_windows(np.array([0, 0.1, 5, 5.1, 5.2, 9])) == [slice(2, 5)]


@pytest.mark.parametrize("t", [[], [3.0]])
def test_a_record_without_duration(t):
    assert cut_windows(np.array(t)) == [slice(0, len(t))]


def test_time_running_backwards():
    with pytest.raises(LogError, match=r"drive\.csv: time runs backwards, from 2\.0+ s at step 2 to 1\.5"):
        cut_windows(np.array([0, 1, 2, 1.5]), where="drive.csv")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.02, 3.0), min_size=2, max_size=400), st.integers(1, 40))
def test_windows_are_disjoint_ordered_and_without_gaps(steps, repeat):
    t = np.cumsum(np.tile(steps, repeat)[:4000])
    windows = cut_windows(t)
    assert windows
    assert all(a.stop <= b.start for a, b in pairwise(windows))
    for w in windows:
        inside = t[w]
        assert len(inside) >= 1
        assert np.diff(inside).max(initial=0.0) <= 1.0
        assert inside[-1] - inside[0] <= 15.0 + 1.0  # an edge may fall into a hole of up to 1 s


@settings(max_examples=100, deadline=None)
@given(st.floats(20.5, 400), st.sampled_from([5.0, 10.0, 20.0, 100.0]))
def test_long_even_records_are_used_whole(duration, rate):
    t = np.arange(0, duration, 1 / rate)
    windows = cut_windows(t)
    assert sum(lengths(windows)) == len(t)
    spans = np.array(lengths(windows)) / rate
    assert spans.min() >= 10 - 1.01 / rate and spans.max() <= 15 + 1.01 / rate
    assert spans.max() - spans.min() <= 2.01 / rate
