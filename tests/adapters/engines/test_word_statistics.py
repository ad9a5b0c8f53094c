"""The store counts in how many nodes a term is, whatever changes."""

import random
from collections import Counter

import numpy as np
import pytest

from nodekin.adapters.engines import engine_words as word_statistics
from nodekin.adapters.engines.engine_words import WordStatistics
from nodekin.nodegraph import MemoryStore
from nodekin.nodegraph.search_tables import WordedNode, WordTotals


def node(name: str, text: str, order: int = 0) -> WordedNode:
    counts = Counter(text.split())
    whole = np.array([*counts.values()], np.int64)
    return WordedNode(name, order, "d", {}, [*counts], whole, int(whole.sum()))


@pytest.mark.parametrize("page", [3, 256])
def test_counts_follow_any_change(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_statistics, "_PAGE", page)
    monkeypatch.setattr(word_statistics, "_MAX_CACHED", 5)
    store, totals, chance = MemoryStore(), WordTotals(), random.Random(3)
    assert totals == WordTotals(nodes=0, length=0, longest=0, terms=0)
    texts: dict[str, str] = {}
    words = [f"w{n}" for n in range(30)]
    for _ in range(40):
        statistics = WordStatistics(store, "c", totals)
        names = chance.sample("abcdefghij", 4)
        new = {n: " ".join(chance.choices(words, k=chance.randrange(9))) for n in names[2:]}
        rows = statistics.change(names, {n: node(n, text, 7) for n, text in new.items()})
        assert rows.keys() == new.keys()
        if chance.random() < 0.2:  # interrupted: nothing has changed
            continue
        statistics.flush()
        totals = statistics.totals
        for name in names:
            texts.pop(name, None)
        texts.update(new)
        expected = Counter(word for text in texts.values() for word in {*text.split()})
        frequencies = WordStatistics(store, "c", totals).frequencies(words)
        assert {w: f.nodes for w, f in frequencies.items() if f.nodes} == expected
        assert totals.nodes == len(texts)
        assert totals.length == sum(len(text.split()) for text in texts.values())
        stored = WordStatistics(store, "c", totals).nodes([*"abcdefghij"])
        numbers = {frequencies[word].id: word for word in words}
        assert stored.keys() == texts.keys()
        for name, terms in stored.items():
            assert (np.diff(terms.term_ids) > 0).all()
            pairs = zip(terms.term_ids.tolist(), terms.counts.tolist(), strict=True)
            assert {numbers[n]: count for n, count in pairs} == Counter(texts[name].split())
            assert (terms.id, terms.order, terms.length) == (name, 7, len(texts[name].split()))


def test_terms_and_ids_may_be_anything() -> None:
    store = MemoryStore()
    statistics = WordStatistics(store, "c", WordTotals())
    terms = ["", "a b", "\ud800", 3, "3", ("a",), "长江"]
    counts = np.arange(1, 8, dtype=np.int64) * 1_000_000
    row = WordedNode("\ud800'\"", 2**40, "d", {}, terms, counts, int(counts.sum()))
    statistics.change([], {"k": row})
    statistics.flush(frequencies=False)
    statistics.flush()
    (stored,) = statistics.nodes(["k", "other"]).values()
    assert (stored.id, stored.order, stored.length) == (row.id, row.order, row.length)
    frequencies = statistics.frequencies([*terms, "unknown"])
    assert len({f.id for f in frequencies.values()}) == 8
    assert frequencies["unknown"] == (0, 0)
    by_number = dict(zip(stored.term_ids.tolist(), stored.counts.tolist(), strict=True))
    assert [by_number[frequencies[term].id] for term in terms] == counts.tolist()
    statistics.delete()
    assert store.kinds() == []
