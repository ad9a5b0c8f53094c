"""Summarize skipped files in one sentence, with their number, their kinds and how to read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from ..errors import NEEDS_EXTRA, Failure, ReadError, UnsupportedFilesError
from ..node import ROOT
from .source_files import WITHOUT_READER, counted, first_of

_NAMED = 3  # maximum number of file names listed for each kind

_KINDS = 8  # maximum number of suffixes listed for each kind

REMEDIES = {
    "broken link": "restore the linked file, or delete the link",
    "encrypted": "save without a password",
    "scanned": "pass ReadOptions(ocr=...)",
    "too large": "raise max_bytes or max_unpacked_bytes of ReadOptions",
    WITHOUT_READER: "add a reader with register_reader, or convert them",
}
"""Advice on how to read skipped files, keyed by the beginning of their kind."""


def describe_skipped(failures: Iterable[Failure], remedies: Mapping[str, str] = REMEDIES) -> str:
    """Summarize skipped files: their number, their kinds and how to read them.

    Failures of transforms are ignored. The result is empty if no file was skipped.

    Args:
        failures: The failures, as in ``NodeGraph.failures``.
        remedies: Advice on how to read the files, keyed by the beginning of their kind.

    Example:
        >>> error = ReadError("no parser", 'in need of pip install "nodekin[files]"')
        >>> describe_skipped([Failure("docs/tea.pdf", "ROOT", error)])
        '1 file was skipped: 1 .pdf needs pip install "nodekin[files]"'
    """
    names: dict[str, list[str]] = {}
    suffixes: dict[str, Counter[str]] = {}
    for failure in failures:
        error = failure.error
        if failure.group != ROOT or not isinstance(error, ReadError):
            continue
        if isinstance(error, UnsupportedFilesError):
            counts = Counter(error.counts)
        else:
            counts = Counter([PurePath(failure.document).suffix.lower() or "no suffix"])
            names.setdefault(error.kind, []).append(PurePath(failure.document).name)
        suffixes.setdefault(error.kind, Counter()).update(counts)
    number = sum(counts.total() for counts in suffixes.values())
    if not number:
        return ""
    kinds = sorted(suffixes, key=lambda kind: not kind.startswith(NEEDS_EXTRA))
    clauses = [_clause(kind, suffixes[kind], names.get(kind, []), remedies) for kind in kinds]
    listed = "; ".join(clauses)
    if number == 1:
        return f"1 file was skipped: {listed}"
    return f"{number:,} files were skipped: {listed}"


def _clause(kind: str, counts: Counter[str], names: list[str], remedies: Mapping[str, str]) -> str:
    """Describe skipped files of one kind, with their number, their names and how to read them."""
    number = counts.total()
    listed = first_of([f"{count:,} {suffix}" for suffix, count in counts.most_common()], _KINDS)
    if kind.startswith(NEEDS_EXTRA):
        verb = "needs" if number == 1 else "need"
        return f"{listed} {verb} {kind.removeprefix(NEEDS_EXTRA)}"
    if names:
        listed = first_of(names, _NAMED)
    remedy = next((text for start, text in remedies.items() if kind.startswith(start)), "")
    if kind == WITHOUT_READER:
        from .formats import how_to_read_more  # This module imports all readers.

        remedy = f"{how_to_read_more()}{remedy}".removesuffix("; ")
    clause = f"{counted(kind, number)} ({listed})"
    if remedy:
        return f"{clause}: {remedy}"
    return clause
