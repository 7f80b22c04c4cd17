"""Is B better than A, or did it meet easier traffic? Two AV versions on two cohorts, for every metric.

Version A was observed on cohort P, version B on cohort Q, in latents of the `context` view. The parts of their
difference are in version_split.py, the leakage probe in version_probe.py, power and the collection planner in power.py.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from avshift_core.errors import CohortError
from avshift_core.latent.cautions import VERSION, VERSIONS_DIFFER
from avshift_core.latent.cohort import Cohort
from avshift_core.progress import Progress, finish
from avshift_core.scenario.measure.metrics import METRICS
from avshift_core.scenario.schema import UNKNOWN
from avshift_core.shift.analyze import Analysis
from avshift_core.shift.power import PlanGroup, plan_groups
from avshift_core.shift.support import Support, common_support
from avshift_core.shift.trust import REFUSE
from avshift_core.shift.version_probe import LeakageProbe, probe_leakage
from avshift_core.shift.version_split import Split, VersionFit, make_fit, split_of
from avshift_core.shift.weighting import outcome_models

CONTEXT = "context"
BETTER, WORSE, NOISE, FEW, UNTRUSTED = "better", "worse", "inside noise", "too few events", "not to be trusted"
TURNS = "depends on the traffic"  # better in the traffic of one cohort, worse in that of the other
FEW_EVENTS = 5  # drives of each version with an event, below which an interval would be a guess


@dataclass(frozen=True, eq=False)
class VersionComparison:
    """Two versions on two cohorts.

    Attributes:
        version_A, version_B: what the cohorts call them; equal in an A/A comparison.
        probe: None when it was left out. groups: kinds of traffic, for the collection planner.
        independence_assumed: True without drive ids.
        cautions: what bears on the result, one sentence each.
    """

    version_A: str
    version_B: str
    view: str
    fit: VersionFit
    splits: Mapping[str, Split]
    probe: LeakageProbe | None
    groups: tuple[PlanGroup, ...]
    independence_assumed: bool
    cautions: tuple[str, ...]

    @property
    def same_version(self) -> bool:
        return self.version_A == self.version_B

    @property
    def trusted(self) -> bool:
        return self.probe is None or self.probe.status != REFUSE

    def verdict(self, metric: str, split: Split | None = None) -> str:
        """One of better, worse, depends on the traffic, inside noise, too few events, not to be trusted.

        Args:
            split: of a group; that of all scenarios when None.
        """
        return judge(split or self.splits[metric], self.trusted)


def higher_is_worse(metric: str) -> bool:
    """Whether more of a metric is bad; events are, unless they are the good side of a threshold.

    >>> [higher_is_worse(m) for m in ("hard_brake", "ttc_min_s", "ttc_min_s<1.5", "ttc_min_s>1.5", "anything")]
    [True, False, True, False, True]
    """
    name, sign, _ = re.fullmatch(r"([^<>]*)([<>]?)(.*)", metric).groups()
    known = METRICS.get(name.strip())
    worse = known is None or known.higher_is_worse
    return worse if sign != "<" else known is None or not worse


def judge(split: Split, trusted: bool = True) -> str:
    """The verdict on B by the intervals of the performance part.

    A version is called better or worse when it is so in P's traffic, in Q's and on the mean of both: whose traffic is
    the reference is a choice, and no verdict should hang on it.
    """
    if not trusted:
        return UNTRUSTED
    if min(split.events_P, split.events_Q) < FEW_EVENTS:
        return FEW
    if not split.decided:
        return TURNS if split.turns else NOISE
    return WORSE if (split.performance["mean"].mu > 0) == higher_is_worse(split.metric) else BETTER


def check_view(view: str | None) -> None:
    """Refuse latents that may hold what the AV itself did."""
    if view == CONTEXT:
        return
    what = "These latents are imported, and nobody knows whether they hold the AV's own reaction" if view is None else \
        f"The {view} view holds the AV's own reaction"
    raise CohortError(
        f"{what}. Scenarios that are matched on what the version itself caused have that part of its effect taken out. "
        "Compare versions by the context view (--view context; in the dashboard 'Compare by: Context only').")


def version_of(cohort: Cohort, side: str) -> str:
    """The one AV version of a cohort; mixed and unknown ones are refused."""
    if VERSION not in cohort.obs:
        raise CohortError(f"Cohort '{cohort.name}' has no column '{VERSION}', so nobody knows which version drove it. "
                          "Add the column, or compare cohorts of a corpus.")
    return one_version(cohort.obs[VERSION].astype(str).value_counts().to_dict(), side, cohort.name)


def one_version(counts: Mapping[str, int], side: str, name: str) -> str:
    """The only version among version -> scenarios.

    >>> one_version({"v4.1": 300}, "P", "W11")
    'v4.1'
    """
    listed = ", ".join(f"{version} ({n:,} scenarios)" for version, n in counts.items())
    if UNKNOWN in counts:
        raise CohortError(f"{side}, '{name}', has scenarios of an unknown AV version: {listed}. Name the "
                          "version when importing (--version), or choose one with av_version=...")
    if len(counts) > 1:
        raise CohortError(f"{side}, '{name}', mixes AV versions {listed}. Each cohort must be of one version: "
                          "choose it with av_version=...")
    return str(next(iter(counts)))


def _check_common(analysis: Analysis, support: Support) -> None:
    P, Q = analysis.P, analysis.Q
    if "scenario_id" in P.obs and "scenario_id" in Q.obs:
        shared = set(P.obs["scenario_id"]) & set(Q.obs["scenario_id"])
        if shared:
            raise CohortError(f"'{P.name}' and '{Q.name}' have {len(shared):,} scenarios in common (the first: "
                              f"'{min(shared)}'). One scenario cannot stand for both versions: narrow one cohort.")
    if not support.common.any():
        raise CohortError(f"'{P.name}' and '{Q.name}' have no traffic in common: in no part of the latent space do "
                          "both have enough scenarios and drives, so nothing can be said about the versions. Choose "
                          "cohorts of the same area, or longer periods.")


def version_steps(
    analysis: Analysis, view: str | None = CONTEXT, *, versions: tuple[str, str] | None = None, probe: bool = True,
    cautions: Sequence[str] = (),
) -> Generator[Progress, None, VersionComparison]:
    """Compare the version that drove P with the one that drove Q, for all metrics of an analysis.

    Args:
        view: what the latents show; anything but "context" is refused.
        versions: names of A and B where the cohorts do not say them.
        probe: whether to look for traces of the version in the latents (several trainings).
        cautions: what else bears on these cohorts, such as CorpusPair.cautions; those on versions go without saying.
    """
    check_view(view)
    P, Q, config = analysis.P, analysis.Q, analysis.config
    names = versions or tuple(version_of(cohort, side) for cohort, side in ((P, "P"), (Q, "Q")))
    if not analysis.metrics:
        raise CohortError("No metric of these cohorts can be compared: it is missing in one of them, or the same in "
                          "every scenario. Choose another metric.")
    yield Progress("Which traffic did both versions meet?", 0.02)
    support = common_support(analysis.space, analysis.sample, config)
    _check_common(analysis, support)
    yield Progress("What B would show, from its latents", 0.05)
    m_P, m_Q = outcome_models(Q, 1, analysis.space, analysis.sample, analysis.metrics, config)
    fit = make_fit(analysis, support, m_P, m_Q)
    yield Progress("Splitting the difference", 0.5)
    splits = {metric: split_of(analysis, fit, metric) for metric in analysis.metrics}
    found = None
    if probe:
        yield Progress("Can the version be read from the latents?", 0.55)
        found = probe_leakage(analysis.space, analysis.sample, support, config)
    yield Progress("Kinds of traffic", 0.95)
    groups = plan_groups(analysis, support)
    yield Progress("Done", 1.0)
    return VersionComparison(names[0], names[1], CONTEXT, fit, splits, found, groups, not P.has_drives,
                             (*(c for c in cautions if not c.startswith(VERSIONS_DIFFER)),
                              *_cautions(analysis, support, names)))


def compare_versions(analysis: Analysis, view: str | None = CONTEXT, **options) -> VersionComparison:
    """`version_steps` in one go."""
    return finish(version_steps(analysis, view, **options))


def _cautions(analysis: Analysis, support: Support, names) -> Iterator[str]:
    share_P, share_Q = support.shares
    if not analysis.P.has_drives:
        yield "No drive ids: independence is assumed, and intervals are too tight if scenarios of a drive are alike."
    if names[0] == names[1]:
        yield (f"Both cohorts were driven by {names[0]}: this is an A/A comparison, whose performance part should be "
               "zero. What it shows is how far such a comparison can be trusted.")
    if min(share_P, share_Q) < 0.8:
        yield (f"Only {share_P:.0%} of P and {share_Q:.0%} of Q lie in traffic that both versions met; performance "
               "speaks for that part alone.")
    if analysis.global_test.shared_drives:
        yield (f"{analysis.global_test.shared_drives:,} drives are in both cohorts; intervals treat their two parts as "
               "independent.")
