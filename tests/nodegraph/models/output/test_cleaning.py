import pytest

from nodekin.nodegraph.models.output.extractions import parse_questions
from nodekin.nodegraph.models.output.json_values import clean, is_no_answer


def test_a_question_is_not_none():
    assert not is_no_answer("没有问题吗？")
    assert parse_questions("没有问题吗？") == ["没有问题吗？"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("可以", "可以"),
        ("可以。", "可以。"),
        ("Sure", "Sure"),
        ("OK.", "OK."),
        ("好的", "好的"),
        ("Sure!\n\nTea.", "Tea."),
        ("Sure!\nHere are the keywords:", ""),
        ("Sure! Here is the summary: Tea is a drink.", "Tea is a drink."),
        ("Here is the summary: Tea is a drink.", "Tea is a drink."),
        ("好的，以下是摘要：茶是饮品。", "茶是饮品。"),
        ("以下是关键词：茶、水", "茶、水"),
        ("这是一本书：红楼梦", "这是一本书：红楼梦"),
        ("可以，因为茶是饮品。", "可以，因为茶是饮品。"),
        ("Sure, tea is a drink.", "Sure, tea is a drink."),
        ("Here is a list: 1", "Here is a list: 1"),
        ("Tea.\n\nLet me know if you need more!", "Tea."),
    ],
)
def test_openings_and_closings(answer: str, text: str) -> None:
    assert clean(answer) == text
