"""Rewritten queries, and several phrasings of a query."""

from typing import Any

from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.ranking import fuse
from nodekin.retrievers.results import QueryVariant
from nodekin.retrievers.strategies.rewrite import MultiQueryRetriever, QueryRewrite


def ids(results: list[ScoredNode]) -> list[str]:
    return [result.node.id for result in results]


def test_braces_in_a_query_stay(scripted: Any) -> None:
    model = scripted("Nile?")
    QueryRewrite(model)("What does {domain} or {query} mean?")
    assert "What does {domain} or {query} mean?" in model.prompts[0]


def test_phrasings_are_fused_with_the_query(plain: Retriever, scripted: Any) -> None:
    retriever = MultiQueryRetriever(plain, scripted("the Nile\nthe Amazon"), query_weight=3)
    queries = ["tea drink", "the Nile", "the Amazon"]
    assert retriever.query_transform(queries[0]) == queries
    results = retriever.retrieve(queries[0])
    expected = fuse([plain.retrieve(query) for query in queries], "rrf", [3, 1, 1], 1)
    assert ids(results) == ids(expected) == ["tea"]  # as many as the longest of them
    wider = retriever.retrieve(queries[0], top_k=3)
    assert ids(wider) == ["tea", "nile", "amazon"]
    variants = {result.node.id: [m.variants for m in result.evidence] for result in wider}
    assert variants["tea"] == [()]  # found for the query itself
    assert variants["nile"] == [(QueryVariant("tea drink", "phrasing"),)]


def test_include_query_false_leaves_out_the_query(plain: Retriever, scripted: Any) -> None:
    retriever = MultiQueryRetriever(plain, scripted("the Nile"), include_query=False)
    assert ids(retriever.retrieve("tea drink")) == ["nile"]
