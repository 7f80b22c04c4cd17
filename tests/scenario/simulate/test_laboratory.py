"""The engine on the fleet's true contexts: it has to say what was built in."""

import numpy as np
import pytest

from avshift_core.latent.cohort import make_cohort
from avshift_core.scenario.simulate.fleet import FleetConfig, blocks, draw
from avshift_core.scenario.simulate.situations import ROAD_NAMES, SITUATION_NAMES
from avshift_core.shift.analyze import analyze

CONFIG = FleetConfig(seed=10_002)


def cohort(area, period):
    """Contexts of one week and area as features: the parameters, and situation and road as indicators."""
    block = blocks(CONFIG)[CONFIG.cells.index((area, period))]
    contexts, ids = draw(CONFIG, block)
    situation, road = np.eye(len(SITUATION_NAMES))[contexts.situation], np.eye(len(ROAD_NAMES))[contexts.road]
    features = np.concatenate([contexts.z, 3 * situation, 1.5 * road], axis=1)
    return make_cohort(f"{period} {area}", features, drive_id=[item.drive_id for item in ids])


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target", "verdict"), [
    (("harbor", "2026-W10"), ("harbor", "2026-W11"), "no_shift"),
    (("harbor", "2026-W11"), ("harbor", "2026-W12"), "localize"),
    (("harbor", "2026-W13"), ("harbor", "2026-W14"), "localize"),
    (("harbor", "2026-W10"), ("old_town", "2026-W10"), "global_shift"),
])
def test_the_verdict_is_the_one_built_in(source, target, verdict):
    analysis = analyze(cohort(*source), cohort(*target), metrics=[], repeats=1)
    assert analysis.verdict.name == verdict
    if verdict == "localize":
        assert analysis.local.regions
