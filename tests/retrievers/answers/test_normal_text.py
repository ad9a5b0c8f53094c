"""Texts in the form in which quotations are compared, and the places of its parts."""

import pytest

from nodekin.retrievers.answers.quote_matching import NormalText, differences


@pytest.mark.parametrize(
    ("text", "normalized", "part", "span"),
    [
        ("Tea", "tea", "e", (1, 2)),
        ("a  b", "a b", " ", (1, 3)),
        ("a  b", "a b", "b", (3, 4)),
        ("a  b\n c", "a b c", "b c", (3, 7)),
        ("  a", "a", "a", (2, 3)),
        ("re-\ntrieval", "retrieval", "et", (1, 5)),
        ("re-\ntrieval", "retrieval", "t", (4, 5)),
        ("ﬁne", "fine", "f", (0, 1)),
        ("ﬁne", "fine", "i", (0, 1)),
        ("ﬁne", "fine", "n", (1, 2)),
        ("ＯＫ？ no", "ok?no", "?n", (2, 5)),
        ("10⁶ m", "10⁶ m", "⁶", (2, 3)),
        ("H⁶", "h6", "6", (1, 2)),
        ("cafe\u0301 x", "café x", "é", (3, 5)),
        ("a\u200bb", "ab", "b", (2, 3)),
        ("”a“ — b", "'a'-b", "a'", (1, 3)),
    ],
)
def test_a_part_of_the_form_has_its_place_in_the_text(
    text: str, normalized: str, part: str, span: tuple[int, int]
) -> None:
    normal = NormalText(text)
    assert normal.normalized == normalized
    start = normalized.index(part)
    assert normal.span(start, start + len(part)) == span


@pytest.mark.parametrize(
    ("text", "other", "names"),
    [
        ("Green tea.", "Green tea.", ()),
        ("Green tea.", "green  tea.", ("case", "spaces")),
        ("ＯＫ", "OK", ("width",)),
        ("'tea'", "“tea”", ("quotation marks",)),
        ("re-\ntrieval", "retrieval", ("spaces", "hyphens")),
    ],
)
def test_two_texts_of_one_form_differ_in(text: str, other: str, names: tuple[str, ...]) -> None:
    assert differences(text, other) == names
    assert NormalText(text).normalized == NormalText(other).normalized
