"""The patterns of ignore files, read as git reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": " \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

_STAR = "*"

_SLASH = "/"

_NAMED_CLASS = re.compile(r"\[:([^]]*):\]")


class _InvalidPatternError(ValueError):
    """A pattern that matches nothing, such as an open bracket."""


class _PatternToken(NamedTuple):
    """A part of a pattern: a star, a slash, or one character.

    Attributes:
        literal: The character, a star or a slash. It is empty for a character class.
        regex: The regular expression of a character class, or of an escaped character.
    """

    literal: str = ""
    regex: str = ""


class _FixedPart:
    """The characters between two stars. The length of a match is fixed."""

    def __init__(self, tokens: Sequence[_PatternToken]) -> None:
        self.width = len(tokens)
        self._text = "".join(token.literal for token in tokens)
        self._regex: re.Pattern[str] | None = None
        if any(not token.literal for token in tokens):
            parts = [token.regex or re.escape(token.literal) for token in tokens]
            self._regex = re.compile("".join(parts), re.DOTALL)

    def is_at(self, name: str, start: int) -> bool:
        """Return whether the characters are at a position in a name."""
        if self._regex is None:
            return name.startswith(self._text, start)
        return self._regex.match(name, start) is not None

    def end_after(self, name: str, start: int) -> int:
        """Return the end of the first match from a position, or -1 if there is no match."""
        if self._regex is None:
            found = name.find(self._text, start)
            return found + self.width if found >= 0 else -1
        match = self._regex.search(name, start)
        return match.start() + self.width if match else -1


class _PathSegment:
    """The part of a pattern between two slashes.

    The first match of each fixed part is enough, since the star after it may match anything. The
    time is therefore linear in the number of stars.
    """

    def __init__(self, tokens: Sequence[_PatternToken]) -> None:
        chunks: list[list[_PatternToken]] = [[]]
        for token in tokens:
            if token.literal == _STAR and not token.regex:
                chunks.append([])
            else:
                chunks[-1].append(token)
        self._width = sum(len(chunk) for chunk in chunks)
        self._first = _FixedPart(chunks[0])
        self._inner = [_FixedPart(chunk) for chunk in chunks[1:-1] if chunk]
        self._last: _FixedPart | None = None
        if len(chunks) > 1:
            self._last = _FixedPart(chunks[-1])

    def matches(self, name: str) -> bool:
        """Return whether a name matches."""
        if len(name) < self._width or not self._first.is_at(name, 0):
            return False
        if self._last is None:
            return len(name) == self._width
        place = self._first.width
        for chunk in self._inner:
            place = chunk.end_after(name, place)
            if place < 0:
                return False
        start_of_last = len(name) - self._last.width
        return start_of_last >= place and self._last.is_at(name, start_of_last)


_Segments = Sequence[_PathSegment | None]
"""The segments of a pattern; None for ``**``, which matches any number of folders."""


@dataclass(frozen=True)
class _IgnoreRule:
    """One line of an ignore file.

    Attributes:
        pattern: The pattern without its negation and without a slash at the end.
        is_negated: Whether matching paths are not ignored.
        only_folders: Whether only folders match.
    """

    pattern: str
    is_negated: bool
    only_folders: bool

    @cached_property
    def _segments(self) -> _Segments:
        try:
            return _segments(self.pattern)
        except _InvalidPatternError:
            return []

    def matches(self, parts: Sequence[str], is_folder: bool) -> bool:
        """Return whether a path below the folder of the ignore file matches."""
        if self.only_folders and not is_folder:
            return False
        segments = self._segments
        if _SLASH not in self.pattern:
            parts = parts[-1:]
        return bool(segments) and _match(segments, parts)


class IgnoreRules:
    """The patterns of one ignore file. The last pattern that matches a path decides.

    The time per match is bounded for all patterns, since an ignore file may come from a stranger.
    See https://git-scm.com/docs/gitignore.

    Args:
        text: The content of the file.

    Example:
        >>> rules = IgnoreRules("*.log\\n!keep.log\\nbuild/\\n")
        >>> rules.verdict(["src", "a.log"], False), rules.verdict(["keep.log"], False)
        (True, False)
        >>> rules.verdict(["build"], True), rules.verdict(["build"], False)
        (True, None)
    """

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        rules = [_rule(line.removesuffix("\r")) for line in lines]
        self._rules = [rule for rule in reversed(rules) if rule is not None]

    def verdict(self, parts: Sequence[str], is_folder: bool) -> bool | None:
        """Return whether a path is ignored, or None if no pattern matches.

        Args:
            parts: The names of the folders below the folder of the file, and of the entry.
            is_folder: Whether the entry is a folder.
        """
        for rule in self._rules:
            if rule.matches(parts, is_folder):
                return not rule.is_negated
        return None


def _rule(line: str) -> _IgnoreRule | None:
    """Parse a line. Return None for comments and empty lines."""
    line = _without_end(line)
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    path = pattern.removesuffix(_SLASH)
    return _IgnoreRule(path, is_negated=pattern != line, only_folders=path != pattern)


def _without_end(line: str) -> str:
    """Remove spaces from the end, except for an escaped space."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    is_escaped = backslashes % 2 == 1
    if is_escaped and stripped != line:
        return f"{stripped} "
    return stripped


def _match(segments: _Segments, parts: Sequence[str]) -> bool:
    """Return whether the names of a path match segments.

    As in a segment, the first match after ``**`` is enough.
    """
    fixed = sum(segment is not None for segment in segments)
    if fixed > len(parts):
        return False
    at = 0
    part = 0
    after_stars = -1  # the segment after the last **
    retried = 0  # the part at which this segment was tried
    while part < len(parts):
        segment = segments[at] if at < len(segments) else None
        if at < len(segments) and segment is None:
            at += 1
            after_stars = at
            retried = part
        elif segment is not None and segment.matches(parts[part]):
            at += 1
            part += 1
        elif after_stars >= 0:
            retried += 1
            at = after_stars
            part = retried
        else:
            return False
    return all(segment is None for segment in segments[at:])


def _segments(pattern: str) -> _Segments:
    """Split a pattern.

    Raises:
        _InvalidPatternError: If the pattern matches nothing.
    """
    parts: list[list[_PatternToken]] = [[]]
    for token in _tokens(pattern):
        if token == _PatternToken(_SLASH):
            parts.append([])
        else:
            parts[-1].append(token)
    if not parts[0] and len(parts) > 1:  # the slash at the start
        del parts[0]
    if not all(parts):
        raise _InvalidPatternError
    is_path = _SLASH in pattern
    segments: list[_PathSegment | None] = []
    for tokens in parts:
        has_only_stars = all(token == _PatternToken(_STAR) for token in tokens)
        if is_path and has_only_stars and len(tokens) > 1:
            segments.append(None)
        else:
            segments.append(_PathSegment(tokens))
    if segments[-1] is None:  # files inside the folder, but not the folder
        segments.append(_PathSegment([_PatternToken(_STAR)]))
    return segments


def _tokens(pattern: str) -> list[_PatternToken]:
    """Split a pattern into characters.

    Raises:
        _InvalidPatternError: If a bracket is open, or nothing follows a backslash.
    """
    tokens: list[_PatternToken] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "\\":
            if at == len(pattern):
                raise _InvalidPatternError
            if pattern[at] == _SLASH:
                tokens.append(_PatternToken(_SLASH))
            else:
                tokens.append(_PatternToken("", re.escape(pattern[at])))
            at += 1
        elif character == "?":
            tokens.append(_PatternToken("", "."))
        elif character == "[":
            regex, at = _bracket(pattern, at)
            tokens.append(_PatternToken("", regex))
        else:
            tokens.append(_PatternToken(character))
    return tokens


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Return the regular expression of a character class, and its end.

    Args:
        pattern: The pattern.
        at: The position after the opening bracket.

    Raises:
        _InvalidPatternError: If the bracket is open or its class is unknown.
    """
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    items: list[str] = []
    start = at
    while at == start or pattern[at : at + 1] != "]":
        if named := _NAMED_CLASS.match(pattern, at):
            if named[1] not in _POSIX_CLASSES:
                raise _InvalidPatternError
            items.append(_POSIX_CLASSES[named[1]])
            at = named.end()
            continue
        first, at = _member(pattern, at)
        items.append(re.escape(first))
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            last, at = _member(pattern, at + 1)
            if first <= last:
                items.append(f"{re.escape(first)}-{re.escape(last)}")
    if is_negated:
        items.insert(0, "^")
    return f"[{''.join(items)}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    """Return a character of a class, and the position after it."""
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise _InvalidPatternError
    return pattern[at], at + 1
