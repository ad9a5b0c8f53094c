"""Compare texts independently of their Unicode normalization form.

An accented character is a single character in the composed form (NFC) and a sequence of several
characters in the decomposed form (NFD), which is common in file names on macOS and in texts
extracted from PDFs. Texts are compared in the composed form, but stored and returned unchanged.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import islice, product
from pathlib import Path

_MAX_FORMS = 64  # limit for ids with many folders, each of which may have either form


def composed(text: str) -> str:
    """Convert a text to the composed Unicode form (NFC).

    Example:
        >>> composed("Jose\\u0301") == "José"
        True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def other_forms(name: str) -> list[str]:
    """Return the other Unicode forms of an id. Each part of a path is composed or decomposed.

    Example:
        >>> [len(form) for form in other_forms("é/ü.md")]
        [7, 7, 8]
    """
    if name.isascii():
        return []
    parts = [
        dict.fromkeys(unicodedata.normalize(form, part) for form in ("NFC", "NFD"))
        for part in re.split("(/)", name)
    ]
    forms = islice(("".join(path) for path in product(*parts)), _MAX_FORMS)
    return [form for form in dict.fromkeys(forms) if form != name]


def in_stored_form(name: str, stored: Collection[str]) -> str | None:
    """Return the stored name that equals a name, possibly in a different Unicode form, or None.

    Example:
        >>> in_stored_form("Jose\\u0301.md", ["José.md"])
        'José.md'
    """
    if name in stored:
        return name
    if name.isascii():
        return None
    wanted = composed(name)
    return next((other for other in stored if composed(other) == wanted), None)


def stored_path(path: Path, files: Iterable[Path]) -> Path | None:
    """Return a path in the Unicode form of the first file at or below it, or None.

    Example:
        >>> print(stored_path(Path("/e\u0301"), [Path("/a.md"), Path("/é/b.md")]).as_posix())
        /é
    """
    names = dict.fromkeys(Path(*file.parts[: len(path.parts)]).as_posix() for file in files)
    form = in_stored_form(path.as_posix(), names)
    return None if form is None else Path(form)


def composed_matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a text whose composed form matches a pattern.

    Example:
        >>> list(composed_matches(re.compile("é!"), "Jose\\u0301!"))
        [(3, 6)]
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        yield from (match.span() for match in pattern.finditer(text))
        return
    places: list[tuple[int, int]] = []
    for match in pattern.finditer(composed(text)):
        places = places or _places(text)
        start, _ = places[match.start()]
        _, end = places[match.end() - 1]
        yield start, end


def _places(text: str) -> list[tuple[int, int]]:
    """Map each character of a text's composed form to its start and end offset in the text."""
    places: list[tuple[int, int]] = []
    for part in re.finditer(rf"[\0-\x7f]+(?=[\0-\x7f])|.[{_composing()}]*", text, re.DOTALL):
        if part[0].isascii():
            places += ((at, at + 1) for at in range(*part.span()))
        else:
            places += [part.span()] * len(composed(part[0]))
    return places


@cache
def _composing() -> str:
    """Return all characters that may be combined with or reordered after a preceding character."""
    marks = "".join(c for c in map(chr, range(sys.maxunicode)) if unicodedata.combining(c))
    decomposed = (unicodedata.decomposition(chr(code)).split() for code in range(0x12000))
    pairs = (parts for parts in decomposed if len(parts) == 2 and parts[0][0] != "<")
    vowels = "".join(chr(int(second, 16)) for _, second in pairs)
    return f"{re.escape(marks + vowels)}\u1161-\u1175\u11a8-\u11c2"
