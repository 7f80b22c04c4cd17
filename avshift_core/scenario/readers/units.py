"""Units of tables, what a mapping file says of them, and what to do when positions and times contradict it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

LENGTHS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "km": 1000.0, "ft": 0.3048}
UNITS = {  # kind of unit -> its names and factors to ours, which is the first
    "position": LENGTHS, "size": LENGTHS,
    "speed": {"mps": 1.0, "kmh": 1 / 3.6, "mph": 0.44704, "ftps": 0.3048, "knots": 1852 / 3600, "cmps": 0.01},
    "acceleration": {"mps2": 1.0, "ftps2": 0.3048, "g": 9.80665},
    "angle": {"rad": 1.0, "deg": np.pi / 180},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "iso": 1.0},
    "heading": {"math": 1.0, "compass": 1.0},  # counter-clockwise from +x, or clockwise from +y (north)
}
COLUMNS_OF = {  # kind of unit -> what is in it
    "time": ("time",), "position": ("x", "y"), "angle": ("heading",), "heading": ("heading",), "speed": ("speed",),
    "acceleration": ("acceleration",), "size": ("length", "width", "height"),
}
WORDS = {
    "m": "metres", "cm": "centimetres", "mm": "millimetres", "km": "kilometres", "ft": "feet", "mps": "m/s",
    "kmh": "km/h", "mph": "mph", "ftps": "ft/s", "knots": "knots", "cmps": "cm/s", "s": "seconds",
    "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "rad": "radians", "deg": "degrees",
    "math": "counter-clockwise from the x axis", "compass": "clockwise from north",
}
RATIO_TOLERANCE = 0.04  # ft/s and km/h lie 9 % apart, knots and "km/h taken for knots" 5 %
ON_DASHBOARDS = ("mps", "kmh", "mph", "knots")  # units that are mistaken for each other
EPOCH_S = (1e8, 1e10)  # seconds since 1970 of the years 1973 to 2286


@dataclass(frozen=True)
class Declared:
    """Units that the analyst has declared for a log; without any, those of the scenario.

    Attributes:
        units: kind -> unit, of the columns in `named`; all others are in ours.
        columns: name of ours -> column of the table; None for formats that take no mapping file.
    """

    units: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    columns: Mapping[str, str] | None = None

    def unit(self, kind: str) -> str:
        applies = not self.named.isdisjoint(COLUMNS_OF[kind])
        return self.units.get(kind, next(iter(UNITS[kind]))) if applies else next(iter(UNITS[kind]))

    def factor(self, kind: str) -> float:
        return UNITS[kind][self.unit(kind)]

    def factor_of(self, name: str) -> float:
        """From the column of this name of ours to our unit."""
        kind = next(kind for kind, names in COLUMNS_OF.items() if name in names)
        return self.factor(kind) if name in self.named else 1.0

    def advice(self, *changes: tuple[str, str]) -> str:
        """What to do if these (kind, unit) are the right ones, as the end of a sentence."""
        return self._manner + self._change(changes)

    @property
    def _manner(self) -> str:
        return "convert " if self.columns is None else "in a mapping file, say "

    def _change(self, changes: Sequence[tuple[str, str]]) -> str:
        if self.columns is None:
            return " and ".join(_conversion(kind, unit) for kind, unit in changes)
        names = {n: None for kind, _ in changes for n in COLUMNS_OF[kind] if n in self.columns and n not in self.named}
        columns = "[columns] " + ", ".join(f'{n} = "{self.columns[n]}"' for n in names) + " and " if names else ""
        return f"{columns}[units] " + ", ".join(f'{kind} = "{unit}"' for kind, unit in changes)

    def length_advice(self, kind: str, ratio: float) -> str:
        """What to do about lengths that are `ratio` times too large."""
        unit = _nearest(UNITS[kind], self.factor(kind) / ratio)
        return self.advice((kind, unit)) if unit else f"convert {kind}s to metres"

    def time_units(self, value: float, plausible: tuple[float, float]) -> list[str]:
        """Smaller units than the declared one in which a time that counts as `value` s lies in a plausible range."""
        raw = value / self.factor("time")
        smaller = [(unit, factor) for unit, factor in UNITS["time"].items() if factor < self.factor("time")]
        return [unit for unit, factor in smaller if plausible[0] <= raw * factor <= plausible[1]]

    def time_fault(self, said: str, t_s: float) -> str:
        """What is wrong with a time that no log has, and what to do; `said` as in the file, "" if it is empty."""
        if not said:
            return "empty. Every row needs a time; fill it in, or leave the row out"
        unit = next(iter(self.time_units(t_s, EPOCH_S)), None)
        if unit:
            return f"{said:.40}, which seems to be in {WORDS[unit]} since 1970. {sentence(self.advice(('time', unit)))}"
        return f"'{said:.40}'. Every row needs a time"

    def explain_ratio(self, ratio: float) -> str:
        """Which unit makes reported speeds `ratio` times those from positions and times, and what to do."""
        wanted = {"speed": self.factor("speed") / ratio, "position": self.factor("position") * ratio}
        right = [(kind, unit) for kind in wanted if (unit := _nearest(UNITS[kind], wanted[kind]))]
        if right:
            seems = listed([f"{kind}s are in {WORDS[unit]}" for kind, unit in right])
            change = listed([self._change([one]) for one in right])
            return f"it seems that {seems}. {sentence(self._manner)}{change}"
        speeds = UNITS["speed"]
        pairs = {(true, taken): speeds[taken] / speeds[true] for true, taken in permutations(ON_DASHBOARDS, 2)}
        pair = _nearest(pairs, ratio)
        if pair:
            return (f"it seems that speeds in {WORDS[pair[0]]} were taken for {WORDS[pair[1]]} and converted so. "
                    "Convert them to m/s anew")
        return "check the units: speeds in m/s, positions in metres and times in seconds are needed"

    def raw_heading(self, heading: np.ndarray) -> np.ndarray:
        """Headings as the file holds them."""
        return (np.pi / 2 - heading if self.unit("heading") == "compass" else heading) / self.factor("angle")

    def other_headings(self, heading: np.ndarray) -> Iterator[tuple[tuple[tuple[str, str], ...], np.ndarray]]:
        """What headings are if angle or heading is declared wrongly: the right (kind, unit), headings in rad."""
        raw = self.raw_heading(heading)
        declared = {"heading": self.unit("heading"), "angle": self.unit("angle")}
        for sense in UNITS["heading"]:
            for angle, factor in UNITS["angle"].items():
                said = {"heading": sense, "angle": angle}
                changes = tuple((kind, unit) for kind, unit in said.items() if unit != declared[kind])
                if changes:
                    yield changes, np.pi / 2 - raw * factor if sense == "compass" else raw * factor


def listed(words: Sequence[str]) -> str:
    """
    >>> listed(["feet", "inches", "metres"])
    'feet, inches, or metres'
    """
    return ", or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])}, or {words[-1]}"


def plain(seconds: float) -> str:
    """A time with all its digits: 1770000000.5, never 1.77e+09."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _nearest(factors: Mapping, wanted: float):
    """Key whose factor is nearest to `wanted`, None if none is within 4 %."""
    off = {key: abs(factor / wanted - 1) for key, factor in factors.items()}
    best = min(off, key=off.get)
    return best if off[best] <= RATIO_TOLERANCE else None


def _conversion(kind: str, unit: str) -> str:
    if kind == "heading":
        return f"headings to {WORDS['math']} (pi / 2 - heading)"
    if kind == "angle":
        return "headings to radians (multiply by pi / 180)"
    return f"{kind}s to {WORDS[next(iter(UNITS[kind]))]} ({_scale(UNITS[kind][unit])})"


def _scale(factor: float) -> str:
    return f"divide by {1 / factor:.4g}" if factor < 1 else f"multiply by {factor:.4g}"


def sentence(text: str) -> str:
    """With a capital, as a sentence begins."""
    return text[0].upper() + text[1:]
