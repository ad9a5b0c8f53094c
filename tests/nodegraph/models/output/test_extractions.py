import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.answer_text import clean, is_no_answer
from nodekin.nodegraph.models.output.queries import (
    PARSERS,
    parse_keywords,
    parse_pairs,
    parse_questions,
    parse_summary,
)


@pytest.mark.parametrize(
    "answer",
    [
        *("Tea is a drink.", "Summary: Tea is a drink.", "**Summary:** Tea is a drink."),
        *('"Tea is a drink."', "**Tea is a drink.**"),
        "<think>The user wants\n\na summary.</think>\n\nTea is a drink.",
        *("I should be short.</think>Tea is a drink.", "Sure!\nTea is a drink."),
        "Sure! Here's a brief summary of the text:\n\nTea is a drink.",
        "Here is the summary:\nTea is a drink.\n\nLet me know if you need anything else!",
        *("```\nTea is a drink.\n```", '```json\n{"summary": "Tea is a drink."}\n```'),
        "Tea is a drink.<|im_end|>",
        *("好的，以下是摘要：\nTea is a drink.\n\n希望这对您有帮助！", "摘要：Tea is a drink."),
    ],
)
def test_parse_summary_strips_label_and_phrases(answer):
    assert parse_summary(answer) == ["Tea is a drink."]


@pytest.mark.parametrize(
    "summary",
    [
        *("Great apes live in Africa.\nThey are few.", "Based on trade: tea went west."),
        *("好茶来自福建。\n它很贵。", "No trains run on Sunday.", "从唐代开始，茶成为饮品。"),
        *("Unfortunately, the ship sank.", "I, Claudius is a novel."),
        *("第一次世界大战始于1914年。", 'He said "no" and left "home"'),
    ],
)
def test_parse_summary_keeps_unusual_summaries(summary):
    assert parse_summary(summary) == [summary]


@pytest.mark.parametrize("task", PARSERS)
@pytest.mark.parametrize(
    "answer",
    ["NONE", "None.", "**NONE**", "无。", "没有。", "<think>Hm</think>无", "```json\n[]\n```"],
)
def test_none_returns_empty_list(task, answer):
    assert PARSERS[task](answer) == []


def test_empty_json_list_returns_empty_list():
    assert parse_keywords('{"keywords": []}') == []
    assert parse_pairs('{"pairs": []}') == []


@pytest.mark.parametrize("task", PARSERS)
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<think>I think and think", "empty"),
        ("Here are the results:", "empty"),
        ("Sure!", "empty"),
        ("好的", "empty"),
        ("**", "empty"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("I cannot provide a summary.", "refused"),
        ("抱歉，我无法回答。", "refused"),
        ("作为一个人工智能语言模型，我没有看法。", "refused"),
        ('{"summary": "cut', "JSON"),
        ('["cut', "JSON"),
    ],
)
def test_garbage_raises(task, answer, says):
    with pytest.raises(ValueError, match=says):
        PARSERS[task](answer)


@pytest.mark.parametrize(
    "answer",
    [
        *("长江, 黄河, tea", "长江，黄河、tea；长江", "关键词：长江、黄河、tea。"),
        "Keywords: 长江, 黄河, Tea, tea".replace("Tea, ", ""),
        *("1. 长江\n2. 黄河\n3. tea", "1、长江\n2、黄河\n（3）tea"),
        *("- 长江\n- **黄河**\n* `tea`", '["长江", "黄河", "tea"]', "['长江', '黄河', 'tea',]"),
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
        *("What is tea?\n谁喝茶？", "What is tea? 谁喝茶？", "1. What is tea?\n2. 谁喝茶？"),
        "1) What is tea?  2) 谁喝茶？",
        "Questions:\n\n- **What is tea?**\n- 谁喝茶？ (see line 2)",
        "Q1: What is tea?\nA1: A drink.\nQ2: 谁喝茶？\nA2: 人。",
        *("**问题1：** What is tea?\n**问题2：** 谁喝茶？", '["What is tea?", "谁喝茶？"]'),
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
        "问：What is tea？\n答：A drink.\n问：谁喝茶？\n答：人。\n- 多".replace("tea？", "tea?"),
        "问题1：What is tea?\n答案1：A drink.\n\n问题2：谁喝茶？\n答案2：人。\n- 多",
        "1. **问题：** What is tea?\n   **答案：** A drink.\n"
        "2. **问题：** 谁喝茶？\n   **答案：** 人。\n- 多",
        '[{"question": "What is tea?", "answer": "A drink."},'
        ' {"问题": "谁喝茶？", "答案": "人。\\n- 多"}]',
        '[{"question": "What is tea?", "answer": "A drink."}, {"question": "谁喝茶？", '
        '"answer": "人。\\n- 多"}, {"question": "cut',
        "Sure! Here are the pairs:\n\nQ: What is tea?\nA: A drink.\n\n"
        "Q: 谁喝茶？\nA: 人。\n- 多\n\nLet me know if you need more.",
        "Q: What is tea?\nA: A drink.\nQ: 谁喝茶？\nA: 人。\n- 多\nQ: And who",
    ],
)
def test_parse_pairs_reads_lines_and_json(answer):
    assert parse_pairs(answer) == PAIRS


def test_parse_pairs_accepts_numbers_as_answers():
    assert parse_pairs("Q: How many?\nA: 42\n\nQ: When?\nA: 1904") == [
        ("How many?", "42"),
        ("When?", "1904"),
    ]


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
