"""Patterns of SQL's LIKE: ``%`` is any characters, ``_`` is one."""

from __future__ import annotations

import re
import unicodedata


class LikePattern:
    """Compare whole texts with a pattern, in which a backslash takes a sign as it is.

    Part by part from the left, which is linear where a regular expression with several ``.*`` is
    not.

    Args:
        pattern: The pattern.
        fold_case: Whether upper and lower case are the same.

    Example:
        >>> pattern = LikePattern("t%a", fold_case=True)
        >>> [pattern.matches(text) for text in ("Tea", "a tea")]
        [True, False]
    """

    def __init__(self, pattern: str, *, fold_case: bool) -> None:
        self._fold_case = fold_case
        self._first, *self._rest = map(_Part, _split(_folded(pattern) if fold_case else pattern))

    def matches(self, text: str) -> bool:
        """Return whether a text is of the pattern's form."""
        first, rest = self._first, self._rest
        text = _folded(text) if self._fold_case else text
        if not rest:
            return len(text) == first.size and first.stands(text, 0)
        end = len(text) - rest[-1].size
        at = first.size
        if end < at or not first.stands(text, 0) or not rest[-1].stands(text, end):
            return False
        for part in rest[:-1]:
            start = part.find(text, at, end)
            if start < 0:
                return False
            at = start + part.size
        return True


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _split(pattern: str) -> list[str]:
    """Return the parts of a pattern between ``%``, with their escapes."""
    parts = [""]
    for token in re.findall(r"\\.|\\$|%|[^%\\]+", pattern, re.DOTALL):
        if token == "%":
            parts.append("")
        else:
            parts[-1] += token
    return parts


class _Part:
    """The characters between two ``%`` of a pattern, in which ``_`` is any one character."""

    def __init__(self, escaped: str) -> None:
        tokens = re.findall(r"\\.|.", escaped, re.DOTALL)
        characters = [None if t == "_" else t[-1] for t in tokens]
        self.size = len(characters)
        self._text = "".join(c for c in characters if c is not None)
        self._form = (
            re.compile("".join("." if c is None else re.escape(c) for c in characters), re.DOTALL)
            if None in characters
            else None
        )

    def stands(self, text: str, at: int) -> bool:
        """Return whether the text goes on with this."""
        if self._form is None:
            return text.startswith(self._text, at)
        return self._form.match(text, at) is not None

    def find(self, text: str, at: int, end: int) -> int:
        """Return where this begins between two places, -1 where it does not."""
        if self._form is None:
            return text.find(self._text, at, end)
        match = self._form.search(text, at, end)
        return -1 if match is None else match.start()
