"""The command `monitor`."""

from __future__ import annotations

import argparse
from math import exp
from pathlib import Path

from avshift_core.config import CLASSIFIERS, VIEWS
from avshift_core.errors import ConfigError
from avshift_core.shift.monitor import ASSUMED


def add_monitor(commands) -> None:
    """`monitor CORPUS --reference period=...`."""
    parser = commands.add_parser("monitor", help="has anything changed since a reference period, week by week")
    parser.add_argument("corpus", metavar="DIR", help="folder or URL of a corpus; encoded, to watch the traffic")
    parser.add_argument("--reference", required=True, metavar="QUERY", help="periods that later weeks are held "
                        "against, such as 'period=2026-W10|2026-W11'")
    parser.add_argument("--where", default="", metavar="QUERY", help="which scenarios of every week, such as "
                        "area=harbor; with periods, only these weeks")
    parser.add_argument("--metric", action="append", default=[], help="metric to watch, or an exceedance such as "
                        "'ttc_min_s<1.5'; may be repeated")
    parser.add_argument("--no-traffic", action="store_true", help="watch metrics only, without latents")
    parser.add_argument("--alpha", type=float, default=0.05, help="largest chance of ever raising an alarm without a "
                        "change, over everything that is watched (default: 0.05)")
    parser.add_argument("--view", choices=VIEWS, help="latents of the whole scenario, or only of what the AV did not "
                        "cause (default: context where there are such latents)")
    parser.add_argument("--model", metavar="ID_OR_FOLDER", help="as in compare")
    parser.add_argument("--unit", choices=("drive", "day"), default="drive", help="what is ranked as a whole; day "
                        "where the days of a week differ more than their drives explain (default: drive)")
    parser.add_argument("--classifier", choices=CLASSIFIERS, default="auto", help="as in compare (default: auto)")
    parser.add_argument("--seed", type=int, default=0, help="of every random choice (default: 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it here, too")
    parser.set_defaults(run=run_monitor)


def run_monitor(arguments: argparse.Namespace) -> None:
    from avshift_core.files import check_writable, write_json
    from avshift_core.monitoring.watch import default_view, watch_steps
    from avshift_core.progress import finish_with_bar
    from avshift_core.scenario.store.corpus import open_corpus

    if arguments.no_traffic and not arguments.metric:
        raise ConfigError("There is nothing to watch: leave out --no-traffic, or name a metric with --metric.")
    if arguments.json is not None:
        check_writable(arguments.json)
    view = arguments.view or default_view(open_corpus(arguments.corpus), arguments.model)
    watch = finish_with_bar(watch_steps(
        arguments.corpus, arguments.reference, arguments.where, arguments.metric, view, arguments.model,
        not arguments.no_traffic, arguments.alpha, arguments.seed, arguments.classifier, arguments.unit,
    ))
    if arguments.json is not None:
        write_json(watch.report(), arguments.json)
    print(summary(watch))


def summary(watch) -> str:
    """What a reader of the terminal needs: the weeks, what bears on them, the conclusion, and where to look next."""
    m = watch.monitor
    lines = [f"{watch.corpus_url}: {watch.where or 'all scenarios'}, reference {watch.reference}",
             *_table(watch), "",
             *(f"caution: {sentence}" for sentence in watch.cautions),
             f"Alarm at a wealth of {m.threshold:g}: without a change it is ever reached with a chance of at most "
             f"{m.config.alpha:g}, over all columns and however often one looks, if {ASSUMED[m.config.unit]}.",
             watch.sentence]
    if watch.cohorts is not None:
        P, Q = watch.cohorts
        lines += [f"Reference against {m.weeks[m.first_alarm].period}: {watch.verdict}"]
        lines += [f"  {place.name}: {_share(place.p)} of the reference, {_share(place.q)} of the week"
                  for place in watch.places]
        view = f" --view {watch.view}" if watch.view else ""
        lines += [f'More: compare --corpus {watch.corpus_url} --source "{P}" --target "{Q}"{view}']
    return "\n".join(lines)


def _share(e) -> str:
    return f"{e.mu:.1%} ({e.lo:.1%} to {e.hi:.1%})"


def _table(watch) -> list[str]:
    m = watch.monitor
    heads = [f"{watch.phrases[s.name]}" for s in m.streams]
    widths = [max(len(head), 18 if s.rates else 12) for head, s in zip(heads, m.streams, strict=True)]
    lines = [f"{'week':<10} {'drives':>7} {'scenarios':>9}  " + "  ".join(
        f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for k, week in enumerate(m.weeks):
        cells = []
        for s, width in zip(m.streams, widths, strict=True):
            rate = f"{s.rates[k].mu:.4g}  " if s.rates else ""
            wealth = "reference" if week.reference else _wealth(exp(s.at_end_of(k)))
            alarm = "!" if m.alarms.get(s.name) == k else " "
            cells.append(f"{rate + wealth + alarm:>{width}}")
        lines.append(f"{week.period:<10} {week.drives:>7,} {week.scenarios:>9,}  " + "  ".join(cells))
    return lines


def _wealth(value: float) -> str:
    """
    >>> _wealth(0.0123), _wealth(3.14159), _wealth(1234567.0)
    ('0.012', '3.1', '1.2e+06')
    """
    return f"{value:.2g}" if value < 1000 else f"{value:.1e}"
