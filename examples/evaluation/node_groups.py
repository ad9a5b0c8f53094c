"""Measure retrievers that search different node groups, including groups that a model writes.

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
    """Return the language model that is configured in the environment."""
    key = os.environ.get("OPENAI_API_KEY", "none")
    url = os.environ["OPENAI_BASE_URL"]
    return OpenAIChat(os.environ["OPENAI_MODEL"], base_url=url, api_key=key)


@cache
def graph() -> NodeGraph:
    """Create a graph with several node groups. Each group is built when it is first searched."""
    graph = NodeGraph(os.environ.get("DOCS", "../data/zh"), progress=False, on_error="skip")
    graph.create_node_group("block", str.splitlines)
    graph.create_node_group("sentence", lambda text: text.split("。"), parent="block")
    graph.create_node_group("summary", LLMExtractor(model(), "summary"), parent="block")
    graph.create_node_group("keyword", LLMExtractor(model(), "keywords"), parent="block")
    graph.create_node_group("qapair", LLMExtractor(model(), "qa"))
    return graph


def blocks() -> Retriever:
    """Search the lines of the documents, which are called blocks."""
    return Retriever(graph(), "block")


def sentences() -> Retriever:
    """Search sentences, and return the blocks that contain them."""
    return Retriever(graph(), "sentence", target="block")


def summaries() -> Retriever:
    """Search summaries, and return the blocks that they summarize."""
    return Retriever(graph(), "summary", target="block")


def keywords() -> Retriever:
    """Search keywords, and return the blocks from which they were extracted."""
    return Retriever(graph(), "keyword", target="block")


def questions() -> Retriever:
    """Search questions and answers that the model has written about the blocks."""
    return Retriever(graph(), "qapair")


def several() -> FusionRetriever:
    """Search several groups and combine the results."""
    return FusionRetriever([blocks(), sentences(), summaries(), keywords()])


class SharedCharacters:
    """A reranker that counts characters shared with the question. It replaces a reranking model."""

    name = "shared characters"

    def rerank(self, results, query):
        """Return the results in a new order."""
        return sorted(results, key=lambda result: -len({*query} & {*result.node.text}))


def reranked() -> RerankRetriever:
    """Rerank the combined results of several groups."""
    return RerankRetriever(several(), SharedCharacters())


def rewritten() -> QueryRewriteRetriever:
    """Let the model rewrite the question before searching."""
    return QueryRewriteRetriever(blocks(), model())


def answers() -> QueryEngine:
    """Return a query engine that answers with the model. The evaluation measures its sources."""
    return QueryEngine(reranked(), model())
