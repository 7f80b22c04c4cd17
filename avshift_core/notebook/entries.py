"""What stands in a notebook: looks, notes on regions, saved views; and which text of people it takes."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from avshift_core.errors import AVShiftError

NONE, ACCEPTED, INVESTIGATE = STATUSES = ("none", "accepted", "to be investigated")
SAVED, MERGED, ASIDE, SAME = "saved", "merged", "aside", "same"
LONGEST_NAME, LONGEST_COMMENT, LONGEST_ADDRESS = 120, 4000, 8000
MOST_KEYS = 100  # of an address
TEXTS = ("name", "comment", "status")  # what a note says
NOT_KEPT = ("embed", "embed_options")  # Streamlit keeps these for itself, and refuses links that set them


class NotebookError(AVShiftError):
    """A notebook cannot be read or written, or a text cannot be taken; nothing was changed."""


@dataclass(frozen=True)
class Look:
    """One look at a corpus: two of its cohorts, compared once.

    Attributes:
        when: UTC, such as 2026-03-02T09:30:00Z. kind: what was done, such as `comparison`.
        source, target: the cohorts, as queries. latents: what the corpus calls the latents that were compared.
        settings: those that differ from the defaults, in words. config: hash of all of them.
        run: names data, latents, settings and engine. The same run again is no second look.
        fingerprint: of the corpus as it was. verdict: name of the verdict, "" where there is none.
        gamma_hat, gamma_lcb, gamma_ucb: advantage and its bounds, None where there is none.
        metrics: events that were looked at. engine: its version.
        number: place in the ledger, from 1; digest: over the look and the digest before it. 0 and "" before it is in.
    """

    when: str
    kind: str
    source: str
    target: str
    latents: str
    settings: str
    run: str
    fingerprint: str
    verdict: str
    gamma_hat: float | None = None
    gamma_lcb: float | None = None
    gamma_ucb: float | None = None
    metrics: str = ""
    config: str = ""
    engine: str = ""
    number: int = 0
    digest: str = ""

    def sealed_after(self, digest: str) -> str:
        """The digest of this look when it follows the one with that digest.

            d_i = SHA-256(d_{i-1}, look_i),   d_0 = ""

        Whoever changes or removes a look in the middle would have to write all later digests again.
        """
        told = [getattr(self, field.name) for field in fields(self) if field.name not in ("number", "digest")]
        return hashlib.sha256(json.dumps([digest, *told]).encode()).hexdigest()


@dataclass(frozen=True)
class Count:
    """Looks at a corpus: all, and those with the same two cohorts, in either order."""

    all: int
    same_pair: int


@dataclass(frozen=True)
class RegionNote:
    """What people say about a region of a run.

    Attributes:
        region: k of R1, R2, ...; -k for the places without support V1, V2, ...
        name, comment: "" where nobody gave one. status: one of STATUSES. changed: UTC.
        version: counts what was written about the region, from 1; 0 before anything was.
        aside: written while somebody else wrote something different; kept, but not what the note says.
    """

    region: int
    name: str = ""
    comment: str = ""
    status: str = NONE
    changed: str = ""
    version: int = 0
    aside: bool = False

    @property
    def texts(self) -> tuple[str, str, str]:
        return self.name, self.comment, self.status


@dataclass(frozen=True)
class Written:
    """What became of a note that was written.

    Attributes:
        outcome: SAVED; MERGED with what somebody else wrote meanwhile; ASIDE, because both changed the same words: then
            mine is kept in the history and the note is theirs; SAME, because it says so already.
        note: as it stands now. mine: as it was to be.
    """

    outcome: str
    note: RegionNote
    mine: RegionNote


@dataclass(frozen=True)
class SavedView:
    """A view of the dashboard under a name.

    Attributes:
        page: its title. address: the query string of its URL.
        fingerprint, run: of the corpus and of the comparison when it was saved.
        version: 1, and one more for each change.
    """

    id: int
    name: str
    page: str
    address: str
    fingerprint: str
    run: str
    created: str
    changed: str
    version: int

    @property
    def query(self) -> dict[str, str]:
        """The address by name; what is no address is empty."""
        try:
            pairs = parse_qsl(self.address[:LONGEST_ADDRESS], max_num_fields=MOST_KEYS)
        except ValueError:
            return {}
        return {name: value for name, value in pairs if name.lower() not in NOT_KEPT}


def chance_of_one(n: int, alpha: float) -> float:
    """Chance that at least one of n independent looks shows what is not there, each with error level alpha.

        1 - (1 - alpha)^n

    >>> [round(chance_of_one(n, 0.05), 3) for n in (0, 1, 14)]
    [0.0, 0.05, 0.512]
    """
    return 1 - (1 - alpha) ** n


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def line(what: str, text: str, longest: int = LONGEST_NAME) -> str:
    """Text of people in one line; refused when it is too long or cannot be shown.

    >>> line("name", "  large-vehicle\\tcut-ins ")
    'large-vehicle cut-ins'
    """
    return _checked(what, " ".join(str(text).split()), longest)


def lines(what: str, text: str, longest: int = LONGEST_COMMENT) -> str:
    """The same in as many lines as it has."""
    return _checked(what, "\n".join(row.rstrip() for row in str(text).splitlines()).strip(), longest)


def _checked(what: str, text: str, longest: int) -> str:
    if len(text) > longest:
        raise NotebookError(f"The {what} has {len(text):,} characters, and at most {longest:,} are kept. Shorten it.")
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise NotebookError(f"The {what} holds U+{ord(character):04X}, which no page can show. Remove it, or type "
                                f"the {what} again.")
    return text
