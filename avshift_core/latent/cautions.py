"""What is no error in a pair of cohorts, and yet bears on how a shift between them may be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from avshift_core.latent.cohort import Cohort
from avshift_core.scenario.schema import UNKNOWN

VERSION, LOW_RATE = "av_version", "low_rate"
VERSIONS_DIFFER = "AV versions differ"  # how cautions about them begin
READ_VERSIONS = {  # view of the latents -> what two AV versions mean for a shift of them
    "full": "The full view holds the AV's own reaction, so the shift may be the policy's: choose one version with "
            "av_version=..., or --view context.",
    "context": "The context view leaves the AV's own reaction out, so a shift is mostly the traffic's; what "
               "calibration leaves of a metric's difference may be the version's.",
    None: "Imported latents may hold the AV's own reaction, so the shift may be the policy's: choose one version with "
          "av_version=...",
}


def about_versions(P: Cohort, Q: Cohort, view: str | None) -> Iterator[str]:
    """P and Q should share one AV version, or the shift may be the policy's."""
    counts = [cohort.obs[VERSION].value_counts().sort_index() for cohort in (P, Q)]
    unknown = sum(int(count.get(UNKNOWN, 0)) for count in counts)
    if unknown:
        yield (f"The AV version of {unknown:,} of {P.n + Q.n:,} scenarios is unknown, so whether a shift is the "
               "policy's cannot be told. Name it with --version when importing.")
    if len({version for count in counts for version in count.index if version != UNKNOWN}) > 1:
        listed = (f"'{cohort.name}' has {', '.join(f'{version} ({n:,})' for version, n in count.items())}"
                  for cohort, count in zip((P, Q), counts, strict=True))
        yield f"{VERSIONS_DIFFER}: {'; '.join(listed)}. {READ_VERSIONS[view]}"


def about_training(P: Cohort, Q: Cohort, states: Sequence[Collection[str]], card: Mapping) -> Iterator[str]:
    """An encoder fits what it was trained on better than what it never saw.

    Args:
        states: SHA-256 of the states files that each cohort lies in.
        card: of the model behind the latents; {} where it is not at hand.
    """
    trained_on = set(card.get("data", {}).get("states", ()))
    names = [f"'{cohort.name}'" for cohort, files in zip((P, Q), states, strict=True) if trained_on & set(files)]
    if names:
        yield (f"Model {card['model']} was trained on scenarios of {' and '.join(names)}; latents of scenarios that a "
               "model has seen can differ from others without any shift. Use a model trained on other drives.")


def about_rate(P: Cohort, Q: Cohort, metrics: Sequence[str]) -> Iterator[str]:
    """Metrics that need 5 Hz miss short events below; `metrics` are those of the comparison that do."""
    shares = [float(cohort.obs[LOW_RATE].mean()) if metrics else 0.0 for cohort in (P, Q)]
    if any(shares):
        yield (f"{', '.join(metrics)} miss short events where states are below 5 Hz: in {shares[0]:.0%} of "
               f"'{P.name}' and {shares[1]:.0%} of '{Q.name}'. Compare cohorts of the same rate.")
