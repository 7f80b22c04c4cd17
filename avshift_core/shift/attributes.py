"""Which columns of a table people can read: numbers, levels, and whether there is a value at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from avshift_core.scenario.measure.attributes import ATTRIBUTES
from avshift_core.words import readable

# Ids, what a cohort is chosen by in time, and doubles of other columns: they tell nothing of the traffic.
LEFT_OUT = frozenset({
    "scenario_id", "drive_id", "vehicle_id", "actor", "actor_id", "source", "derived", "day", "period", "n_steps",
    "duration_h", "low_rate", "filename", "file_index", "file_row_number",
})
MOST_LEVELS = 40  # of a category; the most frequent ones
ID_LEVELS = 200  # a text column with more values is an id
SAME = 1e-6  # a number that varies by less than this share of its size is constant (rates such as 10.000000000000002)
TEXTS = {  # columns that scenario/measure/attributes.py does not describe, or not for a reader who sees one line only
    "actor_type": ("Type of the agent involved", ""), "actor_distance_min_m": ("Smallest gap to that agent", "m"),
    "category": ("Category", ""), "area": ("Area", ""), "route": ("Route", ""), "av_version": ("AV version", ""),
    "duration_s": ("Duration", "s"), "rate_hz": ("Rate of the log", "Hz"), "distance_km": ("Distance driven", "km"),
    "ego_missing_steps": ("Time steps without the ego", ""), "hour": ("Time of day", ""),
    "ttc_min_s": ("Time to collision, smallest", "s"), "drac_mps2": ("Deceleration needed, largest", "m/s²"),
    "thw_min_s": ("Time headway, smallest", "s"), "gap_min_m": ("Gap, smallest", "m"),
    "jerk_max_mps3": ("Jerk, largest", "m/s³"), "comfort_score": ("Comfort score", ""),
    "lateral_acceleration_max_mps2": ("Lateral acceleration, largest", "m/s²"),
}
PRESENT = {  # what it means that there is a value, by column; columns with the same rows share the first
    "cutin_speed_mps": "An agent cuts in", "cutin_distance_m": "An agent cuts in", "cutin_type": "An agent cuts in",
    "cutin_length_m": "An agent cuts in", "actor_type": "Another agent is involved",
    "actor_distance_min_m": "Another agent is involved", "decel_onset_s": "The ego brakes",
    "speed_limit_mps": "Speed limit is known", "hour": "Hour is known",
}
LEVELS = {"u_turn": "U-turn"}
DAY_PARTS = (("night, 22 to 6", (22, 23, 0, 1, 2, 3, 4, 5)), ("morning, 6 to 10", range(6, 10)),
             ("midday, 10 to 16", range(10, 16)), ("evening, 16 to 22", range(16, 22)))


@dataclass(frozen=True, eq=False)
class Number:
    """values: (n,) float64, NaN where there is none."""

    column: str
    label: str
    unit: str
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Category:
    """code: (n,) int32 index into levels (as stored) and texts (for people), -1 where there is none or a rare one."""

    column: str
    label: str
    levels: tuple[str, ...]
    texts: tuple[str, ...]
    code: np.ndarray


@dataclass(frozen=True, eq=False)
class Presence:
    """has: (n,) True where the column has a value."""

    column: str
    label: str
    has: np.ndarray


@dataclass(frozen=True, eq=False)
class Attributes:
    """The readable columns of a table of n rows; constant ones and ids are left out."""

    n: int
    numbers: tuple[Number, ...]
    categories: tuple[Category, ...]
    presences: tuple[Presence, ...]

    def number(self, column: str) -> Number | None:
        return next((a for a in self.numbers if a.column == column), None)

    def category(self, column: str) -> Category | None:
        return next((a for a in self.categories if a.column == column), None)

    def take(self, rows) -> Attributes:
        """The attributes of some rows."""
        return Attributes(
            len(rows), tuple(replace(a, values=a.values[rows]) for a in self.numbers),
            tuple(replace(a, code=a.code[rows]) for a in self.categories),
            tuple(replace(a, has=a.has[rows]) for a in self.presences),
        )


def read_attributes(table: pd.DataFrame, leave_out=()) -> Attributes:
    """Sort the columns of any table into numbers and categories; what cannot be read is left out, never refused.

    Missing values (NaN, None, "", infinite numbers) become an attribute of their own: whether there is a value.
    Text with more than 200 different values, times and nested values are left out as ids.
    """
    numbers, categories, presences = [], [], {}
    for place, column in enumerate(map(str, table.columns)):
        if column in LEFT_OUT or column in leave_out:
            continue
        read = _read(column, table.iloc[:, place])
        if read is None:
            continue
        has = np.isfinite(read.values) if isinstance(read, Number) else read.code >= 0
        if isinstance(read, Number) and _varies(read.values[has]):
            numbers.append(read)
        elif isinstance(read, Category):
            has, read = _frequent(read)
            if len(read.levels) > 1:  # one level and nothing else is what its presence tells
                categories.append(read)
        if has.any() and not has.all():
            label = PRESENT.get(column, f"Has a value: {read.label}")
            presences.setdefault(has.tobytes(), Presence(column, label, has))
    return Attributes(len(table), tuple(numbers), tuple(categories), tuple(presences.values()))


def label_of(column: str) -> tuple[str, str]:
    """What people call a column, and its unit.

    >>> label_of("ego_speed_mps"), label_of("rain_mm")
    (('Ego speed, mean', 'm/s'), ('rain mm', ''))
    """
    if column in ATTRIBUTES and column not in TEXTS:
        unit = ATTRIBUTES[column].unit
        return ATTRIBUTES[column].text, {"m/s2": "m/s²"}.get(unit, unit)
    return TEXTS.get(column, (column.replace("_", " "), ""))


def level_text(level: str) -> str:
    """
    >>> level_text("agent_cutting_in"), level_text("u_turn")
    ('Agent cuts in', 'U-turn')
    """
    return LEVELS.get(level, readable(level))


def _read(column: str, values: pd.Series) -> Number | Category | None:
    label, unit = label_of(column)
    if column == "hour":
        return _day_parts(column, label, values)
    kind = values.dtype
    if pd.api.types.is_bool_dtype(kind):
        return _levels(column, label, values.map({True: "yes", False: "no"}))
    if pd.api.types.is_complex_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind) or (
            pd.api.types.is_timedelta64_dtype(kind)):
        return None
    if pd.api.types.is_numeric_dtype(kind):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return Number(column, label, unit, np.where(np.isfinite(numbers), numbers, np.nan))
    return _levels(column, label, values)


def _levels(column: str, label: str, values: pd.Series) -> Category | None:
    try:
        code, found = pd.factorize(values, use_na_sentinel=True)
    except TypeError:  # lists and other values that cannot be told apart
        return None
    if len(found) > ID_LEVELS:
        return None
    names = [str(level) for level in found]
    order = {name: k for k, name in enumerate(sorted({name for name in names if name.strip()}))}
    place = np.array([*(order.get(name, -1) for name in names), -1], dtype=np.int32)  # the last is for code -1
    return Category(column, label, tuple(order), tuple(map(level_text, order)), place[code])


def _day_parts(column: str, label: str, values: pd.Series) -> Category | Number | None:
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return _levels(column, label, values)
    part = np.full(26, -1, dtype=np.int32)
    for k, (_, hours) in enumerate(DAY_PARTS):
        part[list(hours)] = k
    hour = values.to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isfinite(hour) & (hour >= 0) & (hour < 24)
    names = tuple(name for name, _ in DAY_PARTS)
    return Category(column, label, names, names, part[np.where(known, hour, 25).astype(int)])


def _frequent(read: Category) -> tuple[np.ndarray, Category]:
    """Where there is a value, and the category with its most frequent levels, as long as they occur."""
    has = read.code >= 0
    count = np.bincount(read.code[has], minlength=len(read.levels))
    kept = np.sort(np.argsort(-count, kind="stable")[:MOST_LEVELS])
    kept = kept[count[kept] > 0]
    place = np.full(len(read.levels) + 1, -1, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    return has, Category(read.column, read.label, tuple(read.levels[k] for k in kept),
                         tuple(read.texts[k] for k in kept), place[read.code])


def _varies(values: np.ndarray) -> bool:
    return len(values) > 0 and float(np.ptp(values)) > SAME * float(np.abs(values).max())
