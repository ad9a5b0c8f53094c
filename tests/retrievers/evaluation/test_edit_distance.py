"""The edit similarity of texts equals its definition."""

import random

from nodekin.retrievers.evaluation.matching import is_similar


def similarity(one: str, other: str) -> float:
    """Return the edit similarity by its definition."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for place, another in enumerate(other):
            row.append(min(row[-1] + 1, before[place + 1] + 1, before[place] + (letter != another)))
    return 1 - row[-1] / max(len(one), len(other))


def test_is_similar_of_empty_texts():
    assert is_similar("", "", 0.9)
    assert not is_similar("", "abc", 0.0)
    assert not is_similar("abc", "", 0.0)


def test_is_similar_equals_definition():
    chance = random.Random(1)
    sizes = [*range(1, 12), 63, 64, 65, 130] * 5
    for size in sizes:
        one, other = ("".join(chance.choices("ab茶", k=n)) for n in (size, chance.randint(1, 90)))
        expected = similarity(one, other)
        for threshold in (0.0, 0.3, 0.5, 0.8, expected - 1e-3, expected + 1e-3):
            assert is_similar(one, other, threshold) == (expected > threshold)
            assert is_similar(other, one, threshold) == (expected > threshold)


def test_is_similar_equals_definition_of_short_texts():
    chance = random.Random(1)
    texts = ["".join(chance.choices("ab茶", k=chance.randint(1, 9))) for _ in range(60)]
    for one in texts:
        for other in texts:
            for threshold in (0.0, 0.3, 0.5, 0.8):
                expected = similarity(one, other) > threshold
                assert is_similar(one, other, threshold) == expected, (one, other, threshold)
