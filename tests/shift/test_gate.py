from types import SimpleNamespace

import pytest

from avshift_core.config import AnalysisConfig
from avshift_core.shift.gate import verdict


def test(lcb, hat, ucb):
    return SimpleNamespace(
        gamma_hat=hat, gamma_lcb=lcb, gamma_ucb=ucb, detectable_gamma=0.02, n_te=4000, tv_lower=2 * lcb
    )


test.__test__ = False


@pytest.mark.parametrize(
    ("lcb", "hat", "ucb", "name", "decided"),
    [
        (0.0, 0.002, 0.008, "no_shift", True),
        (0.0, 0.008, 0.02, "no_shift", False),
        (0.02, 0.04, 0.06, "localize", True),
        (0.08, 0.099, 0.12, "localize", False),
        (0.2, 0.25, 0.3, "global_shift", True),
    ],
)
def test_verdicts(lcb, hat, ucb, name, decided):
    found = verdict(test(lcb, hat, ucb), AnalysisConfig())
    assert (found.name, found.decided) == (name, decided)
    assert ("Undecided" in found.sentence) != decided


def test_scenarios_needed_follow_the_square_root_law():
    # half-width 0.012 above 0.008; the edge 0.01 is 0.002 away: six times narrower, 36 times 2,000 a side
    found = verdict(test(0.0, 0.008, 0.02), AnalysisConfig())
    assert found.n_needed == 72_000
    assert "n = 72,000 scenarios a side" in found.sentence
