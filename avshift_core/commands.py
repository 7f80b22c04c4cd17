"""The commands `compare`, `versions`, `report`, `sensitivity` and `benchmark`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path

from avshift_core.config import VIEWS, AnalysisConfig
from avshift_core.errors import AVShiftError, ConfigError
from avshift_core.scenario.commands import add_scheduler

OF_TABLES, OF_CORPORA = ("latent", "group"), ("view", "model")  # flags that go with one of the two only


def add_compare(commands) -> None:
    """`compare --source P --target Q`."""
    parser = commands.add_parser("compare", help="test, localize and calibrate two cohorts")
    _cohort_flags(parser)
    parser.add_argument("--metric", action="append", default=[], help="metric in [0, M]; of a corpus also an "
                        "exceedance such as 'ttc_min_s<1.5'; may be repeated")
    parser.add_argument("--json", type=Path, help="write the report here")
    parser.add_argument("--assignments", type=Path, help="write one row a scenario here (Parquet)")
    _setting_flags(parser)
    parser.set_defaults(run=run_compare)


def add_versions(commands) -> None:
    """`versions --corpus DIR --source P --target Q`."""
    parser = commands.add_parser("versions", help="is the AV version of Q better than that of P, or did it meet easier "
                                 "traffic?")
    parser.add_argument("--corpus", required=True, metavar="DIR", help="folder or URL of an encoded corpus")
    parser.add_argument("--source", required=True, metavar="P", help="scenarios of the first version, such as "
                        "period=2026-W11,area=harbor,av_version=v4.1")
    parser.add_argument("--target", required=True, metavar="Q", help="scenarios of the second version")
    parser.add_argument("--view", choices=VIEWS, default="context", help="latents of what the AV did not cause; any "
                        "other view is refused (default: context)")
    parser.add_argument("--model", metavar="ID_OR_FOLDER", help="model of the latents (default: the only ones there "
                        "are, or the shipped model's)")
    parser.add_argument("--metric", action="append", default=[], required=True, help="metric in [0, M], also an "
                        "exceedance such as 'ttc_min_s<1.5'; may be repeated")
    parser.add_argument("--json", type=Path, help="write the report here")
    _setting_flags(parser)
    parser.set_defaults(run=run_versions, latent=None, group=None)


def add_report(commands) -> None:
    """`report --corpus DIR --source P --target Q --html FILE`."""
    parser = commands.add_parser("report", help="the evidence pack of two cohorts of a corpus: HTML and JSON")
    _cohort_flags(parser)
    parser.add_argument("--metric", help="event of the pack, such as hard_brake or 'ttc_min_s<1.5' (default: the first "
                        "there is); all others stand in one table")
    parser.add_argument("--html", type=Path, help="write the page here")
    parser.add_argument("--json", type=Path, help="write the facts behind it here")
    parser.add_argument("--threshold", type=float, help="highest rate in the traffic of Q that a claim allows, from 0 "
                        "to 1")
    parser.add_argument("--sensitivity", type=Path, help="studies that `sensitivity --json` wrote of the same cohorts")
    _setting_flags(parser)
    parser.set_defaults(run=run_report)


def add_sensitivity(commands) -> None:
    """`sensitivity --source P --target Q`."""
    parser = commands.add_parser("sensitivity", help="the paper's four studies of the global test")
    _cohort_flags(parser)
    parser.add_argument("--seeds", type=int, default=5, help="splits a configuration is repeated on")
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    add_scheduler(parser)
    _setting_flags(parser)
    parser.set_defaults(run=run_sensitivity)


def add_benchmark(commands) -> None:
    """`benchmark`."""
    parser = commands.add_parser("benchmark", help="the synthetic tables, measured on this machine")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of the line and 64-D tables (null: 5 x, "
                        "coverage: 10 x as many runs)")
    parser.add_argument("--only", action="append", choices=("line", "manifold", "null", "coverage", "speed"),
                        help="only this table; may be repeated")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    parser.add_argument("--json", type=Path, help="write the tables here")
    add_scheduler(parser)
    parser.set_defaults(run=run_benchmarks)


def _cohort_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="P", help="table of the source cohort; with --corpus its "
                        "scenarios, such as period=2026-W10,area=harbor")
    parser.add_argument("--target", required=True, metavar="Q", help="the same of the target cohort")
    parser.add_argument("--corpus", metavar="DIR", help="folder or URL of an encoded corpus that holds both cohorts")
    parser.add_argument("--view", choices=VIEWS, help="latents of the whole scenario, or only of what the AV did not "
                        f"cause (with --corpus; default: {VIEWS[0]})")
    parser.add_argument("--model", metavar="ID_OR_FOLDER", help="model of the latents, or name of imported ones (with "
                        "--corpus; default: the only ones there are, or the shipped model's)")
    parser.add_argument("--latent", help="column of lists, or prefix of columns z_0, z_1, ... (of tables; default: z)")
    parser.add_argument("--group", help="drive column (of tables; default: drive_id where there is one)")


def _setting_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for each field of the config."""
    parser.add_argument("--settings", type=Path, help="take all settings from an earlier report")
    for setting in fields(AnalysisConfig):
        flags = [f"--{setting.name.replace('_', '-')}", *(["--clip"] if setting.name == "B" else [])]
        default = f"{setting.default}{'; of a corpus what its metrics say' if setting.name == 'M' else ''}"
        text = f"{setting.metadata['help']} (default: {default})".replace("%", "%%")
        if isinstance(setting.default, bool):
            parser.add_argument(*flags, dest=setting.name, action="store_true", default=None, help=text)
        else:
            parser.add_argument(*flags, dest=setting.name, type=type(setting.default), default=None, help=text,
                                choices=setting.metadata["choices"])


def _config(arguments: argparse.Namespace) -> AnalysisConfig:
    from avshift_core.report import config_from_report

    base = config_from_report(arguments.settings) if arguments.settings else AnalysisConfig()
    given = {f.name: getattr(arguments, f.name) for f in fields(AnalysisConfig)}
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def _check_flags(arguments: argparse.Namespace) -> None:
    """Tables and corpora are named by different flags."""
    given = lambda flags: next((flag for flag in flags if getattr(arguments, flag) is not None), None)  # noqa: E731
    if arguments.corpus is not None:
        if flag := given(OF_TABLES):
            raise AVShiftError(f"--{flag} speaks of tables; a corpus knows its latents and drives. Leave out --{flag} "
                               "or --corpus.")
        return
    if flag := given(OF_CORPORA):
        raise AVShiftError(f"--{flag} speaks of the latents of a corpus. Name it with --corpus DIR, or leave out "
                           f"--{flag}.")
    for path in (arguments.source, arguments.target):
        if "=" in path and not Path(path).exists():
            raise AVShiftError(f"'{path}' is no table. To choose these scenarios of a corpus, name it with --corpus "
                               "DIR.")


def _read(arguments: argparse.Namespace, metrics: list[str]):
    """(P, Q, pair): two tables and None, or two cohorts of a corpus and the pair they belong to."""
    _check_flags(arguments)
    if arguments.corpus is not None:
        from avshift_core.latent.corpora import read_pair
        from avshift_core.scenario.store.corpus import open_corpus

        pair = read_pair(open_corpus(arguments.corpus), arguments.source, arguments.target, metrics=metrics,
                         model=arguments.model, view=arguments.view or VIEWS[0])
        return pair.P, pair.Q, pair
    from avshift_core.latent.tables import read_cohort

    paths = arguments.source, arguments.target
    P, Q = (read_cohort(path, latent=arguments.latent or "z", group=arguments.group, metrics=metrics) for path in paths)
    return P, Q, None


def _with_limit(config: AnalysisConfig, pair, arguments: argparse.Namespace) -> AnalysisConfig:
    """M as the metrics' definitions say it, unless the analyst does."""
    if pair is None or arguments.M is not None or arguments.settings is not None:
        return config
    limits = {name: definition.M for name, definition in pair.definitions.items() if definition.M is not None}
    if len(set(limits.values())) > 1:
        listed = ", ".join(f"{name} in [0, {M:g}]" for name, M in limits.items())
        raise ConfigError(f"These metrics have different ranges: {listed}. Compare them one by one, take exceedances "
                          "such as 'ttc_min_s<1.5', or set --M for all.")
    return replace(config, M=next(iter(limits.values()), config.M))


def run_compare(arguments: argparse.Namespace) -> None:
    from avshift_core.files import check_writable, write_json
    from avshift_core.progress import finish_with_bar
    from avshift_core.report import to_report, to_rows, write_rows
    from avshift_core.shift.analyze import analysis_steps

    config = _config(arguments)
    for path in (arguments.json, arguments.assignments):
        if path is not None:
            check_writable(path)
    P, Q, pair = _read(arguments, arguments.metric)
    steps = analysis_steps(P, Q, _with_limit(config, pair, arguments), arguments.metric)
    analysis = finish_with_bar(steps)
    if arguments.assignments is not None:
        write_rows(to_rows(analysis), arguments.assignments)
    if arguments.json is not None:
        write_json(to_report(analysis, pair), arguments.json)
    _tell_cautions(pair)
    print(summary(analysis))
    if pair is not None:
        _enter_look(analysis, pair, arguments.metric)


def _enter_look(analysis, pair, metrics: list[str]) -> None:
    """Write the comparison into the ledger of its corpus; one that cannot be written is told, and loses nothing."""
    from avshift_core.comparison import look_of
    from avshift_core.notebook import open_notebook

    source, target = str(pair.source), str(pair.target)
    look = look_of(analysis, pair.corpus.fingerprint, source, target, pair.latents, ", ".join(metrics))
    try:
        notebook = open_notebook(pair.corpus.url)
        look, count = notebook.record(look), notebook.count(source, target)
    except AVShiftError as error:
        print(f"avshift: this look is not in the ledger of {pair.corpus.url}: {error}", file=sys.stderr)
        return
    print(f"Look {look.number:,} at {pair.corpus.url}; {count.same_pair:,} of {count.all:,} with these two cohorts "
          f"(`python -m avshift_core ledger {pair.corpus.url}`).")


def run_versions(arguments: argparse.Namespace) -> None:
    from avshift_core.files import check_writable, write_json
    from avshift_core.latent.corpora import OF_ENCODER, known_views, read_pair
    from avshift_core.progress import finish_with_bar, within
    from avshift_core.report import to_report
    from avshift_core.scenario.store.corpus import open_corpus
    from avshift_core.shift.analyze import analysis_steps
    from avshift_core.shift.version_report import summary as in_words
    from avshift_core.shift.version_report import to_version_report
    from avshift_core.shift.versions import check_view, version_of, version_steps

    config = _config(arguments)
    if arguments.json is not None:
        check_writable(arguments.json)
    corpus = open_corpus(arguments.corpus)
    imported = arguments.model in corpus.models and not OF_ENCODER.fullmatch(arguments.model)
    check_view(None if imported or (corpus.models and not known_views(corpus)) else arguments.view)
    pair = read_pair(corpus, arguments.source, arguments.target, metrics=arguments.metric, model=arguments.model,
                     view=arguments.view)
    versions = tuple(version_of(cohort, side) for cohort, side in ((pair.P, "P"), (pair.Q, "Q")))

    def steps():
        analysis = yield from within(
            analysis_steps(pair.P, pair.Q, _with_limit(config, pair, arguments), arguments.metric), 0.0, 0.7)
        steps = version_steps(analysis, pair.view, versions=versions, cautions=pair.cautions)
        return analysis, (yield from within(steps, 0.7, 1.0))

    analysis, found = finish_with_bar(steps())
    if arguments.json is not None:
        report = to_report(analysis, pair)
        write_json({**{key: report[key] for key in ("schema", "source", "target", "corpus", "config")},
                    **to_version_report(analysis, found), "timings": report["timings"]}, arguments.json)
    print(f"latents: {pair.latents} of {pair.corpus.url}")
    print(in_words(analysis, found))
    _enter_look(analysis, pair, arguments.metric)


def run_report(arguments: argparse.Namespace) -> None:
    from avshift_core.comparison import comparison_steps
    from avshift_core.evidence.facts import check_threshold
    from avshift_core.evidence.pack import pack_steps, read_sensitivity
    from avshift_core.files import check_writable, write_whole
    from avshift_core.progress import finish, finish_with_bar

    config = _config(arguments)
    files = [path for path in (arguments.html, arguments.json) if path is not None]
    if arguments.corpus is None or not files:
        raise AVShiftError("An evidence pack is made of two cohorts of a corpus and written to a file: give --corpus "
                           "DIR, and --html FILE or --json FILE or both.")
    _check_flags(arguments)
    for path in files:
        check_writable(path)
    check_threshold(arguments.threshold)
    studies = None if arguments.sensitivity is None else read_sensitivity(arguments.sensitivity)
    comparison = finish_with_bar(comparison_steps(
        arguments.corpus, arguments.source, arguments.target, arguments.view or VIEWS[0], arguments.model,
        config=asdict(config)))
    pack = finish(pack_steps(comparison, arguments.metric, config.B, threshold=arguments.threshold,
                             sensitivity=studies and studies.of(comparison), **_said_of(comparison)))
    for path, text in ((arguments.html, pack.html), (arguments.json, pack.json)):
        if path is not None:
            write_whole(path, lambda draft, text=text: Path(draft).write_text(text, encoding="utf-8"))
            print(f"{path}: {len(text.encode()) / 1e6:.2f} MB")
    print(*(f"caution: {sentence}\n" for sentence in comparison.cautions), sep="", end="")
    print(f"Run {comparison.run}. {comparison.analysis.verdict.title}. {comparison.analysis.verdict.sentence}")


def _tell_cautions(pair) -> None:
    """What bears on the result comes before it."""
    if pair is not None:
        print(f"latents: {pair.latents} of {pair.corpus.url}")
        print(*(f"caution: {sentence}\n" for sentence in pair.cautions), sep="", end="")


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
        lines.append(f"  From P to Q, traffic explains {_signed(c.traffic)}; left is {_signed(c.residual)}: the car, "
                     "or what the latent does not see.")
    lines += [f"{check.status}: {check.text}" for check in analysis.trust if check.status != "ok"]
    return "\n".join(lines)


def _signed(estimate) -> str:
    return f"{estimate.mu:+.5f} [{estimate.lo:+.5f}, {estimate.hi:+.5f}]"


def _said_of(comparison) -> dict:
    """The ledger of the corpus, this look in it, and notes on the regions; nothing where they cannot be read."""
    from avshift_core.notebook import open_notebook

    url, look = comparison.look()
    try:
        notebook = open_notebook(url)
        notebook.record(look)
        return {"looks": notebook.looks(), "notes": notebook.region_notes(comparison.run)}
    except AVShiftError as error:
        print(f"avshift: the pack has no ledger and no notes: {error}", file=sys.stderr)
        return {}


def run_benchmarks(arguments: argparse.Namespace) -> None:
    from avshift_core.benchmark import run_benchmark

    run_benchmark(arguments.seeds, arguments.only, arguments.jobs, arguments.json, arguments.scheduler)


def run_sensitivity(arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    from avshift_core.files import check_writable, write_json
    from avshift_core.latent.cohort import check_pair
    from avshift_core.latent.space import make_space
    from avshift_core.parallel import check_jobs
    from avshift_core.report import origin
    from avshift_core.shift.c2st import cross_fit
    from avshift_core.shift.drives import pool
    from avshift_core.shift.sensitivity import count_rows, half_widths, sensitivity

    config = _config(arguments)
    check_jobs(arguments.jobs, arguments.scheduler)
    if arguments.json is not None:
        check_writable(arguments.json)
    P, Q, pair = _read(arguments, [])
    check_pair(P, Q)
    space, sample = make_space(P, Q, config.n_cells, config.seed), pool(P, Q)
    studies = sensitivity(space, sample, config, range(arguments.seeds), arguments.jobs, arguments.scheduler)
    rows = list(tqdm(studies, total=count_rows(), leave=False, disable=None))
    fit = cross_fit(space, sample, config, repeats=1, folds=config.folds, seed=config.seed)
    widths = half_widths((fit.logits[0] >= 0) == sample.y, sample, config.seed)
    print(f"{'study':<22} {'setting':<28} {'acc':>7} {'+-':>7}")
    for row in rows:
        print(f"{row.study:<22} {row.setting:<28} {row.acc:7.4f} {row.acc_std:7.4f}")
    print(f"\n{'N_te':>8} {'half-width':>11} {'binomial':>9}")
    for width in widths:
        print(f"{width.n_te:>8,} {width.half_width:11.4f} {width.binomial:9.4f}")
    _tell_cautions(pair)
    if arguments.json is not None:
        where = {} if pair is None else {"corpus": origin(pair), "source": str(pair.source), "target": str(pair.target),
                                         "cautions": pair.cautions}
        write_json({"schema": 1, **where, "rows": [asdict(r) for r in rows], "half_width": [asdict(w) for w in widths]},
                   arguments.json)
