"""The edit distance of texts, and the most similar part of a text."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator


def edit_similarity(entry: str, other: str) -> float:
    """Return 1 - edit distance (Levenshtein, 1966) / length of the longer text.

    Example:
        >>> round(edit_similarity("kitten", "sitting"), 4)
        0.5714
    """
    if entry == other:
        return 1.0
    *_, distance = _distances(entry, other)
    return 1 - distance / max(len(entry), len(other))


@functools.lru_cache(maxsize=100_000)  # systems retrieve the same passages
def is_similar(entry: str, other: str, threshold: float) -> bool:
    """Return whether the edit similarity of two texts is above a threshold."""
    common = (_letters(entry) & _letters(other)).total()  # a bound of the similarity
    longer = max(len(entry), len(other), 1)
    return common / longer > threshold and edit_similarity(entry, other) > threshold


@functools.lru_cache(maxsize=20_000)
def _letters(text: str) -> Counter[str]:
    return Counter(text)


def similar_part(text: str, content: str) -> tuple[float, int, int]:
    """Return the similarity, start and end of the part of a content that is most similar to a text.

    The similarity is 1 - edit distance / length of the text.

    Example:
        >>> similar_part("black tea", "We drink a blak tea.")
        (0.8888888888888888, 11, 19)
    """
    distances = list(_distances(text, content, anywhere=True))
    end = min(range(len(content) + 1), key=lambda at: distances[at])
    back = list(_distances(text[::-1], content[:end][::-1], anywhere=True))
    length = min(range(len(back)), key=lambda at: back[at])
    return 1 - distances[end] / len(text), end - length, end


def _distances(entry: str, other: str, *, anywhere: bool = False) -> Iterator[int]:
    """Yield the edit distance of a text to each prefix of another text, also to the empty one.

    By bit vectors (Myers, 1999, in the form of Hyyrö, 2003).

    Args:
        entry: The text.
        other: The other text.
        anywhere: Compare with the best part that ends there, instead of the prefix.
    """
    positions: dict[str, int] = {}
    for position, letter in enumerate(entry):
        positions[letter] = positions.get(letter, 0) | 1 << position
    every, last = (1 << len(entry)) - 1, 1 << len(entry) >> 1
    up, down, distance = every, 0, len(entry)  # rises and falls of a column of the table
    first = not anywhere or not entry
    yield distance
    for letter in other:
        equal = positions.get(letter, 0)
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        rises, falls = (down | ~(horizontal | up)) & every, up & horizontal
        distance += bool(rises & last) - bool(falls & last) if entry else 1
        rises, falls = rises << 1 | first, falls << 1
        up, down = (falls | ~(vertical | rises)) & every, rises & vertical & every
        yield distance
