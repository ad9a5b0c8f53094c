"""Checks of questions that a model wrote: wording, answers, and where an answer is."""

from __future__ import annotations

import re
import unicodedata

from ...nodegraph.node import Node
from ...nodegraph.splitters.sentences import split_sentences
from ...nodegraph.splitters.tokens import UNSPACED
from .dataset import Gold, GoldPassage, GoldSpan, Question

_UNIT = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")

_OF_THE_PASSAGE = re.compile(
    r"""\b(?:this|these|the|above|given|following|provided|first|second|both)\s+
    (?:two\s+)?(?:passage|text|article|paragraph|document|excerpt|context|author|
    (?:code\s+)?snippet)s?\b
    |\b(?:above|given|following|provided)\s+code\b
    |[本该上此这](?:文|段|篇|短文|材料|资料|文本)|文中|段落|(?:上述|以上|下列|以下)(?:文|内容|材料)""",
    re.I | re.X,
)

_PUNCTUATION = re.compile(r"[\W_]+")


def copied_share(question: str, passage: str) -> float:
    """Return how much of a question is its longest run of words that stands in a passage.

    Words, and characters of scripts without spaces, are counted. Case does not count. Of 100 to
    300 questions that people wrote, on CMRC 2018, HotpotQA and the German XQuAD, the median is
    0.42, 0.26 and 0.25, and nine of ten are below 0.68, 0.47 and 0.46.

    Example:
        >>> copied_share("Which tea is not fermented?", "Green tea is not fermented.")
        0.8
    """
    expected, text = _units(question), _units(passage)
    best, row = 0, [0] * (len(text) + 1)
    for unit in expected:
        after = [0] * (len(text) + 1)
        for position, other in enumerate(text, 1):
            if unit == other:
                after[position] = row[position - 1] + 1
                best = max(best, after[position])
        row = after
    return best / len(expected) if expected else 0.0


def names_passage(question: str) -> bool:
    """Return whether a question speaks of the passage, so that it isn't understood by itself.

    Example:
        >>> names_passage("What does the passage say of tea?"), names_passage("What is tea?")
        (True, False)
    """
    return _OF_THE_PASSAGE.search(question) is not None


def agree(answer: str, other: str) -> bool:
    """Return whether two short answers say the same: one has the other in it, or half its words.

    Half by the F1 of words (SQuAD's: Rajpurkar et al., 2016).

    Example:
        >>> agree("in 1828", "1828."), agree("in Skien", "in Oslo in 1828")
        (True, False)
    """
    item, two = _plain(answer), _plain(other)
    if not item or not two:
        return False
    if f" {item} " in f" {two} " or f" {two} " in f" {item} " or _unspaced_in(item, two):
        return True
    return _overlap(answer, other) >= 0.5


def same_question(item: Question, other: Question) -> bool:
    """Return whether two questions are one: equal words, or nine of ten and the same answer.

    Example:
        >>> one = Question("1", "Which tea is from Hangzhou?", answers=("Longjing",))
        >>> same_question(one, Question("2", "which tea is from Hangzhou")), same_question(
        ...     one, Question("3", "Which tea is from Fujian?", answers=("Wuyi",))
        ... )
        (True, False)
    """
    if _plain(item.text) == _plain(other.text):
        return True
    answers = [{_plain(answer) for answer in question.answers} for question in (item, other)]
    return bool(answers[0] & answers[1]) and _overlap(item.text, other.text) >= 0.9


def _overlap(item: str, other: str) -> float:
    """Return the F1 of two texts' words."""
    words, others = _units(item), _units(other)
    common = sum(min(words.count(word), others.count(word)) for word in set(words))
    return 2 * common / (len(words) + len(others) or 1)


def gives_away(question: str, answer: str) -> bool:
    """Return whether a question has its answer in it, as whole words where words have spaces.

    Example:
        >>> gives_away("What is the Rhine called?", "The Rhine"), gives_away("In 1880?", "188")
        (True, False)
    """
    item, other = _plain(question), _plain(answer)
    inside = f" {other} " in f" {item} "
    return bool(other) and (inside or (len(other) <= len(item) and _unspaced_in(item, other)))


def answer_position(answer: str, text: str, question: str) -> tuple[int, int] | None:
    """Return where an answer is in a text, None where it isn't. Letter case and width apart.

    Of several places it is that in whose sentence most of the question's words are.
    """
    pattern = r"\s+".join(map(re.escape, answer.strip(" .。\"'“”").split()))
    if not pattern:
        return None
    positions = [match.span() for match in re.finditer(pattern, text, re.I)]
    if len(positions) < 2:
        return positions[0] if positions else None
    words = set(_units(question))

    def shared(position: tuple[int, int]) -> int:
        return len(words & set(_units(_sentence_at(text, position[0]))))

    return max(positions, key=shared)


def gold_at(node: Node, position: tuple[int, int] | None = None) -> Gold:
    """Return the span of a node's document that is gold, the whole node without a place.

    A node that was not cut from its document is a gold passage.
    """
    if node.start is None or node.end is None:
        return GoldPassage(node.text)
    start, stop = position or (0, len(node.text))
    return GoldSpan(
        node.document_id or node.id, node.start + start, node.start + stop, node.text[start:stop]
    )


def _units(text: str) -> list[str]:
    return _UNIT.findall(unicodedata.normalize("NFKC", text).casefold())


def _plain(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text).casefold()
    return _PUNCTUATION.sub(" ", normal).strip()


def _unspaced_in(item: str, other: str) -> bool:
    """Return whether one text is in another where words have no spaces."""
    shorter, longer = sorted((item, other), key=len)
    return re.search(f"[{UNSPACED}]", shorter) is not None and shorter in longer


def _sentence_at(text: str, position: int) -> str:
    start = 0
    for sentence in split_sentences(text):
        at = text.find(sentence, start)
        if at <= position < at + len(sentence):
            return sentence
        start = max(start, at)
    return text
