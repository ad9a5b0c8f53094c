"""Fixtures of the retrievers' tests: a small library, and BM25 written out to compare with."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers.indexes import filter_index, posting_lists, postings, text_index

Ranking = list[tuple[int, float]]


def brute_force(
    nodes: Sequence[Sequence[str]], query: Sequence[str], k1: float = 1.5, b: float = 0.75
) -> Ranking:
    """Score nodes, given as their terms, one after the other; return place and score, best first.

    Adds up the heaviest terms first, as ``TextIndex.search`` says it does, so that the sums are
    the same to the last bit.
    """
    counts = [Counter(terms) for terms in nodes]
    frequencies = Counter(term for each in counts for term in each)
    average = sum(map(len, nodes)) / len(nodes) if nodes else 0.0
    weights = {
        term: occurrences
        * math.log(1 + (len(nodes) - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term, occurrences in Counter(query).items()
        if frequencies[term]
    }
    ranking = []
    for place, count in enumerate(counts):
        score = 0.0
        for term in sorted(weights, key=lambda term: (-weights[term], term)):
            if count[term]:
                norm = k1 * (1 - b + b * (len(nodes[place]) / average))
                score += weights[term] * (count[term] * (k1 + 1) / (count[term] + norm))
        if any(term in count for term in weights):
            ranking.append((place, score))
    return sorted(ranking, key=lambda item: (-item[1], item[0]))


@pytest.fixture(scope="session")
def brute() -> Callable[..., Ranking]:
    return brute_force


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every threshold so low that a handful of nodes gets past it."""
    monkeypatch.setattr(postings, "_SMALL", 6)
    monkeypatch.setattr(posting_lists, "BATCH_SIZE", 3)
    monkeypatch.setattr(text_index, "_MOST_TERMS", 5)
    monkeypatch.setattr(filter_index, "_GAPS", 2)


@pytest.fixture
def library() -> NodeGraph:
    """Four documents of paragraphs (lines) of sentences."""
    graph = NodeGraph(progress=False)
    graph.create_node_group("paragraph", str.splitlines)
    graph.create_node_group("sentence", lambda text: text.split("; "), parent="paragraph")
    graph.create_node_group("word", str.split, parent="sentence")
    graph.create_node_group("line", str.splitlines)
    graph.add(
        [
            Document(
                "green tea; black tea and milk\nriver water; tea water",
                {"topic": "tea", "year": 1999, "tags": ["drink", "leaf"]},
                id="tea",
            ),
            Document("river bank; river bed\nsea", {"topic": "river", "year": 2005}, id="river"),
            Document("bank money", {"topic": "money", "year": 2005, "tags": ["bank"]}, id="bank"),
            Document("长江是中国最长的河流。\n茶是一种饮品。", {"lang": "zh"}, id="zh"),
        ]
    )
    return graph
