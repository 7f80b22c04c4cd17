"""The sections of a page, in the order a reviewer reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from avshift_core.evidence import charts, metric_sections
from avshift_core.evidence.facts import settings_table
from avshift_core.evidence.maps import PANELS
from avshift_core.evidence.markup import EMPTY, Column, Safe, bullets, figure, join, paragraphs, table, tag
from avshift_core.evidence.numbers import amount, count, p_value, points, rate, signed, span
from avshift_core.evidence.scenes import REACH_M, UP_M, WORDS
from avshift_core.glossary import entry_of
from avshift_core.shift.gate import TITLES
from avshift_core.words import readable

ON_ONE_PAGE = 12  # rows of a table that is never split
Section = tuple[str, str, Safe]


def parts(facts: Mapping, maps: Mapping[str, Safe], scenes: Mapping[str, Safe], no_scenes: str) -> list[Section]:
    """(anchor, title, content) of every section."""
    found = [
        ("question", "The question", _question(facts)),
        ("cohorts", "The cohorts", _cohorts(facts)),
        ("verdict", "How far apart are P and Q?", _verdict(facts)),
        ("map", "The map", _map(facts, maps)),
        ("regions", "Where they differ", _regions(facts, scenes, no_scenes)),
        *metric_sections.parts(facts),
        ("limits", "What this does not adjust for", bullets(facts["words"]["limits"])),
        ("ledger", "Looks at this corpus, and what reviewers said", _ledger(facts)),
        ("review", "Where a reviewer finds what", EMPTY),
        ("origin", "Where the numbers come from", _origin(facts)),
    ]
    numbers = {key: i for i, (key, _, _) in enumerate(found, start=1)}
    return [(key, title, _review(facts, numbers) if key == "review" else content) for key, title, content in found]


def _question(facts: Mapping) -> Safe:
    estimand = facts["words"]["estimand"]
    return join([
        paragraphs(facts["words"]["question"]), tag("h3", "What is estimated"), tag("p", estimand["words"]),
        tag("p", estimand["formula"], class_="formula") if estimand["formula"] else EMPTY,
        tag("p", estimand["is_not"]) if estimand["is_not"] else EMPTY,
        tag("p", "z is a scenario's latent, event is 1 or 0; P is always the source, Q the target.", class_="soft")
        if estimand["formula"] else EMPTY,
    ])


def _cohorts(facts: Mapping) -> Safe:
    P, Q = facts["source"], facts["target"]
    row = lambda name, tell: (name, tell(P), tell(Q))  # noqa: E731
    rows = [
        row("Called", lambda c: c["name"]), row("Chosen by", lambda c: tag("code", c["query"] or "everything")),
        row("Scenarios", lambda c: f"{c['n']:,}"),
        row("Drives", lambda c: "no drive ids: independence is assumed" if c["drives"] is None else f"{c['drives']:,}"),
        row("Days", _days), row("Distance", lambda c: _exposure(c, "km", "km")),
        row("Time", lambda c: _exposure(c, "hours", "h")),
        row("Numbers of a latent", lambda c: f"{c['dimensions']:,}"),
        row("Fingerprint", lambda c: tag("code", c["fingerprint"])),
    ]
    names = {"period": "Periods", "area": "Areas", "av_version": "AV versions", "category": "Categories"}
    rows += [row(title, lambda c, key=key: _counted(c["by"].get(key))) for key, title in names.items()
             if any(key in c["by"] for c in (P, Q))]
    columns = [Column(""), Column("P, the source", wide=True), Column("Q, the target", wide=True)]
    cautions = [tag("p", sentence, class_="note") for sentence in facts["cautions"]]
    return join([table(columns, rows), *cautions])


def _days(cohort: Mapping) -> str:
    if cohort["first_day"] is None:
        return "not recorded"
    if cohort["first_day"] == cohort["last_day"]:
        return cohort["first_day"]
    return f"{cohort['first_day']} to {cohort['last_day']} ({count(cohort['days'], 'day')})"


def _exposure(cohort: Mapping, key: str, unit: str) -> str:
    known = cohort[f"{key}_of"]
    some = f" (recorded in {known:,} of {cohort['n']:,} scenarios)" if 0 < known < cohort["n"] else ""
    return amount(cohort[key], unit) + some


def _counted(counts: Mapping | None) -> str:
    return "not recorded" if not counts else ", ".join(f"{readable(name)} {n:,}" for name, n in counts.items())


def _verdict(facts: Mapping) -> Safe:
    v, config = facts["verdict"], facts["config"]
    picture = figure(
        charts.band(v, config), "The advantage is how much better than a coin a classifier tells P and Q apart on "
        "drives it has not seen: 0 not at all, 0.5 without error. The verdict is the band in which its lower bound "
        f"lies. The bounds are one-sided, each with error level {config['alpha']:g}. Below: the same test between two "
        "halves of one cohort (A/A control), which must find nothing.")
    loose = v["independence_assumed"]
    by, unit = ("independence assumed", "scenarios") if loose else ("by drive", "drives")
    numbers = [
        ("Advantage", f"{v['gamma_hat']:.4f}", f"between {v['gamma_lcb']:.4f} and {v['gamma_ucb']:.4f}, {by}"),
        ("The paper's lower bound", f"{v['gamma_lcb_wilson']:.4f}", f"Wilson; Hoeffding "
         f"{v['gamma_lcb_hoeffding']:.4f}. Both assume independent scenarios."),
        ("Accuracy", f"{v['acc']:.4f}", f"standard deviation {v['acc_std']:.4f} over "
         f"{count(v['repeats'], 'repeat')}; {v['n_te']:,} scenarios held out"),
        ("Total variation", f"at least {v['tv_lower']:.1%}", "twice the lower bound of the advantage"),
        ("Smallest advantage that could be seen", f"{v['detectable_gamma']:.4f}", "at these numbers of scenarios and "
         "drives"),
        ("p-value: classifier", p_value(v["p_value"]), f"{config['n_perm']:,} permutations of the {unit}; never below "
         f"{1 / (config['n_perm'] + 1):.3g}"),
        ("p-value: neighbours", p_value(v["p_neighbors"]), "same permutations, on the graph of nearest neighbours"),
        ("A/A control of P", f"{v['aa']['source']['gamma_hat']:.4f}", f"lower bound "
         f"{v['aa']['source']['gamma_lcb']:.4f}"),
        ("A/A control of Q", f"{v['aa']['target']['gamma_hat']:.4f}", f"lower bound "
         f"{v['aa']['target']['gamma_lcb']:.4f}"),
        ("Between drives", f"{v['icc']:.1%}", f"of the latent variance; design effect {v['design_effect']:.1f}"),
    ]
    numbers += [(f"p-value: {_test(t['name'])}", p_value(t["p_value"]), f"statistic {t['statistic']:.4g}")
                for t in v["reference_tests"]]
    return join([tag("p", v["sentence"], class_="lead"), picture,
                 table([Column("Statistic"), Column("Value", number=True), Column("How sure, and of what", wide=True)],
                       numbers)])


def _test(name: str) -> str:
    entry = entry_of(f"test:{name}")
    return f"{entry.term if entry else name}{' on the score' if name == 'ks_h' else ''}"


def _map(facts: Mapping, maps: Mapping[str, Safe]) -> Safe:
    found = facts["map"]
    panels = tag("div", *(tag("div", tag("p", title), maps[name]) for name, title in PANELS), class_="maps")
    held = ", ".join(f"{o['region']} {o['held']:.0%}" for o in found["outlined"] if o["pieces"])
    outlined = f" Outlines hold most of a region's scenarios ({held}); others may lie there too." if held else ""
    return figure(panels, join([
        tag("span", class_="swatch p"), "P", tag("span", class_="swatch q"), f"Q. Axes: {found['title']} "
        f"({found['axes'][0]} to the right, {found['axes'][1]} up). All {found['n_P']:,} scenarios of P and all "
        f"{found['n_Q']:,} of Q are counted; a cell is darker the more of them it holds. Right: smoothed density of Q "
        f"less that of P, blue more of P, orange more of Q.{outlined} The map is a picture: tests, regions and weights "
        "live in the space of all latent numbers."]))


def _regions(facts: Mapping, scenes: Mapping[str, Safe], no_scenes: str) -> Safe:
    places = facts["places"]
    if not places["regions"] and not places["without_support"]:
        return tag("p", places["why_not"], class_="note")
    start = [tag("p", places["why_not"], class_="note")] if places["why_not"] else [
        tag("p", "A region is a place in latent space that some drives proposed and other drives, which had no part in "
            "that, confirmed; its shares are those of the latter. Names are proposed from attributes.", class_="lead")]
    if no_scenes:
        start.append(tag("p", f"There are no pictures of scenarios: {no_scenes}", class_="note"))
    blocks = [_region(r, facts, scenes) for r in places["regions"]]
    if places["without_support"]:
        blocks.append(tag("h3", "Traffic of Q that P has next to nothing of"))
        blocks.append(tag("p", "These places are listed and never weighted."))
        blocks += [_region(r, facts, scenes) for r in places["without_support"]]
    key = [Safe(f'<span class="swatch {cls}"></span>{words}') for cls, words in WORDS] if scenes else []
    legend = tag("p", *key, ". Everybody's way, and where they are at half of the time; the ego drives to the right; "
                 f"{2 * REACH_M:g} m across, {2 * UP_M:g} m up.", class_="soft") if scenes else EMPTY
    return join([*start, _region_table(places["regions"], facts["metric"]), *blocks, legend])


def _region_table(regions: Sequence[Mapping], metric: Mapping | None) -> Safe:
    if not regions:
        return EMPTY
    columns = [Column("Region", wide=True), Column("Share of P", True), Column("Share of Q", True),
               Column("Q / P", True), Column("Weight", True), Column("Adjusted p", True)]
    columns += [Column("Moves the rate by, points", True)] if metric else []
    rows = []
    for r in regions:
        row = [f"{r['region']} {r['name']}", _two(rate(r["p"]["mu"]), span(r["p"])),
               _two(rate(r["q"]["mu"]), span(r["q"])),
               "–" if r["ratio"] is None else _two(f"{r['ratio']['mu']:.2f}",
                                                   f"{r['ratio']['lo']:.2f} to {r['ratio']['hi']:.2f}"),
               f"{r['weight']:.2f}", p_value(r["p_adj"])]
        move = r["contribution"]
        row += [] if not metric else ["–" if move is None else _two(
            signed(100 * move["mu"]), f"{signed(100 * move['lo'])} to {signed(100 * move['hi'])}")]
        rows.append(row)
    found = table(columns, rows, "Shares with intervals by drive; the weight is the share of Q over that of P, after "
                 "the clip.")
    return tag("div", found, class_="keep") if len(rows) <= ON_ONE_PAGE else found


def _two(value: str, below: str) -> Safe:
    return join([value, tag("small", below)])


def _region(r: Mapping, facts: Mapping, scenes: Mapping[str, Safe]) -> Safe:
    """One region: what reviewers call it, what sets it apart, what stands for it."""
    note = r["note"]
    title = f"{r['region']} · {note['name'] if note and note['name'] else r['name']}"
    says = []
    if note:
        told = [note["comment"] or "no comment", *(part for part in (note["status"], note["changed"]) if part)]
        proposed = f" Proposed name: {r['name']}." if note["name"] else ""
        says.append(tag("p", tag("b", "Reviewers: "), " · ".join(told), proposed, class_="note review"))
    facts_of = (f"{r['n_P']:,} scenarios of P and {r['n_Q']:,} of Q, from {count(r['drives'], 'drive')}. There is more "
                f"of it in {r['more_in']}.")
    if r["contribution"] is not None and facts["metric"] is not None:
        share = "" if r["rate_P"] is None else f"In P the event happens in {rate(r['rate_P'])} of these scenarios. "
        facts_of += (f" {share}From the rate of P to that of Q it adds {points(r['contribution'])}.")
    rows = [(a["label"], a["inside"], a["outside"], signed(a["smd"]) + (
        "" if a["lo"] is None else f" ({signed(a['lo'])} to {signed(a['hi'])})")) for a in r["attributes"]]
    attributes = table([Column("What sets it apart", wide=True), Column("There", True), Column("Elsewhere", True),
                        Column("Standardised difference", True)], rows) if rows else \
        tag("p", "Its scenarios have no attributes that people can read.", class_="soft")
    return tag("article", tag("h3", title), *says, tag("p", facts_of), attributes, _scenes(r, scenes), class_="keep")


def _scenes(r: Mapping, scenes: Mapping[str, Safe]) -> Safe:
    shown = [(side, name) for side in ("P", "Q") for name in r["scenes"][side] if name in scenes]
    if not shown:
        return EMPTY
    cells = [tag("div", tag("p", tag("span", class_=f"swatch {side.lower()}"), side, tag("span", name, class_="id")),
                 scenes[name]) for side, name in shown]
    return tag("div", *cells, class_="scenes")


def _ledger(facts: Mapping) -> Safe:
    found = [tag("p", facts["words"]["looks"])]
    ledger = facts["ledger"]
    if ledger and ledger["listed"]:
        rows = [_look(look) for look in ledger["listed"]]
        some = f"The last {len(rows):,} of {ledger['looks']:,}." if len(rows) < ledger["looks"] else ""
        found.append(table([Column("When"), Column("What"), Column("Source"), Column("Target"), Column("Verdict"),
                            Column("Advantage"), Column("Run")], rows, some))
    notes = facts["notes"]
    if notes is None:
        found.append(tag("p", "No notes of reviewers were given."))
    elif not notes:
        found.append(tag("p", "No reviewer has named or commented a region of this run."))
    else:
        found.append(table(
            [Column("Region"), Column("Name"), Column("Comment", wide=True), Column("Status"), Column("Changed")],
            [(n["region"], n["name"], n["comment"], n["status"], n["changed"]) for n in notes]))
    return join(found)


def _look(look: Mapping) -> tuple:
    """One row of the ledger; what a look does not say is a dash."""
    low, at, high = ("–" if look[f"gamma_{key}"] is None else f"{look[f'gamma_{key}']:.3f}"
                     for key in ("lcb", "hat", "ucb"))
    first = [look[key] or "–" for key in ("when", "kind", "source", "target")]
    return (*first, TITLES.get(look["verdict"], look["verdict"] or "–"), f"{at} ({low} to {high})",
            tag("code", look["run"] or "–"))


def _review(facts: Mapping, numbers: Mapping[str, int]) -> Safe:
    """Where what a reviewer asks for is found; numbers: of the sections, which a printed page needs."""
    words = facts["words"]
    blocks = [tag("p", f"The headings are those of the RAVE checklist. {words['sources']['rave']} This is a guide to "
                  "where its headings are met in this pack, not a statement that every recommendation is.")]
    for group in words["crosswalk"]:
        rows = [(row["asks"], tag("a", f"section {numbers[row['section']]}", href=f"#{row['section']}"), row["answer"])
                for row in group["rows"]]
        blocks += [tag("h3", group["heading"]), table(
            [Column("A reviewer asks"), Column("Where"), Column("What this pack has", wide=True)], rows)]
    found = words["indicator"]
    state = tag("b", f"{found['state'].capitalize()}. ") if found["claim"] else EMPTY
    rows = [("Metric", found["metric"] or "none"),
            ("Threshold", "none was given" if found["threshold"] is None else f"at most {rate(found['threshold'])}"),
            ("Claim", found["claim"] or "none was given"), ("Does it hold?", join([state, found["sentence"]]))]
    blocks.append(tag("div", tag("h3", "As a safety performance indicator"), tag(
        "p", "An indicator is a metric with a threshold that a claim of a safety case rests on: beyond the threshold "
        f"the claim is false. {words['sources']['ul4600']}"), table([Column("Part"), Column("Here", wide=True)], rows),
        class_="keep"))
    return join(blocks)


def _origin(facts: Mapping) -> Safe:
    corpus, model = facts["corpus"], facts["corpus"]["model"]
    trained = "not known here" if model is None else (
        f"{model['trained_on']['n']:,} scenarios of {model['trained_on']['drives']:,} drives, data "
        f"{model['trained_on']['fingerprint'][:16]}, seed {model['seed']}")
    view = {"full": "the whole scenario", "context": "what the AV did not cause"}.get(corpus["view"], "imported")
    rows = [("Run", tag("code", facts["run"])), ("Corpus", tag("code", corpus["url"])),
            ("Fingerprint of the corpus", tag("code", corpus["fingerprint"])),
            ("Fingerprint of P", tag("code", facts["source"]["fingerprint"])),
            ("Fingerprint of Q", tag("code", facts["target"]["fingerprint"])),
            ("Latents", tag("code", corpus["latents"])), ("They show", view), ("Encoder trained on", trained),
            ("Engine", facts["engine"]), *((name, value) for name, value in facts["versions"].items())]
    settings = [(tag("code", name), str(value), "" if value == default else str(default), what)
                for name, value, default, what in settings_table(facts["config"])]
    return join([
        tag("p", "Equal runs are equal data, latents, settings and engine, and give equal numbers. Every random choice "
            f"follows from the seed {facts['config']['seed']}."),
        table([Column("What"), Column("Value", wide=True)], rows),
        tag("h3", "Every setting"),
        table([Column("Setting"), Column("Value", True), Column("Default, where it differs", True),
               Column("What it does", wide=True)], settings),
    ])
