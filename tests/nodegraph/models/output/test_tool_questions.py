"""Sub-questions with tools in answers."""

import pytest

from nodekin.nodegraph.models.output.queries import parse_tool_questions

NAMES = ["rivers", "tea_facts", "茶叶"]
NILE, TEA = ("rivers", "How long is the Nile?"), ("tea_facts", "Is tea green?")


@pytest.mark.parametrize(
    "answer",
    [
        "rivers: How long is the Nile?\ntea_facts: Is tea green?",
        "Here they are:\n1. **rivers**: How long is the Nile?\n2. Tea_Facts: Is tea green?",
        '[{"tool": "rivers", "question": "How long is the Nile?"},'
        ' {"tool_name": "tea_facts", "sub_question": "Is tea green?"}]',
        '<think>two</think>```json\n{"items": [{"sub_question": "How long is the Nile?", '
        '"tool_name": "rivers"}, {"sub_question": "Is tea green?", "tool": "TEA_FACTS"}]}\n```',
        "{'questions': [{'tool': 'rivers', 'question': 'How long is the Nile?'}, "
        "{'tool': 'tea_facts', 'question': 'Is tea green?'},]}",
        'Sure:\n{"tool": "rivers", "question": "How long is the Nile?"}\n'
        '{"tool": "tea_facts", "question": "Is tea green?"}',
        "rivers: How long is the Nile?\nrivers: How long is the Nile?\ntea_facts: Is tea green?",
    ],
)
def test_parse_tool_questions_reads_lines_and_json(answer: str) -> None:
    assert parse_tool_questions(answer, NAMES) == ([NILE, TEA], [])


def test_parse_tool_questions_reads_chinese() -> None:
    answer = "以下是子问题：\n1. 茶叶：红茶发酵吗？\n2、【rivers】：长江有多长？"
    assert parse_tool_questions(answer, NAMES) == (
        [("茶叶", "红茶发酵吗？"), ("rivers", "长江有多长？")],
        [],
    )
    assert parse_tool_questions('[{"工具": "茶叶", "子问题": "红茶发酵吗？"}]', NAMES) == (
        [("茶叶", "红茶发酵吗？")],
        [],
    )


def test_unknown_tools_are_returned_separately() -> None:
    answer = "rivers: How long is the Nile?\nwater: Is it wet?"
    assert parse_tool_questions(answer, NAMES) == ([NILE], [("water", "Is it wet?")])
    answer = '[{"tool": "water", "question": "Is it wet?"}]'
    assert parse_tool_questions(answer, NAMES) == ([], [("water", "Is it wet?")])


def test_tool_name_may_begin_another_name() -> None:
    assert parse_tool_questions("tea_facts: Is tea green?", ["tea", "tea_facts"]) == ([TEA], [])


def test_parse_tool_questions_without_question_raises() -> None:
    assert parse_tool_questions("None", NAMES) == ([], [])
    for answer in ("", "The Nile is 6,650 km long.", "{", "[]x", "I'm sorry, but no."):
        with pytest.raises(ValueError, match=r"answer|refused"):
            parse_tool_questions(answer, NAMES)
