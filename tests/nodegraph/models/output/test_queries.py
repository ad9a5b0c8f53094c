"""Queries, phrasings, sub-questions and routes in answers, in English and Chinese."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.free_text import (
    MAX_PASSAGE_LENGTH,
    parse_passage,
)
from nodekin.nodegraph.models.output.queries import (
    MAX_QUERY_LENGTH,
    parse_phrasings,
    parse_query,
    parse_routes,
    parse_sub_questions,
)

NILE, RIVER = "How long is the Nile?", "How long is the Amazon?"
NILE_ZH, RIVER_ZH = "尼罗河有多长？", "亚马孙河有多长？"
LONGER_ZH = "尼罗河全长多少公里？"


@pytest.mark.parametrize(
    "answer",
    [
        *(NILE, f"Rewritten question: {NILE}", f"**Rewritten question:** {NILE}"),
        *(f"Rewritten Question:\n\n{NILE}", f"### Rewritten question\n{NILE}"),
        *(f"The rewritten question is: {NILE}", f"Sure! Here is the rewritten question: {NILE}"),
        f'Sure, here\'s a clearer version:\n\n"{NILE}"\n\nLet me know if you need more.',
        *(f"Certainly!\n\n{NILE}", f"Okay. {NILE}"),
        f"Original question: nile long?\nRewritten question: {NILE}",
        *(f"1. {NILE}\n2. Nile length", f"- {NILE}", f"> {NILE}", f"```\n{NILE}\n```"),
        f'```json\n{{"query": "{NILE}"}}\n```',
        *(f'{{"rewritten_question": "{NILE}", "explanation": "mended"}}', f'["{NILE}"]'),
        *(f"{{'query': '{NILE}'}}", f"<think>The user wants...</think>{NILE}"),
        f"hm, let me see\n</think>\n\n{NILE}",
        f"{NILE}\n\nExplanation: I mended the spelling.",
        *(f"Explanation: it was misspelt.\n{NILE}", f"Q: {NILE}", f"Question: {NILE}"),
        *(f"Final answer: {NILE}", f"'{NILE}'", f"“{NILE}”", f"<answer>{NILE}</answer>"),
        f"\ufeff{NILE}\r\n",
    ],
)
def test_parse_query_strips_english_phrases(answer: str) -> None:
    assert parse_query(answer, "nile long?") == NILE


@pytest.mark.parametrize(
    "answer",
    [
        *(LONGER_ZH, f"改写后的问题：{LONGER_ZH}", f"改写后的问题是：{LONGER_ZH}"),
        *(f"好的，改写后的问题是：{LONGER_ZH}", f"好的，以下是改写后的问题：\n\n{LONGER_ZH}"),
        *(f"**改写后的问题：**\n{LONGER_ZH}", f"【改写后的问题】{LONGER_ZH}"),
        *(f"原问题：尼罗河有多长？\n改写：{LONGER_ZH}", f"改写：“{LONGER_ZH}”"),
        *(f"「{LONGER_ZH}」", f"1、{LONGER_ZH}", f"（1）{LONGER_ZH}"),
        *(f"{LONGER_ZH}\n\n说明：改写了用词。", f"问题：{LONGER_ZH}", f"问：{LONGER_ZH}"),
        *(f"<think>想一想</think>\n{LONGER_ZH}", f'{{"改写后的问题": "{LONGER_ZH}"}}'),
        *(f"可以改写为：{LONGER_ZH}", f"当然可以！{LONGER_ZH}"),
    ],
)
def test_parse_query_strips_chinese_phrases(answer: str) -> None:
    assert parse_query(answer, NILE_ZH) == LONGER_ZH


@pytest.mark.parametrize(
    "answer",
    [
        *("", "  \n ", "...", "。", "Sure!", "好的", "Here is the question:", "<think>never ends"),
        *("I'm sorry, I can't help with that.", "As an AI language model, I cannot rewrite."),
        *("The Nile is 6,650 km long.", "It is about 6,650 km.", "N/A", "None"),
        *("Answer: 6,650 km", "[]", "{}", '{"query": ""}', '{"query": null}'),
        '{"query": "How long is',
        "x" * (MAX_QUERY_LENGTH + 1),
        *("抱歉，我无法回答这个问题。", "作为一个人工智能语言模型，我无法改写。"),
        *("尼罗河全长6650公里。", "答案：6650公里", "无", "希望对您有帮助！"),
    ],
)
def test_parse_query_without_query_raises(answer: str) -> None:
    question = NILE_ZH if not answer.isascii() else NILE
    with pytest.raises(ValueError, match=r"answer|refused|query"):
        parse_query(answer, question)


def test_parse_query_keeps_statement_for_phrase() -> None:
    assert parse_query("The length of the Nile.", "Nile length") == "The length of the Nile"


BOTH = [
    *("{0}\n{1}", "1. {0}\n2. {1}", "1) {0}\n2) {1}", "(1) {0}\n(2) {1}", "1、{0}\n2、{1}"),
    *("1）{0}\n2）{1}", "（1）{0}\n（2）{1}", "①{0}\n②{1}", "一、{0}\n二、{1}", "- {0}\n- {1}"),
    *("* {0}\n* {1}", "• {0}\n• {1}", "Sub-question 1: {0}\nSub-question 2: {1}"),
    *("**Sub-question 1:** {0}\n**Sub-question 2:** {1}", "子问题1：{0}\n子问题2：{1}"),
    *("**子问题一**：{0}\n**子问题二**：{1}", "【子问题1】{0}\n【子问题2】{1}"),
    *("问题一：{0}\n问题二：{1}", "Q1: {0}\nQ2: {1}", "Step 1: {0}\nStep 2: {1}"),
    "Sure! Here are the sub-questions:\n\n1. {0}\n2. {1}\n\nLet me know if you want more!",
    "好的，以下是分解后的子问题：\n\n1. {0}\n2. {1}\n\n希望对您有帮助！",
    *("# Sub-questions\n\n## 1. {0}\n\n## 2. {1}", "```\n{0}\n{1}\n```"),
    *('```json\n["{0}", "{1}"]\n```', '{{"questions": ["{0}", "{1}"]}}'),
    '{{"子问题": ["{0}", "{1}"]}}',
    '{{"items": [{{"sub_question": "{0}", "tool": "a"}}, {{"sub_question": "{1}", "tool": "b"}}]}}',
    '[{{"question": "{0}"}}, {{"question": "{1}"}}]',
    *("<think>Compare? Yes.</think>\n1. {0}\n2. {1}", "{0} {1}", "1. {0} 2. {1}"),
    *("子问题：1. {0} 2. {1}", "1. {0}\n   Answer: 6,650 km\n2. {1}\n   Answer: 6,400 km"),
    "1. {0}\n答：6650公里\n2. {1}\n答：6400公里",
    "1. {0} - to know the first\n2. {1} - to know the second",
    *("1. {0}（用于比较）\n2. {1}（用于比较）", "1. **{0}**: the first\n2. **{1}**: the second"),
    *("{0}\n{1}\nWould you like me to answer these?", "1. {0}\n2. {0}\n3. {1}"),
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
    "answer",
    [
        *("", "。。。", "The Nile is longer than the Amazon.", "Yes: 6,650 km to 6,400 km."),
        *("asdf qwer", "I'm sorry, but I cannot help with that."),
        *("I don't understand. Could you please clarify the question?", "尼罗河更长。"),
        *("抱歉，我无法回答。", "请问您想了解什么？", "我不知道", "<think>What? Why?"),
        *("The question is already simple.", "No decomposition needed."),
        *("该问题已经足够简单，无需分解。", '["How long is the Nile?", "How lo'),
        "very " * 200 + "long?",
    ],
)
def test_parse_sub_questions_without_question_raises(answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_sub_questions(answer, "Is the Nile longer?", 5)


def test_listed_sub_questions_need_no_marks() -> None:
    for answer in (
        '{"questions": ["Nile length", "How long is the Amazon"]}',
        "1. Nile length\n2. How long is the Amazon",
    ):
        found = parse_sub_questions(answer, "Which is longer?", 5)
        assert found[-1] == "How long is the Amazon"
    assert parse_sub_questions('["Nile length", "Amazon?"]', "?", 5) == ["Nile length", "Amazon?"]
    assert parse_sub_questions("- Nile length\n- Amazon length", "?", 5)[0] == "Nile length"
    for garbage in (
        '{"error": "rate limit"}',
        '{"a": 1}',
        "[1, 2]",
        "1. It is long.\n2. So it is.",
    ):
        with pytest.raises(ValueError, match="no question"):
            parse_sub_questions(garbage, "Which is longer?", 5)


def test_question_keeps_one_mark() -> None:
    answer = "Which band was formed first, The Exies or Circus Diablo??"
    assert parse_query(answer, "which band first") == answer[:-1]
    assert parse_sub_questions("1. 它有多长？？\n2. 它有多宽？?", "?", 5) == [
        "它有多长？",
        "它有多宽？",
    ]


def test_abbreviations_do_not_split_questions() -> None:
    answer = "1. Who was St. Paul?\n2. How large is Washington D.C. Metro?"
    questions = ["Who was St. Paul?", "How large is Washington D.C. Metro?"]
    assert parse_sub_questions(answer, "Which?", 5) == questions


def test_parse_sub_questions_respects_limit() -> None:
    many = "\n".join(f"{number}. How long is river {number}?" for number in range(1, 60))
    assert parse_sub_questions(many, NILE, 2) == [f"How long is river {n}?" for n in (1, 2)]


@pytest.mark.parametrize("form", BOTH[:16])
def test_parse_phrasings_reads_lists_and_json(form: str) -> None:
    english = ["How far does the Nile go?", "What is the length of the Nile?"]
    assert parse_phrasings(form.format(*english), NILE, 5) == english
    chinese = ["尼罗河的长度是多少？", "尼罗河全长几公里？"]
    assert parse_phrasings(form.format(*chinese), NILE_ZH, 5) == chinese


@pytest.mark.parametrize(
    "answer",
    [
        *("Nile length\nlength of the river Nile", "1. Nile length\n2. length of the river Nile"),
        "Alternative 1: Nile length\nAlternative 2: length of the river Nile",
        "Phrasings:\nNile length\nlength of the river Nile\n\nNote: both keep the name.",
        f"{NILE}\nNile length\nlength of the river Nile",
        f"Original query: {NILE}\n- Nile length\n- length of the river Nile\n- more\n- and more",
        '{"queries": "Nile length\\nlength of the river Nile"}',
    ],
)
def test_parse_phrasings_accepts_phrases(answer: str) -> None:
    assert parse_phrasings(answer, NILE, 2) == ["Nile length", "length of the river Nile"]


@pytest.mark.parametrize(
    "answer",
    ["", "NONE", "It is 6,650 km long.\nIt flows north.", "Could you clarify?", NILE, "抱歉。"],
)
def test_parse_phrasings_without_phrasing_raises(answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_phrasings(answer, NILE, 3)


NAMES = ["docs", "web", "web search", "数据库"]


@pytest.mark.parametrize(
    ("answer", "one", "several"),
    [
        ("docs", "docs", None),
        ("**Docs**.", "docs", None),
        ("2", "web", None),
        ("(2)", "web", None),
        ("Route 2", "web", None),
        ("选项2", "web", None),
        ("3. web search", "web search", None),
        ('The best is "web search".', "web search", None),
        ("数据库", "数据库", None),
        ("我选择数据库，因为更合适。", "数据库", None),
        ("I would choose docs, as web is slower.", "docs", ["docs", "web"]),
        ('{"names": ["docs", "web"]}', "docs", ["docs", "web"]),
        ('[{"choice": 2, "reason": "docs is bad"}]', "web", None),
        ('{"route": "web"}', "web", None),
        ("1, 2", "docs", ["docs", "web"]),
        ("web\ndocs", "web", ["web", "docs"]),
        ("<think>web?</think>docs", "docs", None),
        ("docs（文档）", "docs", None),
    ],
)
def test_parse_routes_reads_names_and_numbers(
    answer: str, one: str, several: list[str] | None
) -> None:
    assert parse_routes(answer, NAMES) == [one]
    assert parse_routes(answer, NAMES, multiple=True) == (several or [one])


@pytest.mark.parametrize(
    "answer",
    ["", "0", "5", "-1", "none", "banana", "website", "I'm sorry", "the 2 best of all teas are"],
)
def test_parse_routes_without_name_raises(answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_routes(answer, NAMES)


_PIECES = st.sampled_from(
    [
        *'1. |- |["|"]|{|}|?|？|：|:|**|(|)|,|```|How long|尼罗河|Answer|子问题'.split("|"),
        *("NONE", "Sure!", '"', "\n", "|", "<think>", "</think>"),
    ]
)


@given(st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=80), st.integers(1, 4))
def test_any_answer_is_bounded_or_raises(answer: str, limit: int) -> None:
    for read in (parse_phrasings, parse_sub_questions):
        try:
            found = read(answer, NILE, limit)
        except ValueError:
            continue
        assert len(found) <= limit
        assert all(
            text.strip() and len(text) <= MAX_QUERY_LENGTH and "\n" not in text for text in found
        )
    for one in (parse_query, parse_passage):
        try:
            assert 0 < len(one(answer, NILE)) <= MAX_PASSAGE_LENGTH
        except ValueError:
            continue
    with contextlib.suppress(ValueError):
        assert set(parse_routes(answer, NAMES, multiple=True)) <= set(NAMES)


@pytest.mark.parametrize(
    "copy", ["What is a state ?", "what is a state？", "“What is a state”", "What is a state...?"]
)
def test_near_copies_of_query_are_dropped(copy: str) -> None:
    query = "What is a state?"
    assert parse_sub_questions(f"1. {copy}", query, 5) == []
    assert parse_sub_questions(f"1. {copy}\n2. What is law?", query, 5) == ["What is law?"]
    assert parse_phrasings(f"1. {copy}\n2. A state is what?", query, 5) == ["A state is what?"]
    assert parse_sub_questions(f"1. What is law?\n2. What is law ?\n{copy}", query, 5) == [
        "What is law?"
    ]


def test_questions_differ_by_signs_in_names() -> None:
    answer = "1. Is C fast?\n2. Is C++ fast?\n3. Is C# fast?"
    assert len(parse_sub_questions(answer, "Is C the fastest?", 5)) == 3


@pytest.mark.parametrize(
    "answer",
    [
        *("NO_ANSWER", "无答案", "NO ANSWER", "Hi", "x", "是", "yes", "unchanged", "不需要改写"),
        "不知道",
    ],
)
def test_answers_without_content_are_no_queries(answer: str) -> None:
    with pytest.raises(ValueError, match="no query"):
        parse_query(answer, "how long is the nile in egypt")
    with pytest.raises(ValueError, match="no other phrasing"):
        parse_phrasings(answer, "how long is the nile in egypt", 3)


@pytest.mark.parametrize("answer", ["AI", "长江", "Unknown Pleasures", "无法改变的命运"])
def test_parse_query_accepts_short_and_unusual_queries(answer: str) -> None:
    assert parse_query(answer, "AI?") == answer
