"""Measure retrievers over a tree of node groups, including groups written by a model.

    cd examples/evaluation
    OPENAI_BASE_URL=http://127.0.0.1:8091/v1 OPENAI_MODEL=qwen2.5-7b-instruct \
        nodekin eval node_groups:blocks node_groups:sentences node_groups:summaries \
        node_groups:keywords node_groups:questions node_groups:several node_groups:reranked \
        node_groups:rewritten node_groups:answers --data ../data/zh_questions.jsonl \
        --field answers=answer -m answer_in_context@3
"""

import os
from functools import cache

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import LLMExtractor, NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    RerankRetriever,
    Retriever,
)


@cache
def model() -> OpenAIChat:
    """Return the model that the environment names."""
    key = os.environ.get("OPENAI_API_KEY", "none")
    url = os.environ["OPENAI_BASE_URL"]
    return OpenAIChat(os.environ["OPENAI_MODEL"], base_url=url, api_key=key)


@cache
def graph() -> NodeGraph:
    """Declare the groups. A group is built when a retriever first searches it."""
    graph = NodeGraph(os.environ.get("DOCS", "../data/zh"), progress=False, on_error="skip")
    graph.create_node_group("block", str.splitlines)
    graph.create_node_group("sentence", lambda text: text.split("。"), parent="block")
    graph.create_node_group("summary", LLMExtractor(model(), "summary"), parent="block")
    graph.create_node_group("keyword", LLMExtractor(model(), "keywords"), parent="block")
    graph.create_node_group("qapair", LLMExtractor(model(), "qa"))
    return graph


def blocks() -> Retriever:
    """Search the lines of documents."""
    return Retriever(graph(), "block")


def sentences() -> Retriever:
    """Search sentences, and return their blocks."""
    return Retriever(graph(), "sentence", target="block")


def summaries() -> Retriever:
    """Search summaries, and return their blocks."""
    return Retriever(graph(), "summary", target="block")


def keywords() -> Retriever:
    """Search keywords, and return their blocks."""
    return Retriever(graph(), "keyword", target="block")


def questions() -> Retriever:
    """Search questions and answers that the model wrote."""
    return Retriever(graph(), "qapair")


def several() -> FusionRetriever:
    """Search several groups together."""
    return FusionRetriever([blocks(), sentences(), summaries(), keywords()])


class SharedCharacters:
    """A reranker by characters in common with the question, in place of a model."""

    name = "shared characters"

    def rerank(self, results, query):
        """Return the results in another order."""
        return sorted(results, key=lambda result: -len({*query} & {*result.node.text}))


def reranked() -> RerankRetriever:
    """Rerank the results of several groups."""
    return RerankRetriever(several(), SharedCharacters())


def rewritten() -> QueryRewriteRetriever:
    """Rewrite the question with the model before the search."""
    return QueryRewriteRetriever(blocks(), model())


def answers() -> QueryEngine:
    """Answer with the model from the reranked results. The sources are measured."""
    return QueryEngine(reranked(), model())
