"""Filters of LangChain users, compared with functions in LangChain's own store."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import (
    NodeGraphRetriever,
    NodeGraphVectorStore,
    StructuredFilter,
)
from nodekin.adapters.langchain.filter_translation import as_filters
from nodekin.nodegraph import Node
from nodekin.retrievers import as_retriever
from nodekin.retrievers.filters import parse_filters

MOVIES = [
    (
        "Dinosaurs come back and mayhem breaks loose",
        {"year": 1993, "rating": 7.7, "genre": "action"},
    ),
    ("Lost in a dream within a dream", {"year": 2010, "director": "Nolan", "rating": 8.2}),
    ("A psychologist gets lost in dreams", {"year": 2006, "director": "Kon", "rating": 8.6}),
    ("Toys come alive", {"year": 1995, "genre": "animated", "tags": ["toys", "friends"]}),
    ("Three men walk into the Zone", {"year": 1979, "director": "Tarkovsky", "rating": 9.9}),
    ("Women of a house", {"director": None, "genre": "Thriller", "tags": ["women"]}),
]

EMBEDDING = DeterministicFakeEmbedding(size=8)


def documents() -> list[Document]:
    return [
        Document(page_content=text, metadata=dict(metadata), id=str(number))
        for number, (text, metadata) in enumerate(MOVIES)
    ]


@pytest.fixture(scope="module")
def stores() -> tuple[NodeGraphVectorStore, InMemoryVectorStore]:
    own = NodeGraphVectorStore.from_documents(documents(), EMBEDDING)
    theirs = InMemoryVectorStore(EMBEDDING)
    theirs.add_documents(documents())
    return own, theirs


def has(field: str, test: Callable[[Any], bool]) -> Callable[[Document], bool]:
    return lambda d: d.metadata.get(field) is not None and test(d.metadata[field])


def compared(field: str, name: str, value: Any) -> Callable[[Document], bool]:
    return has(field, lambda own: getattr(operator, name)(own, value))


def not_of_the_nineties(document: Document) -> bool:
    return document.metadata.get("year") not in (1995, 1993)


CASES: list[tuple[dict[str, Any], Callable[[Document], bool]]] = [
    ({"year": 1995}, compared("year", "eq", 1995)),
    ({"year": {"$eq": 1995}}, compared("year", "eq", 1995)),
    ({"director": {"$ne": "Kon"}}, lambda d: d.metadata.get("director") != "Kon"),
    ({"director": {"$neq": "Kon"}}, lambda d: d.metadata.get("director") != "Kon"),
    ({"year": {"$gt": 1995}}, compared("year", "gt", 1995)),
    ({"year": {"$gte": 1995}}, compared("year", "ge", 1995)),
    ({"rating": {"$lt": 8.2}}, compared("rating", "lt", 8.2)),
    ({"rating": {"$lte": 8.2}}, compared("rating", "le", 8.2)),
    ({"director": {"$in": ["Kon", "Nolan"]}}, has("director", ["Kon", "Nolan"].__contains__)),
    (
        {"director": {"$nin": ["Kon", "Nolan"]}},
        lambda d: d.metadata.get("director") not in ("Kon", "Nolan"),
    ),
    ({"year": {"$between": [1979, 1995]}}, has("year", lambda year: 1979 <= year <= 1995)),
    ({"year": {"$gte": 1990, "$lt": 2000}}, has("year", lambda year: 1990 <= year < 2000)),
    ({"director": {"$like": "%o%n"}}, has("director", {"Kon", "Nolan"}.__contains__)),
    ({"genre": {"$like": "t%"}}, lambda d: False),
    ({"genre": {"$ilike": "t%"}}, compared("genre", "eq", "Thriller")),
    ({"tags": {"$contains": "toys"}}, has("tags", lambda tags: "toys" in tags)),
    ({"tags": {"$not_contains": "toys"}}, lambda d: "toys" not in d.metadata.get("tags", ())),
    ({"tags": {"$all": ["toys", "friends"]}}, has("tags", lambda tags: len(tags) == 2)),
    ({"rating": {"$exists": True}}, lambda d: "rating" in d.metadata),
    ({"rating": {"$exists": False}}, lambda d: "rating" not in d.metadata),
    ({"year": {"$not": {"$gt": 1995}}}, lambda d: not d.metadata.get("year", 0) > 1995),
    ({"$not": {"year": 1995}}, lambda d: d.metadata.get("year") != 1995),
    ({"$not": [{"year": 1995}, {"year": 1993}]}, not_of_the_nineties),
    ({"$nor": [{"year": 1995}, {"year": 1993}]}, not_of_the_nineties),
    (
        {"$and": [{"year": {"$gt": 1990}}, {"rating": {"$gt": 8}}]},
        lambda d: d.metadata.get("year", 0) > 1990 and d.metadata.get("rating", 0) > 8,
    ),
    (
        {"$or": [{"genre": "animated"}, {"$and": [{"rating": {"$gt": 9}}, {"year": 1979}]}]},
        lambda d: d.metadata.get("genre") == "animated" or d.metadata.get("rating") == 9.9,
    ),
    (
        {"year": {"$gt": 1990}, "$or": [{"director": "Kon"}, {"tags": ["toys"]}]},
        lambda d: d.metadata.get("year") in (2006, 1995),
    ),
]


@pytest.mark.parametrize(("filter", "function"), CASES, ids=[str(case[0]) for case in CASES])
def test_filters_match_functions_in_langchains_store(stores, filter, function) -> None:
    own, theirs = stores
    expected = {d.id for d in theirs.similarity_search("dream", k=9, filter=function)}
    assert {d.id for d in own.similarity_search("dream", k=9, filter=filter)} == expected
    listed = [d.id for d in own.similarity_search("", k=9, filter=filter)]
    assert listed == sorted(expected)  # in the order of the documents
    retriever = own.as_retriever(search_kwargs={"k": 9, "filter": filter})
    assert {d.id for d in retriever.invoke("dream")} == expected
    assert {r.node.id for r in as_retriever(retriever).retrieve("dream")} == expected
    native = NodeGraphRetriever(retriever=own.retriever, k=9, filter=filter)
    assert {d.id for d in native.invoke("dream")} == expected
    assert {r.node.document_id for r in as_retriever(native).retrieve("dream")} == expected
    assert [d.id for d in native.invoke(" ")] == sorted(expected)
    with_call = NodeGraphRetriever(retriever=own.retriever, k=9)
    assert {d.id for d in with_call.invoke("dream", filter=filter)} == expected


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"year": {"$gtee": 1}}, r"operators \['\$gtee'\]; it takes one or more of 'gte'"),
        ({"$adn": [{"year": 1}]}, "joined by 'and'"),
        ({"$and": []}, "must be a list of filters"),
        ({"$or": {"year": 1}}, "must be a list of filters"),
        ({"year": {"$in": 5}}, "takes a list of values"),
        ({"year": {"$between": 5}}, "requires the lowest and the highest value"),
    ],
)
def test_wrong_filters_raise(stores, filter, message) -> None:
    with pytest.raises(ValueError, match=message):
        stores[0].similarity_search("dream", filter=filter)
    with pytest.raises(TypeError, match="filters map metadata fields"):
        stores[0].similarity_search("dream", filter=lambda document: True)


def test_filters_match_document_ids_and_sources(stores) -> None:
    own, theirs = stores
    expected = {d.id for d in theirs.similarity_search("dream", filter=lambda d: d.id in "13")}
    for filter in ({"document.id": {"$in": ["1", "3"]}}, {"document.id": ["1", "3"]}):
        assert {d.id for d in own.similarity_search("dream", filter=filter)} == expected == {*"13"}


def test_as_filters_keeps_fields_named_like_operators() -> None:
    assert as_filters({"metadata.$or": 1}) == {"metadata.$or": 1}
    filter = {"year": {"$not": {"$gt": 1}, "$lt": 5, "gte": 0}}
    assert as_filters(filter) == {
        "and": [{"year": {"lt": 5, "gte": 0}}, {"not": {"year": {"gt": 1}}}]
    }


# Structured queries


def compare(name: str, attribute: str, value: Any) -> Comparison:
    return Comparison(Comparator(name), attribute, value)


def joined(name: str, *arguments: Any) -> Operation:
    return Operation(Operator(name), list(arguments))


@pytest.mark.parametrize(
    ("comparison", "yes", "no"),
    [
        (compare("eq", "f", "a"), ["a", ["a", "b"]], ["b"]),
        (compare("ne", "f", "a"), ["b"], ["a"]),
        (compare("gt", "f", 1), [2], [1]),
        (compare("gte", "f", 1), [1], [0]),
        (compare("lt", "f", 1), [0], [1]),
        (
            compare("lte", "f", {"date": "2024-01-31", "type": "date"}),
            ["2024-01-31"],
            ["2024-02-01"],
        ),
        (compare("contain", "f", "a"), ["tea", ["a"]], ["te", ["tea"]]),
        (compare("like", "f", "EA"), ["tea"], ["te"]),
        (compare("like", "f", "t%"), ["Tea"], ["at"]),
        (compare("like", "f", "100_"), ["a 100_ b"], ["1000"]),
        (compare("in", "f", ["a", "b"]), ["b"], ["c"]),
        (compare("in", "f", "a"), ["a"], ["c"]),
        (compare("nin", "f", ["a", "b"]), ["c"], ["b"]),
        (joined("not", compare("eq", "f", 1), compare("eq", "f", 2)), [3], [1, 2]),
        (compare("eq", "or", 1), [], [1]),
    ],
)
def test_structured_comparisons_match_values(comparison: Any, yes: list, no: list) -> None:
    filter = parse_filters(comparison.accept(StructuredFilter()))
    assert [v for v in yes if not filter.matches(Node("", {"f": v}))] == []
    assert [v for v in no if filter.matches(Node("", {"f": v}))] == []
