"""Jobs that have no home elsewhere: work of the command line, with plain values in and a small result out."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from avshift_core.progress import Progress, within

DEMO_SCENARIOS = 40_000
DEMO_SHARE = 0.55  # of the time that simulating takes, the rest is encoding


@dataclass(frozen=True)
class Done:
    """What was done, in one sentence."""

    sentence: str


def demo_corpus_steps(url: str, scenarios: int = DEMO_SCENARIOS, seed: int = 0) -> Generator[Progress, None, Done]:
    """Simulate the demo fleet and encode it; what is there already is left alone, so a stopped one goes on.

    What the other AV versions would have done is simulated when the truth is asked for: nobody waits for it here.
    """
    from avshift_core.encoder.encode import encode_steps
    from avshift_core.encoder.weights import load_model
    from avshift_core.scenario.simulate.demo import demo_steps
    from avshift_core.scenario.simulate.fleet import FleetConfig

    simulating = demo_steps(url, FleetConfig(scenarios, seed), every_version=False)
    yield from within(simulating, 0.0, DEMO_SHARE, "Simulating: ")
    yield from within(encode_steps(url, load_model()), DEMO_SHARE, 1.0, "Encoding: ")
    return Done(f"The demo corpus is ready in {url}.")
