"""HTML and SVG as text: whatever is not made here is escaped, so that data can never become markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Safe(str):
    """Text that is markup already; everything else is escaped."""


EMPTY = Safe("")


def safe(value: object) -> Safe:
    """Any value as markup that shows it as it is; None and "" show nothing.

    >>> safe("<b>"), safe(Safe("<b>")), safe(None)
    ('&lt;b&gt;', '<b>', '')
    """
    if isinstance(value, Safe):
        return value
    return EMPTY if value is None else Safe(html.escape(str(value), quote=True))


def join(parts: Iterable[object], between: str = "") -> Safe:
    return Safe(between.join(safe(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Safe:
    """An element. `class_` is the attribute class, other underscores become hyphens; None leaves one out.

    >>> tag("p", "a < b", class_="note", aria_label="it's")
    '<p class="note" aria-label="it&#x27;s">a &lt; b</p>'
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
                      for key, value in attributes.items() if value is not None)
    return Safe(f"<{name}{written}>{join(children)}</{name}>")


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand on the right."""

    title: str
    number: bool = False
    wide: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], caption: str = "", class_: str = "") -> Safe:
    """A table; the first cell of a row is its heading."""
    kinds = [" ".join(word for word, on in (("number", c.number), ("wide", c.wide)) if on) or None for c in columns]
    head = tag("tr", *(tag("th", c.title, scope="col", class_=kind) for c, kind in zip(columns, kinds, strict=True)))
    body = []
    for row in rows:
        cells = [tag("th" if i == 0 else "td", cell, scope="row" if i == 0 else None, class_=kind)
                 for i, (cell, kind) in enumerate(zip(row, kinds, strict=True))]
        body.append(tag("tr", *cells))
    title = tag("caption", caption) if caption else EMPTY
    return tag("table", title, tag("thead", head), tag("tbody", *body), class_=class_ or None)


def bullets(sentences: Iterable[object]) -> Safe:
    return tag("ul", *(tag("li", sentence) for sentence in sentences))


def paragraphs(sentences: Iterable[object]) -> Safe:
    return join(tag("p", sentence) for sentence in sentences)


def figure(picture: Safe, caption: object, class_: str = "") -> Safe:
    return tag("figure", picture, tag("figcaption", caption), class_=class_ or None)
