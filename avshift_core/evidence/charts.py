"""The charts of a pack, drawn from its facts: the band of the verdict, estimates, clips, steps, balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10, sqrt

from avshift_core.evidence.markup import Safe, join
from avshift_core.evidence.numbers import rate, signed
from avshift_core.evidence.svg import (
    WIDTH,
    across,
    box,
    decimals,
    fitted,
    line,
    linear,
    mark,
    padded,
    path,
    percent_axis,
    picture,
    text,
    ticks,
    upright,
)

LEFT = 178  # pixels of the names on the left
RIGHT = WIDTH - 16
ROW = 26
LEAST_COLUMN = 54  # pixels of a column of the steps
PERFECT = 0.5  # advantage of a classifier without errors
BANDS = (("no-shift", "no shift"), ("localize", "moderate: localize"), ("global", "global"))
BAND_TICKS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SWEPT = {  # estimator -> dash and mark of its line, so that they are told apart without colour
    "strata": ("solid", "diamond"), "lis": ("dash", "circle"), "lis_paper": ("dot", "square"),
    "balance": ("dashdot", "up"), "ipw": ("dash", "down"), "aipw": ("dot", "circle"),
}
CLIP_TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
NEGLIGIBLE = 0.1  # standardised difference, as in the love plot of the dashboard


def band(verdict: Mapping, config: Mapping) -> Safe:
    """Advantage and bounds of P against Q, and of each cohort against itself, on a square-root axis."""
    place = linear(0, sqrt(PERFECT), LEFT, RIGHT)
    edges = (0.0, config["gamma_small"], config["gamma_large"], PERFECT)
    top, bottom = 24, 24 + 3 * ROW + 8
    parts = []
    for (kind, words), low, high in zip(BANDS, edges[:-1], edges[1:], strict=True):
        a, b = place(sqrt(low)), place(sqrt(high))
        parts.append(box(a, top, b - a, bottom - top, f"band {kind}"))
        parts.append(text((a + b) / 2, top - 8, fitted(words, b - a + 14), at="middle", class_="tick"))
    shown = [t for t in BAND_TICKS if t in edges or all(abs(sqrt(t) - sqrt(e)) > 0.05 for e in edges[1:3])]
    for t in sorted({*shown, *edges}):
        parts += [line(place(sqrt(t)), bottom, place(sqrt(t)), bottom + 4, "tickline"),
                  text(place(sqrt(t)), bottom + 17, f"{t:g}", at="middle", class_="tick")]
    parts.append(text((LEFT + RIGHT) / 2, bottom + 35, "Advantage over chance (square-root scale)", at="middle",
                      class_="axis"))
    rows = (("P against Q", verdict, "headline", "diamond", 7), ("P against itself", verdict["aa"]["source"], "p open",
            "circle", 5), ("Q against itself", verdict["aa"]["target"], "q open", "square", 5))
    for i, (name, value, kind, shape, size) in enumerate(rows):
        y = top + ROW * (i + 0.65)
        low, at, high = (place(sqrt(max(value[key], 0.0))) for key in ("gamma_lcb", "gamma_hat", "gamma_ucb"))
        parts += [text(LEFT - 10, y + 4, name, at="end"), across(low, high, y, kind), mark(shape, at, y, kind, size)]
    return picture(bottom + 44, *parts, alt=f"Advantage {verdict['gamma_hat']:.3f}, between {verdict['gamma_lcb']:.3f} "
                   f"and {verdict['gamma_ucb']:.3f}; thresholds {edges[1]:g} and {edges[2]:g}")


def estimates(metric: Mapping, threshold: float | None = None) -> Safe:
    """Every estimate with its interval; the headline large, open marks where it is withheld."""
    rows = list(metric["estimates"].items())
    values = [e["value"] for _, e in rows if e["value"] is not None]
    ends = [v for e in values for v in (e["lo"], e["hi"])] + ([] if threshold is None else [threshold])
    low, high = padded(ends, 0.01)
    low = max(low, 0.0) if min(ends) >= 0 else low
    place, top = linear(low, high, LEFT, RIGHT - 60), 8
    bottom = top + ROW * len(rows) + (12 if threshold is None else 24)
    parts = [percent_axis(place, low, high, top, bottom, "Event rate")]
    for i, (name, e) in enumerate(rows):
        y = top + ROW * (i + 0.6)
        parts.append(text(LEFT - 10, y + 4, e["label"], at="end"))
        if e["value"] is None:
            parts.append(text(LEFT + 6, y + 4, e["missing"], class_="tick"))
            continue
        kind, shape, size = _look(name, metric["headline"])
        parts += [across(place(e["value"]["lo"]), place(e["value"]["hi"]), y, kind),
                  mark(shape, place(e["value"]["mu"]), y, kind, size),
                  text(WIDTH - 2, y + 4, rate(e["value"]["mu"]), at="end", class_="value")]
    if threshold is not None:
        parts += [line(place(threshold), top, place(threshold), bottom, "claim"),
                  text(place(threshold), bottom - 4, f"threshold {rate(threshold)}", at="middle", class_="tick")]
    told = ", ".join(f"{e['label']} {rate(e['value']['mu'])}" for _, e in rows if e["value"] is not None)
    return picture(bottom + 42, *parts, alt=f"Event rates: {told}")


def clips(metric: Mapping) -> Safe:
    """Every estimate over the clips, the chosen one marked; below, what the weights are worth."""
    swept, B, main = metric["sweep"], metric["B"], metric["headline"] or "strata"
    x = linear(log10(swept[0]["B"]), log10(swept[-1]["B"]), 60, RIGHT - 8)
    at = lambda row: x(log10(row["B"]))  # noqa: E731
    names = [name for name in SWEPT if swept[0][name] is not None]
    ends = [v for row in swept for v in (row[main]["lo"], row[main]["hi"], row["naive"]["mu"], row["target"]["mu"],
                                         *(row[name]["mu"] for name in names))]
    low, high = padded(ends, 0.005)
    y, top, bottom = linear(low, high, 236, 10), 10, 236
    kind = "headline" if metric["headline"] else "neutral"
    parts = [_rate_grid(y, low, high, 60, RIGHT - 8)]
    area = [(at(row), y(row[main]["hi"])) for row in swept] + [(at(row), y(row[main]["lo"])) for row in swept[::-1]]
    parts.append(path(area, f"area {kind}", closed=True))
    for name, cls in (("naive", "p"), ("target", "q dash")):
        parts.append(line(at(swept[0]), y(swept[0][name]["mu"]), at(swept[-1]), y(swept[0][name]["mu"]), f"line {cls}"))
    for name in names:
        dash, shape = SWEPT[name]
        cls = kind if name == main else "neutral"
        parts.append(path([(at(r), y(r[name]["mu"])) for r in swept], f"line {dash} {cls}"))
        parts += [mark(shape, at(r), y(r[name]["mu"]), cls if name == main else "neutral open",
                       4 if name == main else 2.5) for r in swept]
    parts.append(line(x(log10(B)), top, x(log10(B)), 330, "claim"))
    parts.append(text(x(log10(B)), bottom + 16, f"clip {B:g}", at="middle", class_="value"))
    parts.append(_worth(swept, at))
    for t in [t for t in CLIP_TICKS if swept[0]["B"] <= t <= swept[-1]["B"]]:
        parts.append(text(x(log10(t)), 346, f"{t:g}", at="middle", class_="tick"))
    parts.append(text((60 + RIGHT) / 2, 364, "Clip B (logarithmic)", at="middle", class_="axis"))
    parts.append(_legend(names, main, kind, metric))
    return picture(424, *parts, alt=f"Every estimate over clips from {swept[0]['B']:g} to {swept[-1]['B']:g}; at clip "
                   f"{B:g} {rate(metric['estimates'][main]['value']['mu'])}")


def steps(metric: Mapping) -> Safe:
    """From the rate of P to that of Q: what every region and the rest adds, and what is left over."""
    value = {name: e["value"] for name, e in metric["estimates"].items()}
    level, moves = value["naive"]["mu"], [(c["name"], c["move"]) for c in metric["contributions"]]
    columns: list[tuple] = [("rate", "Observed in P", value["naive"], "p", "circle")]
    for name, move in moves:
        columns.append(("step", name, move, level))
        level += move["mu"]
    shown = ("headline", "diamond") if metric["headline"] else ("neutral open", "diamond")
    columns.append(("rate", "Calibrated", value["strata"], *shown))
    columns.append(("step", "left over", metric["residual"], level))
    columns.append(("rate", "Observed in Q", value["target"], "q", "square"))
    ends = [v for c in columns for v in ((c[2]["lo"], c[2]["hi"]) if c[0] == "rate" else
                                         (c[3], c[3] + c[2]["lo"], c[3] + c[2]["hi"], c[3] + c[2]["mu"]))]
    low, high = padded(ends, 0.005, 0.12)
    y, left = linear(low, high, 238, 8), 60
    width = max(WIDTH, left + LEAST_COLUMN * len(columns))  # many regions: the whole picture becomes smaller
    wide = (width - 16 - left) / len(columns)
    parts = [_rate_grid(y, low, high, left, width - 16)]
    for i, column in enumerate(columns):
        x = left + wide * (i + 0.5)
        parts.append(_column(column, x, wide, y))
        parts += [text(x, 256 + 13 * k, word, at="middle", class_="tick")
                  for k, word in enumerate(_two_lines(column[1], wide))]
    told = ", ".join(f"{name} {signed(100 * move['mu'])}" for name, move in moves)
    return picture(288, *parts, width=width, alt=f"From {rate(value['naive']['mu'])} in P by {told} points to "
                   f"{rate(value['strata']['mu'])} calibrated; observed in Q {rate(value['target']['mu'])}")


def balance(rows: Sequence[Mapping]) -> Safe:
    """Standardised differences before (open) and after weighting (filled), with the intervals of the latter."""
    ends = [abs(v) for r in rows for v in (r["before"], r["after"], r["after_lo"], r["after_hi"]) if v is not None]
    far = 1.05 * max([2 * NEGLIGIBLE, *ends])
    left, top, high = 250, 22, 19
    place, bottom = linear(-far, far, left, RIGHT - 4), top + high * len(rows) + 6
    near = place(NEGLIGIBLE) - place(-NEGLIGIBLE)
    parts = [box(place(-NEGLIGIBLE), top - 4, near, bottom - top + 4, "band no-shift")]
    for t in ticks(-far, far):
        parts += [line(place(t), top - 4, place(t), bottom, "grid"),
                  text(place(t), bottom + 15, signed(t, 1) if t else "0", at="middle", class_="tick")]
    for i, r in enumerate(rows):
        y = top + high * (i + 0.55)
        parts.append(text(left - 8, y + 4, fitted(r["label"], left - 12), at="end", class_="small"))
        if r["after_lo"] is not None and r["after_hi"] is not None:
            parts.append(across(place(r["after_lo"]), place(r["after_hi"]), y, "headline", 3))
        parts += [mark("circle", place(r["before"]), y, "neutral open", 4),
                  mark("diamond", place(r["after"]), y, "headline", 4.5)]
    parts += [mark("circle", left + 8, 8, "neutral open", 4), text(left + 17, 12, "before", class_="tick"),
              mark("diamond", left + 78, 8, "headline", 4.5), text(left + 88, 12, "after weighting", class_="tick"),
              text((left + RIGHT) / 2, bottom + 33, "Difference in standard deviations, Q minus P", at="middle",
                   class_="axis")]
    return picture(bottom + 40, *parts, alt="Standardised differences before and after weighting: " + ", ".join(
        f"{r['label']} {signed(r['before'])} to {signed(r['after'])}" for r in rows[:5]))


def _look(name: str, headline: str | None) -> tuple[str, str, float]:
    """Class, shape and size of an estimate's mark."""
    if name == headline:
        return "headline", "diamond", 7
    return {"naive": ("p", "circle", 5), "target": ("q", "square", 5)}.get(name, ("neutral open", "circle", 4.5))


def _rate_grid(y, low: float, high: float, left: float, right: float) -> Safe:
    found = ticks(low, high)
    places = decimals(found)
    return join(join([line(left, y(t), right, y(t), "grid"),
                      text(left - 6, y(t) + 4, f"{100 * t:.{places}f} %", at="end", class_="tick")]) for t in found)


def _worth(swept: Sequence[Mapping], at) -> Safe:
    """Effective share of P and share of Q lost to the clip, in a strip of their own."""
    y = linear(0, 1, 328, 268)
    parts = [join([line(60, y(t), RIGHT - 8, y(t), "grid"), text(54, y(t) + 4, f"{t:.0%}", at="end", class_="tick")])
             for t in (0.0, 0.5, 1.0)]
    for key, dash, words, up in (("effective_share", "solid", "effective share of P", True),
                                 ("clipped_mass", "dash", "share of Q lost to the clip", False)):
        parts.append(path([(at(r), y(r[key])) for r in swept], f"line {dash} neutral"))
        row = swept[len(swept) // 3]
        parts.append(text(at(row), y(row[key]) + (-6 if up or row[key] < 0.6 else 14), words, class_="tick"))
    return join(parts)


def _legend(names: Sequence[str], main: str, kind: str, metric: Mapping) -> Safe:
    """Every line with its mark and name, three in a row."""
    entries = [("line p", None, "Observed in P"), ("line q dash", None, "Observed in Q")]
    entries += [(f"line {SWEPT[n][0]} {kind if n == main else 'neutral'}", SWEPT[n][1], metric["estimates"][n]["label"])
                for n in names]
    parts = []
    for i, (cls, shape, words) in enumerate(entries):
        x, y = 60 + 205 * (i % 3), 384 + 16 * (i // 3)
        parts.append(line(x, y, x + 26, y, cls))
        if shape:
            parts.append(mark(shape, x + 13, y, kind if "neutral" not in cls else "neutral open", 3))
        parts.append(text(x + 32, y + 4, words, class_="tick"))
    return join(parts)


def _column(column: tuple, x: float, wide: float, y) -> Safe:
    if column[0] == "rate":
        _, _, value, kind, shape = column
        return join([upright(y(value["lo"]), y(value["hi"]), x, kind), mark(shape, x, y(value["mu"]), kind, 6),
                     text(x, y(value["hi"]) - 6, rate(value["mu"]), at="middle", class_="value")])
    _, _, move, level = column
    base, end = y(level), y(level + move["mu"])
    half = min(wide * 0.34, 24)
    kind = "step up" if move["mu"] >= 0 else "step down"
    return join([box(x - half, min(base, end), 2 * half, max(abs(base - end), 0.8), kind),
                 upright(y(level + move["lo"]), y(level + move["hi"]), x, "neutral"),
                 line(x + half, end, x + wide - half, end, "carry"),
                 text(x, min(y(level + move["hi"]), base) - 6, signed(100 * move["mu"]), at="middle", class_="tick")])


def _two_lines(words: str, room: float) -> list[str]:
    """A name in one line, or in two at a space where it is too long."""
    if len(words) * 6 <= room or " " not in words:
        return [words]
    first, _, rest = words.partition(" ")
    return [first, rest]
