"""Pieces of logs that other processes read, here or on a cluster, before it is their turn in an import.

Reading is most of an import: parsing takes several times as long as measuring and writing. What a reader says about a
piece comes back in its order, so that who imports goes through the same scenarios and sentences as if it read itself.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from avshift_core.errors import LogError
from avshift_core.parallel import in_order
from avshift_core.scenario.readers import READERS
from avshift_core.scenario.readers.source import ReadOptions, Source
from avshift_core.scenario.schema import Scenario

BUNDLE_BYTES, BUNDLE_PIECES = 4 * 1024**2, 16  # small pieces are sent together, so that sending does not cost more
Said = Scenario | str | LogError  # a scenario, a sentence about what was left out, or what ends the import
Piece = tuple[Source, str]  # and its key


def piece_key(format: str, source: Source, options: ReadOptions) -> str:
    """The piece in its state, and what the analyst said about it."""
    said = [options.area, options.period, options.version]
    try:
        if options.mapping is not None:
            said.append(hashlib.sha256(Path(options.mapping).read_bytes()).hexdigest()[:12])
        return "|".join([format, source.key, *said])
    except OSError as error:
        raise LogError(f"{error.filename or source.label} cannot be read: {error.strerror or error}.") from None


def read_piece(format: str, source: Source, options: ReadOptions) -> list[Said]:
    """All that a reader says about one piece, in its order."""
    said: list[Said] = []
    try:
        for scenario in READERS[format].read(source, replace(options, on_skip=said.append)):
            said.append(scenario)
    except LogError as error:
        said.append(error)
    return said


def read_ahead(
    format: str, planned: Mapping[Source, str], options: ReadOptions, jobs: int | None, scheduler: str | None
) -> Iterator[tuple[Source, list[Said]]]:
    """Pieces (with their keys) and what was said about them, in their order; a few bundles are under way at a time.

    Memory is that of the scenarios of these bundles: a large piece is a bundle of its own, and is held whole.
    """
    mapping = options.mapping and Path(os.path.abspath(options.mapping))
    work = partial(_read_bundle, format, replace(options, mapping=mapping, on_skip=None))
    absolute = [(replace(source, path=Path(os.path.abspath(source.path))), key) for source, key in planned.items()]
    bundles, sources = _bundled(absolute), iter(planned)
    for answer in in_order(work, bundles, jobs, scheduler=scheduler):
        for said in answer:
            yield next(sources), said


def _read_bundle(format: str, options: ReadOptions, bundle: Sequence[Piece]) -> list[list[Said]]:
    """The work of one process, which may see other files than the one that has found them."""
    answers = []
    for source, key in bundle:
        try:
            here = piece_key(format, source, options)
        except LogError as error:
            raise _not_shared(source, str(error)) from None
        if here != key:
            raise _not_shared(source, "It has another size or time, or another mapping file.")
        answers.append(read_piece(format, source, options))
    return answers


def _not_shared(source: Source, reason: str) -> LogError:
    return LogError(f"{source.path} is not the same file on {socket.gethostname()}, where it was to be read: {reason} "
                    "Keep the logs in a folder that all workers can read at one path, and leave them as they are.")


def _bundled(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Consecutive pieces, as many as make a fair load."""
    bundles: list[list[Piece]] = []
    load = BUNDLE_BYTES
    for piece in pieces:
        size = _bytes(piece[0])
        if load + size > BUNDLE_BYTES or len(bundles[-1]) >= BUNDLE_PIECES:
            bundles.append([])
            load = 0
        bundles[-1].append(piece)
        load += size
    return bundles


def _bytes(source: Source) -> int:
    """Size of a piece, as its key tells it: name:size:state."""
    return int(source.key.rsplit(":", 2)[1])
