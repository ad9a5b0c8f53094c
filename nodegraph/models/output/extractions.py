"""Parse summaries, keywords, questions and question-answer pairs from a model's answer.

Models number, quote, explain and format as they like, in Chinese and English. An answer without any
of the requested items is an error. An empty list is returned only where the model says there are
none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...splitters.chunking import UNSPACED
from .json_values import parse_answer, texts_in, value_of
from .lines import (
    ANSWER_KEYS,
    ANSWER_LABEL,
    BULLET,
    HEADING,
    QUESTION_KEYS,
    QUESTION_LABEL,
    SEPARATOR,
    normalize,
    split_bullet,
    strip_markup,
    strip_question_label,
    unique,
    unwrap,
)
from .queries import looks_like_question, split_questions

Pair = tuple[str, str]

_INLINE_ANSWER = re.compile(
    r"(?:(?<=[?？])|(?<=[?？][*\"”])|(?<=[?？]\*\*)|(?<=\s))"
    r"(?=[*_【\[]{0,3}(?:Answer|ANSWER|A|答案|回答|答)\s*\d{0,3}[*_】\]]{0,3}[:：])"
)

_INLINE_QUESTION = re.compile(
    r"(?<=[。.!！；;\s])"
    r"(?=[*_【\[]{0,3}(?:Question|QUESTION|Q|问题|问)\s*\d{0,3}[*_】\]]{0,3}[:：])"
)

_INLINE_NUMBER = re.compile(r"(?<=\S)\s+(?=\(?\d{1,2}[.)、）]\s*\D)")

_QUESTION_THEN_ANSWER = re.compile(
    r"(\s*(?:[-*•]\s*)?\(?\d{1,3}[.)、）].+?[?？][*_\"”]*)[ \t]*[-–—:：]*[ \t]*(\S.*)"
)

_COMMAS = re.compile(r"[，、;；\n]|,(?!\d)|(?<!\d),|\s[•·|]\s")

_DESCRIBED = re.compile(r"(.{1,60}?)\s*(?:[:：]\s*(?!\d)|\s[-–—]+\s|——)(\S.*)", re.S)

_BOLD_TERM = re.compile(r"\*\*([^*]{1,60}?)[:：]?\*\*\s*(?:[:：–—-]+|[(（])\s*\S")

_MAX_KEYWORD = 60  # characters

_MAX_KEYWORD_WORDS = 9

_MAX_QUESTION = 300  # characters of one without a question mark

_MAX_HEADINGS = 3  # at the start of a line


def parse_summary(answer: str) -> list[str]:
    """Return the one summary, or nothing if the model says that there is none.

    Raises:
        ValueError: If the answer is empty, or a refusal.

    Example:
        >>> parse_summary("**Summary:** Tea is a drink.")
        ['Tea is a drink.']
    """
    text, value = parse_answer(answer)
    if text is None:
        return []
    if value is not None:
        texts = [*filter(None, texts_in(value, ("summary", "摘要", "总结", "text", "content")))]
        if not texts:
            raise ValueError("the answer is JSON without a text")
        return ["\n".join(texts)]
    summary = unwrap(_strip_heading(text))
    if not re.search(r"\w", summary):
        raise ValueError("the answer is empty")
    return [summary]


def parse_keywords(answer: str) -> list[str]:
    """Return the different keywords of a line, a list or JSON, without explanations.

    Raises:
        ValueError: If the answer is empty, a refusal, or mostly sentences.

    Example:
        >>> parse_keywords("关键词：长江、黄河，Yangtze; 黄河")
        ['长江', '黄河', 'Yangtze']
    """
    text, value = parse_answer(answer)
    if text is None:
        return []
    if value is not None:
        keys = ("keyword", "name", "term", "word", "text", "关键词")
        words = [word for item in texts_in(value, keys) for word in _COMMAS.split(item)]
    else:
        lines = list(_content_lines(text))
        by_kind = _are_by_kind(lines)
        words = [word for line in lines for word in _keywords_of(line, by_kind)]
    words = [word for word in map(strip_markup, words) if re.search(r"\w", word)]
    short = [word for word in words if _is_short(word)]
    if not short or 2 * len(short) < len(words):
        raise ValueError("the answer is no list of keywords")
    return unique(short)


def parse_questions(answer: str) -> list[str]:
    """Return the different questions, without answers and remarks between them.

    Raises:
        ValueError: If there is no question in the answer.

    Example:
        >>> parse_questions("1. What is tea?\\n2. **Who drinks it?**")
        ['What is tea?', 'Who drinks it?']
    """
    text, value = parse_answer(answer)
    if text is None:
        return []
    if value is not None:
        questions = [strip_markup(item) for item in texts_in(value, QUESTION_KEYS)]
    else:
        lines = [line for line in _content_lines(text) if not ANSWER_LABEL.match(line)]
        questions = [question for line in lines for question in split_questions(line)]
        if not questions:  # some leave out the question marks
            plain = filter(looks_like_question, map(strip_question_label, lines))
            questions = [line for line in plain if len(line) <= _MAX_QUESTION]
    questions = [question for question in questions if re.search(r"\w", question)]
    if not questions:
        raise ValueError("there is no question in the answer")
    return unique(questions)


def parse_pairs(answer: str) -> list[Pair]:
    """Return pairs of a question and its answer, which may have several lines.

    A last question without an answer is left out.

    Raises:
        ValueError: If there is no pair in the answer.

    Example:
        >>> parse_pairs("问：茶是什么？\\n答：一种饮品。\\n用叶子制成。")
        [('茶是什么？', '一种饮品。\\n用叶子制成。')]
    """
    text, value = parse_answer(answer)
    if text is None:
        return []
    if value is not None:
        pairs = _pairs_in_json(value)
    else:
        lines = [part for line in _strip_heading(text).split("\n") for part in _at_labels(line)]
        is_labelled = any(map(ANSWER_LABEL.match, lines))
        pairs = _labelled_pairs(lines) if is_labelled else _unlabelled_pairs(lines)
    first: dict[str, Pair] = {}
    for question, text in pairs:
        if re.search(r"\w", question) and text.strip():
            first.setdefault(normalize(question), (question, text))
    if not first:
        raise ValueError("there is no question with an answer in the answer")
    return list(first.values())


PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    "summary": parse_summary,
    "keywords": parse_keywords,
    "questions": parse_questions,
    "qa": parse_pairs,
}


def _strip_heading(text: str) -> str:
    heading = HEADING.match(text)
    return text[heading.end() :] if heading else text


def _content_lines(text: str) -> Iterator[str]:
    """Yield the lines that have content, a numbered list in one line as several."""
    for line in text.split("\n"):
        for _ in range(_MAX_HEADINGS):
            line = _strip_heading(line + "\n").removesuffix("\n")
        parts = _INLINE_NUMBER.split(line) if re.match(r"\s*\(?\d", line) else [line]
        yield from (part for part in parts if part.strip() and not SEPARATOR.fullmatch(part))


def _are_by_kind(lines: Iterable[str]) -> bool:
    """Check whether all lines are like "People: Ada, Charles": a kind of keywords, then those."""
    items = [split_bullet(line)[0].strip() for line in lines]
    matches = [match for match in map(_DESCRIBED.fullmatch, items) if match]
    signs = {match[0][match.end(1) :].lstrip()[0] for match in matches}
    if len(matches) < len(items) or any(map(_BOLD_TERM.match, items)) or not signs <= {":", "："}:
        return False
    rows = [[strip_markup(word) for word in _COMMAS.split(match[2])] for match in matches]
    fit = all(len(word) <= 24 and len(word.split()) <= 3 for words in rows for word in words)
    return fit and any(len(words) > 1 for words in rows)


def _keywords_of(line: str, by_kind: bool) -> list[str]:
    item, listed = split_bullet(line)
    described = _DESCRIBED.fullmatch(item)
    if described is not None and by_kind:
        return _COMMAS.split(described[2])
    if bold := _BOLD_TERM.match(item.strip()):
        return [bold[1]]
    if described is not None and listed:
        return [described[1]]
    return _COMMAS.split(item)


def _is_short(word: str) -> bool:
    limit = _MAX_KEYWORD if not re.search(f"[{UNSPACED}]", word) else _MAX_KEYWORD // 2
    return len(word) <= limit and len(word.split()) <= _MAX_KEYWORD_WORDS


def _at_labels(line: str) -> list[str]:
    """Split a line before the labels that have text before them."""
    word = re.search(r"\w", line)
    if word is None:
        return [line]
    for inline in (_INLINE_ANSWER, _INLINE_QUESTION):
        line = inline.sub(lambda label: "\n" if label.start() > word.start() else "", line)
    return line.split("\n")


def _labelled_pairs(lines: Iterable[str]) -> Iterator[Pair]:
    """Yield the pairs of "Q: ... A: ...". Lines between two labels belong to the first."""
    question: list[str] = []
    answer: list[str] | None = None
    for line in lines:
        if label := ANSWER_LABEL.match(line):
            answer = answer or []
            answer.append(line[label.end() :])
            continue
        label = QUESTION_LABEL.match(line)
        if answer is None and not label:
            question.append(line)
        elif label or _is_marked_question(line):  # some label only the answers
            if answer is not None:
                yield _pair(question, answer)
            question, answer = [line[label.end() :] if label else line], None
        elif answer is not None:
            answer.append(line)
    if answer is not None:
        yield _pair(question, answer)


def _is_marked_question(line: str) -> bool:
    """Check whether a line is a numbered or bold question without a label."""
    bullet = BULLET.match(line)
    marked = bullet is not None and re.search(r"[\d①-⑳#]|\*\*", bullet[0])
    return bool(marked) and line.rstrip(' *_"”').endswith(("?", "？"))


def _unlabelled_pairs(lines: list[str]) -> Iterator[Pair]:
    """Yield the pairs of questions that stand out and the lines after each."""
    marked = any(_is_marked_question(line) or _split_numbered(line) for line in lines)
    question: str | None = None
    answer: list[str] = []
    for line in lines:
        inline = _split_numbered(line)
        is_plain = not marked and line.rstrip(" *_").endswith(("?", "？"))
        if inline is None and not is_plain and not _is_marked_question(line):
            answer.append(line)
            continue
        if question is not None:
            yield _pair([question], answer)
        question, answer = (line, []) if inline is None else (inline[0], [inline[1]])
    if question is not None:
        yield _pair([question], answer)


def _split_numbered(line: str) -> Pair | None:
    """Split a line like ``1. What is tea? A drink``. None for any other."""
    parts = _QUESTION_THEN_ANSWER.fullmatch(line.rstrip())
    return (parts[1], parts[2]) if parts and re.search(r"\w", parts[2]) else None


def _pair(question: Iterable[str], answer: list[str]) -> Pair:
    joined = " ".join(line.strip() for line in question if not SEPARATOR.fullmatch(line))
    while answer and (not answer[-1].strip() or SEPARATOR.fullmatch(answer[-1])):
        if len(answer) == 1 and re.search(r"\w", answer[0]):
            break  # a number may be the answer
        answer.pop()
    text = "\n".join(answer).strip()
    # The rest of a bold label.
    text = text[2:].lstrip() if text.startswith("**") and text.count("**") % 2 else text
    text = re.sub(r"^[-*•]\s+", "", text) if "\n" not in text else text
    return strip_markup(strip_question_label(joined)), unwrap(text)


def _pairs_in_json(value: Any) -> Iterator[Pair]:
    if isinstance(value, Mapping):
        unnumbered = {str(key).rstrip("0123456789 "): item for key, item in value.items()}
        question, answer = value_of(unnumbered, QUESTION_KEYS), value_of(unnumbered, ANSWER_KEYS)
        if question is not None and answer is not None and not isinstance(question, list):
            yield _text_of(question), _text_of(answer)
            return
        for key, item in value.items():
            if not isinstance(item, str):
                yield from _pairs_in_json(item)
            elif str(key).rstrip().endswith(("?", "？")):
                yield str(key), item
    elif isinstance(value, list):
        if len(value) == 2 and all(isinstance(item, str) for item in value):
            yield value[0], value[1]
        else:
            for item in value:
                yield from _pairs_in_json(item)


def _text_of(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text_of, value))
    return "" if value is None else str(value).strip()
