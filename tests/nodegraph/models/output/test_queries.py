"""Lists in answers: queries, routes, tools, summaries, keywords, questions, pairs."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.answer_readers import READERS

from nodekin.nodegraph.models.output.extracts import (
    PARSERS,
    parse_keywords,
    parse_pairs,
    parse_questions,
    parse_summary,
)
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_query,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.questions import MAX_QUERY_LENGTH
from nodekin.nodegraph.models.output.routes import parse_route
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions

NILE, RIVER = "How long is the Nile?", "How long is the Amazon?"
NILE_ZH, RIVER_ZH = "尼罗河有多长？", "亚马孙河有多长？"
LONGER_ZH = "尼罗河全长多少公里？"

NAMES, TOOLS = ["docs", "web", "web search", "数据库"], ["rivers", "tea_facts", "茶叶"]

NOISE = st.text(st.sampled_from("aQA?？:：问答1.、-*\n {}[]\"',，无<think>/`#江"), max_size=60)


@pytest.mark.parametrize(
    "answer",
    [
        *(NILE, f"**Rewritten question:** {NILE}", f"Rewritten Question:\n\n{NILE}"),
        *(f"### Rewritten question\n{NILE}", f"The rewritten question is: {NILE}"),
        f'Sure, here\'s a clearer version:\n\n"{NILE}"\n\nLet me know if you need more.',
        *(f"Certainly!\n\n{NILE}", f"1. {NILE}\n2. Nile length", f"> {NILE}"),
        f"Original question: nile long?\nRewritten question: {NILE}",
        *(f"```\n{NILE}\n```", f'```json\n{{"query": "{NILE}"}}\n```', f'["{NILE}"]'),
        f'{{"rewritten_question": "{NILE}", "explanation": "mended"}}',
        *(f"<think>The user wants...</think>{NILE}", f"hm, let me see\n</think>\n\n{NILE}"),
        *(f"{NILE}\n\nExplanation: I mended it.", f"Explanation: it was misspelt.\n{NILE}"),
        *(f"Q: {NILE}", f"“{NILE}”", f"<answer>{NILE}</answer>", f"\ufeff{NILE}\r\n"),
    ],
)
def test_parse_query_strips_english_phrases(answer: str) -> None:
    assert parse_query(answer, "nile long?") == NILE


@pytest.mark.parametrize(
    "answer",
    [
        *(LONGER_ZH, f"改写后的问题是：{LONGER_ZH}", f"好的，以下是改写后的问题：\n\n{LONGER_ZH}"),
        *(f"**改写后的问题：**\n{LONGER_ZH}", f"【改写后的问题】{LONGER_ZH}", f"「{LONGER_ZH}」"),
        *(f"原问题：尼罗河有多长？\n改写：{LONGER_ZH}", f"1、{LONGER_ZH}", f"（1）{LONGER_ZH}"),
        *(f"{LONGER_ZH}\n\n说明：改写了用词。", f"问：{LONGER_ZH}", f"当然可以！{LONGER_ZH}"),
        *(f"<think>想一想</think>\n{LONGER_ZH}", f'{{"改写后的问题": "{LONGER_ZH}"}}'),
    ],
)
def test_parse_query_strips_chinese_phrases(answer: str) -> None:
    assert parse_query(answer, NILE_ZH) == LONGER_ZH


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("The length of the Nile.", "The length of the Nile"),
        ("Rewritten query: length of the Nile\n- it names the river", "length of the Nile"),
        ("I made it clearer.\nRewritten query: length of the Nile", "length of the Nile"),
    ],
)
def test_parse_query_reads_phrases(answer: str, query: str) -> None:
    assert parse_query(answer, "Nile length") == query


BOTH = [
    *("{0}\n{1}", "1. {0}\n2. {1}", "(1) {0}\n(2) {1}", "1、{0}\n2、{1}", "（1）{0}\n（2）{1}"),
    *("①{0}\n②{1}", "一、{0}\n二、{1}", "- {0}\n- {1}", "* {0}\n* {1}", "• {0}\n• {1}"),
    *("**Sub-question 1:** {0}\n**Sub-question 2:** {1}", "**子问题一**：{0}\n**子问题二**：{1}"),
    *(
        "【子问题1】{0}\n【子问题2】{1}",
        "Q1: {0}\nQ2: {1}",
        "# Sub-questions\n\n## 1. {0}\n\n## 2. {1}",
    ),
    "Sure! Here are the sub-questions:\n\n1. {0}\n2. {1}\n\nLet me know if you want more!",
    "好的，以下是分解后的子问题：\n\n1. {0}\n2. {1}\n\n希望对您有帮助！",
    *(
        '```json\n["{0}", "{1}"]\n```',
        '{{"questions": ["{0}", "{1}"]}}',
        '{{"子问题": ["{0}", "{1}"]}}',
    ),
    '{{"items": [{{"sub_question": "{0}", "tool": "a"}}, {{"sub_question": "{1}", "tool": "b"}}]}}',
    *("<think>Compare? Yes.</think>\n1. {0}\n2. {1}", "{0} {1}", "子问题：1. {0} 2. {1}"),
    *("1. {0}\n   Answer: 6,650 km\n2. {1}\n   Answer: 6,400 km", "1. {0}\n2. {0}\n3. {1}"),
    *("1. {0} - to know the first\n2. {1}", "1. {0}（用于比较）\n2. {1}（用于比较）"),
    *(
        "1. **{0}**: the first\n2. **{1}**: the second",
        "{0}\n{1}\nWould you like me to answer these?",
    ),
]


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("Is the Nile longer than the Amazon?", [NILE, RIVER]),
        ("尼罗河比亚马孙河长吗？", [NILE_ZH, RIVER_ZH]),
    ],
)
def test_parse_sub_questions_reads_lists_and_json(form: str, query: str, parts: list[str]) -> None:
    assert parse_sub_questions(form.format(*parts), query, 5) == parts


@pytest.mark.parametrize(
    "answer",
    ["NONE", "None.", '{"questions": []}', "[]", NILE, f"1. {NILE}", "无", "无。"],
)
def test_simple_question_has_no_sub_questions(answer: str) -> None:
    assert parse_sub_questions(answer, NILE, 5) == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"questions": ["Nile length", "Amazon?"]}', ["Nile length", "Amazon?"]),
        ("1. Nile length\n2. How long is the Amazon", ["Nile length", "How long is the Amazon"]),
        ("Which band, The Exies or Circus Diablo??", ["Which band, The Exies or Circus Diablo?"]),
        ("1. 它有多长？？\n2. 它有多宽？?", ["它有多长？", "它有多宽？"]),
        (
            "1. Who was St. Paul?\n2. How large is D.C.?",
            ["Who was St. Paul?", "How large is D.C.?"],
        ),
        ("1. Is C fast?\n2. Is C++ fast?", ["Is C fast?", "Is C++ fast?"]),
        ("1. What is law?\n2. What is law ?\nWhich is longer ?", ["What is law?"]),
    ],
)
def test_parse_sub_questions_keeps_questions(answer: str, found: list[str]) -> None:
    assert parse_sub_questions(answer, "Which is longer?", 5) == found


def test_parse_sub_questions_respects_limit() -> None:
    many = "\n".join(f"{number}. How long is river {number}?" for number in range(1, 60))
    assert parse_sub_questions(many, NILE, 2) == [f"How long is river {n}?" for n in (1, 2)]


@pytest.mark.parametrize(
    "answer",
    [
        *("Nile length\nlength of the river Nile", "1. Nile length\n2. length of the river Nile"),
        "Alternative 1: Nile length\nAlternative 2: length of the river Nile",
        "Phrasings:\nNile length\nlength of the river Nile\n\nNote: both keep the name.",
        '{"queries": "Nile length\\nlength of the river Nile"}',
    ],
)
def test_parse_phrasings_accepts_phrases(answer: str) -> None:
    assert parse_phrasings(answer, NILE, 2) == ["Nile length", "length of the river Nile"]


@pytest.mark.parametrize("name", READERS)
@example(";\r\x00")
@example("question;x\n" + "a" * 200_000)
@given(NOISE | st.text(max_size=60))
def test_any_answer_is_read_or_raises(name: str, answer: str) -> None:
    with contextlib.suppress(ValueError):
        READERS[name](answer)
    with contextlib.suppress(ValueError):
        found = parse_sub_questions(answer, NILE, 2)
        assert len(found) <= 2
        assert all(0 < len(text) <= MAX_QUERY_LENGTH and "\n" not in text for text in found)


@pytest.mark.parametrize(
    "copy", ["What is a state ?", "what is a state？", "“What is a state”", "What is a state...?"]
)
def test_near_copies_of_query_are_dropped(copy: str) -> None:
    query = "What is a state?"
    assert parse_sub_questions(f"1. {copy}", query, 5) == []
    assert parse_sub_questions(f"1. {copy}\n2. What is law?", query, 5) == ["What is law?"]
    assert parse_phrasings(f"1. {copy}\n2. A state is what?", query, 5) == ["A state is what?"]


QUERY = "how long is the nile in egypt"

EMPTY = ["NO_ANSWER", "无答案", "NO ANSWER", "Hi", "x", "是", "yes", "unchanged", "不知道"]

NOTHING = ["", "  \n ", "...", "。", "Sure!", "好的", "<think>never ends", "抱歉，我无法回答。"]

INVALID = [
    (
        lambda answer: parse_query(answer, NILE if answer.isascii() else NILE_ZH),
        [
            *("I'm sorry, I can't help with that.", "The Nile is 6,650 km long.", "N/A", "None"),
            *("Answer: 6,650 km", "[]", '{"query": null}', '{"query": "How long is', "无"),
            *("尼罗河全长6650公里。", "希望对您有帮助！", "x" * (MAX_QUERY_LENGTH + 1)),
        ],
    ),
    (lambda answer: parse_query(answer, QUERY), EMPTY),
    (lambda answer: parse_phrasings(answer, QUERY, 3), [*EMPTY, QUERY, "Could you clarify?"]),
    (
        lambda answer: parse_phrasings(answer, NILE, 3),
        [*NOTHING, "NONE", "It is 6,650 km long.\nIt flows north.", NILE],
    ),
    (
        lambda answer: parse_sub_questions(answer, "Is the Nile longer?", 5),
        [
            *("The Nile is longer than the Amazon.", "asdf qwer", "尼罗河更长。", "我不知道"),
            *("I don't understand. Could you please clarify the question?", "请问您想了解什么？"),
            *("<think>What? Why?", "No decomposition needed."),
            *('{"error": "rate limit"}', "[1, 2]"),
            "very " * 200 + "long?",
        ],
    ),
    (
        lambda answer: parse_route(answer, NAMES),
        ["", "0", "5", "-1", "none", "banana", "website", "the 2 best of all teas are"],
    ),
    (
        lambda answer: parse_tool_questions(answer, TOOLS),
        ["", "The Nile is 6,650 km long.", "{", "[]x", "I'm sorry, but no."],
    ),
    (parse_questions, [*NOTHING, "Tea has been drunk since the Tang dynasty."]),
    (parse_pairs, [*NOTHING, "Tea has been drunk since the Tang dynasty.", '["cut']),
    (parse_keywords, [*NOTHING, "This text is about tea and how it came from China to the world."]),
    (parse_summary, [*NOTHING, "I cannot provide a summary.", '{"summary": "cut']),
]


@pytest.mark.parametrize(
    ("parse", "answer"), [(parse, answer) for parse, answers in INVALID for answer in answers]
)
def test_answer_without_items_raises(parse: Callable[[str], Any], answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused|query"):
        parse(answer)


@pytest.mark.parametrize("answer", ["AI", "长江", "Unknown Pleasures", "无法改变的命运"])
def test_parse_query_accepts_short_and_unusual_queries(answer: str) -> None:
    assert parse_query(answer, "AI?") == answer


ABOUT_NILE, ABOUT_TEA = ("rivers", NILE), ("tea_facts", "Is tea green?")


@pytest.mark.parametrize(
    "answer",
    [
        "rivers: How long is the Nile?\ntea_facts: Is tea green?",
        "Here they are:\n1. **rivers**: How long is the Nile?\n2. Tea_Facts: Is tea green?",
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
    assert parse_tool_questions(answer, TOOLS) == ([ABOUT_NILE, ABOUT_TEA], [])


def test_parse_tool_questions_reads_chinese() -> None:
    pairs = [("茶叶", "红茶发酵吗？"), ("rivers", "长江有多长？")]
    answer = "以下是子问题：\n1. 茶叶：红茶发酵吗？\n2、【rivers】：长江有多长？"
    assert parse_tool_questions(answer, TOOLS) == (pairs, [])
    answer = '[{"工具": "茶叶", "子问题": "红茶发酵吗？"}]'
    assert parse_tool_questions(answer, TOOLS) == (pairs[:1], [])


def test_unknown_tools_are_returned_separately() -> None:
    answer = "rivers: How long is the Nile?\nwater: Is it wet?"
    assert parse_tool_questions(answer, TOOLS) == ([ABOUT_NILE], [("water", "Is it wet?")])
    answer = '[{"tool": "water", "question": "Is it wet?"}]'
    assert parse_tool_questions(answer, TOOLS) == ([], [("water", "Is it wet?")])


@pytest.mark.parametrize(
    "answer",
    [
        *("Tea is a drink.", "**Summary:** Tea is a drink.", '"Tea is a drink."'),
        *("**Tea is a drink.**", "Sure!\nTea is a drink.", "Tea is a drink.<|im_end|>"),
        "<think>The user wants\n\na summary.</think>\n\nTea is a drink.",
        "Sure! Here's a brief summary of the text:\n\nTea is a drink.",
        *("```\nTea is a drink.\n```", '```json\n{"summary": "Tea is a drink."}\n```'),
        *("好的，以下是摘要：\nTea is a drink.\n\n希望这对您有帮助！", "摘要：Tea is a drink."),
    ],
)
def test_parse_summary_strips_label_and_phrases(answer):
    assert parse_summary(answer) == ["Tea is a drink."]


@pytest.mark.parametrize(
    "summary",
    [
        *("Great apes live in Africa.\nThey are few.", "Based on trade: tea went west."),
        *("好茶来自福建。\n它很贵。", "No trains run on Sunday.", "Unfortunately, the ship sank."),
        'He said "no" and left "home"',
    ],
)
def test_parse_summary_keeps_unusual_summaries(summary):
    assert parse_summary(summary) == [summary]


@pytest.mark.parametrize("task", PARSERS)
@pytest.mark.parametrize(
    "answer",
    ["NONE", "**None.**", "没有。", "<think>Hm</think>无", "```json\n[]\n```"],
)
def test_none_returns_empty_list(task, answer):
    assert PARSERS[task](answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        *("长江, 黄河, tea", "关键词：长江、黄河、tea。", "1. 长江\n2. 黄河\n3. tea"),
        *("1、长江\n2、黄河\n（3）tea", "- 长江\n- **黄河**\n* `tea`", "['长江', '黄河', 'tea',]"),
        '{"keywords": [{"keyword": "长江"}, {"keyword": "黄河"}, "tea"]}',
        *('{"keywords": "长江，黄河, tea"}', '```json\n["长江", "黄河", "tea"]\n```'),
        "“长江”、“黄河”、“tea”",
        "Here are the keywords:\n\n1. 长江\n\n2. 黄河\n\n3. tea\n\nLet me know if you want more.",
    ],
)
def test_parse_keywords_reads_lists_and_json(answer):
    assert parse_keywords(answer) == ["长江", "黄河", "tea"]


def test_parse_keywords_keeps_marks_in_names():
    kept = ["C++", "C#", ".NET", "U.S.A.", "1,000 meters", "3D打印", "TCP/IP", "1:1比例", "2.0版"]
    assert parse_keywords(", ".join(kept)) == kept


@pytest.mark.parametrize(
    "answer",
    [
        *("What is tea?\n谁喝茶？", "What is tea? 谁喝茶？", "1) What is tea?  2) 谁喝茶？"),
        "Questions:\n\n- **What is tea?**\n- 谁喝茶？ (see line 2)",
        "Q1: What is tea?\nA1: A drink.\nQ2: 谁喝茶？\nA2: 人。",
        '{"questions": [{"question": "What is tea?"}, {"question": "谁喝茶？"}]}',
        *('1. "What is tea?"\n2. “谁喝茶？”', "I have read it.\nWhat is tea?\n谁喝茶？\n谁喝茶?"),
    ],
)
def test_parse_questions_reads_lists_and_json(answer):
    assert parse_questions(answer) == ["What is tea?", "谁喝茶？"]


@pytest.mark.parametrize(
    ("answer", "questions"),
    [
        ("1. 茶是什么\n2. Who drinks it", ["茶是什么", "Who drinks it"]),
        ("1. 他问“你是谁？”是什么意思？", ["他问“你是谁？”是什么意思？"]),
    ],
)
def test_parse_questions_keeps_questions(answer: str, questions: list[str]) -> None:
    assert parse_questions(answer) == questions


PAIRS = [("What is tea?", "A drink."), ("谁喝茶？", "人。\n- 多")]


@pytest.mark.parametrize(
    "answer",
    [
        "Q: What is tea?\nA: A drink.\n\nQ: 谁喝茶？\nA: 人。\n- 多",
        "问：What is tea?\n答：A drink.\n问：谁喝茶？\n答：人。\n- 多",
        "1. **问题：** What is tea?\n   **答案：** A drink.\n"
        "2. **问题：** 谁喝茶？\n   **答案：** 人。\n- 多",
        '[{"question": "What is tea?", "answer": "A drink."},'
        ' {"问题": "谁喝茶？", "答案": "人。\\n- 多"}]',
        '[{"question": "What is tea?", "answer": "A drink."}, {"question": "谁喝茶？", '
        '"answer": "人。\\n- 多"}, {"question": "cut',
        "Q: What is tea?\nA: A drink.\nQ: 谁喝茶？\nA: 人。\n- 多\nQ: And who",
    ],
)
def test_parse_pairs_reads_lines_and_json(answer):
    assert parse_pairs(answer) == PAIRS


def test_parse_pairs_keeps_first_of_equal_questions():
    assert parse_pairs("Q: a?\nA: 1\nQ: A ?\nA: 3\nQ: a?\nA: 4") == [("a?", "1"), ("A ?", "3")]
