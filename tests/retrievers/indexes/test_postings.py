from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.retrievers.indexes.postings import Postings

BATCHES = st.lists(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=7), max_size=6))


def as_dict(postings: Postings, terms: str = "abcdefgh") -> dict[str, dict[int, int]]:
    read = {}
    for term in terms:
        slots, counts = postings.get(term)
        assert slots.tolist() == sorted(slots.tolist())
        read[term] = dict(zip(slots.tolist(), counts.tolist(), strict=True))
    return read


def counted(texts: list[list[str]], alive: list[bool] | None = None) -> dict[str, dict[int, int]]:
    expected: dict[str, dict[int, int]] = {term: {} for term in "abcdefgh"}
    kept = [text for i, text in enumerate(texts) if alive is None or alive[i]]
    for slot, text in enumerate(kept):
        for term, occurrences in Counter(text).items():
            expected[term][slot] = occurrences
    return expected


def test_unknown_term() -> None:
    slots, counts = Postings().get("a")
    assert slots.tolist() == counts.tolist() == []


@given(BATCHES)
def test_what_was_added_is_there(batches) -> None:
    postings, texts = Postings(), []
    for batch in batches:
        assert postings.extend(len(texts), map(iter, batch)) == [len(text) for text in batch]
        texts += batch
    assert as_dict(postings) == counted(texts)


@pytest.mark.usefixtures("small_limits")
@settings(max_examples=200)
@given(BATCHES, st.randoms(use_true_random=False))
def test_merged_and_compacted_all_the_time(batches, random) -> None:
    postings, texts = Postings(), []
    for batch in batches:
        assert postings.extend(len(texts), batch) == [len(text) for text in batch]
        texts += batch
        assert as_dict(postings) == counted(texts)
        alive = [random.random() < 0.7 for _ in texts]
        living = counted(texts, alive)
        frequencies = sorted(len(slots) for slots in living.values() if slots)
        got = postings.document_frequencies(np.array(alive, np.bool_))
        assert sorted(got.tolist()) == frequencies
        if random.random() < 0.5:
            postings.compact(np.array(alive, np.bool_))
            texts = [text for text, kept in zip(texts, alive, strict=True) if kept]
            assert as_dict(postings) == living
            assert len(postings) == sum(map(len, living.values()))
