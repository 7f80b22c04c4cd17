"""The report as text for people who have to decide whether to trust a latent space."""

from __future__ import annotations

import re

from avshift_core.quality.aims import not_measured
from avshift_core.quality.drivewise import Estimate
from avshift_core.quality.report import Quality
from avshift_core.scenario.measure.attributes import ATTRIBUTES

TITLES = {"no_shift": "no shift", "localize": "moderate", "global_shift": "global"}
LABELS = {"av_version": "AV version", "area": "area"}


def describe(quality: Quality) -> str:
    """Aims first, then what they rest on, then what could not be measured."""
    parts = (_head, _aims, _probes, _retrieval, _rank, _clusters, _leakage, _shifts, _stability, _notes)
    return "\n".join(line for part in parts for line in part(quality))


def _head(q: Quality) -> list[str]:
    lines = [f"Model {q.model}, view {q.view}, on {q.corpus}: {q.n:,} of {q.n_corpus:,} scenarios, {q.n_drives:,} "
             "drives. In brackets: 95 % intervals from resampled drives; of advantages the engine's bounds (90 %), of "
             "leaks widened by its cross-fit factor."]
    if q.trained_share > 0:
        lines.append(f"Caution: the encoder was trained on {q.trained_share:.0%} of this corpus. Nothing below is "
                     "held out for these scenarios; measure it on another corpus.")
    return lines


def _aims(q: Quality) -> list[str]:
    met = sum(aim.met for aim in q.aims)
    lines = ["", f"Aims: {met} of {len(q.aims)} met"]
    for aim in q.aims:
        note = f"  ({aim.note})" if aim.note else ""
        lines.append(f"  {'met    ' if aim.met else 'NOT MET'} {aim.name:<50} {aim.value:7.3f}  aimed at "
                     f"{aim.least:.3g}{note}")
    lines += [f"  not measured here: {name} (no truth, no such scenarios, or too few drives)"
              for name in not_measured(q.aims)]
    return lines


def _probes(q: Quality) -> list[str]:
    if not q.probes:
        return []
    lines = ["", "What a straight line reads from z, on drives it was not fitted on (R2 of numbers, AUC of classes)"]
    for taught, title in ((True, "the encoder was taught these:"), (False, "the encoder was not taught these:")):
        chosen = [p for p in q.probes if p.trained_on == taught]
        lines += [f"  {title}"] if chosen else []
        lines += [f"    {_text(p.name):<52} {p.kind.upper():<3} {p.score}  n {p.n:,}" for p in chosen]
    return lines


def _text(name: str) -> str:
    return f"{ATTRIBUTES[name].text} ({name})" if name in ATTRIBUTES else name


def _retrieval(q: Quality) -> list[str]:
    if not q.retrieval:
        return []
    own = q.retrieval[0]
    lines = ["", f"Neighbours: share of the {own.k} nearest scenarios of other drives that have the same category "
                 f"(by chance {own.chance:.3f})"]
    lines += [f"  {r.space:<28} {r.precision}  mean of categories {r.macro:.3f}" for r in q.retrieval]
    if q.whitened is not None:
        lines.append(f"  {q.whitened.space:<28} {q.whitened.precision}  mean of categories {q.whitened.macro:.3f}")
    head = "".join(f"{r.space.split()[0]:>12}" for r in q.retrieval)
    lines.append(f"  {'category':<28}{head}{'chance':>12}{'n':>8}")
    for i, c in enumerate(own.categories):
        row = "".join(f"{r.categories[i].precision.value:12.3f}" for r in q.retrieval)
        lines.append(f"  {c.category:<28}{row}{c.chance:12.3f}{c.n:8,}")
    lines.append("  Difference of attributes to the neighbours, over that of random pairs (0 same, 1 chance):")
    for name in own.attributes:
        row = "".join(f"{r.attributes.get(name, float('nan')):12.3f}" for r in q.retrieval)
        lines.append(f"  {name:<28}{row}")
    return lines


def _rank(q: Quality) -> list[str]:
    r = q.rank
    return ["", f"Directions in use: effective rank {r.effective:.1f} of {r.dimensions}, participation ratio "
                f"{r.participation:.1f}, {r.for_90} directions hold 90 % of the variance "
                f"(of standardised z; the model's output is {r.output})."
            + (f" {r.constant} dimensions are constant." if r.constant else "")]


def _clusters(q: Quality) -> list[str]:
    c = q.clusters
    if c is None:
        return []
    points = lambda s: (f"{100 * s.raw:.2f} points as counted, {100 * s.shrunk:.2f} after shrinkage, "  # noqa: E731
                        f"{100 * s.chance:.2f} by chance (p {s.p_value:.3g})")
    lines = ["", f"{c.n_clusters} clusters, event '{c.event}' ({c.mean_rate:.1%} of the scenarios): standard deviation "
                 "over the clusters of",
             f"  rates:  {points(c.rate_spread)}", f"  shares: {points(c.share_spread)}",
             f"  Agreement with '{c.second_event}', measured on the other half of the drives (scenario by scenario the "
             f"two events correlate by {c.phi:.2f}):"]
    for a in (c.rates, c.shares):
        if a is not None:
            lines.append(f"  {a.of + ':':<7} Pearson {a.pearson_mean:.2f}, Spearman {a.spearman_mean:.2f} (mean over "
                         f"splits of the drives); by chance {a.chance:.2f}; '{c.event}' with itself "
                         f"{a.same_metric:.2f}")
    events = re.split(r"[<>]", c.event)[0], re.split(r"[<>]", c.second_event)[0]
    taught = [p.name for p in q.probes if p.trained_on and p.name in events]
    if taught:
        lines.append(f"  The encoder was taught {', '.join(taught)}: that clusters follow it is what training asked "
                     "for.")
    return lines


def _leakage(q: Quality) -> list[str]:
    if not q.leaks and q.drive_leak is None:
        return []
    exact = (q.leaks[0] if q.leaks else q.drive_leak).exact
    of = "the true contexts" if exact else "readable attributes of the start (the excess may be context they lack)"
    lines = ["", f"Leakage, against {of}: AUC on held-out drives, 0.5 is a coin"]
    lines += [f"  {LABELS.get(k.label, k.label):<11} context {k.context.value:.3f}, z {k.z.value:.3f}, both "
              f"{k.both.value:.3f}; z adds {_signed(k.excess)}" for k in q.leaks]
    if q.drive_leak is not None:
        d = q.drive_leak
        lines.append(f"  drive       {d.z.value:.2f} times as many neighbours from the own drive as by chance "
                     f"[{d.z.lo:.2f}, {d.z.hi:.2f}]; in the context itself {d.context.value:.2f} "
                     f"[{d.context.lo:.2f}, {d.context.hi:.2f}]")
    if q.view == "full" and any(k.label == "av_version" for k in q.leaks):
        lines.append("  The full view shows the AV's own reaction, so that it tells versions apart is expected; the "
                     "context view must not.")
    for s in q.versions:
        lines.append(f"  {s.name}, same traffic, view {s.view}: {TITLES[s.verdict_z]} (advantage {s.gamma_z}"
                     + (f"; contexts {s.gamma_contexts}" if s.gamma_contexts else "") + ")")
    return lines


def _signed(e: Estimate) -> str:
    return f"{e.value:+.3f} [{e.lo:+.3f}, {e.hi:+.3f}]"


def _shifts(q: Quality) -> list[str]:
    if not q.shifts:
        return []
    lines = ["", "Shifts: advantage of a classifier on z, on the true contexts, and the best there can be",
             f"  {'pair':<38}{'on z':>24}  {'verdict':<9}{'contexts':>9} {'verdict':<9}{'best':>6}{'kept':>7}"]
    for s in q.shifts:
        known = s.gamma_contexts is not None
        reference = f"{s.gamma_contexts.value:9.3f} {TITLES[s.verdict_contexts]:<9}{s.gamma_star:6.3f}" if known else ""
        ratio = "" if s.ratio is None else f"{s.ratio:7.0%}"
        lines.append(f"  {s.name:<38}{s.gamma_z!s:>24}  {TITLES[s.verdict_z]:<9}{reference}{ratio}")
    lines.append("  kept: where the contexts show a true shift of 0.01 or more.")
    if q.kept is not None:
        k = q.kept
        lines.append(f"  Over all pairs with a true shift, z keeps {k.value:.0%} [{k.lo:.0%}, {k.hi:.0%}] of the "
                     "advantage on the contexts.")
    return lines


def _stability(q: Quality) -> list[str]:
    s = q.stability
    if s is None:
        return []
    spread = lambda b: "" if b.std != b.std else f" +- {b.std:.3f}"  # noqa: E731 - one pair has no spread
    row = lambda text, b: [f"  {text:<44} {b.mean:.3f}{spread(b)}  (chance {b.chance:.3f})"] if b else []  # noqa: E731
    lines = ["", f"Stability over {len(s.models)} trainings (mean and standard deviation over pairs of models)",
             *row("common neighbours of 50", s.overlap), *row("adjusted Rand index of clusters", s.rand)]
    if s.pair is not None:
        lines += [*row("Jaccard index of mismatch regions", s.regions), *row("  more of the target", s.target_heavy),
                  *row("  more of the source", s.source_heavy),
                  *([] if s.regions else ["  No model found a mismatch region."]),
                  f"  regions of {s.pair}; verdicts {', '.join(TITLES[v] for v in s.verdicts)}; share inside "
                  + ", ".join(f"{share:.1%}" for share in s.region_share)]
    return lines


def _notes(q: Quality) -> list[str]:
    return ["", "Left out:", *(f"  {note}" for note in q.notes)] if q.notes else []
