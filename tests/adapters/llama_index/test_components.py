"""nodekin's retrievers and indexes inside LlamaIndex's components."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, TextNode
from llama_index.core.tools import RetrieverTool

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphReranker, NodeGraphRetriever
from nodekin.adapters.llama_index.nodes import NodeWithEvidence
from nodekin.retrievers import Retriever, ScoredNode, restrict

QUERY = "Which tea is fermented? 红茶"
Scripted = Callable[[Any], Any]


def ids(results: Any) -> list[str]:
    return [result.node_id for result in results]


def documents() -> list[Document]:
    texts = {"tea": "Black tea is fermented.", "rivers": "The Nile is 6,650 km long."}
    return [Document(text=text, id_=name, metadata={"topic": name}) for name, text in texts.items()]


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "simple"])
def test_fusion_merges_equal_nodes_with_evidence(
    retriever: NodeGraphRetriever, search: Retriever, mode: Any
) -> None:
    whole = NodeGraphRetriever(Retriever(search.graphs[0], "paragraph", "bm25", top_k=3))
    fusion = QueryFusionRetriever(
        [retriever, whole], llm=MockLLM(), num_queries=1, use_async=False, mode=mode
    )
    results = fusion.retrieve(QUERY)
    assert len({*ids(results)}) == len(results)
    assert ids(results)[0] == ids(retriever.retrieve(QUERY))[0]
    assert all(isinstance(result, NodeWithEvidence) and result.evidence for result in results)


def test_postprocessors_keep_the_evidence(search: Retriever, scripted: Scripted) -> None:
    engine = RetrieverQueryEngine.from_args(
        NodeGraphRetriever(search),
        llm=scripted("Black tea."),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.1), LongContextReorder()],
    )
    sources = engine.query(QUERY).source_nodes
    assert {*ids(sources)} == {*ids(NodeGraphRetriever(search).retrieve(QUERY))}
    assert all(source.evidence for source in sources)


def test_score_of_zero_stays_zero() -> None:
    class Listed:
        def retrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            index = NodeGraphIndex([TextNode(text="Tea", id_="t")], similarity="bm25")
            return [ScoredNode(index.graph.nodes("ROOT")[0], 0.0)]

        async def aretrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            return self.retrieve(query)

    results = NodeGraphRetriever(Listed()).retrieve("tea")
    assert [result.score for result in results] == [0.0]
    zero = NodeGraphReranker("ModuleReranker", model=lambda query, texts: [0.0] * len(texts))
    assert zero.postprocess_nodes(results, query_str="tea")[0].score == 0.0


USER: ContextVar[str] = ContextVar("user")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LlamaIndex's workflows
async def test_agent_reads_only_notes_of_its_user(scripted: Scripted) -> None:
    notes = [
        Document(text=f"The tea of {user} is {color}.", metadata={"user": user})
        for user, color in (("anna", "green"), ("ben", "black"))
    ]
    index = NodeGraphIndex.from_documents(notes, similarity="bm25")
    own = NodeGraphRetriever(restrict(index, lambda: {"user": USER.get()}))
    tool: Any = RetrieverTool.from_defaults(own, name="notes", description="Notes")

    async def ask(user: str | None) -> Any:
        def reply(prompt: str) -> str:
            if "Observation:" in prompt.split("What is mine?")[-1]:
                return "Thought: I can answer without using any more tools.\nAnswer: That."
            return 'Thought: I look.\nAction: notes\nAction Input: {"input": "tea"}'

        if user is not None:
            USER.set(user)
        agent = ReActAgent(tools=[tool], llm=scripted(reply), streaming=False)
        (call,) = (await agent.run(user_msg="What is mine?")).tool_calls
        return call.tool_output

    anna, ben, nobody = await asyncio.gather(*map(ask, ("anna", "ben", None)))
    assert "green" in anna.content
    assert "black" not in anna.content
    assert "black" in ben.content
    assert "green" not in ben.content
    assert nobody.is_error
    assert "tea of" not in nobody.content
