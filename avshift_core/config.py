"""Every default with its reason and its source. CLI flags, widgets and the report are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from avshift_core.errors import ConfigError

CLASSIFIERS = ("auto", "mlp", "cells", "logistic", "boosting", "forest", "svm", "knn")


def _setting(default: Any, text: str, *, low=None, high=None, choices=None) -> Any:
    return field(default=default, metadata={"help": text, "low": low, "high": high, "choices": choices})


@dataclass(frozen=True)
class AnalysisConfig:
    """All settings of one analysis, with the seed. `AnalysisConfig.paper()` is the paper's procedure."""

    seed: int = _setting(0, "Seed of every random choice.", low=0)

    # Stage I (paper: sec:two_stage_tst, app:bandpass_thresholds, appendix:classifier_details)
    classifier: str = _setting(
        "auto", "Classifier of the global test; mlp is the paper's 128-64, auto takes it or the cell tree, whichever "
        "is better on held-out drives.", choices=CLASSIFIERS
    )
    split_by: str = _setting(
        "drive", "Unit that train/test splits keep whole; row is the paper's random split.", choices=("drive", "row")
    )
    bound: str = _setting(
        "drive", "Confidence bound behind the verdict; wilson is the paper's.", choices=("drive", "wilson", "hoeffding")
    )
    folds: int = _setting(
        5, "Parts of the cross-fit; every scenario is scored by a model that did not see it.", low=2, high=20
    )
    repeats: int = _setting(3, "Repeated cross-fits, for mean and spread of the accuracy.", low=1, high=100)
    alpha: float = _setting(0.05, "Error level of the bounds on the advantage (one-sided).", low=1e-6, high=0.5)
    gamma_small: float = _setting(0.01, "Advantage below which no shift is claimed (paper).", low=0, high=0.5)
    gamma_large: float = _setting(0.10, "Advantage above which the shift is called global (paper).", low=0, high=0.5)
    n_perm: int = _setting(999, "Permutations of the held-out statistics.", low=19, high=100_000)

    # Stage II (paper: app:local_shift_detection)
    n_cells: int = _setting(
        256, "Most cells of the label-free partition; fewer when one would hold under 60 scenarios.", low=4, high=2048
    )
    alpha_loc: float = _setting(0.05, "False discovery rate of the local test.", low=1e-6, high=0.5)
    choose_share: float = _setting(
        0.6, "Share of the drives that choose the regions; the others confirm and measure them.", low=0.2, high=0.8
    )
    min_ratio: float = _setting(
        1.1, "Masses of P and Q that differ by less than this factor, either way, are no region.", low=1, high=100
    )
    support_eps: float = _setting(
        0.02, "Least share of each cohort in a neighbourhood that may be weighted (paper: 0 to 0.05).", low=0, high=0.05
    )
    force_localize: bool = _setting(False, "Look for regions even when the verdict is not localize.")
    n_neighbors: int = _setting(100, "Neighbours k of the paper's local test.", low=5, high=5000)
    posterior_eps: float = _setting(
        1e-3, "epsilon_h: keeps the log-odds of the local score finite.", low=1e-9, high=0.1
    )
    nms_lambda: float = _setting(
        1.0, "Suppression radius of the paper's local test, in units of r_i.", low=0.01, high=100
    )

    # Calibration (paper: sec:lis)
    B: float = _setting(10.0, "Clip of the weights.", low=1e-6)
    M: float = _setting(1.0, "Upper end of the metrics: every metric lies in [0, M].", low=1e-12)
    level: float = _setting(0.95, "Level of the intervals of the metrics.", low=0.5, high=0.9999)

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, meta = getattr(self, setting.name), setting.metadata
            if meta["choices"] and value not in meta["choices"]:
                raise ConfigError(f"{setting.name} is {value!r}; choose one of {', '.join(meta['choices'])}.")
            if meta["low"] is None and meta["high"] is None:
                continue
            low = float("-inf") if meta["low"] is None else meta["low"]
            high = float("inf") if meta["high"] is None else meta["high"]
            if not low <= value <= high:
                need = f"at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
                raise ConfigError(f"{setting.name} is {value:g}; it must be {need}. {meta['help']}")
        if self.gamma_small >= self.gamma_large:
            raise ConfigError(
                f"gamma_small is {self.gamma_small:g} and gamma_large {self.gamma_large:g}; "
                "the band needs gamma_small below gamma_large."
            )

    @classmethod
    def paper(cls, **changes: Any) -> AnalysisConfig:
        """The paper's procedure: random split in two halves, Wilson bound."""
        return replace(cls(classifier="mlp", split_by="row", bound="wilson", folds=2), **changes)
