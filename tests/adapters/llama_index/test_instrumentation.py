"""Every stage of a retrieval is a span and an event, below what it is done in."""

import asyncio
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.embedding import EmbeddingEndEvent
from llama_index.core.instrumentation.events.rerank import ReRankStartEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document
from llama_index_models import Words

from nodekin.adapters.llama_index import (
    NodeGraphIndex,
    NodeGraphReranker,
    NodeGraphRetriever,
    instrumentation,
)
from nodekin.adapters.llama_index.instrumentation import SpanEndEvent, SpanStartEvent
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever, trace

QUERY = "Which tea is fermented? 红茶"


def lengths(query: str, texts: Any) -> list[float]:
    return [float(len(text)) for text in texts]


@pytest.fixture
def both(graph: NodeGraph) -> RerankRetriever:
    graph.build("sentence")  # what builds while others search makes them search again
    search = [Retriever(graph, "sentence", target="paragraph"), Retriever(graph, "paragraph")]
    return RerankRetriever(FusionRetriever(search), "ModuleReranker", model=lengths)


def name(span_id: str) -> str:
    return span_id.rsplit("-", 5)[0]


def paths(watched: Any) -> list[str]:
    """Return of each span the way to it from the outermost one."""
    spans = watched.spans
    known = {s.id_: s for s in [*spans.completed_spans, *spans.dropped_spans]}
    assert not spans.open_spans
    made = []
    for span in known.values():
        way, here = [name(span.id_)], span
        while here.parent_id:
            here = known[here.parent_id]
            way.append(name(here.id_))
        made.append(" > ".join(reversed(way)))
    return sorted(made)


@pytest.mark.parametrize("a", ["", "a"])
def test_spans_form_the_tree_of_the_stages(both: RerankRetriever, watched: Any, a: str) -> None:
    retriever = NodeGraphRetriever(both)
    found = asyncio.run(retriever.aretrieve(QUERY)) if a else retriever.retrieve(QUERY)
    assert found
    inner = f"NodeGraphRetriever.{a}retrieve > NodeGraphRetriever._{a}retrieve"
    assert paths(watched) == sorted(
        [
            f"NodeGraphRetriever.{a}retrieve",
            inner,
            f"{inner} > nodekin.fuse",
            f"{inner} > nodekin.fuse > nodekin.search",
            f"{inner} > nodekin.fuse > nodekin.search",
            f"{inner} > nodekin.rerank",
            f"{inner} > nodekin.rerank > nodekin.model",
        ]
    )


def test_events_stand_in_their_spans(both: RerankRetriever, watched: Any) -> None:
    NodeGraphRetriever(both).retrieve(QUERY)
    begun = [event for event in watched.events if isinstance(event, SpanStartEvent)]
    ended = [event for event in watched.events if isinstance(event, SpanEndEvent)]
    assert sorted(e.span for e in begun) == ["fuse", "model", "rerank", "search", "search"]
    assert {e.span_id for e in begun} == {e.span_id for e in ended}
    assert all(name(e.span_id) == f"nodekin.{e.span}" for e in begun)
    (rerank,) = (event for event in ended if event.span == "rerank")
    assert rerank.attributes["reranker"] == "ModuleReranker"
    assert rerank.attributes["query"] == QUERY
    assert rerank.error is None
    assert rerank.seconds >= 0
    assert rerank.class_name() == "SpanEndEvent"


def test_a_branch_that_fails_drops_its_span_only(graph: NodeGraph, watched: Any) -> None:
    graph.create_node_group("bad", lambda text: 1 / 0)
    parts = [Retriever(graph, "bad"), Retriever(graph, "paragraph")]
    retriever = NodeGraphRetriever(FusionRetriever(parts, on_error="skip"))
    assert retriever.retrieve(QUERY)
    dropped = [name(span.id_) for span in watched.spans.dropped_spans]
    assert dropped == ["nodekin.search"]
    (ended,) = (e for e in watched.events if isinstance(e, SpanEndEvent) and e.error)
    assert "'bad' failed on document" in ended.error


class Letters(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0 + text.count(letter) for letter in "aeiou茶"]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def test_models_of_llama_index_are_below_the_retrieval(watched: Any) -> None:
    graph = NodeGraph(embed=Letters())
    graph.add(["Green tea.", "红茶是茶。"])
    graph.create_node_group("sentence", split_sentences)
    NodeGraphRetriever(Retriever(graph, "sentence", "cosine")).retrieve("tea")
    model = [way for way in paths(watched) if "Letters" in way]
    assert model
    assert all(way.startswith("NodeGraphRetriever.retrieve > ") for way in model)


def test_spans_below_a_query_engine_and_a_fusion_of_llama_index(
    both: RerankRetriever, watched: Any
) -> None:
    fusion = QueryFusionRetriever(
        [NodeGraphRetriever(both)] * 2, llm=MockLLM(), num_queries=1, use_async=True
    )
    RetrieverQueryEngine.from_args(fusion, llm=MockLLM()).query(QUERY)
    searches = [way for way in paths(watched) if way.endswith("nodekin.search")]
    assert len(searches) == 4
    assert all(way.startswith("RetrieverQueryEngine.query > ") for way in searches)


def test_callback_events_are_nested(both: RerankRetriever) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    retriever = NodeGraphRetriever(both, callback_manager=CallbackManager([handler]))
    retriever.retrieve(QUERY)
    (retrieval,) = handler.get_event_pairs(CBEventType.RETRIEVE)
    (rerank,) = handler.get_event_pairs(CBEventType.RERANKING)
    calls = handler.get_event_pairs(CBEventType.FUNCTION_CALL)
    kinds = {pair[0].id_: pair[0].payload[EventPayload.TOOL].name for pair in calls}
    assert sorted(kinds.values()) == [
        "nodekin.fuse",
        "nodekin.model",
        "nodekin.search",
        "nodekin.search",
    ]
    children = handler.get_event_pairs
    assert children(CBEventType.LLM) == []
    (fuse,) = (i for i, kind in kinds.items() if kind == "nodekin.fuse")
    searches = {i for i, kind in kinds.items() if kind == "nodekin.search"}
    told = dict(retriever.callback_manager.trace_map)
    assert told[retrieval[0].id_] == [fuse, rerank[0].id_]
    assert set(told[fuse]) == searches
    assert rerank[0].payload[EventPayload.QUERY_STR] == QUERY
    assert all(pair[1].payload[EventPayload.FUNCTION_OUTPUT]["results"] for pair in calls[:1])


def test_callback_events_tell_of_failures(graph: NodeGraph) -> None:
    graph.create_node_group("bad", lambda text: 1 / 0)
    handler = LlamaDebugHandler(print_trace_on_end=False)
    retriever = NodeGraphRetriever(
        Retriever(graph, "bad"), callback_manager=CallbackManager([handler])
    )
    with pytest.raises(RuntimeError):
        retriever.retrieve(QUERY)
    (call,) = handler.get_event_pairs(CBEventType.FUNCTION_CALL)
    assert isinstance(call[1].payload[EventPayload.EXCEPTION], RuntimeError)


async def test_many_at_a_time_keep_apart(both: RerankRetriever, watched: Any) -> None:
    both.retrieve(QUERY)  # a retrieval during which another one builds begins anew
    retrievers = [NodeGraphRetriever(both) for _ in range(6)]
    await asyncio.gather(*(each.aretrieve(QUERY) for each in retrievers))
    ways = paths(watched)
    inner = "NodeGraphRetriever.aretrieve > NodeGraphRetriever._aretrieve"
    assert ways.count(f"{inner} > nodekin.fuse > nodekin.search") == 12


def test_beside_a_trace(both: RerankRetriever, watched: Any) -> None:
    with trace() as traced:
        NodeGraphRetriever(both).retrieve(QUERY)
    assert [span.name for span in traced.children] == ["fuse", "rerank"]


def test_no_stage_is_exported_as_another_retriever(both: RerankRetriever, watched: Any) -> None:
    owners: list[Any] = []

    class Owners(SimpleSpanHandler):
        def new_span(self, id_: str, bound_args: Any, instance: Any = None, **kwargs: Any) -> Any:
            if id_.startswith("nodekin."):
                owners.append(instance)
            return super().new_span(id_, bound_args, instance, **kwargs)

    handler = Owners()
    get_dispatcher().add_span_handler(handler)
    try:
        NodeGraphRetriever(both).retrieve(QUERY)
    finally:
        get_dispatcher().span_handlers.remove(handler)
    assert len(owners) >= 4
    assert set(owners) == {None}


@pytest.mark.parametrize("is_async", [False, True])
def test_rerank_events_belong_to_the_span_of_the_reranker(
    graph: NodeGraph, watched: Any, is_async: bool
) -> None:
    engine = RetrieverQueryEngine.from_args(
        NodeGraphRetriever(Retriever(graph, "sentence", top_k=3)),
        llm=MockLLM(),
        node_postprocessors=[NodeGraphReranker("ModuleReranker", model=lengths)],
    )
    _ = asyncio.run(engine.aquery(QUERY)) if is_async else engine.query(QUERY)
    spans = [event.span_id for event in watched.events if isinstance(event, ReRankStartEvent)]
    assert [name(span) for span in spans] == [
        f"NodeGraphReranker._{'a' if is_async else ''}postprocess_nodes"
    ]


@pytest.mark.parametrize("at", ["root", instrumentation.__name__])
async def test_spans_are_made_where_there_is_a_handler(
    both: RerankRetriever, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    retriever = NodeGraphRetriever(both)
    observers: list[Any] = []
    create = instrumentation.SpanObserver
    monkeypatch.setattr(instrumentation, "SpanObserver", lambda m: observers.append(m) or create(m))
    expected = retriever.retrieve(QUERY)
    assert expected == await retriever.aretrieve(QUERY)
    assert not observers
    handler, own = SimpleSpanHandler(), get_dispatcher(at)
    own.add_span_handler(handler)
    try:
        assert expected == retriever.retrieve(QUERY) == await retriever.aretrieve(QUERY)
    finally:
        own.span_handlers.remove(handler)
    assert len(observers) == 2
    spans = [name(span.id_) for span in handler.completed_spans]
    assert [spans.count(f"nodekin.{stage}") for stage in ("search", "rerank")] == [4, 2]
    callbacks = LlamaDebugHandler(print_trace_on_end=False)
    manager = retriever.callback_manager = CallbackManager([callbacks])
    assert retriever.retrieve(QUERY) == expected
    assert observers[2:] == [manager]
    manager.remove_handler(callbacks)
    assert retriever.retrieve(QUERY) == expected
    assert len(observers) == 3


def test_a_default_search_is_one_retrieval_and_embeds_the_query_once(watched: Any) -> None:
    """What measures the graph at the first search is no retrieval, and no query of its own."""
    model = Words(texts=[])
    documents = [Document(text=f"Tea {n}. It is {n}. Rivers {n}.", id_=f"{n}") for n in range(20)]
    index = NodeGraphIndex.from_documents(documents, embed_model=model)
    engine = index.as_query_engine(MockLLM())
    for search in (index.as_retriever().retrieve, engine.query):
        watched.events.clear()
        search("Which tea is 7?")
        names = [event.class_name() for event in watched.events]
        assert names.count("RetrievalStartEvent") == names.count("RetrievalEndEvent") == 1
        queries = [
            chunk
            for event in watched.events
            if isinstance(event, EmbeddingEndEvent)
            for chunk in event.chunks
            if not any(chunk in document.text for document in documents)
        ]
        assert set(queries) <= {"Which tea is 7?"}
        assert len(queries) <= 1
