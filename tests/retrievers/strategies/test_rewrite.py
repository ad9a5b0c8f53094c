"""Rewritten queries: the prompt, and useless answers."""

import asyncio
from typing import Any

import pytest

from nodekin.retrievers import QueryRewriteRetriever, Retriever
from nodekin.retrievers.strategies.rewrite import QueryRewrite

QUERY = "Is the Nile longer than the Amazon?"


def test_braces_in_a_query_stay(scripted: Any) -> None:
    model = scripted("Nile?")
    QueryRewrite(model)("What does {domain} or {query} mean?")
    assert "What does {domain} or {query} mean?" in model.prompts[0]


@pytest.mark.parametrize("answer", ["NO_ANSWER", "无答案", "unbekannt", "zzz", "N/A", "..."])
def test_useless_rewrite_keeps_the_plain_results(answer: str, plain: Retriever) -> None:
    retriever = QueryRewriteRetriever(plain, lambda prompt: answer)
    results = retriever.retrieve("Nile and Amazon")
    assert [(r.node, r.score) for r in results] == [
        (r.node, r.score) for r in plain.retrieve("Nile and Amazon")
    ]
    assert {match.query for result in results for match in result.evidence} == {"Nile and Amazon"}
    assert all("(" in result.explain() for result in results)  # a note says why
    assert retriever.batch(["Nile and Amazon", "tea", "qqq"])[0] == results
    assert retriever.retrieve("qqq") == []
    assert asyncio.run(retriever.aretrieve("Nile and Amazon")) == results
