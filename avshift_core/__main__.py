"""The command line: make or import a corpus, compare two cohorts, run the synthetic benchmark and the studies."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from avshift_core.config import AnalysisConfig
from avshift_core.errors import AVShiftError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it is done, 2 with one sentence when the input does not allow it."""
    arguments = _parser().parse_args(argv)
    try:
        with _terminated_like_interrupted():
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads the output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the interpreter's end
        return 128 + signal.SIGPIPE
    except AVShiftError as error:
        print(f"avshift: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("avshift: stopped; no output was written.", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a command in good order, as Ctrl-C does; only the main thread may say so."""
    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m avshift_core", description="Is it the car, or the traffic it met?")
    commands = parser.add_subparsers(required=True)

    from avshift_core.scenario.commands import add_corpus, add_demo, add_import

    for add in (add_demo, add_import, add_corpus):
        add(commands)
    compare = commands.add_parser("compare", help="test, localize and calibrate two cohorts")
    _cohort_flags(compare)
    compare.add_argument("--metric", action="append", default=[], help="metric column in [0, M]; may be repeated")
    compare.add_argument("--json", type=Path, help="write the report here")
    compare.add_argument("--assignments", type=Path, help="write one row a scenario here (Parquet)")
    _setting_flags(compare)
    compare.set_defaults(run=_compare)

    benchmark = commands.add_parser("benchmark", help="the synthetic tables, measured on this machine")
    benchmark.add_argument("--seeds", type=int, default=20, help="seeds of the line and 64-D tables (null: 5 x, "
                           "coverage: 10 x as many runs)")
    benchmark.add_argument("--only", action="append", choices=("line", "manifold", "null", "coverage", "speed"),
                           help="only this table; may be repeated")
    benchmark.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    benchmark.add_argument("--json", type=Path, help="write the tables here")
    benchmark.set_defaults(run=_benchmark)

    sensitivity = commands.add_parser("sensitivity", help="the paper's four studies of the global test")
    _cohort_flags(sensitivity)
    sensitivity.add_argument("--seeds", type=int, default=5, help="splits a configuration is repeated on")
    sensitivity.add_argument("--json", type=Path, help="write the rows here")
    _setting_flags(sensitivity)
    sensitivity.set_defaults(run=_sensitivity)
    return parser


def _cohort_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, type=Path, metavar="P", help="table of the source cohort")
    parser.add_argument("--target", required=True, type=Path, metavar="Q", help="table of the target cohort")
    parser.add_argument("--latent", default="z", help="column of lists, or prefix of columns z_0, z_1, ...")
    parser.add_argument("--group", help="drive column (default: drive_id where there is one)")


def _setting_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for each field of the config."""
    parser.add_argument("--settings", type=Path, help="take all settings from an earlier report")
    for setting in fields(AnalysisConfig):
        flags = [f"--{setting.name.replace('_', '-')}", *(["--clip"] if setting.name == "B" else [])]
        text = f"{setting.metadata['help']} (default: {setting.default})".replace("%", "%%")
        if isinstance(setting.default, bool):
            parser.add_argument(*flags, dest=setting.name, action="store_true", default=None, help=text)
        else:
            parser.add_argument(*flags, dest=setting.name, type=type(setting.default), default=None, help=text,
                                choices=setting.metadata["choices"])


def _config(arguments) -> AnalysisConfig:
    from dataclasses import replace

    from avshift_core.report import config_from_report

    base = config_from_report(arguments.settings) if arguments.settings else AnalysisConfig()
    given = {f.name: getattr(arguments, f.name) for f in fields(AnalysisConfig)}
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def _cohorts(arguments, metrics):
    from avshift_core.latent.tables import read_cohort

    return [
        read_cohort(path, latent=arguments.latent, group=arguments.group, metrics=metrics)
        for path in (arguments.source, arguments.target)
    ]


def _compare(arguments) -> None:
    from avshift_core.files import check_writable, write_json
    from avshift_core.progress import finish_with_bar
    from avshift_core.report import to_report, to_rows, write_rows
    from avshift_core.shift.analyze import analysis_steps

    config = _config(arguments)
    for path in (arguments.json, arguments.assignments):
        if path is not None:
            check_writable(path)
    P, Q = _cohorts(arguments, arguments.metric)
    steps = analysis_steps(P, Q, config, arguments.metric)
    analysis = finish_with_bar(steps)
    if arguments.assignments is not None:
        write_rows(to_rows(analysis), arguments.assignments)
    if arguments.json is not None:
        write_json(to_report(analysis), arguments.json)
    print(summary(analysis))


def summary(analysis) -> str:
    """What a reader of the terminal needs: verdict, regions, metrics, and what is wrong."""
    P, Q = analysis.P, analysis.Q
    count = lambda c: f"{c.n:,} scenarios" + (f", {c.n_drives:,} drives" if c.has_drives else "")  # noqa: E731
    lines = [f"{P.name} ({count(P)}) -> {Q.name} ({count(Q)})",
             f"{analysis.verdict.title}. {analysis.verdict.sentence}",
             f"p = {analysis.global_test.p_value:.3g} (classifier), "
             f"{analysis.global_test.p_neighbors:.3g} (neighbours)"]
    if analysis.local is None:
        lines.append("Localization stopped: the verdict is not 'localize' (--force-localize looks for regions anyway).")
    else:
        found = len(analysis.local.regions)
        lines.append(f"{found} regions:" if found else "No region was confirmed.")
        lines += [f"  R{r.k} {r.direction.replace('_', '-')}: {r.p_k:.2%} of P, {r.q_k:.2%} of Q, weight {r.w_k:.2f}, "
                  f"adjusted p {r.p_adj:.2g}" for r in analysis.local.regions]
        lines += [f"  Q has {r.q_k:.2%} of its scenarios where P has next to none: not weighted."
                  for r in analysis.local.overlap_violations]
    for name, c in analysis.calibrations.items():
        shown = analysis.headline(name)
        lines.append(f"{name} (clip {c.B:g}; {'headline ' + shown if shown else 'headline withheld'}):")
        lines += [f"  {key:<10} {e.mu:.5f}  [{e.lo:.5f}, {e.hi:.5f}]" for key, e in c.estimates().items() if e]
    lines += [f"{check.status}: {check.text}" for check in analysis.trust if check.status != "ok"]
    return "\n".join(lines)


def _benchmark(arguments) -> None:
    from avshift_core.benchmark import run_benchmark

    run_benchmark(arguments.seeds, arguments.only, arguments.jobs, arguments.json)


def _sensitivity(arguments) -> None:
    from tqdm import tqdm

    from avshift_core.files import check_writable, write_json
    from avshift_core.latent.cohort import check_pair
    from avshift_core.latent.space import make_space
    from avshift_core.shift.c2st import cross_fit
    from avshift_core.shift.drives import pool
    from avshift_core.shift.sensitivity import count_rows, half_widths, sensitivity

    config = _config(arguments)
    if arguments.json is not None:
        check_writable(arguments.json)
    P, Q = _cohorts(arguments, [])
    check_pair(P, Q)
    space, sample = make_space(P, Q, config.n_cells, config.seed), pool(P, Q)
    rows = []
    for row in tqdm(sensitivity(space, sample, config, range(arguments.seeds)), total=count_rows(), leave=False,
                    disable=None):
        rows.append(row)
    fit = cross_fit(space, sample, config, repeats=1, folds=config.folds, seed=config.seed)
    widths = half_widths((fit.logits[0] >= 0) == sample.y, sample, config.seed)
    print(f"{'study':<22} {'setting':<28} {'acc':>7} {'+-':>7}")
    for row in rows:
        print(f"{row.study:<22} {row.setting:<28} {row.acc:7.4f} {row.acc_std:7.4f}")
    print(f"\n{'N_te':>8} {'half-width':>11} {'binomial':>9}")
    for width in widths:
        print(f"{width.n_te:>8,} {width.half_width:11.4f} {width.binomial:9.4f}")
    if arguments.json is not None:
        from dataclasses import asdict

        write_json({"schema": 1, "rows": [asdict(r) for r in rows], "half_width": [asdict(w) for w in widths]},
                   arguments.json)


if __name__ == "__main__":
    sys.exit(main())
