"""Texts in the form in which quotations are compared, and the places of its parts."""

import unicodedata

import pytest

from nodekin.retrievers.answers.quote_matching import NormalText


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
def test_span_maps_normal_form_to_text(
    text: str, normalized: str, part: str, span: tuple[int, int]
) -> None:
    normal = NormalText(text)
    assert normal.normalized == normalized
    start = normalized.index(part)
    assert normal.span(start, start + len(part)) == span


def letters_of(text: str) -> str:
    for _ in range(2):  # a decomposed character may have another case
        text = unicodedata.normalize("NFKD", text.casefold())
    return "".join(filter(str.isalnum, text)).replace("\u0640", "")


def test_normal_form_keeps_the_letters():
    texts = (f"x{chr(code)}y" for code in range(0, 0x20000, 5))
    assert [t for t in texts if letters_of(NormalText(t).normalized) != letters_of(t)] == []
