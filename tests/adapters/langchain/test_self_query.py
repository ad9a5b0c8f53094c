"""Questions of self-query tutorials, and every comparator."""

from typing import Any

import pytest
from langchain_classic.retrievers import SelfQueryRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)

from nodekin.adapters.langchain import NodeGraphVectorStore, StructuredFilter
from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters

MOVIES = {
    "Jurassic Park": {"year": 1993, "rating": 7.7, "genre": "science fiction"},
    "Inception": {"year": 2010, "director": "Christopher Nolan", "rating": 8.2},
    "Paprika": {"year": 2006, "director": "Satoshi Kon", "rating": 8.6},
    "Little Women": {"year": 2019, "director": "Greta Gerwig", "rating": 8.3},
    "Toy Story": {"year": 1995, "genre": "animated", "released": "1995-11-22"},
    "Stalker": {"year": 1979, "director": "Andrei Tarkovsky", "rating": 9.9}
    | {"genre": ["thriller", "science fiction"]},
}

TEXTS = {
    "Jurassic Park": "Dinosaurs are brought back",
    "Inception": "A dream within a dream",
    "Paprika": "A detective is lost in dreams",
    "Little Women": "Sisters, women who grow up",
    "Toy Story": "Toys come alive and have a good time",
    "Stalker": "Three men walk into the Zone",
}


def has(name: str, attribute: str, value: Any) -> Comparison:
    return Comparison(Comparator(name), attribute, value)


def joined(name: str, *arguments: Any) -> Operation:
    return Operation(Operator(name), list(arguments))


TYPICAL = {
    "a movie rated higher than 8.5": ("", has("gt", "rating", 8.5), ["Paprika", "Stalker"]),
    "has Greta Gerwig directed movies about women": (
        *("women", has("eq", "director", "Greta Gerwig")),
        ["Little Women"],
    ),
    "a highly rated science fiction film": (
        "",
        joined("and", has("gte", "rating", 8.5), has("contain", "genre", "science fiction")),
        ["Stalker"],
    ),
    "after 1990 but before 2005, all about toys, preferably animated": (
        "toys",
        joined(
            "and", has("gt", "year", 1990), has("lt", "year", 2005), has("eq", "genre", "animated")
        ),
        ["Toy Story"],
    ),
    "animated, or rated above 9": (
        "",
        joined("or", has("eq", "genre", "animated"), has("gt", "rating", 9)),
        ["Stalker", "Toy Story"],
    ),
    "about dreams, but not by Nolan": (
        "dreams",
        joined("not", has("like", "director", "nolan")),
        ["Paprika"],
    ),
    "released in the nineties": (
        "",
        has("gte", "released", {"date": "1990-01-01", "type": "date"}),
        ["Toy Story"],
    ),
}


@pytest.mark.parametrize("question", TYPICAL)
def test_typical_questions_are_answered(question: str) -> None:
    query, filter, titles = TYPICAL[question]
    store = NodeGraphVectorStore.from_documents(
        [
            Document(page_content=TEXTS[title], metadata={"title": title, **fields})
            for title, fields in MOVIES.items()
        ],
        None,
    )
    retriever = SelfQueryRetriever(
        query_constructor=RunnableLambda(lambda _: StructuredQuery(query=query, filter=filter)),
        vectorstore=store,
        structured_query_translator=StructuredFilter(),
    )
    documents = retriever.invoke(question)
    assert sorted(document.metadata["title"] for document in documents) == titles


@pytest.mark.parametrize(
    ("comparison", "yes", "no"),
    [
        (has("eq", "f", "a"), ["a", ["a", "b"]], ["b"]),
        (has("ne", "f", "a"), ["b"], ["a"]),
        (has("gt", "f", 1), [2], [1]),
        (has("gte", "f", 1), [1], [0]),
        (has("lt", "f", 1), [0], [1]),
        (has("lte", "f", {"date": "2024-01-31", "type": "date"}), ["2024-01-31"], ["2024-02-01"]),
        (has("contain", "f", "a"), ["tea", ["a"]], ["te", ["tea"]]),
        (has("like", "f", "EA"), ["tea"], ["te"]),
        (has("like", "f", "t%"), ["Tea"], ["at"]),
        (has("like", "f", "100_"), ["a 100_ b"], ["1000"]),
        (has("in", "f", ["a", "b"]), ["b"], ["c"]),
        (has("in", "f", "a"), ["a"], ["c"]),
        (has("nin", "f", ["a", "b"]), ["c"], ["b"]),
        (joined("not", has("eq", "f", 1), has("eq", "f", 2)), [3], [1, 2]),
        (has("eq", "or", 1), [], [1]),
    ],
)
def test_comparisons(comparison: Any, yes: list, no: list) -> None:
    filter = parse_filters(comparison.accept(StructuredFilter()))
    assert [v for v in yes if not filter.matches(Node("", {"f": v}))] == []
    assert [v for v in no if filter.matches(Node("", {"f": v}))] == []
