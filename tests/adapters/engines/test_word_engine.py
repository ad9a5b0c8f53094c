"""The contract of engines that search words holds for the one of the tests."""

import numpy as np
from memory_engine import MemoryEngine
from word_engine_checks import same_words_as_memory

from nodekin.adapters.engines.engine_words import _impacts
from nodekin.nodegraph import MemoryStore
from nodekin.retrievers.indexes.bm25_scores import Saturation


def test_the_engine_of_the_tests_passes() -> None:
    engine = MemoryEngine(words=True)
    assert engine.word_table(MemoryStore(), "ROOT") is not None
    assert MemoryEngine().word_table(MemoryStore(), "ROOT") is None
    same_words_as_memory(engine, "nodekin_a", 20)


def test_impacts_are_those_of_bm25() -> None:
    counts = np.array([1, 2, 30])
    saturation = Saturation(1.5, 0.75, 12.5)
    expected = saturation.impacts(counts.astype(np.int32), np.full(3, 40, np.int32))
    assert _impacts(counts, 40, 12.5).tolist() == expected.tolist()
    assert (_impacts(counts, 40, 0.0) > 0).all()
