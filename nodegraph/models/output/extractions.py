"""Parse summaries, keywords, questions and question-answer pairs from a model's answer.

An answer without any of the requested items is an error. The list is empty only for an answer such
as NONE or [].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .answer_text import (
    ANSWER_LABEL,
    QUESTION_LABEL,
    find_json,
    normalize,
    objects_in,
    parse_lines,
    read_texts,
    strip_markup,
    texts_in,
    unique,
    unwrap,
    value_of,
    without_label,
)
from .queries import is_question, split_questions

Pair = tuple[str, str]

_COMMAS = re.compile(r"[，、;；\n]|,(?!\d)|(?<!\d),")

_WORD = re.compile(r"\w")

_MAX_KEYWORD = 60  # characters

_MAX_KEYWORD_WORDS = 9


def parse_summary(answer: str) -> list[str]:
    """Return the summary in a list, or an empty list for an answer such as NONE.

    Raises:
        ValueError: If the answer is empty, or a refusal.

    Example:
        >>> parse_summary("**Summary:** Tea is a drink.")
        ['Tea is a drink.']
    """
    text, texts = read_texts(answer, ("summary", "text", "摘要"))
    summary = unwrap(without_label(text)) if texts is None else "\n".join(texts)
    if text and not _WORD.search(summary):
        raise ValueError("the answer is empty")
    return [summary] if text else []


def parse_keywords(answer: str) -> list[str]:
    """Return the different keywords of a line, a list or JSON.

    Raises:
        ValueError: If the answer is empty, a refusal, or mostly sentences.

    Example:
        >>> parse_keywords("关键词：长江、黄河，Yangtze; 黄河")
        ['长江', '黄河', 'Yangtze']
    """
    text, items = _items(answer, ("keywords", "keyword", "name", "关键词"))
    words = [strip_markup(word) for item in items for word in _COMMAS.split(item)]
    words = [word for word in words if _WORD.search(word)]
    short = [w for w in words if len(w) <= _MAX_KEYWORD and len(w.split()) <= _MAX_KEYWORD_WORDS]
    if text and (not short or 2 * len(short) < len(words)):
        raise ValueError("the answer must be a list of keywords")
    return unique(short)


def parse_questions(answer: str) -> list[str]:
    """Return the different questions, without answers and remarks between them.

    Raises:
        ValueError: If the answer has no question.

    Example:
        >>> parse_questions("1. What is tea?\\n2. **Who drinks it?**")
        ['What is tea?', 'Who drinks it?']
    """
    text, items = _items(answer, ("questions", "question", "问题"))
    questions = [question for item in items for question in split_questions(item)]
    questions = questions or [item for item in map(strip_markup, items) if is_question(item)]
    if text and not questions:
        raise ValueError("the answer has no question")
    return unique(questions)


def parse_pairs(answer: str) -> list[Pair]:
    """Return pairs of a question and an answer, from JSON or from lines with "Q:" and "A:".

    Questions without an answer are left out.

    Raises:
        ValueError: If the answer has no pair.

    Example:
        >>> parse_pairs("问：茶是什么？\\n答：一种饮品。\\n用叶子制成。")
        [('茶是什么？', '一种饮品。\\n用叶子制成。')]
    """
    text, texts = read_texts(answer, ("pairs",))
    pairs = _labelled_pairs(text) if texts is None else _pairs_in(find_json(text))
    first: dict[str, Pair] = {}
    for question, reply in pairs:
        if _WORD.search(question) and _WORD.search(reply):
            first.setdefault(normalize(question), (question, reply))
    if text and not first:
        raise ValueError("the answer has no question with an answer")
    return list(first.values())


PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    "summary": parse_summary,
    "keywords": parse_keywords,
    "questions": parse_questions,
    "qa": parse_pairs,
}


def _items(answer: str, keys: Sequence[str]) -> tuple[str, list[str]]:
    """Return a cleaned answer, and the texts in its JSON or"""
    text, texts = read_texts(answer, keys)
    return text, [line.text for line in parse_lines(text)] if texts is None else texts


def _labelled_pairs(text: str) -> Iterator[Pair]:
    for part in QUESTION_LABEL.split(text)[1:]:
        question, *reply = ANSWER_LABEL.split(part, 1)
        rows = [row.strip() for row in "".join(reply).split("\n") if _WORD.search(row)]
        yield strip_markup(question), unwrap("\n".join(rows))


def _pairs_in(value: Any) -> Iterator[Pair]:
    for record in objects_in(value or []):
        question = value_of(record, ("question", "问题"))
        if isinstance(question, str):
            reply = texts_in(value_of(record, ("answer", "答案")), ())
            yield question.strip(), "\n".join(reply)
