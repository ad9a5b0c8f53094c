"""Read what a model says to the user, all at once or piece by piece with the same result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..language import Language

MARKS: Mapping[Language, str] = MappingProxyType({"zh": "无答案", "en": "NO_ANSWER"})
"""What prompts ask a model to write where the passages do not answer the question."""

_OPEN = r"[【「\[(（*`\"'“<]{0,4}"

_SHUT = r"[】」\])）*`\"'”>。.!！\s]{0,8}"

_ALONE = re.compile(rf"\s*{_OPEN}(?:无答案|no[_ ]answer){_SHUT}\Z", re.I)

_FIRST = re.compile(
    rf"\s*{_OPEN}(?:NO_ANSWER\b|无答案(?=[】」\])）*`。.!！，,：:；;\n])){_SHUT}[，,：:；;—–-]?\s*"
)

_LAST = re.compile(rf"{_OPEN}(?:(?<!\w)NO_ANSWER|无答案){_SHUT}\Z")

_BEGUN = "|".join(
    sorted((mark[:end] for mark in MARKS.values() for end in range(1, len(mark) + 1)), reverse=True)
)

_PERHAPS_LAST = re.compile(rf"{_OPEN}(?:(?:{_BEGUN}){_SHUT})?\Z")

_TAIL = 40  # characters in which a mark and what stands around it have room

_THINK = r"(?:think(?:ing)?|thoughts?|reasoning|reflection)"

_THOUGHTS = re.compile(rf"\s*<({_THINK})>.*?(</\1>|\Z)", re.S | re.I)

_PERHAPS_THOUGHTS = re.compile(r"\s*(?:<[a-z]{0,10})?\Z", re.I)

_THOUGHTS_END = re.compile(rf"(?:\A|\n)[ \t]*</{_THINK}>", re.I)

_WORDS = tuple(
    f"{before}{word}"
    for word, befores in {
        "answer": ("", "the ", "the improved ", "improved ", "the final ", "final "),
        "回答": ("", "改进后的", "最终", "最终的"),
        "答案": ("", "改进后的", "最终", "最终的"),
    }.items()
    for before in befores
)

_WORD = rf"(?:{'|'.join(_WORDS)})\s*"

_LABEL = re.compile(rf"\s*(?:\*\*\s*{_WORD}(?:\*\*\s*[:：]|[:：]\s*\*\*)|{_WORD}[:：])\s*", re.I)


@dataclass(frozen=True, slots=True)
class Said:
    """Hold what a model said.

    Attributes:
        text: The answer, without thoughts, a label ("Answer:") and marks.
        found: False where it says, by the mark that it was told, that there is no answer.
    """

    text: str
    found: bool


def read_said(answer: str) -> Said:
    """Read an answer that is there as a whole.

    The mark counts where it is the answer, begins it, or ends it as a sentence of its own.

    Example:
        >>> read_said("<think>Nothing here.</think>NO_ANSWER. Ask the zoo.")
        Said(text='Ask the zoo.', found=False)
        >>> read_said("这道题无答案。")
        Said(text='这道题无答案。', found=True)
    """
    _, text, found = _read(answer)
    return Said(text, found)


class SaidReader:
    """Read an answer that comes in pieces; tell at once what is certain to be part of it.

    What is told is, joined, the ``text`` that ``read_said`` returns; unless a model ends its
    thoughts without having begun them, which shows only when they have been told.

    Example:
        >>> reader = SaidReader()
        >>> [reader.feed(piece) for piece in ("<thi", "nk>Hm.</think>", "An", "swer: Tea", ". ")]
        ['', '', '', 'Tea', '.']
        >>> reader.close()
        ''
    """

    def __init__(self) -> None:
        self._raw = ""
        self._begin = 0
        self._told = 0

    def feed(self, piece: str) -> str:
        """Take a piece, and return what can be told now."""
        self._raw += piece
        begin = _begin(self._raw, ended=False)
        if begin is None:
            return ""
        body = self._raw[begin:]
        first = _FIRST.match(body)
        if first:
            begin, body = begin + first.end(), body[first.end() :]
        elif _perhaps_alone(body):
            return ""
        return self._tell(begin, body[: _certain(body)])

    def close(self) -> str:
        """Return what was held back and can be told now that nothing more comes."""
        begin, text, _ = _read(self._raw)
        return self._tell(begin, text)

    def _tell(self, begin: int, text: str) -> str:
        if begin > self._begin and self._told:  # what was told were thoughts
            self._told = 0
        self._begin = max(begin, self._begin)
        new = text[self._told :]
        self._told = max(self._told, len(text))
        return new


def _read(raw: str) -> tuple[int, str, bool]:
    """Return where the answer begins, the answer, and whether it is one."""
    begin = _begin(raw, ended=True) or 0
    body = raw[begin:]
    if _ALONE.match(body):
        return begin, "", False
    first = _FIRST.match(body)
    begin, body = (begin + first.end(), body[first.end() :]) if first else (begin, body)
    last = _last(body)
    body = body if last is None else body[:last]
    return begin, body.strip(), not (first or last is not None)


def _last(body: str) -> int | None:
    """Return where an answer ends that a mark follows as a sentence of its own."""
    mark = _LAST.search(body, max(0, len(body) - _TAIL))
    if mark is None:
        return None
    before = body[: mark.start()].rstrip()
    apart = "\n" in body[len(before) : mark.start()] or before.endswith(tuple("。.!！?？"))
    return len(before) if apart or MARKS["en"] in mark[0] else None


def _begin(raw: str, *, ended: bool) -> int | None:
    """Return where the answer begins behind thoughts and a label; None while that is unknown."""
    begin = 0
    thoughts = _THOUGHTS.match(raw)
    if thoughts:
        if not (thoughts[2] or ended):
            return None
        begin = thoughts.end()
    elif not ended and _PERHAPS_THOUGHTS.match(raw):
        return None
    elif "</" in raw and (end := _THOUGHTS_END.search(raw)):
        begin = end.end()
    label = _LABEL.match(raw, begin)
    if label:
        begin = label.end()
    elif not ended:
        bare = " ".join(re.sub(r"[\s*:：]+", " ", raw[begin : begin + 80]).split()).casefold()
        if any(word.startswith(bare) for word in _WORDS):
            return None
    while begin < len(raw) and raw[begin].isspace():
        begin += 1
    return begin


def _perhaps_alone(body: str) -> bool:
    """Tell whether a text could go on to be nothing but a mark."""
    if len(body) > _TAIL:
        return False
    bare = body.lstrip(" \t\r\n【「[(（*`\"'“<").casefold().replace(" ", "_")
    return _ALONE.match(body) is not None or "no_answer".startswith(bare)


def _certain(body: str) -> int:
    """Return how much of a text stays, whatever comes."""
    text = body.rstrip()
    tail = text[-_TAIL:]
    held = _PERHAPS_LAST.search(tail)
    end = len(text) - len(tail) + (held.start() if held else len(tail))
    return len(text[:end].rstrip())
