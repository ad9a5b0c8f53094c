"""Match paths against the patterns in ignore files such as ``.gitignore``, as git does."""

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
    """Raised for a pattern that cannot match anything, for example because of an open bracket."""


class _PatternToken(NamedTuple):
    """A star, a slash, a character or a character class in a pattern.

    Attributes:
        literal: The character, star or slash. It is empty for a character class.
        regex: The regular expression for a character class or an escaped character.
    """

    literal: str = ""
    regex: str = ""


class _FixedPart:
    """The part of a pattern between two stars, which matches a fixed number of characters."""

    def __init__(self, tokens: Sequence[_PatternToken]) -> None:
        self.width = len(tokens)
        self._text = "".join(token.literal for token in tokens)
        self._regex: re.Pattern[str] | None = None
        if any(not token.literal for token in tokens):
            parts = [token.regex or re.escape(token.literal) for token in tokens]
            self._regex = re.compile("".join(parts), re.DOTALL)

    def is_at(self, name: str, start: int) -> bool:
        """Return whether this part matches at a position in a name."""
        if self._regex is None:
            return name.startswith(self._text, start)
        return self._regex.match(name, start) is not None

    def end_after(self, name: str, start: int) -> int:
        """Return the end of the first match at or after a position, or -1 if it does not match."""
        if self._regex is None:
            found = name.find(self._text, start)
            return found + self.width if found >= 0 else -1
        match = self._regex.search(name, start)
        return match.start() + self.width if match else -1


class _PathSegment:
    """The part of a pattern between two slashes, which matches a single name in a path.

    For each fixed part between stars, it is sufficient to find the first match, since the following
    star can match anything. The running time is therefore linear in the number of stars.
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
        """Return whether the segment matches a name."""
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
"""The segments of a pattern. None represents ``**``, which matches any number of folders."""


@dataclass(frozen=True)
class _IgnoreRule:
    """A rule that was parsed from one line of an ignore file.

    Attributes:
        pattern: The pattern without the negation mark and the slash at the end.
        is_negated: Whether the pattern is negated, so that matching paths are included again.
        only_folders: Whether the rule applies only to folders.
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
        """Return whether the rule matches a path relative to the folder of the ignore file."""
        if self.only_folders and not is_folder:
            return False
        segments = self._segments
        if _SLASH not in self.pattern:
            parts = parts[-1:]
        return bool(segments) and _match(segments, parts)


class IgnoreRules:
    """The patterns in an ignore file. If several patterns match a path, the last one is used.

    The running time of a match is limited for all patterns, since an ignore file may come from an
    untrusted source. For the format, see https://git-scm.com/docs/gitignore.

    Args:
        text: The content of the ignore file.

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
        """Return whether a path is ignored, or None if no pattern matches it.

        Args:
            parts: The parts of the path, relative to the folder of the ignore file.
            is_folder: Whether the path is a folder.
        """
        for rule in self._rules:
            if rule.matches(parts, is_folder):
                return not rule.is_negated
        return None


def _rule(line: str) -> _IgnoreRule | None:
    """Parse a line of an ignore file. Return None for comments and empty lines."""
    line = _without_end(line)
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    path = pattern.removesuffix(_SLASH)
    return _IgnoreRule(path, is_negated=pattern != line, only_folders=path != pattern)


def _without_end(line: str) -> str:
    """Remove spaces from the end of a line, except for an escaped space."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    is_escaped = backslashes % 2 == 1
    if is_escaped and stripped != line:
        return f"{stripped} "
    return stripped


def _match(segments: _Segments, parts: Sequence[str]) -> bool:
    """Return whether the segments of a pattern match the parts of a path.

    As inside a segment, it is sufficient to find the first match after each ``**``.
    """
    fixed = sum(segment is not None for segment in segments)
    if fixed > len(parts):
        return False
    at = 0
    part = 0
    after_stars = -1  # the segment after the last **
    retried = 0  # the part of the path at which this segment was last tried
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
    """Split a pattern into its segments.

    Raises:
        _InvalidPatternError: If the pattern cannot match anything.
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
    # The pattern matches files inside the folder, but not the folder itself.
    if segments[-1] is None:
        segments.append(_PathSegment([_PatternToken(_STAR)]))
    return segments


def _tokens(pattern: str) -> list[_PatternToken]:
    """Split a pattern into tokens.

    Raises:
        _InvalidPatternError: If a bracket is not closed, or if the pattern ends with a backslash.
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
    """Convert a character class to a regular expression, and return it with the end position.

    Args:
        pattern: The whole pattern.
        at: The position after the opening bracket.

    Raises:
        _InvalidPatternError: If the bracket is not closed, or if it names an unknown class.
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
    """Return one character of a character class and the position after it."""
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise _InvalidPatternError
    return pattern[at], at + 1
