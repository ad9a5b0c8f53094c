"""Find the sources that an answer cites by their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .answer import Source

_NUMBER = r"\d{1,3}"

_WORD = r"(?:passages?|sources?|refs?\.?|documents?|资料|来源|段落|文献|片段|参考)?\s*#?\s*"

_ONE = rf"\^?{_WORD}{_NUMBER}(?:\s*[-–—~～至]\s*{_NUMBER})?(?:†[^\]】］\n]{{0,40}})?"

_CITATION = re.compile(
    rf"[\[【［]\s*({_ONE}(?:\s*[,，、;；]\s*{_ONE}|\s+and\s+{_ONE}|\s*[和及与]\s*{_ONE})*)\s*[\]】］]"
    r"(?!\()",  # a link
    re.I,
)

_RANGE = re.compile(rf"({_NUMBER})(?:\s*[-–—~～至]\s*({_NUMBER}))?")

_DAGGER = re.compile(r"†[^\]】］\n,，、;；]*")

_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|`[^`\n]+`", re.S)


def only_cites(text: str) -> bool:
    """Return whether a text has no words besides citations.

    Example:
        >>> only_cites("[1]."), only_cites("1974 [1].")
        (True, False)
    """
    return re.search(r"\w", _CITATION.sub("", text)) is None


def cited_numbers(text: str) -> list[int]:
    """Return the numbers that a text cites, each once, in the order in which they come.

    Read are ``[1]``, ``[1, 2]``, ``[1][3]``, ``[1-3]``, ``【1】``, ``［1］``, ``[^1]`` and numbers
    behind a word ("[Source 1]", "【资料1】"). Numbers in round brackets are not, as lists are
    numbered so; nor is what stands in code, a link's text, or a number of four digits (a year).

    Example:
        >>> cited_numbers("Tea [2] is old【1，2】, (3) see `a[4]`, [5-7][2019].")
        [2, 1, 5, 6, 7]
    """
    numbers: dict[int, None] = {}
    for citation in _CITATION.finditer(_CODE.sub(" ", text)):
        for span in _RANGE.finditer(_DAGGER.sub("", citation[1])):
            first, last = int(span[1]), int(span[2] or span[1])
            numbers.update(
                dict.fromkeys(range(first, last + 1) if first <= last else (first, last))
            )
    return list(numbers)


def mark_cited(
    sources: Sequence[Source], text: str, certain: Iterable[int] = ()
) -> tuple[list[Source], list[str]]:
    """Return sources with ``cited`` set, and notes on citations that are the number of no source.

    Args:
        sources: The sources.
        text: The answer.
        certain: Numbers of sources that the answer is from, cited or not.
    """
    cited = cited_numbers(text)
    used = {*cited, *certain}
    numbers = {source.number for source in sources}
    unknown = [number for number in cited if number not in numbers]
    notes = []
    if unknown:
        listed = ", ".join(f"[{number}]" for number in unknown[:8])
        more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
        notes.append(f"the answer cites {listed}{more}, which is the number of no source")
    return [replace(source, cited=source.number in used) for source in sources], notes
