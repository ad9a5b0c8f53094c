"""Verdicts on numbered items, in the forms in which models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.verdicts import Verdict, is_yes, parse_verdicts


@pytest.mark.parametrize(
    "answer",
    [
        '{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 2, "verdict": "no"}]}',
        '{"verdicts": [{"number": 2, "verdict": "no"}, {"number": 1, "verdict": "yes"}]}',
        "{verdicts: [{number: 1, verdict: 'yes'}, {number: 2, verdict: 'no'},]}",
        "1. yes - the passage says that it is not fermented\n2) **No**: nothing of it",
        "1: Yes, it does not say otherwise.\n2: partially supported",
        *("[1] 支持：原文\n[2] 不支持", "1：是\n2：否，没有提到"),
        "<think>2 might be yes</think>Here are the verdicts:\n\n1 yes\n2 no",
    ],
)
def test_parse_verdicts_returns_verdict_per_number(answer):
    assert [verdict.yes for verdict in parse_verdicts(answer, 2)] == [True, False]


def test_verdict_has_words_of_judge():
    answer = '{"verdicts": [{"number": 1, "quote": "Tea.", "verdict": "yes"}]}'
    assert parse_verdicts(answer, 1) == [Verdict(True, "Tea.")]
    assert parse_verdicts("1. no - it says nothing", 1) == [Verdict(False, "it says nothing")]
    assert len(parse_verdicts(f"1. no - {'x' * 999}", 1)[0].words) == 300


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        ("Yes.", True),
        ("No. It is about another tea.", False),
        ("Yes, the passage says that it is not.", True),
        ("The passage describes tea.\nVerdict: yes", True),
        ('{"quote": "q", "verdict": "no"}', False),
        ("是的，段落提到了。", True),
        ("不相关", False),
        ("irrelevant", False),
    ],
)
def test_single_verdict_needs_no_number(answer, yes):
    assert parse_verdicts(answer, 1)[0].yes is yes


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ("", 1),
        ("asdf", 1),
        ("Unclear.", 1),
        ("Yes, but only half of it", 1),
        ("Yes.\nNo.", 1),
        ("I'm sorry, but I can't help with that.", 1),
        ("yes", 2),
        ("yes\nno", 2),
        ("1. yes", 2),
        ("1. yes\n1. no", 1),
        ('{"a": 1}', 1),
        ('["yes"]', 2),
        ('{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 1, "verdict": "no"}]}', 2),
        ('{"verdicts": [{"number": 1, "verdict": "perhaps"}]}', 1),
        ('{"verdicts": [{"number": 1, "verd', 1),
    ],
)
def test_unclear_verdicts_raise(answer, count):
    with pytest.raises(ValueError, match=r"\w"):
        parse_verdicts(answer, count)


YES = [
    *'yes | Yes. | YES! | **Yes** | - yes | "Yes" | ｙｅｓ | Yes, the answer is Skien.'.split(
        " | "
    ),
    *"True | Yes - all of it is there | `yes` | Answered: yes | y | Verdict: Yes".split(" | "),
    *("Final answer: yes", "<think>No? Hm.</think>\nYes", "```\nyes\n```"),
    *("Yes\n\nBoth passages say where he was born.", "He was born in Skien.\nVerdict: yes"),
    *"是 是。 是的 是的，已经可以回答。 可以 可以回答 能够回答。 已经回答了".split(),
    *"已回答 判断：是 结论：是的。 答案：可以。".split(),
    *('{"answered": true}', '{"answered": "yes"}', '{"answered": "是"}', '{"verdict": "Yes."}'),
    *('```json\n{"answered": "True"}\n```', '{"reason": "No gap.", "answered": true}'),
]

NO = [
    *"no | No. | NO | False | false. | not yet | Not yet. | n | No, yes is wrong".split(" | "),
    *"never | No, the birthplace is missing. | Cannot be answered | can't".split(" | "),
    *"insufficient | Answered: no | <think>Yes!</think>No".split(" | "),
    *"否 否。 不能 不是 不可以 未 尚未回答 没有 还不能回答 无法回答 非".split(),
    *"部分回答 判断：否 是否可以回答：否".split(),
    *('{"answered": false}', '{"answered": "False"}', '{"answered": "否"}'),
    "The author is known.\nVerdict: no",
]

NEITHER = [
    *("", "   ", "Yes\nNo", "No\nYes", "{", "{}", "I'm sorry, but I can't help with that."),
    *"maybe | nonetheless | Nonetheless, it is so | notable | yesterday | Yes Minister".split(
        " | "
    ),
    *"Yes? | yes and no | Yes/no | yes or no | Yes, but only half of it | truth".split(" | "),
    *"Yes, partially | Yes, although the year is missing | Yes, it is not answered".split(" | "),
    *"true story | asdf | Henrik Ibsen | 1 | ❓ | noyes | ok | Sure!".split(" | "),
    *"是否 是不是 能否 可以吗？ 是，但缺少出生地 是的，不过还不完整".split(),
    *"是非题 能力 可以看出他是作家".split(),
    *('{"answered": null}', '{"answered": 1}', '{"answered": "yes and no"}'),
    *("The question is whether yes or no is right.", '{"a": true, "b": true}'),
]


@pytest.mark.parametrize("answer", YES)
def test_is_yes_accepts_clear_yes(answer: str) -> None:
    assert is_yes(answer)


@pytest.mark.parametrize("answer", [*NO, *NEITHER])
def test_is_yes_rejects_other_answers(answer: str) -> None:
    assert not is_yes(answer)


def test_is_yes_accepts_true_and_mappings_only() -> None:
    assert is_yes(True)
    assert is_yes({"answered": "yes"})
    for value in (False, None, 1, 0, 1.0, [], ["yes"], {}, {"answered": None}, object(), b"yes"):
        assert not is_yes(value)


@given(st.text(max_size=80))
def test_is_yes_reads_any_text(text: str) -> None:
    assert is_yes(text) in (True, False)
    if is_yes(text):
        assert not is_yes(f"No. {text}")
        assert not is_yes(f"不。{text}")


@given(st.sampled_from(YES[:8]), st.sampled_from(["but", "not", "except", "maybe", "但", "部分"]))
def test_is_yes_rejects_yes_with_hedge(yes: str, but: str) -> None:
    assert not is_yes(f"{yes.strip('.!')}, {but} it is so")
