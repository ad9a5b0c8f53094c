import asyncio
import copy
import pickle
import unicodedata
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    Retriever,
    all_of,
)
from nodekin.retrievers.filters import parse_filters
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = Bm25(analyzer=str.split)


def test_condition_ignores_later_changes_of_arguments() -> None:
    bounds, values = {"gt": 1}, ["a"]
    filter = parse_filters({"range": bounds, "any": values})
    bounds["gt"] = 5
    values.append("b")
    assert filter.matches(Node("", {"range": 2, "any": "a"}))
    assert not filter.matches(Node("", {"range": 2, "any": "b"}))


@pytest.mark.parametrize("filters", ["topic", ["topic"], {1: "a"}, 5])
def test_filters_of_wrong_type_raise(filters: object) -> None:
    with pytest.raises(TypeError, match="filters map metadata fields to values"):
        parse_filters(filters)


def test_filters_apply_before_ranking() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("tea tea tea", {"n": i}, id=f"good{i}") for i in range(50)])
    graph.add([Document("tea and much else here", {"n": -1}, id=f"{i}") for i in range(5)])
    retriever = Retriever(graph, "ROOT", WORDS, top_k=5)
    assert [r.node.id for r in retriever("tea", filters={"n": -1})] == list("01234")
    assert [r.node.id for r in retriever("tea", filters={"n": {"lt": 0}})] == list("01234")
    everything = {result.node.id: result.score for result in retriever("tea", top_k=99)}
    for result in retriever("tea", filters={"n": -1}):
        assert result.score == everything[result.node.id]  # filters do not change statistics


@pytest.mark.parametrize(
    ("filters", "documents"),
    [
        ({}, ["river", "bank"]),
        ({"year": 2005}, ["river", "bank"]),
        ({"year": 2005, "topic": "money"}, ["bank"]),
        ({"year": 2005, "topic": "tea"}, []),
        ({"tags": "bank"}, ["bank"]),
        ({"tags": ["leaf", "bank"]}, ["bank"]),
        ({"nothing": "here"}, []),
        ({"year": "2005"}, []),
        ({"lang": "zh"}, []),
    ],
)
def test_filters_match_metadata_of_document(library, filters, documents: list[str]) -> None:
    retriever = Retriever(library, "sentence", WORDS)
    results = retriever("bank", filters=filters)
    assert sorted(r.node.document_id for r in results) == sorted(documents)
    assert sorted(
        r.node.document_id for r in Retriever(library, "word", WORDS)("bank", filters=filters)
    ) == sorted(documents)


def test_node_metadata_overrides_metadata_of_ancestors() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group(
        "part", lambda text: [Node(t, {"part": i}) for i, t in enumerate(text.split("|"))]
    )
    graph.create_node_group(
        "word", lambda text: [Node(w, {"size": len(w)}) for w in text.split()], parent="part"
    )
    graph.add([Document("a bb|a ccc", {"book": 1, "part": "x"}, id="1"), Document("a", id="2")])
    retriever = Retriever(graph, "word", WORDS, top_k=9)
    found = [(r.node.document_id, r.node.metadata) for r in retriever("a", filters={"book": 1})]
    assert found == [
        ("1", {"book": 1, "part": 0, "size": 1}),
        ("1", {"book": 1, "part": 1, "size": 1}),
    ]
    assert len(retriever("a", filters={"part": 1})) == 1
    assert retriever("a", filters={"part": "x"}) == []  # the nearest ancestor wins
    assert len(retriever("a", filters={"size": 1})) == 3


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"or": [{"n": 1}, {"topic": "tea"}]}, [0, 1, 2]),
        ({"and": [{"n": {"gte": 1}}, {"topic": "tea"}]}, [2]),
        ({"not": {"topic": "tea"}}, [1, 3]),
        ({"not": {"topic": "tea", "n": 0}}, [1, 2, 3]),
        ({"n": {"lt": 3}, "not": {"topic": "tea"}}, [1]),
        ({"or": [{"not": {"or": [{"n": 0}, {"n": 1}]}}, {"and": [{"n": 1}]}]}, [1, 2, 3]),
        ({"metadata.or": "x"}, [3]),
        ({"metadata.n": 3}, [3]),
        ({"and": [{}, {"n": 3}]}, [3]),
        ({"and": [{}], "n": 3}, [3]),
    ],
)
def test_nested_filters_match_expected_nodes(filters: dict, numbers: list[int]) -> None:
    graph = NodeGraph(progress=False)
    fields = [{"topic": "tea"}, {}, {"topic": ["tea", "ice"]}, {"or": "x"}]
    graph.add([Document(f"tea {n}", {"n": n} | other) for n, other in enumerate(fields)])
    retriever = Retriever(graph, "ROOT")
    assert [r.node.metadata["n"] for r in retriever("tea", filters=filters)] == numbers


@pytest.mark.parametrize(
    "filters",
    [
        {"or": "x"},
        {"or": []},
        {"and": []},
        {"and": {"n": 1}},
        {"not": [{"n": 1}]},
        {"not": {}},
        {"or": [{}]},
    ],
)
def test_invalid_nested_filter_raises(filters: dict) -> None:
    with pytest.raises(ValueError, match=r"the filter '(and|or|not)' (must be|has)"):
        parse_filters(filters)


def test_all_of_joins_all_conditions() -> None:
    assert all_of() is all_of(None, {}, None) is None
    assert all_of(None, {"a": 1}, {}) == {"a": 1}
    both = all_of({"tenant": "a"}, {"tenant": "b"})
    assert not parse_filters(both).matches(Node("", {"tenant": "a"}))
    assert parse_filters(both).matches(Node("", {"tenant": ["a", "b"]}))
    nested = all_of(both, {"or": [{"n": 1}, {"n": 2}]})
    assert parse_filters(nested).matches(Node("", {"tenant": ["a", "b"], "n": 2}))


def test_filter_by_document_id_selects_documents(tmp_path) -> None:
    texts = {"a.md": "tea one\ntea two\n", "b.md": "tea three\n", "notes/c.md": "tea four\nice\n"}
    for reopened in (False, True):
        with NodeGraph(store=tmp_path / "graph.db", progress=False) as graph:
            graph.create_node_group("line", str.splitlines)
            if not reopened:
                graph.add([Document(text * 50, id=name) for name, text in texts.items()])
            for group in ("line", "ROOT"):
                retriever = Retriever(graph, group, top_k=500)

                def documents(filters: dict, retriever: Retriever = retriever) -> list[str]:
                    results = retriever("tea", filters=filters)
                    return sorted({result.node.document_id for result in results})

                assert documents({"document.id": "a.md"}) == ["a.md"]
                assert documents({"document.id": ["a.md", "b.md"]}) == ["a.md", "b.md"]
                assert documents({"document.id": {"like": "notes/%"}}) == ["notes/c.md"]
                assert documents({"not": {"document.id": "a.md"}}) == ["b.md", "notes/c.md"]
                assert documents({"document.id": "d.md"}) == []


def test_unknown_field_is_logged_once(caplog) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("tea", {"author": "A"}), Document("tea", {"year": 1})])
    retriever = Retriever(graph, "ROOT")
    for _ in range(3):
        assert retriever("tea", filters={"auhtor": "A"}) == []
        assert len(retriever("tea", filters={"colour": {"exists": False}})) == 2
    (message,) = [record.getMessage() for record in caplog.records]
    assert "the metadata field 'auhtor'" in message
    assert "known fields: 'author', 'year'" in message
    graph.add(Document("tea", {"auhtor": "A"}))
    assert len(retriever("tea", filters={"auhtor": "A"})) == 1


def teas(metadata: dict[str, Any]) -> NodeGraph:
    graph = NodeGraph(progress=False, embed=lambda texts: [[1.0]] * len(texts))
    graph.create_node_group("line", str.splitlines)
    graph.add([Document("green tea\nblack tea", metadata), Document("white tea", metadata)])
    return graph


SEARCHES = {
    "words": lambda graph, _: Retriever(graph, "line", "bm25", target="ROOT"),
    "both scores": lambda graph, _: Retriever(graph, "line", "auto"),
    "default": lambda graph, _: DefaultRetriever(graph),
    "fusion": lambda graph, _: FusionRetriever(
        [Retriever(graph, "line"), Retriever(graph, "ROOT")]
    ),
    "several graphs": lambda graph, other: Retriever([graph, other], "line"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_search_logs_unknown_field_once(name, caplog) -> None:
    retriever = SEARCHES[name](teas({"author": "A"}), teas({"year": 1}))
    filters = {"or": [{"nonsense": 1}, {"not": {"nonsense": 2}}]}
    assert retriever.retrieve("tea", filters=filters)
    (message,) = caplog.messages
    assert "the metadata field 'nonsense', which no searched node has" in message
    if name == "several graphs":
        assert "known fields: 'author', 'year'" in message


def test_field_of_one_searched_graph_is_not_logged(caplog) -> None:
    retriever = Retriever([teas({"author": "A"}), teas({"year": 1})], "line")
    assert retriever.retrieve("tea", filters={"year": 1})
    assert not caplog.messages


def test_operators_of_other_dialects_raise() -> None:
    for filters in ({"$and": [{"a": 1}]}, {"$or": []}, {"$year": 1}):
        with pytest.raises(ValueError, match="joined by 'and', 'or', 'not'"):
            parse_filters(filters)
    assert parse_filters({"metadata.$or": 1}).matches(Node("", {"$or": 1}))
    assert parse_filters({"metadata.document.id": 1}).matches(Node("", {"document.id": 1}))
    assert parse_filters({"metadata.metadata.a": 1}).matches(Node("", {"metadata.a": 1}))


def test_blank_query_lists_filtered_nodes() -> None:
    graph = NodeGraph(progress=False, embed=lambda texts: [[1.0]] * len(texts))
    graph.create_node_group("line", str.splitlines)
    texts = ("b tea\nx", "a ice\ny", "c tea\nz")
    graph.add([Document(text, {"n": n}, id=str(n)) for n, text in enumerate(texts)])
    filters = {"n": {"ne": 1}}
    for similarity in ("bm25", "cosine", "exact"):
        retriever = Retriever(graph, "line", similarity, top_k=3)
        results = retriever(" ", filters=filters)
        assert [result.node.text for result in results] == ["b tea", "x", "c tea"]
        assert {(r.score, r.evidence[0].similarity) for r in results} == {(0.0, "filter")}
        assert asyncio.run(retriever.aretrieve("", filters=filters)) == results
        assert retriever("") == []
        first, listed = retriever.batch(["b tea", ""], filters=filters)
        assert first
        assert listed == results
    assert graph.embeddings.embedder("default")
    lifted = Retriever(graph, "line", target="ROOT", filters=filters, top_k=1)
    assert [result.node.id for result in lifted("")] == ["0"]
    graph.remove("0")
    assert [result.node.id for result in lifted("")] == ["2"]


def test_filter_can_be_pickled_and_copied() -> None:
    filter = parse_filters({"or": [{"n": {"gt": 1}}, {"not": {"t": {"like": "a%", "in": ["ab"]}}}]})
    for other in (pickle.loads(pickle.dumps(filter)), copy.deepcopy(filter)):
        assert other.key == filter.key
        assert other.matches(Node("", {"n": 2, "t": "ab"}))
        assert not other.matches(Node("", {"n": 1, "t": "ab"}))


@pytest.mark.parametrize("join", ["and", "or", "not"])
def test_deeply_nested_filters_raise(join):
    filters = {"a": 1}
    for _ in range(2_000):
        filters = {join: filters if join == "not" else [filters]}
    with pytest.raises(ValueError, match="at most 100 levels"):
        parse_filters(filters)


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ({"eq": "José"}, True),
        ({"in": ["Ann", "José"]}, True),
        ({"ne": "José"}, False),
        ({"nin": ["José"]}, False),
        ({"contains": "sé"}, True),
        ({"any": ["José", "Ann"]}, True),
        ({"all": ["José"]}, True),
        ({"like": "jos_"}, True),
        ({"like": "%é"}, True),
        ({"like_case": "Jos_"}, True),
        ({"gte": "José", "lte": "José"}, True),
        ({"eq": "Jose"}, False),
    ],
)
def test_filters_ignore_unicode_form(
    stored: str, asked: str, operators: dict[str, Any], expected: bool
) -> None:
    def form(value: Any) -> Any:
        return (
            unicodedata.normalize(asked, value) if isinstance(value, str) else [*map(form, value)]
        )  # type: ignore[arg-type]

    name = unicodedata.normalize(stored, "José")  # type: ignore[arg-type]
    field = unicodedata.normalize(stored, "Verfasser/ä")  # type: ignore[arg-type]
    conditions = {operator: form(operand) for operator, operand in operators.items()}
    filters = parse_filters({form("Verfasser/ä"): conditions})
    assert filters.matches(Node("", {field: name})) is expected
    assert filters.matches(Node("", {field: [name]})) is expected or "contains" in operators
    graph = NodeGraph(progress=False)
    graph.add([Document("signed", {field: name}), Document("signed", {field: "Bob"}, id="b")])
    found = graph.search("signed", filters={form("Verfasser/ä"): conditions})
    assert any(each.node.metadata[field] == name for each in found) is expected


def test_document_id_filter_ignores_unicode_form() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("signed", id="Jose\u0301.md"), Document("signed", id="b.md")])
    results = graph.search("signed", filters={"document.id": {"ne": "José.md"}})
    assert [each.node.document_id for each in results] == ["b.md"]
