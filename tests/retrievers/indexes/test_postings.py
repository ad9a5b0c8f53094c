import tracemalloc
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph.storage.columns import portions
from nodekin.retrievers.indexes.bm25_scores import TermPostings
from nodekin.retrievers.indexes.postings import AnalyzedTexts, Postings

CHARACTERS = "茶\ud800𠮷"
TERMS = [*"abcdefgh", *CHARACTERS, *map("".join, product(CHARACTERS, repeat=2))]
WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=7)
RUNS = st.lists(st.text(CHARACTERS, min_size=1, max_size=5), max_size=2)
BATCHES = st.lists(st.lists(st.tuples(WORDS, RUNS), max_size=6))


def of_terms(postings: Postings, alive: list[bool] | None = None) -> TermPostings:
    rows = np.ones(1000, np.bool_) if alive is None else np.array(alive, np.bool_)
    return TermPostings(postings, np.ones(len(rows), np.int32), sum(rows), rows)


def as_dict(postings: Postings) -> dict[str, dict[int, int]]:
    read = {}
    for term in TERMS:
        ((rows, counts),) = of_terms(postings).lists_of([term])
        assert rows.tolist() == sorted(rows.tolist())
        read[term] = dict(zip(rows.tolist(), counts.tolist(), strict=True))
    return read


def extend(postings: Postings, first: int, texts: list, size: int = 2) -> None:
    """Add texts, given as words and runs, in batches."""
    analyzed = ((words, len(words), runs) for words, runs in texts)
    batches = ([AnalyzedTexts.of(batch)] for batch in portions(analyzed, size))
    postings.extend(first, len(texts), batches)


def counted(texts: list, alive: list[bool] | None = None) -> dict[str, dict[int, int]]:
    expected: dict[str, dict[int, int]] = {term: {} for term in TERMS}
    kept = [text for i, text in enumerate(texts) if alive is None or alive[i]]
    for row, (words, runs) in enumerate(kept):
        pairs = (first + second for run in runs for first, second in pairwise(run))
        for term, occurrences in Counter([*words, *"".join(runs), *pairs]).items():
            expected[term][row] = occurrences
    return expected


@pytest.mark.slow
@pytest.mark.usefixtures("small_limits")
@settings(max_examples=amount(66, 200))
@given(BATCHES, st.randoms(use_true_random=False))
def test_merged_and_compacted_postings_equal_counts(batches, random) -> None:
    postings, texts = Postings(), []
    for batch in batches:
        extend(postings, len(texts), batch)
        texts += batch
        assert as_dict(postings) == counted(texts)
        alive = [random.random() < 0.7 for _ in texts]
        living = counted(texts, alive)
        terms = of_terms(postings, alive)
        assert {term: terms.frequency(term) for term in living} == {
            term: len(rows) for term, rows in living.items()
        }
        if random.random() < 0.5:
            postings = postings.compacted(np.array(alive, np.bool_))
            texts = [text for text, kept in zip(texts, alive, strict=True) if kept]
            assert as_dict(postings) == living
            assert len(postings) == sum(map(len, living.values()))


@pytest.mark.parametrize("most", [1, 255, 256, 65_535, 65_536])
def test_counts_of_any_size_are_kept(most: int) -> None:
    postings = Postings()
    extend(postings, 0, [(["a"] * 2, []), (["a"] * 20_001, [])])
    extend(postings, 2, [(["a"] * most, [])])
    postings = Postings.from_arrays(postings.arrays(), 3)
    extend(postings, 3, [(["a"] * 3, [])])
    assert as_dict(postings)["a"] == {0: 2, 1: 20_001, 2: most, 3: 3}


def test_postings_take_little_more_than_their_rows() -> None:
    random = np.random.default_rng(7)
    words = [f"w{number}" for number in range(2_000)]
    drawn = random.integers(0, 2_000, (16_000, 40)).tolist()
    texts = [([words[at] for at in row], []) for row in drawn]
    tracemalloc.start()
    try:
        postings = Postings()
        extend(postings, 0, texts, 4_000)
        size, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 5 * len(postings) + 500_000  # lengths, and the vocabulary
    assert peak < 13 * len(postings) + 20_000_000
