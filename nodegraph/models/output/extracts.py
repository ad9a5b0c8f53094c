"""Parse items that a model extracted from a passage, such as keywords or question-answer pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .answer_text import normalize, read_json, unique
from .items import read_items
from .json_values import objects_in, texts_in, value_of
from .lines import ANSWER_LABEL, QUESTION_LABEL, strip_markup, unwrap, without_label
from .questions import is_question, split_questions

_COMMAS = re.compile(r"[，、;；\n]|,(?!\d)|(?<!\d),")

_WORD = re.compile(r"\w")

_MAX_KEYWORD = 60  # maximum number of characters

_MAX_KEYWORD_WORDS = 9

Pair = tuple[str, str]


def parse_summary(answer: str) -> list[str]:
    """Return a list with the summary, or an empty list if the model answered NONE.

    Raises:
        ValueError: If the answer is empty or a refusal.

    Example:
        >>> parse_summary("**Summary:** Tea is a drink.")
        ['Tea is a drink.']
    """
    keys = ("summary", "text", "摘要")
    text, value = read_json(answer, keys)
    if not text:
        return []
    summary = unwrap(without_label(text)) if value is None else "\n".join(texts_in(value, keys))
    if not _WORD.search(summary):
        raise ValueError("the answer is empty")
    return [summary]


def parse_keywords(answer: str) -> list[str]:
    """Return the keywords in an answer, without duplicates.

    Raises:
        ValueError: If the answer is empty, is a refusal, or consists mostly of sentences.

    Example:
        >>> parse_keywords("关键词：长江、黄河，Yangtze; 黄河")
        ['长江', '黄河', 'Yangtze']
    """
    if (items := read_items(answer, ("keywords", "keyword", "name", "关键词"))) is None:
        return []
    words: list[str] = []
    for item in items:
        words += [strip_markup(word) for word in _COMMAS.split(item.text)]
    words = [word for word in words if _WORD.search(word)]
    short = [word for word in words if _is_short(word)]
    if not short or 2 * len(short) < len(words):
        raise ValueError("the answer must be a list of keywords")
    return unique(short)


def _is_short(word: str) -> bool:
    if len(word) > _MAX_KEYWORD:
        return False
    return len(word.split()) <= _MAX_KEYWORD_WORDS


def parse_questions(answer: str) -> list[str]:
    """Return the questions in an answer, without duplicates.

    Raises:
        ValueError: If the answer does not contain a question.

    Example:
        >>> parse_questions("1. What is tea?\\n2. **Who drinks it?**")
        ['What is tea?', 'Who drinks it?']
    """
    if (items := read_items(answer, ("questions", "question", "问题"))) is None:
        return []
    questions: list[str] = []
    for item in items:
        questions += split_questions(item.text)
    questions = questions or [strip_markup(item.text) for item in items if is_question(item.text)]
    if not questions:
        raise ValueError("the answer has no question")
    return unique(questions)


def parse_pairs(answer: str) -> list[Pair]:
    """Return the question-answer pairs in JSON, or in lines that begin with "Q:" and "A:".

    Questions without an answer are left out.

    Raises:
        ValueError: If the answer does not contain a question-answer pair.

    Example:
        >>> parse_pairs("问：茶是什么？\\n答：一种饮品。\\n用叶子制成。")
        [('茶是什么？', '一种饮品。\\n用叶子制成。')]
    """
    text, value = read_json(answer, ("pairs",))
    if not text:
        return []
    pairs: list[tuple[Any, str]] = []
    if value is None:
        for part in QUESTION_LABEL.split(text)[1:]:
            question, *reply = ANSWER_LABEL.split(part, 1)
            pairs.append((strip_markup(question), unwrap("".join(reply))))
    else:
        for record in objects_in(value):
            reply = [*texts_in(value_of(record, ("answer", "答案")), ())]
            pairs.append((value_of(record, ("question", "问题")), "\n".join(reply)))
    first: dict[str, Pair] = {}
    for question, answered in pairs:
        if isinstance(question, str) and _WORD.search(question) and _WORD.search(answered):
            first.setdefault(normalize(question), (question.strip(), answered))
    if not first:
        raise ValueError("the answer has no question with an answer")
    return list(first.values())


PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    "summary": parse_summary,
    "keywords": parse_keywords,
    "questions": parse_questions,
    "qa": parse_pairs,
}
