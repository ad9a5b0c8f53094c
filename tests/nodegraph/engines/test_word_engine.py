"""The contract of engines that search words holds for the one of the tests."""

import numpy as np
from memory_engine import MemoryEngine
from word_engine_checks import same_words_as_memory

from nodekin.nodegraph.engines.word_engine import (
    REFERENCE_B,
    REFERENCE_K1,
    reference_impacts,
    searches_words,
)
from nodekin.retrievers.indexes.impact_lists import Saturation


def test_the_engine_of_the_tests_passes() -> None:
    engine = MemoryEngine(words=True)
    assert searches_words(engine)
    assert not searches_words(MemoryEngine())
    assert not searches_words(object())
    same_words_as_memory(engine, "nodekin_a", 20)


def test_impacts_are_those_of_bm25() -> None:
    counts = np.array([1, 2, 30])
    saturation = Saturation(REFERENCE_K1, REFERENCE_B, 12.5)
    expected = saturation.impacts(counts.astype(np.int32), np.full(3, 40, np.int32))
    assert reference_impacts(counts, 40, 12.5).tolist() == expected.tolist()
    assert (reference_impacts(counts, 40, 0.0) > 0).all()
