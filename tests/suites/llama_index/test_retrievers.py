"""Retrievers: ``index.as_retriever``, ``RecursiveRetriever`` and ``AutoMergingRetriever``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
)
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from support.llama_index_models import ScriptedLLM

QUESTION = "Which tea is fermented?"
QUESTIONS = (QUESTION, "Is the Nile 6,650 km long, to the Mediterranean sea?")


def topics(results: list[NodeWithScore]) -> list[str]:
    return [result.metadata["topic"] for result in results]


def where(*conditions: Any, **settings: Any) -> MetadataFilters:
    filters = [
        MetadataFilter(key=condition[0], operator=condition[1], value=condition[2])
        for condition in conditions
    ]
    return MetadataFilters(filters=filters, **settings)


def test_a_text_and_a_bundle_are_queries(index: Any) -> None:
    retriever = index.as_retriever()
    results = retriever.retrieve(QUESTION)
    assert all(isinstance(result, NodeWithScore) for result in results)
    assert topics(results)[0] == "tea"
    assert topics(retriever.retrieve(QueryBundle(QUESTION))) == topics(results)


async def test_async_results_are_the_same(index: Any) -> None:
    retriever = index.as_retriever(similarity_top_k=3)
    assert topics(await retriever.aretrieve(QUESTION)) == topics(retriever.retrieve(QUESTION))
    several = await asyncio.gather(*(retriever.aretrieve(q) for q in QUESTIONS))
    assert [topics(results)[0] for results in several] == ["tea", "rivers"]


def test_similarity_top_k_defaults_to_two(index: Any) -> None:
    question = "Is it the Nile, black tea or the Golden Gate Bridge?"
    assert len(index.as_retriever().retrieve(question)) == 2
    for number in (1, 3):
        assert len(index.as_retriever(similarity_top_k=number).retrieve(question)) == number
    retriever = index.as_retriever()
    retriever.similarity_top_k = 1
    assert len(retriever.retrieve(question)) == 1


def test_results_are_best_first_with_scores(index: Any) -> None:
    results = index.as_retriever(similarity_top_k=3).retrieve("Nile, tea, orange bridge")
    scores = [result.get_score(raise_error=True) for result in results]
    assert scores == sorted(scores, reverse=True)


def test_scores_are_cosines(index: Any) -> None:
    (result, *_) = index.as_retriever().retrieve(QUESTION)
    model = index.as_retriever()._embed_model
    vectors = (
        model.get_query_embedding(QUESTION),
        model.get_text_embedding(result.node.get_content("embed")),
    )
    assert result.score == pytest.approx(model.similarity(*vectors), abs=1e-6)


def test_nodes_have_what_their_documents_have(index: Any, documents: list[Document]) -> None:
    (result, *_) = index.as_retriever().retrieve(QUESTION)
    node, tea = result.node, documents[0]
    assert isinstance(node, TextNode)
    assert (node.ref_doc_id, node.metadata) == ("tea", tea.metadata)
    assert tea.text[node.start_char_idx : node.end_char_idx] == node.text
    assert node.source_node.hash == tea.hash
    assert "topic: tea" in node.get_content("llm")


def test_nodes_can_be_changed_without_harm(index: Any) -> None:
    retriever = index.as_retriever()
    (result, *_) = retriever.retrieve(QUESTION)
    again = retriever.retrieve(QUESTION)[0]
    result.score = 9.0
    assert again.score != 9.0


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (where(("topic", FilterOperator.EQ, "tea")), {"tea"}),
        (where(("topic", FilterOperator.NE, "tea")), {"rivers", "bridges"}),
        (where(("topic", FilterOperator.IN, ["tea", "rivers"])), {"tea", "rivers"}),
        (where(("topic", FilterOperator.NIN, ["tea", "rivers"])), {"bridges"}),
        (where(("year", FilterOperator.GT, 2001)), {"rivers", "bridges"}),
        (where(("year", FilterOperator.GTE, 2002), ("year", "<", 2003)), {"rivers"}),
        (where(("topic", FilterOperator.TEXT_MATCH, "ridge")), {"bridges"}),
        (
            where(("topic", "==", "tea"), ("year", "==", 2003), condition=FilterCondition.OR),
            {"tea", "bridges"},
        ),
    ],
)
def test_metadata_filters(index: Any, filters: MetadataFilters, expected: set[str]) -> None:
    retriever = index.as_retriever(similarity_top_k=3, filters=filters)
    assert {*topics(retriever.retrieve("Is it the Nile, black tea or a bridge?"))} <= expected
    for topic, question in (("tea", "tea"), ("rivers", "Nile"), ("bridges", "bridge")):
        results = retriever.retrieve(question)
        assert (topic in topics(results)) == (topic in expected)


def test_an_index_without_documents_has_no_results(kind: Any) -> None:
    assert kind.index.from_documents([]).as_retriever().retrieve(QUESTION) == []


def test_query_mode_mmr_returns_top_k_results(index: Any) -> None:
    retriever = index.as_retriever(vector_store_query_mode="mmr", similarity_top_k=2)
    assert len(retriever.retrieve(QUESTION)) == 2


def test_one_event_for_each_retrieval(kind: Any, documents: list[Document]) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    index = kind.index.from_documents(documents, callback_manager=CallbackManager([handler]))
    handler.flush_event_logs()
    index.as_retriever().retrieve(QUESTION)
    ((_, end),) = handler.get_event_pairs(CBEventType.RETRIEVE)
    assert topics(end.payload["nodes"])[0] == "tea"


def test_equal_texts_with_different_ids_are_kept(kind: Any) -> None:
    index = kind.index([TextNode(text="Tea is green.", id_=name) for name in "ab"])
    results = index.as_retriever(similarity_top_k=3).retrieve("green tea")
    assert {result.node_id for result in results} == {"a", "b"}


# In LlamaIndex's own composite retrievers


def test_it_is_fused_and_routed(index: Any, llm: ScriptedLLM) -> None:
    retriever = index.as_retriever()
    for mode in ("reciprocal_rerank", "relative_score", "dist_based_score", "simple"):
        fusion = QueryFusionRetriever([retriever, retriever], llm=llm, num_queries=1, mode=mode)
        assert topics(fusion.retrieve(QUESTION))[0] == "tea"
    tool = RetrieverTool.from_defaults(retriever, name="drinks", description="About drinks")
    other = RetrieverTool.from_defaults(retriever, name="others", description="About others")
    llm.answer = '[{"choice": 1, "reason": "drinks"}]'
    router = RouterRetriever(LLMSingleSelector.from_defaults(llm=llm), [tool, other])
    assert topics(router.retrieve(QUESTION))[0] == "tea"


def hierarchy() -> tuple[list[Any], SimpleDocumentStore]:
    text = " ".join(f"{name} was the king of land {at}." for at, name in enumerate("ABCDEFGH"))
    parser = HierarchicalNodeParser.from_defaults([96, 12], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([Document(text=text, id_="kings")])
    by_id = {node.node_id: node for node in nodes}
    for node in nodes:  # which LlamaIndex's parser leaves out, for leaves
        if node.prev_node is not None:
            previous = by_id[node.prev_node.node_id]
            previous.relationships[NodeRelationship.NEXT] = node.as_related_node_info()
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    return nodes, docstore


def test_leaves_are_merged_and_gaps_are_filled(kind: Any) -> None:
    nodes, docstore = hierarchy()
    storage = StorageContext.from_defaults(docstore=docstore)
    leaves = get_leaf_nodes(nodes)
    index = kind.index(leaves, storage_context=storage)
    merged = AutoMergingRetriever(index.as_retriever(similarity_top_k=99), storage)
    parents = {leaf.parent_node.node_id for leaf in leaves}
    assert {result.node_id for result in merged.retrieve("king of a land")} == parents
    # Of three neighbors the first and the third are hits.
    by_id = {leaf.node_id: leaf for leaf in leaves}
    results = index.as_retriever(similarity_top_k=99).retrieve("king of a land")
    by_next = {result.node.next_node.node_id: result for result in results if result.node.next_node}
    first, third, gap = next(
        (by_next[result.node.prev_node.node_id], result, result.node.prev_node.node_id)
        for result in results
        if result.node.prev_node and result.node.prev_node.node_id in by_next
    )
    filled, changed = merged._fill_in_nodes([first, third])
    assert changed
    assert [result.node_id for result in filled] == [first.node_id, gap, third.node_id]
    assert gap in by_id


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


def test_chunk_references_are_followed(kind: Any, documents: list[Document]) -> None:
    base = base_nodes(documents)
    small = SentenceSplitter(chunk_size=24, chunk_overlap=0)
    parts = [
        IndexNode.from_text_node(part, node.node_id)
        for node in base
        for part in small.get_nodes_from_documents([node])
    ]
    everything = [*parts, *(IndexNode.from_text_node(node, node.node_id) for node in base)]
    retriever = recursive(kind.index(everything), [*everything, *base])
    assert [r.node_id for r in retriever.retrieve("painted in orange")] == [base[2].node_id]


def test_metadata_references_are_followed(kind: Any, documents: list[Document]) -> None:
    """Summaries and questions that models wrote of a node lead to it."""
    base = base_nodes(documents)
    written = {
        0: ("A summary of hot drinks.", "How is the leaf of the camellia prepared?"),
        1: ("A summary of streams.", "Which stream is the longest of Africa?"),
        2: ("A summary of crossings.", "When could one walk over the bay?"),
    }
    references = [
        IndexNode(text=text, index_id=base[at].node_id)
        for at, texts in written.items()
        for text in texts
    ]
    retriever = recursive(kind.index([*base, *references]), [*base, *references])
    for question, node in (
        ("Which is the longest stream of Africa?", base[1]),
        ("a summary of hot drinks", base[0]),
        ("Who painted it in orange?", base[2]),
    ):
        (result,) = retriever.retrieve(question)
        assert (result.node_id, result.text) == (node.node_id, node.text)


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
