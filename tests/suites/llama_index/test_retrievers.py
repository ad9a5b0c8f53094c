"""Retrievers: ``index.as_retriever``, ``RecursiveRetriever`` and ``AutoMergingRetriever``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import (
    RecursiveRetriever,
)
from llama_index.core.schema import (
    IndexNode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from support.llama_index_models import ScriptedLLM

QUESTION = "Which tea is fermented?"
QUESTIONS = (QUESTION, "Is the Nile 6,650 km long, to the Mediterranean sea?")


def topics(results: list[NodeWithScore]) -> list[str]:
    return [result.metadata["topic"] for result in results]


def test_text_and_query_bundle_return_equal_results(index: Any) -> None:
    retriever = index.as_retriever()
    results = retriever.retrieve(QUESTION)
    assert all(isinstance(result, NodeWithScore) for result in results)
    assert topics(results)[0] == "tea"
    assert topics(retriever.retrieve(QueryBundle(QUESTION))) == topics(results)


async def test_aretrieve_equals_retrieve(index: Any) -> None:
    retriever = index.as_retriever(similarity_top_k=3)
    assert topics(await retriever.aretrieve(QUESTION)) == topics(retriever.retrieve(QUESTION))
    several = await asyncio.gather(*(retriever.aretrieve(q) for q in QUESTIONS))
    assert [topics(results)[0] for results in several] == ["tea", "rivers"]


def test_similarity_top_k_limits_results_default_two(index: Any) -> None:
    question = "Is it the Nile, black tea or the Golden Gate Bridge?"
    assert len(index.as_retriever().retrieve(question)) == 2
    for number in (1, 3):
        assert len(index.as_retriever(similarity_top_k=number).retrieve(question)) == number
    retriever = index.as_retriever()
    retriever.similarity_top_k = 1
    assert len(retriever.retrieve(question)) == 1


def test_scores_of_results_are_cosines(index: Any) -> None:
    (result, *_) = index.as_retriever().retrieve(QUESTION)
    model = index.as_retriever()._embed_model
    vectors = (
        model.get_query_embedding(QUESTION),
        model.get_text_embedding(result.node.get_content("embed")),
    )
    assert result.score == pytest.approx(model.similarity(*vectors), abs=1e-6)


def test_nodes_have_fields_of_their_documents(index: Any, documents: list[Document]) -> None:
    (result, *_) = index.as_retriever().retrieve(QUESTION)
    node, tea = result.node, documents[0]
    assert isinstance(node, TextNode)
    assert (node.ref_doc_id, node.metadata) == ("tea", tea.metadata)
    assert tea.text[node.start_char_idx : node.end_char_idx] == node.text
    assert node.source_node.hash == tea.hash
    assert "topic: tea" in node.get_content("llm")


def test_index_without_documents_returns_no_results(kind: Any) -> None:
    assert kind.index.from_documents([]).as_retriever().retrieve(QUESTION) == []


def test_mmr_query_mode_returns_two_results(index: Any) -> None:
    retriever = index.as_retriever(vector_store_query_mode="mmr", similarity_top_k=2)
    assert len(retriever.retrieve(QUESTION)) == 2


def test_each_retrieval_has_one_event(kind: Any, documents: list[Document]) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    index = kind.index.from_documents(documents, callback_manager=CallbackManager([handler]))
    handler.flush_event_logs()
    index.as_retriever().retrieve(QUESTION)
    ((_, end),) = handler.get_event_pairs(CBEventType.RETRIEVE)
    assert topics(end.payload["nodes"])[0] == "tea"


# In LlamaIndex's own composite retrievers


def base_nodes(documents: list[Document]) -> list[Any]:
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    for at, node in enumerate(nodes):
        node.id_ = f"node-{at}"
    return nodes


def recursive(index: Any, nodes: list[Any], **settings: Any) -> RecursiveRetriever:
    retrievers = {"vector": index.as_retriever(similarity_top_k=1)}
    return RecursiveRetriever(
        "vector",
        retriever_dict=retrievers | settings.pop("retriever_dict", {}),
        node_dict={node.node_id: node for node in nodes},
        **settings,
    )


def test_references_to_retrievers_and_engines_are_followed(
    kind: Any, documents: list[Document], llm: ScriptedLLM
) -> None:
    inner = VectorStoreIndex(base_nodes(documents[:1]))
    llm.answer = "42 rows."
    entries = [
        IndexNode(text="All about drinks", index_id="drinks"),
        IndexNode(text="A table of years", index_id="years"),
    ]
    retriever = recursive(
        kind.index(entries),
        entries,
        retriever_dict={"drinks": inner.as_retriever()},
        query_engine_dict={"years": inner.as_query_engine(llm=llm)},
    )
    assert topics(retriever.retrieve("drinks")) == ["tea"]
    assert "42 rows." in retriever.retrieve("the table of years")[0].text


def test_objects_of_index_nodes_are_followed(kind: Any, documents: list[Document]) -> None:
    entries = [
        IndexNode(text=f"All about {node.metadata['topic']}", index_id=node.node_id, obj=node)
        for node in base_nodes(documents)
    ]
    index = kind.index(nodes=entries)
    (result, *_) = index.as_retriever(similarity_top_k=1).retrieve("all about rivers")
    assert topics([result]) == ["rivers"]
