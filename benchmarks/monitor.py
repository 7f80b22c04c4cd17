"""How often the monitor cries wolf, and how soon it sees a change: `python benchmarks/monitor.py`.

Histories are drawn from the demo fleet's own law of contexts (harbor, two weeks of reference); what was drawn, the
situation and eight parameters, stands in for the latents. Watched are the traffic, scored by logistic regression, and
one metric.

1. `null`: 500 histories of 52 weeks of 40 drives without a change, by what makes scenarios alike: drives alone, or (60
   histories) drives, days and cars as in the demo. The share that ever alarms.
2. `change`: more cut-ins by large vehicles, as in the demo's W12 and at its size (100 drives of 25 scenarios a week),
   from the first week on or after 10 weeks; the weeks until the alarm.
3. With `--demo DIR` (an encoded demo fleet): the monitor itself on both areas, as the dashboard runs it.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from avshift_core.latent.history import History, make_history
from avshift_core.monitoring.commands import summary
from avshift_core.monitoring.watch import watch_steps
from avshift_core.parallel import in_order
from avshift_core.progress import finish
from avshift_core.scenario.simulate.fleet import AREAS, LORRIES, VEHICLES
from avshift_core.scenario.simulate.law import SHARE_OF, CellLaw, D, cell_law
from avshift_core.scenario.simulate.situations import SITUATION_NAMES
from avshift_core.shift.monitor import TRAFFIC, MonitorConfig, monitor_steps

SEED = 10_000  # everything was built on seeds below
REFERENCE = 2  # weeks
DEMO, SMALL = (100, 25), (40, 6)  # drives a week and scenarios a drive: of an area of the demo, and what is quick
EFFECT_SHARE = 0.1  # the demo's
EVENT = "event"
EVENT_RATE, LORRY_RATE = 0.08, 0.35  # of the metric, in most situations and in cut-ins by large vehicles


@dataclass(frozen=True)
class Plan:
    """A kind of history: `size` as above, `alike` the effects there are; a change, if any, begins in week `start`."""

    weeks: int
    size: tuple[int, int]
    alike: tuple[str, ...] = ("drive",)
    start: int | None = None
    unit: str = "drive"

    @property
    def drives(self) -> int:
        return self.size[0]

    @property
    def per_drive(self) -> int:
        return self.size[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--changes", type=int, default=100, help="histories with a change, of each kind")
    parser.add_argument("--only", choices=("null", "change"))
    parser.add_argument("--demo", metavar="DIR", help="an encoded demo fleet; only the monitor on it")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.demo:
        demo(arguments.demo)
        return
    if arguments.only != "change":
        null(arguments)
    if arguments.only != "null":
        change(arguments)


def null(arguments: argparse.Namespace) -> None:
    """Share of the histories without a change that ever alarm, with Clopper and Pearson's interval."""
    print(f"{'alike within':<20} {'ranked':<7} {'histories':>9} {'ever alarmed':>12} {'95 % interval':>15} "
          f"{TRAFFIC:>8} {'metric':>7} {'s':>6}")
    everything = ("drive", "vehicle", "day")
    plans = (Plan(52, SMALL), 1.0), (Plan(52, SMALL, everything), 0.12), (Plan(52, SMALL, everything, unit="day"), 0.12)
    for plan, share in plans:  # only the first is what the promise is about
        n, start = max(1, round(arguments.histories * share)), time.perf_counter()
        found = []
        for one in in_order(partial(alarms, plan), range(arguments.seed, arguments.seed + n), arguments.jobs):
            found.append(one)
            if len(found) % 50 == 0:  # so that a run that is stopped was not in vain
                print(f"{len(found)}: {sum(map(bool, found))} alarmed", file=sys.stderr, flush=True)
        any_ = sum(bool(one) for one in found)
        lo, hi = stats.binomtest(any_, n).proportion_ci(0.95)
        each = [sum(name in one for one in found) for name in (TRAFFIC, EVENT)]
        print(f"{', '.join(plan.alike):<20} {plan.unit:<7} {n:>9,} {any_ / n:>12.3f} {f'{lo:.3f} to {hi:.3f}':>15} "
              f"{each[0]:>8} {each[1]:>7} {time.perf_counter() - start:>6.0f}", flush=True)


def change(arguments: argparse.Namespace) -> None:
    """Weeks from the change to the alarm: 1 is the first changed week itself."""
    print(f"\n{'change after':<13} {'ranked':<7} {'histories':>9}  alarm in changed week 1, 2, 3, 4, later, never, "
          "before the change; the traffic's, then the metric's")
    for start, unit in ((0, "drive"), (10, "drive"), (0, "day"), (10, "day")):
        plan = Plan(start + 6, DEMO, ("drive", "vehicle", "day"), start, unit)
        seeds = range(arguments.seed, arguments.seed + arguments.changes)
        found = list(in_order(partial(alarms, plan), seeds, arguments.jobs))
        told = []
        for name in (TRAFFIC, EVENT):
            after = [one[name] - REFERENCE - start + 1 if name in one else None for one in found]
            told.append([*(after.count(k) for k in (1, 2, 3, 4)), sum(a is not None and a > 4 for a in after),
                         after.count(None), sum(a is not None and a < 1 for a in after)])
        print(f"{start:>2} weeks      {unit:<7} {len(found):>9,}  {told[0]}  {told[1]}", flush=True)


def demo(url: str) -> None:
    """The monitor on the demo corpus, with its encoder's latents."""
    for area in AREAS:
        start = time.perf_counter()
        watch = finish(watch_steps(url, "period=2026-W10|2026-W11", f"area={area}", ["discomfort", "hard_brake"]))
        print(f"{summary(watch)}\n({time.perf_counter() - start:.0f} s)\n", flush=True)


def alarms(plan: Plan, seed: int) -> dict[str, int]:
    """Streams of one history that alarm -> week of the first alarm."""
    monitor = finish(monitor_steps(make(plan, seed), MonitorConfig(classifier="logistic", unit=plan.unit)))
    return monitor.alarms


def make(plan: Plan, seed: int) -> History:
    """One history."""
    rng = np.random.default_rng(seed)
    weeks = REFERENCE + plan.weeks
    usual, changed = (cell_law((AREAS["harbor"], *more), effect_share=EFFECT_SHARE, seed=0)
                      for more in ((), (LORRIES,)))
    n = plan.drives * plan.per_drive
    cars = rng.normal(size=(VEHICLES, D))
    parts = [draw_week(usual if plan.start is None or k < REFERENCE + plan.start else changed, plan, cars, rng)
             for k in range(weeks)]
    z, lorry = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    week, drive = np.repeat(np.arange(weeks), n), np.repeat(np.arange(weeks * plan.drives), plan.per_drive)
    day = week * 7 + np.tile(np.repeat(np.arange(plan.drives) * 7 // plan.drives, plan.per_drive), weeks)
    rate = np.where(lorry, LORRY_RATE, EVENT_RATE) * np.exp(0.3 * z[:, 0])
    return make_history([f"{k:02d}" for k in range(weeks)], REFERENCE, week, drive if plan.unit == "drive" else day,
                        z=z, ell={EVENT: (rng.random(len(z)) < rate) * 1.0}, drive=drive)


def draw_week(law: CellLaw, plan: Plan, cars, rng) -> tuple[np.ndarray, np.ndarray]:
    """Latents (n, 8 + situations) of a week's scenarios, drive by drive, and which are cut-ins by large vehicles.

    As law.sample_drive, for all drives at once: route, hour, its own mix of situations, effects of drive, car and day.
    """
    share = {name: EFFECT_SHARE * part * (name in plan.alike) for name, part in SHARE_OF.items()}
    r, h = np.divmod(rng.choice(law.p_rh.size, plan.drives, p=law.p_rh.ravel()), law.p_rh.shape[1])
    mix = rng.gamma((1 / share["drive"] - 1) * law.pi[r, h])  # Dirichlet, after division by its sum
    steps = np.cumsum(mix, axis=1)
    steps /= steps[:, -1:]
    drive = np.repeat(np.arange(plan.drives), plan.per_drive)
    k = (rng.random(len(drive))[:, None] > steps[drive]).sum(axis=1)
    day = np.arange(plan.drives) * 7 // plan.drives
    effect = (np.sqrt(share["drive"]) * rng.normal(size=(plan.drives, D))
              + np.sqrt(share["vehicle"]) * cars[rng.integers(VEHICLES, size=plan.drives)]
              + np.sqrt(share["day"]) * rng.normal(size=(7, D))[day])
    own = np.sqrt(1 - sum(share.values())) * rng.normal(size=(len(drive), D))
    z = law.m[r[drive], h[drive], k] + effect[drive] + own
    kind = np.eye(len(SITUATION_NAMES))[k]
    return np.hstack([z, kind]), k == SITUATION_NAMES.index("cut_in_large")


if __name__ == "__main__":
    main()
