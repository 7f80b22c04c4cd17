import numpy as np
import pandas as pd
import pytest

from avshift_core.errors import LogError
from avshift_core.scenario.readers import dense
from avshift_core.scenario.readers.dense import dense_tracks


def test_same_as_a_pivot_in_pandas():
    rng = np.random.default_rng(0)
    cells = rng.choice(40 * 25, size=600, replace=False)
    table = pd.DataFrame({"track": cells // 25, "step": cells % 25, "x": rng.normal(size=600)})
    tracks = dense_tracks(table.track, table.step, {"x": table.x.to_numpy()}, 25)
    pivot = table.pivot(index="track", columns="step", values="x").reindex(index=tracks.track_id, columns=range(25))
    np.testing.assert_array_equal(tracks.values["x"], pivot.to_numpy())
    np.testing.assert_array_equal(tracks.valid, pivot.notna().to_numpy())
    np.testing.assert_array_equal(table.x.to_numpy()[tracks.row[tracks.valid]], tracks.values["x"][tracks.valid])


def test_order_of_first_appearance_and_other_types():
    tracks = dense_tracks(["z", "a"], [1, 0], {"kind": np.array([3, 4], np.int8)}, 2)
    assert tracks.track_id.tolist() == ["z", "a"]
    assert tracks.values["kind"].dtype == np.int8
    assert tracks.values["kind"].tolist() == [[0, 3], [4, 0]]


def test_duplicate_rows_are_named():
    with pytest.raises(LogError, match=r"cars\.csv: rows 3 and 5 hold agent 'b' at the same time"):
        dense_tracks(["a", "b", "a", "b"], [0, 1, 1, 1], {}, 2, where="cars.csv", first_row=2)


def test_missing_track_id_names_the_row():
    with pytest.raises(LogError, match="row 2 has no track id"):
        dense_tracks(np.array(["a", None], dtype=object), [0, 1], {}, 2)


def test_every_row_its_own_time_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(dense, "MAX_STATES", 99)
    with pytest.raises(LogError, match="10 agents over 10 times, too many"):
        dense_tracks(np.arange(10), np.arange(10), {}, 10)


def test_no_rows():
    tracks = dense_tracks([], [], {"x": np.zeros(0)}, 3)
    assert tracks.valid.shape == (0, 3) and tracks.values["x"].shape == (0, 3)
