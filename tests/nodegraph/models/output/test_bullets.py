"""Bullets and numbers before the items of a list."""

import pytest

from nodekin.nodegraph.models.output.bullets import split_bullet, with_bullets


@pytest.mark.parametrize(
    "lines",
    [
        ["Frage 1: one", "Frage 2: two"],
        ["Option A: one", "Option B: two"],
        ["Step One: one", "Step Two: two"],
        ["(I) one", "(II) two"],
        ["α) one", "β) two"],
        ["~ one", "~ two"],
        ["-> one", "-> two"],
        ["1;one", "2;two"],
        ["1. one 2. two"],
    ],
)
def test_counts_and_symbols_in_sequence_are_bullets(lines: list[str]) -> None:
    assert [split_bullet(line) for line in with_bullets(lines)] == [("one", True), ("two", True)]


@pytest.mark.parametrize(
    "lines",
    [
        ["1 litre in cups", "2 litres in cups"],
        ["Part A of the law", "Part B of the law"],
        ["A. Einstein's life", "E. Noether's life"],
        ["-Xmx meaning", "-Xms meaning"],
        ["1.5 litres", "2.5 litres"],
        ["Option 3: swap", "Option 7: put"],
        ["first love", "second love"],
    ],
)
def test_counts_that_are_words_stay(lines: list[str]) -> None:
    assert [split_bullet(line)[0] for line in with_bullets(lines)] == lines
