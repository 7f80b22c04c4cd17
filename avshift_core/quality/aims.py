"""What a latent space has to reach, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avshift_core.quality.shifts import KEPT
from avshift_core.shift.gate import NO_SHIFT

if TYPE_CHECKING:
    from avshift_core.quality.report import Quality

R2_AIM, R2_OF = 0.9, ("ego_speed_mps", "cutin_speed_mps", "cutin_distance_m")
PRECISION_AIM, OVER_BASELINE_AIM = 0.8, 1.3
RANK_AIM = 16.0


@dataclass(frozen=True)
class Aim:
    """One aim: `value` was reached, `least` was aimed at; note: what a reader has to know about it."""

    name: str
    value: float
    least: float
    met: bool
    note: str = ""


def judge(quality: Quality) -> tuple[Aim, ...]:
    """The aims whose part was measured."""
    return (*_probes(quality), *_retrieval(quality), *_rank(quality), *_shifts(quality))


def _at_least(name: str, value: float, least: float, note: str = "") -> Aim:
    return Aim(name, float(value), float(least), bool(value >= least), note)


def _probes(quality: Quality) -> list[Aim]:
    found = {probe.name: probe for probe in quality.probes}
    return [_at_least(f"R2 of {name}", found[name].score.value, R2_AIM,
                      "the encoder was taught it" if found[name].trained_on else "the encoder was not taught it")
            for name in R2_OF if name in found]


def _retrieval(quality: Quality) -> list[Aim]:
    if not quality.retrieval:
        return []
    own = quality.retrieval[0].precision.value
    taught = any(p.name == "category" and p.trained_on for p in quality.probes)
    aims = [_at_least("precision@10 by category", own, PRECISION_AIM,
                      "the encoder was taught the category" if taught else "the encoder was not taught the category")]
    if quality.baselines:
        best = max(quality.baselines, key=lambda r: r.precision.value)
        least = OVER_BASELINE_AIM * best.precision.value
        note = f"{OVER_BASELINE_AIM:g} x {best.space} ({best.precision.value:.3f})"
        if least > 1:
            note += f"; no latent space can reach it: at most {1 / best.precision.value:.2f} x is possible"
        aims.append(_at_least("precision@10 over the better baseline's", own, least, note))
    return aims


def _rank(quality: Quality) -> list[Aim]:
    rank = quality.rank
    note = "" if rank.tells else "whitened latents have full rank whatever they hold: this tells nothing"
    return [_at_least(f"effective rank of {rank.dimensions}", rank.effective, RANK_AIM, note)]


def _shifts(quality: Quality) -> list[Aim]:
    aims = []
    if quality.kept is not None:
        aims.append(_at_least("advantage kept of that on the true contexts", quality.kept.value, KEPT,
                              f"95 % interval {quality.kept.lo:.2f} to {quality.kept.hi:.2f}"))
    same = [s for s in quality.shifts if s.is_same]
    if same:
        quiet = sum(s.verdict_z == NO_SHIFT for s in same)
        aims.append(_at_least("no shift where there is none", quiet / len(same), 1.0,
                              f"{quiet} of {len(same)} pairs of weeks with the same traffic"))
    context = [s for s in quality.versions if s.view == "context"]
    if context:
        quiet = sum(s.verdict_z == NO_SHIFT for s in context)
        aims.append(_at_least("no shift between AV versions in the context view", quiet / len(context), 1.0,
                              context[0].name))
    return aims
