"""Parse the question-answer pairs that a model extracted from a passage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .answer_text import normalize, read_json
from .bullets import indent_of, split_bullet
from .chinese_script import chinese_pattern
from .json_values import objects_in, texts_in, value_of
from .lines import is_extra, label_pattern, strip_markup, unwrap
from .missing_passage import check_passage_given
from .questions import is_offer, is_question
from .tables import read_table

Pair = tuple[str, str]

_PAIR = 2  # number of texts in a pair

_WORD = re.compile(r"\w")

_QUESTION_KEYS = tuple("question q query prompt instruction input user front 问题 问 提问".split())

_ANSWER_KEYS = tuple(
    """answer a response completion reply output assistant back answer_text answers solution
    答案 回答 答 解答 答复""".split()
)

_PAIR_KEYS = ("pairs", "qa_pairs", "question_answer_pairs", "qas", "qa", "questions", "问答对")

_QUESTION_WORDS = r"questions?|Q|问题?|提问"

_ANSWER_WORDS = r"answers?|ans|A|response|reply|答(?:案|[复覆])?|回答|解答"

_QUESTION_COLUMN = chinese_pattern(rf"\W*(?:{_QUESTION_WORDS})\W*", re.I)

_ANSWER_COLUMN = chinese_pattern(rf"\W*(?:{_ANSWER_WORDS})\W*", re.I)

# Matches "Q1. " and "**A1)** " as well as "Question: ".
_QUESTION = chinese_pattern(
    rf"{label_pattern(_QUESTION_WORDS).pattern}"
    r"|^[\s*_\#>❓🙋-]{0,12}(?:Q|问)\s?\#?\d{0,2}\s?(?:[.)、．|-]|[-–—]\s)[*_]{0,3}\s{0,9}"
    rf"|^[\s*_\#>-]{{0,9}}(?:{_QUESTION_WORDS})\s?\#?\d{{0,2}}[\s*_]{{0,4}}\n\s{{0,9}}(?=\S)"
    r"|^\s{0,9}❓\s{0,4}",
    re.I | re.M | re.X,
)

_ANSWER = chinese_pattern(
    rf"{label_pattern(_ANSWER_WORDS).pattern}"
    r"|^[\s*_\#>-]{0,12}(?:A|答)\s?\#?\d{0,2}\s?(?:[.)、．|]|[-–—]\s)[*_]{0,3}\s{0,9}"
    rf"|^[\s*_\#>-]{{0,9}}(?:{_ANSWER_WORDS})\s?\#?\d{{0,2}}[\s*_]{{0,4}}\n\s{{0,9}}(?=\S)"
    r"|^\s{0,9}(?:[✅💡👉]|[-=]>|→)\s{0,4}"
    rf"|(?<=[?？])[\s*_|/\"”,;；(（–—-]{{0,9}}(?:{_ANSWER_WORDS})\s?\d{{0,2}}[*_]{{0,3}}\s?[:：][*_]{{0,3}}\s{{0,9}}",
    re.I | re.M | re.X,
)

# A label of text that the prompt did not request.
_REMARK = label_pattern(
    r"difficulty|type|explanation|source|evidence|references?|notes?|category|topic|tags?|context|level"
    r"|难度|类型|来源|解析|依据|备注|出处|说明|类别"
)

# A rule, a number or the title of the next pair at the end of an answer.
_TAIL = chinese_pattern(
    r"(?:\n[\s*_#>]{0,9}(?:-{3,20}|={3,20}|\*{3}|_{3}|\d{1,3}[.)、．]"
    r"|(?:(?:qa\s)?pair|example|q&a|问答对?|第)\s?\#?[\d一二三四五六七八九十]{0,3}\s?[组个对]?)"
    r"[\s*_:：]{0,9})+\Z",
    re.I,
)


def parse_pairs(answer: str) -> list[Pair]:
    """Return the question-answer pairs in an answer.

    The pairs may be JSON objects, the rows of a table, lines that begin with "Q:" and "A:", or
    questions that are headings or items of a list. Questions without an answer are left out.

    Raises:
        ValueError: If the answer does not contain a question-answer pair.

    Example:
        >>> parse_pairs("问：茶是什么？\\n答：一种饮品。\\n用叶子制成。")
        [('茶是什么？', '一种饮品。\\n用叶子制成。')]
        >>> parse_pairs("### What is tea?\\nA drink.")
        [('What is tea?', 'A drink.')]
    """
    text, value = read_json(_with_answer_tags(answer), _PAIR_KEYS)
    if not text:
        return []
    check_passage_given(text)
    pairs = _of_text(text) if value is None else _of_value(value)
    first: dict[str, Pair] = {}
    for question, answered in pairs:
        if _WORD.search(question) and _WORD.search(answered):
            first.setdefault(normalize(question), (question.strip(), answered))
    if not first:
        raise ValueError("the answer has no question with an answer")
    return [*first.values()]


def _with_answer_tags(answer: str) -> str:
    """Replace the tags of answers, since ``<answer>`` may enclose the whole text otherwise."""
    if not re.search(r"<(?:question|q)[\s>]", answer, re.I):
        return answer
    return re.sub(r"(</?)(?:answer|a)>", r"\1reply>", answer, flags=re.I)


def _of_value(value: Any) -> list[Pair]:
    """Return the pairs in a JSON value."""
    pairs: list[Pair] = []
    for record in _records(value):
        pairs += _of_record(record)
    if pairs or not isinstance(value, list):
        return pairs
    if all(isinstance(item, list) and len(item) == _PAIR for item in value):
        return [(_text(item[0]), _text(item[1])) for item in value]
    texts = [item for item in value if isinstance(item, str)]
    return _of_text("\n".join(texts))


def _records(value: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, list | Mapping):
        yield from objects_in(value)


def _of_record(record: Mapping[Any, Any]) -> list[Pair]:
    """Return the pairs in an object. Inner objects are ignored."""
    question = value_of(record, _QUESTION_KEYS)
    answer = value_of(record, _ANSWER_KEYS)
    if isinstance(question, str):
        return [(question, _text(answer))]
    questions = value_of(record, ("questions", "问题"))
    answers = value_of(record, ("answers", "答案"))
    if isinstance(questions, list) and isinstance(answers, list) and len(questions) == len(answers):
        return [(_text(q), _text(a)) for q, a in zip(questions, answers, strict=True)]
    asked = [key for key in record if isinstance(key, str) and key.rstrip().endswith(("?", "？"))]
    if asked:
        return [(key, _text(record[key])) for key in asked]
    return _of_numbered_keys(record)


_NUMBERED_KEY = chinese_pattern(
    rf"(?:(?P<question>{_QUESTION_WORDS})|(?:{_ANSWER_WORDS}))[\s_-]?(?P<number>\d{{1,3}})", re.I
)


def _of_numbered_keys(record: Mapping[Any, Any]) -> list[Pair]:
    """Return the pairs in an object such as ``{"Q1": "…", "A1": "…", "Q2": …}``."""
    questions: dict[str, str] = {}
    answers: dict[str, str] = {}
    for key, value in record.items():
        found = _NUMBERED_KEY.fullmatch(str(key))
        if found is not None and not isinstance(value, Mapping):
            chosen = questions if found["question"] else answers
            chosen[found["number"]] = _text(value)
    return [(question, answers.get(number, "")) for number, question in questions.items()]


def _text(value: Any) -> str:
    """Return the text of a JSON value."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return "\n".join(texts_in([value], ("text", "answer", "content")))


def _of_text(text: str) -> list[Pair]:
    """Return the pairs in a table, in labeled lines, or in questions with text below them."""
    lines = text.split("\n")
    rows = read_table(lines, _QUESTION_COLUMN)
    of_rows = _of_rows(rows) if rows else []
    if of_rows:
        return of_rows
    two_lists = _of_two_lists(lines)
    if two_lists:
        return two_lists
    parts = _QUESTION.split(text)[1:]
    pairs = [_of_part(part) for part in parts]
    if any(answered for _, answered in pairs):
        return pairs
    return _of_lines(lines)


def _of_rows(rows: Sequence[dict[str, str]]) -> list[Pair]:
    """Return the pairs in the rows of a table."""
    names = [*rows[0]]
    asked = [name for name in names if _QUESTION_COLUMN.fullmatch(name)]
    asked += [name for name in names if all(is_question(row.get(name, "")) for row in rows)]
    if not asked:
        return []
    rest = names[names.index(asked[0]) + 1 :]
    answered = [name for name in rest if _ANSWER_COLUMN.fullmatch(name)] or rest
    if not answered:
        return []
    return [(row.get(asked[0], ""), row.get(answered[0], "")) for row in rows]


def _of_part(part: str) -> Pair:
    """Return the pair in a text that begins after the label of a question."""
    found = _ANSWER.search(part)
    if found is None:
        return "", ""
    question = _TAIL.sub("", part[: found.start()].rstrip())
    return strip_markup(question), _bare_answer(part[found.end() :])


def _bare_answer(text: str) -> str:
    """Remove remarks, rules and the title of the next pair from an answer."""
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and is_extra(line, kept, _REMARK):
            break
        kept.append(line)
    body = _TAIL.sub("", "\n".join(kept).rstrip())
    return unwrap(body.strip()).removesuffix("**").strip()


# A heading between the questions and the answers.
_ANSWERS_TITLE = chinese_pattern(rf"[\s*_#]{{0,9}}(?:{_ANSWER_WORDS})[\s*_:：]{{0,9}}", re.I)


def _of_two_lists(lines: Sequence[str]) -> list[Pair]:
    """Return the pairs in a list of questions that is followed by a list of answers."""
    titles = [at for at, line in enumerate(lines) if _ANSWERS_TITLE.fullmatch(line)]
    if len(titles) != 1:
        return []
    questions = _listed(lines[: titles[0]])
    answers = _listed(lines[titles[0] + 1 :])
    if len(questions) != len(answers) or len(questions) < _MIN_LIST:
        return []
    pairs = zip(questions, answers, strict=True)
    return [(strip_markup(question), _bare_answer(answer)) for question, answer in pairs]


_MIN_LIST = 2  # minimum number of questions in a list


def _listed(lines: Sequence[str]) -> list[str]:
    """Return the items of a list, without bullets and numbers."""
    split = [split_bullet(line) for line in lines]
    return [text for text, is_listed in split if is_listed]


# A question with its answer in the same line: "1. Who wrote it? – Ibsen".
_IN_LINE = re.compile(
    r"(?P<question>[^?？]{2,300}[?？])[\"”’*_]{0,4}\s{0,4}"
    r"(?:[:：|=→,，]|[-–—=]{1,2}>?\s|——|[(（](?=[^()（）]*[)）]\W{0,3}\Z)|(?<=\*\*)|(?<=\s))\s{0,4}"
    r"(?P<answer>[^?？]+)"
)


def _of_lines(lines: Sequence[str]) -> list[Pair]:
    """Return the pairs in questions that are headings, bold lines or items with text below."""
    kind: str | None = None
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        question, rest, own = _asked(line)
        if question and kind in (None, own):
            kind = own
            found.append((question, [rest] if rest else []))
        elif found:
            found[-1][1].append(_without_bullet(line))
    return [(question, _bare_answer(_without_label("\n".join(body)))) for question, body in found]


def _without_label(text: str) -> str:
    """Remove the label of an answer, such as "Answer: "."""
    found = _ANSWER.match(text)
    return text[found.end() :] if found is not None else text


def _without_bullet(line: str) -> str:
    """Remove the bullet of the only line of an answer. Numbers are kept."""
    return re.sub(r"\A\s*(?:[-*•→>]\s{1,4})", "", line).strip()


def _asked(line: str) -> tuple[str, str, str]:
    """Return the question in a line, the answer after it, and the style of the line."""
    bare, is_listed = split_bullet(line)
    found = _IN_LINE.fullmatch(bare.strip(" *_"))
    question = found["question"] if found is not None else bare
    question = strip_markup(question)
    if not question.endswith(("?", "？")) or is_offer(question):
        return "", "", ""
    style = "plain"
    if line.lstrip().startswith("#"):
        style = "heading"
    elif is_listed:
        style = f"item {indent_of(line)}"
    elif bare.startswith("**"):
        style = "bold"
    rest = found["answer"].strip() if found is not None else ""
    if rest.endswith((")", "）")) and not re.search("[(（]", rest):
        rest = rest[:-1]
    return question, _LABEL_OF_ANSWER.sub("", rest), style


_LABEL_OF_ANSWER = chinese_pattern(rf"\A\W*(?:{_ANSWER_WORDS})\s?[:：]\s?", re.I)
