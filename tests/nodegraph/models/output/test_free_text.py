import pytest

from nodekin.nodegraph.models.output.free_text import (
    MAX_PASSAGE_LENGTH,
    is_unknown,
    parse_partial_answer,
    parse_passage,
)

NILE = "How long is the Nile?"

PASSAGE, PASSAGE_ZH = "The Nile is 6,650 km long. It flows north.", "尼罗河全长6650公里。"


@pytest.mark.parametrize(
    "form",
    [
        *("{0}", "Passage: {0}", "**Passage:** {0}", "Sure! Here is a passage:\n\n{0}", '"{0}"'),
        *("“{0}”", "<think>Long?</think>\n{0}", "```\n{0}\n```", '{{"passage": "{0}"}}'),
        *("Answer: {0}", "Hypothetical passage:\n{0}", "段落：{0}", "【段落】{0}"),
        *("好的，以下是一段文字：\n\n{0}", "回答：{0}", "{0}\n\nI hope this helps!"),
    ],
)
@pytest.mark.parametrize("passage", [PASSAGE, PASSAGE_ZH])
def test_parse_passage_strips_label_and_phrases(form: str, passage: str) -> None:
    assert parse_passage(form.format(passage), NILE) == passage


@pytest.mark.parametrize(
    "answer",
    [
        *("", NILE, "how long is the nile", "Tell me: which Nile?", "None", "无", "您想问什么？"),
        *(
            "抱歉，我不知道。",
            '{"a": [1,2',
            '{"a": 1}',
            "42",
            "-1.5e3",
            "...",
            "8 / 10",
            "Sure!",
            "好的",
        ),
        *("https://example.org/a/passage", "www.example.org", "{sub_questions: ["),
        '{"error": "rate limit exceeded for this model"}',
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
        ("No, he was not.", "No, he was not."),
        ("不是，他是作者。", "不是，他是作者。"),
        ("The Nile is not in Asia.", "The Nile is not in Asia."),
        ("NONE", None),
        ("I don't know.", None),
        ("The passages do not mention this.", None),
        ("It is not mentioned in the passages.", None),
        ("I'm sorry, there is no answer in the passages.", None),
        ("Not found", None),
        ("无", None),
        ("资料中没有答案。", None),
        ("根据资料，无法回答。", None),
        ("Unknown Pleasures", "Unknown Pleasures"),
        ("An unknown author", "An unknown author"),
        ("Not available in stores", "Not available in stores"),
        ("The album did not include the song.", "The album did not include the song."),
        ("未知死亡", "未知死亡"),
        ("他没有找到工作。", "他没有找到工作。"),
        ("可以", "可以"),
        ("Unknown", None),
        ("Unknown.", None),
        ("unknown from the passages", None),
        ("Not mentioned in the given context.", None),
        ("I do not know how long it is.", None),
        ("No passage mentions it.", None),
        ("None of the passages say so.", None),
        ("There is no information about it in the passages.", None),
        ("不知道", None),
        ("不清楚具体年份。", None),
        ("未知。", None),
        ("无法确定", None),
        ("文中未提及。", None),
        ("没有提到", None),
    ],
)
def test_parse_partial_answer_returns_answer_or_none(answer: str, read: str | None) -> None:
    assert parse_partial_answer(answer) == read


@pytest.mark.parametrize(
    "text",
    [
        *("It's unclear.", "no information", "not sure", "cannot be found", "not stated anywhere"),
        *("these passages do not help", "无法找到", "未找到", "他的出生地未提及", "作者没有说明。"),
    ],
)
def test_is_unknown_recognizes_short_answers(text: str) -> None:
    assert is_unknown(text)
    assert parse_partial_answer(text) is None


def test_is_unknown_rejects_statements() -> None:
    assert not is_unknown("他没有找到工作。")
    assert not is_unknown("It is unclear water.")


@pytest.mark.parametrize(
    "answer",
    [
        *("[1] The Nile is 6,650 km long.", "茶", "See https://example.org for the Nile."),
        '{"passage": "The Nile is long."}',
    ],
)
def test_parse_passage_accepts_short_passages(answer: str) -> None:
    assert parse_passage(answer, "How long is the Nile?")
