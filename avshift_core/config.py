"""Every default with its reason and its source. CLI flags, widgets and the report are made from these fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from avshift_core.errors import ConfigError

VIEWS = ("full", "context")  # of a scenario: all of it, or only what the AV did not cause
CLASSIFIERS = ("auto", "mlp", "cells", "logistic", "boosting", "forest", "svm", "knn")


def _setting(default: Any, text: str, *, low=None, high=None, choices=None) -> Any:
    return field(default=default, metadata={"help": text, "low": low, "high": high, "choices": choices})


def _check_settings(config: Any) -> None:
    """Refuse the first setting that is outside of its range."""
    for setting in fields(config):
        value, meta = getattr(config, setting.name), setting.metadata
        if meta["choices"] and value not in meta["choices"]:
            raise ConfigError(f"{setting.name} is {value!r}; choose one of {', '.join(map(str, meta['choices']))}.")
        if meta["low"] is None and meta["high"] is None:
            continue
        low = float("-inf") if meta["low"] is None else meta["low"]
        high = float("inf") if meta["high"] is None else meta["high"]
        if not low <= value <= high:
            need = f"at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
            raise ConfigError(f"{setting.name} is {value:g}; it must be {need}. {meta['help']}")


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
        _check_settings(self)
        if self.gamma_small >= self.gamma_large:
            raise ConfigError(
                f"gamma_small is {self.gamma_small:g} and gamma_large {self.gamma_large:g}; "
                "the band needs gamma_small below gamma_large."
            )

    @classmethod
    def paper(cls, **changes: Any) -> AnalysisConfig:
        """The paper's procedure: random split in two halves, Wilson bound."""
        return replace(cls(classifier="mlp", split_by="row", bound="wilson", folds=2), **changes)


@dataclass(frozen=True)
class EncoderConfig:
    """All settings of one encoder: its shape and its training, with the seed (paper: sec:ae_impl, sec:real_world_exp).

    The paper trains 5,000 epochs at a learning rate of 1e-4, two weeks on an H100. The defaults here reach the figures
    of README in under an hour on two cores; `--epochs` and `--learning-rate` go on from there.
    """

    seed: int = _setting(0, "Seed of the first weights, the order of the scenarios and every other choice.", low=0)

    # Shape
    latent_dim: int = _setting(64, "Numbers of a latent z (paper; 10 and 128 in its ablation).", low=2, high=1024)
    d_model: int = _setting(128, "Width of the network (paper).", low=16, high=1024)
    n_layers: int = _setting(5, "Layers of the temporal transformer (paper).", low=1, high=24)
    n_heads: int = _setting(8, "Heads of every attention (paper).", low=1, high=16)
    context_s: float = _setting(
        2.0, "Seconds of the others that the context view shows, before the ego's reaction can have changed them.",
        low=0, high=15,
    )

    # Loss
    attr_weight: float = _setting(3.0, "lambda_attr: weight of the attributes against the reconstruction.", low=0)
    category_weight: float = _setting(
        1.0, "Weight of the category among the attributes; with 0 it is not taught.", low=0
    )
    kl_weight: float = _setting(0.0, "Weight of a KL term that pulls z to N(0, 1); 0 is none (paper: ablation).", low=0)
    spread_weight: float = _setting(
        0.1, "Weight of a term that keeps the numbers of z uncorrelated; without it a few directions hold nearly all "
        "of the variance.", low=0
    )
    context_share: float = _setting(
        0.4, "Share of the training batches that are cut to the context or to a random first part.", low=0, high=0.9
    )

    no_road_share: float = _setting(
        0.1, "Share of the scenarios that training shows without their road, so that logs without a map make sense.",
        low=0, high=0.9,
    )

    # Training
    epochs: int = _setting(24, "Passes through the training drives.", low=1, high=100_000)
    batch_size: int = _setting(128, "Scenarios of one step (paper: 256; half as many learn more in an hour).", low=2,
                               high=65_536)
    learning_rate: float = _setting(1e-3, "Peak of the schedule: a short rise, then a cosine down to zero.", low=1e-7,
                                    high=1)
    clip_norm: float = _setting(1.0, "Largest norm of a gradient; longer ones are shortened.", low=1e-6)
    patience: int = _setting(6, "Epochs without a better loss on the held-out drives before training stops.", low=1)
    valid_share: float = _setting(0.08, "Share of the drives that are held out of training.", low=0.01, high=0.5)
    output: str = _setting(
        "standardised", "Scale of z: each number on its own, or all of them decorrelated too.",
        choices=("standardised", "whitened"),
    )

    def __post_init__(self) -> None:
        _check_settings(self)
        if self.d_model % self.n_heads:
            raise ConfigError(f"d_model is {self.d_model} and n_heads {self.n_heads}; the width must be a multiple of "
                              "the heads.")
