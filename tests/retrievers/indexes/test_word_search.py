"""Lookups of words for links, with equal results on every store."""

import random
from collections.abc import Callable
from typing import Any

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor
from nodekin.retrievers import LinkRetriever, Retriever

NAMES = ("Henrik Ibsen", "Oslo Town", "Brand Play", "Green Tea House", "Old Skien Road", "挪威王国")

WORDS = "tea green black milk river bank bed the of 长江 河流 金钱".split()

QUERIES = (
    "which river is near Oslo Town",
    "green tea of Henrik Ibsen",
    "the bank of Old Skien Road and the milk",
    "Green Tea House 长江 河流",
    "挪威王国 的 河流",
    "nothing",
)


def document(number: int) -> Document:
    chance = random.Random(number)
    title = chance.choice(NAMES) if chance.random() < 0.3 else f"Title {number}"
    words = [*chance.choices(WORDS, range(12, 0, -1), k=chance.randrange(12))]
    words += chance.choices(NAMES, k=chance.randrange(3))
    chance.shuffle(words)
    text = f"{title}\n{' '.join(words)}." if number % 7 else ""  # some have no words
    return Document(text, {"part": number % 3}, id=f"d{number}")


def filled(count: int = 60, **options: Any) -> NodeGraph:
    graph = NodeGraph(progress=False, **options)
    graph.add([document(number) for number in range(count)])
    graph.create_node_group("entity", EntityExtractor())
    chance = random.Random(0)
    for source, target in [chance.sample(range(count), 2) for _ in range(20)]:
        graph.link(f"d{source}", f"d{target}", "cites", weight=chance.random())
    return graph


def rows(results: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (r.node.text, r.score, [(e.node.text, e.score, e.similarity) for e in r.evidence])
        for r in results
    ]


def same(graphs: list[NodeGraph], **settings: Any) -> None:
    for filters in (None, {"part": 1}, {"not": {"part": 1}}):
        for query in QUERIES:
            got, expected = (
                rows(
                    LinkRetriever(
                        Retriever(graph, "ROOT", top_k=5, filters=filters), graph, **settings
                    )(query)
                )
                for graph in graphs
            )
            assert got == expected, (query, filters)
            assert got or query == "nothing"


def test_word_search_on_engine_equals_memory(engine: Callable[[], dict[str, Any]]) -> None:
    with filled(**engine()) as graph:
        same([graph, filled()], via="entity")
