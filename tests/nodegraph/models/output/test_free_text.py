import pytest

from nodekin.nodegraph.models.output.free_text import (
    MAX_PASSAGE_LENGTH,
    is_unknown,
    parse_partial_answer,
)
from nodekin.nodegraph.models.output.imagined_passage import parse_passage

NILE = "How long is the Nile?"


@pytest.mark.parametrize(
    "form",
    [
        *("{0}", "**Passage:** {0}", "Sure! Here is a passage:\n\n{0}", '"{0}"', "“{0}”"),
        *("<think>Long?</think>\n{0}", "```\n{0}\n```", '{{"passage": "{0}"}}', "Answer: {0}"),
        *("【段落】{0}", "好的，以下是一段文字：\n\n{0}", "回答：{0}", "{0}\n\nI hope this helps!"),
    ],
)
@pytest.mark.parametrize(
    "passage", ["The Nile is 6,650 km long. It flows north.", "尼罗河全长6650公里。", "茶"]
)
def test_parse_passage_strips_label_and_phrases(form: str, passage: str) -> None:
    assert parse_passage(form.format(passage), NILE) == passage


@pytest.mark.parametrize(
    "answer",
    [
        *("", NILE, "how long is the nile", "Tell me: which Nile?", "None", "无", "您想问什么？"),
        *("抱歉，我不知道。", '{"a": [1,2', '{"a": 1}', "42", "...", "Sure!", "好的"),
        *("{sub_questions: [", '{"error": "rate limit exceeded for this model"}'),
    ],
)
def test_parse_passage_without_passage_raises(answer: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused|nothing"):
        parse_passage(answer, NILE)


def test_parse_passage_truncates_long_passages() -> None:
    assert len(parse_passage("long " * 5000, NILE)) <= MAX_PASSAGE_LENGTH


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Answer: Cao Xueqin", "Cao Xueqin"),
        ("答案：曹雪芹", "曹雪芹"),
        ("<think>x</think>42", "42"),
        *((text, text) for text in ("No, he was not.", "The Nile is not in Asia.", "可以")),
        *((text, text) for text in ("Unknown Pleasures", "未知死亡", "他没有找到工作。")),
        *((text, text) for text in ("Not available in stores", "It is unclear water.")),
    ],
)
def test_parse_partial_answer_returns_answer(answer: str, read: str) -> None:
    assert parse_partial_answer(answer) == read


@pytest.mark.parametrize(
    "text",
    [
        *("NONE", "I don't know.", "The passages do not mention this.", "Not found", "Unknown."),
        *("It is not mentioned in the passages.", "unknown from the passages", "It's unclear."),
        *("There is no information about it in the passages.", "No passage mentions it."),
        *("cannot be found", "not stated anywhere", "these passages do not help", "not sure"),
        *("无", "资料中没有答案。", "根据资料，无法回答。", "不知道", "不清楚具体年份。", "未知。"),
        *("无法确定", "文中未提及。", "没有提到", "无法找到", "未找到", "他的出生地未提及"),
    ],
)
def test_unknown_answers_are_recognized(text: str) -> None:
    assert is_unknown(text)
    assert parse_partial_answer(text) is None


def test_refusal_is_no_answer() -> None:
    assert parse_partial_answer("I'm sorry, there is no answer in the passages.") is None
