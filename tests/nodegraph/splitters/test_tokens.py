import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\u3000", 0),
        ("长江有多长？", 6),
        ("tea", 1),
        ("kilometres", 2),
        ("6300", 2),
        ("snake_case __init__", 2 + 1 + 3),
        ("I'm 3.14.", 3 + 4),
        ("カタカナ한국어ไทย", 4 + 3 + 3),
        ("Größe", 1),
    ],
)
def test_count_tokens_of_texts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(), st.text())
def test_count_tokens_of_parts_bounds_whole(a: str, b: str) -> None:
    assert max(count_tokens(a), count_tokens(b)) <= count_tokens(a + b)
    assert count_tokens(a + b) <= count_tokens(a) + count_tokens(b)
