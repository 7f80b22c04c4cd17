import json

import numpy as np
import pytest

from avshift_core.__main__ import main
from avshift_core.config import EncoderConfig
from avshift_core.errors import AVShiftError
from avshift_core.progress import finish
from avshift_core.quality.ablation import SETTINGS, ablation_steps, describe
from avshift_core.scenario.simulate.demo import demo_steps
from avshift_core.scenario.simulate.fleet import FleetConfig

TINY = ["--d-model", "16", "--n-heads", "2", "--n-layers", "1", "--batch-size", "64", "--epochs", "1", "--valid-share",
        "0.2", "--jobs", "1"]
CONFIG = EncoderConfig(d_model=16, n_heads=2, n_layers=1, batch_size=64, epochs=1, valid_share=0.2)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("fleet") / "corpus")
    finish(demo_steps(url, FleetConfig(16 * 275, seed=3), jobs=1))
    return url


@pytest.fixture(scope="module")
def table(fleet, tmp_path_factory):
    """The command, its report, and the folder of its models."""
    out = tmp_path_factory.mktemp("ablation")
    assert main(["ablate", fleet, "--out", str(out / "models"), "--seeds", "2", "--most", "500", "--json",
                 str(out / "a.json"), *TINY]) == 0
    return json.loads((out / "a.json").read_text()), out / "models"


@pytest.mark.slow
def test_the_papers_table(table, fleet):
    found, models = table
    assert [s["setting"] for s in found["settings"]] == list(SETTINGS) == ["latent10", "latent64", "latent64 + KL",
                                                                          "latent128"]
    assert found["source"] == "period=2026-W11,area=harbor" and found["target"] == "period=2026-W12,area=harbor"
    assert "2026-W11" not in found["train"] and "2026-W12" not in found["train"]  # nobody is judged by what it saw
    assert len(found["rows"]) == 8 and len(list(models.iterdir())) == 8
    for setting in found["settings"]:
        own = [row for row in found["rows"] if row["setting"] == setting["setting"]]
        assert setting["acc"]["mean"] == pytest.approx(np.mean([row["acc"] for row in own]))
        assert setting["acc"]["std"] == pytest.approx(np.std([row["acc"] for row in own], ddof=1))
        assert (setting["lis_l1"] is None) == all(row["n_regions"] == 0 for row in own)
    base = [row for row in found["rows"] if row["setting"] == "latent64"]
    assert all(row["jaccard_base"] == (1.0 if row["n_regions"] else 0.0) for row in base)
    again = finish(ablation_steps(fleet, models, CONFIG, seeds=(0, 1), most=500, jobs=1))  # finished models are used
    assert [row.model for row in again.rows] == [row["model"] for row in found["rows"]]
    assert "Jaccard, seeds" in describe(again)


@pytest.mark.slow
def test_models_of_other_settings_are_not_mixed_in(table, fleet):
    with pytest.raises(AVShiftError, match="holds a model of other settings"):
        finish(ablation_steps(fleet, table[1], EncoderConfig(d_model=32, n_heads=2), seeds=(0, 1), most=500, jobs=1))


def test_cohorts_that_leave_nothing_to_train_on(fleet, tmp_path):
    steps = lambda **more: finish(ablation_steps(fleet, tmp_path / "m", CONFIG, **more))  # noqa: E731
    with pytest.raises(AVShiftError, match="must name periods and leave others"):
        steps(source="area=harbor", target="area=old_town")
    with pytest.raises(AVShiftError, match="at least one seed"):
        steps(seeds=())
