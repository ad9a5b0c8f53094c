"""Single yes-or-no decisions of models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.verdict_words import is_yes, read_verdict

YES = [
    *'yes | Yes. | **Yes** | "Yes" | ｙｅｓ | Yes, the answer is Skien. | True'.split(" | "),
    *"Yes - all of it is there | `yes` | y | 1. yes | [2] Yes".split(" | "),
    *"是 是的，已经可以回答。 可以 能够回答。 已经回答了 1：是".split(),
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


def test_read_verdict_accepts_booleans_only() -> None:
    assert [read_verdict(value) for value in (True, False)] == [(True, ""), (False, "")]
    others = (None, 1, 1.0, ["yes"], {}, object(), b"yes")
    assert [read_verdict(value) for value in others] == [(None, "")] * 7
    assert is_yes(True)
    assert not any(map(is_yes, (False, *others)))


@given(st.text(max_size=80))
def test_is_yes_reads_any_text(text: str) -> None:
    if is_yes(text):
        assert read_verdict(f"No. {text}")[0] is False
        assert read_verdict(f"不。{text}")[0] is False


@given(st.sampled_from(YES[:7]), st.sampled_from(["but", "not", "except", "maybe", "但", "部分"]))
def test_is_yes_rejects_yes_with_hedge(yes: str, but: str) -> None:
    assert not is_yes(f"{yes.strip('.!')}, {but} it is so")
