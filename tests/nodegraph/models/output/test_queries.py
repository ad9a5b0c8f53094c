"""Lists in answers: queries, routes, tools, summaries, keywords, questions, pairs."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.answer_text import clean, is_no_answer
from nodekin.nodegraph.models.output.free_text import MAX_PASSAGE_LENGTH, parse_passage
from nodekin.nodegraph.models.output.queries import (
    MAX_QUERY_LENGTH,
    PARSERS,
    parse_keywords,
    parse_pairs,
    parse_phrasings,
    parse_query,
    parse_questions,
    parse_routes,
    parse_sub_questions,
    parse_summary,
    parse_tool_questions,
)

NILE, RIVER = "How long is the Nile?", "How long is the Amazon?"
NILE_ZH, RIVER_ZH = "尼罗河有多长？", "亚马孙河有多长？"
LONGER_ZH = "尼罗河全长多少公里？"


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
    "answer",
    [
        *("", "  \n ", "...", "。", "Sure!", "好的", "Here is the question:", "<think>never ends"),
        *("I'm sorry, I can't help with that.", "The Nile is 6,650 km long.", "N/A", "None"),
        *("Answer: 6,650 km", "[]", '{"query": ""}', '{"query": null}', '{"query": "How long is'),
        "x" * (MAX_QUERY_LENGTH + 1),
        *(
            "作为一个人工智能语言模型，我无法改写。",
            "尼罗河全长6650公里。",
            "无",
            "希望对您有帮助！",
        ),
    ],
)
def test_parse_query_without_query_raises(answer: str) -> None:
    question = NILE_ZH if not answer.isascii() else NILE
    with pytest.raises(ValueError, match=r"answer|refused|query"):
        parse_query(answer, question)


def test_parse_query_keeps_statement_for_phrase() -> None:
    assert parse_query("The length of the Nile.", "Nile length") == "The length of the Nile"


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
    "answer",
    [
        *("", "。。。", "The Nile is longer than the Amazon.", "asdf qwer", "尼罗河更长。"),
        *("I don't understand. Could you please clarify the question?", "请问您想了解什么？"),
        *("抱歉，我无法回答。", "我不知道", "<think>What? Why?", "No decomposition needed."),
        '["How long is the Nile?", "How lo',
        "very " * 200 + "long?",
    ],
)
def test_parse_sub_questions_without_question_raises(answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_sub_questions(answer, "Is the Nile longer?", 5)


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


@pytest.mark.parametrize(
    "answer", ['{"error": "rate limit"}', "[1, 2]", "1. It is long.\n2. So it is."]
)
def test_list_without_question_raises(answer: str) -> None:
    with pytest.raises(ValueError, match="no question"):
        parse_sub_questions(answer, "Which is longer?", 5)


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
        ("**Docs**.", "docs", None),
        ("(2)", "web", None),
        ("选项2", "web", None),
        ('The best is "web search".', "web search", None),
        ("我选择数据库，因为更合适。", "数据库", None),
        ("I would choose docs, as web is slower.", "docs", ["docs", "web"]),
        ('{"names": ["docs", "web"]}', "docs", ["docs", "web"]),
        ('[{"choice": 2, "reason": "docs is bad"}]', "web", None),
        ("1, 2", "docs", ["docs", "web"]),
        ("web\ndocs", "web", ["web", "docs"]),
        ("<think>web?</think>docs", "docs", None),
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


TOOLS = ["rivers", "tea_facts", "茶叶"]
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


def test_parse_tool_questions_without_question_raises() -> None:
    assert parse_tool_questions("None", TOOLS) == ([], [])
    for answer in ("", "The Nile is 6,650 km long.", "{", "[]x", "I'm sorry, but no."):
        with pytest.raises(ValueError, match=r"answer|refused"):
            parse_tool_questions(answer, TOOLS)


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


@pytest.mark.parametrize("task", PARSERS)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        *(
            (answer, "empty")
            for answer in ("", " \n ", "<think>I think", "Here are the results:", "好的")
        ),
        *((answer, "refused") for answer in ("I cannot provide a summary.", "抱歉，我无法回答。")),
        *((answer, "JSON") for answer in ('{"summary": "cut', '["cut')),
    ],
)
def test_garbage_raises(task, answer, says):
    with pytest.raises(ValueError, match=says):
        PARSERS[task](answer)


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


def test_parse_keywords_rejects_sentences():
    with pytest.raises(ValueError, match="must be a list of keywords"):
        parse_keywords("This text is about tea and how it came from China to all of the world.")


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


def test_parse_questions_accepts_missing_marks():
    assert parse_questions("1. 茶是什么\n2. Who drinks it") == ["茶是什么", "Who drinks it"]


def test_parse_questions_keeps_quoted_question():
    asked = "他问“你是谁？”是什么意思？"
    assert parse_questions(f"1. {asked}") == [asked]


@pytest.mark.parametrize("parse", [parse_questions, parse_pairs])
def test_statement_instead_of_question_raises(parse):
    with pytest.raises(ValueError, match="no question"):
        parse("Tea has been drunk since the Tang dynasty.")


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


noise = st.text(st.sampled_from("aQA?？:：问答1.、-*\n {}[]\"',，无<think>/`#江"), max_size=60)


@pytest.mark.parametrize("task", PARSERS)
@given(st.one_of(noise, st.text(max_size=60)))
@example("{1:'")
def test_any_text_returns_items_or_raises(task, answer):
    try:
        found = PARSERS[task](answer)
    except ValueError:
        return
    if not found:
        text = clean(answer)
        assert is_no_answer(text) or "[" in text
    for each in found:
        texts = [each] if isinstance(each, str) else each
        assert all(text.strip() for text in texts)


def test_parse_pairs_keeps_first_of_equal_questions():
    assert parse_pairs("Q: a?\nA: 1\nQ: b?\nA: 2\nQ: A ?\nA: 3\nQ: a?\nA: 4") == [
        ("a?", "1"),
        ("b?", "2"),
        ("A ?", "3"),
    ]
