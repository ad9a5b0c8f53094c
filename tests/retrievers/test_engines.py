"""A graph means the same on every engine: results, scores, filters, evidence, deletes."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from support.index_checks import check_index, check_retriever
from support.stress import amount

from nodekin.nodegraph import Document, Embedder, EntityExtractor, NodeGraph, count_tokens
from nodekin.retrievers import FusionRetriever, LinkRetriever, Retriever, as_retriever

Options = Callable[[], dict[str, Any]]

LETTERS = "aeiounrtbmk河茶"

DOCUMENTS = [
    Document(
        "green tea\nblack tea with milk\nriver water",
        {"year": 1999, "tags": ["a", "b"], "read": date(2024, 1, 31), "or": 1},
        id="tea",
    ),
    Document("the river bank\nthe river bed\ntea", {"year": 2005.5, "author": "Ann"}, id="river"),
    Document(
        "money in the bank\n长江是中国最长的河流", {"year": "2010", "author": None}, id="河'\"%_"
    ),
    Document(
        "green tea\n茶是一种饮品\nriver", {"read": "2024-02-01", "author": "Bo"}, id="2024-01-31"
    ),
    Document("milk\nmilk\nmilk", {"year": True, "tags": ("b",), "author": ""}, id="milk"),
    Document("no metadata at all", id="bare"),
]

FILTERS: list[dict[str, Any]] = [
    *({"year": 1999}, {"year": {"gte": 2000}}, {"year": {"lt": 2010, "gt": 1000}}),
    *({"year": {"ne": 1999}}, {"year": [1999, "2010", True]}, {"tags": "b"}, {"tags": ["a", "x"]}),
    *({"tags": {"contains": "a"}}, {"tags": {"all": ["a", "b"]}}, {"tags": {"any": ["b"]}}),
    *({"author": {"like": "a%"}}, {"author": {"like_case": "_o"}}, {"author": {"exists": True}}),
    *({"author": {"exists": False}}, {"author": {"empty": True}}, {"author": {"empty": False}}),
    *({"author": {"nin": ["Ann", "Bo"]}}, {"read": date(2024, 1, 31)}, {"read": "2024-01-31"}),
    *({"read": {"gt": "2024-01-15"}}, {"metadata.or": 1}, {"document.id": "tea"}),
    {"document.id": ["tea", "河'\"%_", "nothing"]},
    *({"document.id": date(2024, 1, 31)}, {"document.id": {"like": "%i%"}}),
    {"not": {"year": {"exists": True}}},
    {"not": {"or": [{"tags": "a"}, {"author": "Ann"}]}},
    {"or": [{"year": 1999}, {"not": {"author": "Bo"}}]},
    {"and": [{"year": {"exists": True}}, {"author": {"exists": True}}]},
    *({"nothing": {"empty": True}}, {"tags": {"ne": "b"}, "document.id": {"gte": "m"}}),
]

QUERIES = ("tea", "green tea", "river bank", "长江 river", "milk and money", "xyz", " ")


def letters(texts: list[str]) -> list[list[float]]:
    return [[*(text.count(letter) for letter in LETTERS), 0.25] for text in texts]


def built(**options: Any) -> NodeGraph:
    graph = NodeGraph(embed=Embedder(letters, "letters"), progress=False, **options)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    return graph


def filled(graph: NodeGraph) -> NodeGraph:
    graph.add(DOCUMENTS)
    graph.link("tea", ["river", "milk"])
    return graph


def rows(results: list[Any]) -> list[Any]:
    """Return the data of results."""
    return [
        (
            *(r.node.id, r.node.text, r.node.group, r.score),
            [(e.node.id, e.score, e.similarity, e.embed_key, e.filters) for e in r.evidence],
        )
        for r in results
    ]


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["bm25", "cosine"])
def test_index_on_engine_is_correct_after_changes(engine: Options, similarity: str) -> None:
    check_index(similarity, graph_options=engine, steps=amount(8, 25))


@pytest.mark.slow
def test_retriever_on_engine_is_correct_after_changes(engine: Options) -> None:
    def both(graph: NodeGraph) -> FusionRetriever:
        words = Retriever(graph, "line", "bm25", target="ROOT")
        return FusionRetriever([words, Retriever(graph, "line", "cosine", target="ROOT")])

    check_retriever(both, graph_options=engine)


@pytest.mark.parametrize("similarity", ["bm25", "cosine"])
def test_results_on_engine_equal_memory(engine: Options, similarity: str) -> None:
    graph, expected = filled(built(**engine())), filled(built())
    for settings in (
        {},
        {"target": "ROOT"},
        {"target": "word"},
        {"target": "ROOT", "lift": "sum", "top_k": 2},
        {"target": "ROOT", "lift": "mean"},
        {"target": "ROOT", "fetch_k": 3},
        {"min_score": 0.7, "top_k": 3},
        {"top_k": 1},
    ):
        on_engine = Retriever(graph, "line", similarity, **settings)
        in_memory = Retriever(expected, "line", similarity, **settings)
        for query in QUERIES:
            assert rows(on_engine(query)) == rows(in_memory(query)), (settings, query)
        results = zip(on_engine.batch(QUERIES), in_memory.batch(QUERIES), strict=True)
        assert all(rows(of_engine) == rows(of_memory) for of_engine, of_memory in results)
    graph.close()


def test_links_on_engine_equal_memory(engine: Options) -> None:
    graphs = [filled(built(**engine())), filled(built())]
    found = []
    for graph in graphs:
        graph.create_node_group("entity", EntityExtractor())
        for via in (None, "entity"):
            retriever = LinkRetriever(Retriever(graph, "ROOT", "bm25", top_k=1), graph, via=via)
            found.append([rows(retriever(query)) for query in QUERIES])
    assert found[:2] == found[2:]
    assert len(found[0][0]) > 1
    graphs[0].close()


def test_windows_on_engine_equal_memory(engine: Options) -> None:
    """Compare words and the stored vectors of sentences."""
    text = "The green tea is here. A river ran by. Nobody came. Milk is white. The bank is shut. "
    documents = [Document(text * 4 + f"Boat {n} is on the river. " + text * 4) for n in range(3)]
    graphs = [
        NodeGraph(embed=Embedder(letters, "letters"), progress=False, **o) for o in (engine(), {})
    ]
    on_engine, in_memory = map(as_retriever, graphs)
    for graph in graphs:
        graph.add(documents)
    for query, max_tokens in (("boat 1", 20), ("a tea of the river", 90), ("河", 400)):
        windows = on_engine.retrieve(query, max_tokens=max_tokens)
        assert 0 < sum(count_tokens(r.node.text) for r in windows) <= max_tokens
        assert rows(windows) == rows(in_memory.retrieve(query, max_tokens=max_tokens)), query
    found = on_engine.retrieve("aaa", max_tokens=40)  # no word
    assert {e.embed_key for r in found for e in r.evidence} == {"default"}
    graphs[0].close()


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["bm25", "cosine"])
def test_filters_on_engine_equal_memory(engine: Options, similarity: str) -> None:
    graph, expected = filled(built(**engine())), filled(built())
    on_engine = Retriever(graph, "line", similarity, top_k=4)
    in_memory = Retriever(expected, "line", similarity, top_k=4)
    for filters in FILTERS:
        for query in ("tea river", "milk bank", ""):
            got = on_engine.retrieve(query, filters=filters)
            assert rows(got) == rows(in_memory.retrieve(query, filters=filters)), filters
    # New values of these fields, without cached decisions.
    for each in (graph, expected):
        each.add(Document("tea and milk", {"year": 2024, "tags": ["a"], "author": "Al"}, id="new"))
        each.remove("river")
        each.add(Document("river tea", {"year": 1999, "author": "Ann"}, id="tea"))
    for filters in FILTERS:
        got = on_engine.retrieve("tea river", filters=filters)
        assert rows(got) == rows(in_memory.retrieve("tea river", filters=filters)), filters
    graph.close()


def test_reopened_graph_returns_equal_results(engine: Options) -> None:
    if not (options := engine()):
        pytest.skip("a graph in memory cannot be reopened")
    with filled(built(**options)) as graph:
        before = [rows(Retriever(graph, "line", s)("green tea")) for s in ("bm25", "cosine")]
    with built(**options) as graph, built(**options) as another:
        retrievers = [Retriever(graph, "line", s) for s in ("bm25", "cosine")]
        assert [rows(retriever("green tea")) for retriever in retrievers] == before
        another.add(Document("green green tea", id="green"))
        another.remove("tea")
        for retriever in retrievers:
            texts = [result.node.text for result in retriever("green tea")]
            assert "green green tea" in texts
            assert "tea" not in {result.node.document_id for result in retriever("green tea")}
        assert graph.linked("tea") == []
