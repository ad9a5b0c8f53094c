"""The edit distance of texts equals its definition."""

import random

import pytest

from nodekin.retrievers.evaluation.edit_distance import edit_similarity, is_similar


def test_edit_similarity_of_known_pairs():
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("长江", "江") == 0.5
    assert edit_similarity("", "abc") == edit_similarity("abc", "") == 0
    assert edit_similarity("", "") == 1


def definition(one, other):
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for place, another in enumerate(other):
            row.append(min(row[-1] + 1, before[place + 1] + 1, before[place] + (letter != another)))
    return row[-1]


def test_edit_similarity_equals_definition():
    chance = random.Random(2)
    for size in [*range(12), 63, 64, 65, 130] * 5:
        one, other = ("".join(chance.choices("ab茶", k=n)) for n in (size, chance.randint(1, 90)))
        expected = 1 - definition(one, other) / max(len(one), len(other))
        assert edit_similarity(one, other) == edit_similarity(other, one) == expected


def test_is_similar_equals_edit_similarity_above_threshold():
    chance = random.Random(1)
    texts = ["".join(chance.choices("ab茶", k=chance.randint(1, 9))) for _ in range(60)]
    for one in texts:
        for other in texts:
            for threshold in (0.0, 0.3, 0.5, 0.8):
                expected = edit_similarity(one, other) > threshold
                assert is_similar(one, other, threshold) == expected, (one, other, threshold)
