"""The edit distance of texts, and the most similar part of a text."""

from __future__ import annotations

import functools

from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import partial_ratio_alignment


@functools.lru_cache(maxsize=100_000)  # systems retrieve the same passages
def is_similar(entry: str, other: str, threshold: float) -> bool:
    """Return whether the edit similarity of two texts is above a threshold.

    The edit similarity is 1 - edit distance (Levenshtein, 1966) / length of the longer text.

    Example:
        >>> is_similar("kitten", "sitting", 0.5), is_similar("kitten", "sitting", 0.6)
        (True, False)
    """
    return Levenshtein.normalized_similarity(entry, other, score_cutoff=threshold) > threshold


def similar_part(text: str, content: str) -> tuple[float, int, int]:
    """Return the similarity, start and end of the part of a content that is most similar to a text.

    The similarity is 1 - edit distance / length of the text.

    Example:
        >>> similar_part("black tea", "We drink a blak tea.")
        (0.8888888888888888, 11, 19)
    """
    found = partial_ratio_alignment(text, content)
    if found is None:  # only with a cutoff
        return 0.0, 0, 0
    margin = len(text) // 4
    first = max(0, found.dest_start - margin)
    region = content[first : found.dest_end + margin]
    blocks = Levenshtein.editops(text, region).as_matching_blocks()[:-1]
    if not blocks:
        return 0.0, 0, 0
    start, end = blocks[0].b - blocks[0].a, blocks[-1].b + blocks[-1].size
    start = max(0, start)
    end = min(len(region), end + len(text) - blocks[-1].a - blocks[-1].size)
    distance = Levenshtein.distance(text, region[start:end])
    return 1 - distance / len(text), first + start, first + end
