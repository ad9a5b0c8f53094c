"""The normal form of texts in which quotations are searched."""

import pytest

from nodekin.retrievers.answers.normal_text import NormalText


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Green Tea", "green  tea"),
        ("re-\ntrieval", "retrieval"),
        ("ＯＫ", "ok"),
        ("“tea”", "'tea'"),
        ("5–10", "5-10"),
        ("绿 茶", "绿茶"),
        ("soft\u00adware", "software"),
    ],
)
def test_texts_with_equal_letters_have_one_form(first: str, other: str) -> None:
    assert NormalText(first).normalized == NormalText(other).normalized


@pytest.mark.parametrize(("first", "other"), [("10⁶", "106"), ("five", "six"), ("a b", "ab")])
def test_different_texts_have_different_forms(first: str, other: str) -> None:
    assert NormalText(first).normalized != NormalText(other).normalized


def test_span_has_the_text_of_its_form() -> None:
    text = "It is  “re-\ntrieval”, then."
    normal = NormalText(text)
    start = normal.normalized.index("retrieval")
    assert text[slice(*normal.span(start, start + 9))] == "re-\ntrieval"
