"""Postprocessors that rerank: LlamaIndex's ``LLMRerank`` and nodekin's ``NodeGraphReranker``."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from support.llama_index_models import ScriptedLLM

from nodekin.adapters.llama_index import NodeGraphReranker

RELEVANCE = {"Green tea.": 2.0, "The Nile.": 1.0, "Black tea.": 9.0}


def reply(prompt: str) -> str:
    """Rank what is shown, as a model does."""
    texts = [text for text in prompt.split("\n") if text in RELEVANCE]
    return "\n".join(f"Doc: {at}, Relevance: {RELEVANCE[t]}" for at, t in enumerate(texts, 1))


def relevance(query: str, texts: list[str]) -> list[float]:
    return [RELEVANCE[text] for text in texts]


@pytest.fixture(params=["LlamaIndex", "nodekin"])
def rerank(request: pytest.FixtureRequest) -> Any:
    """Make a reranker of either package, which keeps some of the nodes."""

    def of_llama_index(top_n: int) -> BaseNodePostprocessor:
        return LLMRerank(llm=ScriptedLLM(answer=reply, prompts=[]), top_n=top_n)

    def of_nodekin(top_n: int) -> BaseNodePostprocessor:
        return NodeGraphReranker("ModuleReranker", model=relevance, top_n=top_n)

    return of_llama_index if request.param == "LlamaIndex" else of_nodekin


@pytest.fixture
def nodes() -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=text, metadata={}), score=0.5)
        for text in RELEVANCE
    ]


def test_nodes_are_reordered_with_new_scores(rerank: Any, nodes: list[NodeWithScore]) -> None:
    results = rerank(3).postprocess_nodes(nodes, query_str="Which tea?")
    assert [result.text for result in results] == ["Black tea.", "Green tea.", "The Nile."]
    assert [result.score for result in results] == [9.0, 2.0, 1.0]
    assert {result.node_id for result in results} == {node.node_id for node in nodes}


async def test_only_the_best_are_kept(rerank: Any, nodes: list[NodeWithScore]) -> None:
    reranker = rerank(1)
    for results in (
        reranker.postprocess_nodes(nodes, query_bundle=QueryBundle("Which tea?")),
        await reranker.apostprocess_nodes(nodes, query_bundle=QueryBundle("Which tea?")),
    ):
        assert [result.text for result in results] == ["Black tea."]


def test_no_nodes_are_no_error(rerank: Any) -> None:
    assert rerank(2).postprocess_nodes([], query_str="Which tea?") == []


def test_a_text_or_a_bundle_not_both(rerank: Any, nodes: list[NodeWithScore]) -> None:
    with pytest.raises(ValueError, match="both"):
        rerank(2).postprocess_nodes(nodes, query_bundle=QueryBundle("a"), query_str="b")


def test_postprocessor_runs_after_retriever(rerank: Any, nodes: list[NodeWithScore]) -> None:
    from llama_index.core import VectorStoreIndex

    index = VectorStoreIndex([node.node for node in nodes])
    engine = index.as_query_engine(similarity_top_k=3, node_postprocessors=[rerank(1)])
    assert [source.text for source in engine.query("Nile").source_nodes] == ["Black tea."]
