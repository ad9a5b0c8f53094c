"""What inverted texts say of each text."""

from collections import Counter

import numpy as np

from nodekin.retrievers.indexes.postings import InvertedTexts


def counted(inverted: InvertedTexts) -> list[Counter]:
    """Return the terms of each text; check that each term is there once, with ascending rows."""
    texts: list[Counter] = [Counter() for _ in inverted.lengths]
    assert len(set(inverted.terms)) == len(inverted.terms) == len(inverted.sizes)
    ends = np.cumsum(inverted.sizes)
    for term, size, end in zip(inverted.terms, inverted.sizes, ends, strict=True):
        rows = inverted.rows[end - size : end].tolist()
        assert rows == sorted(set(rows))
        for row, count in zip(rows, inverted.counts[end - size : end].tolist(), strict=True):
            texts[row][term] = count
    assert [sum(text.values()) for text in texts] == inverted.lengths.tolist()
    return texts
