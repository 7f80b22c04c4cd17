"""A proposed name of a region or cluster, from what sets it apart: "cut-ins by vehicles over 9 m, 3.1 x in P".

A name describes most of the scenarios, it does not prove anything: the profile beside it has the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from avshift_core.shift import phrases
from avshift_core.shift.attributes import Attributes
from avshift_core.shift.differences import NUMBER, SHARE, Difference
from avshift_core.shift.profile import profile

LONGEST = 60  # characters: one line of a table
LONG_WORD = 34  # characters of a level that nobody has words for
MOST = 0.55  # share of the scenarios that a word has to fit
JOINT = 0.5  # the same for all words of a name at once
SECOND = 0.25  # share of the second category in "jaywalking or yielding"
APART = 0.5  # standardised difference from which a level is worth a word
FAR = 0.7  # the same for a number, which needs a threshold besides
MORE_OFTEN = 1.25  # inside / outside from which a level is worth a word
EXTRA = 2  # pieces beside what happens and who does it
SEPARATES = 0.35  # share beyond a threshold inside less that outside, from which it is worth a word
SLACK = 0.04  # of that difference that a rounder threshold may cost
FINE = 400  # thresholds that are tried
LEAD = ("category", "turn_type", "cutin_type", "actor_type")
KNOWN = (*LEAD, "road_type", "hour")


@dataclass(frozen=True)
class Piece:
    """One part of a name.

    Attributes:
        strength: the standardised difference it rests on.
        met: (m,) which of the rows that are named it is true of; not where the value is missing.
    """

    column: str
    text: str
    strength: float
    met: np.ndarray = field(compare=False)

    @property
    def comma(self) -> bool:
        return not self.text.startswith(phrases.JOINED)


def ratio_words(p: float, q: float) -> str:
    """How much more often one cohort is there.

    >>> ratio_words(0.01, 0.031), ratio_words(0.024, 0.01), ratio_words(0.0, 0.1), ratio_words(0.01, 0.0102)
    ('3.1 x in Q', '2.4 x in P', 'only in Q', 'as often in P as in Q')
    """
    low, high, more = (p, q, "Q") if q >= p else (q, p, "P")
    if high <= 0 or (low > 0 and high / low < 1.05):
        return "as often in P as in Q"
    if low <= 0:
        return f"only in {more}"
    ratio = high / low
    return f"{ratio:.1f} x in {more}" if ratio < 9.95 else f"{ratio:.0f} x in {more}" if ratio < 99.5 else \
        f"over 99 x in {more}"


def name_set(
    table: Attributes, mask, drive, *, p: float | None = None, q: float | None = None, fallback: str = "region",
    differences: Sequence[Difference] | None = None,
) -> str:
    """The proposed name of the rows in `mask`, at most 60 characters.

    Args:
        p, q: masses under P and Q, for the words on how much more of one there is.
        fallback: the name where no attribute tells anything.
        differences: `profile(table, mask, drive)`, where it is at hand.
    """
    return name_sets(table, [mask], drive, masses=None if p is None else [(p, q)], fallbacks=[fallback],
                     differences=None if differences is None else [differences])[0]


def name_sets(
    table: Attributes, masks: Sequence, drive, *, masses=None, fallbacks: Sequence[str] | None = None,
    differences: Sequence[Sequence[Difference]] | None = None,
) -> tuple[str, ...]:
    """Names of several sets of rows; sets that would be called the same get a word on what tells them apart.

    Args:
        masks: (n,) bool each, disjoint; masses: (p, q) of each; fallbacks: a name each for sets without attributes.
    """
    masks = [np.asarray(mask, dtype=bool) for mask in masks]
    found = differences or [profile(table, mask, drive) for mask in masks]
    tails = [""] * len(masks) if masses is None else [f", {ratio_words(*mass)}" for mass in masses]
    room = [LONGEST - len(tail) for tail in tails]
    pieces = [_pieces(table, mask, d) for mask, d in zip(masks, found, strict=True)]
    bodies = [_body(own, space) for own, space in zip(pieces, room, strict=True)]
    for same in _alike(bodies):
        for i in same:
            fresh = _contrast(table, i, same, masks, drive, bodies[i])
            bodies[i] = _body(pieces[i], room[i], fresh) if fresh else bodies[i]
    fallbacks = fallbacks or [f"set {i + 1}" for i in range(len(masks))]
    bodies = [body or fallback[:space] for body, fallback, space in zip(bodies, fallbacks, room, strict=True)]
    for same in _alike(bodies):
        for place, i in enumerate(same, start=1):
            bodies[i] = f"{_cut(bodies[i], room[i] - 5)} ({place})"
    return tuple(body + tail for body, tail in zip(bodies, tails, strict=True))


def threshold(inside, outside, *, whole: bool = False) -> float | None:
    """A round number that separates two sets of values, None where none does.

    Among thresholds that separate nearly as well as the best, those in the half towards the inner values say more, and
    of these the roundest is taken: "over 8 m", not "over 5.93 m".

    >>> threshold(np.array([8.2, 9.5, 11.0, 12.5]), np.array([4.1, 4.4, 4.9, 5.3]))
    8.0
    >>> threshold(np.array([3, 4, 5]), np.array([0, 0, 1, 2]), whole=True)      # "3 or more"
    3.0
    """
    a, b = (np.sort(np.asarray(v, dtype=float)[np.isfinite(v)]) for v in (inside, outside))
    if not len(a) or not len(b):
        return None
    low, high = np.quantile(np.concatenate([a, b]), [0.001, 0.999])
    if high <= low:
        return None
    grid = np.arange(np.ceil(low), np.floor(high) + 1) if whole else np.linspace(low, high, FINE)
    up = bool(a.mean() > b.mean())
    below = [np.searchsorted(v, grid, side="left") / len(v) for v in (a, b)]
    beyond = [1 - share for share in below] if up else below
    score = np.where(beyond[0] >= MOST, beyond[0] - beyond[1], 0.0)
    if not len(grid) or score.max() < SEPARATES:
        return None
    good = grid[score >= score.max() - SLACK]
    if whole:
        return float(good[-1] if up else good[0])
    ends = (good[-1], (good[0] + good[-1]) / 2) if up else (good[0], (good[0] + good[-1]) / 2)
    return _roundest(min(ends), max(ends))


def _roundest(low: float, high: float) -> float:
    """The number with the fewest digits in a range: multiples of 5, 2 and 1 times powers of ten, coarse ones first.

    >>> _roundest(6.6, 8.2), _roundest(4.85, 7.4), _roundest(0.031, 0.034)
    (8.0, 5.0, 0.032)
    """
    top = int(np.ceil(np.log10(max(abs(low), abs(high), 1e-9))))
    for power in range(top, top - 6, -1):
        for step in (5, 2, 1):
            size = step * 10.0 ** (power - 1)
            found = np.round(np.ceil(low / size - 1e-9) * size, 9)
            if found <= high * (1 + 1e-9) if high >= 0 else found <= high * (1 - 1e-9):
                return float(found)
    return float(f"{(low + high) / 2:.3g}")


def _pieces(table: Attributes, mask, differences: Sequence[Difference]) -> list[Piece]:
    """All parts that would fit: what happens and who does it, then the others, the strongest first."""
    told = [d for d in differences if d.kind == SHARE and _tells(d)]
    first = {column: next((d for d in told if d.column == column), None) for column in KNOWN}
    category = first["category"].level if first["category"] else None
    lead = [*_event(table, mask, differences, first["category"], first["turn_type"]),
            *_who(table, mask, category, first)]
    rest = []
    if (road := first["road_type"]) and road.level in phrases.WHERE:
        rest.append(Piece("road_type", phrases.WHERE[road.level], road.smd, _has(table, mask, road)))
    if hour := first["hour"]:
        text = phrases.WHEN.get(hour.level.split(",")[0], _plain(hour))
        rest.append(Piece("hour", text, hour.smd, _has(table, mask, hour)))
    rest += [Piece(d.column, _plain(d), d.smd, _has(table, mask, d)) for d in told if d.column not in KNOWN]
    for d in differences:
        if d.kind == NUMBER and (d.column not in phrases.OF_CUTIN or category == "agent_cutting_in"):
            rest += _number(table, mask, d)
    rest.sort(key=lambda piece: -piece.strength)
    if not lead:
        lead = _mixture(mask, differences, bool(rest))
    return [*lead, *rest]


def _tells(d: Difference) -> bool:
    return d.inside >= MOST and d.smd >= APART and (d.ratio is None or d.ratio >= MORE_OFTEN) and not d.lo <= 0


def _has(table: Attributes, mask, *levels: Difference) -> np.ndarray:
    """(m,) which rows in `mask` have one of some levels of a column."""
    read = table.category(levels[0].column)
    return np.isin(read.code[mask], [read.levels.index(d.level) for d in levels])


def _event(table: Attributes, mask, differences, category: Difference | None, turn: Difference | None) -> list[Piece]:
    """What happens: a turn rather than everyday driving, a category, or two of them."""
    if turn and turn.level in phrases.TURNS and (category is None or category.level in phrases.EVERYDAY):
        return [Piece("turn_type", phrases.TURNS[turn.level], turn.smd, _has(table, mask, turn))]
    if category:
        text = phrases.EVENTS.get(category.level, (_plain(category), ""))[0]
        return [Piece("category", text, category.smd, _has(table, mask, category))]
    two = [d for d in differences if d.column == "category" and d.inside >= SECOND and d.smd > 0]
    two = sorted((d for d in two if d.level in phrases.EVENTS), key=lambda d: -d.inside)
    if len(two) >= 2 and two[0].inside + two[1].inside >= MOST and two[0].smd >= APART:
        text = " or ".join(phrases.EVENTS[d.level][0] for d in two[:2])
        return [Piece("category", text, two[0].smd, _has(table, mask, *two[:2]))]
    return []


def _mixture(mask, differences, more: bool) -> list[Piece]:
    """Where nothing prevails: the two most frequent categories, or just "scenarios" when other words follow."""
    common = sorted((d for d in differences if d.column == "category" and d.level in phrases.EVENTS and d.inside > 0.1),
                    key=lambda d: -d.inside)
    any_row = np.ones(int(mask.sum()), dtype=bool)
    if not common:
        return [Piece("category", "scenarios", 0.0, any_row)] if more else []
    text = "mixed scenarios" if more else "mixed: " + ", ".join(phrases.EVENTS[d.level][0] for d in common[:2])
    return [Piece("category", text, 0.0, any_row)]


def _who(table: Attributes, mask, category: str | None, first) -> list[Piece]:
    who = first["cutin_type"] if category == "agent_cutting_in" else first["actor_type"]
    if category not in phrases.EVENTS or who is None or who.level not in phrases.WHO:
        return []
    if phrases.IMPLIED.get(category) == who.level:
        return []
    text = f"{phrases.EVENTS[category][1]} {phrases.WHO[who.level]}"
    return [Piece(who.column, text, who.smd, _has(table, mask, who))]


def _plain(d: Difference) -> str:
    """A level of a column that this package has no words for: "weather rain"; long ones are cut."""
    column, _, level = d.label.partition(": ")
    text = level if d.column == "category" else column.lower() if level == "yes" else f"{column.lower()} {level}"
    return text if len(text) <= LONG_WORD else f"{text[:LONG_WORD - 1].rstrip()}…"


def _number(table: Attributes, mask, d: Difference) -> list[Piece]:
    strength = abs(d.smd) * (0.5 if d.column in phrases.HALF else 1.0)
    unknown = d.missing_inside > (1 - MOST) * (d.n_inside + d.missing_inside)
    if strength < FAR or d.lo <= 0 <= d.hi or d.column in phrases.SILENT or unknown:
        return []
    plain = f"{d.label.lower()} {{word}} {{t}}{f' {d.unit}' if d.unit else ''}"
    patterns = phrases.NUMBERS.get(d.column, (plain.replace("{word}", "over"), plain.replace("{word}", "under")))
    pattern = patterns[0] if d.smd > 0 else patterns[1]
    values, whole = table.number(d.column).values, d.column in phrases.COUNTS
    t = None if pattern is None else threshold(values[mask], values[~mask], whole=whole)
    if t is not None and d.smd > 0 and t < phrases.LEAST.get(d.column, t):
        return []
    if whole and t == 1:
        pattern = phrases.ONE.get(d.column, pattern)
    if t is None:
        return []
    met = values[mask] >= t if d.smd > 0 else values[mask] < t
    return [Piece(d.column, pattern.replace("{t}", f"{t:g}"), strength, met)] if met.mean() >= JOINT else []


def _body(pieces: Sequence[Piece], room: int, fresh: Sequence[Piece] = ()) -> str:
    """Pieces joined while there is room and at least half of the rows meet them all; of columns that say the same only
    the first. `fresh` comes before the rest.
    """
    lead = [piece for piece in pieces if piece.column in LEAD][:2]
    rest = [*fresh[:1], *(piece for piece in pieces if piece not in lead), *fresh[1:]]
    chosen, used, joint = [], set(), True
    for piece in [*lead, *rest]:
        extra = sum(c not in lead for c in chosen)
        fits = len(_joined([*chosen, piece])) <= room and (not chosen or np.mean(joint & piece.met) >= JOINT)
        if piece.column not in used and fits and (piece in lead or extra < EXTRA):
            chosen.append(piece)
            joint = joint & piece.met
            used |= {piece.column, *(c for group in phrases.GROUPS if piece.column in group for c in group)}
    return _joined(chosen)


def _joined(pieces: Sequence[Piece]) -> str:
    """Who, where, then what follows without a comma, then the others."""
    order = lambda piece: (piece.comma, piece.column not in LEAD, piece.column != "road_type")  # noqa: E731
    head, rest = pieces[:1], sorted(pieces[1:], key=order)
    return "".join([*(p.text for p in head), *(f"{', ' if p.comma else ' '}{p.text}" for p in rest)])


def _cut(text: str, room: int) -> str:
    """Without its last parts, or letters where there is but one, until it fits."""
    while len(text) > room and ", " in text:
        text = text.rpartition(", ")[0]
    return text[:room].rstrip()


def _alike(bodies: Sequence[str]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for i, body in enumerate(bodies):
        if body:
            places.setdefault(body, []).append(i)
    return [same for same in places.values() if len(same) > 1]


def _contrast(table: Attributes, i: int, same, masks, drive, body: str) -> list[Piece]:
    """What tells a set from the others of the same name, the strongest first."""
    rows = np.flatnonzero(np.logical_or.reduce([masks[j] for j in same]))
    inner, mask = table.take(rows), masks[i][rows]
    pieces = _pieces(inner, mask, profile(inner, mask, np.asarray(drive)[rows]))
    return [piece for piece in pieces if piece.text not in body and piece.column not in LEAD]
