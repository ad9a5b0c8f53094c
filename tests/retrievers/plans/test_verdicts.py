"""Verdicts on numbered items, in the forms in which models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.plans.verdicts import Verdict, is_yes, parse_verdicts


@pytest.mark.parametrize(
    "answer",
    [
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
        ("Yes, the passage says that it is not.", True),
        ("The passage describes tea.\nVerdict: yes", True),
        ('{"quote": "q", "verdict": "no"}', False),
        ("是的，段落提到了。", True),
        ("不相关", False),
    ],
)
def test_single_verdict_needs_no_number(answer, yes):
    assert parse_verdicts(answer, 1)[0].yes is yes


@pytest.mark.parametrize(
    ("count", "answer"),
    [
        *((1, answer) for answer in ("", "asdf", "Yes, but only half of it", "Yes.\nNo.")),
        *((1, answer) for answer in ("I'm sorry, but I can't.", "1. yes\n1. no", '{"a": 1}')),
        (1, '{"verdicts": [{"number": 1, "verdict": "perhaps"}]}'),
        (1, '{"verdicts": [{"number": 1, "verd'),
        *((2, answer) for answer in ("yes", "yes\nno", "1. yes", '["yes"]')),
    ],
)
def test_unclear_verdicts_raise(count, answer):
    with pytest.raises(ValueError, match=r"\w"):
        parse_verdicts(answer, count)


YES = [
    *'yes | Yes. | **Yes** | "Yes" | ｙｅｓ | Yes, the answer is Skien. | True'.split(" | "),
    *"Yes - all of it is there | `yes` | y | Verdict: Yes | Final answer: yes".split(" | "),
    *("<think>No? Hm.</think>\nYes", "```\nyes\n```"),
    *"是 是的，已经可以回答。 可以 能够回答。 已经回答了 判断：是 答案：可以。".split(),
]

NO = [
    *"no | No. | False | not yet | n | No, yes is wrong | never | can't | insufficient".split(
        " | "
    ),
    *"否 否。 不能 不是 未 尚未回答 没有 还不能回答 无法回答 非 部分回答 判断：否".split(),
    *("", "No\nYes", "{", "I'm sorry, but I can't help with that.", '{"answered": 1}'),
    *"maybe | nonetheless | notable | yesterday | Yes Minister | Yes? | yes and no".split(" | "),
    *"Yes/no | Yes, but only half of it | Yes, although the year is missing | truth".split(" | "),
    *"asdf | Henrik Ibsen | 1 | ❓ | ok | Sure! | <think>Yes!</think>No".split(" | "),
    *"是否 是不是 可以吗？ 是，但缺少出生地 是的，不过还不完整 是非题 可以看出他是作家".split(),
]


@pytest.mark.parametrize(("answer", "yes"), [*((a, True) for a in YES), *((a, False) for a in NO)])
def test_is_yes_accepts_clear_yes_only(answer: str, yes: bool) -> None:
    assert is_yes(answer) is yes


def test_is_yes_accepts_true_only() -> None:
    assert is_yes(True)
    assert not any(map(is_yes, (False, None, 1, 1.0, ["yes"], {}, object(), b"yes")))


@given(st.text(max_size=80))
def test_is_yes_reads_any_text(text: str) -> None:
    if is_yes(text):
        assert not is_yes(f"No. {text}")
        assert not is_yes(f"不。{text}")


@given(st.sampled_from(YES[:7]), st.sampled_from(["but", "not", "except", "maybe", "但", "部分"]))
def test_is_yes_rejects_yes_with_hedge(yes: str, but: str) -> None:
    assert not is_yes(f"{yes.strip('.!')}, {but} it is so")
