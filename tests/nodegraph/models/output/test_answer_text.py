import contextlib

import pytest

from nodekin.nodegraph.models.output.answer_text import (
    clean,
    find_json,
    is_no_answer,
    parse_lines,
    read_texts,
    strip_markup,
)
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_query,
    parse_sub_questions,
)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("可以", "可以"),
        ("Sure!\n\nTea.", "Tea."),
        ("Sure!\nHere are the keywords:", ""),
        ("Sure! Here is the summary: Tea is a drink.", "Tea is a drink."),
        ("好的，以下是摘要：茶是饮品。", "茶是饮品。"),
        ("以下是关键词：茶、水", "茶、水"),
        ("可以，因为茶是饮品。", "可以，因为茶是饮品。"),
        ("<think>Hm.</think>```\nTea.\n```", "Tea."),
        ("Hm.</think>Tea.", "Tea."),
        ("Tea.\n\nLet me know if you need more!", "Tea."),
    ],
)
def test_clean_strips_thoughts_fences_and_phrases(answer: str, text: str) -> None:
    assert clean(answer) == text


def test_question_is_an_answer() -> None:
    assert not is_no_answer("没有问题吗？")


def test_find_json_ignores_prose_and_fences() -> None:
    assert find_json('Here: {"a": [1, 2]} as you asked') == {"a": [1, 2]}
    assert find_json(clean('<think>[1]</think>```json\n{"a": 1}\n```')) == {"a": 1}
    assert find_json("tea") is None


def test_find_json_rejects_deep_nesting() -> None:
    with pytest.raises(ValueError, match="cut off, or too long"):
        find_json("[" * 301 + "1" + "]" * 301)
    assert find_json("[[[1]]]") == [[[1]]]


def test_find_json_repairs_unescaped_quotes() -> None:
    assert find_json("{'a': 'it's', 'b': ['c', 'd',],}") == {"a": "it's", "b": ["c", "d"]}


TWO = ["Why?", "When?"]

MALFORMED = {
    "single quotes with an apostrophe": "{'questions': ['Why?', 'When?'], 'n': 'it's'}",
    "a trailing comma": '{"questions": ["Why?", "When?",],}',
    "Python's literals": '{"questions": ["Why?", "When?"], "ok": True, "n": None}',
    "a lost bracket and brace": '{"questions": ["Why?", "When?"',
    "lost braces of objects": '[{"question": "Why?"}, {"question": "When?"',
    "bare keys in objects": '[{question: "Why?"}, {question: "When?"}]',
    "bare texts": '{"questions": [Why?, When?]}',
    "no comma": '{"questions": ["Why?" "When?"]}',
    "a comment at a line's end": '{"questions": ["Why?", // first\n "When?"]}',
    "typographic quotes": "{“questions”: [“Why?”, “When?”]}",
    "objects on lines": '{"question": "Why?"}\n{"question": "When?"}',
    "a fence without an end": '```json\n{"questions": ["Why?", "When?"]}',
    "a quoted word": '{"questions": ["Why?", "When?"], "note": "a "quoted" word"}',
    "semicolons": '{"questions": ["Why?"; "When?"]}',
    "cut off in a text": '{"questions": ["Why?", "When?", "Wh',
    "cut off before a list": '{"questions":',
}


def read_questions(answer: str) -> list[str] | None:
    try:
        return parse_sub_questions(answer, "What?", 5)
    except ValueError:
        return None


def test_most_malformed_json_is_read() -> None:
    read = {name: read_questions(answer) for name, answer in MALFORMED.items()}
    assert sum(questions == TWO for questions in read.values()) == 11


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
def test_remains_of_malformed_json_are_no_queries(answer: str) -> None:
    assert set(read_questions(answer) or ()) <= {*TWO, "Wh"}
    for read in (parse_query, lambda a, q: parse_phrasings(a, q, 5)):
        with contextlib.suppress(ValueError):
            for query in [read(answer, "")] if read is parse_query else read(answer, ""):
                assert not set('{}[]"“”') & set(query), query
                assert "questions" not in query


def test_truncated_text_is_not_repaired() -> None:
    for answer in ('{"query": "How long is', '["cut', '{"summary": "cut', "{question: 'Wh"):
        with pytest.raises(ValueError, match="JSON"):
            read_texts(answer, ("query", "summary", "question"))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1. Green tea.", "Green tea"),
        ('- **"Green tea"**', "Green tea"),
        ("2) `红茶`；", "红茶"),
        ("to be continued...", "to be continued..."),
        ("1.5 litres", "1.5 litres"),
        ("", ""),
    ],
)
def test_strip_markup(line: str, text: str) -> None:
    assert strip_markup(line) == text


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("- tea", ("tea", True, False)),
        ("**Rewritten question:** tea?", ("tea?", False, True)),
        ("子问题一：茶？", ("茶？", True, True)),
        ("> tea", ("tea", False, False)),
        ("# Questions", None),
        ("Here they are:", None),
        ("Explanation: it is so", None),
        ("NONE", None),
        ("---", None),
    ],
)
def test_parse_lines(line: str, read: tuple[str, bool, bool] | None) -> None:
    assert [tuple(found) for found in parse_lines(line)] == ([] if read is None else [read])
