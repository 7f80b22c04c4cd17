"""Networks trained side by side: the same numbers on any number of threads."""

import threading

import numpy as np
import pytest
import torch

from avshift_core.shift.mlp import REGIMES, choose_regime, fit_mlp, side_by_side


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6)).astype(np.float32)
    y = (rng.random(900) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(np.float32)[:, None]
    return X, y, rng.random(900) + 0.5


def test_the_number_of_threads_changes_no_bit(data, threads):
    rows = [np.flatnonzero(np.arange(900) % 6 != k) for k in range(6)]
    answers = []
    for n in (1, 2, 3):
        threads(n)
        predict = fit_mlp(*data, rows, seed=4, regime=REGIMES[1])
        answers.append((np.stack([predict(e, np.arange(900)) for e in range(6)]),
                        choose_regime(*data, rows[0], np.arange(0, 900, 6), seed=4)))
        assert torch.get_num_threads() == n
    assert all(np.array_equal(answers[0][0], other) and answers[0][1] == chosen for other, chosen in answers[1:])
    accuracy = ((answers[0][0][0] > 0) == data[1])[np.arange(900) % 6 == 0].mean()
    assert accuracy > 0.65  # the true rule reaches E[1 / (1 + exp(-2 |x|))] = 0.78, a coin 0.5


def test_work_side_by_side_keeps_its_order_and_its_errors(threads):
    threads(2)
    meeting = threading.Barrier(2, timeout=30)  # passes only when two are under way at once
    assert side_by_side(lambda item: (meeting.wait(), item)[1], [1, 2, 3, 4]) == [1, 2, 3, 4]
    assert side_by_side(lambda item: torch.get_num_threads(), [1, 2]) == [1, 1]
    with pytest.raises(ValueError, match="no"):
        side_by_side(lambda item: (_ for _ in ()).throw(ValueError("no")), [1, 2])
    assert torch.get_num_threads() == 2
