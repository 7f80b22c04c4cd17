"""What the points of a map can be coloured by: categories with one colour each, numbers on a scale with a bar."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2, log10

import numpy as np

from avshift_core.comparison import Comparison
from avshift_core.latent.pack import MISSING, MOST_WEIGHT, TOP_LEVEL, Categories, Scale, Words
from avshift_core.latent.project import Smoothed
from avshift_core.plots import theme
from avshift_core.quality.cluster_report import Partition
from avshift_core.scenario.schema import CATEGORIES
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.local import TARGET_HEAVY
from avshift_core.shift.selected import region_code

COHORTS = {"light": (theme.P, theme.Q), "dark": ("#3D9BE0", "#F28C38")}  # brighter on a dark page
# Thirteen that stay apart, none of them P's blue or Q's orange; the last two only for the rarest.
PALETTE = ("#009E73", "#CC79A7", "#E6A700", "#6A51A3", "#17A2B8", "#8C564B", "#A3A500", "#E31A6C", "#4D9221", "#9E9AC8",
           "#5B7A99", "#C7A27C")
OTHER = theme.NEUTRAL
OUTSIDE_COLOUR = {"light": "#B5B5B5", "dark": "#5E5E5E"}
# viridis (van der Walt and Smith), light where there is little on a light page, dark on a dark one
SEQUENTIAL = {
    "light": ("#B8DE29", "#5EC962", "#28AE80", "#21918C", "#2C728E", "#3B528B", "#472D7B", "#440154"),
    "dark": ("#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EC962", "#ADDC30", "#FDE725"),
}
DIVERGING = {"light": (theme.P, "#C9C9C9", theme.Q), "dark": (COHORTS["dark"][0], "#5A5A5A", COHORTS["dark"][1])}
TRIMMED = 0.01  # share of the values beyond each end of a scale
TICKS = 5
COMMON = {  # key -> label of what every comparison may have
    "cohort": "Cohort (P or Q)", "category": "Category", "av_version": "AV version", "cluster": "Cluster",
    "h": "Score h", "h_bar": "Smoothed score", "region": "Region", "weight": "Weight at the clip",
    "event": "Event (chosen metric)",
}
SCORE_NOTE = "Below 0.5 a scenario looks like P, above like Q, to a classifier that has not seen its drive."


def colour_options(comparison: Comparison, attributes: Attributes) -> dict[str, str]:
    """Key -> label of what the map of a comparison can be coloured by; attributes are `a.COLUMN`."""
    missing = {name for name in ("category", "av_version") if attributes.category(name) is None}
    if comparison.analysis.local is None:
        missing.add("region")
    if not comparison.metrics:
        missing |= {"event"}
    found = {key: label for key, label in COMMON.items() if key not in missing}
    others = [a for a in (*attributes.categories, *attributes.numbers) if a.column not in ("category", "av_version")]
    return found | {f"a.{a.column}": a.label for a in sorted(others, key=lambda a: a.label.lower())}


def colouring(
    key: str, comparison: Comparison, attributes: Attributes, *, B: float, metric: str | None,
    smoothed: Smoothed | None = None, partition: Partition | None = None,
) -> Categories | Scale:
    """The colours of all pooled rows.

    Args:
        key: of colour_options. B, metric: for "weight" and "event".
        smoothed: for "h_bar"; partition: for "cluster".
    """
    analysis = comparison.analysis
    if key in ("category", "av_version") or key.startswith("a."):
        return _attribute(attributes, key.removeprefix("a."))
    if key == "cluster":
        return _groups(partition)
    if key in ("h", "h_bar"):
        h = smoothed.h_bar if key == "h_bar" else np.concatenate(
            [analysis.global_test.h_P, analysis.global_test.h_Q])
        note = SCORE_NOTE if key == "h" else f"Mean score of the {smoothed.k} nearest neighbours. {SCORE_NOTE}"
        return around(COMMON[key], h, 0.5, note=note)
    if key == "region":
        return _regions(analysis)
    if key == "weight":
        return _weights(analysis, B)
    if key == "event":
        value = np.concatenate([analysis.P.ell[metric], analysis.Q.ell[metric]])
        return _categories(
            f"Event: {comparison.phrase(metric)}", ("no event", "event"), value > 0,
            {"light": (OUTSIDE_COLOUR["light"], theme.HEADLINE), "dark": (OUTSIDE_COLOUR["dark"], "#D98BE8")},
            weight=(1, MOST_WEIGHT), note="Events stand in front of the others.")
    return _cohorts(analysis)


def words_of(comparison: Comparison, attributes: Attributes, partition: Partition | None = None) -> tuple[Words, ...]:
    """What a hint says about every scenario."""
    analysis = comparison.analysis
    found = [Words("Cohort", (f"P · {analysis.P.name}", f"Q · {analysis.Q.name}"), analysis.sample.y.astype(np.uint8))]
    category = attributes.category("category")
    if category is not None:
        found.append(Words("Category", category.texts, _code(category.code)))
    if partition is not None:
        names = tuple(f"{k + 1}: {name}" for k, name in enumerate(partition.names))
        found.append(Words("Cluster", names, _code(partition.cluster)))
    return tuple(found)


# Categories --------------------------------------------------------------------------------------------------------


def _code(code) -> np.ndarray:
    return np.where(code < 0, MISSING, code).astype(np.uint8)


def _categories(title: str, names, code, colours, weight=None, note: str = "") -> Categories:
    code = np.asarray(code, dtype=np.int64)
    counts = np.bincount(code[code >= 0], minlength=len(names))
    return Categories(title, tuple(names), tuple(colours["light"]), tuple(colours["dark"]), _code(code),
                      tuple(weight or (1,) * len(names)), tuple(counts.tolist()), note)


def even_weights(n_P: int, n_Q: int, most: int = MOST_WEIGHT) -> tuple[int, int]:
    """Whole numbers near 1 / n_P : 1 / n_Q, so that a mixed colour is neutral where both have the same share.

    >>> even_weights(90_000, 90_000), even_weights(2000, 3000), even_weights(100, 1)
    ((1, 1), (3, 2), (1, 24))
    """
    few, many = sorted((max(n_P, 1), max(n_Q, 1)))
    ratio = min(many / few, most)
    fitting = [b for b in range(1, most + 1) if round(ratio * b) <= most]
    down = min(fitting, key=lambda b: (abs(round(ratio * b) / b - ratio), b))
    up = round(ratio * down)
    return (up, down) if n_P <= n_Q else (down, up)


def _cohorts(analysis) -> Categories:
    P, Q = analysis.P, analysis.Q
    weight = even_weights(P.n, Q.n)
    note = "" if weight == (1, 1) else "Mixed colours count P and Q by their shares, not by their numbers."
    return _categories("Cohort", (f"P · {P.name}", f"Q · {Q.name}"), analysis.sample.y, COHORTS, weight, note)


def _attribute(attributes: Attributes, column: str) -> Categories | Scale:
    number = attributes.number(column)
    if number is not None:
        return trimmed(number.label, number.unit, number.values)
    a = attributes.category(column)
    return named(a.label, a.levels, a.texts, a.code)


def named(title: str, levels: Sequence[str], texts: Sequence[str], code) -> Categories:
    """Levels with a colour each, the most frequent first; beyond the palette they share one grey.

    A scenario category has the same colour in every comparison.
    """
    count = np.bincount(code[code >= 0], minlength=len(levels))
    order = np.argsort(-count, kind="stable")
    own = [level for level in CATEGORIES if level != "general"]
    colour = {level: PALETTE[i] for i, level in enumerate(own)} | {"general": OTHER}
    if not set(levels) <= set(colour):
        colour = {levels[k]: PALETTE[i] for i, k in enumerate(order[: len(PALETTE)])}
    shown = [k for k in order if levels[k] in colour]
    place = np.full(len(levels) + 1, len(shown))
    place[shown] = np.arange(len(shown))
    place[-1] = -1
    hues = [colour[levels[k]] for k in shown]
    names = [texts[k] for k in shown]
    rest = len(levels) - len(shown)
    if rest:
        names, hues = [*names, f"{rest} others"], [*hues, OTHER]
    return _categories(title, names, place[code], {"light": hues, "dark": hues})


def _regions(analysis) -> Categories:
    """Regions in the colour of the cohort that there is more of, and places without support."""
    local = analysis.local
    code, titles = region_code(analysis)
    heavy = [r.direction == TARGET_HEAVY for r in local.regions]
    told = [*(f"more of {'Q' if more else 'P'}" for more in heavy), *("hardly any P" for _ in local.overlap_violations)]
    names = ["in no region", *(f"{title} ({more})" for title, more in zip(titles, told, strict=True))]
    colours = {theme_: [OUTSIDE_COLOUR[theme_], *(pq[int(more)] for more in heavy),
                        *(theme.HEADLINE for _ in local.overlap_violations)] for theme_, pq in COHORTS.items()}
    return _categories("Region", names, code + 1, colours)


def _groups(partition: Partition) -> Categories:
    hues = [PALETTE[g % len(PALETTE)] for g in range(len(partition.group_names))]
    return _categories("Group of clusters", partition.group_names, partition.group[partition.cluster],
                       {"light": hues, "dark": hues}, note="Numbers on the map are clusters.")


# Scales ------------------------------------------------------------------------------------------------------------


def _levels(values, low: float, high: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        level = np.rint((np.clip(values, low, high) - low) * (TOP_LEVEL / (high - low)))
    return np.where(np.isfinite(values), level, MISSING).astype(np.uint8)


def trimmed(title: str, unit: str, values) -> Scale:
    """A number from its 1 % to its 99 % quantile; the few values beyond have the colours of the ends."""
    known = values[np.isfinite(values)]
    low, high = (float(v) for v in np.quantile(known, (TRIMMED, 1 - TRIMMED)))
    if high <= low:
        low, high = float(known.min()), float(known.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    beyond = float(((known < low) | (known > high)).mean())
    note = f"{100 * beyond:.1f} % of the values lie beyond the ends." if beyond > 0 else ""
    return Scale(title, unit, _levels(values, low, high), low, high, False, _ticks(low, high), SEQUENTIAL["light"],
                 SEQUENTIAL["dark"], int((~np.isfinite(values)).sum()), note)


def around(title: str, values, middle: float, unit: str = "", note: str = "") -> Scale:
    """A number with a neutral middle, as far to both sides as 99 % of the values."""
    far = max(float(np.quantile(np.abs(values - middle), 1 - TRIMMED)), 0.02)
    low, high = middle - far, middle + far
    return Scale(title, unit, _levels(values, low, high), low, high, False, _ticks(low, high), DIVERGING["light"],
                 DIVERGING["dark"], int((~np.isfinite(values)).sum()), note)


def _weights(analysis, B: float) -> Scale:
    """Weights of P's scenarios on a logarithmic scale with 1 in the middle; Q's have none."""
    w = analysis.calibrator.cells.weights(B)
    bits = np.log2(np.maximum(w, 1e-6))
    far = min(max(float(np.quantile(np.abs(bits), 1 - TRIMMED)), 0.25), log2(1000))
    values = np.concatenate([bits, np.full(analysis.Q.n, np.nan)])
    steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
    if far < 1.2:
        steps = [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2]
    shown = [s for s in steps if abs(log2(s)) <= far * 1.001]
    ticks = tuple(((log2(s) + far) / (2 * far) * TOP_LEVEL, f"{s:g}") for s in shown)
    return Scale(f"Weight at clip {B:g}", "", _levels(values, -far, far), -far, far, True, ticks, DIVERGING["light"],
                 DIVERGING["dark"], analysis.Q.n, "What a scenario of P counts in the traffic of Q. Q's have none.")


def _ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round values along a scale, and where they are.

    >>> [text for _, text in _ticks(0.0, 1.0)], [text for _, text in _ticks(-3.0, 140.0)]
    (['0', '0.2', '0.4', '0.6', '0.8', '1'], ['0', '50', '100'])
    """
    rough = (high - low) / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(f * size for f in (1, 2, 5, 10) if f * size >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    return tuple(((v - low) / (high - low) * TOP_LEVEL, f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.6g}") for v in values)
