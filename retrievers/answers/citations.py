"""Find the citations in an answer, such as ``[1]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...nodegraph.models.templates import language_of
from .answer import Source

_NUMBER = r"\d{1,3}"

_SPACES = r"\s{0,9}"  # the length is limited, so that matching takes linear time

_NOUN = r"(?:passages?|sources?|refs?\.?|documents?|资料|来源|段落|文献|片段|参考)"

# Each text matches these patterns in only one way, since backtracking would take exponential time.
_FIRST = rf"\^?(?:{_NOUN}{_SPACES})?(?:#{_SPACES})?{_NUMBER}"

_NEXT = rf"{_SPACES}(?:[,，、;；]|and\s|[和及与]){_SPACES}"

_TITLE = rf"†(?:(?!{_NEXT}{_FIRST})[^\]】］\n]){{0,40}}"

_ONE = rf"{_FIRST}(?:{_SPACES}[-–—~～至]{_SPACES}{_NUMBER})?(?:{_TITLE})?"

CITATION = re.compile(
    rf"[\[【［]{_SPACES}({_ONE}(?:{_NEXT}{_ONE})*){_SPACES}[\]】］]"
    r"(?!\()",  # excludes links
    re.I,
)
"""A pattern that matches source numbers in square brackets."""

_RANGE = re.compile(rf"({_NUMBER})(?:{_SPACES}[-–—~～至]{_SPACES}({_NUMBER}))?")

_DAGGER = re.compile(_TITLE, re.I)

CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|`[^`\n]+`", re.S)
"""A pattern that matches code in Markdown."""


def only_cites(text: str) -> bool:
    """Return whether a text contains nothing but citations and punctuation.

    Example:
        >>> only_cites("[1]."), only_cites("1974 [1].")
        (True, False)
    """
    return re.search(r"\w", CITATION.sub("", text)) is None


def cited_numbers(text: str) -> list[int]:
    """Return the distinct source numbers that a text cites, in order of appearance.

    Citations are ``[1]``, ``[1, 2]``, ``[1][3]``, ``[1-3]``, ``[^1]``, full-width forms such as
    ``【1】``, and numbers after a noun, such as "[Source 1]". Numbers in parentheses, in code or in
    links are not citations, and neither are numbers of four digits, which are usually years.

    Example:
        >>> cited_numbers("Tea [2] is old【1，2】, (3) see `a[4]`, [5-7][2019].")
        [2, 1, 5, 6, 7]
    """
    numbers: dict[int, None] = {}
    for citation in CITATION.finditer(CODE.sub(" ", text)):
        for span in _RANGE.finditer(_DAGGER.sub("", citation[1])):
            first = int(span[1])
            last = int(span[2] or span[1])
            if first <= last:
                numbers |= dict.fromkeys(range(first, last + 1))
            else:
                numbers |= {first: None, last: None}
    return list(numbers)


_LISTED = 8  # the maximum number of missing sources in a note

UNCITED = {"en": "the answer cites no source", "zh": "回答没有标来源"}


def flag_cited(
    sources: Sequence[Source], text: str, certain: Iterable[int] = ()
) -> tuple[list[Source], list[str]]:
    """Set ``cited`` for each source, and report citations that do not match any source.

    Args:
        sources: The sources of the answer.
        text: The text of the answer.
        certain: The numbers of sources that the answer uses even if it does not cite them.

    Returns:
        The sources, and notes on citations of missing sources.
    """
    cited = cited_numbers(text)
    used = {*cited, *certain}
    numbers = {source.number for source in sources}
    unknown = [number for number in cited if number not in numbers]
    notes = []
    if unknown:
        listed = ", ".join(f"[{number}]" for number in unknown[:_LISTED])
        is_cut = len(unknown) > _LISTED
        more = f" and {len(unknown) - _LISTED} more" if is_cut else ""
        note = f"the answer cites missing sources: {listed}{more}"
        if language_of(text) == "zh":
            more = f"等 {len(unknown)} 个" if is_cut else ""
            note = f"回答标了 {listed.replace(', ', '、')}{more}，没有这样的来源"
        notes.append(note)
    return [replace(source, cited=source.number in used) for source in sources], notes
