"""Answers in tags, as values of JSON."""

import pytest

from nodekin.nodegraph.models.output.tags import leftover_tag, tagged_value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("<query>Why?</query>", "Why?"),
        ("I wrote it: <query>Why?</query> It is short.", "Why?"),
        ("<q>Why?</q><q>When?</q><q>Wh", ["Why?", "When?"]),
        ("<ul><li>Why?<li>When?</ul>", ["Why?", "When?"]),
        ("<a1>Why?</a1>\n<a2>When?</a2>", {"a1": "Why?", "a2": "When?"}),
        ('<q tool="t">Why?</q>', {"tool": "t", "q": "Why?"}),
        ("How do I center a <div>?", None),
        ("What is List<String>?", None),
    ],
)
def test_value_of_tags(answer: str, value: object) -> None:
    assert tagged_value(answer) == value


def test_tags_of_question_are_text() -> None:
    assert tagged_value("<query>x</query>", "what does <query> do") is None
    assert leftover_tag("<query>x", "what does <query> do") is None
    assert leftover_tag("<query>x") == "<query>"
