"""The paper's three cases on a line, run to the end, beside what the paper reports of them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError
from avshift_core.latent.benchmark import LINE_TARGETS, Truth, line_case
from avshift_core.latent.cohort import MIN_SCENARIOS
from avshift_core.progress import Progress, within
from avshift_core.shift.analyze import Analysis, analysis_steps
from avshift_core.shift.c2st import advantage, cross_fit
from avshift_core.shift.calibrate import HEADLINE
from avshift_core.shift.estimate import Estimate
from avshift_core.shift.gate import GLOBAL_SHIFT, LOCALIZE, NO_SHIFT

CASES = tuple(LINE_TARGETS)
EXPECTED = {"none": NO_SHIFT, "localized": LOCALIZE, "global": GLOBAL_SHIFT}
MOST = 100_000


@dataclass(frozen=True)
class PaperCase:
    """What the paper prints of one case; None where it prints nothing.

    Attributes:
        acc, p_c2st, p_ks, p_mmd, p_w1: tab:synthetic_twosample.
        naive, lis, target: the text below fig:syn_local_diff.
    """

    name: str
    acc: float
    p_c2st: float
    p_ks: float
    p_mmd: float
    p_w1: float
    naive: float | None = None
    lis: float | None = None
    target: float | None = None


PAPER = {
    "none": PaperCase("Accept H0", 0.499, 0.58, 0.916, 0.951, 0.869),
    "localized": PaperCase("Localized diff", 0.531, 0.012, 5.36e-36, 0.016, 0.016, 0.3466, 0.3915, 0.4097),
    "global": PaperCase("Too different", 0.649, 0.012, 0.0, 0.016, 0.016),
}


@dataclass(frozen=True, eq=False)
class LineRun:
    """One case: the analysis, the truth, and the accuracy of the paper's classifier (kNN on random halves)."""

    case: str
    truth: Truth
    analysis: Analysis
    acc_knn: float

    @property
    def right(self) -> bool:
        """Whether the verdict is the one that the case was made for."""
        return self.analysis.verdict.name == EXPECTED[self.case]

    @property
    def p_values(self) -> dict[str, float]:
        """Beside the paper's columns; KS in closed form, as there."""
        reference = {t.name: t.p_asymptotic if t.name == "ks" else t.p_value for t in self.analysis.reference}
        return {"p_c2st": self.analysis.global_test.p_value, "p_ks": reference["ks"], "p_mmd": reference["mmd"],
                "p_w1": reference["w1"]}

    def estimates(self, B: float) -> dict[str, Estimate | None]:
        """Naive, calibrated and the target's own rate at clip B."""
        found = self.analysis.calibrate(B).estimates()
        return {name: found[name] for name in ("naive", "lis_paper", "lis", HEADLINE, "target")}


@dataclass(frozen=True, eq=False)
class LineCases:
    """The cases in the paper's order, n scenarios a side."""

    n: int
    seed: int
    runs: tuple[LineRun, ...]

    def run(self, case: str) -> LineRun:
        return next(run for run in self.runs if run.case == case)

    def table(self, B: float) -> pd.DataFrame:
        """Two rows a case, the paper's and ours; empty where the paper prints nothing."""
        rows = []
        for run in self.runs:
            paper, test, found = PAPER[run.case], run.analysis.global_test, run.estimates(B)
            rows.append({"case": run.case, "source": "paper", "acc": paper.acc, "p_c2st": paper.p_c2st,
                         "p_ks": paper.p_ks, "p_mmd": paper.p_mmd, "p_w1": paper.p_w1, "naive": paper.naive,
                         "lis_paper": paper.lis, "target": paper.target})
            rows.append({"case": run.case, "source": "here", "verdict": run.analysis.verdict.name, "acc": test.acc,
                         "acc_knn": run.acc_knn, "acc_best": 0.5 + run.truth.gamma_star, "gamma_hat": test.gamma_hat,
                         "gamma_lcb": test.gamma_lcb, "gamma_ucb": test.gamma_ucb, "gamma_star": run.truth.gamma_star,
                         **run.p_values, **{name: None if e is None else e.mu for name, e in found.items()},
                         "truth": run.truth.mu_Q})
        return pd.DataFrame(rows)


def line_steps(
    n: int = 20_000, seed: int = 0, cases: Sequence[str] = CASES, config: Mapping | None = None
) -> Generator[Progress, None, LineCases]:
    """Draw and analyse the cases, one after the other.

    Args:
        n: scenarios a side, independent of each other.
        config: settings that differ from the defaults; the seed is that of the cases.
    """
    if not MIN_SCENARIOS <= n <= MOST:
        raise ConfigError(f"n is {n:,}; the line takes {MIN_SCENARIOS} to {MOST:,} scenarios a side.")
    settings, runs = AnalysisConfig(**{**(config or {}), "seed": seed}), []
    for i, case in enumerate(cases):
        yield Progress(f"Drawing the case '{case}'", i / len(cases))
        pair = line_case(case, n, seed)
        steps = analysis_steps(pair.P, pair.Q, settings)
        analysis = yield from within(steps, i / len(cases), (i + 0.95) / len(cases), f"Case '{case}': ")
        yield Progress(f"Case '{case}': the paper's own classifier", (i + 0.95) / len(cases))
        runs.append(LineRun(case, pair.truth, analysis, _knn_accuracy(analysis, seed)))
    return LineCases(n, seed, tuple(runs))


def _knn_accuracy(analysis: Analysis, seed: int) -> float:
    """Held-out accuracy of a kNN classifier on random halves, as the paper has it."""
    knn = AnalysisConfig.paper(classifier="knn", repeats=1, seed=seed)
    fit = cross_fit(analysis.space, analysis.sample, knn, repeats=1, folds=2, seed=seed)
    return advantage(fit, analysis.sample, knn)[0].acc
