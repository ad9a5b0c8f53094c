"""LlamaIndex's metadata filters, compared with its own vector store."""

from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.adapters.llama_index.retriever import as_filters
from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.filters import parse_filters

FIELDS: list[dict[str, Any]] = [
    {"year": 1993, "genre": "action", "tags": ["a", "b"], "or": "x"},
    {"year": 2010, "director": "Nolan", "rating": 8.2, "tags": []},
    {"year": 2006, "director": "Kon", "rating": 8.6, "genre": ""},
    {"year": 1995, "genre": "animated", "director": "the nolan", "tags": ["b"]},
    {"year": None, "rating": 9.9, "genre": "Thriller"},
    {},
]


def filters(*conditions: Any, join: str = "and") -> MetadataFilters:
    parts = [
        c if isinstance(c, MetadataFilters) else MetadataFilter(key=c[0], operator=c[1], value=c[2])
        for c in conditions
    ]
    return MetadataFilters(filters=parts, condition=join)


CONDITIONS = [
    *[("year", name, 1995) for name in ("==", "!=", ">", ">=", "<", "<=")],
    *[("rating", name, 8.6) for name in ("==", "!=", ">", ">=", "<", "<=")],
    *[("genre", name, "animated") for name in ("==", "!=", ">", "<=")],
    ("year", "in", [1993, 2010]),
    ("year", "nin", [1993, 2010]),
    ("director", "in", ["Kon"]),
    ("director", "nin", ["Kon"]),
    ("tags", "any", ["a", "x"]),
    ("tags", "all", ["a", "b"]),
    ("tags", "contains", "b"),
    ("director", "contains", "olan"),
    ("director", "text_match", "Nolan"),
    ("director", "text_match", "N%n"),
    ("director", "text_match_insensitive", "nolan"),
    ("genre", "is_empty", None),
    ("tags", "is_empty", None),
    ("or", "==", "x"),
]


as_in_014 = pytest.mark.skipif(
    version("llama-index-core") < "0.14",
    reason="the store of LlamaIndex 0.13 has no 'not' and never matches missing values",
)


def theirs(given: MetadataFilters) -> list[int]:
    store = SimpleVectorStore()
    store.add(
        [
            TextNode(id_=str(number), text="tea", metadata=fields, embedding=[1.0])
            for number, fields in enumerate(FIELDS)
        ]
    )
    query = VectorStoreQuery(query_embedding=[1.0], similarity_top_k=99, filters=given)
    return sorted(int(node_id) for node_id in store.query(query).ids or [])


@pytest.fixture(scope="module")
def teas() -> Retriever:
    graph = NodeGraph(progress=False)
    graph.add(
        [TextNode(text="tea", metadata=fields, id_=str(n)) for n, fields in enumerate(FIELDS)]
    )
    return Retriever(graph, "ROOT", top_k=99)


def own(retriever: Retriever, given: Any, query: str = "tea") -> list[int]:
    results = NodeGraphRetriever(retriever, filters=given).retrieve(query)
    return sorted(int(result.node.ref_doc_id or result.node.node_id) for result in results)


def test_conditions_cover_all_operators() -> None:
    assert {name for _, name, _ in CONDITIONS} == {operator.value for operator in FilterOperator}


@as_in_014
@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_operators_equal_those_of_simple_vector_store(teas, condition) -> None:
    expected = theirs(filters(condition))
    assert own(teas, filters(condition)) == expected
    assert own(teas, filters(condition), " ") == expected


@as_in_014
@pytest.mark.parametrize("join", ["and", "or", "not"])
@pytest.mark.parametrize("other", CONDITIONS[::3], ids=str)
@pytest.mark.parametrize("one", CONDITIONS[1::3], ids=str)
def test_joined_operators_equal_simple_vector_store(teas, one, other, join) -> None:
    given = filters(one, other, join=join)
    filter = parse_filters(as_filters(given))
    met = [n for n, fields in enumerate(FIELDS) if filter.matches(Node("", fields))]
    assert met == theirs(given)


def test_nested_filters_are_translated(teas) -> None:
    either = filters(("year", "==", 1993), ("director", "==", "Kon"), join="or")
    assert own(teas, filters(either, ("genre", "!=", "action"))) == [2]
    assert own(teas, filters(filters(either, join="not"), ("tags", "any", ["b"]))) == [3]
    assert own(teas, filters()) == own(teas, None) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (filters(("topic", "==", None)), "use the operator is_empty"),
        (filters(("topic", "in", "tea")), "takes a list of values"),
        (filters(("topic", "in", [])), "allows no value"),
        (filters(("topic", "text_match", 5)), "must be a text"),
        ("topic", "filters map metadata fields"),
    ],
)
def test_filter_with_invalid_value_raises(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        as_filters(given)
