import contextlib

import pytest
from support.answer_readers import READERS
from support.stress import amount

from nodekin.nodegraph.models.output.answer_text import clean, is_no_answer
from nodekin.nodegraph.models.output.items import read_items
from nodekin.nodegraph.models.output.json_values import find_json
from nodekin.nodegraph.models.output.lines import strip_markup
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
        ("好的，以下是摘要：茶是饮品。", "茶是饮品。"),
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


def test_find_json_rejects_deep_nesting() -> None:
    assert find_json('Here: {"a": [1, 2]} as you asked') == {"a": [1, 2]}
    assert find_json("{'a': 'it's', 'b': ['c', 'd',],}") == {"a": "it's", "b": ["c", "d"]}
    with pytest.raises(ValueError, match="cut off, or too long"):
        find_json("[" * 301 + "1" + "]" * 301)


TWO = ["Why?", "When?"]

MALFORMED = [
    "{'questions': ['Why?', 'When?'], 'n': 'it's'}",
    '{"questions": ["Why?", "When?",],}',
    '{"questions": ["Why?", "When?"], "ok": True, "n": None}',
    '{"questions": ["Why?", "When?"',
    '[{"question": "Why?"}, {"question": "When?"',
    '[{question: "Why?"}, {question: "When?"}]',
    '{"questions": [Why?, When?]}',
    '{"questions": ["Why?" "When?"]}',
    '{"questions": ["Why?", // first\n "When?"]}',
    "{“questions”: [“Why?”, “When?”]}",
    '{"question": "Why?"}\n{"question": "When?"}',
    '```json\n{"questions": ["Why?", "When?"]}',
    '{"questions": ["Why?", "When?"], "note": "a "quoted" word"}',
    '{"questions": ["Why?"; "When?"]}',
    '{"questions": ["Why?", "When?", "Wh',
    '{"questions":',
]


def read_questions(answer: str) -> list[str] | None:
    try:
        return parse_sub_questions(answer, "What?", 5)
    except ValueError:
        return None


def test_most_malformed_json_is_read() -> None:
    assert sum(read_questions(answer) == TWO for answer in MALFORMED) == 14


@pytest.mark.parametrize("answer", MALFORMED)
def test_remains_of_malformed_json_are_no_queries(answer: str) -> None:
    assert set(read_questions(answer) or ()) <= {*TWO, "Wh"}
    queries = []
    with contextlib.suppress(ValueError):
        queries += parse_phrasings(answer, "", 5)
    with contextlib.suppress(ValueError):
        queries.append(parse_query(answer))
    assert not any(set('{}[]"“”') & set(query) or "questions" in query for query in queries)


@pytest.mark.parametrize("answer", ['{"query": "How long is', '["cut', "{question: 'Wh"])
def test_truncated_text_is_not_repaired(answer: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        read_items(answer)


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
    ("answer", "items"),
    [
        ("Two of them.\n- tea", [("Two of them.", False, False), ("tea", True, False)]),
        ("**Rewritten question:** tea?", [("tea?", False, True)]),
        ("# Questions\nHere they are:\nExplanation: so\n---\n> tea", [("tea", False, False)]),
        ('{"queries": "one\\ntwo"}', [("one", True, True), ("two", True, True)]),
        ("NONE", None),
    ],
)
def test_read_items(answer: str, items: list[tuple[str, bool, bool]] | None) -> None:
    assert read_items(answer) == items


GARBAGE = (
    *("\n", " ", "? ", "1. ", '{"', "- a\n", "Q:\nA:\n", "<think>", "yes, but ", "无", "1\n"),
    *("<", "</query>", "<q>", "<li>a", "[[", "{{", '"', "'", "`", "**", "| a ", "Who?", "问："),
    *("search(", "query: ", "I can't ", "sorry, ", "<|channel|>", "◁think▷", "Thinking: ", "a:"),
    *("<!--", '"a": "b"\n', "plays: ", "@what ", "可以改写为", "NO_ANSWER ", "=> ", "\\n"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_long_answers_are_read(name: str) -> None:
    length = amount(20_000, 100_000)
    for unit in GARBAGE:
        with contextlib.suppress(ValueError):
            READERS[name]((unit * length)[:length])
