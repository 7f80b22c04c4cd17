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
DETECTABLE = 0.06  # advantage; a pair that could not have shown one of this size says nothing by showing none
WIDEST = 0.5  # interval of the advantage kept; a wider one says neither yes nor no
NAMES = (*(f"R2 of {name}" for name in R2_OF), "precision@10 by category", "precision@10 over the better baseline's",
         "effective rank", "advantage kept", "no shift where there is none",
         "no shift between AV versions in the context view")


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
    about = f"the encoder was {'' if taught else 'not '}taught the category"
    aims = [_at_least("precision@10 by category", own, PRECISION_AIM, about)]
    if quality.baselines:
        best = max(quality.baselines, key=lambda r: r.precision.value)
        least = OVER_BASELINE_AIM * best.precision.value
        note = f"{OVER_BASELINE_AIM:g} x {best.space} ({best.precision.value:.3f})"
        if least > 1:
            note += f"; no latent space can reach it: at most {1 / best.precision.value:.2f} x is possible"
        note += f"; {about}, the baselines were not, and they see the whole scenario"
        aims.append(_at_least("precision@10 over the better baseline's", own, least, note))
    return aims


def _rank(quality: Quality) -> list[Aim]:
    rank = quality.rank
    note = ("of standardised z; training keeps directions apart (spread_weight)" if rank.tells else
            "whitened latents have full rank whatever they hold: this tells nothing")
    return [_at_least(f"effective rank of {rank.dimensions}", rank.effective, RANK_AIM, note)]


def _shifts(quality: Quality) -> list[Aim]:
    aims = []
    if quality.kept is not None and quality.kept.hi - quality.kept.lo <= WIDEST:
        aims.append(_at_least("advantage kept of that on the true contexts", quality.kept.value, KEPT,
                              f"95 % interval {quality.kept.lo:.2f} to {quality.kept.hi:.2f}"))
    same = [s for s in quality.shifts if s.is_same]
    context = [s for s in quality.versions if s.view == "context"]
    return aims + _quiet("no shift where there is none", same) + _quiet(
        "no shift between AV versions in the context view", context)


def _quiet(name: str, shifts) -> list[Aim]:
    """Share of the pairs without a shift in which none was found; only those count that could have shown one."""
    able = [s for s in shifts if s.detectable <= DETECTABLE]
    if not able:
        return []
    quiet = sum(s.verdict_z == NO_SHIFT for s in able)
    return [_at_least(name, quiet / len(able), 1.0, f"{quiet} of {len(able)}: {', '.join(s.name for s in able)}; an "
                      f"advantage of {max(s.detectable for s in able):.3f} would have been seen in four of five")]


def not_measured(aims: tuple[Aim, ...]) -> list[str]:
    """Names of the aims that this corpus could not tell about."""
    return [name for name in NAMES if not any(aim.name.startswith(name) for aim in aims)]
