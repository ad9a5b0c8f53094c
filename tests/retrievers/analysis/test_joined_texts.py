"""Joined texts are normalized, and have words, as each alone."""

from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.analysis.many_texts import (
    SEPARATOR,
    ascii_words_together,
    normalized_together,
)
from nodekin.retrievers.analysis.segments import ascii_words, normalized

ANY = st.lists(st.text(st.characters(categories=None), max_size=20), min_size=1, max_size=9)
ASCII = st.lists(
    st.text("aAbZ09_+#'s \0\n-", max_size=14) | st.just("getUserName"), min_size=1, max_size=9
)


@given(ANY | ASCII)
def test_each_is_normalized_as_alone(texts: list[str]) -> None:
    expected = [normalized(text.replace(SEPARATOR, " ")) for text in texts]
    assert normalized_together(texts).split(SEPARATOR) == expected


@given(ASCII)
def test_each_has_the_words_it_has_alone(texts: list[str]) -> None:
    words: list[list[str]] = [[]]
    for word in ascii_words_together(texts):
        if word == SEPARATOR:
            words.append([])
        else:
            words[-1].append(word)
    assert words == [ascii_words(normalized(text)) for text in texts]
